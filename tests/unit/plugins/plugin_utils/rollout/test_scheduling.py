# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/rollout/scheduling.py."""

from __future__ import annotations

from itertools import product
from typing import Any, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.scheduling import (
    Claim,
    FreeNode,
    Place,
    cpu_request,
    rules_of,
    shortage,
    static_hosts,
    unplaced,
)

PLACE = Place("worker-1", {"disk": "ssd", "cores": "16"})


def expression(operator: str, *values: str, key: str = "disk") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def chosen(*terms: Any) -> bool:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return rules_of({"affinity": {"nodeAffinity": required}}).choose(PLACE)


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (expression("In", "hdd", "ssd"), True),
        (expression("In", "hdd"), False),
        (expression("In", "ssd", key="tier"), False),
        (expression("NotIn", "hdd"), True),
        (expression("NotIn", "ssd"), False),
        (expression("NotIn", "ssd", key="tier"), True),
        (expression("Exists"), True),
        (expression("Exists", key="tier"), False),
        (expression("DoesNotExist"), False),
        (expression("DoesNotExist", key="tier"), True),
        (expression("Gt", "8", key="cores"), True),
        (expression("Gt", "16", key="cores"), False),
        (expression("Lt", "17", key="cores"), True),
        (expression("Lt", "16", key="cores"), False),
        # What is no number, not there, or no operator, is met by no node.
        (expression("Gt", "8"), False),
        (expression("Gt", key="cores"), False),
        (expression("Lt", "8", key="tier"), False),
        (expression("Near", "ssd"), False),
    ],
)
def test_operators(requirement: dict[str, Any], holds: bool) -> None:
    assert chosen({"matchExpressions": [requirement]}) is holds


def test_any_term_is_enough_and_all_of_a_term_must_hold() -> None:
    ssd, hdd = ({"matchExpressions": [expression("In", disk)]} for disk in ("ssd", "hdd"))
    assert chosen(hdd, ssd)
    assert not chosen({"matchExpressions": [expression("In", "ssd"), expression("Exists", key="tier")]})
    named = {"matchFields": [expression("In", "worker-1", key="metadata.name")]}
    assert chosen(named)
    assert chosen({**named, **ssd})
    assert not chosen({**named, **hdd})
    # Terms that ask for nothing, or no terms, are met by no node.
    assert not chosen({})
    assert not chosen()


def test_the_only_nodes_of_a_pod() -> None:
    def names(*terms: Any) -> list[str] | None:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        return rules_of({"affinity": {"nodeAffinity": required}}).only_names()

    first, second = ({"matchFields": [expression("In", name, key="metadata.name")]} for name in ("a", "b"))
    assert names(first, second) == ["a", "b"]
    assert names(first, {"matchExpressions": [expression("Exists")]}) is None
    assert names({"matchFields": [expression("NotIn", "a", key="metadata.name")]}) is None
    assert rules_of({}).only_names() is None


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def container(cpu: str = "", name: str = "app", limited: bool = False, **fields: Any) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": {"cpu": cpu}} if cpu else {}
    if limited:
        resources = {"limits": {"cpu": cpu, "memory": "1Gi"}}
    return {"name": name, "resources": resources, **fields}


def pod(name: str, node: str, cpu: str = "", limited: bool = False, owner: str = "ReplicaSet", **spec: Any) -> Any:
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": "u-" + name,
            "ownerReferences": [{"kind": owner, "controller": True}] if owner else [],
        },
        "spec": {"nodeName": node, "containers": [container(cpu, limited=limited)], **spec},
        "status": {"phase": "Running"},
    }


def node(name: str, cpu: str = "8", ready: str = "True", labels: Any = None, **spec: Any) -> Any:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": ready}]},
    }


def short(nodes: Any, pods: Any, drained: Sequence[str] = ("a",), static: Sequence[str] = ()) -> list[str]:
    return [claim.pod[len("shop/") :] for claim in shortage(nodes, pods, drained, static)]


# --- what a pod asks for ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "millis"),
    [
        ({"containers": [container()]}, 0),
        ({"containers": [container("1500m"), container("1", "two")]}, 2500),
        ({"containers": [container("2", limited=True)]}, 2000),  # a request for each limit
        # Of init containers that end, the largest counts, if it is more than all the rest.
        ({"containers": [container("1")], "initContainers": [container("3", "x"), container("2", "y")]}, 3000),
        ({"containers": [container("4")], "initContainers": [container("3", "x")]}, 4000),
        # Sidecars stay: beside the app containers, and beside the init containers after them.
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2", "s", restartPolicy="Always"), container("3", "x")],
            },
            5000,
        ),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("3", "x"), container("2", "s", restartPolicy="Always")],
            },
            3000,
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "6"}}}, 6000),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "6"}}, "overhead": {"cpu": "1"}}, 7000),
        ({"containers": [container("1")], "resources": {"requests": {"memory": "1Gi"}}}, 1000),
    ],
)
def test_request(spec: dict[str, Any], millis: int) -> None:
    assert cpu_request({"metadata": {"name": "one"}, "spec": spec}) == millis


@pytest.mark.parametrize(("allocated", "millis"), [("3", 3000), ("1", 2000)])
def test_a_container_that_is_resized_counts_with_the_larger_amount(allocated: str, millis: int) -> None:
    resized = pod("one", "a", "2")
    resized["status"]["containerStatuses"] = [{"name": "app", "allocatedResources": {"cpu": allocated}}]
    assert cpu_request(resized) == millis


def test_a_pod_that_cannot_be_read() -> None:
    with pytest.raises(InputError, match="shop/bad"):
        short([node("a"), node("b")], [pod("bad", "b", "many")])


# --- rooms -------------------------------------------------------------------------------------------


def test_what_others_ask_for_is_not_free() -> None:
    nodes, web = [node("a"), node("b", "4")], pod("web", "a", "3")
    assert short(nodes, [web]) == []
    assert short(nodes, [web, pod("closed", "b", "1")]) == []
    assert short(nodes, [web, pod("closed", "b", "1001m")]) == ["web"]
    # Those of DaemonSets, too; one that has ended needs nothing.
    assert short(nodes, [web, pod("agent", "b", "2", owner="DaemonSet")]) == ["web"]
    done = pod("done", "b", "2")
    done["status"] = {"phase": "Succeeded"}
    assert short(nodes, [web, done]) == []


@pytest.mark.parametrize(
    "closed",
    [
        node("b", ready="False"),
        node("b", ready="Unknown"),
        node("b", unschedulable=True),
        node("b", taints=[TAINT]),
        node("b", taints=[{**TAINT, "effect": "NoExecute"}]),
        node("b", "2"),
    ],
)
def test_nodes_that_take_no_pods(closed: Any) -> None:
    assert short([node("a"), closed], [pod("web", "a", "3")]) == ["web"]
    assert short([node("a"), closed, node("c")], [pod("web", "a", "3")]) == []


def test_nodes_that_are_drained_at_the_same_time() -> None:
    nodes, pods = [node("a"), node("b")], [pod("web", "a", "3")]
    assert short(nodes, pods, ["a"]) == []
    assert short(nodes, pods, ["a", "b"]) == ["web"]


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"value": "yes"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], fits: bool) -> None:
    nodes = [node("a"), node("b", taints=[TAINT, {"key": "soft", "effect": "PreferNoSchedule"}])]
    assert short(nodes, [pod("web", "a", "3", tolerations=[toleration])]) == ([] if fits else ["web"])


def test_selectors() -> None:
    nodes = [node("a", labels={"disk": "ssd"}), node("b"), node("c", "2", labels={"disk": "ssd"})]
    web = pod("web", "a", "3", nodeSelector={"disk": "ssd"})
    assert short(nodes, [web]) == ["web"]
    nodes[2]["status"]["allocatable"]["cpu"] = "3"
    assert short(nodes, [web]) == []
    # So does what it requires as its affinity.
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    bound = pod("web", "a", "4", affinity={"nodeAffinity": required})
    assert short(nodes, [bound]) == ["web"]
    # One that goes with no other node waits for its own, whatever is free.
    assert short(nodes, [pod("db", "a", "9", nodeSelector={"kubernetes.io/hostname": "a"})]) == []


# --- who leaves --------------------------------------------------------------------------------------


def test_pods_that_need_no_room() -> None:
    staying = pod("agent", "a", "9", owner="DaemonSet")
    mirror = pod("static", "a", "9", owner="Node")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    pods = [staying, mirror, pod("alone", "a", "9", owner=""), pod("elsewhere", "b", "9"), pod("idle", "a")]
    assert short([node("a"), node("b", "0")], pods) == []


def test_exclusive_cpus_need_the_static_policy() -> None:
    nodes, pods = [node("a"), node("b")], [pod("db", "a", "3", limited=True), pod("web", "a", "3")]
    assert short(nodes, pods, static=["a"]) == ["db"]
    assert short(nodes, pods, static=["a", "b"]) == []
    # Where it had none of its own, it needs none.
    assert short(nodes, pods, static=["b"]) == []
    # Nor does one with a part of a CPU.
    assert short(nodes, [pod("part", "a", "1500m", limited=True)], static=["a"]) == []


def test_a_pod_does_not_split_over_nodes() -> None:
    nodes = [node("a"), node("b", "2"), node("c", "2")]
    static = ["a", "b", "c"]
    assert short(nodes, [pod("db", "a", "3", limited=True)], static=static) == ["db"]
    small = [pod("db-%d" % number, "a", "1", limited=True) for number in range(4)]
    assert short(nodes, small, static=static) == []


def test_the_counts_of_a_claim() -> None:
    first: Any = {"initContainers": [container("5", "first", limited=True)]}
    (claim,) = shortage([node("a"), node("b", "1")], [pod("db", "a", "2", limited=True, **first)], ["a"], ["a", "b"])
    assert (claim.pod, claim.cpu, claim.exclusive) == ("shop/db", 5000, 5)
    (claim,) = shortage([node("a"), node("b", "1")], [pod("db", "a", "2")], ["a"], ["a", "b"])
    assert (claim.cpu, claim.exclusive) == (2000, 0)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (Claim("shop/db", 4000, 4), "shop/db: 4 CPUs, 4 of them exclusive"),
        (Claim("shop/web", 1000, 0), "shop/web: 1 CPU"),
        (Claim("shop/web", 10050, 0), "shop/web: 10.05 CPUs"),
    ],
)
def test_a_claim_in_words(claim: Claim, text: str) -> None:
    assert claim.to_text() == text


# --- laws --------------------------------------------------------------------------------------------

CLAIMS = st.lists(
    st.tuples(st.sampled_from("pqrst"), st.integers(1, 4), st.sampled_from([0, 0, 1])).map(
        lambda drawn: Claim(drawn[0], drawn[1] * 1000, drawn[2])
    ),
    max_size=5,
)
ROOMS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-2, 6), st.booleans()).map(
        lambda drawn: FreeNode(Place(drawn[0]), drawn[1] * 1000, drawn[2])
    ),
    max_size=3,
)


def a_placement_exists(claims: Sequence[Claim], rooms: Sequence[FreeNode]) -> bool:
    for places in product(range(len(rooms)), repeat=len(claims)):
        free = [room.free for room in rooms]
        for claim, place in zip(claims, places):
            free[place] -= claim.cpu if rooms[place].takes(claim) else 10**9
        if all(free[place] >= 0 for place in places):
            return True
    return not claims


@given(CLAIMS, ROOMS)
def test_who_is_told_to_fit_fits(claims: list[Claim], rooms: list[FreeNode]) -> None:
    left = unplaced(claims, rooms)
    placed = list(claims)
    for claim in left:
        placed.remove(claim)
    assert a_placement_exists(placed, rooms)
    # A pod alone is never turned away wrongly.
    for claim in claims:
        fits = any(room.free >= claim.cpu and room.takes(claim) for room in rooms)
        assert bool(unplaced([claim], rooms)) == (not fits)


@given(CLAIMS, ROOMS, st.randoms(use_true_random=False))
def test_the_order_of_the_pods_does_not_count(claims: list[Claim], rooms: list[FreeNode], random: Any) -> None:
    shuffled = list(claims)
    random.shuffle(shuffled)
    assert unplaced(shuffled, rooms) == unplaced(claims, rooms)


@given(CLAIMS, ROOMS)
def test_a_node_more_with_room_for_all_takes_all(claims: list[Claim], rooms: list[FreeNode]) -> None:
    assert unplaced(claims, [*rooms, FreeNode(Place("last"), sum(claim.cpu for claim in claims), True)]) == []


@pytest.mark.parametrize("drained", [["c"], ["a", "c"]])
def test_a_drained_node_that_the_cluster_does_not_have(drained: list[str]) -> None:
    """Nothing can be counted of it: its name here is not what the cluster calls it."""
    with pytest.raises(InputError, match=r"this name: c; set kubelet_node_name"):
        short([node("a"), node("b")], [pod("web", "a", "1")], drained)


# --- the nodes with CPUs for pods alone ----------------------------------------------------------------


def plan(found: str | None, wanted: str = "") -> dict[str, Any]:
    rows = [
        {"subject": "cpu_manager_reconcile_period", "wanted": "static", "found": "5s"},
        *([{"subject": "cpu_manager_policy", "wanted": wanted, "found": found}] if wanted else []),
    ]
    return {"found": found and {"cpu_manager_policy": found}, "drift": rows}


PLANS = {
    "stays static": plan("static"),
    "stays none": plan("none"),
    "becomes static": plan("none", "static"),
    "goes back to none": plan("static", "none"),
    "unreadable": plan(None),
    "unreachable": None,
}


@pytest.mark.parametrize(
    ("changed", "static"),
    [
        ([], ["stays static", "goes back to none"]),
        (list(PLANS), ["stays static", "becomes static"]),
        (["becomes static"], ["stays static", "becomes static", "goes back to none"]),
        (["goes back to none"], ["stays static"]),
    ],
)
def test_static_hosts(changed: list[str], static: list[str]) -> None:
    assert static_hosts(PLANS, changed) == static
