# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a node one on which the policy dynamic of this collection gives CPUs out."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import PROMISE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.exclusive import Promise
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicState, Held
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

CONFIG, CHECKPOINT = "var/lib/kubelet/config.yaml", "var/lib/kubelet/cpu_manager_state"


def take_over(root: Path, given: dict[tuple[str, str], str], shared: str = "0", requested: int | None = None) -> Path:
    """Let the kubelet of this node have the policy none, and give these containers their CPUs in its place.

    given: {(pod UID, container): CPUs}. requested: how many of these each requests; None for all. Gives the file.
    """
    config = root / CONFIG
    if config.exists():
        config.write_text(config.read_text().replace("cpuManagerPolicy: static", "cpuManagerPolicy: none"))
    (root / CHECKPOINT).parent.mkdir(parents=True, exist_ok=True)
    (root / CHECKPOINT).write_bytes(write_checkpoint("none", State(CPUSet(), {})))
    return promise(root, given, shared, requested)


def promise(root: Path, given: dict[tuple[str, str], str], shared: str = "0", requested: int | None = None) -> Path:
    """Write the file alone, whoever gives CPUs out."""
    held = {}
    for key, text in given.items():
        cpus = CPUSet.parse(text)
        held[key] = Held(CPUSet(list(cpus)[:requested]).mask, cpus.mask)
    file = root / PROMISE[1:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(Promise("dynamic", DynamicState(CPUSet.parse(shared).mask, held)).content())
    return file
