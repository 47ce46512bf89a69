# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module that the task names, and takes its answer as data: drift_info, and those of meta/runtime.yml."""

from __future__ import annotations

from ..plugin_utils.guarded_action import GuardedAction


class ActionModule(GuardedAction):
    """Runs in the worker of the node."""
