# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counts the faults that were tried, here and in other tests, and tells them at the end of the run."""

from __future__ import annotations

from typing import Callable

import pytest

KINDS = (
    *("kills", "damaged nodes", "full disks", "read-only disks", "meetings with others", "races", "orders"),
    *("kubelets that do not come up", "budgets that never allow", "clusters that do not answer"),
    *("calls that failed", "changes that stayed"),
)
_PREFIX = "faults: "

Count = Callable[[str, int], None]


@pytest.fixture
def count(record_property: Callable[[str, object], None], request: pytest.FixtureRequest) -> Count:
    """Return a function: count(KIND, NUMBER) tells how many faults of a kind this test tried."""

    def count(kind: str, number: int) -> None:
        assert kind in KINDS
        record_property(_PREFIX + kind, number)
        print("%s: %d %s" % (request.node.name, number, kind))

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one line for all tests, in whatever process each ran."""
    total = dict.fromkeys(KINDS, 0)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                for name, number in report.user_properties:
                    if name.startswith(_PREFIX):
                        total[name[len(_PREFIX) :]] += number
    if any(total.values()):
        told = ", ".join("%s %s" % (number, kind) for kind, number in total.items() if number)
        terminalreporter.write_line("%s%s" % (_PREFIX, told))
