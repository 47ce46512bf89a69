# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which format of a checkpoint each version of the kubelet writes and reads, and what is lost on the way."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
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
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

from .checkpoints import FILES, IDS, KUBELETS, POD_FILES, POD_STATE, STATE, refusal, said


@pytest.mark.parametrize(
    ("minor", "gate", "kind"),
    [
        (14, False, Format1),
        (17, True, Format1),
        (18, False, Format2),
        (33, False, Format2),
        (35, True, Format2),
        (36, False, Format2),
        (36, True, Format3),
        (37, False, Format4),
        (37, True, Format4),
        (40, False, Format4),
    ],
)
def test_format_that_is_written(minor: int, gate: bool, kind: type[Format1]) -> None:
    assert format_for(minor, gate) is kind
    assert format_for(minor) is (Format2 if kind is Format3 else kind)


@pytest.mark.parametrize(("minor", "gate"), KUBELETS)
def test_format_that_is_written_is_read(minor: int, gate: bool) -> None:
    kind = format_for(minor, gate)
    checkpoint = read_checkpoint(FILES[kind], minor, gate)
    assert (type(checkpoint), checkpoint.state()) == (kind, STATE)
    assert checkpoint.struct == "CPUManagerCheckpointV%d" % kind.version


# Which formats each kubelet reads, of those without CPUs of whole pods: the class, or the refusal.
V2_ENTRIES = "json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string"
READERS: list[tuple[int, bool, dict[type[Format1], Any]]] = [
    (18, False, {Format1: Format2, Format2: Format2, Format3: CORRUPTED, Format4: Format2}),
    (35, True, {Format1: Format2, Format2: Format2, Format3: CORRUPTED, Format4: Format2}),
    (36, False, {Format1: Format2, Format2: Format2, Format3: V2_ENTRIES, Format4: Format2}),
    (36, True, {Format1: Format2, Format2: Format2, Format3: Format3, Format4: Format2}),
    (37, False, {Format1: Format2, Format2: Format2, Format3: Format3, Format4: Format4}),
    (37, True, {Format1: Format2, Format2: Format2, Format3: Format3, Format4: Format4}),
]


@pytest.mark.parametrize(("minor", "gate", "expected"), READERS)
def test_formats_that_are_read(minor: int, gate: bool, expected: dict[type[Format1], Any]) -> None:
    for kind, result in expected.items():
        if isinstance(result, str):
            assert refusal(FILES[kind], minor, gate) == result
        else:
            checkpoint = read_checkpoint(FILES[kind], minor, gate, IDS)
            assert (type(checkpoint), checkpoint.state()) == (result, STATE)


def test_cpus_of_whole_pods() -> None:
    """There is no way back to a kubelet without them from format 3; from format 4, they are forgotten."""
    for minor, gate in KUBELETS:
        if minor == 37 or (minor, gate) == (36, True):
            assert read_checkpoint(POD_FILES[Format3], minor, gate).state() == POD_STATE
        else:
            assert refusal(POD_FILES[Format3], minor, gate) == (V2_ENTRIES if minor == 36 else CORRUPTED)
        # The kubelet 1.36 reads the format 2 in it, also with the gate.
        expected = POD_STATE if minor == 37 else STATE
        assert read_checkpoint(POD_FILES[Format4], minor, gate).state() == expected


V1_FILE = b'{"policyName":"static","defaultCpuSet":"0,3","entries":{"b":"1-2","a":"4"},"checksum":0}'
V1_IDS = {"a": ("p", "x"), "b": ("p", "y"), "other": ("q", "z")}


@pytest.mark.parametrize(("minor", "gate"), KUBELETS)
def test_migration(minor: int, gate: bool) -> None:
    checkpoint = read_checkpoint(V1_FILE, minor, gate, V1_IDS)
    assert checkpoint.__class__ is Format2
    assert said(checkpoint) == ("static", "0,3", {"p": {"x": "4", "y": "1-2"}})
    assert checkpoint.state() == State(cpus("0,3"), {"p": {"x": cpus("4"), "y": cpus("1-2")}})


@pytest.mark.parametrize(
    ("minor", "gate", "message"),
    [
        (18, False, "error migrating v1 checkpoint state to v2 checkpoint state: "),
        (35, True, "error migrating v1 checkpoint state to v2 checkpoint state: "),
        (36, False, "failed to migrate checkpoint from v1 to v2: "),
        (36, True, "failed to migrate checkpoint from v1 to v2: "),
        (37, False, "failed to migrate checkpoint from v1 to v2: "),
        (37, True, "failed to migrate checkpoint from v1 to v2: "),
    ],
)
def test_migration_without_the_container(minor: int, gate: bool, message: str) -> None:
    for ids, unknown in ((None, "a"), ({}, "a"), ({"a": ("p", "x")}, "b"), ({"b": ("p", "y")}, "a")):
        with pytest.raises(CheckpointError) as caught:
            read_checkpoint(V1_FILE, minor, gate, ids)
        assert str(caught.value) == message + "containerID '%s' not found in initial containers list" % unknown


def test_format_1_as_it_is() -> None:
    checkpoint = decode_checkpoint(V1_FILE)
    assert checkpoint.__class__ is Format1
    assert said(checkpoint) == ("static", "0,3", {"b": "1-2", "a": "4"})
    with pytest.raises(CheckpointError, match=r"^containerID 'a' not found in initial containers list$"):
        checkpoint.state()
    assert decode_checkpoint(write_checkpoint("static", State(cpus("0"), {}), Format1)).state() == State(cpus("0"), {})
