# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trial starts on a live node, as live_node makes this machine one: a request as JSON comes in, an answer goes out.

It tells what the node was before and after: its files, mounts, processes and values below /proc/sys.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
import collection_path

collection_path.register()

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import CPUManagerError  # noqa: E402
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree  # noqa: E402
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node  # noqa: E402
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial import (  # noqa: E402
    kubelet_trial,
    trial_sandbox,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_cgroups import TrialCgroups  # noqa: E402
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_report import trial_report  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.faults import child  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.faults.child import Child  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.faults.tracer import Traced  # noqa: E402

_FILES = ("/etc", "/var", "/opt", "/run")
_VALUES = ("vm", "kernel/panic", "kernel/panic_on_oops", "kernel/keys", "net/ipv4")
_CGROUPS = "/sys/fs/cgroup"
_OURS = ("kubenode-kubelet-trial", "kubenode-trial-pods")
# Seconds.
_PATIENCE = 30.0


def _files() -> Iterator[tuple[str, list[Any]]]:
    """Yield of each file what shows whether it was written: nobody sets the time at which the kernel saw it change."""
    for path in _walk(_FILES):
        with suppress(OSError):
            status = os.lstat(path)
            yield path, [status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, _content(path)]


def _walk(tops: Iterable[str]) -> Iterator[str]:
    for top in tops:
        for directory, names, files in os.walk(top):
            yield from (os.path.join(directory, name) for name in [*names, *files])


def _content(path: str) -> str:
    # A kubelet may end when its lock file is opened.
    if not path.startswith("/var/lib/kubelet/") or path.endswith(".lock") or not os.path.isfile(path):
        return ""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _values() -> Iterator[tuple[str, str]]:
    for name in _VALUES:
        top = Path("/proc/sys", name)
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            with suppress(OSError):
                yield str(path), path.read_text(encoding="ascii", errors="replace")


def _mounts() -> list[str]:
    """Return all but those of other tests, which go away with their directories."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.split()[4].startswith("/tmp/")]


def _processes() -> list[list[Any]]:
    """Return each process but this one: its id, when it started, and its CPUs."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            pid, fields = int(path.name), (path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if pid != os.getpid() and fields[1] != str(os.getpid()):
                found.append([pid, fields[19], sorted(os.sched_getaffinity(pid))])
    return sorted(found)


def node_now() -> dict[str, Any]:
    """Return what the node is."""
    return {
        "files": dict(_files()),
        "mounts": _mounts(),
        "values": dict(_values()),
        "processes": _processes(),
        "cgroups": left_cgroups(),
    }


def left_cgroups() -> list[str]:
    """Return the cgroups of trials, and all that is in those of this test's pods."""
    found = []
    for top in [path for name in _OURS for pattern in ("", "*/") for path in Path(_CGROUPS).glob(pattern + name)]:
        for path in [top, *top.rglob("*")]:
            if path.is_dir():
                found.append(str(path))
            elif path.name in _HELD:
                found.append("%s: %s" % (path, path.read_text(encoding="ascii").split()))
    return sorted(found)


def remove_leftovers() -> None:
    """Remove the cgroups that a killed test may have left."""
    for path in left_cgroups()[::-1]:
        with suppress(OSError):
            os.rmdir(path)


_HELD = ("cgroup.procs", "cpuset.cpus", "cpuset.mems", "cpu.shares", "memory.limit_in_bytes", "pids.max", "cpu.max")


def tried(request: dict[str, Any]) -> dict[str, Any]:
    """Return a trial, with the node before and after."""
    before = node_now()
    answer = _answer(request)
    return {"answer": answer, "before": before, "after": node_now(), "computed": _Measured.seconds}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run a trial, and return its report. room: how many bytes the trial's own file systems have, if not as usual."""
    room = patch.object(trial_sandbox, "_SMALL", request.get("room", trial_sandbox._SMALL))
    with patch.object(kubelet_trial, "TrialCgroups", _Measured), room:
        options = {name: request[name] for name in ("files", "program", "timeout") if name in request}
        return trial_report(Node(Tree("/")), request.get("wanted", {}), **options)


class _Measured(TrialCgroups):
    """The cgroups of a trial, which say how much it has computed."""

    seconds = 0.0

    def __exit__(self, *error: object) -> None:
        for top in map(Path, self.tops):
            with suppress(OSError):
                _Measured.seconds = int((top / "cpuacct.usage").read_text(encoding="ascii")) / 1e9
            with suppress(OSError):
                stat = dict(line.split() for line in (top / "cpu.stat").read_text(encoding="ascii").splitlines())
                _Measured.seconds = int(stat["usage_usec"]) / 1e6 if "usage_usec" in stat else _Measured.seconds
        super().__exit__(*error)


def watched(request: dict[str, Any]) -> dict[str, Any]:
    """Return a trial, with the node's files that anybody but the machine's own processes opens or writes meanwhile.

    texts, links, pipes, sockets: what else is there. Of the sockets those are told to which somebody connects.
    """
    for path, text in request.get("texts", {}).items():
        _parents(path).write_text(text, encoding="utf-8")
    for path, target in request.get("links", {}).items():
        _parents(path).symlink_to(target)
    for path in request.get("pipes", ()):
        os.mkfifo(_parents(path))
    listeners = {path: socket.socket(socket.AF_UNIX) for path in request.get("sockets", ())}
    for path, listener in listeners.items():
        listener.bind(str(_parents(path)))
        listener.listen()
        listener.settimeout(0)
    command = [sys.executable, str(Path(__file__).with_name("opens.py")), "/", *_FILES, "/var/lib"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        answer = _answer(request)
        seen = json.loads(watcher.communicate("")[0])
    places: dict[str, str] = {}
    for path in _walk(_FILES):
        with suppress(OSError):
            status = os.lstat(path)
            # What is bound somewhere else is found there, too.
            places.setdefault("%d:%d" % (status.st_dev, status.st_ino), path)
    of_node = {
        how: sorted({places[which] for which in (name.partition(" ")[0] for name in names) if which in places})
        for how, names in seen.items()
    }
    return {"answer": answer, **of_node, "reached": [path for path in listeners if _is_reached(listeners[path])]}


def _parents(path: str) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return Path(path)


def _is_reached(listener: socket.socket) -> bool:
    with suppress(BlockingIOError):
        listener.accept()
        return True
    return False


def killed(request: dict[str, Any]) -> dict[str, Any]:
    """Run trials whose process is killed; return what is left of each, and a whole trial at the end.

    moments: after so many seconds. calls: how often at a system call, before or after it, evenly over all of them.
    """
    first = node_now()

    def work() -> object:
        return trial_report(Node(Tree("/")), {}, program=request.get("program"))

    with patch.object(child, "PATIENCE", int(_PATIENCE * 6)):
        left = [_left_of(partial(_kill_after, work, moment)) for moment in request.get("moments", ())]
        number, stops = request.get("calls", 0), 0
        if number:
            traced = Traced(work)
            while traced.next_stop():
                pass
            traced.answer()
            stops = traced.stops
        left += [_left_of(partial(_kill_at, work, int((kill + 0.5) / number * stops))) for kill in range(number)]
    return {"first": first, "left": left, "last": tried({}), "stops": stops}


def _left_of(kill: Callable[[], None]) -> list[list[Any]]:
    before = _processes()
    kill()
    deadline = time.monotonic() + _PATIENCE
    while _processes() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    return [row for row in _processes() if row not in before]


def _kill_after(work: Callable[[], object], seconds: float) -> None:
    process = Child(work)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _kill_at(work: Callable[[], object], stop: int) -> None:
    """Kill the work at this stop; each system call has two. Work that has fewer stops comes to its end."""
    traced = Traced(work)
    if all(traced.next_stop() for _stop in range(stop)):
        traced.kill()
    else:
        traced.answer()


def together(request: dict[str, Any]) -> dict[str, Any]:
    """Return so many trials at once, each by a process of its own."""
    before = node_now()
    with patch.object(child, "PATIENCE", int(_PATIENCE * 6)):
        trials = [Child(lambda: trial_report(Node(Tree("/")), {})) for _trial in range(request["number"])]
        answers = [trial.answer() for trial in trials]
    return {"answers": answers, "before": before, "after": node_now()}


def many(request: dict[str, Any]) -> dict[str, Any]:
    """Run trials, each with other flags and files."""
    before = node_now()
    unit = Path("/etc/systemd/system/kubelet.service")
    usual = unit.read_text(encoding="utf-8")
    answers = []
    for case in request["cases"]:
        unit.write_text("%s %s\n" % (usual.rstrip("\n"), shlex.join(case["flags"])), encoding="utf-8")
        answers.append(trial_report(Node(Tree("/")), {}, case["files"]))
    unit.write_text(usual, encoding="utf-8")
    after = node_now()
    for now in (before, after):
        now["files"] = {path: file for path, file in now["files"].items() if not path.endswith("/" + unit.name)}
    return {"answers": answers, "before": before, "after": after}


def _pods() -> list[Path]:
    """Return a cgroup in each hierarchy, as one of pods, with a process that sleeps in it."""
    sleeper = subprocess.Popen(["sleep", "1000"])
    made = []
    for above in [Path(_CGROUPS), *Path(_CGROUPS).iterdir()]:
        if (above / "cgroup.procs").exists() and not above.is_symlink():
            made.append(above / "kubenode-trial-pods")
            made[-1].mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if (above / name).exists():
                    (made[-1] / name).write_text((above / name).read_text(encoding="ascii"), encoding="ascii")
            (made[-1] / "cgroup.procs").write_text(str(sleeper.pid), encoding="ascii")
    return made


def beside(request: dict[str, Any]) -> dict[str, Any]:
    """Return a trial beside a kubelet and a containerd that run as the node's, and a pod.

    command: what is done in place of a trial.
    """
    os.makedirs("/run/containerd/cni")
    Path("/run/containerd/cni/none.conflist").write_text(
        '{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}', encoding="ascii"
    )
    config = Path("/run/containerd/config.toml")
    config.write_text(request["containerd"], encoding="ascii")
    with open("/run/containerd.log", "wb") as log:
        subprocess.Popen(["/opt/bin/containerd", "--config", str(config)], stdout=log, stderr=log)
    _wait(Path("/run/containerd/containerd.sock").exists)
    log_path = Path("/var/lib/kubelet.log")
    with open(log_path, "wb") as log:
        kubelet = subprocess.Popen(request["kubelet"], stdout=log, stderr=log)
    _wait(lambda: b"Starting Kubelet Plugin Manager" in log_path.read_bytes())
    # What it does at the start is done.
    _wait(lambda: Path("/var/lib/kubelet/cpu_manager_state").exists())
    time.sleep(1)
    pods = _pods()
    try:
        done = _command(request["command"]) if "command" in request else tried(request)
    finally:
        for process in _processes_in(pods):
            os.kill(process, signal.SIGKILL)
        _wait(lambda: not _processes_in(pods))
        for pod in pods:
            pod.rmdir()
    done["runs"] = kubelet.poll() is None
    for when in {"before", "after"} & set(done):
        for path in ("/var/lib/kubelet.log", "/run/containerd.log"):
            done[when]["files"].pop(path, None)
    return done


def _command(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return {"status": done.returncode, "output": done.stdout}


def _processes_in(cgroups: list[Path]) -> list[int]:
    texts = [(cgroup / "cgroup.procs").read_text(encoding="ascii") for cgroup in cgroups]
    return sorted({int(pid) for text in texts for pid in text.split()})


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def main() -> None:
    request = json.load(sys.stdin)
    remove_leftovers()
    try:
        do = {"try": tried, "kill": killed, "beside": beside, "many": many, "together": together, "watch": watched}[
            request.pop("do")
        ]
        done = do(request)
    except CPUManagerError as error:
        done = {"refused": error.to_dict()}
    json.dump(done, sys.stdout)


if __name__ == "__main__":
    main()
