# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the dynamic policy has promised: who has which CPUs, and what is to leave whom when; and the moves to it. Pure.

The promise is a value, with its JSON. The moves let the kernel and the workloads' files become what was promised. The
order of one pass, of which each step alone leaves every CPU with one owner:

1. announce what is to leave a container, and when: its file
2. take from containers what has left them: the kernel
3. set the shared pool: it shrinks before others grow, and grows after others have shrunk
4. give containers what they get: the kernel
5. say what they have now: their files
6. remove the files of containers that have none any more
"""

from __future__ import annotations

import math
import re
from typing import Any, Mapping, NamedTuple, Tuple

from .._base.errors import InputError, option
from .._base.quantity import counted
from .._containers.pods import Pod
from ..cpuset import MAX_CPUS, CPUSet
from ..topology.kubelet_view import CPUTopology
from .options import StaticOptions

# Which containers may have more exclusive CPUs than they request: the annotation of their pod. Pure.


ANNOTATION = "cpu-manager.kubenode/elastic"

_RANGE = re.compile("([1-9][0-9]{0,4})-([1-9][0-9]{0,4})", re.ASCII)


class ElasticRange(NamedTuple):
    """From how many to how many exclusive CPUs a container has; `least` is what it requests."""

    least: int
    most: int


class Elastic(NamedTuple):
    """What an annotation says.

    most: {container: the most CPUs that it may have}, of the elastic ones alone. problem: what is wrong with the
    annotation, of the kind input; no container of the pod is elastic then.
    """

    most: Mapping[str, int]
    problem: InputError | None = None


def parse_range(text: object) -> ElasticRange:
    """Read "2-8". Raises InputError: no blanks, no signs, no leading zeros, and the second number is the larger one."""
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InputError(
            "%s is no range of CPUs" % repr(text)[:80], "annotation %s" % ANNOTATION, 'write it as "2-8", as a text'
        )
    least, most = map(int, found.groups())
    if not least < most <= MAX_CPUS:
        raise InputError(
            "%s is no range to grow in" % text,
            "annotation %s" % ANNOTATION,
            "give a second number from %d to %d" % (least + 1, MAX_CPUS),
        )
    return ElasticRange(least, most)


def elastic_containers(pod: Pod, annotations: Mapping[str, object], minor: int) -> Elastic:
    """Return the elastic containers of a pod: those with exclusive CPUs that request the lower end of its range.

    annotations: metadata.annotations of the pod. minor: the kubelet's minor version, which decides on exclusive CPUs.
    """
    if ANNOTATION not in annotations:
        return Elastic({})
    try:
        least, most = parse_range(annotations[ANNOTATION])
        names = [name for name, count in pod.exclusive_counts(minor).items() if count == least]
        if not names:
            raise InputError(
                "no container of the pod requests %s" % counted(least, "exclusive CPU"),
                "annotation %s" % ANNOTATION,
                "begin the range with the CPUs that a container of a Guaranteed pod requests",
            )
    except InputError as error:
        return Elastic({}, error.within("pod %s" % pod.name))
    return Elastic(dict.fromkeys(names, most))


VERSION = 1

# Pod UID and container.
Key = Tuple[str, str]


class Held(NamedTuple):
    """The exclusive CPUs of a container, as masks.

    admitted: the set that it was admitted with, and never goes below. cpus: all that it has. leaving: of these, what
    was announced to leave at the time `until`.
    """

    admitted: int
    cpus: int
    leaving: int = 0
    until: float = 0.0

    @property
    def grown(self) -> int:
        """What it has beyond its first set, and keeps for now."""
        return self.cpus & ~self.admitted & ~self.leaving


class DynamicState(NamedTuple):
    """All containers with exclusive CPUs in the order in which they came, and the CPUs that changed hands lately.

    shared: the mask of the shared pool. changed: {time: mask of the CPUs that changed hands then}. Times are seconds of
    any clock that all passes share.
    """

    shared: int
    containers: Mapping[Key, Held] = {}
    changed: Mapping[float, int] = {}

    def exclusive(self) -> int:
        """Return the mask of all CPUs that some container has to itself."""
        mask = 0
        for held in self.containers.values():
            mask |= held.cpus
        return mask

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a checkpoint; from_dict() reads it back."""
        return {
            "version": VERSION,
            "policy": "dynamic",
            "shared": _text(self.shared),
            "containers": [
                {
                    "pod": pod,
                    "container": name,
                    "admitted": _text(held.admitted),
                    "cpus": _text(held.cpus),
                    **({"leaving": _text(held.leaving), "until": held.until} if held.leaving else {}),
                }
                for (pod, name), held in self.containers.items()
            ],
            "changed": [{"at": at, "cpus": _text(mask)} for at, mask in sorted(self.changed.items())],
        }

    @classmethod
    def from_dict(cls, data: Any, where: str = "") -> DynamicState:
        """Return the state that to_dict() described. Raises InputError about `where` for all else, also for CPUs
        that two containers have, or a container and the shared pool."""
        try:
            if data["version"] != VERSION or data["policy"] != "dynamic":
                raise InputError("version %r of policy %r is not known" % (data["version"], data["policy"]))
            containers = {}
            for row in data["containers"]:
                key = (_name(row["pod"]), _name(row["container"]))
                if key in containers:
                    raise InputError("pod %s, container %s is there twice" % key)
                containers[key] = _held(row)
            changed = {_time(row["at"]): _mask(row["cpus"]) for row in data["changed"]}
            state = cls(_mask(data["shared"]), containers, changed)
        except InputError as error:
            raise error.within(where) if where else error from error
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise InputError(
                "is no state of the dynamic policy (%s: %s)" % (type(error).__name__, error), where
            ) from error
        seen = state.shared
        for key, held in containers.items():
            if held.cpus & seen:
                raise InputError(
                    "pod %s, container %s has CPUs %s, which a second container or the shared pool has, too"
                    % (*key, _text(held.cpus & seen)),
                    where,
                )
            seen |= held.cpus
        return state


def _held(row: Mapping[str, Any]) -> Held:
    admitted, cpus, leaving = _mask(row["admitted"]), _mask(row["cpus"]), _mask(row.get("leaving", ""))
    if not cpus or admitted & ~cpus or leaving & ~(cpus & ~admitted):
        raise InputError(
            "pod %s, container %s: CPUs %s, admitted with %s and leaving %s do not go together"
            % (row["pod"], row["container"], row["cpus"], row["admitted"], row.get("leaving", "none"))
        )
    return Held(admitted, cpus, leaving, _time(row["until"]) if leaving else 0.0)


def _mask(text: str) -> int:
    return CPUSet.parse(text).mask


def _name(text: Any) -> str:
    if not isinstance(text, str) or not text:
        raise InputError("%r is no name" % (text,))
    return text


def _time(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError("%r is no time" % (value,))
    return float(value)


def _text(mask: int) -> str:
    return str(CPUSet.from_mask(mask))


# By what rules the policy dynamic gives CPUs out, to whom, and what it has to go by.


MOST_DELAY = 60


class DynamicRules(NamedTuple):
    """By what CPUs are given out. settle, delay: seconds. distances: {NUMA node: {NUMA node: distance}}."""

    topology: CPUTopology
    reserved: CPUSet
    options: StaticOptions = StaticOptions()
    shared_minimum: int = 0
    settle: float = 30.0
    delay: float = 5.0
    distances: Mapping[int, Mapping[int, int]] = {}

    def checked(self, reserved: str = "reserved_system_cpus") -> DynamicRules:
        """Return the rules themselves. Raises InputError where they cannot be kept.

        reserved: the option by which CPUs are reserved.
        """
        topology = self.topology
        unknown = self.reserved - topology.all_cpus()
        if unknown:
            raise InputError("the machine has no CPUs %s to reserve" % unknown, where=option(reserved))
        if self.shared_minimum < 0 or not self.floor:
            raise InputError(
                "the shared pool could become empty",
                option("shared_minimum"),
                "reserve CPUs with %s, or give at least 1" % option(reserved),
            )
        if self.floor > topology.num_cpus:
            raise InputError(
                "%s cannot be kept of %d" % (counted(self.floor, "CPU"), topology.num_cpus),
                option("shared_minimum"),
                "give fewer",
            )
        if not 0 <= self.delay <= MOST_DELAY:
            raise InputError("%s is not from 0 to %d seconds" % (self.delay, MOST_DELAY), "delay")
        if not 0 <= self.settle < float("inf"):
            raise InputError("%s is no time" % self.settle, "settle", "give seconds")
        return self

    @property
    def floor(self) -> int:
        """How many CPUs the shared pool keeps."""
        return len(self.reserved) + self.shared_minimum


class WantedContainer(NamedTuple):
    """A container on the node: how many exclusive CPUs it requests, and up to how many it may have (0: not elastic).

    cpus: 0 for one that shares the pool.
    """

    pod: str
    name: str
    cpus: int
    most: int = 0

    @property
    def key(self) -> Key:
        """By what the state knows it."""
        return self.pod, self.name


class Use(NamedTuple):
    """How many CPUs were used on average of a period: by each container in the last one, and by all in the shared pool
    in the busiest one of the last minute."""

    containers: Mapping[Key, float] = {}
    shared: float = 0.0


# What to do so that the kernel and the files of the workloads become what was promised.


ANNOUNCE = "announce"
EXCLUSIVE = "exclusive"
SHARE = "share"
POOL = "pool"
REMOVE = "remove"


class Move(NamedTuple):
    """One step.

    what: ANNOUNCE a set in a container's file, where `until` is when the kernel is to follow, or None where it has
    followed; give a container an EXCLUSIVE set in the kernel; let a container SHARE the pool; set the POOL of all
    containers that share it; REMOVE a container's file. key: None for the pool. cpus: a mask.
    """

    what: str
    key: Key | None
    cpus: int = 0
    until: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for people."""
        pod, container = self.key or ("", "")
        data = {"what": self.what, "pod": pod, "container": container, "cpus": str(CPUSet.from_mask(self.cpus))}
        return data if self.until is None else {**data, "until": self.until}


class ContainerFile(NamedTuple):
    """What a container's file says: the CPUs that it is to use, and when the kernel takes the rest."""

    cpus: int
    until: float | None = None


class KernelView(NamedTuple):
    """What there is now: the mask of the shared pool, that of each container with exclusive CPUs, and the files.

    Who is not in `exclusive` runs on the shared pool.
    """

    shared: int
    exclusive: Mapping[Key, int] = {}
    files: Mapping[Key, ContainerFile] = {}


def view_of(state: DynamicState) -> KernelView:
    """Return what there is after all that a state has promised so far is done."""
    return KernelView(
        state.shared,
        {key: held.cpus for key, held in state.containers.items()},
        {key: _file(held) for key, held in state.containers.items()},
    )


def moves_between(view: KernelView, state: DynamicState) -> list[Move]:
    """Return the steps from what there is to what was promised, in order.

    view: after a pass that was killed, whatever that has left, without the kernel's sets of containers that ended.
    """
    wanted = {key: held.cpus for key, held in state.containers.items()}
    files = dict(view.files)
    moves = []

    def announce(key: Key, file: ContainerFile) -> None:
        if files.get(key) != file:
            files[key] = file
            moves.append(Move(ANNOUNCE, key, file.cpus, file.until))

    for key, held in state.containers.items():
        kept = view.exclusive.get(key, 0) & held.cpus & ~held.leaving
        lost = view.exclusive.get(key, 0) & ~held.cpus
        # Without a delay, too, the file comes before the kernel.
        if kept and (held.leaving or (lost and (key not in files or files[key].cpus & lost))):
            announce(key, ContainerFile(kept, _until(held)))
    left = {}
    for key, mask in view.exclusive.items():
        kept = mask & wanted.get(key, 0)
        if not kept:
            # The kernel takes no empty set.
            moves.append(Move(SHARE, key))
            continue
        left[key] = kept
        if kept != mask:
            moves.append(Move(EXCLUSIVE, key, kept))
    if view.shared != state.shared:
        moves.append(Move(POOL, None, state.shared))
    moves += [Move(EXCLUSIVE, key, mask) for key, mask in wanted.items() if left.get(key) != mask]
    for key, held in state.containers.items():
        announce(key, _file(held))
    moves += [Move(REMOVE, key) for key in files if key not in wanted]
    return moves


def _file(held: Held) -> ContainerFile:
    return ContainerFile(held.cpus & ~held.leaving, _until(held))


def _until(held: Held) -> float | None:
    return held.until if held.leaving else None
