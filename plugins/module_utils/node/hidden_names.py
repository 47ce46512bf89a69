# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node whose pods and containers have hashes in place of their names, for a report that others may read."""

from __future__ import annotations

from typing import Callable

from ..tree import OverlaidTree
from ..workload.logs import DIRECTORY, logged_containers
from .node import Node
from .pod_names import checkpoint_without_names, hashed, memory_state_without_names
from .redaction import UnsafeError


def with_hidden_names(node: Node) -> Node:
    """The same node; everything that is read of it has the hashes. Raises NodeError.

    A state in which names cannot be told from the rest is damaged, and no answer has names of it.
    """
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
