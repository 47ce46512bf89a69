# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a container with a CPU limit would be throttled on so many CPUs, and what each remedy would change. Pure.

All latencies are milliseconds, as plain data; see `throttling` in the module allocation_plan for the shape.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from ..errors import InputError, option
from ..quantity import counted, nanoseconds
from .model import Bandwidth, predict_burst, predict_steady, used_cpus

# Source: MilliCPUToQuota in pkg/kubelet/cm/helpers_linux.go.
_MINIMUM_QUOTA = 1_000
_MILLI = 1000

# The period that is proposed: short enough that a lost one is not noticed, long enough for a slice on two CPUs.
_SHORT_PERIOD = 10_000
_MOST_WORK = 3_600_000_000
_MOST_THREADS = 100_000

WHOLE_CPUS, LIMIT, BURST, PERIOD, THREADS = "whole-cpus", "limit", "burst", "period", "threads"


class Burst(NamedTuple):
    """What a container runs: how many threads, and the CPU time of one burst in microseconds; None: always busy.

    pod and container are shell patterns. threads: None for as many as there are CPUs.
    """

    pod: str = "*"
    container: str = "*"
    threads: int | None = None
    work_us: int | None = None

    def matches(self, pod: str, container: str) -> bool:
        """Whether it is about this container."""
        return fnmatchcase(pod, self.pod) and fnmatchcase(container, self.container)


class Limited(NamedTuple):
    """A container with a limit: thousandths of a CPU, the kubelet's period, and the CPUs that it may use."""

    milli: int
    period_us: int
    cpus: int
    threads: int
    work_us: int | None

    def bandwidth(self, milli: int | None = None, period_us: int | None = None, burst_us: int = 0) -> Bandwidth:
        """The limit as the kubelet writes it, or with another value."""
        period = period_us or self.period_us
        return Bandwidth(quota(milli or self.milli, period), period, burst_us)


def quota(milli: int, period_us: int) -> int:
    """cpu.cfs_quota_us of a limit in thousandths of a CPU."""
    return max(_MINIMUM_QUOTA, milli * period_us // _MILLI)


def read_bursts(rows: Iterable[Mapping[str, Any]]) -> list[Burst]:
    """What the option `bursts` says. Raises InputError."""
    bursts = []
    for number, row in enumerate(rows):
        where = "%s[%d]" % (option("bursts"), number)
        threads, work = row.get("threads"), row.get("work")
        if threads is not None and not 1 <= threads <= _MOST_THREADS:
            raise InputError("threads is %d, not 1 to %d" % (threads, _MOST_THREADS), where=where)
        work_us = None
        if work is not None:
            try:
                work_us = nanoseconds(work) // 1000
            except InputError as error:
                raise error.within(where) from error
            if not 1 <= work_us <= _MOST_WORK:
                raise InputError("work is %s, not 1us to 1h" % work, where=where)
        bursts.append(Burst(row.get("pod") or "*", row.get("container") or "*", threads, work_us))
    return bursts


def predict_container(container: Limited) -> dict[str, object]:
    """What the limit does to the container, and each remedy that makes it better."""
    effect = _effect(container, container.bandwidth(), container.threads, container.cpus)
    return {
        "quota_us": container.bandwidth().quota_us,
        "period_us": container.period_us,
        "usable_cpus": container.cpus,
        "threads": container.threads,
        "work_ms": None if container.work_us is None else _ms(container.work_us),
        **effect,
        "remedies": _remedies(container, effect) if effect["throttled_share"] else [],
    }


def _effect(container: Limited, bandwidth: Bandwidth, threads: int, cpus: int) -> dict[str, object]:
    if container.work_us is None:
        steady = predict_steady(bandwidth, threads, cpus)
        return {
            "throttled_share": steady.throttled_share,
            "lost_share": round(steady.lost_share, 3),
            "longest_wait_ms": _ms(steady.longest_wait_us),
        }
    burst = predict_burst(bandwidth, threads, cpus, container.work_us)
    return {
        "throttled_share": round(burst.throttled_share, 3),
        "lost_periods": round(burst.lost_periods, 1),
        "latency_ms": {
            "unthrottled": _ms(burst.unthrottled_us),
            "minimum": _ms(burst.minimum_us),
            "median": _ms(burst.median_us),
            "maximum": _ms(burst.maximum_us),
        },
    }


def _remedies(container: Limited, effect: Mapping[str, object]) -> list[dict[str, object]]:
    """Those that make the effect better, with their own."""
    found = []

    def add(remedy: str, change: str, bandwidth: Bandwidth, threads: int, cpus: int) -> None:
        changed = _effect(container, bandwidth, threads, cpus)
        if _is_better(changed, effect):
            found.append({"remedy": remedy, "change": change, **changed})

    threads, cpus = container.threads, container.cpus
    whole = -(-container.milli // _MILLI)
    add(
        WHOLE_CPUS,
        "%s as request and limit of a Guaranteed pod, with the static policy: exclusive CPUs need no quota"
        % counted(whole, "CPU"),
        Bandwidth(None),
        threads,
        whole,
    )
    most = used_cpus(threads, cpus) * _MILLI
    step = max(1, min(_MILLI, container.milli) // 10)
    enough = _smallest(container.milli, most, step, lambda milli: _is_free(container, container.bandwidth(milli)))
    add(LIMIT, "a limit of %dm CPU" % enough, container.bandwidth(enough), threads, cpus)
    bandwidth = container.bandwidth()
    if container.work_us is not None:
        most = bandwidth.quota_us or 0
        saved = _smallest(0, most, 1000, lambda burst: _is_free(container, container.bandwidth(burst_us=burst)))
        add(
            BURST,
            "%d in cpu.max.burst (v1: cpu.cfs_burst_us); the kubelet never sets it" % saved,
            container.bandwidth(burst_us=saved),
            threads,
            cpus,
        )
    if container.period_us > _SHORT_PERIOD:
        add(
            PERIOD,
            "cpuCFSQuotaPeriod: %dms, for all pods of the node; needs the gate CustomCPUCFSQuotaPeriod"
            % (_SHORT_PERIOD // 1000),
            container.bandwidth(period_us=_SHORT_PERIOD),
            threads,
            cpus,
        )
    fewer = max(1, container.milli // _MILLI)
    if fewer < threads:
        add(THREADS, "%d thread%s" % (fewer, "s" if fewer > 1 else ""), bandwidth, fewer, cpus)
    return found


def _is_better(changed: Mapping[str, Any], effect: Mapping[str, Any]) -> bool:
    """Whether nothing takes longer, and something less long. A shorter period makes a burst slower, as a rule."""
    keys = ("median", "maximum") if "latency_ms" in effect else ("lost_share", "longest_wait_ms")
    before, after = ([row.get("latency_ms", row)[key] for key in keys] for row in (effect, changed))
    return before != after and all(new <= old for new, old in zip(after, before))


def _is_free(container: Limited, bandwidth: Bandwidth) -> bool:
    return not _effect(container, bandwidth, container.threads, container.cpus)["throttled_share"]


def _smallest(low: int, high: int, step: int, is_enough: Callable[[int], bool]) -> int:
    """The smallest of low + i step that is enough, at most `high`, which is taken where nothing below is."""
    steps = max(0, -(-(high - low) // step))
    first, last = 0, steps
    while first < last:
        middle = (first + last) // 2
        if is_enough(min(high, low + middle * step)):
            last = middle
        else:
            first = middle + 1
    return min(high, low + last * step)


def _ms(microseconds: int) -> float:
    return round(microseconds / 1000, 1)
