# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a change that its journal notes: each phase, putting files back, and the end."""

from __future__ import annotations

import time
from typing import Any, Mapping, NamedTuple, Sequence

from .._base.errors import RefusedError
from .._base.journal_file import LAST, OPEN
from .._base.tree import Tree
from .rollout_journal import (
    CHANGED,
    CHANGING,
    DRAINING,
    STOPPING,
    FileBack,
    Judged,
    RolloutJournal,
    begin_writing,
    changed_files,
    ended_error,
    files_back,
    files_to_write,
    is_state,
    judged_journal,
    put_aside,
    read_journal,
    refuse_another_run,
    remove_journal,
    restore,
    save_files,
    write_journal,
)

JOURNALS = {"open": OPEN, "last": LAST}
# What a drain notes.
_OF_DRAIN = ("node", "cordoned", "taints")
ENDS = ("done", "undone", "taken_back", "absent")


class JournalStep(NamedTuple):
    """One step, with what it takes.

    read: changes nothing. taken: the change is from now on that of `run`. DRAINING begins a journal: the node is about
    to be cordoned. STOPPING: the kubelet is about to be stopped. CHANGING saves `files`, which are about to be changed,
    and removes those of `aside`. CHANGED: the kubelet runs well with them. restored: puts the saved files back. done
    ends the change, and keeps the journal as the last one, if one of `files` is not as it was saved. undone ends a
    rollback of the last change. taken_back ends a change that a rollback has taken back. absent forgets the change.
    """

    state: str
    # The name of the run; without it nothing is checked, for an operator.
    run: str = ""
    # Whether STOPPING may begin a change; False where DRAINING has begun it.
    begin: bool = True
    files: Sequence[str] | None = None
    # States of the kubelet's managers that go until the configuration is written.
    aside: Sequence[str] = ()
    overwrite_edited: bool = False
    backup_keep: int = 3
    facts: Mapping[str, Any] = {}
    # open: the journal of the change in progress; last: that of the last complete change, of which `files` go back.
    source: str = "open"
    # Whether, with taken_back and absent, it stays noted that the node is cordoned.
    keeps_drain: bool = False


class Noted(NamedTuple):
    """What a step has done. journal: afterwards. diff: [(path here, before, after)] of the files that were restored."""

    journal: RolloutJournal | None
    changed: bool = False
    restored: Sequence[str] = ()
    backup_files: Mapping[str, str] = {}
    notes: Sequence[str] = ()
    diff: Sequence[tuple[str, str, str]] = ()


def note(tree: Tree, step: JournalStep, check_mode: bool = False) -> Noted:
    """Do a step. Raises RefusedError where another run is at a change of this node, NodeError, InputError."""
    state, judged = step.state, judged_journal(tree)
    before = judged.journal
    if step.run:
        check_step(tree, before, step, check_mode)
    back = Noted(None)
    if state == "restored":
        back = restored(tree, before, step, check_mode)
        after = before
        if before is not None and before.phase in (CHANGING, CHANGED) and step.source == "open":
            after = RolloutJournal(STOPPING, {}, before.facts, before.run, before.written and {})
    elif state == "read":
        before = after = read_journal(tree, JOURNALS[step.source])
    elif state == "taken":
        # It was not at work all the time since it began.
        after = None if before is None else before._replace(run=step.run, began=None)
    elif state in ENDS:
        after = before if step.keeps_drain else None
    else:
        after = next_journal(tree, before, step)
    changed = after != before or bool(back.restored)
    if not check_mode:
        if state in ENDS:
            end(tree, judged, step)
        elif after is not None and after != before:
            write_journal(tree, after, OPEN, judged)
            put_aside(tree, step.aside if state == CHANGING else (), step.backup_keep)
    return back._replace(journal=after, changed=changed)


def restored(tree: Tree, before: RolloutJournal | None, step: JournalStep, check_mode: bool) -> Noted:
    """Take a change back; give what was done, and what that changes in the files.

    Raises RefusedError, before anything is written, for a file that others have changed since, where that is not kept.
    """
    source = journal_to_restore(tree, before, step)
    backs = {} if source is None else files_back(tree, source, overwrite=step.overwrite_edited)
    for back in backs.values():
        if back.problem is not None:
            raise back.problem
    paths = files_to_write(tree, backs)
    diff = [restored_difference(tree, path, backs[path]) for path in paths]
    backups = put_back(tree, source, backs, step) if source is not None and not check_mode else {}
    notes = [back.note for back in backs.values() if back.note]
    return Noted(None, bool(paths), paths, backups, notes, diff)


def put_back(tree: Tree, source: RolloutJournal, backs: Mapping[str, FileBack], step: JournalStep) -> dict[str, str]:
    """Make the files what they are to become; give the backups, as modules return them."""
    runtime = source.facts.get("runtime")
    files = runtime.get("files") if isinstance(runtime, dict) else None
    beside_journal = files if isinstance(files, list) else ()
    if step.source == "last":
        # If this run is interrupted, what it wrote is its own. As after each change, the old file stays beside the new.
        written = {path: backs[path].content for path in files_to_write(tree, backs)}
        begin_writing(tree, step.run, written, check_mode=False)
        backs = {path: back._replace(backup=back.backup or path not in beside_journal) for path, back in backs.items()}
    return restore(tree, backs, step.backup_keep, beside_journal)


def restored_difference(tree: Tree, path: str, back: FileBack) -> tuple[str, str, str]:
    """Return what putting a file back changes in it."""
    before, after = ((content or b"").decode("utf-8", "replace") for content in (back.found, back.content))
    return tree.path(path), before, after


def check_step(tree: Tree, journal: RolloutJournal | None, step: JournalStep, check_mode: bool) -> None:
    """Raise RefusedError where another run is at a change of this node, or has ended the one of this run."""
    state, source, run = step.state, step.source, step.run
    if state == "taken" or (state, source) == ("read", "last"):
        return
    refuse_another_run(tree, journal, run)
    # In check mode no step has written what the next one would find.
    if check_mode:
        return
    goes_on = state in (CHANGING, CHANGED, "done", "undone") or (state, source) == ("restored", "last")
    if journal is None and (goes_on or (state == STOPPING and not step.begin)):
        raise ended_error(tree, run)


def end(tree: Tree, judged: Judged, step: JournalStep) -> None:
    """Keep the journal of a change that came to its end, or forget it, and the one before it where that was undone.

    That a rollout was taken back stays: the next rollback does not go back further by itself.
    """
    state, journal = step.state, judged.journal
    if state == "done" and journal is not None:
        changed = changed_files(tree, journal)
        if not step.files or set(changed) & set(step.files):
            took = journal.took(time.time())
            ended = journal._replace(phase=CHANGING, written=left_by(tree, journal), began=None, drain_seconds=took)
            write_journal(tree, ended, LAST)
    if state == "taken_back" and journal is not None and "rollout" in journal.facts:
        before = read_journal(tree, LAST) or RolloutJournal(CHANGING, {}, {}, written={})
        write_journal(tree, before._replace(facts={**before.facts, "undone": journal.facts["rollout"]}), LAST)
    if step.keeps_drain and journal is not None:
        facts = {name: journal.facts[name] for name in _OF_DRAIN if name in journal.facts}
        write_journal(tree, RolloutJournal(DRAINING, {}, facts, journal.run), OPEN, judged)
    else:
        remove_journal(tree, OPEN, judged)
    if state == "undone":
        # After the open one: if that were left alone, nothing would lead back to what was before the last change.
        last = read_journal(tree, LAST)
        if last is not None and "rollout" in last.facts:
            took = None if journal is None else journal.took(time.time())
            undone = RolloutJournal(CHANGING, {}, {"undone": last.facts["rollout"]}, written={}, drain_seconds=took)
            write_journal(tree, undone, LAST)
        else:
            remove_journal(tree, LAST)


def left_by(tree: Tree, journal: RolloutJournal) -> dict[str, bytes | None]:
    """Return what the change has written, as its steps have noted it; of what they have not, what is there at its
    end."""
    written = dict(journal.written or {})
    for path, saved in journal.files.items():
        if path not in written and not is_state(path) and (content := tree.content(path)) != saved.content:
            written[path] = content
    return {path: content for path, content in written.items() if not is_state(path)}


def next_journal(tree: Tree, before: RolloutJournal | None, step: JournalStep) -> RolloutJournal:
    """Return the journal of the next phase. Raises RefusedError where another change is under way."""
    phase, facts = step.state, step.facts
    if phase == DRAINING:
        if before is not None and before.run == step.run != "":
            # This run has taken it over: what it has found out first was before all changes.
            return before._replace(facts={**facts, **before.facts})
        if before is not None and (before.phase, before.facts) != (DRAINING, facts):
            raise RefusedError(
                "a change of this node was begun and did not come to its end",
                tree.path(OPEN),
                "run the role kubelet, which takes it back first",
                "open_journal",
            )
        began = int(time.time()) if before is None else before.began
        return RolloutJournal(DRAINING, {}, facts, step.run, began=began)
    noted = before.facts if before is not None else {}
    if phase == CHANGED and before is not None:
        return before._replace(phase=CHANGED)
    if phase == CHANGING and before is not None and before.phase == CHANGING:
        # Saved already: what is there now may be half of the change.
        return before
    files = save_files(tree, step.files or ()) if phase == CHANGING else {}
    # Without a name nobody notes what it writes.
    written = dict.fromkeys(step.aside) if step.run else None
    began = None if before is None else before.began
    return RolloutJournal(phase, files, {**noted, **facts}, step.run, written, began)


def journal_to_restore(tree: Tree, before: RolloutJournal | None, step: JournalStep) -> RolloutJournal | None:
    """Return the journal whose files are to be put back. Raises RefusedError where the last one lacks some of them."""
    if step.source == "open":
        # Without names all of them: a change that is taken back leaves none out.
        files = step.files
        return before if files is None else _with_files(before, files, tree.path(OPEN))
    return _with_files(read_journal(tree, LAST), step.files or (), tree.path(LAST))


def _with_files(journal: RolloutJournal | None, paths: Sequence[str], where: str) -> RolloutJournal | None:
    """Return the journal with these of its files. Raises RefusedError where it lacks some."""
    if journal is None:
        return None
    missing = sorted(set(paths) - set(journal.files))
    if missing:
        raise RefusedError("the change did not save %s" % ", ".join(missing), where)
    return journal._replace(files={path: journal.files[path] for path in paths})
