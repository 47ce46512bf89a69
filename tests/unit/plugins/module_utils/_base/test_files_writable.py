# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/files.py."""

from __future__ import annotations

import fcntl
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import (
    replace_file,
    unwritable,
    why_not_writable,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.faults import mounts
from ansible_collections.kubenode.cpu_manager.tests.faults.child import Child
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._base.file_cases import as_root

SET_FLAGS, IMMUTABLE, APPEND_ONLY = 0x40086602, 0x10, 0x20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"old")
    return path


def reason(path: Path, *sizes: int) -> str:
    """Return why not, and that a look changes nothing."""
    before = os.listdir(path.parent) if path.parent.is_dir() else []
    error = why_not_writable(str(path), sizes)
    assert before == (os.listdir(path.parent) if path.parent.is_dir() else [])
    if error is None:
        return ""
    assert error.where == str(path)
    assert error.remedy
    return error.problem[len("%s: " % path) :]


def test_what_can_be_written(path: Path, tmp_path: Path) -> None:
    assert reason(path, 3, 3) == ""
    assert reason(tmp_path / "new", 3) == ""
    assert reason(tmp_path / "missing" / "directory" / "new", 3) == ""
    link = tmp_path / "link"
    link.symlink_to("config.yaml")
    assert why_not_writable(str(link)) is None


def test_what_is_no_file(tmp_path: Path) -> None:
    assert isinstance(why_not_writable(str(tmp_path)), RefusedError)
    assert reason(tmp_path) == "is not a regular file; nothing was written"


def test_a_file_in_a_directorys_place(path: Path) -> None:
    assert reason(path / "inner") == "cannot be written: Not a directory; nothing was written"
    assert reason(path / "more" / "inner") == "cannot be written: Not a directory; nothing was written"


def test_no_room_for_so_much(path: Path) -> None:
    assert reason(path, 1 << 60) == "cannot be written: No space left on device; nothing was written"


@pytest.mark.parametrize("missing", [False, True])
def test_a_directory_of_another_user(tmp_path: Path, missing: bool) -> None:
    place = tmp_path / "kubelet"
    place.mkdir()
    place.chmod(0o555)
    path = place / "missing" / "file" if missing else place / "file"
    what = "cannot be written: Permission denied; nothing was written"
    assert as_ordinary_user(tmp_path, partial(reason, path, 3)) == what
    place.chmod(0o777)
    assert as_ordinary_user(tmp_path, partial(reason, path, 3)) == ""


@as_root
def test_a_file_of_another_user(path: Path) -> None:
    """Its directory may be written by all, but nobody else can keep its owner."""
    path.parent.chmod(0o777)
    what = "cannot be written: Permission denied; nothing was written"
    assert as_ordinary_user(path.parent, partial(reason, path, 3)) == what


@as_root
def test_root_may_write_what_belongs_to_another_user(path: Path) -> None:
    os.chown(path, 1234, 1234)
    assert reason(path, 3) == ""


@as_root
@pytest.mark.parametrize(
    ("free", "available", "user", "has_room"), [(1, 0, 0, True), (1, 0, 7, False), (0, 1, 0, False)]
)
def test_root_may_take_the_last_of_a_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch, free: int, available: int, user: int, has_room: bool
) -> None:
    space = SimpleNamespace(
        f_flag=0, f_frsize=4096, f_blocks=9, f_bfree=free, f_bavail=available, f_files=9, f_ffree=9, f_favail=9
    )
    monkeypatch.setattr(os, "statvfs", lambda _path: space)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    os.chown(path, user, -1)
    assert (why_not_writable(str(path), [3]) is None) is has_room


def as_ordinary_user(directory: Path, work: Callable[[], str]) -> str:
    """Do it as a user who may look at everything above."""
    if os.geteuid() != 0:
        return work()
    for above in [directory, *directory.parents][:4]:
        if above.stat().st_uid == 0 and above.name.startswith(("pytest", "popen", "test")):
            above.chmod(above.stat().st_mode | 0o055)

    def as_other() -> str:
        os.setgroups([])
        os.setgid(1234)
        os.setuid(1234)
        return work()

    return str(Child(as_other).answer())


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    if mounts.why_not():
        pytest.skip(mounts.why_not())
    return tmp_path


def test_a_read_only_file_system(disk: Path) -> None:
    def work() -> list[str]:
        mounts.own_namespace()
        mounts.mount_disk(str(disk), 4, 4)
        (disk / "file").write_bytes(b"old")
        before = [reason(disk / "file", 3), reason(disk / "directory" / "new", 3)]
        assert mounts.make_read_only(str(disk))
        return [*before, reason(disk / "file", 3), reason(disk / "directory" / "new", 3)]

    what = "cannot be written: Read-only file system; nothing was written"
    assert Child(work).answer() == ["", "", what, what]


def test_what_is_said_of_a_full_disk_comes_true(disk: Path) -> None:
    """With less and less room for pages and files: where it says that there is enough, there is."""
    page = os.sysconf("SC_PAGESIZE")

    def work() -> list[tuple[bool, bool]]:
        mounts.own_namespace()
        answers = []
        for pages, files in [(pages, 9) for pages in range(1, 8)] + [(9, files) for files in range(1, 6)]:
            mounts.mount_disk(str(disk), pages, files)
            path = disk / "file"
            path.write_bytes(b"old")
            new = bytes(2 * page)
            free = why_not_writable(str(path), (3, len(new))) is None
            try:
                replace_file(str(path), new, 0o600, b"old")
                answers.append((free, True))
            except NodeError:
                answers.append((free, False))
            mounts.unmount(str(disk))
        return answers

    answers = Child(work).answer()
    assert [free for free, _written in answers] == [written for _free, written in answers]
    assert {free for free, _written in answers} == {False, True}


@pytest.fixture
def flagged(path: Path) -> Iterator[Callable[[Path, int], None]]:
    """Yield a function that sets the attributes of a file or directory, as chattr does."""
    flagged: list[Path] = []

    def flag(place: Path, flags: int) -> None:
        try:
            set_flags(place, flags)
        except OSError as error:
            pytest.skip("no such attributes here: %s" % error.strerror)
        flagged.append(place)

    yield flag
    for place in flagged:
        set_flags(place, 0)


def set_flags(place: Path, flags: int) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SET_FLAGS, flags.to_bytes(8, "little"))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("flags", "name", "letter"), [(IMMUTABLE, "immutable", "i"), (APPEND_ONLY, "append-only", "a")]
)
@pytest.mark.parametrize("of_directory", [False, True])
def test_protected_from_root(
    path: Path, flagged: Callable[[Path, int], None], flags: int, name: str, letter: str, of_directory: bool
) -> None:
    place = path.parent if of_directory else path
    flagged(place, flags)
    error = why_not_writable(str(path), (3,))
    assert error is not None
    assert str(error) == "%s: cannot be written: %s is %s; nothing was written; run chattr -%s %s" % (
        path, place, name, letter, place,
    )  # fmt: skip


def test_the_files_of_a_node(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/file").write_bytes(b"old")
    (tmp_path / "etc/directory").mkdir()
    (tmp_path / "etc/leak").symlink_to("/etc/hostname")
    tree = Tree(str(tmp_path))
    errors = unwritable(tree, ["/etc/file", "/etc/directory", "/etc/leak", "/etc/new", "/var/new"])
    assert [(error.kind, error.where) for error in errors] == [
        ("refused", str(tmp_path / "etc/directory")),
        ("refused", str(tmp_path / "etc/leak")),
    ]
    assert unwritable(tree, []) == []
