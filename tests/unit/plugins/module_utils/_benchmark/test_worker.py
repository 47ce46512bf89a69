# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.worker import (
    KINDS,
    calibrated,
    measured,
    unit_of,
)

MEMORY = 1 << 23


@pytest.mark.parametrize("kind", KINDS)
def test_more_work_takes_longer(kind: str) -> None:
    unit = unit_of(kind, MEMORY)
    size = calibrated(unit, 0.002)

    def taken(amount: int) -> float:
        """Return the CPU time that so much work takes: on a busy machine the wall clock says little."""
        begun = time.process_time()
        unit(amount)
        return time.process_time() - begun

    # By turns, so that whatever else uses the memory slows both sizes alike.
    little, much = zip(*((taken(size), taken(16 * size)) for _trial in range(10)))
    assert min(much) > 4 * min(little)


def test_what_is_measured_adds_up() -> None:
    found = measured(lambda _size: time.sleep(0.002), 0, 5)
    assert len(found["latencies"]) == 5
    assert min(found["latencies"]) >= 0.002
    assert sum(found["latencies"]) == pytest.approx(found["seconds"], rel=0.01)
