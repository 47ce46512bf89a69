# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A writer meets a disk that is full, or that can only be read."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.numbers import EACH

from . import mounts, tracer
from .child import Child
from .counting import Count
from .writing import BACKUP, CASES, DONE, FAILED, NEW, Case, Outcome, change, look, prepare, strays, wanted

# Room for the old content, a filler, the backup and the new content, of 1 and 2 pages, and for attributes.
PAGES, FILES = 24, 24

FILLER = "filler"


@pytest.fixture(autouse=True)
def disk() -> None:
    if mounts.why_not():
        pytest.skip(mounts.why_not())


REMEDIES = {
    errno.ENOSPC: "make room on its file system (df, df -i), and run again",
    errno.EROFS: "mount its file system for writing, and run again",
}


def message(path: Path, case: Case, number: int) -> str:
    state = "nothing was written" if case.before is None else "the old content is still there"
    return "%s: cannot be written: %s; %s; %s" % (path, os.strerror(number), state, REMEDIES[number])


def fill(directory: Path, pages: int, files: int) -> None:
    """Leave room for so many pages and files."""
    (directory / FILLER).touch()
    number = 0
    while os.statvfs(directory).f_ffree > files:
        number += 1
        (directory / ("%s%d" % (FILLER, number))).touch()
    space = os.statvfs(directory)
    (directory / FILLER).write_bytes(bytes((space.f_bfree - pages) * space.f_bsize))


def empty(directory: Path) -> None:
    for path in directory.glob(FILLER + "*"):
        path.unlink()


def write_on_full_disk(disk: Path, case: Case, pages: int, files: int, stray: bool) -> Outcome:
    """Return what comes of it, when all that must hold does."""
    mounts.mount_disk(str(disk), PAGES, FILES)
    try:
        path = prepare(disk / "kubelet", case, stray)
        before = look(path)
        fill(disk, pages, files)
        outcome = change(path, case)
        assert strays(path.parent) == []
        kept = [name for name in os.listdir(path.parent) if BACKUP.fullmatch(name)]
        if outcome.kind == DONE:
            assert look(path) == wanted(before, case)
            assert kept == ([os.path.basename(outcome.text)] if outcome.text else [])
        else:
            assert outcome == (FAILED, message(path, case, errno.ENOSPC))
            assert look(path) == before
            assert kept == []
            empty(disk)
            assert change(path, case).kind == DONE
            assert look(path) == wanted(before, case)
        return outcome
    finally:
        mounts.unmount(str(disk))


@pytest.mark.parametrize("stray", [False, True], ids=["", "and-a-stray"])
@pytest.mark.parametrize("name", CASES)
def test_full_disk(tmp_path: Path, name: str, stray: bool, count: Count) -> None:
    """With less and less room, down to none: all is written, or nothing and one error says so."""
    case = CASES[name]
    levels = [(pages, FILES) for pages in range(6)] + [(6, files) for files in range(6)]

    def work() -> list[str]:
        mounts.own_namespace()
        return [write_on_full_disk(tmp_path, case, pages, files, stray).kind for pages, files in levels]

    kinds = Child(work).answer()
    count("full disks", kinds.count(FAILED))
    assert kinds[5] == kinds[-1] == DONE
    if name == "remove-without-backup":
        assert FAILED not in kinds
    elif not stray:
        # No room for any page, and none for any file.
        assert kinds[0] == kinds[6] == FAILED


def test_content_that_fills_the_disk_piece_by_piece(tmp_path: Path, count: Count) -> None:
    """The kernel takes a part of the content, and then no more."""
    case = Case(CASES["replace"].before, NEW * 8, True)
    levels = range(14)

    def work() -> list[str]:
        mounts.own_namespace()
        return [write_on_full_disk(tmp_path, case, pages, 10, False).kind for pages in levels]

    kinds = Child(work).answer()
    count("full disks", kinds.count(FAILED))
    assert kinds == sorted(kinds, reverse=True)
    assert kinds.count(FAILED) >= 8
    assert kinds[-1] == DONE


def test_no_room_for_an_attribute(tmp_path: Path, count: Count) -> None:
    """It is kept, or nothing is written: without its SELinux label nobody might read the file."""
    case = CASES["replace-without-backup"]

    def work() -> list[str]:
        mounts.own_namespace()
        kinds = []
        for files in range(20):
            mounts.mount_disk(str(tmp_path), PAGES, 2 * FILES)
            path = prepare(tmp_path / "kubelet", case, stray=False)
            try:
                for number in range(6):
                    os.setxattr(path, "user.long%d" % number, bytes(2000))
            except OSError as error:
                return [str(error)]
            before = set(os.listxattr(path))
            fill(tmp_path, 6, files)
            outcome = change(path, case)
            kinds.append(outcome.kind)
            assert set(os.listxattr(path)) == before
            assert outcome.kind == DONE or outcome == (FAILED, message(path, case, errno.ENOSPC))
            assert os.listdir(path.parent) == [path.name]
            mounts.unmount(str(tmp_path))
        return kinds

    kinds = Child(work).answer()
    if len(kinds) == 1:
        pytest.skip("no extended attributes on a disk in memory: %s" % kinds[0])
    count("full disks", kinds.count(FAILED))
    assert kinds == sorted(kinds, reverse=True)
    assert kinds[-1] == DONE


@pytest.mark.parametrize("stray", [False, True], ids=["", "and-a-stray"])
@pytest.mark.parametrize("name", CASES)
def test_read_only_disk(tmp_path: Path, name: str, stray: bool, count: Count) -> None:
    case = CASES[name]

    def work() -> None:
        mounts.own_namespace()
        mounts.mount_disk(str(tmp_path), PAGES, FILES)
        path = prepare(tmp_path / "kubelet", case, stray)
        before, names = look(path), os.listdir(path.parent)
        assert mounts.make_read_only(str(tmp_path))
        assert change(path, case) == (FAILED, message(path, case, errno.EROFS))
        assert look(path) == before
        assert os.listdir(path.parent) == names

    Child(work).answer()
    count("read-only disks", 1)


@pytest.mark.parametrize("name", CASES)
def test_a_disk_becomes_read_only_meanwhile(tmp_path: Path, name: str, count: Count) -> None:
    """At each moment at which the kernel allows it: not while a file is open for writing."""
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    case = CASES[name]

    def work() -> int:
        mounts.own_namespace()
        tried = 0
        for number in range(1, 10_000, EACH):
            mounts.mount_disk(str(tmp_path), PAGES, FILES)
            path = prepare(tmp_path / "kubelet", case)
            before = look(path)
            traced = tracer.Traced(partial(change, path, case))
            more = all(traced.next_stop() for _stop in range(number))
            tried += mounts.make_read_only(str(tmp_path))
            outcome = traced.answer()
            if outcome.kind == DONE:
                assert look(path) == wanted(before, case)
            else:
                assert outcome == (FAILED, message(path, case, errno.EROFS))
                assert look(path) == before
            mounts.unmount(str(tmp_path))
            if not more:
                break
        return tried

    count("read-only disks", Child(work).answer())
