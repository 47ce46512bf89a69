# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes with a whole kubelet: what is planned for their files, what is written, and what is found then."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.placement import PlacedFile, plan_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import (
    found_settings,
    plan_settings,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import read_sources
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import Kubelet, write_kubelet


def write_node(root: Path, kubelet: Kubelet) -> Path:
    root.mkdir()
    write_kubelet(root, kubelet)
    return root


def planned(root: Path, version: str, wanted: Mapping[str, Any], **arguments: Any) -> list[PlacedFile]:
    node = Node(Tree(str(root)), minor=minor_version(version), **arguments)
    plan = plan_settings(wanted, node.needed_configuration(), node.minor)
    return plan_files(read_sources(node), plan, wanted, node.minor)


def apply(root: Path, version: str, wanted: Mapping[str, Any], **arguments: Any) -> list[str]:
    """Write what is planned; give the paths as they are on the node."""
    files = planned(root, version, wanted, **arguments)
    for file in files:
        path = Path(file.path)
        assert (path.read_text(encoding="utf-8") if path.exists() else None) == file.before
        path.parent.mkdir(exist_ok=True)
        path.write_text(file.after, encoding="utf-8")
    return [file.path[len(str(root)) :] for file in files]


def found(root: Path, version: str) -> dict[str, Any]:
    return found_settings(Node(Tree(str(root)), minor=minor_version(version)).needed_configuration())


def texts(root: Path) -> dict[str, str]:
    return {str(path): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*")) if path.is_file()}
