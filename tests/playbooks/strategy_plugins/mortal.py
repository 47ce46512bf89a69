# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ends the run for each host when its N-th task begins, and kills the whole run when it has ended for all hosts.

KILL_AFTER is {host: N}, as JSON. Tasks that one host does for all do not count. Nothing more of the run reaches a host
for which it has ended, as after a kill; the other hosts do not notice. So one run shows what many runs leave that are
killed at tasks of their own. The file KILLED gets a line "HOST TASK" for each host, and the file BEGUN, if there is to
be one, the host's name for each task.
"""

from __future__ import annotations

DOCUMENTATION = """
name: mortal
short_description: Kill a run, for each host at a task of its own
description:
  - As the strategy linear, but nothing more is done on a host after a given number of tasks, for tests.
"""

import json
import os
import signal
from collections import Counter
from typing import Any

from ansible.plugins.strategy.linear import StrategyModule as Linear

_LEFT = {host: int(number) for host, number in json.loads(os.environ["KILL_AFTER"]).items()}
_BEGUN: Counter[str] = Counter()
_KILLED: set[str] = set()


class StrategyModule(Linear):  # type: ignore[misc]  # Ansible is untyped
    """Counts tasks over all plays of the run."""

    def _queue_task(self, host: Any, task: Any, task_vars: Any, play_context: Any) -> None:
        name = host.get_name()
        if task.run_once:
            # Another host may do it in the next run.
            super()._queue_task(host, task, task_vars, play_context)
            return
        _BEGUN[name] += 1
        if "BEGUN" in os.environ:
            with open(os.environ["BEGUN"], "a", encoding="utf-8") as file:
                file.write(name + "\n")
        if _BEGUN[name] < _LEFT.get(name, _BEGUN[name] + 1):
            super()._queue_task(host, task, task_vars, play_context)
            return
        _KILLED.add(name)
        with open(os.environ["KILLED"], "a", encoding="utf-8") as file:
            file.write("%s %s\n" % (name, task.get_name()))
        if set(_LEFT) <= _KILLED:
            # Without the results of what other hosts still do: nobody is left to take them.
            os.kill(os.getpid(), signal.SIGKILL)
        self._tqm._unreachable_hosts[name] = True
        self._blocked_hosts[name] = False
