# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls that fail and disks that are full or read-only: the file is whole, and no other file stays."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any, Iterator, NoReturn

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import replace_file
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import need

# Fixtures are used by their names.
# pylint: disable=unused-import
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._base.file_cases import (
    CHANGES,
    NEW,
    OLD,
    STAMP,
    Change,
    as_root,
    contents,
    fixed_clock,  # noqa: F401
    new_directory,  # noqa: F401
    old_file,  # noqa: F401
)


class FailingOS:
    """`os` whose n-th call, of those that reach the kernel, fails."""

    CALLS = (
        "open", "write", "fchown", "fchmod", "fsync", "rename", "link", "unlink", "lstat", "fstat", "listdir", "close",
    )  # fmt: skip

    def __init__(self, fails_at: int) -> None:
        self.left = fails_at
        self.failed = ""

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        if name not in self.CALLS:
            return function

        def call(*arguments: Any) -> Any:
            self.left -= 1
            if self.left:
                return function(*arguments)
            self.failed = name
            if name == "close":
                function(*arguments)  # as Linux does it: closed, and yet an error
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        return call


def count_failures(
    directory: Path, path: Path, change: Change, after: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Let each call fail in turn, check what is left, and give the names of those that failed."""
    for number in range(1, 100):
        for name in os.listdir(directory):
            (directory / name).unlink()
        path.write_bytes(OLD)
        if os.geteuid() == 0:
            os.chown(path, 1234, 5678)
        failing_os = FailingOS(number)
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", failing_os)
            patch.setattr(files, "open", open, raising=False)
            try:
                backup = change(path)
                message = ""
            except NodeError as error:
                backup, message = None, str(error)
        found = contents(directory)
        if not failing_os.failed:
            return
        yield failing_os.failed
        here = found.pop("config.yaml", None)
        if not message:
            # A failure that harms nobody.
            assert here == after
            assert backup == "%s.%s~" % (path, STAMP)
            assert found == {"config.yaml.%s~" % STAMP: OLD}
        elif "is changed, but perhaps not after a power cut" in message:
            assert here == after
            assert found == {"config.yaml.%s~" % STAMP: OLD}
        else:
            assert message == (
                "%s: cannot be written: Input/output error; the old content is still there;"
                " look into the node's kernel log (dmesg), and run again" % path
            )
            assert here == OLD
            assert found == {}


def test_any_call_fails_while_replacing(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = list(count_failures(directory, path, CHANGES[0], NEW, monkeypatch))
    # Each for the backup, and for the file.
    assert {failed.count(name) for name in ("write", "fchmod")} == {2}
    assert failed.count("fsync") == 3
    # The backup has no other name's place to take.
    assert failed.count("link") == failed.count("rename") == 1
    if os.geteuid() == 0:
        assert failed.count("fchown") == 2


def test_any_call_fails_while_making(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = directory / "new.yaml"
    for number in range(1, 100):
        new.unlink(missing_ok=True)
        failing_os = FailingOS(number)
        with monkeypatch.context() as patch:
            patch.setattr(files, "os", failing_os)
            try:
                replace_file(str(new), NEW, 0o600)
                message = ""
            except NodeError as error:
                message = str(error)
        if not failing_os.failed:
            break
        is_made = not message or "perhaps not after a power cut" in message
        assert is_made or message == (
            "%s: cannot be written: Input/output error; nothing was written;"
            " look into the node's kernel log (dmesg), and run again" % new
        )
        assert contents(directory) == ({"config.yaml": OLD, "new.yaml": NEW} if is_made else {"config.yaml": OLD})
    assert number > 10


def test_any_call_fails_while_removing(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = list(count_failures(directory, path, CHANGES[1], None, monkeypatch))
    assert {failed.count(name) for name in ("write", "fchmod", "link")} == {1}
    assert failed.count("fsync") == failed.count("unlink") == 2


def test_an_interrupt_leaves_no_temporary_file(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_descriptor: int) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        replace_file(str(path), NEW, 0o600, OLD)
    assert contents(directory) == {"config.yaml": OLD}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    need("mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", str(disk)]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip("cannot mount: %s" % made.stderr.strip())
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@as_root
@pytest.mark.parametrize("backup", [True, False])
def test_full_disk(small_disk: Path, backup: bool) -> None:
    path = small_disk / "config.yaml"
    path.write_bytes(OLD)
    # Room for a backup, but not for the content.
    (small_disk / "other").write_bytes(bytes(40 << 10))
    with pytest.raises(NodeError) as caught:
        replace_file(str(path), bytes(40 << 10), 0o600, OLD, backup)
    assert str(caught.value) == (
        "%s: cannot be written: No space left on device; the old content is still there;"
        " make room on its file system (df, df -i), and run again" % path
    )
    assert contents(small_disk) == {"config.yaml": OLD, "other": bytes(40 << 10)}


@as_root
@pytest.mark.parametrize("change", CHANGES)
def test_full_disk_has_no_room_for_the_backup(small_disk: Path, change: Change) -> None:
    path = small_disk / "config.yaml"
    path.write_bytes(OLD)
    space = os.statvfs(small_disk)
    (small_disk / "other").write_bytes(bytes(space.f_bavail * space.f_bsize))
    with pytest.raises(NodeError, match="cannot be written: No space left on device; the old content is still there"):
        change(path)
    assert path.read_bytes() == OLD
    assert sorted(os.listdir(small_disk)) == ["config.yaml", "other"]


@as_root
@pytest.mark.parametrize("change", CHANGES)
def test_read_only_file_system(small_disk: Path, change: Change) -> None:
    path = small_disk / "config.yaml"
    path.write_bytes(OLD)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(NodeError) as caught:
        change(path)
    assert str(caught.value) == (
        "%s: cannot be written: Read-only file system; the old content is still there;"
        " mount its file system for writing, and run again" % path
    )
    assert contents(small_disk) == {"config.yaml": OLD}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("change", CHANGES)
def test_read_only_directory(directory: Path, path: Path, change: Change) -> None:
    directory.chmod(0o555)
    with pytest.raises(NodeError, match="cannot be written: Permission denied; the old content is still there"):
        change(path)
    directory.chmod(0o755)
    assert contents(directory) == {"config.yaml": OLD}
