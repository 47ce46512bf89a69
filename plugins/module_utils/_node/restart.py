# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the next start of a node's kubelet does to the pods that run there: what is read for readmission.py."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Mapping, Sequence

from .._base.errors import RefusedError, option
from .._base.tree import OverlaidTree
from .._containers.pods import pods_from_manifests
from ..policy.hints import OtherManagers
from .allocation import Question
from .beside_cpus import device_checkpoint, memory_for_plan
from .pods_seen import pods_seen
from .readmission import Fate, Written, fates_of, loss_notes
from .start_check import removed_states

if TYPE_CHECKING:
    from .node import Node


def fates_at_start(
    node: Node, files: Mapping[str, bytes | None], wanted: Mapping[str, object], with_requests: bool = False
) -> list[Fate]:
    """Return what becomes of each pod that runs when the kubelet starts with these files over the node's, and these
    settings.

    with_requests: also of those of which no state has anything, which only another rule can refuse. Nothing where the
    kubelet would not start.
    """
    removed = removed_states(node)
    after = node.on(OverlaidTree(node.tree, {**files, **removed})) if files or removed else node
    configuration, _problem = after.found()
    if configuration is None:
        return []
    observed, _notes = node.observed(configuration)
    running = () if observed is None else observed.running
    # Its names are not hidden.
    devices = None if node.hides_names else device_checkpoint(node.tree)
    question = Question(
        after.topology,
        after.machine(),
        configuration,
        wanted,
        after.checkpoint(),
        pods_from_manifests(pods_seen(node)["pods"]) if with_requests else (),
        running=running if observed is not None and observed.all_named else (),
        others=OtherManagers(memory_for_plan(node.tree, node.topology), after.memory_state(), (), devices),
        active={container.pod_uid for container in running},
    )
    try:
        return fates_of(question, Written(node.checkpoint(), node.memory_state()))
    except RefusedError:
        # Which others say.
        return []


def restart_notes(
    node: Node,
    files: Mapping[str, bytes | None] = MappingProxyType({}),
    start: str = "the next start of the kubelet, whoever starts it,",
) -> list[str]:
    """Return a note on the pods that a start of the kubelet with these files over the node's would lose."""
    return loss_notes(fates_at_start(node, files, {}), start)


def restart_loss_error(fates: Sequence[Fate], path: str) -> RefusedError | None:
    """Return why a change is not to start the kubelet while pods run; None where none loses anything. path: the
    checkpoint."""
    lost = [fate.to_text() for fate in fates if fate.is_loss]
    if not lost:
        return None
    return RefusedError(
        "the kubelet admits all pods that run anew when it starts, and these would lose what they have: %s; nothing was"
        " written" % "; ".join(lost),
        path,
        "drain the node and set %s: true" % option("discard_assignments"),
        kind="assignments",
    )
