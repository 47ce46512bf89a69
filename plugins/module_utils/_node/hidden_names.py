# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node whose pods and containers have hashes in place of their names, for a report that others may read."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from .._base.arguments import Arguments
from .._base.tree import OverlaidTree, Tree
from .._containers.crictl import DIRECTORY, hashed, logged_containers
from .module import node_of
from .node import Node

HIDE_NAMES = Arguments({"hide_names": {"type": "bool", "default": False}})


def shown_node_of(tree: Tree, parameters: Mapping[str, Any]) -> Node:
    """Return the node that the arguments KUBELET and HIDE_NAMES describe. Raises NodeError."""
    node = node_of(tree, parameters)
    return with_hidden_names(node) if parameters["hide_names"] else node


def with_hidden_names(node: Node) -> Node:
    """Return the same node; everything that is read of it has the hashes. Raises NodeError.

    A state in which names cannot be told from the rest is damaged, and no answer has names of it.
    """
    # Imported here: names are seldom hidden.
    from .._kubelet.redaction import UnsafeError, checkpoint_without_names, memory_state_without_names

    contents: dict[str, bytes | None] = {}
    states: tuple[tuple[str, bytes | None, Callable[[bytes], bytes]], ...] = (
        (node.checkpoint_path, node.checkpoint(), checkpoint_without_names),
        (node.memory_state_path, node.memory_state(), memory_state_without_names),
    )
    for path, content, without_names in states:
        if content is not None:
            try:
                contents[path] = without_names(content)
            except UnsafeError:
                continue
    contents.update({"%s/%s" % (DIRECTORY, name): None for name in node.tree.names(DIRECTORY)})
    for container_id, logged in logged_containers(node.tree).items():
        namespace, pod = map(hashed, logged.pod_name.split("/"))
        contents["%s/%s_%s_%s-%s.log" % (DIRECTORY, pod, namespace, hashed(logged.name), container_id)] = b""
    hidden = node.on(OverlaidTree(node.tree, contents))
    hidden.hides_names = True
    return hidden
