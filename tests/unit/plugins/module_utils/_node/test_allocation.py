# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.limits import Burst
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pods_from_manifests
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import Configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    Question,
    compare_plans,
    default_configuration,
    plan_allocations,
    seed_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes

XEON = parse_name("2s1n12c2t").topology()
STATIC = {"cpu_manager_policy": "static", "reserved_system_cpus": "0,24"}


def manifest(name: str, cpu: object, kind: str = "containers", **container: Any) -> dict[str, Any]:
    app = {"name": "app", "resources": {"limits": {"cpu": cpu, "memory": "1Gi"}}, **container}
    return {"metadata": {"name": name}, "spec": {kind: [app]}}


def ask(
    *manifests: dict[str, Any],
    topology: Topology = XEON,
    checkpoint: bytes | None = None,
    bursts: Sequence[Burst] = (),
    gates: Mapping[str, bool] = MappingProxyType({}),
    policy: str = "kubelet",
    shared_minimum: int = 0,
    memory: int | None = None,
    **wanted: Any,
) -> dict[str, Any]:
    configuration = default_configuration()
    if gates:
        configuration = Configuration({**configuration.values, "featureGates": dict(gates)}, configuration.source)
    return plan_allocations(
        Question(
            topology,
            Host(kubelet_view(topology), numa_nodes=tuple(node.id for node in topology.numa_nodes), memory=memory),
            configuration,
            {**STATIC, **wanted},
            checkpoint,
            pods_from_manifests(manifests),
            bursts,
            policy,
            shared_minimum,
        )
    )


def cpus(plan: dict[str, Any]) -> dict[str, str]:
    return {row["pod"]: row["cpus"] for row in plan["containers"]}


def test_what_is_left() -> None:
    plan = ask(manifest("a", 4), manifest("b", "1"), manifest("c", "100m"))
    assert cpus(plan) == {"a": "1-2,25-26", "b": "3", "c": "0,4-24,27-47"}
    assert plan["shared_pool"] == "0,4-24,27-47"
    assert plan["exclusive"] == "1-3,25-26"
    assert plan["allocatable"] == {
        "cpus": 41,
        "whole_cores": 40,
        "one_socket": 24,
        "one_numa_node": 24,
        "one_l3_cache": 24,
    }
    assert plan["stranded"] == ""


def test_a_thread_whose_sibling_is_reserved_is_stranded_with_whole_cores_only() -> None:
    plan = ask(reserved_system_cpus="0-1", cpu_manager_policy_options={"full-pcpus-only": "true"})
    assert plan["stranded"] == "24-25"
    assert plan["allocatable"]["cpus"] == plan["allocatable"]["whole_cores"] == 44
    assert plan["notes"] == [
        (
            "the reservation 0-1 splits cores: no pod can have their other threads, CPUs 24-25, for itself with"
            " full-pcpus-only: 2 CPUs that the scheduler counts"
        )
    ]
    assert ask(reserved_system_cpus="0-1")["notes"] == []
    assert ask(cpu_manager_policy_options={"full-pcpus-only": "true"})["notes"] == []


@st.composite
def partly_given(draw: st.DrawFn) -> tuple[Topology, str, State]:
    """Return a machine, its reserved CPUs, and a container that has CPUs from the time before an option, mostly no
    cores."""
    topology = draw(shapes()).topology()
    online = list(topology.online)
    reserved = set(draw(st.lists(st.sampled_from(online), min_size=1, max_size=3)))
    assume(len(reserved) < len(online))
    given_cpus = set(draw(st.lists(st.sampled_from(online), max_size=len(online)))) - reserved
    state = State(topology.online - CPUSet(given_cpus), {"old": {"app": CPUSet(given_cpus)}} if given_cpus else {})
    return topology, str(CPUSet(reserved)), state


@given(partly_given())
def test_a_container_can_get_all_free_cpus_but_the_stranded_ones(node: tuple[Topology, str, State]) -> None:
    topology, reserved, state = node
    whole_cores_only = {"full-pcpus-only": "true"}
    kubelet: dict[str, Any] = {
        "topology": topology,
        "reserved_system_cpus": reserved,
        "checkpoint": write_checkpoint("static", state),
    }
    found = ask(cpu_manager_policy_options=whole_cores_only, **kubelet)
    free = state.default_cpu_set - CPUSet.parse(reserved)
    stranded = CPUSet.parse(found["stranded"])
    assert stranded <= free
    assert ask(**kubelet)["stranded"] == ""
    most = len(free - stranded)
    assert found["allocatable"]["cpus"] == most
    # A container has a number of whole cores.
    more = most + kubelet_view(topology).cpus_per_core
    sizes = [size for size in (most, more) if size]
    admitted = [
        not ask(manifest("a", size), cpu_manager_policy_options=whole_cores_only, **kubelet)["refused"]
        for size in sizes
    ]
    assert admitted == [size == most for size in sizes]


def test_threads_of_several_cores_are_not_stranded_where_they_are_as_many_as_those_of_a_core() -> None:
    """As the kubelet counts them."""
    machine: dict[str, Any] = {"topology": parse_name("1s3c2t").topology(), "reserved_system_cpus": "0,3"}
    options = {"full-pcpus-only": "true"}
    two = write_checkpoint("static", State(CPUSet.parse("0,3-5"), {"a": {"app": CPUSet([1, 2])}}))
    plan = ask(checkpoint=two, cpu_manager_policy_options=options, **machine)
    assert (plan["stranded"], plan["allocatable"]["cpus"], plan["allocatable"]["whole_cores"]) == ("", 2, 0)
    assert cpus(ask(manifest("b", 2), checkpoint=two, cpu_manager_policy_options=options, **machine)) == {"b": "4-5"}
    single = write_checkpoint("static", State(CPUSet.parse("0,2-5"), {"a": {"app": CPUSet([1])}}))
    assert ask(checkpoint=single, cpu_manager_policy_options=options, **machine)["stranded"] == "4"


def test_why_a_container_has_no_cpus_of_its_own_beside_one_without_limits() -> None:
    # scylladb/scylla-operator#121
    note = (
        "pod a, container app has no CPUs for itself, as the pod is not Guaranteed: sidecar does not have requests of"
        " cpu and memory that equal its limits"
    )
    pod = manifest("a", 7)
    app, sidecar = pod["spec"]["containers"][0], {"name": "sidecar"}
    for kind, beside in (
        ("containers", sidecar),
        ("containers", {**sidecar, "resources": {"limits": {"cpu": "1"}}}),
        (
            "initContainers",
            {**sidecar, "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
        ),
    ):
        spec = {"containers": [app, beside]} if kind == "containers" else {"containers": [app], kind: [beside]}
        plan = ask({**pod, "spec": spec})
        assert plan["notes"] == [note]
        assert ask({**pod, "spec": spec}, cpu_manager_policy="none")["notes"] == []
    small = {**sidecar, "resources": {"limits": {"cpu": "100m", "memory": "100Mi"}}}
    assert ask({**pod, "spec": {"containers": [app, small]}})["notes"] == []
    half = manifest("a", "1500m")["spec"]["containers"][0]
    assert ask({**pod, "spec": {"containers": [half, sidecar]}})["notes"] == []


def test_policy_none_gives_nothing() -> None:
    plan = ask(manifest("a", 4), cpu_manager_policy="none")
    assert [row["exclusive"] for row in plan["containers"]] == [False]
    assert (plan["allocatable"], plan["stranded"], plan["notes"]) == ({}, "", [])
    # The kubelet's own account has no CPUs, and containers run on all.
    assert (cpus(plan), plan["shared_pool"]) == ({"a": "0-47"}, "0-47")
    (row,) = plan["throttling"]
    assert row["usable_cpus"] == 48


ONE_NODE: dict[str, Any] = {
    "topology_manager_policy": "single-numa-node",
    "topology": parse_name("2s1n4c2t").topology(),
}


def whys(plan: dict[str, Any]) -> dict[str, str]:
    return {row["pod"]: row["why"] for row in plan["refused"]}


def with_init(name: str, init: int, app: int) -> dict[str, Any]:
    pod, resources = manifest(name, app), {"resources": {"limits": {"cpu": init, "memory": "1Gi"}}}
    pod["spec"]["initContainers"] = [{**pod["spec"]["containers"][0], "name": "init", **resources}]
    return pod


def test_why_the_topology_manager_refuses_a_pod() -> None:
    """Two NUMA nodes of eight CPUs. The second has room for b, whose init container has taken CPUs of the first."""
    plan = ask(manifest("a", 4), with_init("b", 2, 6), manifest("c", 9), **ONE_NODE, reserved_system_cpus="0")
    assert {name: reason for name, (reason, _message) in refused(plan).items()} == {
        "b": "TopologyAffinityError",
        "c": "TopologyAffinityError",
    }
    assert whys(plan) == {
        "b": (
            "container app wants 6 CPUs of 1 NUMA node, and free are 1 of node 0, 8 of node 1; the CPUs 3,11 of its"
            " init containers, which it takes over, are of node 0"
        ),
        "c": "container app wants 9 CPUs of 1 NUMA node, and free are 3 of node 0, 8 of node 1",
    }
    # Without CPUs of its own it would have gone there.
    assert whys(ask(manifest("a", 4), manifest("b", 6), **ONE_NODE, reserved_system_cpus="0")) == {}


def test_why_a_pod_as_a_whole_is_refused() -> None:
    pod = manifest("a", 5)
    pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "beside"})
    plan = ask(pod, **ONE_NODE, reserved_system_cpus="0", topology_manager_scope="pod")
    assert whys(plan) == {"a": "the pod wants 10 CPUs of 1 NUMA node, and free are 7 of node 0, 8 of node 1"}
    # Two nodes would do, and a third pod finds parts of both.
    restricted: dict[str, Any] = {**ONE_NODE, "topology_manager_policy": "restricted", "reserved_system_cpus": "0"}
    plan = ask(manifest("a", 4), manifest("b", 4), manifest("c", 7), **restricted)
    assert whys(plan) == {"c": "container app wants 7 CPUs of 1 NUMA node, and free are 3 of node 0, 4 of node 1"}


def test_a_running_pod_that_asks_for_other_cpus_keeps_what_it_has() -> None:
    state = write_checkpoint("static", State(CPUSet.parse("0-3,5-15"), {"a": {"app": CPUSet.parse("4")}}))
    plan = ask(manifest("a", 2), **ONE_NODE, reserved_system_cpus="0", checkpoint=state)
    assert (whys(plan), cpus(plan)) == ({}, {"a": "4"})


def test_other_refusals_say_it_themselves() -> None:
    assert whys(ask(manifest("a", 100), reserved_system_cpus="0")) == {"a": ""}


def lacking(resource: str, asked: int, used: int, capacity: int) -> tuple[str, str]:
    message = "Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d"
    return "OutOf" + resource, message % (resource, asked, used, capacity)


def refused(plan: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {row["pod"]: (row["reason"], row["message"]) for row in plan["refused"]}


@pytest.mark.parametrize("policy", ["none", "static"])
def test_requests_are_counted_whatever_the_policy(policy: str) -> None:
    """Two of 48 CPUs are reserved; 100 MiB of 8 GiB are kept for the eviction of pods."""
    plan = ask(
        manifest("shared", "40500m"),
        manifest("much", "500m"),
        manifest("more", "6000m", resources={"requests": {"cpu": "6"}}),
        manifest("fits", "5", resources={"requests": {"cpu": "5"}}),
        manifest("large", "0", resources={"requests": {"memory": "9000Gi"}}),
        manifest("full", "0", resources={"requests": {"memory": "6043Mi"}}),
        manifest("small", "0", resources={"requests": {"memory": "6044Mi"}}),
        manifest("nothing", "0", resources={}),
        memory=8 << 30,
        cpu_manager_policy=policy,
    )
    room, used = (8192 - 100) << 20, 2 << 30
    assert refused(plan) == {
        "more": lacking("cpu", 6000, 41000, 46000),
        "large": lacking("memory", 9000 << 30, used, room),
        "small": lacking("memory", 6044 << 20, used + (6043 << 20), room),
    }


def test_a_pod_without_room_leaves_its_cpus_to_the_next() -> None:
    large = {"limits": {"cpu": "4", "memory": "10Gi"}}
    plan = ask(manifest("large", 4, resources=large), manifest("next", 4), memory=8 << 30)
    assert cpus(plan) == {"next": "1-2,25-26"}
    assert [*refused(plan)] == ["large"]
    assert plan["exclusive"] == "1-2,25-26"


def test_pods_of_the_checkpoint_take_room() -> None:
    state = State(CPUSet.parse("0-9,24-33"), {"other": {"app": CPUSet.parse("10-23,34-47"), "init": CPUSet([10])}})
    plan = ask(manifest("a", "18500m"), manifest("b", "17500m"), checkpoint=write_checkpoint("static", state))
    assert refused(plan) == {"a": lacking("cpu", 18500, 28000, 46000)}


def test_the_memory_that_is_not_known_is_not_counted() -> None:
    assert refused(ask(manifest("a", "0", resources={"requests": {"memory": "9000Gi"}}))) == {}


def test_a_checkpoint_that_is_refused_is_noted() -> None:
    content = write_checkpoint("none", State(CPUSet(), {}))
    plan = ask(checkpoint=content)
    assert plan["notes"] == [
        (
            'the kubelet would refuse the checkpoint (configured policy "static" differs from state checkpoint policy'
            ' "none"); this plan begins with an empty node'
        )
    ]


def test_pods_of_the_checkpoint_stay_and_a_container_that_is_no_longer_there_goes() -> None:
    state = State(CPUSet.parse("0-3,6-47"), {"other": {"app": CPUSet.parse("4")}, "a": {"old": CPUSet.parse("5")}})
    plan = ask(manifest("a", 1), checkpoint=write_checkpoint("static", state))
    assert plan["before"].splitlines() == [
        "default CPU set: 0-3,6-47",
        "pod a, container old: 5",
        "pod other, container app: 4",
    ]
    assert "pod other, container app: 4\n" in plan["after"]
    assert "container old" not in plan["after"]


def test_strict_reservation_can_empty_the_shared_pool() -> None:
    plan = ask(manifest("a", 46), cpu_manager_policy_options={"strict-cpu-reservation": "true"})
    assert plan["shared_pool"] == ""
    assert plan["notes"] == [
        (
            "the shared pool is empty: no other container can run, and the kubelet would not start again"
            " (default cpuset cannot be empty)"
        )
    ]


def test_only_reserved_cpus_left() -> None:
    assert ask(manifest("a", 46))["notes"] == ["only reserved CPUs are left in the shared pool"]


def test_an_endless_distribution_ends_it() -> None:
    plan = ask(
        manifest("a", 2),
        manifest("b", 2),
        manifest("c", 22),
        manifest("d", 2),
        topology=parse_name("4s1n4c2t+adjacent").topology(),
        reserved_system_cpus="0,8",
        cpu_manager_policy_options={"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"},
    )
    assert [row["pod"] for row in plan["refused"]] == ["c", "d"]
    assert {row["reason"] for row in plan["refused"]} == {"EndlessDistribution"}
    assert set(cpus(plan)) == {"a", "b"}


def test_differences_between_two_plans() -> None:
    pods = [manifest("a", 14), manifest("b", 12)]
    first = ask(*pods, topology_manager_policy="single-numa-node")
    second = ask(*pods, topology_manager_policy="none")
    assert compare_plans(first, first) == []
    assert compare_plans(first, second) == [
        {"pod": "b", "container": "app", "this": cpus(first)["b"], "other": cpus(second)["b"]}
    ]
    refused = ask(manifest("a", 40), topology_manager_policy="single-numa-node")
    admitted = ask(manifest("a", 40))
    assert compare_plans(refused, admitted)[0] == {
        "pod": "a",
        "container": "",
        "this": "refused: TopologyAffinityError",
        "other": "admitted",
    }


@pytest.mark.parametrize("options", [{}, {"full-pcpus-only": "true"}, {"strict-cpu-reservation": "true"}])
@given(counts=st.lists(st.integers(1, 12), max_size=12))
def test_nothing_is_lost_and_nothing_given_twice(options: dict[str, str], counts: list[int]) -> None:
    pods = [manifest("pod-%d" % number, count) for number, count in enumerate(counts)]
    plan = ask(*pods, cpu_manager_policy_options=options)
    own = [CPUSet.parse(row["cpus"]) for row in plan["containers"] if row["exclusive"]]
    assert sum(len(mine) for mine in own) == len(CPUSet.parse(plan["exclusive"]))
    assert CPUSet.parse(plan["exclusive"]).isdisjoint(CPUSet.parse(plan["shared_pool"]))
    assert len(plan["refused"]) + len(own) == len(counts)
    kept = XEON.online - CPUSet.parse(plan["reserved"]) if "strict-cpu-reservation" in options else XEON.online
    assert CPUSet.parse(plan["exclusive"]) | CPUSet.parse(plan["shared_pool"]) == kept


def test_a_seed_is_the_end_of_a_plan_for_an_empty_node() -> None:
    manifests = [manifest("a", 4), manifest("b", 200), manifest("c", "100m"), manifest("d", 2)]
    old = write_checkpoint("static", State(CPUSet.parse("0-3,6-47"), {"other": {"app": CPUSet.parse("4-5")}}))
    question = Question(
        XEON, Host(kubelet_view(XEON)), default_configuration(), STATIC, old, pods_from_manifests(manifests)
    )
    state, refused = seed_state(question)
    plan = ask(*manifests)
    assert state.to_text() == plan["after"]
    assert refused == plan["refused"]
    assert [row["pod"] for row in refused] == ["b"]


def test_what_limits_do() -> None:
    shared, exclusive = manifest("web", "200m"), manifest("db", 2)
    plan = ask(shared, exclusive)
    # Exclusive CPUs have no quota, and without a burst the container is always busy.
    row = plan["throttling"][0]
    assert [(row["pod"], row["is_assumed"], row["work_ms"], row["throttled_share"])] == [("web", True, None, 1.0)]
    assert (len(plan["throttling"]), row["limit"], row["quota_us"], row["threads"]) == (1, "200m", 20000, 46)
    plan = ask(shared, exclusive, bursts=[Burst("web", "app", 1, 70_000)], cpu_cfs_quota_period="50ms")
    row = plan["throttling"][0]
    assert (row["is_assumed"], row["work_ms"], row["quota_us"], row["period_us"]) == (False, 70.0, 10000, 50000)
    assert row["latency_ms"]["maximum"] > 300
    assert ask(shared, cpu_cfs_quota=False)["throttling"] == []
    assert ask(manifest("a", 100))["throttling"] == []


def test_exclusive_cpus_with_a_quota() -> None:
    plan = ask(manifest("db", 2), gates={"DisableCPUQuotaWithExclusiveCPUs": False})
    row = plan["throttling"][0]
    assert (row["usable_cpus"], row["quota_us"], row["throttled_share"], row["remedies"]) == (2, 200_000, 0.0, [])


def test_a_burst_of_no_container() -> None:
    with pytest.raises(InputError, match="bursts: no container of the pods is app in db"):
        ask(manifest("web", 1), bursts=[Burst("db", "app")])


ISOLATED = Topology.from_dict({**XEON.to_dict(), "isolated": "4-23,28-47"})


def test_the_policy_isolated() -> None:
    plan = ask(
        manifest("a", 4), manifest("b", "100m"), topology=ISOLATED, policy="isolated", reserved_system_cpus="0,24"
    )
    assert cpus(plan) == {"a": "4-5,28-29", "b": "0-3,24-27"}
    # Whatever is given out, the shared pool is what is not isolated.
    assert (plan["shared_pool"], plan["exclusive"]) == ("0-3,24-27", "4-5,28-29")
    assert plan["allocatable"]["cpus"] == 36
    refused = ask(manifest("big", 41), topology=ISOLATED, policy="isolated", reserved_system_cpus="0,24")
    assert [row["pod"] for row in refused["refused"]] == ["big"]


@pytest.mark.parametrize("policy", ["kubelet", "dynamic", "isolated"])
def test_what_the_static_policy_makes_of_isolated_cpus(policy: str) -> None:
    plan = ask(topology=ISOLATED, policy=policy, reserved_system_cpus="0,24")
    assert plan["isolated"] == {
        "shared": "4-23,28-47",
        "reserved": "",
        "not_isolated": "1-3,25-27",
        "reserve": "0-3,24-27",
        "strict": False,
        "harmless": False,
    }
    right = ask(topology=ISOLATED, policy=policy, reserved_system_cpus="0-3,24-27")
    assert right["isolated"]["harmless"]
    assert ask(policy="kubelet")["isolated"] == {}


def test_policies_that_cannot_be_kept() -> None:
    with pytest.raises(InputError, match="the kernel isolates no CPU"):
        ask(policy="isolated")
    with pytest.raises(InputError, match="are isolated or not there"):
        ask(topology=ISOLATED, policy="isolated", reserved_system_cpus="4")
    with pytest.raises(InputError, match="there is no policy other"):
        ask(policy="other")


def test_the_policy_dynamic_gives_first_sets_as_static_does() -> None:
    pods = (manifest("a", 4), manifest("b", "1"))
    assert cpus(ask(*pods, policy="dynamic")) == cpus(ask(*pods))


def test_the_shared_minimum_of_the_policy_dynamic() -> None:
    """In place of the reservation, and beside it. What the service keeps waiting has no set."""
    pods = [manifest("a", 40), manifest("b", 4), manifest("c", 2)]
    plan = ask(*pods, policy="dynamic", shared_minimum=4, reserved_system_cpus="0,24")
    assert {row["pod"]: len(CPUSet.parse(row["cpus"])) for row in plan["containers"]} == {"a": 40, "c": 2}
    assert [row["pod"] for row in plan["refused"]] == ["b"]
    assert "the shared pool keeps 6 CPUs" in plan["refused"][0]["message"]
    assert (len(CPUSet.parse(plan["shared_pool"])), plan["allocatable"]["cpus"]) == (6, 0)
    assert ask(policy="dynamic", shared_minimum=4, reserved_system_cpus="0,24")["allocatable"] == {
        "cpus": 42,
        "whole_cores": 42,
        "one_socket": 24,
        "one_numa_node": 24,
        "one_l3_cache": 24,
    }
    assert cpus(ask(*pods, policy="kubelet", shared_minimum=4)) == cpus(ask(*pods))
    message = "^shared_minimum: the shared pool could become empty; reserve CPUs with reserved_system_cpus, or give"
    none: dict[str, Any] = {"policy": "dynamic", "cpu_manager_policy": "none", "reserved_system_cpus": ""}
    with pytest.raises(InputError, match=message):
        ask(*pods, **none)
    assert len(ask(*pods, shared_minimum=2, **none)["refused"]) == 0


MANY_NODES: dict[str, Any] = {
    "topology_manager_policy_options": {"max-allowable-numa-nodes": "64"},
    "reserved_system_cpus": "0",
}


def test_more_numa_nodes_than_sets_of_them_can_be_gone_through() -> None:
    """The plan would take as long as the kubelet."""
    many = parse_name("1s17n2c").topology()
    with pytest.raises(RefusedError, match=r"^topology_manager_policy: to admit a pod .* exclusive CPUs, .* 2\^17: "):
        ask(manifest("a", 1), topology=many, topology_manager_policy="restricted", **MANY_NODES)
    assert cpus(ask(manifest("a", 1), topology=many, reserved_system_cpus="0"))
    # Nodes without CPUs are no matter of CPUs.
    memory = parse_name("2s1n4c+memory32").topology()
    plan = ask(manifest("a", 1), topology=memory, topology_manager_policy="restricted", **MANY_NODES)
    assert cpus(plan) == {"a": "1"}
    (note,) = plan["notes"]
    assert note.startswith("topologyManagerPolicy: to admit a pod that asks for devices or memory ")


# A report of two sockets, each with the NUMA nodes of every second number: 15 CPUs were to be of one socket.
ALTERNATING = Topology(
    CPUSet(range(56)),
    [CPUSet((cpu, cpu + 28)) for cpu in range(28)],
    sockets=[Group(socket, CPUSet(range(socket, 56, 2))) for socket in range(2)],
    numa_nodes=[Group(node, CPUSet(range(node, 56, 4))) for node in range(4)],
    caches=[Group(node, CPUSet(range(node, 56, 4))) for node in range(4)],
    numa_distances={a: {b: 10 if a == b else 12 if a % 2 == b % 2 else 21 for b in range(4)} for a in range(4)},
)
ALIGNED = {"align-by-socket": "true"}
WITH_ALPHA: dict[str, Any] = {
    "topology": ALTERNATING,
    "gates": {"CPUManagerPolicyAlphaOptions": True},
    "reserved_system_cpus": "0",
}


def test_sockets_that_a_distribution_does_not_look_at() -> None:
    options = {**ALIGNED, "distribute-cpus-across-numa": "true"}
    plan = ask(manifest("p", "15"), cpu_manager_policy_options=options, **WITH_ALPHA)
    assert cpus(plan) == {"p": "1-2,5-6,9-10,13-14,29-30,33-34,37-38,42"}
    assert [note.partition(": ")[0] for note in plan["notes"][:2]] == ["cpuManagerPolicyOptions.align-by-socket"] * 2
    assert plan["notes"][2:] == [
        (
            "in spite of align-by-socket pod p, container app has CPUs 1-2,5-6,9-10,13-14,29-30,33-34,37-38,42 of 2"
            " sockets, and 1 would hold them"
        )
    ]
    assert plan["exact"]
    # With hints of which both nodes are in one socket nothing is scattered, and one option is still not safe.
    plan = ask(
        manifest("p", "15"), cpu_manager_policy_options=ALIGNED, topology_manager_policy="best-effort", **WITH_ALPHA
    )
    assert [note for note in plan["notes"] if "in spite" in note] == []


def test_l3_caches_in_spite_of_an_option() -> None:
    """Two caches of eight CPUs, of which two and four are left."""
    caches = parse_name("1s1n2l4c2t").topology()
    options = {"prefer-align-cpus-by-uncorecache": "true"}
    pods = [manifest("a", "5"), manifest("b", "4"), manifest("c", "5")]
    plan = ask(*pods, topology=caches, reserved_system_cpus="0", cpu_manager_policy_options=options)
    assert [note.partition(" has ")[0] for note in plan["notes"] if "in spite" in note] == [
        "in spite of prefer-align-cpus-by-uncorecache pod c, container app"
    ]
    assert [note for note in ask(*pods, topology=caches, reserved_system_cpus="0")["notes"] if "in spite" in note] == []
