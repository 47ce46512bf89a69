# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How well the model of CPU limits predicts what this kernel does: bursts of work in real cgroups, after random pauses.

tests/bench/run throttling                 # on this machine
tests/bench/run throttling --vm            # in a virtual machine, whose kernel has cgroup v2
tests/bench/run throttling [--vm] --write  # also puts the table into docs/docsite/rst/throttling.rst
"""

from __future__ import annotations

import os
import platform
import random
import sys
from pathlib import Path
from statistics import median
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.limits import (
    BandwidthLimit,
    BurstPrediction,
    predict_burst,
)
from ansible_collections.kubenode.cpu_manager.tests.kernel.bursts import Measured, Setting, controller, measure_steady
from ansible_collections.kubenode.cpu_manager.tests.kernel.bursts import measure as burst

from . import throttling_vm

# The second number: in a virtual machine.
BURSTS, VM_BURSTS = 20, 10
# A prediction of the median or the share is right when it is within this part of the measured value, or within the
# floor: a tick of the kernel is 4 ms with CONFIG_HZ=250, and one burst more or less is throttled by it.
TOLERANCE = 0.15
FLOOR_MS = 2.0
FLOOR_SHARE = 0.05
# How far the measured minimum and maximum may be outside the predicted ones.
OUTSIDE_MS = 5.0

PAGE = Path(__file__).resolve().parents[2] / "docs" / "docsite" / "rst" / "throttling.rst"
# Around a table on the page, by where it was measured.
MARK = ".. measured %s: %s\n"

# quota, period, work in ms, threads, CPUs
SETTINGS = [
    Setting(*values)
    for values in (
        # One thread.
        (5, 100, 1, 1, 1),
        (5, 100, 18, 1, 1),
        (10, 100, 5, 1, 1),
        (10, 100, 35, 1, 1),
        (20, 100, 10, 1, 1),
        (20, 100, 22, 1, 1),
        (20, 100, 50, 1, 1),
        (20, 100, 70, 1, 1),
        (30, 100, 100, 1, 1),
        (50, 100, 40, 1, 1),
        (50, 100, 60, 1, 1),
        (50, 100, 120, 1, 1),
        (50, 100, 200, 1, 1),
        (80, 100, 100, 1, 1),
        (80, 100, 200, 1, 1),
        (5, 50, 20, 1, 1),
        (10, 50, 30, 1, 1),
        (15, 50, 100, 1, 1),
        (20, 50, 70, 1, 1),
        (25, 50, 60, 1, 1),
        (40, 50, 100, 1, 1),
        (5, 20, 12, 1, 1),
        (10, 20, 50, 1, 1),
        (5, 10, 40, 1, 1),
        (50, 200, 120, 1, 1),
        # Several threads on one CPU.
        (20, 100, 70, 2, 1),
        (50, 100, 140, 2, 1),
        (20, 50, 90, 3, 1),
        (30, 100, 80, 4, 1),
        # Two CPUs.
        (20, 100, 70, 1, 2),
        (5, 100, 10, 2, 2),
        (10, 100, 40, 2, 2),
        (20, 100, 70, 2, 2),
        (30, 100, 100, 2, 2),
        (50, 100, 120, 2, 2),
        (100, 100, 180, 2, 2),
        (150, 100, 200, 2, 2),
        (20, 50, 70, 2, 2),
        (50, 50, 200, 2, 2),
        (20, 100, 70, 3, 2),
        (50, 100, 150, 3, 2),
        (20, 100, 70, 4, 2),
        (100, 100, 180, 4, 2),
        (25, 50, 100, 4, 2),
    )
]

# Of all settings.
LEAST_RIGHT = 40

ENOUGH = [
    Setting(*values)
    for values in ((100, 100, 1, 1, 1), (200, 100, 1, 2, 2), (20, 20, 1, 1, 1), (40, 20, 1, 2, 2), (10, 10, 1, 1, 1))
    + ((20, 10, 1, 2, 2), (22, 10, 1, 2, 2))
]
STEADY_SECONDS = 6


class Row(NamedTuple):
    """A setting, what was predicted and what was measured; milliseconds."""

    setting: Setting
    predicted: BurstPrediction
    measured: Measured

    def wrong(self, floor_ms: float = FLOOR_MS, floor_share: float = FLOOR_SHARE) -> list[str]:
        """Return what the prediction says otherwise than the kernel did."""
        latencies, predicted = self.measured.latencies, self.predicted
        found = median(latencies)
        problems = []
        if abs(predicted.median_us / 1000 - found) > max(TOLERANCE * found, floor_ms):
            problems.append("median")
        if abs(predicted.throttled_share - self.measured.share) > max(TOLERANCE * self.measured.share, floor_share):
            problems.append("share")
        if min(latencies) < predicted.minimum_us / 1000 - OUTSIDE_MS:
            problems.append("minimum")
        if max(latencies) > predicted.maximum_us / 1000 + OUTSIDE_MS:
            problems.append("maximum")
        return problems

    def line(self) -> str:
        """Return a row of the table."""
        setting, latencies, predicted = self.setting, self.measured.latencies, self.predicted
        return "   %d / %d | %.1f | %d on %d | %.0f / %.0f / %.0f | %.0f / %.0f / %.0f | %.2f | %.2f | %s" % (
            setting.quota,
            setting.period,
            self.measured.work,
            setting.threads,
            setting.cpus,
            min(latencies),
            median(latencies),
            max(latencies),
            predicted.minimum_us / 1000,
            predicted.median_us / 1000,
            predicted.maximum_us / 1000,
            self.measured.share,
            predicted.throttled_share,
            ", ".join(self.wrong()) or "yes",
        )


HEAD = """\
.. csv-table::
   :header-rows: 1
   :delim: |

   quota / period | work | threads, CPUs | measured min / median / max | predicted | share measured | predicted | right"""  # noqa: E501


def predicted(setting: Setting, measured: Measured) -> BurstPrediction:
    """Return what the model says of a setting, with the CPU time that the kernel has counted as its work."""
    bandwidth = BandwidthLimit(setting.quota * 1000, setting.period * 1000)
    return predict_burst(bandwidth, setting.threads, setting.cpus, int(measured.work * 1000))


# Measures settings in turn, each with so many bursts: the last argument is the seed of the random numbers.
Bursts = Callable[[Sequence[Setting], int, int], Iterable[Measured]]


def bursts_here(settings: Sequence[Setting], bursts: int, seed: int) -> Iterator[Measured]:
    """Yield what was measured of bursts in cgroups of this machine."""
    cpus = sorted(os.sched_getaffinity(0))
    for number, setting in enumerate(settings):
        yield burst(setting, bursts, random.Random(seed + number), cpus)


def rows(bursts: int, measured: Bursts) -> Iterator[Row]:
    """Predict and measure all settings.

    Where the prediction is wrong, the setting is measured once more: the first figures also contain whatever else ran
    on the machine meanwhile.
    """
    for number, (setting, values) in enumerate(zip(SETTINGS, measured(SETTINGS, bursts, 0))):
        found = Row(setting, predicted(setting, values), values)
        if found.wrong():
            (again,) = measured([setting], bursts, number + 1000)
            found = Row(setting, predicted(setting, again), again)
        yield found


def print_enough() -> None:
    """Print what quotas do that are as much as all CPUs can use, or more; the model says that they do nothing."""
    print("Quotas that are enough, threads that never rest, %d s:" % STEADY_SECONDS)
    cpus = sorted(os.sched_getaffinity(0))
    for setting in ENOUGH:
        found = measure_steady(setting, STEADY_SECONDS, cpus[: setting.cpus])
        print(
            "   %d / %d | %d on %d | %d of %d periods throttled | %.2f %% of the time lost"
            % (*setting[:2], *setting[3:], found.throttled, found.periods, 100 * found.lost),
            flush=True,
        )


def why_not() -> str:
    """Return why nothing can be measured here; empty when it can."""
    if os.geteuid() != 0:
        return "only root can make cgroups"
    if not controller()[0]:
        return "there is no cpu controller"
    if len(os.sched_getaffinity(0)) < 2:
        return "this machine has one CPU"
    return ""


def measure(arguments: Sequence[str] = ()) -> bool:
    """Print the table; True when the model is right for LEAST_RIGHT settings. For the arguments see above."""
    if "--vm" in arguments:
        return _measure_in_vm("--write" in arguments)
    reason = why_not()
    if reason:
        print("throttling: not measured, %s" % reason)
        return True
    kept = _tell("here", platform.release(), controller()[0], BURSTS, bursts_here, "--write" in arguments)
    print_enough()
    return kept


def _measure_in_vm(is_written: bool) -> bool:
    with throttling_vm.Machine() as machine:
        return _tell("in a VM", machine.kernel, machine.version, VM_BURSTS, machine.measure, is_written)


def _tell(where: str, kernel: str, version: int, bursts: int, measured: Bursts, is_written: bool) -> bool:
    """Print the table; True when the model is right for LEAST_RIGHT settings."""
    lines = [
        "Linux %s, cgroup v%d, %d bursts a setting, milliseconds:" % (kernel.partition("-")[0], version, bursts),
        "",
        *HEAD.splitlines(),
    ]
    print("\n".join(lines))
    found = []
    for row in rows(bursts, measured):
        found.append(row)
        lines.append(row.line())
        print(lines[-1], flush=True)
    right = sum(not row.wrong() for row in found)
    lines += ["", "%d of %d settings are right (limit %d)." % (right, len(found), LEAST_RIGHT)]
    print("\n".join(lines[-2:]))
    strictly_right = sum(not row.wrong(floor_ms=0, floor_share=0) for row in found)
    print(
        "Without the floors of %g ms and %g, %d of them are within %d %%."
        % (FLOOR_MS, FLOOR_SHARE, strictly_right, 100 * TOLERANCE),
        flush=True,
    )
    if is_written:
        begin, end = MARK % (where, "begin"), MARK % (where, "end")
        head, rest = PAGE.read_text("utf-8").split(begin)
        PAGE.write_text("%s%s\n%s\n\n%s%s" % (head, begin, "\n".join(lines), end, rest.split(end)[1]), "utf-8")
    return right >= LEAST_RIGHT


if __name__ == "__main__":
    sys.exit(0 if measure(sys.argv[1:]) else 1)
