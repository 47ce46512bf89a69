# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelets of many distributions as saved files, none of them with anything set that concerns CPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping, NamedTuple

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
PLAIN = HEADER + "# the cluster's\nclusterDomain: cluster.local  # as everywhere\n"


class Kubelet(NamedTuple):
    """The files of one kubelet, its version, and what it was started with; nothing where it does not run."""

    files: Mapping[str, str]
    version: str
    command_line: str = ""
    directories: tuple[str, ...] = ()
    # Where the settings are to be written.
    written: tuple[str, ...] = ()


_KUBEADM = "/var/lib/kubelet/config.yaml"
_KUBEADM_FLAGS = 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"\n'
_PATCH = "/etc/kubernetes/patches/kubeletconfiguration90-kubenode-cpu-manager+merge.yaml"
_K3S, _RKE2 = "/var/lib/rancher/k3s/agent", "/var/lib/rancher/rke2/agent"
_EKS = "/etc/kubernetes/kubelet/config.json"
_KOPS, _GARDENER = "/var/lib/kubelet/kubelet.conf", "/var/lib/kubelet/config/kubelet"
_DROP_IN = "50-kubenode-cpu-manager.conf"

# What Rancher writes for k3s and RKE2.
_RANCHER = '{\n  "agent-token": "secret",\n  "kubelet-arg": [\n    "max-pods=250"\n  ]\n}'

KUBELETS: dict[str, Kubelet] = {
    "kubeadm": Kubelet(
        {
            _KUBEADM: PLAIN,
            "/var/lib/kubelet/kubeadm-flags.env": _KUBEADM_FLAGS,
            "/etc/kubernetes/kubelet.conf": "kind: Config\n",
        },
        "1.33.2",
        written=(_KUBEADM,),
    ),
    "kubeadm-patches": Kubelet(
        {_KUBEADM: PLAIN, "/var/lib/kubelet/kubeadm-flags.env": _KUBEADM_FLAGS},
        "1.36.0",
        directories=("/etc/kubernetes/patches",),
        written=(_PATCH, _KUBEADM),
    ),
    "kubeadm-drop-ins": Kubelet(
        {
            _KUBEADM: PLAIN,
            "/etc/kubernetes/kubelet.conf.d/10-cluster.conf": HEADER + "kubeReserved: {cpu: 200m, memory: 1Gi}\n",
        },
        "1.35.1",
        "/usr/bin/kubelet --config=%s --config-dir=/etc/kubernetes/kubelet.conf.d" % _KUBEADM,
        written=("/etc/kubernetes/kubelet.conf.d/" + _DROP_IN,),
    ),
    "elsewhere": Kubelet(
        {_KUBEADM: "of an earlier life\n", "/opt/kubelet/kubelet.yaml": PLAIN},
        "1.34.0",
        "/opt/kubelet/kubelet --config /opt/kubelet/kubelet.yaml --root-dir=/data/kubelet",
        written=("/opt/kubelet/kubelet.yaml",),
    ),
    "kubespray": Kubelet(
        {
            "/etc/kubernetes/kubelet-config.yaml": PLAIN,
            "/etc/kubernetes/kubelet.env": 'KUBELET_ARGS="--config=/etc/kubernetes/kubelet-config.yaml \\\n--v=2"\n',
        },
        "1.32.5",
        written=("/etc/kubernetes/kubelet-config.yaml",),
    ),
    "kops": Kubelet(
        {
            _KOPS: PLAIN,
            "/etc/sysconfig/kubelet": 'DAEMON_ARGS="--cloud-provider=external --config=%s"\nHOME="/root"\n' % _KOPS,
        },
        "1.34.3",
        written=(_KOPS,),
    ),
    "gardener": Kubelet(
        {_GARDENER: PLAIN, "/var/lib/gardener-node-agent/config.yaml": "apiVersion: nodeagent.config.gardener.cloud\n"},
        "1.33.4",
        "/opt/bin/kubelet --bootstrap-kubeconfig=/var/lib/kubelet/kubeconfig-bootstrap --config=%s" % _GARDENER,
        written=(_GARDENER,),
    ),
    "k3s": Kubelet(
        {_K3S + "/etc/kubelet.conf.d/00-k3s-defaults.conf": PLAIN, "/etc/rancher/k3s/config.yaml": "debug: 0755\n"},
        "v1.33.1+k3s1",
        "/usr/local/bin/k3s server",
        written=(_K3S + "/etc/kubelet.conf.d/" + _DROP_IN,),
    ),
    "k3s-flags": Kubelet(
        {"/etc/rancher/k3s/config.yaml": "write-kubeconfig-mode: 0644\nkubelet-arg:\n- max-pods=50\n"},
        "v1.31.9+k3s1",
        directories=(_K3S,),
        written=("/etc/rancher/k3s/config.yaml.d/90-kubenode-cpu-manager.yaml",),
    ),
    "k3s-rancher": Kubelet(
        {"/etc/rancher/k3s/config.yaml.d/50-rancher.yaml": _RANCHER},
        "v1.31.9+k3s1",
        "/usr/local/bin/k3s agent",
        directories=(_K3S,),
        written=("/etc/rancher/k3s/config.yaml.d/90-kubenode-cpu-manager.yaml",),
    ),
    "rke2": Kubelet(
        {_RKE2 + "/etc/kubelet.conf.d/00-rke2-defaults.conf": PLAIN},
        "v1.32.4+rke2r1",
        "kubelet --config-dir=%s/etc/kubelet.conf.d --node-labels= --read-only-port=0" % _RKE2,
        written=(_RKE2 + "/etc/kubelet.conf.d/" + _DROP_IN,),
    ),
    "microk8s": Kubelet(
        {
            "/var/snap/microk8s/current/args/kubelet": (
                "# the kubelet's\n--root-dir=${SNAP_COMMON}/var/lib/kubelet\n--feature-gates=NodeSwap=false\n"
            )
        },
        "1.33.0",
        "/snap/microk8s/8000/kubelite --kubelet-args-file=/var/snap/microk8s/8000/args/kubelet",
        written=("/var/snap/microk8s/current/args/kubelet",),
    ),
    "eks": Kubelet(
        {
            _EKS: (
                '{\n    "apiVersion": "kubelet.config.k8s.io/v1beta1",\n    "enforceNodeAllocatable": ["pods"],\n'
                '    "kind": "KubeletConfiguration",\n    "kubeReserved": {"cpu": "70m", "memory": "442Mi"},\n'
                '    "kubeReservedCgroup": "/runtime",\n    "systemReservedCgroup": "/system"\n}\n'
            ),
            "/etc/eks/kubelet/environment": 'NODEADM_KUBELET_ARGS="--config=%s --node-ip=10.0.0.1"\n' % _EKS,
        },
        "1.31.5-eks-5d632ec",
        written=(_EKS,),
    ),
    "eks-drop-ins": Kubelet(
        {
            _EKS: PLAIN,
            _EKS + ".d/40-nodeadm.conf": HEADER + "systemReservedCgroup: /system\nkubeReservedCgroup: /runtime\n",
        },
        "1.36.0",
        written=(_EKS + ".d/" + _DROP_IN,),
    ),
}


def write_kubelet(root: Path, kubelet: Kubelet) -> None:
    """Write its files below a root."""
    for path, text in kubelet.files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for path in kubelet.directories:
        (root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    if kubelet.command_line:
        process = root / "proc/4711"
        process.mkdir(parents=True)
        # k3s writes its title over its arguments, one word.
        is_title = kubelet.command_line.startswith("/usr/local/bin/k3s")
        words = [kubelet.command_line] if is_title else kubelet.command_line.split()
        (process / "cmdline").write_text("".join(word + "\0" for word in words), encoding="utf-8")
