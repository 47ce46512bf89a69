# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the distributions of Kubernetes keep the kubelet's files. A new one is a new row."""

from __future__ import annotations

from typing import NamedTuple

from ..tree import Tree

KUBELET_ROOT = "/var/lib/kubelet"


class Distribution(NamedTuple):
    """One way of installing a kubelet."""

    name: str
    config_path: str


# Looked for in this order.
DISTRIBUTIONS = (
    Distribution("kubeadm", "/var/lib/kubelet/config.yaml"),
    Distribution("kubespray", "/etc/kubernetes/kubelet-config.yaml"),
    Distribution("EKS AL2023", "/etc/kubernetes/kubelet/config.json"),
)


def find_config(tree: Tree) -> str | None:
    """The path of the kubelet's configuration file on this node; None where no known one is there."""
    return next((known.config_path for known in DISTRIBUTIONS if tree.exists(known.config_path)), None)
