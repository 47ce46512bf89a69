# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be written so that the host's work stays on the reserved CPUs. Pure.

The order of the steps is in order.py.
"""

from __future__ import annotations

from typing import Collection, Mapping, Sequence

from ...cpuset import CPUSet
from ...errors import Note, RefusedError, option
from ...host.layers import (
    FIXED,
    INTERRUPTS,
    LIVE_LAYERS,
    RPS,
    SLICES,
    Setting,
    text_of,
    wanted_cpus,
)
from ..change.journal import SavedFile
from .back import DEFAULTS, is_foreign, take_back, undone
from .journal import Journal, KeptFile, SavedValue, Wish, checksum, with_progress
from .order import commands_of, ordered
from .partition import Change, change_after_boot, change_partition
from .steps import (
    BOOT,
    FIXED_NOTE,
    FOREIGN_NOTE,
    File,
    Found,
    Link,
    Plan,
    Step,
    Value,
    Wanted,
    WantedFile,
)

_MOST_NAMES = 8


def check_reserved(reserved: CPUSet, online: CPUSet) -> None:
    """Raises RefusedError unless the host keeps a CPU, and pods get one."""
    where = option("reserved_system_cpus")
    if not reserved & online:
        raise RefusedError(
            "of the reserved CPUs %s none is online; nothing was written" % (reserved or "(none)"),
            where=where,
            remedy="reserve some of the online CPUs %s" % online,
        )
    if not online - reserved:
        raise RefusedError(
            "the reserved CPUs %s are all that are online, and leave none for pods; nothing was written" % reserved,
            where=where,
            remedy="reserve fewer",
        )


def plan_present(found: Found, wanted: Wanted, journal: Journal | None) -> Plan:
    """What brings a node to what is wanted. Raises RefusedError for reserved CPUs that cannot be."""
    wish = wanted.wish
    check_reserved(wish.reserved, found.online)
    notes = fixed_notes(found, wish)
    values = _of_this_boot(found, journal)
    files = {} if journal is None else dict(journal.files)
    links = {} if journal is None else dict(journal.links)

    dropped = _dropped(wish, wanted, values, files, links)
    back = take_back(found, dropped, CPUSet() if journal is None else journal.within, all_values=values)
    value_steps = _value_steps(found, wish, values, journal)
    file_steps = [step for file in wanted.files for step in _file_step(file, found, files.get(file.path), notes)]
    link_steps = [
        Link(BOOT, path, target, is_made=True) for path, target in wanted.links.items() if found.links.get(path) is None
    ]
    made = () if journal is None else journal.slices
    change = change_partition(found.places, made, wish.partition, found.online, wanted.runs)
    written: list[Step] = [*back.files, *file_steps, *link_steps, *back.links]
    commands = commands_of(written, wanted.commands, journal, wanted.apply)
    steps = ordered(back, value_steps, file_steps, link_steps, commands if wanted.runs else (), change, wanted.runs)
    kept_values = _kept_values(found, wish, values, value_steps)
    kept_files = {}
    for file in wanted.files:
        kept = _kept_file(file, found, files.get(file.path))
        if kept is not None:
            kept_files[file.path] = kept
    new_links = {step.path: step.target for step in link_steps}
    kept_links = {path: target for path, target in {**links, **new_links}.items() if path in wanted.links}
    directories = tuple(dict.fromkeys([*(() if journal is None else journal.directories), *found.missing]))
    inside = [*kept_files, *kept_links]
    kept_directories = tuple(place for place in directories if any(path.startswith(place + "/") for path in inside))
    whole = Journal(
        wish,
        wish.reserved | (CPUSet() if journal is None else journal.within),
        found.boot_id,
        {**dropped.values, **kept_values},
        {**dropped.files, **kept_files},
        {**dropped.links, **kept_links},
        directories,
        tuple(commands) if wanted.runs else (),
        _refused(found, journal),
        slices=tuple(dict.fromkeys([*made, *_slices_of(wish)])),
    )
    final = with_progress(
        whole._replace(
            values=kept_values,
            files=kept_files,
            links=kept_links,
            directories=kept_directories,
            slices=_slices_of(wish),
        ),
        whole.refused,
    )
    is_adopted = journal is not None and (
        not journal.is_done or journal.wish != wish or kept_files.keys() != journal.files.keys()
    )
    changed = bool(is_adopted) or any(not (isinstance(step, Value) and step.was_refused) for step in steps)
    is_idle = journal is None and not steps
    return Plan(
        steps,
        whole if changed else None,
        None if is_idle else final if changed else journal,
        [place for place in directories if place not in kept_directories],
        [*notes, *back.notes, *change.notes],
        changed,
        [*change.stop, *commands, *change.start],
    )


def plan_values(found: Found, journal: Journal, with_partition: bool = True) -> Plan:
    """What brings only the kernel's values back, after a boot; those of the settings that were found."""
    wish = journal.wish
    check_reserved(wish.reserved, found.online)
    values = _of_this_boot(found, journal)
    change = Change()
    if wish.partition is not None and with_partition:
        change = change_after_boot(found.places[wish.partition.slice], wish.partition)
    own_steps = _value_steps(found, wish, values, journal)
    steps = [*change.off, *own_steps, *change.on]
    changed = any(not step.was_refused for step in steps)
    whole = journal._replace(
        boot_id=found.boot_id,
        values=_kept_values(found, wish, values, own_steps),
        refused=_refused(found, journal),
    )
    notes = [*fixed_notes(found, wish), *change.notes]
    return Plan(steps, whole if changed else None, whole if changed else journal, (), notes, changed)


def plan_absent(
    found: Found,
    journal: Journal,
    commands: Sequence[tuple[str, ...]] = (),
    runs: bool = False,
    apply: tuple[str, ...] = (),
) -> Plan:
    """What puts everything back. apply: as Wanted has it."""
    values = _of_this_boot(found, journal)
    taken = journal._replace(values=values)
    back = take_back(found, taken, journal.within, all_values=values)
    change = change_partition(found.places, journal.slices, None, found.online, runs)
    needed = commands_of([*back.files, *back.links], commands, journal, apply, is_back=True)
    steps = ordered(back, (), (), (), needed if runs else (), change, runs, is_back=True)
    pending = journal._replace(pending=tuple(needed) if runs else (), is_done=False)
    notes = [*back.notes, *change.notes]
    return Plan(steps, pending, None, journal.directories, notes, True, [*change.stop, *needed])


def fixed_notes(found: Found, wish: Wish) -> list[str]:
    """What stays on other CPUs, since the kernel lets nobody change it; one note for each layer."""
    notes: list[str] = []
    for layer in LIVE_LAYERS:
        names = [
            setting.name
            for setting in found.settings
            if setting.layer == layer and layer in wish.layers and setting.problem == FIXED
            if _beyond(setting, wish.reserved, found.online)
        ]
        if names:
            shown = ", ".join(names[:_MOST_NAMES])
            rest = len(names) - _MOST_NAMES
            more = " and %d more" % rest if rest > 0 else ""
            notes.append(
                Note(FIXED_NOTE, "%s: the kernel lets nobody move %s%s, which may run elsewhere" % (layer, shown, more))
            )
    return notes


def _beyond(setting: Setting, reserved: CPUSet, online: CPUSet) -> bool:
    cpus = setting.effective or setting.cpus
    return not cpus or bool((cpus & online) - reserved)


def is_chosen(setting: Setting, wish: Wish) -> bool:
    """Whether a setting is one that is to be brought in line."""
    return setting.layer in wish.layers and not (setting.layer == SLICES and setting.name in wish.exclude_slices)


def _of_this_boot(found: Found, journal: Journal | None) -> dict[str, SavedValue]:
    """The values of the journal that count: those that this boot began with, and of cgroups the first."""
    if journal is None:
        return {}
    is_same = journal.boot_id == found.boot_id
    return {path: saved for path, saved in journal.values.items() if is_same or saved.layer == SLICES}


def _slices_of(wish: Wish) -> tuple[str, ...]:
    return () if wish.partition is None else (wish.partition.slice,)


def _refused(found: Found, journal: Journal | None) -> Mapping[str, str]:
    return journal.refused if journal is not None and journal.boot_id == found.boot_id else {}


def _dropped(
    wish: Wish,
    wanted: Wanted,
    values: Mapping[str, SavedValue],
    files: Mapping[str, KeptFile],
    links: Mapping[str, str],
) -> Journal:
    """What was written before and is not wanted any more, as a journal of its own."""
    paths = {file.path for file in wanted.files}
    return Journal(
        wish,
        wish.reserved,
        "",
        {
            path: saved
            for path, saved in values.items()
            if saved.layer not in wish.layers or (saved.layer == SLICES and saved.name in wish.exclude_slices)
        },
        {path: file for path, file in files.items() if path not in paths},
        {path: target for path, target in links.items() if path not in wanted.links},
        (),
        (),
        {},
    )


def _value_steps(found: Found, wish: Wish, values: Mapping[str, SavedValue], journal: Journal | None) -> list[Value]:
    kept = wish.reserved & found.online
    refused = _refused(found, journal)
    # What was written for other reserved CPUs may be within these, and is to follow them all the same.
    is_same = journal is not None and journal.is_done and journal.within == journal.wish.reserved == wish.reserved
    moves = journal is not None and not is_same
    steps = []
    for setting in sorted(found.settings, key=lambda setting: LIVE_LAYERS.index(setting.layer)):
        if setting.problem or not is_chosen(setting, wish):
            continue
        cpus = wanted_cpus(setting, wish.reserved, found.online)
        saved = values.get(setting.path)
        if cpus is None and moves and saved is not None and saved.is_ours and setting.cpus:
            cpus = kept
        if cpus is None or cpus == setting.cpus or setting.path in found.no_file:
            continue
        steps.append(
            Value(
                setting.layer,
                setting.name,
                setting.path,
                setting.text,
                text_of(setting, cpus),
                setting.form,
                setting.path in refused,
            )
        )
    return steps


def _kept_values(
    found: Found, wish: Wish, values: Mapping[str, SavedValue], steps: Collection[Value]
) -> dict[str, SavedValue]:
    """The values before, of all that are chosen: so it is known which came later.

    What has come since, and took what new work starts with, has had no other value: it is left out.
    """
    written = {step.path for step in steps}
    kept = {
        path: saved
        for path, saved in values.items()
        if saved.layer in wish.layers and not (saved.layer == SLICES and saved.name in wish.exclude_slices)
    }
    for setting in found.settings:
        path, layer = setting.path, setting.layer
        if setting.problem or not is_chosen(setting, wish):
            continue
        saved = values.get(path)
        if saved is not None and saved.is_ours and (saved.name == setting.name or layer != INTERRUPTS):
            continue
        kept.pop(path, None)
        default = values.get(DEFAULTS.get(layer, ""))
        follows = layer in (INTERRUPTS, RPS) and default is not None and default.is_ours and saved is None
        is_by_file = path in found.no_file and wanted_cpus(setting, wish.reserved, found.online) is not None
        is_ours = path in written or is_by_file
        if is_ours or not (follows and setting.cpus):
            kept[path] = SavedValue(layer, setting.name, setting.form, setting.text, is_ours)
    return kept


def _file_step(file: WantedFile, found: Found, kept: KeptFile | None, notes: list[str]) -> list[File]:
    now = found.files[file.path]
    if file.is_as_wanted(now):
        return []
    is_lost = not file.edits and (is_foreign(kept, now) or (kept is None and now.content is not None))
    if is_lost and kept is not None:
        notes.append(
            Note(FOREIGN_NOTE, "%s: somebody else has changed it since; that content is kept beside it" % file.path)
        )
    is_kept = is_lost and kept is not None
    return [File(file.layer, file.path, now.content, file.content, file.mode, file.owner, file.edits, is_kept)]


def _kept_file(file: WantedFile, found: Found, kept: KeptFile | None) -> KeptFile | None:
    """What the journal is to hold of a file; None for one that others have made as it is to be."""
    now = found.files[file.path]
    if kept is None and file.edits and now.content == file.content:
        return None
    before = now if kept is None else kept.before
    if kept is None and now.content == file.content:
        # Its name is ours, so it was left by a run whose journal is gone.
        before = SavedFile(None)
    if kept is not None and file.edits and is_foreign(kept, now) and now.content is not None:
        # What others have changed in it since is to stay when our lines go.
        base = undone(kept, now.content)
        before = now._replace(content=now.content if base is None else base)
    ours = tuple(dict.fromkeys([*(() if kept is None else kept.ours), checksum(file.content)]))
    ours = (*(mark for mark in ours if mark != checksum(file.content)), checksum(file.content))
    return KeptFile(file.layer, before, ours, file.content if before.content is not None else None)
