# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of CPU limits against this kernel, in a few settings; tests/bench/throttling.py has all."""

from __future__ import annotations

import os
import random
from statistics import median

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.limits import BandwidthLimit, predict_burst

from .bursts import Setting, controller, measure

# A burst cannot be faster than predicted, but on a busy machine it can be slower.
FASTER_MS = 8
TOLERANCE = 0.25
FLOOR_MS = 10
FLOOR_SHARE = 0.12
ATTEMPTS = 3

SETTINGS = [Setting(20, 50, 70, 1, 1), Setting(10, 20, 50, 1, 1), Setting(20, 50, 60, 2, 1), Setting(25, 50, 90, 2, 2)]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "%d-%d-%d-%d-%d" % setting)
def test_bursts_take_as_long_as_predicted(setting: Setting) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make cgroups")
    if not controller()[0]:
        pytest.skip("there is no cpu controller")
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < setting.cpus:
        pytest.skip("this machine has one CPU")
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        measured = measure(setting, 10, random.Random(attempt), cpus)
        bandwidth = BandwidthLimit(setting.quota * 1000, setting.period * 1000)
        predicted = predict_burst(bandwidth, setting.threads, setting.cpus, int(measured.work * 1000))
        found, expected = median(measured.latencies), predicted.median_us / 1000
        assert min(measured.latencies) >= predicted.minimum_us / 1000 - FASTER_MS
        problems = []
        if abs(found - expected) > max(TOLERANCE * expected, FLOOR_MS):
            problems.append("the median is %.1f ms, and %.1f ms predicted" % (found, expected))
        if abs(measured.share - predicted.throttled_share) > FLOOR_SHARE:
            problems.append("the share is %.2f, and %.2f predicted" % (measured.share, predicted.throttled_share))
        # Again where others ran meanwhile; on a quiet machine, once is enough.
        if not problems or not measured.disturbed:
            break
    assert problems == []
