# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a rollout would do to a node, all of it decided before anything is touched."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ..kubelet.finding import Finding
from ..kubelet.placement import plan_files, touched_files
from ..kubelet.settings import SETTINGS, manager_config, plan_settings
from ..state.verdict import ACCEPTED
from .checkpoint import plan_valid
from .drift import DRIFT, NO_RESTART, RESET_CHECKPOINT, RESET_MEMORY_STATE, START_KUBELET, STOP_KUBELET, report
from .journal import read_journal
from .memory_state import MemoryPlan
from .node import Node
from .sources import read_sources
from .start import memory_plan, planned_values, start_findings

# A restart with one of these changed admits every running pod as before.
_HARMLESS = frozenset(("cpu_manager_reconcile_period", "cpu_cfs_quota", "cpu_cfs_quota_period"))


def rollout_report(node: Node, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The plan of a node, as plain data; see the module rollout_info for its shape.

    Raises InputError, RefusedError and NodeError as drift's report does.
    """
    configuration = node.configuration()
    observed, notes = node.observed(configuration)
    checkpoint = node.checkpoint()
    answer = report(node.topology, node.machine(), configuration, checkpoint, wanted, observed)
    if configuration is not None:
        answer = with_memory_state(answer, memory_plan(node, planned_values(node, wanted, configuration)))
    journal = read_journal(node.tree)
    restarts = START_KUBELET in answer["actions"]
    planned = planned_checkpoint(node, wanted, checkpoint) if restarts else checkpoint
    # The memory manager's state is gone by then, if it would be refused.
    memory_state = None if restarts else node.memory_state()
    findings = start_findings(node, wanted, planned, memory_state) if configuration is not None else []
    own_notes = [*node.unfinished(), *([] if restarts else _restart_notes(answer["notes"], findings))]
    return {
        **answer,
        "notes": [*answer["notes"], *notes, *own_notes],
        "drain": restarts and needs_drain(answer["actions"], answer["drift"]),
        "starts": not any(finding.fatal for finding in findings),
        "findings": [finding.to_dict() for finding in findings],
        "files": [] if configuration is None else [*planned_files(node, wanted), *node.state_paths],
        "journal": None if journal is None else journal.to_dict(),
        "kubelet": node.kubelet(configuration),
    }


def _restart_notes(notes: Iterable[str], findings: Iterable[Finding]) -> list[str]:
    """Why the kubelet of a node that is as wanted would not start again, where drift's notes do not say so."""
    if any(note.startswith(NO_RESTART) for note in notes):
        return []
    return [
        "%s: %s: %s (%s); %s" % (NO_RESTART, finding.where, finding.text, finding.cause, finding.remedy)
        for finding in findings
        if finding.fatal
    ]


def planned_files(node: Node, wanted: Mapping[str, Any]) -> list[str]:
    """The files that a change of settings writes, as paths on the node. Raises RefusedError where it would not."""
    sources = read_sources(node)
    plan_files(sources, plan_settings(wanted, node.needed_configuration(), node.minor), wanted, node.minor)
    return [node.tree.node_path(path) for path in touched_files(sources, node.minor)]


def with_memory_state(answer: Mapping[str, Any], memory: MemoryPlan) -> dict[str, Any]:
    """Drift's report, with the memory manager's state in it where that has to go."""
    if not memory.changed:
        return dict(answer)
    refusal = "refused: " + memory.reason
    drift = [*answer["drift"], {"subject": "memory_state", "wanted": ACCEPTED, "found": refusal, "source": None}]
    actions = answer["actions"] if START_KUBELET in answer["actions"] else [STOP_KUBELET, START_KUBELET]
    at = 2 if RESET_CHECKPOINT in actions else 1
    actions = [*actions[:at], RESET_MEMORY_STATE, *actions[at:]]
    others = [action for action in answer["actions"] if action not in actions]
    return {**answer, "status": DRIFT, "drift": drift, "actions": actions + others}


def planned_checkpoint(node: Node, wanted: Mapping[str, Any], checkpoint: bytes | None) -> bytes | None:
    """The checkpoint with which the kubelet would start after the change."""
    plan = plan_settings(wanted, node.needed_configuration(), node.minor)
    config = manager_config(plan.settings, plan.configuration, node.machine())
    return plan_valid(checkpoint, config, discard=True).new


def needs_drain(actions: list[str], drift: list[dict[str, Any]]) -> bool:
    """Whether pods have to leave the node before its kubelet starts with the change.

    At its start a kubelet admits each running pod again: where the policy, its options, the reservation or the
    topology manager are others, it may refuse pods or give them other CPUs.
    Source: HandlePodAdditions in pkg/kubelet/kubelet.go.
    """
    return not {RESET_CHECKPOINT, RESET_MEMORY_STATE}.isdisjoint(actions) or any(
        row["subject"] not in _HARMLESS for row in drift if row["subject"] in SETTINGS
    )
