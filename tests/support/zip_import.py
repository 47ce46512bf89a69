# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Import a module from a zip archive, as Ansible has a node do, and see how often that compiles it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

_PROGRAM = """
import builtins, sys
archive, place, preparation = sys.argv[1:]
sys.path[:0] = [archive, place]
real_compile, names = builtins.compile, []
def counted(source, name, *rest, **more):
    names.append(str(name))
    return real_compile(source, name, *rest, **more)
builtins.compile = counted
exec(preparation)
import module
print(sum("module.py" in name for name in names), module.ANSWER, module.__file__)
"""


class Imported(NamedTuple):
    """What a new Python says of the module that it imported."""

    compilations: int
    answer: int
    file: str


def import_from_zip(archive: Path, answer: int, preparation: str = "", place: Path | None = None) -> Imported:
    """Have a new Python do so in `archive`, which is made, after a preparation that may import what is in `place`."""
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("module.py", "ANSWER = %d\n" % answer)
    command = [sys.executable, "-B", "-c", _PROGRAM, str(archive), str(place or ""), preparation]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    compilations, told, file = done.stdout.split(maxsplit=2)
    return Imported(int(compilations), int(told), file.strip())
