# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Directories in one another, deeper than functions of Python may call each other, and than a path can say.

`make hostile` takes 1,500. To make so many takes long, so in the standard list Python's limit is lowered with them.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

LEVELS = 1500 if os.environ.get("HOSTILE") else 300
# How many calls there may be within that of a test.
_CALLS = 200


@contextmanager
def nested(top: Path, levels: int = LEVELS, name: str = "d", file: str = "", content: str = "") -> Iterator[None]:
    """Yield a directory of that name, in it another one, and so on; removed in the end, as not even shutil can.

    file: what each of them has with that content.
    """
    before, most_calls = os.getcwd(), sys.getrecursionlimit()
    os.chdir(top)
    try:
        for _level in range(levels):
            os.mkdir(name)
            os.chdir(name)
            if file:
                Path(file).write_text(content, encoding="ascii")
        os.chdir(before)
        sys.setrecursionlimit(len(inspect.stack(0)) + _CALLS)
        yield
    finally:
        sys.setrecursionlimit(most_calls)
        os.chdir(before)
        subprocess.run(["rm", "-r", str(top / name)], check=True)
