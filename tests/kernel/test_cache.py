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
import time
from dataclasses import replace

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_info import cache_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import follow
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.resctrl import (
    EXCLUSIVE_GROUP,
    OUR_GROUPS,
    ROOT,
    SHARED_GROUP,
    Resctrl,
    is_one_run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.ways import OF_DEVICES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.write import locked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs import reconcile_program as program
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import count_bits
from ansible_collections.kubenode.cpu_manager.tests.kernel.caches import begin, divided, read
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.chance import Case, case
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    BOOT_ID,
    JOURNAL,
    divide,
    give,
    node_at,
    take_back,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import write as write_file
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.shapes import CacheShape
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

CASES = how_many("CACHE", 8, 100)
SEED = how_many("SEED", 1, 1)


# --- laws --------------------------------------------------------------------------------------------------


def check_laws(
    found: Resctrl, shape: CacheShape, exclusive: set[int], wish: dict[str, object], before: Resctrl
) -> None:
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


def found_cpus(found: Resctrl) -> set[int]:
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
