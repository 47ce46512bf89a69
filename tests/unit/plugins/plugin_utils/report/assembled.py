# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reports as the tests of assemble.py make them: answers of each state, the report of some, its consistency."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import (
    OUTCOMES,
    STATES,
    UNKNOWN_STATES,
    ReportTerms,
    assemble,
    failing_hosts,
    fails,
    is_open,
    lacks_kubelets,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Problem, Result
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import MADE, result

PROBLEM = Problem("nodes/x.json", "is cut off, at character 7", "look again")
WAIVER = {"check": "policy-differs", "reason": "ticket 4711", "until": "2026-12-31"}
DRIFT = {"status": "drift", "drift": [{"subject": "cpu_manager_policy", "found": "none", "wanted": "static"}]}
DANGER = {"status": "drift", "drift": [{"subject": "start", "found": "refused", "wanted": "starts"}]}
FAILED = {"failed": True, "msg": "a: broken"}
UNREACHABLE = {"unreachable": True, "msg": "no route"}
NO_KUBELET = {"status": "no kubelet"}


def made(*results: Any, **terms: Any) -> Any:
    """Return the report of these results: of answers, those of the hosts a, b, c and so on."""
    named = (
        item if isinstance(item, (Result, Problem)) else result(chr(ord("a") + number), item)
        for number, item in enumerate(results)
    )
    return assemble(named, ReportTerms(**{"title": "T", "made": MADE, **terms}))


def states(report: Any) -> dict[str, str]:
    return {node["host"]: node["state"] for node in report["nodes"]}


def outcome(report: Any) -> tuple[str, int]:
    return report["summary"]["outcome"], report["summary"]["exit_status"]


def check_consistency(report: Any) -> None:
    """Fail unless states, counts and the outcome are those of the nodes and their findings."""
    nodes, summary = report["nodes"], report["summary"]
    found = [finding for node in nodes for finding in node["findings"]]
    for node in nodes:
        severities = {finding["severity"] for finding in node["findings"] if is_open(finding)}
        if node["state"] in ("clean", "nothing wanted", "no kubelet"):
            assert severities == set()
        elif node["state"] == "drift":
            assert severities == {"warning"}
        elif node["state"] == "refused":
            assert "danger" in severities
        elif node["state"] in ("missing", "unreachable"):
            assert node["findings"] == []
        # A node is there without words only if it was read.
        assert (node["message"] != "") == (node["state"] in UNKNOWN_STATES)
    open_ones = {finding["severity"] for finding in found if is_open(finding)}
    is_unknown = bool(report["problems"]) or not nodes or any(node["state"] in UNKNOWN_STATES for node in nodes)
    worst = "danger" if "danger" in open_ones else "drift" if open_ones else "unknown" if is_unknown else "clean"
    assert (summary["outcome"], summary["exit_status"]) == (worst, OUTCOMES[worst])
    assert summary["nodes"] == len(nodes) == sum(summary["states"].values())
    assert summary["states"] == {
        state: count for state in STATES if (count := sum(node["state"] == state for node in nodes))
    }
    for row in summary["checks"]:
        with_it = [[item for item in node["findings"] if item["check"] == row["check"]] for node in nodes]
        assert row["nodes"] == sum(any(not item["waived"] for item in items) for items in with_it)
        assert row["waived"] == sum(any(item["waived"] for item in items) for items in with_it)
        assert row["new"] == sum(any(item["since"] == "new" for item in items) for items in with_it)
    assert {row["check"] for row in summary["checks"]} == set(report["checks"]) == {item["check"] for item in found}
    assert [node["state"] for node in nodes] == sorted((node["state"] for node in nodes), key=STATES.index)
    for group in report["groups"]:
        members = [node["state"] for node in nodes if node["group"] == group["id"]]
        assert group["nodes"] == len(members) == sum(group["states"].values()) > 0
    assert fails(report, "never") is False
    assert failing_hosts(report, "never") == []
    for gate in ("danger", "drift", "unread"):
        is_of_no_host = bool(report["problems"]) or lacks_kubelets(report)
        assert fails(report, gate) is (is_of_no_host or bool(failing_hosts(report, gate)))
    is_unread = is_unknown or lacks_kubelets(report)
    assert fails(report, "unread") is is_unread
    assert fails(report, "drift") is (is_unread or worst != "clean")
    assert fails(report, "danger") is (is_unread or worst == "danger")
