# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory of pods as a whole, which 1.36 writes with a gate, and the formats of 1.37 by its sources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    MemoryConfig,
)
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

from .memory_states import (
    CORRUPTED,
    NONE,
    NONE_PODS,
    OTHER_MACHINE,
    PODS,
    POLICY_NONE,
    POLICY_STATIC,
    STATIC,
    V3,
    WRONG,
    reason,
    with_pods,
)


def test_blocks_of_a_whole_pod_count_in_place_of_its_containers() -> None:
    """With the gate alone; the checksum of 0 is one of the format without pods, of which those of pods are left."""
    content = with_pods(memory_state_after(None, PODS) or b"", checksum=0)
    assert reason(content, PODS) == ""
    assert reason(content, PODS._replace(pod_level=False)) == OTHER_MACHINE


def test_formats_of_1_36_and_the_gate() -> None:
    """Drain before the gate is switched off: the other format is corrupt without it."""
    on, off = MemoryConfig("None", {}, 36, True), MemoryConfig("None", {}, 36)
    assert (reason(NONE_PODS, on), reason(NONE, on), reason(NONE, off)) == ("", "", "")
    assert (reason(NONE_PODS, off), reason(NONE_PODS, POLICY_NONE)) == (CORRUPTED, CORRUPTED)


def test_upgrade_to_1_37_by_its_sources() -> None:
    """It reads all older formats, whatever its gate says."""
    for pods in (False, True):
        config = MemoryConfig("None", {}, 37, pods)
        assert (reason(NONE, config), reason(NONE_PODS, config)) == ("", "")
    assert reason(NONE_PODS.replace(b"512582496", b"1"), MemoryConfig("None", {}, 37)) == CORRUPTED


def test_format_3_of_1_37_by_its_sources() -> None:
    data = json.loads(V3)
    assert list(data) == ["policyName", "machineState", "checksum", "data", "dataChecksum"]
    assert data["checksum"] == json.loads(STATIC)["checksum"]
    inner = json.loads(data["data"])
    assert inner == {key: data[key] for key in ("policyName", "machineState")}
    assert " " not in data["data"]


@pytest.mark.parametrize("minor", [21, 33, 35, 36])
def test_downgrade_from_1_37_by_its_sources(minor: int) -> None:
    """Older kubelets read what stands beside the text, which has the right checksum, and nothing of whole pods."""
    assert reason(V3, POLICY_STATIC._replace(minor=minor)) == ""
    with_gate = POLICY_STATIC._replace(minor=minor, pod_level=True)
    assert reason(V3, with_gate) == ""


def test_the_text_of_format_3_counts_in_1_37_by_its_sources() -> None:
    config = POLICY_STATIC._replace(minor=37)
    data = json.loads(V3)

    def said(**changes: Any) -> str:
        return reason(json.dumps({**data, **changes}).encode("ascii"), config)

    assert said(policyName="None", machineState={}, checksum=1) == ""
    load = "could not load v3 checkpoint: "
    struct = load + "failed to deserialize memory manager checkpoint: json: cannot unmarshal "
    assert said(dataChecksum=1) == load + CORRUPTED
    assert said(data=data["data"] + " ") == load + CORRUPTED
    inner = load + "failed to deserialize memory manager checkpoint data: "
    assert said(data="") == inner + "unexpected end of JSON input"
    assert said(data='{"policyName":5}') == inner + WRONG % (
        "number into Go struct field MemoryManagerCheckpointData.policyName",
        "string",
    )
    where = "Go struct field MemoryManagerCheckpoint.MemoryManagerCheckpointV1.policyName of type string"
    assert said(policyName=5) == struct + "number into " + where
    # Without both members it is a file of an older kubelet.
    assert said(data="", dataChecksum=0) == ""
    assert said(data="", dataChecksum=0, checksum=1) == CORRUPTED
    assert said(data="", dataChecksum=0, policyName=5) == WRONG % (
        "number into Go struct field MemoryManagerCheckpointV1.policyName",
        "string",
    )


def test_blocks_of_pods_in_1_37_by_its_sources() -> None:
    """They are in the text alone, so that a downgrade loses them."""
    config = PODS._replace(minor=37)
    content = memory_state_after(b'{"policyName":"Static","podEntries":{"p":{}}}', config) or b""
    assert "podEntries" not in json.loads(content)
    assert reason(content, config) == ""
