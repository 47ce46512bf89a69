# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a change with all its parts: settings, and as wanted the container runtime and a trial of the start.

Where the node's own kubelet and the prediction differ, the kubelet is right, and the plan goes by it.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from .._base.errors import RefusedError
from .._kubelet.settings import WOULD_NOT_START
from .._node.module import mistaken_in
from .._node.node import Node
from .._node.runtime import WantedRuntime
from .._node.start_check import ALWAYS, NEVER
from .rollout_plan import (
    ROLLBACK,
    ChangeTerms,
    PlannedChange,
    plan_change,
    refused_start,
    starts_kubelet,
    with_last_runtime,
    with_runtime,
)


class TrialTerms(NamedTuple):
    """Whether the node's own kubelet tries the start that is planned."""

    # AUTO, ALWAYS or NEVER, of start_check.py.
    mode: str = NEVER
    # The trial of an earlier plan: it stands where the start is still the same.
    tried: Mapping[str, Any] | None = None


def tried_plan(
    node: Node, wanted: Mapping[str, object], terms: ChangeTerms, runtime: WantedRuntime | None, trial: TrialTerms
) -> dict[str, Any]:
    """What is to be done on a node, as plain data; see the module rollout_info.

    wanted: settings. runtime: what is wanted of the container runtime; None for nothing. The refusals that were
    predicted and are none are in node.mistaken afterwards. Raises CPUManagerError where there can be no plan.
    """
    tries = trial.mode != NEVER and node.tree.live
    if tries:
        # Only of what is planned now.
        node.mistaken = frozenset()
    try:
        change = plan_change(node, wanted, terms)
    except RefusedError as error:
        if error.kind != WOULD_NOT_START or not tries:
            raise
        # Imported here: hardly any node is refused what is wanted.
        from .._trial.kubelet_trial import mistaken_by

        start = refused_start(node, wanted)
        node.mistaken = mistaken_by(node, start.wanted, start.files, trial.tried)
        change = plan_change(node, wanted, terms)
    report = _whole(node, change, terms, runtime, trial)
    mistaken = mistaken_in(report["trial"])
    if mistaken <= node.mistaken:
        return report
    node.mistaken = mistaken
    again = plan_change(node, wanted, terms)
    tried = report["trial"] if again.start == change.start else None
    return _whole(node, again, terms, runtime, trial._replace(tried=tried))


def _whole(
    node: Node, change: PlannedChange, terms: ChangeTerms, runtime: WantedRuntime | None, trial: TrialTerms
) -> dict[str, Any]:
    """The plan, with the container runtime's part in it, and what the node's own kubelet says of the start."""
    report, start = change.report, change.start
    if terms.change == ROLLBACK and report["last"] is not None and "runtime" in report["last"]["facts"]:
        report = with_last_runtime(report, node, terms.drain)
    elif terms.change != ROLLBACK and runtime is not None:
        report = with_runtime(report, node, runtime, terms.drain)
    else:
        report = {**report, "runtime": None}
    if trial.mode == NEVER or start is None or not starts_kubelet(report):
        return {**report, "trial": None}
    # Imported here: most nodes need no change.
    from .._trial.kubelet_trial import with_trial

    return with_trial(report, node, start.wanted, start.files, trial.mode == ALWAYS, trial.tried)
