# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kills the run when a task begins, the one that KILL_AT names: nothing of the run gets to clean up."""

from __future__ import annotations

DOCUMENTATION = """
name: kill_at
type: notification
short_description: Kill a run at a task
description:
  - Kills ansible-playbook when a task of the given name begins, for tests.
"""

import os
import signal
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible is untyped
    """Waits for the task."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "kill_at"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:  # noqa: ARG002  # its name is given
        if task.get_name().rpartition(" : ")[2] == os.environ["KILL_AT"]:
            os.kill(os.getpid(), signal.SIGKILL)
