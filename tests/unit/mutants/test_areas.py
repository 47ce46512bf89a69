# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/mutants/areas.py: what it names is there, however the code has changed since."""

from __future__ import annotations

from mutants.areas import AREAS, candidates, equivalent
from mutants.trial import CODE, ROOT


def test_each_equivalent_change_is_of_a_line_of_today() -> None:
    left = equivalent()
    for area in AREAS.values():
        candidates(ROOT, area, left)
    assert left == set()


def test_each_area_has_files_and_tests() -> None:
    for name, area in AREAS.items():
        assert all(any((ROOT / CODE).glob(pattern)) for pattern in area.files), name
        assert all(any(ROOT.glob(pattern)) for pattern in area.tests), name
