# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a rollout would do to a node, all of it decided before anything is touched."""

from __future__ import annotations

from typing import Any, Mapping

from ..kubelet.process import find_kubelet
from ..kubelet.settings import SETTINGS, complete, found_settings, manager_config
from .checkpoint import plan_valid
from .drift import RESET_CHECKPOINT, START_KUBELET, report
from .journal import read_journal
from .node import Node
from .start import start_findings

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
    journal = read_journal(node.tree)
    kubelet = find_kubelet(node.tree)
    restarts = START_KUBELET in answer["actions"]
    planned = planned_checkpoint(node, wanted, checkpoint) if restarts else checkpoint
    findings = start_findings(node, wanted, planned) if restarts else []
    return {
        **answer,
        "notes": [*answer["notes"], *notes],
        "drain": restarts and needs_drain(answer["actions"], answer["drift"]),
        "starts": not any(finding.fatal for finding in findings),
        "findings": [finding.to_dict() for finding in findings],
        "files": [] if node.config_path is None else [node.config_path, node.checkpoint_path],
        "journal": None if journal is None else journal.to_dict(),
        "kubelet": None if kubelet is None else {"pid": kubelet.pid, "arguments": list(kubelet.arguments)},
    }


def planned_checkpoint(node: Node, wanted: Mapping[str, Any], checkpoint: bytes | None) -> bytes | None:
    """The checkpoint with which the kubelet would start after the change."""
    configuration = node.needed_configuration()
    settings = complete(wanted, found_settings(configuration))
    config = manager_config(settings, configuration, node.machine())
    return plan_valid(checkpoint, config, discard=True).new


def needs_drain(actions: list[str], drift: list[dict[str, Any]]) -> bool:
    """Whether pods have to leave the node before its kubelet starts with the change.

    At its start a kubelet admits each running pod again: where the policy, its options, the reservation or the
    topology manager are others, it may refuse pods or give them other CPUs.
    Source: HandlePodAdditions in pkg/kubelet/kubelet.go.
    """
    return RESET_CHECKPOINT in actions or any(
        row["subject"] not in _HARMLESS for row in drift if row["subject"] in SETTINGS
    )
