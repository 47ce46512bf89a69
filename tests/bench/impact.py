# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long it takes to say what becomes of the pods of 1,000 nodes of 20 shapes with 60 pods each, and its memory.

Whether the API server tells of the pods, or each node of its own.
"""

from __future__ import annotations

import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.admission import Replays
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.fleet import (
    Cluster,
    cluster_of_nodes,
    impact_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.workloads import Kinds, Remarks
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.schedule import ChangingNode, in_batches
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.simulation.trace import TRACES, make_trace
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, plan_of, pod_of

NODES, PODS = 1000, 60
MACHINES = [
    "%d sockets x %d cores x %d threads" % (sockets, cores, threads)
    for sockets in (1, 2)
    for cores in (8, 12, 16, 24, 32)
    for threads in (1, 2)
]
MOST_SECONDS, MOST_BYTES = 60, 1 << 30
# Of a schedule: each node has pods of two of 300 budgets.
SCHEDULED, BUDGETS, MOST_SCHEDULE_SECONDS = 10000, 300, 10


def pods_of(node: str, machine: str, seed: int) -> list[dict[str, Any]]:
    """Return pods of a trace, with what each asks for; the trace is gone through again where it has too few."""
    cpus = len(describe_machine(machine).online)
    trace = make_trace(list(TRACES)[seed % len(TRACES)], seed, cpus).pods
    pods = []
    for number in range(PODS):
        drawn = trace[number % len(trace)]
        name = "%s-%d-%d" % (node, number, seed)
        cpu = "%dm" % drawn.cpu
        made = pod_of(name, node, cpu, ("StatefulSet", drawn.name), "2026-11-01T00:00:%02dZ" % number)
        if not drawn.exclusive:
            made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        pods.append(made)
    return pods


def cluster_of(are_alike: bool) -> Cluster:
    """Return nodes of one shape have pods that are alike, or each node its own."""
    wanted = {"cpu_manager_policy": "static", "cpu_manager_policy_options": {"full-pcpus-only": "true"}}
    reserved = {"reserved_system_cpus": "0"}
    hosts, pods = {}, []
    for number in range(NODES):
        name, machine = "n%04d" % number, MACHINES[number % len(MACHINES)]
        hosts[name] = (name, plan_of({**wanted, **reserved}, reserved, machine))
        pods += pods_of(name, machine, number % len(MACHINES) if are_alike else number)
    return Cluster(hosts, [node_of(name) for name in hosts], pods)


def plans_that_tell(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return the plans of the same nodes, each of which tells of its own pods, as admission_info does."""
    own: dict[str, list[dict[str, Any]]] = {host: [] for host in cluster.hosts}
    pod: Any
    for pod in cluster.pods:
        resources = pod["spec"]["containers"][0]["resources"]
        quality = "Guaranteed" if "limits" in resources else "Burstable"
        own[pod["spec"]["nodeName"]].append({**pod, "status": {"qosClass": quality, "phase": "Running"}})
    return {
        host: {**plan, "beside_cpus": {**plan["beside_cpus"], "pods": own[host], "left_out": [], "unknown": []}}
        for host, (_node, plan) in cluster.hosts.items()
    }


def look(are_alike: bool, nodes_tell: bool = False) -> dict[str, float]:
    """Return seconds of the processor, bytes at most, and how many answers were computed."""
    cluster = cluster_of(are_alike)
    if nodes_tell:
        plans = plans_that_tell(cluster)
        start = time.process_time()
        cluster = cluster_of_nodes(plans, Remarks())
        taken = time.process_time() - start
    else:
        taken = 0.0
    replays = Replays(Kinds())
    start = time.process_time()
    found = impact_of([cluster], replays=replays)
    seconds = taken + time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"seconds": seconds, "memory": memory, "computed": replays.computed, "workloads": len(found["workloads"])}


def order() -> dict[str, float]:
    """Return seconds of the processor for the order of nodes, once their pods are counted, and how many batches it
    has."""
    nodes = []
    for number in range(SCHEDULED):
        budgets = {"b%d" % (number % BUDGETS): 1, "all": 1}
        nodes.append(ChangingNode("n%05d" % number, MACHINES[number % len(MACHINES)], 30000, 5000, PODS, budgets))
    allowed = {**{"b%d" % number: 1 for number in range(BUDGETS)}, "all": 100}
    start = time.process_time()
    found = in_batches(nodes, allowed, 5000 * SCHEDULED)
    return {"seconds": time.process_time() - start, "batches": len(found.batches)}


def measure() -> bool:
    """Print the times and the memory; True when both are within their limits."""
    text = "The impact on %d nodes of %d shapes, %d pods each (limits %d s, %d MiB):"
    print(text % (NODES, len(MACHINES), PODS, MOST_SECONDS, MOST_BYTES >> 20))
    kept = True
    looks = {
        "pods of a shape alike": (True, False),
        "pods of a shape different": (False, False),
        "told by the nodes": (False, True),
    }
    for what, how in looks.items():
        # In a process of its own, so that its memory is that of this look, and of what is loaded here.
        with ProcessPoolExecutor(1, get_context("fork")) as pool:
            found = pool.submit(look, *how).result()
        kept = kept and found["seconds"] <= MOST_SECONDS and found["memory"] <= MOST_BYTES
        text = "  %-25s  %5.1f s, %4d MiB, %d answers computed, %d workloads"
        print(text % (what, found["seconds"], int(found["memory"]) >> 20, found["computed"], found["workloads"]))
    found = order()
    text = "The order of %d nodes (limit %d s): %.1f s, %d batches"
    print(text % (SCHEDULED, MOST_SCHEDULE_SECONDS, found["seconds"], found["batches"]))
    return kept and found["seconds"] <= MOST_SCHEDULE_SECONDS
