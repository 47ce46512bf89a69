# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from typing import Any, Mapping
from xml.etree import ElementTree

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.junit import junit
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import (
    CHECKS,
    big,
    finding,
    hostile,
    hostile_texts,
    node,
    report,
)

WAIVED = {"reason": "until the move", "until": "2026-12-31"}
# {element: its attributes that must be there, those that may, and its children}: the part of the schema that is used.
SHAPE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "hostname"},
        {"timestamp"},
        {"testcase", "system-out"},
    ),
    "testcase": ({"classname", "name", "time"}, set(), {"failure", "error", "skipped"}),
    "failure": ({"type", "message"}, set(), set()),
    "error": ({"type", "message"}, set(), set()),
    "skipped": ({"message"}, {"type"}, set()),
    "system-out": (set(), set(), set()),
}


def parsed(value: Any) -> ElementTree.Element:
    return ElementTree.fromstring("".join(junit(value, CHECKS)).encode())


def suite(item: Mapping[str, Any]) -> ElementTree.Element:
    return parsed(report([item], problems=[]))[0]


def case(item: Mapping[str, Any], name: str = "policy-differs") -> ElementTree.Element:
    (found,) = [each for each in suite(item) if each.get("name") == name]
    return found


def results(element: ElementTree.Element) -> dict[str, list[str]]:
    """Return {what became of it: cases}"""
    found: dict[str, list[str]] = {}
    for each in element.findall("testcase"):
        found.setdefault(each[0].tag if len(each) else "passed", []).append(str(each.get("name")))
    return found


def check_shape(element: ElementTree.Element) -> None:
    """Raise unless the element is as the schema wants it, and its counts are those of its cases."""
    needed, allowed, children = SHAPE[element.tag]
    assert needed <= set(element.keys()) <= needed | allowed
    assert {child.tag for child in element} <= children
    if "tests" in needed:
        cases = list(element.iter("testcase"))
        counts = {name: sum(each.find(name) is not None for each in cases) for name in ("failure", "error", "skipped")}
        assert [element.get(name) for name in ("tests", "failures", "errors")] == [
            str(number) for number in (len(cases), counts["failure"], counts["error"])
        ]
        assert element.get("skipped", str(counts["skipped"])) == str(counts["skipped"])
    if element.tag == "testcase":
        assert len(element) <= 1
    if element.get("timestamp") is not None:
        assert re.fullmatch(r"[0-9-]{10}T[0-9:]{8}", element.get("timestamp", ""))
    for child in element:
        check_shape(child)


# --- one node -----------------------------------------------------------------------------------------


def test_a_clean_node_passes_all_checks_that_are_no_notes() -> None:
    found = suite(node())
    assert results(found) == {"passed": [check for check in CHECKS if check != "reservation-splits-cores"]}
    assert (found.get("name"), found.get("hostname")) == ("worker-1", "worker-1")
    assert found.get("timestamp") == "2026-11-23T15:00:00"
    assert {each.get("classname") for each in found} == {"worker-1"}


def test_a_finding_is_a_failure() -> None:
    found = case(node(state="drift", findings=[finding()]))
    assert [(each.tag, each.attrib) for each in found] == [
        ("failure", {"type": "warning", "message": "cpu_manager_policy: none, wanted static"})
    ]
    assert found[0].text == (
        "The CPU manager's policy is not the wanted one\n\n"
        "subject: cpu_manager_policy\nwanted: static\nfound: none\nsource: /var/lib/kubelet/config.yaml\n"
        "remedy: set kubelet_cpu_manager_policy"
    )


def test_several_findings_of_a_check_are_one_failure() -> None:
    found = case(node(findings=[finding(), finding(subject="x", waived=WAIVED), finding(subject="y")]))
    assert found[0].get("message") == "cpu_manager_policy: none, wanted static; and 1 more"
    assert str(found[0].text).count("subject: ") == 3
    assert "waived: waived until 2026-12-31: until the move" in str(found[0].text)


def test_a_danger_is_a_failure_of_this_type() -> None:
    found = case(node(findings=[finding("checkpoint-refused")]), "checkpoint-refused")
    assert found[0].get("type") == "danger"


def test_a_finding_of_a_check_that_is_not_listed_is_a_case() -> None:
    found = suite(node(findings=[finding("own-check", severity="warning")]))
    assert results(found)["failure"] == ["own-check"]
    assert found.get("tests") == str(len(CHECKS))


@pytest.mark.parametrize(
    ("waived", "message"),
    [(WAIVED, "waived until 2026-12-31: until the move"), ({"reason": "so", "until": ""}, "waived: so")],
)
def test_a_waived_finding_is_skipped(waived: dict[str, str], message: str) -> None:
    found = case(node(findings=[finding(waived=waived)]))
    assert [(each.tag, each.get("message")) for each in found] == [("skipped", message)]


def test_a_note_is_output_and_no_failure() -> None:
    note = finding("reservation-splits-cores", subject="", wanted="", found="", text="CPUs 0-1")
    found = suite(node(findings=[note, {**note, "waived": WAIVED}]))
    assert list(results(found)) == ["passed"]
    assert (
        found.findtext("system-out")
        == "reservation-splits-cores: CPUs 0-1\nreservation-splits-cores: CPUs 0-1 (waived)"
    )


def test_without_a_kubelet_all_is_skipped() -> None:
    found = suite(node(state="no kubelet"))
    assert list(results(found)) == ["skipped"]
    assert {each[0].get("message") for each in found} == {"no kubelet"}
    # What is found there all the same is not lost.
    assert results(suite(node(state="no kubelet", findings=[finding()])))["failure"] == ["policy-differs"]


@pytest.mark.parametrize("state", ["failed", "unreachable", "missing", "stale"])
def test_a_node_that_could_not_be_read_is_an_error(state: str) -> None:
    found = suite(node(state=state, message="no route\nto host", findings=[finding()]))
    assert results(found) == {"error": ["node-read"]}
    error = found[0][0]
    assert error.attrib == {"type": state, "message": "no route to host"}
    assert str(error.text).startswith("no route\nto host\n\nsubject: cpu_manager_policy\n")
    assert suite(node(state=state))[0][0].get("message") == state
    assert found.get("timestamp") == ("2026-11-23T15:04:05" if state == "missing" else "2026-11-23T15:00:00")


@pytest.mark.parametrize(
    ("looks", "result", "message"),
    [
        ({}, "skipped", "not applicable: not looked at isolation"),
        ({"throttling": {"is_measured": True}}, "skipped", "not applicable: not looked at isolation"),
        ({"isolation": {"is_measured": False}}, "skipped", "isolation could not be measured"),
        ({"isolation": {"is_measured": True}}, "passed", None),
    ],
    ids=str,
)
def test_a_check_of_a_look_needs_the_look(looks: Any, result: str, message: str | None) -> None:
    checks = {**CHECKS, "exclusive-cpus-disturbed": {"severity": "warning", "title": "x", "look": "isolation"}}
    items = [node(looks=looks), node("worker-2"), node("worker-3", looks=looks, findings=[finding()])]
    found = ElementTree.fromstring("".join(junit(report(items, problems=[]), checks)).encode())
    check_shape(found)
    first, second, third = found
    assert results(second)["skipped"] == ["exclusive-cpus-disturbed"]
    for suite_of in (first, third):
        (case_of,) = [each for each in suite_of if each.get("name") == "exclusive-cpus-disturbed"]
        assert [(each.tag, each.get("message")) for each in case_of] == ([] if message is None else [(result, message)])
    assert results(third)["failure"] == ["policy-differs"]


# --- the whole ----------------------------------------------------------------------------------------


def test_all_states_together() -> None:
    found = parsed(report())
    check_shape(found)
    assert [each.get("name") for each in found] == [*(item["host"] for item in report()["nodes"]), "result files"]
    assert [found.get(name) for name in ("tests", "failures", "errors")] == ["51", "9", "5"]


def test_a_result_file_that_is_not_used_is_an_error() -> None:
    (found,) = parsed(report([]))
    assert results(found) == {"error": ["slices/a/nodes/x.json"]}
    assert found[0][0].get("message") == "is cut off at byte 812"


def test_no_node() -> None:
    assert len(parsed(report([], problems=[]))) == 0


def test_a_time_that_is_none_is_left_out() -> None:
    assert suite(node(looked_at="<x>")).get("timestamp") is None


def test_a_large_fleet_is_lean() -> None:
    many = {"check-%d" % number: CHECKS["policy-differs"] for number in range(25)}
    pieces = [len(piece) for piece in junit(big(10000), many)]
    assert sum(pieces) < 30_000_000
    assert max(pieces) < 10_000


@given(hostile_texts)
def test_any_text_gives_the_same_cases(texts: list[str]) -> None:
    found, plain = parsed(hostile(texts)), parsed(report())
    check_shape(found)
    assert [[each.tag for each in element.iter()] for element in found[:-1]] == [
        [each.tag for each in element.iter()] for element in plain[:-1]
    ] or any(not text.strip() for text in texts)
    assert [results(element) for element in found[:-1]] == [results(element) for element in plain[:-1]]


@given(hostile_texts)
def test_any_report_is_xml(texts: list[str]) -> None:
    check_shape(parsed(hostile(texts, keep=())))
