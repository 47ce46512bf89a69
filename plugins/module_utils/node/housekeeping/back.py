# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What puts back what a housekeeping has changed. Pure.

What somebody else has written since is never lost: a value of the kernel that reaches beyond the CPUs that we gave it,
and a file that is not as we left it, stay; of a file that others share, only our own lines go.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from ...cpuset import CPUSet
from ...errors import Note
from ...host.interrupts import DEFAULT
from ...host.layers import INTERRUPTS, LIVE_LAYERS, RPS, SLICES, text_of
from ..change.journal import SavedFile
from .journal import Journal, KeptFile, SavedValue, checksum
from .steps import BOOT, FOREIGN_NOTE, File, Found, Link, Value, cpus_in

# What new work of a layer starts with.
DEFAULTS = {INTERRUPTS: DEFAULT, RPS: "/proc/sys/net/core/rps_default_mask"}


class Back(NamedTuple):
    """What is to be done. widened: the cgroups get all CPUs before the files go; cgroups: and then what they had."""

    links: Sequence[Link]
    widened: Sequence[Value]
    files: Sequence[File]
    cgroups: Sequence[Value]
    values: Sequence[Value]
    notes: Sequence[str]


def take_back(found: Found, journal: Journal, within: CPUSet, all_values: Mapping[str, SavedValue]) -> Back:
    """What puts back all that the journal has.

    within: the CPUs that everything was given. all_values: also of what is not to be put back.
    """
    notes: list[str] = []
    order = sorted(journal.values.items(), key=lambda item: (-LIVE_LAYERS.index(item[1].layer), item[0]))
    values = [step for path, saved in order for step in _value_back(found, path, saved, within, notes)]
    cgroups = [step for step in values if step.layer == SLICES]
    full = str(found.online)
    return Back(
        [
            Link(BOOT, path, target, is_made=False)
            for path, target in journal.links.items()
            if found.links.get(path) == target
        ],
        [step._replace(after=full) for step in cgroups if step.before != full],
        [step for path, file in journal.files.items() for step in _file_back(path, file, found.files[path], notes)],
        [step._replace(before=full) for step in cgroups if step.after != full],
        [
            *(step for step in values if step.layer != SLICES),
            *_since(found, journal.values, all_values, within),
        ],
        notes,
    )


def _value_back(found: Found, path: str, saved: SavedValue, within: CPUSet, notes: list[str]) -> list[Value]:
    text = found.texts.get(path)
    # What is gone, as an interrupt whose device was removed, needs nothing.
    if not saved.is_ours or text is None or text == saved.before:
        return []
    cpus = cpus_in(text, saved.form)
    # Others, such as irqbalance, choose among the CPUs that we have given.
    is_ours = cpus is not None and (cpus <= within or (saved.layer == SLICES and cpus == found.online))
    if not is_ours:
        notes.append(
            Note(
                FOREIGN_NOTE,
                "%s: somebody else has set it to %s since, where it stays; it was %s before"
                % (path, text or "nothing", saved.before or "nothing"),
            )
        )
        return []
    return [Value(saved.layer, saved.name, path, text, saved.before, saved.form)]


def _since(
    found: Found, values: Mapping[str, SavedValue], all_values: Mapping[str, SavedValue], within: CPUSet
) -> list[Value]:
    """What has come since, and started with our CPUs: it gets what it would have started with."""
    steps = []
    for setting in found.settings:
        default = values.get(DEFAULTS.get(setting.layer, ""))
        if default is None or not default.is_ours or setting.problem:
            continue
        saved = all_values.get(setting.path)
        is_new = saved is None or (setting.layer == INTERRUPTS and saved.name != setting.name)
        cpus = cpus_in(default.before, default.form)
        if is_new and cpus and setting.cpus and setting.cpus <= within:
            after = text_of(setting, cpus)
            steps.append(Value(setting.layer, setting.name, setting.path, setting.text, after, setting.form))
    return [step for step in steps if step.before != step.after]


def is_foreign(kept: KeptFile | None, now: SavedFile) -> bool:
    """Whether a file is neither as it was nor as we have made it."""
    if kept is None or now.content == kept.before.content:
        return False
    return now.content is None or checksum(now.content) not in kept.ours


def _file_back(path: str, kept: KeptFile, now: SavedFile, notes: list[str]) -> list[File]:
    before = kept.before
    if now.content == before.content:
        return []
    if not is_foreign(kept, now):
        owner = None if before.content is None else (before.uid, before.gid)
        return [File(kept.layer, path, now.content, before.content, before.mode, owner)]
    left = None if now.content is None else undone(kept, now.content)
    if left is None:
        what = "removed" if now.content is None else "changed"
        notes.append(Note(FOREIGN_NOTE, "%s: somebody else has %s it since; it stays so" % (path, what)))
        return []
    notes.append(Note(FOREIGN_NOTE, "%s: somebody else has changed it since; only what is ours was taken out" % path))
    return [File(kept.layer, path, now.content, left, now.mode, (now.uid, now.gid))]


def undone(kept: KeptFile, now: bytes) -> bytes | None:
    """A file of others without our lines; None where these are not there any more, or not once."""
    if kept.before.content is None or kept.last is None:
        return None
    before, last = kept.before.content.splitlines(keepends=True), kept.last.splitlines(keepends=True)
    start = 0
    while start < min(len(before), len(last)) and before[start] == last[start]:
        start += 1
    end = 0
    while end < min(len(before), len(last)) - start and before[-1 - end] == last[-1 - end]:
        end += 1
    ours = last[start : len(last) - end]
    lines = now.splitlines(keepends=True)
    places = [at for at in range(len(lines) - len(ours) + 1) if ours and lines[at : at + len(ours)] == ours]
    if len(places) != 1:
        return None
    theirs, rest = before[start : len(before) - end], lines[places[0] + len(ours) :]
    if theirs and rest and not theirs[-1].endswith(b"\n"):
        # It was the last line, and is not any more.
        theirs[-1] += b"\n"
    return b"".join([*lines[: places[0]], *theirs, *rest])
