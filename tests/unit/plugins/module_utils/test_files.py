# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/files.py."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, NoReturn

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils import files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.files import (
    remove_file,
    remove_old_backups,
    replace_file,
)
from ansible_collections.kubenode.cpu_manager.tests.lacking import need

OLD, NEW = b"cpuManagerPolicy: none\n", b"cpuManagerPolicy: static\n"

STAMP = "20261121T221530Z"
NOW = time.strptime(STAMP, "%Y%m%dT%H%M%SZ")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners and mount file systems")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "gmtime", lambda: NOW)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "kubelet"
    directory.mkdir()
    return directory


@pytest.fixture
def path(directory: Path) -> Path:
    path = directory / "config.yaml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


# --- replacing --------------------------------------------------------------------------------------


def test_a_mode_that_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o644)
    replace_file(str(path), b"new", 0o600, b"old", backup=False, keep_mode=False)
    assert path.stat().st_mode & 0o777 == 0o600
    replace_file(str(path), b"newer", 0o644, b"new", backup=False)
    assert path.stat().st_mode & 0o777 == 0o600


def test_replace(directory: Path, path: Path) -> None:
    backup = replace_file(str(path), NEW, 0o600, OLD)
    assert backup == "%s.%s~" % (path, STAMP)
    assert contents(directory) == {"config.yaml": NEW, "config.yaml.%s~" % STAMP: OLD}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o640


def test_replace_without_backup(directory: Path, path: Path) -> None:
    assert replace_file(str(path), NEW, 0o600, OLD, backup=False) is None
    assert contents(directory) == {"config.yaml": NEW}


def test_a_reader_keeps_the_old_file(path: Path) -> None:
    with path.open("rb") as reader:
        replace_file(str(path), NEW, 0o600, OLD)
        assert reader.read() == OLD


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_a_new_file_has_the_mode_that_was_asked_for(directory: Path, mode: int) -> None:
    path = directory / "config.yaml"
    before = os.umask(0o077)
    try:
        assert replace_file(str(path), NEW, mode) is None
    finally:
        os.umask(before)
    assert contents(directory) == {"config.yaml": NEW}
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("content", [b"", b"\0\xff\r\n", os.urandom(1 << 20)])
def test_any_content(directory: Path, path: Path, content: bytes) -> None:
    backup = replace_file(str(path), content, 0o600, OLD)
    assert path.read_bytes() == content
    assert replace_file(str(path), OLD, 0o600, content) == "%s.%s.2~" % (path, STAMP)
    assert path.read_bytes() == OLD
    assert Path(backup or "").read_bytes() == OLD


def test_content_that_the_kernel_takes_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
    replace_file(str(path), NEW, 0o600, OLD)
    assert path.read_bytes() == NEW


def test_backups_of_one_second_have_their_own_names(directory: Path, path: Path) -> None:
    names = [STAMP, STAMP + ".2", STAMP + ".3", STAMP + ".4"]
    # Whatever is there, if only a dangling link: it is not overwritten.
    (directory / ("config.yaml.%s.3~" % STAMP)).symlink_to("nothing")
    found = []
    for number in range(3):
        old, new = path.read_bytes(), b"%d" % number
        found.append(replace_file(str(path), new, 0o600, old))
    assert found == ["%s.%s~" % (path, name) for name in (names[0], names[1], names[3])]
    assert [Path(backup or "").read_bytes() for backup in found] == [OLD, b"0", b"1"]
    assert (directory / ("config.yaml.%s.3~" % STAMP)).is_symlink()


def test_a_file_system_without_hard_links(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    (directory / ("config.yaml.%s~" % STAMP)).symlink_to("nothing")
    backup = replace_file(str(path), NEW, 0o600, OLD)
    assert backup == "%s.%s.2~" % (path, STAMP)
    assert Path(backup).read_bytes() == OLD
    assert path.read_bytes() == NEW
    assert len(os.listdir(directory)) == 3


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path, directory: Path, path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to("kubelet/config.yaml")
    assert replace_file(str(link), NEW, 0o600, OLD) == "%s.%s~" % (path, STAMP)
    assert link.is_symlink()
    assert path.read_bytes() == NEW
    assert sorted(os.listdir(tmp_path)) == ["kubelet", "link.yaml"]


# --- what is kept -----------------------------------------------------------------------------------


@as_root
@pytest.mark.parametrize("backup", [True, False])
def test_owner_is_kept(path: Path, backup: bool) -> None:
    os.chown(path, 1234, 5678)
    path.chmod(0o4750)
    backup_path = replace_file(str(path), NEW, 0o600, OLD, backup)
    for file in [str(path)] + ([backup_path] if backup_path else []):
        status = os.stat(file)
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 5678, 0o4750)


@as_root
def test_group_is_kept_where_the_directory_gives_its_own(directory: Path, path: Path) -> None:
    os.chown(directory, 0, 5678)
    directory.chmod(0o2755)
    assert path.stat().st_gid != 5678
    group = path.stat().st_gid
    replace_file(str(path), NEW, 0o600, OLD)
    assert path.stat().st_gid == group


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip("no extended attributes on this file system: %s" % error)


def test_attributes_are_kept(path: Path) -> None:
    set_attribute(path, "user.label", b"kubelet")
    set_attribute(path, "user.other", b"\0\xff")
    backup = replace_file(str(path), NEW, 0o600, OLD)
    for file in (str(path), backup or ""):
        assert os.getxattr(file, "user.label") == b"kubelet"
        assert os.getxattr(file, "user.other") == b"\0\xff"


def test_an_attribute_that_cannot_be_set_does_not_take_others_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_attribute(path, "user.a", b"1")
    set_attribute(path, "user.c", b"3")
    listxattr = os.listxattr
    monkeypatch.setattr(os, "listxattr", lambda where: ["user.a", "trusted.b", *listxattr(where)])
    replace_file(str(path), NEW, 0o600, OLD)
    assert os.getxattr(path, "user.a") == b"1"
    assert os.getxattr(path, "user.c") == b"3"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_for_an_attribute(directory: Path, path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listxattr", lambda _where: ["security.selinux"])
    monkeypatch.setattr(os, "getxattr", lambda _where, _name: b"label")
    monkeypatch.setattr(os, "setxattr", failing(number))
    with pytest.raises(NodeError, match="cannot be written: %s; the old content" % os.strerror(number)):
        replace_file(str(path), NEW, 0o600, OLD)
    assert contents(directory) == {"config.yaml": OLD}


def test_a_file_system_without_attributes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listxattr", failing(errno.ENOTSUP))
    replace_file(str(path), NEW, 0o600, OLD)
    assert path.read_bytes() == NEW


@as_root
def test_an_owner_is_given_before_the_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not afterwards, by name: then somebody could have put a link there."""
    monkeypatch.setattr(os, "chown", failing(errno.EPERM))
    monkeypatch.setattr(os, "chmod", failing(errno.EPERM))
    replace_file(str(path), NEW, 0o604, OLD, backup=False, keep_mode=False, owner=(12, 34))
    new = path.with_name("new")
    replace_file(str(new), NEW, 0o604, owner=(12, 34))
    for file in (path, new):
        status = file.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12, 34, 0o604)


# --- old backups ------------------------------------------------------------------------------------


def backups_of(directory: Path, *suffixes: str) -> list[Path]:
    paths = [directory / ("config.yaml." + suffix) for suffix in suffixes]
    for path in paths:
        path.write_bytes(OLD)
    return paths


@pytest.mark.parametrize("keep", range(7))
def test_the_newest_backups_stay(directory: Path, path: Path, keep: int) -> None:
    names = (
        *("20200101T000000Z~", "20250101T000000Z~", "20260101T000000Z~"),
        *("20260101T000000Z.2~", "20260101T000000Z.10~", STAMP + "~"),
    )
    paths = backups_of(directory, *names)
    remove_old_backups(str(paths[-1]), keep)
    assert sorted(directory.glob("*~")) == sorted(paths[-keep:] if keep else paths)


def test_the_backup_that_was_just_made_stays(directory: Path, path: Path) -> None:
    """Even where the clock went back."""
    later = backups_of(directory, "20300101T000000Z~", "20300101T000001Z~")
    backup = replace_file(str(path), NEW, 0o600, OLD)
    assert backup is not None
    remove_old_backups(backup, 2)
    assert sorted(directory.glob("*~")) == [Path(backup), later[1]]


def test_only_backups_of_this_file_are_removed(directory: Path, path: Path) -> None:
    names = (
        *(
            "20200101T000000Z",
            "2020010T000000Z~",
            "20200101T000000Z.1.2~",
            "20200101T000000Z.0~",
            "20200101T000000Z.x~",
        ),
        *("old.20200101T000000Z~", "20200101t000000z~", "~", "20200101T000000Z~~"),
    )
    others = backups_of(directory, *names)
    (directory / "config.yml.20200101T000000Z~").write_bytes(OLD)
    (directory / "config.yaml.20200102T000000Z~").mkdir()
    (directory / "config.yaml.20200103T000000Z~").symlink_to("config.yaml")
    os.mkfifo(directory / "config.yaml.20200104T000000Z~")
    if os.geteuid() == 0:
        owned = backups_of(directory, "20200105T000000Z~")[0]
        os.chown(owned, 1234, 5678)
        others.append(owned)
    before = sorted(os.listdir(directory))
    gone, newest = backups_of(directory, "20200106T000000Z~", STAMP + "~")
    remove_old_backups(str(newest), 1)
    assert sorted(os.listdir(directory)) == sorted([*before, newest.name])
    assert not gone.exists()
    # What is no backup is none to count from.
    remove_old_backups(str(path), 1)
    assert sorted(os.listdir(directory)) == sorted([*before, newest.name])


@as_root
def test_old_backups_of_the_files_owner_go(directory: Path, path: Path) -> None:
    os.chown(path, 1234, 5678)
    old = backups_of(directory, "20200101T000000Z~")[0]
    os.chown(old, 1234, 5678)
    backup = replace_file(str(path), NEW, 0o600, OLD)
    assert backup is not None
    remove_old_backups(backup, 1)
    assert not old.exists()


def test_an_old_backup_that_cannot_be_removed_stays(
    directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, newest = backups_of(directory, "20200101T000000Z~", STAMP + "~")
    monkeypatch.setattr(os, "unlink", failing(errno.EPERM))
    remove_old_backups(str(newest), 1)
    assert old.exists()
    monkeypatch.setattr(os, "listdir", failing(errno.EIO))
    remove_old_backups(str(newest), 1)


# --- removing ---------------------------------------------------------------------------------------


def test_remove(directory: Path, path: Path) -> None:
    assert remove_file(str(path), OLD) == "%s.%s~" % (path, STAMP)
    assert contents(directory) == {"config.yaml.%s~" % STAMP: OLD}


def test_remove_without_backup(directory: Path, path: Path) -> None:
    assert remove_file(str(path), OLD, backup=False) is None
    assert contents(directory) == {}


def test_remove_by_a_relative_path(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    assert remove_file("config.yaml", OLD) == "%s.%s~" % (path, STAMP)
    assert contents(directory) == {"config.yaml.%s~" % STAMP: OLD}


def test_remove_does_not_follow_a_link(tmp_path: Path, path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to("kubelet/config.yaml")
    with pytest.raises(RefusedError, match="is not a regular file"):
        remove_file(str(link), OLD)
    assert link.is_symlink()
    assert path.read_bytes() == OLD


# --- what is refused --------------------------------------------------------------------------------

Change = Callable[[Path], Any]

CHANGES: list[Change] = [
    lambda path: replace_file(str(path), NEW, 0o600, OLD),
    lambda path: remove_file(str(path), OLD),
]


@pytest.mark.parametrize("change", CHANGES)
def test_changed_meanwhile(directory: Path, path: Path, change: Change) -> None:
    path.write_bytes(OLD + b"# by hand\n")
    with pytest.raises(RefusedError) as caught:
        change(path)
    assert str(caught.value) == "%s: was changed while it was worked on; nothing was written; run again" % path
    assert contents(directory) == {"config.yaml": OLD + b"# by hand\n"}


@pytest.mark.parametrize("change", CHANGES)
def test_vanished_meanwhile(directory: Path, path: Path, change: Change) -> None:
    path.unlink()
    with pytest.raises(RefusedError) as caught:
        change(path)
    assert str(caught.value) == "%s: vanished while it was worked on; nothing was written; run again" % path
    assert contents(directory) == {}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_after_the_backup(directory: Path, path: Path, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look is the one that counts, and no backup stays of what is still there."""
    back_up = files._back_up

    def back_up_and_change(*arguments: Any) -> str:
        backup = back_up(*arguments)
        path.write_bytes(OLD + b"# by hand\n")
        return backup

    monkeypatch.setattr(files, "_back_up", back_up_and_change)
    with pytest.raises(RefusedError, match="was changed while it was worked on"):
        change(path)
    assert contents(directory) == {"config.yaml": OLD + b"# by hand\n"}


def test_vanished_at_the_last_moment(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = os.unlink

    def unlink_twice(target: str) -> None:
        if target == str(path):
            unlink(target)
        unlink(target)

    monkeypatch.setattr(os, "unlink", unlink_twice)
    with pytest.raises(RefusedError, match="vanished while it was worked on"):
        remove_file(str(path), OLD)
    assert contents(directory) == {}


def test_two_removers_leave_a_backup(directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    back_up = files._back_up

    def back_up_late(*arguments: Any) -> str:
        monkeypatch.setattr(files, "_back_up", back_up)
        backup = back_up(*arguments)
        assert remove_file(str(path), OLD) == "%s.%s.2~" % (path, STAMP)
        return backup

    monkeypatch.setattr(files, "_back_up", back_up_late)
    with pytest.raises(RefusedError, match="vanished while it was worked on"):
        remove_file(str(path), OLD)
    assert contents(directory) == {"config.yaml.%s.2~" % STAMP: OLD}


@pytest.mark.parametrize("content", [b"", OLD])
def test_appeared_meanwhile(directory: Path, path: Path, content: bytes) -> None:
    """Even an empty file is not no file."""
    path.write_bytes(content)
    with pytest.raises(RefusedError, match="was changed while it was worked on"):
        replace_file(str(path), NEW, 0o600)
    assert contents(directory) == {"config.yaml": content}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path.name)], ids=["directory", "FIFO", "loop of links"]
)
def test_not_a_regular_file(directory: Path, path: Path, make: Callable[[Path], Any], change: Change) -> None:
    path.unlink()
    make(path)
    before = os.lstat(path)
    signal.alarm(10)  # ends the test run, should it wait for somebody to write into the FIFO
    with pytest.raises(RefusedError) as caught:
        change(path)
    signal.alarm(0)
    assert str(caught.value) == ("%s: is not a regular file; nothing was written; put it out of the way first" % path)
    assert os.lstat(path) == before
    assert os.listdir(directory) == ["config.yaml"]


def test_a_link_that_comes_between_two_looks_is_not_followed(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(OLD)
    real = os.open
    opened = []

    def open_later(name: str, *arguments: Any) -> int:
        if name == str(path):
            path.unlink()
            path.symlink_to(secret)
        descriptor = real(name, *arguments)
        opened.append(os.readlink("/proc/self/fd/%d" % descriptor))
        return descriptor

    monkeypatch.setattr(os, "open", open_later)
    with pytest.raises((NodeError, RefusedError)):
        replace_file(str(path), NEW, 0o600, OLD)
    assert str(secret) not in opened
    assert secret.read_bytes() == OLD


def test_directory_is_missing(directory: Path) -> None:
    with pytest.raises(NodeError, match="cannot be written: No such file or directory"):
        replace_file(str(directory / "missing" / "config.yaml"), NEW, 0o600)
    assert contents(directory) == {}


# --- failures ---------------------------------------------------------------------------------------


def failing(number: int) -> Callable[..., NoReturn]:
    def fail(*_arguments: object, **_options: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


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


# --- killed runs ------------------------------------------------------------------------------------

# For each line that it is given: a process that writes and writes until it is killed.
WRITERS = """
import os, sys
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.files import replace_file

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
    tests = Path(__file__).resolve().parents[3]
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
    signal.alarm(10)  # ends the test run, should it wait for somebody to write into the FIFO
    replace_file(str(path), NEW, 0o600, OLD, backup=False)
    signal.alarm(0)
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
