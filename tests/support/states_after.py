# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The states of a kubelet's managers after a start that comes up, to compare with what real kubelets wrote."""

from __future__ import annotations

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    memory_config,
    predict_start,
    removed_states,
    stored_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    CPUManagerConfig,
    check_checkpoint,
    first_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    STATIC,
    MemoryConfig,
    MemoryState,
    first_machine,
    restore_memory,
    write_memory,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint


def states_after(node: Node) -> dict[str, bytes | None]:
    """Return {path: content} of the managers' states after a start. Raises AssertionError for one that fails."""
    checked = predict_start(node).checked
    config = None if checked is None else checked.cpu_manager
    removed = removed_states(node)
    contents = [None if path in removed else stored_state(node.tree, path) for path in node.state_paths]
    if checked is None or config is None or any(isinstance(content, Exception) for content in contents):
        raise AssertionError("a kubelet that does not start")
    checkpoint, memory_state = (content if isinstance(content, bytes) else None for content in contents)
    memory = memory_config(node, checked)
    return {
        node.checkpoint_path: checkpoint_after(checkpoint, config),
        node.memory_state_path: None if memory is None else memory_state_after(memory_state, memory),
    }


def checkpoint_after(content: bytes | None, config: CPUManagerConfig) -> bytes:
    """Return what is in the file after a start with `content`, which the kubelet accepts, on a node without pods.

    content: None, where there was no file.
    """
    # Of containers that are not there, the CPUs go back.
    if content is not None and not any(check_checkpoint(content, config).assignments.values()):
        return content
    return write_checkpoint(config.policy_name, first_state(config), format_for(config.minor, config.pod_level))


def memory_state_after(content: bytes | None, config: MemoryConfig) -> bytes | None:
    """Return what is in the file after a start with `content`, which the kubelet accepts; None where that is not known.

    None as `content`: there was no file.
    """
    state = MemoryState("", {}, {}, {}) if content is None else restore_memory(content, config)
    if content is not None and (config.policy != STATIC or state.machine):
        return content
    machine: dict[int, object] = {}
    if config.policy == STATIC:
        if config.machine is None:
            return None
        machine = first_machine(config.machine, config.reserved)
    return write_memory(config, machine, state.pod_entries if config.pod_level else {})
