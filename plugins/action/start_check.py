# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explains what a kubelet said, or runs the module of this name, which documents both, and takes its answer as data."""

from __future__ import annotations

from typing import Any, Mapping, MutableMapping

from ..module_utils._base.errors import InputError, option
from ..plugin_utils.controller_action import OPTION_NAMES, validated
from ..plugin_utils.guarded_action import GuardedAction
from ..plugin_utils.refusals import explain

_ARGUMENTS = {**OPTION_NAMES, "log_line": {"type": "str", "required": True}}


class ActionModule(GuardedAction):
    """Explains in the worker, without the node; runs the module in the worker of the node."""

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """The result of the task."""
        arguments = self._task.args
        if arguments.get("log_line") is None:
            return super().act(task_vars)
        besides = sorted(set(arguments) - set(_ARGUMENTS))
        if besides:
            raise InputError(
                "nothing is read of the node then, and these are about the node: %s" % ", ".join(besides),
                option("log_line"),
                "give the line alone",
            )
        given, wrong = validated(_ARGUMENTS, arguments, arguments.get("option_names"))
        if wrong:
            raise wrong
        if not given["log_line"].strip():
            raise InputError("there is no text", option("log_line"), "give a line of the kubelet's log")
        return {"changed": False, "explained": explain(given["log_line"])}
