# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What pinning is worth on this machine: the p99 of a victim alone and beside an aggressor, by isolation_benchmark."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.result import NO
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.run import node_benchmark
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone, why_not

# The module's defaults: ten runs of a second for each placement.
GIVEN: Mapping[str, Any] = {
    "experiments": ["stand-alone", "aggressor"],
    "workloads": {},
    "stress_ng": False,
    "runs": 10,
    "seed": 1,
    "unit_milliseconds": 2,
    "units": 500,
    "cpus": 1,
    "seconds": 900,
    "allow_pods": True,
}


def measure() -> bool:
    """Print the latencies and what they show; True unless they show that pinning does not keep what it promises."""
    reason = why_not()
    if reason:
        print("The worth of pinning: not measured, %s" % reason)
        return True
    tree = Tree("/")
    reserved = str(Hierarchy(tree).online_cpus().first())
    with alone():
        found: dict[str, Any] = node_benchmark(Node(tree), {**GIVEN, "reserved_system_cpus": reserved}, plan_only=False)
    print("The victim's p99 of %d runs, ms: median (interval)" % GIVEN["runs"])
    for row in found["summary"]:
        if row["workload"] == "victim":
            p99 = row["p99"]
            values = tuple(1000 * p99[name] for name in ("median", "low", "high"))
            print("  %-12s %-16s %8.2f (%.2f to %.2f)" % (row["experiment"], row["placement"], *values))
    for answer in found["verdict"]:
        print("  %s: %s. %s" % (answer["question"], answer["answer"], answer["text"]))
    return all(answer["answer"] != NO for answer in found["verdict"])
