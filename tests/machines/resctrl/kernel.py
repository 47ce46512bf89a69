# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A model of the kernel's resctrl: what it answers to each read, write, mkdir and rmdir, with its texts.

It is made from Documentation/filesystems/resctrl.rst, and where that says nothing from what fs/resctrl does: masks
(cbm_validate), new groups (__init_one_rdt_domain), modes (rdtgroup_mode_test_exclusive), CPUs (cpus_ctrl_write).
It uses nothing of the collection, which is tested against it.
"""

from __future__ import annotations

import errno
import re
from typing import Callable

from .shapes import BandwidthShape, CacheShape, bits, parsed_list, sum_bits
from .shown import EXCLUSIVE, LOCKSETUP, MAX_MBPS, SHAREABLE, Group, RefusedError, Shown


class Kernel(Shown):
    """One mounted resctrl, with what is written to it."""

    # --- writing -----------------------------------------------------------------------------------------

    def write(self, path: str, data: bytes) -> None:
        """Take one write to a file. Raises RefusedError."""
        if not self.is_file(path):
            raise RefusedError(errno.ENOENT)
        if self.mode_of(path) == 0o444:
            raise RefusedError(errno.EACCES)
        found = self.group_of(path)
        assert found is not None
        group, rest = found
        try:
            text = data.decode("ascii")
        except UnicodeDecodeError:
            raise RefusedError(errno.EINVAL) from None
        takers: dict[str, Callable[[Group, str], None]] = {
            "schemata": self._write_schemata,
            "mode": self._write_mode,
            "cpus": lambda group, given: self._write_cpus(group, given, is_list=False),
            "cpus_list": lambda group, given: self._write_cpus(group, given, is_list=True),
            "tasks": self._write_tasks,
        }
        if rest not in takers:
            raise RefusedError(errno.EINVAL)
        takers[rest](group, text)

    def refuse(self, text: str, number: int = errno.EINVAL) -> RefusedError:
        """Return the error, after its reason was written down."""
        self.status += text + "\n"
        return RefusedError(number)

    def _write_schemata(self, group: Group, text: str) -> None:
        if not text.endswith("\n"):
            raise RefusedError(errno.EINVAL)
        self.status = ""
        staged: dict[str, dict[int, int]] = {}
        for line in text[:-1].split("\n"):
            name, colon, values = line.partition(":")
            name = name.strip()
            if not colon:
                raise self.refuse("Missing ':'")
            if not values:
                raise self.refuse("Missing '%s' value" % name)
            shape = self.caches.get(name) or self.limits.get(name)
            if shape is None or group.closid >= self.closids(shape):
                raise self.refuse("Unknown or unsupported resource name '%s'" % name)
            self._stage(group, name, values, staged.setdefault(name, {}))
        for name, given in staged.items():
            group.values[name].update(given)

    def _stage(self, group: Group, name: str, values: str, staged: dict[int, int]) -> None:
        for part in values.split(";"):
            if not part:
                return
            number, sign, value = part.partition("=")
            if not sign or not number.isdigit():
                raise self.refuse("Missing '=' or non-numeric domain")
            if int(number) not in group.values[name]:
                # The kernel has no words for this one.
                raise RefusedError(errno.EINVAL)
            if int(number) in staged:
                raise self.refuse("Duplicate domain %d" % int(number))
            if name in self.limits:
                staged[int(number)] = self._bandwidth(self.limits[name], value.strip())
            else:
                staged[int(number)] = self._mask(group, name, int(number), value.strip())

    def _bandwidth(self, limit: BandwidthShape, value: str) -> int:
        if not limit.linear and limit.largest == 100:
            raise self.refuse("No support for non-linear MB domains")
        if not value.isdigit() or int(value) > MAX_MBPS:
            raise self.refuse("Invalid MB value %s" % value)
        if limit.is_rate:
            return int(value)
        if not limit.least <= int(value) <= limit.largest:
            raise self.refuse("MB value %d out of range [%d,%d]" % (int(value), limit.least, limit.largest))
        return -(-int(value) // limit.step) * limit.step

    def _mask(self, group: Group, name: str, number: int, value: str) -> int:
        cache = self.caches[name]
        if not re.fullmatch("(0x)?[0-9a-fA-F]{1,16}", value):
            raise self.refuse("Non-hex character in the mask %s" % value)
        mask = int(value, 16)
        if (cache.least and not mask) or mask > cache.full:
            raise self.refuse("Mask out of range")
        first = (mask & -mask).bit_length() - 1
        run = 0
        while mask >> (first + run) & 1:
            run += 1
        if not cache.sparse and mask >> (first + run):
            raise self.refuse("The mask %x has non-consecutive 1-bits" % mask)
        if run < cache.least:
            raise self.refuse("Need at least %d bits in the mask" % cache.least)
        if self._overlaps(cache, number, mask, group, exclusive_only=True):
            raise self.refuse("Overlaps with exclusive group")
        if group.mode == EXCLUSIVE and self._overlaps(cache, number, mask, group, exclusive_only=False):
            raise self.refuse("Overlaps with other group")
        return mask

    def _overlaps(self, cache: CacheShape, number: int, mask: int, group: Group, exclusive_only: bool) -> bool:
        if not exclusive_only and mask & cache.shareable:
            return True
        for neighbour in self.groups.values():
            if neighbour is group or neighbour.mode == LOCKSETUP or (exclusive_only and neighbour.mode != EXCLUSIVE):
                continue
            # Code and data are in the same ways.
            if any(mask & neighbour.values[name][number] for name in cache.names):
                return True
        return False

    def _write_mode(self, group: Group, text: str) -> None:
        if not text.endswith("\n"):
            raise RefusedError(errno.EINVAL)
        self.status = ""
        mode = text[:-1]
        if mode == group.mode:
            return
        if mode == EXCLUSIVE:
            if not self.caches:
                raise self.refuse("Cannot be exclusive without CAT/CDP")
            for name, cache in self.caches.items():
                for number, mask in group.values[name].items():
                    if self._overlaps(cache, number, mask, group, exclusive_only=False):
                        raise self.refuse("Schemata overlaps")
        elif mode == LOCKSETUP and group is self.root:
            raise self.refuse("Cannot pseudo-lock default group")
        elif mode not in (SHAREABLE, LOCKSETUP):
            raise self.refuse("Unknown or unsupported mode")
        group.mode = mode

    def _write_cpus(self, group: Group, text: str, is_list: bool) -> None:
        self.status = ""
        if group.mode == LOCKSETUP:
            raise self.refuse("Pseudo-locking in progress")
        try:
            cpus = parsed_list(text.strip()) if is_list else bits(int(text.strip().replace(",", "") or "0", 16))
        except ValueError:
            raise self.refuse("Bad CPU list/mask") from None
        if not cpus <= set(self.shape.online):
            raise self.refuse("Can only assign online CPUs")
        dropped = group.cpus - cpus
        if dropped and group is self.root:
            raise self.refuse("Can't drop CPUs from default group")
        self.root.cpus |= dropped
        for neighbour in self.groups.values():
            if neighbour is not group:
                neighbour.cpus -= cpus
        group.cpus = cpus

    def _write_tasks(self, group: Group, text: str) -> None:
        self.status = ""
        if group.mode == LOCKSETUP:
            raise self.refuse("Pseudo-locking in progress")
        for word in text.strip().split(","):
            if not re.fullmatch(r"\d{1,9}", word.strip()):
                raise self.refuse("Task list parsing error pid %s" % word.strip())
            pid = int(word)
            if not self.is_alive(pid):
                self.status += "No task %d\n" % pid
                raise self.refuse("Error while processing task %d" % pid, errno.ESRCH)
            for neighbour in self.groups.values():
                neighbour.tasks = [task for task in neighbour.tasks if task != pid]
            if group is not self.root:
                group.tasks.append(pid)

    # --- groups ------------------------------------------------------------------------------------------

    def mkdir(self, path: str) -> None:
        """Make a group. Raises RefusedError."""
        name = path.strip("/")
        if "/" in name or "\n" in name:
            raise RefusedError(errno.EPERM if "/" in name else errno.EINVAL)
        if name in (self.names("/") or []):
            raise RefusedError(errno.EEXIST)
        self.status = ""
        taken = {group.closid for group in self.groups.values()}
        free = [number for number in range(self._most_groups()) if number not in taken]
        if not free:
            raise self.refuse("Out of CLOSIDs", errno.ENOSPC)
        if self.shape.rmids is not None and len(self.groups) >= self.shape.rmids:
            raise self.refuse("Out of RMIDs", errno.ENOSPC)
        group = Group(name, free[0])
        for schema, cache in self.caches.items():
            group.values[schema] = {number: self._first_mask(schema, cache, number) for number in cache.ids}
        for schema, limit in self.limits.items():
            group.values[schema] = dict.fromkeys(limit.ids, self._largest(limit))
        self.groups[name] = group

    def _first_mask(self, schema: str, cache: CacheShape, number: int) -> int:
        """Return all that is shareable or unused; of that the lowest run."""
        mask = used = cache.shareable
        for group in self.groups.values():
            if group.mode == LOCKSETUP:
                continue
            used |= sum_bits(group.values[name][number] for name in cache.names)
            if group.mode == SHAREABLE:
                mask |= group.values[schema][number]
        mask |= cache.full & ~used
        run = mask & ~(mask + (mask & -mask))
        if bin(run).count("1") < cache.least:
            raise self.refuse("No space on %s:%d" % (schema, number), errno.ENOSPC)
        return run

    def rmdir(self, path: str) -> None:
        """Remove a group: its CPUs and processes go to the root. Raises RefusedError."""
        name = path.strip("/")
        if name not in self.groups or not name:
            raise RefusedError(errno.EPERM)
        group = self.groups.pop(name)
        self.root.cpus |= group.cpus

    # --- for tests ---------------------------------------------------------------------------------------

    def state(self) -> dict[str, str]:
        """Return {path: content} of all that can be changed."""
        return {
            "/".join(filter(None, (name, file))): self.read("/%s/%s" % (name, file) if name else "/" + file)
            for name in sorted(self.groups)
            for file in ("cpus_list", "mode", "schemata", "tasks")
        }
