# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether what is reserved is what the host uses: counters of several reports of a node, and what they can say. Pure.

Between two reports only the mean is known. So it is certain that a reservation is too small, and not that it is enough.
"""

from __future__ import annotations

from math import ceil
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError
from ...module_utils._base.quantity import counted
from ...module_utils.cpuset import CPUSet
from .answers import line
from .shapes import HostUse

# Of a mean: which part of the time something waited for a CPU, and which part of what is reserved is little.
_SQUEEZED, _LITTLE = 0.1, 0.25
# So many means, over so many days, before it is said that little is used.
_ENOUGH_MEANS, _ENOUGH_DAYS = 7, 7.0
_DAY, _MICRO = 86400.0, 1e6
_MOST = 1 << 62


class HostMean(NamedTuple):
    """What was used between two reports: seconds, CPUs, and the part of the time that something waited."""

    seconds: float
    cpus: float
    waited: float | None


def host_use_of(given: Mapping[str, Any], cpus: int, reserved: int) -> HostUse | None:
    """The counters of a look at a node; None where they cannot be. cpus, reserved: how many CPUs it has."""
    boot, uptime = line(given.get("boot") or ""), _number(given.get("uptime"))
    total, pods = _number(given.get("total_us")), _number(given.get("pods_us"))
    pressure, memory = _number(given.get("pressure_us")), _number(given.get("memory_bytes"))
    if not boot or uptime is None or total is None or pods is None or cpus < 1:
        return None
    return {
        "boot": boot,
        "uptime": float(uptime),
        "total_us": int(total),
        "pods_us": int(pods),
        "pressure_us": None if pressure is None else int(pressure),
        "memory_bytes": None if memory is None else int(memory),
        "cpus": cpus,
        "reserved": reserved,
    }


def cpu_count(text: object) -> int:
    """How many CPUs are in a list; none where it is no list."""
    try:
        return len(CPUSet.parse(line(text or "")))
    except InputError:
        return 0


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= _MOST else None


def means_of(readings: Sequence[HostUse]) -> Iterator[HostMean]:
    """What was used between each two readings, in their order, of one boot, and of which no counter went backwards."""
    for before, after in zip(readings, readings[1:]):
        seconds = after["uptime"] - before["uptime"]
        total, pods = after["total_us"] - before["total_us"], after["pods_us"] - before["pods_us"]
        if before["boot"] != after["boot"] or seconds < 1 or not 0 <= pods <= total:
            continue
        used = (total - pods) / seconds / _MICRO
        waits = before["pressure_us"], after["pressure_us"]
        waited = None if waits[0] is None or waits[1] is None else (waits[1] - waits[0]) / seconds / _MICRO
        # No node uses more than it has.
        if used <= after["cpus"]:
            yield HostMean(seconds, used, waited if waited is not None and 0 <= waited <= 1 else None)


def verdict_of(readings: Sequence[HostUse]) -> str:
    """`reserves 4 CPUs, the host used 2.6 ...; enough` of a node; the readings are in order."""
    means = list(means_of(readings))
    reserved = readings[-1]["reserved"]
    head = "reserves %s" % counted(reserved, "CPU")
    if not means:
        return head + "; what the host uses takes two reports of one boot with the look throttling: not known"
    days, longest = sum(mean.seconds for mean in means) / _DAY, max(mean.seconds for mean in means)
    # The nearest rank: of fewer than 100 it is the largest.
    used = sorted(mean.cpus for mean in means)[ceil(0.99 * len(means)) - 1]
    waited = max((mean.waited for mean in means if mean.waited is not None), default=None)
    of = "at the 99th per cent" if len(means) >= 100 else "in the busiest"
    text = "%s, the host used %.1f %s of %s over %.1f days" % (head, used, of, counted(len(means), "interval"), days)
    if used > reserved:
        text += "; too small"
    elif waited is not None and waited > _SQUEEZED:
        text += "; too small: something waited for a CPU in %.0f %% of the time" % (100 * waited)
    elif len(means) >= _ENOUGH_MEANS and days >= _ENOUGH_DAYS and used < _LITTLE * reserved:
        text += "; more than enough"
    else:
        text += "; enough"
    return "%s (means of up to %.1f hours: shorter peaks are not seen)" % (text, longest / 3600)
