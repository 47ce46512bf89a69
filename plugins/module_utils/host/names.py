# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that the kernel and its programs give, as people may see them. Pure."""

from __future__ import annotations


def shown(name: bytes) -> str:
    """A name as text on one line: bytes that are no text, and what controls a terminal, are escaped."""
    text = name.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
