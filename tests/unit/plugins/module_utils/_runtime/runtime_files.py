# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of container runtimes as several tests write them: their places, parts of their text, a node that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._runtime.runtime_files import RuntimeSwitch

MAIN, DIRECTORY = "/etc/containerd/config.toml", "/etc/containerd/conf.d"
DROP_IN = DIRECTORY + "/99-kubenode-cpu-manager.toml"
CRIO_MAIN, CRIO_DIRECTORY = "/etc/crio/crio.conf", "/etc/crio/crio.conf.d"
CRIO_DROP_IN = CRIO_DIRECTORY + "/99-kubenode-cpu-manager.conf"
K3S = "/var/lib/rancher/k3s/agent/etc/containerd/"
CONTAINERD = "unix:///run/containerd/containerd.sock"
CRIO, OF_K3S = "unix:///var/run/crio/crio.sock", "unix:///run/k3s/containerd/containerd.sock"

NRI, CRI, CRI_3 = (
    '[plugins."io.containerd.nri.v1.nri"]\n',
    '[plugins."io.containerd.grpc.v1.cri"]\n',
    "[plugins.'io.containerd.cri.v1.runtime']\n",
)
IMPORTS = 'imports = ["%s/*.toml"]\n' % DIRECTORY


def node(root: Path, files: Mapping[str, str]) -> Tree:
    for path, content in files.items():
        place = Path("%s%s" % (root, path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode())
    return Tree(str(root))


OFF, ON = RuntimeSwitch(False), RuntimeSwitch(True)
