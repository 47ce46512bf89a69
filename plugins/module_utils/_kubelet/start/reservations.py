# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet reserves for the system: reservedSystemCPUs, kubeReserved, systemReserved, evictionHard; and whether
the node has so much.

Source: cmd/kubelet/app/server.go (getReservedCPUs, parseResourceList); pkg/kubelet/cm
(node_container_manager_linux.go, qos_container_manager_linux.go).
"""

from __future__ import annotations

import re
from math import inf
from struct import pack, unpack
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from ..._base.errors import BeyondError, GoError, InputError
from ..._base.golang import quote, read_cpus, read_integer
from ...cpuset import CPUSet
from ..configuration import EVICTION_HARD, HARD, MEMORY_AVAILABLE, NODEFS_AVAILABLE
from .amount import BINARY, DECIMAL, Amount, read_duration
from .findings import Finding, Host, Unknown, harmful, refused

# The eviction thresholds of a kubelet: which it refuses, and how much memory the hard ones keep from pods.
#
# Its source: pkg/kubelet/eviction/helpers.go, Go's strconv.


SOFT = "evictionSoft"
PERIOD, RECLAIM = "evictionSoftGracePeriod", "evictionMinimumReclaim"

# Since which minor version each is known.
SIGNALS: Mapping[str, int] = {
    "memory.available": 0,
    "allocatableMemory.available": 0,
    "nodefs.available": 0,
    "nodefs.inodesFree": 0,
    "imagefs.available": 0,
    "imagefs.inodesFree": 0,
    "containerfs.available": 29,
    "containerfs.inodesFree": 29,
    "pid.available": 0,
}

# These two switch a threshold off, and only as they are written here.
_OFF = ("0%", "100%")

_DECIMAL_NUMBER = re.compile(r"[+-]?(?:[0-9_]+(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][+-]?[0-9][0-9_]*)?")
_HEX_NUMBER = re.compile(r"[+-]?0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?[pP][+-]?[0-9][0-9_]*")
_NO_NUMBER = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE | re.ASCII)
# An underscore stands between two digits, or between the 0x and a digit.
_LOOSE_UNDERSCORE = re.compile(r"(?<![0-9])_|_(?![0-9])")
_LOOSE_HEX_UNDERSCORE = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])")


class EvictionFault(NamedTuple):
    """What the kubelet refuses of a field, with its words."""

    field: str
    signal: str
    text: str


class EvictionShare(NamedTuple):
    """A threshold as a share of what there is; of the accuracy of Go's float32."""

    value: float


def threshold_faults(field: str, thresholds: Mapping[str, str], minor: int) -> Iterator[EvictionFault]:
    """Return what the kubelet 1.`minor` refuses of evictionHard or evictionSoft, in the order of the names."""
    return _faults(field, thresholds, minor, threshold)


def soft_faults(
    thresholds: Mapping[str, str], periods: Mapping[str, str], reclaims: Mapping[str, str], minor: int
) -> Iterator[EvictionFault]:
    """Yield what it refuses of evictionSoft, evictionSoftGracePeriod and evictionMinimumReclaim, in this order."""
    yield from threshold_faults(SOFT, thresholds, minor)
    yield from _faults(PERIOD, periods, minor, _check_period)
    yield from _faults(RECLAIM, reclaims, minor, _check_reclaim)
    for signal, text in sorted(thresholds.items()):
        if signal not in periods and text not in _OFF and _is_known(signal, minor):
            yield EvictionFault(
                PERIOD, signal, "grace period must be specified for the soft eviction threshold %s" % signal
            )


def _faults(
    field: str, values: Mapping[str, str], minor: int, check: Callable[[str, str], object]
) -> Iterator[EvictionFault]:
    for signal, text in sorted(values.items()):
        try:
            if not _is_known(signal, minor):
                raise GoError("unsupported eviction signal %s" % signal)
            check(signal, text)
        except GoError as error:
            yield EvictionFault(field, signal, str(error))


def threshold(signal: str, text: str) -> Amount | EvictionShare | None:
    """Return a threshold; None for one that is switched off. Raises GoError."""
    if text in _OFF:
        return None
    if not text.endswith("%"):
        amount = Amount.parse(text)
        if amount.value <= 0:
            raise GoError("eviction threshold %s must be positive: %s" % (signal, amount))
        return amount
    share = _share(text)
    if share < 0:
        raise GoError("eviction percentage threshold %s must be >= 0%%: %s" % (signal, text))
    if share > 1:
        raise GoError("eviction percentage threshold %s must be <= 100%%: %s" % (signal, text))
    return EvictionShare(share)


def kept_from_pods(signal: str, text: str | None, capacity: int | None) -> Amount | None:
    """Return what a hard threshold keeps from pods; None where it is not known. Raises GoError."""
    found = None if text is None else threshold(signal, text)
    if found is None:
        return Amount(0)
    if isinstance(found, Amount):
        return found
    if capacity is None:
        return None
    # A share that is no number keeps nothing from anybody.
    return Amount(int(capacity * found.value) if found.value == found.value else 0, 0, BINARY)


def _is_known(signal: str, minor: int) -> bool:
    return SIGNALS.get(signal, minor + 1) <= minor


def _check_period(_signal: str, text: str) -> None:
    if read_duration(text) < 0:
        raise GoError("invalid eviction grace period specified: %s, must be a positive value" % text)


def _check_reclaim(signal: str, text: str) -> None:
    if not text.endswith("%"):
        if Amount.parse(text).value < 0:
            raise GoError("negative eviction minimum reclaim specified for %s" % signal)
    elif _share(text) <= 0:
        raise GoError("eviction percentage minimum reclaim %s must be positive: %s" % (signal, text))


def _share(text: str) -> float:
    return _float32(_float32(_parsed(text.rstrip("%"))) / 100)


def _parsed(text: str) -> float:
    """Return a number as Go's ParseFloat(text, 32) reads it. Raises GoError."""
    if _NO_NUMBER.fullmatch(text):
        return float(text)
    plain, number = text.replace("_", ""), None
    try:
        if _DECIMAL_NUMBER.fullmatch(text) and not _LOOSE_UNDERSCORE.search(text):
            number = float(plain)
        elif _HEX_NUMBER.fullmatch(text) and not _LOOSE_HEX_UNDERSCORE.search(text):
            number = float.fromhex(plain)
    except OverflowError:
        number = inf
    except ValueError:
        pass  # there are no digits
    if number is None:
        raise GoError("strconv.ParseFloat: parsing %s: invalid syntax" % quote(text))
    if abs(_float32(number)) == inf:
        raise GoError("strconv.ParseFloat: parsing %s: value out of range" % quote(text))
    return number


def _float32(number: float) -> float:
    try:
        rounded: float = unpack("<f", pack("<f", number))[0]
    except OverflowError:
        return inf if number > 0 else -inf
    return rounded


MEMORY = "memory"
STORAGE = "ephemeral-storage"
_USUAL_CPUS = re.compile("(?:[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*)?")
_RESERVABLE = ("cpu", MEMORY, STORAGE, "pid")
_FLAGS = {"kubeReserved": "--kube-reserved", "systemReserved": "--system-reserved"}

# Until this minor version the kubelet compares a reserved CPU's number with how many CPUs there are
# (kubernetes/kubernetes#98121).
_COUNTS_CPUS_UNTIL = 20
# From 1.33 on the message names the flag.
_NAMES_FLAG_SINCE = 33

# Less is reserved on any node, and every node's disk has more.
_SMALL_DISK = 8 << 30


class Reservations:
    """What one configuration reserves; `findings` is what the kubelet refuses of it before it makes its managers."""

    def __init__(self, values: Mapping[str, Any], host: Host) -> None:
        self.values = values
        self.host = host
        self.findings: list[Finding] = []
        # The CPUs that reservedSystemCPUs names; None where it names none that can be reserved.
        self.cpus = self._reserved_cpus()
        # What kubeReserved and systemReserved say; None where that is refused.
        self.amounts = {field: self._amounts(field) for field in ("kubeReserved", "systemReserved")}
        self.thresholds = self._hard_thresholds()
        self._check_qos()

    def amount(self, resource: str) -> Amount | None:
        """Return how much of a resource both together reserve; None where that is refused."""
        total = Amount(0)
        # The kubelet begins with what is reserved for the system.
        for field in ("systemReserved", "kubeReserved"):
            amounts = self.amounts[field]
            if amounts is None or self.cpus is None:
                return None
            total = total.plus(amounts.get(resource, Amount(0)))
        return total

    def kept_from_pods(self, resource: str, signal: str, capacity: int | None) -> Amount | None:
        """Return what is reserved of a resource with its hard eviction threshold; None where that is refused or not
        known."""
        reserved = self.amount(resource)
        if reserved is None or self.thresholds is None:
            return None
        eviction = _kept_from_pods(signal, self.thresholds.get(signal), capacity)
        return None if eviction is None else reserved.plus(eviction)

    def memory(self) -> Amount | None:
        """Return the memory that Node Allocatable keeps from pods; None where that is refused or not known."""
        return self.kept_from_pods(MEMORY, MEMORY_AVAILABLE, self.host.memory)

    def node_allocatable(self, with_cpus: bool) -> Iterator[Finding | Unknown]:
        """Yield whether the node has what is kept from its pods. with_cpus: whether nothing else looks at its CPUs."""
        cpus = self.host.topology.num_cpus
        if with_cpus:
            shown = Amount(cpus * 1000, -3, DECIMAL)
            yield from self._over("cpu", self.amount("cpu"), cpus, shown)
        if self.host.memory is not None:
            shown = Amount(self.host.memory, 0, BINARY)
            yield from self._over(MEMORY, self.memory(), self.host.memory, shown)
        if self.values.get("localStorageCapacityIsolation", True):
            yield from self._storage()

    def _storage(self) -> Iterator[Finding | Unknown]:
        size = self.host.storage
        if size is not None:
            reserved = self.kept_from_pods(STORAGE, NODEFS_AVAILABLE, size)
            yield from self._over(STORAGE, reserved, size, Amount(size, 0, BINARY))
            return
        reserved = self.amount(STORAGE)
        if reserved is not None and reserved.exceeds(_SMALL_DISK):
            yield Unknown(
                "%s of %s is reserved, and the size of the node's disk cannot be seen" % (reserved, STORAGE), STORAGE
            )

    def _over(self, resource: str, reserved: Amount | None, capacity: int, shown: Amount) -> Iterator[Finding]:
        if reserved is None or not reserved.exceeds(capacity):
            return
        text = 'Resource "%s" has a reservation of %s' % (resource, reserved.printed())
        if not reserved.is_long:
            text += " but capacity of %s. Expected capacity >= reservation." % shown.printed()
        finding = refused(
            text,
            "more is reserved than the node has: %s of %s" % (reserved, shown),
            "reserve less with kubeReserved and systemReserved",
            resource,
        )
        yield finding._replace(context="invalid Node Allocatable configuration. ")

    # --- reading ------------------------------------------------------------------------------------

    def _refuse(self, text: str, cause: str, remedy: str, where: str) -> None:
        self.findings.append(refused(text, cause, remedy, where))

    def _reserved_cpus(self) -> CPUSet | None:
        where = "reservedSystemCPUs"
        text = self.values.get(where) or ""
        cgroups = [key for key in ("systemReservedCgroup", "kubeReservedCgroup") if self.values.get(key)]
        if text and cgroups:
            kinds = [cgroup.replace("ReservedCgroup", "-reserved") for cgroup in cgroups]
            given = self.values.get("enforceNodeAllocatable") or ()
            enforced = [name for name in given if any(name in (kind, kind + "-compressible") for kind in kinds)]
            names = " and ".join(cgroups)
            remedy = "remove %s, or reserve with kubeReserved and systemReserved" % names
            if enforced:
                remedy = (
                    "remove %s, and %s from enforceNodeAllocatable at the same time, or reserve with kubeReserved and"
                    " systemReserved" % (names, " and ".join(enforced))
                )
            self._refuse(
                "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup"
                " (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
                "%s is set" % names,
                remedy,
                where,
            )
        online = self.host.topology.all_cpus()
        try:
            reserved = _read_cpus(text)
        except BeyondError as error:
            self._refuse(
                "reserved-cpus: %s is not a subset of online-cpus: %s" % (text, online),
                str(error),
                "take others",
                where,
            )
            return None
        except GoError as error:
            self._refuse(
                "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) %s, error: %s"
                % (text, error),
                "it is no CPU list",
                "write it as 0-1,32-33, without spaces",
                where,
            )
            return None
        missing = reserved - online
        if self.host.minor <= _COUNTS_CPUS_UNTIL and reserved and max(reserved) >= len(online):
            self._refuse(
                "Invalid cpuset %s specified by --reserved-cpus" % quote(text),
                "this kubelet takes no CPU from %d, the number of CPUs online, on" % len(online),
                "take CPUs of lower numbers, or set kubeReserved.cpu instead",
                where,
            )
        elif missing:
            self._refuse(
                "reserved-cpus: %s is not a subset of online-cpus: %s" % (text, online),
                "the node has no CPUs %s, or they are offline" % missing,
                "take others, or switch them on",
                where,
            )
        else:
            return reserved
        return None

    def _amounts(self, field: str) -> dict[str, Amount] | None:
        """Return what a field says; its cpu is replaced by a reservedSystemCPUs."""
        written = dict(self.values.get(field) or {})
        if self.cpus and written.pop("cpu", None) is not None:
            self.findings.append(
                harmful(
                    "reservedSystemCPUs is set, so the cpu here does not count",
                    "remove it",
                    field + ".cpu",
                    "Option --reserved-cpus is specified, it will overwrite the cpu setting in KubeReserved and"
                    " SystemReserved",
                )
            )
        amounts: dict[str, Amount] = {}
        is_right = True
        for name, text in sorted(written.items()):
            try:
                amounts[name] = _amount(name, text)
            except _AmountError as error:
                is_right = False
                finding = refused(error.text, error.cause, error.remedy, "%s.%s" % (field, name))
                if self.host.minor >= _NAMES_FLAG_SINCE:
                    finding = finding._replace(context="%s value failed to parse: " % _FLAGS[field])
                self.findings.append(finding)
        if self.cpus and field == "systemReserved":
            amounts["cpu"] = Amount(len(self.cpus), 0, DECIMAL)
        return amounts if is_right else None

    def _hard_thresholds(self) -> Mapping[str, str] | None:
        given = self.values.get(HARD)
        if given is None or given == EVICTION_HARD:
            return EVICTION_HARD
        merged: Mapping[str, str] = given
        if self.values.get("mergeDefaultEvictionSettings"):
            merged = {**EVICTION_HARD, **given}
        faults = list(threshold_faults(HARD, merged, self.host.minor))
        for fault in faults:
            self._refuse(
                fault.text,
                "it is no eviction threshold that this kubelet has",
                "write one of memory.available, nodefs.available and so on, as 5% or 200Mi",
                "%s.%s" % (HARD, fault.signal),
            )
        return None if faults else merged

    def _check_qos(self) -> None:
        for name, text in sorted((self.values.get("qosReserved") or {}).items()):
            fault = _qos_fault(name, text)
            if fault:
                where = "qosReserved.%s" % name
                finding = refused(fault, "only a share of memory can be reserved", "write it as memory: 50%", where)
                self.findings.append(finding._replace(context="--qos-reserved value failed to parse: "))


def _read_cpus(text: str) -> CPUSet:
    """Return a list of CPUs as Go reads it. Raises GoError, BeyondError."""
    if _USUAL_CPUS.fullmatch(text):
        try:
            return CPUSet.parse(text)
        except InputError:
            pass
    return read_cpus(text)


def _kept_from_pods(signal: str, text: str | None, capacity: int | None) -> Amount | None:
    if text is not None and text == EVICTION_HARD[MEMORY_AVAILABLE]:
        return Amount.parse(text)

    return kept_from_pods(signal, text, capacity)


class _AmountError(Exception):
    """What kubeReserved or systemReserved cannot reserve."""

    def __init__(self, text: str, cause: str, remedy: str) -> None:
        super().__init__(text)
        self.text = text
        self.cause = cause
        self.remedy = remedy


def _amount(name: str, text: str) -> Amount:
    if name not in _RESERVABLE:
        cause = "only %s can be reserved" % ", ".join(_RESERVABLE)
        raise _AmountError("cannot reserve %s resource" % quote(name), cause, "remove it")
    try:
        amount = Amount.parse(text)
    except GoError as error:
        what = "failed to parse quantity %s for %s resource: %s" % (quote(text), quote(name), error)
        raise _AmountError(what, "it is no quantity", "write CPUs as 2 or 500m, memory as 1Gi") from error
    if amount.value < 0:
        what = "resource quantity for %s cannot be negative: %s" % (quote(name), text)
        raise _AmountError(what, "it is negative", "write 0 or more")
    return amount


def _qos_fault(name: str, text: str) -> str:
    if name != MEMORY:
        return "cannot reserve %s resource" % quote(name)
    prefix = "failed to parse percentage %s for %s resource: " % (quote(text), quote(name))
    if not text.endswith("%"):
        return prefix + "percentage expected, got '%s'" % text
    try:
        share = read_integer(text.rstrip("%"))
    except GoError:
        return prefix + "invalid number in percentage '%s'" % text
    return "" if 0 <= share <= 100 else prefix + "percentage must be between 0 and 100"
