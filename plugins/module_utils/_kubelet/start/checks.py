# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would this kubelet start with this configuration on this node? All that it would refuse, and what does harm.

The kubelet stops at its first refusal. Here all are reported, each as if the others were repaired; what depends on a
value that is itself refused is left out.
Source: pkg/kubelet/apis/config/validation, cmd/kubelet/app/server.go, pkg/kubelet/cm and its managers, Kubernetes
1.33 to 1.36, of 1.29 to 1.32 what is told apart by version; differences of older versions as far as they are known.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping

from ..._base.errors import KubeletError
from ..._base.quantity import counted
from ...cpuset import CPUSet, count_bits
from ...policy.options import StaticOptions, check_machine, parse_static_options
from ...policy.reservation import kubelet_reservation, split_cores
from ...state.acceptance import NONE, STATIC, CPUManagerConfig
from ..gates import (
    ALL_ALPHA,
    ALL_BETA,
    CPU_ALPHA_OPTIONS,
    CPU_BETA_OPTIONS,
    CPU_MANAGER,
    CPU_OPTIONS,
    FIRST_MINOR,
    GATES,
    LAST_MINOR,
    MEMORY_MANAGER,
    NO_EXCLUSIVE_QUOTA,
    POD_LEVEL_MANAGERS,
    Gates,
    dependencies,
    is_registered,
)
from .amount import map_text
from .findings import Checked, Finding, Host, Unknown, harmful, refused, refused_by
from .reservations import Reservations

if TYPE_CHECKING:
    from .managers import MemoryCheck


# The feature gates that the kubelet refuses.
#
# Its source: k8s.io/component-base/featuregate (feature_gate.go).


# Of so many names that may be gates of their own it is looked which gate is meant.
_GUESSES = 20


def gate_refusal(gates: Mapping[str, bool], minor: int, removal: str, warns: bool = False) -> Finding | None:
    """Return the first gate that the kubelet 1.`minor` refuses; None where it takes all. `removal`: how one is removed.

    Of several the kubelet shows one, or all in random order; here it is the first by its name. One that it does not
    have ends the reading, whatever else is wrong; with `warns` it is passed over.
    """
    if warns:
        names = (ALL_ALPHA, ALL_BETA)
        gates = {name: value for name, value in gates.items() if name in names or is_registered(name, minor)}
    found = _unknown(gates, minor) or next(_locked(gates, minor), None) or next(_unmet(gates, minor), None)
    if found is None:
        return None
    return found._replace(remedy=found.remedy or removal, where="featureGates.%s" % found.where)


def _unknown(gates: Mapping[str, bool], minor: int) -> Finding | None:
    guesses = _GUESSES
    for name in sorted(gates):
        is_refused, meant = _is_refused_name(name, minor), None
        if name not in GATES and (is_refused or guesses):
            guesses -= 1
            meant = _meant(name, minor)
        if is_refused or meant:
            return _unrecognized(name, meant, minor)
    return None


def _unrecognized(name: str, meant: str | None, minor: int) -> Finding:
    text = "unrecognized feature gate: %s" % name
    gate = GATES.get(name)
    if meant:
        return refused(text, "there is no such gate; %s is almost the same" % meant, "write %s" % meant, name)
    if gate is None:
        cause = "Kubernetes 1.%d has no such gate: it is misspelled, or was removed earlier, or is another's" % minor
    elif minor >= gate.removed:
        cause = "Kubernetes 1.%d removed this gate; what it switched is always %s"
        cause %= (gate.removed, "on" if Gates({}, minor).enabled(name) else "off")
    else:
        cause = "the gate exists from Kubernetes 1.%d on, and this is 1.%d" % (gate.life.since, minor)
    return refused(text, cause, "", name)


def unknown_gates(gates: Mapping[str, object], host: Host) -> list[str]:
    """Return the names of which it is not known whether this kubelet has such a gate."""
    return [
        name
        for name in sorted(gates)
        if not host.warns_of_gates
        and name not in (ALL_ALPHA, ALL_BETA)
        and not is_registered(name, host.minor)
        and not _is_refused_name(name, host.minor)
    ]


def _is_refused_name(name: str, minor: int) -> bool:
    """Return whether the kubelet 1.`minor` surely has no gate of this name."""
    if name in (ALL_ALPHA, ALL_BETA) or is_registered(name, minor):
        return False
    if FIRST_MINOR <= minor <= LAST_MINOR:
        return True
    # A gate that is said to be older than its first version may have come to others, too.
    gate = GATES.get(name)
    return gate is not None and (gate.life.phases[0].since > 0 or minor > LAST_MINOR)


def _locked(gates: Mapping[str, bool], minor: int) -> Iterator[Finding]:
    for name in sorted(gates):
        gate, value = GATES.get(name), gates[name] is True
        phase = None if gate is None else gate.life.phase(minor)
        if gate is None or phase is None or not phase.locked or phase.default is value:
            continue
        said, locked = ("true", "false") if value else ("false", "true")
        text = "cannot set feature gate %s to %s, feature is locked to %s" % (name, said, locked)
        cause = "from Kubernetes 1.%d on it cannot be switched %s" % (gate.locked, "on" if value else "off")
        yield refused(text, cause, "", name)


def _unmet(given: Mapping[str, bool], minor: int) -> Iterator[Finding]:
    """Yield what gates need others that are off."""
    gates = Gates(given, minor)
    for name, names in dependencies(minor).items():
        missing = [gate for gate in names if not gates.enabled(gate)]
        if not missing or not gates.enabled(name):
            continue
        text = "%s is enabled, but depends on features that are disabled: [%s]" % (name, " ".join(missing))
        needed = " and ".join(missing)
        cause = "%s is on%s, and needs %s" % (name, "" if name in given else " without being named", needed)
        remedy = "switch %s on, or %s off" % (needed, name)
        yield refused(
            text, cause, remedy, next((gate for gate in (*missing, name, ALL_BETA, ALL_ALPHA) if gate in given), name)
        )


@lru_cache(maxsize=1)
def _by_length() -> dict[int, list[str]]:
    """Return the names of the gates by their length."""
    found: dict[int, list[str]] = {}
    for name in (*GATES, ALL_ALPHA, ALL_BETA):
        found.setdefault(len(name), []).append(name)
    return found


def _meant(name: str, minor: int) -> str | None:
    """Return a gate whose name differs in case, or in one letter; where it is sure that it is no other gate."""
    if name in (ALL_ALPHA, ALL_BETA):
        return None
    lengths = (len(name), len(name) - 1, len(name) + 1)
    alike = (gate for length in lengths for gate in _by_length().get(length, ()))
    return next((gate for gate in alike if _is_slip(name, gate) and not _is_refused_name(gate, minor)), None)


def _is_slip(name: str, gate: str) -> bool:
    """Return whether the two differ in case, or in one letter."""
    if name == gate:
        return False
    if name.lower() == gate.lower():
        return True
    start = next((at for at, (mine, its) in enumerate(zip(name, gate)) if mine != its), min(len(name), len(gate)))
    return any(name[start + mine :] == gate[start + its :] for mine, its in ((1, 1), (0, 1), (1, 0)))


_NODE_SWAP = "NodeSwap"

# What of the configuration each step looks at. The step is imported where something of it is given, as every import
# costs time on every node.
_VALIDATED = frozenset(
    (
        "cgroupsPerQOS",
        "cpuCFSQuotaPeriod",
        "enforceNodeAllocatable",
        "kubeReservedCgroup",
        "systemReservedCgroup",
        "topologyManagerPolicy",
        "topologyManagerScope",
    )
)
_OF_TOPOLOGY_MANAGER = frozenset(("topologyManagerPolicy", "topologyManagerPolicyOptions", "topologyManagerScope"))
_OF_MEMORY_MANAGER = frozenset(("memoryManagerPolicy", "reservedMemory"))
_OF_SURROUNDINGS = frozenset(("cgroupRoot", "memorySwap"))
# The cgroup of all pods, by each driver.
_OF_PODS = ("kubepods.slice", "kubepods")
_OF_NODE = frozenset(("protectKernelDefaults", "systemCgroups"))
_OF_SERVING = frozenset(("address", "tlsCipherSuites", "tlsMinVersion"))
# What counts when the kubelet is made, after its managers.
_MADE_LATER = frozenset(
    (
        "allowedUnsafeSysctls",
        "containerLogMaxFiles",
        "containerLogMaxSize",
        "evictionMinimumReclaim",
        "evictionSoft",
        "evictionSoftGracePeriod",
    )
)

# Before this minor version options had no levels.
_LEVELS_SINCE = 23

_SET_CPUS = "set reservedSystemCPUs, or less cpu in kubeReserved and systemReserved"


def check_decoded(
    values: Mapping[str, Any],
    gates: Gates,
    host: Host,
    emptied: frozenset[str] = frozenset(),
    is_plain: bool = False,
) -> Checked:
    """Check what a kubelet has decoded of its files and flags.

    emptied: the fields that a flag gives an empty value, in whose place no default comes. is_plain: they come from
    plain_values(), so that only the fields that are judged here have to be looked at.
    """
    return _Check(values, gates, host, emptied, is_plain).checked()


class _Check:
    """One check: each method adds what it finds."""

    def __init__(
        self, values: Mapping[str, Any], gates: Gates, host: Host, emptied: frozenset[str], is_plain: bool
    ) -> None:
        self.values = values
        self.gates = gates
        self.host = host
        self.topology = host.topology
        self.minor = host.minor
        self.emptied = emptied
        self.findings: list[Finding] = []
        if not is_plain or host.cgroup_v1 or not _VALIDATED.isdisjoint(values):
            from .validation import validation_findings

            self.findings += validation_findings(values, gates, host, emptied)
        self.reservations = Reservations(values, host)
        self.options = StaticOptions()

    def checked(self) -> Checked:
        host = self.host
        unknown: list[Unknown] = []
        memory = self._memory_check()
        self.findings += [] if memory is None else memory.invalid()
        is_serving_given = not _OF_SERVING.isdisjoint(self.values)
        if is_serving_given:
            from .surroundings import address_findings, serving_findings

            self.findings += serving_findings(self.values)
        self.findings += self.reservations.findings
        policy, config = self._text("cpuManagerPolicy", NONE), None
        self.findings += self._option_gates()
        has_topology_manager = not _OF_TOPOLOGY_MANAGER.isdisjoint(self.values)
        if has_topology_manager:
            from .managers import topology_manager_findings, topology_option_gates

            self.findings += topology_option_gates(self.values, self.gates, host)
        if host.swap_on or not _OF_SURROUNDINGS.isdisjoint(self.values):
            from .surroundings import cgroup_root_findings, swap_findings

            self.findings += swap_findings(self.values, self.gates.enabled(_NODE_SWAP), host)
            _sort(cgroup_root_findings(self.values, host), self.findings, unknown)
        if has_topology_manager:
            self.findings += topology_manager_findings(self.values, self.gates, host)
        if self.gates.enabled(CPU_MANAGER):
            config = self._check_cpu_manager(policy)
        self.findings += self._option_findings(config)
        self.findings += [] if memory is None else memory.findings()
        if host.docker_driver:
            from .surroundings import docker_findings

            self.findings += docker_findings(self.values, host.docker_driver)
        if not _MADE_LATER.isdisjoint(self.values):
            from .surroundings import creation_findings

            self.findings += creation_findings(self.values, host)
        after: list[Finding] = []
        # The static policy, if it is to start, has found too few CPUs already.
        with_cpus = policy != STATIC or not self.gates.enabled(CPU_MANAGER)
        _sort(self.reservations.node_allocatable(with_cpus), after, unknown)
        if self._looks_at_node():
            from .surroundings import node_findings

            _sort(node_findings(self.values, host), after, unknown)
        if is_serving_given:
            after += address_findings(self.values)
        is_certain = policy in (NONE, STATIC) and self.gates.enabled(CPU_MANAGER)
        return Checked(
            self.findings,
            after,
            unknown,
            policy if is_certain else None,
            config,
            self.options,
            self.gates.enabled(POD_LEVEL_MANAGERS),
            "None" if memory is None else memory.policy_name(),
            {} if memory is None else memory.reserved(),
        )

    def _memory_check(self) -> MemoryCheck | None:
        """Return None where nothing of the memory manager is given, and it has nothing to refuse."""
        if _OF_MEMORY_MANAGER.isdisjoint(self.values) and self.gates.enabled(MEMORY_MANAGER):
            return None
        from .managers import MemoryCheck

        policy = self._text("memoryManagerPolicy", "None")
        return MemoryCheck(self.values, self.gates, self.host, self.reservations, policy)

    def _looks_at_node(self) -> bool:
        """Return whether there is something to find when the kubelet sets up the node."""
        enforced = self.values.get("enforceNodeAllocatable") or ("pods",)
        is_enforcing = not {"pods", "none"}.issuperset(enforced)
        is_lacking = self.host.has_systemd is False or bool(self.host.lacking_controllers)
        if is_enforcing or is_lacking or not _OF_NODE.isdisjoint(self.values):
            return True
        return bool(self.values.get("cgroupRoot")) or any(map(self.host.cgroup_lacks, _OF_PODS))

    def _text(self, name: str, default: str) -> str:
        """Return a text, whose empty value means the default where no flag gives it."""
        return self.values.get(name) or ("" if name in self.emptied else default)

    def _refuse(self, text: str, cause: str, remedy: str, where: str) -> None:
        self.findings.append(refused(text, cause, remedy, where))

    # --- the CPU manager ----------------------------------------------------------------------------------

    def _option_gates(self) -> Iterator[Finding]:
        """Yield whether the policy's options need a gate that is off."""
        where = "cpuManagerPolicyOptions"
        options = self.values.get(where)
        if options is not None and self.gates.enabled(CPU_MANAGER) and not self.gates.enabled(CPU_OPTIONS):
            yield refused(
                'CPU Manager policy options %s require feature gates "%s", "%s" enabled'
                % (map_text(options), CPU_MANAGER, CPU_OPTIONS),
                "the gate %s is off" % CPU_OPTIONS,
                "remove the options, or set the gate to true",
                where,
            )

    def _check_cpu_manager(self, policy: str) -> CPUManagerConfig | None:
        where = "cpuManagerPolicyOptions"
        options = self.values.get(where)
        if options is not None and not self.gates.enabled(CPU_OPTIONS):
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
                'unknown policy: "%s"' % policy,
                "there is no such CPU manager policy; upper and lower case count",
                "write none or static",
                "cpuManagerPolicy",
            )
            return None
        before_options = len(self.findings)
        options_are_right = self._read_options(options or {})
        reserved = self._static_reservation(before_options)
        if reserved is None or not options_are_right:
            return None
        return CPUManagerConfig(
            STATIC,
            self.topology.all_cpus(),
            reserved,
            self.options.strict_cpu_reservation,
            self.minor,
            self.gates.enabled(POD_LEVEL_MANAGERS),
            self.host.is_partitioned,
        )

    def _read_options(self, options: Mapping[str, str]) -> bool:
        """Read the static policy's options; whether all of them can be used."""
        where = "cpuManagerPolicyOptions"
        found: list[Finding] = []

        def try_options(some: Mapping[str, str], cause: str, place: str) -> bool:
            alpha = self.minor < _LEVELS_SINCE or self.gates.enabled(CPU_ALPHA_OPTIONS)
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
        # With the topology manager's policy none the second reason is reported, too.
        for policy in dict.fromkeys((self._text("topologyManagerPolicy", NONE), NONE)):
            try:
                check_machine(self.options, self.topology, policy)
            except KubeletError as error:
                cause = "align-by-socket does not go with this"
                found.append(refused_by(error, cause, where + ".align-by-socket", "new static policy error: "))
        self.findings += dict.fromkeys(found)
        return not found

    def _option_findings(self, config: CPUManagerConfig | None) -> Iterator[Finding]:
        """Yield what of the options, as far as they are not refused, does not do what it is for."""
        manager_options = self.values.get("topologyManagerPolicyOptions") or {}
        options = StaticOptions() if config is None else self.options
        has_memory = self._text("memoryManagerPolicy", "None") == "Static"
        if options == StaticOptions() and not manager_options and not has_memory:
            return
        # Imported here: most nodes have no such options.
        from ...policy.option_harms import option_harms

        manager = self._text("topologyManagerPolicy", NONE)
        nodes = len(self.host.nodes())
        for harm in option_harms(options, self.topology, manager, manager_options, self.minor, nodes, has_memory):
            yield harmful(harm.cause, harm.remedy, harm.where)

    def _static_reservation(self, before_options: int) -> CPUSet | None:
        """Return what the static policy reserves; None where that is refused.

        before_options: how many findings there were before the options were read.
        """
        amount, named = self.reservations.amount("cpu"), self.reservations.cpus
        if amount is None or named is None:
            return None
        try:
            reserved = kubelet_reservation(self.topology, amount.millis(), self.options, named)
        except KubeletError as error:
            # Without any reservation the policy is not even tried, with its options.
            is_tried = amount.value > 0
            cause = "the static policy reserves %s" % counted(amount.of_cpus(), "CPU")
            where = "reservedSystemCPUs"
            if not is_tried:
                cause = "the static policy needs a reserved CPU, and none is configured"
                given = [
                    field for field in ("systemReserved", "kubeReserved") if "cpu" in (self.values.get(field) or {})
                ]
                if given:
                    where, cause = given[0], "%s: the cpu in %s is 0" % (cause, " and ".join(given))
            prefix = "new static policy error: " if is_tried else ""
            finding = refused_by(error, cause, where, prefix)
            self.findings.insert(len(self.findings) if is_tried else before_options, finding)
            return None
        self._warn(reserved)
        return reserved

    def _warn(self, reserved: CPUSet) -> None:
        """Add findings on what the static policy does not mind, and yet does harm."""
        where = "reservedSystemCPUs"
        if reserved == self.topology.all_cpus():
            cause = "all CPUs are reserved: no pod can have CPUs for itself"
            self.findings.append(harmful(cause, _SET_CPUS, where))
        if "cpuManagerReconcilePeriod" in self.emptied:
            cause = "a flag gives a period of 0: the kubelet reconciles all containers again and again without a pause"
            remedy = "give a period, such as 10s, or remove the flag"
            self.findings.append(harmful(cause, remedy, "cpuManagerReconcilePeriod"))
        split = self.topology.physical_cpus(reserved) - reserved
        if split:
            cause = "the " + split_cores(reserved, split, self.options.full_pcpus_only)
            self.findings.append(harmful(cause, "name whole cores in reservedSystemCPUs", where))
        if not self.reservations.cpus and self.options != StaticOptions():
            plain = kubelet_reservation(self.topology, len(reserved) * 1000, StaticOptions())
            if plain != reserved:
                cause = "the policy's options decide which CPUs are reserved: %s, without them %s" % (reserved, plain)
                self.findings.append(harmful(cause, "name the CPUs in reservedSystemCPUs", where))
        if len({count_bits(core) for core in self.topology.cores.values()}) > 1:
            cause = (
                "the cores have unequal numbers of online threads, and the kubelet counts with their average, %d:"
                " it can hand out a CPU that is in use" % self.topology.cpus_per_core
            )
            remedy = (
                "switch siblings on or off together (where the machine has cores of two kinds: switch SMT off), or set"
                " cpuManagerPolicy: none"
            )
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


def _sort(found: Iterable[Finding | Unknown], findings: list[Finding], unknown: list[Unknown]) -> None:
    for finding in found:
        if isinstance(finding, Unknown):
            unknown.append(finding)
        else:
            findings.append(finding)
