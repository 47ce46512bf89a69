# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checkpoint of Kubernetes 1.37, format 4, as it was merged, and the two forms of it that were not.

From the threads and KEPs, not replayed against a 1.37 kubelet. What a kubelet before 1.37 makes of the file is what it
makes of a format 2, which was replayed.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils import state as state_package
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import read_json, write_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    CPUManagerConfig,
    judge,
    readable,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    decode_checkpoint,
    other_members,
    read_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    CORRUPTED,
    ERAS,
    FORMATS,
    CheckpointError,
    Format2,
    Format3,
    Format4,
    era_of,
    since_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.repair import pins_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets
from ansible_collections.kubenode.cpu_manager.tests.machines.values import closed_form, cpus, reverted_form

BEFORE = [(18, False), (33, False), (35, False), (35, True), (36, False), (36, True)]
SINCE = [(37, False), (37, True), (38, True)]


def fnv(text: str) -> int:
    """Return the 32-bit FNV-1a sum, from its definition."""
    total = 2166136261
    for byte in text.encode():
        total = ((total ^ byte) * 16777619) % 2**32
    return total


# No halves of surrogate pairs: they are no text.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
assignments = st.dictionaries(names, st.dictionaries(names, cpusets(), min_size=1, max_size=3), max_size=3)
states = st.builds(State, cpusets(), assignments, st.dictionaries(names, cpusets(), max_size=3))

STATE = State(cpus("0-3"), {"p": {"c": cpus("4-5")}})
POD_STATE = STATE._replace(pod_assignments={"q": cpus("6-7")})


# --- what is written -----------------------------------------------------------------------------------


@given(names, states)
@example("static", POD_STATE)
@example("static", STATE)
def test_who_reads_what_of_a_v4_from_the_threads_not_replayed_against_1_37(policy: str, state: State) -> None:
    content = write_checkpoint(policy, state, Format4)
    for minor, gate in SINCE:
        newer = read_checkpoint(content, minor, gate)
        assert (newer.policy_name, newer.state(), newer.version) == (policy, state, 4)
    for minor, gate in BEFORE:
        older = read_checkpoint(content, minor, gate)
        assert (older.policy_name, older.version) == (policy, 2)
        assert older.state() == state._replace(pod_assignments={})
        # It is verified, not taken for a file without a checksum.
        assert older.checksum == older.right_checksum() != 0


@given(names, states)
@example("static", POD_STATE)
def test_the_members_of_a_v4_in_their_order_to_the_byte(policy: str, state: State) -> None:
    content = write_checkpoint(policy, state, Format4)
    older = write_checkpoint(policy, state._replace(pod_assignments={}), Format2)
    entries = ["entries"] if state.assignments else []
    data = json.loads(content)
    assert list(data) == ["policyName", "defaultCpuSet", *entries, "checksum", "data", "dataChecksum"]
    # All before `data` is what a kubelet before 1.37 writes, to the byte.
    assert content.startswith(older[:-1] + b',"data":"{')
    pod_entries = ["podEntries"] if state.pod_assignments else []
    assert list(json.loads(data["data"])) == ["policyName", "defaultCpuSet", *entries, *pod_entries]
    assert content.endswith(b'","dataChecksum":%d}' % fnv("(string)" + data["data"]))


def test_neither_of_the_other_forms_is_written() -> None:
    for kind in FORMATS:
        for policy, state in (("none", State(cpus(""), {})), ("static", STATE._replace(assignments={}))):
            data = json.loads(write_checkpoint(policy, state, kind))
            assert data["checksum"] != 0
            assert {"policyName", "defaultCpuSet"} <= set(data)
            assert "podEntries" not in data


# --- the forms that were not merged --------------------------------------------------------------------


@given(states)
@example(POD_STATE)
def test_the_form_that_was_closed_is_read_unverified_by_old_kubelets(state: State) -> None:
    content = closed_form(state)
    for minor, gate in SINCE:
        assert read_checkpoint(content, minor, gate).state() == state
    for minor, gate in BEFORE:
        older = read_checkpoint(content, minor, gate)
        # The kubelet 1.36 keeps what is left over of the format 3 that it could not accept.
        kept = state.pod_assignments if (minor, gate) == (36, True) else {}
        assert older.state() == state._replace(pod_assignments=kept)
    checkpoint = decode_checkpoint(content)
    assert isinstance(checkpoint, Format4)
    assert (checkpoint.state(), checkpoint.text_is_right, checkpoint.outer_is_right) == (state, True, False)


@given(states)
@example(POD_STATE)
def test_the_form_that_was_reverted_is_refused_by_all_and_read_by_a_repair(state: State) -> None:
    content = reverted_form(state)
    for minor, gate in BEFORE:
        with pytest.raises(CheckpointError, match=r"^checkpoint is corrupted$"):
            read_checkpoint(content, minor, gate)
    for minor, gate in SINCE:
        with pytest.raises(CheckpointError, match=r"^could not load v4 checkpoint: checkpoint is corrupted$"):
            read_checkpoint(content, minor, gate)
    checkpoint = decode_checkpoint(content)
    assert (checkpoint.version, checkpoint.state()) == (4, state)
    assert not readable(content).checksum_right


# --- damage --------------------------------------------------------------------------------------------

CONFIG = CPUManagerConfig("static", cpus("0-7"), cpus("0"), minor=37, pod_level=True)
CONFIGS = [
    CONFIG,
    CONFIG._replace(pod_level=False),
    CONFIG._replace(minor=36),
    CONFIG._replace(minor=36, pod_level=False),
    CONFIG._replace(minor=35, pod_level=False),
]
# All of its CPUs are in containers' hands, so that kubelets without whole pods accept it, too.
WHOLE = State(cpus("0-3"), {"p": {"c": cpus("4-5")}, "q": {"a": cpus("6"), "b": cpus("7")}}, {"q": cpus("6-7")})
GOOD = write_checkpoint("static", WHOLE, Format4)


def test_the_file_that_is_damaged_below_is_good() -> None:
    assert [judge(GOOD, config).verdict for config in CONFIGS] == ["accepted"] * len(CONFIGS)
    assert readable(GOOD).state == WHOLE


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
@example(GOOD.index(b"0-3"), 3)
@example(GOOD.index(b'\\"q\\"'), 1)
@example(GOOD.index(b'"data"') + 1, 2)
@example(GOOD.index(b'"data"') + 1, 0x20)
@example(GOOD.index(b'"dataChecksum"') + 1, 2)
@example(GOOD.index(b'"checksum"') + 1, 2)
def test_one_damaged_byte_gives_a_verdict_and_never_another_state(at: int, change: int) -> None:
    changed = GOOD[:at] + bytes([GOOD[at] ^ change]) + GOOD[at + 1 :]
    # Whatever it is, it is said in words; a repair names the CPUs as far as they can be read.
    readable(changed).to_text()
    pins_of(changed)
    for config in CONFIGS:
        judgement = judge(changed, config)
        assert judgement.verdict in ("accepted", "refused")
        assert bool(judgement.reason) == (judgement.verdict == "refused")
        if judgement.verdict == "accepted":
            restored = read_checkpoint(changed, config.minor, config.pod_level).state()
            assert restored.default_cpu_set == WHOLE.default_cpu_set
            assert restored.assignments == WHOLE.assignments
            assert restored.pod_assignments == (WHOLE.pod_assignments if config.minor > 36 else {})


DAMAGED = [
    # a digit in: the members outside, the checksum, the text, the text's checksum; who refuses it
    (b'"defaultCpuSet":"0-3"', b'"defaultCpuSet":"0-2"', "before"),
    (b'"checksum":', b'"checksum":1', "before"),
    (b'\\"defaultCpuSet\\":\\"0-3', b'\\"defaultCpuSet\\":\\"0-2', "since"),
    (b'{\\"cpuSet\\":\\"6-7', b'{\\"cpuSet\\":\\"6-6', "since"),
    (b'"dataChecksum":', b'"dataChecksum":1', "since"),
    (b'"dataChecksum":', b'"dataChecksum":0,"other":', "since"),
    (b'"data":', b'"other":', "since"),
]


@pytest.mark.parametrize(("good", "bad", "who"), DAMAGED)
def test_who_refuses_what_damage_from_the_threads_not_replayed_against_1_37(good: bytes, bad: bytes, who: str) -> None:
    assert GOOD.count(good) == 1
    changed = GOOD.replace(good, bad)
    for config in CONFIGS:
        judgement = judge(changed, config)
        is_refused = (config.minor > 36) == (who == "since")
        assert judgement.verdict == ("refused" if is_refused else "accepted")
        if is_refused and who == "since":
            # It is not tried as an older format, though that would be good.
            assert judgement.reason.startswith("could not load v4 checkpoint: ")
            assert judgement.unread
    # What is damaged is not believed where the same stands once more, with its right checksum.
    state = readable(changed).state
    assert state is not None
    assert (state.default_cpu_set, state.assignments) == (WHOLE.default_cpu_set, WHOLE.assignments)


def test_a_text_that_cannot_be_read_leaves_what_stands_beside_it() -> None:
    changed = GOOD.replace(b'"data":"{', b'"data":"')
    found = readable(changed)
    assert (found.version, found.checksum_right) == (4, False)
    assert found.state == WHOLE._replace(pod_assignments={})


def test_entries_outside_that_differ_and_have_a_right_checksum() -> None:
    checkpoint = decode_checkpoint(GOOD)
    assert isinstance(checkpoint, Format4)
    outer = checkpoint.outer
    entries = outer.entries or {}
    for others, is_right in ((entries, True), ({**entries, "r": {"c": "0"}}, False), ({}, False)):
        outer.entries = others
        outer.checksum = outer.right_checksum()
        checkpoint.outer = outer
        assert checkpoint.outer_is_right is is_right


def test_both_damaged() -> None:
    """The text counts then: it is what a 1.37 kubelet goes by."""
    changed = GOOD.replace(b'"checksum":', b'"checksum":1').replace(b'"dataChecksum":', b'"dataChecksum":1')
    assert readable(changed).state == WHOLE
    for config in CONFIGS:
        assert judge(changed, config).verdict == "refused"


def test_members_outside_of_a_wrong_type() -> None:
    changed = GOOD.replace(b'"policyName":"static"', b'"policyName":7')
    assert judge(changed, CONFIG).reason == (
        "could not load v4 checkpoint: failed to deserialize cpu manager checkpoint: json: cannot unmarshal number into"
        " Go struct field CPUManagerCheckpoint.CPUManagerCheckpointV2.policyName of type string"
    )
    assert readable(changed).state == WHOLE


# --- files of other versions ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("gate", [False, True])
def test_1_37_reads_every_older_format_from_the_threads_not_replayed_against_1_37(kind: Any, gate: bool) -> None:
    ids = {"1a2b": ("p", "c")}
    state = POD_STATE if kind.version >= 3 else STATE
    assert read_checkpoint(write_checkpoint("static", state, kind, ids), 37, gate, ids).state() == state


def test_corrupted_older_formats_are_told_as_format_1_the_last_that_is_tried() -> None:
    content = write_checkpoint("static", STATE._replace(assignments={}), Format2)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(content.replace(b"0-3", b"0-2"), 37)
    assert str(caught.value) == CORRUPTED


# --- members of the text that are not known here ----------------------------------------------------------

# The quick look does not see them, so the values are those of JSON, whatever they are.
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
KNOWN = {"policyname", "defaultcpuset", "entries", "podentries"}
unknown = st.dictionaries(names.filter(lambda name: name.casefold() not in KNOWN), values, min_size=1, max_size=3)


def with_members(state: State, more: Any) -> bytes:
    """Return a format 4 of a newer kubelet, which has more in its text."""
    data = json.loads(write_checkpoint("static", state, Format4))
    text = json.dumps({**json.loads(data["data"]), **more}, ensure_ascii=False)
    return json.dumps({**data, "data": text, "dataChecksum": fnv("(string)" + text)}).encode()


@given(states, states, unknown)
@example(STATE, POD_STATE, {"originals": {"p": {"c": "4-5"}}})
def test_unknown_members_of_the_text_survive(old: State, new: State, more: Any) -> None:
    content = with_members(old, more)
    assert read_checkpoint(content, 37, True).state() == old
    others = other_members(content)
    written = write_checkpoint("static", new, Format4, others=others)
    assert other_members(written) == others
    text = json.loads(json.loads(written)["data"])
    assert {name: text[name] for name in more} == more
    assert read_checkpoint(written, 37, True).state() == new
    # And again, to the byte.
    assert write_checkpoint("static", new, Format4, others=other_members(written)) == written
    # Older formats have no place for them.
    assert b"originals" not in write_checkpoint("static", STATE, Format2, others=others)


def test_unknown_members_are_written_as_they_were() -> None:
    members = b'"a":1e400,"b":[{"x":-0.0,"x":[]},{}],"c":"\\\\u003c\\\\n","a":null'
    text = json.dumps(members.decode())[1:-1].encode()
    content = write_checkpoint("static", STATE, Format4)
    changed = json.loads(content)
    inner = changed["data"][:-1] + "," + members.decode() + "}"
    file = json.dumps({**changed, "data": inner, "dataChecksum": fnv("(string)" + inner)}).encode()
    written = write_checkpoint("static", STATE, Format4, others=other_members(file))
    assert json.loads(written)["data"] == inner
    assert text in written


@given(values)
def test_any_json_is_written_as_it_is_read(value: Any) -> None:
    text = write_json(read_json(json.dumps(value).encode()))
    assert json.loads(text) == value
    assert write_json(read_json(text.encode())) == text


def test_deep_json_is_written() -> None:
    text = "[" * 9998 + '{"a":[]}' + "]" * 9998
    assert write_json(read_json(text.encode())) == text
    assert write_json(read_json(b"{}")) == "{}"


@pytest.mark.parametrize("content", [None, b"", b"[]", write_checkpoint("static", STATE, Format3), GOOD])
def test_no_unknown_members(content: bytes | None) -> None:
    assert other_members(content) == []


# --- the table of versions --------------------------------------------------------------------------------


def test_every_version_that_changes_something() -> None:
    """One row for each; a new kubelet that reads or writes other formats is one more."""
    assert [(era.since, era.reads, era.writes, era.pod_level_reads, era.pod_level_writes) for era in ERAS] == [
        (0, (1, 2), 1, (1, 2), 1),
        (18, (1, 2), 2, (1, 2), 2),
        (36, (2, 1), 2, (3, 2, 1), 3),
        (37, (4, 3, 2, 1), 4, (4, 3, 2, 1), 4),
    ]
    assert [era_of(minor).since for minor in (17, 18, 35, 36, 37, 50)] == [0, 18, 18, 36, 37, 37]
    assert [since_of(kind.version) for kind in FORMATS] == [0, 18, 36, 37]
    assert [era.newest for era in ERAS] == [2, 2, 3, 4]


def test_no_other_constant_of_a_version() -> None:
    """What depends on the version is in the table; beside it are the newest, and the formats of other managers."""
    modules = pkgutil.iter_modules(state_package.__path__, state_package.__name__ + ".")
    found = {
        name: value
        for module in modules
        for name, value in vars(importlib.import_module(module.name)).items()
        if isinstance(value, int) and re.search("(^|_)(SINCE|UNTIL|MINOR|IN)$", name)
    }
    memory = {name: found.pop(name) for name in list(found) if name.startswith("_")}
    assert found == {"NEWEST_MINOR": 36, "DATA_SINCE": 32, "TWO_SINCE": 33}
    assert memory == {"_GROUP_SUMS_SINCE": 32, "_V2_ON_REQUEST_IN": 36, "_V3_SINCE": 37}
