# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which versions of Kubernetes were run: versions_run.json has it, and the page of supported versions shows it.

With RECORD=1 test_any_version.py writes both.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Mapping, Sequence

FILE = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).resolve().parents[2] / "docs/docsite/rst/supported_versions.rst"
_FIRST, _LAST = ".. RECORD=1 writes this table\n", ".. end of what was run\n"
# By the name of a test, in the order in which they are shown.
SHOWN = {
    "life": "a rollout to the static policy with drain and uncordon, exclusive CPUs, a restart, a repair",
    "memory": "states of the memory manager",
    "whole": "pods that have CPUs as a whole",
}


def record(version: str, what: str) -> None:
    """Write down that a test has passed, where that is wanted."""
    if os.environ.get("RECORD") != "1":
        return
    with open(PAGE, encoding="utf-8") as lock:
        # Tests in several processes.
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = read()
        found[version] = [name for name in SHOWN if name in (*found.get(version, ()), what)]
        FILE.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        PAGE.write_text(page(found), encoding="utf-8")


def read() -> dict[str, list[str]]:
    """Return {version: the tests that have passed with it}"""
    found: dict[str, list[str]] = json.loads(FILE.read_text("utf-8"))
    return found


def page(found: Mapping[str, Sequence[str]]) -> str:
    """Return the page with the table of these."""
    text = PAGE.read_text("utf-8")
    before, first, rest = text.partition(_FIRST)
    _old, last, after = rest.partition(_LAST)
    if not first or not last:
        raise ValueError("%s lacks the lines around the table" % PAGE)
    lines = [".. list-table::", "   :header-rows: 1", "", "   * - Kubernetes", "     - what was run"]
    for version in sorted(found, key=_numbers):
        lines += ["   * - " + version, "     - " + "; ".join(SHOWN[name] for name in found[version])]
    return "%s%s\n%s\n\n%s%s" % (before, first, "\n".join(lines), last, after)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.partition("-")[0].split(".")]
