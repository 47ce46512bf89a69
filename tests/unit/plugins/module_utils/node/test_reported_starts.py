# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes on whose starts people have reported, and what is right to say of them; each with its siblings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.start_report import start_report
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, Files, write_cgroups
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.started import CONFIG, node


def told(root: Path, minor: int = 33) -> tuple[bool | None, list[dict[str, Any]]]:
    """Whether the kubelet starts, and what is found."""
    answer = start_report(node(root, minor), {})
    return answer["starts"], answer["findings"]


# --- a service in the place of a slice --------------------------------------------------------------------

RESERVED = HEADER + (
    "cgroupDriver: systemd\nfailCgroupV1: false\nenforceNodeAllocatable: [pods, kube-reserved]\n"
    "kubeReserved: {cpu: 1500m, memory: 1Gi}\nkubeReservedCgroup: %s\nsystemReserved: {cpu: 2000m, memory: 2Gi}\n"
)


def hierarchies(root: Path, *cgroups: str) -> None:
    for hierarchy in ("cpuset", "memory", "cpu,cpuacct", "pids"):
        for cgroup in cgroups:
            (root / "sys/fs/cgroup" / hierarchy / cgroup).mkdir(parents=True, exist_ok=True)


def test_the_service_of_the_kubelet_is_no_slice(root: Path) -> None:
    write(root, CONFIG, RESERVED % "/system.slice/kubelet.service")
    write_cgroups(root, V1, {"system.slice/kubelet.service": Files("0-7", "0", (500,))}, "0-7", "0")
    hierarchies(root, "system.slice/kubelet.service")
    starts, (finding,) = told(root)
    assert starts is False
    assert finding["text"] == (
        'Failed to enforce Kube Reserved Cgroup Limits on "/system.slice/kubelet.service": cgroup ["kubelet.service"]'
        " has some missing paths: /sys/fs/cgroup"
    )
    assert finding["cause"] == (
        "there is no cgroup /kubelet.service.slice, which the kubelet makes of /system.slice/kubelet.service with the"
        " systemd driver"
    )
    assert "/kube.slice" in finding["remedy"]
    hierarchies(root, "kubelet.service.slice", "kube.slice")
    assert told(root) == (True, [])
    write(root, CONFIG, RESERVED % "/kube.slice")
    assert told(root) == (True, [])
