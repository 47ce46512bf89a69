# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is found on a real CPU that a container has to itself; `make bench` plays many more such scenes."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPUACCT
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation import watch
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation import watch as tasks
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import PerCpu

from .cgroups import Cgroups
from .intruders import INTRUDERS, OWN_PATH, OWNERS, POD, SHARED_PATH, Scene, settle, why_no_scenes

# Of the same container, after a restart.
NEW_PATH = "%s/%064x" % (POD, 0xD)
# The machine may be too busy with other tests for a scene; what then cannot be played says nothing.
NOT_PLAYED = "the machine is not quiet enough"


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    reason = why_no_scenes()
    if reason:
        pytest.skip(reason)
    # One scene at a time: each moves all other processes away from its CPU.
    with Cgroups() as cgroups, Scene(tmp_path, cgroups) as made:
        yield made


def test_intruders_are_found(scene: Scene) -> None:
    played = []
    for number, (name, intruder) in enumerate(INTRUDERS.items()):
        wrong, _again = settle(scene, OWNERS[number % len(OWNERS)], intruder)
        assert not wrong, "%s: %s" % (name, wrong)
        if wrong is not None:
            played.append(name)
    assert {"pinned process", "service", "container moved by hand"} <= set(played)


def test_nobody_is_accused_on_a_quiet_cpu(scene: Scene) -> None:
    outcomes = [settle(scene, owner, None)[0] for owner in OWNERS]
    assert not any(outcomes), outcomes
    if all(outcome is None for outcome in outcomes):
        pytest.skip(NOT_PLAYED)


def test_without_what_cgroups_count_on_each_cpu(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with v2: the tasks have to tell, and the CPUs of those that may use several are sampled."""
    monkeypatch.setattr(PerCpu, "begin", lambda _self: False)
    of_v1 = tasks.parse_cgroup
    monkeypatch.setattr(watch, "parse_cgroup", lambda content, _controller: of_v1(content, CPUACCT))
    played = 0
    for number, name in enumerate((None, "pinned process", "container moved by hand", "kernel worker")):
        wrong, _again = settle(scene, OWNERS[number % len(OWNERS)], INTRUDERS[name] if name else None)
        assert not wrong, "%s: %s" % (name, wrong)
        played += wrong is not None
    assert played


def test_what_the_verdicts_and_the_accounts_say(scene: Scene) -> None:
    """The container's own time, a neighbour's on the other CPU, and the module itself."""
    allowed = os.sched_getaffinity(0)
    seen = scene.play(0.5, None)
    assert os.sched_getaffinity(0) == allowed
    assert 40 < seen.row["own_percent"] < 60
    assert (seen.row["container"], seen.row["pod_uid"], seen.row["id"]) == (
        "server",
        "uid-db",
        OWN_PATH.rpartition("/")[2],
    )
    observer = seen.report["observer"]
    assert (observer["pid"], observer["cpus"]) == (os.getpid(), str(scene.neighbour))
    assert [row["cpu"] for row in seen.report["cpus"]][:2] == sorted((scene.neighbour, scene.cpu))
    own = next(row for row in seen.report["cpus"] if row["cpu"] == scene.cpu)
    assert own["exclusive_to"] == "uid-db/server"
    assert any(name.startswith("LOC ") for name in own["interrupts"])
    assert SHARED_PATH not in str(own["by"])


@pytest.mark.parametrize("restarts", [False, True])
def test_a_container_that_ends_while_it_looks(scene: Scene, restarts: bool) -> None:
    """Its time is counted for the pod's cgroup then; that is nobody whom it could be disturbed by."""

    def end() -> None:
        time.sleep(0.5)
        scene.clear()
        scene.remove(OWN_PATH)
        if restarts:
            scene.make(NEW_PATH, "1")
            scene.burn(NEW_PATH, 1.0)
            scene.go()

    thread = threading.Thread(target=end)
    try:
        scene.burn(OWN_PATH, 1.0)
        scene.go()
        thread.start()
        report = scene.report(1)
    finally:
        thread.join()
        scene.clear()
        scene.remove(NEW_PATH)
    (row,) = report["containers"]
    assert (row["verdict"], row["by"], report["findings"]) == (None, [], [])
    assert [note for note in report["notes"] if "ended or began during the sample" in note]


def test_processes_that_end_soon_are_nobodys(scene: Scene) -> None:
    """A loop of short programs: what was not seen of it is unattributed, and nobody else is accused of it."""
    try:
        loop = "read -r line; while :; do /bin/true; done"
        scene.start(None, "sh", "-c", loop, cpus={scene.cpu})
        seen = scene.play(0.0, None)
    finally:
        scene.clear()
    assert seen.row["verdict"] == "disturbed"
    assert {part["kind"] for part in seen.row["by"] if part["percent"] > 5} <= {"process", "unattributed"}
    assert abs(seen.row["foreign_percent"] - seen.foreign) < 15
