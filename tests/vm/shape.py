# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shapes of machines, read from shapes.yml and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator, NamedTuple

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

SHAPES = Path(__file__).resolve().parent / "shapes.yml"

THREADS_LAST, INTERLEAVED, ADJACENT = NUMBERINGS = ("threads-last", "interleaved", "adjacent")

# QEMU's q35 takes as many without further devices.
MOST_CPUS = 255


class NumaNode(NamedTuple):
    """A NUMA node: cores, counted over the whole machine, and memory in MiB. One of them may be nothing."""

    cores: CPUSet
    memory: int


class Place(NamedTuple):
    """Where a thread is; each number counts from 0 in what is around it."""

    socket: int
    die: int
    core: int
    thread: int


class Shape(NamedTuple):
    """A machine; shapes.yml says what each field means."""

    name: str
    cores: int
    numa_nodes: tuple[NumaNode, ...]
    sockets: int = 1
    dies: int = 1
    threads: int = 1
    numbering: str = THREADS_LAST
    l3_cache: bool = True
    plugged_later: int = 0
    distances: tuple[tuple[int, ...], ...] = ()
    kernel: tuple[str, ...] = ()
    cgroup: int = 2
    model: str = ""

    @property
    def all_cores(self) -> int:
        return self.sockets * self.dies * self.cores

    @property
    def cpus(self) -> int:
        """With those that are plugged later."""
        return self.all_cores * self.threads

    @property
    def memory(self) -> int:
        """In MiB."""
        return sum(node.memory for node in self.numa_nodes)

    def places(self) -> Iterator[Place]:
        """Yield every thread, from the outside in."""
        for socket in range(self.sockets):
            for die in range(self.dies):
                for core in range(self.cores):
                    for thread in range(self.threads):
                        yield Place(socket, die, core, thread)

    def numbered_places(self) -> list[Place]:
        """Return the place of CPU 0, 1, ..."""
        orders = {
            THREADS_LAST: lambda at: (at.thread, at.socket, at.die, at.core),
            INTERLEAVED: lambda at: (at.thread, at.die, at.core, at.socket),
            ADJACENT: lambda at: at,
        }
        return sorted(self.places(), key=orders[self.numbering])


def read_shapes(path: Path = SHAPES) -> dict[str, Shape]:
    """Return {name: shape}. Raises InputError for a shape that cannot be."""
    texts = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {name: _shape(name, text) for name, text in texts.items()}


def find_shape(name: str) -> Shape:
    """Return the shape of this name. Raises InputError if there is none."""
    shapes = read_shapes()
    if name not in shapes:
        raise InputError("there is no shape %s; shapes.yml has %s" % (name, ", ".join(shapes)))
    return shapes[name]


def _shape(name: str, text: dict[str, Any]) -> Shape:
    unknown = set(text) - set(Shape._fields)
    missing = {"cores", "numa_nodes"} - set(text)
    if unknown or missing:
        what = "knows no %s" % ", ".join(sorted(unknown)) if unknown else "needs %s" % ", ".join(sorted(missing))
        raise InputError("%s: a shape %s" % (name, what))
    fields = {**text, "numa_nodes": tuple(_numa_node(name, node) for node in text["numa_nodes"])}
    fields["distances"] = tuple(tuple(row) for row in text.get("distances", ()))
    arguments = text.get("kernel", [])
    # A text would be taken for its characters, and the machine would never answer.
    if not isinstance(arguments, list) or not all(isinstance(argument, str) for argument in arguments):
        raise InputError("%s: kernel is a list of arguments, each a text" % name)
    fields["kernel"] = tuple(arguments)
    shape = Shape(name=name, **fields)
    for wrong, reason in _faults(shape):
        if wrong:
            raise InputError("%s: %s" % (name, reason))
    return shape


def _numa_node(name: str, text: dict[str, Any]) -> NumaNode:
    if not text or set(text) - set(NumaNode._fields):
        raise InputError("%s: a NUMA node has cores and memory, or one of them" % name)
    return NumaNode(CPUSet.parse(str(text.get("cores", ""))), text.get("memory", 0))


def _faults(shape: Shape) -> Iterator[tuple[bool, str]]:
    counts = (shape.sockets, shape.dies, shape.cores, shape.threads)
    yield min(counts) < 1, "sockets, dies, cores and threads are 1 at least"
    yield shape.cpus > MOST_CPUS, "has %d CPUs, and QEMU takes %d" % (shape.cpus, MOST_CPUS)
    yield shape.numbering not in NUMBERINGS, "numbering is one of %s" % ", ".join(NUMBERINGS)
    yield shape.cgroup not in (1, 2), "cgroup is 1 or 2"
    homes = sorted(core for node in shape.numa_nodes for core in node.cores)
    yield homes != list(range(shape.all_cores)), "each of its %d cores is in one NUMA node" % shape.all_cores
    yield not shape.numa_nodes[0].memory, "the first NUMA node has memory: the kernel starts there"
    nodes = len(shape.numa_nodes)
    square = len(shape.distances) == nodes and all(len(row) == nodes for row in shape.distances)
    yield bool(shape.distances) and not square, "distances are %d rows of %d" % (nodes, nodes)
    yield not 0 <= shape.plugged_later < shape.cpus, "plugged_later is less than its %d CPUs" % shape.cpus
    yield (
        bool(shape.plugged_later) and shape.numbering != ADJACENT,
        "CPUs that are plugged later get the last numbers: numbering must be adjacent",
    )
