# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import itertools
import json
from typing import Any, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.assemble import (
    GATES,
    OUTCOMES,
    STATES,
    UNKNOWN_STATES,
    Terms,
    assemble,
    fails,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.baseline import Baseline
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.findings import is_open
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.json_form import json_form
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.results import Problem, Result
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report.times import time_of
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    CLEAN_ANSWER,
    LOOKED_AT,
    MADE,
    STATUSES,
    answers,
    check_report,
    json_values,
    result,
)

PROBLEM = Problem("nodes/x.json", "is cut off, at character 7", "look again")
WAIVER = {"check": "policy-differs", "reason": "ticket 4711", "until": "2026-12-31"}
DRIFT = {"status": "drift", "drift": [{"subject": "cpu_manager_policy", "found": "none", "wanted": "static"}]}
DANGER = {"status": "drift", "drift": [{"subject": "start", "found": "refused", "wanted": "starts"}]}
FAILED = {"failed": True, "msg": "a: broken"}
UNREACHABLE = {"unreachable": True, "msg": "no route"}
NO_KUBELET = {"status": "no kubelet"}


def made(*results: Any, **terms: Any) -> Any:
    """The report of these results: of answers, those of the hosts a, b, c and so on."""
    named = (
        item if isinstance(item, (Result, Problem)) else result(chr(ord("a") + number), item)
        for number, item in enumerate(results)
    )
    return assemble(named, Terms(**{"title": "T", "made": MADE, **terms}))


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
    assert fails(report, "unread") is is_unknown
    assert fails(report, "drift") is (is_unknown or worst != "clean")
    assert fails(report, "danger") is (is_unknown or worst == "danger")


# --- the whole ----------------------------------------------------------------------------------------


def test_a_report() -> None:
    report = made(ANSWER, CLEAN_ANSWER, FAILED, PROBLEM, fleet="east", title="Drift", hosts=["a", "b", "c", "z"])
    check_report(report)
    check_consistency(report)
    assert list(report) == [
        "schema_version",
        "kind",
        "fleet",
        "title",
        "made",
        "summary",
        "groups",
        "problems",
        "gone",
        "checks",
        "nodes",
    ]
    assert (report["fleet"], report["title"], report["made"]) == ("east", "Drift", "2026-11-23T15:04:05Z")
    assert report["summary"] == {
        "nodes": 4,
        "states": {"failed": 1, "missing": 1, "drift": 1, "clean": 1},
        "checks": [
            {"check": check, "severity": CHECKS[check].severity, "nodes": 1, "waived": 0, "new": 0}
            for check in ("change-refused", "policy-differs", "noted", "reservation-splits-cores", "settings-elsewhere")
        ],
        "gone": None,
        "outcome": "drift",
        "exit_status": 2,
    }
    assert report["problems"] == [PROBLEM._asdict()]
    assert report["checks"]["policy-differs"] == {
        "severity": "warning",
        "title": "The CPU manager's policy is not the wanted one",
        "why": CHECKS["policy-differs"].why,
        "remedy": CHECKS["policy-differs"].remedy_for(),
        "page": "docs/docsite/rst/checks/policy-differs.rst",
    }


def test_a_node() -> None:
    node = made(ANSWER)["nodes"][0]
    findings, ways = node.pop("findings"), node.pop("ways")
    assert node == {
        "host": "a",
        "state": "drift",
        "looked_at": LOOKED_AT,
        "group": 0,
        "message": "",
        "actions": "stop kubelet, start kubelet",
        "refusals": ["config.yaml: it is a link; remove it"],
        "elsewhere": {"name": "kubespray", "why": "its next run writes the file anew", "snippet": "a: 1\n"},
        "containers": {"version": "2", "kept": "40", "different": "1", "skipped": "12"},
        "pools": {
            "online": "0-7",
            "reserved": "0,4",
            "exclusive": "1-2",
            "shared": "3",
            "offline": "",
            "isolated": "",
            "reserved_wanted": "0-1",
        },
        "owners": [
            ["exclusive", "a/b/c", "1"],
            ["exclusive", "a/b/d", "2"],
            ["reserved", "", "0,4"],
            ["shared", "", "3,5-7"],
        ],
    }
    assert len(findings) == 5
    assert [row["subject"] for row in ways] == ["cpu_manager_policy", "cpu_manager_reconcile_period"]


def test_a_node_that_was_not_read() -> None:
    node = made(FAILED)["nodes"][0]
    assert node == {
        "host": "a",
        "state": "failed",
        "looked_at": LOOKED_AT,
        "group": None,
        "message": "a: broken",
        "findings": [],
        "ways": [],
        "actions": "",
        "refusals": [],
        "elsewhere": {},
        "containers": {},
        "pools": {},
        "owners": [],
    }


def test_what_is_as_wanted_has_no_ways() -> None:
    """They are most nodes, and nobody looks there."""
    assert made({**CLEAN_ANSWER, "notes": ["x"]})["nodes"][0]["ways"] == []


@pytest.mark.parametrize("use", ["mine", "", None, 7, ["exclusive"], "\x1b"])
def test_an_owner_of_no_use(use: Any) -> None:
    answer = {**CLEAN_ANSWER, "owners": [{"use": use, "owner": "a\x1b", "cpus": None}, "x"]}
    assert made(answer)["nodes"][0]["owners"] == [["unknown", "a\\x1b", ""], ["unknown", "", ""]]


# --- states and outcomes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "state", "worst"),
    [
        (CLEAN_ANSWER, "clean", "clean"),
        ({"status": "nothing wanted"}, "nothing wanted", "clean"),
        (NO_KUBELET, "no kubelet", "clean"),
        (DRIFT, "drift", "drift"),
        (DANGER, "refused", "danger"),
        (FAILED, "failed", "unknown"),
        (UNREACHABLE, "unreachable", "unknown"),
        # A note is no drift.
        ({**CLEAN_ANSWER, "notes": ["x"]}, "clean", "clean"),
        # What is against the node's own status counts.
        ({**DRIFT, "status": "clean"}, "drift", "drift"),
        ({**DANGER, "status": "nothing wanted"}, "refused", "danger"),
        (
            {**CLEAN_ANSWER, "notes": ["x"], "note_checks": ["kubelet-not-restarted"]},
            "drift",
            "drift",
        ),
        (
            {**CLEAN_ANSWER, "notes": ["x"], "note_checks": ["kubelet-would-not-start"]},
            "refused",
            "danger",
        ),
        ({**CLEAN_ANSWER, "refusals": [{"text": "no"}]}, "drift", "drift"),
        ({**NO_KUBELET, "notes": ["x"], "note_checks": ["kubelet-missing"]}, "no kubelet", "clean"),
        ({**NO_KUBELET, "notes": ["x"], "note_checks": ["change-interrupted"]}, "drift", "drift"),
        # A state that only a report gives.
        ({"status": "missing"}, "failed", "unknown"),
        ({"status": "stale"}, "failed", "unknown"),
        ({"status": "refused"}, "failed", "unknown"),
        ({"status": "Clean"}, "failed", "unknown"),
        ({"status": ["clean"]}, "failed", "unknown"),
        ({"status": None}, "failed", "unknown"),
        ({"status": ""}, "failed", "unknown"),
        ({}, "unreachable", "unknown"),
    ],
)
def test_state_and_outcome(answer: Any, state: str, worst: str) -> None:
    report = made(answer)
    check_consistency(report)
    assert states(report) == {"a": state}
    assert outcome(report) == (worst, OUTCOMES[worst])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (FAILED, "a: broken"),
        ({"failed": True}, "failed without a message"),
        ({"failed": True, "msg": ""}, "the node gave no reason"),
        ({"unreachable": True, "msg": "no\r\nroute\r"}, "no\nroute"),
        # A node cannot say of itself that it was not read.
        ({"status": "unreachable", "message": ""}, "the answer of the node has the status unreachable, which is none"),
        ({"status": "failed", "msg": "x"}, "the answer of the node has the status failed, which is none"),
        ({"status": {"a": "\x1b"}}, "the answer of the node has the status {a: \\u001b}, which is none"),
    ],
)
def test_a_node_that_was_not_read_has_a_message(answer: Any, message: str) -> None:
    report = made(answer)
    check_consistency(report)
    assert report["nodes"][0]["message"] == message


def test_the_running_kubelet_counts() -> None:
    report = made(result("a", CLEAN_ANSWER, running={"cpu_manager_policy": "none"}))
    assert (states(report), outcome(report)) == ({"a": "drift"}, ("drift", 2))
    assert states(made(result("a", CLEAN_ANSWER, running={"cpu_manager_policy": "static"}))) == {"a": "clean"}


def test_the_worst_counts() -> None:
    order = [(CLEAN_ANSWER, "clean"), (FAILED, "unknown"), (DRIFT, "drift"), (DANGER, "danger")]
    for count in range(1, 5):
        for chosen in itertools.permutations(order, count):
            worst = max((name for _answer, name in chosen), key=list(OUTCOMES).index)
            report = made(*(answer for answer, _name in chosen))
            assert outcome(report) == (worst, OUTCOMES[worst])


def test_the_exit_statuses() -> None:
    assert OUTCOMES == {"clean": 0, "unknown": 1, "drift": 2, "danger": 3}


def test_a_file_that_was_not_used_is_never_clean() -> None:
    assert outcome(made(CLEAN_ANSWER, PROBLEM)) == ("unknown", 1)
    assert outcome(made(DRIFT, PROBLEM)) == ("drift", 2)
    report = made(Problem("nodes/\x1b\udcff.json", "x\n\x00", ""))
    assert report["problems"] == [{"file": "nodes/\\x1b\\udcff.json", "text": "x\n\\x00", "remedy": ""}]
    check_report(report)


@pytest.mark.parametrize(
    ("results", "failing"),
    [
        ([CLEAN_ANSWER], []),
        ([{"status": "nothing wanted"}, NO_KUBELET], []),
        ([{**CLEAN_ANSWER, "notes": ["x"]}], []),
        ([DRIFT], ["drift"]),
        ([DANGER], ["danger", "drift"]),
        ([DANGER, DRIFT], ["danger", "drift"]),
        ([FAILED], ["danger", "drift", "unread"]),
        ([UNREACHABLE], ["danger", "drift", "unread"]),
        ([PROBLEM, CLEAN_ANSWER], ["danger", "drift", "unread"]),
        ([], ["danger", "drift", "unread"]),
        # A fleet with drift of which a part was not read may have a danger there.
        ([DRIFT, FAILED], ["danger", "drift", "unread"]),
        ([DRIFT, PROBLEM], ["danger", "drift", "unread"]),
    ],
)
def test_gates(results: list[Any], failing: list[str]) -> None:
    report = made(*results)
    assert [gate for gate in GATES if fails(report, gate)] == failing


@pytest.mark.parametrize("terms", [{"hosts": ["a", "z"]}, {"max_age": 1}])
def test_a_gate_stops_what_is_missing_or_stale(terms: Any) -> None:
    report = made(CLEAN_ANSWER, **terms)
    assert fails(report, "danger")
    assert fails(report, "drift")
    assert fails(report, "unread")
    assert not fails(report, "never")


# --- waivers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "check", "state"), [(DRIFT, "policy-differs", "drift"), (DANGER, "kubelet-would-not-start", "refused")]
)
def test_a_waived_finding_counts_for_nothing_until_its_last_day_is_over(answer: Any, check: str, state: str) -> None:
    waivers = [{**WAIVER, "check": check}]
    for today, is_waived in (("2026-11-23", True), ("2026-12-31", True), ("2027-01-01", False)):
        report = made(result("a", answer, today + "T00:00:00Z", waivers=waivers), made=day(today) + 86399)
        check_consistency(report)
        assert states(report) == {"a": "clean" if is_waived else state}
        assert outcome(report)[1] == (0 if is_waived else OUTCOMES[outcome(report)[0]])
        assert fails(report, "drift") is not is_waived
        (row,) = report["summary"]["checks"]
        assert (row["nodes"], row["waived"]) == ((0, 1) if is_waived else (1, 0))
        # It is shown, whether it counts or not.
        (finding,) = report["nodes"][0]["findings"]
        assert bool(finding["waived"]) is is_waived


def day(date: str) -> int:
    return next(second for second in range(1795392000, 1795392000 + 86400 * 60, 86400) if time_of(second)[:10] == date)


def test_a_waiver_of_one_finding_leaves_the_others() -> None:
    answer = {**DRIFT, "drift": [*DRIFT["drift"], {"subject": "isolated"}]}
    report = made(result("a", answer, waivers=[WAIVER]))
    assert (states(report), outcome(report)) == ({"a": "drift"}, ("drift", 2))
    assert [bool(finding["waived"]) for finding in report["nodes"][0]["findings"]] == [True, False]


def test_a_waiver_is_of_its_node_alone() -> None:
    report = made(result("a", DRIFT, waivers=[WAIVER]), result("b", DRIFT))
    assert states(report) == {"a": "clean", "b": "drift"}
    (row,) = report["summary"]["checks"]
    assert (row["nodes"], row["waived"]) == (1, 1)


def test_a_node_cannot_waive_anything() -> None:
    assert states(made({**DRIFT, "waivers": [WAIVER], "waived": True})) == {"a": "drift"}


# --- which results count ------------------------------------------------------------------------------


def test_the_newest_result_counts_in_any_order() -> None:
    looks = [
        result("a", DRIFT, "2026-11-21T00:00:00Z"),
        result("a", CLEAN_ANSWER, "2026-11-23T00:00:00Z"),
        result("a", DANGER, "2026-11-22T23:59:59Z"),
        result("b", CLEAN_ANSWER, "2026-01-01T00:00:00Z"),
        result("b", FAILED, "2026-11-01T00:00:00Z"),
    ]
    reports = [made(*order) for order in itertools.permutations(looks)]
    assert states(reports[0]) == {"a": "clean", "b": "failed"}
    assert all(report == reports[0] for report in reports)


def test_of_one_moment_the_first_counts() -> None:
    assert states(made(result("a", CLEAN_ANSWER), result("a", DRIFT))) == {"a": "clean"}


@given(st.permutations(range(12)), st.data())
def test_the_order_of_the_files_does_not_matter(order: list[int], data: st.DataObject) -> None:
    looks = [
        result(
            "worker-%d" % (number % 4),
            {**data.draw(st.sampled_from([ANSWER, CLEAN_ANSWER, DANGER, FAILED])), "kernel": "6.%d" % (number % 3)},
            time_of(MADE - 3600 * number),
        )
        for number in range(12)
    ]
    assert made(*(looks[number] for number in order)) == made(*looks)


def test_only_the_wanted_hosts_are_in_the_report() -> None:
    report = made(CLEAN_ANSWER, DANGER, CLEAN_ANSWER, hosts=["a", "c", "z", "z"])
    assert states(report) == {"z": "missing", "a": "clean", "c": "clean"}
    assert outcome(report) == ("unknown", 1)
    assert report["nodes"][0]["message"] == "there is no result of this node"
    assert (report["nodes"][0]["looked_at"], report["nodes"][0]["group"]) == ("", None)


def test_no_host_is_wanted() -> None:
    assert states(made(CLEAN_ANSWER, hosts=[])) == {}
    assert states(made(CLEAN_ANSWER, hosts=None)) == {"a": "clean"}


@pytest.mark.parametrize(
    ("age", "max_age", "is_stale"),
    [(0, 0, False), (1, 0, True), (3600, 3600, False), (3601, 3600, True), (10**8, None, False), (-60, 0, False)],
)
def test_a_result_that_is_too_old(age: int, max_age: float | None, is_stale: bool) -> None:
    report = made(result("a", CLEAN_ANSWER, time_of(MADE - age)), max_age=max_age)
    check_consistency(report)
    assert states(report) == {"a": "stale" if is_stale else "clean"}
    assert outcome(report)[0] == ("unknown" if is_stale else "clean")


def test_a_stale_node_shows_what_was_found() -> None:
    report = made(result("a", DRIFT, "2026-11-01T00:00:00Z"), max_age=60)
    (node,) = report["nodes"]
    assert (node["state"], node["message"]) == ("stale", "the newest result of this node is of 2026-11-01T00:00:00Z")
    assert [finding["check"] for finding in node["findings"]] == ["policy-differs"]
    assert node["group"] == 0


def test_a_newer_failure_hides_what_was_found_before() -> None:
    report = made(result("a", DRIFT, "2026-11-01T00:00:00Z"), result("a", FAILED, "2026-11-02T00:00:00Z"))
    assert states(report) == {"a": "failed"}
    assert report["groups"] == []


def test_nodes_come_in_a_natural_order_and_the_worst_first() -> None:
    hosts = ["worker-10", "worker-2", "worker-1", "worker-02", "Worker-3", "worker", "10", "9", "a1b2", "a1b10", ""]
    report = made(*(result(host, CLEAN_ANSWER) for host in hosts), result("z", DRIFT), result("y", FAILED))
    assert [node["host"] for node in report["nodes"]] == [
        "y",
        "z",
        "",
        "Worker-3",
        "a1b2",
        "a1b10",
        "worker",
        "worker-1",
        "worker-02",
        "worker-2",
        "worker-10",
        "9",
        "10",
    ]


@given(st.lists(st.text(), unique=True), st.randoms())
def test_any_hosts_have_an_order(hosts: list[str], random: Any) -> None:
    shuffled = list(hosts)
    random.shuffle(shuffled)
    reports = [made(*(result(host, CLEAN_ANSWER) for host in each)) for each in (hosts, shuffled)]
    assert len(reports[0]["nodes"]) == len(hosts)
    if len({node["host"] for node in reports[0]["nodes"]}) == len(hosts):
        assert reports[0] == reports[1]


def test_long_numbers_in_hosts() -> None:
    hosts = ["a" + "9" * 5000, "a" + "9" * 17, "a" + "9" * 18 + "0", "\u0663", "a\u00b2"]
    assert len(made(*(result(host, CLEAN_ANSWER) for host in hosts))["nodes"]) == 5


# --- groups and the baseline --------------------------------------------------------------------------


def test_groups_have_the_nodes_that_count() -> None:
    report = made(
        result("a", {**CLEAN_ANSWER, "kernel": "old"}, "2026-11-01T00:00:00Z"),
        result("a", {**CLEAN_ANSWER, "kernel": "new"}, "2026-11-02T00:00:00Z"),
        result("b", {**DRIFT, "kernel": "new"}),
        result("c", {**CLEAN_ANSWER, "kernel": "odd"}),
        result("d", FAILED),
    )
    check_consistency(report)
    assert [group["kernel"] for group in report["groups"]] == ["new", "new", "odd"]
    assert [(node["host"], node["group"]) for node in report["nodes"]] == [("d", None), ("b", 0), ("a", 1), ("c", 2)]


def test_a_report_after_an_earlier_one() -> None:
    before = made(DRIFT, DRIFT, DRIFT, DRIFT)
    answer = {**DRIFT, "drift": [*DRIFT["drift"], {"subject": "isolated"}]}
    now = made(CLEAN_ANSWER, answer, FAILED, result("z", DRIFT), baseline=Baseline(before))
    check_report(now)
    check_consistency(now)
    assert now["summary"]["gone"] == 1
    # Of the third node nothing is known, and the fourth is not in this report.
    assert now["gone"] == [{"host": "a", "check": "policy-differs", "subject": "cpu_manager_policy"}]
    marks = {node["host"]: [finding["since"] for finding in node["findings"]] for node in now["nodes"]}
    assert marks == {"a": [], "b": ["known", "new"], "c": [], "z": ["new"]}
    (later,) = made(answer, baseline=Baseline(now), made=MADE + 60)["nodes"]
    assert [finding["first_seen"] for finding in later["findings"]] == [time_of(MADE + 60)] * 2
    (later,) = made(result("b", answer), baseline=Baseline(now), made=MADE + 60)["nodes"]
    assert [finding["first_seen"] for finding in later["findings"]] == [time_of(MADE)] * 2
    rows = {row["check"]: row["new"] for row in now["summary"]["checks"]}
    assert rows == {"policy-differs": 1, "isolated-cpus-differ": 1}


def test_without_a_baseline_nothing_is_new() -> None:
    report = made(DRIFT)
    assert report["summary"]["gone"] is None
    assert report["gone"] == []
    assert report["nodes"][0]["findings"][0]["since"] == ""


def test_a_waived_finding_is_known_as_well() -> None:
    before = made(result("a", DRIFT, waivers=[WAIVER]))
    now = made(DRIFT, baseline=Baseline(before))
    assert now["nodes"][0]["findings"][0]["since"] == "known"


# --- anything -----------------------------------------------------------------------------------------


def results_of(looks: Iterable[Any]) -> list[Result | Problem]:
    return [
        PROBLEM
        if look is None
        else Result(look[0], look[1], look[2] if isinstance(look[2], dict) else {"status": look[2]}, look[3], look[4])
        for look in looks
    ]


some_hosts = st.one_of(st.sampled_from(["a", "b", "worker-1"]), st.text())
moments = st.integers(int(MADE) - 10**6, int(MADE) + 10**5).map(time_of)
some_running = st.dictionaries(
    st.one_of(st.just("cpu_manager_policy"), st.just("cpu_manager_reconcile_period"), st.text(max_size=3)), json_values
)
some_waivers = st.lists(
    st.one_of(
        json_values,
        st.builds(
            lambda check, until, key, value: {
                **WAIVER,
                "check": check,
                "until": until,
                **({key: value} if key else {}),
            },
            st.sampled_from(sorted(CHECKS)),
            st.sampled_from(["2026-11-22", "2026-11-23", "2027-01-01"]),
            st.sampled_from(["", "reason", "until", "subject", "check"]),
            json_values,
        ),
    ),
    max_size=3,
)
some_results = st.lists(
    st.one_of(st.none(), st.tuples(some_hosts, moments, answers, some_running, some_waivers)), max_size=5
).map(results_of)


@given(
    some_results,
    st.one_of(st.none(), st.lists(some_hosts, max_size=3)),
    st.one_of(st.none(), st.integers(0, 10**6)),
    st.text(),
)
def test_any_results_make_a_report(
    results: Sequence[Result | Problem], hosts: list[str] | None, max_age: float | None, title: str
) -> None:
    given_results = copy.deepcopy(results)
    report = assemble(iter(results), Terms(title, MADE, title, hosts, max_age))
    assert results == given_results
    check_report(report)
    check_consistency(report)
    assert json.loads("".join(json_form(report))) == report
    if hosts is not None:
        assert report["summary"]["nodes"] == len(set(hosts))


@given(some_results, some_results)
def test_any_report_is_a_baseline(before: Sequence[Result | Problem], now: Sequence[Result | Problem]) -> None:
    first = assemble(before, Terms("T", MADE))
    again = assemble(before, Terms("T", MADE, baseline=Baseline(first)))
    # Hosts that are shown alike share their findings.
    assert {finding["since"] for node in again["nodes"] for finding in node["findings"]} <= {"known"}
    if len({node["host"] for node in first["nodes"]}) == len(first["nodes"]):
        assert again["summary"]["gone"] == 0
    second = assemble(now, Terms("T", MADE, baseline=Baseline(first)))
    check_report(second)
    check_consistency(second)
    assert {finding["since"] for node in second["nodes"] for finding in node["findings"]} <= {"known", "new"}


@given(answers, st.sampled_from(sorted(CHECKS)))
def test_a_waiver_changes_only_what_is_waived(answer: Any, check: str) -> None:
    answer = answer if isinstance(answer, dict) else {}
    without = made(answer)
    report = made(result("a", answer, waivers=[{**WAIVER, "check": check}]))
    for finding in report["nodes"][0]["findings"]:
        assert bool(finding["waived"]) is (finding["check"] == check)
        finding["waived"] = None
    assert report["nodes"][0]["findings"] == without["nodes"][0]["findings"]
    others = [finding for finding in without["nodes"][0]["findings"] if finding["check"] != check]
    assert (outcome(report)[0] in ("drift", "danger")) is any(map(is_open, others))


@pytest.mark.parametrize("status", STATUSES)
def test_a_huge_answer_has_a_limited_report(status: str) -> None:
    text = "\U000e0001" * 100000
    answer = {
        "status": status,
        "drift": [{"subject": text, "found": "", "wanted": ""}] + [{}] * 5000,
        "notes": ["x"] * 5000,
        "refusals": [{"text": "x"}] * 5000,
        "owners": [{"use": "shared", "cpus": text}] + [{"cpus": "0"}] * 5000,
        "found": {str(number): "x" for number in range(5000)},
        "wanted": {str(number): "x" for number in range(5000)},
        "kernel": text,
        "cpus": {"online": text},
    }
    report = made(answer)
    check_report(report)
    node = report["nodes"][0]
    assert len(node["findings"]) <= 3000
    assert len(node["owners"]) <= 1000
    assert len(json.dumps(report)) < 4_000_000
