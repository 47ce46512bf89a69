# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a CFS bandwidth limit does to a burst of work: its latency, how often it is throttled, and remedies. Pure.

Source: Documentation/scheduler/sched-bwc.rst and kernel/sched/fair.c of Linux 5.4 to 6.18. All times are whole
microseconds. The kernel's rules, as far as they are replayed here:

1. A timer on a fixed grid of periods adds the quota to the cgroup's pool, which holds at most quota + burst. The timer
   stops after a whole period without use, and starts again on the same grid. So a burst of work begins at any phase of
   a period, with a full pool.
2. A run queue (one per CPU) draws runtime from the pool so that it has a slice (5 ms). What it has used up is noticed
   at a tick of its CPU only (4 ms with CONFIG_HZ=250). So it runs up to a tick too long, and pays that back later.
3. A run queue that finds the pool empty is throttled until the next period. Then those that wait get, first come first
   served, as much as they have overdrawn, and run on to the next tick, where they draw again.
4. A run queue that becomes idle returns all but 1 ms. That is stranded: nobody but this run queue can use it.
5. nr_periods counts each expiry of the timer, two of them after the last use; nr_throttled those at which some run
   queue was throttled.

With one CPU, and slices and ticks that are infinitely short, this has a closed form. Let Q be the quota, P the
period and W the work, with W > Q, and f = ceil(W/Q) - 1. A burst that begins phi into a period runs until Q is used
or the period ends, then Q in each period. If phi <= P - Q, all of Q fits in, f periods are lost, and

    latency(phi) = f P + W - f Q - phi

If phi > P - Q, the first period gives r = P - phi < Q at no loss, and W - r are left for a full pool: if they are
more than f Q, the latency is r + f P + (W - r) - f Q, as for phi = 0; otherwise one period less is lost, and it is P
- Q shorter. So with phi uniform in [0, P)

    maximum = f P + W - f Q, with the probability (W - f Q) / P exactly that
    minimum = maximum - (P - Q), with the probability ((f + 1) Q - W) / P exactly that
    all between them with the same density

and latency() of phi = 0 is the upper bound. With ticks, it is that of a tick's more work, as what is noticed only after
the end of a period is paid by the next one, and of a period: the pool holds one quota, so what is not drawn before the
next refill is lost. Where a period is shorter than a tick, that happens again at each tick, and there is no such bound.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from heapq import heappop, heappush
from math import gcd
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from .._base.errors import InputError, option
from .._base.quantity import counted, nanoseconds

PERIOD = 100_000
SLICE = 5_000
TICK = 4_000
# min_cfs_rq_runtime: what an idle run queue keeps.
KEPT = 1_000

# A burst is replayed for this many pairs of a phase of the period and a phase of the tick: few where there are many
# CPUs, of which each has its own events.
_PHASES = 60
_FEWEST_PHASES = 8
_MOST_CPUS = 256

# A number whose multiples, modulo 1, are spread as evenly as possible: the phases of the tick.
_GOLDEN = 0.6180339887498949

# A burst of more than this many quotas is replayed as one of fewer: beyond it, each period is like the one before.
_REPLAYED_QUOTAS = 6


class BandwidthLimit(NamedTuple):
    """The limit of a cgroup, and how exactly its kernel enforces it.

    quota_us: None for none. burst_us: cpu.max.burst. slice_us: kernel.sched_cfs_bandwidth_slice_us. tick_us: 1 s / HZ,
    0 for a kernel that notices everything at once. kept_us: min_cfs_rq_runtime.
    """

    quota_us: int | None
    period_us: int = PERIOD
    burst_us: int = 0
    slice_us: int = SLICE
    tick_us: int = TICK
    kept_us: int = KEPT


class BurstPrediction(NamedTuple):
    """What happens to bursts that come one at a time, each after two idle periods or more.

    minimum_us, median_us, maximum_us: the latency, from the first thread's start to the last one's end.
    unthrottled_us: the same without a limit.
    lost_periods: the mean number of periods of a burst in which the cgroup was throttled.
    throttled_share: nr_throttled / nr_periods, as the kernel counts them: with the two periods after the burst.
    """

    minimum_us: int
    median_us: int
    maximum_us: int
    unthrottled_us: int
    lost_periods: float
    throttled_share: float


class Steady(NamedTuple):
    """What happens to threads that never rest.

    throttled_share: nr_throttled / nr_periods. lost_share: the part of the time in which a CPU's threads stand still.
    longest_wait_us: how long a thread waits at most until it runs again, where more CPUs want runtime than there are
    slices in a quota.
    """

    throttled_share: float
    lost_share: float
    longest_wait_us: int


class ReplayedBurst(NamedTuple):
    """One burst: its latency, the periods in which it stood still, and those that the kernel counts up to the end of
    the last one that was throttled: throttled ones, and all."""

    latency_us: int
    lost: int
    throttled: int
    periods: int


def used_cpus(threads: int, cpus: int) -> int:
    """Return how many CPUs so many runnable threads use."""
    return max(1, min(threads, cpus))


def predict_steady(bandwidth: BandwidthLimit, threads: int, cpus: int) -> Steady:
    """Return what a limit does to threads that always run.

    k CPUs want k P in each period and get Q: they stand still for 1 - Q / (k P) of the time, and each period is
    throttled. Where k slices are more than Q, only Q / slice CPUs get one in a period, and the last of them waits for
    k slice / Q periods.

    A quota of k P or more is said to do nothing. A real kernel throttles some periods with it, too, for a short time:
    next to nothing was measured with a period of 100 ms, and up to 6 % with 10 ms (docs/docsite/rst/throttling.rst).
    """
    quota, period, running = bandwidth.quota_us, bandwidth.period_us, used_cpus(threads, cpus)
    if quota is None or quota >= running * period:
        return Steady(0.0, 0.0, 0)
    turns = -(-running * bandwidth.slice_us // quota)
    wait = period - quota // running if turns <= 1 else turns * period
    return Steady(1.0, 1 - quota / (running * period), wait)


def predict_burst(bandwidth: BandwidthLimit, threads: int, cpus: int, work_us: int) -> BurstPrediction:
    """Return what a limit does to bursts of `work_us` of CPU time, spread evenly over threads that start together.

    Where more threads than CPUs run, the scheduler is expected to keep all CPUs busy to the end.
    """
    running = min(used_cpus(threads, cpus), _MOST_CPUS)
    unthrottled = -(-work_us // running)
    quota, period = bandwidth.quota_us, bandwidth.period_us
    if quota is None or quota >= running * period:
        return BurstPrediction(unthrottled, unthrottled, unthrottled, unthrottled, 0.0, 0.0)
    overdrawn = 2 * running * (bandwidth.slice_us + bandwidth.tick_us) + bandwidth.burst_us
    skipped = max(0, (work_us - overdrawn) // quota - _REPLAYED_QUOTAS)
    left = -(-(work_us - skipped * quota) // running)
    phases = max(_FEWEST_PHASES, _PHASES // running) | 1
    step = _coprime(phases)
    latencies = []
    lost = throttled = periods = 0
    runtime = [bandwidth.kept_us] * running
    for number in range(phases):
        # Not in order: what a burst leaves behind is independent of the phase of the next one.
        part = (number * step) % phases
        phase = (2 * part + 1) * period // (2 * phases)
        tick_phase = int(bandwidth.tick_us * ((part * _GOLDEN) % 1))
        burst = _Burst(bandwidth, runtime, left, phase, tick_phase).replay()
        latencies.append(burst.latency_us + skipped * period)
        lost += burst.lost + skipped
        throttled += burst.throttled + skipped
        periods += burst.periods + skipped + 2
    latencies.sort()
    median = (latencies[phases // 2] + latencies[(phases - 1) // 2]) // 2
    return BurstPrediction(latencies[0], median, latencies[-1], unthrottled, lost / phases, throttled / periods)


def _coprime(count: int) -> int:
    """Return a step through an odd number of phases that meets all of them, far from their order."""
    step = int(count * _GOLDEN) | 1
    while gcd(step, count) > 1:
        step += 1
    return step


class _Burst:
    """One burst in a cgroup of as many run queues as `runtime` has, each with `work` to do.

    runtime: what each run queue has, and afterwards keeps. It begins `phase` into a period; ticks are at
    tick_phase + i tick_us.
    """

    def __init__(self, bandwidth: BandwidthLimit, runtime: list[int], work: int, phase: int, tick_phase: int) -> None:
        self.bandwidth, self.runtime, self.tick_phase = bandwidth, runtime, tick_phase
        self.quota = bandwidth.quota_us or 0
        self.pool = self.limit = self.quota + bandwidth.burst_us
        self.left, self.since = [work] * len(runtime), [phase] * len(runtime)
        self.begun = self.ended = phase
        # (when a run queue is done or notices that its runtime is used up, its number), a heap.
        self.events: list[tuple[int, int]] = []
        # Those that are throttled, in order.
        self.waiting: list[int] = []
        self.lost = self.throttled = self.periods = 0

    def replay(self) -> ReplayedBurst:
        """Go from event to event, to the end of the last period that is throttled."""
        for cpu, runtime in enumerate(self.runtime):
            if runtime <= 0:
                self.draw(cpu)
            self.go_on(cpu)
        boundary = self.bandwidth.period_us
        while self.events or self.waiting:
            if not self.events or boundary <= self.events[0][0]:
                self.refill(boundary)
                boundary += self.bandwidth.period_us
            else:
                self.stop(*heappop(self.events))
        return ReplayedBurst(self.ended - self.begun, self.lost, self.throttled, self.periods)

    def draw(self, cpu: int) -> None:
        """Fill the runtime of a run queue up to a slice, as far as the pool goes."""
        amount = min(self.pool, self.bandwidth.slice_us - self.runtime[cpu])
        self.pool -= amount
        self.runtime[cpu] += amount

    def go_on(self, cpu: int) -> None:
        """Let a run queue run if it has runtime, and wait otherwise."""
        if self.runtime[cpu] > 0:
            self.run(cpu)
        else:
            self.waiting.append(cpu)

    def run(self, cpu: int) -> None:
        """Find out when this run queue is done, or notices that it has used its runtime."""
        since, tick = self.since[cpu], self.bandwidth.tick_us
        noticed = since + self.runtime[cpu]
        if tick:
            # A tick at the very start finds nothing that has run.
            noticed = max(noticed, since + 1)
            noticed += (self.tick_phase - noticed) % tick
        if self.left[cpu]:
            heappush(self.events, (min(noticed, since + self.left[cpu]), cpu))

    def stop(self, now: int, cpu: int) -> None:
        """Account for what a run queue has used."""
        used = now - self.since[cpu]
        self.left[cpu] -= used
        self.runtime[cpu] -= used
        self.since[cpu] = now
        if self.runtime[cpu] <= 0:
            self.draw(cpu)
        if not self.left[cpu]:
            self.ended = now
            returned = max(0, self.runtime[cpu] - self.bandwidth.kept_us)
            self.runtime[cpu] -= returned
            self.pool += returned
        self.go_on(cpu)

    def refill(self, now: int) -> None:
        """End a period: fill the pool, and let those run that can pay what they have overdrawn."""
        waiting = self.waiting
        self.periods += 1
        if waiting:
            self.throttled += 1
            self.lost += any(self.left[cpu] for cpu in waiting)
        self.pool = min(self.pool + self.quota, self.limit)
        while waiting and self.pool > -self.runtime[waiting[0]]:
            cpu = waiting.pop(0)
            self.pool += self.runtime[cpu]
            self.runtime[cpu], self.since[cpu] = 0, now
            if not self.bandwidth.tick_us:
                self.draw(cpu)
            self.run(cpu)
        if waiting:
            self.runtime[waiting[0]] += self.pool
            self.pool = 0


# Whether a container with a CPU limit would be throttled on so many CPUs, and what each remedy would change. Pure.
#
# All latencies are milliseconds, as plain data; see `throttling` in the module allocation_plan for the shape.


# Source: MilliCPUToQuota in pkg/kubelet/cm/helpers_linux.go.
_MINIMUM_QUOTA = 1_000
_MILLI = 1000

# The period that is proposed: short enough that a lost one is not noticed, long enough for a slice on two CPUs.
_SHORT_PERIOD = 10_000
_MOST_WORK = 3_600_000_000
_MOST_THREADS = 100_000

WHOLE_CPUS, LIMIT, BURST, PERIOD_OF_KUBELET, THREADS = "whole-cpus", "limit", "burst", "period", "threads"


class Burst(NamedTuple):
    """What a container runs: how many threads, and the CPU time of one burst in microseconds; None: always busy.

    pod and container are shell patterns. threads: None for as many as there are CPUs.
    """

    pod: str = "*"
    container: str = "*"
    threads: int | None = None
    work_us: int | None = None

    def matches(self, pod: str, container: str) -> bool:
        """Return whether it is about this container."""
        return fnmatchcase(pod, self.pod) and fnmatchcase(container, self.container)


class Limited(NamedTuple):
    """A container with a limit: thousandths of a CPU, the kubelet's period, and the CPUs that it may use."""

    milli: int
    period_us: int
    cpus: int
    threads: int
    work_us: int | None

    def bandwidth(self, milli: int | None = None, period_us: int | None = None, burst_us: int = 0) -> BandwidthLimit:
        """Return the limit as the kubelet writes it, or with another value."""
        period = period_us or self.period_us
        return BandwidthLimit(quota(milli or self.milli, period), period, burst_us)


def quota(milli: int, period_us: int) -> int:
    """Return cpu.cfs_quota_us of a limit in thousandths of a CPU."""
    return max(_MINIMUM_QUOTA, milli * period_us // _MILLI)


def read_bursts(rows: Iterable[Mapping[str, Any]]) -> list[Burst]:
    """Return what the option `bursts` says. Raises InputError."""
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
    """Return what the limit does to the container, and each remedy that makes it better."""
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


def _effect(container: Limited, bandwidth: BandwidthLimit, threads: int, cpus: int) -> dict[str, object]:
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
    """Return those that make the effect better, with their own."""
    found = []

    def add(remedy: str, change: str, bandwidth: BandwidthLimit, threads: int, cpus: int) -> None:
        changed = _effect(container, bandwidth, threads, cpus)
        if _is_better(changed, effect):
            found.append({"remedy": remedy, "change": change, **changed})

    threads, cpus = container.threads, container.cpus
    whole = -(-container.milli // _MILLI)
    add(
        WHOLE_CPUS,
        "%s as request and limit of a Guaranteed pod, with the static policy: exclusive CPUs need no quota"
        % counted(whole, "CPU"),
        BandwidthLimit(None),
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
            PERIOD_OF_KUBELET,
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
    """Return whether nothing takes longer, and something less long. A shorter period makes a burst slower, as a
    rule."""
    keys = ("median", "maximum") if "latency_ms" in effect else ("lost_share", "longest_wait_ms")
    before, after = ([row.get("latency_ms", row)[key] for key in keys] for row in (effect, changed))
    return before != after and all(new <= old for new, old in zip(after, before))


def _is_free(container: Limited, bandwidth: BandwidthLimit) -> bool:
    return not _effect(container, bandwidth, container.threads, container.cpus)["throttled_share"]


def _smallest(low: int, high: int, step: int, is_enough: Callable[[int], bool]) -> int:
    """Return the smallest of low + i step that is enough, at most `high`, which is taken where nothing below is."""
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
