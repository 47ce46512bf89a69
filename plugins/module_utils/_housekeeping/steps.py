# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a housekeeping, each of which is one write, and the plan that they make. Pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Mapping, NamedTuple, Sequence, Union

from .._base.quantity import counted
from .._host.layers import LIST, MASK, KernelSetting
from .._host.partitions import TopCgroup
from .._rollout.rollout_journal import SavedFile
from ..cpuset import CPUSet
from .housekeeping_journal import HousekeepingJournal, HousekeepingWish

# What is written beside the layers: what brings them back after a boot, and the kernel's command line.
BOOT, KERNEL_LINE = "boot", "kernel_line"

# The parts of what is brought back after a boot: what takes the network of the host, and all else.
NETWORK, KERNEL = "network", "kernel"

DAEMON_RELOAD = ("systemctl", "daemon-reload")
# One that does not run stays so.
RESTART_IRQBALANCE = ("systemctl", "try-restart", "irqbalance.service")
# The program that makes tuned apply its profile.
TUNED_ADM = "tuned-adm"

# How steps and notes call what cannot be done.
REFUSED_NOTE, FOREIGN_NOTE, FIXED_NOTE = "housekeeping-refused", "housekeeping-foreign", "housekeeping-fixed"
LEFT_TO_TUNED_NOTE = "housekeeping-left-to-tuned"


class ValueStep(NamedTuple):
    """A file of the kernel gets another text. was_refused: the kernel has refused it before, and may again."""

    layer: str
    name: str
    path: str
    before: str
    after: str
    form: str = LIST
    was_refused: bool = False


class FileStep(NamedTuple):
    """A file gets another content; None: there is none. owner: None for that of the file that is there.

    keep_mode: whether a file that is there keeps its mode. backup: whether what was there is kept beside it.
    """

    layer: str
    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0o644
    owner: tuple[int, int] | None = None
    keep_mode: bool = False
    backup: bool = False


class Link(NamedTuple):
    """A symbolic link is made, or with is_made false removed."""

    layer: str
    path: str
    target: str
    is_made: bool


class CommandStep(NamedTuple):
    """A command is run, so that files count."""

    words: tuple[str, ...]


Step = Union[ValueStep, FileStep, Link, CommandStep]


class FoundHost(NamedTuple):
    """What a plan is made of. texts: what the files of the kernel hold that the journal knows, None where it is gone.

    files and links: what is at the paths that may be written; of a link, None where there is nothing. missing: the
    directories of them that are not there. no_file: the settings of cgroups that do not have the controller yet, or are
    not there yet: systemd gives these their CPUs.
    places: the slices of partitions by their names.
    """

    settings: Sequence[KernelSetting]
    online: CPUSet
    boot_id: str
    texts: Mapping[str, str | None]
    files: Mapping[str, SavedFile]
    links: Mapping[str, str | None]
    missing: Sequence[str] = ()
    no_file: frozenset[str] = frozenset()
    places: Mapping[str, TopCgroup] = MappingProxyType({})


class WantedFile(NamedTuple):
    """A file as it is to be. edits: it is somebody else's, and only some of its lines are ours.

    owner: user and group id, which with the mode are to be so, too; None where only the content matters.
    """

    layer: str
    path: str
    content: bytes
    mode: int = 0o644
    edits: bool = False
    owner: tuple[int, int] | None = None

    def is_as_wanted(self, now: SavedFile) -> bool:
        """Return whether it is so."""
        is_owned = self.owner is None or (now.mode, now.uid, now.gid) == (self.mode, *self.owner)
        return now.content == self.content and is_owned


class WantedHost(NamedTuple):
    """What a node is to be. links: {path: target}. commands: what makes files count that have no reader of their own.

    runs: whether commands are run here; else the caller is told of them. apply: what has tuned apply its files, where
    it has or had some of ours; empty for nothing.
    """

    wish: HousekeepingWish
    files: Sequence[WantedFile] = ()
    links: Mapping[str, str] = MappingProxyType({})
    commands: Sequence[tuple[str, ...]] = ()
    runs: bool = False
    apply: tuple[str, ...] = ()


class HousekeepingPlan(NamedTuple):
    """What is to be done: write `journal`, do the steps, remove the directories, write `final`.

    journal: None where nothing is to be remembered. final: None where the journal goes. needs: what the caller has to
    do, as nothing here does it.
    """

    steps: Sequence[Step]
    journal: HousekeepingJournal | None
    final: HousekeepingJournal | None
    directories: Sequence[str]
    notes: Sequence[str]
    changed: bool
    commands: Sequence[tuple[str, ...]] = ()


def cpus_in(text: str, form: str) -> CPUSet | None:
    """Return the CPUs in a file's text; None for none, or what is no CPUs."""
    try:
        return (CPUSet.parse_mask(text) if form == MASK else CPUSet.parse(text)) or None
    except ValueError:
        return None


def change_of(step: Step) -> dict[str, Any] | None:
    """Return a step as plain data, as the module returns it; None for a command."""
    if isinstance(step, ValueStep):
        return {
            "layer": step.layer,
            "name": step.name,
            "path": step.path,
            "before": step.before,
            "after": step.after,
        }
    if isinstance(step, FileStep):
        return {
            "layer": step.layer,
            "name": "file",
            "path": step.path,
            "before": _kind(step.before),
            "after": _kind(step.after),
        }
    if isinstance(step, Link):
        before, after = ("", step.target) if step.is_made else (step.target, "")
        return {"layer": step.layer, "name": "link", "path": step.path, "before": before, "after": after}
    return None


def _kind(content: bytes | None) -> str:
    return "" if content is None else counted(len(content), "byte")
