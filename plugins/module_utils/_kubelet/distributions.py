# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the distributions of Kubernetes keep the kubelet's files, and where to write. A new one is a new row.

What a running kubelet was started with counts before these places; see installation.py.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .._base.tree import Tree

KUBELET_ROOT = "/var/lib/kubelet"
# The files of the CPU manager and of the memory manager below the kubelet's root directory.
CHECKPOINT_NAME, MEMORY_STATE_NAME = "cpu_manager_state", "memory_manager_state"
CONTAINERD = "/run/containerd/containerd.sock"

# Where to write: into the configuration file; into a file of our own in its drop-in directory; into the file that
# holds the flags; nowhere on the node.
FILE, DROP_IN, FLAGS, NOWHERE = "file", "drop-in", "flags", "nowhere"

# Before this minor version drop-in files are not merged as RFC 7396 says, so nothing is written there.
DROP_IN_SINCE = 32
DROP_IN_NAME = "50-kubenode-cpu-manager.conf"
DROP_IN_SUFFIX = ".conf"
# Rancher's is 50-rancher.yaml, and its list takes the place of those before it.
KUBELET_ARG_NAME = "90-kubenode-cpu-manager.yaml"

# From this minor version on kubeadm patches the configuration that it writes.
PATCHES_SINCE = 25
PATCH_NAME = "kubeletconfiguration90-kubenode-cpu-manager+merge.yaml"

# How flags are written down: in the variables of an environment file; each on a line; as a list in a YAML file and
# the files beside it in FILE.d, the key kubelet-arg.
ENVIRONMENT, LINES, KUBELET_ARG = "environment", "lines", "kubelet-arg"


class FlagFile(NamedTuple):
    """A file that gives a kubelet flags."""

    path: str
    form: str = ENVIRONMENT
    # Where the distribution's own source has these flags, from which it writes them again.
    writer: str = ""


class Distribution(NamedTuple):
    """One way of installing a kubelet."""

    name: str
    # Its configuration file, and its directory of drop-in files.
    config_path: str | None = None
    config_dir: str | None = None
    # Its running kubelet: a pattern that is found in the command line, whose words have one space between them. By
    # default the configuration file as --config.
    sign: str = ""
    # Files and directories: one of them is enough to recognise it, even where no kubelet runs. The ID in
    # /etc/os-release does the same. Without both it is recognised by its configuration file.
    marks: tuple[str, ...] = ()
    os_id: str | None = None
    flag_files: tuple[FlagFile, ...] = ()
    kubelet_root: str = KUBELET_ROOT
    # The first that is enabled runs the kubelet.
    services: tuple[str, ...] = ("kubelet",)
    cri_socket: str = CONTAINERD
    # What the kubelet logs to; by default the journal of its service.
    log_file: str | None = None
    place: str = FILE
    # The directory of the patches with which the configuration file is made anew, by upgrades.
    patches_dir: str | None = None
    # The distribution whose files and whose running kubelet this one has, too: its marks tell them apart.
    like: str = ""
    # Its kubelet is a changed one, which keeps the CPU manager's state by rules of its own.
    has_own_states: bool = False
    # Its kubelet goes on with feature gates that it does not have: openshift/kubernetes only logs them.
    warns_of_gates: bool = False
    # Where to change what is not to be changed on the node, or what else would undo a change there.
    pointer: str = ""

    @property
    def has_kubelet_args(self) -> bool:
        """Whether the kubelet is a part of another program, whose files give it arguments."""
        return any(file.form == KUBELET_ARG for file in self.flag_files)


_KUBEADM_FLAGS = (
    FlagFile(
        "/var/lib/kubelet/kubeadm-flags.env",
        writer="nodeRegistration.kubeletExtraArgs of kubeadm's configuration",
    ),
    FlagFile("/etc/default/kubelet"),
    FlagFile("/etc/sysconfig/kubelet"),
)

# Looked for in this order. Those that manage the kubelet themselves come first, as they may look like others.
DISTRIBUTIONS = (
    Distribution(
        "OpenShift",
        "/etc/kubernetes/kubelet.conf",
        "/etc/openshift/kubelet.conf.d",
        marks=("/etc/machine-config-daemon",),
        os_id="rhcos",
        cri_socket="/var/run/crio/crio.sock",
        place=NOWHERE,
        warns_of_gates=True,
        pointer="the machine config operator would undo it: use a KubeletConfig or a PerformanceProfile",
    ),
    Distribution(
        "MicroShift",
        sign=r"^\S*\bmicroshift( |$)",
        marks=("/etc/microshift", "/var/lib/microshift"),
        services=("microshift",),
        cri_socket="/var/run/crio/crio.sock",
        place=NOWHERE,
        warns_of_gates=True,
        pointer="its kubelet has no file of its own: use the section kubelet of /etc/microshift/config.yaml",
    ),
    # Source: docs of edgecore's configuration at kubeedge.io; modules.edged.
    Distribution(
        "KubeEdge",
        sign=r"^\S*\bedgecore( |$)",
        marks=("/etc/kubeedge/config/edgecore.yaml",),
        services=("edgecore",),
        place=NOWHERE,
        pointer="edgecore holds its kubelet, which has no file of its own: use modules.edged.tailoredKubeletConfig in"
        " /etc/kubeedge/config/edgecore.yaml, and restart edgecore",
    ),
    Distribution(
        "Talos",
        "/etc/kubernetes/kubelet.yaml",
        os_id="talos",
        place=NOWHERE,
        pointer="machined would undo it: use machine.kubelet.extraConfig in the machine configuration",
    ),
    Distribution(
        "Bottlerocket",
        "/etc/kubernetes/kubelet/config",
        os_id="bottlerocket",
        place=NOWHERE,
        pointer="it would be written anew from the settings: use settings.kubernetes",
    ),
    Distribution(
        "GKE",
        "/home/kubernetes/kubelet-config.yaml",
        flag_files=(FlagFile("/etc/default/kubelet", writer="the kubeletConfig of the node pool"),),
        place=NOWHERE,
        pointer="nodes are made anew: use the node pool's kubeletConfig",
    ),
    Distribution(
        "AKS",
        "/etc/default/kubeletconfig.json",
        sign=r"--config[= ]/etc/default/kubeletconfig\.json|kubernetes\.azure\.com/",
        marks=("/opt/azure/containers", "/etc/default/kubeletconfig.json"),
        flag_files=(FlagFile("/etc/default/kubelet", writer="the kubeletConfig of the node pool"),),
        place=NOWHERE,
        pointer="nodes are made anew: use the kubeletConfig of a new node pool",
    ),
    # Its kubelet gives the pods of the platform the reserved CPUs.
    # Source: docs.starlingx.io, kubernetes-cpu-manager-policies.
    Distribution(
        "StarlingX",
        "/var/lib/kubelet/config.yaml",
        marks=("/etc/platform/platform.conf",),
        flag_files=_KUBEADM_FLAGS,
        place=NOWHERE,
        like="kubeadm",
        has_own_states=True,
        pointer="sysinv writes it anew: lock the host, and use system host-label-assign and host-cpu-modify",
    ),
    # Source: candi/bashible of deckhouse/deckhouse.
    Distribution(
        "Deckhouse",
        "/var/lib/kubelet/config.yaml",
        marks=("/var/lib/bashible",),
        place=NOWHERE,
        like="kubeadm",
        pointer="bashible writes it anew within minutes: use spec.kubelet of the NodeGroup, or for what that has no"
        " field a NodeGroupConfiguration",
    ),
    Distribution(
        "kubeadm",
        "/var/lib/kubelet/config.yaml",
        flag_files=_KUBEADM_FLAGS,
        patches_dir="/etc/kubernetes/patches",
    ),
    Distribution(
        "kubespray",
        "/etc/kubernetes/kubelet-config.yaml",
        flag_files=(
            FlagFile(
                "/etc/kubernetes/kubelet.env",
                writer="kubelet_custom_flags, or kubelet_node_custom_flags, of kubespray's inventory",
            ),
        ),
        pointer="its next run writes the file anew: give its inventory the same settings, those without a variable"
        " there in kubelet_config_extra_args",
    ),
    Distribution(
        "EKS AL2023",
        "/etc/kubernetes/kubelet/config.json",
        "/etc/kubernetes/kubelet/config.json.d",
        flag_files=(FlagFile("/etc/eks/kubelet/environment", writer="spec.kubelet.flags of the NodeConfig"),),
        pointer="nodeadm writes the file anew at each boot: give the NodeConfig the same in spec.kubelet.config",
    ),
    Distribution(
        "EKS AL2",
        "/etc/kubernetes/kubelet/kubelet-config.json",
        pointer="bootstrap.sh writes some of the file at the first boot",
    ),
    Distribution(
        "kOps",
        "/var/lib/kubelet/kubelet.conf",
        marks=("/opt/kops/conf/kube_env.yaml", "/var/lib/kubelet/kubelet.conf"),
        flag_files=(FlagFile("/etc/sysconfig/kubelet", writer="spec.kubelet of the cluster or its instance group"),),
        pointer="nodeup writes the file anew whenever it runs, and on each new machine: give the cluster, or its"
        " instance group, the same in spec.kubelet",
    ),
    Distribution(
        "Gardener",
        "/var/lib/kubelet/config/kubelet",
        marks=("/var/lib/gardener-node-agent", "/var/lib/kubelet/config/kubelet"),
        flag_files=(FlagFile("/var/lib/kubelet/extra_args"),),
        pointer="gardener-node-agent writes the file anew when the shoot changes: give the shoot the same in"
        " spec.kubernetes.kubelet, or in kubernetes.kubelet of the worker pool",
    ),
    Distribution(
        "RKE1",
        sign=r"/kubecfg-kube-node\.yaml( |$)",
        marks=("/etc/kubernetes/ssl/kubecfg-kube-node.yaml",),
        place=NOWHERE,
        pointer="rke makes the kubelet's container anew: use services.kubelet.extra_args in cluster.yml",
    ),
    Distribution(
        "RKE2",
        config_dir="/var/lib/rancher/rke2/agent/etc/kubelet.conf.d",
        sign="/rancher/rke2/",
        marks=("/var/lib/rancher/rke2/agent",),
        flag_files=(FlagFile("/etc/rancher/rke2/config.yaml", KUBELET_ARG),),
        services=("rke2-server", "rke2-agent"),
        cri_socket="/run/k3s/containerd/containerd.sock",
        log_file="/var/lib/rancher/rke2/agent/logs/kubelet.log",
        place=DROP_IN,
    ),
    Distribution(
        "k3s",
        config_dir="/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
        sign=r"^\S*\bk3s(-server|-agent)?( |$)",
        marks=("/var/lib/rancher/k3s/agent",),
        flag_files=(FlagFile("/etc/rancher/k3s/config.yaml", KUBELET_ARG),),
        services=("k3s", "k3s-agent"),
        cri_socket="/run/k3s/containerd/containerd.sock",
        place=DROP_IN,
    ),
    Distribution(
        "MicroK8s",
        sign=r"^\S*\bkubelite( |$)",
        marks=("/var/snap/microk8s/current/args/kubelet",),
        flag_files=(FlagFile("/var/snap/microk8s/current/args/kubelet", LINES),),
        kubelet_root="/var/snap/microk8s/common/var/lib/kubelet",
        services=("snap.microk8s.daemon-kubelite",),
        cri_socket="/var/snap/microk8s/common/run/containerd.sock",
        place=FLAGS,
    ),
    # Source: src/k8s/pkg/k8sd/setup/kubelet.go of canonical/k8s-snap.
    Distribution(
        "Canonical Kubernetes",
        sign=r"/snap/k8s/",
        marks=("/var/snap/k8s/common/args/kubelet",),
        flag_files=(FlagFile("/var/snap/k8s/common/args/kubelet", LINES),),
        services=("snap.k8s.kubelet",),
        place=FLAGS,
    ),
    Distribution(
        "k0s",
        "/run/k0s/kubelet/config.yaml",
        sign="/var/lib/k0s/|/run/k0s/",
        marks=("/run/k0s/kubelet/config.yaml", "/var/lib/k0s/kubelet"),
        kubelet_root="/var/lib/k0s/kubelet",
        services=("k0sworker", "k0scontroller"),
        cri_socket="/run/k0s/containerd.sock",
        place=NOWHERE,
        pointer="it writes the file anew at each start: use spec.workerProfiles in k0s.yaml, and k0s worker --profile",
    ),
)

# Where systemd looks for units; the first of a name counts.
UNIT_DIRECTORIES = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)

# The names of our own files, and the usual paths of those of others that a change of settings may write.
OWN_NAMES = frozenset((DROP_IN_NAME, KUBELET_ARG_NAME, PATCH_NAME))
USUAL_PATHS = frozenset(
    path
    for distribution in DISTRIBUTIONS
    for path in (distribution.config_path, *(file.path for file in distribution.flag_files))
    if path is not None
)

_COPIED = frozenset(distribution.like for distribution in DISTRIBUTIONS)
_OS_RELEASE = "/etc/os-release"
_WANTS = "/etc/systemd/system/multi-user.target.wants/%s.service"


def running_distribution(command_line: str, tree: Tree | None = None) -> Distribution | None:
    """Return whose kubelet runs with this command line on this node; None where it is of nobody here."""
    signs = (entry for entry in DISTRIBUTIONS if not entry.like and re.search(_sign_of(entry), command_line))
    found = next(signs, None)
    if found is None or tree is None or found.name not in _COPIED:
        return found
    return next((entry for entry in DISTRIBUTIONS if entry.like == found.name and _is_marked(tree, entry)), found)


def _sign_of(distribution: Distribution) -> str:
    return distribution.sign or r"--config[= ]%s( |$)" % re.escape(distribution.config_path or "")


def installed_distribution(tree: Tree) -> Distribution | None:
    """Return whose files are on this node; None where none of those here."""
    os_id = _os_id(tree)
    for distribution in DISTRIBUTIONS:
        if os_id is not None and distribution.os_id == os_id:
            return distribution
        if _is_marked(tree, distribution):
            return distribution
    return None


def _is_marked(tree: Tree, distribution: Distribution) -> bool:
    return any(tree.exists(mark) for mark in marks_of(distribution))


def marks_of(distribution: Distribution) -> tuple[str, ...]:
    """Return the files and directories of which one shows a distribution."""
    if distribution.marks or distribution.os_id or distribution.config_path is None:
        return distribution.marks
    return (distribution.config_path,)


def _os_id(tree: Tree) -> str | None:
    if not tree.exists(_OS_RELEASE):
        return None
    for line in tree.read_text(_OS_RELEASE).splitlines():
        if line.startswith("ID="):
            return line[len("ID=") :].strip("\"' ")
    return None


def service_of(tree: Tree, distribution: Distribution) -> str:
    """Return the systemd service that runs the kubelet on this node."""
    services = distribution.services
    return next((name for name in services if tree.exists(_WANTS % name, follow=False)), services[0])


def has_unit(tree: Tree, service: str) -> bool:
    """Return whether systemd has a service."""
    return any("%s.service" % service in tree.names(directory) for directory in UNIT_DIRECTORIES)
