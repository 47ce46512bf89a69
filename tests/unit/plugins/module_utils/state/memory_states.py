# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several tests of the memory manager's state share: what kubelets wrote, settings, and states to change."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    MemoryConfig,
    judge_memory,
)
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

GIB = 1 << 30
PATH = "/var/lib/kubelet/memory_manager_state"

CORRUPTED = "checkpoint is corrupted"
OTHER_MACHINE = "[memorymanager] the expected machine state is different from the real one"
POLICY = "[memorymanager] configured policy %s differs from state checkpoint policy %s"
WRONG = "json: cannot unmarshal %s of type %s"
PANIC = "runtime error: invalid memory address or nil pointer dereference"

# What kubelets wrote: 1.33 and 1.36, and 1.36 with the gate PodLevelResourceManagers.
NONE = b'{"policyName":"None","machineState":{},"checksum":4236770233}'
NONE_PODS = b'{"policyName":"None","machineState":{},"checksum":512582496}'
STATIC = (
    b'{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":68719476736,'
    b'"systemReserved":524288000,"allocatable":68195188736,"reserved":0,"free":68195188736}},"cells":[0]}},'
    b'"checksum":2915779776}'
)
FOUR_NODES_SUM = 1738427574  # of 64 GiB each, 0, 8, 16 and 24, and 400 MiB reserved of node 0

POLICY_NONE = MemoryConfig("None", {}, 33)
POLICY_STATIC = MemoryConfig("Static", {0: {"memory": 500 << 20}}, 33, machine={0: {"memory": 64 * GIB}})


def reason(content: bytes, config: MemoryConfig) -> str:
    return judge_memory(content, config).reason


def block(size: int, *nodes: int, kind: str = "memory") -> dict[str, Any]:
    return {"numaAffinity": list(nodes), "type": kind, "size": size}


TWO = MemoryConfig("Static", {0: {"memory": GIB}}, 36, machine={0: {"memory": 8 * GIB}, 1: {"memory": 8 * GIB}})


def state(config: MemoryConfig, entries: Any = None, **nodes: Any) -> bytes:
    """Return a first state, and what is other in it: {"node0": {...}} changes the member of a node or of its memory."""
    data = json.loads(memory_state_after(None, config) or b"")
    for name, changes in nodes.items():
        node = data["machineState"][name[len("node") :]]
        for key, value in changes.items():
            (node if key in node else node["memoryMap"]["memory"])[key] = value
    return json.dumps({**data, "entries": entries, "checksum": 0}).encode("ascii")


PODS = MemoryConfig("Static", {0: {"memory": GIB}}, 36, True, {0: {"memory": 8 * GIB}})


def with_pods(content: bytes, **changes: Any) -> bytes:
    data = json.loads(content)
    node = data["machineState"]["0"]
    node["numberOfAssignments"] = 1
    node["memoryMap"]["memory"].update({"reserved": 2 * GIB, "free": 5 * GIB})
    entries = {"entries": {"p": {"c": [block(GIB, 0)], "d": [block(GIB, 0)]}}}
    return json.dumps(
        {**data, **entries, "podEntries": {"p": {"memoryBlocks": [block(2 * GIB, 0)]}}, **changes}
    ).encode()


V3 = memory_state_after(None, POLICY_STATIC._replace(minor=37)) or b""
