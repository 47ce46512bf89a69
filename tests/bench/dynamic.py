# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a decision of the policy dynamic takes: 256 CPUs, and 100 elastic containers that are all busy.

In seconds of CPU time, the longest pass of a life counts: what else runs on the machine is not in it.
"""

from __future__ import annotations

import gc
import time

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, count_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic import decide, first_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    DynamicRules,
    Use,
    WantedContainer,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view

MACHINE = "2 sockets x 4 NUMA nodes x 2 L3 caches x 8 cores x 2 threads"
RESERVED = "0-3,128-131"
ELASTIC = 100
# They come when the machine is full, and have to be made room for.
LATER = 8
PERIOD = 10.0
GROWING, WITH_LATER = 12, 6
ROUNDS = 7
LIMIT = 0.020


def life() -> list[float]:
    """Return the CPU time of each pass: first sets, growth until nothing is free, nothing to do, others that come."""
    machine = describe_machine(MACHINE)
    rules = DynamicRules(kubelet_view(machine), CPUSet.parse(RESERVED), distances=machine.numa_distances)
    containers = [WantedContainer("elastic-%d" % number, "app", 1, 8) for number in range(ELASTIC)]
    state, times = first_state(rules), []
    for number in range(GROWING + WITH_LATER):
        if number == GROWING:
            containers += [WantedContainer("later-%d" % later, "app", 12, 20) for later in range(LATER)]
        use = Use({key: float(count_bits(held.cpus)) for key, held in state.containers.items()}, 2.0)
        start = time.process_time()
        state = decide(rules, containers, use, state, PERIOD * number).state
        times.append(time.process_time() - start)
    return times


def measure() -> bool:
    """Print the times; True when the longest pass is within its limit."""
    gc.collect()
    rounds = [life() for _round in range(ROUNDS)]
    # Of each pass the least of all rounds.
    passes = [min(times) for times in zip(*rounds)]
    longest, idle = max(passes), passes[GROWING - 1]
    print(
        "A decision of the policy dynamic, 256 CPUs, %d busy elastic containers, best of %d rounds:" % (ELASTIC, ROUNDS)
    )
    print("  %-34s %5.1f ms  (limit %.0f ms)" % ("the longest", 1000 * longest, 1000 * LIMIT))
    print("  %-34s %5.1f ms" % ("where nothing is to be done", 1000 * idle))
    return bool(longest < LIMIT)
