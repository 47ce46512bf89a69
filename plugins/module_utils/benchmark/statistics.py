# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What repeated runs say: quantiles, box plots, and intervals of medians. Pure.

The interval of a median is the distribution-free one between two order statistics: of n runs, the r-th lowest and the
r-th highest, with the largest r for which it holds the true median with a probability of at least 95 %. Nothing is
assumed of how run times are distributed, which is skewed.
Source: B. C. Arnold, N. Balakrishnan, H. N. Nagaraja, A First Course in Order Statistics, section 7.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

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
        """Plain data."""
        return {
            "median": self.median,
            "low": self.low,
            "high": self.high,
            "confidence": round(self.confidence, 4),
        }


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values is, between two of them linearly. values: at least one."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    return low + (high - low) * (place - below)


def median_interval(values: Sequence[float]) -> Interval:
    """The median of at least one value with its interval.

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
    """How likely the median is between the rank-th lowest and the rank-th highest of so many values."""
    # Pascal's triangle in place of math.comb(), which would do as well.
    ways, below = 1, 0
    for drawn in range(rank):
        below += ways
        ways = ways * (number - drawn) // (drawn + 1)
    return 1 - 2 * below / (1 << number)


def box(values: Sequence[float], best: float) -> dict[str, Any]:
    """A box of a plot, with all values as multiples of `best`, the lowest of all that it is compared with.

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
