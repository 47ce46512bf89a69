# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is not as the journal wishes it, and who else is in the exclusive ways: as the modules and the pass see it."""

from __future__ import annotations

from typing import Any

from ...cache.resctrl import EXCLUSIVE_GROUP, UNMEASURED, Found, Group
from ...errors import CPUManagerError, Note
from ...quantity import counted_are
from ..node import Node
from ..places import CACHE
from .given import pool_of
from .journal import Journal, read_journal, shown_wish
from .planned import plan_of

LOST, DIFFERS, BY_RUNTIME = "cache-partition-lost", "cache-partition-differs", "cache-class-by-runtime"

_RUN = "run the role cache, or wait for the next pass of the role reconcile"
_MOUNT = "mount resctrl at boot (cache_mount: true), and run the role cache"
_APART = "ways for the exclusive CPUs"
_MOST_SHOWN = 5


def findings_of(
    node: Node, found: Found | None, is_mounted: bool, notes: list[str]
) -> tuple[dict[str, Any] | None, list[dict[str, str]]]:
    """The wish as options of cache_partition, None where there is none, and the findings.

    found: None where resctrl is not mounted, or cannot be read, of which there is a note already.
    """
    if found is not None:
        notes += [_by_runtime(group) for group in found.foreign if group.tasks]
    try:
        journal = read_journal(node.tree)
    except CPUManagerError as error:
        notes.append(Note(UNMEASURED, "the settings of the partition are unknown: %s" % error))
        return None, []
    if journal is None:
        return None, []
    finding = _finding(node, found, journal, notes) if found is not None or not is_mounted else None
    return shown_wish(journal.wish, journal.terms), [] if finding is None else [finding]


def _finding(node: Node, found: Found | None, journal: Journal, notes: list[str]) -> dict[str, str] | None:
    if found is None:
        lost = "no ways of the caches are set apart, as resctrl is not mounted"
        return _row(LOST, "resctrl", _APART, lost, _MOUNT)
    try:
        pool = pool_of(node, journal.wish, notes)
        target, steps, _journal = plan_of(node, found, journal.wish, pool, journal)
    except CPUManagerError as error:
        return _row(DIFFERS, "the settings in %s" % CACHE, "are possible", str(error), _RUN)
    notes += target.notes
    if not steps:
        return None
    if EXCLUSIVE_GROUP not in found.groups:
        return _row(LOST, EXCLUSIVE_GROUP, _APART, "there is no such group, as after a boot", _RUN)
    shown = "; ".join(map(str, steps[:_MOST_SHOWN]))
    more = " and %d more" % (len(steps) - _MOST_SHOWN) if len(steps) > _MOST_SHOWN else ""
    return _row(DIFFERS, "resctrl", "as by the settings and the checkpoint", "to write: %s%s" % (shown, more), _RUN)


def _row(check: str, subject: str, wanted: str, found: str, remedy: str) -> dict[str, str]:
    return {"check": check, "subject": subject, "wanted": wanted, "found": found, "remedy": remedy}


def _by_runtime(group: Group) -> str:
    text = "%s%s in the group %s of a different program: its ways apply to them, whatever CPUs they have"
    more = "more than " if group.has_more else ""
    return Note(BY_RUNTIME, text % (more, counted_are(len(group.tasks), "process"), group.name))
