# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_isolation/isolation_info.py on a node with 1,000 containers."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation import isolation_info as isolation
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.isolation_info import isolation_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import (
    CgroupTime,
    Counts,
    Sample,
    Ticks,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    CGROUPFS,
    V1,
    V2,
    Files,
    Style,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.promises import take_over
from ansible_collections.kubenode.cpu_manager.tests.machines.samples import sample, task

# Each second pod has a container with a CPU of its own; all other containers share the first six CPUs.
PODS, CPUS, SHARED = 500, 256, 6
INTRUDER, DISTURBED = "system.slice/noise.service", 100
# Beside the sample, in seconds.
MOST = 2.0


@pytest.fixture
def root() -> Iterator[Path]:
    """Yield a root directory, in memory where that is possible."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def write_large(root: Path, style: Style, ours: bool) -> dict[str, int]:
    """Write the node; {cgroup of a container: the CPU that it runs on}."""
    cgroups, runs, given = {}, {}, {}
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    for pod in range(PODS):
        path = pod_path(CGROUPFS, "uid-%d" % pod, ("Guaranteed", "Burstable")[pod % 2])
        cgroups["%s/%064x" % (path, 5000 + pod)] = Files("0-%d" % (CPUS - 1), "0")
        for number in range(2):
            name = "%064x" % (2 * pod + number)
            cpu = pod % SHARED
            if pod % 2 == number == 0:
                cpu = SHARED + pod // 2
                given["uid-%d" % pod, "c0"] = cpu
            cgroups["%s/%s" % (path, name)] = Files(str(cpu) if cpu >= SHARED else "0-%d" % (SHARED - 1), "0")
            runs["%s/%s" % (path, name)] = cpu
            (logs / ("p%d_shop_c%d-%s.log" % (pod, number, name))).touch()
    write_cgroups(root, style, cgroups, online="0-%d" % (CPUS - 1))
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").write_text(HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n")
    if ours:
        take_over(root, {key: str(cpu) for key, cpu in given.items()}, "0-%d" % (SHARED - 1))
    else:
        assignments = {uid: {name: CPUSet((cpu,))} for (uid, name), cpu in given.items()}
        content = write_checkpoint("static", State(CPUSet(range(SHARED)), assignments))
        (kubelet / "cpu_manager_state").write_bytes(content)
    return runs


def taken(runs: dict[str, int], style: Style) -> Sample:
    """Return each container with a CPU of its own runs on it for half of the time; the others share a tenth of
    theirs."""
    shares = {path: {cpu: 0.5 if cpu >= SHARED else 0.001} for path, cpu in runs.items()}
    shares[INTRUDER] = {DISTURBED: 0.25}
    busy = dict.fromkeys(range(CPUS), 0.0)
    for of in shares.values():
        for cpu, share in of.items():
            busy[cpu] += share
    count = {"LOC (Local timer interrupts)": 1250, "36 virtio1-req.0": 12, "RES (Rescheduling interrupts)": 7}
    interrupts = Counts(dict.fromkeys(range(CPUS), count), ())
    more = {
        "online": CPUSet(range(CPUS)),
        "watched": CPUSet(range(SHARED, CPUS)),
        "busy": busy,
        "idle": {cpu: 1 - share for cpu, share in busy.items()},
        "ticks": dict.fromkeys(range(CPUS), Ticks(0, 0, 0, 1000, 0, 0, 0, 0)),
        "interrupts": interrupts,
    }
    if style is V1:
        return sample(**more, cgroups=[CgroupTime(path, of) for path, of in shares.items()])
    tasks = [task("app", of, path, pid=number) for number, (path, of) in enumerate(shares.items(), 1000)]
    return sample(**more, busy_exact=False, tasks=tasks)


@pytest.mark.parametrize("ours", [False, True], ids=["kubelet", "dynamic"])
@pytest.mark.parametrize("style", [V1, V2], ids=["v1", "v2"])
def test_a_thousand_containers(root: Path, monkeypatch: pytest.MonkeyPatch, style: Style, ours: bool) -> None:
    """Two seconds are promised beyond the sample: for the names, cgroups, checkpoint and accounts together."""
    found = taken(write_large(root, style, ours), style)
    monkeypatch.setattr(Tree, "live", property(lambda _tree: True))
    monkeypatch.setattr(isolation, "take", lambda *_arguments: found)
    start = time.process_time()
    report = isolation_report(Node(Tree(str(root)), minor=33), 5, 1.0)
    took = time.process_time() - start
    rows = report["containers"]
    assert len(rows) == PODS // 2
    assert all(row["id"] == "%064x" % (2 * int(row["pod_uid"][4:])) for row in rows)
    assert [row["cpus"] for row in rows if row["verdict"] == "disturbed"] == [str(DISTURBED)]
    assert {row["verdict"] for row in rows if row["cpus"] != str(DISTURBED)} == {"alone"}
    (finding,) = report["findings"]
    assert finding["subject"] == "shop/p%d/c0" % (2 * (DISTURBED - SHARED))
    assert INTRUDER in finding["found"]
    assert {row["own_percent"] for row in rows} == {50.0}
    assert (len(report["cpus"]), report["notes"]) == (CPUS, [])
    assert len(json.dumps(report)) < 1 << 20
    assert took < MOST, took
