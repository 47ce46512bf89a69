# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times tasks as ansible-playbook runs them: one task, many local hosts, the tasks in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Mapping

PING: dict[str, Any] = {"name": "Ping", "ansible.builtin.ping": {}}


def time_tasks(
    directory: Path, tasks: Mapping[str, Mapping[str, Any]], hosts: int, rounds: int
) -> dict[str, list[float]]:
    """{name: the wall seconds of each round}, after one round that warms the caches."""
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = {"all": {"hosts": {"node%02d" % number: {} for number in range(hosts)}, "vars": variables}}
    (directory / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")
    playbooks = {}
    for number, (what, task) in enumerate(tasks.items()):
        playbooks[what] = directory / ("%d.json" % number)
        play = {"name": "Time it", "hosts": "all", "gather_facts": False, "tasks": [task]}
        playbooks[what].write_text(json.dumps([play]), encoding="utf-8")
    times: dict[str, list[float]] = {what: [] for what in playbooks}
    for _round in range(rounds + 1):
        for what, playbook in playbooks.items():
            times[what].append(_seconds(playbook, hosts))
    return {what: found[1:] for what, found in times.items()}


def _seconds(playbook: Path, hosts: int) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        ["ansible-playbook", "-i", str(playbook.parent / "inventory.json"), "-f", str(hosts), str(playbook)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
    )
    if done.returncode or done.stdout.count("ok=1 ") != hosts:
        sys.exit("%s failed:\n%s%s" % (playbook, done.stdout, done.stderr))
    return time.perf_counter() - start
