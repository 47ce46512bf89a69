# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/memory.py: the cases of the kubelet's own tables, by the names they have there.

What holds whatever pods come and go is in test_memory_laws.py.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping, NamedTuple, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    Pod,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import Hint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory, requested_memory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import AllocationError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    MemoryConfig,
    MemoryState,
    judge_memory,
    write_memory,
)

MINOR = 35
MEMORY, LARGE, SMALL = "memory", "hugepages-1Gi", "hugepages-2Mi"
# All sizes of these tables are in MiB.
GIB = 1024

Blocks = Mapping[str, Sequence[tuple[Any, ...]]]


class Place(NamedTuple):
    """A NUMA node: (allocatable, free) of its memory and huge pages."""

    memory: tuple[int, int]
    pages: tuple[int, int] = (GIB, GIB)
    cells: Sequence[int] | None = None
    assigned: int = 0
    kind: str = LARGE
    kept: int = 512

    def state(self, node: int) -> dict[str, Any]:
        tables = {MEMORY: (self.memory, self.kept), self.kind: (self.pages, 0)}
        return {
            "numberOfAssignments": self.assigned,
            "memoryMap": {
                kind: {
                    "total": allocatable + kept + (self.pages[0] if kind == MEMORY else 0) << 20,
                    "systemReserved": kept << 20,
                    "allocatable": allocatable << 20,
                    "reserved": allocatable - free << 20,
                    "free": free << 20,
                }
                for kind, ((allocatable, free), kept) in tables.items()
            },
            "cells": [node] if self.cells is None else list(self.cells),
        }


def entries_of(owned: Blocks) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return {"pod1/container1": [(kind, size, *nodes)]}."""
    entries: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for owner, blocks in owned.items():
        uid, container = owner.split("/", 1)
        entries.setdefault(uid, {})[container] = [
            {"numaAffinity": list(nodes), "type": kind, "size": size << 20} for kind, size, *nodes in blocks
        ]
    return entries


def owned_of(manager: StaticMemory) -> dict[str, list[tuple[Any, ...]]]:
    return {
        "%s/%s" % (uid, name): sorted(
            ((block["type"], block["size"] >> 20, *block["numaAffinity"]) for block in blocks), reverse=True
        )
        for uid, containers in manager.entries.items()
        for name, blocks in containers.items()
    }


def places_of(manager: StaticMemory, like: Sequence[Place]) -> list[Place]:
    """Return the state as it is written in the tables."""
    found = []
    for node, place in sorted(manager.machine.items()):
        kind = like[node].kind
        tables = [place["memoryMap"][name] for name in (MEMORY, kind)]
        assert all(table["reserved"] + table["free"] == table["allocatable"] for table in tables)
        amounts = [(table["allocatable"] >> 20, table["free"] >> 20) for table in tables]
        cells = None if place["cells"] == [node] else tuple(place["cells"])
        found.append(Place(amounts[0], amounts[1], cells, place["numberOfAssignments"], kind, like[node].kept))
    return found


def memory_of(places: Sequence[Place], owned: Blocks) -> StaticMemory:
    machine = {node: place.state(node) for node, place in enumerate(places)}
    config = MemoryConfig("Static", {0: {MEMORY: 512 << 20}}, MINOR, machine={})
    return StaticMemory(config, MemoryState("Static", machine, entries_of(owned), {}))


def container(name: str, memory: int = GIB, pages: int = GIB, kind: str = APP, size: str = LARGE) -> Container:
    amounts = {"cpu": 1000, MEMORY: memory * (1 << 20) * 1000, size: pages * (1 << 20) * 1000}
    return Container(name, kind, amounts, amounts)


def pod_of(uid: str, *containers: Container) -> Pod:
    return Pod(uid, uid, containers)


def burstable(uid: str, name: str) -> Pod:
    member = container(name)
    return pod_of(uid, member._replace(limits={kind: 2 * amount for kind, amount in member.limits.items()}))


def hint(text: str) -> Hint:
    """Return `*` is no affinity; `!` behind it says that it is preferred."""
    nodes = text.rstrip("!")
    return Hint(None if nodes == "*" else sum(1 << int(node) for node in nodes), text.endswith("!"))


def texts(hints: Mapping[str, list[Hint] | None]) -> dict[str, str]:
    return {
        kind: " ".join(
            "".join(map(str, iterate_bits(found.mask or 0))) + ("!" if found.preferred else "") for found in list_ or ()
        )
        for kind, list_ in hints.items()
    }


# --- TestStaticPolicyNew ----------------------------------------------------------------------------


def test_should_fail_when_machine_does_not_have_reserved_memory_for_the_system_workloads() -> None:
    with pytest.raises(KubeletError, match="you should specify the system reserved memory"):
        StaticMemory(MemoryConfig("Static", {}, MINOR, machine={}))


def test_should_succeed_when_at_least_one_numa_node_has_reserved_memory() -> None:
    StaticMemory(MemoryConfig("Static", {0: {}, 1: {MEMORY: 512 << 20}}, MINOR, machine={}))


# --- TestStaticPolicyStart --------------------------------------------------------------------------

DIFFERENT = "[memorymanager] the expected machine state is different from the real one"
USES = "[memorymanager] (pod: pod1, container: container1) the memory assignment uses %s that does not exist"
# What the machine has: {node: {kind: MiB}}.
SMALL_NODE = {0: {MEMORY: 2048, LARGE: GIB}}
LARGE_NODE = {0: {MEMORY: 2 * GIB, LARGE: 4 * GIB}}
TWO_NODES = {node: {MEMORY: 2176, LARGE: GIB} for node in (0, 1)}
# Two pods have 768 and 256 MiB, and a page each, of both nodes.
ACROSS = [
    Place((640, 0), (GIB, 0), (0, 1), 4),
    Place((640, 256), (GIB, 0), (0, 1), 4),
]
ACROSS_OWNED: Blocks = {
    "pod1/container1": [(MEMORY, 768, 0, 1), (LARGE, GIB, 0, 1)],
    "pod2/container2": [(MEMORY, 256, 0, 1), (LARGE, GIB, 0, 1)],
}
STARTS: dict[str, tuple[Any, ...]] = {
    "should fail, if machine state is empty, but it has memory assignments": (
        {},
        {"pod/container1": [(MEMORY, 512, 0)]},
        SMALL_NODE,
        "[memorymanager] machine state can not be empty when it has memory assignments",
    ),
    "should fail when machine state does not have all NUMA nodes": (
        {0: Place((512, 512))},
        {},
        {0: {MEMORY: 2048, LARGE: GIB}, 1: {MEMORY: 2048, LARGE: GIB}},
        DIFFERENT,
    ),
    "should fail when machine state does not have memory resource": (
        {0: {MEMORY: None}},
        {},
        SMALL_NODE,
        DIFFERENT,
    ),
    "should fail when machine state has wrong size of total memory": (
        {0: {MEMORY: {"total": 1536}}},
        {},
        SMALL_NODE,
        DIFFERENT,
    ),
    "should fail when machine state has wrong size of system reserved memory": (
        {0: {MEMORY: {"systemReserved": 1}}},
        {},
        SMALL_NODE,
        DIFFERENT,
    ),
    "should fail when machine state reserved memory is different from the memory of all containers memory"
    " assignments": (
        {0: Place((512, 512), assigned=1)},
        {"pod/container1": [(MEMORY, 512, 0)]},
        SMALL_NODE,
        DIFFERENT,
    ),
    "should fail when machine state has wrong size of hugepages": (
        {0: Place((512, 512))},
        {},
        {0: {MEMORY: 2048, LARGE: 2 * GIB}},
        DIFFERENT,
    ),
    "should fail when machine state has wrong size of system reserved hugepages": (
        {0: {LARGE: {"systemReserved": GIB}}},
        {},
        {0: {MEMORY: 2048 + GIB, LARGE: 2 * GIB}},
        DIFFERENT,
    ),
    "should fail when the hugepages reserved machine state is different from the hugepages of all containers memory"
    " assignments": (
        {0: Place((1536, 1536), (4 * GIB, GIB), assigned=2)},
        {"pod1/container1": [(LARGE, GIB, 0)], "pod2/container2": [(LARGE, GIB, 0)]},
        {0: {MEMORY: 6 * GIB, LARGE: 4 * GIB}},
        DIFFERENT,
    ),
    "should fail when machine state does not have NUMA node that used under the memory assignment": (
        {0: Place((512, 512))},
        {"pod1/container1": [(MEMORY, GIB, 1)]},
        SMALL_NODE,
        USES % "the NUMA",
    ),
    "should fail when machine state does not have resource that used under the memory assignment": (
        {0: Place((512, 512), assigned=2)},
        {"pod1/container1": [(MEMORY, GIB, 0), (SMALL, GIB, 0)]},
        SMALL_NODE,
        USES % "memory resource",
    ),
    "should fail when machine state number of assignments is different from the expected one": (
        {0: Place((512, 512), assigned=1)},
        {"pod1/container1": [(MEMORY, GIB, 0), (LARGE, GIB, 0)]},
        SMALL_NODE,
        DIFFERENT,
    ),
    "should validate cross NUMA reserved memory vs container assignments": (
        dict(enumerate(ACROSS)),
        ACROSS_OWNED,
        TWO_NODES,
        "",
    ),
}


def machine_of(given: Mapping[int, Any], real: Mapping[int, Any]) -> dict[int, Any]:
    """Return the state of a table; a mapping changes that of a node of which all is as it should be."""
    machine = {}
    for node, place in given.items():
        if isinstance(place, Place):
            machine[node] = place.state(node)
            continue
        pages = real[node][LARGE]
        machine[node] = Place((real[node][MEMORY] - pages - 512,) * 2, (pages, pages)).state(node)
        for kind, changes in place.items():
            if changes is None:
                del machine[node]["memoryMap"][kind]
            else:
                machine[node]["memoryMap"][kind].update({name: size << 20 for name, size in changes.items()})
    return machine


@pytest.mark.parametrize("name", STARTS, ids=str)
def test_start(name: str) -> None:
    given, owned, real, said = STARTS[name]
    sizes = {node: {kind: size << 20 for kind, size in kinds.items()} for node, kinds in real.items()}
    config = MemoryConfig("Static", {node: {MEMORY: 512 << 20} for node in real}, MINOR, machine=sizes)
    content = write_memory(config, machine_of(given, real), {}, entries_of(owned))
    assert judge_memory(content, config).reason == said


def test_should_fill_the_state_with_default_values_when_the_state_is_empty() -> None:
    config = MemoryConfig(
        "Static", {0: {MEMORY: 512 << 20}}, MINOR, machine={0: {MEMORY: 3 * GIB << 20, LARGE: GIB << 20}}
    )
    manager = StaticMemory(config)
    assert manager.machine == {0: Place((1536, 1536)).state(0)}
    assert manager.entries == {}


# --- TestStaticPolicyAllocate -----------------------------------------------------------------------

ONE = [Place((1536, 1536))]
ONE_TAKEN = [Place((1536, 512), (GIB, 0), assigned=2)]
BOTH = [(MEMORY, GIB, 0), (LARGE, GIB, 0)]
HALF_TAKEN = [
    Place((GIB, 512), assigned=1),
    Place((512, 512)),
    Place((512, 512)),
]


class Allocation(NamedTuple):
    places: Sequence[Place]
    owned: Blocks
    pod: Pod
    affinity: str
    # What the state is then, or what the kubelet says.
    after: Sequence[Place] | str
    owned_after: Blocks = MappingProxyType({})


def guaranteed(number: int) -> Pod:
    return pod_of("pod%d" % number, container("container%d" % number))


ALLOCATIONS = {
    "should do nothing for non-guaranteed pods": Allocation(ONE, {}, burstable("pod1", "container1"), "*", ONE),
    "should do nothing once container already exists under the state file": Allocation(
        [Place((1536, 512))],
        {"pod1/container1": [(MEMORY, GIB, 0)]},
        guaranteed(1),
        "*",
        [Place((1536, 512))],
        {"pod1/container1": [(MEMORY, GIB, 0)]},
    ),
    "should calculate a default topology hint when no NUMA affinity was provided by the topology manager hint": (
        Allocation(ONE, {}, guaranteed(1), "*", ONE_TAKEN, {"pod1/container1": BOTH})
    ),
    "should fail when no NUMA affinity was provided under the topology manager hint and calculation of the default"
    " hint failed": Allocation(
        ONE_TAKEN,
        {"pod1/container1": BOTH},
        guaranteed(2),
        "*",
        "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
    ),
    "should fail when no NUMA affinity was provided under the topology manager preferred hint and default hint has"
    " preferred false": Allocation(
        HALF_TAKEN,
        {"pod1/container1": [(MEMORY, 512, 0)]},
        guaranteed(2),
        "*!",
        "[memorymanager] failed to find the default preferred hint",
    ),
    "should fail when NUMA affinity provided under the topology manager hint did not satisfy container requirements"
    " and extended hint generation failed": Allocation(
        [Place((512, 512)), *[Place((1536, 512), cells=(1, 2), assigned=1)] * 2],
        {},
        guaranteed(1),
        "0",
        "[memorymanager] failed to find NUMA nodes to extend the current topology hint",
    ),
    "should fail when the topology manager provided the preferred hint and extended hint has preferred false": (
        Allocation(
            HALF_TAKEN,
            {"pod1/container1": [(MEMORY, 512, 0)]},
            guaranteed(2),
            "1!",
            "[memorymanager] failed to find the extended preferred hint",
        )
    ),
    "should succeed to allocate memory from multiple NUMA nodes": Allocation(
        [Place((512, 512))] * 4,
        {},
        guaranteed(1),
        "*!",
        [
            Place((512, 0), (GIB, 0), (0, 1), 2),
            Place((512, 0), (GIB, GIB), (0, 1), 2),
            *[Place((512, 512))] * 2,
        ],
        {"pod1/container1": [(MEMORY, GIB, 0, 1), (LARGE, GIB, 0, 1)]},
    ),
    # In no table.
    "should fail when the hint violates the rule of single and cross NUMA allocations": Allocation(
        [Place((1536, 1024), assigned=1), Place((1536, 1536))],
        {"pod1/container1": [(MEMORY, 512, 0)]},
        guaranteed(2),
        "01!",
        "[memorymanager] preferred hint violates NUMA node allocation",
    ),
}


@pytest.mark.parametrize("name", ALLOCATIONS, ids=str)
def test_allocate(name: str) -> None:
    case = ALLOCATIONS[name]
    manager = memory_of(case.places, case.owned)
    target = case.pod.containers[0].name
    if isinstance(case.after, str):
        with pytest.raises(AllocationError) as caught:
            manager.allocate(case.pod, target, hint(case.affinity))
        assert str(caught.value) == case.after
        # And nothing has changed.
        assert places_of(manager, case.places) == list(case.places)
        return
    manager.allocate(case.pod, target, hint(case.affinity))
    assert places_of(manager, case.places) == list(case.after)
    assert owned_of(manager) == case.owned_after


# --- TestStaticPolicyAllocateWithInitContainers, -WithRestartableInitContainers ------------------------


class Reuse(NamedTuple):
    """GiB of memory and of huge pages alike. Of the node: (allocatable, free after), with half a GiB more of memory."""

    node: tuple[int, int]
    # (name, asked for, in its block at the end).
    containers: Sequence[tuple[str, int, int]]


REUSES = {
    "should re-use init containers memory, init containers requests 1Gi and 2Gi, apps containers 3Gi and 4Gi": Reuse(
        (8, 1), [("initContainer1", 1, 0), ("initContainer2", 2, 0), ("container1", 3, 3), ("container2", 4, 4)]
    ),
    "should re-use init containers memory, init containers requests 4Gi and 3Gi, apps containers 2Gi and 1Gi": Reuse(
        (8, 4), [("initContainer1", 4, 0), ("initContainer2", 3, 1), ("container1", 2, 2), ("container2", 1, 1)]
    ),
    "should re-use init containers memory, init containers requests 7Gi and 4Gi, apps containers 4Gi and 3Gi": Reuse(
        (8, 1), [("initContainer1", 7, 0), ("initContainer2", 4, 0), ("container1", 4, 4), ("container2", 3, 3)]
    ),
    "should re-use init containers memory, init containers requests 7Gi and 4Gi, apps containers 5Gi and 2Gi": Reuse(
        (10, 3), [("initContainer1", 7, 0), ("initContainer2", 4, 0), ("container1", 5, 5), ("container2", 2, 2)]
    ),
    "should not re-use restartable init containers memory": Reuse(
        (7, 0),
        [
            ("initContainer1", 1, 0),
            ("restartableInitContainer2", 2, 2),
            ("initContainer3", 3, 0),
            ("restartableInitContainer4", 4, 4),
            ("container1", 1, 1),
        ],
    ),
}


def kind_of(name: str) -> str:
    return SIDECAR if name.startswith("restartable") else INIT if name.startswith("init") else APP


@pytest.mark.parametrize("name", REUSES, ids=str)
def test_init_containers(name: str) -> None:
    case = REUSES[name]
    allocatable, free = (GIB * size for size in case.node)
    members = [container(name, GIB * asked, GIB * asked, kind_of(name)) for name, asked, _left in case.containers]
    places = [Place((allocatable, allocatable), (allocatable, allocatable))]
    manager = memory_of(places, {})
    # What an earlier pod left is forgotten.
    manager.reusable = {"pod0": {1: {MEMORY: GIB << 20}}}
    for member in members:
        manager.allocate(pod_of("pod1", *members), member.name, hint("*"))
    assert owned_of(manager) == {
        "pod1/" + name: [(MEMORY, GIB * left, 0), (LARGE, GIB * left, 0)] for name, _asked, left in case.containers
    }
    assigned = 2 * len(members)
    assert places_of(manager, places) == [Place((allocatable, free), (allocatable, free), assigned=assigned)]


def test_should_do_nothing_once_containers_already_exist_under_the_state_file() -> None:
    places = [Place((2560, 512), (2 * GIB, 2 * GIB))]
    owned: Blocks = {"pod1/init1": [(MEMORY, GIB, 0)], "pod1/container1": [(MEMORY, GIB, 0)]}
    manager = memory_of(places, owned)
    pod = pod_of("pod1", container("init1", kind=SIDECAR), container("container1"))
    for member in pod.containers:
        manager.allocate(pod, member.name, hint("*"))
    assert (places_of(manager, places), owned_of(manager)) == (places, owned)


# --- TestStaticPolicyRemoveContainer -----------------------------------------------------------------

REMOVALS: dict[str, tuple[Sequence[Place], Blocks, Sequence[Place]]] = {
    "should do nothing when the container does not exist under the state": (ONE, {}, ONE),
    "should delete the container assignment and update the machine state": (ONE_TAKEN, {"pod1/container1": BOTH}, ONE),
    "should delete the cross NUMA container assignment and update the machine state": (
        [Place((512, 0), (GIB, 0), (0, 1), 2), Place((512, 0), (GIB, GIB), (0, 1), 2)],
        {"pod1/container1": [(MEMORY, GIB, 0, 1), (LARGE, GIB, 0, 1)]},
        [Place((512, 512))] * 2,
    ),
}


@pytest.mark.parametrize("name", REMOVALS, ids=str)
def test_remove(name: str) -> None:
    before, owned, after = REMOVALS[name]
    manager = memory_of(before, owned)
    manager.remove("pod1", "container1")
    assert (places_of(manager, before), owned_of(manager)) == (list(after), {})


# --- TestStaticPolicyGetTopologyHints ----------------------------------------------------------------

GROUPED = [
    Place((1536, 0), (GIB, 0), (0, 1), 2),
    Place((1536, GIB), (GIB, 0), (0, 1), 2),
    Place((1536, 1536)),
    Place((1536, 1536)),
]
GROUPED_SMALL = [
    Place((1536, 0), (20, 0), (0, 1), 2, SMALL),
    Place((1536, GIB), (20, 16), (0, 1), 2, SMALL),
]
HINTS: dict[str, tuple[Any, ...]] = {
    "should not provide topology hints for non-guaranteed pods": (ONE, {}, burstable("pod1", "container1"), {}),
    "should provide topology hints based on the existent memory assignment": (
        ONE_TAKEN,
        {"pod1/container1": BOTH},
        guaranteed(1),
        {MEMORY: "0!", LARGE: "0!"},
    ),
    "should calculate new topology hints, when the container does not exist under assignments": (
        GROUPED,
        {"pod1/container1": [(MEMORY, 2 * GIB, 0, 1), (LARGE, 2 * GIB, 0, 1)]},
        guaranteed(2),
        {MEMORY: "2! 3! 23", LARGE: "2! 3! 23"},
    ),
    "should fail when number of existing memory assignment resources are different from resources requested by"
    " container": (ONE, {"pod1/container1": [(MEMORY, GIB, 0)]}, guaranteed(1), {}),
    "should fail when existing memory assignment resources are different from resources requested by container": (
        ONE,
        {"pod1/container1": [(MEMORY, GIB, 0), (SMALL, GIB, 0)]},
        guaranteed(1),
        {},
    ),
    "should fail when existing memory assignment size is different from one requested by the container": (
        ONE,
        {"pod1/container1": [(MEMORY, 512, 0), (LARGE, GIB, 0)]},
        guaranteed(1),
        {},
    ),
    "should not return preferred hints with multiple NUMA nodes for the pod with resources satisfied by a single NUMA"
    " node": (
        GROUPED_SMALL,
        {"pod1/container1": [(MEMORY, 2 * GIB, 0, 1), (SMALL, 24, 0, 1)]},
        pod_of("pod2", container("container2", GIB, 16, size=SMALL)),
        {MEMORY: "01", SMALL: "01"},
    ),
}


@pytest.mark.parametrize("name", HINTS, ids=str)
def test_hints(name: str) -> None:
    places, owned, pod, expected = HINTS[name]
    assert texts(memory_of(places, owned).hints(pod, pod.containers[0].name) or {}) == expected
    # A pod of one container is asked for as a whole just as well.
    assert texts(memory_of(places, owned).hints(pod, "") or {}) == expected


# --- getPodRequestedResources ------------------------------------------------------------------------

# (memory, huge pages) in GiB of each container, by name, and of the pod.
REQUESTS = {
    "maximum resources of init containers > total resources of containers": (
        {"init1": (1, 1), "init2": (4, 4), "c1": (1, 1), "c2": (2, 2)},
        (4, 4),
    ),
    "maximum resources of init containers < total resources of containers": (
        {"init1": (1, 1), "init2": (3, 3), "c1": (2, 2), "c2": (3, 3)},
        (5, 5),
    ),
    "calculate different resources independently": (
        {"init1": (1, 1), "init2": (3, 4), "c1": (2, 1), "c2": (3, 2)},
        (5, 4),
    ),
    "maximum resources of init containers > total resources of long running containers, including restartable init"
    " containers": ({"restartable1": (2, 2), "init2": (4, 4), "c1": (1, 1), "c2": (2, 2)}, (6, 6)),
    "maximum resources of init containers < total resources of long running containers, including restartable init"
    " containers": ({"restartable1": (2, 2), "init2": (4, 4), "c1": (2, 2), "c2": (3, 3)}, (7, 7)),
}


@pytest.mark.parametrize("name", REQUESTS, ids=str)
def test_requests_of_a_pod(name: str) -> None:
    sizes, (memory, pages) = REQUESTS[name]
    members = [container(name, GIB * size[0], GIB * size[1], kind_of(name)) for name, size in sizes.items()]
    found = {kind: size >> 30 for kind, size in requested_memory(pod_of("pod", *members), "").items()}
    assert found == {MEMORY: memory, LARGE: pages}


# --- beside the tables -------------------------------------------------------------------------------


def test_a_part_of_a_byte_has_no_preference_and_is_refused() -> None:
    manager, member = memory_of(ONE, {}), container("c")
    amounts = {**member.requests, MEMORY: 1500}
    pod = pod_of("pod1", member._replace(requests=amounts, limits=amounts))
    assert manager.hints(pod, "c") is manager.hints(pod, "") is None
    with pytest.raises(AllocationError, match="failed to represent quantity as int64"):
        manager.allocate(pod, "c", hint("*"))


def test_pages_that_a_node_does_not_have() -> None:
    pod = pod_of("pod1", container("c", size="hugepages-16Mi"))
    manager = memory_of(ONE, {})
    assert manager.hints(pod, "c") == {}
    with pytest.raises(AllocationError, match="failed to get the default NUMA affinity"):
        manager.allocate(pod, "c", hint("*!"))


def test_memory_that_is_not_known_is_not_counted() -> None:
    """A Guaranteed pod asks for memory, so one that asks for none is one of which the node does not show it."""
    pod, manager = pod_of("pod1", container("c"))._replace(qos_class="Guaranteed"), memory_of(ONE, {})
    member = pod.containers[0]._replace(requests={}, limits={})
    before = manager.state()
    manager.allocate(pod._replace(containers=(member,)), "c", hint("*"))
    assert manager.state() == before


def test_pod_level_resources_are_left_alone() -> None:
    pod = guaranteed(1)
    whole = pod.containers[0].requests
    pod = pod._replace(pod_level=(whole, whole))
    manager = memory_of(ONE, {})
    manager.allocate(pod, "container1", hint("*"))
    assert (manager.hints(pod, ""), manager.entries) == (None, {})
