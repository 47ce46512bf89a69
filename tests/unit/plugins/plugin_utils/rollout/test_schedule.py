# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/rollout/schedule.py: canaries, growing batches, budgets and room."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.schedule import (
    ChangingNode,
    FleetToChange,
    in_batches,
    schedule_of,
    schedule_text,
    shape_of,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, plan_of, pod_of

MUCH = 10**9


def node(number: int, shape: str = "a", **more: Any) -> ChangingNode:
    return ChangingNode("n%02d" % number, shape, **more)


def batches(nodes: Sequence[ChangingNode], allowed: Mapping[str, int] | None = None, free: int = MUCH) -> Any:
    return [[node.host for node in batch.nodes] for batch in in_batches(nodes, allowed or {}, free).batches]


def sizes(nodes: Sequence[ChangingNode], allowed: Mapping[str, int] | None = None, free: int = MUCH) -> list[int]:
    return list(map(len, batches(nodes, allowed, free)))


def test_batches_grow() -> None:
    assert sizes([node(number) for number in range(40)]) == [1, 4, 10, 20, 5]
    assert sizes([node(0)]) == [1]
    assert sizes([node(0), node(1)]) == [1, 1]
    assert sizes([]) == []


def test_a_canary_of_each_shape_comes_first_the_one_with_the_fewest_pods() -> None:
    nodes = [node(number, "abc"[number % 3], pods=30 - number) for number in range(30)]
    found = batches(nodes)
    assert found[:2] == [["n29"], ["n28", "n27"]]
    assert list(map(len, found)) == [1, 2, 3, 7, 15, 2]
    # The others keep their order.
    assert found[2] == ["n00", "n01", "n02"]


def test_a_fleet_of_which_each_node_is_a_shape_of_its_own_is_changed_in_growing_batches() -> None:
    assert sizes([node(number, str(number)) for number in range(200)]) == [1, 20, 50, 100, 29]
    assert sizes([node(number, str(number)) for number in range(8)]) == [1, 1, 2, 4]
    # Thirty shapes of 200 nodes: the canaries grow, and then the others do.
    assert sizes([node(number, str(number % 30)) for number in range(200)]) == [1, 20, 9, 20, 50, 100]


def with_row(plan: dict[str, Any], subject: str, wanted: Any) -> dict[str, Any]:
    return {**plan, "drift": [*plan["drift"], {"subject": subject, "wanted": wanted, "found": None}]}


@pytest.mark.parametrize(
    ("subject", "first", "second", "same"),
    [
        ("container shop/web-%d/app", "1,5", "2,6", True),
        ("cgroup kubepods/burstable/pod%d", "0-7", "0-3", True),
        ("checkpoint", "that of web-1", "that of web-2", True),
        # Of a host's own.
        ("reserved_system_cpus", "0,4", "1,5", True),
        ("kube_reserved_memory", "1Gi", "2Gi", True),
        ("cpu_cfs_quota_period", "11ms", "12ms", True),
        ("topology_manager_policy", "restricted", "single-numa-node", False),
        ("cpu_manager_policy_options", {"full-pcpus-only": "true"}, {"distribute-cpus-across-numa": "true"}, False),
        ("cpu_cfs_quota", True, False, False),
    ],
)
def test_a_shape_is_the_machine_and_the_settings_that_change(subject: str, first: Any, second: Any, same: bool) -> None:
    shapes = {
        shape_of(with_row(plan_of(), subject.replace("%d", str(number)), wanted))
        for number, wanted in enumerate((first, second))
    }
    assert (len(shapes) == 1) is same


def test_the_shape_of_what_a_node_makes_up() -> None:
    answers: list[Any] = [7, [[]], [{"subject": []}], [{"wanted": {}}], None]
    for drift in answers:
        assert shape_of({"drift": drift}) == shape_of({}), drift


def test_another_machine_another_setting_or_another_step_is_another_shape() -> None:
    plan = plan_of()
    others = [
        plan_of(machine="2 sockets x 4 cores x 2 threads"),
        with_row(plan, "reserved_system_cpus", "0,4"),
        {**plan, "actions": [*plan["actions"], "reconcile"]},
    ]
    assert len({shape_of(each) for each in (plan, *others)}) == 4


def test_a_budget_is_kept_in_each_batch() -> None:
    nodes = [node(number, budgets={"shop/db": 1} if number < 6 else {}) for number in range(40)]
    found = batches(nodes, {"shop/db": 2})
    of_budget = {"n%02d" % number for number in range(6)}
    assert [len(of_budget & set(hosts)) for hosts in found] == [1, 2, 2, 1, 0]
    # What is of no budget does not wait.
    assert list(map(len, found)) == [1, 4, 10, 20, 5]


def test_a_node_with_more_of_a_budget_than_it_allows_comes_alone_as_far_as_it_is_concerned() -> None:
    nodes = [node(number, budgets={"shop/db": 3}) for number in range(3)]
    assert sizes(nodes, {"shop/db": 1}) == [1, 1, 1]
    assert sizes(nodes, {"shop/db": 0}) == [1, 1, 1]


def test_what_leaves_finds_room_outside_of_the_batch() -> None:
    """Ten nodes of 2 free CPUs each; what leaves a node asks for 4."""
    nodes = [node(number, cpu=4000, free=2000) for number in range(10)]
    found = in_batches(nodes, {}, 20000).batches
    assert [len(batch.nodes) for batch in found] == [1, 1, 2, 3, 3]
    assert all(4000 * len(batch.nodes) <= 2000 * (10 - len(batch.nodes)) for batch in found)
    # Without any room, each comes alone.
    assert sizes(nodes, free=0) == [1] * 10


NODES = st.lists(
    st.builds(
        lambda shape, cpu, free, pods, counts: ChangingNode("", shape, cpu, free, pods, counts),
        st.sampled_from("ab"),
        st.integers(0, 5000),
        st.integers(0, 5000),
        st.integers(0, 9),
        st.dictionaries(st.sampled_from(["x", "y"]), st.integers(1, 3), max_size=2),
    ),
    max_size=40,
).map(lambda drawn: [row._replace(host="n%d" % number) for number, row in enumerate(drawn)])


@given(NODES, st.integers(0, 100000), st.integers(0, 4), st.integers(0, 4))
def test_each_node_comes_once_and_each_batch_keeps_to_what_it_may(
    nodes: list[ChangingNode], free: int, first: int, second: int
) -> None:
    allowed = {"x": first, "y": second}
    found = [batch.nodes for batch in in_batches(nodes, allowed, free).batches]
    assert sorted(node.host for batch in found for node in batch) == sorted(node.host for node in nodes)
    assert all(found)
    for batch in found:
        if len(batch) > 1:
            assert sum(node.cpu for node in batch) <= free - sum(node.free for node in batch)
            for budget, most in allowed.items():
                assert sum(node.budgets.get(budget, 0) for node in batch) <= max(1, most)


SHAPES = st.integers(1, 300).flatmap(
    lambda shapes: st.lists(
        st.builds(
            lambda shape, drains, cpu, pods, counts: (
                ChangingNode("", str(shape), cpu, 3000, pods, counts) if drains else ChangingNode("", str(shape))
            ),
            st.integers(1, shapes),
            st.booleans(),
            st.integers(0, 5000),
            st.integers(0, 9),
            st.dictionaries(st.sampled_from(["x", "y"]), st.integers(1, 3), max_size=2),
        ),
        max_size=300,
    ).map(lambda drawn: [row._replace(host="n%d" % number) for number, row in enumerate(drawn)])
)


@given(SHAPES, st.sampled_from([0, 20000, MUCH]), st.integers(0, 40))
def test_no_batch_is_larger_than_it_would_be_in_a_fleet_of_one_shape(
    nodes: list[ChangingNode], free: int, most: int
) -> None:
    """Whatever the shapes, drains and budgets are; and a canary of each shape comes before its others."""
    found = [batch.nodes for batch in in_batches(nodes, {"x": most, "y": 2}, free).batches]
    assert sorted(node.host for batch in found for node in batch) == sorted(node.host for node in nodes)
    assert all(found)
    plain = [1, *sorted({max(1, int(len(nodes) * share)) for share in (0.1, 0.25, 0.5)})]
    for number, batch in enumerate(found):
        assert len(batch) <= plain[min(number, len(plain) - 1)]
    of_shape: dict[str, list[int]] = {}
    for number, batch in enumerate(found):
        for row in batch:
            of_shape.setdefault(row.shape, []).append(number)
    for numbers in of_shape.values():
        assert numbers[1:] == [] or numbers[0] < min(numbers[1:])


@pytest.mark.parametrize("free", [0, 50_000_000, MUCH])
def test_the_work_grows_with_the_nodes(free: int) -> None:
    """Of 10,000 nodes, where each batch takes few: not with the pairs."""
    nodes = [
        ChangingNode("n%05d" % number, str(number % 20), 30000, 5000, 30, {"ns/%d" % (number % 300): 1, "ns/all": 1})
        for number in range(10000)
    ]
    allowed = {**{"ns/%d" % number: 1 for number in range(300)}, "ns/all": 40}
    found = in_batches(nodes, allowed, free)
    assert sum(len(batch.nodes) for batch in found.batches) == len(nodes)
    assert found.looks <= 60 * len(nodes)


# --- what an API server says --------------------------------------------------------------------------


def budget(name: str, allowed: Any, selector: Any, namespace: str = "shop") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    }


def labelled(name: str, on: str, cpu: str = "2", kind: str = "StatefulSet", **labels: str) -> dict[str, Any]:
    found = pod_of(name, on, cpu, (kind, "db"))
    found["metadata"]["labels"] = labels
    return found


def with_cpus(name: str, cpus: str, **spec: Any) -> dict[str, Any]:
    return {**node_of(name, **spec), "status": {"allocatable": {"cpu": cpus}}}


HOSTS = {"host-" + name: (name, "shape", True) for name in "abcd"}
ROOMY = [with_cpus(name, "64") for name in "abcd"]


def hosts_of(found: Mapping[str, Any]) -> list[list[str]]:
    return [row["hosts"] for row in found["batches"]]


@pytest.mark.parametrize(
    ("selector", "alone"),
    [
        ({"matchLabels": {"app": "db"}}, True),
        ({"matchLabels": {"app": "web"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({}, True),
    ],
)
def test_budgets_are_read_not_guessed(selector: Any, alone: bool) -> None:
    pods = [labelled("db-" + name, name, app="db") for name in "abcd"]
    nodes = {**HOSTS, **{"host-%d" % number: (str(number), "shape", True) for number in range(16)}}
    found = schedule_of(FleetToChange(nodes, ROOMY, pods, [budget("db", 1, selector)]))
    of_budget = [len({"host-" + name for name in "abcd"} & set(hosts)) for hosts in hosts_of(found)]
    assert (max(of_budget) == 1) is alone


def test_pods_of_other_namespaces_and_daemonsets_are_not_of_a_budget() -> None:
    pods = [labelled("agent-" + name, name, kind="DaemonSet", app="db") for name in "abcd"]
    elsewhere = [budget("db", 1, {}, "other")]
    for budgets in ([budget("db", 1, {})], elsewhere):
        found = schedule_of(FleetToChange(HOSTS, ROOMY, pods, budgets))
        assert [row["pods"] for row in found["batches"]] == [0] * len(found["batches"])


def test_room_is_what_nodes_have_less_what_is_asked_for() -> None:
    """Each node has 4 CPUs, and pods of 3: nobody finds room, and each comes alone."""
    nodes = [with_cpus(name, "4") for name in "abcd"]
    pods = [labelled("db-" + name, name, "3") for name in "abcd"]
    assert hosts_of(schedule_of(FleetToChange(HOSTS, nodes, pods))) == [["host-" + name] for name in "abcd"]
    # A further node has room for all; a cordoned one for none.
    more = [*nodes, with_cpus("e", "64")]
    many = {**HOSTS, **{"host-%d" % number: ("none", "shape", False) for number in range(20)}}
    assert max(map(len, hosts_of(schedule_of(FleetToChange(many, more, pods))))) > 4


def test_how_long_it_takes_is_said_where_it_was_measured() -> None:
    fleet = FleetToChange(HOSTS, ROOMY)
    assert schedule_of(fleet)["seconds"] is None
    found = schedule_of(fleet, 300)
    assert found["seconds"] == 300 * len(found["batches"])
    assert "  takes about 15 minutes" in schedule_text(found).splitlines()
    assert (found["node_seconds"], found["measured"]) == (300, 0)
    unknown = "  how long it takes is not known: no node has measured a drain, and cpu_manager_drain_seconds is not set"
    assert unknown in schedule_text(schedule_of(fleet)).splitlines()


def test_the_median_of_what_nodes_have_measured_counts() -> None:
    times = {"x": 100, "y": 500, "z": 241, "new": None}
    found = schedule_of(FleetToChange(HOSTS, ROOMY, times=times))
    assert (found["node_seconds"], found["measured"]) == (241, 3)
    assert found["seconds"] == 241 * len(found["batches"])
    told = "as a batch takes 241 seconds by the median of 3 earlier drains that were measured"
    assert told in schedule_text(found)
    assert found["notes"] == []
    # What is given counts more.
    assert schedule_of(FleetToChange(HOSTS, ROOMY, times=times), 60)["node_seconds"] == 60
    # No time of a drain says how long it takes without.
    undrained = {host: (name, shape, False) for host, (name, shape, _drains) in HOSTS.items()}
    assert schedule_of(FleetToChange(undrained, ROOMY, times=times))["seconds"] is None


@given(
    st.dictionaries(
        st.text(), st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none())
    )
)
def test_times_are_data(times: Mapping[str, object]) -> None:
    found = schedule_of(FleetToChange(HOSTS, ROOMY, times=times))
    good = [value for value in times.values() if isinstance(value, int) and value is not True and 0 < value <= 86400]
    assert found["measured"] == len(good)
    assert (found["node_seconds"] or 0) <= 86400
    if any(value is not None for value in times.values()) and len(good) < len(times) - list(times.values()).count(None):
        (note,) = found["notes"]
        assert note.startswith("tell of a drain that took no possible time, which is left out: ")


def test_a_budget_that_allows_nothing_is_told() -> None:
    pods = [labelled("db-a", "a", app="db")]
    found = schedule_of(
        FleetToChange(HOSTS, ROOMY, pods, [budget("db", 0, {}), budget("idle", 0, {"matchLabels": {"a": "b"}})])
    )
    assert found["notes"] == ["allow no disruption now, so that the drains of their pods wait: shop/db"]


def test_what_cannot_be_read_is_told_and_the_rest_is_answered() -> None:
    bad = pod_of("bad", "a", "many")
    found = schedule_of(
        FleetToChange(
            HOSTS,
            [*ROOMY, None, {"metadata": {"name": "odd"}, "status": {"allocatable": {"cpu": "many"}}}],
            [bad, None, {"metadata": 7}, labelled("db-a", "a")],
            [None, budget("odd", "many", {}), budget("null", 1, None)],
        )
    )
    assert sum(map(len, hosts_of(found))) == 4
    assert found["notes"] == [
        "budgets that cannot be read, and are left out: /, shop/odd, shop/null",
        "pods that cannot be read, and are left out: shop/bad, /",
        "nodes that cannot be read, and take no pods here: odd",
    ]


def test_a_large_fleet_is_few_lines() -> None:
    hosts = {"h%04d" % number: ("n%04d" % number, "shape", False) for number in range(2000)}
    lines = schedule_text(schedule_of(FleetToChange(hosts))).splitlines()
    assert lines[0] == "Order of 2000 nodes by what runs there; batches: 5"
    assert max(map(len, lines)) < 200
