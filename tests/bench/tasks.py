# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times tasks as ansible-playbook runs them: one task, many hosts, the tasks in turn.

Of local hosts the time of the processor is measured, of Ansible and of all that it starts: what else runs on a machine
hardly changes it. Of hosts that are reached over ssh it is the time on the clock, as other processes work there.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from types import MappingProxyType
from typing import Any, Mapping, Sequence

_CALLBACKS = Path(__file__).resolve().parent.parent / "playbooks/callback_plugins"
# Processes of Ansible at a time.
_FORKS = 20

LOCAL = "%d local hosts, seconds of the processor"
PING: dict[str, Any] = {"name": "Ping", "ansible.builtin.ping": {}}


def time_tasks(
    directory: Path,
    tasks: Mapping[str, Mapping[str, Any]],
    hosts: int,
    rounds: int,
    remote: Mapping[str, Any] | None = None,
) -> dict[str, list[float]]:
    """Return {name: the seconds in each round}, after one round that warms the caches.

    remote: the variables of a host that is not local. A task may include others. Every other round goes backwards, so
    that a machine that grows slower or faster does so for all.
    """
    _write_inventory(directory, hosts, remote or {})
    clock = _processor_seconds if remote is None else time.monotonic
    playbooks = {}
    for number, (what, task) in enumerate(tasks.items()):
        playbooks[what] = _write_playbook(directory / ("%d.json" % number), task)
    times: dict[str, list[float]] = {what: [] for what in playbooks}
    order = list(playbooks)
    for _round in range(rounds + 1):
        for what in order:
            before = clock()
            _run(playbooks[what], hosts)
            times[what].append(clock() - before)
        order.reverse()
    return {what: found[1:] for what, found in times.items()}


def time_playbook(directory: Path, playbook: str, hosts: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the seconds of the processor that a playbook of the collection takes on these local hosts, once."""
    _write_inventory(directory, 0, {})
    inventory = json.loads((directory / "inventory.json").read_text(encoding="utf-8"))
    inventory["all"]["hosts"] = hosts
    (directory / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")
    play = {"name": playbook, "ansible.builtin.import_playbook": playbook}
    path = directory / "playbook.json"
    path.write_text(json.dumps([play]), encoding="utf-8")
    before = _processor_seconds()
    _run(path, len(hosts))
    return _processor_seconds() - before


def ratio(mine: Sequence[float], ping: Sequence[float]) -> float:
    """Return how many times as long one of two tasks took, in the best round of each: others on a machine only add
    to it."""
    return min(mine) / min(ping)


def compare_with_ping(module: str, times: Mapping[str, Sequence[float]], measured: str, limit: float) -> bool:
    """Print the times of the task PING, "ping", and of those of a module by their nodes; True when each is within the
    limit."""
    ping = times["ping"]
    print("One task on %s, best of %d rounds:" % (measured, len(ping)))
    print("  %-36s %6.2f" % ("ansible.builtin.ping", min(ping)))
    kept = True
    for node, mine in times.items():
        if node != "ping":
            pings = ratio(mine, ping)
            kept = kept and pings <= limit
            print("  %-36s %6.2f  %.2f times ping (limit %.2f)" % (module + " " + node, min(mine), pings, limit))
    return kept


def count_modules(directory: Path, task: Mapping[str, Any]) -> int:
    """Return how many modules a task runs on a host, with all that it includes."""
    _write_inventory(directory, 1, {})
    results = directory / "results.jsonl"
    recording = {
        "ANSIBLE_CALLBACK_PLUGINS": str(_CALLBACKS),
        "ANSIBLE_CALLBACKS_ENABLED": "record",
        "RECORD_RESULTS": str(results),
    }
    _run(_write_playbook(directory / "modules.json", task), 1, recording)
    told = [json.loads(line)[1] for line in results.read_text(encoding="utf-8").splitlines()]
    # What runs on the controller alone has no invocation.
    return sum("invocation" in result for result in told)


def _write_inventory(directory: Path, hosts: int, remote: Mapping[str, Any]) -> None:
    (directory / "ansible.cfg").touch()
    # As Ansible finds interpreters: by their versions.
    interpreter = Path(sys.executable).with_name("python%d.%d" % sys.version_info[:2])
    variables = {"ansible_connection": "local", "ansible_python_interpreter": str(interpreter), **remote}
    inventory = {"all": {"hosts": {"node%02d" % number: {} for number in range(hosts)}, "vars": variables}}
    (directory / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")


def _write_playbook(path: Path, task: Mapping[str, Any]) -> Path:
    play = {"name": "Time it", "hosts": "all", "gather_facts": False, "tasks": [task]}
    path.write_text(json.dumps([play]), encoding="utf-8")
    return path


def _run(playbook: Path, hosts: int, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    done = subprocess.run(
        ["ansible-playbook", "-i", str(playbook.parent / "inventory.json"), "-f", str(min(hosts, _FORKS)), playbook],
        capture_output=True,
        text=True,
        check=False,
        # Python keeps bytecode, as it does for users, and Ansible has its defaults.
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(playbook.parent / "ansible.cfg"),
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "PYTHONDONTWRITEBYTECODE": "",
            **environment,
        },
    )
    if done.returncode or len(re.findall(r"\bok=[1-9]", done.stdout)) != hosts:
        sys.exit("%s failed:\n%s%s" % (playbook, done.stdout, done.stderr))


def _processor_seconds() -> float:
    """Return the seconds of the processor of all processes that this one has started, and theirs, as far as they
    have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
