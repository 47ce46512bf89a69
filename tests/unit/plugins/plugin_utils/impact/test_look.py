# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/impact/look.py: one node in the drift report."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.look import look_by_api, look_by_node
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import json_values
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import STATIC, node_of, plan_of, pod_of

DB, QUEUE = ("ReplicaSet", "db-6c9f"), ("StatefulSet", "queue")
PODS = (pod_of("db-6c9f-x", "a", "3", DB), pod_of("queue-0", "a", "2", QUEUE), pod_of("web", "a", "500m"))


def look(pods: Any = PODS, plan: Any = None, node: Any = None, hide_names: bool = False) -> dict[str, Any]:
    plan = plan_of() if plan is None else plan
    return look_by_api("host-a", plan, plan["beside_cpus"], node_of("a") if node is None else node, pods, hide_names)


def test_who_would_be_refused() -> None:
    found = look()
    assert {row["workload"]: row["fate"] for row in found["workloads"]} == {
        "ReplicaSet shop/db-6c9f": "refused",
        "StatefulSet shop/queue": "gains",
        "Pod shop/web": "stays",
    }
    cure = "ask for 4 CPUs instead of 3; or go without the option full-pcpus-only"
    assert found["findings"] == [
        {
            "check": "pods-would-be-refused",
            "subject": "ReplicaSet shop/db-6c9f",
            "wanted": "1 pod admitted",
            "found": "1 refused, also by the empty node: SMTAlignmentError, SMT Alignment Error: requested 3 cpus not"
            " multiple cpus per core = 2",
            "remedy": cure
            + "; or run the playbook kubenode.cpu_manager.impact, which says whether another node takes them",
        }
    ]
    assert (found["node"]["exclusive"], found["notes"]) == (2, [])


def told(*pods: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return what admission_info says of a node that tells of these pods."""
    return {**plan_of()["beside_cpus"], "pods": list(pods), "left_out": [], "unknown": [], **more}


def test_a_node_that_tells_of_its_pods_itself() -> None:
    """Each of them stands for itself, and what the node does not show is a note."""
    pods = [{**pod, "status": {"qosClass": "Guaranteed"}} for pod in PODS[:2]]
    more = {"left_out": [{"pod": "shop/odd", "why": "what it asks for is not known"}], "unknown": ["memory"]}
    found = look_by_node("host-a", plan_of(), told(*pods, **more))
    assert {row["workload"]: row["fate"] for row in found["workloads"]} == {
        "Pod shop/db-6c9f-x": "refused",
        "Pod shop/queue-0": "gains",
    }
    (finding,) = found["findings"]
    assert finding["found"].startswith("1 refused, also by the empty node: SMTAlignmentError")
    assert found["notes"] == [
        "not counted: host-a: shop/odd (what it asks for is not known)",
        "how much memory Guaranteed pods ask for is not known, and not counted: host-a",
    ]
    assert found["note_checks"] == ["impact-unmeasured"] * 2
    hidden = look_by_node("host-a", plan_of(), told(*pods, **more), hide_names=True)
    assert "shop" not in json.dumps(hidden)
    assert look_by_node("host-a", plan_of(), told())["workloads"] == []
    nothing = look_by_node("host-a", plan_of(), plan_of()["beside_cpus"])
    assert nothing["notes"] == ["these hosts do not tell of their pods: host-a"]


def test_what_an_empty_node_would_take_is_not_said_to_be_homeless() -> None:
    pods = [pod_of("first", "a", "4"), pod_of("second", "a", "4", created="2026-11-02T00:00:00Z")]
    (finding,) = look(pods)["findings"]
    assert (finding["subject"], finding["found"].partition(":")[0]) == ("Pod shop/second", "1 refused")


def test_a_node_that_does_not_change_has_no_finding() -> None:
    found = look(plan=plan_of(STATIC, STATIC))
    assert (found["findings"], found["node"]["changes"]) == ([], False)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({**plan_of(), "found": None, "found_refusal": "no YAML"}, "the configuration of its kubelet is not known"),
        (plan_of({**STATIC, "reserved_system_cpus": "0,99"}), "host-a ("),
    ],
)
def test_a_node_of_which_nothing_is_known(plan: Any, said: str) -> None:
    found = look(plan=plan)
    assert found["failed"] is True
    assert said in found["msg"]


def test_what_cannot_be_counted_is_a_note() -> None:
    found = look([*PODS, {"metadata": {"name": "half"}}])
    assert found["note_checks"] == ["impact-unmeasured"]
    assert found["notes"][0].startswith("not counted, as they cannot be read: ")


def test_no_name_is_shown_where_names_are_hidden() -> None:
    shown = json.dumps(look([*PODS, {"metadata": {"name": "half", "namespace": "shop"}}], hide_names=True))
    for name in ("shop", "db-6c9f", "queue", "web", "half", "app"):
        assert name not in shown
    assert "SMTAlignmentError" in shown


@given(json_values, json_values, json_values)
def test_any_answer_is_one(pods: Any, node: Any, beside: Any) -> None:
    pods = pods if isinstance(pods, list) else [pods]
    node = node if isinstance(node, dict) else node_of("a")
    beside = beside if isinstance(beside, dict) else {"value": beside}
    by_api = look_by_api("host-a", plan_of(), beside, node, [*PODS, *pods])
    by_node = look_by_node("host-a", plan_of(), {**plan_of()["beside_cpus"], "pods": pods, **beside})
    for found in (by_api, by_node):
        assert found.get("failed") or set(found) == {"node", "workloads", "findings", "notes", "note_checks"}
