# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records the result of every task, also of those that are skipped, a JSON line [host, result] each, in the file
RECORD_RESULTS.
"""

from __future__ import annotations

DOCUMENTATION = """
name: record
type: notification
short_description: Record every result of a run
description:
  - Writes one JSON line [host, result] for each result, for tests.
"""

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible is untyped
    """Writes each result as it comes."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def _record(self, result: Any, outcome: str) -> None:
        told = {**result._result, "task": result._task.get_name(), "outcome": outcome}
        line = json.dumps([result._host.get_name(), told], default=str)
        with open(os.environ["RECORD_RESULTS"], "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        self._record(result, "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:  # noqa: ARG002  # its name is given
        self._record(result, "failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._record(result, "skipped")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._record(result, "unreachable")
