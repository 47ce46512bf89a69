# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passes of the policy dynamic over real processes in this machine's own cgroups of version 1.

The machine may have two CPUs only: a container gets one of them alone, and the shared pool keeps the other. Growth
takes more, and is seen by the scenario cpusets on machines of eight.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import (
    CPU,
    CPUACCT,
    Hierarchy,
    Quota,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writer import read_quota, write_quota
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import LoggedContainer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic import census
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.acting import Quotas
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.agent import Agent, release
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.dynamic_settings import read_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import exclusive as promise
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published import publish as directory
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

DB, WEB = ("%064x" % number for number in (0xA, 0xB))
DB_PATH, WEB_PATH = "kubepods/poddb/" + DB, "kubepods/burstable/podweb/" + WEB


def _why_not() -> str:
    if os.geteuid():
        return "needs root"
    try:
        hierarchies = [Hierarchy(Tree(), controller) for controller in ("cpuset", CPU, CPUACCT)]
    except NodeError as error:
        return str(error)
    if any(hierarchy.version != 1 for hierarchy in hierarchies) or not {0, 1} <= set(hierarchies[0].online_cpus()):
        return "needs the controllers cpuset, cpu and cpuacct of cgroup v1, and CPUs 0 and 1"
    return ""


pytestmark = pytest.mark.skipif(bool(_why_not()), reason=_why_not())


class Machine:
    """Cgroups of a kubelet whose root is one of our own, with sleeping processes."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.name = "kubenode-dynamic-%d" % os.getpid()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        mounts = {Hierarchy(Tree(), controller).mount for controller in ("cpuset", CPU, CPUACCT)}
        self.tops = [Path(mount, self.name) for mount in sorted(mounts)]
        self.cpuset, self.cpu = (Path(Hierarchy(Tree(), controller).mount, self.name) for controller in ("cpuset", CPU))
        self.online = str(Hierarchy(Tree()).online_cpus())
        (place / "config.yaml").write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n"
            "reservedSystemCPUs: '%s'\n" % (self.name, self._reserved)
        )

    @property
    def _reserved(self) -> str:
        """All but the last: what is left is what a container can get."""
        return str(Hierarchy(Tree()).online_cpus().take(len(Hierarchy(Tree()).online_cpus()) - 1))

    def start(self, path: str, shares: int) -> None:
        """Start a container with one process."""
        for top in self.tops:
            at = top
            for part in ("", *path.split("/")):
                at = at / part
                at.mkdir(exist_ok=True)
                if (at / "cpuset.mems").exists() and not (at / "cpuset.mems").read_text().strip():
                    (at / "cpuset.mems").write_text("0")
                    (at / "cpuset.cpus").write_text(self.online)
        (self.cpu / path / "cpu.shares").write_text("%d" % shares)
        process = subprocess.Popen(["sleep", "300"])
        self.processes[path] = process
        for top in self.tops:
            (top / path / "cgroup.procs").write_text("%d" % process.pid)

    def end(self, path: str) -> None:
        """End a container, with its pod."""
        process = self.processes.pop(path)
        process.kill()
        process.wait()
        for top in self.tops:
            os.rmdir(top / path)
            os.rmdir((top / path).parent)

    def allowed(self, path: str) -> str:
        """Return where the kernel lets its process run."""
        status = Path("/proc/%d/status" % self.processes[path].pid).read_text()
        return next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))

    def said(self, uid: str) -> dict[str, Any]:
        """Return what the file of its container says."""
        data: dict[str, Any] = json.loads((self.place / "cpus" / uid / "app.json").read_text())
        return data

    def clean(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        for top in self.tops:
            for path, _names, _files in os.walk(top, topdown=False):
                os.rmdir(path)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(directory, "PLACE", str(tmp_path / "cpus"))
    monkeypatch.setattr(promise, "PROMISE", str(tmp_path / "promise.json"))
    named = {DB: LoggedContainer("shop/db", "app"), WEB: LoggedContainer("shop/web", "app")}
    monkeypatch.setattr(census, "logged_containers", lambda _tree: named)
    with alone():
        made = Machine(tmp_path)
        try:
            yield made
        finally:
            made.clean()


def test_a_container_comes_and_goes(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.start(WEB_PATH, 512)
    machine.start(DB_PATH, 1024)
    settings = read_settings(
        {
            "policy": "dynamic",
            "use_runtime": False,
            "config_path": str(machine.place / "config.yaml"),
            "kubelet_root": str(machine.place),
        }
    )
    agent = Agent(Tree("/"), settings)
    # Whatever is written into the file of db, the kernel was there first.
    written: list[tuple[str, str]] = []
    real = directory.Directory.write

    def write(self: directory.Directory, pod: str, container: str, content: bytes) -> None:
        if pod == "db":
            written.append((json.loads(content)["cpus"], machine.allowed(DB_PATH)))
        real(self, pod, container, content)

    monkeypatch.setattr(directory.Directory, "write", write)
    report = agent.one_pass()
    assert (report.refused, report.notes) == ([], [])
    own, pool = machine.allowed(DB_PATH), machine.allowed(WEB_PATH)
    assert own == str(max(Hierarchy(Tree()).online_cpus()))
    assert pool == machine._reserved
    assert written == [(own, own)]
    assert (machine.said("db")["exclusive"], machine.said("web")["cpus"]) == (True, pool)
    # A hand edit lasts until the next pass.
    (machine.cpuset / WEB_PATH / "cpuset.cpus").write_text(machine.online)
    agent.one_pass()
    assert machine.allowed(WEB_PATH) == pool
    assert agent.one_pass().moves == []
    machine.end(DB_PATH)
    agent.one_pass()
    assert machine.allowed(WEB_PATH) == machine.online
    assert os.listdir(machine.place / "cpus") == ["web"]
    machine.start(DB_PATH, 1024)
    Agent(Tree("/"), settings).one_pass()
    assert machine.allowed(DB_PATH) == own
    assert release(Tree("/"), settings) == []
    assert machine.allowed(DB_PATH) == machine.allowed(WEB_PATH) == machine.online


def test_quotas_in_the_order_that_the_kernel_takes(machine: Machine) -> None:
    machine.start(DB_PATH, 1024)
    hierarchy = Hierarchy(Tree("/"), CPU)
    container = "%s/%s" % (machine.name, DB_PATH)
    pod = os.path.dirname(container)
    if read_quota(hierarchy, container) is None:
        pytest.skip("this kernel has no quotas")
    limit = Quota(100000, 100000)
    for path in (pod, container):
        write_quota(hierarchy, path, limit)
    quotas = Quotas(hierarchy, {})
    quotas.remember([container, pod])
    assert quotas.lift() == []
    assert [read_quota(hierarchy, path) for path in (pod, container)] == [limit.unlimited()] * 2
    quotas.remember([])
    assert quotas.put_back() == []
    assert [read_quota(hierarchy, path) for path in (pod, container)] == [limit] * 2
