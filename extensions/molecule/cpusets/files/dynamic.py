# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""See on this machine's kernel that a busy elastic container grows, and gives back what another needs.

    dynamic.py PROGRAM

PROGRAM is what the module reconcile_program has written. The containers are processes in cgroups of their own, and the
runtime is a file that prints what crictl would. Prints what came of it as JSON; ends with 1 where a law is broken.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Iterator

PERIOD, DELAY = 8.0, 6.0
# What the observer may take on a machine that is emulated and busy. To start takes much longer.
SLACK, PATIENCE = 2.0, 240.0
QUOTA_PERIOD = 100000
TOP = Path("/sys/fs/cgroup")
IS_V2 = (TOP / "cgroup.controllers").exists()
MOUNTS = [TOP] if IS_V2 else [TOP / name for name in ("cpuset", "cpu,cpuacct")]
# The kubelet's cgroupRoot: what else runs on this machine is left alone.
ROOT = "dynamic"
PUBLISHED = Path("/run/kubenode/cpus")
RUNTIME = """\
#!/bin/sh
case "$*" in *ps*) cat %(place)s/containers.json ;; *) cat %(place)s/pods.json ;; esac
"""


class Pods:
    """Pods with a container each, named app."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.requests: dict[str, tuple[int, str]] = {}
        self.processes: list[subprocess.Popen[bytes]] = []
        for mount in MOUNTS:
            self._make(mount / ROOT)
            self._make(mount / ROOT / "kubepods")

    def add(self, uid: str, cpus: int, elastic: str, threads: int) -> None:
        """Start a pod whose container wants to use so many CPUs."""
        self.requests[uid] = cpus, elastic
        self._tell()
        for mount in MOUNTS:
            pod = mount / ROOT / "kubepods" / ("pod" + uid)
            for directory in (pod, pod / self.id(uid)):
                self._make(directory)
                self._limit(directory, cpus)
        for _thread in range(threads):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.processes.append(process)
            for mount in MOUNTS:
                (self.cgroup(uid, mount) / "cgroup.procs").write_text("%d" % process.pid)

    def cgroup(self, uid: str, mount: Path = MOUNTS[0]) -> Path:
        return mount / ROOT / "kubepods" / ("pod" + uid) / self.id(uid)

    def kernel(self, uid: str) -> frozenset[int]:
        """Return where the kernel lets the container run."""
        name = "cpuset.cpus.effective" if IS_V2 else "cpuset.effective_cpus"
        return parsed((self.cgroup(uid) / name).read_text())

    def is_limited(self, uid: str) -> bool:
        """Return whether the container or its pod has a quota."""
        name, none = ("cpu.max", "max") if IS_V2 else ("cpu.cfs_quota_us", "-1")
        cgroup = self.cgroup(uid, MOUNTS[-1])
        return any((path / name).read_text().split()[0] != none for path in (cgroup, cgroup.parent))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for mount in MOUNTS:
            for directory, _names, _files in os.walk(mount / ROOT, topdown=False):
                for _attempt in range(100):
                    try:
                        os.rmdir(directory)
                        break
                    except OSError:
                        time.sleep(0.05)

    def _make(self, directory: Path) -> None:
        if IS_V2:
            (directory.parent / "cgroup.subtree_control").write_text("+cpuset +cpu")
        directory.mkdir()
        if (directory / "cpuset.mems").exists() and not IS_V2:
            for name in ("cpuset.mems", "cpuset.cpus"):
                (directory / name).write_text((directory.parent / name).read_text())

    def _limit(self, directory: Path, cpus: int) -> None:
        if IS_V2:
            (directory / "cpu.max").write_text("%d %d" % (cpus * QUOTA_PERIOD, QUOTA_PERIOD))
        elif (directory / "cpu.shares").exists():
            (directory / "cpu.shares").write_text("%d" % (1024 * cpus))
            (directory / "cpu.cfs_quota_us").write_text("%d" % (cpus * QUOTA_PERIOD))

    def _tell(self) -> None:
        """Write what the runtime knows."""
        labels = {uid: {"io.kubernetes.pod.uid": uid, "io.kubernetes.pod.name": uid} for uid in self.requests}
        containers = [{"id": self.id(uid), "metadata": {"name": "app"}, "labels": labels[uid]} for uid in labels]
        pods = [
            {"id": "f" * 64, "labels": labels[uid], "annotations": {"cpu-manager.kubenode/elastic": elastic}}
            for uid, (_cpus, elastic) in self.requests.items()
            if elastic
        ]
        (self.place / "containers.json").write_text(json.dumps({"containers": containers}))
        (self.place / "pods.json").write_text(json.dumps({"items": pods}))

    @staticmethod
    def id(uid: str) -> str:
        return uid.encode().hex().ljust(64, "0")


class Observer(threading.Thread):
    """What the file of a container says and what the kernel does, each time that either changes.

    The file is read before the kernel and after it: `before` and `after`.
    """

    def __init__(self, pods: Pods, uid: str) -> None:
        super().__init__(daemon=True)
        self.pods, self.uid = pods, uid
        self.seen: list[dict[str, Any]] = []
        self.has_ended = threading.Event()
        # Seconds that the longest pass took.
        self.longest = 0.0

    def run(self) -> None:
        last: tuple[Any, ...] = ()
        while not self.has_ended.wait(0.003):
            before = self.said()
            kernel = self.pods.kernel(self.uid)
            after = self.said()
            self.longest = max(self.longest, self.duration())
            if (before, kernel, after) != last:
                last = before, kernel, after
                self.seen.append({"at": time.time(), "before": before, "kernel": kernel, "after": after})

    def duration(self) -> float:
        """Return how long the last pass took, by the figures of the program."""
        try:
            lines = (self.pods.place / "cpu.prom").read_text().splitlines()
        except FileNotFoundError:
            return 0.0
        name = "kubenode_cpu_manager_dynamic_duration_seconds "
        return max((float(line.split()[1]) for line in lines if line.startswith(name)), default=0.0)

    def said(self) -> tuple[frozenset[int], float | None, bool]:
        """Return its CPUs, when some of them leave, and whether they are its own."""
        try:
            data = json.loads((PUBLISHED / self.uid / "app.json").read_text())
        except FileNotFoundError:
            return frozenset(), None, False
        return parsed(data["cpus"]), data["until"], data["exclusive"]

    def changes(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield each two neighbours between which the kernel's set changed."""
        for old, new in zip(self.seen, self.seen[1:]):
            if old["kernel"] != new["kernel"]:
                yield old, new


def parsed(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _dash, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def until(condition: Any, patience: float) -> float:
    """Wait for it; when it came."""
    end = time.time() + patience
    while not condition():
        assert time.time() < end, "it did not come in %g s" % patience
        time.sleep(0.005)
    return time.time()


def check(program: str, place: Path, pods: Pods) -> dict[str, Any]:
    (place / "config.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n"
        "reservedSystemCPUs: '0,4'\n" % ROOT
    )
    runtime = place / "crictl"
    runtime.write_text(RUNTIME % {"place": place})
    runtime.chmod(0o755)
    settings = {
        "root": "/",
        "policy": "dynamic",
        "period": "%gs" % PERIOD,
        "delay": "%gs" % DELAY,
        "settle": "0s",
        "config_path": str(place / "config.yaml"),
        "kubelet_root": str(place),
        "textfile": str(place / "cpu.prom"),
    }
    (place / "settings.json").write_text(json.dumps(settings))
    environment = {**os.environ, "PATH": "%s:%s" % (place, os.environ["PATH"])}
    arguments = [sys.executable, "-I", program, str(place / "settings.json")]
    with (place / "journal").open("wb") as journal:
        running = subprocess.Popen(arguments, stdout=journal, stderr=journal, env=environment)
    try:
        pods.add("db", 2, "2-4", 4)
        came = time.time()
        observer = Observer(pods, "db")
        first = until(lambda: len(pods.kernel("db")) == 2 and observer.said()[0] == pods.kernel("db"), PATIENCE)
        observer.start()
        grew = until(lambda: len(pods.kernel("db")) > 2, PATIENCE)
        until(lambda: len(pods.kernel("db")) == 4, PATIENCE)
        assert not pods.is_limited("db"), "its quota limits it"
        grown = pods.kernel("db")
        pods.add("big", 4, "", 1)
        asked = time.time()
        second = Observer(pods, "big")
        second.start()
        gave = until(lambda: len(pods.kernel("db")) < len(grown), PATIENCE)
        until(lambda: len(pods.kernel("big")) == 4, PATIENCE)
        assert pods.kernel("db").isdisjoint(pods.kernel("big")), "they share CPUs"
        until(lambda: second.said()[0] == pods.kernel("big"), PATIENCE)
        time.sleep(PERIOD)
        for thread in (observer, second):
            thread.has_ended.set()
            thread.join()
    finally:
        running.kill()
        running.wait()
    own = [seen for seen in second.seen if seen["before"][2]]
    assert own, "it was not seen to get its CPUs"
    assert all(seen["before"][0] <= seen["kernel"] for seen in own), "its file came before the kernel"
    # The next program goes on, and the end of it all gives everything back.
    subprocess.run([*arguments, "once"], check=True, env=environment, stdout=subprocess.DEVNULL)
    subprocess.run([*arguments, "release"], check=True, env=environment)
    online = parsed(Path("/sys/devices/system/cpu/online").read_text())
    assert pods.kernel("db") == pods.kernel("big") == online, "not all CPUs are back"
    assert pods.is_limited("db"), "its quota is not back"
    figures = {"first": first - came, "grows": grew - first, "gives_back": gave - asked, "pass": observer.longest}
    # A pass takes its time itself: two begin and end in the time of each.
    late = SLACK + 2 * observer.longest
    assert figures["grows"] <= 2 * PERIOD + late, figures
    assert figures["gives_back"] <= DELAY + PERIOD + late, figures
    return {
        **{name: round(seconds, 3) for name, seconds in figures.items()},
        **check_order(observer, gave),
        "period": PERIOD,
        "delay": DELAY,
        "cgroup": 2 if IS_V2 else 1,
    }


def check_order(observer: Observer, gave: float) -> dict[str, int]:
    """Return where CPUs came, the kernel was first; where they left, the file was, by the delay."""
    growths = shrinks = 0
    for old, new in observer.changes():
        if new["kernel"] > old["kernel"]:
            growths += 1
            assert old["after"][0] <= old["kernel"], "its file came before the kernel"
        elif new["kernel"] < old["kernel"] and new["at"] < gave + 1:
            shrinks += 1
            assert old["after"][0] <= new["kernel"], "its file came after the kernel"
            assert old["after"][1] is not None, "nothing was announced"
            assert new["at"] >= old["after"][1] - 0.01, "it was before its time"
    assert growths, "it was not seen to grow"
    assert shrinks, "it was not seen to shrink"
    return {"growths": growths, "shrinks": shrinks}


def main(program: str) -> int:
    place = Path(tempfile.mkdtemp(prefix="dynamic-", dir="/run"))
    pods = Pods(place)
    try:
        print(json.dumps(check(program, place, pods)))
    except BaseException:
        print((place / "journal").read_text(), file=sys.stderr)
        raise
    finally:
        pods.end()
        shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
