# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from ansible_collections.kubenode.cpu_manager.tests.vm.image import FILES

PLACE = FILES / "base/usr/lib/python3/dist-packages"

# Imports `module` from the archive given as a machine would, and counts how often it is compiled.
PROGRAM = """
import builtins, sys
place, directory, archive = sys.argv[1:]
sys.path[:0] = [archive, place]
import zip_bytecode
zip_bytecode.keep(directory=directory)
real_compile, names = builtins.compile, []
def counted(source, name, *rest, **more):
    names.append(str(name))
    return real_compile(source, name, *rest, **more)
builtins.compile = counted
import module
print(sum("module.py" in name for name in names), module.ANSWER)
"""


def run(directory: Path, source: str) -> list[str]:
    archive = directory / "code.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("module.py", source)
    command = [sys.executable, "-B", "-c", PROGRAM, str(PLACE), str(directory / "kept"), str(archive)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_a_source_is_compiled_once_for_all_processes(tmp_path: Path) -> None:
    assert [run(tmp_path, "ANSWER = 42\n") for _run in range(2)] == [["1", "42"], ["0", "42"]]


def test_another_source_is_another_one(tmp_path: Path) -> None:
    run(tmp_path, "ANSWER = 42\n")
    assert run(tmp_path, "ANSWER = 43\n") == ["1", "43"]


def test_without_a_place_it_is_compiled_as_ever(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("not a directory", encoding="utf-8")
    assert run(tmp_path, "ANSWER = 42\n") == ["2", "42"]


def test_every_python_of_a_machine_does_so() -> None:
    assert (PLACE / "zip_bytecode.pth").read_text(encoding="utf-8") == "import zip_bytecode; zip_bytecode.keep()\n"
