# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import (
    answered,
    collect,
    collected,
    machine_of,
    view,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    TOPOLOGY,
    answers,
    can_be_shown,
    texts_in,
)

# --- collect ------------------------------------------------------------------------------------------


def test_an_answer_is_kept() -> None:
    answer = {**ANSWER, "changed": False, "failed": False, "ansible_facts": {"x": 1}}
    assert collect({"a": answer}) == [{"host": "a", **ANSWER}]


def test_what_ansible_adds_to_an_answer_is_none_of_the_node() -> None:
    """From ansible-core 2.19 on, what it adds to a failure is no plain data."""
    failure = {"failed": True, "msg": "no such root", "exception": object(), "_ansible_no_log": False, "changed": False}
    assert answered(failure) == {"failed": True, "msg": "no such root"}
    assert collected("a", failure) == {"host": "a", "status": "failed", "message": "no such root"}


def test_a_node_cannot_take_the_name_of_another() -> None:
    assert [node["host"] for node in collect({"a": {**ANSWER, "host": "b"}, "b": ANSWER})] == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        ({"failed": True, "msg": "a: broken"}, "failed", "a: broken"),
        ({"failed": True}, "failed", "failed without a message"),
        # It failed, whatever it says beside.
        ({"failed": True, "status": "clean", "msg": "broken"}, "failed", "broken"),
        ({"unreachable": True, "msg": "no route"}, "unreachable", "no route"),
        (None, "unreachable", "the node could not be reached"),
        ("text", "unreachable", "the node could not be reached"),
        ([], "unreachable", "the node could not be reached"),
        ({"status": "failed", "x": 1}, "failed", "the answer of the node has the status failed, which is none"),
        ({"status": None}, "failed", "the answer of the node has the status null, which is none"),
        ({"status": ["clean"]}, "failed", "the answer of the node has the status [clean], which is none"),
        ({"status": "clean\n"}, "failed", "the answer of the node has the status clean\n, which is none"),
    ],
)
def test_a_node_without_an_answer(answer: Any, status: str, message: str) -> None:
    assert collect({"a": answer}) == [{"host": "a", "status": status, "message": message}]


def test_what_ansible_adds_is_no_answer() -> None:
    """Later versions of ansible-core have objects of their own there."""
    added = {name: [object()] for name in ("warnings", "deprecations", "exception")}
    (node,) = collect({"worker-1": {"status": "clean", **added}})
    assert node == {"host": "worker-1", "status": "clean"}


def test_what_is_no_json_does_not_stop_the_others() -> None:
    deep: list[Any] = []
    for _level in range(100000):
        deep = [deep]
    nodes = collect({"a": {"status": deep}, "b": {"status": float("nan")}, "c": {"status": {1, 2}}, "d": ANSWER})
    assert [node["status"] for node in nodes] == ["failed", "failed", "failed", "drift"]
    assert all(node["message"].startswith("the answer of the node cannot be read: ") for node in nodes[:3])


@given(answers)
def test_any_answer_is_collected(answer: Any) -> None:
    node = collected("a", answer)
    assert node["host"] == "a"
    assert "status" in node
    json.dumps(node)


# --- view ---------------------------------------------------------------------------------------------


def test_view() -> None:
    shown = view({"host": "a", **ANSWER})
    assert (shown["host"], shown["status"], shown["message"]) == ("a", "drift", "")
    assert shown["rows"] == [
        {
            "subject": "cpu_manager_policy",
            "found": "none",
            "wanted": "static",
            "remedy": "set it",
            "source": "/var/lib/kubelet/config.yaml",
            "refused_now": True,
        },
    ]
    assert shown["actions"] == "stop kubelet, start kubelet"
    assert shown["notes"] == ["the reservation splits cores", "a note"]
    assert shown["containers"] == {"version": "2", "kept": "40", "different": "1", "skipped": "12"}


def test_a_row_without_remedy_and_source() -> None:
    shown = view({"host": "a", "drift": [{"subject": "start", "found": ["x"], "wanted": "starts", "source": None}]})
    assert shown["rows"] == [
        {"subject": "start", "found": "[x]", "wanted": "starts", "remedy": "", "source": "", "refused_now": True}
    ]


@pytest.mark.parametrize(
    ("part", "answer"),
    [({}, True), ({"refused_now": True}, True), ({"refused_now": False}, False), ({"refused_now": 0}, True)],
)
def test_only_a_plain_no_is_no_refusal(part: Any, answer: bool) -> None:
    (row,) = view({"host": "a", "drift": [{"subject": "checkpoint", **part}]})["rows"]
    assert row["refused_now"] is answer


def test_refusals_and_what_to_do_elsewhere() -> None:
    shown = view(
        {
            "host": "a",
            "status": "drift",
            "refusals": [
                {"kind": "refused", "where": "config.yaml", "text": "it is a link", "remedy": "remove it"},
                {"text": "no"},
                "no mapping",
            ],
            "elsewhere": {"name": "kubespray", "why": "it writes the file anew", "snippet": "a: 1\nb: 2\n"},
        }
    )
    assert shown["refusals"] == ["config.yaml: it is a link; remove it", "no", ""]
    assert shown["refusal_kinds"] == ["refused", "", ""]
    assert shown["elsewhere"] == {"name": "kubespray", "why": "it writes the file anew", "snippet": "a: 1\nb: 2\n"}


@pytest.mark.parametrize("part", ["elsewhere", "enforcement", "refusals", "drift", "notes", "actions"])
@pytest.mark.parametrize("value", [None, [], {}, "", 0, "text"])
def test_a_part_may_be_missing_or_empty(part: str, value: Any) -> None:
    shown: Any = view({"host": "a", "status": "clean", part: value})
    assert not any(shown[name] for name in shown if name not in ("host", "status"))


@given(answers)
def test_any_answer_has_a_view(answer: Any) -> None:
    shown: Any = view(collected("a", answer))
    for name in ("host", "status", "message", "actions"):
        assert isinstance(shown[name], str)
    for name in ("notes", "refusals"):
        assert all(isinstance(item, str) for item in shown[name])
    for row in shown["rows"]:
        assert list(row) == ["subject", "found", "wanted", "remedy", "source", "refused_now"]
        assert isinstance(row.pop("refused_now"), bool)
    assert len(shown["refusal_kinds"]) == len(shown["refusals"])
    assert all(map(can_be_shown, texts_in(shown)))
    json.dumps(shown).encode()


# --- machine_of ---------------------------------------------------------------------------------------


def test_machine() -> None:
    assert machine_of(TOPOLOGY) == "8 CPUs online, 2 sockets, 2 NUMA nodes, 2 L3 caches, 4 cores"
    assert machine_of({"online": "3"}) == "1 CPU online, 0 sockets, 0 NUMA nodes, 0 L3 caches, 0 cores"


@pytest.mark.parametrize("topology", [{}, {"cores": []}, {"online": "<x>"}, {"online": 7}, {"online": "0-99999999999"}])
def test_a_machine_that_cannot_be_read(topology: Any) -> None:
    assert machine_of(topology) == ""
