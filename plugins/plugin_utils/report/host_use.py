# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether what is reserved is what the host uses: counters of several reports of a node, and what they can say. Pure.

Between two reports only the mean of CPUs is known, and memory only at each of them. So it is certain that a reservation
is too small, and not that it is enough.
"""

from __future__ import annotations

from itertools import takewhile
from math import ceil
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import InputError
from ...module_utils._base.quantity import counted, millis
from ...module_utils.cpuset import CPUSet
from .answers import line, mapping
from .shapes import HostUse

# Of a mean: which part of the time something waited for a CPU, and which part of what is reserved is little.
_SQUEEZED, _LITTLE = 0.1, 0.25
# So many figures, over so many days, before it is said that little is used.
_ENOUGH_FIGURES, _ENOUGH_DAYS = 7, 7.0
_MEMORY_SETTINGS = ("kube_reserved_memory", "system_reserved_memory")
_DAY, _MICRO = 86400.0, 1e6
_MOST = 1 << 62


class ReservedAmounts(NamedTuple):
    """What is kept for the host: how many CPUs, and bytes of memory, None where that is not known."""

    cpus: int
    memory: int | None


class Reading(NamedTuple):
    """The counters of one report, and when that was made."""

    made: str
    use: HostUse


class HostMean(NamedTuple):
    """What was used between two reports: since when, seconds, CPUs, and the part of the time that something waited."""

    began: str
    seconds: float
    cpus: float
    waited: float | None


class Figure(NamedTuple):
    """So much was used, of CPUs or bytes; seconds: since the figure before it, if they are of one boot."""

    began: str
    seconds: float
    used: float


class _Words(NamedTuple):
    """What a verdict calls the largest figure, each one, and what is reserved."""

    largest: str
    figure: str
    reserved: str


_OF_CPUS, _OF_MEMORY = _Words("busiest", "interval", "them"), _Words("fullest", "look", "it")


def host_use_of(given: Mapping[str, Any], cpus: int, reserved: ReservedAmounts) -> HostUse | None:
    """Return the counters of a look at a node; None where they cannot be. cpus: how many it has."""
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
        "reserved": reserved.cpus,
        "reserved_memory_bytes": reserved.memory,
    }


def cpu_count(text: object) -> int:
    """Return how many CPUs are in a list; none where it is not a list."""
    try:
        return len(CPUSet.parse(line(text or "")))
    except InputError:
        return 0


def reserved_memory(*settings: object) -> int | None:
    """Return the bytes that kubeReserved and systemReserved keep from pods; None where it is not known.

    settings: as a node found them, or as they are wanted of it, of which the later ones count.
    """
    found: dict[str, object] = {}
    for given in map(mapping, settings):
        found.update((name, given[name]) for name in _MEMORY_SETTINGS if given.get(name) is not None)
    try:
        return amount(sum(millis(value) // 1000 for value in found.values())) if found else None
    except InputError:
        return None


def amount(value: object) -> int | None:
    """Return a number of a report; None where it cannot be one."""
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= _MOST else None


def means_of(readings: Sequence[Reading]) -> Iterator[HostMean]:
    """Yield what was used between each two readings, in their order, of one boot, and of which no counter went
    backwards."""
    for (made, before), (_made, after) in zip(readings, readings[1:]):
        seconds = _seconds(before, after)
        total, pods = after["total_us"] - before["total_us"], after["pods_us"] - before["pods_us"]
        if seconds < 1 or not 0 <= pods <= total:
            continue
        used = (total - pods) / seconds / _MICRO
        waits = before["pressure_us"], after["pressure_us"]
        waited = None if waits[0] is None or waits[1] is None else (waits[1] - waits[0]) / seconds / _MICRO
        # No node uses more than it has.
        if used <= after["cpus"]:
            yield HostMean(made, seconds, used, waited if waited is not None and 0 <= waited <= 1 else None)


def memory_of(readings: Sequence[Reading]) -> Iterator[Figure]:
    """Yield the memory that was used at each reading; a node's counters that two reports have are one reading."""
    before: HostUse | None = None
    for made, use in readings:
        seconds = 0.0 if before is None else _seconds(before, use)
        is_same = before is not None and before["boot"] == use["boot"] and before["uptime"] == use["uptime"]
        if use["memory_bytes"] is not None and not is_same:
            yield Figure(made, max(seconds, 0.0), use["memory_bytes"])
        before = use


def _seconds(before: HostUse, after: HostUse) -> float:
    """Return the time from one reading to the next, by the clock that nobody sets; 0 after a boot."""
    return after["uptime"] - before["uptime"] if before["boot"] == after["boot"] else 0.0


def verdicts_of(readings: Sequence[Reading], reserved: ReservedAmounts) -> list[str]:
    """Return `reserves 4 CPUs, the host used 2.6 ...; enough` of a node, and the same of its memory where that is
    known.

    The readings are in order.
    """
    return [_cpu_verdict(readings, reserved.cpus), *_memory_verdict(readings, reserved.memory)]


def _cpu_verdict(readings: Sequence[Reading], reserved: int) -> str:
    means = list(means_of(readings))
    head = "reserves %s" % counted(reserved, "CPU")
    if not means:
        return head + "; what the host uses takes two reports of one boot with the look throttling: not known"
    waited = max((mean.waited for mean in means if mean.waited is not None), default=0.0)
    squeezed = ""
    if waited > _SQUEEZED:
        squeezed = "something waited for a CPU in %.0f %% of the time" % (100 * waited)
    figures = [Figure(mean.began, mean.seconds, mean.cpus) for mean in means]
    said = _judged(head, figures, reserved, _OF_CPUS, "{:.1f}".format, squeezed)
    longest = max(mean.seconds for mean in means)
    return "%s (means of up to %s: shorter peaks are not seen)" % (said, _span(longest))


def _memory_verdict(readings: Sequence[Reading], reserved: int | None) -> Iterator[str]:
    figures = list(memory_of(readings))
    if figures and reserved is not None:
        head = "reserves %s of memory" % _gibibytes(reserved)
        said = _judged(head, figures, reserved, _OF_MEMORY, _gibibytes)
        yield "%s (between two looks nothing is seen)" % said


def _judged(
    head: str,
    figures: Sequence[Figure],
    reserved: float,
    words: _Words,
    shown: Callable[[float], str],
    squeezed: str = "",
) -> str:
    """Return what these figures say of what is reserved."""
    span = _span(sum(figure.seconds for figure in figures))
    # The nearest rank: of fewer than 100 it is the largest.
    used = sorted(figure.used for figure in figures)[ceil(0.99 * len(figures)) - 1]
    of = "at the 99th per cent" if len(figures) >= 100 else "in the %s" % words.largest
    text = "%s, the host used %s %s of %s over %s" % (
        head,
        shown(used),
        of,
        counted(len(figures), words.figure),
        span,
    )
    if used > reserved:
        return text + "; too small"
    if squeezed:
        return "%s; too small: %s" % (text, squeezed)
    idle = list(takewhile(lambda figure: figure.used < _LITTLE * reserved, reversed(figures)))
    if len(idle) < _ENOUGH_FIGURES or sum(figure.seconds for figure in idle) < _ENOUGH_DAYS * _DAY:
        return text + "; enough"
    rest = shown(reserved - max(figure.used for figure in idle))
    since = idle[-1].began[:10] + (", the first report" if len(idle) == len(figures) else "")
    return "%s; more than enough: %s of %s idle since %s" % (text, rest, words.reserved, since)


def _span(seconds: float) -> str:
    """Return `5 minutes`, `24.0 hours`, `14.0 days`."""
    if seconds < 3600:
        return counted("%.0f" % (seconds / 60), "minute")
    return "%.1f hours" % (seconds / 3600) if seconds <= _DAY else "%.1f days" % (seconds / _DAY)


def _gibibytes(size: float) -> str:
    return "%.2f GiB" % (size / (1 << 30))
