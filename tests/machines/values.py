# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that many tests use: CPU sets of a text, the shapes whose CPUs they know by heart, a kubelet's defaults."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3, Format4
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

cpus = CPUSet.parse

# What is numbered first threads first:
SMT = "1s4c2t"  # cores 0,4 1,5 2,6 3,7
TWO = "2s1n2c2t"  # NUMA node and socket 0: cores 0,4 1,5; 1: cores 2,6 3,7
FOUR = "2s2n2c2t"  # NUMA node N: cores 2N,2N+8 2N+1,2N+9; two of them in a socket
CACHES = "1s2l2c2t"  # uncore cache 0: cores 0,4 1,5; 1: cores 2,6 3,7


def defaults_of_settings() -> dict[str, Any]:
    """Return all settings of the CPU manager, the topology manager and the memory manager as a kubelet has them by
    itself."""
    return {
        "cpu_manager_policy": "none",
        "cpu_manager_policy_options": {},
        "cpu_manager_reconcile_period": "10s",
        "topology_manager_policy": "none",
        "topology_manager_scope": "container",
        "topology_manager_policy_options": {},
        "memory_manager_policy": "None",
        "cpu_cfs_quota": True,
        "cpu_cfs_quota_period": "100ms",
        "reserved_system_cpus": "",
        "kube_reserved_cpu": "0",
        "system_reserved_cpu": "0",
        "kube_reserved_memory": "0",
        "system_reserved_memory": "0",
        "reserved_memory": [],
    }


def closed_form(state: State) -> bytes:
    """Return a form of format 4 that was not merged: the members of format 3, with checksum 0, beside the text."""
    data = json.loads(write_checkpoint("static", state, Format4))
    outer = json.loads(write_checkpoint("static", state, Format3))
    return json.dumps({**outer, "checksum": 0, "data": data["data"], "dataChecksum": data["dataChecksum"]}).encode()


def reverted_form(state: State) -> bytes:
    """Return a form of format 4 that was reverted: the text alone, and its checksum."""
    data = json.loads(write_checkpoint("static", state, Format4))
    return json.dumps({"data": data["data"], "checksum": data["dataChecksum"]}).encode()
