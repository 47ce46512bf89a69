# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One pass over a node's containers: read, decide, write what differs, and read that again."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, NamedTuple, Sequence

from ...cgroup.hierarchy import Cgroup, Hierarchy, lineage
from ...cgroup.kubepods import Kubepods
from ...cgroup.plan import Plan, Write, shown
from ...cgroup.writer import carry_out, systemd_of
from ...cpuset import CPUSet
from ...errors import InputError, NodeError, RefusedError, option
from ...files import replace_file
from ...kubelet.installed.process import find_kubelet
from ...policy.options import StaticOptions
from ...state.assignments import State
from ...state.config import STATIC
from ...state.verdict import ABSENT as NO_CHECKPOINT
from ...state.verdict import readable
from ...state.writing import MODE, format_for, write_checkpoint
from ...workload.crictl import Crictl
from ..node import Node, cgroup_root_of
from ..observation import find_hierarchy, names_of, read_running
from .decide import ABSENT, ENDED, FAILED, KEPT, SKIPPED, WRITE, WRITTEN, Row, Running, decide
from .plan import Listed, Rules, after_writes, allocate, plan_container

# Where there are shared CPUs, if anywhere.
CRIO_FILES = "/etc/crio"


class Answer(NamedTuple):
    """What a pass did, or in check mode would do."""

    rows: Sequence[Row] = ()
    # The cgroups of pods, QoS classes, and all pods that had to be widened.
    widened: Sequence[Write] = ()
    notes: Sequence[str] = ()
    # What the checkpoint says, before and afterwards.
    old: State | None = None
    new: State | None = None

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.widened) or self.old != self.new or any(row.result == WRITTEN for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        results = [row.result for row in self.rows]
        return {
            "containers": [row.to_dict() for row in self.rows],
            "counts": {result: results.count(result) for result in (KEPT, WRITTEN, FAILED, SKIPPED)},
            "widened": [write.to_dict() for write in self.widened],
            "shared_pool": "" if self.new is None else str(self.new.default_cpu_set),
            "notes": list(self.notes),
        }

    def before(self) -> str:
        """The checkpoint and each container's CPUs before, as lines."""
        return self._lines(self.old, [row.effective for row in self.rows])

    def after(self) -> str:
        """The same afterwards."""
        return self._lines(self.new, [row.wanted if row.result == WRITTEN else row.effective for row in self.rows])

    def _lines(self, state: State | None, sets: Iterable[CPUSet]) -> str:
        lines = ["%s: %s\n" % (_name(row), shown(cpus)) for row, cpus in zip(self.rows, sets)]
        # A kubelet's checkpoint is not changed here.
        return (state.to_text() if state is not None and self.old != self.new else "") + "".join(lines)


def _name(row: Row) -> str:
    """What a person calls a container; its cgroup where no name is known, or where the cgroup was given."""
    return "%s/%s" % (row.pod or row.pod_uid, row.container) if row.id and row.container else row.cgroup


def reconcile_pods(node: Node, runtime: Crictl | None, act: bool, allow_owners: Sequence[str] = ()) -> Answer:
    """One pass over the containers of a kubelet. Raises RefusedError when its checkpoint is damaged, and where somebody
    else gives the containers their CPUs.

    runtime: who writes the cpusets of its containers; without it they are written to the cgroups. allow_owners: the ids
    of those who may manage CPUs beside this.
    """
    check_owners(node, allow_owners)
    hierarchy, notes = find_hierarchy(node.tree)
    if hierarchy is None:
        return Answer(notes=notes)
    if runtime is not None:
        runtime.read()
        notes += [runtime.failure] if runtime.failure else []
    names, all_named = names_of(node.tree, runtime)
    running = read_running(Kubepods(hierarchy, cgroup_root_of(node.configuration())), names)
    # Not before the containers: the kubelet writes a container's CPUs down before it starts the container.
    content = node.checkpoint()
    ids = {container.id: (container.pod_uid, container.name) for container in running if container.name is not None}
    said = readable(content, ids)
    place = node.tree.path(node.checkpoint_path)
    if said.verdict == NO_CHECKPOINT:
        return Answer(notes=[*notes, "%s: no checkpoint there, so it is not known which CPUs are whose" % place])
    if said.state is None or not said.checksum_right:
        raise RefusedError(
            "is damaged, and no cpuset was written", where=place, remedy="repair it first, with the module checkpoint"
        )
    online = hierarchy.online_cpus()
    rows = decide(running, said.policy_name, said.state, online, all_named)
    pass_ = _Pass(hierarchy, online, runtime, lambda: node.checkpoint() == content, act)
    return Answer(pass_.settle(running, rows), pass_.widened, notes, said.state, said.state)


def reconcile_listed(
    node: Node,
    listed: Sequence[Listed],
    options: StaticOptions,
    reserved: CPUSet,
    act: bool,
    allow_owners: Sequence[str] = (),
) -> Answer:
    """Give the listed containers their CPUs on a node without a kubelet: first in its checkpoint, then in the cgroups.

    Raises RefusedError when a kubelet runs, somebody else gives containers their CPUs, or there are not enough of them,
    and nothing is written.
    """
    _check_no_kubelet(node)
    check_owners(node, allow_owners)
    hierarchy, notes = find_hierarchy(node.tree)
    if hierarchy is None:
        return Answer(notes=notes)
    listed = [container._replace(cgroup=hierarchy.relative(container.cgroup)) for container in listed]
    paths = [container.cgroup for container in listed]
    for path in paths:
        if paths.count(path) > 1:
            raise InputError("two of them have the cgroup %s" % path, where=option("containers"))
    old = node.checkpoint()
    state, losses = allocate(listed, old, Rules(node.machine().topology, options, reserved, node.minor))
    new = write_checkpoint(STATIC, state, format_for(node.minor))
    if act and new != old:
        place = node.tree.path(node.checkpoint_path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        # Whenever containers come and go: too often to keep all the old ones.
        replace_file(place, new, MODE, old, backup=False, keep_mode=False)
    running = [
        Running(
            container.pod,
            container.pod,
            container.name,
            "",
            container.cgroup,
            container.cgroup,
            "",
            hierarchy.effective_cpus(container.cgroup),
        )
        for container in listed
    ]
    online = hierarchy.online_cpus()
    rows = decide(running, STATIC, state, online, absent=ABSENT)
    pass_ = _Pass(hierarchy, online, None, lambda: node.checkpoint() == new, act)
    before = state if new == old else readable(old).state
    return Answer(pass_.settle(running, rows), pass_.widened, [*notes, *losses], before, state)


def check_owners(node: Node, allow_owners: Sequence[str]) -> None:
    """Raise RefusedError where somebody writes the cpusets of containers whose account is not the checkpoint.

    Before each pass: others may come later than this program.
    """
    if not (node.may_have_owners() or node.tree.exists(CRIO_FILES)):
        return
    # Imported here: on most nodes there is the kubelet alone.
    from ...host.owner.conflicts import refuse
    from ...host.owner.owners import RECONCILE
    from ..owners import owners_of

    refuse(owners_of(node), RECONCILE, allow_owners)


def _check_no_kubelet(node: Node) -> None:
    """Raise RefusedError where there is one, even if it is stopped: its containers are not listed."""
    kubelet = find_kubelet(node.tree)
    if kubelet is not None or node.configuration() is not None:
        raise RefusedError(
            "the node has a kubelet (%s), which gives out the CPUs itself"
            % ("process %d" % kubelet.pid if kubelet is not None else "its configuration is %s" % node.config_path),
            remedy="omit %s" % option("containers"),
        )


class _Pass:
    """The writing part of one pass.

    is_current: whether the checkpoint is still the one that was read; after a change of it, what is wanted may be
    somebody else's by now.
    """

    def __init__(
        self, hierarchy: Hierarchy, online: CPUSet, runtime: Crictl | None, is_current: Callable[[], bool], act: bool
    ) -> None:
        self.hierarchy = hierarchy
        self.online = online
        self.runtime = runtime
        self.is_current = is_current
        self.act = act
        self.widened: list[Write] = []
        # Until the next boot: the kubelet and the runtime make them anew.
        self.systemd = systemd_of(hierarchy, runtime=True)
        self.cgroups: dict[str, Cgroup] = {}
        self.mems = CPUSet()

    def settle(self, running: Sequence[Running], rows: Sequence[Row]) -> list[Row]:
        """Carry the decisions out, one container after the other: the failure of one is not that of the next."""
        settled = list(rows)
        pending = [number for number, row in enumerate(rows) if row.result == WRITE]
        if not pending:
            return settled
        self.mems = self.hierarchy.memory_nodes()
        # On v2 a cgroup gets what those above it let through: to widen one may change what others have.
        met = [row.result == WRITE or (row.result == KEPT and self.hierarchy.version == 2) for row in rows]
        self.cgroups = self._around([container for container, is_met in zip(running, met) if is_met])
        # Those first that give something up, which another may be waiting for.
        queue = sorted(pending, key=lambda number: rows[number].effective <= rows[number].wanted)
        for number in queue:
            widened = len(self.widened)
            settled[number] = self._settle(running[number], settled[number])
            if self.hierarchy.version == 2 and len(self.widened) > widened:
                for changed in self._changed(running, settled):
                    settled[changed] = settled[changed]._replace(result=WRITE)
                    queue.append(changed)
        return settled

    def _changed(self, running: Sequence[Running], rows: Sequence[Row]) -> list[int]:
        """The containers that had the right CPUs, and have not after what was written for another."""
        found = []
        for number, row in enumerate(rows):
            cgroup = self.cgroups.get(running[number].process_cgroup)
            if row.result == KEPT and cgroup is not None and cgroup.effective_cpus != row.wanted:
                found.append(number)
        return found

    def _around(self, running: Sequence[Running]) -> dict[str, Cgroup]:
        """The cgroups of these containers and all around them, of those that are still there."""
        while True:
            try:
                return self.hierarchy.around(
                    path for container in running for path in (container.cgroup, container.process_cgroup)
                )
            except NodeError:
                left = [container for container in running if not self._has_ended(container)]
                if len(left) == len(running):
                    raise
                running = left

    def _has_ended(self, container: Running) -> bool:
        return self.hierarchy.effective_cpus(container.process_cgroup) is None

    def _settle(self, container: Running, row: Row) -> Row:
        if any(path not in self.cgroups for path in lineage(container.process_cgroup)):
            return row._replace(result=SKIPPED, why=ENDED)
        try:
            plan = plan_container(self.hierarchy.version, self.cgroups, container, row.wanted, self.online, self.mems)
            if self.runtime is not None:
                self.runtime.check()
            if self.act:
                self._write(container, row, plan)
        except (NodeError, RefusedError) as error:
            if self._has_ended(container):
                return row._replace(result=SKIPPED, why=ENDED)
            if self.act:
                self._read_again(container)
            return row._replace(result=FAILED, why=str(error))
        if not self.act:
            self.widened += _above(container, plan)
        self.cgroups = after_writes(self.hierarchy.version, self.cgroups, plan.writes)
        return row._replace(result=WRITTEN)

    def _write(self, container: Running, row: Row, plan: Plan) -> None:
        self._check_current()
        above = _above(container, plan)
        through_runtime = self.runtime is not None and self.runtime.serves(container.id)
        carry_out(self.hierarchy, above if through_runtime else plan.writes, self.systemd)
        # Also where the runtime then fails: what is above stays wide, and the next pass needs it.
        self.widened += above
        if self.runtime is not None and through_runtime and len(above) < len(plan.writes):
            self.runtime.set_cpus(container.id, row.wanted)
        now = self.hierarchy.effective_cpus(container.process_cgroup)
        if now != row.wanted:
            raise NodeError(
                "%s is effective after %s was written" % (shown(now or CPUSet()), row.wanted),
                where=self.hierarchy.place(container.cgroup),
            )
        # The runtime takes its time.
        self._check_current()

    def _check_current(self) -> None:
        if not self.is_current():
            raise RefusedError("the checkpoint was changed meanwhile", remedy="run again")

    def _read_again(self, container: Running) -> None:
        """What a failure has left in a container's cgroup and above it."""
        for path in lineage(container.process_cgroup):
            try:
                self.cgroups[path] = self.hierarchy.read(path)
            except NodeError:
                self.cgroups.pop(path, None)


def _above(container: Running, plan: Plan) -> list[Write]:
    """The writes of what is above a container."""
    return [write for write in plan.writes if write.path not in (container.cgroup, container.process_cgroup)]
