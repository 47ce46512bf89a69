# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_published/publish.py: also with a pod that may write its own directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published.publish import PLACE, opened


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with opened(Tree(str(tmp_path))):
        pass
    return tmp_path / PLACE[1:]


def write(root: Path, content: bytes = b"new") -> None:
    with opened(Tree(str(root))) as directory:
        directory.write("uid", "app", content)


def read(root: Path) -> dict[str, bytes]:
    with opened(Tree(str(root))) as directory:
        return directory.read("uid")


def test_a_file_and_its_end(tmp_path: Path, place: Path) -> None:
    before = os.umask(0o077)
    try:
        write(tmp_path, b"old")
    finally:
        os.umask(before)
    first = (place / "uid/app.json").stat()
    assert first.st_mode & 0o777 == 0o644
    assert [path.stat().st_mode & 0o777 for path in (place, place.parent, place / "uid")] == [0o755] * 3
    write(tmp_path)
    # By a rename, which a watcher sees; nothing else is left.
    assert (place / "uid/app.json").stat().st_ino != first.st_ino
    assert os.listdir(place / "uid") == ["app.json"]
    assert read(tmp_path) == {"app": b"new"}
    with opened(Tree(str(tmp_path))) as directory:
        assert directory.pods() == ["uid"]
        directory.remove("uid", "app")
        directory.remove("uid", "app")
        assert os.listdir(place / "uid") == []
        directory.remove_pod("uid")
        directory.remove_pod("uid")
        directory.remove("uid", "app")
        assert directory.read("uid") == {}
    assert os.listdir(place) == []


def test_a_run_that_was_killed_leaves_nothing(tmp_path: Path, place: Path) -> None:
    write(tmp_path)
    (place / "uid/app.new").write_text("half")
    assert read(tmp_path) == {"app": b"new"}
    assert os.listdir(place / "uid") == ["app.json"]
    (place / "uid/app.new").write_text("half")
    write(tmp_path, b"newer")
    assert read(tmp_path) == {"app": b"newer"}


def test_links_of_a_pod_are_not_followed(tmp_path: Path, place: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    (place / "uid").mkdir()
    (place / "uid/app.json").symlink_to(secret)
    (place / "uid/app.new").symlink_to(secret)
    assert read(tmp_path) == {"app": b""}
    write(tmp_path)
    assert secret.read_text() == "root's"
    assert not (place / "uid/app.json").is_symlink()


def test_a_link_in_the_place_of_a_pod_is_not_followed(tmp_path: Path, place: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "app.json").write_text("theirs")
    (place / "uid").symlink_to(elsewhere)
    with pytest.raises(NodeError, match="uid"):
        write(tmp_path)
    with pytest.raises(NodeError, match="uid"):
        read(tmp_path)
    with opened(Tree(str(tmp_path))) as directory:
        with pytest.raises(NodeError):
            directory.remove("uid", "app")
        directory.remove_pod("uid")
    assert (elsewhere / "app.json").read_text() == "theirs"
    assert not (place / "uid").exists()


def test_what_stands_in_a_files_place(tmp_path: Path, place: Path) -> None:
    (place / "uid").mkdir()
    os.mkfifo(place / "uid/app.json")
    assert read(tmp_path) == {"app": b""}
    write(tmp_path)
    assert read(tmp_path) == {"app": b"new"}
    (place / "uid/other.json").mkdir()
    (place / "uid/other.json/deep").mkdir()
    assert read(tmp_path) == {"app": b"new", "other": b""}
    with opened(Tree(str(tmp_path))) as directory:
        with pytest.raises(NodeError, match=r"other\.json"):
            directory.write("uid", "other", b"new")
        with pytest.raises(NodeError, match="uid"):
            directory.remove_pod("uid")


def test_a_directory_that_others_may_write_is_not_used(tmp_path: Path, place: Path) -> None:
    place.chmod(0o777)
    with pytest.raises(RefusedError, match="others may write it"), opened(Tree(str(tmp_path))):
        pass


def test_a_link_in_its_place_is_not_used(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "run/kubenode").mkdir(parents=True)
    (tmp_path / PLACE[1:]).symlink_to(elsewhere)
    with pytest.raises(NodeError), opened(Tree(str(tmp_path))):
        pass
