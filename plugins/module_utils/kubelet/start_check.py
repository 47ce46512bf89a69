# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would this kubelet start with this configuration on this node? All that it would refuse, and what does harm.

The kubelet stops at its first refusal. Here all are told, each as if the others were repaired; what depends on a
value that is itself refused is left out.
Source: pkg/kubelet/apis/config/validation, cmd/kubelet/app/server.go, pkg/kubelet/cm and its managers, Kubernetes
1.33 to 1.36; differences of older versions as far as they are known.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, Mapping, NamedTuple

from ..cpuset import CPUSet, count_bits
from ..errors import KubeletError
from ..policy.options import StaticOptions, check_machine, parse_static_options
from ..policy.reservation import kubelet_reservation
from ..state.golang import GoError, quote, read_cpus
from ..state.validation import NONE, STATIC, CPUManagerConfig
from .amount import Amount, map_text
from .fields import decoded, unknown_fields
from .finding import Finding, Host, harmful, refused, refused_by
from .gate_check import check_gates
from .gates import (
    CPU_ALPHA_OPTIONS,
    CPU_BETA_OPTIONS,
    CPU_MANAGER,
    CPU_OPTIONS,
    GATES,
    NO_EXCLUSIVE_QUOTA,
    POD_LEVEL_MANAGERS,
    Gates,
)
from .memory_check import MemoryCheck
from .topology_check import topology_manager_findings
from .validation import validation_findings

_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")

# Until this minor version the kubelet asks only whether a reserved CPU's number is below how many there are
# (kubernetes/kubernetes#98121).
_COUNTS_CPUS_UNTIL = 20

_SET_CPUS = "set reservedSystemCPUs, or less cpu in kubeReserved and systemReserved"


class Checked(NamedTuple):
    """What is found, and what the managers would start with as far as that is certain."""

    findings: list[Finding]
    # None where the kubelet has no CPU manager of a known policy.
    cpu_manager_policy: str | None
    # None where something it depends on is refused.
    cpu_manager: CPUManagerConfig | None
    options: StaticOptions
    pod_level: bool
    memory_manager_policy: str | None
    # {NUMA node: {kind of memory: bytes}} that the memory manager keeps from pods.
    reserved_memory: Mapping[int, Mapping[str, int]]


def check_start(values: Mapping[str, Any], host: Host) -> Checked:
    """Check a configuration: what a KubeletConfiguration's `values` are."""
    return _Check(values, host).checked()


class _Check:
    """One check: each method adds what it finds."""

    def __init__(self, values: Mapping[str, Any], host: Host) -> None:
        self.host = host
        self.topology = host.topology
        self.minor = host.minor
        self.values, undecodable = decoded(values, host.minor)
        self.findings = [*unknown_fields(values, host.minor), *undecodable]
        self.gates = Gates(self.values.get("featureGates", {}), host.minor)
        # The CPUs that reservedSystemCPUs names; None where it names none that can be reserved.
        self.reserved: CPUSet | None = CPUSet()
        # What systemReserved and kubeReserved say; None where that is refused.
        self.amounts: dict[str, dict[str, Amount] | None] = {}
        self.options = StaticOptions()

    def checked(self) -> Checked:
        self.findings += check_gates(self.gates)
        self.findings += validation_findings(self.values, self.gates, self.host)
        self._read_reserved_cpus()
        self._read_reservations()
        self.findings += topology_manager_findings(self.values, self.gates, self.host)
        policy, config = self._text("cpuManagerPolicy", NONE), None
        if self.gates.enabled(CPU_MANAGER):
            config = self._check_cpu_manager(policy)
        memory = MemoryCheck(self.values, self.gates, self.host, self.amounts)
        self.findings += memory.findings()
        self._check_node_allocatable(policy, memory.reservation())
        known = policy in (NONE, STATIC) and self.gates.enabled(CPU_MANAGER)
        return Checked(
            self.findings,
            policy if known else None,
            config,
            self.options,
            self.gates.enabled(POD_LEVEL_MANAGERS),
            memory.policy_name(),
            memory.reserved(),
        )

    def _text(self, name: str, default: str) -> str:
        """A text, whose empty value means the default."""
        return self.values.get(name) or default

    def _refuse(self, text: str, cause: str, remedy: str, where: str) -> None:
        self.findings.append(refused(text, cause, remedy, where))

    # --- what is reserved -------------------------------------------------------------------------------

    def _read_reserved_cpus(self) -> None:
        where = "reservedSystemCPUs"
        text = self.values.get(where, "")
        cgroups = [key for key in ("systemReservedCgroup", "kubeReservedCgroup") if self.values.get(key)]
        if text and cgroups:
            self._refuse(
                "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup"
                " (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
                "%s is set" % " and ".join(cgroups),
                "remove %s, or reserve with kubeReserved and systemReserved" % " and ".join(cgroups),
                where,
            )
        try:
            self.reserved = read_cpus(text)
        except GoError as error:
            self.reserved = None
            self._refuse(
                "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) %s, error: %s"
                % (text, error),
                "it is no CPU list",
                "write it as 0-1,32-33, without spaces",
                where,
            )
            return
        online = self.topology.all_cpus()
        missing = self.reserved - online
        if self.minor <= _COUNTS_CPUS_UNTIL and self.reserved and max(self.reserved) >= len(online):
            self.reserved = None
            self._refuse(
                "Invalid cpuset %s specified by --reserved-cpus" % quote(text),
                "this kubelet takes no CPU from %d, the number of CPUs online, on" % len(online),
                "take CPUs of lower numbers, or set kubeReserved.cpu instead",
                where,
            )
        elif missing:
            self.reserved = None
            self._refuse(
                "reserved-cpus: %s is not a subset of online-cpus: %s" % (text, online),
                "the node has no CPUs %s, or they are offline" % missing,
                "take others, or switch them on",
                where,
            )

    def _read_reservations(self) -> None:
        """kubeReserved and systemReserved, whose cpu a reservedSystemCPUs replaces."""
        for field in ("systemReserved", "kubeReserved"):
            written = dict(self.values.get(field, {}))
            if self.reserved and written.pop("cpu", None) is not None:
                self.findings.append(
                    harmful(
                        "reservedSystemCPUs is set, so the cpu here does not count",
                        "remove it",
                        field + ".cpu",
                        "Option --reserved-cpus is specified, it will overwrite the cpu setting in KubeReserved and"
                        " SystemReserved",
                    )
                )
            self.amounts[field] = self._amounts_of(field, written)

    def _amounts_of(self, field: str, written: Mapping[str, str]) -> dict[str, Amount] | None:
        amounts: dict[str, Amount] = {}
        for name, text in sorted(written.items()):
            where = "%s.%s" % (field, name)
            if name not in _RESERVABLE:
                self._refuse(
                    "cannot reserve %s resource" % quote(name),
                    "only %s can be reserved" % ", ".join(_RESERVABLE),
                    "remove it",
                    where,
                )
                continue
            try:
                amounts[name] = Amount.parse(text)
            except GoError as error:
                self._refuse(
                    "failed to parse quantity %s for %s resource: %s" % (quote(text), quote(name), error),
                    "it is no quantity",
                    "write CPUs as 2 or 500m, memory as 1Gi",
                    where,
                )
                continue
            if amounts[name].value < 0:
                self._refuse(
                    "resource quantity for %s cannot be negative: %s" % (quote(name), text),
                    "it is negative",
                    "write 0 or more",
                    where,
                )
        right = len(amounts) == len(written) and all(amount.value >= 0 for amount in amounts.values())
        return amounts if right else None

    def _reserved_cpu(self) -> Amount | None:
        """How much cpu is reserved; None where that is refused."""
        total = Amount(0)
        for amounts in self.amounts.values():
            if amounts is None or self.reserved is None:
                return None
            total = total.plus(amounts.get("cpu", Amount(0)))
        return total

    def _check_node_allocatable(self, policy: str, memory: Amount | None) -> None:
        capacities = [("memory", memory, self.host.memory, Amount(self.host.memory or 0, 0, "BinarySI"))]
        # The static policy, if it is to start, has found too few CPUs already.
        if policy != STATIC or not self.gates.enabled(CPU_MANAGER):
            cpus = self.topology.num_cpus
            capacities.append(("cpu", self._reserved_cpu(), cpus, Amount(cpus * 1000, -3, "DecimalSI")))
        for name, reserved, capacity, shown in capacities:
            if reserved is not None and capacity is not None and reserved.exact() > capacity:
                self._refuse(
                    'invalid Node Allocatable configuration. Resource "%s" has a reservation of %s but capacity of %s.'
                    " Expected capacity >= reservation." % (name, reserved.printed(), shown.printed()),
                    "more is reserved than the node has: %s of %s" % (reserved, shown),
                    "reserve less with kubeReserved and systemReserved",
                    name,
                )

    # --- the CPU manager ----------------------------------------------------------------------------------

    def _check_cpu_manager(self, policy: str) -> CPUManagerConfig | None:
        where = "cpuManagerPolicyOptions"
        options = self.values.get(where)
        if options is not None and not self.gates.enabled(CPU_OPTIONS):
            self._refuse(
                'CPU Manager policy options %s require feature gates "%s", "%s" enabled'
                % (map_text(options), CPU_MANAGER, CPU_OPTIONS),
                "the gate %s is off" % CPU_OPTIONS,
                "remove the options, or set the gate to true",
                where,
            )
            return None
        if policy == NONE:
            if options:
                self._refuse(
                    "new none policy error: None policy: received unsupported options=%s" % map_text(options),
                    "options go with the static policy only",
                    "remove cpuManagerPolicyOptions, or set cpuManagerPolicy: static",
                    where,
                )
            pod_level = self.gates.enabled(POD_LEVEL_MANAGERS)
            return CPUManagerConfig(NONE, self.topology.all_cpus(), minor=self.minor, pod_level=pod_level)
        if policy != STATIC:
            self._refuse(
                "unknown policy: %s" % quote(policy),
                "there is no such CPU manager policy; upper and lower case count",
                "write none or static",
                "cpuManagerPolicy",
            )
            return None
        options_are_right = self._read_options(options or {})
        reserved = self._static_reservation()
        if reserved is None or not options_are_right:
            return None
        return CPUManagerConfig(
            STATIC,
            self.topology.all_cpus(),
            reserved,
            self.options.strict_cpu_reservation,
            self.minor,
            self.gates.enabled(POD_LEVEL_MANAGERS),
        )

    def _read_options(self, options: Mapping[str, str]) -> bool:
        """Read the static policy's options; whether all of them can be used."""
        where = "cpuManagerPolicyOptions"
        found: list[Finding] = []

        def try_options(some: Mapping[str, str], cause: str, place: str) -> bool:
            # Before 1.23 there were no levels.
            alpha = self.minor < 23 or self.gates.enabled(CPU_ALPHA_OPTIONS)
            try:
                self.options = parse_static_options(some, self.minor, alpha, self.gates.enabled(CPU_BETA_OPTIONS))
            except KubeletError as error:
                found.append(refused_by(error, cause, place, "new static policy error: "))
                return False
            return True

        usable = {
            name: text
            for name, text in sorted(options.items())
            if try_options({name: text}, "the option cannot be used", "%s.%s" % (where, name))
        }
        excluded = [
            pair
            for pair in combinations(usable, 2)
            if not try_options({name: usable[name] for name in pair}, "the options exclude each other", where)
        ]
        in_excluded = {name for pair in excluded for name in pair}
        try_options({name: text for name, text in usable.items() if name not in in_excluded}, "", where)
        # With the topology manager's policy none the second reason is told, too.
        for policy in dict.fromkeys((self._text("topologyManagerPolicy", NONE), NONE)):
            try:
                check_machine(self.options, self.topology, policy)
            except KubeletError as error:
                cause = "align-by-socket does not go with this"
                found.append(refused_by(error, cause, where + ".align-by-socket", "new static policy error: "))
        self.findings += dict.fromkeys(found)
        return not found

    def _static_reservation(self) -> CPUSet | None:
        """What the static policy reserves; None where that is refused."""
        amount = self._reserved_cpu()
        if amount is None or self.reserved is None:
            return None
        millicores = -(-amount.exact() * 1000 // 1)
        try:
            reserved = kubelet_reservation(self.topology, int(millicores), self.options, self.reserved)
        except KubeletError as error:
            # Without any reservation the policy is not even tried.
            prefix = "" if amount.value <= 0 else "new static policy error: "
            finding = refused_by(
                error, "the static policy is to reserve %s CPUs" % (amount,), "reservedSystemCPUs", prefix
            )
            self.findings.append(finding)
            return None
        self._warn(reserved)
        return reserved

    def _warn(self, reserved: CPUSet) -> None:
        """What the static policy does not mind, and yet does harm."""
        where = "reservedSystemCPUs"
        if reserved == self.topology.all_cpus():
            cause = "all CPUs are reserved: no pod can have CPUs for itself"
            self.findings.append(harmful(cause, _SET_CPUS, where))
        split = self.topology.physical_cpus(reserved) - reserved
        if split:
            who = "no pod can have" if self.options.full_pcpus_only else "pods get"
            cause = "the reservation %s splits cores: %s their other threads, CPUs %s" % (reserved, who, split)
            self.findings.append(harmful(cause, "name whole cores in reservedSystemCPUs", where))
        if not self.reserved and self.options != StaticOptions():
            plain = kubelet_reservation(self.topology, len(reserved) * 1000, StaticOptions())
            if plain != reserved:
                cause = "the policy's options decide which CPUs are reserved: %s, without them %s" % (reserved, plain)
                self.findings.append(harmful(cause, "name the CPUs in reservedSystemCPUs", where))
        if len({count_bits(core) for core in self.topology.cores.values()}) > 1:
            cause = (
                "the cores have unequal numbers of online threads, and the kubelet counts with their average, %d:"
                " it can hand out a CPU that is in use" % self.topology.cpus_per_core
            )
            remedy = "switch siblings on or off together, or set cpuManagerPolicy: none"
            self.findings.append(harmful(cause, remedy, "cpuManagerPolicy"))
        if self.values.get("cpuCFSQuota") is not False and not self.gates.enabled(NO_EXCLUSIVE_QUOTA):
            cause = (
                "containers with exclusive CPUs get a CFS quota, too: they are throttled although nobody else may use"
                " their CPUs"
            )
            since = GATES[NO_EXCLUSIVE_QUOTA].on
            remedy = "upgrade to 1.%d, or set cpuCFSQuota: false, which lifts the limits of all pods" % since
            if self.minor >= since:
                remedy = "set featureGates.%s: true" % NO_EXCLUSIVE_QUOTA
            self.findings.append(harmful(cause, remedy, "cpuCFSQuota"))
