# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plain configuration with which a kubelet surely starts. For any other, whole.py finds out more.

Nearly all nodes are so, and what the whole check takes is not compiled there. That both agree is held by a test.
"""

from __future__ import annotations

from typing import Any, Mapping

from ...cpuset import CPUSet
from ...errors import InputError
from ...policy.kubelet_reservation import kubelet_reservation
from ...policy.options import StaticOptions, check_machine, parse_static_options
from ...quantity import millis
from ...state.config import NONE, STATIC, CPUManagerConfig
from .checked import Checked
from .finding import Host

# Of these versions the default gates are known here: no option of a level that is switched off, no CPUs of whole pods.
_OLDEST, _NEWEST = 33, 36
# What takes a closer look. The others of a plain configuration are either not judged, or here.
_CLOSER = frozenset(
    (
        "allowedUnsafeSysctls",
        "cgroupRoot",
        "cgroupsPerQOS",
        "containerLogMaxSize",
        "cpuCFSQuotaPeriod",
        "enforceNodeAllocatable",
        "featureGates",
        "kubeReservedCgroup",
        "memoryManagerPolicy",
        "mergeDefaultEvictionSettings",
        "protectKernelDefaults",
        "systemReservedCgroup",
        "topologyManagerPolicy",
        "topologyManagerPolicyOptions",
        "topologyManagerScope",
    )
)
_RESERVABLE = frozenset(("cpu", "memory"))
_MEMORY_AVAILABLE, _MEMORY_DEFAULT = "memory.available", "100Mi"
# Eviction signals whose thresholds keep no memory from pods, and what is surely a share.
_SIGNALS = frozenset(("nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"))
_SHARES = frozenset("%d%%" % share for share in range(1, 100))


def plainly_accepted(values: Mapping[str, Any], host: Host) -> Checked | None:
    """What the managers start with, with these values of plain_values(); None where it takes more to decide."""
    is_usual = _OLDEST <= host.minor <= _NEWEST and not host.cgroup_v1 and not host.swap_on
    if not is_usual or host.has_systemd is False or not _CLOSER.isdisjoint(values):
        return None
    policy, topology = values.get("cpuManagerPolicy", NONE), host.topology
    options = values.get("cpuManagerPolicyOptions", {})
    try:
        reserved = CPUSet.parse_plain(values.get("reservedSystemCPUs", ""))
        cpu = _reserved(values, host, reserved)
        if cpu is None:
            return None
        if policy == NONE and not options:
            config = CPUManagerConfig(NONE, topology.all_cpus(), minor=host.minor)
            return Checked([], [], [], NONE, config, StaticOptions(), False, "None", {})
        if policy != STATIC:
            return None
        static = parse_static_options(options, host.minor, False, True)
        check_machine(static, topology, NONE)
        kept = kubelet_reservation(topology, cpu, static, reserved)
    except InputError:
        return None
    config = CPUManagerConfig(STATIC, topology.all_cpus(), kept, static.strict_cpu_reservation, host.minor)
    return Checked([], [], [], STATIC, config, static, False, "None", {})


def _reserved(values: Mapping[str, Any], host: Host, reserved: CPUSet) -> int | None:
    """The millis of CPUs that are reserved; None where too much is, or it takes more to decide. Raises InputError."""
    cpu, memory = 0, _evicted(values.get("evictionHard", {}))
    for field in ("kubeReserved", "systemReserved"):
        amounts = values.get(field, {})
        if not _RESERVABLE.issuperset(amounts):
            return None
        cpu += _millis(amounts.get("cpu", "0"))
        memory += _millis(amounts.get("memory", "0"))
    # A machine whose memory is not known has at least what is kept by default.
    capacity = _millis(_MEMORY_DEFAULT) if host.memory is None else 1000 * host.memory
    cpus = host.topology.all_cpus()
    if memory > capacity or not reserved <= cpus or (not reserved and cpu > 1000 * host.topology.num_cpus):
        return None
    return cpu


def _evicted(thresholds: Mapping[str, str]) -> int:
    """The millis of bytes that evictionHard keeps from pods. Raises InputError where it takes more to decide."""
    for signal, text in thresholds.items():
        if signal != _MEMORY_AVAILABLE and (signal not in _SIGNALS or text not in _SHARES):
            raise InputError("a threshold %r" % text)
    memory = _millis(thresholds.get(_MEMORY_AVAILABLE, _MEMORY_DEFAULT))
    if not memory:
        raise InputError("no threshold")
    return memory


def _millis(text: str) -> int:
    """Of plain digits and a suffix, which all readers read alike. Raises InputError for any other text."""
    if not text[:1].isdigit() or not text.isascii() or len(text) > len("1000000000Ki") or "." in text:
        raise InputError("an amount %r" % text)
    return millis(text)
