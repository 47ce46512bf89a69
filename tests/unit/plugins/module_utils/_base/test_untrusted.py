# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/untrusted.py: files in directories of another user, with him at work."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.untrusted import (
    DIRECTORY,
    opened_directory,
    read_file,
    write_file,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.foreign import KINDS, Foreign
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._base.file_cases import as_root


@pytest.fixture
def foreign(tmp_path: Path) -> Foreign:
    return Foreign(tmp_path)


def write(foreign: Foreign) -> None:
    write_file(str(foreign.figures), b"new\n", 0o644)


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_in_a_files_place_is_replaced(kind: str, foreign: Foreign) -> None:
    if kind == "device" and os.geteuid():
        pytest.skip("only root makes devices")
    foreign.put(kind)
    write(foreign)
    foreign.check(b"new\n")
    # And again, over our own.
    write(foreign)
    foreign.check(b"new\n")


def test_a_directory_in_its_place_stays(foreign: Foreign) -> None:
    foreign.figures.mkdir()
    with pytest.raises(NodeError) as caught:
        write(foreign)
    assert caught.value.where == str(foreign.figures)
    assert os.listdir(foreign.directory) == ["cpu.prom"]


@pytest.mark.parametrize("name", [".cpu.prom.kubenode-new", "cpu.prom"])
@pytest.mark.parametrize("call", ["open", "write", "fchmod", "rename"])
def test_a_link_is_swapped_in_between(call: str, name: str, foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each system call, the other user puts a link to the journal in the place of each of both files."""
    real = getattr(os, call)
    stranger = foreign.directory / name

    def swap(*arguments: Any, **named: Any) -> Any:
        with suppress(FileNotFoundError):
            stranger.unlink()
        stranger.symlink_to(foreign.journal)
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, swap)
        # His own file may be what gets the name, and nothing may; both are his loss.
        with suppress(NodeError):
            write(foreign)
    foreign.check_journal()


def test_a_directory_is_swapped_in_between(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def swap(descriptor: int, data: bytes) -> int:
        foreign.directory.rename(foreign.directory.parent / "away")
        foreign.directory.symlink_to(foreign.journal.parent)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", swap)
    write(foreign)
    foreign.check_journal()
    assert (foreign.directory.parent / "away/cpu.prom").read_bytes() == b"new\n"


def test_a_link_of_his_on_the_way_is_not_followed(foreign: Foreign) -> None:
    foreign.directory.rmdir()
    foreign.directory.symlink_to(foreign.journal.parent)
    with pytest.raises(RefusedError, match="'textfiles' on the way"):
        write(foreign)
    foreign.check_journal()


def test_a_link_of_roots_on_the_way_is_followed(foreign: Foreign, tmp_path: Path) -> None:
    (tmp_path / "absolute").symlink_to(foreign.directory.parent)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/relative").symlink_to("../absolute/textfiles/../textfiles")
    write_file(str(tmp_path / "deep/relative/cpu.prom"), b"new\n", 0o644)
    foreign.check(b"new\n")


@as_root
@pytest.mark.parametrize(
    ("owner", "group", "mode", "is_followed"),
    [
        (0, 0, 0o755, True),
        (0, 0, 0o775, True),
        (0, 1234, 0o755, True),
        (0, 1234, 0o775, False),
        (0, 0, 0o757, False),
        (1234, 0, 0o755, False),
    ],
)
def test_whose_links_are_followed(
    foreign: Foreign, tmp_path: Path, owner: int, group: int, mode: int, is_followed: bool
) -> None:
    above = tmp_path / "above"
    above.mkdir()
    (above / "link").symlink_to(foreign.directory)
    os.chown(above, owner, group)
    above.chmod(mode)
    path = str(above / "link/cpu.prom")
    if is_followed:
        write_file(path, b"new\n", 0o644)
        foreign.check(b"new\n")
    else:
        with pytest.raises(RefusedError, match="stands in a directory that others may write"):
            write_file(path, b"new\n", 0o644)


def test_links_that_lead_nowhere(foreign: Foreign, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    for path in ("circle/cpu.prom", "no/cpu.prom", "journal/change.json/cpu.prom"):
        with pytest.raises(NodeError, match="cannot be written"):
            write_file(str(tmp_path / path), b"new\n", 0o644)
    foreign.check_journal()


def test_a_write_that_fails_leaves_nothing(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign.put("file")

    def fail(*_arguments: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(NodeError, match="what was there is still there"):
            write(foreign)
    assert os.listdir(foreign.directory) == ["cpu.prom"]
    assert foreign.figures.read_text() == "old\n"


def test_what_a_killed_run_left_is_replaced(foreign: Foreign) -> None:
    (foreign.directory / ".cpu.prom.kubenode-new").write_text("half")
    write(foreign)
    foreign.check(b"new\n")


def test_only_a_regular_file_is_opened(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    real = os.open

    def noted(path: Any, flags: int, *more: Any, **named: Any) -> int:
        opened.append(flags & os.O_PATH)
        return real(path, flags, *more, **named)

    for kind in KINDS:
        if kind in ("nothing", "file", "hard link") or (kind == "device" and os.geteuid()):
            continue
        foreign.put(kind)
        with opened_directory(str(foreign.directory)) as directory, monkeypatch.context() as patch:
            patch.setattr(os, "open", noted)
            with pytest.raises(NodeError, match="is not a regular file"):
                read_file(directory, "cpu.prom", 10)
        foreign.figures.unlink()
    assert opened
    assert all(opened)


def test_a_fifo_comes_between_the_look_and_the_opening(foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign.put("file")
    real = os.fstat

    def swap(descriptor: int) -> os.stat_result:
        foreign.figures.unlink()
        os.mkfifo(foreign.figures)
        return real(descriptor)

    directory = os.open(foreign.directory, DIRECTORY)
    try:
        monkeypatch.setattr(os, "fstat", swap)
        assert read_file(directory, "cpu.prom", 3) == b"old"
    finally:
        os.close(directory)
