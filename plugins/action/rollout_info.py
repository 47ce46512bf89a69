# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, which documents it, and takes its answer as data."""

from __future__ import annotations

from typing import Any, Mapping, MutableMapping

from ..plugin_utils.controller_action import check_role_variables
from ..plugin_utils.guarded_action import GuardedAction


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """The result of the task."""
        self._task.args = dict(self._task.args)
        role = self._task.args.pop("role", None)
        if role:
            check_role_variables(role, self._templar, task_vars)
        return super().act(task_vars)
