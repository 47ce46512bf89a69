# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan was made for, and what follows from its prediction, so that who carries it out predicts nothing again.

Both go through the controller to the call that changes the node. It compares the digests with the node as it is then.
"""

from __future__ import annotations

import hashlib
from typing import Any, Iterable, Mapping

from .._base.errors import MALFORMED, CPUManagerError
from .._base.journal_file import LAST
from .._kubelet.start.predict import Prediction
from .._node.node import Node
from .._node.start_check import Managers, given_of, memory_config
from ..cpuset import CPUSet
from ..state.acceptance import CPUManagerConfig
from ..state.memory_manager import MemoryConfig
from .rollout_journal import is_state

# The states of the kubelet's managers: they change as containers come and go.
STATES = "states"


def judged_of(node: Node, files: Iterable[str]) -> dict[str, str]:
    """Return {what: its digest}, of all that a plan depends on; empty where some of it cannot be read.

    files: those that the plan touches, as paths on the node.
    """
    tree, topology = node.tree, node.topology
    try:
        found = {
            "kubelet": (given_of(node), node.version),
            "machine": [getattr(topology, name) for name in ("online", "offline", "cores", "sockets", "numa_nodes")],
            "files": [(path, tree.content(path)) for path in (*files, LAST) if not is_state(path)],
            STATES: [(path, tree.content(path)) for path in node.state_paths],
        }
    except CPUManagerError:
        return {}
    return {name: hashlib.sha256(repr(value).encode("utf-8")).hexdigest() for name, value in found.items()}


def managers_dict(node: Node, prediction: Prediction, cpu: CPUManagerConfig | None) -> dict[str, Any] | None:
    """Return the managers as plain data; None where it is not certain with what they start."""
    if cpu is None or prediction.checked is None:
        return None
    memory = memory_config(node, prediction.checked)
    sets = {name: str(value) for name, value in cpu._asdict().items() if isinstance(value, CPUSet)}
    return {"cpu": {**cpu._asdict(), **sets}, "memory": None if memory is None else memory._asdict()}


def managers_of(data: Any) -> Managers | None:
    """Return the managers that a plan has; None where it has none."""
    try:
        cpu, memory = data["cpu"], data["memory"]
        sets = {name: CPUSet.parse(cpu[name]) for name in ("all_cpus", "reserved")}
        config = CPUManagerConfig(**{**cpu, **sets})
        if memory is None:
            return Managers(config, None)
        amounts = {name: _amounts(memory[name]) for name in ("reserved", "machine")}
        return Managers(config, MemoryConfig(**{**memory, **amounts}))
    except MALFORMED:
        return None


def _amounts(found: Mapping[str, Mapping[str, int]] | None) -> dict[int, dict[str, int]] | None:
    """Return {NUMA node: {kind of memory: bytes}}; JSON makes texts of the numbers of nodes."""
    return None if found is None else {int(node): dict(kinds) for node, kinds in found.items()}
