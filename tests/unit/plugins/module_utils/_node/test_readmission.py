# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a start of the kubelet does to pods that run."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pods_from_manifests
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import Question, seed_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import Running
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.readmission import (
    Fate,
    Written,
    fates_of,
    loss_notes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import OtherManagers
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import decode_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3, Format4
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import MemoryConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import GPU, device_state
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._node.test_allocation_running import (
    GIB,
    MEMORY,
    NODES,
    Left,
    asked,
    checkpoint,
    pod,
)

WHOLE_CORES: dict[str, Any] = {"cpu_manager_policy_options": {"full-pcpus-only": "true"}}
UNEXPECTED = "UnexpectedAdmissionError"
POLICIES = ["none", "best-effort", "restricted", "single-numa-node"]


def started(question: Question) -> list[Fate]:
    return fates_of(question, Written(question.checkpoint, question.others.memory_state))


def fates(manifests: Sequence[Any], left: Left, **wanted: Any) -> dict[str, tuple[str, str]]:
    """Return {pod: (its fate, the kubelet's reason)}."""
    return {fate.pod: (fate.fate, fate.reason) for fate in started(asked(manifests, left, **wanted))}


KEPT, REFUSED = ("keeps", ""), ("refused", UNEXPECTED)


# --- whole cores ------------------------------------------------------------------------------------------


def test_a_pod_that_has_more_cores_than_are_free_is_refused_with_whole_cores_only() -> None:
    """It has six of fourteen CPUs, and four are left; that it has its own is not looked at before."""
    left = checkpoint("0,7-8,15", a="1-3,9-11", b="4-6,12-14")
    listed = [pod("a", "6", runs=True), pod("b", "6", runs=True)]
    (fate, _b) = started(asked(listed, left, **WHOLE_CORES))
    assert fate.message.endswith("available physical CPUs = 2, requested CPUs = 6, CPUs per core = 2")
    assert fate.why == "free cores are counted before it is seen that container c has its CPUs"
    for manifests, names in ((listed, ("a", "b")), ([], ("uid-a", "uid-b"))):
        assert fates(manifests, left, **WHOLE_CORES) == dict.fromkeys(names, ("refused", "SMTAlignmentError"))
        assert fates(manifests, left) == dict.fromkeys(names, KEPT)


def test_a_refused_pod_leaves_nothing_to_those_after_it() -> None:
    """Until the kubelet has heard of all pods, it takes nothing back."""
    left = checkpoint("0,3,7-8,11,15", a="1-2,9-10", b="4-6,12-14")
    listed = [pod("a", "4", runs=True), pod("b", "6", runs=True)]
    assert fates(listed, left, **WHOLE_CORES) == {"a": KEPT, "b": ("refused", "SMTAlignmentError")}
    assert fates(listed[::-1], left, **WHOLE_CORES) == {"a": KEPT, "b": ("refused", "SMTAlignmentError")}


# --- memory that is forgotten ------------------------------------------------------------------------------


def with_init(manifest: Any, memory: str = "6Gi", cpu: str = "2", **more: Any) -> Any:
    init = {"name": "init", "resources": {"limits": {"cpu": cpu, "memory": memory, **more}}}
    return {**manifest, "spec": {**manifest["spec"], "initContainers": [init]}}


def with_memory(left: Left, **nodes: int) -> Left:
    """Return the same, but container c of each pod has 6 GiB of this node."""
    memory = StaticMemory(MemoryConfig("Static", {0: {"memory": GIB}}, 36, machine=NODES))
    for name, node in nodes.items():
        block = {"numaAffinity": [node], "type": "memory", "size": 6 * GIB}
        memory.entries["uid-" + name] = {"c": [block]}
        memory._reserve([node], "memory", 6 * GIB)
    return left._replace(others=OtherManagers(NODES, memory.state()))


def initialized(*names: str) -> Left:
    """Return pods of which the init container has had two of the four CPUs."""
    entries = {
        "uid-" + name: {"init": CPUSet.parse(init), "c": CPUSet.parse(own)}
        for name, init, own in (("a", "1,9", "1-2,9-10"), ("b", "4,12", "4-5,12-13"))
        if name in names
    }
    free = CPUSet.parse("0-15") - CPUSet(cpu for own in entries.values() for cpu in own["c"])
    return Left(write_checkpoint("static", State(free, entries)))


@pytest.mark.parametrize("policy", POLICIES)
def test_the_memory_of_an_init_container_is_looked_for_again_when_the_kubelet_starts(policy: str) -> None:
    """The memory manager forgets an init container when the next one starts, and nothing is free that is as large."""
    settings = {**MEMORY, "topology_manager_policy": policy}
    left = with_memory(initialized("a", "b"), a=0, b=1)
    listed = [with_init(pod("a", "4", "6Gi", runs=True)), with_init(pod("b", "4", "6Gi", runs=True))]
    for order in (listed, listed[::-1]):
        assert fates(order, left, **settings) == {"a": REFUSED, "b": REFUSED}
    assert fates(listed, left, topology_manager_policy=policy) == {"a": KEPT, "b": KEPT}
    # What the files alone tell: not what it asked for.
    (unlisted, _b) = started(asked([], left, **settings))
    assert (unlisted.fate, unlisted.reason) == REFUSED
    assert unlisted.assumed.startswith("what container init asks for is not known, and taken for as much memory")
    # One that is small enough gets its memory a second time.
    small = [with_init(pod(name, "4", "6Gi", runs=True), "1Gi") for name in ("a", "b")]
    assert fates(small, left, **settings) == {"a": KEPT, "b": KEPT}
    (note,) = loss_notes(started(asked(listed, left, **settings)), "the next start of the kubelet")
    assert note.startswith("the next start of the kubelet admits all pods that run anew, and 2 pods would lose what")
    assert "init container init has ended and given its memory back, and asks for it again" in note
    assert loss_notes(started(asked(small, left, **settings)), "") == []


def test_a_container_that_runs_is_no_init_container_that_has_ended() -> None:
    left = with_memory(initialized("a", "b"), a=0, b=1)
    names = [Running("uid-a", "shop/a", name, name, "", "", "", CPUSet([1])) for name in ("init", "c")]
    (fate, _b) = started(asked([], left, **MEMORY)._replace(running=names))
    assert (fate.pod, fate.fate, fate.assumed != "", "has ended" in fate.why) == ("shop/a", "refused", True, False)


# --- a resize that the states do not have ------------------------------------------------------------------


def resized(spec: str, allocated: str) -> Any:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": allocated, "memory": "1Gi"}}]}
    return {**pod("a", spec, runs=True), "status": status}


@pytest.mark.parametrize("minor", [34, 36])
def test_a_resize_that_the_checkpoint_does_not_have_is_refused_where_cpus_are_aligned(minor: int) -> None:
    """One that is only wanted is not looked at: the kubelet starts with what it has allocated."""
    left = checkpoint("0-2,4-10,12-15", a="3,11")
    for policy in POLICIES:
        settings = {"topology_manager_policy": policy, "minor": minor}
        is_aligned = policy in ("restricted", "single-numa-node")
        assert fates([resized("4", "2")], left, **settings) == {"a": KEPT}
        expected = ("refused", "TopologyAffinityError") if is_aligned else KEPT
        assert fates([resized("4", "4")], left, **settings) == {"a": expected}


# --- devices of a plugin that is not back yet ---------------------------------------------------------------


def with_devices(left: Left, **containers: str) -> Left:
    """Return the same with a device for this container of the pod."""
    name, container = next(iter(containers.items()))
    content = device_state({GPU: ["x", "y"]}, ("uid-" + name, {"1": ["x"]}), container=container)
    return left._replace(others=OtherManagers(device_state=content))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_device_is_only_there_for_containers_that_run_until_its_plugin_is_back(policy: str) -> None:
    free = checkpoint("0-15")
    runs = [pod("a", "500m", gpu=1, runs=True)]
    assert fates(runs, with_devices(free, a="c"), topology_manager_policy=policy) == {"a": KEPT}
    ended = [with_init(pod("a", "500m", runs=True), "1Gi", "500m", **{GPU: 1})]
    assert fates(ended, with_devices(free, a="init"), topology_manager_policy=policy) == {"a": REFUSED}
    # One that is being started again just then, by what the node shows and by its files alone.
    crashed = [Running("uid-a", "shop/a", "proxy", "1", "", "", "", CPUSet([1]))]
    for manifests, name in ((runs, "a"), ([], "shop/a")):
        question = asked(manifests, with_devices(free, a="c"), topology_manager_policy=policy)
        (fate,) = started(question._replace(running=crashed))
        assert (fate.pod, fate.fate) == (name, "refused")
        assert "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu" in fate.message


@pytest.mark.parametrize("minor", [25, 26, 36])
def test_of_a_pod_with_devices_it_is_said_that_a_boot_loses_it(minor: int) -> None:
    """After a boot no container runs, and its plugin is not back yet."""
    left = with_devices(checkpoint("0-15"), a="c")
    pods = [pod("a", "500m", gpu=1, runs=True)]
    first, *_others = started(asked(pods, left, minor=minor))
    text = "that its containers run: a start after a boot refuses the pod until the plugin of %s has registered" % GPU
    assert (first.fate, first.assumed) == ("keeps", text if minor > 25 else "")


# --- CPUs of a pod as a whole -------------------------------------------------------------------------------


def pod_set(containers: Mapping[str, str], cpus: str = "1-2,9-10") -> Question:
    """Return a pod that has these CPUs on a node with the gate; its containers have these."""
    state = State(
        CPUSet.parse("0-15") - CPUSet.parse(cpus),
        {"uid-a": {name: CPUSet.parse(own) for name, own in containers.items()}},
        {"uid-a": CPUSet.parse(cpus)},
    )
    question = asked([], Left(write_checkpoint("static", state, Format3)))
    configuration = question.configuration
    values = {**configuration.values, "featureGates": {"PodLevelResourceManagers": True}}
    return question._replace(configuration=Configuration(values, configuration.source))


MIXED, APART, LARGE = {"a": "1,9", "b": "2,10", "x": "2,10"}, {"a": "1,9", "b": "2,10"}, {"a": "1-4", "b": "9-12"}


@pytest.mark.parametrize(
    ("containers", "cpus", "policy", "scope", "fate"),
    [
        (MIXED, "1-2,9-10", "restricted", "pod", ("refused", "TopologyAffinityError")),
        (MIXED, "1-2,9-10", "single-numa-node", "pod", ("refused", "TopologyAffinityError")),
        (MIXED, "1-2,9-10", "best-effort", "pod", ("moves", "")),
        (APART, "1-2,9-10", "restricted", "pod", ("moves", "")),
        (LARGE, "1-4,9-12", "best-effort", "pod", REFUSED),
        (MIXED, "1-2,9-10", "restricted", "container", KEPT),
        (MIXED, "1-2,9-10", "none", "pod", KEPT),
    ],
)
def test_cpus_of_a_pod_as_a_whole_are_not_looked_for(
    containers: Mapping[str, str], cpus: str, policy: str, scope: str, fate: tuple[str, str]
) -> None:
    """Each such pod is moved or refused, of 1.36 and 1.37."""
    wanted = {"topology_manager_policy": policy, "topology_manager_scope": scope}
    question = pod_set(containers, cpus)
    (found,) = started(question._replace(wanted={**question.wanted, **wanted}))
    assert (found.fate, found.reason, found.is_loss) == (*fate, fate != KEPT)
    # Later ones look.
    later = question._replace(machine=question.machine._replace(minor=38), checkpoint=of_37(question))
    (found,) = started(later._replace(wanted={**question.wanted, **wanted}))
    assert (found.fate, found.reason, found.is_loss) == (*KEPT, False)


def of_37(question: Question) -> bytes:
    """Return the file as 1.37 and later ones write it."""
    assert question.checkpoint is not None
    return write_checkpoint("static", decode_checkpoint(question.checkpoint).state(), Format4)


def test_which_cpus_are_lost_and_what_is_not_known_is_told() -> None:
    question = pod_set(APART)
    wanted = {**question.wanted, "topology_manager_policy": "best-effort", "topology_manager_scope": "pod"}
    (found,) = started(question._replace(wanted=wanted))
    assert found.why == (
        "the pod is given 4 CPUs a second time, CPUs 3-4,11-12 for 1-2,9-10; CPUs 1-2,9-10 are then nobody's, and the"
        " start after that one is refused; container a: from CPUs 1,9 to CPUs 3,11; container b: from CPUs 2,10 to"
        " CPUs 4,12"
    )
    assert found.assumed == (
        "whether container a or b shares the pod's CPUs is not in the states, and it is taken for one with its own"
    )
    (found,) = started(pod_set(MIXED)._replace(wanted=wanted))
    assert found.assumed == ""


@pytest.mark.parametrize(
    ("init", "own", "policy", "fate"),
    [
        # The init container has left its CPUs to a, which has them for itself.
        ({"i": "2"}, {"a": "2", "b": "2"}, "restricted", "moves"),
        ({"i": ""}, {"a": "2", "b": "2"}, "restricted", "refused"),
        ({"i": "4"}, {"a": "2", "b": "2"}, "best-effort", "moves"),
        ({"i": "2"}, {"a": "2", "b": "", "x": ""}, "restricted", "refused"),
    ],
)
def test_the_states_alone_tell_of_a_pod_as_its_manifest_does(
    init: Mapping[str, str], own: Mapping[str, str], policy: str, fate: str
) -> None:
    def rows(given: Mapping[str, str]) -> list[dict[str, Any]]:
        limits = {name: {"limits": {"cpu": cpu, "memory": "1Gi"}} if cpu else {} for name, cpu in given.items()}
        return [{"name": name, "resources": found} for name, found in limits.items()]

    resources = {"limits": {"cpu": "4", "memory": "8Gi"}}
    spec = {"resources": resources, "initContainers": rows(init), "containers": rows(own)}
    manifest = {"metadata": {"name": "uid-a", "uid": "uid-a"}, "spec": spec}
    question = pod_set({})
    settings = {"topology_manager_policy": policy, "topology_manager_scope": "pod"}
    question = question._replace(wanted={**question.wanted, **settings}, checkpoint=None)
    listed = question._replace(pods=pods_from_manifests([manifest]))
    state, refused = seed_state(listed)
    assert refused == []
    checkpoint = write_checkpoint("static", state, Format3)
    here = [Running("uid-a", "", name, name, "", "", "", CPUSet([0])) for name in own]
    (told,) = started(listed._replace(checkpoint=checkpoint))
    (seen,) = started(question._replace(checkpoint=checkpoint, running=here))
    assert (seen.fate, seen.reason, seen.message) == (told.fate, told.reason, told.message)
    assert told.fate == fate


# --- other settings ------------------------------------------------------------------------------------------


def test_pods_get_cpus_of_their_own_with_the_first_static_policy() -> None:
    left = Left(write_checkpoint("none", State(CPUSet(), {})), active=("uid-a", "uid-b"))
    listed = [pod("a", "2", runs=True), pod("b", "10", runs=True)]
    found = started(asked(listed, left, topology_manager_policy="single-numa-node"))
    assert [(fate.fate, fate.reason, fate.is_loss, fate.why) for fate in found] == [
        ("moves", "", False, "container c: from the shared pool to CPUs 1,9"),
        (
            "refused",
            "TopologyAffinityError",
            True,
            "container c wants 10 CPUs of 1 NUMA node, and free are 4 of node 0, 8 of node 1",
        ),
    ]


def test_a_larger_reservation_leaves_no_room() -> None:
    left = checkpoint("0,7-8,15", a="1-3,9-11", b="4-6,12-14")
    listed = [pod("a", "6", runs=True), pod("b", "6", runs=True)]
    assert fates(listed, left, reserved_system_cpus="0,7-8,15") == {"a": KEPT, "b": KEPT}
    more = [*listed, pod("c", "1", runs=True)]
    left = left._replace(active=("uid-c",))
    more[2]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert fates(more, left, reserved_system_cpus="0,7-8,15")["c"] == ("refused", "OutOfcpu")
    assert fates(more, left)["c"] == KEPT


def test_a_policy_of_ours_has_no_such_start() -> None:
    assert (
        started(asked([pod("a", "2", runs=True)], checkpoint("0-2,4-10,12-15", a="3,11"))._replace(policy="dynamic"))
        == []
    )
