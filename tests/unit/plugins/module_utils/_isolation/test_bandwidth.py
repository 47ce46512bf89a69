# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import (
    CPU,
    Hierarchy,
    find_controller,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.bandwidth import (
    FILES,
    Level,
    Statistics,
    parse_level,
    read_levels,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    STYLES,
    CPUFiles,
    Style,
    cpu_mount,
    write_cgroups,
    write_cpu,
)

STAT = "nr_periods 10\nnr_throttled 4\nthrottled_%s\n"
MOST = (1 << 64) - 1
WORDS = st.sampled_from(["max", "-1", "nr_periods", "nr_throttled", "throttled_time", "100000", "\u0661", ""])
NUMBERS = st.integers(-(1 << 66), 1 << 66)
TEXTS = st.text(max_size=60) | st.tuples(WORDS, NUMBERS).map(lambda parts: "%s %d\n" % parts) | NUMBERS.map(str)


def level(version: int, **texts: str) -> Level:
    """Return a cgroup with these files, with _ for the dots in their names."""
    files = {name.replace("_", ".", 2 if name.startswith("cpu_stat") else 1): text for name, text in texts.items()}
    return parse_level(version, "a", 0, files, "/x/a")


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_every_style_is_read_the_same(tmp_path: Path, style: Style) -> None:
    write_cgroups(tmp_path, style, {})
    files = CPUFiles(150000, 50000, 7000, 512, 59, (10, 4, 2500), 3000)
    write_cpu(tmp_path, style, {"pod/a": files})
    hierarchy = Hierarchy(Tree(str(tmp_path)), CPU)
    assert hierarchy.mount == cpu_mount(style)
    levels = read_levels(hierarchy, ["pod/a", "pod", "", "gone", "pod/gone/a"])
    assert list(levels) == ["pod/a", "pod", ""]
    found = levels["pod/a"]
    assert (found.quota_us, found.period_us, found.burst_us, found.cpus) == (150000, 50000, 7000, 3.0)
    assert (found.shares, found.weight) == ((512, None) if hierarchy.version == 1 else (None, 59))
    assert found.statistics == Statistics(10, 4, 2500, 0, 0, 3000)
    assert levels["pod"].has_quota
    assert (levels["pod"].quota_us, levels["pod"].cpus) == (None, None)
    # The topmost cgroup of v2 has no limit.
    assert levels[""].has_quota == (hierarchy.version == 1)
    assert {read.problems for read in levels.values()} == {()}
    assert len({read.identity for read in levels.values()}) == 3


def test_the_controller_is_where_it_is(tmp_path: Path) -> None:
    style = STYLES["hybrid-v2"]
    write_cgroups(tmp_path, style, {})
    write_cpu(tmp_path, style, {})
    tree = Tree(str(tmp_path))
    assert find_controller(tree) == (2, "/sys/fs/cgroup/unified")
    assert find_controller(tree, CPU) == (1, "/sys/fs/cgroup/cpu,cpuacct")
    # A tree that does not tell what is mounted.
    (tmp_path / "proc/mounts").unlink()
    assert find_controller(tree, CPU) == (1, "/sys/fs/cgroup/cpu,cpuacct")


def test_the_other_way_round(tmp_path: Path) -> None:
    """Cpusets in v1, and the cpu controller in v2 beside it."""
    usual = "/sys/fs/cgroup"
    mounts = ("cgroup %s/cpuset cgroup rw,cpuset 0 0" % usual, "cgroup2 %s/unified cgroup2 rw 0 0" % usual)
    write_cgroups(tmp_path, Style(1, usual + "/cpuset", mounts), {})
    unified = tmp_path / "sys/fs/cgroup/unified"
    (unified / "a").mkdir(parents=True)
    (unified / "cgroup.controllers").write_text("cpu io\n")
    (unified / "a/cpu.max").write_text("20000 100000\n")
    (unified / "a/cpu.stat").write_text("usage_usec 1\n")
    hierarchy = Hierarchy(Tree(str(tmp_path)), CPU)
    assert (hierarchy.version, hierarchy.mount) == (2, usual + "/unified")
    assert read_levels(hierarchy, hierarchy.children(""))["a"].cpus == 0.2
    assert Hierarchy(Tree(str(tmp_path))).version == 1


def test_no_controller(tmp_path: Path) -> None:
    write_cgroups(tmp_path, STYLES["hybrid"], {})
    with pytest.raises(NodeError, match="no cpu controller in either version"):
        Hierarchy(Tree(str(tmp_path)), CPU)


def test_old_kernels(tmp_path: Path) -> None:
    for version, style in ((1, STYLES["v1"]), (2, STYLES["v2"])):
        root = tmp_path / str(version)
        write_cgroups(root, style, {})
        write_cpu(root, style, {"a": CPUFiles(20000, burst=None, local=None, counted=(5, 1, 7))})
        found = read_levels(Hierarchy(Tree(str(root)), CPU), ["a"])["a"]
        assert (found.quota_us, found.burst_us, found.problems) == (20000, None, ())
        assert found.statistics == Statistics(5, 1, 7)


def test_a_cgroup_of_v2_without_the_controller(tmp_path: Path) -> None:
    write_cgroups(tmp_path, STYLES["v2"], {})
    top = write_cpu(tmp_path, STYLES["v2"], {"a": CPUFiles()})
    for name in ("cpu.max", "cpu.max.burst", "cpu.weight"):
        (top / "a" / name).unlink()
    (top / "a/cpu.stat").write_text("usage_usec 1\nuser_usec 1\nsystem_usec 0\n")
    found = read_levels(Hierarchy(Tree(str(tmp_path)), CPU), ["a"])["a"]
    assert not found.has_quota
    assert (found.cpus, found.weight, found.statistics, found.problems) == (None, None, None, ())


@pytest.mark.parametrize("version", [1, 2])
def test_a_cgroup_that_vanishes_while_it_is_read(tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    style = STYLES["v%d" % version]
    write_cgroups(tmp_path, style, {})
    top = write_cpu(tmp_path, style, {"a": CPUFiles(20000), "b": CPUFiles(20000)})
    hierarchy = Hierarchy(Tree(str(tmp_path)), CPU)
    real = os.open

    for number in range(len(FILES[version]) + 1):
        write_cpu(tmp_path, style, {"a": CPUFiles(20000)})
        left = number

        def vanish(path: str | Path, flags: int, *arguments: int, dir_fd: int | None = None) -> int:
            nonlocal left
            if dir_fd is not None or str(path).endswith("/a"):
                left -= 1
                if left == -1:
                    shutil.rmtree(top / "a")
            return real(path, flags, *arguments, dir_fd=dir_fd)

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", vanish)
            assert read_levels(hierarchy, ["a"]) == {}
    assert list(read_levels(hierarchy, ["a", "b"])) == ["b"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max",
        "max 0",
        "max 999",
        "max 1000001",
        "max -100000",
        "0 100000",
        "999 100000",
        "-1 100000",
        "100000 100000 100000",
        "1e5 100000",
        "%d 100000" % (MOST + 1),
        "9" * 5000 + " 100000",
        "<b>max</b> 100000",
        "\u0661000 100000",
    ],
)
def test_what_is_no_limit_of_v2(text: str) -> None:
    found = level(2, cpu_max=text)
    assert (found.has_quota, found.quota_us, found.cpus) == (True, None, None)
    (problem,) = found.problems
    assert problem.startswith("/x/a/cpu.max is ")
    assert len(problem) < 150


@pytest.mark.parametrize("text", ["", "0", "-2", "999", "max", "1.5", str(MOST + 1), "-1\n-1"])
def test_what_is_no_quota_of_v1(text: str) -> None:
    files = {"cpu.cfs_quota_us": text, "cpu.cfs_period_us": "100000\n", "cpu.shares": "1024\n"}
    found = parse_level(1, "a", 0, files, "/x/a")
    assert (found.quota_us, found.period_us, found.cpus, found.shares) == (None, 100000, None, 1024)
    assert len(found.problems) == 1


def test_a_quota_without_a_period_is_none() -> None:
    files = {"cpu.cfs_quota_us": "20000\n", "cpu.cfs_period_us": "0\n"}
    found = parse_level(1, "a", 0, files, "/x/a")
    assert (found.quota_us, found.cpus) == (None, None)
    assert found.problems == ("/x/a/cpu.cfs_period_us is '0\\n', which is no period",)


@pytest.mark.parametrize(
    "text",
    [
        STAT % "usec -5",
        STAT % "usec 1.5",
        STAT % ("usec %d" % (MOST + 1)),
        "nr_periods\n",
        "\0\0",
        "nr_periods 5 6\n",
        "nr_periods %s\n" % ("9" * 16000),
    ],
)
def test_what_are_no_counters(text: str) -> None:
    found = level(2, cpu_stat=text)
    assert found.statistics is None
    assert len(found.problems) == 1


def test_counters_that_are_missing() -> None:
    assert level(2, cpu_stat="nr_periods 5\nnr_throttled 1\n") == Level("a")
    assert level(2, cpu_stat=STAT % ("usec %d" % MOST)).statistics == Statistics(10, 4, MOST)
    # Nanoseconds in v1.
    assert level(1, cpu_stat=STAT % "time 12345678").statistics == Statistics(10, 4, 12345)
    assert level(1, cpu_stat=STAT % "usec 5").statistics is None


@given(
    st.sampled_from([1, 2]),
    st.lists(st.sampled_from(sorted({name for names in FILES.values() for name in names})), unique=True),
    st.data(),
)
def test_nothing_that_a_file_has_is_an_error(version: int, names: list[str], data: st.DataObject) -> None:
    texts = {name: data.draw(TEXTS) for name in names}
    found = parse_level(version, "a", 0, texts, "/x/a")
    for value in (found.quota_us, found.period_us, found.burst_us, found.shares, found.weight):
        assert value is None or 0 <= value <= MOST
    assert found.cpus is None or found.cpus > 0


def test_links_and_directories_in_the_place_of_files(tmp_path: Path) -> None:
    write_cgroups(tmp_path / "node", STYLES["v2"], {})
    top = write_cpu(tmp_path / "node", STYLES["v2"], {"a": CPUFiles(20000), "b/c": CPUFiles(30000)})
    (tmp_path / "secret").write_text("5000 100000\n")
    (top / "a/cpu.max").unlink()
    (top / "a/cpu.max").symlink_to(tmp_path / "secret")
    (top / "a/cpu.weight").unlink()
    (top / "a/cpu.weight").mkdir()
    (top / "a/cpu.max.burst").unlink()
    os.mkfifo(top / "a/cpu.max.burst")
    (top / "link").symlink_to(tmp_path)
    levels = read_levels(Hierarchy(Tree(str(tmp_path / "node")), CPU), ["a", "link"])
    assert list(levels) == ["a"]
    found = levels["a"]
    assert (found.quota_us, found.weight, found.burst_us) == (None, None, None)
    assert len(found.problems) == 3
    assert found.statistics is not None


def test_what_takes_more_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cgroups(tmp_path, STYLES["v2"], {})
    write_cpu(tmp_path, STYLES["v2"], {"a": CPUFiles()})
    hierarchy = Hierarchy(Tree(str(tmp_path)), CPU)
    real = os.open

    def refuse(path: str, flags: int, *arguments: int, dir_fd: int | None = None) -> int:
        # Root may read every file.
        if path == "cpu.stat":
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *arguments, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NodeError) as caught:
        read_levels(hierarchy, ["a"])
    assert caught.value.kind == "permission"
    assert caught.value.where.endswith("/a/cpu.stat")
