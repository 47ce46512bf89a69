# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/writing.py: the bytes of each format, which are read as they were written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State, assignments_text
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    decode_checkpoint,
    read_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    Format1,
    Format2,
    Format3,
    Format4,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

from .checkpoints import KUBELETS, PODS, SET, SPEW, STATE, V1_MAP, V2_MAP, fnv, names, pod_states, said, states

WRITTEN: list[tuple[str, State, bytes]] = [
    ("none", State(cpus(""), {}), b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'),
    ("static", State(cpus("0-63"), {}), b'{"policyName":"static","defaultCpuSet":"0-63","checksum":1058907510}'),
    (
        "static",
        State(cpus("0-3"), {"P": {"c": cpus("4,5")}}),
        b'{"policyName":"static","defaultCpuSet":"0-3","entries":{"P":{"c":"4-5"}},"checksum":406377661}',
    ),
    (
        "none",
        State(cpus("1-3"), {"pod": {"container2": cpus("1-3"), "container1": cpus("4-6")}}),
        (
            b'{"policyName":"none","defaultCpuSet":"1-3",'
            b'"entries":{"pod":{"container1":"4-6","container2":"1-3"}},"checksum":3610638499}'
        ),
    ),
]


@pytest.mark.parametrize(("policy", "state", "content"), WRITTEN)
def test_write(policy: str, state: State, content: bytes) -> None:
    assert write_checkpoint(policy, state) == content
    for minor, gate in KUBELETS:
        assert read_checkpoint(content, minor, gate).state() == state


def test_write_format_1() -> None:
    assert write_checkpoint("static", State(cpus("0-3"), {}), Format1) == (
        b'{"policyName":"static","defaultCpuSet":"0-3","checksum":2479968155}'
    )
    text = SPEW % ("CPUManagerCheckpoint", "static", "0-3", V1_MAP, "map[1:5 9:4]")
    ids = {"9": ("p", "b"), "1": ("q", "a"), "2": ("q", "c")}
    state = State(cpus("0-3"), {"p": {"b": cpus("4")}, "q": {"a": cpus("5")}})
    assert write_checkpoint("static", state, Format1, ids) == (
        b'{"policyName":"static","defaultCpuSet":"0-3","entries":{"1":"5","9":"4"},"checksum":%d}' % fnv(text)
    )


def test_write_format_3() -> None:
    text = SPEW % ("CPUManagerCheckpoint", "static", "0", V2_MAP, "map[]" + PODS + "map[]")
    assert write_checkpoint("static", State(cpus("0"), {}), Format3) == (
        b'{"policyName":"static","defaultCpuSet":"0","checksum":%d}' % fnv(text)
    )
    state = State(cpus("0"), {"p": {"c": cpus("1")}}, {"q": cpus("2-3"), "e": cpus("")})
    pods = "map[e:" + SET % "" + " q:" + SET % "2:{} 3:{}" + "]"
    text = SPEW % ("CPUManagerCheckpoint", "static", "0", V2_MAP, "map[p:map[c:1]]" + PODS + pods)
    # Go leaves out an empty text.
    assert write_checkpoint("static", state, Format3) == (
        b'{"policyName":"static","defaultCpuSet":"0","entries":{"p":{"c":"1"}},'
        b'"podEntries":{"e":{},"q":{"cpuSet":"2-3"}},"checksum":%d}' % fnv(text)
    )


def test_write_format_4_from_the_threads_not_replayed_against_1_37() -> None:
    text = '{"policyName":"none","defaultCpuSet":""}'
    # Without its last two members, it is what the kubelets 1.18 to 1.36 write.
    assert write_checkpoint("none", State(cpus(""), {}), Format4) == (
        b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690,'
        b'"data":"{\\"policyName\\":\\"none\\",\\"defaultCpuSet\\":\\"\\"}","dataChecksum":%d}' % fnv("(string)" + text)
    )
    state = State(cpus("0"), {"p": {"<": cpus("1")}}, {"q": cpus("2")})
    content = write_checkpoint("static", state, Format4)
    data = json.loads(content)
    assert list(data) == ["policyName", "defaultCpuSet", "entries", "checksum", "data", "dataChecksum"]
    assert data["checksum"] == json.loads(write_checkpoint("static", state._replace(pod_assignments={})))["checksum"]
    # Escaped for the text, and once more in it.
    assert rb"{\"p\":{\"\\u003c\":\"1\"}}" in content
    inner = '"entries":{"p":{"\\u003c":"1"}},"podEntries":{"q":{"cpuSet":"2"}}}'
    assert data["data"] == '{"policyName":"static","defaultCpuSet":"0",' + inner
    assert data["dataChecksum"] == fnv("(string)" + data["data"])


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a<b>&c", rb"a\u003cb\u003e\u0026c"),  # for the sake of browsers
        ("a\u2028b\u2029c", rb"a\u2028b\u2029c"),
        ('a"b\\c', rb"a\"b\\c"),
        ("a\tb\nc\rd\be\f", rb"a\tb\nc\rd\be\f"),
        ("a\x00b\x1fc", rb"a\u0000b\u001fc"),
        ("a/b'c\x7f", b"a/b'c\x7f"),
        ("caf\u00e9 \U0001f600", "caf\u00e9 \U0001f600".encode()),
    ],
)
def test_texts_are_escaped_as_go_does_it(name: str, written: bytes) -> None:
    for kind in (Format2, Format3, Format4):
        content = write_checkpoint("static", State(cpus("0"), {"pod": {name: cpus("1")}}), kind)
        assert b'"entries":{"pod":{"%s":"1"}}' % written in content
        assert read_checkpoint(content, 37).entries == {"pod": {name: "1"}}


@pytest.mark.parametrize("kind", [Format2, Format3, Format4])
def test_keys_are_sorted_by_their_bytes(kind: type[Format1]) -> None:
    names = ["b", "a", "Z", "\u00e9", "\uffff", "\U0001f600", "a-", "a0"]
    ordered = sorted(names, key=lambda name: name.encode())
    entries = {name: {container: cpus("1") for container in names} for name in names}
    pods = {name: cpus("2") for name in names} if kind.version > 2 else {}
    data = json.loads(write_checkpoint("static", State(cpus("0"), entries, pods), kind))
    for part in (data, json.loads(data.get("data", "{}")) or data):
        assert list(part["entries"]) == ordered
        assert all(list(containers) == ordered for containers in part["entries"].values())
        assert list(part.get("podEntries", ordered)) == ordered


def test_what_a_format_cannot_hold() -> None:
    for kind in (Format1, Format2):
        with pytest.raises(InputError) as caught:
            write_checkpoint("static", State(cpus("0"), {}, {"q": cpus("1"), "p": cpus("2")}), kind)
        assert str(caught.value).startswith(
            "format v%d of the checkpoint cannot hold the CPUs of whole pods (p, q); drain the node" % kind.version
        )
    for ids in (None, {}, {"1a2b": ("p", "other")}, {"1a2b": ("q", "c")}):
        with pytest.raises(InputError) as caught:
            write_checkpoint("static", STATE, Format1, ids)
        assert str(caught.value) == (
            "format v1 of the checkpoint names containers by their ids, and that of container c of pod p is not given;"
            " give container_ids, or drain the node"
        )


# Who reads a format, without and with CPUs of whole pods.
ROUND_TRIPS = [
    (Format1, KUBELETS, []),
    (Format2, KUBELETS, []),
    (Format3, [(36, True), (37, False), (37, True)], [(36, True), (37, False), (37, True)]),
    (Format4, KUBELETS, [(37, False), (37, True)]),
]


@pytest.mark.parametrize(("kind", "readers", "pod_readers"), ROUND_TRIPS)
@given(names, pod_states)
def test_round_trip(
    kind: type[Format1],
    readers: list[tuple[int, bool]],
    pod_readers: list[tuple[int, bool]],
    policy: str,
    state: State,
) -> None:
    if not pod_readers:
        state = state._replace(pod_assignments={})
    containers = [(pod, name) for pod, names in state.assignments.items() for name in names]
    ids = {"id%d" % number: container for number, container in enumerate(containers)}
    content = write_checkpoint(policy, state, kind, ids)
    assert not content.endswith(b"\n")
    assert json.loads(content)["policyName"] == policy
    for minor, gate in pod_readers if state.pod_assignments else readers:
        checkpoint = read_checkpoint(content, minor, gate, ids)
        assert checkpoint.policy_name == policy
        assert checkpoint.state() == state
        assert write_checkpoint(policy, checkpoint.state(), kind, ids) == content
    decoded = decode_checkpoint(content)
    decoded.verify()
    assert said(decoded)[:2] == (policy, str(state.default_cpu_set))
    assert decoded.__class__ is kind


@given(states)
def test_assignments_as_plain_data(state: State) -> None:
    data = assignments_text(state.assignments)
    assert json.loads(json.dumps(data)) == data
    assert {
        pod: {container: cpus(text) for container, text in containers.items()} for pod, containers in data.items()
    } == state.assignments
    assert list(data) == sorted(data)
