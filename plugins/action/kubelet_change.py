# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, which documents it, and shows which step a node is at while the change goes on."""

from __future__ import annotations

import time
import uuid
from typing import Any, Mapping, MutableMapping

from ansible.errors import AnsibleConnectionFailure
from ansible.utils.display import Display

from ..plugin_utils.guarded_action import PodsAction
from ..plugin_utils.report.answers import text

_MODULE = "kubenode.cpu_manager.kubelet_change"
# What of a plan the node needs.
_OF_PLAN = frozenset(
    (
        *("actions", "drains", "drift", "files", "found_refusal", "journal", "judged", "kubelet", "managers"),
        *("refusals", "runtime", "trial"),
    )
)
# Seconds for which each call waits for the change, the last again and again: a kubelet has to be well for 20.
_PATIENCE = (10, 30, 60)
# Seconds: between two calls of a node that does not answer, and for what takes time beside two starts of a kubelet.
_PAUSE, _BESIDE = 5, 300


class ActionModule(PodsAction):
    """Runs in the worker of the node."""

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the result of the task. The change goes on where the connection breaks, and is asked for again."""
        self._task.args = {**self._task.args, "call": uuid.uuid4().hex}
        given = self.filtered()
        plan = given.pop("plan", None)
        if isinstance(plan, Mapping) and given.get("step") not in ("begin_drain", "end_drain"):
            given["plan"] = {name: plan[name] for name in _OF_PLAN if name in plan}
        deadline, number, shown = 0.0, 0, ""
        while True:
            patience = _PATIENCE[min(number, len(_PATIENCE) - 1)]
            try:
                result = dict(self._execute_module(_MODULE, {**given, "patience": patience}, task_vars=task_vars))
            except AnsibleConnectionFailure:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)
                continue
            if not result.get("running"):
                return _with_reason(result, plan, bool(given.get("drained")))
            number += 1
            deadline = deadline or time.monotonic() + 2 * float(given.get("timeout", 0)) + _BESIDE
            if time.monotonic() > deadline:
                return {**result, "failed": True, "msg": "the change of the node does not come to its end"}
            steps = result.get("steps")
            step = steps[-1].get("name") if isinstance(steps, list) and steps and isinstance(steps[-1], dict) else ""
            if step and step != shown:
                shown = step
                Display().display("%s: %s" % (task_vars["inventory_hostname"], text(str(step)[:100])))


def _with_reason(result: dict[str, Any], plan: Any, is_drained: bool) -> dict[str, Any]:
    """Return the result of a call; its message names the node once, and containers without their CPUs are a failure.

    A node that was drained is brought back into the cluster first.
    """
    name = plan.get("node") if isinstance(plan, Mapping) else None
    node = "%s: " % text(str(name)) if name else ""
    left_over = result.get("left_over")
    if left_over and not is_drained and not result.get("failed"):
        problem = "the node was changed, but %s" % text(str(left_over))
        return {**result, "failed": True, "problem": problem, "outcome": "", "undone": False, "msg": node + problem}
    if result.get("failed"):
        # The message of a module that was refused has the node already.
        said = str(result.get("msg") or "it failed without a message").removeprefix(node)
        return {"problem": said, **result, "msg": node + said}
    return result
