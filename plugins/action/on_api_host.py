# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs a module of kubernetes.core, again where it may succeed, and takes its answer as data.

The module of this name documents it.
"""

from __future__ import annotations

from typing import Any, Mapping

from ..plugin_utils.api_server import call, with_names
from ..plugin_utils.guarded_action import GuardedAction

MODULES = ("k8s", "k8s_drain", "k8s_info")
_CONNECTION: dict[str, dict[str, Any]] = {"kubeconfig": {"type": "raw"}, "context": {"type": "str"}}
_TIMEOUT: dict[str, dict[str, Any]] = {"timeout": {"type": "int", "default": 60}}


class ActionModule(GuardedAction):
    """Runs in the worker of the node, and its module on the host that the task is delegated to."""

    READS_NODE = False

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the one module that is named."""
        name, arguments = self.chosen(MODULES, {**_CONNECTION, **_TIMEOUT})
        timeout = arguments.pop("timeout")
        if "definition" in arguments:
            arguments["definition"] = with_names(arguments["definition"])
        return call(self, name, arguments, task_vars, timeout)
