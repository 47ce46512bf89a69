# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the runs of a benchmark say: medians with intervals, boxes relative to the best run, and a verdict. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .benchmark_plan import BESIDE_AGGRESSOR, EXCLUSIVE, EXCLUSIVE_CORES, SHARED, STAND_ALONE, VICTIM

# What repeated runs say: quantiles, box plots, and intervals of medians. Pure.
#
# The interval of a median is the distribution-free one between two order statistics: of n runs, the r-th lowest and the
# r-th highest, with the largest r for which it holds the true median with a probability of at least 95 %. Nothing is
# assumed of how run times are distributed, which is skewed.
# Its source: B. C. Arnold, N. Balakrishnan, H. N. Nagaraja, A First Course in Order Statistics, section 7.1.


_WANTED = 0.95
# Tukey's: whiskers reach to the last value that is at most this many interquartile ranges away from the box.
_WHISKER = 1.5


class Interval(NamedTuple):
    """A median, and between what it is. confidence: the probability that the true one is there."""

    median: float
    low: float
    high: float
    confidence: float

    @property
    def noise(self) -> float:
        """How far the median may be too low, as a share of it."""
        return self.high / self.median - 1 if self.median > 0 else 0.0

    def to_dict(self) -> dict[str, float]:
        """Return plain data."""
        return {
            "median": self.median,
            "low": self.low,
            "high": self.high,
            "confidence": round(self.confidence, 4),
        }


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values is, between two of them linearly. values: at least one."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    return low + (high - low) * (place - below)


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median of at least one value with its interval.

    Fewer than six values cannot reach 95 %: the interval is then from the lowest to the highest, and its confidence
    says how sure that is.
    """
    ordered = sorted(values)
    rank, confidence = 1, _coverage(len(ordered), 1)
    while 2 * (rank + 1) <= len(ordered) and _coverage(len(ordered), rank + 1) >= _WANTED:
        rank += 1
        confidence = _coverage(len(ordered), rank)
    return Interval(quantile(ordered, 0.5), ordered[rank - 1], ordered[-rank], confidence)


def _coverage(number: int, rank: int) -> float:
    """Return how likely the median is between the rank-th lowest and the rank-th highest of so many values."""
    # Pascal's triangle in place of math.comb(), which would do as well.
    ways, below = 1, 0
    for drawn in range(rank):
        below += ways
        ways = ways * (number - drawn) // (drawn + 1)
    return 1 - 2 * below / (1 << number)


def box(values: Sequence[float], best: float) -> dict[str, Any]:
    """Return a box of a plot, with all values as multiples of `best`, the lowest of all that it is compared with.

    {low, first, median, third, high, beyond}: the whiskers, the quartiles, and the values beyond the whiskers.
    """
    relative = sorted(value / best for value in values) if best > 0 else [1.0]
    first, third = quantile(relative, 0.25), quantile(relative, 0.75)
    reach = _WHISKER * (third - first)
    inside = [value for value in relative if first - reach <= value <= third + reach]
    return {
        "low": round(min(inside), 4),
        "first": round(first, 4),
        "median": round(quantile(relative, 0.5), 4),
        "third": round(third, 4),
        "high": round(max(inside), 4),
        "beyond": [round(value, 4) for value in relative if value < inside[0] or value > inside[-1]],
    }


METRICS = ("seconds", "p50", "p99")

_NAMES = {"seconds": "run time", "p99": "p99 of its latency"}
YES, NO, NOT_SHOWN = "yes", "no", "not shown"


class _Kept(NamedTuple):
    """All runs of one container of one case."""

    case: Mapping[str, Any]
    role: str
    qos: str
    values: Mapping[str, Sequence[float]]


def summarized(cases: Sequence[Mapping[str, object]], rows: Iterable[Mapping[str, object]]) -> dict[str, Any]:
    """Return {summary, verdict}.

    cases: as Case.to_dict() gives them. rows: {case, run, workload, qos_class, seconds, p50, p99}; seconds, and None
    where a latency was not measured.
    """
    kept = _kept(cases, rows)
    best = _best(kept)
    summary = [_summary_of(group, best) for group in kept]
    return {"summary": summary, "verdict": verdict(summary)}


def _kept(cases: Sequence[Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]) -> list[_Kept]:
    values: dict[tuple[int, str, str], dict[str, list[float]]] = {}
    for row in rows:
        found = values.setdefault((row["case"], row["workload"], row["qos_class"]), {name: [] for name in METRICS})
        for name in METRICS:
            if row[name] is not None:
                found[name].append(row[name])
    return [_Kept(cases[key[0]], key[1], key[2], values[key]) for key in sorted(values)]


def _best(kept: Iterable[_Kept]) -> dict[tuple[str, str, str], float]:
    """Return the best run of each workload in each experiment: what is 1.00 there."""
    best: dict[tuple[str, str, str], float] = {}
    for group in kept:
        for name, values in group.values.items():
            key = (group.case["experiment"], group.role, name)
            if values:
                best[key] = min(best.get(key, values[0]), *values)
    return best


def _summary_of(group: _Kept, best: Mapping[tuple[str, str, str], float]) -> dict[str, object]:
    others = [container for container in group.case["containers"] if container["workload"] != group.role]
    own = {container["workload"]: container for container in group.case["containers"]}[group.role]
    row: dict[str, Any] = {
        "experiment": group.case["experiment"],
        "placement": group.case["placement"],
        "workload": group.role,
        "qos_class": group.qos,
        "cpus": own["cpus"],
        "exclusive": own["exclusive"],
        "beside": ["%s (%s)" % (row["workload"], row["qos_class"]) for row in others],
        "runs": len(group.values["seconds"]),
    }
    for name, values in group.values.items():
        key = (group.case["experiment"], group.role, name)
        row[name] = None if not values else {**median_interval(values).to_dict(), "box": box(values, best[key])}
    return row


# --- the verdict --------------------------------------------------------------------------------------


def verdict(summary: Iterable[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Return what the intervals show of the victim, and what they do not.

    [{question, metric, placement, answer, text, ...}]; answer: yes, no or not shown. "not worse than alone" is yes
    where the median is within the interval of that alone, no where even its own interval is above it. "better than
    shared" is yes where the two intervals do not meet and its own is the lower group, no where it is the higher group.
    """
    found = {(row["experiment"], row["placement"]): row for row in summary if row["workload"] == VICTIM}
    answers = []
    for placement in (EXCLUSIVE, EXCLUSIVE_CORES):
        # The latencies count, or the run time of a command that shows none.
        beside = found.get((BESIDE_AGGRESSOR, placement))
        metric = "seconds" if beside is None or beside["p99"] is None else "p99"
        alone = _interval(found.get((STAND_ALONE, placement)), metric)
        own = _interval(beside, metric)
        shared = _interval(found.get((BESIDE_AGGRESSOR, SHARED)), metric)
        if own is not None and alone is not None:
            answers.append({"metric": metric, "placement": placement, **_against_alone(own, alone, metric, placement)})
        if own is not None and shared is not None:
            answers.append(
                {"metric": metric, "placement": placement, **_against_shared(own, shared, metric, placement)}
            )
    return answers


def _interval(row: Mapping[str, Any] | None, metric: str) -> Interval | None:
    if row is None or row[metric] is None:
        return None
    return Interval(*(row[metric][name] for name in ("median", "low", "high", "confidence")))


def _with(placement: str) -> str:
    return "exclusive whole cores" if placement == EXCLUSIVE_CORES else "exclusive CPUs"


def _against_alone(own: Interval, alone: Interval, metric: str, placement: str) -> dict[str, object]:
    answer = YES if own.median <= alone.high else NO if own.low > alone.high else NOT_SHOWN
    ratio = own.median / alone.median
    said = {
        YES: "is not worse than alone by more than the noise of %.1f %%",
        NO: "is worse than alone by more than the noise of %.1f %%",
        NOT_SHOWN: "is higher than alone by more than the noise of %.1f %%, and its own interval reaches below that",
    }[answer] % (100 * alone.noise)
    return {
        "question": "not worse than alone",
        "answer": answer,
        "ratio": round(ratio, 4),
        "noise": round(alone.noise, 4),
        "text": "Beside the aggressor, the victim's %s with %s %s (median %.2f times that alone)."
        % (_NAMES[metric], _with(placement), said, ratio),
    }


def _against_shared(own: Interval, shared: Interval, metric: str, placement: str) -> dict[str, object]:
    answer = YES if own.high < shared.low else NO if own.low > shared.high else NOT_SHOWN
    ratio = shared.median / own.median
    said = {
        YES: "is better than on shared CPUs: their median is %.2f times as high" % ratio,
        NO: "is worse than on shared CPUs: their median is %.2f times as high" % ratio,
        NOT_SHOWN: "is not shown to differ from that on shared CPUs: the intervals meet (ratio %.2f)" % ratio,
    }[answer]
    return {
        "question": "better than shared",
        "answer": answer,
        "ratio": round(ratio, 4),
        "noise": round(shared.noise, 4),
        "text": "Beside the aggressor, the victim's %s with %s %s." % (_NAMES[metric], _with(placement), said),
    }
