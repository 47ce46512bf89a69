# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What brings a host's values back after a boot: the program, its services, and the partition of systemd's slices."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from .._base.errors import Note
from .._base.journal_file import DIRECTORY, UNIT_DIRECTORY
from .._cgroup.hierarchy import CPUS
from .._host.layers import LIST, PARTITION, RPS
from .._host.only_root import PYTHON_FLAGS, SANDBOX
from .._host.partitions import EXCLUSIVE, MEMBER, TopCgroup
from .._host.partitions import PARTITION as KIND_FILE
from ..cpuset import CPUSet
from .housekeeping_journal import PATH, OwnCPUs
from .steps import BOOT, FOREIGN_NOTE, KERNEL, NETWORK, REFUSED_NOTE, ValueStep, WantedFile

PROGRAM_PATH = "/usr/local/lib/kubenode/cpu-manager-housekeeping.pyz"
UNIT, NETWORK_UNIT = "kubenode-housekeeping.service", "kubenode-housekeeping-network.service"

_PROGRAM_MODE = 0o755

# Its journal in /var/lib, and what it writes of the kernel, belong to root, so it needs no capability for them.
_UNIT = """\
# The role housekeeping of kubenode.cpu_manager writes this file.
[Unit]
Description=%(what)s
Documentation=man:cpuset(7)
After=%(after)s
Before=kubelet.service irqbalance.service
ConditionPathExists=%(journal)s

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=%(interpreter)s %(flags)s %(program)s / %(part)s
TimeoutStartSec=120

%(needs)sProtectProc=ptraceable
RestrictAddressFamilies=none
MemoryDenyWriteExecute=yes
%(sandbox)s
[Install]
WantedBy=multi-user.target
"""

# Interrupts and the watchdog are written in /proc, workqueues in /sys, and slices are cgroups.
_OF_KERNEL = """\
CapabilityBoundingSet=
PrivateNetwork=yes
ProtectKernelTunables=no
ProtectControlGroups=no
ReadWritePaths=-/sys/fs/cgroup %s
"""
# The queues of the host's devices are seen in the host's network alone, and rps_cpus takes CAP_NET_ADMIN.
_OF_NETWORK = """\
CapabilityBoundingSet=CAP_NET_ADMIN
PrivateNetwork=no
ProtectKernelTunables=yes
ProtectControlGroups=yes
ReadWritePaths=-/sys/devices -/proc/sys/net/core/rps_default_mask %s
"""


class AtBoot(NamedTuple):
    """How the program is run. content: of the program, as zipapp makes it. owner: user and group id, to whom
    all its files are to belong; None for whom they may belong to.
    """

    content: bytes
    interpreter: str
    path: str = PROGRAM_PATH
    owner: tuple[int, int] | None = None


def boot_files(at_boot: AtBoot, layers: Sequence[str]) -> tuple[list[WantedFile], Mapping[str, str]]:
    """Return the program and its services for these layers, and the links by which systemd starts those.

    What takes more power is in a service of its own, where it is wished at all.
    """
    files = [WantedFile(BOOT, at_boot.path, at_boot.content, _PROGRAM_MODE, owner=at_boot.owner)]
    after = "systemd-udev-settle.service"
    units = {UNIT: _unit(at_boot, "Keep the host's work on its reserved CPUs", after, KERNEL, _OF_KERNEL)}
    if RPS in layers:
        what = "Work on received packets on the reserved CPUs"
        units[NETWORK_UNIT] = _unit(at_boot, what, after + " network-pre.target", NETWORK, _OF_NETWORK)
    links = {}
    for name, text in units.items():
        place = "%s/%s" % (UNIT_DIRECTORY, name)
        files.append(WantedFile(BOOT, place, text.encode("utf-8"), owner=at_boot.owner))
        links["%s/multi-user.target.wants/%s" % (UNIT_DIRECTORY, name)] = place
    return files, links


def _unit(at_boot: AtBoot, what: str, after: str, part: str, needs: str) -> str:
    return _UNIT % {
        "what": what,
        "after": after,
        "journal": PATH,
        "interpreter": at_boot.interpreter,
        "flags": PYTHON_FLAGS,
        "program": at_boot.path,
        "part": part,
        "needs": needs % DIRECTORY,
        "sandbox": SANDBOX,
    }


# What makes a slice of systemd a partition, and undoes it. Pure.
#
# CPUs are given to it when nothing of the host is on them any more, and taken away before the host gets them back. A
# change of its CPUs ends the partition and begins another.
# Its source: "Cpuset Interface Files" in Linux's Documentation/admin-guide/cgroup-v2.rst, systemd.slice(5).


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

    off: Sequence[ValueStep] = ()
    start: Sequence[tuple[str, ...]] = ()
    stop: Sequence[tuple[str, ...]] = ()
    on: Sequence[ValueStep] = ()
    notes: Sequence[str] = ()


def slice_files(own: OwnCPUs, at_boot: bool) -> tuple[list[WantedFile], Mapping[str, str]]:
    """Return the unit of the slice, and with at_boot the link by which systemd starts it."""
    path = "%s/%s" % (UNIT_DIRECTORY, own.slice)
    content = _SLICE.format(service=UNIT, cpus=own.cpus).encode("ascii")
    return [WantedFile(PARTITION, path, content)], {_LINK % own.slice: path} if at_boot else {}


def change_partition(
    places: Mapping[str, TopCgroup], made: Sequence[str], own: OwnCPUs | None, online: CPUSet, runs: bool
) -> Change:
    """Return what brings the slices that were made, and the one that is wanted, to what is wanted.

    places: each of them as it is. runs: whether a slice that is not there is started meanwhile.
    """
    off: list[ValueStep] = []
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


def change_after_boot(place: TopCgroup, own: OwnCPUs) -> Change:
    """Return what brings one slice to what is wanted after a boot, whether systemd has started it or not."""
    if place.is_there:
        return change_partition({own.slice: place}, (), own, CPUSet(), runs=False)
    what = "%s: systemd has not started this slice, so CPUs %s are nobody's own" % (place.path, own.cpus)
    return Change(notes=[Note(REFUSED_NOTE, what)])


def is_of_slice(command: Sequence[str]) -> bool:
    """Return whether a command starts or stops a slice."""
    return tuple(command[:2]) in (_START, _STOP)


def is_as_wanted(place: TopCgroup, own: OwnCPUs) -> bool:
    """Return whether a slice is the partition that is wanted, and the kernel takes it for one."""
    cpus = str(own.cpus)
    return (place.cpus, place.exclusive, place.partition) == (cpus, cpus, own.kind)


def _begun(place: TopCgroup, own: OwnCPUs) -> list[ValueStep]:
    cpus = str(own.cpus)
    return [
        *_written(place, CPUS, place.cpus, cpus),
        *_written(place, EXCLUSIVE, place.exclusive, cpus),
        *_written(place, KIND_FILE, place.partition, own.kind, KIND),
    ]


def _ended(place: TopCgroup) -> list[ValueStep]:
    steps = _written(place, KIND_FILE, place.partition, MEMBER, KIND) if place.partition else []
    return [*steps, *_written(place, EXCLUSIVE, place.exclusive, "")]


def _written(place: TopCgroup, file: str, before: str, after: str, form: str = LIST) -> list[ValueStep]:
    if before == after:
        return []
    return [ValueStep(PARTITION, "%s %s" % (place.name, file), "%s/%s" % (place.path, file), before, after, form)]
