# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""See on a real runtime that a busy elastic container grows, and gives back what another needs.

    elastic.py PERIOD DELAY FIGURES

The role reconcile has installed its service with this period, delay and file of figures. Both containers write down
what their file says and where the kernel lets them run, each time that either changes. Prints what came of it as JSON;
ends with 1 where a law is broken.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple

PROGRAM = "/usr/local/lib/kubenode/cpu-manager-reconcile.pyz"
CRICTL = "cpu_manager._containers.crictl"
RUNC = ("runc", "--root", "/run/containerd/runc/k8s.io")
NAME = "io.kubernetes.cri.container-name"
MANIFESTS, LOGS = Path("/etc/kubernetes/manifests"), Path("/var/log/containers")
CGROUPS, PUBLISHED = Path("/sys/fs/cgroup"), Path("/run/kubenode/cpus")
# Of a machine that is emulated and busy.
PATIENCE, OFTEN = 240.0, 0.2
# As exact as /proc/uptime is.
CLOCK = 0.01

# As the client in shell on the page of the policy: the file before the kernel and after it, then the time.
CLIENT = """\
while [ $((thread += 1)) -le $THREADS ]; do while :; do :; done & done
said() { sed -En 's/^  "(cpus|exclusive|until)": "?([^"]*)"?,$/\\2/p' /cpus/$NAME.json; }
while sleep 0.5; do
  seen=$(said; echo /; sed -n 's/^Cpus_allowed_list://p' /proc/self/status; echo /; said)
  read -r uptime idle < /proc/uptime
  if [ "$seen" != "$before" ]; then echo $uptime / $seen; fi
  before=$seen
done 2> /dev/null
"""


class Said(NamedTuple):
    """What a file says: the CPUs of a container, whether they are its own, and when it loses others."""

    cpus: frozenset[int] = frozenset()
    exclusive: bool = False
    until: float | None = None


class Seen(NamedTuple):
    """What a container saw: its file before it looked at the kernel, the kernel, its file afterwards; and when."""

    at: float
    before: Said
    kernel: frozenset[int]
    after: Said


class Container:
    """The container of a static pod; both have the same name."""

    def __init__(self, name: str, cpus: int, elastic: str, threads: int) -> None:
        self.name = name
        self.annotations = {"cpu-manager.kubenode/elastic": elastic} if elastic else {}
        environment: list[dict[str, Any]] = [
            {"name": "NAME", "value": name},
            {"name": "THREADS", "value": "%d" % threads},
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        ]
        container = {
            "name": name,
            "image": "localhost/busybox:1",
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", CLIENT],
            "env": environment,
            "resources": {"limits": {"cpu": "%d" % cpus, "memory": "32Mi"}},
            "volumeMounts": [
                {"name": "cpus", "mountPath": "/cpus", "subPathExpr": "$(POD_UID)", "readOnly": True},
            ],
        }
        self.manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "annotations": self.annotations},
            "spec": {
                "hostNetwork": True,
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
                "volumes": [
                    {"name": "cpus", "hostPath": {"path": str(PUBLISHED), "type": "DirectoryOrCreate"}},
                ],
            },
        }
        self.id, self.pid, self.cgroup = "", 0, CGROUPS

    def start(self) -> None:
        """Have the kubelet start it, and wait until it runs."""
        new = MANIFESTS.parent / (self.name + ".json")
        new.write_text(json.dumps(self.manifest))
        new.rename(MANIFESTS / new.name)
        until(lambda: self._find() and bool(self.seen()))

    def _find(self) -> bool:
        # It tells of containers that end meanwhile.
        listed = subprocess.run(
            [*RUNC, "list", "--format", "json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ).stdout
        for found in json.loads(listed) or ():
            if found["status"] == "running" and (found["annotations"] or {}).get(NAME) == self.name:
                self.id, self.pid = found["id"], found["pid"]
                path = Path("/proc/%d/cgroup" % self.pid).read_text().strip().rpartition(":")[2]
                self.cgroup = CGROUPS / path.lstrip("/")
                return True
        return False

    def kernel(self) -> frozenset[int]:
        """Return where the kernel lets it run, by the file of its cgroup."""
        return parsed((self.cgroup / "cpuset.cpus.effective").read_text())

    def affinity(self) -> frozenset[int]:
        """Return the same by its first process."""
        status = Path("/proc/%d/status" % self.pid).read_text()
        (found,) = re.findall(r"^Cpus_allowed_list:\s*(.*)$", status, re.MULTILINE)
        return parsed(found)

    def quotas(self) -> list[str]:
        """Return its quota, and its pod's."""
        return [(path / "cpu.max").read_text().split()[0] for path in (self.cgroup, self.cgroup.parent)]

    def used(self) -> float:
        """Return the seconds of CPU time that it has used."""
        (microseconds,) = re.findall(r"^usage_usec (\d+)$", (self.cgroup / "cpu.stat").read_text(), re.MULTILINE)
        return int(microseconds) / 1000000

    def seen(self) -> list[Seen]:
        """Return what it has seen, by its log."""
        # The kubelet names it when the container has started.
        lines = [line for log in LOGS.glob("*-%s.log" % self.id) for line in log.read_text().splitlines()]
        # The clock of /proc/uptime, and that of the file.
        boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        found = []
        for line in lines:
            uptime, before, kernel, after = line.split(" ", 3)[3].split("/")
            found.append(Seen(boot + float(uptime), read_said(before), parsed(kernel), read_said(after)))
        return found

    def changes(self) -> list[tuple[Seen, Seen]]:
        """Return each two neighbours between which the kernel's set changed."""
        seen = self.seen()
        return [(old, new) for old, new in zip(seen, seen[1:]) if old.kernel != new.kernel]


class Passes:
    """The passes of the program, by its figures: a busy machine makes them late, but not more of them."""

    def __init__(self, figures: Path) -> None:
        self._figures = figures
        self._ends: list[float] = []

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait for it, and count the passes meanwhile."""
        until(lambda: self._read() and condition())
        self._read()

    def between(self, start: float, end: float) -> int:
        """Return how many passes ended in this time."""
        return sum(start < moment <= end for moment in self._ends)

    def _read(self) -> bool:
        found = re.search(
            r"^kubenode_cpu_manager_dynamic_timestamp_seconds (.*)$", self._figures.read_text(), re.MULTILINE
        )
        if found and float(found.group(1)) not in self._ends:
            self._ends.append(float(found.group(1)))
        return True


def read_said(text: str) -> Said:
    if not text.strip():
        return Said()
    cpus, exclusive, moment = text.split()
    return Said(parsed(cpus), exclusive == "true", None if moment == "null" else float(moment))


def parsed(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _dash, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def until(condition: Callable[[], bool]) -> None:
    """Wait for it."""
    end = time.time() + PATIENCE
    while not condition():
        assert time.time() < end, "it did not come in %g s" % PATIENCE
        time.sleep(OFTEN)


def others(containers: list[Container]) -> list[frozenset[int]]:
    """Return where all others run: the container that was there before, and the sandboxes of pods."""
    own = {container.cgroup for container in containers}
    files = (CGROUPS / "kubepods.slice").rglob("*.scope/cpuset.cpus.effective")
    return [parsed(file.read_text()) for file in files if file.parent not in own]


def check(period: float, delay: float, figures: Path) -> dict[str, Any]:
    online = parsed(Path("/sys/devices/system/cpu/online").read_text())
    passes = Passes(figures)
    db, big = Container("db", 2, "2-3", 2), Container("big", 4, "", 0)
    db.start()
    passes.wait_for(lambda: db.seen()[-1].after.exclusive)
    uses: list[tuple[float, float]] = []

    def has_grown() -> bool:
        uses.append((time.time(), db.used()))
        return len(db.kernel()) == 3

    passes.wait_for(has_grown)
    assert db.affinity() == db.kernel()
    # In the same pass, though systemd has written its quota once more with its CPUs.
    start = time.time()
    passes.wait_for(lambda: db.quotas() == ["max", "max"])
    assert passes.between(start, time.time()) <= 1, "its quota limits it"
    assert others([db]) == [online - db.kernel()] * 3, "others run on its CPUs"
    big.start()
    passes.wait_for(lambda: len(db.kernel()) == 2 and len(big.kernel()) == 4)
    passes.wait_for(lambda: db.seen()[-1].after.until is None and big.seen()[-1].after.exclusive)
    # Another pass, which has nothing to do.
    end = time.time() + period
    passes.wait_for(lambda: time.time() > end)
    for container in (db, big):
        last = container.seen()[-1]
        assert last.before == last.after == (container.kernel(), True, None)
        assert last.kernel == container.affinity() == container.kernel()
    assert db.kernel().isdisjoint(big.kernel()), "they share CPUs"
    assert others([db, big]) == [online - db.kernel() - big.kernel()] * 4, "others run on their CPUs"
    check_answers([db, big])

    first = next(seen.at for seen in db.seen() if seen.after.exclusive)
    grew = next(new.at for old, new in db.changes() if old.after.exclusive and new.kernel > old.kernel)
    gave = next(new.at for old, new in db.changes() if old.after.exclusive and new.kernel < old.kernel)
    busy = max(first, busy_from(uses, period, 2))
    asked = big.seen()[0].at
    took = {"busy": busy - first, "grows": grew - busy, "gives_back": gave - asked}
    # One pass sees that it is busy from its end on, the next one that it still is, and one may be under way.
    counted = {"grows": passes.between(busy, grew), "gives_back": passes.between(asked + delay, gave)}
    assert counted["grows"] <= 3, (took, counted)
    assert counted["gives_back"] <= 2, (took, counted)
    return {
        **{name: round(seconds, 2) for name, seconds in took.items()},
        "passes": counted,
        **check_order(db, 2),
        "big": check_order(big, 4),
        "period": period,
        "delay": delay,
    }


def busy_from(uses: list[tuple[float, float]], period: float, cpus: int) -> float:
    """Return when the last period ended in which nine tenths of these CPUs were not used: the host may be busy
    itself."""
    ends = [
        now
        for number, (now, used) in enumerate(uses)
        for start, before in uses[:number]
        if period <= now - start < period + 1 and used - before < 0.9 * cpus * (now - start)
    ]
    return max(ends, default=0.0)


def check_order(container: Container, admitted: int) -> dict[str, int]:
    """Return where CPUs came, the kernel was first; where they left, the file was, by the delay."""
    growths = shrinks = 0
    for seen in container.seen():
        if seen.before.exclusive:
            assert seen.before.cpus <= seen.kernel, "its file had what the kernel did not: %s" % (seen,)
            assert len(seen.before.cpus) >= admitted, "it had less than it was admitted with: %s" % (seen,)
    for old, new in container.changes():
        if not old.after.exclusive:
            # It comes from the shared pool.
            continue
        if new.kernel > old.kernel:
            growths += 1
            assert old.after.cpus <= old.kernel, "its file came before the kernel: %s, %s" % (old, new)
        else:
            shrinks += 1
            assert old.after.cpus <= new.kernel < old.kernel, "its file came after the kernel: %s, %s" % (old, new)
            assert old.after.until is not None, "nothing was announced"
            assert new.at >= old.after.until - CLOCK, "it was before its time: %s, %s" % (old, new)
    return {"growths": growths, "shrinks": shrinks}


def check_answers(containers: list[Container]) -> None:
    """Check what the runtime answers about these containers, as the program itself reads it."""
    sys.path.insert(0, PROGRAM)
    crictl = importlib.import_module(CRICTL).Crictl("crictl")
    crictl.read()
    sandboxes = {sandbox.pod_uid: sandbox for sandbox in crictl.sandboxes()}
    assert not crictl.failure, crictl.failure
    for container in containers:
        uid = container.cgroup.parent.name[len("kubepods-pod") : -len(".slice")].replace("_", "-")
        assert container.annotations.items() <= sandboxes[uid].annotations.items(), sandboxes[uid]
        assert crictl.names[container.id].name == container.name
        assert crictl.shares(container.id) == 1024 * len(container.kernel())


def main(period: str, delay: str, figures: str) -> int:
    print(json.dumps(check(float(period.rstrip("s")), float(delay.rstrip("s")), Path(figures))))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
