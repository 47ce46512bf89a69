# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why the topology manager refuses a pod for its CPUs, which the kubelet's message does not say. Pure."""

from __future__ import annotations

from ..cpuset import CPUSet, count_bits
from ..policy.hints import SINGLE_NUMA_NODE
from ..policy.manager import Admission, CPUManager
from ..policy.option_harms import fewest
from ..policy.static import StaticPolicy, count_of_pod
from ..quantity import counted
from ..workload.pods import Pod


def why_refused(manager: CPUManager, pod: Pod, admission: Admission) -> str:
    """What of its CPUs did not fit. The state is that of the refusal, with what its earlier containers were given."""
    policy = manager.policy
    if not isinstance(policy, StaticPolicy) or not admission.hints:
        return ""
    # Empty: the pod as a whole.
    container, _hints = admission.hints[-1]
    counts = pod.exclusive_counts(policy.minor)
    for name in [container] if container else counts:
        assigned = manager.state.get(pod.uid, name)
        if assigned is not None and count_bits(assigned) != counts[name]:
            return "container %s wants %s, and has CPUs %s" % (name, _cpus(counts[name]), CPUSet.from_mask(assigned))
    count = counts[container] if container else count_of_pod(pod, counts)
    nodes = sorted(policy.topology.numa_nodes.items())
    least = 1
    if manager.topology_manager.policy != SINGLE_NUMA_NODE:
        least = fewest([count_bits(cpus) for _node, cpus in nodes], count)
    free = manager.state.default & ~policy.summary.reserved.mask
    why = "%s wants %s of %s, and free are %s" % (
        "container %s" % container if container else "the pod",
        _cpus(count),
        counted(least, "NUMA node"),
        ", ".join("%d of node %d" % (count_bits(free & cpus), node) for node, cpus in nodes),
    )
    own = policy.reusable.get(pod.uid, 0)
    if own:
        homes = ", ".join(str(node) for node, cpus in nodes if cpus & own)
        text = "; the CPUs %s of its init containers, which it takes over, are of node %s"
        why += text % (CPUSet.from_mask(own), homes)
    return why


def _cpus(count: int) -> str:
    return counted(count, "CPU")
