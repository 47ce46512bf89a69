# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An isolated partition of cgroup v2 for CPUs that no pod may use: what there is, what to write, how to undo it.

The scheduler leaves such CPUs alone, as with isolcpus=domain, and that without a reboot. A cgroup of our own at the top
of the hierarchy has them, so that it needs nothing of any other cgroup. Sources: "Cpuset Interface Files" in Linux's
Documentation/admin-guide/cgroup-v2.rst, and the checks in kernel/cgroup/cpuset.c.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..cgroup.hierarchy import ROOT, Hierarchy, joined
from ..cgroup.mounts import CPUS
from ..cpuset import CPUSet
from ..errors import PERMISSION, InputError, NodeError, RefusedError

# The cgroup of our own. What is to run on the CPUs is put into it or below it.
OWN = "kubenode-isolated"

EXCLUSIVE = "cpuset.cpus.exclusive"
EFFECTIVE = EXCLUSIVE + ".effective"
PARTITION = "cpuset.cpus.partition"
ISOLATED = "cpuset.cpus.isolated"
MEMBER_TYPE, ISOLATED_TYPE = "member", "isolated"

MAKE, WRITE, REMOVE = "mkdir", "write", "rmdir"
_INVALID = " invalid"
# In a saved tree, what a kernel puts into a new cgroup.
_FILES = {CPUS: "", EXCLUSIVE: "", EFFECTIVE: "", PARTITION: MEMBER_TYPE}
_REASONS = {
    errno.EBUSY: "processes or cgroups are in it",
    errno.EINVAL: "a sibling has some of these CPUs",
    errno.EACCES: "it is not within what the parent has",
}


class Partition(NamedTuple):
    """A cgroup that is a partition, or would be. kind: "root" or "isolated". problem: why it is none, as the kernel
    says it."""

    path: str
    kind: str
    problem: str
    cpus: CPUSet | None
    exclusive: CPUSet | None
    effective: CPUSet | None


class Partitions(NamedTuple):
    """What a node has.

    missing: why there can be no partition of our own; empty where there can. isolated: the CPUs of all isolated
    partitions, and on newer kernels those of isolcpus; None where the kernel does not show them. tops: the cgroups at
    the top, with the CPUs that each holds itself (None: it is not under the controller). has_own: whether ours is
    there. busy: what is in ours.
    """

    missing: str
    isolated: CPUSet | None
    found: tuple[Partition, ...]
    tops: Mapping[str, CPUSet | None]
    has_own: bool
    busy: str

    def own(self) -> Partition | None:
        """Ours, where it is a partition."""
        return next((partition for partition in self.found if partition.path == OWN), None)


class Step(NamedTuple):
    """One change. action: MAKE, WRITE or REMOVE. old: what a file held before."""

    action: str
    path: str
    file: str = ""
    old: str = ""
    new: str = ""

    def to_dict(self) -> dict[str, str]:
        """Plain data, as modules return it."""
        return {"action": self.action, "path": self.path, "file": self.file, "old": self.old, "new": self.new}


# --- reading ------------------------------------------------------------------------------------------


def read_partitions(hierarchy: Hierarchy) -> Partitions:
    """What a node has. Raises NodeError where a file cannot be read."""
    if hierarchy.version != 2:
        return Partitions("version 1 of cgroups has no partitions", None, (), {}, False, "")
    tops = {path: hierarchy.read_set(path, CPUS) for path in hierarchy.children(ROOT)}
    found = [_partition(hierarchy, path, text) for path, text in _candidates(hierarchy)]
    has_own = OWN in tops
    busy = ""
    if has_own:
        inner = hierarchy.children(OWN)
        busy = "the cgroup %s" % inner[0] if inner else "processes" if _text(hierarchy, OWN, "cgroup.procs") else ""
    under = [path for path, cpus in tops.items() if cpus is not None]
    missing = ""
    if not under:
        missing = "the controller cpuset is not enabled for what is at the top of cgroups"
    elif all(_text(hierarchy, path, EXCLUSIVE) is None for path in under):
        missing = "the kernel has no %s, which came with Linux 6.7" % EXCLUSIVE
    isolated = hierarchy.read_set(ROOT, ISOLATED)
    return Partitions(missing, isolated, tuple(found), tops, has_own, busy)


def _candidates(hierarchy: Hierarchy) -> Iterator[tuple[str, str]]:
    """The cgroups that are no plain members, and can take CPUs from others.

    A node has thousands of cgroups. A partition further down needs exclusive CPUs, or a partition, at each step above
    it, so that most need no look.
    """
    waiting = hierarchy.children(ROOT)[::-1]
    while waiting:
        path = waiting.pop()
        text = _text(hierarchy, path, PARTITION)
        is_partition = text not in (None, "", MEMBER_TYPE)
        if is_partition or _text(hierarchy, path, EXCLUSIVE):
            waiting += hierarchy.children(path)[::-1]
        if is_partition:
            yield path, text or ""


def _partition(hierarchy: Hierarchy, path: str, text: str) -> Partition:
    kind, invalid, reason = text.partition(_INVALID)
    problem = (reason.strip().strip("()") or "no reason is given") if invalid else ""
    cpus, exclusive, effective = (hierarchy.read_set(path, name) for name in (CPUS, EXCLUSIVE, EFFECTIVE))
    return Partition(path, kind.strip(), problem, cpus, exclusive, effective)


def _text(hierarchy: Hierarchy, path: str, name: str) -> str | None:
    """A file's text; None where it, or the cgroup, is not there."""
    try:
        descriptor = hierarchy.open_file(path, name, os.O_RDONLY)
        try:
            return os.read(descriptor, 1 << 16).decode("ascii", "replace").strip()
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV):
            return None
        raise hierarchy.unreadable(path, name, error) from error


def cpus_of_pods(hierarchy: Hierarchy, roots: Iterable[str]) -> CPUSet:
    """The CPUs on which the containers below these cgroups are now: what each holds, else what it may use."""
    paths: list[str] = []
    leaves: set[str] = set()
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        inner = hierarchy.listed_children(path)
        waiting += inner
        paths += inner
        if not inner:
            leaves.add(path)
    found = CPUSet()
    held = hierarchy.cpus_of(paths)
    free = [path for path, cpus in held.items() if not cpus and path in leaves]
    for cpus in (*held.values(), *hierarchy.effective_cpus_of(free).values()):
        found |= cpus or CPUSet()
    return found


# --- deciding -----------------------------------------------------------------------------------------


def plan_partition(seen: Partitions, cpus: CPUSet, online: CPUSet, pods: CPUSet) -> tuple[Step, ...]:
    """The writes that make an isolated partition of these CPUs, in their order; none where it is there.

    pods: what the kubelet may give to pods, and what they have. With a static policy that is not strict, pods may have
    reserved CPUs, too.
    Raises RefusedError where it cannot be or would harm, InputError for no CPUs.
    """
    where = "the isolated CPUs %s" % cpus
    if not cpus:
        raise InputError("there are none", "the isolated CPUs", "give some of the reserved ones")
    if seen.missing:
        raise RefusedError(seen.missing, where, "want none on this node, or use isolcpus of its kernel")
    if not cpus <= online:
        raise RefusedError("%s are not online" % (cpus - online), where, "give CPUs that are")
    if not pods.isdisjoint(cpus):
        raise RefusedError(
            "pods may use %s, and pods that share CPUs need the scheduler's load balancing" % (pods & cpus),
            where,
            "reserve them with the policy option strict-cpu-reservation, or give others",
        )
    if online <= cpus:
        raise RefusedError("nothing is left for all others", where, "give fewer")
    own = seen.own()
    if own is not None and (own.kind, own.problem, own.exclusive) == (ISOLATED_TYPE, "", cpus):
        return ()
    for path, held in seen.tops.items():
        if path != OWN and held and not held.isdisjoint(cpus):
            raise RefusedError(
                "%s has %s of them in its %s" % (path, held & cpus, CPUS),
                where,
                "take them out there, as with AllowedCPUs= of the unit, and leave it some",
            )
    for partition in seen.found:
        taken = partition.exclusive or partition.cpus or CPUSet()
        if partition.path.partition("/")[0] != OWN and not taken.isdisjoint(cpus):
            raise RefusedError("the partition %s has %s of them" % (partition.path, taken & cpus), where, "give others")
    steps = [] if seen.has_own else [Step(MAKE, OWN)]
    if own is not None:
        steps.append(Step(WRITE, OWN, PARTITION, own.kind, MEMBER_TYPE))
    # Before Linux 6.11, the exclusive CPUs have to be in the cgroup's own.
    before = {CPUS: seen.tops.get(OWN), EXCLUSIVE: own.exclusive if own is not None else None}
    steps += [Step(WRITE, OWN, name, str(before[name] or ""), str(cpus)) for name in (CPUS, EXCLUSIVE)]
    return (*steps, Step(WRITE, OWN, PARTITION, MEMBER_TYPE, ISOLATED_TYPE))


def plan_undo(seen: Partitions) -> tuple[Step, ...]:
    """The writes that take our partition away, in their order; none where it is not there.

    Raises RefusedError where something is in it.
    """
    if not seen.has_own:
        return ()
    if seen.busy:
        raise RefusedError("%s would lose its CPUs" % seen.busy, "cgroup %s" % OWN, "stop it, or move it elsewhere")
    own = seen.own()
    steps = [Step(WRITE, OWN, PARTITION, own.kind, MEMBER_TYPE)] if own is not None else []
    if own is not None and own.exclusive:
        steps.append(Step(WRITE, OWN, EXCLUSIVE, str(own.exclusive), ""))
    return (*steps, Step(REMOVE, OWN))


# --- acting -------------------------------------------------------------------------------------------


def carry_out(hierarchy: Hierarchy, steps: Sequence[Step]) -> None:
    """Make the steps in their order. One that is done already, by a run that was killed, is no error.

    Raises NodeError with the kernel's reason; what was done before stays, for plan_undo() to take away.
    """
    for step in steps:
        place = hierarchy.place(step.path, step.file)
        try:
            if step.action == MAKE:
                _make(hierarchy, step.path)
            elif step.action == REMOVE:
                _remove(hierarchy, step.path)
            else:
                _write(hierarchy, step)
        except OSError as error:
            reason = _REASONS.get(error.errno or 0)
            what = "cannot be changed: %s%s" % (error.strerror, " (%s)" % reason if reason else "")
            if error.errno in (errno.EPERM, errno.EACCES, errno.EROFS):
                raise NodeError(what, place, "run as root (become: true)", PERMISSION) from error
            raise NodeError(what, place) from error


def _make(hierarchy: Hierarchy, path: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(hierarchy.place(path), 0o755)
        if not hierarchy.tree.live:
            for name, text in _FILES.items():
                with open(hierarchy.place(path, name), "x", encoding="ascii") as made:
                    made.write(text + "\n")


def _remove(hierarchy: Hierarchy, path: str) -> None:
    with suppress(FileNotFoundError):
        if not hierarchy.tree.live:
            for name in _FILES:
                os.unlink(hierarchy.place(path, name))
        os.rmdir(hierarchy.place(path))


def _write(hierarchy: Hierarchy, step: Step) -> None:
    descriptor = hierarchy.open_file(step.path, step.file, os.O_WRONLY)
    try:
        # The kernel does not see a write of nothing.
        length = os.write(descriptor, step.new.encode("ascii") + b"\n")
        if not hierarchy.tree.live:
            os.ftruncate(descriptor, length)
    finally:
        os.close(descriptor)
    now = _text(hierarchy, step.path, step.file) or ""
    if now != step.new:
        _kind, invalid, reason = now.partition(_INVALID)
        what = "the kernel makes none of it: %s" % reason.strip().strip("()") if invalid else "holds %r" % now
        raise NodeError("%s, after %r was written" % (what, step.new), hierarchy.place(step.path, step.file))


def step_names(steps: Iterable[Step]) -> list[str]:
    """The steps as lines for people."""
    return [
        "%s %s" % (step.action, joined(step.path, step.file) if step.file else step.path)
        + (": %s" % (step.new or "(none)") if step.action == WRITE else "")
        for step in steps
    ]
