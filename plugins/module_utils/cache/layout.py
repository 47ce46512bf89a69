# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which ways of one cache each group gets. Pure.

The ways come from those of the root group: what others have to themselves is no part of them. The exclusive group gets
one end of them, that which devices fill least; the shared group what is beside; the root keeps the other end.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple

from ..cpuset import count_bits, lowest_bits
from ..errors import RefusedError
from ..quantity import counted
from .resctrl import Cache, is_one_run, runs


class Ways(NamedTuple):
    """The masks of one cache. shared: that of the root where there is no shared group with ways of its own.

    io: those of the exclusive ones that devices may fill, too.
    """

    exclusive: int
    shared: int
    root: int
    io: int


def base_of(cache: Cache, mask: int, taken: int) -> int:
    """The ways of the root that can be divided: without those that are taken, and in one run where the kernel needs it.

    mask: of the root before anything was divided.
    """
    left = mask & cache.ways & ~taken
    if cache.sparse or is_one_run(left):
        return left
    return max(runs(left), key=count_bits)


def divide(cache: Cache, base: int, exclusive: int, shared: int) -> Ways:
    """Divide the ways `base` of a cache; exclusive, shared: how many each group is to have, shared 0 for none.

    Raises RefusedError where the kernel takes no masks of these sizes.
    """
    counts = (exclusive, shared) if shared else (exclusive,)
    candidates = list(_candidates(cache, base, counts))
    if not candidates:
        raise RefusedError(
            "%s (%x) cannot be divided into %s and a rest of at least %d"
            % (counted(count_bits(base), "way"), base, " and ".join(map(str, counts)), cache.least)
        )
    # Of several equals, the first.
    return min(candidates, key=lambda ways: count_bits(ways.io))


def _candidates(cache: Cache, base: int, counts: tuple[int, ...]) -> Iterator[Ways]:
    """From the low end, and from the high end; where a mask may have gaps, first without those of devices."""
    if cache.sparse:
        yield from _masks(cache, base, counts, [base & ~cache.io_ways, base & cache.io_ways], is_low=True)
    yield from _masks(cache, base, counts, [base], is_low=True)
    yield from _masks(cache, base, counts, [base], is_low=False)


def _masks(cache: Cache, base: int, counts: tuple[int, ...], order: list[int], is_low: bool) -> Iterator[Ways]:
    """The masks when ways are taken from these parts of the base, one after the other; none that the kernel refuses."""
    left, masks = base, []
    for count in counts:
        mask = 0
        for part in order:
            mask |= _end_of(part & left, count - count_bits(mask), is_low)
        left &= ~mask
        masks.append(mask)
    if left and all(count_bits(mask) == count for mask, count in zip(masks, counts)):
        shared = masks[1] if len(masks) > 1 else left
        if all(cache.takes(mask) for mask in (*masks, left)):
            yield Ways(masks[0], shared, left, masks[0] & cache.io_ways)


def _end_of(mask: int, count: int, is_low: bool) -> int:
    """The lowest or the highest `count` bits."""
    if is_low:
        return lowest_bits(mask, max(count, 0))
    return mask & ~lowest_bits(mask, max(count_bits(mask) - count, 0))
