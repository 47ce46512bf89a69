# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What goes wrong for users today in cgroups, as the kernel does it, and what this collection does about it.

The others, which take a kubelet: tests/cluster/test_pains.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.reservation_request import reserve
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import reconcile_pods

from .cgroups import Cgroups

# Fixtures are used by their names.
# pylint: disable=unused-import
from .test_enforcement import OWN_PATH, SETS, SHARED_PATH, enforced, kubelet, names, told  # noqa: F401


def test_6_host_daemons_run_on_exclusive_cpus(cgroups: Cgroups) -> None:
    cgroups.make_all(SETS)
    # It starts wherever the machine lets it, and nobody keeps it off the CPU of a pod.
    daemon = subprocess.Popen(["sleep", "600"])
    cgroups.processes.append(daemon)
    exclusive = cgroups.cpus[1]
    assert exclusive in os.sched_getaffinity(daemon.pid)
    (note,) = (note for note in enforced(cgroups).notes if "may run on the exclusive CPUs" in note)
    assert note.startswith("what runs in ")
    assert "may run on the exclusive CPUs %d, too: keep services off them with CPUAffinity=" % exclusive in note
    # The plan of the reservation has the value for it, with which services are started.
    node = Node(Tree())
    affinity = reserve(node.tree, node.topology, {"count": 1, "allow_split_core": True}).reserved
    os.sched_setaffinity(daemon.pid, list(affinity))
    assert os.sched_getaffinity(daemon.pid) == set(affinity)


def test_9_a_cpuset_that_somebody_resets_stays_so(cgroups: Cgroups, tmp_path: Path) -> None:
    cgroups.make_all(SETS)
    process = cgroups.start(OWN_PATH)
    node = kubelet(cgroups, tmp_path)
    checkpoint = node.checkpoint()
    # As systemd does it when it is reloaded. The kubelet's checkpoint goes on saying otherwise.
    assert cgroups.write(OWN_PATH, "0-1") == ""
    assert (cgroups.allowed(process), node.checkpoint()) == ("0-1", checkpoint)
    assert told(cgroups) == {"container shop/db-0/server": ("1", "0-1")}
    assert reconcile_pods(node, None, act=True).changed
    assert (cgroups.allowed(process), told(cgroups)) == ("1", {})


# In a cgroup, work for a moment and then wait for the next request.
WORK = """\
import os, sys, time
with open(sys.argv[1], "w") as processes:
    processes.write(str(os.getpid()))
for _request in range(3):
    end = time.process_time() + 0.04
    while time.process_time() < end:
        pass
    time.sleep(0.4)
"""


@pytest.fixture
def quota(cgroups: Cgroups) -> Iterator[Path]:
    """Yield a cgroup that may use 5 ms of CPU in each period of 100 ms, as a container with such a limit."""
    place = Path("/sys/fs/cgroup/cpu", cgroups.top)
    if not os.access(place.parent / "cpu.cfs_quota_us", os.W_OK):
        pytest.skip("there is no cpu controller of cgroup v1 here")
    place.mkdir()
    (place / "cpu.cfs_period_us").write_text("100000", encoding="ascii")
    (place / "cpu.cfs_quota_us").write_text("5000", encoding="ascii")
    yield place
    # A process that has ended leaves its cgroup a little later.
    while (place / "cgroup.procs").read_text(encoding="ascii"):
        time.sleep(0.01)
    place.rmdir()


def throttled(place: Path) -> int:
    """Return in how many periods the kernel made a cgroup wait."""
    lines = (place / "cpu.stat").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("nr_throttled "))


def test_11_pinned_pods_are_throttled(cgroups: Cgroups, quota: Path) -> None:
    assert throttled(quota) == 0
    command = [sys.executable, "-c", WORK, str(quota / "cgroup.procs")]
    for process in [subprocess.Popen(command) for _thread in range(2)]:
        assert process.wait(60) == 0
    assert throttled(quota) > 0
    # Up to 1.32 a kubelet gives such a quota to containers that have their CPUs to themselves, and says nothing.
    node = Node(Tree())
    static = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cpuManagerPolicy": "static",
        "kubeReserved": {"cpu": "1"},
    }
    for minor, wheres in ((32, ["cpuCFSQuota"]), (33, [])):
        findings = predict_values(static, node.machine()._replace(minor=minor)).findings
        assert [finding.where for finding in findings if "throttled" in finding.cause] == wheres


def test_12_the_affinity_of_a_service_leaks_into_pods(cgroups: Cgroups) -> None:
    cgroups.make_all({**SETS, SHARED_PATH: "0-1"})
    runtime = cgroups.start(SHARED_PATH)
    assert not any("bound" in note for note in enforced(cgroups).notes)
    # Its service has CPUAffinity=, and so has all that it starts: no cpuset says so.
    os.sched_setaffinity(runtime.pid, cgroups.cpus[:1])
    assert (cgroups.allowed(runtime), cgroups.sets()[SHARED_PATH]) == ("0", "0-1")
    (note,) = (note for note in enforced(cgroups).notes if "bound" in note)
    assert "has: 1 (shop/web-1/app: %d of " % cgroups.cpus[0] in note
    assert "the CPUAffinity= of the service that started it" in note
