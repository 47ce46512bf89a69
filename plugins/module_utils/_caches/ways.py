# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What our two groups and the root are to have: masks, CPUs, bandwidth. Pure.

A group is given CPUs, not processes, so it holds for whatever runs there. Source: "Resource allocation rules" in
Documentation/filesystems/resctrl.rst in Linux.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, Note, RefusedError, option
from .._base.quantity import counted, counted_are
from .._base.tree import is_number
from ..cpuset import CPUSet, count_bits, lowest_bits
from .resctrl import (
    EXCLUSIVE,
    EXCLUSIVE_GROUP,
    LEVELS,
    OUR_GROUPS,
    SHAREABLE,
    SHARED_GROUP,
    BandwidthResource,
    Cache,
    ControlGroup,
    Resctrl,
    is_bandwidth,
    is_one_run,
    runs,
)

# How much of a cache is wanted: a part in percent, a number of ways, or in proportion to the exclusive CPUs. Pure.


# "proportional": as large a part as the exclusive CPUs are of the CPUs of the cache.
PROPORTIONAL = "proportional"
# What holds for each id that is not named itself.
ALL = "all"

_PERCENT, _WAYS = re.compile(r"(\d{1,3})\s*%", re.ASCII), re.compile(r"\d{1,3}", re.ASCII)
_FORMS = "give 1%% to 99%%, a number of ways, or %s" % PROPORTIONAL


class Fraction(NamedTuple):
    """So many of so many."""

    some: int
    of_all: int


class CacheShare(NamedTuple):
    """One of percent and ways, or neither for a part in proportion to the exclusive CPUs."""

    percent: int = 0
    ways: int = 0

    def of(self, ways: int, least: int, room: int, part: Fraction) -> int:
        """Return how many ways that is, of `ways`. part: of the CPUs for which it is in proportion.

        least: as few as the kernel takes. room: as many as there can be. A part is rounded, and brought between the
        two; a number is taken as it is, and is for the caller to check.
        """
        if self.ways:
            return self.ways
        some, of_all = (self.percent, 100) if self.percent else part
        # To the next whole number, a half upwards.
        return max(least, min(room, (2 * ways * some + of_all) // (2 * of_all)))

    def __str__(self) -> str:
        return "%d%%" % self.percent if self.percent else str(self.ways) if self.ways else PROPORTIONAL


# {id of a cache, or "all": its share}
Shares = Mapping[str, CacheShare]


def parse_shares(given: Any, name: str) -> Shares:
    """Read what an operator wants of each cache: "60%", 6, "proportional", or {"all": "60%", "0": 6}.

    name: of the option. Raises InputError.
    """
    if not isinstance(given, Mapping):
        return {ALL: _share(given, option(name))}
    if not given:
        raise InputError("names no cache", where=option(name), remedy='give a share for "%s"' % ALL)
    shares: dict[str, CacheShare] = {}
    for key, value in given.items():
        text = str(key).strip()
        where = "%s, %s" % (option(name), text)
        if text != ALL and not (is_number(text) and len(text) < 10):
            raise InputError('is no id of a cache and not "%s"' % ALL, where=where)
        text = text if text == ALL else str(int(text))
        if text in shares:
            raise InputError("is there twice", where=where)
        shares[text] = _share(value, where)
    return shares


def _share(given: Any, where: str) -> CacheShare:
    text = "" if isinstance(given, bool) else str(given).strip()
    percent = _PERCENT.fullmatch(text)
    if percent is not None:
        share = CacheShare(percent=int(percent.group(1)))
        if not 1 <= share.percent <= 99:
            what = "nothing would be left for others" if share.percent else "nothing would be set apart"
            raise InputError("with %s %s" % (text, what), where=where, remedy=_FORMS)
        return share
    if _WAYS.fullmatch(text):
        if not int(text):
            raise InputError("0 ways: nothing would be set apart", where=where, remedy=_FORMS)
        return CacheShare(ways=int(text))
    if text == PROPORTIONAL:
        return CacheShare()
    raise InputError("%r is no share of a cache" % (given,), where=where, remedy=_FORMS)


def shown_shares(shares: Shares) -> Any:
    """Return the shares in the form in which they are given."""
    texts = {key: str(share) for key, share in shares.items()}
    return texts[ALL] if list(texts) == [ALL] else texts


def check_ids(shares: Shares, ids: Iterable[int], name: str, level: str) -> None:
    """Raise InputError for an id that the machine does not have, and for one of it without a share."""
    here = sorted(ids)
    shown = ", ".join(map(str, here))
    for key in shares:
        if key != ALL and int(key) not in here:
            raise InputError("the machine has no %s cache %s" % (level, key), option(name), "it has %s" % shown)
    missing = [str(number) for number in here if str(number) not in shares and ALL not in shares]
    if missing:
        what = "says nothing of the %s caches %s" % (level, ", ".join(missing))
        raise InputError(what, option(name), 'add "%s"' % ALL)


def share_of(shares: Shares, number: int) -> CacheShare:
    """Return that of the cache with this id."""
    return shares[str(number)] if str(number) in shares else shares[ALL]


# Which ways of one cache each group gets. Pure.
#
# The ways come from those of the root group: what others have to themselves is no part of them. The exclusive group
# gets one end of them, that which devices fill least; the shared group what is beside; the root keeps the other end.


class Ways(NamedTuple):
    """The masks of one cache. shared: that of the root where there is no shared group with ways of its own.

    io: those of the exclusive ones that devices may fill, too.
    """

    exclusive: int
    shared: int
    root: int
    io: int


def base_of(cache: Cache, mask: int, taken: int) -> int:
    """Return the ways of the root that can be divided: without those that are taken, and in one run where the kernel
    needs it.

    mask: of the root before anything was divided.
    """
    left = mask & cache.ways & ~taken
    if cache.sparse or is_one_run(left):
        return left
    return max(runs(left), key=count_bits)


def divide(cache: Cache, base: int, exclusive: int, shared: int) -> Ways:
    """Divide the ways `base` of a cache; exclusive, shared: how many each group is to have, shared 0 for none.

    Raises RefusedError where the kernel takes no masks of these sizes.
    """
    counts = (exclusive, shared) if shared else (exclusive,)
    candidates = list(_candidates(cache, base, counts))
    if not candidates:
        raise RefusedError(
            "%s (%x) cannot be divided into %s and a rest of at least %d"
            % (counted(count_bits(base), "way"), base, " and ".join(map(str, counts)), cache.least)
        )
    # Of several equals, the first.
    return min(candidates, key=lambda ways: count_bits(ways.io))


def _candidates(cache: Cache, base: int, counts: tuple[int, ...]) -> Iterator[Ways]:
    """Yield ways from the low end, and from the high end; where a mask may have gaps, first without those of
    devices."""
    if cache.sparse:
        yield from _masks(cache, base, counts, [base & ~cache.io_ways, base & cache.io_ways], is_low=True)
    yield from _masks(cache, base, counts, [base], is_low=True)
    yield from _masks(cache, base, counts, [base], is_low=False)


def _masks(cache: Cache, base: int, counts: tuple[int, ...], order: list[int], is_low: bool) -> Iterator[Ways]:
    """Yield the masks when ways are taken from these parts of the base, one after the other; none that the kernel
    refuses."""
    left, masks = base, []
    for count in counts:
        mask = 0
        for part in order:
            mask |= _end_of(part & left, count - count_bits(mask), is_low)
        left &= ~mask
        masks.append(mask)
    if left and all(count_bits(mask) == count for mask, count in zip(masks, counts)):
        shared = masks[1] if len(masks) > 1 else left
        if all(cache.takes(mask) for mask in (*masks, left)):
            yield Ways(masks[0], shared, left, masks[0] & cache.io_ways)


def _end_of(mask: int, count: int, is_low: bool) -> int:
    """Return the lowest or the highest `count` bits."""
    if is_low:
        return lowest_bits(mask, max(count, 0))
    return mask & ~lowest_bits(mask, max(count_bits(mask) - count, 0))


# The checks of what a plan has to say.
CORES_SPLIT, FOREIGN, OF_DEVICES = "cache-cores-split", "cache-foreign-group", "cache-ways-of-devices"

# What a module calls the wishes.
EXCLUSIVE_SHARE, SHARED_SHARE, SHARED_BANDWIDTH, MODE = "exclusive_share", "shared_share", "shared_bandwidth", "mode"

MB = "MB"
_WHOLE = 100


class CacheWish(NamedTuple):
    """What an operator wants. shared: None for no group of the shared pool; bandwidth: of that, in the node's unit.

    mode: EXCLUSIVE where the kernel is to let nobody else have the ways of the exclusive group.
    """

    exclusive: Shares
    shared: Shares | None = None
    bandwidth: int | None = None
    mode: str = SHAREABLE

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that are to be there."""
        has_shared = self.shared is not None or self.bandwidth is not None
        return OUR_GROUPS if has_shared else (EXCLUSIVE_GROUP,)


class CachedMachine(NamedTuple):
    """online: the CPUs. cores: sets of siblings. domains: {id of a cache: its CPUs}, empty where it is not known."""

    online: CPUSet
    cores: Sequence[CPUSet]
    domains: Mapping[int, CPUSet]


class Pool(NamedTuple):
    """Who has CPUs by the checkpoint: exclusive ones, those of all other containers, those that the host keeps."""

    exclusive: CPUSet
    shared: CPUSet = CPUSet()
    reserved: CPUSet = CPUSet()


class Target(NamedTuple):
    """What is to be. level: the cache that is divided. ways: by its ids. cpus: of our groups; empty where they stay.

    bandwidth: {id: value} of MB for the shared group; None for as much as the exclusive group has.
    """

    level: str
    ways: Mapping[int, Ways]
    groups: tuple[str, ...]
    cpus: Mapping[str, CPUSet]
    bandwidth: Mapping[int, int] | None
    mode: str
    notes: Sequence[str]

    def masks(self, group: str) -> dict[int, int]:
        """Return {id: mask} of a group, the root's for any that is not ours."""
        kinds = {EXCLUSIVE_GROUP: "exclusive", SHARED_GROUP: "shared"}
        return {number: getattr(ways, kinds.get(group, "root")) for number, ways in self.ways.items()}


def make_target(
    found: Resctrl, wish: CacheWish, machine: CachedMachine, pool: Pool | None, former: Mapping[int, int]
) -> Target:
    """Return what is to be on this platform. former: {id: mask} of the root before anything was divided.

    pool: None where the checkpoint is not known: the CPUs stay. Raises InputError for a wish that does not fit the
    platform, RefusedError for one that would harm others, each before anything is written.
    """
    cache = divided_cache(found)
    _check_room(found, wish.groups)
    check_ids(wish.exclusive, former, EXCLUSIVE_SHARE, cache.name)
    if wish.shared is not None:
        check_ids(wish.shared, former, SHARED_SHARE, cache.name)
    notes: list[str] = []
    cpus = {} if pool is None else _classes(found, wish, machine, pool, notes)
    exclusive = found.groups[EXCLUSIVE_GROUP].cpus if EXCLUSIVE_GROUP in found.groups else CPUSet()
    exclusive = cpus.get(EXCLUSIVE_GROUP, exclusive)
    ways = {}
    for number, mask in former.items():
        part = _part(wish, machine, exclusive, number)
        ways[number] = _divided(cache, number, base_of(cache, mask, _taken(found, cache.name, number)), wish, part)
    _note_devices(cache, ways, notes)
    overlaps = _overlaps(found, cache.name, ways)
    if wish.mode == EXCLUSIVE:
        _check_exclusive(found, cache, ways, overlaps)
    notes += [Note(FOREIGN, text) for text in overlaps]
    return Target(cache.name, ways, wish.groups, cpus, _bandwidth(found, wish), wish.mode, notes)


# --- what the platform has ---------------------------------------------------------------------------------


def divided_cache(found: Resctrl) -> Cache:
    """Return the cache that is divided. Raises RefusedError where there is none, or its code and data are apart."""
    for level in LEVELS:
        caches = [cache for cache in found.caches if cache.level == level]
        if any(cache.has_cdp for cache in caches):
            raise RefusedError(
                "resctrl is mounted with %s, so that code and data have masks of their own, which this does not divide"
                % ("cdp" if level == "L3" else "cdpl2"),
                where=found.mount,
                remedy="mount it without that option, once no group is needed any more",
            )
        if caches:
            return caches[0]
    raise RefusedError("no cache of this platform can be divided", where=found.mount)


def _check_room(found: Resctrl, wanted: Iterable[str]) -> None:
    if found.root.mode != SHAREABLE:
        raise RefusedError(
            "has the mode %s, so nothing of it can be divided" % found.root.mode,
            where="the root group of %s" % found.mount,
            remedy="write shareable into its file mode",
        )
    for name in OUR_GROUPS:
        if name in found.groups and found.groups[name].mode not in (SHAREABLE, EXCLUSIVE):
            raise RefusedError(
                "has the mode %s" % found.groups[name].mode,
                where="%s/%s" % (found.mount, name),
                remedy="remove this group",
            )
    groups = [group.name for group in found.foreign]
    needed = 1 + len(groups) + len(list(wanted))
    if needed > found.closids():
        raise RefusedError(
            "has %d classes of service (CLOSIDs), and %d are needed: the root's, ours, and those of %s"
            % (found.closids(), needed, ", ".join(groups) or "nobody else"),
            where=found.mount,
            remedy="remove groups that are not needed, or do without %s" % option(SHARED_SHARE),
        )


def check_tasks(found: Resctrl) -> None:
    """Raise RefusedError where somebody has put processes into a group of ours: ours have CPUs only."""
    for name in OUR_GROUPS:
        group = found.groups.get(name)
        if group is not None and group.tasks:
            raise RefusedError(
                "a different program has put %s%s into it, the first %d, but this group is for CPUs alone"
                % ("more than " if group.has_more else "", counted(len(group.tasks), "process"), group.tasks[0]),
                where="%s/%s" % (found.mount, name),
                remedy="write their numbers into %s/tasks, and take the class away from what starts them" % found.mount,
            )


def _taken(found: Resctrl, level: str, number: int) -> int:
    """Return the ways that others have to themselves, so that the kernel gives them to nobody else."""
    mask = 0
    for group in found.foreign:
        if group.mode != SHAREABLE:
            mask |= group.mask(level, number)
    return mask


def restored(found: Resctrl, cache: Cache, number: int, mask: int) -> int:
    """Return a former mask of the root without what others have to themselves since; 0 where the kernel takes none
    such."""
    taken = _taken(found, cache.name, number)
    left = base_of(cache, mask, taken) if mask & taken else mask
    return left if cache.takes(left) else 0


# --- ways --------------------------------------------------------------------------------------------------


def _part(wish: CacheWish, machine: CachedMachine, exclusive: CPUSet, number: int) -> Fraction:
    """Return the exclusive CPUs of all CPUs of a cache; 0 where no share is in proportion to them."""
    shares = [share_of(given, number) for given in (wish.exclusive, wish.shared) if given is not None]
    if CacheShare() not in shares:
        return Fraction(0, 1)
    cpus = machine.domains.get(number)
    if not cpus:
        raise RefusedError(
            "the kernel does not say which CPUs share the cache %d, so nothing can be in proportion to them" % number,
            remedy="give a part in percent or a number of ways",
        )
    return Fraction(len(cpus & exclusive), len(cpus))


def _divided(cache: Cache, number: int, base: int, wish: CacheWish, part: Fraction) -> Ways:
    where = "%s cache %d" % (cache.name, number)
    total = count_bits(base)
    least_shared = cache.least if wish.shared is not None else 0
    share = share_of(wish.exclusive, number)
    room = total - cache.least - least_shared
    if room < cache.least:
        raise RefusedError("has %s (%x) for all, too few to divide them" % (counted(total, "way"), base), where=where)
    exclusive = _checked(share.of(total, cache.least, room, part), cache, room, share, EXCLUSIVE_SHARE, where)
    shared = 0
    if wish.shared is not None:
        beside = share_of(wish.shared, number)
        if share.percent + beside.percent >= _WHOLE:
            raise InputError(
                "%s and %s leave nothing for the rest of the host" % (share, beside), "%s, %s" % (where, SHARED_SHARE)
            )
        room = total - cache.least - exclusive
        rest = Fraction(part.of_all - part.some, part.of_all)
        shared = _checked(beside.of(total, cache.least, room, rest), cache, room, beside, SHARED_SHARE, where)
    try:
        return divide(cache, base, exclusive, shared)
    except RefusedError as error:
        raise error.within(where) from error


def _checked(count: int, cache: Cache, room: int, share: CacheShare, name: str, where: str) -> int:
    if not cache.least <= count <= room:
        raise InputError(
            "%s not possible" % counted_are(share.ways, "way"),
            "%s, %s" % (where, option(name)),
            "give %d to %d, as %d have to be left for the rest" % (cache.least, room, cache.least),
        )
    return count


def _note_devices(cache: Cache, ways: Mapping[int, Ways], notes: list[str]) -> None:
    filled = ["%d (%x)" % (number, found.io) for number, found in ways.items() if found.io]
    if filled:
        text = "devices may fill ways of the exclusive group, too: those of %s cache %s; give it fewer ways"
        notes.append(Note(OF_DEVICES, text % (cache.name, ", ".join(filled))))


def _overlaps(found: Resctrl, level: str, ways: Mapping[int, Ways]) -> list[str]:
    """Return which groups of others have ways of the exclusive group, for people."""
    texts = []
    for group in found.foreign:
        common = {number: group.mask(level, number) & own.exclusive for number, own in ways.items()}
        shown = ", ".join("%d (%x)" % item for item in common.items() if item[1])
        if shown:
            texts.append(
                "the group %s of a different program may fill ways of the exclusive group: those of %s cache %s"
                % (group.name, level, shown)
            )
    return texts


def _check_exclusive(found: Resctrl, cache: Cache, ways: Mapping[int, Ways], overlaps: Sequence[str]) -> None:
    """Raise RefusedError where the kernel would not take the mode: rdtgroup_mode_test_exclusive() in rdtgroup.c."""
    problem = ""
    others = [level.name for level in found.caches if level.name != cache.name]
    if others:
        problem = "this platform also divides %s, whose ways all groups share" % ", ".join(others)
    elif any(own.io for own in ways.values()):
        problem = "devices may fill ways of the exclusive group"
    elif overlaps:
        problem = "; ".join(overlaps)
    if problem:
        raise RefusedError(
            "%s, so it cannot be %s" % (problem, EXCLUSIVE), option(MODE), "take the mode %s" % SHAREABLE
        )


# --- CPUs --------------------------------------------------------------------------------------------------


def _classes(
    found: Resctrl, wish: CacheWish, machine: CachedMachine, pool: Pool, notes: list[str]
) -> dict[str, CPUSet]:
    """Return {group: its CPUs}. The CPUs that others have in a group stay theirs."""
    theirs = _cpus_of(found.foreign)
    exclusive = pool.exclusive & machine.online
    lost = exclusive & theirs
    if lost:
        names = ", ".join(group.name for group in found.foreign if group.cpus & lost)
        text = "the exclusive CPUs %s stay in the group %s of a different program" % (lost, names)
        notes.append(Note(FOREIGN, text))
    exclusive -= theirs
    # Where bandwidth can be limited, the CPUs of a core may get the lower one of their limits.
    cores = machine.cores if any(map(is_bandwidth, (limit.name for limit in found.bandwidths))) else ()
    exclusive = _whole_cores(exclusive, theirs, cores, notes)
    cpus = {EXCLUSIVE_GROUP: exclusive}
    if SHARED_GROUP in wish.groups:
        shared = (pool.shared & machine.online) - pool.reserved - theirs - exclusive
        for core in cores:
            if core & shared and not core <= shared:
                shared -= core
        cpus[SHARED_GROUP] = shared
    return cpus


def _cpus_of(groups: Iterable[ControlGroup]) -> CPUSet:
    mask = 0
    for group in groups:
        mask |= group.cpus.mask
    return CPUSet.from_mask(mask)


def _whole_cores(exclusive: CPUSet, theirs: CPUSet, cores: Iterable[CPUSet], notes: list[str]) -> CPUSet:
    joined, left = CPUSet(), CPUSet()
    for core in cores:
        if core & exclusive and core & theirs:
            left |= core & exclusive
        elif core & exclusive:
            joined |= core - exclusive
    if joined:
        text = "CPUs %s are in the exclusive group, too, as siblings of exclusive CPUs: %s"
        remedy = "the policy option full-pcpus-only gives out whole cores"
        notes.append(Note(CORES_SPLIT, text % (joined, remedy)))
    if left:
        text = "the exclusive CPUs %s are in no group of ours, as their siblings are in that of a different program"
        notes.append(Note(CORES_SPLIT, text % left))
    return (exclusive | joined) - left


# --- bandwidth ---------------------------------------------------------------------------------------------


def _bandwidth(found: Resctrl, wish: CacheWish) -> dict[int, int] | None:
    if wish.bandwidth is None:
        return None
    limit = next((limit for limit in found.bandwidths if limit.name == MB), None)
    if limit is None:
        raise InputError("this platform cannot limit the bandwidth of memory", where=option(SHARED_BANDWIDTH))
    value = _bandwidth_value(limit, wish.bandwidth, largest_bandwidth(found))
    return dict.fromkeys(found.root.schemata.get(MB, {}), value)


def largest_bandwidth(found: Resctrl) -> int:
    """Return what stands for no limit, as far as it shows: 100 %, or on AMD 2048."""
    return max([_WHOLE, *(value for group in found.groups.values() for value in group.schemata.get(MB, {}).values())])


def _bandwidth_value(limit: BandwidthResource, value: int, largest: int) -> int:
    """Return the value as the kernel keeps it: bw_validate() in fs/resctrl/ctrlmondata.c."""
    if largest == _WHOLE and limit.linear is False and not limit.is_rate:
        raise InputError("the kernel limits no bandwidth that is not linear", where=option(SHARED_BANDWIDTH))
    least = max(limit.least, 1)
    if not least <= value <= largest:
        unit = "MiB/s" if limit.is_rate else "%" if largest == _WHOLE else "eighths of GB/s"
        raise InputError(
            "%d is out of range" % value, option(SHARED_BANDWIDTH), "give %d to %d %s" % (least, largest, unit)
        )
    return value if limit.is_rate else -(-value // limit.step) * limit.step
