# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A benchmark of a node: what was asked for is checked against the node, planned, and run."""

from __future__ import annotations

import os
import platform
import random
import shutil
from typing import Any, Mapping, Sequence

from .._base.errors import PERMISSION, InputError, NodeError, RefusedError, noted, option
from .._base.quantity import counted
from .._cgroup.hierarchy import Hierarchy
from .._cgroup.kubepods import Kubepods
from .._node.node import Node, cgroup_root_of
from ..cpuset import CPUSet
from .benchmark_cgroups import BenchmarkCgroups
from .benchmark_plan import (
    BenchmarkRoom,
    Case,
    available_memory,
    cases_of,
    expected_seconds,
    machine_of,
    room_of,
    walked_memory,
)
from .result import summarized
from .run import Bench, BenchmarkTerms, too_long
from .worker import MEMORY
from .workloads import Workload, workloads_of

SCHEMA_VERSION = "1.0"

# A load of so much for each CPU, over the last minute, says that others work on the node.
_BUSY = 0.5

# {option: (the least, the most)}
_RANGES = {
    "runs": (1, 1000),
    "units": (1, 1000000),
    "unit_milliseconds": (0.1, 10000),
    "cpus": (1, 10000),
    "seconds": (1, 86400),
}


def node_benchmark(node: Node, given: Mapping[str, Any], plan_only: bool) -> dict[str, object]:
    """The result of the module isolation_benchmark, which documents it. given: its arguments.

    Raises InputError, NodeError and RefusedError; before anything is started for all that can be known before.
    """
    _check_ranges(given)
    workloads = workloads_of(given["workloads"], given["stress_ng"])
    reserved = given["reserved_system_cpus"]
    room, notes = room_of(node, None if reserved is None else CPUSet.parse(reserved))
    cases, left_out = cases_of(room, given["experiments"], given["cpus"])
    if not cases:
        raise InputError("no experiment is wanted, or none has room on this node", where=option("experiments"))
    memory = walked_memory(node.tree, room.topology.online.first())
    terms = BenchmarkTerms(
        given["runs"],
        random.SystemRandom().randrange(1 << 31) if given["seed"] is None else given["seed"],
        given["unit_milliseconds"] / 1000,
        given["units"],
        memory,
        given["seconds"],
    )
    expected = expected_seconds(cases, terms.runs, terms.unit * terms.units)
    if expected > terms.seconds:
        raise too_long(expected, terms.seconds)
    result: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "machine": machine_of(node),
        "seed": terms.seed,
        "expected_seconds": round(expected, 1),
        "settings": _settings(room, terms, given, workloads),
        "cases": [case.to_dict() for case in cases],
        "left_out": left_out,
    }
    if node.tree.live:
        cgroups = BenchmarkCgroups(node.tree)
        notes += _checked_node(node, given["allow_pods"], cases, workloads, memory)
        if not plan_only:
            found = Bench(cgroups, room, workloads, terms).run(cases)
            if found.pop("found_leftovers"):
                notes.append("processes or cgroups of a benchmark that was killed were there, and were removed")
            result.update(found)
            result.update(summarized(result["cases"], result["rows"]))
    elif not plan_only:
        raise InputError("a saved node can run nothing", where=option("root"), remedy="run it on the node itself")
    return {**result, **noted(notes)}


def _check_ranges(given: Mapping[str, Any]) -> None:
    for name, (least, most) in _RANGES.items():
        if not least <= given[name] <= most:
            raise InputError("%s is not from %s to %s" % (given[name], least, most), where=option(name))


def _settings(
    room: BenchmarkRoom, terms: BenchmarkTerms, given: Mapping[str, object], workloads: Mapping[str, Workload]
) -> dict[str, object]:
    return {
        "runs": terms.runs,
        "units": terms.units,
        "unit_milliseconds": given["unit_milliseconds"],
        "cpus": given["cpus"],
        "walked_memory": terms.memory,
        "reserved": str(room.reserved),
        "pool": str(room.pool),
        "python": platform.python_version(),
        "workloads": {role: list(workload.command) or workload.kind for role, workload in workloads.items()},
    }


def _checked_node(
    node: Node, allow_pods: bool, cases: Sequence[Case], workloads: Mapping[str, Workload], memory: int
) -> list[str]:
    """Notes. Raises what is against a benchmark on this node now."""
    if os.geteuid():
        raise NodeError("only root can make cgroups", "", "run it as root (become: true)", PERMISSION)
    notes = []
    pods = Kubepods(Hierarchy(node.tree), cgroup_root_of(node.configuration())).pods()
    if pods and not allow_pods:
        raise RefusedError(
            "%s on this node: a benchmark takes CPU time from them, and they disturb it"
            % ("1 pod runs" if len(pods) == 1 else "%d pods run" % len(pods)),
            remedy="drain the node first, and set %s for what is left, such as the pods of DaemonSets"
            % option("allow_pods"),
        )
    if pods:
        notes.append("%s ran on this node, and may have used the CPUs that were measured" % counted(len(pods), "pod"))
    load = float((node.tree.read_value("/proc/loadavg") or "0").partition(" ")[0])
    if load > len(node.topology.online) * _BUSY:
        notes.append(
            "the node was busy before: a load of %.2f on %s; what else ran has disturbed what was measured"
            % (load, counted(len(node.topology.online), "CPU"))
        )
    roles = {part.role for case in cases for part in case.parts}
    for role in sorted(roles):
        workload = workloads[role]
        if workload.is_own and shutil.which(workload.command[0]) is None:
            raise workload.wrong("%s is no program on the node" % workload.command[0])
    walking = max(sum(part.processes for part in case.parts if workloads[part.role].kind == MEMORY) for case in cases)
    available = available_memory(node.tree)
    # Another half for the node.
    if available is not None and walking * memory > available // 2:
        raise NodeError(
            "%d MiB are needed for the workload %s, and %d MiB are available"
            % (walking * memory >> 20, MEMORY, available >> 20),
            where="/proc/meminfo",
            remedy="free some, want fewer CPUs, or leave out the experiment co-located",
        )
    return notes
