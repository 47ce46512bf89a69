# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A lock that nobody else can hold, whatever was put in its place."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.own_lock import try_lock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    directory.mkdir(mode=0o755)
    return directory / "a.lock"


def test_one_at_a_time_has_the_lock(path: Path) -> None:
    first = try_lock(str(path))
    assert first is not None
    status = path.stat()
    assert (stat.S_ISREG(status.st_mode), stat.S_IMODE(status.st_mode)) == (True, 0o600)
    assert try_lock(str(path)) is None
    # No program that is started holds it.
    assert not os.get_inheritable(first)
    os.close(first)
    # A file that a killed run left is no lock.
    again = try_lock(str(path))
    assert again is not None
    path.unlink()
    third = try_lock(str(path))
    assert third is not None
    os.close(again)
    os.close(third)


def _of_another(path: Path) -> None:
    path.touch(0o600)
    os.chown(path, 65534, 65534)


def _open_to_others(path: Path) -> None:
    path.touch()
    path.chmod(0o644)


def _link(path: Path) -> None:
    (path.parent / "elsewhere").touch(0o600)
    path.symlink_to(path.parent / "elsewhere")


def _dangling(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


def _fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("put", [_of_another, _open_to_others, _link, _dangling, _fifo])
def test_what_others_have_put_there_holds_no_lock(path: Path, put: Callable[[Path], None]) -> None:
    """Not even while they have it open and locked; in a directory as /tmp."""
    if put is _of_another and os.geteuid():
        pytest.skip("only root can give a file away")
    path.parent.chmod(0o1777)
    put(path)
    held = -1 if put is _dangling else os.open(path, os.O_RDWR)
    if held >= 0:
        fcntl.flock(held, fcntl.LOCK_EX)
    descriptor = try_lock(str(path))
    assert descriptor is not None
    assert os.path.samestat(os.fstat(descriptor), path.lstat())
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    elsewhere = path.parent / "elsewhere"
    assert elsewhere.exists() is (put is _link)
    os.close(descriptor)
    if held >= 0:
        os.close(held)


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_no_lock_where_others_could_replace_it(path: Path, mode: int) -> None:
    path.parent.chmod(mode)
    with pytest.raises(PermissionError, match="other users may replace what is there"):
        try_lock(str(path))
    assert not path.exists()


def test_a_directory_that_is_a_link_is_not_followed(path: Path) -> None:
    (path.parent.parent / "link").symlink_to(path.parent)
    with pytest.raises(OSError, match="link"):
        try_lock(str(path.parent.parent / "link" / path.name))
    with pytest.raises(FileNotFoundError):
        try_lock(str(path.parent / "none" / path.name))
