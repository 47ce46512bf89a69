# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One pass over a node's containers: read, decide, write what differs, and read that again."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Iterable, NamedTuple, Sequence

from .._base.errors import InputError, RefusedError, option
from .._base.files import make_directory, replace_file
from .._cgroup.kubepods import Kubepods
from .._cgroup.writes import Write, shown
from .._containers.crictl import Crictl, names_of
from .._kubelet.installation import find_kubelet
from .._node.container_cpus import (
    ABSENT,
    FAILED,
    KEPT,
    SKIPPED,
    WRITTEN,
    ContainerRow,
    Running,
    decide,
    find_hierarchy,
    read_running,
)
from .._node.container_writes import Listed, ReconcileRules, Settling, allocate
from .._node.node import Node, cgroup_root_of
from ..cpuset import CPUSet
from ..policy.options import StaticOptions
from ..state.acceptance import ABSENT as NO_CHECKPOINT
from ..state.acceptance import STATIC, readable
from ..state.assignments import State
from ..state.writing import MODE, format_for, write_checkpoint


class ReconcileResult(NamedTuple):
    """What a pass did, or in check mode would do."""

    rows: Sequence[ContainerRow] = ()
    # The cgroups of pods, QoS classes, and all pods that had to be widened.
    widened: Sequence[Write] = ()
    notes: Sequence[str] = ()
    # What the checkpoint says, before and afterwards.
    old: State | None = None
    new: State | None = None
    # The containers of the rows, as they were read.
    running: Sequence[Running] = ()

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return bool(self.widened) or self.old != self.new or any(row.result == WRITTEN for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        results = [row.result for row in self.rows]
        return {
            "containers": [row.to_dict() for row in self.rows],
            "counts": {result: results.count(result) for result in (KEPT, WRITTEN, FAILED, SKIPPED)},
            "widened": [write.to_dict() for write in self.widened],
            "shared_pool": "" if self.new is None else str(self.new.default_cpu_set),
            "notes": list(self.notes),
        }

    def before(self) -> str:
        """Return the checkpoint and each container's CPUs before, as lines."""
        return self._lines(self.old, [row.effective for row in self.rows])

    def after(self) -> str:
        """Return the checkpoint and each container's CPUs afterwards, as lines."""
        return self._lines(self.new, [row.wanted if row.result == WRITTEN else row.effective for row in self.rows])

    def _lines(self, state: State | None, sets: Iterable[CPUSet]) -> str:
        lines = ["%s: %s\n" % (_name(row), shown(cpus)) for row, cpus in zip(self.rows, sets)]
        # A kubelet's checkpoint is not changed here.
        return (state.to_text() if state is not None and self.old != self.new else "") + "".join(lines)


def _name(row: ContainerRow) -> str:
    """Return what a person calls a container; its cgroup where no name is known, or where the cgroup was given."""
    return "%s/%s" % (row.pod or row.pod_uid, row.container) if row.id and row.container else row.cgroup


def reconcile_pods(node: Node, runtime: Crictl | None, act: bool, allow_owners: Sequence[str] = ()) -> ReconcileResult:
    """Return one pass over the containers of a kubelet. Raises RefusedError when its checkpoint is damaged, and where
    somebody else gives the containers their CPUs.

    runtime: who writes the cpusets of its containers; without it they are written to the cgroups. allow_owners: the ids
    of those who may manage CPUs beside this.
    """
    check_owners(node, allow_owners)
    hierarchy, notes = find_hierarchy(node.tree)
    if hierarchy is None:
        return ReconcileResult(notes=notes)
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
        return ReconcileResult(
            notes=[*notes, "%s: no checkpoint there, so it is not known which CPUs are whose" % place]
        )
    if said.state is None or not said.checksum_right:
        raise RefusedError(
            "is damaged, and no cpuset was written", where=place, remedy="repair it first, with the module checkpoint"
        )
    online = hierarchy.online_cpus()
    rows = decide(running, said.policy_name, said.state, online, all_named)
    pass_ = Settling(hierarchy, online, runtime, lambda: node.checkpoint() == content, act)
    return ReconcileResult(pass_.settle(running, rows), pass_.widened, notes, said.state, said.state, running)


def reconcile_listed(
    node: Node,
    listed: Sequence[Listed],
    options: StaticOptions,
    reserved: CPUSet,
    act: bool,
    allow_owners: Sequence[str] = (),
) -> ReconcileResult:
    """Give the listed containers their CPUs on a node without a kubelet: first in its checkpoint, then in the cgroups.

    Raises RefusedError when a kubelet runs, somebody else gives containers their CPUs, or there are not enough of them,
    and nothing is written.
    """
    _check_no_kubelet(node)
    check_owners(node, allow_owners)
    hierarchy, notes = find_hierarchy(node.tree)
    if hierarchy is None:
        return ReconcileResult(notes=notes)
    listed = [container._replace(cgroup=hierarchy.relative(container.cgroup)) for container in listed]
    for path, times in Counter(container.cgroup for container in listed).items():
        if times > 1:
            raise InputError("two of them have the cgroup %s" % path, where=option("containers"))
    old = node.checkpoint()
    state, losses = allocate(listed, old, ReconcileRules(node.machine().topology, options, reserved, node.minor))
    new = write_checkpoint(STATIC, state, format_for(node.minor))
    if act and new != old:
        place = node.tree.path(node.checkpoint_path)
        make_directory(os.path.dirname(place))
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
    pass_ = Settling(hierarchy, online, None, lambda: node.checkpoint() == new, act)
    before = state if new == old else readable(old).state
    return ReconcileResult(pass_.settle(running, rows), pass_.widened, [*notes, *losses], before, state)


def check_owners(node: Node, allow_owners: Sequence[str]) -> None:
    """Raise RefusedError where somebody writes the cpusets of containers whose account is not the checkpoint.

    Before each pass: others may come later than this program.
    """
    if not node.may_have_owners(with_crio=True):
        return
    # Imported here: on most nodes there is the kubelet alone.
    from .._node.owners_found import refuse_beside
    from .._owners.owners import RECONCILE

    refuse_beside(node, RECONCILE, allow_owners)


def _check_no_kubelet(node: Node) -> None:
    """Raise RefusedError where there is one, even if it is stopped: its containers are not listed."""
    kubelet = find_kubelet(node.tree)
    if kubelet is not None or node.configuration() is not None:
        raise RefusedError(
            "the node has a kubelet (%s), which gives out the CPUs itself"
            % ("process %d" % kubelet.pid if kubelet is not None else "its configuration is %s" % node.config_path),
            remedy="omit %s" % option("containers"),
        )
