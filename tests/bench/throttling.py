# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How well the model of CPU limits predicts what this kernel does: bursts of work in real cgroups, after random pauses.

tests/bench/run throttling --write    # also puts the table into docs/docsite/rst/throttling.rst
"""

from __future__ import annotations

import os
import platform
import random
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.isolation.model import (
    Bandwidth,
    Prediction,
    predict_burst,
)
from ansible_collections.kubenode.cpu_manager.tests.kernel.bursts import Measured, Setting, controller, measure_steady
from ansible_collections.kubenode.cpu_manager.tests.kernel.bursts import measure as burst

BURSTS = 20
# A prediction of the median or the share is right when it is within this part of the measured value, or within the
# floor: a tick of the kernel is 4 ms with CONFIG_HZ=250, and one burst more or less is throttled by it.
TOLERANCE = 0.15
FLOOR_MS = 2.0
FLOOR_SHARE = 0.05
# How far the measured minimum and maximum may be outside the predicted ones.
OUTSIDE_MS = 5.0

PAGE = Path(__file__).resolve().parents[2] / "docs" / "docsite" / "rst" / "throttling.rst"
BEGIN, END = ".. measured: begin\n", ".. measured: end\n"

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
    predicted: Prediction
    measured: Measured

    def wrong(self, floor_ms: float = FLOOR_MS, floor_share: float = FLOOR_SHARE) -> list[str]:
        """What the prediction says otherwise than the kernel did."""
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
        """A row of the table."""
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


def predicted(setting: Setting, measured: Measured) -> Prediction:
    """What the model says of a setting, with the CPU time that the kernel has counted as its work."""
    bandwidth = Bandwidth(setting.quota * 1000, setting.period * 1000)
    return predict_burst(bandwidth, setting.threads, setting.cpus, int(measured.work * 1000))


def row(setting: Setting, bursts: int, seed: int) -> Row:
    """Predict and measure one setting."""
    cpus = sorted(os.sched_getaffinity(0))
    measured = burst(setting, bursts, random.Random(seed), cpus)
    return Row(setting, predicted(setting, measured), measured)


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
    """Why nothing can be measured here; empty when it can."""
    if os.geteuid() != 0:
        return "only root can make cgroups"
    if not controller()[0]:
        return "there is no cpu controller"
    if len(os.sched_getaffinity(0)) < 2:
        return "this machine has one CPU"
    return ""


def measure(arguments: Sequence[str] = ()) -> bool:
    """Print the table; True when the model is right for LEAST_RIGHT settings. --write also puts it into the page."""
    reason = why_not()
    if reason:
        print("throttling: not measured, %s" % reason)
        return True
    lines = [
        "Linux %s, cgroup v%d, %d bursts a setting, milliseconds:"
        % (platform.release().partition("-")[0], controller()[0], BURSTS),
        "",
        *HEAD.splitlines(),
    ]
    print("\n".join(lines))
    right = strictly_right = 0
    for number, setting in enumerate(SETTINGS):
        found = row(setting, BURSTS, number)
        if found.wrong():
            # Whatever else ran on the machine meanwhile is in the figures, too.
            found = row(setting, BURSTS, number + 1000)
        right += not found.wrong()
        strictly_right += not found.wrong(floor_ms=0, floor_share=0)
        lines.append(found.line())
        print(lines[-1], flush=True)
    lines += ["", "%d of %d settings are right (limit %d)." % (right, len(SETTINGS), LEAST_RIGHT)]
    print("\n".join(lines[-2:]))
    print(
        "Without the floors of %g ms and %g, %d of them are within %d %%."
        % (FLOOR_MS, FLOOR_SHARE, strictly_right, 100 * TOLERANCE)
    )
    print_enough()
    if "--write" in arguments:
        text = PAGE.read_text("utf-8")
        head, rest = text.split(BEGIN)
        PAGE.write_text("%s%s\n%s\n\n%s%s" % (head, BEGIN, "\n".join(lines), END, rest.split(END)[1]), "utf-8")
    return right >= LEAST_RIGHT


if __name__ == "__main__":
    sys.exit(0 if measure(sys.argv[1:]) else 1)
