# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What action plugins share that run on the controller alone: arguments in, a result or one clear error out."""

from __future__ import annotations

from typing import Any, Mapping

from .arguments import OPTION_NAMES, validated
from .guarded_action import GuardedAction

# What a task is given: Ansible has checked each value against the arguments.
Given = Mapping[str, Any]


class ControllerAction(GuardedAction):
    """An action plugin that needs no connection. A plugin has its arguments and made()."""

    ARGUMENTS: Mapping[str, Mapping[str, object]] = {}

    _supports_async = False
    _requires_connection = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002  # the base gives them
        """The result of the task."""
        names = self._task.args.get("option_names")
        given, wrong = validated({**OPTION_NAMES, **self.ARGUMENTS}, self._task.args, names)
        if wrong:
            raise wrong
        return self.made(given)

    def made(self, given: Given) -> dict[str, Any]:
        """Do what the task says, and return its result. Raises CPUManagerError."""
        raise NotImplementedError
