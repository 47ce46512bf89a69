# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be written so that the host's work stays on the reserved CPUs. Pure."""

from __future__ import annotations

import re
from typing import Collection, Mapping, NamedTuple, Sequence

from .._base.errors import Note, RefusedError, option
from .._base.journal_file import HOUSEKEEPING, UNIT_DIRECTORY
from .._host.layers import (
    DEFAULT,
    FIXED,
    INTERRUPTS,
    IRQBALANCE,
    LIVE_LAYERS,
    MANAGER,
    PARTITION,
    RPS,
    SLICES,
    TUNED,
    KernelSetting,
    text_of,
    wanted_cpus,
)
from .._rollout.rollout_journal import NOT_OURS, SavedFile
from ..cpuset import CPUSet
from .at_boot import Change, change_after_boot, change_partition
from .housekeeping_journal import (
    BALANCE,
    LOAD,
    RELOAD,
    TUNE,
    HousekeepingJournal,
    HousekeepingWish,
    KeptFile,
    SavedValue,
    checksum,
    with_progress,
)
from .steps import (
    BOOT,
    DAEMON_RELOAD,
    FIXED_NOTE,
    FOREIGN_NOTE,
    RESTART_IRQBALANCE,
    TUNED_ADM,
    CommandStep,
    FileStep,
    FoundHost,
    HousekeepingPlan,
    Link,
    Step,
    ValueStep,
    WantedFile,
    WantedHost,
    cpus_in,
)

# What puts back what a housekeeping has changed. Pure.
#
# What somebody else has written since is never lost: a value of the kernel that reaches beyond the CPUs that we gave
# it, and a file that is not as we left it, stay; of a file that others share, only our own lines go.


# What new work of a layer starts with.
DEFAULTS = {INTERRUPTS: DEFAULT, RPS: "/proc/sys/net/core/rps_default_mask"}


class Back(NamedTuple):
    """What is to be done. widened: the cgroups get all CPUs before the files go; cgroups: and then what they had."""

    links: Sequence[Link]
    widened: Sequence[ValueStep]
    files: Sequence[FileStep]
    cgroups: Sequence[ValueStep]
    values: Sequence[ValueStep]
    notes: Sequence[str]


def take_back(
    found: FoundHost, journal: HousekeepingJournal, within: CPUSet, all_values: Mapping[str, SavedValue]
) -> Back:
    """Return what puts back all that the journal has. Raises RefusedError for what no housekeeping has written.

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


# The files that are written. Variables of irqbalance and of tuned may be elsewhere, and are known by what is there.
_WRITTEN = re.compile(
    r"/usr/local/lib/kubenode/[^/]+\.pyz|/etc/systemd/system\.conf\.d/50-kubenode-housekeeping\.conf"
    r"|%s/(kubenode-housekeeping[^/]*\.service|[^/-]+\.slice|[^/]+\.d/50-kubenode-housekeeping\.conf)"
    r"|/etc/(default|sysconfig)/irqbalance|/etc/default/grub(\.d/99-kubenode-housekeeping\.cfg)?|/etc/kernel/cmdline"
    % UNIT_DIRECTORY
)
_HOLDS = {IRQBALANCE: b"IRQBALANCE_BANNED_CPU", TUNED: b"isolated_cores"}


def check_put_back(path: str, kept: KeptFile, now: SavedFile, owner: tuple[int, int]) -> None:
    """Raise RefusedError for a file that no housekeeping writes, or that a journal gives to a further user or group."""
    is_known = _WRITTEN.fullmatch(path) or (kept.layer in _HOLDS and _HOLDS[kept.layer] in (now.content or b""))
    if not is_known or owner[0] not in (0, now.uid) or owner[1] not in (0, now.gid):
        raise RefusedError(
            "the journal would put it back as that of user %d and group %d, and no housekeeping does this" % owner,
            path,
            "look who wrote %s, move it away, and take back by hand what it was to" % HOUSEKEEPING,
            NOT_OURS,
        )


def _value_back(found: FoundHost, path: str, saved: SavedValue, within: CPUSet, notes: list[str]) -> list[ValueStep]:
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
    return [ValueStep(saved.layer, saved.name, path, text, saved.before, saved.form)]


def _since(
    found: FoundHost, values: Mapping[str, SavedValue], all_values: Mapping[str, SavedValue], within: CPUSet
) -> list[ValueStep]:
    """Return what has come since, and started with our CPUs: it gets what it would have started with."""
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
            steps.append(ValueStep(setting.layer, setting.name, setting.path, setting.text, after, setting.form))
    return [step for step in steps if step.before != step.after]


def is_foreign(kept: KeptFile | None, now: SavedFile) -> bool:
    """Return whether a file is neither as it was nor as we have made it."""
    if kept is None or now.content == kept.before.content:
        return False
    return now.content is None or checksum(now.content) not in kept.ours


def _file_back(path: str, kept: KeptFile, now: SavedFile, notes: list[str]) -> list[FileStep]:
    before = kept.before
    if now.content == before.content:
        return []
    if not is_foreign(kept, now):
        owner = None if before.content is None else (before.uid, before.gid)
        check_put_back(path, kept, now, owner or (0, 0))
        return [FileStep(kept.layer, path, now.content, before.content, before.mode, owner)]
    left = None if now.content is None else undone(kept, now.content)
    if left is None:
        what = "removed" if now.content is None else "changed"
        notes.append(Note(FOREIGN_NOTE, "%s: somebody else has %s it since; it stays so" % (path, what)))
        return []
    check_put_back(path, kept, now, (now.uid, now.gid))
    notes.append(Note(FOREIGN_NOTE, "%s: somebody else has changed it since; only what is ours was taken out" % path))
    return [FileStep(kept.layer, path, now.content, left, now.mode, (now.uid, now.gid))]


def undone(kept: KeptFile, now: bytes) -> bytes | None:
    """Return a file of others without our lines; None where these are not there any more, or not once."""
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


# The order in which a node is brought to what is wanted, or back. Pure.
#
# It never leaves work without a CPU: first what new work starts with and what moves work that is there, then the files
# of systemd, which it reads, and then the cgroups; what others read comes last, but for irqbalance. It is told before
# any interrupt is written, or it may move that by the CPUs that it knew. tuned comes before what is written beside it,
# and after the values of layers that it takes over, which would be put back over its own. Slices are narrowed after it
# and widened before it, as it can move no process to a CPU that its slice does not have. A partition comes last, as it
# takes CPUs away from all others, and ends first.


# Of which systemd has to read the files again.
_OF_SYSTEMD = (SLICES, MANAGER, PARTITION, BOOT)
# With that of tuned, the commands that have a place in this order; all others are run at the end.
_IN_PLACE = (DAEMON_RELOAD, RESTART_IRQBALANCE)


def commands_of(
    steps: Sequence[Step],
    more: Sequence[tuple[str, ...]],
    journal: HousekeepingJournal | None,
    apply: tuple[str, ...] = (),
    is_back: bool = False,
) -> list[tuple[str, ...]]:
    """Return what has to be run so that the files of these steps count, with what an interrupted run did not come to.

    more: the others, with those of the loader where they are pending. apply: as Wanted has it.
    """
    layers = {step.layer for step in steps if not isinstance(step, CommandStep)}
    pending = () if journal is None else journal.pending
    commands = []
    # Its profile may be another one by now.
    if apply and (TUNED in layers or TUNE in pending):
        commands.append(apply)
    if layers.intersection(_OF_SYSTEMD) or RELOAD in pending:
        commands.append(DAEMON_RELOAD)
    if IRQBALANCE in layers or BALANCE in pending:
        commands.append(RESTART_IRQBALANCE)
    # As ordered() has them.
    first = [DAEMON_RELOAD, RESTART_IRQBALANCE, apply] if is_back else [RESTART_IRQBALANCE, apply, DAEMON_RELOAD]
    wanted = dict.fromkeys([*commands, *more])
    return [*(words for words in first if words in wanted), *(words for words in wanted if words not in first)]


def names_of(commands: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return how the journal calls these commands."""
    names = {DAEMON_RELOAD: RELOAD, RESTART_IRQBALANCE: BALANCE}
    return tuple(dict.fromkeys(names.get(words, TUNE if is_of_tuned(words) else LOAD) for words in commands))


def is_of_tuned(words: Sequence[str]) -> bool:
    """Return whether a command has tuned apply its profile."""
    return words[0] == TUNED_ADM


def has_place(words: tuple[str, ...]) -> bool:
    """Return whether a command has a place in this order, and is not one of those that are run at the end."""
    return words in _IN_PLACE or is_of_tuned(words)


def ordered(
    back: Back,
    values: Sequence[ValueStep],
    files: Sequence[FileStep],
    links: Sequence[Link],
    commands: Sequence[tuple[str, ...]],
    change: Change,
    runs: bool,
    is_back: bool = False,
) -> list[Step]:
    """Return the steps in the order in which they are done.

    runs: whether slices are started and stopped here. is_back: whether all goes back, which ends with the interrupts.
    """
    every = [*back.files, *files]
    tune: list[Step] = [
        *(step for step in every if step.layer == TUNED),
        *(CommandStep(words) for words in commands if is_of_tuned(words)),
    ]
    given_over = back.values if tune and not is_back else ()
    balance: list[Step] = [
        *(step for step in every if step.layer == IRQBALANCE),
        *_run(commands, RESTART_IRQBALANCE),
    ]
    return [
        *change.off,
        *(CommandStep(words) for words in change.stop if runs),
        *back.links,
        *(() if is_back else [*balance, *given_over, *tune]),
        *back.widened,
        *(step for step in values if step.layer != SLICES),
        *(step for step in every if step.layer in _OF_SYSTEMD),
        *links,
        *_run(commands, DAEMON_RELOAD),
        *back.cgroups,
        *(step for step in values if step.layer == SLICES),
        *([*balance, *tune] if is_back else ()),
        *(step for step in every if step.layer not in (*_OF_SYSTEMD, IRQBALANCE, TUNED)),
        *(CommandStep(words) for words in commands if not has_place(words)),
        *(() if given_over else back.values),
        *(CommandStep(words) for words in change.start if runs),
        *change.on,
    ]


def _run(commands: Sequence[tuple[str, ...]], words: tuple[str, ...]) -> list[CommandStep]:
    return [CommandStep(words)] if words in commands else []


_MOST_NAMES = 8


def check_reserved(reserved: CPUSet, online: CPUSet) -> None:
    """Raise RefusedError unless the host keeps a CPU, and pods get one."""
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


def plan_present(found: FoundHost, wanted: WantedHost, journal: HousekeepingJournal | None) -> HousekeepingPlan:
    """Return what brings a node to what is wanted. Raises RefusedError for reserved CPUs that cannot be."""
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
    whole = HousekeepingJournal(
        wish,
        wish.reserved | (CPUSet() if journal is None else journal.within),
        found.boot_id,
        {**dropped.values, **kept_values},
        {**dropped.files, **kept_files},
        {**dropped.links, **kept_links},
        directories,
        names_of(commands) if wanted.runs else (),
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
    changed = bool(is_adopted) or any(not (isinstance(step, ValueStep) and step.was_refused) for step in steps)
    is_idle = journal is None and not steps
    return HousekeepingPlan(
        steps,
        whole if changed else None,
        None if is_idle else final if changed else journal,
        [place for place in directories if place not in kept_directories],
        [*notes, *back.notes, *change.notes],
        changed,
        [*change.stop, *commands, *change.start],
    )


def plan_values(found: FoundHost, journal: HousekeepingJournal, with_partition: bool = True) -> HousekeepingPlan:
    """Return what brings only the kernel's values back, after a boot; those of the settings that were found."""
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
    return HousekeepingPlan(steps, whole if changed else None, whole if changed else journal, (), notes, changed)


def plan_absent(
    found: FoundHost,
    journal: HousekeepingJournal,
    commands: Sequence[tuple[str, ...]] = (),
    runs: bool = False,
    apply: tuple[str, ...] = (),
) -> HousekeepingPlan:
    """Return what puts everything back. apply: as Wanted has it."""
    values = _of_this_boot(found, journal)
    taken = journal._replace(values=values)
    back = take_back(found, taken, journal.within, all_values=values)
    change = change_partition(found.places, journal.slices, None, found.online, runs)
    needed = commands_of([*back.files, *back.links], commands, journal, apply, is_back=True)
    steps = ordered(back, (), (), (), needed if runs else (), change, runs, is_back=True)
    pending = journal._replace(pending=names_of(needed) if runs else (), is_done=False)
    notes = [*back.notes, *change.notes]
    return HousekeepingPlan(steps, pending, None, journal.directories, notes, True, [*change.stop, *needed])


def fixed_notes(found: FoundHost, wish: HousekeepingWish) -> list[str]:
    """Return what stays on other CPUs, since the kernel lets nobody change it; one note for each layer."""
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


def _beyond(setting: KernelSetting, reserved: CPUSet, online: CPUSet) -> bool:
    cpus = setting.effective or setting.cpus
    return not cpus or bool((cpus & online) - reserved)


def is_chosen(setting: KernelSetting, wish: HousekeepingWish) -> bool:
    """Return whether a setting is one that is to be brought in line."""
    return setting.layer in wish.layers and not (setting.layer == SLICES and setting.name in wish.exclude_slices)


def _of_this_boot(found: FoundHost, journal: HousekeepingJournal | None) -> dict[str, SavedValue]:
    """Return the values of the journal that count: those that this boot began with, and of cgroups the first."""
    if journal is None:
        return {}
    is_same = journal.boot_id == found.boot_id
    return {path: saved for path, saved in journal.values.items() if is_same or saved.layer == SLICES}


def _slices_of(wish: HousekeepingWish) -> tuple[str, ...]:
    return () if wish.partition is None else (wish.partition.slice,)


def _refused(found: FoundHost, journal: HousekeepingJournal | None) -> Mapping[str, str]:
    return journal.refused if journal is not None and journal.boot_id == found.boot_id else {}


def _dropped(
    wish: HousekeepingWish,
    wanted: WantedHost,
    values: Mapping[str, SavedValue],
    files: Mapping[str, KeptFile],
    links: Mapping[str, str],
) -> HousekeepingJournal:
    """Return what was written before and is not wanted any more, as a journal of its own."""
    paths = {file.path for file in wanted.files}
    return HousekeepingJournal(
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


def _value_steps(
    found: FoundHost, wish: HousekeepingWish, values: Mapping[str, SavedValue], journal: HousekeepingJournal | None
) -> list[ValueStep]:
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
            ValueStep(
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
    found: FoundHost, wish: HousekeepingWish, values: Mapping[str, SavedValue], steps: Collection[ValueStep]
) -> dict[str, SavedValue]:
    """Return the values before, of all that are chosen: so it is known which came later.

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


def _file_step(file: WantedFile, found: FoundHost, kept: KeptFile | None, notes: list[str]) -> list[FileStep]:
    now = found.files[file.path]
    if file.is_as_wanted(now):
        return []
    is_lost = not file.edits and (is_foreign(kept, now) or (kept is None and now.content is not None))
    if is_lost and kept is not None:
        notes.append(
            Note(FOREIGN_NOTE, "%s: somebody else has changed it since; that content is kept beside it" % file.path)
        )
    is_kept = is_lost and kept is not None
    return [FileStep(file.layer, file.path, now.content, file.content, file.mode, file.owner, file.edits, is_kept)]


def _kept_file(file: WantedFile, found: FoundHost, kept: KeptFile | None) -> KeptFile | None:
    """Return what the journal is to hold of a file; None for one that others have made as it is to be."""
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
