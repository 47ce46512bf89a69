# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks the names of a host's variables where it is wanted, and runs the module of this name, which documents it.

A filter would do so, too, but each worker of Ansible loads all filters anew, which takes longer than all the rest.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..plugin_utils.variables import misspelled_failure


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible is untyped
    """Runs in the worker of the node."""

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """The result of the task."""
        result = super().run(tmp, task_vars)
        is_wanted = boolean(self._task.args.get("check_variables", False), strict=False)
        failure = misspelled_failure(task_vars) if is_wanted else {}
        return {**result, **(failure or self._module(task_vars))}

    def _module(self, task_vars: Any) -> dict[str, Any]:
        return dict(self._execute_module(task_vars=task_vars, wrap_async=bool(self._task.async_val)))
