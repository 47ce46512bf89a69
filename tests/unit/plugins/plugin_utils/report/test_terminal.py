# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.terminal import (
    WIDEST,
    cell,
    fleet_table,
    folded,
    host_names,
    node_lines,
    said_in_words,
    summary_line,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import (
    big,
    finding,
    hostile,
    hostile_texts,
    node,
    report,
)


def lines(value: Any) -> list[str]:
    return fleet_table(value).splitlines()


def drifting(host: str, **parts: Any) -> Any:
    return node(host, "drift", findings=[finding(**parts)])


def places(text: str) -> int:
    """Return how wide it is, counted apart from the code that is tested."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in ("W", "F") else 1
        for each in text
    )


# --- the table ----------------------------------------------------------------------------------------


def test_equal_nodes_share_a_row() -> None:
    nodes = [*(drifting("worker-%d" % number) for number in range(1, 41)), node("worker-41"), node("worker-42")]
    assert lines(report(nodes, problems=[]))[:3] == [
        "NODES           STATE  CHECK           SUBJECT             FOUND  WANTED",
        "worker-[1-40]   drift  policy-differs  cpu_manager_policy  none   static",
        "worker-[41-42]  clean",
    ]


@pytest.mark.parametrize(
    "changed",
    [
        drifting("b", found="dynamic"),
        drifting("b", wanted=""),
        drifting("b", subject="cpu_manager_policy_options"),
        drifting("b", check="field-differs"),
        drifting("b", since="new"),
        drifting("b", waived={"reason": "", "until": "2026-12-31"}),
        {**drifting("b"), "state": "stale"},
        {**drifting("b"), "message": "x"},
        node("b", "drift", findings=[finding(), finding("field-differs")]),
        node("b", "drift"),
    ],
)
def test_nodes_that_differ_do_not(changed: Any) -> None:
    assert [list(fold.hosts) for fold in folded([drifting("a"), changed])] == [["a"], ["b"]]


def test_notes_do_not_keep_nodes_apart() -> None:
    note = finding("reservation-splits-cores", text="x")
    assert len(folded([node("a"), node("b", findings=[note])])) == 1


def test_a_message_is_the_same_but_for_the_name() -> None:
    hosts = ("db-1", "db-2")
    nodes = [
        node(host, "failed", message="%s: no such file\nas %s says, not x%s" % (host, host, host)) for host in hosts
    ]
    assert [fold.message for fold in folded(nodes)] == [
        "db-1: no such file as db-1 says, not xdb-1",
        "db-2: no such file as db-2 says, not xdb-2",
    ]
    alike = [node(host, "failed", message="%s: no such file\nas %s says" % (host, host)) for host in hosts]
    assert [fold.message for fold in folded(alike)] == ["NODE: no such file as NODE says"]
    assert [fold.message for fold in folded(alike[:1])] == ["db-1: no such file as db-1 says"]


def test_all_states_and_marks() -> None:
    assert [re.split("  +", text) for text in fleet_table(report()).partition("\n\n")[0].splitlines()[1:]] == [
        ["worker-7", "refused", "checkpoint-refused", "checkpoint", "the checksum is wrong"],
        ["", "change-refused", "-", "running containers would lose"],
        ["", "CPUs"],
        ["worker-6", "failed", "worker-6: the module failed in its second line"],
        ["worker-8", "unreachable", "no route to host"],
        ["worker-9", "missing"],
        ["worker-10", "stale", "policy-differs", "cpu_manager_policy", "none", "static"],
        ["worker-[2-4]", "drift", "policy-differs [new]", "cpu_manager_policy", "none", "static"],
        ["", "cpuset-differs", "container shop/db-0/server", "0-3 (cpuset.cpus: 0-7)", "4-5"],
        ["", "field-differs [waived until", "cpu_manager_policy", "none", "static"],
        ["", "2026-12-31]"],
        ["worker-5", "drift", "own-check", "cpu_manager_policy", "-", "static"],
        ["worker-11", "nothing wanted"],
        ["worker-1", "clean"],
        ["worker-12", "clean", "field-differs [waived]", "cpu_manager_policy", "none", "static"],
    ]


def test_what_is_below_the_table() -> None:
    text = fleet_table(report())
    assert text[text.index("\n\n") : text.index("\n13 nodes: ")] == (
        """

checkpoint-refused (danger): The kubelet would refuse the checkpoint
  set kubelet_cpu_manager_policy
own-check (danger)
  set kubelet_cpu_manager_policy
policy-differs (warning): The CPU manager's policy is not the wanted one
  set kubelet_cpu_manager_policy
cpuset-differs (warning): A container has other CPUs than the checkpoint gives it
  Run the playbook rollout.
change-refused (warning): A rollout would refuse to change the node
  Run the playbook rollout.
field-differs (warning): A field that goes with a setting is not as it has to be
  set kubelet_cpu_manager_policy

worker-[2-4]: field-differs waived until 2026-12-31: until the | move
worker-12: field-differs waived: wanted so
worker-[1-4]: note: reservation-splits-cores: the reservation 0-1 splits cores
worker-[1,11-12]: gone: policy-differs cpu_manager_policy
worker-1: gone: cpuset-differs container shop/db-0/server
No kubelet: bastion
not used: slices/a/nodes/x.json: is cut off at byte 812; copy the file again
"""
    )


def test_findings_with_different_remedies_have_the_general_one() -> None:
    nodes = [drifting("a", remedy="set a"), drifting("b", remedy="set b")]
    assert "  Run the playbook rollout." in lines(report(nodes))
    assert "  set a" in lines(report(nodes, checks={}))


def test_a_host_without_a_kubelet_has_no_row_unless_something_is_wrong_there() -> None:
    nodes = [node("a-%d" % number, "no kubelet") for number in range(2)]
    assert "No kubelet: a-[0-1]" in lines(report(nodes))
    assert lines(report(nodes))[:2] == ["NODES  STATE  CHECK  SUBJECT  FOUND  WANTED", ""]
    nodes[0]["findings"] = [finding()]
    assert lines(report(nodes))[1].split() == [
        "a-0",
        "no",
        "kubelet",
        "policy-differs",
        "cpu_manager_policy",
        "none",
        "static",
    ]


def test_notes_of_one_check_are_five_lines_and_the_count_of_the_others() -> None:
    notes = [node("a-%d" % number, findings=[finding("reservation-splits-cores", subject="", wanted="", found="",
             text="CPUs %d" % (number // 2))]) for number in range(2, 16)]  # fmt: skip
    told = [text for text in lines(report(notes)) if "note" in text]
    each = [
        "a-[%d-%d]: note: reservation-splits-cores: CPUs %d" % (2 * half, 2 * half + 1, half) for half in range(1, 6)
    ]
    assert told == [*each, "a-[12-15]: note: reservation-splits-cores: 2 more texts"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({}, "cpu_manager_policy: none, wanted static"),
        ({"found": ""}, "cpu_manager_policy: -, wanted static"),
        ({"subject": ""}, "none, wanted static"),
        ({"subject": "", "wanted": "", "found": "", "text": "a\nb"}, "a b"),
    ],
)
def test_said_in_words(parts: dict[str, str], text: str) -> None:
    assert said_in_words(finding(**parts)) == text


# --- the last line ------------------------------------------------------------------------------------


def test_summary_line() -> None:
    waived = {"reason": "", "until": ""}
    nodes = [drifting("a"), drifting("b"), drifting("c", check="field-differs", waived=waived), node("d")]
    nodes[2]["state"] = "clean"
    found = report(nodes, problems=[])
    assert summary_line(found) == "4 nodes: 2 clean, 2 drift; 1 check failed; 4 findings gone; outcome drift"
    found["summary"]["gone"] = None
    assert lines(found)[-1] == "4 nodes: 2 clean, 2 drift; 1 check failed; outcome drift"


def test_a_wide_summary_goes_on_in_a_second_line() -> None:
    first, second = lines(report())[-2:]
    assert first.startswith(
        "13 nodes: 2 clean, 1 nothing wanted, 1 no kubelet, 4 drift, 1 stale, 1 missing, 1 failed, "
    )
    assert second == "  5 checks failed; 4 findings gone; 1 result file not used; outcome danger"


def test_no_node() -> None:
    empty = report([], problems=[])
    empty["summary"]["gone"] = None
    assert lines(empty)[-1] == "0 nodes; 0 checks failed; outcome clean"


# --- names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        ("a", "a"),
        ("a b", "a, b"),
        ("w-1 w-2 w-3", "w-[1-3]"),
        ("w-3 w-1 w-7", "w-[1,3,7]"),
        ("w-9 w-10 w-11 x", "w-[9-11], x"),
        ("w-08 w-09 w-10", "w-[08-09], w-10"),
        ("w-1 w-01", "w-1, w-01"),
        ("rack2-w1.eu-1.example rack2-w2.eu-1.example", "rack2-w[1-2].eu-1.example"),
        ("w1.eu w1.us", "w1.eu, w1.us"),
        ("10.0.0.1 10.0.0.2", "10.0.0.[1-2]"),
        ("w-99999999998 w-99999999999", "w-99[999999998-999999999]"),
    ],
)
def test_host_names(hosts: str, names: str) -> None:
    assert host_names(hosts.split()) == names


def test_many_names_are_counted() -> None:
    odd = ["worker-%d" % number for number in range(1, 200, 2)]
    assert host_names(odd) == "worker-1, worker-3, worker-5, worker-7 and 96 more"
    assert host_names(["db-%s" % letter * 20 for letter in "abcde"]) == "%s and 4 more" % ("db-a" * 20)
    assert host_names(["x" * 100]) == "x" * 100
    mixed = ["w-%d" % number for number in range(100)] + ["host-with-a-long-name-%s" % letter for letter in "abc"]
    assert host_names(mixed) == "w-[0-99], host-with-a-long-name-a and 2 more"


# --- limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alike", [True, False])
def test_a_large_fleet_is_a_short_table(alike: bool) -> None:
    text = fleet_table(big(10000, alike))
    assert text.count("\n") < 100
    assert "10000 nodes: 9600 clean, 300 drift, 100 unreachable; " in text
    assert (" values, as 0-" in text) is not alike


def test_of_many_nodes_the_messages_that_differ_are_shown() -> None:
    """One of them in place of all would be taken for what is wrong with each."""
    nodes = [node("worker-%d" % number, "failed", message="reason %d" % number) for number in range(200)]
    (failed,) = folded(nodes)
    assert failed.message == "reason 0; reason 1; reason 2; reason 3; reason 4; and 195 other messages"


def test_rows_that_still_do_not_fit_are_counted() -> None:
    nodes = []
    for number in range(1, 1000):
        checks = ["check-%d" % bit for bit in range(10) if number >> bit & 1]
        nodes.append(node("w-%d" % number, "drift", findings=[finding(check, severity="warning") for check in checks]))
    text = fleet_table(report(nodes))
    assert 200 < text.count("\n") < 300
    match = re.search(r"^([0-9]+) nodes more: see another form of this report, which has all$", text, re.MULTILINE)
    assert match is not None
    assert int(match.group(1)) == 999 - text.count("  drift  ")


def test_a_node_with_very_many_findings() -> None:
    found = fleet_table(report([node("a", "drift", findings=[finding(subject=str(number)) for number in range(1000)])]))
    assert "and 981 more findings" in found
    assert found.partition("\n\n")[0].count("policy-differs ") == 19


@pytest.mark.parametrize("texts", [["x" * 3000], ["漢" * 3000], ["o\u0308" * 3000], ["a b," * 1000]])
def test_no_line_is_wider_than_the_terminal(texts: list[str]) -> None:
    for value in (hostile(texts), hostile(texts, keep=["state", "severity"]), report()):
        assert max(map(places, lines(value))) <= WIDEST


def test_no_word_is_broken() -> None:
    """A long value gives way, and not the names beside it."""
    name, values = "cpu_manager_reconcile_period", "0,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120 " * 3
    node_name = "worker-with-a-long-name.example.org"
    found = finding("reconcile-period-differs", severity="warning", subject=name, found=values, wanted=values)
    text = fleet_table(report([node(node_name, "drift", findings=[found])]))
    assert {node_name, name, "reconcile-period-differs"} <= set(text.split())


def test_columns_stand_below_each_other() -> None:
    """Some characters take two places, and some none."""
    found = lines(report([drifting("漢字"), drifting("o\u0308", found="漢"), drifting("abcd", found="x")]))[1:4]
    assert [places(text[: text.index("drift")]) for text in found] == [7, 7, 7]
    assert [places(text[: text.index("static")]) for text in found] == [57, 57, 57]


@given(hostile_texts)
def test_only_what_can_be_printed_is_printed(texts: list[str]) -> None:
    for value in (hostile(texts), hostile(texts, keep=())):
        found = fleet_table(value)
        assert not [each for each in found if each != "\n" and not each.isprintable()]
        assert max(map(places, found.splitlines())) <= WIDEST
        assert "\n13 nodes: " in found


def test_a_cell_is_short() -> None:
    assert (cell("a\nb"), cell("abcdef", 5), cell("abcde", 5)) == ("a b", "abcd…", "abcde")


# --- one line a node ----------------------------------------------------------------------------------


def test_a_node_has_one_line_and_nodes_alike_share_it() -> None:
    nodes = [
        node("worker-1", "drift", findings=[finding(), finding("checkpoint-refused", text="the checksum\nis wrong")]),
        drifting("worker-2"),
        drifting("worker-3"),
        node("worker-4"),
        {**node("worker-5", "unreachable"), "message": "no route to worker-5"},
    ]
    first, *others = node_lines(report(nodes, problems=[])).splitlines()
    differs = "policy-differs (cpu_manager_policy: none, wanted static)"
    assert first.startswith("worker-1: drift: %s; checkpoint-refused (" % differs)
    assert others == [
        "worker-[2-3]: drift: %s" % differs,
        "worker-4: clean",
        "worker-5: unreachable: no route to worker-5",
    ]


@given(hostile_texts)
def test_no_node_makes_a_second_line(texts: Any) -> None:
    for value in (hostile(texts), hostile(texts, keep=())):
        assert node_lines(value).count("\n") == len(folded(value["nodes"]))
