# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all modules share that are about a node with a kubelet: their arguments, and the node that these describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from .ansible_module import Arguments
from .tree import SAID, Tree

if TYPE_CHECKING:
    from .node.node import Node

KUBELET = Arguments(
    {
        "config_path": {"type": "path"},
        "kubelet_root": {"type": "path"},
        "kubelet_version": {"type": "str"},
        "command_line": {"type": "list", "elements": "str"},
    }
)

HIDE_NAMES = Arguments({"hide_names": {"type": "bool", "default": False}})


def node_of(tree: Tree, parameters: Mapping[str, Any]) -> Node:
    """The node that the arguments KUBELET describe, and HIDE_NAMES where the module takes it."""
    # Imported here: some modules do without the node where nothing is to be read.
    from .node.node import Node
    from .versions import minor_version

    version = parameters["kubelet_version"]
    kind: type[Node] = Node
    if not tree.live and tree.exists(SAID):
        # Imported here: only a node that was saved by node_save has it.
        from .node.saved_node import SavedNode

        kind = SavedNode
    node = kind(
        tree,
        parameters["config_path"],
        parameters["kubelet_root"],
        minor_version(version) if version else None,
        parameters["command_line"] or (),
    )
    if not parameters.get("hide_names"):
        return node
    # Imported here: every import costs time on every node.
    from .node.hidden_names import with_hidden_names

    return with_hidden_names(node)
