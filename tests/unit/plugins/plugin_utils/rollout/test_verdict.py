# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/rollout/verdict.py; test_verdict_rollback.py has those of the choice of a rollout."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.scheduling import Claim
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.verdict import (
    PlannedHost,
    Run,
    cluster_need,
    gate_of,
    in_service_error,
    may_have_pods,
    plan_back,
    refusal,
    refuse_lost,
    refuse_shortage,
    rough_warning,
    static_nodes,
)

ROW = {"where": "/etc/a", "text": "is wrong", "remedy": "correct it", "kind": "node"}
FIXED = {"check_capacity": True, "drain": True}


@pytest.mark.parametrize(
    ("plan", "options", "said"),
    [
        ({"node": "a", "refusals": []}, {}, ""),
        ({}, {}, ""),
        ({"failed": True, "msg": "no python"}, {}, "no python"),
        ({"failed": True}, {}, "failed"),
        ({"node": "a", "refusals": [ROW]}, {}, "a: nothing was changed: /etc/a: is wrong; correct it"),
        (
            {"node": "a", "refusals": [{**ROW, "where": "", "remedy": ""}, ROW]},
            {"done_so_far": "one thing was done"},
            "a: one thing was done: is wrong\n/etc/a: is wrong; correct it",
        ),
        ({"node": "a", "status": "no kubelet", "refusals": [ROW]}, {"skip_no_kubelet": True}, ""),
        ({"failed": True, "msg": "no", "status": "no kubelet"}, {"skip_no_kubelet": True}, "no"),
        ({"node": "a\x1b[2J", "refusals": [ROW]}, {}, "a\\x1b[2J: nothing was changed: /etc/a: is wrong; correct it"),
    ],
)
def test_all_reasons_of_a_node_are_one_text(plan: dict[str, Any], options: dict[str, Any], said: str) -> None:
    assert refusal(plan, **options) == said


REFUSED = {"node": "a", "refusals": [ROW]}


@pytest.mark.parametrize(
    ("plans", "left", "percentage", "refused", "asked"),
    [
        ({"a": {}, "b": {}}, "ab", 0, "", ""),
        ({"a": {}, "b": REFUSED}, "ab", 0, "b", "b"),
        # The run may go on, and would end where no host of a play were left.
        ({"a": {}, "b": REFUSED, "c": {}}, "abc", 34, "b", "ba"),
        ({"a": {}, "b": REFUSED, "c": {}}, "abc", 33, "b", "b"),
        ({"a": REFUSED, "b": REFUSED}, "ab", 100, "ab", "ab"),
        # As Ansible counts: who has failed before counts, and who cannot be reached does not.
        ({"a": {}, "b": REFUSED, "c": {"failed": True}}, "ab", 34, "b", "b"),
        ({"a": {}, "b": REFUSED, "c": {"unreachable": True}}, "ab", 34, "b", "ba"),
    ],
)
def test_who_is_asked_whether_it_can_be_changed(
    plans: dict[str, Any], left: str, percentage: int, refused: str, asked: str
) -> None:
    hosts = {name: PlannedHost(name, plan) for name, plan in plans.items()}
    assert gate_of(hosts, list(plans), left, False, percentage) == ([*refused], [*asked])


OWN = {"node": "a", "actions": ["start_kubelet"], "refusals": [ROW], "drains": True, "back_of": "1"}


@pytest.mark.parametrize(
    ("plan", "rollout", "actions", "refusals"),
    [
        (OWN, "1", ["start_kubelet"], [ROW]),
        (OWN, "2", [], []),
        # A run that is no rollback has chosen none.
        (OWN, "", ["start_kubelet"], [ROW]),
        ({**OWN, "back_of": ""}, "2", [], []),
        # What was interrupted is taken back, whichever rollout it was of.
        ({**OWN, "back_of": None}, "2", ["start_kubelet"], [ROW]),
        ({**OWN, "journal": {"phase": "changing"}}, "2", [], [ROW]),
    ],
)
def test_a_node_goes_back_from_the_rollout_of_the_fleet_alone(
    plan: dict[str, Any], rollout: str, actions: list[str], refusals: list[Any]
) -> None:
    found = plan_back(plan, rollout)
    assert (found["actions"], found["refusals"], bool(found["drains"])) == (actions, refusals, bool(actions))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
MEMBERS = "node failed msg refusals journal drain drains cpus found drift kubelet status trial notes"
ANSWERS = st.dictionaries(st.sampled_from(MEMBERS.split()), ANYTHING, max_size=6)


@given(st.lists(ANSWERS, min_size=1, max_size=4))
def test_whatever_nodes_answer_is_judged(answers: list[dict[str, Any]]) -> None:
    hosts = {str(number): PlannedHost(str(number), answer, FIXED, True) for number, answer in enumerate(answers)}
    run = Run(hosts, list(hosts), list(hosts)[:2], set(hosts))
    assert set(cluster_need(hosts.values()).hosts) <= set(hosts)
    assert run.lost == []
    rough_warning(run, "rollout", hosts.values())
    for host in hosts.values():
        may_have_pods(host.plan)
        assert isinstance(refusal(host.plan), str)


def test_what_the_cluster_is_needed_for() -> None:
    drained = PlannedHost("b", {"node": "b", "drains": True})
    cordoned = PlannedHost("c", {"node": "c", "journal": {"facts": {"node": "c"}}})
    failed = PlannedHost("d", {"failed": True, "drains": True})
    assert cluster_need([PlannedHost("a"), drained, failed]) == (
        ["b"],
        "draining and uncordoning b",
        "drain nodes yourself and set kubelet_drain to false",
    )
    # Not to drain does not help a node that is cordoned.
    assert cluster_need([cordoned, drained]) == (["b", "c"], "draining and uncordoning b and 1 more", "")
    assert cluster_need([PlannedHost("a")]).hosts == []


def run_of(*hosts: PlannedHost, batch: tuple[str, ...], left: tuple[str, ...] = ()) -> Run:
    names = [host.name for host in hosts]
    return Run({host.name: host for host in hosts}, names, batch, left or names)


def test_a_batch_after_a_lost_host_is_refused() -> None:
    lost, down, here = PlannedHost("a", is_in_run=True), PlannedHost("b"), PlannedHost("c", is_in_run=True)
    run = run_of(lost, down, here, batch=("c",), left=("c",))
    assert run.lost == ["a"]
    with pytest.raises(RefusedError, match=r"^a was lost during this run"):
        refuse_lost(run, 0)
    with pytest.raises(RefusedError):
        refuse_lost(run, 33)
    refuse_lost(run, 34)
    refuse_lost(run_of(here, down, batch=("c",), left=("c",)), 0)


def test_a_node_of_an_earlier_batch_that_is_as_it_was_is_not_lost() -> None:
    undone, here = PlannedHost("a", is_in_run=True, is_undone=True), PlannedHost("c", is_in_run=True)
    run = run_of(undone, here, batch=("c",), left=("c",))
    assert run.lost == []
    refuse_lost(run, 0)


PODS = {"drain": True, "drains": True, "cpus": {"exclusive": "2-3"}, "found": {"cpu_manager_policy": "static"}}
BY_HAND = {**PODS, "drains": False}


@pytest.mark.parametrize(
    ("plan", "fixed", "change", "asks"),
    [
        (PODS, FIXED, "rollout", True),
        (PODS, FIXED, "rollback", True),
        (PODS, FIXED, "repair", False),
        (PODS, {**FIXED, "check_capacity": False}, "rollout", False),
        (PODS, {}, "rollout", False),
        (BY_HAND, FIXED, "rollout", False),
        ({**PODS, "drain": False}, FIXED, "rollout", False),
    ],
)
def test_when_the_cluster_is_asked_for_room(
    plan: dict[str, Any], fixed: dict[str, Any], change: str, asks: bool
) -> None:
    run = run_of(PlannedHost("a", plan, fixed), batch=("a",))
    assert (run.asks(change) is not None) == asks


def test_the_host_that_drains_says_where_the_cluster_is() -> None:
    by_hand, drained = PlannedHost("a", BY_HAND, FIXED), PlannedHost("b", PODS, {**FIXED, "kubeconfig": "/b"})
    assert run_of(by_hand, drained, batch=("a", "b")).asks("rollout") is drained


def test_a_shortage_names_the_batch_and_the_pods() -> None:
    run = run_of(PlannedHost("a", PODS, FIXED), PlannedHost("b", {}, FIXED), batch=("a", "b"))
    refuse_shortage(run, [])
    with pytest.raises(RefusedError, match=r"^when a are drained, these pods find .*: shop/db: 4 CPUs; .*smaller"):
        refuse_shortage(run, [Claim("shop/db", 4000, 0)])


def test_nodes_with_exclusive_cpus_as_the_cluster_calls_them() -> None:
    wanted = [{"subject": "cpu_manager_policy", "wanted": "static"}]
    changed = PlannedHost("a", {"found": {"cpu_manager_policy": "none"}, "drift": wanted}, {"node_name": "node-a"})
    to_come = PlannedHost("b", {**changed.plan}, {"node_name": "node-b"})
    beside = PlannedHost("c", PODS)
    run = run_of(changed, to_come, batch=("b",))
    assert static_nodes(run, [changed, to_come, beside]) == ["node-a", "c"]
    # One that failed is not known to have changed.
    assert static_nodes(run_of(changed, to_come, batch=("b",), left=("b",)), [changed, to_come]) == []


@pytest.mark.parametrize(
    ("shared", "left", "is_told"), [("0-3", "abc", False), ("0", "abc", True), ("0-3", "ab", True), (None, "abc", True)]
)
def test_a_rough_count_where_no_cluster_is_asked(shared: object, left: str, is_told: bool) -> None:
    free_one = PlannedHost("c", {"found": {"cpu_manager_policy": "static"}, "cpus": {"shared": shared}}, FIXED)
    host, beside = PlannedHost("a", BY_HAND, FIXED), PlannedHost("b", {}, FIXED)
    run = run_of(host, beside, free_one, batch=("a",), left=tuple(left))
    said = rough_warning(run, "rollout", [host, beside, free_one])
    assert bool(said) == is_told
    if said:
        free = 4 if shared == "0-3" and "c" in left else 1 if shared == "0" else 0
        assert said.startswith(
            "exclusive CPUs of pods on a: 2, CPUs in the shared pools of the other nodes: only %d; this is a rough"
            % free
        )
    assert rough_warning(run, "repair", [host, free_one]) == ""


INTERRUPTED = {
    "node": "a",
    "journal": {"phase": "changing", "facts": {"node": "a"}, "exclusive_now": "4-5"},
    "kubelet": {"pid": 7},
}


@pytest.mark.parametrize(
    ("without", "may"),
    [
        ({}, True),
        ({"kubelet": {"pid": None}}, False),
        ({"kubelet": None}, False),
        ({"journal": None}, False),
        ({"journal": {"phase": "stopping", "facts": {"node": "a"}, "exclusive_now": "4-5"}}, False),
        ({"journal": {"phase": "changing", "facts": {}, "exclusive_now": "4-5"}}, False),
        ({"journal": {"phase": "changing", "facts": {"node": "a"}, "exclusive_now": ""}}, False),
    ],
)
def test_pods_that_may_have_come_since_an_interruption(without: dict[str, Any], may: bool) -> None:
    plan = {**INTERRUPTED, **without}
    assert may_have_pods(plan) == may
    if may:
        assert str(in_service_error(plan)).startswith("a: a change of this node was interrupted")
        assert "given pods the CPUs 4-5; nothing was changed; if the node is" in str(in_service_error(plan))
