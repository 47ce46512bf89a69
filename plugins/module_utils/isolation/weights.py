# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The weights of cgroup v2 that shares of v1 become, by the old formula and by the new one. Pure.

Kubernetes counts a request in shares (1024 a CPU, 2 to 262144), and cgroup v2 has weights (1 to 10000). Who writes a
cgroup converts: the kubelet those of pods, the container runtime those of containers.

    old    1 + (shares - 2) * 9999 / 262142, cut off
    new    10 ^ ((log2(shares)^2 + 125 log2(shares)) / 612 - 7/34), rounded up; 1024 shares are a weight of 100

Source: the old one is in KEP-2254 (cgroup v2); the new one came with runc 1.3.2 and crun in 2025.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Iterable, Sequence

OLD, NEW, BOTH, NEITHER = "old", "new", "both", "neither"

MIN_SHARES, MAX_SHARES = 2, 262144
MIN_WEIGHT, MAX_WEIGHT = 1, 10000
SHARES_PER_CPU = 1024

# Where the new formula gives nearly a whole number, the rounding differs from machine to machine.
_TOLERANCE = 1


def old_weight(shares: int) -> int:
    """What the old formula makes of shares."""
    return MIN_WEIGHT + (_valid(shares) - MIN_SHARES) * (MAX_WEIGHT - MIN_WEIGHT) // (MAX_SHARES - MIN_SHARES)


def new_weight(shares: int) -> int:
    """What the new formula makes of shares."""
    if shares <= MIN_SHARES:
        return MIN_WEIGHT
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    power = math.log2(shares)
    return math.ceil(10 ** ((power * power + 125 * power) / 612 - 7 / 34))


_FORMULAS = {OLD: old_weight, NEW: new_weight}


def classify(weight: int, shares: int) -> str:
    """By which formula the weight was made of these shares: OLD, NEW, BOTH or NEITHER; one more or less is the same."""
    found = [name for name, formula in _FORMULAS.items() if abs(formula(shares) - weight) <= _TOLERANCE]
    return BOTH if len(found) > 1 else found[0] if found else NEITHER


@lru_cache(maxsize=None)
def shares_of(weight: int, formula: str) -> tuple[int, int]:
    """The least and the most shares of which OLD or NEW makes this weight, or one more or less.

    Raises ValueError for a number that is no weight.
    """
    if not MIN_WEIGHT <= weight <= MAX_WEIGHT:
        raise ValueError("%d is no weight" % weight)
    return _first(weight - _TOLERANCE, formula), _first(weight + _TOLERANCE + 1, formula) - 1


def formulas_of(pod: int, containers: Sequence[tuple[int, int | None]]) -> set[tuple[str, str]]:
    """By which formulas the weights of a pod and of all its containers can be: {(the pod's, the containers')}.

    containers: (weight, shares where they are known). The pod's shares are the sum of its containers', as far as the
    pod has no overhead and no init container that requests more; a pod of which that does not hold fits nothing, or
    seldom something wrong. Two formulas are certain only where none of the pairs has the same one twice.
    """
    if not containers or not _are_weights([pod, *(weight for weight, _shares in containers)]):
        return set()
    found = set()
    for inner in _FORMULAS:
        if not all(shares is None or classify(weight, shares) in (inner, BOTH) for weight, shares in containers):
            continue
        low, high = 0, 0
        for weight, shares in containers:
            least, most = shares_of(weight, inner) if shares is None else (shares, shares)
            # Also without a request a container has the least shares; a pod counts nothing for it.
            low += 0 if least <= MIN_SHARES else least
            # Each is cut off to whole shares, and the pod's sum only once.
            high += most + 1
        for outer in _FORMULAS:
            least, most = shares_of(pod, outer)
            if max(low, MIN_SHARES) <= most and least <= high:
                found.add((outer, inner))
    return found


def _are_weights(weights: Iterable[int]) -> bool:
    # The largest weight says only that there are many shares.
    return all(MIN_WEIGHT <= weight < MAX_WEIGHT - _TOLERANCE for weight in weights)


def _first(weight: int, formula: str) -> int:
    """The least shares with at least this weight; one more than all shares where there are none."""
    low, high = MIN_SHARES, MAX_SHARES + 1
    while low < high:
        middle = (low + high) // 2
        if _FORMULAS[formula](middle) >= weight:
            high = middle
        else:
            low = middle + 1
    return low


def _valid(shares: int) -> int:
    return min(max(shares, MIN_SHARES), MAX_SHARES)
