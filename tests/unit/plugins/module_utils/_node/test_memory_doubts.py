# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Memory manager's states of which nobody can tell whether the kubelet would start: every module says so."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import MemoryConfig
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import NODE_MEMORY
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._node.test_restart import (
    GIB,
    MEMORY,
    MEMORY_STATE,
    PERIOD,
    Asked,
    asked,
)

__all__ = ["asked"]


def write_groups(asked: Asked, cells: list[int]) -> None:
    """Write a state in which one pod has memory of both nodes as a group, and another one of node 0 alone. cells:
    what the file says of node 0."""
    nodes = {node: {"memory": NODE_MEMORY * 1024} for node in (0, 1)}
    manager = StaticMemory(MemoryConfig("Static", {0: {"memory": GIB}}, 34, machine=nodes))
    for uid, group, size in (("uid-a", [0, 1], 4 * GIB), ("uid-b", [0], GIB)):
        manager.entries[uid] = {"app": [{"numaAffinity": group, "type": "memory", "size": size}]}
        manager._reserve(group, "memory", size)
    manager.machine[0]["cells"] = cells
    write(asked.root, MEMORY_STATE, manager.state())


def doubts(answer: Any) -> list[str]:
    return [note for check, note in zip(answer["note_checks"], answer["notes"]) if check == "start-uncertain"]


@pytest.mark.parametrize("trouble", ["node 0 alone", "node 0 in the group", "no meminfo", "no huge pages"])
def test_what_nobody_can_tell_of_a_memory_state_is_said_by_all(asked: Asked, trouble: str) -> None:
    """Which of two pods the kubelet looks at first is chance; or the memory of a NUMA node is not known."""
    asked.run({"a": "1-2,9-10", "b": "4-5,12-13"}, MEMORY)
    asked.with_memory()
    places = asked.root / "sys/devices/system/node/node1"
    if trouble == "no meminfo":
        (places / "meminfo").unlink()
    elif trouble == "no huge pages":
        (places / "hugepages/hugepages-2048kB").mkdir(parents=True)
    else:
        write_groups(asked, [0] if trouble == "node 0 alone" else [0, 1])
    start = asked.ask("start_check")
    assert (start["starts"], start["findings"]) == (None, [])
    (unknown,) = start["unknown"]
    reason = unknown["reason"].partition("with this state: ")[2]
    assert reason
    answers = [
        asked.ask("rollout_info", **PERIOD),
        asked.ask("rollout_info", cpu_manager_policy="static"),
        asked.ask("rollout_info", change="rollback"),
    ]
    for answer in answers:
        assert (answer["starts"], answer["unknown"]) == (None, [unknown])
    for answer in [*answers, asked.ask("drift_info")]:
        assert doubts(answer) == ["whether the kubelet starts cannot be determined: memory_manager_state: " + reason]


def test_a_memory_state_that_is_judged_leaves_no_doubt(asked: Asked) -> None:
    """One that would be refused is removed by a change, and drift_info says so before any."""
    asked.run({"a": "1-2,9-10", "b": "4-5,12-13"}, MEMORY)
    asked.with_memory()
    for module, wanted in (("rollout_info", PERIOD), ("drift_info", {})):
        answer = asked.ask(module, **wanted)
        assert (doubts(answer), answer.get("starts", True), answer.get("unknown", [])) == ([], True, [])
    write(asked.root, MEMORY_STATE, "{")
    drift, plan = asked.ask("drift_info"), asked.ask("rollout_info")
    assert asked.ask("start_check")["starts"] is False
    assert (plan["starts"], plan["unknown"], plan["resets"]) == (True, [], [MEMORY_STATE])
    for answer in (drift, plan):
        assert [row["subject"] for row in answer["drift"]] == ["memory_state"]
