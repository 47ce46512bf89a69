# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods of a node as the node alone shows them, in the form of manifests: for whoever cannot ask an API server.

Names are those of logs or of the container runtime, QoS classes those of cgroups. What a container asks for is read
from what has been made of it: its CPUs in the checkpoint, the quota or the shares of its cgroup, the shares and the
memory that the runtime made it with, its blocks in the memory manager's state, the limit of its cgroup's memory, its
devices in the kubelet's checkpoint of these. What none of them shows is said to be unknown. cpu.weight shows nothing:
two formulas make it of shares, and both round. The kernel cuts a limit of memory off to pages, so one that is no whole
number of MiB may have been another.
Source: MilliCPUToQuota and MilliCPUToShares in pkg/kubelet/cm/helpers_linux.go; page_counter_memparse() of Linux.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from .._base.errors import NodeError
from .._base.tree import is_number
from .._cgroup.hierarchy import CPU, Hierarchy, parent_of
from .._cgroup.hierarchy import MEMORY as MEMORY_CONTROLLER
from .._cgroup.kubepods import BEST_EFFORT, GUARANTEED, Kubepods
from .._cgroup.writer import read_quota
from .._containers.crictl import Crictl, MadeWith, find_crictl
from ..cpuset import CPUSet
from ..state.acceptance import readable
from ..state.assignments import State
from ..state.memory_manager import memory_amounts, memory_of_pods
from ..state.restored import DamageError, read_devices
from .beside_cpus import device_checkpoint
from .container_cpus import Running, find_hierarchy, sharing_in
from .node import Node, cgroup_root_of

# More than any node runs; and more containers than the runtime is asked about one by one.
MOST_PODS = 1000
_MOST_ASKED = 1000

# What is not known of the pods, whichever that is of.
OTHERS, REQUESTS, MEMORY, DEVICES = UNKNOWN = ("others", "requests", "memory", "devices")

_SHARES, _SHARES_PER_CPU, _LEAST_SHARES, _MILLI = "cpu.shares", 1024, 2, 1000
# By version of the cgroups. Where there is no limit, v2 has a word, and v1 more than any machine has.
MEMORY_LIMITS = {1: "memory.limit_in_bytes", 2: "memory.max"}
_MIB, _LARGEST_MEMORY = 1 << 20, 1 << 60
# Of a container that has CPUs for itself, and asks for memory, therefore.
_SOME = 1
# Of a pod of which no log and no runtime has a name.
_NAMELESS = "?"


class _Asked(NamedTuple):
    """What a container asks for. cpu, limit: in thousandths; None where they are not known, and where there is none."""

    cpu: int | None
    limit: int | None
    # In bytes, and in pieces.
    others: Mapping[str, int]


def pods_seen(node: Node) -> dict[str, Any]:
    """Return {"pods", "left_out", "unknown"}: manifests of pods; {"pod", "why"} of each that is none of them; and of
    UNKNOWN those that are not known of the pods. Raises NodeError."""
    return _Seen(node).to_dict()


class _Seen:
    """What the files of a node, and its runtime, say of its pods."""

    def __init__(self, node: Node) -> None:
        self.node = node
        configuration, _problem = node.found()
        self.observed, _notes = node.observed(configuration)
        running = () if self.observed is None else self.observed.running
        ids = {container.id: (container.pod_uid, container.name) for container in running if container.name}
        self.state = readable(node.checkpoint(), ids).state or State(CPUSet(), {})
        memory_state = node.memory_state()
        self.memory = {} if memory_state is None else memory_amounts(memory_state)
        self.whole_memory = {} if memory_state is None else memory_of_pods(memory_state)
        self.unknown: set[str] = set()
        self.left_out: list[dict[str, str]] = []
        self.devices = self._devices()
        self.cpu, self.memory_limits = (_hierarchy(node, controller) for controller in (CPU, MEMORY_CONTROLLER))
        self.runtime: Crictl | None = None
        if self.observed is not None:
            self.runtime = find_crictl(node.tree, node.runtime_endpoint(configuration))
            self.classes = {
                uid: pod.qos_class
                for uid, pod in Kubepods(self.observed.hierarchy, cgroup_root_of(configuration)).pods().items()
            }
        elif find_hierarchy(node.tree)[0] is not None:
            # It runs no pods.
            self.classes = {}
        else:
            # Whoever has CPUs of its own is Guaranteed.
            self.classes = dict.fromkeys({*self.state.assignments, *self.state.pod_assignments}, GUARANTEED)
            self.unknown.add(OTHERS)
        self.asked = 0

    def to_dict(self) -> dict[str, Any]:
        """Return what pods_seen() gives."""
        running: dict[str, list[Running]] = {}
        for container in () if self.observed is None else self.observed.running:
            if container.effective is not None:
                running.setdefault(container.pod_uid, []).append(container)
        pods = []
        for uid, qos_class in sorted(self.classes.items())[:MOST_PODS]:
            manifest = self._pod(uid, qos_class, running.get(uid, ()))
            if manifest is not None:
                pods.append(manifest)
        for uid in sorted(self.classes)[MOST_PODS:]:
            self._leave_out(uid, "a node has no more than %d pods" % MOST_PODS)
        pods.sort(key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return {"pods": pods, "left_out": self.left_out, "unknown": [name for name in UNKNOWN if name in self.unknown]}

    def _pod(self, uid: str, qos_class: str, running: Sequence[Running]) -> dict[str, Any] | None:
        """Return the manifest of a pod; None for one that is left out."""
        named = {container.name: container for container in running if container.name}
        full = next((container.pod for container in named.values() if container.pod), "")
        shown = full or uid
        own = self.state.assignments.get(uid, {})
        if not named and not own:
            self._leave_out(shown, "the names of its containers are not known, or none of them runs")
            return None
        whole = self.state.pod_assignments.get(uid)
        # Those that the kubelet limits by themselves, too.
        sharing = set() if whole is None else sharing_in(whole, own, named)
        containers: dict[str, list[dict[str, Any]]] = {"initContainers": [], "containers": []}
        for name in [*sorted(set(own) - set(named)), *sorted(named)]:
            asked = self._asks_for(uid, name, qos_class, named.get(name))
            if whole is not None:
                is_limited = name in named and self._quota(named[name]) is not None
                asked = asked if name in own and name not in sharing and not is_limited else _Asked(None, None, {})
                asked = asked and asked._replace(others={MEMORY: _SOME, **asked.others} if asked.cpu else {})
            if asked is None:
                self._leave_out(shown, "what its container %s asks for is not known" % name)
                return None
            field = "initContainers" if name not in named and _has_ended(name, own) else "containers"
            containers[field].append({"name": name, "resources": _resources(asked)})
        namespace, _slash, pod_name = full.partition("/") if full else (_NAMELESS, "", uid)
        spec: dict[str, Any] = {field: rows for field, rows in containers.items() if rows}
        if whole is not None:
            spec["resources"] = _resources(self._asks_as_a_whole(uid, whole, running))
        return {
            "metadata": {"namespace": namespace, "name": pod_name, "uid": uid},
            "spec": spec,
            "status": {"qosClass": qos_class, "phase": "Running"},
        }

    def _asks_as_a_whole(self, uid: str, whole: CPUSet, running: Sequence[Running]) -> _Asked:
        cpu = len(whole) * _MILLI
        others = dict(self.whole_memory.get(uid, {}))
        limit = self._memory_limit(parent_of(running[0].cgroup)) if running else None
        if MEMORY not in others and limit is None:
            self.unknown.add(MEMORY)
        others.setdefault(MEMORY, limit or _SOME)
        return _Asked(cpu, cpu, others)

    def _leave_out(self, pod: str, why: str) -> None:
        self.left_out.append({"pod": pod, "why": why})

    def _asks_for(self, uid: str, name: str, qos_class: str, running: Running | None) -> _Asked | None:
        """Return what a container asks for; None where that decides on exclusive CPUs, and is not known."""
        others = {**self.memory.get((uid, name), {}), **self.devices.get((uid, name), {})}
        own = self.state.assignments.get(uid, {}).get(name)
        if qos_class == BEST_EFFORT:
            return _Asked(0, None, others)
        is_guaranteed = qos_class == GUARANTEED
        limit = self._memory_limit(running.cgroup) if is_guaranteed and running is not None else None
        if limit is not None:
            others.setdefault(MEMORY, limit)
        quota, shares = (None, None) if running is None else (self._quota(running), self._shares(running))
        needs_shares = shares is None and not (is_guaranteed and (own or quota is not None))
        needs_memory = is_guaranteed and MEMORY not in others
        # This takes a call for each container.
        made = self._made_with(running) if running is not None and (needs_shares or needs_memory) else None
        if needs_shares and made is not None:
            shares = made.shares
        if is_guaranteed:
            if needs_memory and made is not None and made.memory is not None:
                others[MEMORY] = made.memory
            cpu = len(own) * _MILLI if own else quota if quota is not None else milli_of(shares, _LEAST_SHARES)
            if cpu is not None and MEMORY not in others:
                self.unknown.add(MEMORY)
            return None if cpu is None else _Asked(cpu, cpu, others)
        cpu = milli_of(shares, 0)
        if cpu is None:
            self.unknown.add(REQUESTS)
        return _Asked(cpu, quota, others)

    def _quota(self, running: Running) -> int | None:
        """Return the limit of a container, in thousandths of a CPU."""
        quota = None if self.cpu is None else read_quota(self.cpu, running.cgroup)
        if quota is None or quota.quota_us is None:
            return None
        return limit_of(quota.quota_us, quota.period_us)

    def _shares(self, running: Running) -> int | None:
        if self.cpu is None or self.cpu.version != 1:
            return None
        text = self.cpu.quick_value(running.cgroup, _SHARES) or ""
        return int(text) if is_number(text) else None

    def _memory_limit(self, cgroup: str) -> int | None:
        """Return the memory of a container or a pod in bytes, as it was asked for."""
        if self.memory_limits is None:
            return None
        text = self.memory_limits.quick_value(cgroup, MEMORY_LIMITS[self.memory_limits.version]) or ""
        limit = int(text) if is_number(text) else 0
        return limit if 0 < limit < _LARGEST_MEMORY and limit % _MIB == 0 else None

    def _made_with(self, running: Running) -> MadeWith | None:
        if self.runtime is None or self.runtime.failure or self.asked == _MOST_ASKED:
            return None
        self.asked += 1
        try:
            return self.runtime.made_with(running.id)
        except NodeError:
            return None

    def _devices(self) -> dict[tuple[str, str], dict[str, int]]:
        """Return {(pod UID, container): {resource: how many devices}}."""
        content = device_checkpoint(self.node.tree)
        if content is None:
            return {}
        try:
            owned = read_devices(content).owned
        except DamageError:
            owned = None
        if owned is None:
            self.unknown.add(DEVICES)
        found: dict[tuple[str, str], dict[str, int]] = {}
        for uid, container, resource, places in owned or ():
            names = {name for some in places.values() for name in some}
            found.setdefault((uid, container), {})[resource] = len(names)
        return found


def _hierarchy(node: Node, controller: str) -> Hierarchy | None:
    try:
        return Hierarchy(node.tree, controller)
    except NodeError:
        return None


def _has_ended(name: str, own: Mapping[str, CPUSet]) -> bool:
    """Return whether a container that does not run has ended for good: one that came after it in its pod has its
    CPUs."""
    return any(cpus & own[name] for later, cpus in own.items() if later != name)


def limit_of(quota_us: int, period_us: int) -> int:
    """Return the limit that a quota was made of, in thousandths of a CPU: it was cut off to microseconds."""
    return -(-quota_us * _MILLI // period_us)


def milli_of(shares: int | None, least: int) -> int | None:
    """Return what was asked for, in thousandths of a CPU: it was cut off to shares. least: what too few shares stand
    for."""
    if shares is None:
        return None
    return least if shares <= _LEAST_SHARES else -(-shares * _MILLI // _SHARES_PER_CPU)


def _resources(asked: _Asked) -> dict[str, dict[str, str]]:
    others = {name: "%d" % amount for name, amount in asked.others.items()}
    # Whoever reads a limit takes it for the request that is not there.
    limit = {} if asked.limit is None or asked.cpu is None else {"cpu": "%dm" % asked.limit}
    cpu = {} if asked.cpu is None else {"cpu": "%dm" % asked.cpu}
    return {"requests": {**others, **cpu}, "limits": {**others, **limit}}
