# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks the names of a host's variables where it is wanted, and runs the module of this name, which documents it.

A filter would do so, too, but each worker of Ansible loads all filters anew, which takes longer than all the rest.
"""

from __future__ import annotations

from typing import Any, Mapping, MutableMapping

from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils.guarded_action import GuardedAction
from ..plugin_utils.variables import misspelled_failure


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """The result of the task."""
        is_wanted = boolean(self._task.args.get("check_variables", False), strict=False)
        failure = misspelled_failure(task_vars) if is_wanted else {}
        return failure or super().act(task_vars)
