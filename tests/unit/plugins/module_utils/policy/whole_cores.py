# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option that gives whole cores alone, and the whole cores among some CPUs."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology

WHOLE_CORES = StaticOptions(full_pcpus_only=True)


def whole_cores(topology: CPUTopology, cpus: int) -> int:
    return sum(core for core in topology.cores.values() if not core & ~cpus)
