# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program of the policies dynamic and isolated: a pass in each period, and at once where a container comes."""

from __future__ import annotations

import fcntl
import os
import select
import sys
import time
from collections import Counter
from typing import Any, Callable, Iterable, Mapping, Sequence

from .._base.errors import CPUManagerError, InputError, NodeError, RefusedError
from .._base.secrets import text_redacted
from .._base.tree import Tree
from .._base.untrusted import FIGURES_MODE, write_file
from .._caches.cache_partition import caches_follow
from .._cgroup.hierarchy import Hierarchy
from .._cgroup.kubepods import Kubepods
from .._host.only_root import ALIVE, READY, tell_systemd
from .._host.partitions import usable_cpus
from .._node.node import Node, cgroup_root_of
from .._owners.conflicts import OTHER_OWNER
from .._published.publish import opened, publish_node
from ..cpuset import count_bits
from ..policy.dynamic import DYNAMIC
from ..policy.dynamic_state import ANNOUNCE, EXCLUSIVE, POOL, REMOVE, SHARE, Move
from ..topology.kubelet_view import kubelet_view
from .agent import Agent, PassReport, check_owner, release, unpublish
from .census import OnlineCPUs, check_rules
from .dynamic_settings import Settings, read_settings

# Whether the program can work on a node with its settings, before it is installed there.


def check_node(node: Node, settings: Settings, allow_owners: Sequence[str]) -> None:
    """Raise RefusedError where another owner gives CPUs out, InputError where each pass would fail over its rules."""
    configuration = node.configuration()
    check_owner(node, configuration, allow_owners)
    if configuration is None:
        # Without a kubelet there are no pods, and what it will reserve is not known.
        return
    topology = node.topology
    try:
        hierarchy = Hierarchy(node.tree)
    except NodeError:
        usable = topology.online
    else:
        usable = usable_cpus(hierarchy, Kubepods(hierarchy, cgroup_root_of(configuration)).roots, topology.online)
    machine = OnlineCPUs(topology, kubelet_view(topology), topology.online - usable, node.minor)
    check_rules(settings, configuration, machine)


# Wait for the next pass, or until the container runtime or the kubelet makes something for a new container.


# The kubelet's links to the logs of containers, and what containerd and CRI-O make for each container.
DIRECTORIES = (
    "/var/log/containers",
    "/run/containerd/io.containerd.runtime.v2.task/k8s.io",
    "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io",
    "/run/crio/exits",
)

# IN_MOVED_TO, IN_CREATE, IN_DELETE; see inotify(7).
_EVENTS = 0x80 | 0x100 | 0x200
# What comes together is met by one pass.
_TOGETHER = 0.2


class DirectoryWatch:
    """inotify(7) on these directories, as far as they exist and the system has it; else a wait is only that."""

    def __init__(self, directories: Sequence[str] = DIRECTORIES) -> None:
        self._waiting = list(directories)
        self._libc, self._descriptor = _inotify()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until something was made; whether it was."""
        if self._descriptor < 0:
            time.sleep(seconds)
            return False
        # They are made with the first container.
        self._waiting = [path for path in self._waiting if not self._add(path)]
        ready, _writing, _failing = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return False
        time.sleep(min(_TOGETHER, seconds))
        try:
            while os.read(self._descriptor, 1 << 16):
                pass
        except BlockingIOError:
            pass
        return True

    def _add(self, path: str) -> bool:
        return bool(self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), _EVENTS) >= 0)

    def close(self) -> None:
        """End it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _inotify() -> tuple[Any, int]:
    """Return the C library, and a descriptor that reports; -1 where there is none."""
    try:
        # Imported here: a Python may be built without it.
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        return libc, int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (ImportError, OSError, AttributeError, MemoryError):
        return None, -1


# The figures of the program for Prometheus, as a textfile of node_exporter's textfile collector. Pure.


_PREFIX = "kubenode_cpu_manager_dynamic_"


class Figures:
    """What is counted from the start of the program on, beside what the last pass found."""

    def __init__(self) -> None:
        self._moves: Counter[str] = Counter(dict.fromkeys((ANNOUNCE, EXCLUSIVE, SHARE, POOL, REMOVE), 0))
        self._passes = self._failures = self._refusals = 0

    def count(self, moves: Iterable[Move], refusals: int, success: bool) -> None:
        """Count one pass more."""
        self._moves.update(move.what for move in moves)
        self._passes += 1
        self._refusals += refusals
        self._failures += not success

    def text(self, report: PassReport, success: bool, timestamp: float) -> str:
        """Return the file."""
        held = report.state.containers if report.state is not None else {}
        lines = [
            *_metric("success", "gauge", "Whether the last pass went through.", [("", int(success))]),
            *_metric("timestamp_seconds", "gauge", "When the last pass ended.", [("", round(timestamp, 3))]),
            *_metric("duration_seconds", "gauge", "How long it took.", [("", round(report.seconds, 6))]),
            *_metric("passes_total", "counter", "Passes since the start.", [("", self._passes)]),
            *_metric("failures_total", "counter", "Passes that did not go through.", [("", self._failures)]),
            *_metric("refusals_total", "counter", "Moves that were refused or failed.", [("", self._refusals)]),
            *_metric(
                "moves_total",
                "counter",
                "Moves that were made, by what they are.",
                [('{what="%s"}' % what, count) for what, count in sorted(self._moves.items())],
            ),
            *_metric("waiting", "gauge", "Containers that wait for their first set.", [("", len(report.waiting))]),
            *_metric(
                "shared_cpus",
                "gauge",
                "CPUs of the shared pool.",
                [("", 0 if report.state is None else count_bits(report.state.shared))],
            ),
            *_metric(
                "cpus",
                "gauge",
                "Exclusive CPUs of a container.",
                [(_labels(*key), count_bits(container.cpus)) for key, container in held.items()],
            ),
            *_metric(
                "admitted_cpus",
                "gauge",
                "Exclusive CPUs that a container was admitted with.",
                [(_labels(*key), count_bits(container.admitted)) for key, container in held.items()],
            ),
        ]
        return "".join(line + "\n" for line in lines)


def _metric(name: str, kind: str, text: str, values: Iterable[tuple[str, float]]) -> list[str]:
    full = _PREFIX + name
    head = ["# HELP %s %s" % (full, text), "# TYPE %s %s" % (full, kind)]
    return [*head, *("%s%s %s" % (full, labels, value) for labels, value in values)]


def _labels(pod_uid: str, container: str) -> str:
    return '{pod_uid="%s",container="%s"}' % (_escaped(pod_uid), _escaped(container))


def _escaped(text: str) -> str:
    """Return a label as Prometheus wants it: a runtime may give any name."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


LOCK = "/run/kubenode/cpu-manager.lock"

# What is given beside the settings: one pass alone; or the end of it all.
ONCE, RELEASE = "once", "release"
# The settings that the last one needs.
_PLACES = ("config_path", "kubelet_root", "allow_owners")


class Program:
    """The passes of an agent, and what is told of them.

    say: takes each line for the journal. A line is told when it is new: what stays wrong is told once.
    """

    def __init__(self, agent: Agent, say: Callable[[str], None]) -> None:
        self.agent = agent
        self._say = say
        self._told: set[str] = set()
        self._figures = Figures()

    def one_pass(self) -> tuple[PassReport, bool]:
        """Return one pass, with its lines and figures; whether it went through."""
        report, lines, success = PassReport(), [], True
        try:
            report = self.agent.one_pass()
        except (CPUManagerError, OSError) as error:
            lines.append("error: %s" % error)
            success = False
            if isinstance(error, RefusedError) and error.kind == OTHER_OWNER:
                lines += self._yielded()
        else:
            success = caches_follow(self.agent.node(), self.agent.settings.allow_owners, lines.append)
        for move in report.moves:
            self._say(_line(move))
        lines += ["refused: " + text for text in report.refused]
        lines += ["waiting: pod %s, container %s has no CPUs of its own yet" % key for key in report.waiting]
        lines += ["note: " + note for note in report.notes]
        for line in lines:
            if line not in self._told:
                self._say(line)
        self._told = set(lines)
        self._figures.count(report.moves, len(report.refused), success)
        return report, self._write_figures(report, success) and success and not report.refused

    def _yielded(self) -> list[str]:
        """Give the node up to the owner of its CPUs, and publish what that one assigns; what went wrong."""
        lines = []
        try:
            lines += ["refused: " + text for text in release(self.agent.tree, self.agent.settings)]
        except (CPUManagerError, OSError) as error:
            lines.append("error: %s" % error)
        try:
            lines += ["note: " + note for note in publish_node(self.agent.node())]
        except (CPUManagerError, OSError) as error:
            lines.append("error: %s" % error)
        return lines

    def _write_figures(self, report: PassReport, success: bool) -> bool:
        path = self.agent.settings.textfile
        if not path:
            return True
        content = self._figures.text(report, success and not report.refused, time.time()).encode("utf-8")
        try:
            write_file(path, content, FIGURES_MODE)
        except CPUManagerError as error:
            self._say("error: %s" % error)
            return False
        return True

    def run(self, watch: DirectoryWatch) -> None:
        """Run pass after pass, without an end."""
        tell_systemd(READY)
        while True:
            report, _success = self.one_pass()
            tell_systemd(ALIVE)
            pause = self.agent.settings.period
            if report.due is not None:
                pause = min(pause, max(0.0, report.due - time.time()))
            watch.wait(pause)


def run(tree: Tree, data: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Return the program with the settings in `data`. 0 where all went through, 1 where not, 2 for settings that are
    wrong."""
    is_end = list(arguments) == [RELEASE]
    try:
        # The policy may be static by now, whose other settings are not checked.
        settings = read_settings({"policy": DYNAMIC, **{name: data.get(name) for name in _PLACES}} if is_end else data)
    except InputError as error:
        _tell("error: settings: %s" % error)
        return 2
    try:
        lock = _locked(tree)
    except (CPUManagerError, OSError) as error:
        _tell("error: %s" % error)
        return 1
    try:
        if is_end:
            refused = release(tree, settings)
            unpublish(tree)
            for text in refused:
                _tell("refused: " + text)
            return 1 if refused else 0
        program = Program(Agent(tree, settings), _tell)
        if list(arguments) == [ONCE]:
            return 0 if program.one_pass()[1] else 1
        program.run(DirectoryWatch())
    except CPUManagerError as error:
        _tell("error: %s" % error)
        return 1
    finally:
        os.close(lock)
    return 0


def _locked(tree: Tree) -> int:
    """Return a descriptor that is locked as long as it is open. Raises RefusedError where another program has it."""
    with opened(tree):
        pass
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(tree.path(LOCK), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise RefusedError(
            "another program gives CPUs out on this node", where=tree.path(LOCK), remedy="end it first"
        ) from error
    return descriptor


def _tell(line: str) -> None:
    sys.stdout.write(text_redacted(line) + "\n")
    sys.stdout.flush()


def _line(move: Move) -> str:
    shown = move.to_dict()
    if move.what == POOL:
        return "pool: CPUs %s" % shown["cpus"]
    until = " until %.3f" % move.until if move.what == ANNOUNCE and move.until is not None else ""
    return "%s: pod %s, container %s: CPUs %s%s" % (move.what, shown["pod"], shown["container"], shown["cpus"], until)
