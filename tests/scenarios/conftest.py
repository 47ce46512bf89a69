# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tells the figures of the scenarios at the end of the run, as their output is not always shown."""

from __future__ import annotations

from typing import Callable

import pytest

_FIGURES = "figures"


@pytest.fixture
def tell_figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say what a scenario took."""
    return lambda figures: record_property(_FIGURES, figures)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each scenario that has passed."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, figures in report.user_properties:
            if name == _FIGURES:
                terminalreporter.write_line(str(figures))
