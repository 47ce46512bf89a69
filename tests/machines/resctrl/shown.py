# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a mounted resctrl shows: its directories, and the contents of its files. See kernel.py."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Callable

from .shapes import BandwidthShape, CacheShape, Shape, listed, sum_bits

MAX_MBPS = (1 << 32) - 1
SHAREABLE, EXCLUSIVE, LOCKSETUP = "shareable", "exclusive", "pseudo-locksetup"


@dataclass
class Group:
    """A control group. values: {schema: {id: value}}."""

    name: str
    closid: int
    mode: str = SHAREABLE
    cpus: set[int] = field(default_factory=set)
    tasks: list[int] = field(default_factory=list)
    values: dict[str, dict[int, int]] = field(default_factory=dict)


class RefusedError(Exception):
    """What the kernel answers with."""

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode[number])
        self.number = number


class Shown:
    """One mounted resctrl that is only read. All paths begin with "/" and are relative to the mount."""

    def __init__(self, shape: Shape, is_alive: Callable[[int], bool] = bool) -> None:
        self.shape = shape
        self.is_alive = is_alive
        self.status = ""
        self.caches = {name: cache for cache in shape.caches for name in cache.names}
        self.limits = {limit.name: limit for limit in shape.bandwidths}
        self.root = Group("", 0, cpus=set(shape.online))
        self.groups: dict[str, Group] = {"": self.root}
        self.counted: dict[tuple[str, int, str], int | str] = {}
        for name, cache in self.caches.items():
            self.root.values[name] = dict.fromkeys(cache.ids, cache.full)
        for name, limit in self.limits.items():
            self.root.values[name] = dict.fromkeys(limit.ids, self._largest(limit))

    # --- limits ------------------------------------------------------------------------------------------

    def closids(self, shape: CacheShape | BandwidthShape) -> int:
        """Return the number of CLOSIDs, which CDP halves."""
        return shape.closids // 2 if isinstance(shape, CacheShape) and shape.cdp else shape.closids

    def _most_groups(self) -> int:
        shapes: list[CacheShape | BandwidthShape] = [*self.caches.values(), *self.limits.values()]
        return min((self.closids(shape) for shape in shapes), default=1)

    @staticmethod
    def _largest(limit: BandwidthShape) -> int:
        return MAX_MBPS if limit.is_rate else limit.largest

    # --- what is there -----------------------------------------------------------------------------------

    def group_of(self, path: str) -> tuple[Group, str] | None:
        """Return the group that a path is in, and the rest of the path."""
        first, _slash, rest = path.strip("/").partition("/")
        if first in self.groups and first:
            return self.groups[first], rest
        return self.root, path.strip("/")

    def names(self, path: str) -> list[str] | None:
        """Return the names in a directory; None where there is none."""
        if path.strip("/").partition("/")[0] == "info":
            return self._info_names(path.strip("/").split("/")[1:])
        found = self.group_of(path)
        if found is None:
            return None
        group, rest = found
        if not rest:
            names = ["cpus", "cpus_list", "mode", "schemata", "size", "tasks"]
            names += ["mon_data", "mon_groups"] if self.shape.rmids is not None else []
            return sorted(names + (["info", *(name for name in self.groups if name)] if group is self.root else []))
        if self.shape.rmids is None:
            return None
        if rest == "mon_groups":
            return []
        return self._mon_names(rest.split("/")[1:]) if rest.split("/")[0] == "mon_data" else None

    def _info_names(self, parts: list[str]) -> list[str] | None:
        if not parts:
            names = [*self.caches, *self.limits, *(["L3_MON"] if self.shape.rmids is not None else [])]
            return sorted([*names, "last_cmd_status"])
        if len(parts) > 1:
            return None
        if parts[0] in self.caches:
            names = ["bit_usage", "cbm_mask", "min_cbm_bits", "num_closids", "shareable_bits"]
            return names + (["sparse_masks"] if self.caches[parts[0]].says_sparse else [])
        if parts[0] in self.limits:
            names = ["bandwidth_gran", "delay_linear", "min_bandwidth", "num_closids"]
            return names + (["thread_throttle_mode"] if self.limits[parts[0]].throttle else [])
        is_monitoring = parts[0] == "L3_MON" and self.shape.rmids is not None
        return ["max_threshold_occupancy", "mon_features", "num_rmids"] if is_monitoring else None

    def _l3_ids(self) -> list[int]:
        ids = {number for cache in self.shape.caches if cache.name == "L3" for number in cache.ids}
        return sorted(ids or self.shape.sub_numa or {0})

    def _mon_names(self, parts: list[str]) -> list[str] | None:
        domains = {"mon_L3_%02d" % number: number for number in self._l3_ids()}
        if not parts:
            return list(domains)
        if parts[0] not in domains:
            return None
        subs = ["mon_sub_L3_%02d" % node for node in self.shape.sub_numa.get(domains[parts[0]], [])]
        if len(parts) == 1:
            return sorted([*self.shape.features, *subs])
        return sorted(self.shape.features) if len(parts) == 2 and parts[1] in subs else None

    def is_file(self, path: str) -> bool:
        """Return whether there is a file, and no directory."""
        above, _slash, name = path.rstrip("/").rpartition("/")
        return self.names(path) is None and name in (self.names(above) or [])

    def mode_of(self, path: str) -> int:
        """Return the bits of permission of a file."""
        name = path.rpartition("/")[2]
        in_group = not path.startswith("/info") and name in ("cpus", "cpus_list", "mode", "schemata", "tasks")
        return 0o644 if in_group or name == "max_threshold_occupancy" else 0o444

    # --- reading -----------------------------------------------------------------------------------------

    def read(self, path: str) -> str:
        """Return the content of a file. Raises RefusedError."""
        if not self.is_file(path):
            raise RefusedError(errno.ENOENT)
        parts = path.strip("/").split("/")
        if parts[0] == "info":
            return self._read_info(parts[1:])
        found = self.group_of(path)
        assert found is not None
        group, rest = found
        if rest.startswith("mon_data/"):
            return self._read_counter(group, rest.split("/")[1:])
        makers: dict[str, Callable[[Group], str]] = {
            "cpus": lambda group: "%x\n" % sum(1 << cpu for cpu in group.cpus),
            "cpus_list": lambda group: listed(group.cpus) + "\n",
            "mode": lambda group: group.mode + "\n",
            "schemata": self._schemata,
            "size": self._sizes,
            "tasks": lambda group: "".join("%d\n" % pid for pid in group.tasks if self.is_alive(pid)),
        }
        return makers[rest](group)

    def _read_info(self, parts: list[str]) -> str:
        if parts == ["last_cmd_status"]:
            return self.status or "ok\n"
        resource, name = parts
        if resource == "L3_MON":
            return {
                "num_rmids": "%s\n" % self.shape.rmids,
                "mon_features": "".join(feature + "\n" for feature in self.shape.features),
                "max_threshold_occupancy": "65536\n",
            }[name]
        if resource in self.limits:
            limit = self.limits[resource]
            return (
                "%s\n"
                % {
                    "num_closids": self.closids(limit),
                    "min_bandwidth": limit.least,
                    "bandwidth_gran": limit.step,
                    "delay_linear": limit.linear,
                    "thread_throttle_mode": limit.throttle,
                }[name]
            )
        cache = self.caches[resource]
        return {
            "num_closids": "%d\n" % self.closids(cache),
            "cbm_mask": "%x\n" % cache.full,
            "min_cbm_bits": "%d\n" % cache.least,
            "shareable_bits": "%x\n" % cache.shareable,
            "sparse_masks": "%d\n" % cache.sparse,
            "bit_usage": self._usage(resource) + "\n",
        }[name]

    def _usage(self, resource: str) -> str:
        cache, parts = self.caches[resource], []
        for number in cache.ids:
            shared = sum_bits(g.values[resource][number] for g in self.groups.values() if g.mode == SHAREABLE)
            own = sum_bits(g.values[resource][number] for g in self.groups.values() if g.mode == EXCLUSIVE)
            letters = ""
            for bit in reversed(range(cache.bits)):
                hardware, software = cache.shareable >> bit & 1, shared >> bit & 1
                letters += "X" if hardware and software else "H" if hardware else "S" if software else ""
                if not hardware and not software:
                    letters += "E" if own >> bit & 1 else "0"
            parts.append("%d=%s" % (number, letters))
        return ";".join(parts)

    def _schemata(self, group: Group) -> str:
        width = max(map(len, [*self.caches, *self.limits]), default=0)
        lines = ""
        for name, values in group.values.items():
            if group.mode == LOCKSETUP:
                lines += "%s:uninitialized\n" % name
                continue
            form = "%d=%x" if name in self.caches else "%d=%4d" if self.shape.pads_values else "%d=%d"
            if name in self.caches and self.shape.pads_values:
                form = "%%d=%%0%dx" % ((self.caches[name].bits + 3) // 4)
            lines += "%s:%s\n" % (name.rjust(width), ";".join(form % item for item in values.items()))
        return lines

    def _sizes(self, group: Group) -> str:
        width = max(map(len, [*self.caches, *self.limits]), default=0)
        lines = ""
        for name, values in group.values.items():
            sizes = values
            if name in self.caches:
                cache = self.caches[name]
                sizes = {key: cache.size // cache.bits * bin(mask).count("1") for key, mask in values.items()}
            lines += "%s:%s\n" % (name.rjust(width), ";".join("%d=%d" % item for item in sizes.items()))
        return lines

    def _read_counter(self, group: Group, parts: list[str]) -> str:
        number = int(parts[0].rpartition("_")[2])
        return "%s\n" % self.counted.get((group.name, number, parts[-1]), 0)
