# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry out a plan of writes to the cpusets and quotas of cgroups, all of it or nothing."""

from __future__ import annotations

import errno
import os
import re
from functools import partial
from typing import Callable, Iterable, Sequence

from .._base.command import Run, run_command
from .._base.errors import PERMISSION, NodeError, RefusedError
from ..cpuset import CPUSet
from .hierarchy import CPUS, EFFECTIVE, MEMS, Hierarchy, Quota, name_of, parent_of
from .writes import Write, shown

_SYSTEMD = "/run/systemd/system"
_UNIFIED = "/sys/fs/cgroup"
_UNITS = (".slice", ".scope", ".service")
# Known to systemd from version 244 on.
_PROPERTIES = {CPUS: "AllowedCPUs", MEMS: "AllowedMemoryNodes"}

_VANISHED = (errno.ENOENT, errno.ENODEV)
_REASONS = {
    errno.EBUSY: "a child has what it would lose",
    errno.EACCES: "it is not within what the parent has",
    errno.EINVAL: "it is not online, or an exclusive sibling has some of it",
    errno.ENOSPC: "processes are in it",
    errno.ERANGE: "the node has no such number",
}


class Systemd:
    """The systemd that runs on this machine. It writes its units' cpusets again whenever it reloads."""

    def __init__(self, runtime: bool = False, run: Run = run_command) -> None:
        # Until the next boot only.
        self.runtime = runtime
        self.run = run

    def unit_of(self, path: str) -> str | None:
        """Return the unit whose cgroup this is; None where it is none of systemd's."""
        name = name_of(path)
        # Below a service or scope, what looks like a unit belongs to another manager, such as a container's systemd.
        above = parent_of(path).split("/") if parent_of(path) else []
        if not name.endswith(_UNITS) or not all(part.endswith(".slice") for part in above):
            return None
        return name if self.value(name, "ControlGroup") == "/" + path else None

    def value(self, unit: str, name: str) -> str:
        """Return a unit's property."""
        answer = self.run(["systemctl", "show", "--property=" + name, "--", unit])
        return answer.strip().partition("=")[2]

    def set_value(self, unit: str, name: str, value: str) -> None:
        """Set a unit's property, and make systemd remember it."""
        runtime = ["--runtime"] if self.runtime else []
        self.run(["systemctl", "set-property", *runtime, "--", unit, "%s=%s" % (name, value)])


def systemd_of(hierarchy: Hierarchy, runtime: bool = False, run: Run = run_command) -> Systemd | None:
    """Return the systemd that cares for the cpusets of this hierarchy; None where none does.

    That is: on the running machine, and with v2 alone. For v1, and with both, systemd has no cpusets.
    """
    if hierarchy.tree.live and hierarchy.version == 2 and hierarchy.mount == _UNIFIED and os.path.isdir(_SYSTEMD):
        return Systemd(runtime, run)
    return None


def carry_out(hierarchy: Hierarchy, writes: Iterable[Write], systemd: Systemd | None = None) -> None:
    """Make these writes in their order. When one fails, or the run is interrupted, undo those before it.

    Raises NodeError or RefusedError, which names the file, the kernel's reason, and what could not be undone.
    """
    undo: list[Callable[[], None]] = []
    try:
        for write in writes:
            _check_unchanged(hierarchy, write)
            # Noted before it is done: an interruption may come in between.
            undo.append(partial(_put_back, hierarchy, write))
            unit = None if systemd is None else systemd.unit_of(write.path)
            if systemd is not None and unit is not None:
                name = _PROPERTIES[write.file]
                # Undone before the file, which systemd may write until it has heard of it.
                undo.append(partial(systemd.set_value, unit, name, systemd.value(unit, name)))
                systemd.set_value(unit, name, str(write.new))
            # Also where systemd has done it: it leaves a file as it is when it is to be empty.
            _put(hierarchy, write, write.new)
    except BaseException as error:
        left = _undo(undo)
        if isinstance(error, (NodeError, RefusedError)):
            raise error.adding(
                "not undone: " + "; ".join(left) if left else "everything is as it was before"
            ) from error
        raise


def _undo(actions: Sequence[Callable[[], None]]) -> list[str]:
    """Undo in reverse order; give what failed."""
    left = []
    for action in reversed(actions):
        try:
            action()
        except (NodeError, RefusedError) as error:
            left.append(str(error))
    return left


def _check_unchanged(hierarchy: Hierarchy, write: Write) -> None:
    now = hierarchy.read_set(write.path, write.file)
    if now is None:
        raise _vanished(hierarchy.place(write.path, write.file))
    if now != write.old:
        raise RefusedError(
            "was changed from %s to %s while it was worked on" % (shown(write.old), shown(now)),
            where=hierarchy.place(write.path, write.file),
            remedy="run again",
        )


def _put_back(hierarchy: Hierarchy, write: Write) -> None:
    now = hierarchy.read_set(write.path, write.file)
    # What vanished needs no undoing, and the last write may not have been made.
    if now is None or now == write.old:
        return
    if now != write.new:
        raise RefusedError(
            "a different program has changed it to %s" % shown(now), where=hierarchy.place(write.path, write.file)
        )
    try:
        _put(hierarchy, write, write.old)
    except NodeError as error:
        above = hierarchy.read_set(parent_of(write.path), EFFECTIVE[hierarchy.version, write.file])
        if write.old or not above or hierarchy.version == 1:
            raise
        # v2 lets nobody empty a set where processes are. With what its parent has, they have what they had.
        _put(hierarchy, write, above)
        raise error.adding("it has all that its parent has, %s" % above) from error


def _put(hierarchy: Hierarchy, write: Write, value: CPUSet) -> None:
    """Write one file and read it again."""
    place = hierarchy.place(write.path, write.file)
    write_file(hierarchy, write.path, write.file, str(value))
    if not hierarchy.tree.live:
        _follow(hierarchy, write.path, write.file)
    now = hierarchy.read_set(write.path, write.file)
    if now is None:
        raise _vanished(place)
    if now != value:
        raise NodeError("holds %s after %s was written" % (shown(now), shown(value)), where=place)


def write_file(hierarchy: Hierarchy, path: str, name: str, text: str) -> None:
    """Write one file of a cgroup. Raises NodeError with the kernel's reason, RefusedError at a symbolic link."""
    place = hierarchy.place(path, name)
    try:
        descriptor = hierarchy.open_file(path, name, os.O_WRONLY)
    except OSError as error:
        if error.errno in _VANISHED:
            raise _vanished(place) from error
        what = "cannot be written: %s" % error.strerror
        if isinstance(error, PermissionError):
            raise NodeError(what, where=place, remedy="write it as root (become: true)", kind=PERMISSION) from error
        raise NodeError(what, where=place) from error
    try:
        # The kernel does not see a write of nothing.
        content = text.encode("ascii") + b"\n"
        if not hierarchy.tree.live:
            # A run that is killed has written all or nothing here, too: what was longer ends in empty lines.
            content = content.ljust(os.fstat(descriptor).st_size, b"\n")
        os.write(descriptor, content)
        if not hierarchy.tree.live:
            os.ftruncate(descriptor, len(text) + 1)
    except OSError as error:
        if error.errno in _VANISHED:
            raise _vanished(place) from error
        reason = _REASONS.get(error.errno or 0) if hierarchy.tree.live and name in _PROPERTIES else None
        raise NodeError(
            "the kernel refuses %s: %s%s" % (text or "empty", error.strerror, " (%s)" % reason if reason else ""),
            where=place,
        ) from error
    finally:
        os.close(descriptor)


def _follow(hierarchy: Hierarchy, path: str, file: str) -> None:
    """Do in a saved tree what a kernel does: the effective sets follow what was written."""
    name = EFFECTIVE[hierarchy.version, file]
    own, effective = hierarchy.read_set(path, file), hierarchy.read_set(path, name)
    if own is None or effective is None:
        return
    if hierarchy.version == 2:
        above = hierarchy.read_set(parent_of(path), name)
        own = own if above is None else own & above or above
    if own != effective:
        with os.fdopen(hierarchy.open_file(path, name, os.O_WRONLY | os.O_TRUNC), "w", encoding="ascii") as opened:
            opened.write("%s\n" % own)
        for child in hierarchy.children(path) if hierarchy.version == 2 else ():
            _follow(hierarchy, child, file)


def _vanished(place: str) -> NodeError:
    return NodeError("the cgroup vanished while it was worked on", where=place)


# The CFS quota of a cgroup, read and written. _isolation/bandwidth.py reads all that the cpu controller has.
#
# Its source: Linux's Documentation/scheduler/sched-bwc.rst and admin-guide/cgroup-v2.rst.


_V1_QUOTA, _V1_PERIOD, _V2 = "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max"
_V1_NONE, _V2_NONE = "-1", "max"
_NUMBER = re.compile("[0-9]{1,19}", re.ASCII)


def read_quota(hierarchy: Hierarchy, path: str) -> Quota | None:
    """Return that of a cgroup that was just listed; None where it, or its quota, is not there or cannot be read as
    one."""
    if hierarchy.version == 1:
        quota, period = (hierarchy.quick_value(path, name) for name in (_V1_QUOTA, _V1_PERIOD))
    else:
        quota, _blank, period = (hierarchy.quick_value(path, _V2) or "").partition(" ")
    if not quota or not period or not _NUMBER.fullmatch(period) or not int(period):
        return None
    if quota in (_V1_NONE, _V2_NONE):
        return Quota(None, int(period))
    return Quota(int(quota), int(period)) if _NUMBER.fullmatch(quota) else None


def write_quota(hierarchy: Hierarchy, path: str, quota: Quota) -> None:
    """Write it; of v1 only the quota, as the period is what it was. Raises NodeError, RefusedError."""
    if hierarchy.version == 1:
        write_file(hierarchy, path, _V1_QUOTA, _V1_NONE if quota.quota_us is None else "%d" % quota.quota_us)
    else:
        limit = _V2_NONE if quota.quota_us is None else "%d" % quota.quota_us
        write_file(hierarchy, path, _V2, "%s %d" % (limit, quota.period_us))
