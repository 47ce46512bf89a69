# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several tests of checkpoints share: the kubelets that read them, files of each format, and random states."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import read_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    FORMATS,
    Checkpoint,
    CheckpointError,
    Format3,
    Format4,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

# Pod UID -> container name -> CPUs.
Entries = Dict[str, Dict[str, str]]

# Every way of a kubelet to read a checkpoint: minor version, gate PodLevelResourceManagers.
KUBELETS = [(18, False), (33, False), (35, True), (36, False), (36, True), (37, False), (37, True)]


def said(checkpoint: Checkpoint) -> tuple[str, str, Any]:
    return checkpoint.policy_name, checkpoint.default_cpu_set, checkpoint.entries


def refusal(content: bytes, minor: int, pod_level: bool = False) -> str:
    """Return why a kubelet does not read it."""
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(content, minor, pod_level)
    return str(caught.value)


def fnv(text: str) -> int:
    """Return the 32-bit FNV-1a sum, from its definition."""
    total = 2166136261
    for byte in text.encode():
        total = ((total ^ byte) * 16777619) % 2**32
    return total


SPEW = "(*state.%s){PolicyName:(string)%s DefaultCPUSet:(string)%s Entries:(%s)%s Checksum:(checksum.Checksum)0}"
V1_MAP, V2_MAP = "map[string]string", "map[string]map[string]string"
PODS = " PodEntries:(state.PodCPUAssignments)"
SET = "{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[%s]}}"

STATE = State(cpus("0-3"), {"p": {"c": cpus("4-5")}})
POD_STATE = STATE._replace(pod_assignments={"q": cpus("6-7")})
IDS = {"1a2b": ("p", "c")}
FILES = {kind: write_checkpoint("static", STATE, kind, IDS) for kind in FORMATS}
POD_FILES = {kind: write_checkpoint("static", POD_STATE, kind) for kind in (Format3, Format4)}

# No halves of surrogate pairs: they are no text.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
assignments = st.dictionaries(names, st.dictionaries(names, cpusets(), min_size=1, max_size=3), max_size=3)
states = st.builds(State, cpusets(), assignments, st.just({}))
pod_states = st.builds(State, cpusets(), assignments, st.dictionaries(names, cpusets(), max_size=3))
