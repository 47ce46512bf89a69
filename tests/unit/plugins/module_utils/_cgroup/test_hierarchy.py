# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import (
    CPUACCT,
    Cgroup,
    Hierarchy,
    lineage,
    mounted,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    STYLES,
    USUAL,
    V1,
    V2,
    Files,
    Style,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.nested import LEVELS, nested


def hierarchy(root: Path) -> Hierarchy:
    return Hierarchy(Tree(str(root)))


# --- finding it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mounts", ["/proc/mounts", "/proc/self/mounts", None])
@pytest.mark.parametrize("style", list(STYLES.values()), ids=list(STYLES))
def test_version_and_mount(tmp_path: Path, style: Style, mounts: str | None) -> None:
    write_cgroups(tmp_path, style, {}, mounts=mounts)
    found = hierarchy(tmp_path)
    assert (found.version, found.mount) == (style.version, style.mount)


def test_the_node_is_asked_and_nothing_assumed(tmp_path: Path) -> None:
    """An unusual place; a hierarchy whose files have other names; v2 without the controller; a line of nothing."""
    place = "/sys/fs/cgroup/my sets"
    mounts = (
        "",
        "cgroup /dev/cpuset cgroup rw,cpuset,noprefix 0 0",
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0",
        "cgroup /opt/cpuset cgroup rw,cpuset 0 0",
        r"cgroup /sys/fs/cgroup/my\040sets cgroup rw,cpuset 0 0",
    )
    write_cgroups(tmp_path, Style(1, place, mounts), {"a": Files()})
    shutil.copytree(tmp_path / place[1:], tmp_path / "opt" / "cpuset")
    found = hierarchy(tmp_path)
    assert (found.version, found.mount) == (1, place)
    assert found.children("") == ["a"]


def test_a_saved_tree_through_a_link_of_its_own(tmp_path: Path) -> None:
    write_cgroups(tmp_path, V1, {}, mounts="/proc/self/mounts")
    (tmp_path / "proc" / "mounts").symlink_to("self/mounts")
    assert hierarchy(tmp_path).mount == V1.mount


@pytest.mark.parametrize("mounts", [None, "", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"])
def test_no_controller(tmp_path: Path, mounts: str | None) -> None:
    if mounts is not None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc" / "mounts").write_text(mounts, encoding="utf-8")
    controllers = tmp_path / USUAL[1:] / "cgroup.controllers"
    controllers.parent.mkdir(parents=True)
    controllers.write_text("cpu memory\n", encoding="utf-8")
    with pytest.raises(NodeError, match=r"/sys/fs/cgroup: no cpuset controller in either version of cgroups"):
        hierarchy(tmp_path)


def test_mounts_of_another_controller(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert mounted(tree, CPUACCT) is None
    (tmp_path / "proc").mkdir()
    lines = b"cgroup /a\\040b cgroup rw,cpu,cpuacct 0 0\ncgroup /c cgroup rw,cpuset 0 0\ncgroup2 /u cgroup2 rw 0 0\nx\n"
    (tmp_path / "proc" / "mounts").write_bytes(lines)
    assert mounted(tree, CPUACCT) == {1: ["/a b"], 2: ["/u"]}
    (tmp_path / "proc" / "mounts").write_bytes(b"\xff\n" * 3)
    assert mounted(tree, CPUACCT) == {1: [], 2: []}


def test_a_link_out_of_the_tree(tmp_path: Path) -> None:
    write_cgroups(tmp_path / "other", V1, {}, mounts=None)
    (tmp_path / "node" / "sys" / "fs").mkdir(parents=True)
    (tmp_path / "node" / "sys" / "fs" / "cgroup").symlink_to(tmp_path / "other" / USUAL[1:])
    with pytest.raises(RefusedError, match="leads out of"):
        hierarchy(tmp_path / "node")


# --- one cgroup -------------------------------------------------------------------------------------


cpus = CPUSet.parse


def test_read_v1(tmp_path: Path) -> None:
    write_cgroups(tmp_path, V1, {"a/b": Files("2,1", "0", (7,), True), "a": Files("1-3", "0-1", mem_exclusive=True)})
    found = hierarchy(tmp_path)
    assert found.read("a/b") == Cgroup("a/b", cpus("1-2"), cpus("1-2"), cpus("0"), cpus("0"), True, True, True)
    a = found.read("a")
    assert (a.has_processes, a.populated, a.cpu_exclusive, a.mem_exclusive) == (False, False, False, True)
    assert found.read("").cpus == cpus("0-7")


def test_read_v2(tmp_path: Path) -> None:
    below = {"a": Files("0-3"), "a/b": Files("2-5", "1", (7,), partition="root invalid (Parent is not a partition)")}
    write_cgroups(tmp_path, V2, {**below, "a/c": Files(None, None, (8,)), "a/c/d": Files(None, None)})
    found = hierarchy(tmp_path)
    assert found.read("a/b") == Cgroup(
        "a/b",
        cpus("2-5"),
        cpus("2-3"),
        cpus("1"),
        cpus("1"),
        True,
        True,
        partition="root invalid (Parent is not a partition)",
    )
    a = found.read("a")
    assert (a.has_processes, a.populated, a.partition) == (False, True, "member")
    assert (a.mems, a.effective_mems) == (cpus(""), cpus("0-1"))
    top = found.read("")
    assert (top.cpus, top.effective_cpus) == (None, cpus("0-7"))
    # Without the controller, the nearest ancestor's set holds.
    for path in ("a/c", "a/c/d"):
        cgroup = found.read(path)
        assert (cgroup.cpus, cgroup.effective_cpus, cgroup.effective_mems) == (None, cpus("0-3"), cpus("0-1"))


def test_an_old_kernel_does_not_tell_the_effective_sets(tmp_path: Path) -> None:
    top = write_cgroups(tmp_path, V1, {"a": Files("1-3", "0")})
    for file in top.rglob("cpuset.effective_*"):
        file.unlink()
    found = hierarchy(tmp_path).read("a")
    assert (found.effective_cpus, found.effective_mems) == (cpus("1-3"), cpus("0"))


def test_a_threaded_cgroup_tells_its_threads_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = write_cgroups(tmp_path, V2, {"a": Files()})
    (top / "a" / "cgroup.threads").write_text("7\n", encoding="utf-8")
    read = os.read

    def read_as_kernel(descriptor: int, count: int) -> bytes:
        if os.readlink("/proc/self/fd/%d" % descriptor).endswith("cgroup.procs"):
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return read(descriptor, count)

    monkeypatch.setattr(os, "read", read_as_kernel)
    assert hierarchy(tmp_path).read("a").has_processes


def test_no_such_cgroup(tmp_path: Path) -> None:
    top = write_cgroups(tmp_path, V2, {"a": Files()})
    (top / "empty").mkdir()
    found = hierarchy(tmp_path)
    for path in ("b", "a/b", "a/cgroup.procs", "empty"):
        with pytest.raises(NodeError, match="^%s/%s: no such cgroup$" % (top, path)):
            found.read(path)
    assert found.read_set("b", "cpuset.cpus") is None
    assert found.children("b") == found.children("a/cgroup.procs") == []


def test_a_damaged_file(tmp_path: Path) -> None:
    top = write_cgroups(tmp_path, V1, {"a": Files("0")})
    (top / "a" / "cpuset.cpus").write_text("0-\n", encoding="utf-8")
    with pytest.raises(NodeError, match="^%s/a/cpuset.cpus: CPU list '0-', position 3: .*save the node's" % top):
        hierarchy(tmp_path).read("a")


@pytest.mark.parametrize(("error", "remedy"), [(errno.EACCES, "; read it as root"), (errno.EIO, "")])
def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, remedy: str) -> None:
    top = write_cgroups(tmp_path, V1, {"a": Files("0-1")})
    found = hierarchy(tmp_path)
    opened = os.open

    def refuse(path: Any, *arguments: Any, **keywords: Any) -> int:
        if path in ("cpuset.cpus", "locked"):
            raise OSError(error, os.strerror(error))
        return opened(path, *arguments, **keywords)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NodeError, match="^%s/a/cpuset.cpus: cannot be read: .*%s" % (top, remedy)):
        found.read("a")
    with pytest.raises(NodeError, match="^%s/locked: cannot be read: .*%s" % (top, remedy)):
        found.children("locked")


def test_online_cpus_and_memory_nodes(tmp_path: Path) -> None:
    write_cgroups(tmp_path, V2, {}, online="0-3", nodes="0,2")
    found = hierarchy(tmp_path)
    assert (str(found.online_cpus()), str(found.memory_nodes())) == ("0-3", "0,2")
    online = tmp_path / "sys" / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True)
    # What partitions have is not the topmost cgroup's, but online.
    online.write_text("0-7\n", encoding="utf-8")
    assert str(found.online_cpus()) == "0-7"
    online.write_text("some\n", encoding="utf-8")
    with pytest.raises(NodeError, match="cpu/online: CPU list 'some'"):
        found.online_cpus()


# --- paths and links --------------------------------------------------------------------------------


def test_relative_paths(tmp_path: Path) -> None:
    write_cgroups(tmp_path, V1, {})
    found = hierarchy(tmp_path)
    for path in ("a/b", "a//b/", "./a/b", V1.mount + "/a/b"):
        assert found.relative(path) == "a/b"
    for path in ("", ".", V1.mount):
        assert found.relative(path) == ""
    for path in ("/a", "/sys/fs/cgroup/cpuset2/a", "/"):
        with pytest.raises(InputError, match="is not below /sys/fs/cgroup/cpuset; give a cgroup's path relative"):
            found.relative(path)
    for path in ("..", "a/../b", V1.mount + "/../cpu", "a\0b"):
        with pytest.raises(InputError, match="leads out of the hierarchy"):
            found.relative(path)


def test_no_link_is_followed(tmp_path: Path) -> None:
    top = write_cgroups(tmp_path, V1, {"a/b": Files("0", "0")})
    (top / "link").symlink_to("a")
    (top / "a" / "b" / "cpuset.mems").unlink()
    (top / "a" / "b" / "cpuset.mems").symlink_to("cpuset.cpus")
    found = hierarchy(tmp_path)
    assert list(found.cgroups()) == ["a", "a/b"]
    for path in ("link", "link/b"):
        with pytest.raises(RefusedError, match="^%s/link: is a symbolic link, and none is followed" % top):
            found.read(path)
        with pytest.raises(RefusedError, match="is a symbolic link"):
            found.children(path)
    # It takes what is above for listed, and so for no link.
    with pytest.raises(RefusedError, match="is a symbolic link"):
        found.listed_children("link")
    with pytest.raises(RefusedError, match="^%s/a/b/cpuset.mems: is a symbolic link" % top):
        found.read("a/b")


# --- many cgroups -----------------------------------------------------------------------------------

FAMILY = {path: Files() for path in ("a", "b", "b/x", "b/y/1/i", "b/y/2", "b/z", "c/d")}


def test_no_directory_stays_open(tmp_path: Path) -> None:
    write_cgroups(tmp_path, V2, {"a": Files("0"), "a/b": Files("0")})
    before = os.listdir("/proc/self/fd")
    assert hierarchy(tmp_path).children("a") == ["a/b"]
    assert os.listdir("/proc/self/fd") == before


def test_cgroups(tmp_path: Path) -> None:
    write_cgroups(tmp_path, V1, FAMILY)
    found = hierarchy(tmp_path)
    assert list(found.cgroups()) == ["a", "b", "b/x", "b/y", "b/y/1", "b/y/1/i", "b/y/2", "b/z", "c", "c/d"]
    assert list(found.cgroups("b/y")) == ["b/y/1", "b/y/1/i", "b/y/2"]


@pytest.mark.parametrize(
    ("style", "paths", "around"),
    [
        (V1, ["b/y", "a"], {"", "a", "b", "c", "b/x", "b/y", "b/z", "b/y/1", "b/y/2"}),
        (V1, ["b/y"], {"", "b", "b/x", "b/y", "b/z", "b/y/1", "b/y/2"}),
        (V2, ["b/y", "a"], {"", "a", "b", "c", "b/x", "b/y", "b/z", "b/y/1", "b/y/2", "b/y/1/i"}),
        (V2, ["b/y"], {"", "a", "b", "c", "b/x", "b/y", "b/z", "b/y/1", "b/y/2", "b/y/1/i"}),
    ],
)
def test_around(tmp_path: Path, style: Style, paths: list[str], around: set[str]) -> None:
    write_cgroups(tmp_path, style, FAMILY)
    found = hierarchy(tmp_path).around(paths)
    assert set(found) == around
    assert all(cgroup.path == path for path, cgroup in found.items())
    assert set(hierarchy(tmp_path).around([""])) >= {"", "a", "b", "c"}


@pytest.mark.parametrize(("style", "beside"), [(V1, {"b/x", "b/y", "b/z"}), (V2, {"b/z"})], ids=["v1", "v2"])
def test_around_what_may_get_more(tmp_path: Path, style: Style, beside: set[str]) -> None:
    """On v2 of those beside it only partitions have CPUs alone, and those that were meant to be."""
    write_cgroups(tmp_path, style, FAMILY)
    found = hierarchy(tmp_path)
    alone = set(found.around(["a"]))
    if style is V2:
        Path(found.place("b/x", "cpuset.cpus.partition")).write_text("member\n", encoding="ascii")
        Path(found.place("b/z", "cpuset.cpus.partition")).write_text("isolated invalid\n", encoding="ascii")
    assert set(found.around(["a"], above=["b/y"])) - alone == beside


@pytest.mark.parametrize(
    ("partition", "is_partition", "is_valid"),
    [
        ("", False, False),
        ("member", False, False),
        ("root", True, True),
        ("isolated", True, True),
        ("root invalid (Cpu list in cpuset.cpus not exclusive)", True, False),
    ],
)
def test_partitions(tmp_path: Path, partition: str, is_partition: bool, is_valid: bool) -> None:
    write_cgroups(tmp_path, V2, {"a": Files("0-3", partition=partition)})
    found = hierarchy(tmp_path).read("a")
    assert (found.is_partition(), found.is_valid_partition()) == (is_partition, is_valid)


def test_around_while_cgroups_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cgroups(tmp_path, V1, FAMILY)
    found = hierarchy(tmp_path)
    monkeypatch.setattr(found, "children", lambda _path: ["gone", "b"])
    assert set(found.around(["a"])) == {"", "a", "b"}
    with pytest.raises(NodeError, match="gone: no such cgroup"):
        found.around(["a", "gone"])


# --- many at once -----------------------------------------------------------------------------------


@pytest.mark.parametrize("style", list(STYLES.values()), ids=list(STYLES))
def test_many_at_once_are_as_one_by_one(tmp_path: Path, style: Style) -> None:
    sets = {"a": Files("0-3", "0"), "a/b": Files("2-3", "0", (7, 8)), "c": Files("", "0")}
    if style.version == 2:
        sets.update({"a/d": Files("5"), "c/e": Files(None, None, (9,))})
    top = write_cgroups(tmp_path, style, sets)
    found = hierarchy(tmp_path)
    paths = list(found.cgroups())
    assert sorted(sets) == sorted(paths)
    effective = {path: found.read(path).effective_cpus for path in paths}
    assert found.effective_cpus_of(paths) == {path: found.effective_cpus(path) for path in paths} == effective
    assert found.cpus_of(paths) == {path: found.read(path).cpus for path in paths}
    assert found.first_processes(paths) == {path: sets[path].processes[0] for path in paths if sets[path].processes}

    shutil.rmtree(top / "a/b")
    assert found.effective_cpus("a/b") is None
    assert found.effective_cpus_of(["a/b"]) == found.cpus_of(["a/b"]) == {"a/b": None}
    assert found.first_processes(["a/b"]) == {}


@pytest.mark.parametrize("style", [V1, V2])
def test_many_at_once_tell_what_is_damaged(tmp_path: Path, style: Style) -> None:
    top = write_cgroups(tmp_path, style, {"a": Files("0", "0"), "b": Files("0", "0")})
    found = hierarchy(tmp_path)
    for name in ("cpuset.cpus", "cpuset.cpus.effective"):
        (top / "a" / name).write_text("0-\n")
    outside = tmp_path / "outside"
    outside.write_text("3\n")
    for name in ("cpuset.cpus", "cpuset.cpus.effective"):
        (top / "b" / name).unlink(missing_ok=True)
        (top / "b" / name).symlink_to(outside)
    for read in (found.effective_cpus_of, found.cpus_of):
        with pytest.raises(NodeError, match="CPU list '0-'"):
            read(["a"])
        with pytest.raises(RefusedError, match="is a symbolic link"):
            read(["b"])


def test_lineage() -> None:
    assert list(lineage("a/b/c")) == ["a/b/c", "a/b", "a"]
    assert list(lineage("")) == []


def test_cgroups_nested_deeply(tmp_path: Path) -> None:
    """Whoever may make cgroups may make them so."""
    write_cgroups(tmp_path, V2, {"a": Files()})
    found = hierarchy(tmp_path)
    with nested(Path(found.place("a"))):
        # None is read that is deeper than honest ones.
        assert list(found.cgroups()) == ["a" + "/d" * level for level in range(64 + 1)]
        assert found.value("a" + "/d" * LEVELS, "cgroup.procs") is None


def test_a_file_that_is_longer_than_any_of_a_cgroup(tmp_path: Path) -> None:
    write_cgroups(tmp_path, V2, {"a": Files()})
    found = hierarchy(tmp_path)
    with open(found.place("a", "cgroup.procs"), "wb") as file:
        file.truncate(2 << 30)
    with pytest.raises(NodeError, match=r"a/cgroup\.procs: is longer than 16777216 bytes"):
        found.value("a", "cgroup.procs")
