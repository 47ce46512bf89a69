# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checksum of a checkpoint of each format: what is summed, and who refuses a wrong one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    decode_checkpoint,
    read_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    CORRUPTED,
    CheckpointError,
    Format1,
    Format2,
    Format3,
    Format4,
)

from .checkpoints import FILES, IDS, KUBELETS, POD_FILES, PODS, SET, SPEW, V1_MAP, V2_MAP, Entries, fnv, refusal, said

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
    data = {"policyName": policy, "defaultCpuSet": default, "entries": entries, "checksum": expected}
    for minor, gate in KUBELETS:
        checkpoint = read_checkpoint(json.dumps(data).encode(), minor, gate)
        assert said(checkpoint) == (policy, default, entries)
        assert (type(checkpoint), checkpoint.checksum, checkpoint.right_checksum()) == (Format2, expected, expected)


@pytest.mark.parametrize(("policy", "default", "entries", "expected"), CHECKSUMS)
def test_another_checksum(policy: str, default: str, entries: Entries, expected: int) -> None:
    data = {"policyName": policy, "defaultCpuSet": default, "entries": entries}
    for wrong in (1, expected + 1, expected ^ 1 << 31, expected + (1 << 32), (1 << 64) - 1):
        content = json.dumps({**data, "checksum": wrong}).encode()
        for minor, gate in KUBELETS:
            # As format 1, which is the last that the kubelet 1.36 tries, the entries are of the wrong type.
            wrong_type = minor >= 36 and entries
            assert refusal(content, minor, gate) == (
                "json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string"
                if wrong_type
                else "checkpoint is corrupted"
            )
        # What it says can be read all the same.
        checkpoint = decode_checkpoint(content)
        assert said(checkpoint) == (policy, default, entries)
        assert checkpoint.checksum == wrong
    # A sum of 0, or none, is not looked at.
    for content in (json.dumps({**data, "checksum": 0}).encode(), json.dumps(data).encode()):
        for minor, gate in KUBELETS:
            assert said(read_checkpoint(content, minor, gate)) == (policy, default, entries)


V1_CHECKSUMS: list[tuple[str, str, dict[str, str], int]] = [
    ("none", "", {}, 3242152201),
    ("static", "0-3", {}, 2479968155),
    ("static", "0-7", {}, 1659625391),
    ("static", "0-127", {}, 2026875422),
]


@pytest.mark.parametrize(("policy", "default", "entries", "number"), V1_CHECKSUMS)
def test_checksum_of_format_1(policy: str, default: str, entries: dict[str, str], number: int) -> None:
    """Of Kubernetes before 1.18, read by all since: only the sum is another."""
    data: dict[str, Any] = {"policyName": policy, "defaultCpuSet": default, "checksum": number}
    for minor, gate in KUBELETS:
        assert said(read_checkpoint(json.dumps(data).encode(), minor, gate)) == (policy, default, entries)
    # With entries of the format 2, the sum of v1 is wrong.
    mixed = json.dumps({**data, "entries": {"pod": {}}}).encode()
    assert refusal(mixed, 33) == CORRUPTED
    for minor in (36, 37):
        assert refusal(mixed, minor).startswith("json: cannot unmarshal object")


# members of the JSON object, its format, and what spew makes of entries (and pod entries)
SPEWED: list[tuple[str, type[Format1], str]] = [
    ("", Format1, "map[]"),
    ('"entries":{}', Format1, "map[]"),
    ('"entries":null', Format1, "<nil>"),
    ('"entries":{"b":"1","a":""}', Format1, "map[a: b:1]"),
    ("", Format2, "map[]"),
    ('"entries":null', Format2, "<nil>"),
    ('"entries":{"p":{}}', Format2, "map[p:map[]]"),
    ('"entries":{"p":null}', Format2, "map[p:<nil>]"),
    ('"entries":{"p":{"c":null}}', Format2, "map[p:map[c:]]"),
    ('"entries":{"b":{"d":"1","c":"2"},"a":{"c":"3"}}', Format2, "map[a:map[c:3] b:map[c:2 d:1]]"),
    ('"entries":{"\uffff":{},"\U0001f600":{},"Z":{},"\u00e9":{}}', Format2,
     "map[Z:map[] \u00e9:map[] \uffff:map[] \U0001f600:map[]]"),
    ('"entries":{"a b":{"<\\"\\n>":"x"}}', Format2, 'map[a b:map[<"\n>:x]]'),
    # A name that is the type's, which is replaced only once.
    ('"entries":{"CPUManagerCheckpointV2":{}}', Format2, "map[CPUManagerCheckpointV2:map[]]"),
    ("", Format3, "map[]" + PODS + "map[]"),
    ('"entries":null,"podEntries":null', Format3, "<nil>" + PODS + "<nil>"),
    ('"podEntries":{"P":{"cpuSet":"4-5"}}', Format3, "map[]" + PODS + "map[P:" + SET % "4:{} 5:{}" + "]"),
    ('"podEntries":{"P":{},"A":{"cpuSet":"10,9"}}', Format3,
     "map[]" + PODS + "map[A:" + SET % "9:{} 10:{}" + " P:" + SET % "" + "]"),
    ('"podEntries":{"P":null}', Format3, "map[]" + PODS + "map[P:" + SET % "" + "]"),
    ('"podEntries":{"P":{"cpuSet":null}}', Format3, "map[]" + PODS + "map[P:" + SET % "" + "]"),
]  # fmt: skip


@pytest.mark.parametrize(("members", "kind", "spewed"), SPEWED)
def test_what_is_summed(members: str, kind: type[Format1], spewed: str) -> None:
    text = SPEW % ("CPUManagerCheckpoint", "static", "0-3", V1_MAP if kind is Format1 else V2_MAP, spewed)
    data = '{"policyName":"static","defaultCpuSet":"0-3",%s"checksum":%d}'
    content = (data % (members + "," if members else "", fnv(text))).encode()
    minor, gate = {Format1: (35, False), Format2: (35, False), Format3: (36, True)}[kind]
    ids = {"a": ("p", "a"), "b": ("p", "b")}
    checkpoint = read_checkpoint(content, minor, gate, ids)
    assert (checkpoint.policy_name, checkpoint.default_cpu_set) == ("static", "0-3")
    assert isinstance(checkpoint, Format2 if kind is Format1 else kind)
    changed = content.replace(b'"0-3"', b'"0-2"')
    with pytest.raises(CheckpointError, match=r"checkpoint is corrupted|cannot unmarshal"):
        read_checkpoint(changed, minor, gate, ids)


# Sums with a format's own name, as a kubelet that forgets to replace it writes them, and who accepts them.
OWN_NAMES = [
    (Format2, "CPUManagerCheckpointV2", "map[]", [(36, False), (37, False)]),
    (Format3, "CPUManagerCheckpointV3", "map[]" + PODS + "map[]", [(37, False), (37, True)]),
    (Format1, "CPUManagerCheckpointV1", "map[]", []),
]


@pytest.mark.parametrize(("kind", "struct", "spewed", "accepted_by"), OWN_NAMES)
def test_sum_with_its_own_name(
    kind: type[Format1], struct: str, spewed: str, accepted_by: list[tuple[int, bool]]
) -> None:
    number = fnv(SPEW % (struct, "static", "0-3", V1_MAP if kind is Format1 else V2_MAP, spewed))
    content = b'{"policyName":"static","defaultCpuSet":"0-3","checksum":%d}' % number
    for minor, gate in KUBELETS:
        if (minor, gate) in accepted_by:
            assert read_checkpoint(content, minor, gate).__class__ is kind
        else:
            assert refusal(content, minor, gate) == CORRUPTED


# The text in a checkpoint of format 4, and its sum: of the tests of Kubernetes' pull request 137820, where it was the
# member checksum of a file with the text alone.
DATA_CHECKSUMS = [
    ('{"policyName":"none","defaultCPUSet":"4-6"}', 657950972, ("none", "4-6", {})),
    (
        '{"policyName":"static","defaultCPUSet":"7-9","entries":{"pod":{"container1":"4-6","container2":"1-3"}}}',
        1420829534,
        ("static", "7-9", {"pod": {"container1": "4-6", "container2": "1-3"}}),
    ),
    (
        (
            '{"policyName":"static","defaultCPUSet":"1-3","entries":{"pod":{"container1":"4-6","container2":"7-9"}},'
            '"podEntries":{"pod":{"cpuSet":"4-10"}}}'
        ),
        2328898362,
        ("static", "1-3", {"pod": {"container1": "4-6", "container2": "7-9"}}),
    ),
    ('{"policyName":"none","defaultCPUSet":"4-6","unknownField":"value"}', 3492408555, ("none", "4-6", {})),
]


@pytest.mark.parametrize(("text", "number", "expected"), DATA_CHECKSUMS)
def test_checksum_of_format_4_from_the_threads_not_replayed_against_1_37(
    text: str, number: int, expected: tuple[str, str, Any]
) -> None:
    assert fnv("(string)" + text) == number
    content = json.dumps({"data": text, "dataChecksum": number}).encode()
    checkpoint = read_checkpoint(content, 37)
    assert (said(checkpoint), type(checkpoint)) == (expected, Format4)
    for wrong in (0, 1, number + 1, number + (1 << 32)):
        wrong_content = json.dumps({"data": text, "dataChecksum": wrong}).encode()
        assert refusal(wrong_content, 37) == "could not load v4 checkpoint: checkpoint is corrupted"
        assert said(decode_checkpoint(wrong_content)) == expected
    # An older kubelet does not see the text.
    assert said(read_checkpoint(content, 35)) == ("", "", {})


def test_sum_of_zero() -> None:
    for kind, content in ((Format1, FILES[Format1]), (Format2, FILES[Format2]), (Format3, POD_FILES[Format3])):
        data = json.loads(content)
        for unsummed in ({**data, "checksum": 0}, {key: data[key] for key in data if key != "checksum"}):
            text = json.dumps(unsummed).encode()
            # A format 3 without a sum is read as format 2.
            assert said(read_checkpoint(text, 35, container_ids=IDS)) == ("static", "0-3", {"p": {"c": "4-5"}})
            checkpoint = decode_checkpoint(text)
            assert checkpoint.__class__ is kind
            if kind is Format3:
                with pytest.raises(CheckpointError, match="checkpoint is corrupted"):
                    checkpoint.verify()
                assert read_checkpoint(text, 37, True).__class__ is Format2
            else:
                checkpoint.verify()
