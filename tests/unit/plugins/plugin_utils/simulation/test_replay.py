# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/simulation/replay.py and result.py."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicRules
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.replay import (
    POLICIES,
    Beside,
    Placement,
    Replay,
    new_node,
    replay,
    shares_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.result import (
    compare,
    draw,
    summary,
    table,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.trace import (
    TRACES,
    Trace,
    TracePod,
    make_trace,
)


def rules_of(text: str = "1 socket x 8 cores", reserved: str = "0") -> DynamicRules:
    described = describe_machine(text)
    return DynamicRules(kubelet_view(described), CPUSet.parse(reserved), distances=described.numa_distances)


def pod(name: str, cpu: int, load: float, arrives: float = 0.0, leaves: float = 100.0, most: int = 0) -> TracePod:
    qos_class = "Burstable" if cpu % 1000 else "Guaranteed"
    return TracePod(name, qos_class, cpu, most, arrives, leaves, ((0.0, load),))


def trace_of(*pods: TracePod) -> Trace:
    return Trace("mine", "mine", 100.0, sorted(pods, key=lambda pod: pod.arrives))


def served(found: Replay, name: str) -> dict[str, Any]:
    return next(row.to_dict() for row in found.served if row.pod.name == name)


# --- replay -------------------------------------------------------------------------------------------


def test_threads_run_on_as_many_cpus_as_there_are() -> None:
    """A pod with 2 CPUs of which 3 threads want to run; one that uses 1 of 2; two that share the rest."""
    trace = trace_of(
        pod("busy", 2000, 3.0), pod("idle", 2000, 1.0), pod("small", 500, 4.0), pod("large", 1500, 4.0, 50.0)
    )
    found = replay(trace, "static", rules_of())
    assert served(found, "busy")["thread_seconds_run"] == 200
    assert served(found, "busy")["thread_seconds_waited"] == 100
    assert served(found, "busy")["utilisation"] == 1
    assert served(found, "idle")["utilisation"] == 0.5
    # 4 CPUs for the first half; then by weight 1 to 3.
    assert served(found, "small")["thread_seconds_run"] == 50 * 4 + 50 * 1
    assert served(found, "large")["thread_seconds_run"] == 50 * 3
    assert found.ran == 200 + 100 + 250 + 150
    assert found.waited == 100 + 150 + 50
    assert found.capacity == 800


def test_without_exclusive_cpus_a_limit_is_a_limit() -> None:
    found = replay(trace_of(pod("busy", 2000, 3.0)), "none", rules_of())
    assert served(found, "busy")["thread_seconds_run"] == 200
    assert served(found, "busy")["utilisation"] is None
    assert served(found, "busy")["first_set_after"] is None


def test_a_pod_that_is_refused_does_not_run() -> None:
    found = replay(trace_of(pod("a", 4000, 4.0), pod("b", 4000, 4.0, 10.0)), "static", rules_of())
    assert served(found, "b")["refused"] == "UnexpectedAdmissionError"
    assert served(found, "b")["thread_seconds_waited"] == 360
    assert summary(found)["refused"] == ["b"]


WHOLE = Beside("restricted", "pod")


def whole(name: str, cpu: int, load: float, **containers: int) -> TracePod:
    return pod(name, 1000 * cpu, load)._replace(containers=containers)


@pytest.mark.parametrize(
    ("containers", "beside", "ran", "owned"),
    [
        # Whoever shares uses all that the pod has.
        ({"a": 2, "b": 0}, WHOLE, 4, 4),
        ({"a": 0, "b": 0}, WHOLE, 4, 4),
        # Two of its CPUs are of no container.
        ({"a": 1, "b": 1}, WHOLE, 2, 4),
        # By containers: a has 2 CPUs, and b 2 of the pool.
        ({"a": 2, "b": 0}, Beside("restricted", "container"), 4, 2),
        ({"a": 2, "b": 0}, Beside(), 4, 2),
        ({"a": 2, "b": 1}, Beside(), 3, 3),
        ({"a": 0}, Beside(), 4, 0),
    ],
)
def test_a_pod_with_cpus_as_a_whole(containers: Any, beside: Beside, ran: int, owned: int) -> None:
    found = replay(trace_of(whole("p", 4, 6.0, **containers)), "static", rules_of(), beside=beside)
    row = served(found, "p")
    assert (row["thread_seconds_run"], row["exclusive_cpu_seconds"]) == (100 * ran, 100 * owned)
    assert (row["refused"], row["utilisation"]) == ("", min(ran, owned) / owned if owned else None)
    # Without the static policy it has a limit, as any pod.
    assert (
        served(replay(trace_of(whole("p", 4, 6.0, **containers)), "none", rules_of(), beside=beside), "p")[
            "thread_seconds_run"
        ]
        == 400
    )


def test_what_containers_by_themselves_use_of_the_pool_is_missing_to_others() -> None:
    trace = trace_of(whole("p", 6, 6.0, a=2, b=0), pod("web", 4500, 8.0))
    found = replay(trace, "static", rules_of(), beside=Beside())
    # Of 6 CPUs of the pool b has 4 parts of 8.5.
    assert served(found, "p")["thread_seconds_run"] == pytest.approx(100 * (2 + 6 * 4 / 8.5))
    assert served(found, "web")["thread_seconds_run"] == pytest.approx(100 * 6 * 4.5 / 8.5)


def test_pods_with_cpus_as_a_whole_are_refused_as_by_the_kubelet() -> None:
    full = trace_of(whole("full", 4, 4.0, a=2, b=2, x=0), whole("rest", 4, 4.0, a=4))
    for policy, reason in (("restricted", "TopologyAffinityError"), ("best-effort", "EmptyPodSharedPoolError")):
        assert [row.refused for row in replay(full, "static", rules_of(), beside=Beside(policy, "pod")).served] == [
            reason,
            "",
        ]
    with pytest.raises(InputError, match="pod full: the policy dynamic gives no CPUs to pods as a whole"):
        replay(full, "dynamic", rules_of(), beside=WHOLE)


def test_the_memory_of_a_pod_as_a_whole_is_counted_once() -> None:
    memory = whole("p", 2, 2.0, a=1, b=0)._replace(resources={"memory": (6 << 30) * 1000})
    trace = trace_of(memory, memory._replace(name="q"), memory._replace(name="r"))
    found = replay(trace, "static", rules_of("2 sockets x 4 cores"), beside=ALIGNED._replace(topology_scope="pod"))
    assert [bool(row.refused) for row in found.served] == [False, False, True]


GPU = "nvidia.com/gpu"
# Each of the two NUMA nodes has 4 CPUs, 1 GPU and 8 Gi, of which 1 Gi of the first is reserved.
ALIGNED = Beside(
    "single-numa-node",
    numa_memory={0: {"memory": 8 << 30}, 1: {"memory": 8 << 30}},
    reserved_memory={0: {"memory": 1 << 30}},
    devices=[{"resource": GPU, "count": 1, "numa_nodes": [node]} for node in (0, 1)],
)


def asking(pod: TracePod, memory: int, gpus: int) -> TracePod:
    return pod._replace(resources={"memory": (memory << 30) * 1000, GPU: gpus * 1000})


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_and_devices_decide_on_a_pod_as_the_kubelet_does(policy: str) -> None:
    rules = rules_of("2 sockets x 4 cores")
    trace = trace_of(
        asking(pod("first", 2000, 1.0), 6, 1),
        # No memory is left beside the other GPU for so much, and then there is.
        asking(pod("large", 2000, 1.0, 10.0), 9, 1),
        asking(pod("second", 2000, 1.0, 20.0, 60.0), 8, 1),
        asking(pod("third", 1000, 1.0, 30.0), 1, 1),
        asking(pod("fourth", 1000, 1.0, 70.0), 1, 1),
    )
    found = replay(trace, policy, rules, beside=ALIGNED)
    assert summary(found)["refused"] == ["large", "third"]
    # The memory manager has no hint for what it cannot give, and then cannot give it.
    assert served(found, "large")["refused"] == "UnexpectedAdmissionError"
    assert summary(replay(trace, policy, rules))["refused"] == []


def test_cpus_are_aligned_where_the_kubelet_gives_them_out() -> None:
    """Of the four CPUs of a NUMA node, one is reserved."""
    trace = trace_of(asking(pod("a", 4000, 4.0), 1, 1), asking(pod("b", 4000, 4.0, 10.0), 1, 1))
    rules = rules_of("2 sockets x 4 cores")
    assert summary(replay(trace, "static", rules, beside=ALIGNED))["refused"] == ["b"]
    assert summary(replay(trace, "dynamic", rules, beside=ALIGNED))["refused"] == []


def test_memory_of_other_numa_nodes() -> None:
    with pytest.raises(InputError, match="there are the NUMA nodes 0, 1, and the machine has 0"):
        new_node("static", RULES, ALIGNED._replace(devices=()))


def test_who_goes_makes_room_for_who_comes() -> None:
    trace = trace_of(pod("a", 7000, 1.0, 0.0, 50.0), pod("b", 7000, 7.0, 50.0), pod("c", 1000, 1.0, 100.0, 100.0))
    found = replay(trace, "static", rules_of())
    assert served(found, "b")["first_set_after"] == 0
    assert served(found, "b")["thread_seconds_run"] == 350
    assert served(found, "c")["thread_seconds_wanted"] == 0


def test_dynamic_serves_what_static_leaves_waiting() -> None:
    trace = trace_of(pod("busy", 2000, 6.0, most=6))
    found = [replay(trace, policy, rules_of(), 10.0) for policy in ("static", "dynamic")]
    # It is seen at 10 s: 3 CPUs, 4 at 20; 5 at 30 and 6 at 40, as another one of its size is to find room.
    assert served(found[0], "busy")["thread_seconds_run"] == 200
    assert served(found[1], "busy")["thread_seconds_run"] == 2 * 10 + 3 * 10 + 4 * 10 + 5 * 10 + 6 * 60
    compared = compare(found[1], found[0])
    assert not compared.worse
    assert compared.better == [("busy", 300.0)]
    assert compared.saved_part == 300 / 400


def test_the_times_of_a_load_are_those_of_the_pod() -> None:
    load = ((0.0, 0.0), (10.0, 1.0), (20.0, 0.0), (30.0, 2.0))
    found = replay(trace_of(pod("a", 2000, 0.0, 5.0, 40.0)._replace(load=load)), "static", rules_of())
    assert served(found, "a")["thread_seconds_run"] == 1 * 10 + 2 * 5
    assert [at for at, _placement in found.timeline] == [0.0, 5.0, 40.0]


# --- result -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_on_the_documented_traces_no_pod_waits_longer_than_under_static(name: str) -> None:
    rules = rules_of("2 sockets x 12 cores x 2 threads", "0,24")
    trace = make_trace(name, 1, 48)
    found = {policy: replay(trace, policy, rules) for policy in ("static", "dynamic")}
    compared = compare(found["dynamic"], found["static"])
    assert not compared.worse
    assert compared.better
    assert compared.saved_part > {"services": 0.9, "batch": 0.1, "crowded": 0.5}[name]
    assert not summary(found["static"])["refused"]
    # The same again, to the last digit.
    assert replay(trace, "dynamic", rules) == found["dynamic"]


def test_what_is_not_better_is_said() -> None:
    trace = trace_of(pod("busy", 2000, 6.0, most=6), pod("web", 500, 2.0))
    static, dynamic = (replay(trace, policy, rules_of()) for policy in ("static", "dynamic"))
    compared = compare(static, dynamic)
    assert [name for name, _seconds in compared.worse] == ["busy"]
    text = compared.to_text()
    assert text.startswith("static: 1 of 2 pods wait longer than under dynamic, most of all busy, by ")
    assert "it is not better: in all the threads wait" in text
    assert compared.to_dict()["never_worse"] is False
    same = compare(static, static)
    assert same.to_text() == (
        "static: no pod waits longer than under static; it is not better: in all the threads wait 0 seconds more"
    )


def test_the_table_has_a_line_for_each_policy() -> None:
    trace = trace_of(pod("busy", 2000, 3.0))
    lines = table([summary(replay(trace, policy, rules_of())) for policy in POLICIES]).splitlines()
    assert [line.split()[0] for line in lines] == ["policy", *POLICIES]
    assert lines[2].split() == ["static", "25.0", "%", "100.0", "%", "33.3", "%", "100", "0", "0"]
    assert lines[1].split()[3] == "-"


# --- picture ------------------------------------------------------------------------------------------


def test_the_picture_shows_each_cpu_all_the_time() -> None:
    rules = rules_of("2 sockets x 4 cores x 2 threads", "0,8")
    trace = trace_of(pod("a<b>&c", 2000, 6.0, most=6), pod("late", 3000, 1.0, 50.0), pod("web", 500, 1.0))
    replays = [replay(trace, policy, rules) for policy in POLICIES]
    picture = draw("node <1>", replays, rules, trace.duration)
    root = ElementTree.fromstring(picture)
    area: dict[str, float] = {}
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        title = rect.findtext("{http://www.w3.org/2000/svg}title")
        if title and title != "reserved":
            owner = title.partition(":")[0]
            size = float(rect.get("width", "0")) * float(rect.get("height", "0"))
            area[owner] = area.get(owner, 0.0) + size
    assert set(area) == {"shared pool", "a<b>&c", "late"}
    # Three panels: nothing twice, nothing left out.
    assert sum(area.values()) == pytest.approx(3 * 924 * 240, rel=0.01)
    assert picture.count(">reserved<") == 3
    assert "node &lt;1&gt;" in picture
    assert draw("node <1>", replays, rules, trace.duration) == picture


def test_a_large_machine_has_a_row_for_each_cpu() -> None:
    rules = rules_of("2 sockets x 128 cores x 2 threads")
    picture = draw("large", [replay(trace_of(pod("a", 2000, 1.0)), "static", rules)], rules, 100.0)
    assert ElementTree.fromstring(picture).get("height") == str(46 + 1024 + 10 + 48 - 8)


RULES = DynamicRules(kubelet_view(describe_machine("1 socket x 8 cores")), CPUSet([0]))


def guaranteed(name: str, cpus: int, most: int = 0) -> TracePod:
    return TracePod(name, "Guaranteed", 1000 * cpus, most, 0.0, 100.0, ())


def test_none() -> None:
    node = new_node("none", RULES)
    assert node.add(guaranteed("a", 20)) == ""
    assert node.placement() == Placement(0b11111111, {})
    node.remove(guaranteed("a", 20))
    assert not node.passes


def test_static() -> None:
    node = new_node("static", RULES)
    assert node.add(guaranteed("a", 4)) == ""
    assert node.add(guaranteed("b", 4)) == "UnexpectedAdmissionError"
    assert node.placement() == Placement(0b11100001, {"a": 0b11110})
    node.remove(guaranteed("a", 4))
    assert node.placement() == Placement(0b11111111, {})
    assert (node.moves, node.passes) == (0, False)


def test_dynamic() -> None:
    node = new_node("dynamic", RULES)
    assert node.passes
    assert node.add(guaranteed("a", 2, 6)) == ""
    node.look(
        {"a": 2.0},
        0.0,
    )
    assert node.placement() == Placement(0b11110001, {"a": 0b1110})
    assert node.moves == 4  # the pool and the container, twice
    assert node.add(guaranteed("b", 20)) == ""  # it uses the pool
    assert set(node.placement().exclusive) == {"a"}
    node.remove(guaranteed("a", 2, 6))
    assert node.placement() == Placement(0b11111111, {})


def test_the_pool_keeps_what_it_used_in_the_last_minute() -> None:
    node = new_node("dynamic", RULES)
    node.add(guaranteed("a", 2, 6))
    node.look({}, 2.5)
    for _period in range(5):
        node.now += 10
        node.look({"a": 9.0}, 0.0)
    assert str(CPUSet.from_mask(node.placement().exclusive["a"])) == "1-3"
    for _period in range(3):
        node.now += 10
        node.look({"a": 9.0}, 0.0)
    assert str(CPUSet.from_mask(node.placement().exclusive["a"])) != "1-3"


@pytest.mark.parametrize("policy", POLICIES)
def test_rules_that_cannot_be_kept_are_refused(policy: str) -> None:
    with pytest.raises(InputError):
        new_node(policy, RULES._replace(reserved=CPUSet([9])))


@pytest.mark.parametrize(
    ("weights", "wanted", "cpus", "shares"),
    [
        ([1, 1], [1, 1], 4, [1, 1]),
        ([1, 1], [4, 4], 4, [2, 2]),
        ([1, 3], [4, 4], 4, [1, 3]),
        ([1, 3], [4, 1], 4, [3, 1]),
        ([1, 1, 2], [0.5, 9, 9], 4, [0.5, 3.5 / 3, 7 / 3]),
        ([1, 1], [0, 3], 2, [0, 2]),
        ([1], [1], 0, [0]),
        ([], [], 4, []),
    ],
)
def test_shares(weights: list[float], wanted: list[float], cpus: float, shares: list[float]) -> None:
    assert shares_of(weights, wanted, cpus) == pytest.approx(shares)


@given(st.lists(st.tuples(st.integers(2, 9000), st.floats(0, 50)), max_size=20), st.integers(0, 64))
def test_nothing_is_lost_and_nobody_gets_more_than_he_wants(pods: list[tuple[int, float]], cpus: int) -> None:
    weights, wanted = [weight for weight, _want in pods], [want for _weight, want in pods]
    shares = shares_of(weights, wanted, cpus)
    assert sum(shares) == pytest.approx(min(cpus, sum(wanted)), abs=1e-6)
    assert all(share <= want + 1e-9 for share, want in zip(shares, wanted))
    # Who lacks something has at least as much by weight as any other.
    for weight, want, share in zip(weights, wanted, shares):
        if share < want - 1e-6:
            assert all(share / weight >= another / total - 1e-6 for total, another in zip(weights, shares))
