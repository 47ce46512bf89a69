# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods that a kubelet runs by itself, from the files of a directory."""

from __future__ import annotations

import hashlib
import os

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree

from ..api import Object


def static_pods(tree: Tree, directory: str, node: str) -> list[Object]:
    """Return the pods of a staticPodPath, with the names and UIDs that a node's kubelet gives them."""
    if not directory or not tree.exists(directory):
        return []
    pods = []
    for name in sorted(os.listdir(tree.path(directory))):
        text = tree.read_text("%s/%s" % (directory, name))
        pod: Object = yaml.safe_load(text)
        metadata = pod["metadata"]
        metadata["name"] += "-" + node
        metadata.setdefault("namespace", "default")
        metadata["uid"] = hashlib.md5((node + text).encode("utf-8"), usedforsecurity=False).hexdigest()
        pods.append(pod)
    return pods
