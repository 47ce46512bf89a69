# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Iterator

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import zipapp

MODULE = "_programs.reconcile_program"


def test_a_program_runs_by_itself(tmp_path: Path) -> None:
    program = tmp_path / "program.pyz"
    program.write_bytes(zipapp.build(MODULE, sys.executable))
    program.chmod(0o755)
    # Its first line names the Python; in another directory, and without any path of this one.
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, cwd="/", env={})
    assert done.returncode == 2
    assert done.stdout.startswith("usage: ")


def test_the_same_core_gives_the_same_bytes() -> None:
    assert zipapp.build(MODULE, "/usr/bin/python3") == zipapp.build(MODULE, "/usr/bin/python3")
    assert zipapp.build(MODULE, "/usr/bin/python3") != zipapp.build(MODULE, "/usr/bin/python3.8")


def test_only_what_is_needed_is_in_it(tmp_path: Path) -> None:
    program = tmp_path / "program.pyz"
    program.write_bytes(zipapp.build(MODULE, sys.executable))
    with zipfile.ZipFile(program) as archive:
        names = set(archive.namelist())
        texts = [archive.read(name).decode("utf-8") for name in names]
    assert {
        "__main__.py",
        "cpu_manager/cpuset.py",
        "cpu_manager/_programs/reconcile_program.py",
        "cpu_manager/_programs/__init__.py",
    } <= names
    # What is imported only where it is needed is needed, too.
    assert {"cpu_manager/_kubelet/configuration.py", "cpu_manager/state/decoding.py"} <= names
    assert "cpu_manager/_base/ansible_module.py" not in names
    assert "cpu_manager/_node/drift.py" not in names
    assert not any("import ansible" in text or "from ansible" in text for text in texts)


IMPORT_ALL = """
import importlib, sys

sys.path.insert(0, sys.argv[1])
for path, names in {imports!r}:
    if hasattr(importlib.import_module(path), "__path__"):
        for name in names:
            importlib.import_module(path + "." + name)
"""


def test_all_that_it_could_ever_import_is_in_it(tmp_path: Path) -> None:
    program = tmp_path / "program.pyz"
    program.write_bytes(zipapp.build(MODULE, sys.executable))
    with zipfile.ZipFile(program) as archive:
        # Also what is imported only in a function, or for a type checker.
        imports = sorted({pair for name in archive.namelist() for pair in imported(name, archive.read(name))})
    command = [sys.executable, "-I", "-c", IMPORT_ALL.format(imports=imports), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")


def imported(name: str, source: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the relative imports of a file in the archive: the absolute path, and the names taken from it."""
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.ImportFrom) and statement.level:
            path = [*name.split("/")[: -statement.level], *filter(None, [statement.module])]
            yield ".".join(path), tuple(alias.name for alias in statement.names)
