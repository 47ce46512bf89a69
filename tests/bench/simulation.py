# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long the simulator takes for a trace, beside one of half its length: it has to grow as the trace does."""

from __future__ import annotations

import time

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicRules
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.replay import POLICIES, replay
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.trace import Trace, make_trace

MACHINE, TRACE = "2 sockets x 12 cores x 2 threads", "crowded"
ROUNDS = 3
# Twice the time with twice as many pods takes twice as long; what grows with the square takes four times as long.
LIMIT = 3.0


def first_half(trace: Trace) -> Trace:
    """Return the pods that come in the first half of the time."""
    end = trace.duration / 2
    pods = [pod._replace(leaves=min(pod.leaves, end)) for pod in trace.pods if pod.arrives < end]
    return trace._replace(duration=end, pods=pods)


def seconds(trace: Trace, policy: str, rules: DynamicRules) -> float:
    """Return how many seconds of the processor a replay of the trace takes."""
    start = time.process_time()
    replay(trace, policy, rules)
    return time.process_time() - start


def measure() -> bool:
    """Print the times; True when each ratio is within its limit."""
    described = describe_machine(MACHINE)
    rules = DynamicRules(kubelet_view(described), CPUSet.parse("0,24"), distances=described.numa_distances)
    whole = make_trace(TRACE, 1, 48)
    half = first_half(whole)
    print("The simulator, %d pods on %s, beside half the time, best of %d rounds:" % (len(whole.pods), MACHINE, ROUNDS))
    kept = True
    for policy in POLICIES:
        rounds = [(seconds(half, policy, rules), seconds(whole, policy, rules)) for _round in range(ROUNDS)]
        short, long = (min(times) for times in zip(*rounds))
        kept = kept and long / short <= LIMIT
        print("  %-10s %6.2f s, %.2f times (limit %.2f)" % (policy, long, long / short, LIMIT))
    return kept
