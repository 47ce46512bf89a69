# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts a run is about, and how many at a time.

Ansible itself takes a pattern that matches no host, and 0 hosts at a time for all.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, NamedTuple, Sequence

from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager, split_host_pattern
from ansible.parsing.dataloader import DataLoader

from ..module_utils._base.errors import InputError

Groups = Mapping[str, Sequence[str]]

_HOSTS, _CANARIES, _LIMIT = "cpu_manager_hosts", "cpu_manager_canaries", "--limit"
# How many nodes each playbook changes at a time by default; the last one again and again.
_GROWING = (1, "10%", "25%", "50%")
_BATCHES: Mapping[str, Sequence[object]] = {"rollout": _GROWING, "rollback": _GROWING, "repair": (1,)}
# In place of sizes: the order and the batches that were found to fit what runs on the nodes.
AUTO = "auto"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")
_NO_SIGN_OF_PATTERNS = re.compile(r"[^\w.-]")
_EXCLUDING, _INTERSECTING = "!", "&"


class Scope(NamedTuple):
    """The hosts of a run, the canaries first: as patterns of Ansible, and by the names that --limit leaves."""

    patterns: list[str]
    names: list[str]


def scope_of(groups: Groups, hosts: object, canaries: object = (), limit: str = "") -> Scope:
    """Return which hosts these are. Raises InputError where a pattern, or all of them together, match none.

    groups: of the inventory, {name: hosts}. hosts, canaries: a pattern of Ansible, or a list of such. limit: what
    --limit says.
    """
    inventory = InventoryManager(DataLoader(), parse=False)
    for group, members in groups.items():
        inventory.add_group(group)
        for host in members:
            inventory.add_host(host, group=group)
    first = _checked(inventory, canaries, _CANARIES)
    patterns = first + _checked(inventory, hosts, _HOSTS)
    found = [host.name for host in inventory.get_hosts(patterns)]
    if not found and patterns == ["all"]:
        raise InputError("the inventory has no host", remedy="name an inventory with -i; nothing was read")
    if not found:
        what = "%s matches no host of the inventory" % ", ".join(patterns)
        raise InputError(what, _HOSTS, "correct it; nothing was read")
    if limit:
        try:
            inventory.subset(limit)
        except AnsibleError as error:
            raise InputError(str(error), _LIMIT) from error
        found = [host.name for host in inventory.get_hosts(patterns)]
        if not found:
            what = "it leaves none of the hosts of %s" % _HOSTS
            raise InputError(what, "%s %s" % (_LIMIT, limit), "correct one of them; nothing was read")
        if first and not inventory.get_hosts(first):
            remedy = "add them to it, or leave out %s if they have had their change; nothing was read" % _CANARIES
            what = "it leaves none of the hosts of %s, which come first" % _CANARIES
            raise InputError(what, "%s %s" % (_LIMIT, limit), remedy)
    return Scope(patterns, list(dict.fromkeys(found)))


def _checked(inventory: InventoryManager, patterns: object, variable: str) -> list[str]:
    """Return the single patterns. Each has to be known: a mistyped one would be left out without a word."""
    parts = _parts(patterns, variable)
    for part in parts:
        if part == "all":
            continue
        name = part.lstrip(_EXCLUDING + _INTERSECTING)
        matches = name in inventory.groups or inventory.get_hosts(name)
        if not matches or (part == name and not inventory.get_hosts(name)):
            what = "%s has no host" % name if matches else "the inventory has no host or group %s" % name
            raise InputError(what, variable, "correct it; nothing was read")
    return parts


def _parts(patterns: object, variable: str) -> list[str]:
    """Return the single patterns."""
    listed = list(patterns) if isinstance(patterns, (list, tuple)) else [patterns]
    if not all(isinstance(pattern, str) for pattern in listed):
        raise InputError("has to be a pattern of hosts, or a list of such, not %r" % (patterns,), variable)
    return [part for pattern in listed for part in split_host_pattern(str(pattern))]


def batches(playbook: str, serial: object = None, schedule: Sequence[Sequence[str]] = ()) -> list[object]:
    """Return how many nodes a playbook changes at a time. serial: what the operator says, if anything, unchecked.

    schedule: the hosts of each batch, for AUTO; where there is none, it is what the playbook does by default.
    """
    if serial == AUTO and schedule:
        return [len(hosts) for hosts in schedule]
    if serial is None or serial == AUTO:
        return list(_BATCHES[playbook])
    return list(serial) if isinstance(serial, (list, tuple)) else [serial]


def check_batches(serial: object, max_fail_percentage: object, canaries: object = ()) -> None:
    """Raise InputError where these are no sizes of batches, or no percentage of a batch."""
    if serial == AUTO and canaries:
        remedy = "leave out one of the two: with %s, canaries are found" % AUTO
        raise InputError("is %s, and %s names canaries" % (AUTO, _CANARIES), "cpu_manager_serial", remedy)
    sizes = serial if isinstance(serial, (list, tuple)) else [1 if serial == AUTO else serial]
    if not sizes:
        raise InputError("is an empty list", "cpu_manager_serial", "give at least one number of hosts or percentage")
    for size in sizes:
        if not _is_size(size):
            raise InputError(
                "must be a number from 1, a percentage such as 10%%, or %s, and has %r" % (AUTO, size),
                "cpu_manager_serial",
            )
    number = _whole(max_fail_percentage)
    if number is None or number > 100:
        raise InputError(
            "%r is not a whole number from 0 to 100" % (max_fail_percentage,), "cpu_manager_max_fail_percentage"
        )


def _is_size(value: object) -> bool:
    if isinstance(value, str) and value.endswith("%"):
        number = _whole(value[:-1])
        return number is not None and 1 <= number <= 100
    number = _whole(value)
    return number is not None and number >= 1


def _whole(value: object) -> int | None:
    """Return the number that a variable has, also as --extra-vars give it; None where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    return int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else None


def changes(result: object) -> bool:
    """Return whether a result changes something, also if only once it is carried out.

    A plan of rollout_info changes nothing itself: its actions do, and a change that was interrupted has to be undone.
    """
    return isinstance(result, Mapping) and any(result.get(name) for name in ("actions", "journal", "changed"))


def in_order(hosts: Iterable[str], schedule: Iterable[Sequence[str]]) -> list[str]:
    """Return hosts in the order of a schedule; those that it does not have come last."""
    places = {host: place for place, host in enumerate(host for batch in schedule for host in batch)}
    return sorted(hosts, key=lambda host: places.get(host, len(places)))


def one_pattern(patterns: Iterable[str]) -> list[str]:
    """Return these patterns as a single one, for the keyword hosts of a play; none for none.

    Ansible remembers what a list of patterns matches, under the patterns with the hosts of the batch behind them. So a
    batch of the host b of [b, a] would get the hosts of [b, a, b], if another play had these.
    """
    joined = ",".join(patterns)
    return [joined] if joined else []


def pattern_of(host: str) -> str:
    """Return a pattern that matches a host. Of a name with other signs it may match others, too, which do not
    change."""
    return host if _PLAIN_NAME.fullmatch(host) else "~^%s$" % _NO_SIGN_OF_PATTERNS.sub(".", host)
