# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's resctrl on a node, live or saved: what can be divided, its groups, and the text of schemata.

A cache is divided in ways, the bits of a mask. Source: Documentation/filesystems/resctrl.rst in Linux.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping, NamedTuple, Sequence, TypeVar

from .._base.errors import InputError, NodeError
from .._base.tree import RESCTRL, RESCTRL_TYPE, Tree, is_number
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
        """Return whether the kernel takes this mask: cbm_validate() in fs/resctrl/ctrlmondata.c."""
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
        """Return its mask or number; 0 where it has none."""
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
        """Return how many groups there can be, the root among them: the smallest number of all resources; 0 without
        any."""
        numbers = [cache.closids for cache in self.caches] + [limit.closids for limit in self.bandwidths]
        return min(numbers, default=0)


# --- masks -------------------------------------------------------------------------------------------------


def lowest_run(mask: int) -> int:
    """Return the lowest consecutive bits of a mask."""
    lowest = mask & -mask
    return mask & ~(mask + lowest)


def is_one_run(mask: int) -> bool:
    """Return whether the bits of a mask are consecutive."""
    return mask == lowest_run(mask)


def runs(mask: int) -> Iterator[int]:
    """Yield the runs of consecutive bits, the lowest first."""
    while mask:
        run = lowest_run(mask)
        mask ^= run
        yield run


# --- schemata ----------------------------------------------------------------------------------------------


def is_bandwidth(resource: str) -> bool:
    """Return whether its values are decimal numbers."""
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
    """Return the lines as they are written: what they leave out stays as it is."""
    return "".join(
        "%s:%s\n" % (name, ";".join("%d=%s" % (number, value_text(name, value)) for number, value in values.items()))
        for name, values in schemata.items()
        if values
    )


def value_text(resource: str, value: int) -> str:
    """Return a mask or a number as schemata have it."""
    return "%d" % value if is_bandwidth(resource) else "%x" % value


def parse_mask(text: str) -> int:
    """Return a mask of ways, as "7ff". Raises InputError."""
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


# Where a node lists its mounts; a live one has both.
MOUNTS = ("/proc/mounts", "/proc/self/mounts")
CACHES = tuple(level + end for level in LEVELS for end in ("", CODE, DATA))
BANDWIDTHS = ("MB", "SMBA")
MONITORING = "L3_MON"
# What is read below info/ and in each group.
CACHE_FILES = ("num_closids", "cbm_mask", "min_cbm_bits", "shareable_bits", "sparse_masks", "bit_usage")
RESCTRL_BANDWIDTH_FILES = ("num_closids", "min_bandwidth", "bandwidth_gran", "delay_linear", "thread_throttle_mode")
MONITORING_FILES = ("num_rmids", "mon_features")
GROUP_FILES = ("mode", "cpus_list", "schemata", "tasks")
COUNTERS = {"llc_occupancy": "occupancy", "mbm_total_bytes": "total", "mbm_local_bytes": "local"}
# Directories of the root that are no groups.
NO_GROUPS = ("info", "mon_data", "mon_groups")
MON_DATA, MON_GROUPS = "mon_data", "mon_groups"
_DOMAIN, _SUB_DOMAIN = re.compile(r"mon_L3_(\d{1,9})"), re.compile(r"mon_sub_L3_\d{1,9}")

# Processes of one group that are looked at.
MOST_TASKS = 64
_CPU = "/sys/devices/system/cpu"
_MBPS = "mba_MBps"
# New and old names of the same mask.
CORE_MASKS = ("core_cpus", "thread_siblings")

_Value = TypeVar("_Value")


def find_mount(tree: Tree) -> tuple[str, tuple[str, ...]] | None:
    """Return where resctrl is mounted, and with which options; None where it is not."""
    for path in MOUNTS:
        if not tree.exists(path):
            continue
        for line in tree.read_bytes(path).decode("utf-8", "surrogateescape").splitlines():
            fields = line.split(" ")
            # Elsewhere somebody has it for his own ends; there it is the same one.
            if len(fields) >= 4 and fields[2] == RESCTRL_TYPE and fields[1] == RESCTRL:
                return RESCTRL, tuple(fields[3].split(","))
        return None
    return None


def is_supported(tree: Tree) -> bool:
    """Return whether the kernel and the CPUs have resctrl: only then the directory is there."""
    return tree.exists(RESCTRL)


def read_resctrl(tree: Tree, counters: bool = True) -> Resctrl | None:
    """Return all of it; None where it is not mounted. counters: whether what was counted is read, too.

    Raises NodeError, which names the file, for what is not as the kernel writes it.
    """
    mounted = find_mount(tree)
    if mounted is None:
        return None
    mount, options = mounted
    reader = _Reader(tree, mount)
    names = tree.names(mount)
    if not tree.exists(mount + "/schemata"):
        raise NodeError("has no schemata, so it is no resctrl", tree.path(mount))
    groups = {ROOT: reader.group(ROOT, counters)}
    for name in names:
        if name not in NO_GROUPS and tree.exists("%s/%s/schemata" % (mount, name)):
            groups[name] = reader.group(name, counters)
    return Resctrl(
        mount,
        options,
        tuple(reader.cache(name) for name in CACHES if reader.has(name)),
        tuple(reader.bandwidth(name, _MBPS in options and name == "MB") for name in BANDWIDTHS if reader.has(name)),
        reader.monitoring(),
        groups,
    )


class _Reader:
    def __init__(self, tree: Tree, mount: str) -> None:
        self.tree = tree
        self.mount = mount
        self.info = frozenset(tree.names(mount + "/info"))

    def has(self, resource: str) -> bool:
        # A cache that is only monitored has no masks.
        return resource in self.info and self.tree.exists("%s/info/%s/num_closids" % (self.mount, resource))

    def cache(self, name: str) -> Cache:
        path = "%s/info/%s/" % (self.mount, name)
        return Cache(
            name,
            self._number(path + "num_closids"),
            self._needed(path + "cbm_mask", parse_mask),
            self._number(path + "min_cbm_bits"),
            self._given(path + "shareable_bits", parse_mask, 0),
            # The file is there since Linux 6.7; before, only AMD takes masks with gaps.
            self._given(path + "sparse_masks", _number, 0) == 1,
            self._given(path + "bit_usage", parse_usage, {}),
        )

    def bandwidth(self, name: str, is_rate: bool) -> BandwidthResource:
        path = "%s/info/%s/" % (self.mount, name)
        linear = self._given(path + "delay_linear", _number, -1)
        return BandwidthResource(
            name,
            self._number(path + "num_closids"),
            self._number(path + "min_bandwidth"),
            max(self._number(path + "bandwidth_gran"), 1),
            None if linear < 0 else linear == 1,
            self._given(path + "thread_throttle_mode", str, ""),
            is_rate,
        )

    def monitoring(self) -> Monitoring | None:
        if MONITORING not in self.info:
            return None
        path = "%s/info/%s/" % (self.mount, MONITORING)
        features = self.tree.read_text(path + "mon_features") if self.tree.exists(path + "mon_features") else ""
        sub_numa = 1
        for name in self.tree.names("%s/%s" % (self.mount, MON_DATA)):
            if _DOMAIN.fullmatch(name):
                inner = self.tree.names("%s/%s/%s" % (self.mount, MON_DATA, name))
                sub_numa = max(sub_numa, sum(bool(_SUB_DOMAIN.fullmatch(sub)) for sub in inner))
                break
        return Monitoring(self._number(path + "num_rmids"), tuple(features.split()), sub_numa)

    def group(self, name: str, counters: bool) -> ControlGroup:
        path = "%s/%s" % (self.mount, name) if name else self.mount
        # The root has all tasks of the node, which say nothing.
        tasks = self._tasks(path + "/tasks") if name else []
        return ControlGroup(
            name,
            # Kernels before 4.19 have no modes: all groups share.
            self._given(path + "/mode", str, "shareable"),
            self._needed(path + "/cpus_list", CPUSet.parse),
            self._needed_text(path + "/schemata", parse_schemata),
            tuple(tasks[:MOST_TASKS]),
            len(tasks) > MOST_TASKS,
            self._counted(path) if counters else {},
            len(self.tree.names("%s/%s" % (path, MON_GROUPS))),
        )

    def _tasks(self, path: str) -> list[int]:
        text = self.tree.read_text(path) if self.tree.exists(path) else ""
        return [int(line) for line in text.split(None, MOST_TASKS + 1)[: MOST_TASKS + 1] if is_number(line)]

    def _counted(self, path: str) -> dict[int, Counted]:
        found = {}
        for name in self.tree.names("%s/%s" % (path, MON_DATA)):
            domain = _DOMAIN.fullmatch(name)
            if domain is not None:
                values = {}
                for file, field in COUNTERS.items():
                    # "Unavailable" and "Unassigned" are what the kernel writes where it has no number.
                    text = self.tree.read_value("%s/%s/%s/%s" % (path, MON_DATA, name, file)) or ""
                    values[field] = int(text) if is_number(text) else None
                found[int(domain.group(1))] = Counted(**values)
        return found

    def _number(self, path: str) -> int:
        return self._needed(path, _number)

    def _needed(self, path: str, parse: Callable[[str], _Value]) -> _Value:
        text = self.tree.read_value(path)
        if text is None:
            raise NodeError("is not there", self.tree.path(path), "is this a whole resctrl?")
        return self._parsed(path, text, parse)

    def _needed_text(self, path: str, parse: Callable[[str], _Value]) -> _Value:
        return self._parsed(path, self.tree.read_text(path), parse)

    def _given(self, path: str, parse: Callable[[str], _Value], default: _Value) -> _Value:
        text = self.tree.read_value(path)
        return default if text is None else self._parsed(path, text, parse)

    def _parsed(self, path: str, text: str, parse: Callable[[str], _Value]) -> _Value:
        try:
            return parse(text)
        except InputError as error:
            raise self.tree.damaged(path, error.what) from error


def _number(text: str) -> int:
    if not is_number(text) or len(text) > 10:
        raise InputError("%r is not a number" % text[:80])
    return int(text)


def read_online(tree: Tree) -> CPUSet:
    """Return the CPUs that are online; none where that is not known. Raises NodeError for what are no CPUs."""
    path = _CPU + "/online"
    try:
        return CPUSet.parse(tree.read_value(path) or "")
    except InputError as error:
        raise tree.damaged(path, str(error)) from error


def read_cores(tree: Tree, online: CPUSet) -> list[CPUSet]:
    """Return the online CPUs of each core, read from its lowest CPU."""
    cores = []
    seen = CPUSet()
    for cpu in online:
        if cpu not in seen:
            cpus = _mask_at(tree, "%s/cpu%d/topology/" % (_CPU, cpu), CORE_MASKS) & online | CPUSet([cpu])
            cores.append(cpus)
            seen |= cpus
    return cores


def _mask_at(tree: Tree, directory: str, names: Sequence[str]) -> CPUSet:
    """Return the mask in the first of these files that is there; empty without one. Raises NodeError."""
    for name in names:
        text = tree.read_value(directory + name)
        if text:
            try:
                return CPUSet.parse_mask(text)
            except InputError as error:
                raise tree.damaged(directory + name, str(error)) from error
    return CPUSet()


def read_domains(tree: Tree, level: str, online: CPUSet) -> dict[int, CPUSet]:
    """Return {id: its online CPUs} of the caches of a level, L3 or L2; empty where the kernel gives them no ids.

    A cache is read from its lowest CPU alone, as all its CPUs say the same.
    """
    found: dict[int, CPUSet] = {}
    seen = CPUSet()
    for cpu in online:
        if cpu in seen:
            continue
        directory = "%s/cpu%d/cache" % (_CPU, cpu)
        for index in reversed(tree.numbered(directory, "index")):
            path = "%s/index%d/" % (directory, index)
            if tree.read_value(path + "level") != level[1:] or tree.read_value(path + "type") == "Instruction":
                continue
            number = tree.read_value(path + "id")
            if number is None or not is_number(number) or len(number) > 9:
                break
            cpus = _mask_at(tree, path, ("shared_cpu_map",)) & online
            found[int(number)] = found.get(int(number), CPUSet()) | cpus | CPUSet([cpu])
            seen = seen | found[int(number)]
            break
    return found
