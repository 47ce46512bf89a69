# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/distributions.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.distributions import (
    DISTRIBUTIONS,
    NOWHERE,
    Distribution,
    installed_distribution,
    marks_of,
    running_distribution,
    service_of,
)


def write(root: Path, path: str, text: str = "kind: KubeletConfiguration\n") -> Path:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def name_of(distribution: Distribution | None) -> str | None:
    return None if distribution is None else distribution.name


def by_name(name: str) -> Distribution:
    return next(distribution for distribution in DISTRIBUTIONS if distribution.name == name)


# --- its files --------------------------------------------------------------------------------------

MARKS = [(distribution.name, mark) for distribution in DISTRIBUTIONS for mark in marks_of(distribution)]


@pytest.mark.parametrize(("name", "mark"), MARKS)
def test_told_by_its_files(name: str, mark: str, tmp_path: Path) -> None:
    write(tmp_path, mark)
    assert name_of(installed_distribution(Tree(str(tmp_path)))) == name


@pytest.mark.parametrize("name", [distribution.name for distribution in DISTRIBUTIONS if distribution.os_id])
@pytest.mark.parametrize("form", ["ID=%s\n", 'NAME="X"\nID="%s"\nVERSION_ID=1\n', "ID_LIKE=debian\nID='%s'\n"])
def test_told_by_its_system(name: str, form: str, tmp_path: Path) -> None:
    write(tmp_path, "/etc/os-release", form % by_name(name).os_id)
    assert name_of(installed_distribution(Tree(str(tmp_path)))) == name


def test_the_first_one_counts(tmp_path: Path) -> None:
    """A node of OpenShift may have what others have, too."""
    for _name, mark in reversed(MARKS):
        if not (tmp_path / mark.lstrip("/")).exists():
            write(tmp_path, mark + "/file" if mark.endswith("kubelet") else mark)
    assert name_of(installed_distribution(Tree(str(tmp_path)))) == "OpenShift"


def test_a_kubeconfig_is_no_configuration(tmp_path: Path) -> None:
    """kubeadm has the kubelet's kubeconfig where OpenShift has the kubelet's configuration."""
    write(tmp_path, "/etc/kubernetes/kubelet.conf", "kind: Config\n")
    assert installed_distribution(Tree(str(tmp_path))) is None
    write(tmp_path, "/var/lib/kubelet/config.yaml")
    assert name_of(installed_distribution(Tree(str(tmp_path)))) == "kubeadm"
    line = "/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml"
    assert name_of(running_distribution(line)) == "kubeadm"


def test_no_system(tmp_path: Path) -> None:
    write(tmp_path, "/etc/os-release", 'ID_LIKE=talos\nVARIANT_ID=talos\nNAME="talos"\n')
    write(tmp_path, "/etc/kubernetes/other.yaml")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    assert installed_distribution(Tree(str(tmp_path))) is None


def test_does_not_leave_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "node"
    outside = write(tmp_path, "/config.yaml")
    link = write(root, "/var/lib/kubelet/config.yaml")
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(RefusedError, match="this link is not followed"):
        installed_distribution(Tree(str(root)))


# --- its process ------------------------------------------------------------------------------------

COMMAND_LINES = [
    ("kubeadm", "/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml"),
    ("kubeadm", "/usr/bin/kubelet --config /var/lib/kubelet/config.yaml --v=2"),
    ("kubespray", "/usr/local/bin/kubelet --v=2 --config=/etc/kubernetes/kubelet-config.yaml"),
    ("EKS AL2023", "/usr/bin/kubelet --config=/etc/kubernetes/kubelet/config.json --node-ip=10.0.0.1"),
    ("EKS AL2", "/usr/bin/kubelet --config /etc/kubernetes/kubelet/kubelet-config.json"),
    ("kOps", "/usr/local/bin/kubelet --cloud-provider=external --config=/var/lib/kubelet/kubelet.conf --v=2"),
    ("Gardener", "/opt/bin/kubelet --config=/var/lib/kubelet/config/kubelet --kubeconfig=/var/lib/kubelet/kubeconfig"),
    ("RKE1", "kubelet --kubeconfig=/etc/kubernetes/ssl/kubecfg-kube-node.yaml --root-dir=/var/lib/kubelet"),
    ("RKE2", "kubelet --config-dir=/var/lib/rancher/rke2/agent/etc/kubelet.conf.d --containerd=/run/k3s/containerd"),
    ("k3s", "/usr/local/bin/k3s server"),
    ("k3s", "/usr/local/bin/k3s agent --server https://10.0.0.1:6443"),
    ("k3s", "/var/lib/rancher/k3s/data/current/bin/k3s-agent"),
    ("MicroK8s", "/snap/microk8s/8000/kubelite --kubelet-args-file=/var/snap/microk8s/8000/args/kubelet"),
    ("k0s", "/var/lib/k0s/bin/kubelet --root-dir=/var/lib/k0s/kubelet --config=/run/k0s/kubelet/config.yaml"),
    ("OpenShift", "/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf --config-dir=/etc/openshift/kubelet.conf.d"),
    ("Talos", "/usr/local/bin/kubelet --config=/etc/kubernetes/kubelet.yaml"),
    ("Bottlerocket", "/usr/bin/kubelet --config /etc/kubernetes/kubelet/config --container-runtime-endpoint=x"),
    ("GKE", "/home/kubernetes/bin/kubelet --config /home/kubernetes/kubelet-config.yaml"),
    ("AKS", "/usr/local/bin/kubelet --node-labels=kubernetes.azure.com/cluster=x"),
    ("MicroShift", "/usr/bin/microshift run"),
    ("KubeEdge", "/usr/local/bin/edgecore"),
    ("Canonical Kubernetes", "/snap/k8s/3213/bin/kubelet --root-dir=/var/lib/kubelet --cgroups-per-qos=false"),
    (None, "/opt/kubelet --config=/opt/kubelet.yaml"),
    (None, "/usr/bin/kubelet"),
]


@pytest.mark.parametrize(("name", "command_line"), COMMAND_LINES)
def test_told_by_its_process(name: str | None, command_line: str) -> None:
    assert name_of(running_distribution(command_line)) == name


def test_every_distribution_has_a_command_line_here() -> None:
    told = {distribution.name for distribution in DISTRIBUTIONS if not distribution.like}
    assert {name for name, _line in COMMAND_LINES} == {None, *told}


@pytest.mark.parametrize("name", [distribution.name for distribution in DISTRIBUTIONS if distribution.like])
def test_a_vendor_that_has_the_files_of_kubeadm_is_told_by_its_marks(name: str, tmp_path: Path) -> None:
    """Another program takes back within minutes what is written there."""
    line = "/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml"
    tree = Tree(str(tmp_path))
    assert name_of(running_distribution(line, tree)) == "kubeadm"
    write(tmp_path, marks_of(by_name(name))[0])
    assert name_of(running_distribution(line, tree)) == name
    assert name_of(running_distribution("/usr/local/bin/k3s server", tree)) == "k3s"
    assert by_name(name).place == NOWHERE


# --- its service ------------------------------------------------------------------------------------


def test_service(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert service_of(tree, by_name("kubeadm")) == "kubelet"
    assert service_of(tree, by_name("RKE2")) == "rke2-server"
    # The link leads out of a saved tree, or nowhere.
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "rke2-agent.service").symlink_to("nothing")
    assert service_of(tree, by_name("RKE2")) == "rke2-agent"


# --- the table --------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda distribution: distribution.name)
def test_row(distribution: Distribution) -> None:
    paths = [
        distribution.config_path,
        distribution.config_dir,
        distribution.kubelet_root,
        distribution.patches_dir,
        distribution.log_file,
        *distribution.marks,
    ]
    assert all(path.startswith("/") and not path.endswith("/") for path in paths if path is not None)
    assert distribution.config_path or (distribution.sign and distribution.marks)
    assert marks_of(distribution) or distribution.os_id
    assert distribution.services
    # Who is sent away is told where to.
    assert distribution.pointer or distribution.place != NOWHERE


def test_no_two_rows_look_alike() -> None:
    assert len({mark for _name, mark in MARKS}) == len(MARKS)
    assert len({distribution.name for distribution in DISTRIBUTIONS}) == len(DISTRIBUTIONS)
