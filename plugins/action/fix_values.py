# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixes what the controller acts with, before a node answers. The module of this name documents it."""

from __future__ import annotations

from typing import Any

from ..module_utils._base.errors import InputError
from ..plugin_utils.controller_action import ControllerAction, Given
from ..plugin_utils.hosts_of_run import RUN

_ARGUMENTS: dict[str, dict[str, object]] = {
    "values": {"type": "dict", "required": True},
    "scope": {"type": "str", "default": ""},
    "play": {"type": "str", "default": ""},
}
_SCALAR = (str, int, float, type(None))
# Of the result of each task.
_TAKEN = ("changed", "failed", "msg", RUN)


class ActionModule(ControllerAction):
    """Returns what it is given; the base has refused a host whose facts have a say in it."""

    ARGUMENTS = _ARGUMENTS

    def made(self, given: Given) -> dict[str, Any]:
        """Return the result of the task: each value by its name, and what tells this run from others of the same
        process."""
        if not given["play"].endswith(given["scope"]):
            raise InputError(
                "Ansible takes cpu_manager_hosts, cpu_manager_canaries, cpu_manager_serial and"
                " cpu_manager_max_fail_percentage from --extra-vars and from the vars of import_playbook alone, and the"
                " inventory says something else: %s; nothing was changed" % given["scope"],
                remedy="give them so, or remove them from the inventory",
            )
        for name, value in given["values"].items():
            if name in _TAKEN or not isinstance(value, _SCALAR):
                raise InputError("found %s, expected a text, a number or a switch" % type(value).__name__, name)
        # It is one task for all hosts, and another one where another playbook imports it once more.
        return {**given["values"], RUN: str(self._task._uuid), "changed": False}
