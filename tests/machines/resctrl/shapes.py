# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a platform of the model can divide, caches and bandwidths; and lists of CPUs in the kernel's form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class CacheShape:
    """A cache that can be divided: L3 or L2. ids: {id: its CPUs}. size: of one, in bytes."""

    name: str
    ids: dict[int, list[int]]
    bits: int = 11
    closids: int = 16
    least: int = 1
    shareable: int = 0
    sparse: bool = False
    # Kernels before 6.7 have no file sparse_masks.
    says_sparse: bool = True
    cdp: bool = False
    size: int = 11 << 20

    @property
    def full(self) -> int:
        return (1 << self.bits) - 1

    @property
    def names(self) -> list[str]:
        return [self.name + end for end in (("CODE", "DATA") if self.cdp else ("",))]


@dataclass
class BandwidthShape:
    """A bandwidth that can be limited. largest: what a new group gets."""

    name: str
    ids: list[int]
    closids: int = 8
    least: int = 10
    step: int = 10
    largest: int = 100
    linear: int = 1
    throttle: str | None = "per-thread"
    # mba_MBps: any value, in MiB/s.
    is_rate: bool = False


@dataclass
class Shape:
    """A platform. online: its CPUs. options: of the mount."""

    online: list[int]
    caches: list[CacheShape] = field(default_factory=list)
    bandwidths: list[BandwidthShape] = field(default_factory=list)
    # How many can be counted at once; None for no monitoring.
    rmids: int | None = None
    features: list[str] = field(default_factory=lambda: ["llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"])
    # {id of an L3 cache: the NUMA nodes in it}, with Sub-NUMA clustering.
    sub_numa: dict[int, list[int]] = field(default_factory=dict)
    options: str = "rw,relatime"
    # Kernels before 6.0 pad values, too.
    pads_values: bool = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Shape:
        """Return what dataclasses.asdict() made of one, also after JSON."""
        caches = [
            CacheShape(**{**cache, "ids": {int(number): cpus for number, cpus in cache["ids"].items()}})
            for cache in data["caches"]
        ]
        limits = [BandwidthShape(**limit) for limit in data["bandwidths"]]
        nodes = {int(number): found for number, found in data["sub_numa"].items()}
        return cls(**{**data, "caches": caches, "bandwidths": limits, "sub_numa": nodes})


def sum_bits(masks: Any) -> int:
    """Return all bits of several masks."""
    found = 0
    for mask in masks:
        found |= mask
    return found


def bits(mask: int) -> set[int]:
    """Return the numbers of the bits."""
    return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}


def listed(cpus: set[int]) -> str:
    """Return a list of CPUs as the kernel writes it."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and parts[-1][1] == cpu - 1:
            parts[-1][1] = cpu
        else:
            parts.append([cpu, cpu])
    return ",".join("%d" % first if first == last else "%d-%d" % (first, last) for first, last in parts)


def parsed_list(text: str) -> set[int]:
    """Read a list of CPUs as the kernel does. Raises ValueError."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _sign, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise ValueError(part)
        found |= set(range(int(first), int(last or first) + 1))
    return found
