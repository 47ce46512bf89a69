# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, which documents it, with what belongs to its steps.

That is one line for an operator, and each thing is done in the order in which it would be done by tasks of its own.
"""

from __future__ import annotations

from typing import Any, Mapping

from ..module_utils._base.errors import InputError
from ..plugin_utils.guarded_action import GuardedAction

_MODULE, _LOOK = "kubenode.cpu_manager.rollout_journal", "kubenode.cpu_manager.rollout_info"
# {option of the action alone: the state that has it}
_STEPS = {"service": "stopping", "aside_for": "changing"}


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """The result of the task."""
        given = dict(self._task.args)
        more = {name: given.pop(name, None) for name in _STEPS}
        for name, state in _STEPS.items():
            if more[name] and given.get("state") != state:
                raise InputError("goes with the state %s alone" % state, name)
        if more["aside_for"]:
            found = self._execute_module(module_name=_LOOK, module_args=more["aside_for"], task_vars=task_vars)
            if _failed(found):
                return dict(found)
            given["aside"] = found["resets"]
        result = dict(self._execute_module(module_name=_MODULE, module_args=given, task_vars=task_vars))
        if not self._task.diff:
            # Ansible shows what a module returns, also where the task has none.
            result.pop("diff", None)
        if more["service"] and not _failed(result):
            stopped = self.run_builtin("service", {"name": more["service"], "state": "stopped"}, task_vars)
            if _failed(stopped):
                return {**stopped, "journal": result["journal"], "changed": result["changed"]}
            result["changed"] = bool(result["changed"] or stopped.get("changed"))
        return result


def _failed(result: Mapping[str, Any]) -> bool:
    return bool(result.get("failed") or result.get("unreachable"))
