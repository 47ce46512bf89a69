# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory manager's state in the plan of a change. Pure."""

from __future__ import annotations

from typing import Any, Mapping

from ...errors import Note
from ...state.verdict import ACCEPTED
from ..drift import DRIFT, NO_RESTART, RESET_CHECKPOINT, RESET_MEMORY_STATE, START_KUBELET, STOP_KUBELET
from ..memory_state import MemoryPlan


def with_memory_state(answer: Mapping[str, Any], memory: MemoryPlan, found: str) -> dict[str, Any]:
    """Drift's report, with the memory manager's state in it where that has to go.

    found: why the kubelet would refuse the state with its configuration as it was found; empty where it would not.
    """
    if not memory.changed:
        note = [Note("memory-state-refused", "%s: %s" % (NO_RESTART, found))] if found else []
        return {**answer, "notes": [*answer["notes"], *note]}
    row = {"subject": "memory_state", "wanted": ACCEPTED, "found": "refused: " + memory.reason, "source": None}
    drift = [*answer["drift"], {**row, "refused_now": bool(found)}]
    actions = answer["actions"] if START_KUBELET in answer["actions"] else [STOP_KUBELET, START_KUBELET]
    at = 2 if RESET_CHECKPOINT in actions else 1
    actions = [*actions[:at], RESET_MEMORY_STATE, *actions[at:]]
    others = [action for action in answer["actions"] if action not in actions]
    return {**answer, "status": DRIFT, "drift": drift, "actions": actions + others}
