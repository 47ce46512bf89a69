# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Can this node go to another version of Kubernetes and come back? What both kubelets say, and what is lost.

The kubelet of the other version starts with the node's files as they are, and writes the CPU manager's checkpoint as it
does; then the kubelet of today starts with that.
"""

from __future__ import annotations

from typing import Any

from .._base.errors import CPUManagerError
from .._base.versions import version_notes
from .._kubelet.start.predict import Prediction
from .._node.checkpoint_plan import format_notes, plan_format
from .._node.node import Node
from .._node.start_check import predict_configuration, predict_start, stored_state, with_states
from ..state.acceptance import CPUManagerConfig


def upgrade_report(node: Node, minor: int) -> dict[str, Any]:
    """The way of this node to Kubernetes 1.`minor` and back, as plain data; see the module rollout_info for its shape.

    Raises NodeError where there is no kubelet.
    """
    upgraded = node.of_version(minor)
    there = predict_start(upgraded)
    # One note for both ways, where they say the same.
    notes = [*node.version_notes(), *version_notes(minor)]
    content, lost = _written_by(upgraded, there)
    if content is None:
        content = node.checkpoint()
    today = predict_configuration(node)
    notes += [*lost, *_notes_of(content, today)]
    back = with_states(node, today, content, stored_state(node.tree, node.memory_state_path))
    return {
        "kubelet_version": "1.%d" % minor,
        **_said(there),
        "back": {"kubelet_version": "1.%d" % node.minor, **_said(back)},
        "notes": list(dict.fromkeys(notes)),
    }


def _written_by(upgraded: Node, prediction: Prediction) -> tuple[bytes | None, list[str]]:
    """The checkpoint as that kubelet writes it, where it starts with the one that is there; and what is lost."""
    old, config = upgraded.checkpoint(), _config_of(prediction)
    if old is None or config is None or prediction.starts is False:
        return None, []
    try:
        plan = plan_format(old, config)
    except CPUManagerError as error:
        return None, [str(error)]
    return plan.new, [*format_notes(old, config), *plan.notes]


def _notes_of(content: bytes | None, prediction: Prediction) -> list[str]:
    config = _config_of(prediction)
    return [] if config is None else format_notes(content, config)


def _config_of(prediction: Prediction) -> CPUManagerConfig | None:
    return None if prediction.checked is None else prediction.checked.cpu_manager


def _said(prediction: Prediction) -> dict[str, object]:
    return {
        "starts": prediction.starts,
        "findings": [finding.to_dict() for finding in prediction.findings],
        "unknown": [doubt.to_dict() for doubt in prediction.unknown],
    }
