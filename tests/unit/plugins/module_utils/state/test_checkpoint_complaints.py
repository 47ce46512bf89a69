# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet says of a checkpoint that it does not read, in its own words."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    decode_checkpoint,
    read_checkpoint,
    restore_error,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import CORRUPTED, CheckpointError

from .checkpoints import KUBELETS, V1_MAP, V2_MAP, refusal

# The kubelet's versions and gate, a file that no format fits, and the complaint of the format tried last.
TOLD = [
    (33, False, '{"entries":1}', "number into Go struct field CPUManagerCheckpoint.entries of type " + V2_MAP),
    (36, False, '{"entries":1}', "number into Go struct field CPUManagerCheckpointV1.entries of type " + V1_MAP),
    (36, True, '{"entries":1}', "number into Go struct field CPUManagerCheckpointV1.entries of type " + V1_MAP),
    (37, False, '{"entries":1}', "number into Go struct field CPUManagerCheckpointV1.entries of type " + V1_MAP),
    (37, True, '{"entries":1}', "number into Go struct field CPUManagerCheckpointV1.entries of type " + V1_MAP),
    (33, False, "[]", "array into Go value of type state.CPUManagerCheckpoint"),
    (36, False, '""', "string into Go value of type state.CPUManagerCheckpointV1"),
    (37, False, "0.5", "number into Go value of type state.CPUManagerCheckpointV1"),
    (37, False, "true", "bool into Go value of type state.CPUManagerCheckpointV1"),
]


@pytest.mark.parametrize(("minor", "gate", "text", "message"), TOLD)
def test_complaint_of_the_last_format(minor: int, gate: bool, text: str, message: str) -> None:
    assert refusal(text.encode(), minor, gate) == "json: cannot unmarshal " + message


POD_ENTRY = "json: cannot unmarshal %s into Go struct field CPUManagerCheckpointV3.podEntries"

BAD_POD_ENTRIES = [
    (b"[]", POD_ENTRY % "array" + " of type state.PodCPUAssignments"),
    (b'"0"', POD_ENTRY % "string" + " of type state.PodCPUAssignments"),
    (b'{"p":1}', POD_ENTRY % "number" + " of type state.podEntryJSON"),
    (b'{"p":"0-1"}', POD_ENTRY % "string" + " of type state.podEntryJSON"),
    (b'{"p":[]}', POD_ENTRY % "array" + " of type state.podEntryJSON"),
    (b'{"p":false}', POD_ENTRY % "bool" + " of type state.podEntryJSON"),
    (b'{"p":{"cpuSet":1}}', POD_ENTRY % "number" + ".cpuSet of type string"),
    (b'{"p":{"cpuSet":{}}}', POD_ENTRY % "object" + ".cpuSet of type string"),
    (b'{"p":{"cpuSet":1,"cpuSet":[]}}', POD_ENTRY % "number" + ".cpuSet of type string"),
    (b'{"p":{"cpuSet":"x","cpuSet":[],"cpuSet":"1"}}', POD_ENTRY % "array" + ".cpuSet of type string"),
    (b'{"p":{"cpuSet":"x"}}', 'failed to parse cpuset: strconv.Atoi: parsing "x": invalid syntax'),
    (b'{"p":{"cpuSet":"3-1"}}', 'failed to parse cpuset: invalid range "3-1" (3 > 1)'),
    (b'{"p":{"cpuSet":"x"},"q":1}', 'failed to parse cpuset: strconv.Atoi: parsing "x": invalid syntax'),
    # Go stops reading here, and tells this in place of what was wrong before.
    (b'1,"podEntries":{"p":{"cpuSet":"x"}}', 'failed to parse cpuset: strconv.Atoi: parsing "x": invalid syntax'),
    (b'{"p":{"cpuSet":"x"}},"policyName":1', 'failed to parse cpuset: strconv.Atoi: parsing "x": invalid syntax'),
    # more than any node has: a kubelet sums over each of them
    (b"{%s}" % b",".join(b'"%d":{"cpuSet":"0-65535"}' % pod for pod in range(2)),
     "more than 65536 CPUs in podEntries"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_POD_ENTRIES, ids=lambda value: repr(value)[:60])
def test_bad_pod_entries(text: bytes, message: str) -> None:
    content = b'{"podEntries":%s}' % text
    with pytest.raises(CheckpointError) as caught:
        decode_checkpoint(content)
    assert str(caught.value) == message


NOT_JSON = [
    (b"", "unexpected end of JSON input"),  # as after a power cut
    (b"\0" * 200, "invalid character '\\x00' looking for beginning of value"),  # the same, on XFS
    (b"{", "unexpected end of JSON input"),
    (b'{"policyName":"static"', "unexpected end of JSON input"),
    (b'{"policyName":"static"}}', "invalid character '}' after top-level value"),
    (b'{"policyName":"static",}', "invalid character '}' looking for beginning of object key string"),
    (b"{'policyName':'static'}", "invalid character '\\'' looking for beginning of object key string"),
    (b"policyName: static", "invalid character 'p' looking for beginning of value"),
    (b'\xef\xbb\xbf{"policyName":"static"}', "invalid character '\u00ef' looking for beginning of value"),
    (b'{"policyName":"\n"}', "invalid character '\\n' in string literal"),
    (b'{"a":NaN}', "invalid character 'N' looking for beginning of value"),
    (b'{"a":[-Infinity]}', "invalid character 'I' in numeric literal"),
    (b'{"a":01}', "invalid character '1' after object key:value pair"),
    (b'{"policyName":"\\ud8"}', "invalid character '\"' in \\u hexadecimal character escape"),
    (b"[" * 100_000, "invalid character '[' exceeded max depth"),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "invalid character '{' exceeded max depth"),
]


@pytest.mark.parametrize(("content", "message"), NOT_JSON, ids=lambda value: repr(value[:24]))
def test_not_json(content: bytes, message: str) -> None:
    for minor, gate in KUBELETS:
        assert refusal(content, minor, gate) == message
    with pytest.raises(CheckpointError) as caught:
        decode_checkpoint(content)
    assert str(caught.value) == message


# A member, its value, what Go calls that, and the type that it wanted; by format.
MEMBERS = [
    ("policyName", "1", "number", "string"),
    ("policyName", "true", "bool", "string"),
    ("policyName", "[]", "array", "string"),
    ("policyName", "{}", "object", "string"),
    ("defaultCpuSet", '["0"]', "array", "string"),
    ("defaultCpuSet", "-0.5e9", "number", "string"),
    ("checksum", '"1"', "string", "checksum.Checksum"),
    ("checksum", "{}", "object", "checksum.Checksum"),
    ("checksum", "[1]", "array", "checksum.Checksum"),
    ("checksum", "false", "bool", "checksum.Checksum"),
    ("checksum", "1.0", "number 1.0", "checksum.Checksum"),
    ("checksum", "1e3", "number 1e3", "checksum.Checksum"),
    ("checksum", "-1", "number -1", "checksum.Checksum"),
    ("checksum", "-0", "number -0", "checksum.Checksum"),
    ("checksum", "18446744073709551616", "number 18446744073709551616", "checksum.Checksum"),
    ("checksum", "9" * 10_000, "number " + "9" * 10_000, "checksum.Checksum"),
]
MEMBERS_V1 = [
    ("entries", "[]", "array", V1_MAP),
    ("entries", '""', "string", V1_MAP),
    ("entries", "0", "number", V1_MAP),
    ("entries", '{"a":1}', "number", "string"),
    ("entries", '{"a":{}}', "object", "string"),
    ("entries", '{"a":"1","b":[]}', "array", "string"),
]
MEMBERS_V2 = [
    ("entries", "[]", "array", V2_MAP),
    ("entries", "true", "bool", V2_MAP),
    ("entries", '{"p":[]}', "array", "map[string]string"),
    ("entries", '{"p":"0"}', "string", "map[string]string"),
    ("entries", '{"p":{"c":1}}', "number", "string"),
    ("entries", '{"p":{"c":{}}}', "object", "string"),
    ("entries", '{"p":{"c":"1"},"q":{"c":true}}', "bool", "string"),
]

# The struct that is named, of which format, and the kubelets that tell of it, it being the last that they try.
STRUCTS = [
    ("CPUManagerCheckpoint", 2, (18, False)),
    ("CPUManagerCheckpoint", 2, (35, True)),
    ("CPUManagerCheckpointV1", 1, (36, False)),
    ("CPUManagerCheckpointV1", 1, (36, True)),
    ("CPUManagerCheckpointV1", 1, (37, False)),
    ("CPUManagerCheckpointV1", 1, (37, True)),
]


@pytest.mark.parametrize(("struct", "version", "kubelet"), STRUCTS)
def test_wrong_type(struct: str, version: int, kubelet: tuple[int, bool]) -> None:
    for member, value, found, wanted in MEMBERS + (MEMBERS_V1 if version == 1 else MEMBERS_V2):
        expected = "json: cannot unmarshal %s into Go struct field %s.%s of type %s" % (found, struct, member, wanted)
        for key in (member, member.upper()):
            # So that it fits in no other format, something else is wrong, too.
            content = '{"other":1,"%s":%s,"checksum":null,"policyName":[]}' % (key, value)
            assert refusal(content.encode(), *kubelet) == expected


def test_first_wrong_type_is_told() -> None:
    message = "json: cannot unmarshal %s into Go struct field CPUManagerCheckpoint.%s of type %s"
    for content, expected in [
        (b'{"policyName":1,"checksum":[]}', message % ("number", "policyName", "string")),
        (b'{"checksum":[],"policyName":1}', message % ("array", "checksum", "checksum.Checksum")),
        (b'{"policyName":true,"policyName":1}', message % ("bool", "policyName", "string")),
        (b'{"entries":{"p":1,"q":[]}}', message % ("number", "entries", "map[string]string")),
        (b'{"entries":{"p":{"c":[]},"q":1},"policyName":1}', message % ("array", "entries", "string")),
        # told before the wrong checksum
        (b'{"checksum":1,"policyName":1}', message % ("number", "policyName", "string")),
    ]:
        assert refusal(content, 35) == expected


@pytest.mark.parametrize("content", [b"[]", b'"static"', b"0", b"false"])
def test_not_an_object(content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"^json: cannot unmarshal \w+ into Go value of type state\.CPU"):
        decode_checkpoint(content)


def test_restore_error() -> None:
    assert restore_error(CORRUPTED, "/var/lib/kubelet/cpu_manager_state") == (
        "could not restore state from checkpoint: checkpoint is corrupted, please drain this node and delete the CPU"
        ' manager checkpoint file "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
    )
    assert 'file "/a \\"b\\"/c" before' in restore_error(CheckpointError("x"), '/a "b"/c')


BAD_SETS = [
    ("x", 'strconv.Atoi: parsing "x": invalid syntax'),
    ("0-", 'strconv.Atoi: parsing "": invalid syntax'),
    ("3-1", 'invalid range "3-1" (3 > 1)'),
    ("0, 1", 'strconv.Atoi: parsing " 1": invalid syntax'),
    ("-1", 'strconv.Atoi: parsing "": invalid syntax'),
    ("0,,1", 'strconv.Atoi: parsing "": invalid syntax'),
    ("0-7:1/2", 'strconv.Atoi: parsing "7:1/2": invalid syntax'),
    ("0-65536", '"0-65536" is out of range: CPU ids go from 0 to 65535'),
]


@pytest.mark.parametrize(("text", "why"), BAD_SETS)
@pytest.mark.parametrize(("minor", "gate"), KUBELETS)
def test_bad_set(minor: int, gate: bool, text: str, why: str) -> None:
    for entries, message in [
        ({"defaultCpuSet": text}, 'could not parse default cpu set "%s": ' % text),
        (
            {"entries": {"p1": {"c1": "1"}, "p2": {"c1": "2", "c2": text}}},
            'could not parse cpuset "%s" for container "c2" in pod "p2": ' % text,
        ),
        ({"defaultCpuSet": text, "entries": {"p": {"c": "y"}}}, 'could not parse default cpu set "%s": ' % text),
    ]:
        checkpoint = read_checkpoint(json.dumps(entries).encode(), minor, gate)
        with pytest.raises(CheckpointError) as caught:
            checkpoint.state()
        assert str(caught.value) == message + why


def test_texts_in_a_complaint_are_quoted() -> None:
    checkpoint = decode_checkpoint(b'{"entries":{"a\\"b":{"c\\n":"\\u0000\\u00e9"}}}')
    with pytest.raises(CheckpointError) as caught:
        checkpoint.state()
    assert str(caught.value) == (
        'could not parse cpuset "\\x00\u00e9" for container "c\\n" in pod "a\\"b":'
        ' strconv.Atoi: parsing "\\x00\u00e9": invalid syntax'
    )
