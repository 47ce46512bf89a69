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
_CHANGING = "changing"
# Options of the action alone, which go with the state changing.
_STEPS = ("stopping", "aside_for", "restores")
# Of a step that is part of another one.
_OF_ALL_STEPS = ("run", "root", "option_names", "overwrite_edited", "backup_keep")


class _StepError(Exception):
    """A step failed; `result` is its result."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        super().__init__()
        self.result = dict(result)


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """The result of the task."""
        given = dict(self._task.args)
        more = {name: given.pop(name, None) for name in _STEPS}
        for name in _STEPS:
            if more[name] is not None and given.get("state") != _CHANGING:
                raise InputError("goes with the state %s alone" % _CHANGING, name)
        try:
            return self._steps(given, more, task_vars)
        except _StepError as failure:
            return failure.result

    def _steps(self, given: dict[str, Any], more: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        shared = {name: given[name] for name in _OF_ALL_STEPS if name in given}
        changed = False
        if more["stopping"]:
            # The journal says first that the kubelet is about to be stopped.
            stopping = {**shared, "state": "stopping", **more["stopping"]}
            service = stopping.pop("service", None)
            changed |= self._changed(self._execute_module(_MODULE, stopping, task_vars=task_vars))
            if service:
                changed |= self._changed(self.run_builtin("service", {"name": service, "state": "stopped"}, task_vars))
        if more["aside_for"]:
            found = self._execute_module(_LOOK, more["aside_for"], task_vars=task_vars)
            self._changed(found)
            given["aside"] = found["resets"]
        result = dict(self._execute_module(_MODULE, given, task_vars=task_vars))
        changed |= self._changed(result)
        diff = result.pop("diff", None) if self._task.diff else None
        if more["restores"] is not None:
            last = {**shared, "state": "restored", "source": "last", "files": more["restores"]}
            restored = self._execute_module(_MODULE, last, task_vars=task_vars)
            changed |= self._changed(restored)
            result.update({name: restored[name] for name in ("restored", "backup_files", "notes")})
            diff = restored.get("diff")
        # Ansible shows what a module returns, also where the task has none.
        result.pop("diff", None)
        return {**result, **({} if diff is None else {"diff": diff}), "changed": changed}

    def _changed(self, result: Mapping[str, Any]) -> bool:
        """Whether the step has changed something. Raises _StepError."""
        if result.get("failed") or result.get("unreachable"):
            raise _StepError(result)
        return bool(result.get("changed"))
