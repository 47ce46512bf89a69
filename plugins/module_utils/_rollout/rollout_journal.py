# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a change of a node began with, on the node itself, so that it can be taken back to the byte.

One file, replaced as a whole: a run that is killed leaves a journal of its last step, never half of one.
"""

from __future__ import annotations

import base64
import binascii
import os
import posixpath
import re
import stat
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any, Collection, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import CPUManagerError, InputError, NodeError, Note, RefusedError, option
from .._base.files import PATIENCE, keep_copy, remedy_for, remove_file, remove_old_backups, replace_file, take_lock
from .._base.journal_file import DIRECTORY, OPEN, JournalFile
from .._base.tree import OverlaidTree, Tree, own_ids
from .._kubelet.distributions import OWN_NAMES, UNIT_DIRECTORIES, USUAL_PATHS
from .._kubelet.yaml_nodes import REMOVE, same

# How far a change has come.
DRAINING = "draining"  # the node is cordoned, or about to be
STOPPING = "stopping"  # the kubelet is stopped, or about to be
CHANGING = "changing"  # the files are changed, or about to be
CHANGED = "changed"  # the kubelet runs well with them, and the node is not back in the cluster

# The steps back from there, in their order. Where the files are back already, the runtime may still run with what was
# taken back, and the kubelet may have ended by itself.
_SERVICES_BACK = ("restart_runtime", "start_kubelet", "rejoin_cluster")
STEPS_BACK = {
    DRAINING: _SERVICES_BACK,
    STOPPING: _SERVICES_BACK,
    CHANGING: ("stop_kubelet", "restore_files", *_SERVICES_BACK),
    # By the run that made it; for any other the change is made, and only has to come to its end.
    CHANGED: ("stop_kubelet", "restore_files", *_SERVICES_BACK),
}
# Of a file's mode, what is put back.
_PERMISSIONS = 0o777
# Seconds. Whatever took longer was not all of the time at work.
_LONGEST = 86400
# {step back: the fact of the change without which it is none}
_ONLY_WITH = {"restart_runtime": "runtime", "rejoin_cluster": "node"}


class SavedFile(NamedTuple):
    """A file as it was; `content` None: there was none."""

    content: bytes | None
    mode: int = 0
    uid: int = 0
    gid: int = 0


class RolloutJournal(NamedTuple):
    """How far a change of the node has come, the files as it found them, what its caller wants to remember, and the
    name of the run that is at it, empty where it gave none.

    written: {path: what the change has written there or was about to, None where it removed the file}, so that what
    others have written since is told from it. None where it is not known: of a change by hand, or an older version.
    began: by the node's clock, in seconds, of a change that began with a drain; None of others, and where another run
    has taken it over. drain_seconds: how long the last of these took that came to its end, up to that.
    """

    phase: str
    files: Mapping[str, SavedFile]
    facts: Mapping[str, object]
    run: str = ""
    written: Mapping[str, bytes | None] | None = None
    began: int | None = None
    drain_seconds: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it; contents stay on the node."""
        shown = {"phase": self.phase, "files": sorted(self.files), "facts": dict(self.facts), "run": self.run}
        return shown if self.drain_seconds is None else {**shown, "drain_seconds": self.drain_seconds}

    def took(self, now: float) -> int | None:
        """Return how many seconds this change, which ends now, and its drain took; None where that is not known.

        A clock that was set meanwhile gives no time, or a wrong one, as does a node that was off.
        """
        seconds = 0 if self.began is None else int(now) - self.began
        return seconds if 0 < seconds <= _LONGEST else None

    def steps_back(self) -> list[str]:
        """Return what takes the change back from here, in the order in which it is done."""
        return [step for step in STEPS_BACK[self.phase] if _ONLY_WITH.get(step) in (None, *self.facts)]


def read_journal(tree: Tree, path: str = OPEN) -> RolloutJournal | None:
    """Return the journal at OPEN or LAST; None where there is none.

    Raises NodeError for a damaged one, RefusedError for one that others than root may have written.
    """
    return journal_file(path).read(tree, journal_of)


def journal_file(path: str) -> JournalFile:
    """Return the file of a change's journal, OPEN or LAST."""
    return JournalFile(
        path,
        1,
        "cannot be read as the journal of a change: %s",
        "look whether the node's kubelet works as it should, and remove the file",
    )


def journal_of(data: Any) -> RolloutJournal:
    """Return the journal that a file holds. Raises ValueError and what else reading malformed data raises."""
    if data["phase"] not in STEPS_BACK or not isinstance(data["facts"], dict):
        raise ValueError("it is of another format")
    files = {str(name): _saved(saved) for name, saved in data["files"].items()}
    written = data.get("written")
    if written is not None:
        written = {str(name): None if content is None else _decoded(content) for name, content in written.items()}
    times = [_seconds(data.get(name)) for name in ("began", "drain_seconds")]
    return RolloutJournal(data["phase"], files, data["facts"], str(data.get("run", "")), written, *times)


def _seconds(data: object) -> int | None:
    """Return a time of a journal. A wrong one is none: what leads back is of more worth."""
    return data if isinstance(data, int) and not isinstance(data, bool) and 0 < data < 1 << 40 else None


def _saved(data: Any) -> SavedFile:
    if data is None:
        return SavedFile(None)
    return saved_file(data, _decoded(data["content"]))


def saved_file(data: Mapping[str, Any], content: bytes) -> SavedFile:
    """Return a file as a journal has it. Raises ValueError for a mode with the set-user-ID bit or its like."""
    mode = int(data["mode"])
    if mode & ~_PERMISSIONS:
        raise ValueError("no file that is put back has the mode %o" % mode)
    return SavedFile(content, mode, int(data["uid"]), int(data["gid"]))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


# What becomes of each file of a change that is taken back, where others may have written to it since. Pure.
#
# What is there as the change wrote it, or damaged states of the kubelet's managers, goes for what was saved. What
# others have written stays: only what the change made of the file is undone in it. Where that cannot be done, it is
# refused, and where that is allowed, what is there is kept as a backup. So nothing that others wrote is lost.


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
    tree: Tree, journal: RolloutJournal, paths: Collection[str] | None = None, overwrite: bool = False
) -> dict[str, FileBack]:
    """Return {path: what becomes of it}, of these files, or of all that the change saved, in its order.

    overwrite: whether what others wrote may be replaced as a whole. Raises NodeError for what cannot be read.
    """
    return {path: _file_back(tree, journal, path, overwrite) for path in (journal.files if paths is None else paths)}


# The kind of the errors about what a journal names and no change writes; and what to do then.
NOT_OURS = "not_ours"
_LOOK_AT_IT = (
    "look who wrote the journals in %s: move them away, and make by hand what they were to take back" % DIRECTORY
)


def is_state(path: str) -> bool:
    """Return whether this is the state of one of the kubelet's managers."""
    return posixpath.basename(path) in STATES


# Below these a change writes the container runtime's files.
RUNTIME_PLACES = ("/etc/containerd/", "/etc/crio/", "/var/lib/rancher/", "/var/snap/microk8s/")
# By which other files are known: the kubelet's configuration, and a runtime's file that has something of ours.
_OF_KUBELET = re.compile(rb"""\bkind["']?\s*:\s*["']?KubeletConfiguration\b""")
_OF_RUNTIME, _OURS = (".toml", ".conf"), b"kubenode.cpu_manager"


def may_be_written(path: str, found: bytes | None) -> bool:
    """Return whether a change writes this file, which holds `found` now: the configuration, our drop-in, patch or
    flags, a state of the kubelet's, or a file of the container runtime. No unit of systemd is among them.
    """
    if posixpath.normpath(path) != path or path.startswith(tuple(place + "/" for place in UNIT_DIRECTORIES)):
        return False
    name = posixpath.basename(path)
    return (
        name in STATES
        or name in OWN_NAMES
        or path in USUAL_PATHS
        or path.startswith(RUNTIME_PLACES)
        or _OF_KUBELET.search(found or b"") is not None
        or (path.endswith(_OF_RUNTIME) and _OURS in (found or b""))
    )


def owner_refusal(tree: Tree, path: str, saved: SavedFile) -> RefusedError | None:
    """Return why a file is not given to whom a journal names: it may be given to root, and who has it or its
    directory now."""
    users, groups = ({number} for number in own_ids())
    here = tree.path(path)
    for place in (here, os.path.dirname(here)):
        with suppress(OSError):
            status = os.stat(place)
            users.add(status.st_uid)
            groups.add(status.st_gid)
    if saved.content is None or (saved.uid in users and saved.gid in groups):
        return None
    return RefusedError(
        "the journal gives it to user %d and group %d, which have neither it nor its directory" % saved[2:4],
        here,
        _LOOK_AT_IT,
        NOT_OURS,
    )


def _not_ours(tree: Tree, path: str, back: FileBack) -> RefusedError | None:
    """Return why a file is not put back that no change can have saved."""
    if not may_be_written(path, back.found) and save_files(tree, [path])[path] != back.saved:
        return RefusedError(
            "the journal would put it back, and no change writes this file", tree.path(path), _LOOK_AT_IT, NOT_OURS
        )
    return None if back.keeps_mode and back.found is not None else owner_refusal(tree, path, back.saved)


def _file_back(tree: Tree, journal: RolloutJournal, path: str, overwrite: bool) -> FileBack:
    saved, found, written = journal.files[path], tree.content(path), journal.written
    back = FileBack(found, saved.content, saved, written is not None and not is_state(path))
    problem = _not_ours(tree, path, back)
    if problem is not None:
        return back._replace(problem=problem)
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
    """Return what becomes of a file of the change that others have changed since."""
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
    """Return the kubelet's configuration as found, with what the change made of it put back to what it was before.

    Raises CPUManagerError for what is no such configuration, or cannot be edited.
    """
    # Imported here: hardly any node needs it.
    from .._kubelet.configuration import KubeletConfiguration

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
    """Yield each value that is no mapping with members, with its place."""
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


# Saves the files of a change in its journal, puts them back, and replaces the journal.


def save_files(tree: Tree, paths: Sequence[str]) -> dict[str, SavedFile]:
    """Return the files as they are now, by path.

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

    journal: RolloutJournal | None
    content: bytes | None


def judged_journal(tree: Tree, path: str = OPEN) -> Judged:
    """Return the journal at OPEN or LAST, to be decided about. Raises NodeError and RefusedError as read_journal()."""
    content = journal_file(path).content(tree)
    return Judged(None if content is None else journal_file(path).parsed(tree, content, journal_of), content)


def write_journal(tree: Tree, journal: RolloutJournal, path: str = OPEN, judged: Judged | None = None) -> None:
    """Put the journal on the node, in place of the one that was judged; by default, of the one that is there.

    Raises NodeError, and RefusedError where another run has changed it since.
    """
    data: dict[str, Any] = {
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
    times = {"began": journal.began, "drain_seconds": journal.drain_seconds}
    data.update({name: seconds for name, seconds in times.items() if seconds is not None})
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


def changed_files(tree: Tree, journal: RolloutJournal) -> list[str]:
    """Return the paths of the files that are no longer as the journal has them, in its order."""
    return [path for path, saved in journal.files.items() if save_files(tree, [path])[path] != saved]


def files_to_write(tree: Tree, backs: Mapping[str, FileBack]) -> list[str]:
    """Return the paths of the files that are not as they will be once the change is taken back."""
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
    """Return the node with the states that the change of this run has put aside, as they were. Raises NodeError."""
    journal = judged_journal(tree).journal if run else None
    if journal is None or journal.run != run or journal.phase != CHANGING:
        return tree
    aside = {
        path: journal.files[path].content
        for path, content in (journal.written or {}).items()
        if content is None and is_state(path) and path in journal.files and not tree.exists(path, follow=False)
    }
    return OverlaidTree(tree, aside) if aside else tree


# The steps of a run: each notes what it writes, and none goes on where another run is changing the node.


ANOTHER_RUN = "another_run"


def begin_writing(tree: Tree, run: str, contents: Mapping[str, bytes | None], check_mode: bool) -> None:
    """Note in the journal of this run's change what is about to be written: {path: content, None to remove the file}.

    Whoever takes the change back then tells it from what others write. Raises RefusedError where the change of this
    node is not that of this run. An empty name is not checked; in check mode no step has begun a change.
    """
    if not run or check_mode:
        return
    judged = judged_journal(tree)
    journal = judged.journal
    refuse_another_run(tree, journal, run)
    if journal is None:
        raise ended_error(tree, run)
    noted = {path: content for path, content in contents.items() if path in journal.files}
    if noted and journal.phase == CHANGING and journal.written is not None:
        write_journal(tree, journal._replace(written={**journal.written, **noted}), OPEN, judged)


def refuse_another_run(tree: Tree, journal: RolloutJournal | None, run: str) -> None:
    """Raise RefusedError where another run is at a change of this node."""
    if journal is not None and journal.run != run:
        raise RefusedError(
            "another run (%s) is changing this node or was interrupted, and this one (%s) goes no further"
            % (journal.run or "without a name", run),
            tree.path(OPEN),
            "let it end, and if it was interrupted, run the role kubelet again, which takes its change back",
            ANOTHER_RUN,
        )


def ended_error(tree: Tree, run: str) -> RefusedError:
    """Return why a run does not continue whose change is no longer open."""
    return RefusedError(
        "is gone: another run has ended the change that this one (%s) had begun, and this one goes no further" % run,
        tree.path(OPEN),
        "look what it did, and run again",
        ANOTHER_RUN,
    )
