# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, which documents it, and starts the kubelet before where it is asked to."""

from __future__ import annotations

from typing import Any, Mapping

from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils.guarded_action import GuardedAction

_MODULE = "kubenode.cpu_manager.wait_for_kubelet"


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """The result of the task."""
        given = dict(self._task.args)
        if "start" not in given:
            return dict(self._execute_module(_MODULE, given, task_vars=task_vars))
        starts = boolean(given.pop("start"))
        started: dict[str, Any] = {"changed": False}
        if starts:
            service = {"name": given.get("service", "kubelet"), "state": "started"}
            started = self.run_builtin("service", service, task_vars)
            # A unit that has failed too often is not started again before systemd has forgotten that.
            if started.get("failed") and not self._task.check_mode and self._is_forgotten(service["name"], task_vars):
                started = self.run_builtin("service", service, task_vars)
        # Nobody has started it in check mode, or where it is somebody else's.
        if not starts or self._task.check_mode or started.get("failed") or started.get("unreachable"):
            return started
        result = dict(self._execute_module(_MODULE, given, task_vars=task_vars))
        return {**result, "changed": bool(started.get("changed"))}

    def _is_forgotten(self, service: str, task_vars: Mapping[str, Any]) -> bool:
        """Let systemd forget how often a unit has failed. False where there is no such unit, or no systemd."""
        command = {"argv": ["systemctl", "reset-failed", "--", "%s.service" % service]}
        return not self.run_builtin("command", command, task_vars).get("failed", False)
