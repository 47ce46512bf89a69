# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Platforms as real machines have them, made anew from public facts: kernel documentation and data sheets.

The numbers are those of a kind of machine: how many ways and classes, which of them devices fill, the units of
bandwidth, and the ids of the caches, which may have gaps.
"""

from __future__ import annotations

from pathlib import Path

from .kernel import Kernel
from .shapes import BandwidthShape, CacheShape, Shape


def domains(ids: list[int], cores: int, threads: int = 2) -> dict[int, list[int]]:
    """Return {id: CPUs}: the threads of a core are half of all CPUs apart, as Linux numbers them."""
    total = len(ids) * cores
    return {
        number: [place * cores + core + thread * total for thread in range(threads) for core in range(cores)]
        for place, number in enumerate(ids)
    }


def _cpus(ids: dict[int, list[int]]) -> list[int]:
    return sorted(cpu for cpus in ids.values() for cpu in cpus)


_XEON = domains([0, 1], 4)
_XEON_CLOSE = domains([0, 1], 6)
_GAPS = domains([0, 2, 5, 7], 2)
_EPYC = domains(list(range(16)), 2)
_ATOM = domains([0, 1], 4, threads=1)

PLATFORMS: dict[str, Shape] = {
    # Skylake server: 11 ways of L3, the two highest also for devices; MBA in steps of 10 %.
    "xeon-l3-mba-mbm": Shape(
        _cpus(_XEON),
        [CacheShape("L3", _XEON, bits=11, closids=16, least=1, shareable=0x600, says_sparse=False)],
        [BandwidthShape("MB", [0, 1], closids=8, throttle=None)],
        rmids=192,
        pads_values=True,
    ),
    # Broadwell server: 20 ways, no MBA.
    "xeon-l3-only": Shape(
        _cpus(_XEON),
        [CacheShape("L3", _XEON, bits=20, closids=16, least=1, shareable=0xC0000, says_sparse=False)],
        rmids=128,
    ),
    # Haswell server with its four classes, which needs two ways in each mask.
    "xeon-haswell": Shape(
        _cpus(_XEON),
        [CacheShape("L3", _XEON, bits=20, closids=4, least=2, says_sparse=False)],
        rmids=64,
        features=["llc_occupancy"],
    ),
    "xeon-l3-cdp": Shape(
        _cpus(_XEON),
        [CacheShape("L3", _XEON, bits=20, closids=16, shareable=0xC0000, cdp=True)],
        rmids=128,
        options="rw,relatime,cdp",
    ),
    # Two NUMA nodes in each L3 cache, 15 ways, masks with gaps.
    "xeon-snc2-sparse": Shape(
        _cpus(_XEON_CLOSE),
        [CacheShape("L3", _XEON_CLOSE, bits=15, closids=15, shareable=0x6000, sparse=True)],
        [BandwidthShape("MB", [0, 1], closids=15)],
        rmids=320,
        sub_numa={0: [0, 1], 1: [2, 3]},
    ),
    "xeon-mbps": Shape(
        _cpus(_XEON),
        [CacheShape("L3", _XEON, bits=12, closids=16, shareable=0xC00)],
        [BandwidthShape("MB", [0, 1], closids=8, is_rate=True)],
        rmids=192,
        options="rw,relatime,mba_MBps",
    ),
    # Denverton and Tremont: L2 caches of some cores each, no L3 and no monitoring.
    "atom-l2": Shape(
        _cpus(_ATOM), [CacheShape("L2", _ATOM, bits=16, closids=16, least=1, says_sparse=False, size=2 << 20)]
    ),
    # L3 and L2 together.
    "xeon-l3-l2": Shape(
        _cpus(_XEON),
        [
            CacheShape("L3", _XEON, bits=15, closids=15),
            CacheShape("L2", {core: [core, core + 8] for core in range(8)}, bits=16, closids=8, size=2 << 20),
        ],
        [BandwidthShape("MB", [0, 1], closids=15)],
        rmids=320,
    ),
    # EPYC: 16 L3 caches, bandwidth in eighths of GB/s with 2048 for no limit, also that of CXL.
    "epyc-16-l3-smba": Shape(
        _cpus(_EPYC),
        [CacheShape("L3", _EPYC, bits=16, closids=16, sparse=True, size=32 << 20)],
        [
            BandwidthShape("MB", list(range(16)), closids=16, least=1, step=1, largest=2048, linear=0, throttle=None),
            BandwidthShape("SMBA", list(range(16)), closids=16, least=1, step=1, largest=2048, linear=0, throttle=None),
        ],
        rmids=256,
    ),
    "ids-with-gaps": Shape(
        _cpus(_GAPS),
        [CacheShape("L3", _GAPS, bits=12, closids=16, least=1, sparse=True, says_sparse=False)],
        rmids=256,
    ),
}


def write_machine(root: Path, shape: Shape) -> None:
    """Write the files in which Linux shows the CPUs and caches of this platform, as a saved node has them."""
    cpu_directory = root / "sys/devices/system/cpu"
    listed = _listed(shape.online)
    for name in ("online", "present", "possible"):
        _write(cpu_directory / name, listed + "\n")
    siblings = _siblings(shape)
    for cpu in shape.online:
        topology = cpu_directory / ("cpu%d/topology" % cpu)
        _write(topology / "core_cpus", _mask(siblings[cpu]) + "\n")
        _write(topology / "thread_siblings", _mask(siblings[cpu]) + "\n")
        _write(topology / "package_cpus", _mask(shape.online) + "\n")
        _write(topology / "core_id", "%d\n" % min(siblings[cpu]))
        _write(topology / "physical_package_id", "0\n")
        for cache in shape.caches:
            for number, cpus in cache.ids.items():
                if cpu in cpus:
                    index = cpu_directory / ("cpu%d/cache/index%s" % (cpu, cache.name[1]))
                    _write(index / "level", cache.name[1] + "\n")
                    _write(index / "type", "Unified\n")
                    _write(index / "id", "%d\n" % number)
                    _write(index / "shared_cpu_map", _mask(cpus) + "\n")
    _write(root / "sys/devices/system/node/node0/cpumap", _mask(shape.online) + "\n")
    _write(root / "sys/devices/system/node/online", "0\n")


def _siblings(shape: Shape) -> dict[int, list[int]]:
    """Return a core has the CPUs that are half of all apart; without an even number, one each. On Atom, one each."""
    half, rest = divmod(len(shape.online), 2)
    if rest or not shape.caches or shape.caches[0].name == "L2":
        return {cpu: [cpu] for cpu in shape.online}
    order = sorted(shape.online)
    pairs = {cpu: [cpu, order[place + half]] for place, cpu in enumerate(order[:half])}
    return {**pairs, **{pair[1]: pair for pair in pairs.values()}}


def record(root: Path, shape: Shape, kernel: Kernel | None = None, mounts: str = "") -> None:
    """Write the model's files as plain ones, as a saved node has them: a recorded tree.

    kernel: a resctrl of this shape in which something was done. mounts: what else is mounted.
    """
    _copy(kernel or Kernel(shape), root / "sys/fs/resctrl", "")
    _write(root / "proc/mounts", mounts + "resctrl /sys/fs/resctrl resctrl %s 0 0\n" % shape.options)


def _copy(kernel: Kernel, place: Path, path: str) -> None:
    for name in kernel.names(path or "/") or []:
        inner = "%s/%s" % (path, name)
        if kernel.is_file(inner):
            _write(place / name, kernel.read(inner))
        else:
            (place / name).mkdir(parents=True, exist_ok=True)
            _copy(kernel, place / name, inner)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _mask(cpus: list[int]) -> str:
    digits = "%x" % sum(1 << cpu for cpu in cpus)
    groups = []
    while digits:
        digits, group = digits[:-8], digits[-8:]
        groups.append(group)
    return ",".join(reversed(groups))


def _listed(cpus: list[int]) -> str:
    return ",".join(map(str, sorted(cpus)))
