# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/rollout/texts.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import collect
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.texts import folded, plan_text

POLICY = {"subject": "cpu_manager_policy", "wanted": "static", "found": "none", "source": "/etc/kubelet.yaml"}
OPTIONS = {"subject": "cpu_manager_policy_options", "wanted": {}, "found": {"full-pcpus-only": "true"}}
CHANGE: dict[str, Any] = {
    "status": "drift",
    "drift": [POLICY],
    "actions": ["stop_kubelet", "write_configuration", "start_kubelet"],
    "drain": True,
    "drains": True,
    "refusals": [],
    "notes": [],
    "journal": None,
}


def told(*answers: Any, skip: bool = False) -> list[str]:
    return plan_text(collect({"node-%d" % number: answer for number, answer in enumerate(answers)}), skip).splitlines()


def test_values_found_and_wanted_and_what_is_done() -> None:
    answer = {**CHANGE, "drift": [POLICY, {**OPTIONS, "remedy": "do it"}], "notes": ["a note\nof two lines"]}
    assert told(answer) == [
        "node-0:",
        "  cpu_manager_policy: none -> static",
        "  cpu_manager_policy_options: {full-pcpus-only: true} -> {}; do it",
        "  to do: drain, stop kubelet, write configuration, start kubelet",
        "  note: a note of two lines",
    ]


def test_nodes_of_which_the_same_is_said_stand_together() -> None:
    clean = {**CHANGE, "status": "clean", "drift": [], "actions": [], "drains": False}
    lines = told(CHANGE, clean, {**CHANGE, "drains": False}, CHANGE, clean)
    assert [line for line in lines if not line.startswith(" ")] == [
        "node-0, node-3:",
        "node-2:",
        "Nothing to do: node-1, node-4",
    ]


def test_which_kubelet_has_tried_the_start() -> None:
    """The times of nodes of which the same is said are different."""
    by = {"version": "1.36.3", "told": "as the node says it"}
    answers = [{**CHANGE, "trial": {**by, "seconds": seconds}} for seconds in (3.14, 0.2, 10)]
    newer = {**CHANGE, "trial": {"version": "1.37.0", "seconds": 3}}
    lines = told(*answers, newer, CHANGE)
    assert [line for line in lines if not line.startswith(" ") or "tried" in line] == [
        "node-0, node-1, node-2:",
        "  tried by kubelet 1.36.3, 0.2 to 10.0 s",
        "node-3:",
        "  tried by kubelet 1.37.0, 3.0 s",
        "node-4:",
    ]


@pytest.mark.parametrize(
    "trial",
    [
        None,
        [],
        "1.36.3",
        {"version": None, "seconds": 3},
        {"version": "1.36.3"},
        {"version": "1.36.3", "seconds": "3"},
        {"version": "1.36.3", "seconds": {}},
        {"version": "1.36.3", "seconds": 10**400},
    ],
)
def test_what_is_no_trial_is_not_told(trial: object) -> None:
    assert told({**CHANGE, "trial": trial}) == told(CHANGE)


def test_a_version_from_a_node_is_text() -> None:
    lines = told({**CHANGE, "trial": {"version": "1\x1b[2J\n" + "x" * 30000, "seconds": 1}})
    assert "tried by kubelet 1\\x1b[2J" in lines[3]
    assert len("".join(lines)) < 21000
    assert "tried by kubelet [1]," in told({**CHANGE, "trial": {"version": [1], "seconds": 1}})[3]


def test_what_hinders_it() -> None:
    refusals = [
        {"kind": "assignments", "where": "/state", "text": "a container would lose CPUs", "remedy": "drain the node"},
        {"kind": "refused", "where": "", "text": "Talos manages it", "remedy": ""},
    ]
    lines = told({**CHANGE, "refusals": refusals, "journal": {"phase": "changing"}})
    assert lines[2:] == [
        "  to do: take back a change that was interrupted, drain, stop kubelet,",
        "    write configuration, start kubelet",
        "  cannot be changed: /state: a container would lose CPUs; drain the node",
        "  cannot be changed: Talos manages it",
    ]
    assert told({"failed": True, "msg": "no such root\nat all"}) == [
        *("node-0:", "  cannot be planned: no such root", "  at all"),
    ]


def test_what_others_have_to_be_given_is_ready_to_paste() -> None:
    elsewhere = {"name": "kubespray", "why": "its next run writes the file anew", "snippet": "a: 1\nb:\n  c: 2\n"}
    assert told({**CHANGE, "elsewhere": elsewhere})[3:] == [
        "  kubespray: its next run writes the file anew",
        *("    a: 1", "    b:", "      c: 2"),
    ]


@pytest.mark.parametrize("skip", [True, False])
def test_hosts_without_a_kubelet(skip: bool) -> None:
    without = {**CHANGE, "status": "no kubelet", "drift": [], "actions": [], "drains": False}
    assert told(without, skip=skip) == [
        "Without a kubelet, left out: node-0" if skip else "Nothing to do: node-0",
    ]


def test_a_node_that_is_away_is_not_in_the_plan() -> None:
    assert told(None, {"unreachable": True, "msg": "away"}) == []


@pytest.mark.parametrize(
    "hostile",
    [
        {"drift": "x"},
        {"drift": [1, {"subject": "\x1b[2J", "found": "\x07", "wanted": None}]},
        {"actions": {"a": 1}},
        {"notes": [{"\x1b": "\x9b31m"}]},
        {"refusals": [None, {"text": "\x1b]0;owned\x07"}]},
        {"elsewhere": {"snippet": "\x1b[31mred", "name": [], "why": 3}},
        {"status": ["drift"]},
    ],
)
def test_no_node_writes_to_the_terminal(hostile: dict[str, Any]) -> None:
    lines = told({**CHANGE, **hostile}, CHANGE)
    assert "node-1:" in lines or "node-0, node-1:" in lines
    assert all(line.isprintable() for line in lines)


def test_no_word_is_broken_at_80_columns() -> None:
    """Ansible indents the text by 8. What is to be copied stays in its lines."""
    note, snippet = "the version of the kubelet is not known: give kubelet_target_version " * 3, "key: " + "value " * 30
    elsewhere = {"name": "kubespray", "why": note, "snippet": snippet}
    answer = {**CHANGE, "notes": [note], "elsewhere": elsewhere}
    lines = told(*[answer] * 40)
    copied = [line for line in lines if "value" in line]
    assert copied == ["    " + snippet]
    assert max(len(line) for line in lines if line not in copied) <= 72
    words = " ".join(lines).split()
    assert words.count("kubelet_target_version") == 6
    assert lines[0] == "node-[0-39]:"


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["b", "a2", "a1"], "b, a2, a1"),
        (["n-%02d" % number for number in range(60)], "n-[00-59]"),
        (["n-%d.example.org" % number for number in range(8, 13)] + ["x9y"], "n-[8-12].example.org, x9y"),
        (["n-%d" % number for number in (1, 2, 3, 5, 7, 8, 100)], "n-[1-3,5,7-8,100]"),
        (["n-9", "n-09", "n-010", "n-10", "n-11", "a"], "n-9, n-[09-11], n-010, a"),
        (["n-%d" % number for number in range(0, 100, 2)], "n-[%s] and 30 more" % ",".join(map(str, range(0, 40, 2)))),
        (
            ["node-" + letter for letter in "abcdefghijklmnopqrstuvwxyz"],
            ", ".join("node-" + x for x in "abcdefghijklmnopqrst") + " and 6 more",
        ),
        (["1" * 30, "2" * 30, "3", "4", "5", "6"], "%s, %s, [3-6]" % ("1" * 30, "2" * 30)),
    ],
)
def test_many_names_are_folded(names: list[str], shown: str) -> None:
    assert folded(names) == shown


def test_what_holds_for_sixty_nodes_is_said_once() -> None:
    """Also where they differ in something else; and of a kind that each node words in another way, a few are shown."""
    answers = [
        {
            **CHANGE,
            "drift": [{**POLICY, "found": "none" if number % 2 else "dynamic"}],
            "notes": ["the version is not known", "the reservation splits core %d" % number],
            "note_checks": ["version-assumed", "reservation-splits-cores"],
        }
        for number in range(60)
    ]
    lines = told(*answers)
    text = " ".join(" ".join(lines).split())
    assert text.count("the version is not known") == 1
    assert "note: of node-[0-59]: the version is not known" in text
    assert text.count("splits core") == 3
    assert "note: of node-[3-59]: 57 more of reservation-splits-cores" in text
    assert len(lines) < 25


def test_notes_of_a_hostile_node_stay_its_own() -> None:
    """It cannot speak for others, end a line, or name a kind that hides what others say."""
    evil = {
        **CHANGE,
        "notes": ["x\x1b[2J\nnote: of node-1: fine", *map(str, range(9))],
        "note_checks": ["version-assumed"] * 99,
    }
    good = {**CHANGE, "notes": ["the version is not known"], "note_checks": ["version-assumed"]}
    lines = told(evil, good, good)
    assert "\x1b" not in "".join(lines)
    assert not any(line.startswith("note") for line in lines)
    assert "  note: of node-1, node-2: the version is not known" in lines
    assert "  note: of node-0: 8 more of version-assumed" in lines
    odd: Any
    for odd in (None, "x", 7, [None, {}], {"a": 1}):
        assert "  note: n" in told({**CHANGE, "notes": ["n"], "note_checks": odd})
