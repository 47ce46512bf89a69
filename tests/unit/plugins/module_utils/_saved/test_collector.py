# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever is in a node's tree, what is collected can be unpacked, and reads as it does there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import archive
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.redaction import UnsafeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved import collector as collector_module
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.collector import Collector
from ansible_collections.kubenode.cpu_manager.tests.machines.nested import LEVELS, nested
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "node/etc").mkdir(parents=True)
    (tmp_path / "node/etc/file").write_text("text\n", encoding="utf-8")
    (tmp_path / "outside").write_text("secret\n", encoding="utf-8")
    return tmp_path / "node"


def unpacked(collector: Collector, directory: Path) -> archive.Archive:
    path = directory / "node.tar.gz"
    path.write_bytes(collector.archive(("/first", b"1")))
    return archive.unpacked(str(path))


def test_files_directories_and_links_read_as_on_the_node(root: Path, tmp_path: Path) -> None:
    (root / "etc/absent").symlink_to("../nothing/there")
    (root / "etc/loop").symlink_to("loop")
    (root / "etc/link").symlink_to("file")
    (root / "directory").symlink_to("etc")
    (root / "var/empty").mkdir(parents=True)
    collector = Collector(Tree(str(root)))
    assert collector.file("/directory/link") == b"text\n"
    for path in ("/etc/absent", "/etc/loop", "/etc/none", "/var/empty"):
        assert collector.file(path) is None
    assert collector.left_out == {}
    opened = unpacked(collector, tmp_path)
    here, there = Tree(opened.directory), Tree(str(root))
    for path in ("/directory/link", "/etc/link", "/etc/file"):
        assert here.read_text(path) == there.read_text(path)
    for path in ("/etc/absent", "/etc/none", "/var/empty"):
        for follow in (True, False):
            assert here.exists(path, follow) == there.exists(path, follow)
    for path in ("/etc/loop", "/var/empty", "/etc/absent"):
        errors = []
        for tree in (here, there):
            with pytest.raises(CPUManagerError) as caught:
                tree.read_bytes(path)
            errors.append(caught.value.what)
        assert errors[0] == errors[1]
    opened.remove()


def test_what_cannot_be_saved_is_listed(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "etc/pipe")
    (root / "etc/out").symlink_to(tmp_path / "outside")
    (root / "etc/up").symlink_to("../../outside")
    (root / "etc/long").write_bytes(bytes(2000))
    monkeypatch.setattr(collector_module, "LARGEST", 1000)
    collector = Collector(Tree(str(root)))
    for name in ("pipe", "out", "up", "long", "x" * 300, "nul\0"):
        assert collector.file("/etc/" + name) is None
    assert set(collector.left_out) == {"/etc/" + name for name in ("pipe", "out", "up", "long", "x" * 300, "nul\0")}
    assert list(collector.members) == []


def test_what_cannot_be_told_apart_is_left_out(root: Path) -> None:
    def unsafe(content: bytes) -> bytes:
        raise UnsafeError("it is odd")

    collector = Collector(Tree(str(root)))
    collector.file("/etc/file", unsafe)
    assert collector.members == {}
    assert "it is odd" in collector.left_out["/etc/file"]


def test_too_many_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "MOST_MEMBERS", 10)
    for number in range(10):
        (root / "etc/d" / str(number)).mkdir(parents=True)
    with pytest.raises(NodeError, match="has more files than can be saved"):
        Collector(Tree(str(root))).directories("/etc/d")
    monkeypatch.setattr(collector_module, "MOST_BYTES", 10)
    with pytest.raises(NodeError, match="has longer files than can be saved"):
        Collector(Tree(str(root))).archive(("/first", b""))


NAMES = st.sampled_from(["a", "b", "c", "a/b", "a/b/c", "b/a"])
TARGETS = st.sampled_from(["a", "b", "../a", "../../a", "a/../b", "a/b/../../..", "/", "/etc", ".", "..", "c/b", "b/c"])


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(NAMES, st.one_of(st.none(), TARGETS)), max_size=8))
def test_any_links_can_be_unpacked_and_stay_inside(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str | None]]
) -> None:
    directory = tmp_path_factory.mktemp("links")
    root = directory / "node"
    root.mkdir()
    for name, target in entries:
        place = root / name
        if os.path.realpath(place.parent).startswith(str(root)) and not os.path.lexists(place):
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                if target is None:
                    place.write_bytes(name.encode())
                else:
                    place.symlink_to(target)
            except OSError:
                continue
    collector = Collector(Tree(str(root)))
    for path in ("a", "b", "c", "a/b", "a/b/c", "b/a", "a/b/a", "b/a/b"):
        collector.file("/" + path)
    opened = unpacked(collector, directory)
    here, there = Tree(opened.directory), Tree(str(root))
    for path in ("/a", "/b", "/c", "/a/b", "/a/b/c"):
        assert collector.left_out or content_of(here, path) == content_of(there, path)
    opened.remove()


def content_of(tree: Tree, path: str) -> bytes | None:
    try:
        return tree.read_bytes(path)
    except CPUManagerError:
        return None


def test_directories_nested_deeply(root: Path) -> None:
    deep = "/etc" + "/d" * LEVELS
    with nested(root / "etc", file="file", content="x"):
        (root / "link").symlink_to("etc" + "/d" * LEVELS)
        collector = Collector(Tree(str(root)))
        # Without any of those above it before.
        assert collector.file(deep + "/file") == b"x"
        assert collector.place("/link/file") == deep + "/file"
        assert collector.new_place(deep + "/new" * LEVELS) == deep + "/new" * LEVELS
        assert len(collector.directories("/etc/d")) == LEVELS
