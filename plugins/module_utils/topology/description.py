# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A machine from a description such as "2 sockets x 12 cores x 2 threads"."""

from __future__ import annotations

from typing import NamedTuple

from .._base.errors import InputError
from .._base.tree import is_number
from ..cpuset import MAX_CPUS, CPUSet
from .model import Group, Topology

# What people write, in the singular and without case, by level from the outside in.
_NAMES = {
    "socket": "sockets",
    "package": "sockets",
    "numa node": "numa_nodes",
    "node": "numa_nodes",
    "numa": "numa_nodes",
    "l3 cache": "caches",
    "l3": "caches",
    "core": "cores",
    "thread": "threads",
}
_LEVELS = ("sockets", "numa_nodes", "caches", "cores", "threads")

_HELP = "write it as '2 sockets x 4 NUMA nodes x 2 L3 caches x 8 cores x 2 threads', from the outside in"


class _Counts(NamedTuple):
    """How many of each level are in one of the level before."""

    sockets: int = 1
    numa_nodes: int = 1
    caches: int = 1
    cores: int = 1
    threads: int = 1


def describe_machine(text: str) -> Topology:
    """Return the machine that a text describes; each count is how many are in one of the level before it.

    A level that is left out has one. CPUs are numbered as Linux mostly does: first the first threads of all cores.
    Raises InputError.
    """
    counts = _counts(text)
    nodes = counts.sockets * counts.numa_nodes
    caches = nodes * counts.caches
    cores = caches * counts.cores
    if cores * counts.threads > MAX_CPUS:
        raise InputError("has %d CPUs, more than %d" % (cores * counts.threads, MAX_CPUS), "machine %r" % text)

    def groups(number: int) -> list[Group]:
        """Return all cores in so many equal parts."""
        part = cores // number
        first = [((1 << part) - 1) << part * index for index in range(number)]
        return [Group(index, CPUSet.from_mask(_all_threads(mask, cores, counts))) for index, mask in enumerate(first)]

    near, inside, far = 10, 12, 21
    distances = {
        node: {
            target: near
            if node == target
            else inside
            if node // counts.numa_nodes == target // counts.numa_nodes
            else far
            for target in range(nodes)
        }
        for node in range(nodes)
    }
    return Topology(
        online=CPUSet.from_mask((1 << cores * counts.threads) - 1),
        cores=[group.cpus for group in groups(cores)],
        sockets=groups(counts.sockets),
        dies=groups(counts.sockets),
        numa_nodes=groups(nodes),
        caches=groups(caches),
        numa_distances=distances,
    )


def _all_threads(first: int, cores: int, counts: _Counts) -> int:
    return sum(first << thread * cores for thread in range(counts.threads))


def _counts(text: str) -> _Counts:
    counts: dict[str, int] = {}
    for part in text.replace("\u00d7", " x ").replace(",", " x ").lower().split(" x "):
        number, _space, name = part.strip().partition(" ")
        name = " ".join(name.split())
        level = _NAMES.get(name) or _NAMES.get(name[:-1] if name.endswith("s") else name)
        if not is_number(number) or not 0 < int(number[:6]) <= MAX_CPUS or level is None:
            raise InputError("%r is not a count of something" % part.strip(), "machine %r" % text, _HELP)
        if counts and _LEVELS.index(level) <= max(_LEVELS.index(counted) for counted in counts):
            raise InputError("%r stands too far inside" % part.strip(), "machine %r" % text, _HELP)
        counts[level] = int(number)
    return _Counts(**counts)
