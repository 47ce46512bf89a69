# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explains what a kubelet said, or runs the module of this name, which documents both, and takes its answer as data."""

from __future__ import annotations

from typing import Any, Mapping, MutableMapping

from ..module_utils._base.errors import InputError, option
from ..module_utils._node.module import KUBELET
from ..module_utils._node.wanted_settings import SETTINGS_ARGUMENTS
from ..plugin_utils.controller_action import OPTION_NAMES, validated
from ..plugin_utils.guarded_action import GuardedAction
from ..plugin_utils.refusals import explain

# Nothing is read of the node then; module_defaults may give them to all modules.
_OF_NODE = frozenset(("root", *KUBELET.options, *SETTINGS_ARGUMENTS.options))
_ARGUMENTS = {**OPTION_NAMES, "log_line": {"type": "str", "required": True}}


class ActionModule(GuardedAction):
    """Explains in the worker, without the node; runs the module in the worker of the node."""

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the result of the task."""
        arguments = self._task.args
        if arguments.get("log_line") is None:
            return super().act(task_vars)
        own = {name: value for name, value in arguments.items() if name not in _OF_NODE}
        given, wrong = validated(_ARGUMENTS, own, arguments.get("option_names"))
        if wrong:
            raise wrong
        if not given["log_line"].strip():
            raise InputError("there is no text", option("log_line"), "give a line of the kubelet's log")
        return {"changed": False, "explained": explain(given["log_line"])}
