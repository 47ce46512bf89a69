# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes a slice of systemd a partition, and undoes it. Pure.

CPUs are given to it when nothing of the host is on them any more, and taken away before the host gets them back. A
change of its CPUs ends the partition and begins another.
Source: "Cpuset Interface Files" in Linux's Documentation/admin-guide/cgroup-v2.rst, systemd.slice(5).
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from ...cgroup.mounts import CPUS
from ...cpuset import CPUSet
from ...errors import Note
from ...host.layers import LIST, PARTITION
from ...host.partitions import EXCLUSIVE, MEMBER, Place
from ...host.partitions import PARTITION as KIND_FILE
from ..places import UNIT_DIRECTORY
from .at_boot import UNIT
from .journal import OwnCPUs
from .steps import FOREIGN_NOTE, REFUSED_NOTE, Value, WantedFile

# The form of a file that says what kind of partition a cgroup is.
KIND = "kind"
_START, _STOP = ("systemctl", "start"), ("systemctl", "stop")
_LINK = UNIT_DIRECTORY + "/multi-user.target.wants/%s"
_SLICE = """\
# The role housekeeping of kubenode.cpu_manager writes this file.
[Unit]
Description=Processes with CPUs of their own
Before={service}

[Slice]
AllowedCPUs={cpus}
"""


class Change(NamedTuple):
    """The steps around all others. off: before them, and then stop; start: once systemd has read the unit; on: after
    them."""

    off: Sequence[Value] = ()
    start: Sequence[tuple[str, ...]] = ()
    stop: Sequence[tuple[str, ...]] = ()
    on: Sequence[Value] = ()
    notes: Sequence[str] = ()


def slice_files(own: OwnCPUs, at_boot: bool) -> tuple[list[WantedFile], Mapping[str, str]]:
    """The unit of the slice, and with at_boot the link by which systemd starts it."""
    path = "%s/%s" % (UNIT_DIRECTORY, own.slice)
    content = _SLICE.format(service=UNIT, cpus=own.cpus).encode("ascii")
    return [WantedFile(PARTITION, path, content)], {_LINK % own.slice: path} if at_boot else {}


def change_partition(
    places: Mapping[str, Place], made: Sequence[str], own: OwnCPUs | None, online: CPUSet, runs: bool
) -> Change:
    """What brings the slices that were made, and the one that is wanted, to what is wanted.

    places: each of them as it is. runs: whether a slice that is not there is started meanwhile.
    """
    off: list[Value] = []
    stop: list[tuple[str, ...]] = []
    notes: list[str] = []
    for name in dict.fromkeys(made):
        if own is not None and name == own.slice:
            continue
        place = places[name]
        off += _ended(place)
        if place.has_processes:
            off += _written(place, CPUS, place.cpus, str(online))
            notes.append(
                Note(FOREIGN_NOTE, "%s: processes run in it; it is there until they end, with all CPUs" % place.path)
            )
        elif place.is_there:
            stop.append((*_STOP, name))
    if own is None:
        return Change(off, (), stop, (), notes)
    place = places[own.slice]
    start = [] if place.is_there else [(*_START, own.slice)]
    if place.is_there and not is_as_wanted(place, own):
        ended = _ended(place)
        off += ended
        place = place._replace(partition=MEMBER, exclusive="") if ended else place
    return Change(off, start, stop, _begun(place, own) if place.is_there or runs else (), notes)


def change_after_boot(place: Place, own: OwnCPUs) -> Change:
    """The same where systemd has started the slice, or has not."""
    if place.is_there:
        return change_partition({own.slice: place}, (), own, CPUSet(), runs=False)
    what = "%s: systemd has not started this slice, so CPUs %s are nobody's own" % (place.path, own.cpus)
    return Change(notes=[Note(REFUSED_NOTE, what)])


def is_of_slice(command: Sequence[str]) -> bool:
    """Whether a command starts or stops a slice."""
    return tuple(command[:2]) in (_START, _STOP)


def is_as_wanted(place: Place, own: OwnCPUs) -> bool:
    """Whether a slice is the partition that is wanted, and the kernel takes it for one."""
    cpus = str(own.cpus)
    return (place.cpus, place.exclusive, place.partition) == (cpus, cpus, own.kind)


def _begun(place: Place, own: OwnCPUs) -> list[Value]:
    cpus = str(own.cpus)
    return [
        *_written(place, CPUS, place.cpus, cpus),
        *_written(place, EXCLUSIVE, place.exclusive, cpus),
        *_written(place, KIND_FILE, place.partition, own.kind, KIND),
    ]


def _ended(place: Place) -> list[Value]:
    steps = _written(place, KIND_FILE, place.partition, MEMBER, KIND) if place.partition else []
    return [*steps, *_written(place, EXCLUSIVE, place.exclusive, "")]


def _written(place: Place, file: str, before: str, after: str, form: str = LIST) -> list[Value]:
    if before == after:
        return []
    return [Value(PARTITION, "%s %s" % (place.name, file), "%s/%s" % (place.path, file), before, after, form)]
