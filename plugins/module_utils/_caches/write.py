# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change resctrl of a node, under the lock that its users agree on, one write after the other.

Source: "Notes on locking" in Documentation/filesystems/resctrl.rst in Linux: flock(2) on the directory.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager, suppress
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import PERMISSION, NodeError, RefusedError
from .._base.files import OPENED, PATIENCE, Sleep, take_lock
from .._base.tree import RESCTRL, Tree
from ..cpuset import CPUSet
from .resctrl import (
    EXCLUSIVE,
    EXCLUSIVE_GROUP,
    OUR_GROUPS,
    ROOT,
    SHAREABLE,
    SHARED_GROUP,
    ControlGroup,
    Resctrl,
    parse_schemata,
    schemata_text,
)
from .ways import MB, Target

# In which order the kernel takes a change of the groups, and the way back. Pure.
#
# The root gives ways up first, then a group is made and gets its masks, then its mode, and its CPUs at last.


MAKE, REMOVE, WRITE = "make", "remove", "write"
SCHEMATA, MODE, CPUS = "schemata", "mode", "cpus_list"


class ResctrlStep(NamedTuple):
    """One change: a group is made or removed, or one write into a file of a group. text: without the line's end."""

    kind: str
    group: str
    file: str = ""
    text: str = ""

    def __str__(self) -> str:
        name = self.group or "the root group"
        if self.kind == WRITE:
            return "%s, %s: %s" % (name, self.file, self.text.replace("\n", " ") or "no CPUs")
        return "%s the group %s" % (self.kind, name)

    def to_dict(self) -> dict[str, str]:
        """Return plain data, as modules return it."""
        return {"action": self.kind, "group": self.group, "file": self.file, "text": self.text}


def steps_to(found: Resctrl, target: Target) -> list[ResctrlStep]:
    """Return what makes a platform as it is to be; nothing where it is so."""
    steps: list[ResctrlStep] = []
    masks = {name: _differing(found, target.level, name, target.masks(name)) for name in (ROOT, *target.groups)}
    is_moving = any(masks.values()) or any(name not in found.groups for name in target.groups)
    modes = {name: found.groups[name].mode for name in OUR_GROUPS if name in found.groups}
    wanted = {name: target.mode if name == EXCLUSIVE_GROUP else SHAREABLE for name in OUR_GROUPS}
    for name, mode in modes.items():
        # While ways move, those of two groups may overlap.
        if mode == EXCLUSIVE and (is_moving or wanted[name] == SHAREABLE):
            steps.append(ResctrlStep(WRITE, name, MODE, SHAREABLE))
            modes[name] = SHAREABLE
    steps += [ResctrlStep(REMOVE, name) for name in OUR_GROUPS if name in found.groups and name not in target.groups]
    steps += _write_masks(ROOT, target.level, masks[ROOT])
    for name in target.groups:
        if name not in found.groups:
            steps.append(ResctrlStep(MAKE, name))
        steps += _write_masks(name, target.level, masks[name])
        if name == SHARED_GROUP:
            steps += _write_masks(name, MB, _bandwidth(found, target))
    for name in target.groups:
        if wanted[name] == EXCLUSIVE and modes.get(name, SHAREABLE) != EXCLUSIVE:
            steps.append(ResctrlStep(WRITE, name, MODE, EXCLUSIVE))
    return [*steps, *_cpu_steps(found, target)]


def _differing(found: Resctrl, level: str, name: str, masks: Mapping[int, int]) -> dict[int, int]:
    group = found.groups.get(name)
    now = {} if group is None else group.schemata.get(level, {})
    return {number: mask for number, mask in masks.items() if now.get(number) != mask}


def _write_masks(name: str, resource: str, values: Mapping[int, int]) -> list[ResctrlStep]:
    return [ResctrlStep(WRITE, name, SCHEMATA, schemata_text({resource: values}).rstrip("\n"))] if values else []


def _bandwidth(found: Resctrl, target: Target) -> dict[int, int]:
    """Return what MB of the shared group is to become. Without a wish, as much as the exclusive group has."""
    group = found.groups.get(SHARED_GROUP)
    now = {} if group is None else group.schemata.get(MB, {})
    wanted = target.bandwidth
    if wanted is None:
        peer = found.groups.get(EXCLUSIVE_GROUP)
        wanted = {} if group is None or peer is None else peer.schemata.get(MB, {})
    return {number: value for number, value in wanted.items() if now.get(number) != value}


def _cpu_steps(found: Resctrl, target: Target) -> list[ResctrlStep]:
    """Return the exclusive group takes its CPUs first; what it gives up goes to the root, where the shared group
    gets it."""
    if not target.cpus:
        return []
    steps = []
    now = {name: group.cpus for name, group in found.groups.items()}
    for name in target.groups:
        wanted = target.cpus[name]
        if now.get(name, CPUSet()) != wanted:
            steps.append(ResctrlStep(WRITE, name, CPUS, str(wanted)))
            now = {group: cpus - wanted for group, cpus in now.items() if group != name}
            now[name] = wanted
    return steps


def steps_back(found: Resctrl, level: str, root: Mapping[int, int]) -> list[ResctrlStep]:
    """Return what takes our groups away, and gives the root these masks at last, {id: mask}."""
    steps = [ResctrlStep(REMOVE, name) for name in reversed(OUR_GROUPS) if name in found.groups]
    return [*steps, *_write_masks(ROOT, level, _differing(found, level, ROOT, root))]


# --- for people --------------------------------------------------------------------------------------------


def lines_of(found: Resctrl, level: str) -> list[str]:
    """Return our groups and the root as lines, to compare one state with another."""
    return _lines({name: found.groups[name] for name in (ROOT, *OUR_GROUPS) if name in found.groups}, level)


def lines_after(found: Resctrl, level: str, steps: Sequence[ResctrlStep]) -> list[str]:
    """Return our groups and the root as lines, as they are once these steps are done, as far as these say."""
    groups = {name: found.groups[name] for name in (ROOT, *OUR_GROUPS) if name in found.groups}
    for step in steps:
        group = groups.get(step.group)
        if step.kind == MAKE:
            groups[step.group] = ControlGroup(step.group, SHAREABLE, CPUSet(), {})
        elif step.kind == REMOVE and group is not None:
            del groups[step.group]
            groups[ROOT] = groups[ROOT]._replace(cpus=groups[ROOT].cpus | group.cpus)
        elif group is not None and step.file == CPUS:
            cpus = CPUSet.parse(step.text)
            groups = {name: each._replace(cpus=each.cpus - cpus) for name, each in groups.items()}
            groups[ROOT] = groups[ROOT]._replace(cpus=groups[ROOT].cpus | (group.cpus - cpus))
            groups[step.group] = groups[step.group]._replace(cpus=cpus)
        elif group is not None and step.file == MODE:
            groups[step.group] = group._replace(mode=step.text)
        elif group is not None:
            groups[step.group] = group._replace(schemata=_written(group, step.text))
    return _lines({name: groups[name] for name in (ROOT, *OUR_GROUPS) if name in groups}, level)


def _written(group: ControlGroup, text: str) -> dict[str, Mapping[int, int]]:
    schemata = dict(group.schemata)
    for name, values in parse_schemata(text).items():
        schemata[name] = {**schemata.get(name, {}), **values}
    return schemata


def _lines(groups: Mapping[str, ControlGroup], level: str) -> list[str]:
    lines = []
    for name, group in groups.items():
        shown = name or "root"
        kept = {resource: group.schemata[resource] for resource in (level, MB) if resource in group.schemata}
        lines += ["%s: %s" % (shown, line) for line in schemata_text(kept).splitlines()]
        lines += ["%s: mode %s" % (shown, group.mode), "%s: CPUs %s" % (shown, group.cpus)]
    return lines


_STATUS = "info/last_cmd_status"
_LONGEST_STATUS = 4096
_MODE = 0o755


@contextmanager
def locked(tree: Tree, exclusive: bool, patience: float = PATIENCE, sleep: Sleep = time.sleep) -> Iterator[int]:
    """Hold the lock; gives the directory, open. exclusive: for changes, otherwise for reading alone.

    Raises NodeError where somebody else holds it for longer than `patience` seconds.
    """
    here = tree.path(RESCTRL)
    try:
        directory = os.open(here, OPENED | os.O_NOFOLLOW)
    except OSError as error:
        raise NodeError("cannot be opened: %s" % error.strerror, here) from error
    try:
        take_lock(directory, here, exclusive, patience, sleep)
        yield directory
    finally:
        # It ends the lock.
        os.close(directory)


def check_mounted(tree: Tree) -> None:
    """Raise RefusedError where the files are only saved, so that nothing takes what is written."""
    here = tree.path(RESCTRL)
    if not os.path.ismount(here):
        raise RefusedError(
            "is no mounted resctrl, but saved files of one", where=here, remedy="use check mode, or the node itself"
        )


def carry_out(tree: Tree, directory: int, steps: Iterable[ResctrlStep]) -> None:
    """Take these steps, the lock held. directory: as locked() gives it.

    Raises NodeError for the first that the kernel refuses, with what it says in last_cmd_status.
    """
    for step in steps:
        try:
            _take(directory, step)
        except OSError as error:
            raise _refused(tree, directory, step, error) from error


def _take(directory: int, step: ResctrlStep) -> None:
    if step.kind == MAKE:
        os.mkdir(step.group, _MODE, dir_fd=directory)
    elif step.kind == REMOVE:
        os.rmdir(step.group, dir_fd=directory)
    elif step.kind == WRITE:
        path = "%s/%s" % (step.group, step.file) if step.group else step.file
        content = step.text.encode("ascii") + b"\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            # A write is one command: a second one for the rest would be another.
            if os.write(descriptor, content) != len(content):
                raise OSError(errno.EIO, "it took a part of the write")
        finally:
            os.close(descriptor)


def _refused(tree: Tree, directory: int, step: ResctrlStep, error: OSError) -> NodeError:
    status = ""
    with suppress(OSError):
        descriptor = os.open(_STATUS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            status = os.read(descriptor, _LONGEST_STATUS).decode("ascii", "replace").strip()
        finally:
            os.close(descriptor)
    said = " and says: %s" % "; ".join(status.splitlines()) if status and status != "ok" else ""
    where = "/".join(part for part in (tree.path(RESCTRL), step.group, step.file) if part)
    kind = PERMISSION if isinstance(error, PermissionError) and os.geteuid() != 0 else ""
    return NodeError(
        "the kernel refuses this (%s)%s: %s" % (error.strerror, said, step),
        where,
        "do it as root (become: true)" if kind else "do what it says, and run again",
        kind,
    )
