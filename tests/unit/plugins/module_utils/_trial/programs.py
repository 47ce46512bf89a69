# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs of a node that is a live one as far as trials see."""

from __future__ import annotations

from pathlib import Path


def put_program(root: Path, path: Path, mode: int = 0o755) -> str:
    """Have a program at this path here and below the node's root; give the path.

    A trial looks here for what is there, and below the root for who may write it.
    """
    for file in (path, Path("%s%s" % (root, path))):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        file.chmod(mode)
    return str(path)
