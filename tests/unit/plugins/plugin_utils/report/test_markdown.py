# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.markdown import LONGEST, _code, markdown
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.trend import Point, point_of
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import (
    HOSTILE,
    big,
    finding,
    gone,
    hostile,
    hostile_texts,
    node,
    report,
)

# All that a page may be made of: of these none takes a reader elsewhere, or brings anything from elsewhere.
TOKENS = {
    "heading_open", "heading_close", "paragraph_open", "paragraph_close", "strong_open", "strong_close", "inline",
    "text", "code_inline", "table_open", "table_close", "thead_open", "thead_close", "tbody_open", "tbody_close",
    "tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close",
}  # fmt: skip
# Words without anything that GitHub makes a link of: no address, mention, emoji, name of an issue or of a commit.
WORDS = re.compile(r"(?:[A-Za-z0-9 ,;'()*]|: |(?<=[a-z])-(?=[a-z])|---)*")


def tokens(text: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


def table_of(value: Any, title: str, history: Sequence[Point] = ()) -> list[list[str]]:
    """Return the cells of the table below a heading."""
    part = markdown(value, history).partition("### %s\n\n" % title)[2].partition("\n\n")[0]
    return [cells(line) for line in part.splitlines() if line.startswith("|")]


def cells(line: str) -> list[str]:
    """Return the cells of a row as GitHub divides it: at each pipe that has no backslash before it."""
    return [each.strip() for each in re.split(r"(?<!\\)\|", line)[1:-1]]


def nodes_of(*nodes: Mapping[str, Any]) -> list[list[str]]:
    return table_of(report(nodes), "Nodes that are not as wanted")[2:]


# --- what is in it ------------------------------------------------------------------------------------


def test_the_start() -> None:
    assert markdown(report(fleet="east-1")).startswith(
        "## CPU drift report of `east-1`\n\n**danger**: 13 nodes: 2 clean, 1 nothing wanted, 1 no kubelet, 4 drift, "
    )
    assert "\nMade `2026-11-23T15:04:05Z`.\n" in markdown(report())
    verdict = "Grade F: 2 of 11 nodes as wanted; a kubelet would not start, or would refuse its state."
    assert "\n\n%s\n\n" % verdict in markdown(report())
    assert "\n\nNo node was compared with wanted settings, so there is no grade.\n\n" in markdown(report([]))


def test_states_and_checks() -> None:
    assert table_of(report(), "States")[:4] == [
        ["State", "Nodes"],
        ["---", "---"],
        ["clean", "2"],
        ["nothing wanted", "1"],
    ]
    found = table_of(report(), "Checks")
    assert found[0] == ["Check", "Severity", "Nodes", "Waived", "New", "Days", "What it says"]
    title = "The CPU manager's policy is not the wanted one"
    assert found[4] == ["`policy-differs`", "warning", "4", "0", "3", "", title]
    without = report()
    without["summary"]["gone"] = None
    assert table_of(without, "Checks")[0] == ["Check", "Severity", "Nodes", "Waived", "What it says"]


def test_for_how_many_days_a_check_is_found() -> None:
    ages = [finding(first_seen="2026-11-%02dT15:04:05Z" % day, since="known") for day in (23, 20)]
    new = finding("field-differs", first_seen="2026-11-23T15:04:05Z", since="new")
    found = table_of(report([node("a", findings=ages), node("b", findings=[new])]), "Checks")
    assert [(row[0], row[5]) for row in found[2:]] == [("`policy-differs`", "3"), ("`field-differs`", "0")]


def test_the_last_reports() -> None:
    history = [
        point_of(report([node("a"), node("b", "drift", findings=[finding("cpuset-differs")])], made=made))
        for made in ("2026-11-20T15:04:05Z", "2026-11-21T15:04:05Z", "2026-11-25T15:04:05Z")
    ]
    assert table_of(report([node("a", "drift", findings=[finding()])]), "The last reports", history) == [
        # That of a later day is none of the last ones.
        ["", "`11-20`", "`11-21`", "`11-23`"],
        ["---"] * 4,
        ["`grade`", "D", "D", "D"],
        ["`nodes as wanted, %`", "50", "50", "0"],
        ["`policy-differs`", "0", "0", "1"],
        ["`cpuset-differs`", "1", "1", "0"],
    ]
    for alone in ([], history[2:]):
        assert "The last reports" not in markdown(report(), alone)


def test_equal_nodes_share_rows() -> None:
    assert nodes_of(*report()["nodes"]) == [
        ["`worker-7`", "refused", "`checkpoint-refused`", "`checkpoint`", "`the checksum is wrong`", ""],
        ["", "", "`change-refused`", "", "`running containers would lose CPUs`", ""],
        ["`worker-6`", "failed", "", "", "`worker-6: the module failed in its second line`", ""],
        ["`worker-8`", "unreachable", "", "", "`no route to host`", ""],
        ["`worker-9`", "missing", "", "", "", ""],
        ["`worker-10`", "stale", "`policy-differs`", "`cpu_manager_policy`", "`none`", "`static`"],
        ["`worker-[2-4]`", "drift", "`policy-differs [new]`", "`cpu_manager_policy`", "`none`", "`static`"],
        ["", "", "`cpuset-differs`", "`container shop/db-0/server`", "`0-3 (cpuset.cpus: 0-7)`", "`4-5`"],
        ["", "", "`field-differs [waived until 2026-12-31]`", "`cpu_manager_policy`", "`none`", "`static`"],
        ["`worker-5`", "drift", "`own-check`", "`cpu_manager_policy`", "", "`static`"],
    ]


def test_what_to_do_and_problems() -> None:
    assert ["`cpuset-differs`", "`Run the playbook rollout.`"] in table_of(report(), "What to do")
    assert table_of(report(), "Result files that are not used")[2:] == [
        ["`slices/a/nodes/x.json`", "`is cut off at byte 812`", "`copy the file again`"]
    ]


def test_what_is_gone() -> None:
    assert table_of(report(), "Gone since the baseline") == [
        ["Nodes", "Check", "Subject"],
        ["---"] * 3,
        ["`worker-[1,11-12]`", "`policy-differs`", "`cpu_manager_policy`"],
        ["`worker-1`", "`cpuset-differs`", "`container shop/db-0/server`"],
    ]
    many = report(gone=[gone("a", "policy-differs", str(number)) for number in range(25)])
    assert len(table_of(many, "Gone since the baseline")) == 22
    assert "\nLeft out here for their length: 5 more findings.\n" in markdown(many)


def test_a_clean_fleet_has_no_table_of_nodes() -> None:
    text = markdown(report([node("a"), node("b", "no kubelet"), node("c", "nothing wanted")], problems=[], gone=[]))
    assert "**clean**: 3 nodes" in text
    assert [line for line in text.splitlines() if line.startswith("#")] == ["## CPU drift report", "### States"]


# --- length -------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_counted() -> None:
    nodes = []
    for number in range(99):
        checks = ["check-%d-%d" % (number, at) for at in range(number % 9 + 1)]
        findings = [finding(check, severity="warning", found="x" * 200, remedy="") for check in checks]
        nodes.append(node("w-%d" % number, "drift", findings=findings))
    value = report(nodes)
    value["summary"]["checks"] = []
    text = markdown(value)
    assert LONGEST - 4000 < len(text) <= LONGEST
    match = re.search(r"\nLeft out here for their length: ([0-9]+) more nodes.\n", text)
    assert match is not None
    assert int(match.group(1)) == 99 - text.count("` | drift |")


def test_what_comes_behind_is_left_out_too() -> None:
    """So that it is the worst nodes that are in the table."""
    text, nodes = "x" * 160, []
    for number in range(7):
        large = [
            finding("check-%d" % at, severity="warning", subject=text, found=text, wanted=text) for at in range(19)
        ]
        nodes.append(node("w-%d" % number, "drift", findings=[finding(found=str(number)), *large]))
    last = [node("a", "failed", message="1"), node("b", "failed", message="1")]
    value = report([*nodes, *last], checks={})
    value["summary"]["checks"] = []
    text = markdown(value)
    shown = text.count("` | drift |")
    assert 0 < shown < len(nodes)
    assert "failed |  |" not in text
    assert "Left out here for their length: %d more nodes." % (len(nodes) - shown + 2) in text


def test_problems_that_are_many_are_counted() -> None:
    problems = [{"file": "%d.json" % number, "text": "x", "remedy": ""} for number in range(50)]
    text = markdown(report([], problems=problems))
    assert "`19.json`" in text
    assert "`20.json`" not in text
    assert "\nLeft out here for their length: 30 more files.\n" in text


@pytest.mark.parametrize("alike", [True, False])
def test_a_large_fleet_fits(alike: bool) -> None:
    text = markdown(big(10000, alike))
    assert len(text) < 10000
    assert "Left out" not in text


@pytest.mark.parametrize("text", ["`" * 20000, "|" * 20000, "漢" * 20000])
def test_long_texts_fit(text: str) -> None:
    assert len(markdown(hostile([text], keep=()))) <= LONGEST


# --- hostile ------------------------------------------------------------------------------------------


def check_safe(text: str) -> None:
    """Raise where the text has anything but headings, tables, words and code; or a row has another number of cells."""
    assert len(text) <= LONGEST
    width = 0
    for line in text.splitlines():
        if line.startswith("|"):
            width = width or len(cells(line))
            assert len(cells(line)) == width
            assert line.endswith(" |")
        else:
            width = 0
    for token in tokens(text):
        assert token.type in TOKENS
        if token.type == "text":
            assert WORDS.fullmatch(token.content.replace(".", "")), token.content


def test_a_report_is_safe() -> None:
    check_safe(markdown(report()))


@pytest.mark.parametrize("text", HOSTILE)
def test_each_hostile_text_is_only_text(text: str) -> None:
    check_safe(markdown(hostile([text])))
    check_safe(markdown(hostile([text], keep=())))


@given(hostile_texts)
def test_any_text_is_only_text(texts: list[str]) -> None:
    check_safe(markdown(hostile(texts, keep=())))


@given(hostile_texts, st.booleans())
def test_an_earlier_report_is_only_text(texts: list[str], is_whole: bool) -> None:
    """Somebody may have edited it; it has to have a time."""
    earlier = point_of({**hostile(texts, keep=["severity"] if is_whole else ()), "made": "2026-11-20T15:04:05Z"})
    text = markdown(report(), [earlier] * 20)
    check_safe(text)
    check_safe(markdown(hostile(texts, keep=()), [earlier]))
    assert "### The last reports" in text


@given(hostile_texts)
def test_no_text_is_a_heading(texts: list[str]) -> None:
    found = [line for line in markdown(hostile(texts)).splitlines() if line.startswith("### ")]
    assert set(found) <= {line for line in markdown(report()).splitlines() if line.startswith("### ")}


@given(st.lists(st.sampled_from([*"`|\\ab@<"]), max_size=12).map("".join))
def test_a_code_span_has_the_whole_text(text: str) -> None:
    """In a table, where GitHub takes a backslash before a pipe away, and that is all that it changes."""
    row = [token for token in tokens("| a | b |\n|---|---|\n| %s | x |\n" % _code(text)) if token.type == "inline"]
    assert [token.content for token in row[-1].children or ()] == ["x"]
    assert [(token.type, token.content) for token in row[-2].children or ()] == (
        [("code_inline", text)] if text else []
    )
