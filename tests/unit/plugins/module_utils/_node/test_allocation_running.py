# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/allocation.py: pods that run and new ones in one list, as people give it."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pods_from_manifests
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    Question,
    default_configuration,
    plan_allocations,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.readmission import KEEPS, Written, fates_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import OtherManagers
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import MemoryConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import GPU, device_state
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

GIB = 1 << 30
MACHINE = parse_name("2s1n4c2t").topology()
MEMORY: dict[str, Any] = {
    "memory_manager_policy": "Static",
    "system_reserved_memory": "924Mi",
    "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
NODES = {node: {"memory": 9 * GIB} for node in (0, 1)}
DEVICES = [{"resource": GPU, "count": 2, "numa_nodes": [node]} for node in (0, 1)]


class Left(NamedTuple):
    """What a kubelet has written, and who runs."""

    checkpoint: bytes | None = None
    others: OtherManagers = OtherManagers()
    active: Sequence[str] = ()


EMPTY = Left()


def pod(name: str, cpu: str, memory: str = "1Gi", gpu: int = 0, *, runs: bool = False, **metadata: str) -> Any:
    limits = {"cpu": cpu, "memory": memory, **({GPU: gpu} if gpu else {})}
    uid = {"uid": "uid-" + name} if runs else {}
    return {
        "metadata": {"name": name, **uid, **metadata},
        "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]},
    }


def ended(manifest: Any) -> Any:
    return {**manifest, "status": {"phase": "Succeeded"}}


def asked(manifests: Sequence[Any], left: Left = EMPTY, minor: int = 36, **wanted: Any) -> Question:
    nodes = tuple(node.id for node in MACHINE.numa_nodes)
    return Question(
        MACHINE,
        Host(kubelet_view(MACHINE), minor, nodes, MACHINE.numa_distances),
        default_configuration(),
        {"cpu_manager_policy": "static", "reserved_system_cpus": "0,8", **wanted},
        left.checkpoint,
        pods_from_manifests(manifests),
        others=left.others,
        active=left.active,
    )


def ask(manifests: Sequence[Any], left: Left = EMPTY, **wanted: Any) -> Any:
    return plan_allocations(asked(manifests, left, **wanted))


def has(plan: Any) -> dict[str, Any]:
    """Return {pod: (its CPUs, the NUMA nodes of its memory, and of its devices), or why it is refused}."""
    found: dict[str, Any] = {
        row["pod"]: [row["cpus"] if row["exclusive"] else "shared", None, None] for row in plan["containers"]
    }
    for place, kind in ((1, "memory"), (2, "devices")):
        for row in plan[kind].get("containers", ()):
            if row["pod"] in found:
                found[row["pod"]][place] = row["numa_nodes"]
    return {
        **{name: tuple(row) for name, row in found.items()},
        **{row["pod"]: row["reason"] for row in plan["refused"]},
    }


def checkpoint(default: str, **entries: str) -> Left:
    """Return what a kubelet has left where uid-NAME has these CPUs."""
    given_out = {"uid-" + name: {"c": CPUSet.parse(cpus)} for name, cpus in entries.items()}
    return Left(write_checkpoint("static", State(CPUSet.parse(default), given_out)))


# --- two that run on a node of 16 CPUs, and more -------------------------------------------------------

A, B = pod("a", "2", runs=True), pod("b", "6", runs=True)
TWO_RUN = checkpoint("0,2-3,7-8,10-11,15", a="1,9", b="4-6,12-14")
KEPT = {"a": ("1,9", None, None), "b": ("4-6,12-14", None, None)}


@pytest.mark.parametrize(
    ("policy", "is_refused"),
    [("none", False), ("best-effort", False), ("restricted", True), ("single-numa-node", True)],
)
def test_a_pod_that_was_resized_in_place_keeps_the_cpus_that_it_had(policy: str, is_refused: bool) -> None:
    plan = ask([pod("a", "4", runs=True), B], TWO_RUN, topology_manager_policy=policy)
    assert has(plan) == KEPT
    (said,) = (note for note in plan["notes"] if " keeps the CPUs " in note)
    assert said.startswith("pod a, container c keeps the CPUs 1,9, and asks for 4: the kubelet leaves a container ")
    assert ("refuses the pod at its next start" in said) is is_refused
    assert not [note for note in ask([A, B], TWO_RUN)["notes"] if " keeps the CPUs " in note]


@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "single-numa-node"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_pods_that_run_keep_their_cpus_wherever_a_new_one_is_in_the_list(place: int, policy: str) -> None:
    listed = [A, B]
    listed.insert(place, pod("new", "2"))
    plan = ask(listed, TWO_RUN, topology_manager_policy=policy)
    # Without an affinity, the socket with fewer free CPUs comes first.
    assert has(plan) == {**KEPT, "new": ("7,15" if policy == "none" else "2,10", None, None)}
    listed[place] = pod("new", "8")
    plan = ask(listed, TWO_RUN, topology_manager_policy=policy)
    assert has(plan) == {
        **KEPT,
        "new": "UnexpectedAdmissionError" if policy == "none" else plan["refused"][0]["reason"],
    }
    assert plan["exclusive"] == "1,4-6,9,12-14"


def test_pods_that_run_keep_their_cpus_in_any_order() -> None:
    assert has(ask([B, A], TWO_RUN)) == KEPT


def test_a_pod_that_has_ended_takes_nothing() -> None:
    """A list of all pods of a node has those of jobs that are done, also of one whose CPUs are not yet free."""
    plan = ask([ended(pod("job", "8")), ended(A), B, pod("new", "2")], TWO_RUN)
    assert has(plan) == {"b": KEPT["b"], "new": ("7,15", None, None)}
    # What it had is free.
    assert plan["exclusive"] == "4-7,12-15"
    assert plan["notes"] == ["left out, as they have ended: job, a"]


def test_a_pod_that_runs_without_cpus_of_its_own_has_its_room_before_a_new_one() -> None:
    """14 CPUs are for pods, 8 of them exclusive."""
    shared = pod("shared", "5500m", runs=True)
    new = pod("new", "600m")
    left = TWO_RUN._replace(active=("uid-a", "uid-b", "uid-shared"))
    for listed in ([new, shared, A, B], [A, new, B, shared], [A, B, shared, new]):
        plan = ask(listed, left)
        assert has(plan) == {**KEPT, "shared": ("shared", None, None), "new": "OutOfcpu"}


def test_pods_of_a_node_whose_checkpoint_would_be_refused_are_admitted_before_new_ones() -> None:
    """The oldest first, whatever the order of the list."""
    left = Left(write_checkpoint("none", State(CPUSet(), {})), active=("uid-a", "uid-b"))
    older = pod("b", "6", runs=True, creationTimestamp="2026-01-01T00:00:00Z")
    younger = pod("a", "2", runs=True, creationTimestamp="2026-01-02T00:00:00Z")
    answers = [
        has(ask(listed, left)) for listed in ([pod("new", "2"), younger, older], [older, younger, pod("new", "2")])
    ]
    assert answers == [{"b": ("1-3,9-11", None, None), "a": ("4,12", None, None), "new": ("5,13", None, None)}] * 2


# --- any node -------------------------------------------------------------------------------------------

PODS = st.lists(
    st.tuples(st.sampled_from(["1", "2", "3", "4", "500m"]), st.integers(1, 4), st.integers(0, 1)), max_size=4
)


def left_by(plan: Any) -> Left:
    """Return the files that the kubelet has written once it has carried this plan out."""
    cpus = {row["pod"]: row["cpus"] for row in plan["containers"] if row["exclusive"]}
    left = checkpoint(plan["shared_pool"], **cpus)
    memory = StaticMemory(MemoryConfig("Static", {0: {"memory": GIB}}, 36, machine=NODES))
    for row in plan["memory"]["containers"]:
        block = {"numaAffinity": row["numa_nodes"], "type": row["type"], "size": row["size"]}
        memory.entries["uid-" + row["pod"]] = {"c": [block]}
        memory._reserve(row["numa_nodes"], row["type"], row["size"])
    names = ["x%d" % number for number in range(4)]
    owned = [
        ("uid-" + row["pod"], {str(row["numa_nodes"][0]): [names[number]]})
        for number, row in enumerate(plan["devices"]["containers"])
    ]
    others = OtherManagers(NODES, memory.state(), DEVICES, device_state({GPU: names}, *owned))
    return left._replace(others=others, active=["uid-" + row["pod"] for row in plan["containers"]])


@given(
    PODS,
    PODS,
    st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
    st.randoms(use_true_random=False),
)
def test_whatever_the_order_of_a_list_those_that_run_keep_all_and_new_ones_come_in_turn(
    first: Any, then: Any, policy: str, random: Any
) -> None:
    def pods(sizes: Any, name: str) -> list[Any]:
        return [
            pod("%s%d" % (name, number), cpu, "%dGi" % memory, gpu) for number, (cpu, memory, gpu) in enumerate(sizes)
        ]

    settings = {**MEMORY, "topology_manager_policy": policy}
    empty = Left(others=OtherManagers(NODES, devices=DEVICES))
    before = ask(pods(first, "r"), empty, **settings)
    admitted = [row["pod"] for row in before["containers"]]
    running = [manifest for manifest in pods(first, "r") if manifest["metadata"]["name"] in admitted]
    new = pods(then, "n")
    # As the kubelet goes on, which knows no order of a list.
    expected = has(ask([*running, *new], empty, **settings))
    left = left_by(before)
    for manifest in running:
        manifest["metadata"]["uid"] = "uid-" + manifest["metadata"]["name"]
    random.shuffle(running)
    listed = list(new)
    for manifest in running:
        listed.insert(random.randint(0, len(listed)), manifest)
    assert has(ask(listed, left, **settings)) == expected
    # Nor does a start of the kubelet take anything from them, whether they are listed or read from its files.
    for manifests in (listed, []):
        fates = fates_of(asked(manifests, left, **settings), Written(left.checkpoint, left.others.memory_state))
        assert {fate.fate for fate in fates} <= {KEEPS}, fates
