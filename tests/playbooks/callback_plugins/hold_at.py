# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Holds the run when the task that HOLD_AT names first begins, as long as there is the file HOLD, which it makes."""

from __future__ import annotations

DOCUMENTATION = """
name: hold_at
type: notification
short_description: Hold a run at a task
description:
  - Holds ansible-playbook when a task of the given name begins for the first time, until a file is removed, for tests.
"""

import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible is untyped
    """Waits for the task, and then for the file, once: what takes a change back may have a task of the same name."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "hold_at"
    CALLBACK_NEEDS_ENABLED = True

    has_held = False

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:  # noqa: ARG002  # its name is given
        if task.get_name().rpartition(" : ")[2] == os.environ["HOLD_AT"] and not self.has_held:
            self.has_held = True
            file = Path(os.environ["HOLD"])
            file.touch()
            while file.exists():
                time.sleep(0.1)
