# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/tree.py."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Callable, NoReturn

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    TOO_LONG,
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import (
    LARGEST,
    LARGEST_OF_KUBELET,
    OverlaidTree,
    Tree,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.nested import LEVELS, nested
from ansible_collections.kubenode.cpu_manager.tests.support.blocking import not_blocking


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "node"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "hostname").write_text("worker-1\n", encoding="utf-8")
    (tmp_path / "secret").write_text("of the machine we run on", encoding="utf-8")
    return root


@pytest.fixture
def tree(root: Path) -> Tree:
    return Tree(str(root))


def test_paths_are_those_of_the_node(root: Path, tree: Tree) -> None:
    for path in ("/etc/hostname", "etc/hostname", "//etc/./hostname", "/etc/../etc/hostname", "/../../etc/hostname"):
        assert tree.path(path) == str(root / "etc" / "hostname")
        assert tree.exists(path)
        assert tree.read_text(path) == "worker-1\n"
        assert tree.read_bytes(path) == b"worker-1\n"
        assert tree.read_value(path) == "worker-1"
    assert not tree.live


def test_live_tree() -> None:
    tree = Tree("/")
    assert tree.live
    assert tree.path("/proc/version") == "/proc/version"
    assert (tree.read_value("/proc/version") or "").startswith("Linux version")


@pytest.mark.parametrize("root", ["", ".", "node", "../node"])
def test_root_is_absolute(root: str) -> None:
    with pytest.raises(InputError) as caught:
        Tree(root)
    assert str(caught.value) == "root: %r is not an absolute path; begin it with a /" % root


def test_root_is_a_directory(root: Path) -> None:
    with pytest.raises(InputError, match="no such directory; give the directory that holds the node's /sys and /etc"):
        Tree(str(root / "nothing"))
    with pytest.raises(InputError, match="no such directory"):
        Tree(str(root / "etc" / "hostname"))


@pytest.mark.parametrize("target", ["../../secret", "{tmp_path}/secret", "up/secret"])
def test_a_link_out_of_the_tree_is_refused(root: Path, tree: Tree, target: str) -> None:
    (root / "etc" / "up").symlink_to("../..")
    link = root / "etc" / "leak"
    link.symlink_to(target.format(tmp_path=root.parent))
    assert link.read_text(encoding="utf-8") == "of the machine we run on"
    for call in (tree.read_bytes, tree.read_text, tree.read_value, tree.exists, tree.path, tree.names):
        with pytest.raises(RefusedError) as caught:
            call("/etc/leak")
        assert str(caught.value) == (
            "%s: leads out of %s, to %s; this link is not followed; put what it leads to in its place"
            % (link, root, root.parent / "secret")
        )


@pytest.mark.parametrize("path", ["/etc/up/secret", "/etc/up/deep/er/secret", "/etc/inner/up/deep/er/secret"])
def test_no_directory_above_a_file_leads_out_of_the_tree(root: Path, tree: Tree, path: str) -> None:
    (root / "etc" / "inner").mkdir()
    for link in (root / "etc" / "up", root / "etc" / "inner" / "up"):
        link.symlink_to(root.parent)
    (root.parent / "deep" / "er").mkdir(parents=True)
    (root.parent / "deep" / "er" / "secret").write_text("of the machine we run on", encoding="utf-8")
    above = path.rpartition("/")[0]
    for place, calls in (
        (path, (tree.read_bytes, tree.read_text, tree.read_value, tree.content, tree.exists, tree.path)),
        (above, (tree.names, tree.files_below)),
    ):
        for call in calls:
            # Without the directories that calls before it have seen.
            tree._inside = {tree.root}
            with pytest.raises(RefusedError, match=r"up: leads out of .*; this link is not followed"):
                call(place)
            # And once more, with those that it has seen itself.
            with pytest.raises(RefusedError):
                call(place)


def test_a_link_to_a_neighbour_with_the_same_beginning_is_refused(root: Path, tree: Tree) -> None:
    (root.parent / "node2").mkdir()
    (root.parent / "node2" / "file").write_text("another node's", encoding="utf-8")
    (root / "file").symlink_to("../node2/file")
    with pytest.raises(RefusedError):
        tree.read_text("/file")


def test_links_inside_the_tree_are_followed(root: Path, tree: Tree) -> None:
    (root / "etc" / "name").symlink_to("hostname")
    (root / "var").symlink_to("etc")
    assert tree.read_text("/etc/name") == "worker-1\n"
    assert tree.read_text("/var/name") == "worker-1\n"


def test_root_may_be_reached_by_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to("node")
    assert Tree(str(link)).read_text("/etc/hostname") == "worker-1\n"
    assert Tree(str(link) + "/").path("/etc") == str(link / "etc")


def test_missing_file(root: Path, tree: Tree) -> None:
    assert not tree.exists("/etc/nothing")
    assert tree.read_value("/etc/nothing") is None
    assert tree.read_value("/etc/hostname/nothing") is None
    assert tree.names("/nothing") == []
    assert tree.names("/etc/hostname") == []
    with pytest.raises(NodeError) as caught:
        tree.read_text("/etc/nothing")
    assert str(caught.value) == (
        "%s: cannot be read: No such file or directory; save the node's files again" % (root / "etc" / "nothing")
    )


def test_not_a_file(root: Path, tree: Tree) -> None:
    with pytest.raises(NodeError, match="/node/etc: is not a regular file"):
        tree.read_text("/etc")
    with pytest.raises(NodeError, match="/node/etc: cannot be read: Is a directory"):
        tree.read_value("/etc")


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_a_file_of_the_limit_is_read(root: Path, tree: Tree, size: int) -> None:
    (root / "etc" / "data").write_bytes(b"x" * size)
    assert tree.read_bytes("/etc/data", 100) == tree.content("/etc/data", 100) == b"x" * size
    assert tree.read_text("/etc/data", 100) == "x" * size


@pytest.mark.parametrize("most", [100, LARGEST_OF_KUBELET, LARGEST])
def test_no_more_is_read_than_the_limit(root: Path, tree: Tree, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with (root / "etc" / "data").open("wb") as file:
        file.truncate(2 << 30)
    read = []
    read_of_system = os.read

    def counted(descriptor: int, size: int) -> bytes:
        content = read_of_system(descriptor, size)
        read.append(len(content))
        return content

    monkeypatch.setattr(os, "read", counted)
    for reading in (tree.read_bytes, tree.content, tree.read_text):
        read.clear()
        with pytest.raises(NodeError) as caught:
            reading("/etc/data", most)
        assert sum(read) == most + 1
        assert str(caught.value) == (
            "%s: is longer than %d bytes, as no such file is; put it out of the way" % (root / "etc/data", most)
        )
        assert caught.value.kind == TOO_LONG
    with pytest.raises(NodeError, match="is longer than %d bytes" % LARGEST):
        tree.read_bytes("/etc/data")


def test_what_says_that_it_is_empty_is_read_up_to_the_limit() -> None:
    """Files of the kernel have the size 0."""
    assert os.stat("/proc/self/maps").st_size == 0
    assert Tree().read_bytes("/proc/self/maps")
    with pytest.raises(NodeError, match="is longer than 10 bytes"):
        Tree().read_bytes("/proc/self/maps", 10)


def test_names_that_are_nearly_numbers(root: Path, tree: Tree) -> None:
    for name in ("7", "07", "²", "٣", "1x", "-1", "+1", " 1", "1_0", "cpu3", "cpu²", "cpu", "9" * 21, "9" * 255):
        (root / "proc" / name).mkdir(parents=True)
    assert tree.numbered("/proc", "") == [7, 7]
    assert tree.numbered("/proc", "cpu") == [3]


def test_directories_nested_deeply(root: Path, tree: Tree) -> None:
    with nested(root / "etc"):
        (root / "etc" / ("d/" * LEVELS) / "file").touch()
        assert tree.files_below("/etc") == ["/etc%s/file" % ("/d" * LEVELS), "/etc/hostname"]


def test_a_path_that_is_too_long_for_the_system(root: Path, tree: Tree) -> None:
    with nested(root / "etc", 20, "d" * 255):
        first, _hostname = tree.files_below("/etc")
        with pytest.raises(NodeError, match="cannot be read: File name too long"):
            tree.read_bytes(first)


def test_a_fifo_does_not_block(root: Path, tree: Tree) -> None:
    os.mkfifo(root / "etc" / "fifo")
    with not_blocking():
        with pytest.raises(NodeError, match="/node/etc/fifo: is not a regular file"):
            tree.read_bytes("/etc/fifo")
        assert tree.read_value("/etc/fifo") == ""


def test_a_loop_of_links(root: Path, tree: Tree) -> None:
    (root / "loop").symlink_to("loop")
    with pytest.raises(NodeError, match="cannot be read: Too many levels of symbolic links"):
        tree.read_text("/loop")
    with pytest.raises(NodeError, match="cannot be read: Too many levels of symbolic links"):
        tree.read_value("/loop")


def test_text_is_utf8(root: Path, tree: Tree) -> None:
    (root / "etc" / "config").write_bytes(b"caf\xc3\xa9 caf\xe9")
    with pytest.raises(NodeError) as caught:
        tree.read_text("/etc/config")
    assert str(caught.value) == "%s: is not UTF-8 text (byte 9); write it in UTF-8" % (root / "etc" / "config")
    assert tree.read_bytes("/etc/config") == b"caf\xc3\xa9 caf\xe9"


def test_a_large_file_is_read_whole(root: Path, tree: Tree) -> None:
    content = os.urandom(3 * (1 << 16) + 5)
    (root / "large").write_bytes(content)
    assert tree.read_bytes("/large") == content
    (root / "empty").write_bytes(b"")
    assert tree.read_bytes("/empty") == b""
    assert tree.read_value("/empty") == ""


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"0-3\n", "0-3"),
        (b"0-3", "0-3"),
        (b"\n", ""),
        (b"  (null)\n", "(null)"),  # as /sys/devices/system/cpu/nohz_full had it
        (b"12\0", "12"),  # firmware tables end so
        (b"caf\xe9\n", "caf\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_value(root: Path, tree: Tree, content: bytes, value: str) -> None:
    (root / "value").write_bytes(content)
    assert tree.read_value("/value") == value


def test_names(root: Path, tree: Tree) -> None:
    for name in ("cpu10", "cpu2", "cpu0", "cpufreq", "cpu", "cpu-1", "cpu1x", "gpu3"):
        (root / "etc" / name).mkdir()
    assert tree.numbered("/etc", "cpu") == [0, 2, 10]
    assert tree.names("/etc") == ["cpu", "cpu-1", "cpu0", "cpu10", "cpu1x", "cpu2", "cpufreq", "gpu3", "hostname"]
    assert tree.numbered("/etc/nothing", "cpu") == []


def test_without_permission(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not by the file's mode: root may read everything.
    monkeypatch.setattr(os, "open", failing(errno.EACCES))
    for read in (tree.read_bytes, tree.read_text, tree.read_value):
        with pytest.raises(NodeError, match="/etc/hostname: cannot be read: Permission denied"):
            read("/etc/hostname")
    monkeypatch.setattr(os, "listdir", failing(errno.EACCES))
    with pytest.raises(NodeError, match="/etc: cannot be read: Permission denied"):
        tree.names("/etc")


def test_error_while_reading(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    # As the kernel does it for the files of an offline node.
    monkeypatch.setattr(os, "read", failing(errno.EIO))
    for read in (tree.read_bytes, tree.read_text, tree.read_value):
        with pytest.raises(NodeError, match="/etc/hostname: cannot be read: Input/output error"):
            read("/etc/hostname")


def failing(number: int) -> Callable[..., NoReturn]:
    def fail(*_arguments: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail


def test_files_below(tmp_path: Path) -> None:
    """In the order of Go's filepath.WalkDir: a directory's files stand where its name does."""
    for path in ("10.conf", "20.d/b.conf", "20.d/a/z.conf", "20.conf", "30"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("", encoding="ascii")
    (tmp_path / "40").symlink_to("20.d")  # not followed
    names = ["10.conf", "20.conf", "20.d/a/z.conf", "20.d/b.conf", "30", "40"]
    assert Tree(str(tmp_path)).files_below("/") == ["/" + name for name in names]
    assert Tree(str(tmp_path)).files_below("/missing") == []


def test_node_path(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert tree.node_path(tree.path("/etc/hostname")) == "/etc/hostname"
    assert Tree("/").node_path("/etc/hostname") == "/etc/hostname"


# --- files that are other than on the disk ----------------------------------------------------------------


def test_files_that_lie_over_those_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "etc/conf.d").mkdir(parents=True)
    for name in ("changed", "removed", "kept"):
        (tmp_path / "etc/conf.d" / name).write_text("old", encoding="ascii")
    contents = {"/etc/conf.d/changed": b"new", "/etc/conf.d/removed": None, "/etc/conf.d/added": b"", "/new/file": b"x"}
    tree = OverlaidTree(Tree(str(tmp_path)), contents)
    assert tree.names("/etc/conf.d") == ["added", "changed", "kept"]
    assert tree.files_below("/etc/conf.d") == ["/etc/conf.d/added", "/etc/conf.d/changed", "/etc/conf.d/kept"]
    assert [tree.read_text("/etc/conf.d/" + name) for name in ("changed", "kept", "added")] == ["new", "old", ""]
    assert [tree.exists("/etc/conf.d/" + name) for name in ("changed", "kept", "added", "removed")] == [
        *(True, True, True, False)
    ]
    assert (tree.exists("/new"), tree.exists("/new/file"), tree.exists("/ne")) == (True, True, False)
    with pytest.raises(NodeError, match="No such file"):
        tree.read_bytes("/etc/conf.d/removed")
    # The disk is as it was.
    assert (tmp_path / "etc/conf.d/changed").read_text(encoding="ascii") == "old"


def test_one_lies_over_another(tmp_path: Path) -> None:
    below = OverlaidTree(Tree(str(tmp_path)), {"/a": b"1", "/b": b"1"})
    above = OverlaidTree(below, {"/b": b"2", "/c/../d": b"2"})
    assert [above.read_bytes(path) for path in ("/a", "/b", "/d")] == [b"1", b"2", b"2"]
    assert below.read_bytes("/b") == b"1"


def test_directories_that_lie_over_those_of_the_disk(tmp_path: Path) -> None:
    """Those of files that are only planned are there, at any depth; those of files that are to go are not made."""
    for path in ("etc/conf.d/20.conf", "etc/conf.d/30.d/old.conf", "etc/conf.d/file"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("old", encoding="ascii")
    (tmp_path / "etc/conf.d/was-directory").mkdir()
    contents = {
        "/etc/conf.d/10.d/a/b.conf": b"new",
        "/etc/conf.d/30.d/new.conf": b"new",
        "/etc/conf.d/30.d/old.conf": None,
        "/etc/conf.d/40.d/gone.conf": None,
        "/etc/conf.d/file/below": None,
        "/etc/conf.d/was-directory": b"new",
    }
    tree = OverlaidTree(Tree(str(tmp_path)), contents)
    assert tree.names("/etc/conf.d") == ["10.d", "20.conf", "30.d", "file", "was-directory"]
    assert tree.names("/etc/conf.d/") == tree.names("/etc/conf.d")
    assert (tree.names("/"), tree.names("/etc/conf.d/10.d")) == (["etc"], ["a"])
    assert tree.files_below("/etc/conf.d") == [
        "/etc/conf.d/" + name for name in ("10.d/a/b.conf", "20.conf", "30.d/new.conf", "file", "was-directory")
    ]
    assert tree.files_below("/") == tree.files_below("/etc") == tree.files_below("/etc/conf.d")
    assert [tree.exists("/etc/conf.d/" + name) for name in ("10.d", "10.d/a", "40.d")] == [True, True, False]


@pytest.mark.parametrize("path", ["/etc/\0", "/etc/\0\u00e9", "/etc/\ud800"])
def test_what_is_no_path(tree: Tree, path: str) -> None:
    for root in (tree, Tree("/")):
        for call in (root.read_bytes, root.read_value, root.exists, root.path, root.names):
            with pytest.raises(NodeError, match="is not a path on Linux"):
                call(path)
    assert not tree.exists("/etc/\u00e9")
    assert not tree.exists("/etc/\udcff")


@pytest.mark.parametrize("levels", [1000, 2000, 10**6])
def test_a_long_path_leads_nowhere(tree: Tree, levels: int) -> None:
    path = "/x" * levels
    assert not tree.exists(path)
    assert tree.path(path) == tree.root + path
    with pytest.raises(NodeError, match=r"File name too long|No such file"):
        tree.read_bytes(path)


def test_what_cannot_be_seen_is_not_missing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a file that a broken disk hides would count as one that was never there, and be removed later."""

    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "stat", fail)
    with pytest.raises(NodeError, match="/etc/hostname: cannot be read: Input/output error"):
        tree.exists("/etc/hostname", follow=False)
