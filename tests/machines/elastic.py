# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node whose kubelet has the policy none, on which containers come, work and go; and passes over it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Protocol, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import Crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import Agent
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.dynamic_settings import read_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import ANNOTATION

from .cgroups import SYSTEMD, V1, CPUFiles, Files, Style, container_files, cpu_mount, pod_path, write_cgroups, write_cpu
from .tree import write_machine

CONFIG = "var/lib/kubelet/config.yaml"
PUBLISHED = "run/kubenode/cpus"
PERIOD_US = 100000
_HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


class Pod(NamedTuple):
    """A pod with one container, named app: `cpus` requests of whole CPUs, or a share of the pool where it is none."""

    uid: str
    cpus: int = 0
    elastic: str = ""
    qos_class: str = "Guaranteed"

    @property
    def id(self) -> str:
        """The container's."""
        return hashlib.sha256(self.uid.encode()).hexdigest()

    @property
    def path(self) -> str:
        """The pod's cgroup."""
        return pod_path(SYSTEMD, self.uid, self.qos_class)

    @property
    def cgroup(self) -> str:
        """The container's."""
        return next(iter(container_files(SYSTEMD, "containerd", self.path, self.id, "")))

    @property
    def sandbox(self) -> str:
        """The id of the pod's sandbox."""
        return hashlib.sha256(("sandbox " + self.uid).encode()).hexdigest()


class Passing(Protocol):
    """What makes a pass over a node: an agent, or the program around it."""

    def one_pass(self) -> object:
        """Make one."""


class ElasticNode:
    """The node. Its time is that of `now`, and goes on only in work()."""

    def __init__(
        self, root: Path, machine: str = "1s8c2t", style: Style = V1, reserved: str = "0,8", policy: str = "none"
    ) -> None:
        self.root, self.style = root, style
        self.topology = write_machine(root, machine)
        self.online = str(self.topology.online)
        self.pods: dict[str, Pod] = {}
        self.now = 1_700_000_000.0
        self.calls: list[Sequence[str]] = []
        write_cgroups(root, style, {"kubepods.slice": self._whole}, self.online, "0")
        self._write_cpu({"kubepods.slice": CPUFiles()})
        (root / "var/log/containers").mkdir(parents=True)
        (root / CONFIG).parent.mkdir(parents=True)
        self.configure(reserved, policy)

    @property
    def _whole(self) -> Files:
        return Files(self.online if self.style.version == 1 else "", "0")

    def configure(self, reserved: str, policy: str) -> None:
        """Write the kubelet's configuration."""
        (self.root / CONFIG).write_text(
            "%sreservedSystemCPUs: %s\ncpuManagerPolicy: %s\n" % (_HEADER, json.dumps(reserved), policy)
        )

    def make_partition(self, path: str, cpus: str, kind: str = "isolated") -> None:
        """Let a cgroup of v2 have these CPUs for itself: those below it have no others, and the topmost not these."""
        mount = self.root / self.style.mount[1:]
        if not (mount / path).exists():
            write_cgroups(self.root, self.style, {path: Files(cpus)}, self.online, "0")
        for name in ("cpuset.cpus", "cpuset.cpus.exclusive", "cpuset.cpus.exclusive.effective"):
            (mount / path / name).write_text(cpus + "\n")
        (mount / path / "cpuset.cpus.partition").write_text(kind + "\n")
        for below in (mount / path).rglob("cpuset.cpus.effective"):
            below.write_text(cpus + "\n")
        top = mount / "cpuset.cpus.effective"
        top.write_text("%s\n" % (CPUSet.parse(top.read_text()) - CPUSet.parse(cpus)))

    # --- pods --------------------------------------------------------------------------------------------------

    def add(self, *pods: Pod, cpus: str | None = None, is_logged: bool = True) -> None:
        """Start pods. cpus: what the runtime gives them; by default all CPUs."""
        given = cpus or (self.online if self.style.version == 1 else "")
        cgroups: dict[str, Files] = {}
        limits = {}
        for pod in pods:
            self.pods[pod.uid] = pod
            above = pod.path.split("/")
            cgroups.update({"/".join(above[:end]): self._whole for end in range(1, len(above) + 1)})
            for container in (pod.sandbox, pod.id):
                cgroups.update(container_files(SYSTEMD, "containerd", pod.path, container, given))
            # What the kubelet gives of the cpu controller: a pod has the sum of its containers.
            milli = 1000 * pod.cpus if pod.qos_class == "Guaranteed" else 500
            quota = pod.cpus * PERIOD_US if pod.cpus else None
            limit = CPUFiles(quota, PERIOD_US, shares=max(2, milli * 1024 // 1000))
            limits.update({pod.path: limit, pod.cgroup: limit})
            if is_logged:
                (self.root / "var/log/containers" / ("%s_shop_app-%s.log" % (pod.uid, pod.id))).touch()
        write_cgroups(self.root, self.style, cgroups, self.online, "0")
        self._write_cpu(limits)

    def remove(self, uid: str) -> None:
        """End a pod."""
        pod = self.pods.pop(uid)
        for mount in sorted({self.style.mount, cpu_mount(self.style)}):
            shutil.rmtree(self.root / mount[1:] / pod.path)

    def work(self, seconds: float, use: Mapping[str, float]) -> None:
        """Let time pass, in which these pods use so many CPUs."""
        self.now += seconds
        for uid, cpus in use.items():
            self._count(self.pods[uid].cgroup, seconds * cpus)
        self._count("kubepods.slice", seconds * sum(use.values()))

    def work_under(self, passing: Passing, periods: int, seconds: float, use: Mapping[str, float]) -> None:
        """Let periods of so many seconds pass, each after one pass."""
        for _period in range(periods):
            passing.one_pass()
            self.work(seconds, use)

    def _write_cpu(self, cgroups: Mapping[str, CPUFiles]) -> None:
        write_cpu(self.root, self.style, cgroups)
        for path in ("", "kubepods.slice", *cgroups):
            counter = self._counter(path)
            if self.style.version == 1 and not counter.exists():
                counter.write_text("0\n")

    def _counter(self, path: str) -> Path:
        name = "cpuacct.usage" if self.style.version == 1 else "cpu.stat"
        return self.root / cpu_mount(self.style)[1:] / path / name

    def _count(self, path: str, seconds: float) -> None:
        counter = self._counter(path)
        text = counter.read_text()
        if self.style.version == 1:
            counter.write_text("%d\n" % (int(text) + round(1e9 * seconds)))
            return
        first, _newline, rest = text.partition("\n")
        counter.write_text("usage_usec %d\n%s" % (int(first.split()[1]) + round(1e6 * seconds), rest))

    # --- what is there -----------------------------------------------------------------------------------------

    def sets(self) -> dict[str, str]:
        """Return {pod: what the kernel lets its container use}"""
        hierarchy = Hierarchy(Tree(str(self.root)))
        return {uid: str(hierarchy.effective_cpus(pod.cgroup)) for uid, pod in self.pods.items()}

    def masks(self) -> dict[str, int]:
        """Return the same as masks, also of sandboxes: "sandbox UID"."""
        hierarchy = Hierarchy(Tree(str(self.root)))
        found = {}
        for uid, pod in self.pods.items():
            sandbox = pod.cgroup.replace(pod.id, pod.sandbox)
            for name, path in ((uid, pod.cgroup), ("sandbox " + uid, sandbox)):
                found[name] = (hierarchy.effective_cpus(path) or CPUSet()).mask
        return found

    def file(self, uid: str) -> dict[str, Any]:
        """Return what the file of a pod's container says."""
        text = (self.root / PUBLISHED / uid / "app.json").read_text()
        data: dict[str, Any] = json.loads(text)
        return data

    def quota(self, uid: str, of_pod: bool = False) -> str:
        """Return the quota of a pod's container, or of the pod."""
        pod = self.pods[uid]
        name = "cpu.cfs_quota_us" if self.style.version == 1 else "cpu.max"
        path = pod.path if of_pod else pod.cgroup
        return (self.root / cpu_mount(self.style)[1:] / path / name).read_text().split()[0]

    # --- passes ------------------------------------------------------------------------------------------------

    def agent(self, **settings: Any) -> Agent:
        """Return a program that has just been started."""
        wanted = {"policy": "dynamic", "period": "10s", "settle": "0s", **settings}
        return Agent(Tree(str(self.root)), read_settings(wanted), lambda: self.now, lambda: self.now, self._crictl)

    def _crictl(self, _tree: Tree, endpoint: str | None) -> Crictl:
        return Crictl("crictl", endpoint, self._run)

    def _run(self, arguments: Sequence[str]) -> str:
        """Return what the runtime says, as crictl prints it."""
        self.calls.append(arguments)
        command = arguments[1]
        if command == "ps":
            return json.dumps({"containers": [_container(pod) for pod in self.pods.values()]})
        if command == "pods":
            return json.dumps({"items": [_sandbox(pod) for pod in self.pods.values()]})
        assert command == "inspect"
        (pod,) = (pod for pod in self.pods.values() if pod.id == arguments[-1])
        shares = {"cpu": {"shares": 1024 * pod.cpus}}
        return json.dumps({"info": {"runtimeSpec": {"linux": {"resources": shares}}}})


def _labels(pod: Pod) -> dict[str, str]:
    return {
        "io.kubernetes.pod.name": pod.uid,
        "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.pod.uid": pod.uid,
    }


def _container(pod: Pod) -> dict[str, Any]:
    return {"id": pod.id, "metadata": {"name": "app"}, "labels": _labels(pod)}


def _sandbox(pod: Pod) -> dict[str, Any]:
    annotations = {ANNOTATION: pod.elastic} if pod.elastic else {}
    return {"id": pod.sandbox, "labels": _labels(pod), "annotations": annotations}
