# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of the bytecode that virtual machines keep of zip archives."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import KEEPER
from ansible_collections.kubenode.cpu_manager.tests.support.zip_import import import_from_zip
from ansible_collections.kubenode.cpu_manager.tests.vm.recipes import FILES

PLACE = FILES / "base/usr/lib/python3/dist-packages"


def run(directory: Path, answer: int) -> tuple[int, int]:
    """Return how often the module was compiled, and what it answers."""
    preparation = "import zip_bytecode; zip_bytecode.keep(directory=%r)" % str(directory / "kept")
    return import_from_zip(directory / "code.zip", answer, preparation, PLACE)[:2]


def test_a_source_is_compiled_once_for_all_processes(tmp_path: Path) -> None:
    assert [run(tmp_path, 42) for _run in range(2)] == [(1, 42), (0, 42)]


def test_another_source_is_another_one(tmp_path: Path) -> None:
    run(tmp_path, 42)
    assert run(tmp_path, 43) == (1, 43)


def test_without_a_place_it_is_compiled_as_ever(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("not a directory", encoding="utf-8")
    assert run(tmp_path, 42) == (2, 42)


def test_the_runs_of_tests_keep_it_for_each_python(tmp_path: Path) -> None:
    """As tests/playbooks/conftest.py sets the variables: without KEPT_BYTECODE nothing is kept."""
    environment = {"PYTHONPATH": os.pathsep.join(map(str, KEEPER))}
    for kept in ({}, {"KEPT_BYTECODE": str(tmp_path / "kept")}):
        code = "import sys; sys.path.insert(0, %r); import answer" % str(archive(tmp_path))
        subprocess.run([sys.executable, "-c", code], check=True, env={**environment, **kept})
        found = [path.name for path in tmp_path.glob("kept/*")]
        assert found == ([sys.implementation.cache_tag] if kept else [])


def archive(directory: Path) -> Path:
    """Return a zip archive with a module."""
    path = directory / "code.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("answer.py", "ANSWER = 42\n")
    return path


def test_every_python_of_a_machine_does_so() -> None:
    assert (PLACE / "zip_bytecode.pth").read_text(encoding="utf-8") == "import zip_bytecode; zip_bytecode.keep()\n"
