# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node with the static policy, and what is said of the start of its kubelet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    memory_config,
    predict_configuration,
    predict_start,
    predicted_starts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

from .kubelets import HEADER
from .layered import write
from .tree import write_machine
from .troubles import STATIC

HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
CONFIG = "var/lib/kubelet/config.yaml"


def state(default: str, policy: str = "static", **containers: str) -> bytes:
    assignments = {"uid-" + name: {name: CPUSet.parse(text)} for name, text in containers.items()}
    return write_checkpoint(policy, State(CPUSet.parse(default), assignments))


def write_static(root: Path) -> Path:
    """Write the node."""
    write_machine(root, "1s4c2t")
    write(root, CONFIG, HEADER + STATIC)
    return root


def node(root: Path, minor: int | None = None) -> Node:
    return Node(Tree(str(root)), minor=minor)


def findings_of(root: Path, wanted: Mapping[str, Any]) -> Sequence[Finding]:
    return predict_start(node(root), wanted).findings


def drift_of(root: Path, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what drift_info says of a node with the kubelet 1.33."""
    this_node = node(root, 33)
    configuration = this_node.needed_configuration()
    starts = predicted_starts(this_node, wanted, configuration)
    checkpoint = this_node.checkpoint()
    return report(this_node.topology, this_node.machine(), configuration, checkpoint, wanted, starts=starts)


def first_memory(root: Path) -> bytes:
    """Return what a kubelet of this node writes first."""
    this_node = node(root)
    checked = predict_configuration(this_node).checked
    assert checked is not None
    config = memory_config(this_node, checked)
    assert config is not None
    return memory_state_after(None, config) or b""
