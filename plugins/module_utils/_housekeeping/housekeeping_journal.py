# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node was before its housekeeping, on the node itself, so that all of it can be taken back.

One file, replaced as a whole before anything else is written and again when all is done. Of the kernel's values it
has those of one boot, as no others come back; of cgroups those of the first, as systemd sets them again at each
boot.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import time
from contextlib import contextmanager, suppress
from typing import Any, Iterable, Iterator, Mapping, NamedTuple

from .._base.errors import InputError, NodeError
from .._base.files import OPENED, PATIENCE, Sleep, make_roots_directory, remedy_for, remove_directories, take_lock
from .._base.journal_file import DIRECTORY, HOUSEKEEPING, JournalFile, remove_left_over
from .._base.tree import Tree
from .._host.layers import LIVE_LAYERS
from .._host.partitions import KINDS
from .._rollout.rollout_journal import SavedFile, saved_file
from ..cpuset import CPUSet

# One housekeeping of a node at a time: the role, and the service at boot. Each holds the directory of the journal.


@contextmanager
def locked(tree: Tree, patience: float = PATIENCE, sleep: Sleep = time.sleep) -> Iterator[None]:
    """Hold the lock of a node. The directory is made for it, and goes again where nothing was written there.

    Raises NodeError where a different process holds it for longer than `patience` seconds.
    """
    here = tree.path(DIRECTORY)
    made: list[str] = []
    directory = None
    try:
        while directory is None:
            made += make_roots_directory(tree, DIRECTORY)
            directory = _taken(here, patience, sleep)
        yield
    finally:
        remove_directories(made)
        if directory is not None:
            # It ends the lock.
            os.close(directory)


def _taken(here: str, patience: float, sleep: Sleep) -> int | None:
    """Return the directory, locked; None where the run that had it has removed it."""
    try:
        directory = os.open(here, OPENED)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NodeError("cannot be opened: %s" % error.strerror, where=here, remedy=remedy_for(error)) from error
    is_held = False
    try:
        take_lock(directory, here, exclusive=True, patience=patience, sleep=sleep)
        with suppress(FileNotFoundError):
            is_held = os.path.samestat(os.fstat(directory), os.stat(here))
    finally:
        if not is_held:
            os.close(directory)
    return directory if is_held else None


PATH = HOUSEKEEPING
_FILE = JournalFile(
    PATH,
    1,
    "cannot be read as the journal of the housekeeping: %s",
    "put it back from a backup; without it, nothing of what was there before can be put back",
)

# A slice right below the topmost one: a dash would begin another.
SLICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:]*\.slice")


class OwnCPUs(NamedTuple):
    """A slice whose CPUs are to be its own. kind: "isolated" or "root", as the kernel calls it."""

    cpus: CPUSet
    kind: str
    slice: str


class HousekeepingWish(NamedTuple):
    """What the node is to be, as far as the program needs it that brings it there after a boot."""

    reserved: CPUSet
    layers: tuple[str, ...]
    exclude_slices: tuple[str, ...] = ()
    # Below which the kubelet keeps the cgroups of pods; empty for the topmost.
    cgroup_root: str = ""
    partition: OwnCPUs | None = None
    # Of the kernel's command line, as "rcu_nocbs=2-7"; none where that is not written.
    arguments: tuple[str, ...] = ()


class SavedValue(NamedTuple):
    """A file of the kernel as it was; is_ours: whether it was written since, or was about to be."""

    layer: str
    name: str
    form: str
    before: str
    is_ours: bool


class KeptFile(NamedTuple):
    """A file as it was, and what it became.

    ours: the checksums of what was written there, more than one while a change is under way. last: the newest of
    these contents, of a file that was there before and so is not ours alone.
    """

    layer: str
    before: SavedFile
    ours: tuple[str, ...]
    last: bytes | None = None


class HousekeepingJournal(NamedTuple):
    """What a node was, what it is to be, and what the kernel has refused.

    within: the CPUs of all that was written; more than the reserved ones while these change. links: {path: target} of
    the symbolic links that were made. directories: those that were made, each before those in it. pending: the names
    of the commands that are still to be run, of RELOAD and those beside it. refused: {path: the name of the error}.
    is_done: whether the last run came to its end.
    """

    wish: HousekeepingWish
    within: CPUSet
    boot_id: str
    values: Mapping[str, SavedValue]
    files: Mapping[str, KeptFile]
    links: Mapping[str, str]
    directories: tuple[str, ...]
    pending: tuple[str, ...]
    refused: Mapping[str, str]
    is_done: bool = False
    slices: tuple[str, ...] = ()


def checksum(content: bytes) -> str:
    """Return by which a content is known again."""
    return hashlib.sha256(content).hexdigest()


def read_journal(tree: Tree) -> HousekeepingJournal | None:
    """Return the journal of a node; None where there is none. Raises NodeError for a damaged one."""
    return _FILE.read(tree, _journal_of)


def _journal_of(data: Any) -> HousekeepingJournal:
    return HousekeepingJournal(
        HousekeepingWish(
            CPUSet.parse(data["reserved"]),
            _texts(data["layers"]),
            _texts(data["exclude_slices"]),
            str(data["cgroup_root"]),
            _partition(data.get("partition")),
            _texts(data.get("arguments", [])),
        ),
        CPUSet.parse(data["within"]),
        str(data["boot_id"]),
        {_path(path, _OF_KERNEL): _value(value) for path, value in data["kernel"].items()},
        {_path(path): _file(file) for path, file in data["files"].items()},
        {_path(path, _LINKS): str(target) for path, target in data["links"].items()},
        tuple(map(_path, data["directories"])),
        tuple(dict.fromkeys(map(_pending, data["pending"]))),
        {_path(path): str(name) for path, name in data["refused"].items()},
        bool(data["is_done"]),
        tuple(map(_slice, data.get("slices", ()))),
    )


def write_journal(tree: Tree, journal: HousekeepingJournal) -> None:
    """Put the journal on the node, on its disk. Raises NodeError."""
    _FILE.replace(tree, text_of(journal), tree.content(PATH))


def remove_journal(tree: Tree) -> None:
    """Take it away, and its directory, where nothing is left in that. Raises NodeError."""
    _FILE.remove(tree)


def clean_up(tree: Tree, paths: Iterable[str]) -> None:
    """Remove what a killed run left beside these files."""
    for path in paths:
        remove_left_over(tree, path)


def text_of(journal: HousekeepingJournal) -> str:
    """Return the journal as it is written."""
    wish = journal.wish
    data = {
        "reserved": str(wish.reserved),
        "layers": wish.layers,
        "exclude_slices": wish.exclude_slices,
        "cgroup_root": wish.cgroup_root,
        "partition": None if wish.partition is None else {**wish.partition._asdict(), "cpus": str(wish.partition.cpus)},
        "arguments": wish.arguments,
        "slices": journal.slices,
        "within": str(journal.within),
        "boot_id": journal.boot_id,
        "kernel": {path: value._asdict() for path, value in journal.values.items()},
        "files": {path: _file_data(file) for path, file in journal.files.items()},
        "links": dict(journal.links),
        "directories": journal.directories,
        "pending": journal.pending,
        "refused": dict(journal.refused),
        "is_done": journal.is_done,
    }
    return _FILE.text_of(data)


def essence_of(journal: HousekeepingJournal) -> HousekeepingJournal:
    """Return what a report reads of it: without what was there before, which may hold secrets."""
    files = {path: KeptFile(kept.layer, SavedFile(None), ()) for path, kept in journal.files.items()}
    return journal._replace(values={}, files=files)


def _file_data(file: KeptFile) -> dict[str, Any]:
    before = None
    if file.before.content is not None:
        before = {**file.before._asdict(), "content": _encoded(file.before.content)}
    last = None if file.last is None else _encoded(file.last)
    return {"layer": file.layer, "before": before, "ours": file.ours, "last": last}


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _texts(data: Any) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(isinstance(text, str) for text in data):
        raise ValueError("%r is not a list of texts" % (data,))
    return tuple(data)


# The kernel's files that are written, of interrupts, packets, workqueues, the watchdog and slices; and the links.
_OF_KERNEL = re.compile(
    r"/.*/(\w*smp_affinity(_list)?|rps_(cpus|default_mask)|(watchdog_)?cpumask|cpuset\.cpus[.\w]*)", re.DOTALL
)
_LINKS = re.compile(r"/etc/systemd/system/multi-user\.target\.wants/[^/]+")


def _path(text: str, form: re.Pattern[str] | None = None) -> str:
    is_path = isinstance(text, str) and os.path.isabs(text) and os.path.normpath(text) == text and "\0" not in text
    if not is_path or (form is not None and not form.fullmatch(text)):
        raise InputError("%r is no path on the node" % (text,))
    return text


# What is still to be run, by name: which command that is, the code says and no file.
RELOAD, BALANCE, TUNE, LOAD = "daemon_reload", "restart_irqbalance", "apply_tuned", "update_loader"
# The commands themselves, as former versions wrote them.
_FORMER = {
    RELOAD: re.compile(r"systemctl daemon-reload"),
    BALANCE: re.compile(r"systemctl try-restart irqbalance\.service"),
    TUNE: re.compile(r"tuned-adm (auto_profile|profile [\w.@ -]+)", re.ASCII),
    LOAD: re.compile(
        r"/(usr/)?s?bin/(grub2?-mkconfig -o /boot/[\w./-]+|grubby --update-kernel=ALL --(remove-)?args=.*"
        r"|kernel-install add [\w.+~-]+ /[\w./+~-]+)",
        re.ASCII,
    ),
}


def _pending(data: Any) -> str:
    """Return the name of what is still to be run. Raises ValueError for a command that is none of ours."""
    if data in tuple(_FORMER):
        return str(data)
    words = " ".join(_texts(data))
    name = next((name for name, form in _FORMER.items() if form.fullmatch(words)), None)
    if name is None:
        raise ValueError("no role runs %r" % words)
    return name


def _partition(data: Mapping[str, Any] | None) -> OwnCPUs | None:
    if data is None:
        return None
    if data["kind"] not in KINDS:
        raise ValueError("there is no partition of the kind %r" % (data["kind"],))
    return OwnCPUs(CPUSet.parse(data["cpus"]), data["kind"], _slice(data["slice"]))


def _slice(name: str) -> str:
    if not SLICE.fullmatch(name):
        raise ValueError("%r is no slice right below the topmost one" % (name,))
    return name


def _value(data: Mapping[str, Any]) -> SavedValue:
    layer, name, form, before = (str(data[key]) for key in ("layer", "name", "form", "before"))
    if layer not in LIVE_LAYERS:
        raise ValueError("there is no layer %r" % layer)
    return SavedValue(layer, name, form, before, bool(data["is_ours"]))


def _file(data: Mapping[str, Any]) -> KeptFile:
    saved = data["before"]
    before = SavedFile(None)
    if saved is not None:
        before = saved_file(saved, _decoded(saved["content"]))
    last = None if data["last"] is None else _decoded(data["last"])
    return KeptFile(str(data["layer"]), before, _texts(data["ours"]), last)


def with_progress(journal: HousekeepingJournal, refused: Mapping[str, str]) -> HousekeepingJournal:
    """Return the journal when all is done: only what was written last is remembered as ours."""
    files = {path: file._replace(ours=file.ours[-1:]) for path, file in journal.files.items()}
    return journal._replace(within=journal.wish.reserved, files=files, pending=(), refused=dict(refused), is_done=True)
