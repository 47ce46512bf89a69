# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file is replaced or removed, or stays as it is where somebody else changed it meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import remove_file, replace_file
from ansible_collections.kubenode.cpu_manager.tests.support.blocking import not_blocking

# Fixtures are used by their names.
# pylint: disable=unused-import
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._base.file_cases import (
    CHANGES,
    NEW,
    OLD,
    STAMP,
    Change,
    contents,
    failing,
    fixed_clock,  # noqa: F401
    new_directory,  # noqa: F401
    old_file,  # noqa: F401
)

# --- replacing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_other", [False, True])
def test_a_file_that_was_put_in_its_place_while_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_other: bool
) -> None:
    """Also one with the same content: its mode and owner may be others."""
    path, new = tmp_path / "file", tmp_path / "new"
    path.write_bytes(b"old")
    real = os.read

    def read(descriptor: int, size: int) -> bytes:
        if is_other and not new.exists():
            new.write_bytes(b"old")
            os.replace(new, path)
        return real(descriptor, size)

    monkeypatch.setattr(os, "read", read)
    if is_other:
        with pytest.raises(RefusedError, match="changed"):
            replace_file(str(path), b"by us", 0o600, b"old", backup=False)
    else:
        replace_file(str(path), b"by us", 0o600, b"old", backup=False)
    monkeypatch.undo()
    assert path.read_bytes() == (b"old" if is_other else b"by us")


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


@pytest.mark.parametrize("content", [b"", b"\0\xff\r\n", bytes(range(256)) * 4096])
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
    with not_blocking(), pytest.raises(RefusedError) as caught:
        change(path)
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
