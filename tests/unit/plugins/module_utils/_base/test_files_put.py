# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file is put in place of another one, whatever comes in between, and nothing else is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import put_file


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there/node.tar.gz"


def names(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


@pytest.mark.parametrize("old", [None, b"old" * 100])
def test_a_file_is_put(path: Path, old: bytes | None) -> None:
    if old is not None:
        path.write_bytes(old)
        path.chmod(0o644)
    put_file(str(path), b"new", 0o600)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert names(path) == [path.name]


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")], ids=["directory", "FIFO", "link"]
)
def test_what_is_no_file_is_refused(path: Path, make: Callable[[Path], Any]) -> None:
    make(path)
    before = os.lstat(path)
    with pytest.raises(RefusedError, match="is not a regular file; nothing was written"):
        put_file(str(path), b"new", 0o600)
    assert os.lstat(path) == before
    assert names(path) == [path.name]


@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_link_that_comes_in_between_is_not_followed(path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    victim = path.parent.parent / "victim"
    victim.write_bytes(b"kept")
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if not os.path.lexists(path):
            path.symlink_to("../" + target)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    put_file(str(path), b"new", 0o600)
    assert not path.is_symlink()
    assert path.read_bytes() == b"new"
    assert victim.read_bytes() == b"kept"
    assert sorted(os.listdir(path.parent.parent)) == ["there", "victim"]


def test_a_link_in_the_place_of_the_directory_is_not_followed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was there at the beginning gets the file."""
    moved, elsewhere = path.parent.parent / "moved", path.parent.parent / "elsewhere"
    elsewhere.mkdir()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if not moved.exists():
            path.parent.rename(moved)
            path.parent.symlink_to(elsewhere)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    put_file(str(path), b"new", 0o600)
    assert os.listdir(elsewhere) == []
    assert (moved / path.name).read_bytes() == b"new"


def test_what_is_in_the_place_of_the_temporary_file_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    victim = path.parent / "victim"
    victim.write_bytes(b"kept")
    temporary = path.parent / (".%s.kubenode-%s" % (path.name, "00" * 8))
    temporary.symlink_to(victim)
    with pytest.raises(NodeError, match="cannot be written"):
        put_file(str(path), b"new", 0o600)
    assert victim.read_bytes() == b"kept"
    assert not path.exists()


def test_what_a_killed_run_left_is_removed(path: Path) -> None:
    (path.parent / (".%s.kubenode-%s" % (path.name, "ab" * 8))).write_bytes(b"half")
    put_file(str(path), b"new", 0o600)
    assert names(path) == [path.name]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"No such file or directory; .*make its directory"):
        put_file(str(tmp_path / "nothing/x"), b"new", 0o600)


def test_a_failure_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"old")

    def rename(*_paths: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(NodeError, match="No space left on device"):
        put_file(str(path), b"new", 0o600)
    assert path.read_bytes() == b"old"
    assert names(path) == [path.name]
