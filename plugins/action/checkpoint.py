# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, which documents it, with what it needs of pods."""

from __future__ import annotations

from ..plugin_utils.guarded_action import PodsAction


class ActionModule(PodsAction):
    """Runs in the worker of the node."""
