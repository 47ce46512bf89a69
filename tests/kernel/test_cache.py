# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Caches are divided on platforms of all kinds, by the writes that the kernel takes, and put back to the byte.

The kernel's part is played by a model of it, mounted as a file system: see tests/machines/resctrl/.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cache.plan import OF_DEVICES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cache.read import read_resctrl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cache.resctrl import (
    EXCLUSIVE_GROUP,
    OUR_GROUPS,
    ROOT,
    SHARED_GROUP,
    Found,
    is_one_run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cache.write import locked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, count_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import (
    CPUManagerError,
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.follow import follow
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.journal import Terms, wish_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.partition import absent, present
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.cache.report import cache_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.reconcile import program
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.chance import Case, case
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted, mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    BOOT_ID,
    JOURNAL,
    divide,
    give,
    node_at,
    take_back,
    write_node,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import write as write_file
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS, record
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.shapes import BandwidthShape, CacheShape, Shape

CASES = int(os.environ.get("CACHE", "8"))
SEED = int(os.environ.get("SEED", "1"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    yield from mounted(tmp_path_factory.mktemp("node"))


def read(model: Mounted) -> Found:
    found = read_resctrl(Tree(str(model.root)))
    assert found is not None
    return found


def begin(model: Mounted, given: Case) -> None:
    model.load(given.shape)
    for path, text in given.others:
        place = model.place / path.lstrip("/")
        if text == "mkdir":
            place.mkdir()
        else:
            write(place, text)
    write_node(model.root, given.shape)
    model.writes()


def write(place: Path, text: str) -> None:
    descriptor = os.open(place, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# --- laws --------------------------------------------------------------------------------------------------


def check_laws(found: Found, shape: CacheShape, exclusive: set[int], wish: dict[str, object], before: Found) -> None:
    ours = {name: found.groups[name] for name in OUR_GROUPS if name in found.groups}
    assert set(ours) == {EXCLUSIVE_GROUP} | (
        {SHARED_GROUP} if wish.keys() & {"shared_share", "shared_bandwidth"} else set()
    )
    for number in shape.ids:
        own, rest = (found.groups[name].mask(shape.name, number) for name in (EXCLUSIVE_GROUP, ROOT))
        shared = ours[SHARED_GROUP].mask(shape.name, number) if SHARED_GROUP in ours else rest
        for mask in (own, rest, shared):
            assert count_bits(mask) >= shape.least
            assert mask <= shape.full
            assert shape.sparse or is_one_run(mask)
        assert not own & (rest | shared), "the exclusive ways are nobody else's of ours"
        assert "shared_share" not in wish or not shared & rest
        assert own | rest | shared <= before.root.mask(shape.name, number)
        for group in found.foreign:
            assert group.mode == "shareable" or not group.mask(shape.name, number) & own
    for group in before.foreign:
        assert found.groups[group.name]._replace(counted={}) == group._replace(counted={}), "others are left alone"
    theirs = {cpu for group in before.foreign for cpu in group.cpus}
    cpus = set(ours[EXCLUSIVE_GROUP].cpus)
    if not found.bandwidths:
        assert cpus == exclusive - theirs
    else:
        half = len(found_cpus(found)) // 2 if shape.name != "L2" and len(found_cpus(found)) % 2 == 0 else 0
        order = sorted(found_cpus(found))
        for place in range(half):
            pair = {order[place], order[place + half]}
            classes = {name for name, group in ours.items() if pair & set(group.cpus)}
            assert not classes or (pair <= set(ours[classes.pop()].cpus) and not classes), "siblings are of one class"


def found_cpus(found: Found) -> set[int]:
    return {cpu for group in found.groups.values() for cpu in group.cpus}


def test_random_platforms(model: Mounted) -> None:
    """Each wish is refused before the first write, or the kernel takes all writes; and all is undone to the byte."""
    taken = refused = 0
    for seed in range(SEED, SEED + CASES):
        given = case(seed)
        begin(model, given)
        before, untouched = model.state(), read(model)
        for (exclusive, shared), wish in zip(given.pools, given.wishes):
            give(model.root, exclusive, shared)
            state = model.state()
            try:
                planned = divide(model.root, act=False, **wish)
            except (InputError, RefusedError) as error:
                refused += 1
                with pytest.raises(type(error)):
                    divide(model.root, **wish)
                assert (model.state(), model.writes()) == (state, []), (seed, wish)
                continue
            answer = divide(model.root, **wish)
            assert (answer.steps, answer.before, answer.after) == (planned.steps, planned.before, planned.after)
            taken += 1
            found = read(model)
            check_laws(found, given.shape.caches[0], exclusive, wish, untouched)
            own = found.groups[EXCLUSIVE_GROUP].schemata[found.caches[0].name]
            noted = {getattr(note, "check", "") for note in answer.notes}
            assert not any(mask & found.caches[0].io_ways for mask in own.values()) or OF_DEVICES in noted, (seed, wish)
            assert len(model.writes()) == len(answer.steps)
            assert not divide(model.root, **wish).changed, (seed, wish)
            assert not model.writes(), (seed, wish)
            assert follow(node_at(model.root)) == []
        take_back(model.root)
        assert model.state() == before, seed
        model.writes()
        assert not take_back(model.root).changed
        assert not model.writes()
    print("%d platforms: %d wishes taken, %d refused" % (CASES, taken, refused))
    assert taken > CASES // 4


# --- what is refused before the first write ----------------------------------------------------------------


def divided(model: Mounted, name: str, exclusive: str = "1,9", **wish: Any) -> None:
    """A platform whose exclusive CPUs have a part of the caches."""
    begin(model, Case(PLATFORMS[name], [], [], []))
    own = set(CPUSet.parse(exclusive))
    give(model.root, own, set(PLATFORMS[name].online) - own)
    if wish:
        divide(model.root, **wish)
        model.writes()


REFUSALS: dict[str, tuple[str, dict[str, Any], str]] = {
    "nothing": ("xeon-l3-mba-mbm", {"exclusive_share": "0%"}, "nothing would be set apart"),
    "all": ("xeon-l3-mba-mbm", {"exclusive_share": "100%"}, "nothing would be left for others"),
    "more ways than there are": ("xeon-l3-mba-mbm", {"exclusive_share": 11}, "give 1 to 10"),
    "no ways": ("xeon-l3-mba-mbm", {"exclusive_share": 0}, "0 ways"),
    "no share": ("xeon-l3-mba-mbm", {"exclusive_share": "a lot"}, "is no share of a cache"),
    "truth value": ("xeon-l3-mba-mbm", {"exclusive_share": True}, "is no share of a cache"),
    "id that is not there": ("xeon-l3-mba-mbm", {"exclusive_share": {"7": 2, "all": 1}}, "has no L3 cache 7"),
    "id that is left out": ("xeon-l3-mba-mbm", {"exclusive_share": {"0": 2}}, "says nothing of the L3 caches 1"),
    "no ids": ("xeon-l3-mba-mbm", {"exclusive_share": {}}, "names no cache"),
    "what is no id": ("xeon-l3-mba-mbm", {"exclusive_share": {"-1": 2}}, "is no id of a cache"),
    "code and data apart": ("xeon-l3-cdp", {"exclusive_share": "50%"}, "mounted with cdp"),
    "two levels, exclusive": ("xeon-l3-l2", {"exclusive_share": "50%", "mode": "exclusive"}, "also divides L2"),
    "ways of devices, exclusive": ("xeon-l3-mba-mbm", {"exclusive_share": 10, "mode": "exclusive"}, "devices may fill"),
    "too much together": ("xeon-l3-only", {"exclusive_share": "60%", "shared_share": "40%"}, "leave nothing"),
    "bandwidth that is not there": ("xeon-l3-only", {"exclusive_share": 2, "shared_bandwidth": 50}, "cannot limit"),
    "too little bandwidth": ("xeon-l3-mba-mbm", {"exclusive_share": 2, "shared_bandwidth": 5}, "give 10 to 100 %"),
    "too much bandwidth": ("epyc-16-l3-smba", {"exclusive_share": 2, "shared_bandwidth": 4096}, "eighths of GB/s"),
    "a class too many": ("xeon-haswell", {"exclusive_share": 4, "shared_share": 4}, "4 classes of service"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_before_the_first_write(model: Mounted, name: str) -> None:
    platform, wish, text = REFUSALS[name]
    divided(model, platform)
    if name == "a class too many":
        for group in ("a", "b"):
            (model.place / group).mkdir()
        model.writes()
    before = model.state()
    for act in (False, True):
        with pytest.raises((InputError, RefusedError), match=re.escape(text)):
            divide(model.root, act=act, **wish)
    assert (model.state(), model.writes()) == (before, [])
    assert not (model.root / JOURNAL).exists()


def test_processes_in_a_group_of_ours_are_refused(model: Mounted) -> None:
    divided(model, "xeon-l3-mba-mbm", exclusive_share=4)
    write(model.place / EXCLUSIVE_GROUP / "tasks", "%d\n" % os.getpid())
    model.writes()
    works: list[Callable[[], Any]] = [lambda: divide(model.root, exclusive_share=5), lambda: take_back(model.root)]
    for work in works:
        with pytest.raises(RefusedError, match="has put 1 processes into it"):
            work()
    assert model.writes() == []


def test_saved_files_are_not_written(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    write_node(tmp_path, shape)
    record(tmp_path, shape)
    give(tmp_path, {1, 9}, set(shape.online) - {1, 9})
    assert [str(step) for step in divide(tmp_path, act=False, exclusive_share=4).steps] == [
        "the root group, schemata: L3:0=7f0;1=7f0",
        "make the group kubenode.exclusive",
        "kubenode.exclusive, schemata: L3:0=f;1=f",
        "kubenode.exclusive, cpus_list: 1,9",
    ]
    with pytest.raises(RefusedError, match="saved files"):
        divide(tmp_path, exclusive_share=4)


def test_resctrl_that_is_not_mounted(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    write_node(tmp_path, shape)
    give(tmp_path, {1}, {0})
    with pytest.raises(NodeError, match="have no resctrl"):
        divide(tmp_path, exclusive_share=4)
    (tmp_path / "sys/fs/resctrl").mkdir(parents=True)
    with pytest.raises(NodeError, match="is not mounted there"):
        divide(tmp_path, exclusive_share=4)
    assert not take_back(tmp_path).changed


# --- how it goes on ----------------------------------------------------------------------------------------


def test_one_write_when_the_exclusive_cpus_change(model: Mounted) -> None:
    divided(model, "xeon-l3-only", exclusive_share="60%")
    assert follow(node_at(model.root)) == []
    assert model.writes() == []
    give(model.root, {1, 2, 9, 10}, {0})
    assert follow(node_at(model.root)) == ["cache: kubenode.exclusive, cpus_list: 1-2,9-10"]
    assert model.writes() == [["write", "/kubenode.exclusive/cpus_list", "1-2,9-10\n"]]
    assert follow(node_at(model.root)) == []


def test_proportional_masks_follow_and_are_put_back(model: Mounted) -> None:
    divided(model, "xeon-l3-only")
    before = model.state()
    divide(model.root, exclusive_share="proportional")
    own = read(model).groups[EXCLUSIVE_GROUP]
    # Two of the eight CPUs of cache 0, none of cache 1.
    assert (own.mask("L3", 0), own.mask("L3", 1)) == (0x1F, 0x1)
    give(model.root, {1, 2, 4, 9, 10}, {0})
    assert len(follow(node_at(model.root))) == 3
    assert read(model).groups[EXCLUSIVE_GROUP].mask("L3", 0) == 0x3FF
    take_back(model.root)
    assert model.state() == before


def test_after_a_boot_the_groups_come_back(model: Mounted) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    divided(model, "xeon-l3-mba-mbm", exclusive_share=4, shared_bandwidth=50)
    wanted = model.state()
    model.load(shape)
    untouched = model.state()
    (model.root / BOOT_ID).write_text("another\n")
    follow(node_at(model.root))
    assert model.state() == wanted
    take_back(model.root)
    assert model.state() == untouched


def test_the_program_of_reconcile_lets_the_groups_follow(model: Mounted, capsys: pytest.CaptureFixture[str]) -> None:
    divided(model, "xeon-l3-only", exclusive_share=4)
    give(model.root, {2, 10}, {0})
    settings = model.root / "settings.json"
    settings.write_text(json.dumps({"root": str(model.root), "use_runtime": False}))
    program.main([str(settings)])
    assert "cache: kubenode.exclusive, cpus_list: 2,10\n" in capsys.readouterr().out
    assert program.main([str(settings)]) == 0
    assert len(model.writes()) == 1
    (model.root / "proc/mounts").write_text("")
    assert program.main([str(settings)]) == 1
    assert "resctrl is not mounted there" in capsys.readouterr().out


def test_what_the_kernel_says_is_told_and_all_is_put_back(model: Mounted) -> None:
    """A refusal that the plan cannot foresee: all numbers that count groups are used up."""
    shape = replace(PLATFORMS["xeon-l3-only"], rmids=2)
    begin(model, Case(shape, [("/db", "mkdir")], [], []))
    give(model.root, {1}, {0})
    before = model.state()
    with pytest.raises(NodeError, match=r"refuses this \(No space left on device\) and says: Out of RMIDs: make the"):
        divide(model.root, exclusive_share=4)
    assert model.state() == before
    assert not (model.root / JOURNAL).exists()


def test_the_lock_of_somebody_else_is_respected(model: Mounted) -> None:
    divided(model, "xeon-l3-only")
    directory = os.open(model.place, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_SH)
        with locked(Tree(str(model.root)), exclusive=False, patience=0):
            pass
        held = pytest.raises(NodeError, match=r"a different process has held its lock \(flock\) for 0 seconds")
        with held, locked(Tree(str(model.root)), exclusive=True, patience=0):
            pass
    finally:
        os.close(directory)


def test_a_core_with_an_exclusive_cpu_is_in_one_group(model: Mounted) -> None:
    divided(model, "xeon-l3-mba-mbm", exclusive="1", exclusive_share=4)
    assert str(read(model).groups[EXCLUSIVE_GROUP].cpus) == "1,9"
    (note,) = cache_report(node_at(model.root), 0)["notes"]
    assert "CPUs 9 are in the exclusive group, too, as siblings" in note


# --- the model, against the kernel's documentation ---------------------------------------------------------


def refused(place: Path, text: str) -> str:
    """What last_cmd_status says after a write."""
    with pytest.raises(OSError, match="Invalid argument"):
        write(place, text)
    return (place.parent / "info/last_cmd_status").read_text()


def test_documented_examples(model: Mounted) -> None:
    """The examples of Documentation/filesystems/resctrl.rst: two groups with halves, and one with an exclusive mode."""
    ids = {0: [0, 1, 2, 3], 1: [4, 5, 6, 7]}
    model.load(Shape(list(range(8)), [CacheShape("L3", ids, bits=4)], [BandwidthShape("MB", [0, 1])], rmids=16))
    root = model.place
    for name in ("p0", "p1"):
        (root / name).mkdir()
    write(root / "p0/schemata", "L3:0=3;1=c\nMB:0=50;1=50\n")
    write(root / "p1/schemata", "L3:0=3;1=3\nMB:0=50;1=50\n")
    assert (root / "p0/schemata").read_text() == "L3:0=3;1=c\nMB:0=50;1=50\n"
    # What is left out stays, and bandwidth is rounded up to its step.
    write(root / "p1/schemata", "MB:1=33\n")
    assert (root / "p1/schemata").read_text() == "L3:0=3;1=3\nMB:0=50;1=40\n"
    assert refused(root / "schemata", "L3:0=5\n") == "The mask 5 has non-consecutive 1-bits\n"
    assert refused(root / "schemata", "L3:0=10\n") == "Mask out of range\n"
    assert refused(root / "schemata", "L3:0=0\n") == "Mask out of range\n"
    assert refused(root / "schemata", "L3:0=f;0=f\n") == "Duplicate domain 0\n"
    assert refused(root / "schemata", "L4:0=f\n") == "Unknown or unsupported resource name 'L4'\n"
    assert refused(root / "schemata", "MB:0=5\n") == "MB value 5 out of range [10,100]\n"
    assert refused(root / "mode", "exclusive\n") == "Schemata overlaps\n"
    assert refused(root / "cpus_list", "0-3\n") == "Can't drop CPUs from default group\n"
    assert refused(root / "cpus_list", "0-8\n") == "Can only assign online CPUs\n"
    # CPUs are in one group: a second one takes them, and what a group gives up is the root's.
    write(root / "p0/cpus_list", "4-7\n")
    write(root / "p1/cpus_list", "6-7\n")
    write(root / "p1/cpus_list", "7\n")
    assert [(root / name / "cpus_list").read_text() for name in (".", "p0", "p1")] == ["0-3,6\n", "4-5\n", "7\n"]
    # An exclusive group keeps its ways, also from a new one.
    write(root / "schemata", "L3:0=c;1=c\n")
    write(root / "p1/schemata", "L3:0=c\n")
    write(root / "p0/schemata", "L3:1=3\n")
    write(root / "p1/schemata", "L3:1=c\n")
    write(root / "p0/mode", "exclusive\n")
    assert refused(root / "schemata", "L3:0=f\n") == "Overlaps with exclusive group\n"
    (root / "p2").mkdir()
    assert (root / "p2/schemata").read_text() == "L3:0=c;1=c\nMB:0=100;1=100\n"
    assert (root / "info/L3/bit_usage").read_text() == "0=SSEE;1=SSEE\n"
    (root / "p1").rmdir()
    assert (root / "cpus_list").read_text() == "0-3,6-7\n"
    with pytest.raises(PermissionError):
        (root / "info").rmdir()


def test_the_model_looks_as_a_mounted_resctrl_does(model: Mounted) -> None:
    """Sizes, rights and names: nothing but the mount shows which one it is."""
    divided(model, "xeon-l3-mba-mbm")
    place = model.place
    assert [(place / name).stat().st_size for name in ("schemata", "cpus_list", "info/last_cmd_status")] == [0, 0, 0]
    assert (place / "schemata").read_text() == "L3:0=7ff;1=7ff\nMB:0= 100;1= 100\n"
    with pytest.raises(PermissionError):
        (place / "file").write_text("x")
    with pytest.raises(PermissionError):
        (place / "schemata").unlink()


@pytest.mark.skipif(not Path("/sys/fs/resctrl").exists(), reason="this machine has no resctrl")
def test_the_real_one_is_divided_and_put_back() -> None:
    """On the machine itself, where it is mounted and nobody has a group: the same as on the model."""
    found = read_resctrl(Tree("/"))
    if found is None or found.foreign or not found.caches or any(cache.has_cdp for cache in found.caches):
        pytest.skip("resctrl is not mounted here, or somebody uses it")
    names = [Path("/sys/fs/resctrl") / name for name in ("schemata", "cpus_list", "mode")]
    before = [path.read_text() for path in names]
    node = node_at(Path("/"))
    if node.installation is not None:
        pytest.skip("this machine has a kubelet")
    try:
        present(node, wish_of({"exclusive_share": "50%"}), Terms(), True)
        assert not present(node, wish_of({"exclusive_share": "50%"}), Terms(), True).steps
    finally:
        absent(node, True)
    assert [path.read_text() for path in names] == before


# --- recorded trees of platforms ---------------------------------------------------------------------------

# name: level, ways, least, io ways, sparse, ids, bandwidths, monitoring, classes
EXPECTED = {
    "xeon-l3-mba-mbm": ("L3", 11, 1, "600", False, ["0", "1"], ["MB"], 192, 8),
    "xeon-l3-only": ("L3", 20, 1, "c0000", False, ["0", "1"], [], 128, 16),
    "xeon-haswell": ("L3", 20, 2, "0", False, ["0", "1"], [], 64, 4),
    "xeon-l3-cdp": ("L3CODE", 20, 1, "c0000", False, ["0", "1"], [], 128, 8),
    "xeon-snc2-sparse": ("L3", 15, 1, "6000", True, ["0", "1"], ["MB"], 320, 15),
    "xeon-mbps": ("L3", 12, 1, "c00", False, ["0", "1"], ["MB"], 192, 8),
    "atom-l2": ("L2", 16, 1, "0", False, ["0", "1"], [], None, 16),
    "xeon-l3-l2": ("L3", 15, 1, "0", False, ["0", "1"], ["MB"], 320, 8),
    "epyc-16-l3-smba": ("L3", 16, 1, "0", True, [str(n) for n in range(16)], ["MB", "SMBA"], 256, 16),
    "ids-with-gaps": ("L3", 12, 1, "0", False, ["0", "2", "5", "7"], [], 256, 16),
}


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_recorded_tree_is_read_right(name: str, tmp_path: Path) -> None:
    shape = PLATFORMS[name]
    write_node(tmp_path, shape)
    record(tmp_path, shape)
    give(tmp_path, {1}, {0})
    answer = cache_report(node_at(tmp_path), 0)
    (level, ways, least, io_ways, sparse, ids, bandwidths, rmids, closids) = EXPECTED[name]
    cache = answer["caches"][0]
    assert (cache["name"], cache["ways"], cache["least_ways"], cache["io_ways"]) == (level, ways, least, io_ways)
    assert (cache["sparse"], list(cache["ids"]), cache["cdp"]) == (sparse, ids, name == "xeon-l3-cdp")
    assert {number: on_id["cpus"] for number, on_id in cache["ids"].items()} == {
        str(number): str(CPUSet(cpus)) for number, cpus in shape.caches[0].ids.items()
    }
    assert [limit["name"] for limit in answer["bandwidths"]] == bandwidths
    assert (answer["monitoring"] or {"rmids": None})["rmids"] == rmids
    assert answer["closids"] == {"total": closids, "used": 1}
    (root,) = answer["groups"]
    assert root["cpus"] == str(CPUSet(shape.online))
    assert set(root["schemata"]) == {n for c in shape.caches for n in c.names} | set(bandwidths)
    assert answer["notes"] == []
    assert answer["findings"] == []
    if name == "xeon-snc2-sparse":
        assert answer["monitoring"]["numa_nodes_per_cache"] == 2
    if name == "epyc-16-l3-smba":
        assert root["schemata"]["MB"]["15"] == "2048"


@pytest.mark.parametrize("name", [name for name in PLATFORMS if name != "xeon-l3-cdp"])
def test_a_platform_is_divided_and_put_back(model: Mounted, name: str) -> None:
    divided(model, name, exclusive="1")
    before = model.state()
    answer = divide(model.root, exclusive_share="50%")
    assert answer.changed
    assert cache_report(node_at(model.root), 0)["findings"] == []
    take_back(model.root)
    assert model.state() == before


# --- what is counted, and who is there ---------------------------------------------------------------------


def test_bandwidth_is_measured_over_a_time(model: Mounted) -> None:
    divided(model, "xeon-l3-mba-mbm", exclusive_share=4)
    model.ask(counted=[[EXCLUSIVE_GROUP, 0, "mbm_total_bytes", 1000], [EXCLUSIVE_GROUP, 0, "llc_occupancy", 4096]])
    model.ask(counted=[[EXCLUSIVE_GROUP, 1, "mbm_total_bytes", "Unavailable"]])

    def wait(seconds: float) -> None:
        time.sleep(0.2)
        model.ask(counted=[[EXCLUSIVE_GROUP, 0, "mbm_total_bytes", 1000 + 10**9]])

    answer = cache_report(node_at(model.root), 1, wait)
    (group,) = (group for group in answer["groups"] if group["name"] == EXCLUSIVE_GROUP)
    counted = group["counted"]
    assert (counted["0"]["occupancy"], counted["1"]["total"], answer["seconds"]) == (4096, None, 1)
    assert 10**9 < counted["0"]["total_per_second"] < 5.1 * 10**9
    assert counted["1"]["total_per_second"] is None


def test_a_container_in_a_class_of_its_runtime_is_seen_and_not_moved(model: Mounted) -> None:
    divided(model, "xeon-l3-only", exclusive_share=4)
    identity = "4f0c9d1e2b3a5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd"
    (model.place / "gold").mkdir()
    model.ask(tasks={"gold": [77]})
    pod = "8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a"
    place = "kubepods.slice/kubepods-pod%s.slice/cri-containerd-%s.scope" % (pod.replace("-", "_"), identity)
    write_file(model.root / "proc/77/cgroup", "0::/%s\n" % place)
    write_file(model.root / ("var/log/containers/db-0_shop_server-%s.log" % identity), "")
    answer = cache_report(node_at(model.root), 0)
    assert answer["containers"] == [{"group": "gold", "id": identity, "pod": "shop/db-0", "container": "server"}]
    assert "cache-class-by-runtime" in answer["note_checks"]
    model.writes()
    assert not divide(model.root, exclusive_share=4).changed
    assert model.writes() == []


# --- hostile files -----------------------------------------------------------------------------------------

PLACES = (
    "schemata",
    "cpus_list",
    "mode",
    "info/L3/cbm_mask",
    "info/L3/num_closids",
    "info/L3/shareable_bits",
    "info/L3/bit_usage",
    "info/MB/min_bandwidth",
    "info/L3_MON/mon_features",
    "mon_data/mon_L3_00/llc_occupancy",
)
HOSTILE = (
    b"",
    b"\0" * 10,
    b"\xff\xfe",
    b"L3:0=" + b"f" * 5000 + b"\n",
    b"L3:0=7ff;0=1\n",
    b"-1\n",
    b"9" * 400,
    b"L3:0\n",
)


def test_damaged_files_are_a_note_and_no_plan(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    write_node(tmp_path, shape)
    record(tmp_path, shape)
    give(tmp_path, {1}, {0})
    for name in PLACES:
        place = tmp_path / "sys/fs/resctrl" / name
        good = place.read_bytes()
        for content in HOSTILE:
            place.write_bytes(content)
            answer = cache_report(node_at(tmp_path), 0)
            assert json.loads(json.dumps(answer)) == answer
            with suppress(CPUManagerError):
                divide(tmp_path, act=False, exclusive_share=4)
        place.write_bytes(good)
    for content in (
        b"",
        b"[]",
        b"{",
        b'{"format": 1}',
        b'{"format": 1, "wish": [], "boot_id": 1}',
        b"\xff",
        b"[" * 100000,
    ):
        write_file(tmp_path / JOURNAL, "")
        (tmp_path / JOURNAL).write_bytes(content)
        assert "cache-unmeasured" in cache_report(node_at(tmp_path), 0)["note_checks"]
        with pytest.raises(NodeError, match="is damaged"):
            divide(tmp_path, act=False, exclusive_share=4)


def test_links_do_not_lead_out_of_the_tree(tmp_path: Path) -> None:
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    root = tmp_path / "root"
    write_node(root, shape)
    record(root, shape)
    give(root, {1}, {0})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "schemata").write_text("L3:0=7ff\n")
    (root / "sys/fs/resctrl/schemata").unlink()
    (root / "sys/fs/resctrl/schemata").symlink_to(outside / "schemata")
    answer = cache_report(node_at(root), 0)
    assert answer["groups"] == []
    assert "leads out of" in answer["notes"][0]
