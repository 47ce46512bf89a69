# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shape of a node: what of its topology decides which settings fit. Pure.

Nodes of one shape get the same settings. How the CPUs are numbered is no part of it, as the reservation is planned for
each node from its own topology.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import NamedTuple

from ...topology.model import Group, Topology


class Part(NamedTuple):
    """What one NUMA node with CPUs has."""

    cpus: int
    # (online threads of a core, how many cores have so many), in order.
    cores: tuple[tuple[int, int], ...]
    caches: int


class Shape(NamedTuple):
    """Counts of online CPUs, sockets, NUMA nodes (those without CPUs, too), L3 caches, cores, threads of a core."""

    cpus: int
    sockets: int
    numa_nodes: int
    caches: int
    cores: int
    # The most that a core has.
    threads: int
    # Of the NUMA nodes with CPUs, in the order of their sizes.
    parts: tuple[Part, ...]

    @property
    def uniform_cores(self) -> bool:
        """Whether all cores have equally many online threads."""
        return self.cores * self.threads == self.cpus

    @property
    def is_regular(self) -> bool:
        """Whether the counts say everything: all NUMA nodes, cores and caches are alike."""
        if not self.uniform_cores:
            return False
        count = self.numa_nodes
        caches = max(1, self.caches // count) if self.caches else 0
        part = Part(self.cpus // count, ((self.threads, self.cores // count),), caches)
        return self.parts == (part,) * count and self.caches in (0, caches * count, 1)

    @property
    def name(self) -> str:
        """The shape as a part of a group's name: equal for equal shapes, different for different ones."""
        name = "cpus%d_sockets%d_numa%d_caches%d_threads%d" % (
            self.cpus,
            self.sockets,
            self.numa_nodes,
            self.caches,
            self.threads,
        )
        return name if self.is_regular else "%s_%s" % (name, short_hash(self))

    def __str__(self) -> str:
        counts = (
            (self.cpus, "CPU"),
            (self.sockets, "socket"),
            (self.numa_nodes, "NUMA node"),
            (self.caches, "L3 cache"),
            (self.cores, "core"),
        )
        text = ", ".join("%d %s%s" % (count, name, "" if count == 1 else "s") for count, name in counts)
        threads = "%d thread%s" % (self.threads, "" if self.threads == 1 else "s")
        return "%s of %s%s" % (text, "" if self.uniform_cores else "up to ", threads)


def shape_of(topology: Topology) -> Shape:
    """The shape of a machine."""
    parts = [
        Part(
            len(node.cpus),
            tuple(sorted(Counter(len(core.cpus) for core in _within(topology.cores, node)).items())),
            len(_within(topology.caches, node)),
        )
        for node in topology.numa_nodes
        if node.cpus
    ]
    return Shape(
        len(topology.online),
        # A machine that does not name its sockets has one.
        max(1, len(topology.sockets)),
        len(topology.numa_nodes),
        len(topology.caches),
        len(topology.cores),
        topology.threads_per_core,
        tuple(sorted(parts)),
    )


def short_hash(value: object) -> str:
    """Eight hexadecimal digits that stand for plain data."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def _within(groups: tuple[Group, ...], node: Group) -> list[Group]:
    """The cores or caches that a NUMA node has a part of."""
    return [group for group in groups if group.cpus & node.cpus]
