# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long housekeeping_info takes beside ansible.builtin.ping, and how long the reading of many interrupts and
workqueues takes alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import read_interrupts, read_workqueues
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write_layers
from ansible_collections.kubenode.cpu_manager.tests.support import in_memory

from .drift import HOSTS, ROUNDS, SHAPES, make_node
from .tasks import LOCAL, PING, compare_with_ping, time_tasks

LIMIT = 1.3
INTERRUPTS, WORKQUEUES = 200, 300
MOST_MS = 50.0
_READINGS = 7


def look(root: Path, reserved: str = "") -> dict[str, Any]:
    """Return the one task that reads a node's layers."""
    return {
        "name": "Read the layers",
        "kubenode.cpu_manager.housekeeping_info": {"root": str(root), "reserved_system_cpus": reserved},
    }


def reading_ms(directory: Path) -> float:
    """Return how many milliseconds it takes to read many interrupts and workqueues: the best of some readings."""
    write_layers(directory, "0-63", interrupts=INTERRUPTS, workqueues=WORKQUEUES)
    tree = Tree(str(directory))
    times = []
    for _reading in range(_READINGS):
        start = time.perf_counter()
        found = len(read_interrupts(tree)) + len(read_workqueues(tree))
        times.append((time.perf_counter() - start) * 1000)
        if found != INTERRUPTS + WORKQUEUES + 2:
            raise AssertionError("%d settings were read" % found)
    return min(times)


def measure() -> bool:
    """Print the times; True when each is within its limit."""
    with tempfile.TemporaryDirectory(dir=in_memory.place()) as name:
        milliseconds = reading_ms(Path(name))
    what = "%d interrupts and %d workqueues" % (INTERRUPTS, WORKQUEUES)
    print("%s, a saved node, best of %d:" % (what, _READINGS))
    print("  %-36s %6.1f ms (limit %.0f)" % ("read", milliseconds, MOST_MS))
    with tempfile.TemporaryDirectory() as name:
        tasks = {"ping": PING, "this machine": look(Path("/"), "0")}
        tasks.update((shape, look(make_node(Path(name), shape))) for shape in SHAPES)
        times = time_tasks(Path(name), tasks, HOSTS, ROUNDS)
    return compare_with_ping("housekeeping_info", times, LOCAL % HOSTS, LIMIT) and milliseconds <= MOST_MS
