# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of the kernel's resctrl: what a platform can divide, its groups, and the text of schemata. Pure.

A cache is divided in ways, the bits of a mask. Source: Documentation/filesystems/resctrl.rst in Linux.
"""

from __future__ import annotations

import re
from typing import Iterator, Mapping, NamedTuple

from .._base.errors import InputError
from .._base.tree import is_number
from ..cpuset import CPUSet, count_bits

# The group of all tasks and CPUs that are in no other one; it has no directory of its own.
ROOT = ""
SHAREABLE, EXCLUSIVE = "shareable", "exclusive"
# Ours.
PREFIX = "kubenode."
EXCLUSIVE_GROUP, SHARED_GROUP = PREFIX + "exclusive", PREFIX + "shared"
OUR_GROUPS = (EXCLUSIVE_GROUP, SHARED_GROUP)
# The check of a note on what cannot be read.
UNMEASURED = "cache-unmeasured"
# With CDP, code and data have a mask each.
CODE, DATA = "CODE", "DATA"
# The caches that may be divided, the one first that is taken where there are both.
LEVELS = ("L3", "L2")

# {resource: {id: value}}: a mask of a cache, a number of a bandwidth.
Schemata = Mapping[str, Mapping[int, int]]

_LINE = re.compile(r"\s*(?P<name>[A-Z][A-Z0-9]*)\s*:(?P<values>.*)", re.DOTALL)
_VALUE = re.compile(r"\s*(?P<id>\d{1,9})\s*=\s*(?P<value>[0-9A-Fa-f]{1,16})\s*", re.ASCII)
# The kernel has no wider mask, and no more caches than CPUs.
_MOST_WAYS, _MOST_IDS = 64, 8192


class Cache(NamedTuple):
    """A cache that can be divided, as L3, with CDP L3CODE and L3DATA.

    closids: how many groups there can be. ways: the mask of all. least: of ways in a mask. io_ways: those that devices
    may fill, too. sparse: whether a mask may have gaps. usage: {id: a letter for each way, the highest first}.
    """

    name: str
    closids: int
    ways: int
    least: int
    io_ways: int
    sparse: bool
    usage: Mapping[int, str]

    @property
    def level(self) -> str:
        """L3 or L2."""
        return self.name[: -len(CODE)] if self.has_cdp else self.name

    @property
    def has_cdp(self) -> bool:
        """Whether code and data have masks of their own."""
        return self.name.endswith((CODE, DATA))

    def takes(self, mask: int) -> bool:
        """Whether the kernel takes this mask: cbm_validate() in fs/resctrl/ctrlmondata.c."""
        if not mask or mask & ~self.ways or (not self.sparse and not is_one_run(mask)):
            return False
        # Of a mask with gaps, it counts the lowest run.
        return count_bits(lowest_run(mask)) >= self.least


class BandwidthResource(NamedTuple):
    """A bandwidth of memory that can be limited, MB or SMBA.

    least, step: of a value. linear: None where the kernel does not say. throttling: C(max) where the CPUs of a core get
    the lower of their values, C(per-thread), or empty where the kernel does not say. is_rate: whether values are MiB/s.
    """

    name: str
    closids: int
    least: int
    step: int
    linear: bool | None
    throttling: str
    is_rate: bool


class Monitoring(NamedTuple):
    """What can be counted. features: such as llc_occupancy. sub_numa: how many NUMA nodes share a cache, 1 for one."""

    rmids: int
    features: tuple[str, ...]
    sub_numa: int


class Counted(NamedTuple):
    """What was counted of a group at one cache, in bytes; None for what is not counted, or cannot be read."""

    occupancy: int | None = None
    total: int | None = None
    local: int | None = None


class ControlGroup(NamedTuple):
    """A control group. tasks: the processes that were put into it, as far as they were read; has_more: there are more.

    counted: {id of the cache: what was counted}. monitors: how many groups in it only count.
    """

    name: str
    mode: str
    cpus: CPUSet
    schemata: Schemata
    tasks: tuple[int, ...] = ()
    has_more: bool = False
    counted: Mapping[int, Counted] = {}
    monitors: int = 0

    def mask(self, resource: str, number: int) -> int:
        """Its mask or number; 0 where it has none."""
        return self.schemata.get(resource, {}).get(number, 0)


class Resctrl(NamedTuple):
    """A mounted resctrl. options: of the mount. groups: by name, the root among them."""

    mount: str
    options: tuple[str, ...]
    caches: tuple[Cache, ...]
    bandwidths: tuple[BandwidthResource, ...]
    monitoring: Monitoring | None
    groups: Mapping[str, ControlGroup]

    @property
    def root(self) -> ControlGroup:
        """The root group."""
        return self.groups[ROOT]

    @property
    def foreign(self) -> list[ControlGroup]:
        """The groups that are neither the root nor ours."""
        return [group for name, group in self.groups.items() if name != ROOT and name not in OUR_GROUPS]

    def closids(self) -> int:
        """How many groups there can be, the root among them: the smallest number of all resources; 0 without any."""
        numbers = [cache.closids for cache in self.caches] + [limit.closids for limit in self.bandwidths]
        return min(numbers, default=0)


# --- masks -------------------------------------------------------------------------------------------------


def lowest_run(mask: int) -> int:
    """The lowest consecutive bits of a mask."""
    lowest = mask & -mask
    return mask & ~(mask + lowest)


def is_one_run(mask: int) -> bool:
    """Whether the bits of a mask are consecutive."""
    return mask == lowest_run(mask)


def runs(mask: int) -> Iterator[int]:
    """The runs of consecutive bits, the lowest first."""
    while mask:
        run = lowest_run(mask)
        mask ^= run
        yield run


# --- schemata ----------------------------------------------------------------------------------------------


def is_bandwidth(resource: str) -> bool:
    """Whether its values are decimal numbers."""
    return not resource.startswith("L")


def parse_schemata(text: str) -> Schemata:
    """Read a schemata file: a line for each resource, in what order the kernel has them. Raises InputError."""
    found: dict[str, dict[int, int]] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None or match["name"] in found:
            raise InputError("%r is no line of schemata" % line[:80])
        base = 10 if is_bandwidth(match["name"]) else 16
        values: dict[int, int] = {}
        # Of a group that is about to be pseudo-locked.
        parts = [] if match["values"].strip() == "uninitialized" else match["values"].split(";")
        for part in parts:
            value = _VALUE.fullmatch(part)
            if value is None or int(value["id"]) in values or len(values) == _MOST_IDS:
                raise InputError("%r is no line of schemata" % line[:80])
            try:
                values[int(value["id"])] = int(value["value"], base)
            except ValueError:
                raise InputError("%r is no line of schemata" % line[:80]) from None
        found[match["name"]] = values
    return found


def schemata_text(schemata: Schemata) -> str:
    """The lines as they are written: what they leave out stays as it is."""
    return "".join(
        "%s:%s\n" % (name, ";".join("%d=%s" % (number, value_text(name, value)) for number, value in values.items()))
        for name, values in schemata.items()
        if values
    )


def value_text(resource: str, value: int) -> str:
    """A mask or a number as schemata have it."""
    return "%d" % value if is_bandwidth(resource) else "%x" % value


def parse_mask(text: str) -> int:
    """A mask of ways, as "7ff". Raises InputError."""
    if not re.fullmatch("[0-9A-Fa-f]{1,16}", text):
        raise InputError("%r is no mask of ways" % text[:80])
    mask = int(text, 16)
    if mask >> _MOST_WAYS:
        raise InputError("%r is no mask of ways" % text[:80])
    return mask


def parse_usage(text: str) -> dict[int, str]:
    """Read bit_usage, "0=SSSSSSSSSXX;1=..."; what is not so is left out."""
    found = {}
    for part in text.split(";"):
        number, sign, letters = part.strip().partition("=")
        if sign and is_number(number) and len(number) < 10 and letters.isalnum() and letters.isascii():
            found[int(number)] = letters[:_MOST_WAYS]
    return found
