# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import zipapp
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.save_program import FIRST, LAST
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

# Of all files of a ConfigMap, which the API server refuses if it is larger.
MOST_BYTES = 1 << 20

of_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory its root")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "node-save.pyz"
    path.write_bytes(zipapp.build("_saved.save_program", sys.executable))
    return path


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Return the root of a node; a real kubelet's is in tests/cluster/test_without_ssh.py."""
    write_machine(tmp_path / "node", "1s2c2t")
    write(tmp_path / "node", "/etc/hostname", "worker\n")
    return tmp_path / "node"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd="/", env={})


def test_a_config_map_holds_it(program: Path) -> None:
    assert len(program.read_bytes()) * 4 // 3 < MOST_BYTES


def test_it_does_without_ansible(program: Path) -> None:
    assert {name.partition(".")[0] for name in imported_by(program)} <= sys.stdlib_module_names


def imported_by(program: Path) -> set[str]:
    """Return the modules of Python's library that it imports, also in functions."""
    with zipfile.ZipFile(program) as archive:
        return {name for path in archive.namelist() if path != "__main__.py" for name in _imports(archive.read(path))}


def _imports(source: bytes) -> Iterator[str]:
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            yield str(statement.module)


@of_root
def test_the_same_node_gives_the_same_lines(program: Path, node: Path) -> None:
    done = [run(sys.executable, "-I", "-B", program, node) for _time in range(2)]
    assert [result.returncode for result in done] == [0, 0], done[0].stderr
    lines = done[0].stdout.splitlines()
    assert (lines[0].split()[0], lines[-1]) == (FIRST, LAST)
    assert max(map(len, lines)) < 16 << 10


@of_root
def test_it_waits_until_it_is_told_to_end(program: Path, node: Path) -> None:
    command = [sys.executable, "-I", "-B", str(program), "--wait", str(node)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # Nothing is held back while it waits.
        while process.stdout.readline().strip() != LAST:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@of_root
@pytest.mark.needs("setpriv")
def test_without_its_capability_it_says_which(program: Path, node: Path) -> None:
    done = run("/usr/bin/setpriv", "--bounding-set=-all", sys.executable, "-I", "-B", program, node)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "give the container the capability SYS_CHROOT" in done.stderr


@of_root
def test_what_is_no_node(program: Path, tmp_path: Path) -> None:
    done = run(sys.executable, "-I", "-B", program, tmp_path / "nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing" in done.stderr


ENTER = """
import sys

sys.path.insert(0, sys.argv[0])
from cpu_manager._saved.save_program import enter

enter("/")
print(sys.path, *sys.modules)
"""


@of_root
def test_all_that_it_could_import_is_there_before_it_enters(program: Path) -> None:
    """Afterwards there is no library, or one of the node's."""
    done = run(sys.executable, "-I", "-B", "-c", "import sys; sys.argv[0] = sys.argv.pop()\n" + ENTER, program)
    path, *loaded = done.stdout.split()
    assert path == "[]", done.stderr
    assert {"ctypes", "fractions"} <= imported_by(program) <= set(loaded)
