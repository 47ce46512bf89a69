# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/container_writes.py."""

from __future__ import annotations

from typing import Any, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPUS, Cgroup, parent_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writes import Write
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import KEPT, Running, decide
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_writes import (
    Listed,
    ReconcileRules,
    after_writes,
    allocate,
    plan_container,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

ONLINE = cpus("0-7")
MEMS = cpus("0")
# --- one container's writes ---------------------------------------------------------------------------


def cgroups(version: int, sets: Mapping[str, str], partition: str = "") -> dict[str, Cgroup]:
    """Return cgroups with these CPUs, which they have processes in, and what the kernel makes of them."""
    found = {"": Cgroup("", ONLINE if version == 1 else None, ONLINE, MEMS, MEMS, True, True)}
    for path in sorted(sets):
        own, above = cpus(sets[path]), found[parent_of(path)].effective_cpus
        effective = own if version == 1 else own & above or above
        found[path] = Cgroup(path, own, effective, MEMS, MEMS, True, True, partition=partition)
    return found


TREE = {"k": "0-3", "k/p": "0-1", "k/p/c": "0"}


def running(path: str = "k/p/c", top: str = "k", inner: str = "") -> Running:
    return Running("uid", "", "app", "id", path, path + inner, top, CPUSet())


@pytest.mark.parametrize(
    ("version", "sets", "wanted", "expected"),
    [
        (1, TREE, "1", ["k/p/c 1"]),
        (1, TREE, "1-2", ["k/p 0-2", "k/p/c 1-2"]),
        (1, TREE, "5", ["k 0-3,5", "k/p 0-1,5", "k/p/c 5"]),
        (1, {**TREE, "k/p/c": "0-1"}, "1", ["k/p/c 1"]),
        (2, TREE, "5", ["k 0-3,5", "k/p 0-1,5", "k/p/c 5"]),
        (2, {**TREE, "k/p": ""}, "5", ["k 0-3,5", "k/p/c 5"]),  # an empty set cuts nothing
        (2, {**TREE, "k": ""}, "5", ["k/p 0-1,5", "k/p/c 5"]),
        (2, {**TREE, "k": "0-3,9"}, "5", ["k 0-3,5,9", "k/p 0-1,5", "k/p/c 5"]),  # CPU 9 is offline
        (2, {**TREE, "k/p/c": "5"}, "5", ["k 0-3,5", "k/p 0-1,5"]),
        (2, {**TREE, "k/p": "6"}, "1", ["k/p 0-3,6", "k/p/c 1"]),  # others below keep what comes through
    ],
)
def test_what_is_above_is_widened_first(
    version: int, sets: Mapping[str, str], wanted: str, expected: list[str]
) -> None:
    plan = plan_container(version, cgroups(version, sets), running(), cpus(wanted), ONLINE, MEMS)
    assert ["%s %s" % (write.path, write.new) for write in plan.writes] == expected


@pytest.mark.parametrize(
    ("version", "inner", "expected"),
    [
        (1, "0", ["k/p/c 0-1", "k/p/c/container 0-1"]),
        (2, "0", ["k/p/c 0-1", "k/p/c/container 0-1"]),
        (2, "", ["k/p/c 0-1"]),
    ],
)
def test_the_cgroup_inside_a_container(version: int, inner: str, expected: list[str]) -> None:
    found = cgroups(version, {**TREE, "k/p/c/container": inner})
    plan = plan_container(version, found, running(inner="/container"), cpus("0-1"), ONLINE, MEMS)
    assert ["%s %s" % (write.path, write.new) for write in plan.writes] == expected


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("top", "wanted", "message"),
    [
        ("k/p", "5", "k: has no CPUs 5, and is not the kubelet's to widen"),
        ("", "1-2", "k/p: has no CPUs 2"),
        ("k", "6-9", "/: has no CPUs 8-9"),
    ],
)
def test_what_is_above_the_kubelets_cgroups_stays(version: int, top: str, wanted: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        plan_container(version, cgroups(version, TREE), running(top=top), cpus(wanted), ONLINE, MEMS)


def test_pods_in_a_partition_have_its_cpus() -> None:
    """The cgroup above has them no more."""
    found = cgroups(2, {**TREE, "k/p": "0"})
    found["k"] = found["k"]._replace(partition="root")
    found[""] = found[""]._replace(effective_cpus=cpus("4-7"))
    plan = plan_container(2, found, running(), cpus("1-2"), ONLINE, MEMS)
    assert ["%s %s" % (write.path, write.new) for write in plan.writes] == ["k/p 0-2", "k/p/c 1-2"]
    with pytest.raises(RefusedError, match=r"^k: has no CPUs 4, and is not the kubelet's to widen; widen it"):
        plan_container(2, found, running(), cpus("1-4"), ONLINE, MEMS)
    # One that the kernel refused is none.
    found["k"] = found["k"]._replace(partition="root invalid (Cpu list in cpuset.cpus not exclusive)")
    with pytest.raises(RefusedError, match=r"^/: has no CPUs 1-2"):
        plan_container(2, found, running(), cpus("1-2"), ONLINE, MEMS)


def test_partitions_are_named_that_have_what_is_missing() -> None:
    found = cgroups(2, {**TREE, "latency": "5,7", "other": "6", "ended": "7", "late": "7"})
    shares = {"latency": "isolated", "other": "root", "ended": "root invalid (Cpu list in cpuset.cpus not exclusive)"}
    for path, partition in shares.items():
        found[path] = found[path]._replace(partition=partition)
    found["ended"] = found["ended"]._replace(effective_cpus=cpus("0-4"))
    found[""] = found[""]._replace(effective_cpus=cpus("0-4"))
    message = r"^/: has no CPUs 5-7, and is not the kubelet's.*; partitions have them: latency \(5,7\), other \(6\);"
    with pytest.raises(RefusedError, match=message):
        plan_container(2, found, running(), cpus("4-7"), ONLINE, MEMS)


def test_a_partition_beside_any_cgroup_above_is_a_reason() -> None:
    """No cgroup outside of it can have its CPUs, whatever it holds itself."""
    for path in ("k/lat", "k/p/lat"):
        found = cgroups(2, {**TREE, "k": "0-5", "k/p": "0-5", path: "4-5"})
        found[path] = found[path]._replace(partition="isolated")
        with pytest.raises(
            RefusedError, match=r"^k/p/c: cannot have all of 1-4; partitions have them: %s \(4\)$" % path
        ):
            plan_container(2, found, running(), cpus("1-4"), ONLINE, MEMS)
        assert plan_container(2, found, running(), cpus("1-3"), ONLINE, MEMS).writes


def test_a_child_that_has_more_is_a_reason() -> None:
    found = cgroups(1, {**TREE, "k/p/c": "0-1", "k/p/c/nested": "0"})
    with pytest.raises(RefusedError, match="its child k/p/c/nested has 0"):
        plan_container(1, found, running(), cpus("1"), ONLINE, MEMS)


def test_what_the_kernel_does_not_give_is_not_written_again() -> None:
    found = cgroups(2, {**TREE, "k/p/c": "1"})
    found["k/p/c"] = found["k/p/c"]._replace(effective_cpus=cpus("0"))  # such as for the sake of a partition
    with pytest.raises(RefusedError, match="is 1 already, and the kernel makes only 0 of it effective"):
        plan_container(2, found, running(), cpus("1"), ONLINE, MEMS)


@pytest.mark.parametrize(
    ("version", "effective"),
    [
        (1, {"k": "0-5", "k/p": "0-1", "k/p/c": "0", "k/q": "", "kk": "0-3"}),
        # What has no exclusive CPUs, or none of those above, has all of them.
        (2, {"k": "0-5", "k/p": "0-1", "k/p/c": "0", "k/q": "0-5", "kk": "0-3"}),
    ],
)
def test_what_writes_make_effective_below(version: int, effective: Mapping[str, str]) -> None:
    found = cgroups(version, {**TREE, "k/q": "", "kk": "0-3"})
    found["k/q"] = found["k/q"]._replace(cpus=CPUSet() if version == 1 else None)
    after = after_writes(version, found, [Write("k", CPUS, cpus("0-3"), cpus("0-5"))])
    assert {path: str(after[path].effective_cpus) for path in effective} == effective
    assert after["k"].cpus == cpus("0-5")
    assert found["k"].cpus == cpus("0-3")


subsets = st.frozensets(st.integers(0, 7)).map(CPUSet)
some = st.frozensets(st.integers(0, 7), min_size=1).map(CPUSet)


@given(st.data(), st.sampled_from([1, 2]))
def test_planned_writes_give_every_container_what_it_is_to_have(data: st.DataObject, version: int) -> None:
    """And then there is nothing left to plan."""
    sets: dict[str, Any] = {}
    tops = ("k", "k/q", "k/p1", "k/q/p2", "k/p1/a", "k/p1/b", "k/q/p2/c")
    for path in tops:
        own = data.draw(some if version == 1 else subsets)
        sets[path] = str(own & cpus(sets.get(parent_of(path), "0-7")) if version == 1 else own)
    found = cgroups(version, sets)
    wanted = {path: data.draw(some) for path in tops if path[-1] in "abc"}
    for path, value in wanted.items():
        if found[path].effective_cpus == value and found[path].cpus == value:
            continue
        plan = plan_container(version, found, running(path), value, ONLINE, MEMS)
        for write in plan.writes:
            # As the kernel checks each write of v1.
            children = [child.cpus or CPUSet() for child in found.values() if parent_of(child.path) == write.path]
            if version == 1:
                assert write.new <= (found[parent_of(write.path)].cpus or CPUSet())
                assert all(child <= write.new for child in children)
            found = after_writes(version, found, [write])
        # What the writes above make of all that is below.
        found = cgroups(version, {cgroup: str(found[cgroup].cpus) for cgroup in sets})
    assert {path: found[path].effective_cpus for path in wanted} == wanted
    state = State(CPUSet(), {path: {"app": value} for path, value in wanted.items()})
    again = [running(path)._replace(pod_uid=path, effective=found[path].effective_cpus) for path in wanted]
    assert {row.result for row in decide(again, "static", state, ONLINE)} == {KEPT}


# --- a node without a kubelet -------------------------------------------------------------------------

LISTED = [Listed("db", "server", "x/db", 2), Listed("db", "backup", "x/backup", 0), Listed("web", "app", "x/web", 2)]


PLAIN = StaticOptions()
WHOLE_CORES = StaticOptions(full_pcpus_only=True)


def rules(reserved: str = "0,4", options: StaticOptions = PLAIN) -> ReconcileRules:
    return ReconcileRules(kubelet_view(parse_name("1s4c2t").topology()), options, cpus(reserved), 36)


def shown(state: State) -> dict[str, Any]:
    return {
        "pool": str(state.default_cpu_set),
        **{"%s/%s" % (pod, name): str(own) for pod, names in state.assignments.items() for name, own in names.items()},
    }


def checkpoint(pool: str, **own: str) -> bytes:
    return write_checkpoint("static", State(cpus(pool), {pod: {"app": cpus(text)} for pod, text in own.items()}))


@pytest.mark.parametrize(
    ("listed", "old", "options", "expected"),
    [
        (LISTED, None, PLAIN, {"pool": "0,3-4,7", "db/server": "1,5", "web/app": "2,6"}),
        (
            LISTED,
            None,
            StaticOptions(strict_cpu_reservation=True),
            {"pool": "3,7", "db/server": "1,5", "web/app": "2,6"},
        ),
        ([], None, PLAIN, {"pool": "0-7"}),
        # kept, though another would be taken today
        (LISTED, checkpoint("0-2,4-6", web="3,7"), PLAIN, {"pool": "0,2,4,6", "web/app": "3,7", "db/server": "1,5"}),
        # not listed any more
        (LISTED[2:], checkpoint("0,3-4,7", old="1,5", web="2,6"), PLAIN, {"pool": "0-1,3-5,7", "web/app": "2,6"}),
        # another count
        (LISTED[2:], checkpoint("0-4,6-7", web="5"), PLAIN, {"pool": "0,2-4,6-7", "web/app": "1,5"}),
        (LISTED[1:2], checkpoint("0-4,6-7", db="5"), PLAIN, {"pool": "0-7"}),
        # a full node whose containers all run already
        (
            [Listed(pod, "app", pod, 2) for pod in "abc"],
            checkpoint("0,4", a="1,5", b="2,6", c="3,7"),
            WHOLE_CORES,
            {"pool": "0,4", "a/app": "1,5", "b/app": "2,6", "c/app": "3,7"},
        ),
        (LISTED[2:], b"damaged", PLAIN, {"pool": "0,2-4,6-7", "web/app": "1,5"}),
    ],
)
def test_allocate(listed: list[Listed], old: bytes | None, options: StaticOptions, expected: Mapping[str, str]) -> None:
    state, notes = allocate(listed, old, rules(options=options))
    assert shown(state) == expected
    assert notes == []
    # A second time with what the first has written, there is nothing to change.
    content = write_checkpoint("static", state)
    assert allocate(listed, content, rules(options=options)) == (state, [])


def test_who_cannot_keep_its_cpus_gets_others() -> None:
    state, notes = allocate(LISTED[2:], checkpoint("0-3,5-7", web="4"), rules())
    assert shown(state) == {"pool": "0,2-4,6-7", "web/app": "1,5"}
    assert notes == ["pod web, container app: CPUs 4: CPUs 4 are reserved now"]


@pytest.mark.parametrize(
    ("listed", "reserved", "options", "error", "message"),
    [
        ([Listed("a", "b", "c", 7)], "0,4", PLAIN, RefusedError, "^pod a, container b: not enough cpus available"),
        ([Listed("a", "b", "c", 3)], "0,4", WHOLE_CORES, RefusedError, "SMT Alignment Error"),
        ([Listed("a", "b", "c", 8)], "", PLAIN, RefusedError, "no CPU would be left for the shared pool"),
        ([], "7-8", PLAIN, InputError, "^reserved_system_cpus: the node has no CPUs 8 online"),
        (
            [Listed("a", "b", "c", -1)],
            "",
            PLAIN,
            InputError,
            "^containers: pod a, container b: -1 CPUs are fewer than none",
        ),
        (
            [Listed("a", "b", "c", 1), Listed("a", "b", "d", 1)],
            "",
            PLAIN,
            InputError,
            "^containers: pod a has two containers named b",
        ),
    ],
)
def test_what_cannot_be_given_is_refused(
    listed: list[Listed], reserved: str, options: StaticOptions, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        allocate(listed, None, rules(reserved, options))


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy"), st.integers(0, 3)), max_size=6),
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy"), st.integers(0, 3)), max_size=6),
    st.sampled_from(["", "0,4", "0-1"]),
)
def test_no_cpu_is_given_twice_and_what_stays_listed_keeps_its_own(
    first: list[tuple[str, str, int]], second: list[tuple[str, str, int]], reserved: str
) -> None:
    before: State | None = None
    for asked in (first, second):
        listed = [Listed(pod, name, "", count) for (pod, name), count in {row[:2]: row[2] for row in asked}.items()]
        old = None if before is None else write_checkpoint("static", before)
        try:
            state, _notes = allocate(listed, old, rules(reserved))
        except RefusedError:
            return
        own = [state.assignments.get(container.pod, {}).get(container.name, CPUSet()) for container in listed]
        assert [len(mine) for mine in own] == [container.cpus for container in listed]
        assert sum(len(mine) for mine in own) == len(state.exclusive_cpus())
        assert state.exclusive_cpus().isdisjoint(cpus(reserved) | state.default_cpu_set)
        for one_listed, mine in zip(listed, own):
            had = before.assignments.get(one_listed.pod, {}).get(one_listed.name) if before else None
            assert had is None or len(had) != one_listed.cpus or had == mine
        before = state
