# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/installation.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Iterator, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet import installation
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.installation import running_version


@pytest.fixture
def program(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Yield a program that runs, and its process."""
    path = tmp_path / "kubelet"
    shutil.copy(str(shutil.which("sleep")), path)
    path.chmod(0o755)
    with subprocess.Popen([path, "60"]) as process:
        # A new program is there before the kernel has its words.
        while not Path("/proc/%d/cmdline" % process.pid).read_bytes():
            time.sleep(0.001)
        yield path, process.pid
        process.kill()


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ("Kubernetes v1.35.6\n", "1.35.6"),
        ("Kubernetes v1.30.1+rke2r1\n", "1.30.1"),
        ("k3s version v1.33.1+k3s1 (99d91538)\ngo version go1.24.2\n", "1.33.1"),
        ("sleep (GNU coreutils) 9.1\n", ""),
    ],
)
def test_what_it_says(program: tuple[Path, int], says: str, version: str) -> None:
    path, pid = program
    asked = []

    def run(arguments: Sequence[str]) -> str:
        asked.append(list(arguments))
        return says

    assert running_version(pid, run) == version
    assert asked == [[str(path), "--version"]]


def test_a_program_that_is_really_asked(program: tuple[Path, int]) -> None:
    # It is coreutils' own.
    assert running_version(program[1]) == ""


def test_a_program_that_others_may_write_is_not_asked(program: tuple[Path, int]) -> None:
    path, pid = program
    path.chmod(0o777)
    assert running_version(pid, never) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root")
def test_the_program_of_another_user_is_not_asked(program: tuple[Path, int]) -> None:
    path, pid = program
    os.chown(path, 65534, 65534)
    assert running_version(pid, never) == ""


def test_a_program_that_was_replaced_is_not_asked(program: tuple[Path, int]) -> None:
    path, pid = program
    path.unlink()
    assert running_version(pid, never) == ""
    shutil.copy(str(shutil.which("true")), path)
    assert running_version(pid, never) == ""


def test_nobody_to_ask(program: tuple[Path, int]) -> None:
    def run(_arguments: Sequence[str]) -> str:
        raise NodeError("no answer")

    assert running_version(program[1], run) == ""
    assert running_version(1 << 22, never) == ""


@pytest.fixture
def unseen(program: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> tuple[Path, int]:
    """Return the same where the link to the program cannot be read, as without the capability SYS_PTRACE; it is a
    service."""

    def trusted_program(_pid: int) -> str:
        raise PermissionError

    monkeypatch.setattr(installation, "trusted_program", trusted_program)
    monkeypatch.setattr(installation, "service_of_process", lambda _pid: "kubelet.service")
    # The real time of a start is hundredths of a second exact, less on a busy machine: later than the file's change.
    started = time.time() + 0.01
    monkeypatch.setattr(installation, "_start_of", lambda _pid: started)
    return program


def test_the_program_of_a_service_is_known_without_a_look_at_its_link(unseen: tuple[Path, int]) -> None:
    path, pid = unseen
    asked = []

    def run(arguments: Sequence[str]) -> str:
        asked.append(list(arguments))
        return "Kubernetes v1.35.6\n"

    assert running_version(pid, run) == "1.35.6"
    assert asked == [[str(path), "--version"]]


def test_a_program_that_has_changed_since_the_start_of_its_service_is_not_asked(unseen: tuple[Path, int]) -> None:
    path, pid = unseen
    time.sleep(0.1)
    path.chmod(0o700)
    assert running_version(pid, never) == ""
    path.unlink()
    assert running_version(pid, never) == ""


@pytest.mark.parametrize("mode", [0o777, 0o772])
def test_a_program_of_a_service_that_others_may_write_is_not_asked(
    unseen: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    path, pid = unseen
    path.chmod(mode)
    monkeypatch.setattr(installation, "_start_of", lambda _pid: time.time() + 60)
    assert running_version(pid, never) == ""


def test_a_program_that_is_no_service_is_not_asked_without_a_look_at_its_link(
    unseen: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "service_of_process", lambda _pid: "")
    assert running_version(unseen[1], never) == ""


def test_when_a_process_was_started(program: tuple[Path, int]) -> None:
    assert abs(installation._start_of(program[1]) - time.time()) < 30


def never(_arguments: Sequence[str]) -> str:
    raise AssertionError("nobody was to be asked")
