# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saves the files of a change in its journal, puts them back, and replaces the journal."""

from __future__ import annotations

import base64
import os
import stat
from contextlib import contextmanager, suppress
from typing import Collection, Iterator, Mapping, NamedTuple, Sequence

from ...errors import InputError, NodeError, RefusedError
from ...files import keep_copy, remedy_for, remove_file, remove_old_backups, replace_file
from ...locking import PATIENCE, take_lock
from ...tree import OverlaidTree, Tree
from ..places import DIRECTORY, OPEN
from .journal import CHANGING, Journal, SavedFile, journal_file, journal_of
from .taking_back import FileBack, is_state


def save_files(tree: Tree, paths: Sequence[str]) -> dict[str, SavedFile]:
    """The files as they are now, by path.

    Raises InputError for a path that is not absolute, NodeError for what is there and cannot be saved.
    """
    files = {}
    for path in paths:
        if not os.path.isabs(path):
            raise InputError("%r is not an absolute path on the node" % path, where="files", remedy="begin it with a /")
        files[path] = _save(tree, path) if tree.exists(path, follow=False) else SavedFile(None)
    return files


def _save(tree: Tree, path: str) -> SavedFile:
    here = tree.path(path)
    try:
        status = os.stat(here)
    except FileNotFoundError as error:
        raise NodeError(
            "is a link to nothing, %s, and cannot be saved; nothing was changed" % os.path.realpath(here),
            where=here,
            remedy="remove the link, or make the file that it leads to, and run again",
        ) from error
    except OSError as error:
        raise NodeError(
            "cannot be saved: %s; nothing was changed" % error.strerror, where=here, remedy=remedy_for(error)
        ) from error
    return SavedFile(tree.read_bytes(path), stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid)


class Judged(NamedTuple):
    """A journal as it was read, and the file's content: it is replaced only as long as it still is that."""

    journal: Journal | None
    content: bytes | None


def judged_journal(tree: Tree, path: str = OPEN) -> Judged:
    """The journal at OPEN or LAST, to be decided about. Raises NodeError for a damaged one."""
    content = tree.content(path)
    return Judged(None if content is None else journal_file(path).parsed(tree, content, journal_of), content)


def write_journal(tree: Tree, journal: Journal, path: str = OPEN, judged: Judged | None = None) -> None:
    """Put the journal on the node, in place of the one that was judged; by default, of the one that is there.

    Raises NodeError, and RefusedError where another run has changed it since.
    """
    data = {
        "phase": journal.phase,
        "facts": dict(journal.facts),
        "run": journal.run,
        "files": {
            path: None if saved.content is None else {**saved._asdict(), "content": _encoded(saved.content)}
            for path, saved in journal.files.items()
        },
    }
    if journal.written is not None:
        data["written"] = {path: _encoded(content) for path, content in journal.written.items()}
    file = journal_file(path)
    old = (judged or judged_journal(tree, path)).content
    with _held(tree, path, old):
        file.replace(tree, file.text_of(data), old)


def _encoded(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


def remove_journal(tree: Tree, path: str = OPEN, judged: Judged | None = None) -> None:
    """Take the journal away, as far as it is the one that was judged. Raises as write_journal()."""
    old = tree.content(path) if judged is None else judged.content
    if old is not None:
        with _held(tree, path, old):
            remove_file(tree.path(path), old, backup=False)


@contextmanager
def _held(tree: Tree, path: str, content: bytes | None) -> Iterator[None]:
    """Keep other runs from replacing the journal between the last look at it and its end.

    The file itself is locked, which root alone can open: whoever replaces it holds its lock. A first one is made
    exclusively. Raises NodeError where another run holds it for long.
    """
    descriptor = None
    if content is not None:
        with suppress(OSError):  # it has just gone, which replacing it finds
            descriptor = os.open(tree.path(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if descriptor is not None:
            take_lock(descriptor, tree.path(path), exclusive=True, patience=PATIENCE)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def changed_files(tree: Tree, journal: Journal) -> list[str]:
    """The paths of the files that are no longer as the journal has them, in its order."""
    return [path for path, saved in journal.files.items() if save_files(tree, [path])[path] != saved]


def files_to_write(tree: Tree, backs: Mapping[str, FileBack]) -> list[str]:
    """The paths of the files that are not as they will be once the change is taken back."""
    return [path for path, back in backs.items() if back.found != back.content or _has_other_owner(tree, path, back)]


def _has_other_owner(tree: Tree, path: str, back: FileBack) -> bool:
    is_left = back.keeps_mode or back.content is None or back.content != back.saved.content
    return not is_left and save_files(tree, [path])[path] != back.saved


def restore(tree: Tree, backs: Mapping[str, FileBack], keep: int, elsewhere: Collection[str] = ()) -> dict[str, str]:
    """Make each file what it is to become; give the paths of the backups by those of the files.

    keep: how many backups of a file stay; 0: all. elsewhere: files beside which no other may be, as their program would
    read it, so that their backups are beside the journal.

    At no moment the configuration and the states of the kubelet's managers are of different times: a kubelet that finds
    no state writes one that goes with its configuration. Raises NodeError or RefusedError; what is back by then stays
    so, and it can be called again.
    """
    paths = files_to_write(tree, backs)
    states = [path for path in paths if is_state(path)]
    configuration = [path for path in paths if path not in states]
    writer = _Writer(tree, backs, keep, elsewhere)
    if configuration:
        for path in states:
            if backs[path].found is not None and not os.path.islink(tree.path(path)):
                writer.make(path, None)
    for path in [*configuration, *states]:
        writer.make(path, backs[path].content)
    return writer.backups


class _Writer:
    def __init__(self, tree: Tree, backs: Mapping[str, FileBack], keep: int, elsewhere: Collection[str]) -> None:
        self._tree, self._backs, self._keep, self._elsewhere = tree, backs, keep, elsewhere
        self.backups: dict[str, str] = {}

    def make(self, path: str, content: bytes | None) -> None:
        back, here, before = self._backs[path], self._tree.path(path), self._tree.content(path)
        if before != back.found and before is not None:
            raise RefusedError("was changed while it was worked on; nothing was written", here, "run again")
        wants_backup = back.backup and before is not None
        if wants_backup and path in self._elsewhere:
            self.backups[path] = keep_copy(self._tree.path(DIRECTORY), here, before or b"")
        beside = wants_backup and path not in self._elsewhere
        made = None
        if content is not None:
            if not os.path.isdir(os.path.dirname(here)):
                raise RefusedError("its directory is gone", where=here, remedy="make it again and run again")
            keeps_mode = back.keeps_mode and before is not None
            owner = None if keeps_mode else (back.saved.uid, back.saved.gid)
            made = replace_file(here, content, back.saved.mode, before, beside, keeps_mode, owner)
        elif before is not None:
            made = remove_file(here, before, beside)
        if made is not None:
            self.backups[path] = made
            remove_old_backups(made, self._keep)


def put_aside(tree: Tree, paths: Sequence[str], keep: int) -> None:
    """Remove states of the kubelet's managers until the configuration is written, with which they are judged again.

    Each gets a backup, of which the newest `keep` stay. A link stays. Raises NodeError or RefusedError.
    """
    for path in paths:
        here, content = tree.path(path), tree.content(path)
        if content is not None and not os.path.islink(here):
            remove_old_backups(remove_file(here, content) or "", keep)


def with_what_is_aside(tree: Tree, run: str) -> Tree:
    """The node with the states that the change of this run has put aside, as they were. Raises NodeError."""
    journal = judged_journal(tree).journal if run else None
    if journal is None or journal.run != run or journal.phase != CHANGING:
        return tree
    aside = {
        path: journal.files[path].content
        for path, content in (journal.written or {}).items()
        if content is None and is_state(path) and path in journal.files and not tree.exists(path, follow=False)
    }
    return OverlaidTree(tree, aside) if aside else tree
