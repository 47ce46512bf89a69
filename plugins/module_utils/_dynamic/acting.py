# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry the moves of a pass out, in their order: in the cpusets of cgroups, and in the files of containers.

What the kernel refuses one container is not given to another: before each gift, this looks who else has the CPUs.
"""

from __future__ import annotations

import os
import re
from typing import Iterable, Mapping, Sequence

from .._base.errors import CPUManagerError, NodeError, RefusedError
from .._base.tree import Tree
from .._base.untrusted import DIRECTORY, read_file
from .._cgroup.hierarchy import Hierarchy, Quota
from .._cgroup.writer import read_quota, write_quota
from .._node.container_cpus import FAILED, SKIPPED, WRITE, ContainerRow, Running
from .._node.container_writes import Settling
from .._published.publish import OURS, PublishedCPUs, Publishing, is_name
from ..cpuset import CPUSet
from ..policy.dynamic_state import ANNOUNCE, EXCLUSIVE, REMOVE, SHARE, DynamicState, Held, Key, Move
from .census import Present

# The CFS quotas of containers that have grown, and of their pods: lifted as long as they have more than they request.
#
# With its quota, the kernel would throttle a container to its limit, whatever its CPUs. On v1, no cgroup may have more
# than the one above it; so the pod's is lifted first, and put back last.


class Quotas:
    """The quotas that were lifted. hierarchy: with the cpu controller; without one, nothing limits anybody.

    remembered: {cgroup: its quota}, for the promise that is written before anything is lifted.
    """

    def __init__(self, hierarchy: Hierarchy | None, remembered: Mapping[str, Quota]) -> None:
        self._hierarchy = hierarchy
        self.remembered = dict(remembered)
        self._grown: tuple[str, ...] = ()

    def remember(self, grown: Iterable[str]) -> None:
        """Read the quotas of these cgroups, those of containers that have grown and of their pods."""
        self._grown = tuple(sorted(set(grown)))
        for path in self._grown:
            quota = self._read(path)
            # One that is there again was written by somebody, such as the kubelet for a pod that was resized.
            if quota is not None and quota.quota_us is not None:
                self.remembered[path] = quota

    def lift(self) -> list[str]:
        """Lift them. Gives what the kernel refuses."""
        return [
            failure
            for path in self._grown
            if path in self.remembered
            for failure in self._write(path, self.remembered[path].unlimited())
        ]

    def put_back(self) -> list[str]:
        """Put back those of cgroups that have not grown any more, and forget them. Gives what the kernel refuses."""
        refused = []
        for path in sorted(self.remembered, reverse=True):
            if path not in self._grown:
                failures = self._write(path, self.remembered[path])
                refused += failures
                if not failures:
                    del self.remembered[path]
        return refused

    def _read(self, path: str) -> Quota | None:
        return None if self._hierarchy is None else read_quota(self._hierarchy, path)

    def _write(self, path: str, quota: Quota) -> list[str]:
        now = self._read(path)
        # A limit in the place of the one that was lifted is somebody else's.
        if now is None or self._hierarchy is None or (now.quota_us is None) == (quota.quota_us is None):
            return []
        try:
            write_quota(self._hierarchy, path, quota)
        except (NodeError, RefusedError) as error:
            return [str(error)]
        return []


# The answers of workloads that have left CPUs before they are taken.
#
# A workload writes into an emptyDir volume of its pod. There it can fill no more than the pod may, and the kubelet
# removes it with the pod. What is in the file may be anything.


# The name that the volume has in the pod, and how the file's begins with the container's.
VOLUME, _END = "cpu-manager", ".left"
_PLACE = "%s/pods/%s/volumes/kubernetes.io~empty-dir/%s"

_MOST = 64
_TIME = re.compile(rb"\s*([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*")
# The file of a container has milliseconds.
_NEAR = 0.001


def has_left(tree: Tree, kubelet_root: str, pod_uid: str, container: str, until: float) -> bool:
    """Return whether a container has answered what was announced for this time."""
    if not (is_name(pod_uid) and is_name(container)):
        return False
    try:
        directory = os.open(tree.path(_PLACE % (kubelet_root.rstrip("/"), pod_uid, VOLUME)), DIRECTORY)
    except (OSError, CPUManagerError):
        return False
    try:
        content = read_file(directory, container + _END, _MOST)
    except (OSError, CPUManagerError):
        return False
    finally:
        os.close(directory)
    found = _TIME.fullmatch(content)
    return found is not None and abs(float(found.group(1)) - until) <= _NEAR


class Acting:
    """The writing part of one pass.

    exclusive: {container: the mask that the kernel has for it alone}, before the pass. Attributes: done, the moves that
    were made; refused, what could not be done, for people.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        online: CPUSet,
        present: Sequence[Present],
        state: DynamicState,
        exclusive: Iterable[Key],
        publishing: Publishing,
    ) -> None:
        self._hierarchy, self._online = hierarchy, online
        self._present, self._state, self._publishing = present, state, publishing
        self._exclusive = set(exclusive)
        self._effective = {container.running.id: container.running.effective or CPUSet() for container in present}
        self._narrowed = {container.running.id for container in present if container.running.inner is not None}
        self.done: list[Move] = []
        self.refused: list[str] = []

    def carry_out(self, moves: Iterable[Move]) -> None:
        """Make these moves."""
        for move in moves:
            if move.key is None:
                is_done = self._set_pool(move.cpus)
            elif move.what == EXCLUSIVE:
                is_done = self._give(move.key, move.cpus)
            elif move.what == SHARE:
                is_done = self._share(move.key)
            else:
                is_done = move.what in (ANNOUNCE, REMOVE) and self._announce(move)
            if is_done:
                self.done.append(move)

    def entries(self) -> list[PublishedCPUs]:
        """Return what the file of each container is to say."""
        return [
            self._entry(container, self._state.containers.get(container.key))
            for container in self._present
            if container.key is not None
        ]

    # --- the kernel ------------------------------------------------------------------------------------------

    def _give(self, key: Key, mask: int) -> bool:
        """Let a container have these CPUs alone, if nobody else has any of them."""
        own = [container for container in self._present if container.key == key]
        # What it has alone already, it may keep, whoever else has come upon it.
        new = mask & ~self._held_by(own) if key in self._exclusive else mask
        taken = new & self._held_by(container for container in self._present if container.key != key)
        if taken:
            self.refused.append(
                "pod %s, container %s does not get CPUs %s: others still have %s"
                % (*key, CPUSet.from_mask(mask), CPUSet.from_mask(taken))
            )
            return False
        self._exclusive.add(key)
        return self._settle(own, mask)

    def _share(self, key: Key) -> bool:
        """Let a container run on the shared pool."""
        self._exclusive.discard(key)
        return self._settle(
            [container for container in self._present if container.key == key], self._pool(self._state.shared)
        )

    def _set_pool(self, mask: int) -> bool:
        """Set the shared pool."""
        return self._settle(
            [container for container in self._present if container.key not in self._exclusive], self._pool(mask)
        )

    def _pool(self, mask: int) -> int:
        """Return what of a pool nobody still has alone."""
        return mask & ~self._held_by(container for container in self._present if container.key in self._exclusive)

    def _held_by(self, present: Iterable[Present]) -> int:
        mask = 0
        for container in present:
            mask |= self._effective[container.running.id].mask
        return mask

    def _settle(self, present: Sequence[Present], mask: int) -> bool:
        """Bring containers to these CPUs; whether all are there."""
        wanted = CPUSet.from_mask(mask) & self._online
        pending = [
            container.running
            for container in present
            if self._effective[container.running.id] != wanted or container.running.id in self._narrowed
        ]
        if not pending:
            return True
        if not wanted:
            self.refused.append("%s: none of its CPUs is left for it" % pending[0].cgroup)
            return False
        settling = Settling(self._hierarchy, self._online, None, lambda: True, True)
        rows = [self._row(running, wanted) for running in pending]
        failed = False
        for running, row in zip(pending, settling.settle(pending, rows)):
            now = wanted
            if row.result in (FAILED, SKIPPED):
                now = self._hierarchy.effective_cpus(running.cgroup) or CPUSet()
            if row.result == FAILED:
                failed = True
                self.refused.append("pod %s, container %s: %s" % (row.pod or row.pod_uid, row.container, row.why))
            self._effective[running.id] = now
            self._narrowed.discard(running.id)
        return not failed

    def _row(self, running: Running, wanted: CPUSet) -> ContainerRow:
        now = self._effective[running.id]
        names = (running.pod_uid, running.pod, running.name or "", running.id, running.cgroup)
        return ContainerRow(*names, wanted, now, WRITE)

    # --- the files -------------------------------------------------------------------------------------------

    def _announce(self, move: Move) -> bool:
        """Say in a container's file what it is to use. A file that is to be removed is, in the end, that of one that
        shares the pool, or that has ended."""
        try:
            for container in self._present:
                if container.key == move.key:
                    held = Held(0, move.cpus) if move.what == ANNOUNCE else None
                    self._publishing.put(self._entry(container, held, move.until))
        except (NodeError, RefusedError) as error:
            self.refused.append(str(error))
            return False
        return True

    def _entry(self, container: Present, held: Held | None, until: float | None = None) -> PublishedCPUs:
        running, effective = container.running, self._effective[container.running.id]
        name = running.name or ""
        if held is None or container.key not in self._exclusive:
            pool = CPUSet.from_mask(self._state.shared) & self._online
            return PublishedCPUs(running.pod_uid, name, pool & effective or effective, False, OURS, effective)
        if until is None and held.leaving:
            until = held.until
        # Never more than the kernel has followed with.
        kept = CPUSet.from_mask(held.cpus & ~held.leaving)
        cpus = kept & effective or effective
        leaving = CPUSet() if until is None else effective - cpus
        return PublishedCPUs(running.pod_uid, name, cpus, True, OURS, effective, leaving, until)
