# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/acting.py: what a hostile pod may write there."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.acting import VOLUME, has_left

UNTIL = 1763971000.25


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    place = tmp_path / "kubelet/pods/uid/volumes/kubernetes.io~empty-dir" / VOLUME
    place.mkdir(parents=True)
    return place


def left(root: Path, pod: str = "uid", container: str = "app") -> bool:
    return has_left(Tree(str(root)), "/kubelet/", pod, container, UNTIL)


@pytest.mark.parametrize("text", ["1763971000.250", "1763971000.25\n", " 1763971000.2504 "])
def test_an_answer(text: str, volume: Path, tmp_path: Path) -> None:
    assert not left(tmp_path)
    (volume / "app.left").write_text(text)
    assert left(tmp_path)
    assert not left(tmp_path, container="other")


@pytest.mark.parametrize(
    "content",
    [b"", b"nan", b"inf", b"1e9", b"1763971000", b"1763971000.252", b"-1", b"\xff\0", b"1" * 100, b"9" * 10_000_000],
)
def test_what_is_no_answer(content: bytes, volume: Path, tmp_path: Path) -> None:
    (volume / "app.left").write_bytes(content)
    assert not left(tmp_path)


def test_what_stands_in_its_place(volume: Path, tmp_path: Path) -> None:
    right = tmp_path / "right"
    right.write_text("1763971000.250")
    (volume / "app.left").symlink_to(right)
    assert not left(tmp_path)
    (volume / "app.left").unlink()
    os.mkfifo(volume / "app.left")
    assert not left(tmp_path)
    (volume / "app.left").unlink()
    (volume / "app.left").mkdir()
    assert not left(tmp_path)


@pytest.mark.parametrize("kind", ["fifo", "device", "link", "socket"])
def test_it_is_looked_at_before_it_is_opened(
    kind: str, volume: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the mere opening a device does something, such as a watchdog, which then restarts the machine."""
    answer = volume / "app.left"
    if kind == "fifo":
        os.mkfifo(answer)
    elif kind == "link":
        answer.symlink_to("/dev/null")
    elif kind == "socket":
        os.mknod(answer, stat.S_IFSOCK | 0o666)
    elif os.geteuid() == 0:
        os.mknod(answer, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    else:
        pytest.skip("only root makes devices")
    real, opened = os.open, []

    def noted(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if not flags & os.O_PATH:
            opened.append(path)
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", noted)
    assert not left(tmp_path)
    assert opened == [str(volume)]


def test_a_link_in_the_place_of_the_volume(volume: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "app.left").write_text("1763971000.250")
    volume.rmdir()
    volume.symlink_to(elsewhere)
    assert not left(tmp_path)


@pytest.mark.parametrize(("pod", "container"), [("../pods/uid", "app"), ("uid", "../cpu-manager/app"), ("..", "app")])
def test_hostile_names(pod: str, container: str, volume: Path, tmp_path: Path) -> None:
    (volume / "app.left").write_text("1763971000.250")
    assert not left(tmp_path, pod, container)
