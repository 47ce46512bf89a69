# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of each file of a change that is taken back, where others may have written to it since. Pure.

What is there as the change wrote it, or damaged states of the kubelet's managers, goes for what was saved. What others
have written stays: only what the change made of the file is undone in it. Where that cannot be done, it is refused, and
where that is allowed, what is there is kept as a backup. So nothing that others wrote is lost.
"""

from __future__ import annotations

import posixpath
from itertools import takewhile
from typing import Any, Collection, Iterator, Mapping, NamedTuple

from ...errors import CPUManagerError, NodeError, Note, RefusedError, option
from ...tree import Tree
from .journal import Journal, SavedFile

# The states of the kubelet's managers: the kubelet writes them, too.
STATES = frozenset(("cpu_manager_state", "memory_manager_state"))


class FileBack(NamedTuple):
    """One file: what is there, what will be there (None: no file), and what is said of it."""

    found: bytes | None
    content: bytes | None
    saved: SavedFile
    # Whether mode and owner stay as they are where the file is there.
    keeps_mode: bool
    # Whether somebody else may have written what is replaced.
    backup: bool = False
    # What others wrote is kept in it; empty otherwise.
    note: str = ""
    problem: CPUManagerError | None = None


def files_back(
    tree: Tree, journal: Journal, paths: Collection[str] | None = None, overwrite: bool = False
) -> dict[str, FileBack]:
    """{path: what becomes of it}, of these files, or of all that the change saved, in its order.

    overwrite: whether what others wrote may be replaced as a whole. Raises NodeError for what cannot be read.
    """
    return {path: _file_back(tree, journal, path, overwrite) for path in (journal.files if paths is None else paths)}


def is_state(path: str) -> bool:
    """Whether this is the state of one of the kubelet's managers."""
    return posixpath.basename(path) in STATES


def _file_back(tree: Tree, journal: Journal, path: str, overwrite: bool) -> FileBack:
    saved, found, written = journal.files[path], tree.content(path), journal.written
    back = FileBack(found, saved.content, saved, written is not None and not is_state(path))
    is_ours = written is not None and path in written and written[path] == found
    if found is None or found == saved.content or is_ours:
        return back
    if written is None:
        what = "it is not known what the change wrote there: it is replaced as a whole"
        return back._replace(backup=True, note=_said(tree.path(path), what))
    if is_state(path):
        return back._replace(backup=True)
    if path not in written:
        # The change has left it alone, and so does who takes it back.
        return back._replace(content=found)
    return _edited(tree.path(path), back, written[path], found, overwrite)


def _edited(here: str, back: FileBack, written: bytes | None, found: bytes, overwrite: bool) -> FileBack:
    """The same for a file of the change that others have changed since."""
    others = "others have changed it since the change wrote it: "
    try:
        undone = _without(back.content, written, found, here)
    except CPUManagerError as error:
        if overwrite:
            return back._replace(backup=True, note=_said(here, others + "it is replaced as a whole"))
        return back._replace(problem=_refusal(here, written, found, error))
    note = _said(here, others + "only what the change made of it is taken back")
    return back._replace(content=undone, backup=undone != found, note=note)


def _said(here: str, what: str) -> str:
    return Note("change-interrupted", "%s: %s, and what is there is kept as a backup" % (here, what))


def _without(saved: bytes | None, written: bytes | None, found: bytes, source: str) -> bytes:
    """The kubelet's configuration as found, with what the change made of it put back to what it was before.

    Raises CPUManagerError for what is no such configuration, or cannot be edited.
    """
    # Imported here: hardly any node needs it.
    from ...kubelet.file.configuration import KubeletConfiguration
    from ...kubelet.file.values import REMOVE, same

    def parse(content: bytes | None) -> KubeletConfiguration:
        if content is None:
            raise NodeError("the change has removed it")
        try:
            return KubeletConfiguration.parse(content.decode("utf-8"), source)
        except UnicodeDecodeError as error:
            raise NodeError("it is not UTF-8 text (byte %d)" % error.start) from error

    now, own = parse(found), dict(_leaves(parse(written).values))
    before = {path: value for path, value in own.items() if path[0] in ("apiVersion", "kind")}
    if saved is not None:
        before = dict(_leaves(parse(saved).values))
    changes = {
        path: before.get(path, REMOVE)
        for path in {**own, **before}
        if path not in own or path not in before or not same(own[path], before[path])
    }
    return now.with_changes(changes).text.encode("utf-8")


def _leaves(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Each value that is no mapping with members, with its place."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _refusal(here: str, written: bytes | None, found: bytes, why: CPUManagerError) -> RefusedError:
    ours, theirs = ((content or b"").splitlines() for content in (written, found))
    same_lines = sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs)))
    return RefusedError(
        "others have changed it since the change wrote it (from line %d on), and what the change made of it cannot be"
        " taken back alone: %s" % (same_lines + 1, why.problem),
        here,
        "make it as it should be, or set %s: true, which replaces it as a whole and keeps a backup"
        % option("overwrite_edited"),
        "edited",
    )
