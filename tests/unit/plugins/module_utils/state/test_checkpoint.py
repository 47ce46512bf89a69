# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
from typing import Any, Dict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    Checkpoint,
    CheckpointError,
    assignments_text,
    checksum,
    decode_checkpoint,
    read_checkpoint,
    write_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets

# Pod UID -> container name -> CPUs.
Entries = Dict[str, Dict[str, str]]

# policy, default CPU set, entries, the sum that the kubelet writes
CHECKSUMS: list[tuple[str, str, Entries, int]] = [
    ("none", "", {}, 1353318690),  # a new one
    ("static", "", {}, 3083571066),
    ("static", "0-63", {}, 1058907510),
    ("static", "2-15,17-31,34-47,49-63", {}, 4141502832),
    ("static", "0-3", {"P": {"c": "4-5"}}, 406377661),
    ("none", "1-3", {"pod": {"container1": "4-6", "container2": "1-3"}}, 3610638499),
    ("none", "1-3", {"pod": {"container2": "1-3", "container1": "4-6"}}, 3610638499),  # in any order
]


@pytest.mark.parametrize(("policy", "default", "entries", "expected"), CHECKSUMS)
def test_checksum(policy: str, default: str, entries: Entries, expected: int) -> None:
    checkpoint = Checkpoint(policy, default, entries, 0)
    assert checksum(checkpoint) == expected
    assert checksum(checkpoint._replace(checksum=expected)) == expected
    data = {"policyName": policy, "defaultCpuSet": default, "entries": entries, "checksum": expected}
    assert read_checkpoint(json.dumps(data).encode()) == Checkpoint(policy, default, entries, expected)


@pytest.mark.parametrize(("policy", "default", "entries", "expected"), CHECKSUMS)
def test_another_checksum(policy: str, default: str, entries: Entries, expected: int) -> None:
    data = {"policyName": policy, "defaultCpuSet": default, "entries": entries}
    for wrong in (1, expected + 1, expected ^ 1 << 31, expected + (1 << 32), (1 << 64) - 1):
        content = json.dumps({**data, "checksum": wrong}).encode()
        with pytest.raises(CheckpointError) as caught:
            read_checkpoint(content)
        assert str(caught.value) == "checkpoint is corrupted"
        # What it says can be read all the same.
        assert decode_checkpoint(content) == Checkpoint(policy, default, entries, wrong)
    # A sum of 0, or none, is not looked at.
    expected_checkpoint = Checkpoint(policy, default, entries, 0)
    assert read_checkpoint(json.dumps({**data, "checksum": 0}).encode()) == expected_checkpoint
    assert read_checkpoint(json.dumps(data).encode()) == expected_checkpoint


@pytest.mark.parametrize(
    ("policy", "default", "number"),
    [
        ("none", "", 3242152201),
        ("static", "0-3", 2479968155),
        ("static", "0-7", 1659625391),
        ("static", "0-127", 2026875422),
    ],
)
def test_format_v1_without_entries(policy: str, default: str, number: int) -> None:
    """Of Kubernetes before 1.18, read by all since: only the sum is another."""
    data: dict[str, Any] = {"policyName": policy, "defaultCpuSet": default, "checksum": number}
    assert read_checkpoint(json.dumps(data).encode()) == Checkpoint(policy, default, {}, number)
    with pytest.raises(CheckpointError, match="checkpoint is corrupted"):
        read_checkpoint(json.dumps({**data, "entries": {"pod": {}}}).encode())
    # With entries of the format v2, the sum of v1 is wrong.
    mixed = Checkpoint(policy, default, {"pod": {"container": "1"}}, 0)
    data.update(entries=mixed.entries, checksum=checksum(mixed, "map[string]string"))
    with pytest.raises(CheckpointError, match="checkpoint is corrupted"):
        read_checkpoint(json.dumps(data).encode())


def test_format_v1_with_entries() -> None:
    content = b'{"policyName":"static","defaultCpuSet":"0,3","entries":{"1a2b":"1-2"},"checksum":0}'
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(content)
    assert str(caught.value) == "entries of pod 1a2b are not texts by container: is this the format v1?"


# --- writing ----------------------------------------------------------------------------------------


def cpus(text: str) -> CPUSet:
    return CPUSet.parse(text)


WRITTEN = [
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
    assert read_checkpoint(content).state() == state


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a<b>&c", rb"a\u003cb\u003e\u0026c"),  # for the sake of browsers
        ("a\u2028b\u2029c", rb"a\u2028b\u2029c"),
        ('a"b\\c', rb"a\"b\\c"),
        ("a\tb\nc\rd", rb"a\tb\nc\rd"),
        ("a\x00b\x1fc", rb"a\u0000b\u001fc"),
        ("a/b'c\x7f", b"a/b'c\x7f"),
        ("caf\u00e9 \U0001f600", "caf\u00e9 \U0001f600".encode()),
    ],
)
def test_texts_are_escaped_as_go_does_it(name: str, written: bytes) -> None:
    content = write_checkpoint("static", State(cpus("0"), {"pod": {name: cpus("1")}}))
    assert b'"entries":{"pod":{"%s":"1"}}' % written in content
    assert read_checkpoint(content).entries == {"pod": {name: "1"}}


def test_keys_are_sorted_by_their_bytes() -> None:
    names = ["b", "a", "Z", "\u00e9", "\uffff", "\U0001f600", "a-", "a0"]
    ordered = sorted(names, key=lambda name: name.encode())
    entries = {name: {other: cpus("1") for other in names} for name in names}
    data = json.loads(write_checkpoint("static", State(cpus("0"), entries)))
    assert list(data) == ["policyName", "defaultCpuSet", "entries", "checksum"]
    assert list(data["entries"]) == ordered
    assert all(list(containers) == ordered for containers in data["entries"].values())


# No halves of surrogate pairs: they are no text.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
states = st.builds(
    State, cpusets(), st.dictionaries(names, st.dictionaries(names, cpusets(), min_size=1, max_size=3), max_size=3)
)


@given(names, states)
def test_round_trip(policy: str, state: State) -> None:
    content = write_checkpoint(policy, state)
    checkpoint = read_checkpoint(content)
    assert checkpoint.policy_name == policy
    assert checkpoint.state() == state
    assert checkpoint.checksum == checksum(checkpoint)
    assert write_checkpoint(policy, checkpoint.state()) == content
    assert not content.endswith(b"\n")
    assert json.loads(content)["policyName"] == policy


@given(states)
def test_assignments_as_plain_data(state: State) -> None:
    data = assignments_text(state.assignments)
    assert json.loads(json.dumps(data)) == data
    assert {
        pod: {container: cpus(text) for container, text in containers.items()} for pod, containers in data.items()
    } == state.assignments
    assert list(data) == sorted(data)


# --- reading ----------------------------------------------------------------------------------------

READ = [
    (b"{}", Checkpoint("", "", {}, 0)),
    (b"null", Checkpoint("", "", {}, 0)),
    (b" \n{ } \t\r\n", Checkpoint("", "", {}, 0)),
    (b'{"policyName":null,"defaultCpuSet":null,"entries":null,"checksum":null}', Checkpoint("", "", {}, 0)),
    (b'{"POLICYNAME":"a","defaultcpuset":"1","Entries":{},"checkSum":0}', Checkpoint("a", "1", {}, 0)),
    (b'{"policyName":"a","policyName":"b"}', Checkpoint("b", "", {}, 0)),  # the last one counts
    (b'{"policyName":"a","PolicyName":"b"}', Checkpoint("b", "", {}, 0)),
    (b'{"policyName":"a","policyname":null}', Checkpoint("a", "", {}, 0)),
    (b'{"policyName":"a","podEntries":{"x":[1]},"data":7}', Checkpoint("a", "", {}, 0)),  # what is not known
    (b'{"entries":{"p":{}}}', Checkpoint("", "", {"p": {}}, 0)),
    (b'{"entries":{"p":{"c":"0","d":"1"},"p":{"c":"2"}}}', Checkpoint("", "", {"p": {"c": "2"}}, 0)),
    (b'{"entries":{"p":{"C":"0","c":"1"}}}', Checkpoint("", "", {"p": {"C": "0", "c": "1"}}, 0)),  # names are exact
    (b'{"policyName":"\\ud83d\\ude00"}', Checkpoint("\U0001f600", "", {}, 0)),
    (b'{"policyName":"\\u003c"}', Checkpoint("<", "", {}, 0)),
]


@pytest.mark.parametrize(("content", "checkpoint"), READ)
def test_read(content: bytes, checkpoint: Checkpoint) -> None:
    assert read_checkpoint(content) == checkpoint
    assert decode_checkpoint(content) == checkpoint


NOT_JSON = [
    b"",  # as after a power cut
    b"\0" * 200,  # the same, on XFS
    b"{",
    b'{"policyName":"static"',
    b'{"policyName":"static"}}',
    b'{"policyName":"static",}',
    b"{'policyName':'static'}",
    b'{"policyName":"\xff"}',
    b'\xef\xbb\xbf{"policyName":"static"}',  # a byte order mark
    b'{"policyName":"\n"}',
    b'{"a":NaN}',
    b'{"a":[-Infinity]}',
    b'{"a":01}',
    b'{"policyName":"\\ud800"}',  # half a pair
    b'{"entries":{"\\udc00":{}}}',
    b"[" * 100_000,
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    b'{"checksum":%s}' % (b"9" * 10_000),
]


@pytest.mark.parametrize("content", NOT_JSON, ids=lambda content: repr(content[:24]))
def test_not_json(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"^(is not JSON: |checksum 999)"):
        decode_checkpoint(content)


WRONG_TYPES = [
    (b"[]", "is not a JSON object"),
    (b'"static"', "is not a JSON object"),
    (b"0", "is not a JSON object"),
    (b"false", "is not a JSON object"),
    (b'{"policyName":1}', "policyname is not a JSON string"),
    (b'{"defaultCpuSet":["0"]}', "defaultcpuset is not a JSON string"),
    (b'{"entries":[]}', "entries is not a JSON object"),
    (b'{"entries":""}', "entries is not a JSON object"),
    (b'{"entries":{"p":["0"]}}', "entries of pod p are not texts by container: is this the format v1?"),
    (b'{"entries":{"p":{"c":1}}}', "entries of pod p are not texts by container: is this the format v1?"),
    (
        b'{"entries":{"p":{"c":"1"},"q":{"c":{}}}}',
        "entries of pod q are not texts by container: is this the format v1?",
    ),
    (b'{"checksum":"1"}', "checksum is not a JSON number"),
    (b'{"checksum":1.0}', "checksum is not a JSON number"),
    (b'{"checksum":1e3}', "checksum is not a JSON number"),
    (b'{"checksum":{}}', "checksum is not a JSON number"),
    (b'{"checksum":true}', "checksum True is not a number that fits"),
    (b'{"checksum":-1}', "checksum -1 is not a number that fits"),
    (b'{"checksum":18446744073709551616}', "checksum 18446744073709551616 is not a number that fits"),
]


@pytest.mark.parametrize(("content", "message"), WRONG_TYPES)
def test_wrong_type(content: bytes, message: str) -> None:
    for read in (read_checkpoint, decode_checkpoint):
        with pytest.raises(CheckpointError) as caught:
            read(content)
        assert str(caught.value) == message


BAD_SETS = ["x", "0-", "3-1", "0, 1", "-1", "0,,1", "0-7:1/2", "0-3\n"]


@pytest.mark.parametrize("text", BAD_SETS)
def test_bad_default_set(text: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        Checkpoint("static", text, {}, 0).state()
    assert str(caught.value).startswith('could not parse default cpu set "%s": CPU list ' % text)


@pytest.mark.parametrize("text", BAD_SETS)
def test_bad_set_of_a_container(text: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        Checkpoint("static", "0", {"p1": {"c1": "1"}, "p2": {"c1": "2", "c2": text}}, 0).state()
    assert str(caught.value).startswith('could not parse cpuset "%s" for container "c2" in pod "p2": CPU list ' % text)


def test_state() -> None:
    state = Checkpoint("static", "0,3-4", {"p1": {"c1": "1", "c2": ""}, "p2": {}}, 0).state()
    assert state == State(cpus("0,3-4"), {"p1": {"c1": cpus("1"), "c2": cpus("")}, "p2": {}})
    assert state.exclusive_cpus() == cpus("1")


# --- damage -----------------------------------------------------------------------------------------


def read_all(content: bytes) -> State | None:
    """Whatever the bytes are, they make a state or a CheckpointError."""
    with contextlib.suppress(CheckpointError):
        decode_checkpoint(content)
    try:
        return read_checkpoint(content).state()
    except CheckpointError:
        return None


@given(st.binary())
@example(b'{"policyName":"\\ud800","checksum":1}')
def test_random_bytes(content: bytes) -> None:
    read_all(content)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("0-3")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["policyName", "defaultCpuSet", "entries", "checksum", "Entries", "other"]), values, max_size=5
    )
)
def test_random_json(data: dict[str, Any]) -> None:
    read_all(json.dumps(data).encode())


@given(states.filter(lambda state: len(str(state.default_cpu_set)) > 1), st.data())
def test_damage_is_noticed(state: State, data: st.DataObject) -> None:
    """Cut off, or one byte changed: another state is never read from it."""
    content = write_checkpoint("static", state)
    at = data.draw(st.integers(0, len(content) - 1))
    assert read_all(content[:at]) is None
    changed = bytearray(content)
    changed[at] ^= data.draw(st.integers(1, 255))
    # A changed name of a key is unknown, so its value is not read, and a changed "checksum" is none.
    start = content.rfind(b'"checksum"')
    if not start <= at < start + len(b'"checksum"'):
        assert read_all(bytes(changed)) in (None, state)
    else:
        read_all(bytes(changed))
