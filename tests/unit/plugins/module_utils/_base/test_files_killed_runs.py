# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that are killed, and the temporary files that they leave."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import replace_file
from ansible_collections.kubenode.cpu_manager.tests.support.blocking import not_blocking

# Fixtures are used by their names.
# pylint: disable=unused-import
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._base.file_cases import (
    CHANGES,
    NEW,
    OLD,
    Change,
    as_root,
    contents,
    failing,
    fixed_clock,  # noqa: F401
    new_directory,  # noqa: F401
    old_file,  # noqa: F401
)

# For each line that it is given: a process that writes and writes until it is killed.
WRITERS = """
import os, sys
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import replace_file
from ansible_collections.kubenode.cpu_manager.tests.support.blocking import not_blocking

path, old, new = sys.argv[2], sys.argv[3].encode() * 50_000, sys.argv[4].encode() * 50_000
for _line in sys.stdin:
    child = os.fork()
    while not child:
        replace_file(path, new, 0o600, old, backup=False)
        replace_file(path, old, 0o600, new, backup=False)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""

STRAY = re.compile(r"\.config\.yaml\.kubenode-[0-9a-f]{16}")


def test_a_killed_run_leaves_the_old_or_the_new_content(directory: Path, path: Path) -> None:
    """Many times, at any moment: the file is whole, and the next run removes what the killed one left."""
    old, new = OLD * 50_000, NEW * 50_000
    tests = Path(__file__).resolve().parents[4]
    command = [sys.executable, "-c", WRITERS, str(tests), str(path), OLD.decode(), NEW.decode()]
    strays, seen = 0, set()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as writers:
        assert writers.stdin is not None
        assert writers.stdout is not None
        path.write_bytes(old)
        start = time.monotonic()
        replace_file(str(path), new, 0o600, old, backup=False)
        # The last ones of them are done when they are killed, however slow the disk is.
        longest = max(0.02, 3 * (time.monotonic() - start))
        for number in range(50):
            path.write_bytes(old)
            writers.stdin.write("write\n")
            writer = int(writers.stdout.readline())
            time.sleep(longest * number / 50)
            os.kill(writer, signal.SIGKILL)
            assert writers.stdout.readline() == "dead\n"
            found = path.read_bytes()
            seen.add(found)
            assert found in (old, new)
            left = [name for name in os.listdir(directory) if name != "config.yaml"]
            assert all(STRAY.fullmatch(name) for name in left)
            strays += len(left)
            replace_file(str(path), OLD, 0o600, found, backup=False)
            assert contents(directory) == {"config.yaml": OLD}
    assert strays
    assert seen == {old, new}


@pytest.mark.parametrize("change", CHANGES)
def test_strays_of_killed_runs_go(directory: Path, path: Path, change: Change) -> None:
    for name in ("0123456789abcdef", "f" * 16):
        (directory / (".config.yaml.kubenode-" + name)).write_bytes(b"half")
    change(path)
    assert not [name for name in os.listdir(directory) if name.startswith(".")]


OTHERS = [
    ".config.yaml.kubenode-0123456789abcde",  # too short
    ".config.yaml.kubenode-0123456789abcdef0",  # too long
    ".config.yaml.kubenode-0123456789ABCDEF",
    ".config.yaml.kubenode-0123456789abcdef~",
    "config.yaml.kubenode-0123456789abcdef",  # not hidden
    ".config.yml.kubenode-0123456789abcdef",  # of another file
    ".cpu_manager_state.kubenode-0123456789abcdef",
    ".config.yaml.1234",
    ".1234567890",  # the kubelet's own
    ".config.yaml.swp",
    "config.yaml.20261121T221529Z~",
]


def test_files_that_are_not_surely_ours_stay(directory: Path, path: Path) -> None:
    for name in OTHERS:
        (directory / name).write_bytes(name.encode())
    (directory / (".config.yaml.kubenode-" + "a" * 16)).mkdir()
    (directory / (".config.yaml.kubenode-" + "b" * 16)).symlink_to("config.yaml.20261121T221529Z~")
    os.mkfifo(directory / (".config.yaml.kubenode-" + "c" * 16))
    before = sorted(os.listdir(directory))
    with not_blocking():
        replace_file(str(path), NEW, 0o600, OLD, backup=False)
    assert sorted(os.listdir(directory)) == before


@as_root
def test_a_stray_of_another_user_stays(directory: Path, path: Path) -> None:
    stray = directory / ".config.yaml.kubenode-0123456789abcdef"
    stray.write_bytes(b"")
    os.chown(stray, 1234, 5678)
    replace_file(str(path), NEW, 0o600, OLD, backup=False)
    assert stray.exists()


@as_root
def test_a_stray_that_was_given_to_the_files_owner_goes(directory: Path, path: Path) -> None:
    os.chown(path, 1234, 5678)
    stray = directory / ".config.yaml.kubenode-0123456789abcdef"
    stray.write_bytes(b"")
    os.chown(stray, 1234, 5678)
    replace_file(str(path), NEW, 0o600, OLD, backup=False)
    assert contents(directory) == {"config.yaml": NEW}


def test_the_file_of_a_run_that_still_writes_stays(directory: Path, path: Path) -> None:
    stray = directory / ".config.yaml.kubenode-0123456789abcdef"
    with stray.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        replace_file(str(path), NEW, 0o600, OLD, backup=False)
        assert stray.exists()
    replace_file(str(path), OLD, 0o600, NEW, backup=False)
    assert not stray.exists()


def test_two_runs_at_once_do_not_disturb_each_other(
    directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One comes while the other is about to write, and about to rename."""
    second = directory / "other.yaml"
    inner: list[str] = []

    def within(name: str) -> Callable[..., Any]:
        function = getattr(os, name)

        def call(*arguments: Any) -> Any:
            if name not in inner:
                inner.append(name)
                replace_file(str(second), NEW, 0o600, second.read_bytes() if second.exists() else None, backup=False)
                files.remove_strays(str(path), None)  # as a second run for this very file would
            return function(*arguments)

        return call

    for name in ("write", "rename"):
        monkeypatch.setattr(os, name, within(name))
    replace_file(str(path), NEW, 0o600, OLD, backup=False)
    assert inner == ["write", "rename"]
    assert contents(directory) == {"config.yaml": NEW, "other.yaml": NEW}


def test_a_file_that_another_run_took_for_a_stray_is_made_again(
    directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its locking."""
    flock = fcntl.flock
    taken: list[Path] = []

    def late(descriptor: int, operation: int) -> None:
        if not taken:
            taken.extend(directory.glob(".config.yaml.kubenode-*"))
            taken[0].unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    replace_file(str(path), NEW, 0o600, OLD, backup=False)
    assert len(taken) == 1
    assert contents(directory) == {"config.yaml": NEW}


def test_a_file_system_without_locks(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody knows whose a stray is, so it stays."""
    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK))
    stray = directory / ".config.yaml.kubenode-0123456789abcdef"
    stray.write_bytes(b"")
    replace_file(str(path), NEW, 0o600, OLD, backup=False)
    assert contents(directory) == {"config.yaml": NEW, stray.name: b""}
