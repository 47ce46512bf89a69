# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work that is measured: small units of it, one after the other."""

from __future__ import annotations

import gc
import time
from typing import Any, Callable

COMPUTE, MEMORY = "compute", "memory"
KINDS = (COMPUTE, MEMORY)

# One byte of every cache line, and never two of one page after the other: what a prefetcher does not see coming.
_STRIDE = 4096 + 64
# So many bytes are walked over at once, and then those that follow them.
_SPAN = 1 << 22
_LEAST_SECONDS = 1e-4

Unit = Callable[[int], None]


def unit_of(kind: str, memory: int) -> Unit:
    """Return a function that does a unit of work of a size. memory: the bytes that the kind "memory" walks over."""
    return _compute if kind == COMPUTE else _walker(memory)


def _compute(size: int) -> None:
    number = 1
    for _step in range(size):
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF


def _walker(memory: int) -> Unit:
    # Not zeros: all pages of such a one are one page until they are written to.
    data = bytearray(b"\1") * max(memory, _SPAN)
    place, turn = 0, 0

    def walk(size: int) -> None:
        nonlocal place, turn
        for _step in range(size):
            if place + _SPAN > len(data):
                place, turn = 0, (turn + 64) % _STRIDE
            # Python copies these bytes one by one in C, so that it is the memory that takes the time.
            data[place + turn : place + _SPAN : _STRIDE]  # pylint: disable=expression-not-assigned
            place += _SPAN

    return walk


def calibrated(unit: Unit, seconds: float) -> int:
    """Return the size of a unit that takes so long here, where nothing disturbs it."""
    size, taken = 1, 0.0
    while taken < max(seconds, _LEAST_SECONDS):
        size *= 2
        taken = min(_taken(unit, size) for _trial in range(3))
    return max(1, round(size * seconds / taken))


def _taken(unit: Unit, size: int) -> float:
    begun = time.perf_counter()
    unit(size)
    return time.perf_counter() - begun


def measured(unit: Unit, size: int, units: int) -> dict[str, Any]:
    """Return {seconds: of all units together, latencies: of each, in seconds}."""
    clock = time.perf_counter
    # Python's own pauses are no disturbance.
    gc.disable()
    ends = [clock()]
    for _number in range(units):
        unit(size)
        ends.append(clock())
    gc.enable()
    return {
        "seconds": ends[-1] - ends[0],
        "latencies": [round(end - begun, 7) for begun, end in zip(ends, ends[1:])],
    }
