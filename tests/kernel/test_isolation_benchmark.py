# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Benchmarks in this machine's own cgroups, short ones, and how they end: by themselves, by a signal, by a limit."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.benchmark_cgroups import (
    TOP,
    BenchmarkCgroups,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.run import LOCK, Keeper
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import need
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone, why_not

CHECKOUT = Path(__file__).parents[2]
MODULE = "ansible_collections.kubenode.cpu_manager.plugins.modules.isolation_benchmark"

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Yield a function that starts the module with these arguments as Ansible does, as a process; in the end nothing
    of it may be there."""
    started: list[subprocess.Popen[str]] = []

    def begin(
        check: bool = False, affinity: CPUSet | None = None, below: bool = False, **arguments: Any
    ) -> subprocess.Popen[str]:
        """Start the module. below: whether the process that is started is one that starts the module and waits for
        it."""
        given = {"runs": 1, "units": 10, "seed": 1, "allow_pods": True, "_ansible_check_mode": check, **arguments}
        file = tmp_path / ("arguments-%d.json" % len(started))
        file.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": given}), encoding="utf-8")
        # Who runs the tests in the background of a shell has SIGINT ignored, and so would it.
        around = ["env", "--default-signal=INT"]
        if affinity:
            around += ["taskset", "-c", str(affinity)]
        if below:
            around += [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])"]
        started.append(
            subprocess.Popen(
                [*around, sys.executable, "-m", MODULE, str(file)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=COLLECTIONS,
                start_new_session=True,
            )
        )
        return started[-1]

    with alone():
        yield begin
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        eventually_nothing()


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    output = process.communicate(timeout=60)[0]
    found: dict[str, Any] = json.loads(output.strip().rpartition("\n")[2])
    return found


def left() -> list[str]:
    """Return what there is of a benchmark on this machine: cgroups, with their processes, and the lock."""
    cgroups = BenchmarkCgroups(Tree("/")).leftovers()
    return [*cgroups, *processes(), *([LOCK] if os.path.exists(LOCK) else [])]


def processes() -> list[str]:
    """Return processes in the cgroups of a benchmark."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if TOP in place.read_text(encoding="utf-8"):
                found.append(place.parent.name)
        except OSError:
            continue  # it has ended
    return found


def eventually_nothing() -> None:
    deadline = time.monotonic() + 10
    while left():
        assert time.monotonic() < deadline, left()
        time.sleep(0.02)


def until_it_works(process: subprocess.Popen[str], count: int = 1) -> None:
    deadline = time.monotonic() + 30
    while len(processes()) < count:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)


ONLINE = CPUSet() if WHY_NOT else Hierarchy(Tree("/")).online_cpus()


def reserved() -> str:
    return str(ONLINE.first())


def test_all_experiments_are_measured(start: Start) -> None:
    found = answer(start(reserved_system_cpus=reserved()))
    assert "failed" not in found, found
    assert {row["experiment"] for row in found["summary"]} == {"stand-alone", "aggressor", "co-located"}
    assert {row["case"] for row in found["rows"]} == set(range(len(found["cases"])))
    places = [row["place"] for row in found["rows"]]
    assert places == sorted(places)
    assert all(0 < row["p50"] <= row["p99"] <= row["longest"] <= row["seconds"] for row in found["rows"])
    assert [answer["question"] for answer in found["verdict"]][:2] == ["not worse than alone", "better than shared"]
    assert left() == []


def test_stress_ng_as_the_aggressor(start: Start) -> None:
    """The real one, with processes of its own below it: it runs on the CPUs that are left to it, and all of it ends."""
    need("stress-ng")
    begun = start(reserved_system_cpus=reserved(), experiments=["aggressor"], units=200, stress_ng=True)
    seen = set()
    while begun.poll() is None:
        for process in processes():
            with suppress(OSError):
                name = Path("/proc", process, "comm").read_text(encoding="utf-8").strip()
                seen.add((name, Path("/proc", process, "status").read_text(encoding="utf-8")))
        time.sleep(0.05)
    found = answer(begun)
    assert "failed" not in found, found
    assert {row["placement"] for row in found["summary"]} >= {"shared", "exclusive"}
    stressors = [status for name, status in seen if name.startswith("stress-ng")]
    assert stressors, sorted(name for name, _status in seen)
    allowed = {line.split()[1] for status in stressors for line in status.splitlines() if "Cpus_allowed_list:" in line}
    (exclusive,) = {row["cpus"] for row in found["summary"] if row["placement"] == "exclusive"}
    # Beside a victim with exclusive CPUs it has the others alone.
    assert str(ONLINE - CPUSet.parse(exclusive)) in allowed
    assert left() == []


@pytest.mark.parametrize("affinity", [None, ONLINE and CPUSet([ONLINE.first()])], ids=["", "with CPUAffinity="])
def test_containers_have_the_cpus_and_limits_of_the_plan(start: Start, tmp_path: Path, affinity: CPUSet | None) -> None:
    """A command writes down where it is: its cgroups, the CPUs that the kernel lets it use, and its limits.

    Also where the module itself may use one CPU only, as below an sshd with CPUAffinity=.
    """
    files = "cpu.shares cpu.cfs_quota_us" if BenchmarkCgroups(Tree("/")).version == 1 else "cpu.weight cpu.max"
    mount = BenchmarkCgroups(Tree("/")).mounts[-1]
    script = (
        "at=$(grep -o '%s.*' /proc/self/cgroup | head -1); cd %s/$at; cpus=$(grep Cpus_allowed_list /proc/self/status);"
        " echo $at $cpus $(cat %s) >> %s; echo 1" % (TOP, mount, files, tmp_path / "seen")
    )
    own = {"command": ["sh", "-c", script], "time_pattern": "(1)"}
    found = answer(
        start(
            affinity=affinity,
            experiments=["stand-alone", "co-located"],
            reserved_system_cpus=reserved(),
            workloads={"victim": own, "compute": own},
        )
    )
    assert "failed" not in found, found
    lines = (tmp_path / "seen").read_text(encoding="utf-8").splitlines()
    seen = {tuple(line.replace("Cpus_allowed_list: ", "").split()) for line in lines}
    cpus = {words[:2] for words in seen}
    planned = {
        (
            "/".join([TOP, *(["burstable"] if part["qos_class"] == "Burstable" else []), part["workload"]]),
            part["cpus"],
        )
        for case in found["cases"]
        for part in case["containers"]
        if part["workload"] in ("victim", "compute")
    }
    assert planned <= cpus
    limits: dict[str, set[tuple[str, ...]]] = {}
    for path, _allowed, *rest in seen:
        limits.setdefault(path.rpartition("/")[2], set()).add(tuple(rest))
    if files.startswith("cpu.shares"):
        assert {("1024", "100000"), ("1024", "-1")} <= limits["victim"]
        assert ("512", "-1") in limits["compute"]


def test_check_mode_says_what_it_would_run(start: Start) -> None:
    found = answer(start(check=True, runs=10))
    assert found["changed"] is False
    assert found["expected_seconds"] > 10 * len(found["cases"]) * 0.02
    assert {case["experiment"] for case in found["cases"]} == {"stand-alone", "aggressor", "co-located"}
    assert "rows" not in found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whatever_ends_it_ends_all(start: Start, number: signal.Signals) -> None:
    # A command whose children live on, and which hides from the signal.
    script = "trap '' TERM INT HUP; setsid sleep 300 & sleep 300 & wait; sleep 300"
    process = start(experiments=["stand-alone"], workloads={"victim": {"command": ["sh", "-c", script]}})
    until_it_works(process, 4)
    process.send_signal(number)
    process.communicate(timeout=10)
    eventually_nothing()


def test_a_kill_of_the_process_group_at_the_first_cgroup_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible kills the group of an asynchronous task whose time is over, also while the benchmark begins."""

    def late() -> None:
        time.sleep(0.3)
        setsid()

    setsid = os.setsid
    monkeypatch.setattr(os, "setsid", late)
    with alone():
        pid = os.fork()
        if not pid:
            os.setpgid(0, 0)
            cgroups = BenchmarkCgroups(Tree("/"))
            Keeper(cgroups).__enter__()
            cgroups.make(TOP, ONLINE, 1024, None)
            time.sleep(60)
            os._exit(1)
        while not BenchmarkCgroups(Tree("/")).leftovers():
            time.sleep(0.001)
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        eventually_nothing()


def test_it_ends_with_the_process_that_started_it(start: Start) -> None:
    """The wrapper of an asynchronous task can end alone: on a busy node, the module misses the kill of its group."""
    process = start(below=True, experiments=["stand-alone"], workloads={"victim": {"command": ["sleep", "300"]}})
    until_it_works(process, 2)
    process.kill()
    process.wait(timeout=10)
    eventually_nothing()


def test_a_node_with_pods_is_refused_unless_it_is_allowed(start: Start, tmp_path: Path) -> None:
    """The pods are two cgroups as the kubelet makes them, below a cgroup root of their own."""
    hierarchy = Hierarchy(Tree("/"))
    top = hierarchy.place("kubenode-test-pods-%d" % os.getpid())
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n"
        % os.path.basename(top),
        encoding="utf-8",
    )
    places = [
        top,
        top + "/kubepods",
        top + "/kubepods/pod1",
        top + "/kubepods/burstable",
        top + "/kubepods/burstable/pod2",
    ]
    try:
        for place in places:
            os.mkdir(place)
        found = answer(start(config_path=str(config), allow_pods=False))
        assert found["failure"]["kind"] == "refused"
        assert "2 pods run on this node" in found["msg"]
        assert "allow_pods" in found["msg"]
        found = answer(start(config_path=str(config), experiments=["stand-alone"]))
        assert any(note.startswith("2 pods ran on this node") for note in found["notes"]), found
    finally:
        for place in reversed(places):
            if os.path.isdir(place):
                os.rmdir(place)


def test_what_an_earlier_one_left_is_removed(start: Start) -> None:
    cgroups = BenchmarkCgroups(Tree("/"))
    for mount in cgroups.mounts:
        os.mkdir(os.path.join(mount, TOP))
        os.mkdir(os.path.join(mount, TOP, "victim"))
    found = answer(start(experiments=["stand-alone"]))
    assert any("a benchmark that was killed" in note for note in found["notes"])
    assert left() == []


def test_a_second_one_is_refused(start: Start) -> None:
    first = start(experiments=["stand-alone"], workloads={"victim": {"command": ["sleep", "300"]}})
    until_it_works(first)
    second = answer(start(experiments=["stand-alone"]))
    assert second["failure"]["kind"] == "refused"
    assert "another benchmark runs" in second["msg"]
    # The first is as it was.
    assert first.poll() is None
    assert processes()


def test_the_time_that_it_may_take_ends_it(start: Start) -> None:
    begun = time.monotonic()
    found = answer(start(seconds=2, experiments=["stand-alone"], workloads={"victim": {"command": ["sleep", "300"]}}))
    assert "did not end within 2 seconds" in found["msg"]
    assert found["failure"]["where"] == "seconds"
    assert time.monotonic() - begun < 60
    assert left() == []


OWN = {"experiments": ["stand-alone"]}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"runs": 0}, "runs: 0 is not from 1 to 1000"),
        ({"units": 0}, "units: 0 is not from 1"),
        ({"cpus": 5000}, "cpus: 5000 CPUs are wanted for containers of their own"),
        ({"experiments": []}, "experiments: no experiment is wanted"),
        ({"runs": 1000}, "and 900 are allowed"),
        ({"reserved_system_cpus": "0-4000"}, "reserved_system_cpus: "),
        ({"workloads": {"victim": {"command": ["no-such-program"]}}}, "no-such-program is no program on the node"),
        ({**OWN, "workloads": {"victim": {"command": ["sh", "-c", "echo no; exit 3"]}}}, "ends with status 3: no"),
        (
            {**OWN, "workloads": {"victim": {"command": ["echo", "x"], "time_pattern": "t=([0-9]+)"}}},
            "workloads.victim: prints no time",
        ),
        (
            {"experiments": ["aggressor"], "workloads": {"aggressor": {"command": ["sh", "-c", "exit 4"]}}},
            "workloads.aggressor: ends with status 4",
        ),
    ],
)
def test_what_is_wrong_is_one_clear_error(start: Start, arguments: Mapping[str, Any], what: str) -> None:
    found = answer(start(**arguments))
    assert found["failed"] is True
    assert what in found["msg"]
    assert found["failure"]["kind"] == "input"
    assert not re.search(r"Traceback|\n", found["msg"])
    assert left() == []
