# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random platforms with resctrl, what others have done there, who has exclusive CPUs, and what is wished."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from .kernel import Kernel
from .shapes import BandwidthShape, CacheShape, Shape, listed
from .shown import EXCLUSIVE, RefusedError


class Case(NamedTuple):
    """others: (path, text) of what somebody else does before, "mkdir" for the text. exclusive, shared: CPUs of pods.

    wishes: options of cache_partition, one after the other; the CPUs change with each.
    """

    shape: Shape
    others: list[tuple[str, str]]
    pools: list[tuple[set[int], set[int]]]
    wishes: list[dict[str, Any]]


def case(seed: int) -> Case:
    """Return the case of this number."""
    chance = random.Random(seed)
    shape = _shape(chance)
    wishes = [_wish(chance, shape) for _number in range(chance.randint(1, 3))]
    return Case(shape, _others(chance, shape), [_pool(chance, shape) for _wish in wishes], wishes)


def _shape(chance: random.Random) -> Shape:
    count, cores = chance.choice((1, 1, 2, 2, 3, 4, 8)), chance.randint(1, 6)
    ids = sorted(chance.sample(range(2 * count), count))
    total = count * cores
    places = {number: [place * cores + core for core in range(cores)] for place, number in enumerate(ids)}
    threads = chance.choice((1, 2, 2))
    places = {
        number: sorted(cpu + total * t for cpu in cpus for t in range(threads)) for number, cpus in places.items()
    }
    bits = chance.randint(4, 20)
    io_ways = chance.choice((0, 0, 1, 2))
    io = ((1 << io_ways) - 1) << chance.choice((0, bits - io_ways, (bits - io_ways) // 2))
    least = chance.choice((1, 1, 2))
    sparse = chance.random() < 0.3
    name = chance.choice(("L3", "L3", "L3", "L2"))
    caches = [CacheShape(name, places, bits, chance.choice((3, 4, 8, 16)), least, io, sparse, chance.random() < 0.7)]
    if name == "L3" and chance.random() < 0.2:
        cpus = sorted(cpu for found in places.values() for cpu in found)
        caches.append(CacheShape("L2", {n: [cpu] for n, cpu in enumerate(cpus)}, 8, 8, 1, size=1 << 20))
    limits = []
    kind = chance.choice(("none", "percent", "percent", "rate", "eighths"))
    if kind == "eighths":
        limits.append(BandwidthShape("MB", ids, 16, 1, 1, 2048, 0, None))
    elif kind != "none":
        limits.append(BandwidthShape("MB", ids, chance.choice((4, 8)), throttle=None, is_rate=kind == "rate"))
    options = "rw,relatime" + (",mba_MBps" if kind == "rate" else "")
    online = sorted(cpu for found in places.values() for cpu in found)
    return Shape(
        online, caches, limits, chance.choice((None, 16, 64)), options=options, pads_values=chance.random() < 0.4
    )


def _others(chance: random.Random, shape: Shape) -> list[tuple[str, str]]:
    """Return what somebody else does, as far as the kernel takes it."""
    kernel, done = Kernel(shape), []
    tries: list[tuple[str, str]] = []
    cache = shape.caches[0]
    if chance.random() < 0.4:
        mask = cache.full >> chance.randint(0, cache.bits // 3)
        tries.append(("/schemata", "%s:%d=%x\n" % (cache.name, chance.choice(list(cache.ids)), mask)))
    for name in chance.sample(["db", "goresctrl-like", "0a1b"], chance.choice((0, 0, 1, 2))):
        tries.append(("/" + name, "mkdir"))
        masks = ";".join("%d=%x" % (number, _run(chance, cache)) for number in cache.ids)
        tries.append(("/%s/schemata" % name, "%s:%s\n" % (cache.name, masks)))
        if chance.random() < 0.5:
            tries.append(("/%s/cpus_list" % name, listed(set(chance.sample(shape.online, 1))) + "\n"))
        if chance.random() < 0.3:
            tries.append(
                ("/schemata", "%s:%s\n" % (cache.name, ";".join("%d=%x" % (n, cache.full >> 1) for n in cache.ids)))
            )
            top = ";".join("%d=%x" % (n, 1 << (cache.bits - 1)) for n in cache.ids)
            tries.append(("/%s/schemata" % name, "%s:%s\n" % (cache.name, top)))
            tries.append(("/%s/mode" % name, EXCLUSIVE + "\n"))
    for path, text in tries:
        try:
            kernel.mkdir(path) if text == "mkdir" else kernel.write(path, text.encode())
        except RefusedError:
            continue
        done.append((path, text))
    return done


def _run(chance: random.Random, cache: CacheShape) -> int:
    length = chance.randint(cache.least, cache.bits)
    return ((1 << length) - 1) << chance.randint(0, cache.bits - length)


def _pool(chance: random.Random, shape: Shape) -> tuple[set[int], set[int]]:
    exclusive = set(chance.sample(shape.online, chance.randint(0, len(shape.online) - 1)))
    return exclusive, set(shape.online) - exclusive


def _share(chance: random.Random, shape: Shape, most: int) -> Any:
    cache = shape.caches[0]
    kind = chance.random()
    if kind < 0.5:
        return "%d%%" % chance.randint(1, most)
    if kind < 0.7:
        return chance.randint(1, cache.bits)
    if kind < 0.85:
        return "proportional"
    named = {str(number): "%d%%" % chance.randint(1, most) for number in chance.sample(list(cache.ids), 1)}
    return {**named, "all": chance.randint(1, 3)}


def _wish(chance: random.Random, shape: Shape) -> dict[str, Any]:
    wish: dict[str, Any] = {"exclusive_share": _share(chance, shape, 70)}
    if chance.random() < 0.4:
        wish["shared_share"] = _share(chance, shape, 29)
    if shape.bandwidths and chance.random() < 0.4:
        wish["shared_bandwidth"] = chance.choice((10, 35, 50, 100, 1000))
    wish["mode"] = EXCLUSIVE if chance.random() < 0.3 else "shareable"
    return wish
