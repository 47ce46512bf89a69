# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Says of each pod on how many nodes of a fleet it fits, on the controller. The module of this name documents it."""

from __future__ import annotations

import json
from typing import Any, Mapping

from ansible.utils.display import Display

from ..plugin_utils.controller_action import ControllerAction, Given
from ..plugin_utils.hosts_of_run import HostsOfRun
from ..plugin_utils.report.placements import fleet_placements, placements_table
from ..plugin_utils.report.results import put_file


class ActionModule(ControllerAction):
    """Reads what allocation_plan has answered for each host of the play."""

    ARGUMENTS: Mapping[str, Mapping[str, object]] = {"path": {"type": "path"}}

    _answers: Mapping[str, object] = {}

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the task."""
        self._answers = HostsOfRun(task_vars).answers(task_vars["ansible_play_hosts_all"], "kubelet_allocation")
        return super().act(task_vars)

    def made(self, given: Given) -> dict[str, Any]:
        """Return the result of the task: the rows of the table."""
        found = fleet_placements(self._answers)
        if given["path"]:
            put_file(given["path"], [json.dumps(found, indent=2, ensure_ascii=False), "\n"])
        # As plain text: the result of a task is shown in the form that the user has chosen for results.
        Display().display(placements_table(found).rstrip("\n"))
        return {"changed": False, **found}
