# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples as a machine with two CPUs would give them; number 1 is exclusive."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import (
    Counts,
    Observer,
    Sample,
    Ticks,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.verdict import CGROUP, CONTAINER, Runner
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.watch import TaskTime
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

OWN = "ab" * 32
OWN_PATH = "kubepods/pod1/" + OWN
OBSERVER = 999
ELAPSED = 10.0


def named(path: str) -> Runner:
    name = path.rpartition("/")[2]
    return Runner(CONTAINER, "shop/db/server", name) if len(name) == 64 else Runner(CGROUP, path)


def task(name: str, shares: Mapping[int, float], cgroup: str = "", **more: Any) -> TaskTime:
    """Return a task that is no kernel thread, and whose CPU was sampled, unless `more` says otherwise."""
    fields = {"kernel": False, "pid": 5, "tid": 5, "sure": False, **more}
    return TaskTime(name, fields["kernel"], fields["pid"], fields["tid"], cgroup, shares, fields["sure"])


def stat_text(name: bytes, flags: int = 0, user: int = 3, system: int = 4, start: int = 77, cpu: int = 1) -> bytes:
    """Return a task's file stat."""
    rest = ["0"] * 50
    for place, value in ((6, flags), (11, user), (12, system), (19, start), (36, cpu)):
        rest[place] = str(value)
    rest[0] = "S"
    return b"12 (" + name + b") " + " ".join(rest).encode("ascii") + b"\n"


def sample(**more: Any) -> Sample:
    """Return a machine on which nothing runs, but for `more`."""
    idle = Ticks(0, 0, 0, 1000, 0, 0, 0, 0)
    fields: dict[str, Any] = {
        "elapsed": ELAPSED,
        "tick": 0.01,
        "online": CPUSet((0, 1)),
        "watched": CPUSet((1,)),
        "busy": {},
        "busy_exact": True,
        "slack": 0.002,
        "tasks": (),
        "cgroups": None,
        "totals": {},
        "ended": frozenset(),
        "idle": {0: 1.0, 1: 1.0},
        "ticks": {0: idle, 1: idle},
        "interrupts": Counts({}, ()),
        "softirqs": Counts({}, ()),
        "observer": Observer(OBSERVER, CPUSet((0,)), 0.01, 3, 10, 0),
        "problems": (),
    }
    return Sample(**{**fields, **more})
