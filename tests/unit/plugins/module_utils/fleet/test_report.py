# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.fleet.report import (
    collect,
    counted,
    line,
    text,
    view,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

TOPOLOGY = parse_name("2s1n2c2t").topology().to_dict()
ANSWER: dict[str, Any] = {
    "status": "drift",
    "topology": TOPOLOGY,
    "drift": [{"subject": "cpu_manager_policy", "found": "none", "wanted": "static", "remedy": "set it"}],
    "actions": ["stop_kubelet", "start_kubelet"],
    "cpus": {"online": "0-7", "reserved": "0,4", "exclusive": "1-2", "shared": "3", "reserved_wanted": "0-1"},
    "owners": [
        {"use": "exclusive", "owner": "a/b/c", "cpus": "1"},
        {"use": "exclusive", "owner": "a/b/d", "cpus": "2"},
        {"use": "reserved", "owner": "", "cpus": "0,4"},
        {"use": "shared", "owner": "", "cpus": "3,5-7"},
    ],
    "notes": ["a note"],
}


# --- collect ------------------------------------------------------------------------------------------


def test_an_answer_is_kept() -> None:
    answer = {**ANSWER, "changed": False, "failed": False, "ansible_facts": {"x": 1}}
    assert collect({"a": answer}) == [{"host": "a", **ANSWER}]


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
    ],
)
def test_a_node_without_an_answer(answer: Any, status: str, message: str) -> None:
    assert collect({"a": answer}) == [{"host": "a", "status": status, "message": message}]


def test_what_is_no_json_does_not_stop_the_others() -> None:
    deep: list[Any] = []
    for _level in range(100000):
        deep = [deep]
    answers = {"a": {"status": deep}, "b": {"status": float("nan")}, "c": {"status": {1, 2}}, "d": ANSWER}
    nodes = collect(answers)
    assert [node["status"] for node in nodes] == ["failed", "failed", "failed", "drift"]
    assert all(node["message"].startswith("the answer of the node cannot be read: ") for node in nodes[:3])


# --- view ---------------------------------------------------------------------------------------------


def test_view() -> None:
    shown = view({"host": "a", **ANSWER})
    assert (shown["host"], shown["status"], shown["message"]) == ("a", "drift", "")
    assert shown["machine"] == "8 CPUs online, 2 sockets, 2 NUMA nodes, 2 L3 caches, 4 cores"
    assert shown["rows"] == [
        {"subject": "cpu_manager_policy", "found": "none", "wanted": "static", "remedy": "set it"},
    ]
    assert shown["actions"] == "stop kubelet, start kubelet"
    assert shown["notes"] == ["a note"]
    assert shown["pools"] == [
        {"name": "online", "cpus": "0-7", "owner": False},
        {"name": "reserved", "cpus": "0,4", "owner": False},
        {"name": "exclusive", "cpus": "1-2", "owner": False},
        {"name": "a/b/c", "cpus": "1", "owner": True},
        {"name": "a/b/d", "cpus": "2", "owner": True},
        {"name": "shared", "cpus": "3", "owner": False},
    ]


def cells_of(boxes: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for box in boxes:
        found.update({cell["cpu"]: cell for cell in box["core"]} if "core" in box else cells_of(box["members"]))
    return found


def test_map() -> None:
    cpus = {**ANSWER["cpus"], "isolated": "0,7"}
    shown = view({"host": "a", **ANSWER, "cpus": cpus})["map"]
    assert [box["name"] for box in shown["boxes"]] == ["socket 0", "socket 1"]
    assert [box["name"] for box in shown["boxes"][0]["members"]] == ["NUMA node 0"]
    cells = cells_of(shown["boxes"])
    assert {cpu: cell["classes"] for cpu, cell in cells.items()} == {
        0: "reserved wanted isolated",
        1: "exclusive wanted",
        2: "exclusive odd",
        3: "shared",
        4: "reserved",
        5: "shared",
        6: "shared",
        7: "shared isolated",
    }
    assert cells[0]["title"] == "CPU 0: reserved, isolated, reserved in the wanted state"
    assert cells[2]["title"] == "CPU 2: exclusive to a/b/d"
    assert shown["offline"] == []


def test_a_cpu_without_an_owner_is_drawn() -> None:
    cells = cells_of(view({"host": "a", **ANSWER, "owners": [{"use": "<b>", "cpus": "0-7"}]})["map"]["boxes"])
    assert cells[0]["classes"] == "unknown wanted"
    assert cells[7]["title"] == "CPU 7: unknown"


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"topology": {"online": "<x>", "cores": []}}, "CPU list '<x>', position 1"),
        ({"topology": {"cores": []}}, "'online'"),
        ({"topology": {**TOPOLOGY, "online": 7}}, "not 7"),
        ({"topology": {**TOPOLOGY, "sockets": ["0"]}}, "list"),
        ({"topology": {"online": "0-9000", "cores": ["0-9000"]}}, "it has more than 8192 CPUs"),
        (
            {"topology": {**TOPOLOGY, "l3_caches": {str(number): "0" for number in range(2000)}}},
            "it has more than 1024 groups of a kind",
        ),
        ({"owners": [{"use": "shared", "cpus": "<i>"}]}, "CPU list '<i>'"),
        ({"owners": [{"use": "shared"}]}, "'cpus'"),
        ({"cpus": {"isolated": "x"}}, "CPU list 'x'"),
        ({"cpus": {"isolated": {"a": 1}}}, "not {'a': 1}"),
    ],
)
def test_what_cannot_be_drawn_is_said(part: dict[str, Any], why: str) -> None:
    shown = view({"host": "a", **ANSWER, **part})
    assert shown["map"] == {}
    assert shown["notes"][:-1] == ["a note"]
    assert shown["notes"][-1].startswith("the CPUs are not drawn, as the topology cannot be read: ")
    assert why in shown["notes"][-1]
    assert shown["rows"] != []


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
    assert shown["elsewhere"] == {"name": "kubespray", "why": "it writes the file anew", "snippet": "a: 1\nb: 2\n"}
    assert view({"host": "a", "elsewhere": None})["elsewhere"] == {}


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.just("0-3")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
KEYS = ("status", "message", "topology", "drift", "actions", "checkpoint", "enforcement", "refusals", "elsewhere")


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys((*KEYS, "cpus", "owners", "notes"), json_values)),
    st.sampled_from(["online", "cores", "sockets", "numa_nodes", "l3_caches", "isolated", "offline", "problems"]),
    json_values,
)
def test_any_answer_has_a_view(answer: dict[str, Any], key: str, value: Any) -> None:
    for node in (answer, {**ANSWER, **answer}, {**ANSWER, "topology": {**TOPOLOGY, key: value}}):
        shown = view({"host": "a", **node})
        assert all(isinstance(shown[name], str) for name in ("host", "status", "message", "machine", "actions"))
        assert all(isinstance(one, str) for name in ("notes", "refusals") for one in shown[name])
        assert all(isinstance(one, str) for row in shown["rows"] for one in row.values())
        assert all(isinstance(one, str) for one in shown["elsewhere"].values())
        json.dumps(shown).encode()


# --- texts --------------------------------------------------------------------------------------------

TEXTS = [
    ("plain", "plain"),
    ("ümläut 漢字 <b>", "ümläut 漢字 <b>"),
    ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    ("\x9b31m", "\\x9b31m"),  # the same in one character
    ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    ("a\rb\x08c\x00\x7f", "a\\x0db\\x08c\\x00\\x7f"),
    ("a\nb", "a\nb"),
    ("a\tb", "a b"),
    ("a\r\nb\r", "a\nb"),  # as ssh ends its lines
    ("user\u202etxt.exe", "user\\u202etxt.exe"),  # right to left
    ("a\u200bb\ufeff\u2028", "a\\u200bb\\ufeff\\u2028"),
    ("\ud800", "\\ud800"),  # no character at all: nobody can write it as UTF-8
    ("\U000e0001", "\\U000e0001"),
    (None, "null"),
    (True, "true"),
    (1.5, "1.5"),
    ({"a": ["b", 1]}, "{a: [b, 1]}"),
    ("", ""),
]


@pytest.mark.parametrize(("value", "shown"), TEXTS)
def test_text(value: Any, shown: str) -> None:
    assert text(value) == shown


def test_line() -> None:
    assert line("a\n  b\n\nc ") == "a b c"


def test_a_text_has_an_end() -> None:
    assert len(text("x" * 10**6)) == 20002
    assert len(text(["x"] * 10**6)) == 20002


@given(st.text())
def test_no_text_has_control_characters(value: str) -> None:
    assert not [one for one in text(value) if one != "\n" and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl")]
    assert "\n" not in line(value)


@pytest.mark.parametrize(
    ("things", "answer"), [([], "0 nodes"), ([1], "1 node"), ({"a": 1, "b": 2}, "2 nodes"), ("text", "0 nodes")]
)
def test_counted(things: Any, answer: str) -> None:
    assert counted(things, "node") == answer
