#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers cases on standard input, one JSON object a line, through the project's public code.

answer.py topology    {"root": DIR} -> online, cores, packages, numa_nodes, l3
answer.py reserve     {"root": DIR, "count": N, "strategy": "packed"|"spread", "smt": "keep"|"off"}
                      -> {"reserved": LIST} or {"error": TEXT}
answer.py take        {"cpus": [[id, core, socket, numa, uncore], ...], and a take}
                      -> {"cpuset": LIST} or {"error": TEXT}
answer.py policy      {"cpus": as above, "version": VERSION, and a life} -> what the kubelet says and does
answer.py podlevel    as policy, for pods that have resources as a whole; or as checkpoint, with "feature_gates"
answer.py checkpoint  {"content": TEXT, "policy": NAME, "version": VERSION}
                      -> default, assignments, file_after; or {"error": TEXT, "file_after": TEXT}
answer.py start       {"case": {"config": TEXT, "machine": SHAPE, "flags": ..., ...}, "version": VERSION}
                      -> {"starts": true|false|null, "text": TEXT}; vectors/README.md has the members of a case
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable, Mapping

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import collection_path

collection_path.register()

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import POD_LEVEL_MANAGERS, Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.reservation_request import reserve
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import (
    EndlessDistributionError,
    TakeError,
    take_distributed,
    take_packed,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import restore_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import assignments_text
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import restore_error
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import CheckpointError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs
from ansible_collections.kubenode.cpu_manager.tests.conformance.policy_case import CHECKPOINT, PolicyCase
from ansible_collections.kubenode.cpu_manager.tests.conformance.start_case import StartCase


def describe(topology: Topology) -> dict[str, Any]:
    """Return a machine as hwloc would tell it: a NUMA node without CPUs has those that are nearest to it."""
    cpus = {node.id: node.cpus or topology.nearest_cpus.get(node.id, CPUSet()) for node in topology.numa_nodes}
    return {
        "online": str(topology.online),
        "cores": [str(core.cpus) for core in topology.cores],
        "packages": [str(socket.cpus) for socket in topology.sockets],
        "numa_nodes": {str(node): str(cpus[node]) for node in cpus},
        "l3": [str(cache.cpus) for cache in topology.caches],
    }


def answer_topology(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the machine's /sys tells."""
    return describe(read_sysfs(Tree(case["root"])))


def answer_reserve(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the planner's decision."""
    tree = Tree(case["root"])
    return {"reserved": str(reserve(tree, read_sysfs(tree), case).reserved)}


def answer_take(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return one take of CPUs, as the static policy asks for it."""
    topology, available = CPUTopology(case["cpus"]), CPUSet.parse(case["available"])
    try:
        if case["mode"] == "distributed":
            taken = take_distributed(topology, available, case["n"], case["group_size"], case["strategy"])
        else:
            taken = take_packed(topology, available, case["n"], case["strategy"], case["prefer_align_uncore"])
    except (TakeError, EndlessDistributionError) as error:
        return {"error": str(error)}
    return {"cpuset": str(taken)}


def answer_checkpoint(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a kubelet makes of a file at its start, and of which it leaves the bytes as they are."""
    content = case["content"].encode("utf-8")
    try:
        minor = minor_version(case["version"])
        pod_level = Gates(case.get("feature_gates", {}), minor).enabled(POD_LEVEL_MANAGERS)
        state = restore_state(content, case["policy"], minor, pod_level)
    except CheckpointError as error:
        return {"error": restore_error(error, CHECKPOINT), "file_after": case["content"]}
    answer = {"default": str(state.default_cpu_set), "file_after": case["content"]}
    assignments = assignments_text(state.assignments)
    pods = {uid: str(cpus) for uid, cpus in state.pod_assignments.items()}
    more: dict[str, Any] = {"assignments": assignments, "pods": pods}
    return {**answer, **{name: found for name, found in more.items() if found}}


def answer_policy(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the life of a kubelet with the static policy: its start, then pods, removals and restarts."""
    return PolicyCase(case).answer()


def answer_podlevel(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checkpoint, and as it is written again, or the life of a kubelet with limits of CPU as well: of pods
    that have resources as a whole."""
    if "content" not in case:
        return PolicyCase(case, with_limits=True).answer()
    answer = answer_checkpoint(case)
    if "error" in answer:
        return answer
    minor = minor_version(case["version"])
    pod_level = Gates(case["feature_gates"], minor).enabled(POD_LEVEL_MANAGERS)
    state = restore_state(case["content"].encode("utf-8"), case["policy"], minor, pod_level)
    written = write_checkpoint(case["policy"], state, format_for(minor, pod_level))
    return {**answer, "file_written": written.decode("utf-8")}


def answer_start(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether a kubelet starts with the files, flags and machine of a case, and what it says."""
    return StartCase(line["case"], line["version"]).answer()


KINDS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "topology": answer_topology,
    "reserve": answer_reserve,
    "take": answer_take,
    "policy": answer_policy,
    "podlevel": answer_podlevel,
    "checkpoint": answer_checkpoint,
    "start": answer_start,
}


def answer(kind: str, case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to one case; what cannot be answered is {"error": TEXT}."""
    try:
        return KINDS[kind](case)
    except (InputError, NodeError, RefusedError) as error:
        return {"error": str(error)}


def main() -> int:
    """Answer line by line, each as soon as it is asked."""
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        print("usage: answer.py %s" % "|".join(KINDS), file=sys.stderr)
        return 2
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(answer(sys.argv[1], json.loads(line))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
