# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, which documents it, and takes its answer as data; with it admission_info, if asked."""

from __future__ import annotations

from typing import Any, Mapping, MutableMapping

from ..plugin_utils.controller_action import check_role_variables
from ..plugin_utils.guarded_action import GuardedAction

_BESIDE = "kubenode.cpu_manager.admission_info"
# What both are given, beside what the second alone is.
_OF_BOTH = ("root", "option_names", "config_path", "kubelet_root", "kubelet_version", "command_line")


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the result of the task."""
        self._task.args = dict(self._task.args)
        role = self._task.args.pop("role", None)
        if role:
            check_role_variables(role, self._templar, task_vars)
        # What the admission of pods goes by is read beside the plan where somebody asks what becomes of them.
        beside = self._task.args.pop("beside_cpus", None)
        result = super().act(task_vars)
        if beside is None or result.get("failed") or result.get("unreachable"):
            return result
        given = {name: self._task.args[name] for name in _OF_BOTH if name in self._task.args}
        found = self._execute_module(_BESIDE, {**given, **beside}, task_vars=task_vars)
        return found if found.get("failed") or found.get("unreachable") else {**result, "beside_cpus": found}
