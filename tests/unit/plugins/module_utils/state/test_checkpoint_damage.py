# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checkpoints that are damaged: format 4 that is not tried as another, random bytes, and one byte that changed."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    decode_checkpoint,
    read_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import CheckpointError, Format2
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

from .checkpoints import KUBELETS, V2_MAP, refusal, states

DESERIALIZE = "could not load v4 checkpoint: failed to deserialize cpu manager checkpoint"
UNMARSHAL = ": json: cannot unmarshal "
V2_STRUCT = "Go struct field CPUManagerCheckpoint.CPUManagerCheckpointV2."
DATA_STRUCT = "Go struct field CPUManagerCheckpointData."

# A format 4 that is damaged is not tried as another, though it would do.
DAMAGED_V4 = [
    ('{"data":"{}"}', "could not load v4 checkpoint: checkpoint is corrupted"),
    ('{"data":"{}","dataChecksum":1}', "could not load v4 checkpoint: checkpoint is corrupted"),
    ('{"dataChecksum":1}', DESERIALIZE + " data: unexpected end of JSON input"),
    ('{"data":"","dataChecksum":1}', DESERIALIZE + " data: unexpected end of JSON input"),
    ('{"data":" "}', DESERIALIZE + " data: unexpected end of JSON input"),
    ('{"data":"{,}"}', DESERIALIZE + " data: invalid character ',' looking for beginning of object key string"),
    ('{"data":"[]"}', DESERIALIZE + " data" + UNMARSHAL + "array into Go value of type state.CPUManagerCheckpointData"),
    ('{"data":"{\\"policyName\\":1}"}', DESERIALIZE + " data" + UNMARSHAL + "number into " + DATA_STRUCT
     + "policyName of type string"),
    ('{"data":"{\\"entries\\":[]}"}', DESERIALIZE + " data" + UNMARSHAL + "array into " + DATA_STRUCT
     + "entries of type " + V2_MAP),
    ('{"data":"{\\"podEntries\\":{\\"p\\":{\\"cpuSet\\":{}}}}"}', DESERIALIZE + " data" + UNMARSHAL + "object into "
     + DATA_STRUCT + "podEntries.cpuSet of type string"),
    # Its sum is beside the text, so that in the text is nobody's.
    ('{"data":"{\\"checksum\\":true}"}', "could not load v4 checkpoint: checkpoint is corrupted"),
    # the members for older kubelets, which are in a struct in the struct
    ('{"policyName":1,"data":"{}"}', DESERIALIZE + UNMARSHAL + "number into " + V2_STRUCT
     + "policyName of type string"),
    ('{"data":"{}","checksum":"1"}', DESERIALIZE + UNMARSHAL + "string into " + V2_STRUCT
     + "checksum of type checksum.Checksum"),
    ('{"data":"{}","entries":{"p":1}}', DESERIALIZE + UNMARSHAL + "number into " + V2_STRUCT
     + "entries of type map[string]string"),
    # There are no CPUs of whole pods beside the text, so nobody reads them.
    ('{"data":"{}","podEntries":{"p":{"cpuSet":1}}}', "could not load v4 checkpoint: checkpoint is corrupted"),
    ('{"data":"{\\"podEntries\\":{\\"p\\":{\\"cpuSet\\":\\"x\\"}}}"}', DESERIALIZE
     + ' data: failed to parse cpuset: strconv.Atoi: parsing "x": invalid syntax'),
    ('{"dataChecksum":1,"data":1}', DESERIALIZE + UNMARSHAL + "number into Go struct field"
     " CPUManagerCheckpoint.data of type string"),
    ('{"data":"{}","dataChecksum":"1"}', DESERIALIZE + UNMARSHAL + "string into Go struct field"
     " CPUManagerCheckpoint.dataChecksum of type checksum.Checksum"),
    ('{"data":"{}","dataChecksum":-1}', DESERIALIZE + UNMARSHAL + "number -1 into Go struct field"
     " CPUManagerCheckpoint.dataChecksum of type checksum.Checksum"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), DAMAGED_V4)
def test_damaged_format_4_from_the_threads_not_replayed_against_1_37(text: str, message: str) -> None:
    assert refusal(text.encode(), 37) == message
    assert refusal(text.encode(), 37, True) == message


@pytest.mark.parametrize(
    "text", ['{"data":""}', '{"data":null,"dataChecksum":0}', '{"data":1}', '{"dataChecksum":"1"}', "{}", "null"]
)
def test_no_format_4(text: str) -> None:
    """Without a text and a sum it is tried as format 3, 2 and 1."""
    assert read_checkpoint(text.encode(), 37).__class__ is Format2


def test_where_go_stops_reading() -> None:
    """Behind a bad entry of a pod nothing is read, which a format 4 has only in its text."""
    bad, data = '"podEntries":{"p":{"cpuSet":"x"}}', '"data":"{}"'
    for members in ((data, bad), (bad, data)):
        content = ("{%s,%s}" % members).encode()
        assert refusal(content, 37) == "could not load v4 checkpoint: checkpoint is corrupted"
        assert read_checkpoint(content, 36, True).__class__ is Format2


def read_all(content: bytes, minor: int = 35, gate: bool = False) -> State | None:
    """Return whatever the bytes are, they make a state or a CheckpointError."""
    with contextlib.suppress(CheckpointError):
        decode_checkpoint(content).verify()
    try:
        return read_checkpoint(content, minor, gate).state()
    except CheckpointError:
        return None


@given(st.binary())
@example(b'{"policyName":"\\ud800","checksum":1}')
def test_random_bytes(content: bytes) -> None:
    for minor, gate in KUBELETS:
        read_all(content, minor, gate)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just("0-3")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.text(max_size=5), st.just("cpuSet")), inner, max_size=3),
    ),
    max_leaves=8,
)
KEYS = ["policyName", "defaultCpuSet", "entries", "checksum", "podEntries", "data", "dataChecksum", "Entries", "other"]


@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=6))
def test_random_json(data: dict[str, Any]) -> None:
    for minor, gate in KUBELETS:
        read_all(json.dumps(data).encode(), minor, gate)


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


# --- more than a kubelet ever writes ---------------------------------------------------------------------------

# Each names the last CPU that there can be, which takes as many bits.
LAST_CPU, ENOUGH = "65535", (1 << 10) + 1


def test_sets_of_containers_do_not_take_more_bits_than_can_be_had() -> None:
    checkpoint = Format2()
    for count, is_read in ((ENOUGH - 1, True), (ENOUGH, False)):
        checkpoint.entries = {"p%d" % number: {"c": LAST_CPU} for number in range(count)}
        checkpoint.default_cpu_set = "0"
        if is_read:
            assert len(checkpoint.state().assignments) == count
        else:
            with pytest.raises(CheckpointError, match="the CPU sets have more than 67108864 bits together"):
                checkpoint.state()


def test_sets_of_pods_do_not_take_more_bits_than_can_be_had() -> None:
    for count, refused in ((ENOUGH - 1, "checkpoint is corrupted"), (ENOUGH, "have more than 67108864 bits together")):
        pods = {"p%d" % number: {"cpuSet": LAST_CPU} for number in range(count)}
        text = json.dumps({"policyName": "static", "defaultCpuSet": "0", "podEntries": pods})
        content = json.dumps({"data": text, "dataChecksum": 1}).encode("ascii")
        assert refusal(content, 37).endswith(refused)
