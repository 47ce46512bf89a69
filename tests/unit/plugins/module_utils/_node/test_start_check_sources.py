# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/start_check.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.placement import Sources
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import read_sources
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER, KUBELETS, write_kubelet

CONFIG = "/var/lib/kubelet/config.yaml"
PATCHES = "/etc/kubernetes/patches"
PATCH = "kubeletconfiguration90-kubenode-cpu-manager+merge.yaml"
K3S = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d"
EKS = "/etc/kubernetes/kubelet/config.json"

# Of each kubelet what there is of: the file, the drop-ins, the files with flags; our drop-in, our file of arguments.
PLACES: dict[str, tuple[Any, ...]] = {
    "kubeadm": (CONFIG, [], [], None, None),
    "kubeadm-drop-ins": (
        CONFIG,
        ["/etc/kubernetes/kubelet.conf.d/10-cluster.conf"],
        [],
        "/etc/kubernetes/kubelet.conf.d/50-kubenode-cpu-manager.conf",
        None,
    ),
    "kubespray": ("/etc/kubernetes/kubelet-config.yaml", [], [], None, None),
    "k3s": (
        None,
        [K3S + "/00-k3s-defaults.conf"],
        ["/etc/rancher/k3s/config.yaml"],
        K3S + "/50-kubenode-cpu-manager.conf",
        "/etc/rancher/k3s/config.yaml.d/90-kubenode-cpu-manager.yaml",
    ),
    "k3s-rancher": (
        None,
        [],
        ["/etc/rancher/k3s/config.yaml.d/50-rancher.yaml"],
        None,
        "/etc/rancher/k3s/config.yaml.d/90-kubenode-cpu-manager.yaml",
    ),
    "microk8s": (None, [], ["/var/snap/microk8s/current/args/kubelet"], None, None),
    "eks-drop-ins": (EKS, [EKS + ".d/40-nodeadm.conf"], [], EKS + ".d/50-kubenode-cpu-manager.conf", None),
}


def read(root: Path, patches_dir: str | None = None) -> Sources:
    return read_sources(Node(Tree(str(root))), patches_dir)


@pytest.mark.parametrize("name", PLACES)
def test_where_settings_come_from(tmp_path: Path, name: str) -> None:
    write_kubelet(tmp_path, KUBELETS[name])
    found = read(tmp_path)

    def here(path: str | None) -> str | None:
        return None if path is None else "%s%s" % (tmp_path, path)

    file, drop_ins, flag_files, drop_in_path, kubelet_arg_path = PLACES[name]
    assert (None if found.file is None else found.file.source) == here(file)
    assert [drop_in.source for drop_in in found.drop_ins] == [here(path) for path in drop_ins]
    texts = [(here(path), KUBELETS[name].files[path]) for path in flag_files]
    assert list(found.flag_files) == texts
    assert (found.drop_in_path, found.kubelet_arg_path) == (here(drop_in_path), here(kubelet_arg_path))
    assert (found.patch_path, found.patch) == (None, None)


@pytest.mark.parametrize(
    ("given", "directory"),
    [(None, PATCHES), ("/opt/patches/", "/opt/patches"), ("", None), ("/opt/missing", None)],
)
def test_the_patches_of_kubeadm(tmp_path: Path, given: str | None, directory: str | None) -> None:
    write_kubelet(tmp_path, KUBELETS["kubeadm"])
    assert read(tmp_path).patch_path is None
    for path in (PATCHES, "/opt/patches"):
        (tmp_path / path[1:]).mkdir(parents=True)
    found = read(tmp_path, given)
    assert found.patch_path == (None if directory is None else "%s%s/%s" % (tmp_path, directory, PATCH))
    assert found.patch is None
    if found.patch_path is not None:
        Path(found.patch_path).write_text(HEADER + "maxPods: 5\n", encoding="utf-8")
        patch = read(tmp_path, given).patch
        assert patch is not None
        assert patch.values["maxPods"] == 5


def test_only_kubeadm_has_patches(tmp_path: Path) -> None:
    write_kubelet(tmp_path, KUBELETS["kubespray"])
    (tmp_path / "opt/patches").mkdir(parents=True)
    assert read(tmp_path, "/opt/patches").patch_path is None


def test_a_host_without_a_kubelet(tmp_path: Path) -> None:
    with pytest.raises(NodeError) as caught:
        read(tmp_path)
    assert caught.value.kind == "no_kubelet"
