# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs one of Ansible's own modules on a node, and takes its answer as data. The module of this name documents it."""

from __future__ import annotations

from typing import Any, Mapping

from ..plugin_utils.guarded_action import GuardedAction

MODULES = ("command", "copy", "file", "service", "stat", "systemd_service", "wait_for")


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""

    READS_NODE = False

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the one module that is named."""
        return self.run_builtin(*self.chosen(MODULES), task_vars)
