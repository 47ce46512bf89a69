# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import (
    Baseline,
    hosts_by_gone,
    read_baseline,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.markdown import json_form
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import can_be_shown, json_values
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import MADE, finding, gone, node, report

POLICY = finding()
SCOPE = finding("field-differs", subject="scope")
UNKNOWN = ("failed", "stale")
NOW = "2026-11-24T03:00:00Z"


def compared(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> tuple[list[list[str]], list[Any]]:
    """Return the marks of the findings of each node of now, and those that are gone."""
    nodes = json.loads(json.dumps(now))
    missing = Baseline(report(before)).compare(nodes, UNKNOWN, NOW)
    return [[item["since"] for item in part["findings"]] for part in nodes], missing


# --- comparing ----------------------------------------------------------------------------------------


def test_known_new_and_gone() -> None:
    before = [node("a", "drift", findings=[POLICY]), node("b", "drift", findings=[POLICY, SCOPE])]
    now = [node("a", "drift", findings=[POLICY, SCOPE]), node("b")]
    assert compared(before, now) == (
        [["known", "new"], []],
        [gone("b", "field-differs", "scope"), gone("b", "policy-differs", "cpu_manager_policy")],
    )


def test_a_finding_is_the_same_by_its_check_subject_and_value() -> None:
    before = [node("a", "drift", findings=[finding(wanted="none", text="x", since="new")])]
    now = [
        node("a", "drift", findings=[finding(waived={"reason": "", "until": ""})]),
        node("b", "drift", findings=[POLICY]),
    ]
    assert compared(before, now) == ([["known"], ["new"]], [])
    assert compared(before, [node("a", "drift", findings=[finding(subject="another")])]) == (
        [["new"]],
        [gone("a", "policy-differs", "cpu_manager_policy")],
    )


def test_a_finding_whose_value_is_another_is_new_and_not_gone() -> None:
    before, now = ([node("a", "drift", findings=[finding(found=value)])] for value in ("none", "dynamic"))
    assert compared(before, now) == ([["new"]], [])
    nodes = json.loads(json.dumps(now))
    Baseline(report(before)).compare(nodes, UNKNOWN, NOW)
    assert nodes[0]["findings"][0]["first_seen"] == NOW


def test_what_was_measured_is_known_whatever_its_figures() -> None:
    parts = [
        [finding("container-throttled", severity="warning", found="throttled in %d %%" % share)] for share in (3, 40)
    ]
    before, now = ([node("a", "drift", findings=findings)] for findings in parts)
    assert compared(before, now) == ([["known"]], [])


def test_several_findings_of_one_check_and_subject() -> None:
    notes = [finding("reservation-splits-cores", subject="", text=text) for text in "ab"]
    assert compared([node("a", findings=notes)], [node("a", findings=notes[:1])]) == ([["known"]], [])
    assert compared([node("a", findings=notes)], [node("a")]) == (
        [[]],
        [gone("a", "reservation-splits-cores", "")],
    )


@pytest.mark.parametrize("state", UNKNOWN)
def test_nothing_is_gone_of_a_node_that_was_not_read(state: str) -> None:
    assert compared([node("a", "drift", findings=[POLICY])], [node("a", state)]) == ([[]], [])


def test_nothing_is_gone_of_a_node_that_is_no_longer_there() -> None:
    assert compared([node("a", "drift", findings=[POLICY])], []) == ([], [])


def test_nodes_that_are_shown_alike() -> None:
    before = [node("a", "drift", findings=[POLICY]), node("a", "drift", findings=[SCOPE])]
    assert compared(before, [node("a", "drift", findings=[POLICY, SCOPE])]) == ([["known", "known"]], [])


def test_a_report_is_no_news_after_itself() -> None:
    data = report()
    assert Baseline(data).compare(data["nodes"], UNKNOWN, NOW) == []
    assert {item["since"] for part in data["nodes"] for item in part["findings"]} == {"known"}


def test_many_findings_of_one_node() -> None:
    findings = [finding("cpuset-differs", subject="container a/b/%d" % number) for number in range(3000)]
    marks, missing = compared([node("a", "drift", findings=findings)], [node("a", "drift", findings=findings)])
    assert (set(marks[0]), missing) == ({"known"}, [])


@given(
    st.one_of(
        st.dictionaries(st.sampled_from(["nodes", "x"]), json_values),
        st.builds(lambda nodes: {"nodes": nodes}, st.lists(json_values)),
        st.builds(lambda findings: {"nodes": [{"host": "a", "findings": findings}]}, json_values),
        st.builds(lambda value: {"nodes": [{"host": "a", "findings": [value]}]}, json_values),
    )
)
def test_any_report_is_a_baseline(data: Any) -> None:
    nodes = [node("a", "drift", findings=[finding()])]
    for missing in Baseline(data).compare(nodes, UNKNOWN, NOW):
        assert missing["host"] == "a"
        assert all(map(can_be_shown, (missing["check"], missing["subject"])))
    assert nodes[0]["findings"][0]["since"] in ("known", "new")


@pytest.mark.parametrize(
    ("first_seen", "made", "answer"),
    [
        ("2026-11-01T03:00:00Z", MADE, "2026-11-01T03:00:00Z"),
        ("", MADE, MADE),
        ("yesterday", MADE, MADE),
        (["\x1b"], MADE, MADE),
        ("", "yesterday", ""),
        (None, None, ""),
    ],
)
def test_when_a_finding_was_first_seen(first_seen: Any, made: Any, answer: str) -> None:
    before = report([node("a", "drift", findings=[finding(first_seen=first_seen)])], made=made)
    nodes = [node("a", "drift", findings=[finding(), SCOPE])]
    Baseline(before).compare(nodes, UNKNOWN, NOW)
    assert [item["first_seen"] for item in nodes[0]["findings"]] == [answer, NOW]


def test_equal_findings_that_are_gone_are_one() -> None:
    findings = [gone("a", "x", ""), gone("b", "y", "s"), gone("a", "y", "s"), gone("a", "y", "t")]
    assert list(hosts_by_gone(findings).items()) == [
        (("y", "s"), ["b", "a"]),
        (("x", ""), ["a"]),
        (("y", "t"), ["a"]),
    ]


# --- reading ------------------------------------------------------------------------------------------


@pytest.fixture(name="path")
def path_fixture(tmp_path: Path) -> Path:
    path = tmp_path / "drift.json"
    path.write_text("".join(json_form(report())), "utf-8")
    return path


def problem(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_baseline(str(path))
    assert caught.value.where == str(path)
    assert caught.value.remedy == "give the drift.json of an earlier report"
    return caught.value.what


def test_a_report_is_read(path: Path) -> None:
    nodes = report()["nodes"]
    assert read_baseline(str(path)).compare(nodes, UNKNOWN, NOW) == []
    assert {item["since"] for part in nodes for item in part["findings"]} == {"known"}


@pytest.mark.parametrize("version", ["1", "1.0", "1.7"])
def test_newer_minor_schemas_are_read(path: Path, version: str) -> None:
    path.write_text(json.dumps(report([], schema_version=version, more={"a": 1})))
    read_baseline(str(path))


def test_a_baseline_of_another_fleet_is_refused(path: Path) -> None:
    """Of two clusters, hosts may have one name."""
    path.write_text(json.dumps(report([], fleet="staging")))
    read_baseline(str(path))
    read_baseline(str(path), "staging")
    with pytest.raises(InputError, match="is of the fleet staging, not of prod"):
        read_baseline(str(path), "prod")
    # An earlier one may have none.
    path.write_text(json.dumps(report([])))
    read_baseline(str(path), "prod")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert problem(tmp_path / "x.json") == "cannot be read: No such file or directory"
    assert problem(tmp_path) == "cannot be read: Is a directory"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"x", b"\xff\xfe{}", b'{"kind": "kubenode.cpu_manager/report"', b"[" * 200000, b"1" * 5000 + b"x"],
    ids=["empty", "open", "word", "other encoding", "cut", "deep", "long"],
)
def test_what_is_no_json(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert problem(path) == "is no JSON, or cut off"


def test_a_report_that_is_cut_off_anywhere(tmp_path: Path) -> None:
    whole = "".join(json_form(report([node("a", "drift", findings=[POLICY])], groups=[], checks={}))).encode().rstrip()
    path = tmp_path / "cut.json"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        assert problem(path) == "is no JSON, or cut off"


@pytest.mark.parametrize("data", [None, [], "x", 7, {}, {"kind": None}, {"kind": "kubenode.cpu_manager/node"}])
def test_what_is_no_report(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data))
    assert problem(path) == "is no drift report"


@pytest.mark.parametrize("version", ["2.0", "0.9", "10.0", "", None, [], 2, "x"])
def test_another_schema(path: Path, version: Any) -> None:
    path.write_text(json.dumps(report([], schema_version=version)))
    assert problem(path) == "has another schema than version 1"


def test_a_file_that_is_too_large(path: Path) -> None:
    os.truncate(path, 300 << 20)
    assert problem(path) == "has more than %d bytes" % (256 << 20)
