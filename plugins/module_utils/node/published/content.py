# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the file of a container says of its CPUs. Pure.

The members that a pass can compare without the machine's topology come first; `since` is the last. One stands on each
line, so that a shell finds it without a parser of JSON. docs/docsite/rst/dynamic.rst explains them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Iterable, NamedTuple

from ...cpuset import CPUSet
from ...errors import MALFORMED
from ...topology.model import Group, Topology

# Who gave a container its CPUs, beside the ids in host/owner/owners.py.
KUBELET, OURS = "kubelet", "reconcile"

# Longer names are none of Kubernetes: a UID has 36 characters, a container's name at most 63.
_NAME = re.compile("[A-Za-z0-9]([-._A-Za-z0-9]{0,98}[A-Za-z0-9])?", re.ASCII)

_HEAD = """\
{
  "version": 1,
  "pod": "%s",
  "container": "%s",
  "cpus": "%s",
  "exclusive": %s,
  "by": "%s",
  "effective": "%s",
  "leaving": "%s",
  "until": %s,
  "online": "%s",
"""
_TAIL = """\
  "siblings": %s,
  "numa_nodes": %s,
  "l3_caches": %s,
  "since": %.3f
}
"""


# How a whole file ends.
LAST = b"\n}\n"


class Entry(NamedTuple):
    """The CPUs of one container.

    cpus: those that it is to use. exclusive: whether no other container has them. by: who says so. effective: what the
    kernel lets it use. leaving: what the kernel takes at the time `until`, seconds since 1970; both are empty where
    nothing leaves.
    """

    pod_uid: str
    container: str
    cpus: CPUSet
    exclusive: bool
    by: str
    effective: CPUSet
    leaving: CPUSet = CPUSet()
    until: float | None = None


class Said(NamedTuple):
    """What a file said at the last pass."""

    cpus: CPUSet
    exclusive: bool
    by: str
    until: float | None
    since: float


def is_name(text: str) -> bool:
    """Whether a pod's UID or a container's name can be that of a file: the runtime may give any."""
    return _NAME.fullmatch(text) is not None


def head_of(entry: Entry, online: CPUSet) -> bytes:
    """The beginning of a file, which is the same as long as there is nothing new to say."""
    return (
        _HEAD
        % (
            entry.pod_uid,
            entry.container,
            entry.cpus,
            "true" if entry.exclusive else "false",
            entry.by,
            entry.effective,
            entry.leaving,
            "null" if entry.until is None else "%.3f" % entry.until,
            online,
        )
    ).encode("ascii")


def content_of(entry: Entry, online: CPUSet, topology: Topology, since: float) -> bytes:
    """The whole file. since: when the container got these CPUs, seconds since 1970."""
    cores = [str(core.cpus) for core in topology.cores if core.cpus & entry.cpus]
    parts = (cores, _shared_out(topology.numa_nodes, entry.cpus), _shared_out(topology.caches, entry.cpus))
    return head_of(entry, online) + (_TAIL % (*map(json.dumps, parts), since)).encode("ascii")


def _shared_out(groups: Iterable[Group], cpus: CPUSet) -> dict[str, str]:
    """{id of a group: the CPUs in it}"""
    return {str(group.id): str(group.cpus & cpus) for group in groups if group.cpus & cpus}


def read_said(content: bytes) -> Said | None:
    """What a file said; None for one that is none of ours."""
    try:
        data = json.loads(content)
        until = data["until"]
        return Said(
            CPUSet.parse(data["cpus"]),
            data["exclusive"] is True,
            str(data["by"]),
            None if until is None else _time(until),
            _time(data["since"]),
        )
    except MALFORMED:
        return None


def _time(value: float) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError("%r is no time" % (value,))
    return seconds
