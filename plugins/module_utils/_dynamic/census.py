# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who is on a node, how many exclusive CPUs each container requests, up to how many it may have, and how many it uses.

What a container requests is in its cgroup, as the kubelet writes it: of v1 the shares, of v2 the quota, and where it
has none, the runtime's own account of the shares. An annotation is what the runtime has of the pod's sandbox. What is
used is counted by the cgroups. Source: Linux's Documentation/admin-guide/cgroup-v1/cpuacct.rst, and usage_usec in
cgroup-v2.rst.
"""

from __future__ import annotations

from typing import Callable, Collection, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, NodeError, option
from .._base.tree import Tree, is_number
from .._base.versions import NEWEST_MINOR
from .._cgroup.hierarchy import CPU, CPUACCT, Hierarchy, Quota, parent_of
from .._cgroup.kubepods import GUARANTEED, Kubepods
from .._cgroup.writer import read_quota
from .._containers.crictl import Crictl, LoggedContainer, logged_containers
from .._containers.pods import APP, Container, Pod
from .._kubelet.configuration import Configuration
from .._node.container_cpus import Running, read_running
from ..cpuset import CPUSet, count_bits
from ..policy.dynamic import SharedPeak
from ..policy.dynamic_state import ANNOTATION, DynamicRules, Held, Key, Use, elastic_containers
from ..policy.isolated import ISOLATED, IsolatedPolicy
from ..topology.kubelet_view import CPUTopology
from ..topology.model import Topology
from .dynamic_settings import Settings

# By what rules CPUs are given out on one node. Pure.
#
# The role checks them before it installs the program, and each pass checks them again.


_RESERVED = "reservedSystemCPUs"


class OnlineCPUs(NamedTuple):
    """The CPUs that are online. owned: those that no container can use. minor: the kubelet's version."""

    topology: Topology
    view: CPUTopology
    owned: CPUSet
    minor: int


def reserved_cpus(settings: Settings, configuration: Configuration | None) -> CPUSet:
    """Return what no container gets for itself: what the settings say, else what the kubelet reserves."""
    if settings.reserved is not None:
        return settings.reserved
    text = "" if configuration is None else str(configuration.given((_RESERVED,)).value or "")
    try:
        return CPUSet.parse(text)
    except InputError as error:
        raise error.within(_RESERVED) from error


def dynamic_rules(settings: Settings, reserved: CPUSet, machine: OnlineCPUs) -> DynamicRules:
    """Return those of the policy dynamic. Raises InputError where they cannot be kept on this machine."""
    rules = DynamicRules(
        machine.view,
        # No container can run on reserved CPUs of others, so they do not keep the shared pool from becoming empty.
        reserved - machine.owned,
        settings.options,
        settings.shared_minimum,
        settings.settle,
        settings.delay,
        machine.topology.numa_distances,
    ).checked("reserved_cpus")
    return rules._replace(reserved=reserved | machine.owned).checked("reserved_cpus")


def isolated_policy(settings: Settings, reserved: CPUSet, machine: OnlineCPUs) -> IsolatedPolicy:
    """Return the policy isolated. Raises InputError where it cannot be kept on this machine."""
    isolated, reserved = machine.topology.isolated - machine.owned, reserved | machine.owned
    try:
        policy = IsolatedPolicy(machine.view, settings.options, reserved, isolated, machine.minor)
        if not policy.shared - machine.owned:
            raise InputError(
                "all CPUs that containers can use are isolated, and the shared pool would be empty",
                remedy="use the policy dynamic",
            )
    except InputError as error:
        raise error.within(option("policy")) from error
    return policy


def check_rules(settings: Settings, configuration: Configuration | None, machine: OnlineCPUs) -> None:
    """Raise InputError where a pass would, because the policy cannot be kept on this machine."""
    reserved = reserved_cpus(settings, configuration)
    if settings.policy == ISOLATED:
        isolated_policy(settings, reserved, machine)
    else:
        dynamic_rules(settings, reserved, machine)


_SHARES, _SHARES_PER_CPU, _MILLI = "cpu.shares", 1024, 1000
# In how many passes the runtime is called for a container that it has not named: it may just be starting.
_MOST_CALLS = 3
_PAUSE = 6


class Present(NamedTuple):
    """A container or sandbox that is on the node.

    key: None where its name is not known. cpus: how many exclusive CPUs it requests; most: up to how many it may have.
    """

    running: Running
    key: Key | None
    cpus: int = 0
    most: int = 0


class Census:
    """The containers of a node, pass by pass. It calls the runtime only where somebody is new.

    find_runtime: the runtime for one pass; None where there is none to call. missing: what is to be said where none is
    found and a container could be elastic.
    """

    def __init__(self, find_runtime: Callable[[], Crictl | None], missing: str = "") -> None:
        self._find_runtime, self._missing = find_runtime, missing
        self._runtime: Crictl | None = None
        # In how many passes a runtime that has failed is not called.
        self._pause = 0
        self._names: dict[str, LoggedContainer] = {}
        self._annotations: dict[str, Mapping[str, object]] = {}
        self._shares: dict[str, int] = {}
        # How often the runtime was called since each came.
        self._calls: dict[str, int] = {}
        self._arrived: dict[Key, None] = {}

    def read(
        self, kubepods: Kubepods, cpu: Hierarchy | None, quotas: Mapping[str, Quota], before: Mapping[Key, Held]
    ) -> tuple[list[Present], list[str]]:
        """Return the containers on the node in the order in which they came, and notes about them.

        cpu: the hierarchy with the cpu controller. quotas: those that were lifted. before: what each had at the last
        pass, also of an earlier program. It is used where the runtime gives no answer.
        """
        logged = logged_containers(kubepods.hierarchy.tree)
        running = read_running(kubepods, {**logged, **self._names})
        notes: list[str] = []
        if any(self._is_new(container) for container in running):
            notes += self._call(running)
            running = read_running(kubepods, {**logged, **self._names})
        self._forget(running)
        present = [
            Present(container, None if container.name is None else (container.pod_uid, container.name))
            for container in running
            if container.effective is not None
        ]
        present, more = self._specified(present, cpu, quotas, before)
        return self._in_order(present, before), [*notes, *more]

    def _is_new(self, container: Running) -> bool:
        calls = self._calls.get(container.id, 0)
        return (container.name is None and calls < _MOST_CALLS) or (
            container.pod_uid not in self._annotations and not calls
        )

    def _call(self, running: Sequence[Running]) -> list[str]:
        """Have the runtime name who is new."""
        self._pause -= 1
        if self._pause > 0:
            return []
        self._runtime = self._find_runtime()
        if self._runtime is not None:
            self._runtime.read()
            sandboxes = self._runtime.sandboxes()
            if self._runtime.failure:
                self._pause = _PAUSE
                return [self._runtime.failure]
            self._names.update(self._runtime.names)
            self._annotations.update({sandbox.pod_uid: sandbox.annotations for sandbox in sandboxes})
            # A sandbox never gets a name.
            self._calls.update({sandbox.id: _MOST_CALLS for sandbox in sandboxes})
        for container in running:
            self._calls[container.id] = self._calls.get(container.id, 0) + 1
        return []

    def _forget(self, running: Iterable[Running]) -> None:
        """Forget the containers that have ended."""
        ids, pods = {container.id for container in running}, {container.pod_uid for container in running}
        self._names = {key: value for key, value in self._names.items() if key in ids}
        self._calls = {key: value for key, value in self._calls.items() if key in ids}
        self._shares = {key: value for key, value in self._shares.items() if key in ids}
        self._annotations = {key: value for key, value in self._annotations.items() if key in pods}

    def _specified(
        self,
        present: Sequence[Present],
        cpu: Hierarchy | None,
        quotas: Mapping[str, Quota],
        before: Mapping[Key, Held],
    ) -> tuple[list[Present], list[str]]:
        """Return the containers with what each of them requests, and notes."""
        counted = []
        for container in present:
            count: int | None = 0
            if container.key is not None and is_guaranteed(container.running) and cpu is not None:
                count = self._requested(container.running, cpu, quotas)
            if count is None:
                held = None if container.key is None else before.get(container.key)
                count = 0 if held is None else count_bits(held.admitted)
            counted.append(container._replace(cpus=count))
        groups: dict[str, list[Present]] = {}
        for container in counted:
            if container.cpus:
                groups.setdefault(container.running.pod_uid, []).append(container)
        most: dict[Key, int] = {}
        is_missing = self._runtime is None and any(uid not in self._annotations for uid in groups)
        notes = [self._missing] if is_missing and self._missing else []
        for uid, group in groups.items():
            annotations = self._annotations.get(uid)
            if annotations is None:
                # The runtime has not answered yet: what they have grown to is kept, and they grow no further.
                keys = ((uid, container.running.name or "") for container in group)
                most.update({key: count_bits(before[key].cpus & ~before[key].leaving) for key in keys if key in before})
            elif ANNOTATION in annotations:
                elastic = elastic_containers(_pod_of(group), annotations, NEWEST_MINOR)
                most.update({(uid, name): count for name, count in elastic.most.items()})
                notes += [] if elastic.problem is None else [str(elastic.problem)]
        return [
            container if container.key is None else container._replace(most=most.get(container.key, 0))
            for container in counted
        ], notes

    def _requested(self, running: Running, cpu: Hierarchy, quotas: Mapping[str, Quota]) -> int | None:
        """Return how many whole CPUs a container of a Guaranteed pod requests; 0 for a different number, None if
        unknown."""
        if cpu.version == 1:
            text = cpu.quick_value(running.cgroup, _SHARES) or ""
            return _whole(int(text), _SHARES_PER_CPU) if is_number(text) else 0
        quota = quotas.get(running.cgroup) or read_quota(cpu, running.cgroup)
        if quota is None:
            return 0
        if quota.quota_us is not None:
            return _whole(quota.quota_us, quota.period_us)
        # The weight of v2 is rounded. This asks for each such container once.
        if running.id not in self._shares and self._runtime is not None and not self._runtime.failure:
            try:
                self._shares[running.id] = self._runtime.shares(running.id)
            except NodeError:
                return None
        shares = self._shares.get(running.id)
        return None if shares is None else _whole(shares, _SHARES_PER_CPU)

    def _in_order(self, present: Sequence[Present], before: Iterable[Key]) -> list[Present]:
        by_key: dict[Key, list[Present]] = {}
        for container in present:
            if container.key is not None:
                by_key.setdefault(container.key, []).append(container)
        arrived = {key: None for key in (*before, *self._arrived, *sorted(by_key)) if key in by_key}
        self._arrived = arrived
        return [container for key in arrived for container in by_key[key]] + [
            container for container in present if container.key is None
        ]


def is_guaranteed(running: Running) -> bool:
    """Return whether a container's pod is of the class Guaranteed: its cgroup is right below that of all pods."""
    return parent_of(parent_of(running.cgroup)) == running.top


def _whole(amount: int, per_cpu: int) -> int:
    return 0 if amount % per_cpu else amount // per_cpu


def _pod_of(group: Sequence[Present]) -> Pod:
    running = group[0].running
    containers = []
    for container in group:
        cpu = {"cpu": _MILLI * container.cpus}
        containers.append(Container(container.running.name or "", APP, cpu, cpu))
    return Pod(running.pod_uid, running.pod or running.pod_uid, tuple(containers), GUARANTEED)


# How many CPUs containers use, by the counters of their cgroups.


_V1_FILE, _V2_FILE, _V2_MEMBER = "cpuacct.usage", "cpu.stat", "usage_usec "
_NANOSECONDS, _MICROSECONDS = 1e-9, 1e-6


def counting_hierarchy(tree: Tree) -> Hierarchy | None:
    """Return the hierarchy that counts the time of CPUs; None where none does."""
    for controller in (CPUACCT, CPU):
        try:
            hierarchy = Hierarchy(tree, controller)
        except NodeError:
            continue
        if controller == CPUACCT or hierarchy.version == 2:
            return hierarchy
    return None


class Meter:
    """Use between two passes.

    clock: seconds that do not jump. shortest: over less than so many seconds, the use is what it was before.
    """

    def __init__(self, clock: Callable[[], float], shortest: float) -> None:
        self._clock, self._shortest = clock, shortest
        # {cgroup: when it was read, seconds of CPU time, CPUs used}
        self._read: dict[str, tuple[float, float, float]] = {}
        self._peak = SharedPeak()

    def read(
        self,
        hierarchy: Hierarchy | None,
        roots: Iterable[str],
        containers: Mapping[str, Key],
        exclusive: Collection[Key],
    ) -> Use:
        """Return what each of these containers has used on average since the last pass, and what the shared pool has at
        most in the last minute.

        roots: the cgroups of all pods. containers: {cgroup: container}, those that request exclusive CPUs. exclusive:
        those that have them.
        """
        if hierarchy is None:
            return Use()
        roots = tuple(roots)
        found = {path: read for path in (*roots, *containers) if (read := self._again(hierarchy, path)) is not None}
        self._read = found
        use: dict[Key, float] = {}
        for path, key in containers.items():
            if path in found:
                use[key] = use.get(key, 0.0) + found[path][2]
        everything = sum(found[path][2] for path in roots if path in found)
        shared = max(0.0, everything - sum(cpus for key, cpus in use.items() if key in exclusive))
        return Use(use, self._peak.add(self._clock(), shared))

    def _again(self, hierarchy: Hierarchy, path: str) -> tuple[float, float, float] | None:
        count, now = used(hierarchy, path), self._clock()
        if count is None:
            return None
        before = self._read.get(path)
        if before is None:
            return now, count, 0.0
        passed = now - before[0]
        return (now, count, max(0.0, count - before[1]) / passed) if passed >= self._shortest else before


def used(hierarchy: Hierarchy, path: str) -> float | None:
    """Return the seconds that a cgroup and all below it have used; None where it is not there."""
    if hierarchy.version == 1:
        text = hierarchy.quick_value(path, _V1_FILE) or ""
        return int(text) * _NANOSECONDS if is_number(text) else None
    for line in (hierarchy.quick_value(path, _V2_FILE) or "").splitlines():
        if line.startswith(_V2_MEMBER) and is_number(line[len(_V2_MEMBER) :]):
            return int(line[len(_V2_MEMBER) :]) * _MICROSECONDS
    return None
