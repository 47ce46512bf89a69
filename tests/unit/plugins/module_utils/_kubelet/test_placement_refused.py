# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of a kubelet's files that would have no effect, or that somebody else is to make."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER, KUBELETS, Kubelet
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.placement_nodes import (
    apply,
    found,
    planned,
    texts,
    write_node,
)


def refusal(root: Path, version: str, wanted: Mapping[str, Any]) -> str:
    before = texts(root)
    with pytest.raises(RefusedError) as caught:
        planned(root, version, wanted)
    assert texts(root) == before
    return str(caught.value)


FLAG = "--cpu-manager-policy=none"
UNIT = "[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml $A\n"
UNIT_DROP_IN = "/etc/systemd/system/kubelet.service.d/20-cpus.conf"
# Of the file of kubespray in which its inventory gives the kubelet flags.
WRITER = "kubelet_custom_flags, or kubelet_node_custom_flags, of kubespray's inventory"


@pytest.mark.parametrize(
    ("name", "files", "origin"),
    [
        (
            "kubeadm",
            {"/etc/default/kubelet": 'KUBELET_EXTRA_ARGS="%s"\n' % FLAG},
            "--cpu-manager-policy=none in {root}/etc/default/kubelet",
        ),
        (
            "kubespray",
            {"/etc/kubernetes/kubelet.env": 'KUBELET_ARGS="--v=2 \\\n%s"\n' % FLAG},
            "--cpu-manager-policy=none in {root}/etc/kubernetes/kubelet.env",
        ),
        (
            "k3s",
            {"/etc/rancher/k3s/config.yaml": "kubelet-arg: [cpu-manager-policy=none]\n"},
            "--cpu-manager-policy=none in {root}/etc/rancher/k3s/config.yaml",
        ),
        (
            "k3s-flags",
            {"/etc/rancher/k3s/config.yaml.d/99.yaml": "kubelet-arg+: [cpu-manager-policy=none]\n"},
            "--cpu-manager-policy=none in {root}/etc/rancher/k3s/config.yaml.d/99.yaml",
        ),
        (
            "k3s",
            {
                "/etc/systemd/system/k3s.service": "[Service]\nExecStart=/usr/local/bin/k3s server '--kubelet-arg=%s'"
                % FLAG
            },
            "--cpu-manager-policy=none in the unit k3s.service",
        ),
        (
            "rke2",
            {"/etc/rancher/rke2/config.yaml.d/50-rancher.yaml": '{"kubelet-arg": ["%s"]}' % FLAG[2:]},
            "--cpu-manager-policy=none in {root}/etc/rancher/rke2/config.yaml.d/50-rancher.yaml",
        ),
        (
            "kubeadm",
            {"/usr/lib/systemd/system/kubelet.service": UNIT, UNIT_DROP_IN: '[Service]\nEnvironment="A=%s"\n' % FLAG},
            "--cpu-manager-policy=none in {root}%s" % UNIT_DROP_IN,
        ),
        (
            "kubeadm",
            {"/usr/lib/systemd/system/kubelet.service": UNIT.replace("$A", FLAG)},
            "--cpu-manager-policy=none in the unit kubelet.service",
        ),
        (
            "kubeadm",
            {
                "/usr/lib/systemd/system/kubelet.service": UNIT,
                UNIT_DROP_IN: "[Service]\nEnvironmentFile=-/etc/more\n",
                "/etc/more": "A='%s'\n" % FLAG,
            },
            "--cpu-manager-policy=none in {root}/etc/more",
        ),
        (
            "kubeadm",
            {
                "/usr/lib/systemd/system/kubelet.service": UNIT,
                UNIT_DROP_IN: UNIT.replace("[Service]\n", "[Service]\nExecStart=\n").replace("$A", FLAG),
            },
            "--cpu-manager-policy=none in {root}%s" % UNIT_DROP_IN,
        ),
        (
            "kubeadm-drop-ins",
            {"/etc/kubernetes/kubelet.conf.d/60.conf": HEADER + "cpuManagerPolicy: none\n"},
            "{root}/etc/kubernetes/kubelet.conf.d/60.conf",
        ),
        (
            "kubeadm-drop-ins",
            {"/etc/kubernetes/kubelet.conf.d/60.d/a.conf": HEADER + "cpuManagerPolicy: none\n"},
            "{root}/etc/kubernetes/kubelet.conf.d/60.d/a.conf",
        ),
    ],
)
def test_what_counts_before(name: str, files: Mapping[str, str], origin: str, tmp_path: Path) -> None:
    kubelet = KUBELETS[name]
    root = write_node(tmp_path / "node", kubelet._replace(files={**kubelet.files, **files}))
    there = "there and from %s (which writes it again)" % WRITER if origin.endswith("/kubelet.env") else "there"
    assert refusal(root, kubelet.version, {"cpu_manager_policy": "static"}) == (
        "cpuManagerPolicy: %s overrides the configuration file; remove it %s, restart the kubelet, run again"
        % (origin.format(root=root), there)
    )
    # What it gives may stay as it is, and other settings may change.
    assert planned(root, kubelet.version, {"cpu_manager_policy": "none"}) == []
    assert apply(root, kubelet.version, {"cpu_manager_reconcile_period": "5s"}) == list(kubelet.written)


@pytest.mark.parametrize("name", ["elsewhere", "rke2"])
def test_a_flag_of_the_running_kubelet(name: str, tmp_path: Path) -> None:
    kubelet = KUBELETS[name]
    root = write_node(tmp_path / "node", kubelet._replace(command_line=kubelet.command_line + " " + FLAG))
    message = refusal(root, kubelet.version, {"cpu_manager_policy": "static"})
    assert "--cpu-manager-policy=none in the command line of process 4711 overrides the configuration file" in message


@pytest.mark.parametrize("text", ["dynamic", "Static"])
def test_a_flag_that_no_kubelet_takes(text: str, tmp_path: Path) -> None:
    kubelet = KUBELETS["elsewhere"]
    flag = " --cpu-manager-policy=" + text
    root = write_node(tmp_path / "node", kubelet._replace(command_line=kubelet.command_line + flag))
    message = refusal(root, kubelet.version, {"cpu_manager_policy": "static"})
    assert "--cpu-manager-policy=%s in the command line of process 4711 overrides" % text in message


def test_k3s_replaced_by_a_later_file(tmp_path: Path) -> None:
    kubelet = KUBELETS["k3s-flags"]
    later = "/etc/rancher/k3s/config.yaml.d/98.yaml"
    more = {later: "kubelet-arg: [max-pods=9]\n", "/etc/rancher/k3s/config.yaml.d/99.yaml": "kubelet-arg+: [v=4]\n"}
    root = write_node(tmp_path / "node", kubelet._replace(files={**kubelet.files, **more}))
    message = refusal(root, kubelet.version, {"cpu_manager_policy": "static"})
    assert message == (
        "%s%s: its kubelet-arg takes the place of those of all files before it, also of %s%s; write it there as"
        " kubelet-arg+, and run again" % (root, later, root, kubelet.written[0])
    )


def test_a_flag_in_the_place_of_a_map(tmp_path: Path) -> None:
    """The refusal names all that the flag decides on, not the one member that it does not give."""
    kubelet = KUBELETS["kubeadm"]
    files = {
        "/usr/lib/systemd/system/kubelet.service": UNIT,
        UNIT_DROP_IN: "[Service]\nEnvironment=A=--kube-reserved=memory=1Gi\n",
    }
    root = write_node(tmp_path / "node", kubelet._replace(files={**kubelet.files, **files}))
    assert refusal(root, kubelet.version, {"kube_reserved_cpu": "80m"}) == (
        "kubeReserved.cpu: --kube-reserved=memory=1Gi in %s%s takes the place of the whole kubeReserved of the"
        " configuration file; remove it there, restart the kubelet, run again" % (root, UNIT_DROP_IN)
    )


@pytest.mark.parametrize("version", ["1.31", "1.32"])
def test_old_drop_ins_are_read_and_not_written(version: str, tmp_path: Path) -> None:
    kubelet = KUBELETS["kubeadm-drop-ins"]
    root = write_node(tmp_path / "node", kubelet)
    written_file = kubelet.written[0] if version == "1.32" else "/var/lib/kubelet/config.yaml"
    assert apply(root, version, {"cpu_manager_policy": "static"}) == [written_file]
    assert found(root, version)["kube_reserved_cpu"] == "200m"
    if version == "1.31":
        assert "10-cluster.conf overrides the configuration file" in refusal(root, version, {"kube_reserved_cpu": "1"})


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"/run/k0s/kubelet/config.yaml": HEADER}, ("k0s", "workerProfiles")),
        (
            {"/etc/kubernetes/kubelet.conf": HEADER, "/etc/machine-config-daemon/currentconfig": "{}"},
            ("OpenShift", "KubeletConfig"),
        ),
        ({"/home/kubernetes/kubelet-config.yaml": HEADER}, ("GKE", "node pool")),
        ({"/etc/default/kubeletconfig.json": HEADER}, ("AKS", "node pool")),
        ({"/etc/kubernetes/kubelet/config": HEADER, "/etc/os-release": "ID=bottlerocket\n"}, ("Bottlerocket",)),
        ({"/etc/kubernetes/kubelet.yaml": HEADER, "/etc/os-release": "ID=talos\n"}, ("Talos", "extraConfig")),
    ],
)
def test_nodes_that_others_manage(files: Mapping[str, str], names: tuple[str, ...], tmp_path: Path) -> None:
    root = write_node(tmp_path / "node", Kubelet(files, "1.36"))
    message = refusal(root, "1.36", {"cpu_manager_policy": "static"})
    assert all(name in message for name in names)
    # They can be read all the same.
    assert planned(root, "1.36", {"cpu_manager_policy": "none"}) == []


def test_a_kubelet_without_any_file(tmp_path: Path) -> None:
    root = write_node(tmp_path / "node", Kubelet({}, "1.36", "/usr/bin/kubelet --v=2"))
    assert "started without a configuration file" in refusal(root, "1.36", {"cpu_manager_policy": "static"})
