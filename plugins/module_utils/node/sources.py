# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what is needed to decide where a kubelet's settings are to be written."""

from __future__ import annotations

from ..kubelet.installed.distributions import DROP_IN, DROP_IN_NAME, FLAGS, KUBELET_ARG_NAME, PATCH_NAME
from ..kubelet.installed.given_flags import kubelet_arg_paths
from ..kubelet.placement import Sources
from ..tree import LARGEST_OF_KUBELET
from .node import Node


def read_sources(node: Node, patches_dir: str | None = None) -> Sources:
    """What the kubelet takes its settings from, to be written.

    patches_dir: of kubeadm, the usual one where it is None; an empty text for none. Raises NodeError where there is no
    kubelet, or a file cannot be read.
    """
    node.needed_configuration()
    installation, tree = node.installation, node.tree
    if installation is None:
        raise AssertionError("a configuration without an installation")
    distribution = installation.distribution
    flag_file = distribution.flag_files[0] if distribution.place in (DROP_IN, FLAGS) else None
    flag_paths = []
    if flag_file is not None:
        flag_paths = kubelet_arg_paths(tree, flag_file.path) if distribution.has_kubelet_args else [flag_file.path]
    patch_path = None
    patches_dir = distribution.patches_dir if patches_dir is None else patches_dir
    if distribution.patches_dir is not None and patches_dir and tree.exists(patches_dir):
        patch_path = _inside(patches_dir, PATCH_NAME)
    return Sources(
        installation,
        node.file(),
        node.drop_ins(),
        [(tree.path(path), tree.read_text(path, LARGEST_OF_KUBELET)) for path in flag_paths],
        None if installation.config_dir is None else tree.path(_inside(installation.config_dir, DROP_IN_NAME)),
        tree.path(_inside(flag_file.path + ".d", KUBELET_ARG_NAME))
        if flag_file and distribution.has_kubelet_args
        else None,
        None if patch_path is None else tree.path(patch_path),
        node.parsed(patch_path) if patch_path is not None and tree.exists(patch_path) else None,
    )


def _inside(directory: str, name: str) -> str:
    return "%s/%s" % (directory.rstrip("/"), name)
