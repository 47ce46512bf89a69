# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log of public reports: what was not answered rightly has a test now, or a reason."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.kubenode.cpu_manager.tests.reports import FIRST, rates, read_log

TESTS = Path(__file__).resolve().parents[1]


def test_each_report_has_what_it_says_and_what_became_of_it() -> None:
    there = {
        name
        for path in TESTS.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    entries = read_log()
    assert len(entries) > 100
    for entry in entries:
        assert {"thread", "date", "kind", "facts", "answer", "first"} <= entry.keys(), entry
        assert entry["first"] in FIRST, entry
        if entry["first"] == "right":
            assert not {"said", "test", "left"} & entry.keys(), entry
        else:
            assert "said" in entry, entry
            assert entry.get("test") in there or entry.get("left"), entry


def test_the_rates_of_each_thirty() -> None:
    assert rates()[0].startswith("1 to 30: ")
    assert all(sum(map(int, re.findall(r"(\d+) [a-z]+(?:,|$)", line))) == 30 for line in rates())
