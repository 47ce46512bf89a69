# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/checkpoint.py: what is read from a file, and the state that it says.

What is wrong with a file is told in test_checkpoint_complaints.py, and how it is written in test_writing.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
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
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

from .checkpoints import FILES, KUBELETS, POD_FILES, POD_STATE, said

READ: list[tuple[bytes, tuple[str, str, Any]]] = [
    (b"{}", ("", "", {})),
    (b"null", ("", "", {})),
    (b" \n{ } \t\r\n", ("", "", {})),
    (b'{"POLICYNAME":"a","defaultcpuset":"1","Entries":{},"checkSum":0}', ("a", "1", {})),
    # two letters that are such in other clothes
    ('{"checK\u017fum":1,"check\u017fum":0,"entrie\u017f":{},"chec\u212asum":0}'.encode(), ("", "", {})),
    (b'{"policyName":"a","policyName":"b"}', ("b", "", {})),  # the last one counts
    (b'{"policyName":"a","PolicyName":"b"}', ("b", "", {})),
    (b'{"checksum":1,"checksum":0}', ("", "", {})),
    (b'{"policyName":"a","policyname":null}', ("a", "", {})),
    (b'{"defaultCpuSet":"1","defaultCpuSet":null}', ("", "1", {})),
    (b'{"checksum":0,"checksum":null}', ("", "", {})),
    (b'{"policyName":"a","data":7,"policy":1,"policyName ":2,"":3}', ("a", "", {})),  # what is not known
    (b'{"entries":{"p":{}}}', ("", "", {"p": {}})),
    (b'{"entries":{"p":{"c":null}}}', ("", "", {"p": {"c": ""}})),
    (b'{"entries":{"p":{"c":"0","c":null}}}', ("", "", {"p": {"c": ""}})),
    # a second one adds to the first, a pod in it replaces the pod
    (b'{"entries":{"p":{"c":"0"}},"entries":{"q":{"c":"1"}}}', ("", "", {"p": {"c": "0"}, "q": {"c": "1"}})),
    (b'{"entries":{"p":{"c":"0"},"q":{}},"Entries":{"p":{"d":"1"}}}', ("", "", {"p": {"d": "1"}, "q": {}})),
    (b'{"entries":{"p":{"c":"0","d":"1"},"p":{"c":"2"}}}', ("", "", {"p": {"c": "2"}})),
    (b'{"entries":{"p":{"c":"0"}},"entries":null,"entries":{"q":{}}}', ("", "", {"q": {}})),
    (b'{"entries":{"p":{"c":"0"}},"entries":{}}', ("", "", {"p": {"c": "0"}})),
    (b'{"entries":{"p":{"C":"0","c":"1"},"P":{}}}', ("", "", {"p": {"C": "0", "c": "1"}, "P": {}})),  # names are exact
    (b'{"policyName":"\\ud83d\\ude00"}', ("\U0001f600", "", {})),
    (b'{"policyName":"\\ud83d","defaultCpuSet":"\xff"}', ("\ufffd", "\ufffd", {})),
    (b'{"policyName":"\\u003c"}', ("<", "", {})),
    (b'{"a":%s1%s}' % (b"[" * 9999, b"]" * 9999), ("", "", {})),
]


@pytest.mark.parametrize(("content", "expected"), READ, ids=lambda value: repr(value)[:60])
def test_read(content: bytes, expected: tuple[str, str, Any]) -> None:
    for minor, gate in KUBELETS:
        assert said(read_checkpoint(content, minor, gate)) == expected
    assert said(decode_checkpoint(content)) == expected


# What null makes of a member, with and without something before it.
NULLS: list[tuple[bytes, tuple[str, str, Any]]] = [
    (b'{"policyName":null,"defaultCpuSet":null,"entries":null,"checksum":null}', ("", "", None)),
    (b'{"policyName":"a","defaultCpuSet":"1","checksum":0,"policyName":null,"checksum":null}', ("a", "1", {})),
    (b'{"entries":{"p":{"c":"1"}},"entries":null}', ("", "", None)),
]


@pytest.mark.parametrize(("content", "expected"), NULLS)
def test_null(content: bytes, expected: tuple[str, str, Any]) -> None:
    checkpoint = decode_checkpoint(content)
    assert said(checkpoint) == expected
    assert checkpoint.state().assignments == {}
    for minor, gate in KUBELETS:
        read_checkpoint(content, minor, gate)
    assert said(read_checkpoint(content, 37)) == expected


def test_null_in_the_entries() -> None:
    checkpoint = decode_checkpoint(b'{"entries":{"p":null,"q":{"c":"1"}}}')
    assert checkpoint.entries == {"p": None, "q": {"c": "1"}}
    assert checkpoint.state().assignments == {"p": {}, "q": {"c": cpus("1")}}


POD_ENTRIES: list[tuple[bytes, Any]] = [
    (b"{}", {}),
    (b"null", None),
    (b'{"p":null,"q":{}}', {"p": "", "q": ""}),
    (b'{"p":{"cpuSet":"0-1"}}', {"p": "0-1"}),
    (b'{"p":{"CPUSET":"0-1","other":[]}}', {"p": "0-1"}),
    (b'{"p":{"cpuSet":null}}', {"p": ""}),
    (b'{"p":{"cpuSet":"1","cpuset":null}}', {"p": "1"}),
    # only the last one is parsed
    (b'{"p":{"cpuSet":"x","cpuSet":"1"}}', {"p": "1"}),
    (b'{"p":{"cpuSet":"1"},"q":{"cpuSet":"2"},"p":{}}', {"p": "", "q": "2"}),
    (b'{"p":{"cpuSet":"1"}},"podentries":{"q":{"cpuSet":"2"}}', {"p": "1", "q": "2"}),
    (b'{"p":{"cpuSet":"1"}},"podEntries":null', None),
]


@pytest.mark.parametrize(("text", "expected"), POD_ENTRIES)
def test_pod_entries(text: bytes, expected: Any) -> None:
    checkpoint = decode_checkpoint(b'{"defaultCpuSet":"7","podEntries":%s}' % text)
    assert isinstance(checkpoint, Format3)
    found = checkpoint.pod_entries
    assert (found if found is None else {pod: str(value) for pod, value in found.items()}) == expected
    assert checkpoint.state() == State(cpus("7"), {}, {pod: cpus(value) for pod, value in (expected or {}).items()})
    number = b"%d" % checkpoint.right_checksum()
    content = b'{"defaultCpuSet":"7","podEntries":%s,"checksum":%s}' % (text, number)
    assert read_checkpoint(content, 36, True).state() == checkpoint.state()


def test_pod_entries_of_what_is_no_format_3() -> None:
    """The kubelet 1.36 keeps those before the first that it cannot read."""
    content = b'{"defaultCpuSet":"7","podEntries":{"p":{"cpuSet":"1"},"q":{"cpuSet":"x"},"r":{"cpuSet":"2"}}}'
    assert read_checkpoint(content, 36, True).state() == State(cpus("7"), {}, {"p": cpus("1")})
    assert read_checkpoint(content, 36).state() == State(cpus("7"), {})
    assert read_checkpoint(content, 37, True).state() == State(cpus("7"), {})


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (FILES[Format1], Format1),
        (FILES[Format2], Format2),
        # Without CPUs of whole pods, only the sum tells format 3 from format 2; without entries, nor format 1 from it.
        (FILES[Format3], Format3),
        (FILES[Format3].replace(b'"checksum":', b'"checksum":1'), Format2),
        (POD_FILES[Format3], Format3),
        (FILES[Format4], Format4),
        (POD_FILES[Format4], Format4),
        # Where the text of format 4 is damaged, what is beside it is read.
        (FILES[Format4].replace(b'"data":"{', b'"data":"'), Format4),
        (FILES[Format4].replace(b'{\\"policyName\\":\\"static', b'{\\"policyName\\":\\"statis'), Format4),
        (
            b'{"policyName":"static","defaultCpuSet":"0-3","entries":{"p":{"c":"4-5"}},"data":7,"dataChecksum":1}',
            Format4,
        ),
        # No kubelet takes this for a format 4.
        (b'{"policyName":"static","defaultCpuSet":"0-3","entries":{"p":{"c":"4-5"}},"data":7}', Format2),
    ],
)
def test_decode(content: bytes, kind: type[Format1]) -> None:
    checkpoint = decode_checkpoint(content)
    assert checkpoint.__class__ is kind
    entries = {"1a2b": "4-5"} if kind is Format1 else {"p": {"c": "4-5"}}
    assert said(checkpoint) == ("static", "0-3", entries)


def test_state() -> None:
    data = {"defaultCpuSet": "0,3-4", "entries": {"p1": {"c1": "1", "c2": ""}, "p2": {}}}
    state = decode_checkpoint(json.dumps(data).encode()).state()
    assert state == State(cpus("0,3-4"), {"p1": {"c1": cpus("1"), "c2": cpus("")}, "p2": {}})
    assert state.exclusive_cpus() == cpus("1")
    assert POD_STATE.exclusive_cpus() == cpus("4-7")
