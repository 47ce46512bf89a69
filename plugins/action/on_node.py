# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs one of Ansible's own modules on a node, and takes its answer as data. The module of this name documents it."""

from __future__ import annotations

from typing import Any, Mapping

from ..plugin_utils.guarded_action import GuardedAction

MODULES = ("command", "copy", "fetch", "file", "find", "service", "stat", "systemd_service", "tempfile", "wait_for")


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """The result of the one module that is named."""
        _checked, given = self.validate_argument_spec(
            {name: {"type": "dict"} for name in MODULES}, required_one_of=[MODULES], mutually_exclusive=[MODULES]
        )
        ((name, arguments),) = ((name, given[name]) for name in MODULES if given.get(name) is not None)
        return self.run_builtin(name, arguments, task_vars)
