# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is changed: the areas of the code, each with its tests, and the changes that no test can notice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import yaml
from mutants.mutations import Mutant, mutants
from mutants.trial import CODE, UNIT

EQUIVALENT = Path(__file__).parent / "equivalent.yml"


class Area(NamedTuple):
    """Files below plugins/module_utils, and the tests that can notice a change of any of them, both as patterns."""

    files: tuple[str, ...]
    tests: tuple[str, ...]

    def test_paths(self, checkout: Path) -> list[str]:
        """Its tests, below the checkout."""
        found = {path for pattern in self.tests for path in checkout.glob(pattern)}
        return sorted(str(path.relative_to(checkout)) for path in found)


def _named(directory: str, *names: str) -> tuple[str, ...]:
    """Return the tests of the files of these names in a directory, by subject where there are several."""
    return tuple("%s%s/test_%s*.py" % (UNIT, directory, name) for name in names)


_START = ("amount", "checks", "managers", "validation")
# Without the files that act on the kernel: real trials test these.
_TRIAL = ("kubelet_trial", "trial_plan", "trial_report")

AREAS = {
    "cpuset": Area(("cpuset.py",), (UNIT + "test_cpuset.py", "tests/unit/plugins/filter/test_cpuset.py")),
    "policy": Area(("policy/*.py",), (UNIT + "policy", "tests/conformance/test_vectors.py")),
    "state": Area(("state/*.py",), (UNIT + "state",)),
    "cgroup": Area(("_cgroup/*.py",), (UNIT + "_cgroup",)),
    "kubelet": Area(
        ("_kubelet/settings.py", *("_kubelet/start/%s.py" % name for name in _START)),
        (
            *_named("_kubelet", "settings", "effective", "gates"),
            *_named("_kubelet/start", *_START, "findings"),
            "tests/conformance/test_start_checks.py",
        ),
    ),
    "node": Area(
        ("_node/*.py", "_rollout/*.py", "_reconcile/*.py"), (UNIT + "_node", UNIT + "_rollout", UNIT + "_reconcile")
    ),
    "trial": Area(tuple("_trial/%s.py" % name for name in _TRIAL), (UNIT + "_trial",)),
    "topology": Area(("topology/*.py",), (UNIT + "topology",)),
    "containers": Area(("_containers/*.py",), (UNIT + "_containers", UNIT + "_cgroup/test_kubepods_qos.py")),
    "host": Area(("_host/*.py",), (UNIT + "_host",)),
    "base": Area(
        ("_base/*.py",),
        (
            UNIT + "_base",
            UNIT + "_rollout/test_rollout_journal.py",
            # The lock is held there.
            UNIT + "_housekeeping/test_housekeeping_journal_lock.py",
        ),
    ),
}


def candidates(
    checkout: Path, area: Area, excluded: set[tuple[str, str, str]]
) -> tuple[list[Mutant], dict[str, bytes]]:
    """Return the changes of an area, in order, but the excluded ones, which are taken out of that set; and the
    sources."""
    found = []
    sources = {}
    for pattern in area.files:
        for path in sorted((checkout / CODE).glob(pattern)):
            name = str(path.relative_to(checkout / CODE))
            sources[name] = path.read_bytes()
            for mutant in mutants(name, sources[name]):
                key = (name, *mutant.lines(sources[name]))
                if key in excluded:
                    excluded.discard(key)
                else:
                    found.append(mutant)
    return found, sources


def equivalent() -> set[tuple[str, str, str]]:
    """Return (file, line, what it becomes) of the changes that no test can notice."""
    entries = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or []
    for entry in entries:
        if set(entry) != {"file", "line", "becomes", "reason"} or not entry["reason"]:
            sys.exit("%s: an entry has file, line, becomes and reason: %r" % (EQUIVALENT, entry))
    return {(entry["file"], entry["line"], entry["becomes"]) for entry in entries}
