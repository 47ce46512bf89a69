# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Public reports, and how the collection answered them at first sight: see log.yml.

python tests/reports/__init__.py     # how many of each thirty were right at first sight
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

LOG = Path(__file__).parent / "log.yml"
FIRST = ("right", "partly", "wrong", "none")
_MANY = 30


def read_log() -> list[dict[str, Any]]:
    """Return the entries, in the order in which they were tried."""
    entries: list[dict[str, Any]] = yaml.safe_load(LOG.read_text(encoding="utf-8"))
    return entries


def rates() -> list[str]:
    """Return a line for each thirty reports, and one for the last thirty."""
    entries = read_log()
    starts = [*range(0, len(entries) - _MANY + 1, _MANY), len(entries) - _MANY]
    lines = []
    for start in starts:
        of = [entry["first"] for entry in entries[start : start + _MANY]]
        counts = ", ".join("%d %s" % (of.count(first), first) for first in FIRST)
        lines.append("%d to %d: %s" % (start + 1, start + _MANY, counts))
    return lines


if __name__ == "__main__":
    print(*rates(), sep="\n")
