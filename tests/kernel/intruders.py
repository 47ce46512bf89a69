# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scenes on a real CPU that a container has to itself: nobody else is there, or an intruder of some kind is."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.isolation_info import isolation_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

from . import quiet
from .cgroups import Cgroups, why_not

CPUACCT = Path("/sys/fs/cgroup/cpuacct")
OWN, SHARED = ("%064x" % number for number in (0xA, 0xB))
POD, WEB = "kubepods/poduid-db", "kubepods/burstable/poduid-web"
OWN_PATH, SHARED_PATH, SERVICE = "%s/%s" % (POD, OWN), "%s/%s" % (WEB, SHARED), "system.slice/noise.service"
# The exclusive CPU is number 1.
SETS = {
    **dict.fromkeys(("kubepods", "kubepods/burstable", POD, WEB, "system.slice", SERVICE), "0-1"),
    OWN_PATH: "1",
    SHARED_PATH: "0",
}
# From which share of the CPU an intruder has to be found.
THRESHOLD = 1.0
SETTLE = 0.25

BURN = """\
import sys, time
duty, period = float(sys.argv[1]), 0.02
sys.stdin.readline()
while True:
    until = time.thread_time() + duty * period
    while time.thread_time() < until:
        pass
    if duty < 1:
        time.sleep((1 - duty) * period)
"""
# Each write has a worker on every CPU do something.
STAT_REFRESH = """\
import sys, time
sys.stdin.readline()
pause = float(sys.argv[1])
while True:
    until = time.monotonic() + pause
    with open("/proc/sys/vm/stat_refresh", "w") as file:
        for _round in range(20):
            file.write("1")
            file.flush()
            file.seek(0)
    time.sleep(pause)
"""
# The packets of one CPU are taken up on another one.
FLOOD = """\
import socket, subprocess, sys, time
subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
with open("/sys/class/net/lo/queues/rx-0/rps_cpus", "w") as file:
    file.write(sys.argv[1])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
source = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
place, data, burst = sink.getsockname(), b"x" * 64, int(sys.argv[2])
sys.stdin.readline()
while True:
    for _packet in range(burst):
        source.sendto(data, place)
    time.sleep(0.001)
"""
MERGEABLE = """\
import mmap, os, sys, time
memory = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(12)
memory.write(os.urandom(4096) * (64 << 8))
sys.stdin.readline()
while True:
    time.sleep(60)
"""


class Seen(NamedTuple):
    """What came of a scene: its answer; and by other counts of the kernel, in percent of the CPU, what really was
    foreign there, and what the intruder took, or interrupts without one.
    """

    report: Mapping[str, Any]
    foreign: float
    taken: float

    @property
    def row(self) -> Mapping[str, Any]:
        """Of the container."""
        (row,) = self.report["containers"]
        return dict(row)

    def accused(self) -> list[tuple[str, str]]:
        """Return who makes the verdict, by kind and name; the hypervisor is nobody that a scene could keep off."""
        return [(part["kind"], part["name"]) for part in self.row["by"] if part["disturbs"] and part["kind"] != "steal"]


class Scene:
    """A context: a container alone on CPU 1 of a machine whose other processes are all on CPU 0."""

    def __init__(self, directory: Path, cgroups: Cgroups) -> None:
        self.cgroups, self.directory = cgroups, directory
        self.neighbour, self.cpu = cgroups.cpus
        self.guard: subprocess.Popen[str] | None = None
        self.allowed = os.sched_getaffinity(0)

    def __enter__(self) -> Scene:
        self.cgroups.make_all(SETS)
        for path in ("", *sorted(SETS)):
            (CPUACCT / self.cgroups.path(path)).mkdir(exist_ok=True)
        (self.directory / "config.yaml").write_text(
            "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n"
            % self.cgroups.top
        )
        state = State(self.cgroups.real("0"), {"uid-db": {"server": self.cgroups.real("1")}})
        (self.directory / "cpu_manager_state").write_bytes(write_checkpoint("static", state))
        hierarchy = self.cgroups.hierarchy
        self.guard = subprocess.Popen(
            [
                sys.executable,
                quiet.__file__,
                hierarchy.mount,
                self.cgroups.top + "-aside",
                str(self.cgroups.cpus[0]),
                str(hierarchy.memory_nodes()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert self.guard.stdout is not None
            assert self.guard.stdout.readline() == "quiet\n"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.clear()
        assert self.guard is not None
        self.guard.communicate("")
        # What a sample has set, it would keep.
        os.sched_setaffinity(0, self.allowed)
        for path in (*sorted(SETS, reverse=True), ""):
            self.remove_counter(path)

    def make(self, path: str, cpus: str) -> None:
        """Make one more cgroup, in both hierarchies."""
        (CPUACCT / self.cgroups.path(path)).mkdir()
        self.cgroups.make(path, cpus)

    def remove(self, path: str) -> None:
        """Remove a cgroup in both hierarchies."""
        self.remove_counter(path)
        self.cgroups.remove(path)

    def remove_counter(self, path: str) -> None:
        """Remove a cgroup where CPU time is counted, if it is there."""
        place = CPUACCT / self.cgroups.path(path)
        for _attempt in range(200):
            if not place.exists():
                return
            # A process that was killed leaves its cgroup a little later.
            with suppress(OSError):
                place.rmdir()
            time.sleep(0.01)

    def clear(self) -> None:
        """End what a scene has started."""
        for process in self.cgroups.processes:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        self.cgroups.processes.clear()

    def start(self, path: str | None, *command: str, cpus: set[int] | None = None) -> subprocess.Popen[bytes]:
        """Return a program in a cgroup, None: the topmost; it begins to work when go() says so."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0)
        self.cgroups.processes.append(process)
        places = [CPUACCT, Path(self.cgroups.hierarchy.mount)]
        for place in places:
            directory = place if path is None else place / self.cgroups.path(path)
            (directory / "cgroup.procs").write_text(str(process.pid))
        if cpus is not None:
            os.sched_setaffinity(process.pid, cpus)
        return process

    def burn(self, path: str | None, duty: float, cpus: set[int] | None = None) -> None:
        """Start a process that uses this part of a CPU."""
        self.start(path, sys.executable, "-S", "-c", BURN, str(duty), cpus=cpus)

    def go(self) -> None:
        """Let what was started work."""
        for process in self.cgroups.processes:
            if process.stdin is not None and process.poll() is None:
                process.stdin.write(b"\n")

    def report(self, seconds: int) -> dict[str, Any]:
        """Return what a sample says."""
        node = Node(Tree(), str(self.directory / "config.yaml"), str(self.directory))
        return isolation_report(node, seconds, THRESHOLD)

    def play(self, owner: float, intruder: Intruder | None, seconds: int = 1) -> Seen:
        """See what a sample says of a container that uses the part `owner` of its CPU, beside an intruder."""
        try:
            if owner:
                self.burn(OWN_PATH, owner)
            else:
                self.start(OWN_PATH, "sleep", "600")
            if intruder is not None:
                intruder.plant(self)
            time.sleep(SETTLE)
            self.go()
            time.sleep(SETTLE / 2)
            taken = intruder.taken if intruder is not None else interrupts
            begun, before = time.monotonic_ns(), (self.foreign(), taken(self))
            report = self.report(seconds)
            after, lasted = (self.foreign(), taken(self)), time.monotonic_ns() - begun
            return Seen(report, *(100 * (now - then) / lasted for now, then in zip(after, before)))
        finally:
            self.clear()
            if (quiet.KSM / "run").exists():
                (quiet.KSM / "run").write_text("0")
            if self.cgroups.sets()[SHARED_PATH] != "0":
                self.cgroups.write(SHARED_PATH, "0")

    def foreign(self) -> int:
        """Return how long all but the container ran on its CPU, in nanoseconds."""
        every, own = (
            int((directory / "cpuacct.usage_percpu").read_text().split()[self.cpu])
            for directory in (CPUACCT, CPUACCT / self.cgroups.path(OWN_PATH))
        )
        return every - own


# --- intruders ----------------------------------------------------------------------------------------------------


class Intruder(NamedTuple):
    """One kind of intruder: what plants it, how long it ran by another count of the kernel, in nanoseconds; who is to
    be accused, by kind and how the name begins; and how much it has to take, in percent.
    """

    plant: Callable[[Scene], object]
    taken: Callable[[Scene], int]
    kind: str
    name: str
    # What is counted in ticks of 10 ms shows in a second from two on.
    least: float = THRESHOLD


def started(scene: Scene) -> int:
    """Return how long the process ran that was started last."""
    return _run_time(scene.cgroups.processes[-1].pid)


def workers(scene: Scene) -> int:
    """Return how long the kernel workers of the CPU ran."""
    start = "kworker/%d:" % scene.cpu
    return sum(_run_time(pid) for pid, name in quiet.names() if name.startswith(start))


def scanned(_scene: Scene) -> int:
    """Return how long the kernel thread ran that looks for equal pages."""
    return _run_time(quiet.kernel_thread("ksmd"))


def soft_interrupts(scene: Scene) -> int:
    """Return how long soft interrupts took on the CPU."""
    return _ticks(scene)[6] * 10_000_000


def interrupts(scene: Scene) -> int:
    """Return how long all interrupts took on the CPU."""
    return sum(_ticks(scene)[5:7]) * 10_000_000


def _ticks(scene: Scene) -> list[int]:
    """Return the CPU's numbers in /proc/stat."""
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        if line.startswith("cpu%d " % scene.cpu):
            return [int(number) for number in line.split()[1:]]
    raise AssertionError("no such CPU")


def _run_time(pid: int) -> int:
    try:
        return int(Path("/proc/%d/schedstat" % pid).read_text(encoding="ascii").split()[0])
    except OSError:
        return 0


# How much of the CPU an intruder takes: also hardly more than what has to be found.
DUTIES = (0.012, 0.02, 0.03, 0.1, 0.4, 1.0)


def pinned(scene: Scene) -> None:
    scene.burn(None, random.choice(DUTIES), {scene.cpu})


def service(scene: Scene) -> None:
    scene.burn(SERVICE, random.choice(DUTIES), {scene.cpu})


def moved(scene: Scene) -> None:
    assert scene.cgroups.write(SHARED_PATH, "1") == ""
    scene.burn(SHARED_PATH, random.choice(DUTIES))


def worker(scene: Scene) -> None:
    scene.start(None, sys.executable, "-S", "-c", STAT_REFRESH, random.choice(("0", "0.0002")), cpus={scene.neighbour})


def scanner(scene: Scene) -> None:
    thread = quiet.kernel_thread("ksmd")
    os.sched_setaffinity(thread, {scene.cpu})
    (quiet.KSM / "pages_to_scan").write_text(random.choice(("2000", "20000")))
    (quiet.KSM / "sleep_millisecs").write_text("2")
    (quiet.KSM / "run").write_text("1")
    scene.start(None, sys.executable, "-S", "-c", MERGEABLE, cpus={scene.neighbour})


def storm(scene: Scene) -> None:
    mask = "%x" % (1 << scene.cpu)
    burst = random.choice(("60", "200"))
    command = ("unshare", "--net", "--mount", sys.executable, "-S", "-c", FLOOD, mask, burst)
    scene.start(None, *command, cpus={scene.neighbour})


INTRUDERS = {
    "pinned process": Intruder(pinned, started, "process", "python"),
    "service": Intruder(service, started, "cgroup", ""),
    "container moved by hand": Intruder(moved, started, "container", "uid-web/"),
    "kernel worker": Intruder(worker, workers, "kernel thread", "kworker/"),
    "kernel thread": Intruder(scanner, scanned, "kernel thread", "ksmd"),
    "interrupts": Intruder(storm, soft_interrupts, "interrupts", "", 2.0),
}
# How much of its CPU the container uses itself.
OWNERS = (0.0, 0.3, 1.0)


# A scene is played again where the machine itself disturbs it, or the intruder did not come to its time.
ATTEMPTS = 8


def wrong_with(seen: Seen, intruder: Intruder | None) -> str | None:
    """Return what is wrong with the answer; empty: nothing; None: the scene was not what it should be."""
    row = seen.row
    what = "%s, %s; really foreign %.2f %%, taken %.2f %%" % (row["verdict"], row["by"][:4], seen.foreign, seen.taken)
    if intruder is None:
        # What the machine does by itself is no quiet scene, and is within what may be said of a noisy one: also the
        # interrupts of its disk, which cannot be moved.
        if max(seen.foreign, seen.taken) >= 0.8 * THRESHOLD:
            return None
        return what if seen.accused() else ""
    if seen.taken < intruder.least:
        return None
    named = any(kind == intruder.kind and name.startswith(intruder.name) for kind, name in seen.accused())
    return "" if row["verdict"] == "disturbed" and named and seen.report["findings"] else what


def settle(scene: Scene, owner: float, intruder: Intruder | None) -> tuple[str | None, int]:
    """Return what wrong_with() says of a scene, and how often it had to be played again."""
    for attempt in range(ATTEMPTS):
        wrong = wrong_with(scene.play(owner, intruder), intruder)
        if wrong is not None:
            return wrong, attempt
    return None, ATTEMPTS


def why_no_scenes() -> str:
    """Return why no scene can be played here; empty where it can."""
    reason = why_not()
    if not reason and not (CPUACCT / "cpuacct.usage_percpu").exists():
        return "no cpuacct controller of cgroup v1"
    return reason
