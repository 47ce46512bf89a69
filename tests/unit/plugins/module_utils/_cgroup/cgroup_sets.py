# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trees of cgroups as the tests of plans write them: the machine, sets of paths, wishes, and the steps of a plan."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writes import WritePlan
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

ONLINE = CPUSet.parse("0-7")
NODES = CPUSet.parse("0-1")
NONE = CPUSet()

PATHS = ("a", "a/b", "a/b/c", "a/b/d", "a/e", "f", "f/g", "f/g/h", "i")


def steps(plan: WritePlan) -> list[tuple[str, str]]:
    return [(write.path, str(write.new)) for write in plan.writes]


def sets_of(**sets: str) -> dict[str, CPUSet]:
    return {"": ONLINE, **{path.replace("_", "/"): cpus(text) for path, text in sets.items()}}


def wants(**sets: str) -> dict[str, CPUSet]:
    return {path.replace("_", "/"): cpus(text) for path, text in sets.items()}
