# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One pass of the program that gives CPUs out by the policy dynamic or isolated.

It reads who is there, what they use and what was promised; decides; writes its promise; and carries the moves out. A
pass that is killed anywhere leaves nobody with CPUs that another has alone, and the next completes it.
"""

from __future__ import annotations

import posixpath
import time
from typing import Callable, Mapping, NamedTuple, Sequence

from .._base.errors import NodeError, RefusedError
from .._base.tree import Tree
from .._cgroup.hierarchy import CPU, Hierarchy, parent_of
from .._cgroup.kubepods import Kubepods
from .._containers.crictl import Crictl, find_crictl
from .._host.partitions import usable_cpus
from .._kubelet.configuration import Configuration
from .._node.container_cpus import FAILED, WRITE, read_running, row_of
from .._node.container_writes import Settling
from .._node.exclusive import Promise, forget_promise, read_promise, where_static, write_promise
from .._node.node import Node, cgroup_root_of
from .._owners.conflicts import OTHER_OWNER
from .._published.publish import Publishing, opened
from .._reconcile.reconcile import check_owners
from ..cpuset import CPUSet, count_bits
from ..policy.dynamic import DYNAMIC, Decision, decide, first_state
from ..policy.dynamic_state import (
    ContainerFile,
    DynamicState,
    KernelView,
    Key,
    Move,
    Use,
    WantedContainer,
    moves_between,
)
from ..policy.isolated import ISOLATED, decide_isolated, first_isolated_state
from ..topology.kubelet_view import CPUTopology, kubelet_view
from ..topology.model import Topology
from ..topology.sysfs import read_sysfs
from .acting import Acting, Quotas, has_left
from .census import (
    Census,
    Meter,
    OnlineCPUs,
    Present,
    counting_hierarchy,
    dynamic_rules,
    isolated_policy,
    reserved_cpus,
)
from .dynamic_settings import Settings

# What one pass of the program came to.


class PassReport(NamedTuple):
    """moves: those that were made. refused: what could not be done. notes: what is to be said.

    waiting: containers without their first set. state: what is promised now; None where there are no pods. seconds: how
    long it took. due: when the next announcement is to be carried out, by the clock of the passes.
    """

    moves: Sequence[Move] = ()
    refused: Sequence[str] = ()
    notes: Sequence[str] = ()
    waiting: Sequence[Key] = ()
    state: DynamicState | None = None
    seconds: float = 0.0
    due: float | None = None


# Whether somebody else gives the containers of a node their CPUs.


def check_owner(node: Node, configuration: Configuration | None, allow_owners: Sequence[str]) -> None:
    """Raise RefusedError, of kind OTHER_OWNER, where the kubelet's static policy, a DRA driver, an NRI policy or CRI-O
    writes cpusets. The kubelet's own policy cannot be allowed: both would give out the same CPUs.
    """
    check_owners(node, allow_owners)
    where = where_static(node, configuration)
    if where:
        raise RefusedError(
            "the kubelet's CPU manager has the policy static, and only one of both can give out CPUs, so no cpuset"
            " was written",
            where=where,
            remedy="set cpuManagerPolicy to none (role kubelet), or reconcile_policy to static",
            kind=OTHER_OWNER,
        )


# The kubelet is looked for anew after so many seconds, and whenever its process has ended.
_KUBELET_AGE = 60.0
# A pass that comes earlier than after this part of a period leaves the use as it was measured.
_SHORTEST = 0.5
_NO_CRICTL = (
    "crictl was not found, so the annotations of pods cannot be read, and no container is elastic;"
    " install crictl and restart the service"
)


class Agent:
    """The program's passes over one node.

    clock: seconds since 1970. ticks: seconds that do not jump. runtime: finds the container runtime of a node.
    """

    def __init__(
        self,
        tree: Tree,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
        runtime: Callable[[Tree, str | None], Crictl | None] = find_crictl,
    ) -> None:
        self.tree, self.settings = tree, settings
        self._clock, self._ticks, self._runtime = clock, ticks, runtime
        self._census = Census(self._find_runtime, _NO_CRICTL if settings.use_runtime else "")
        self._meter = Meter(ticks, _SHORTEST * settings.period)
        self._node: Node | None = None
        self._found_at = 0.0
        # Of the CPUs that are online.
        self._machine: tuple[Topology, CPUTopology] | None = None

    def node(self) -> Node:
        """Return the node as it is now, with its kubelet."""
        node, now = self._node, self._ticks()
        pid = None if node is None else node.kubelet_pid
        has_ended = pid is not None and self.tree.live and not self.tree.exists("/proc/%d" % pid)
        if node is None or has_ended or now - self._found_at > _KUBELET_AGE:
            node = Node(self.tree, self.settings.config_path, self.settings.kubelet_root)
            self._node, self._found_at = node, now
        return node

    def _find_runtime(self) -> Crictl | None:
        if not self.settings.use_runtime:
            return None
        node = self.node()
        endpoint = self.settings.runtime_endpoint or node.runtime_endpoint(node.configuration())
        return self._runtime(self.tree, endpoint)

    # --- one pass --------------------------------------------------------------------------------------------

    def one_pass(self) -> PassReport:
        """Raise RefusedError where another owner gives CPUs out, InputError for rules that cannot be kept, NodeError
        for files that cannot be read."""
        # In whole milliseconds, as the files have it.
        start, now = self._ticks(), round(self._clock(), 3)
        node = self.node()
        node.check_seen()
        configuration = node.configuration()
        check_owner(node, configuration, self.settings.allow_owners)
        hierarchy = Hierarchy(self.tree)
        online = hierarchy.online_cpus()
        topology, view = self._topology(online)
        kubepods = Kubepods(hierarchy, cgroup_root_of(configuration))
        if not kubepods.roots:
            return PassReport(seconds=self._ticks() - start)
        promise, content = read_promise(self.tree)
        cpu = cpu_hierarchy(self.tree)
        before = Promise(self.settings.policy, DynamicState(0)) if promise is None else promise
        if before.policy != self.settings.policy:
            # The quotas that another policy has lifted are put back.
            promise, before = None, Promise(self.settings.policy, DynamicState(0), {}, before.quotas)
        present, notes = self._census.read(kubepods, cpu, before.quotas, before.state.containers)
        use = self._use(kubepods, present, before.state)
        usable = usable_cpus(hierarchy, kubepods.roots, online)
        machine = OnlineCPUs(topology, view, online - usable, node.minor)
        decision = self._decide(machine, configuration, present, use, promise, now)
        state = decision.state
        exclusive = _exclusive(present, before)
        with opened(self.tree) as directory:
            publishing = Publishing(directory, online, lambda: topology, now)
            moves = moves_between(_kernel_view(present, exclusive, state, usable, publishing), state)
            quotas = Quotas(cpu, before.quotas)
            quotas.remember(_grown(present, state))
            after = Promise(self.settings.policy, state, _beyond(exclusive, state), quotas.remembered)
            content = write_promise(self.tree, after, content)
            acting = Acting(hierarchy, usable, present, state, exclusive, publishing)
            acting.carry_out(moves)
            # Afterwards: with the CPUs of a unit, systemd writes the quota that it knows of it.
            acting.refused += quotas.lift()
            acting.refused += quotas.put_back()
            notes += publishing.finish(acting.entries(), kubepods.pods)
            write_promise(self.tree, after._replace(quotas=quotas.remembered), content)
        due = min((held.until for held in state.containers.values() if held.leaving), default=None)
        return PassReport(acting.done, acting.refused, notes, decision.waiting, state, self._ticks() - start, due)

    def _topology(self, online: CPUSet) -> tuple[Topology, CPUTopology]:
        if self._machine is None or self._machine[0].online != online:
            topology = read_sysfs(self.tree)
            self._machine = topology, kubelet_view(topology)
        return self._machine

    def _use(self, kubepods: Kubepods, present: Sequence[Present], state: DynamicState) -> Use:
        if self.settings.policy != DYNAMIC:
            return Use()
        containers = {
            container.running.cgroup: container.key
            for container in present
            if container.key is not None and container.cpus
        }
        return self._meter.read(counting_hierarchy(self.tree), kubepods.roots, containers, state.containers)

    def _decide(
        self,
        machine: OnlineCPUs,
        configuration: Configuration | None,
        present: Sequence[Present],
        use: Use,
        promise: Promise | None,
        now: float,
    ) -> Decision:
        # Of two that have the same name, one is on its way out.
        wanted = list(
            {
                container.key: WantedContainer(*container.key, container.cpus, container.most)
                for container in present
                if container.key is not None
            }.values()
        )
        reserved = reserved_cpus(self.settings, configuration)
        if self.settings.policy == ISOLATED:
            policy = isolated_policy(self.settings, reserved, machine)
            former = first_isolated_state(policy) if promise is None else promise.state
            return decide_isolated(policy, wanted, former)
        rules = dynamic_rules(self.settings, reserved, machine)
        former = first_state(rules) if promise is None else promise.state
        return decide(rules, wanted, use, former, now, self._answered(former))

    def _answered(self, state: DynamicState) -> set[Key]:
        root = posixpath.dirname(self.node().checkpoint_path)
        return {
            key
            for key, held in state.containers.items()
            if held.leaving and has_left(self.tree, root, *key, held.until)
        }


def cpu_hierarchy(tree: Tree) -> Hierarchy | None:
    """Return the hierarchy with the cpu controller; None where there is none, and so no quota."""
    try:
        return Hierarchy(tree, CPU)
    except NodeError:
        return None


# --- what the kernel has ---------------------------------------------------------------------------------------


def _exclusive(present: Sequence[Present], before: Promise) -> dict[Key, int]:
    """Return {container: what the kernel lets it use}, of those that use only what was promised to them alone, then or
    before.

    All others run on the shared pool, or on what a runtime gives to one that is new.
    """
    held: dict[Key, int] = {}
    for container in present:
        if container.key is not None and container.running.effective is not None:
            held[container.key] = held.get(container.key, 0) | container.running.effective.mask
    promised = {key: container.cpus | before.found.get(key, 0) for key, container in before.state.containers.items()}
    return {key: mask for key, mask in held.items() if mask and not mask & ~promised.get(key, 0)}


def _beyond(exclusive: Mapping[Key, int], state: DynamicState) -> dict[Key, int]:
    """Return {container: what the kernel lets it use}, of those that have something to leave by this state."""
    return {
        key: exclusive[key]
        for key, held in state.containers.items()
        if key in exclusive and exclusive[key] & ~held.cpus
    }


def _kernel_view(
    present: Sequence[Present],
    exclusive: Mapping[Key, int],
    state: DynamicState,
    online: CPUSet,
    publishing: Publishing,
) -> KernelView:
    """Return what there is: the kernel's sets, and the files of those who have CPUs alone."""
    files = {}
    for key in exclusive:
        try:
            said = publishing.said(*key)
        except (NodeError, RefusedError):
            said = None
        if said is not None and said.exclusive:
            files[key] = ContainerFile(said.cpus.mask, said.until)
    shared = CPUSet.from_mask(state.shared) & online
    is_set = all(
        container.running.effective is not None and container.running.found(shared) == shared
        for container in present
        if container.key not in exclusive
    )
    seen = dict(exclusive)
    for container in present:
        held = None if container.key is None else state.containers.get(container.key)
        if held is not None and container.key in seen and container.running.inner is not None:
            seen[container.key] = container.running.found(CPUSet.from_mask(held.cpus)).mask
    return KernelView(state.shared if is_set else 0, seen, files)


def _grown(present: Sequence[Present], state: DynamicState) -> list[str]:
    """Return the cgroups of containers that have more CPUs than they request, and of their pods."""
    found = []
    for container in present:
        held = state.containers.get(container.key) if container.key is not None else None
        if held is not None and count_bits(held.cpus) > container.cpus:
            found += [container.running.cgroup, parent_of(container.running.cgroup)]
    return found


# Give everything back: after this, no container has CPUs of its own, and each has its quota again.


def release(tree: Tree, settings: Settings) -> list[str]:
    """Release the containers of a node, if the program has given any of them CPUs. Gives what could not be done.

    Where another owner gives CPUs out by now, their cpusets are left to it.
    """
    promise, _content = read_promise(tree)
    if promise is None:
        return []
    node = Node(tree, settings.config_path, settings.kubelet_root)
    configuration = node.configuration()
    quotas = Quotas(cpu_hierarchy(tree), promise.quotas)
    refused = quotas.put_back()
    try:
        check_owner(node, configuration, settings.allow_owners)
    except RefusedError:
        pass
    else:
        refused += _all_cpus(Kubepods(Hierarchy(tree), cgroup_root_of(configuration)))
    unpublish(tree)
    if not refused:
        forget_promise(tree)
    return refused


def unpublish(tree: Tree) -> None:
    """Remove what was published of containers, which nobody keeps up to date any more."""
    with opened(tree) as directory:
        # The directories stay: a pod may have its own mounted, and the next pass of whatever policy writes there.
        for pod in directory.pods():
            for container in directory.read(pod):
                directory.remove(pod, container)


def _all_cpus(kubepods: Kubepods) -> list[str]:
    hierarchy = kubepods.hierarchy
    usable = usable_cpus(hierarchy, kubepods.roots, hierarchy.online_cpus())
    running = [
        container
        for container in read_running(kubepods, {})
        if container.effective is not None and container.found(usable) != usable
    ]
    rows = [row_of(container, usable, container.effective or usable, WRITE) for container in running]
    settled = Settling(hierarchy, usable, None, lambda: True, True).settle(running, rows)
    return ["%s: %s" % (row.cgroup, row.why) for row in settled if row.result == FAILED]
