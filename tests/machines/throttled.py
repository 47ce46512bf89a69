# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a node with limited containers: one on exclusive CPUs, one in the shared pool, which is throttled."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

from .cgroups import SYSTEMD, CPUFiles, Files, Style, container_files, pod_path, write_cgroups, write_cpu
from .shape import parse_name
from .tree import write_tree

OWN, SHARED, SANDBOX = "a" * 64, "b" * 64, "d" * 64
DATABASE, WEB = pod_path(SYSTEMD, "uid-db", "Guaranteed"), pod_path(SYSTEMD, "uid-web", "Burstable")
OWN_PATH = "%s/cri-containerd-%s.scope" % (DATABASE, OWN)
SHARED_PATH = "%s/cri-containerd-%s.scope" % (WEB, SHARED)
SANDBOX_PATH = "%s/cri-containerd-%s.scope" % (DATABASE, SANDBOX)
# As a kubelet 1.32 writes them: the container of two whole CPUs has a quota, and so has its pod.
LIMITED = {
    OWN_PATH: CPUFiles(200000, shares=2048, weight=174, counted=(500, 50, 900000), local=900000),
    DATABASE: CPUFiles(200000, shares=2048, weight=174),
    SHARED_PATH: CPUFiles(50000, shares=256, weight=35, counted=(1000, 400, 30000000), local=30000000),
    WEB: CPUFiles(50000, shares=256, weight=35),
    SANDBOX_PATH: CPUFiles(shares=2, weight=1),
}
CONFIGURATION = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: 0,4
failCgroupV1: false
"""
STATE = State(CPUSet.parse("0,2-4,6-7"), {"uid-db": {"server": CPUSet.parse("1,5")}})


def write_node(
    root: Path,
    style: Style,
    cgroups: Mapping[str, CPUFiles] | None = None,
    kernel: str = "6.1.0-18-amd64",
    more: str = "",
    names: bool = True,
) -> Path:
    """Return a node of eight CPUs; give the directory with its cgroups of the cpu controller.

    more: of its kubelet's configuration. names: whether it has the logs of containers.
    """
    shape = parse_name("1s4c2t")
    write_tree(shape.topology(), root, shape.whole())
    _write(root, "var/lib/kubelet/config.yaml", CONFIGURATION + more)
    (root / "var/lib/kubelet/cpu_manager_state").write_bytes(write_checkpoint("static", STATE))
    _write(root, "proc/sys/kernel/osrelease", kernel + "\n")
    cpusets: dict[str, Files] = {}
    for pod, container in ((DATABASE, OWN), (WEB, SHARED), (DATABASE, SANDBOX)):
        cpusets.update(container_files(SYSTEMD, "containerd", pod, container, "1,5"))
    write_cgroups(root, style, cpusets)
    if names:
        for name, container in (("db-0_shop_server", OWN), ("web-1_shop_app", SHARED)):
            _write(root, "var/log/containers/%s-%s.log" % (name, container), "")
    return write_cpu(root, style, LIMITED if cgroups is None else cgroups)


def _write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
