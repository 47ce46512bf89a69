# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's CPU settings in the one form that modules take, roles take and reports give back.

A set of settings is a dict of the names in SETTINGS. What the kubelet uses for a setting that its file does
not have is that setting's default, so a file without it and a file that says the default are equal.
Source: k8s.io/kubelet/config/v1beta1/types.go and pkg/kubelet/apis/config/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Container, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import ConfigurationError, InputError, Note, RefusedError, option
from .._base.quantity import millis, nanoseconds
from .._base.versions import NEWEST_MINOR
from ..cpuset import CPUSet
from ..policy.options import ALPHA_GATE, OPTION_SINCE, STRICT_RESERVATION, manager_option_gate, option_gate
from ..policy.reservation import check_is_text, split_cores
from ..state.acceptance import NONE, STATIC, CPUManagerConfig
from .configuration import COMMON_DEFAULTS, Configuration, changed_values
from .gates import CFS_QUOTA_PERIOD, CPU_OPTIONS, GATES, MEMORY_MANAGER, TOPOLOGY_OPTIONS, Gates
from .yaml_nodes import REMOVE

if TYPE_CHECKING:
    from ..topology.model import Topology
    from .start.findings import Finding
    from .start.predict import Prediction


# The kind of an error where no kubelet would start.
WOULD_NOT_START = "would_not_start"

CPU_MANAGER_POLICIES = (NONE, STATIC)
TOPOLOGY_MANAGER_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
TOPOLOGY_MANAGER_SCOPES = ("container", "pod")
STATIC_MEMORY = "Static"
MEMORY_MANAGER_POLICIES = ("None", STATIC_MEMORY)

_NANOSECONDS_PER_SECOND = 10**9

# Checks of the report that several settings have.
_TOPOLOGY, _MEMORY = "topology-manager-differs", "memory-manager-differs"
_RESERVATION, _QUOTA = "reservation-differs", "cfs-quota-differs"


class Bounds(NamedTuple):
    """What a wanted value may mean; most: None where there is no most."""

    least: int = 0
    most: int | None = None
    remedy: str = "write 0 or more"


# (a value of a setting, the minor version of a kubelet) -> the feature gates that it needs.
GatesOf = Callable[[Any, int], Iterable[str]]


class Setting(NamedTuple):
    """One setting, and all that depends on which it is.

    path: where it is in the file. default: what the kubelet takes without it. meaning: equal for two values that mean
    the same; raises InputError. argument: as modules take it. check: of the report, for a node that differs in it.
    """

    path: tuple[str, ...]
    default: Any
    meaning: Callable[[Any], Any]
    argument: Mapping[str, Any]
    check: str
    bounds: Bounds | None = None
    gates: GatesOf | None = None
    # Whether a restart with another value admits every running pod as before.
    is_harmless: bool = False


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InputError("%r is not a text" % (value,))
    return value


def _options(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InputError("%r is not a mapping of option names to texts" % (value,))
    for name, text in value.items():
        if not isinstance(text, str):
            raise InputError("option %s is %r, not a text" % (name, text), remedy='write it quoted, as in "true"')
    return dict(value)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise InputError("%r is neither true nor false" % (value,))
    return value


def _reserved_memory(value: object) -> tuple[object, ...]:
    """Return each NUMA node with what is reserved of it, in order."""
    entries = []
    for entry in value if isinstance(value, (list, tuple)) else (value,):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("limits"), Mapping):
            raise InputError("%r is not a list of mappings with numaNode and limits" % (value,))
        node = entry.get("numaNode", 0)
        if isinstance(node, bool) or not isinstance(node, int):
            raise InputError("numaNode %r is not a number" % (node,))
        entries.append((node, tuple(sorted((name, millis(amount)) for name, amount in entry["limits"].items()))))
    return tuple(sorted(entries))


def _cpus(value: object) -> CPUSet:
    return CPUSet.parse_plain(_text(value))


# --- kinds of settings ------------------------------------------------------------------------------------------------

_TEXT: Mapping[str, Any] = {"type": "str"}


def _choice(field: str, choices: tuple[str, ...], check: str, gates: GatesOf | None = None) -> Setting:
    """Return one of these texts."""

    def choose(value: object) -> str:
        if value not in choices:
            raise InputError("%r is not one of %s" % (value, ", ".join(choices)))
        return str(value)

    argument = {"type": "str", "choices": list(choices)}
    return Setting((field,), COMMON_DEFAULTS[field], choose, argument, check, gates=gates)


def _named_options(field: str, gate: str, gate_of: Callable[[str, int], str | None], check: str) -> Setting:
    """Yield options by their names: all need one gate, and each may need one of its own."""

    def gates(value: Mapping[str, str], minor: int) -> Iterator[str]:
        if value:
            yield gate
            yield from filter(None, (gate_of(name, minor) for name in value))

    return Setting((field,), {}, _options, {"type": "dict"}, check, gates=gates)


def _amount(field: str, resource: str, check: str) -> Setting:
    return Setting((field, resource), "0", millis, _TEXT, check, Bounds())


# Every setting. Its arguments, its variable (kubelet_ and the name), what a rollout does and the report says follow.
SETTINGS: dict[str, Setting] = {
    "cpu_manager_policy": _choice("cpuManagerPolicy", CPU_MANAGER_POLICIES, "policy-differs"),
    "cpu_manager_policy_options": _named_options(
        "cpuManagerPolicyOptions", CPU_OPTIONS, option_gate, "policy-options-differ"
    ),
    "cpu_manager_reconcile_period": Setting(
        ("cpuManagerReconcilePeriod",),
        COMMON_DEFAULTS["cpuManagerReconcilePeriod"],
        # The kubelet takes its default for a period of zero, too.
        lambda value: nanoseconds(value) or nanoseconds(COMMON_DEFAULTS["cpuManagerReconcilePeriod"]),
        _TEXT,
        "reconcile-period-differs",
        Bounds(),
        is_harmless=True,
    ),
    "topology_manager_policy": _choice("topologyManagerPolicy", TOPOLOGY_MANAGER_POLICIES, _TOPOLOGY),
    "topology_manager_scope": _choice("topologyManagerScope", TOPOLOGY_MANAGER_SCOPES, _TOPOLOGY),
    "topology_manager_policy_options": _named_options(
        "topologyManagerPolicyOptions", TOPOLOGY_OPTIONS, manager_option_gate, _TOPOLOGY
    ),
    "memory_manager_policy": _choice(
        "memoryManagerPolicy",
        MEMORY_MANAGER_POLICIES,
        _MEMORY,
        lambda value, _minor: () if value == MEMORY_MANAGER_POLICIES[0] else (MEMORY_MANAGER,),
    ),
    "cpu_cfs_quota": Setting(
        ("cpuCFSQuota",), COMMON_DEFAULTS["cpuCFSQuota"], _switch, {"type": "bool"}, _QUOTA, is_harmless=True
    ),
    "cpu_cfs_quota_period": Setting(
        ("cpuCFSQuotaPeriod",),
        COMMON_DEFAULTS["cpuCFSQuotaPeriod"],
        nanoseconds,
        _TEXT,
        _QUOTA,
        Bounds(10**6, _NANOSECONDS_PER_SECOND, "write 1ms to 1s"),
        lambda value, _minor: (
            () if nanoseconds(value) == nanoseconds(COMMON_DEFAULTS["cpuCFSQuotaPeriod"]) else (CFS_QUOTA_PERIOD,)
        ),
        is_harmless=True,
    ),
    # Raw, else Ansible makes the text "3" of the number 3, which may mean three CPUs.
    "reserved_system_cpus": Setting(("reservedSystemCPUs",), "", _cpus, {"type": "raw"}, _RESERVATION),
    "kube_reserved_cpu": _amount("kubeReserved", "cpu", _RESERVATION),
    "system_reserved_cpu": _amount("systemReserved", "cpu", _RESERVATION),
    "kube_reserved_memory": _amount("kubeReserved", "memory", _MEMORY),
    "system_reserved_memory": _amount("systemReserved", "memory", _MEMORY),
    "reserved_memory": Setting(
        ("reservedMemory",),
        [],
        _reserved_memory,
        {
            "type": "list",
            "elements": "dict",
            "options": {
                "numaNode": {"type": "int", "required": True},
                "limits": {"type": "dict", "required": True},
            },
        },
        _MEMORY,
    ),
}


# --- what has to be set together with a setting, or the kubelet would refuse it --------------------------------------

_RESERVED_CGROUPS = {"systemReservedCgroup": "system-reserved", "kubeReservedCgroup": "kube-reserved"}


def companions(wanted: Mapping[str, object], configuration: Configuration, minor: int) -> dict[tuple[str, ...], object]:
    """Return what to change beside the wanted settings, as KubeletConfiguration.with_changes() takes it.

    A feature gate is switched on where it is off and a wanted option needs it.
    """
    gates = Gates.of(configuration.values, minor)
    changes: dict[tuple[str, ...], object] = {
        ("featureGates", name): True
        for name in _needed_gates(wanted, minor)
        if not gates.enabled(name) and GATES[name].alpha <= minor
    }
    if wanted.get("reserved_system_cpus"):
        changes.update(((name,), "") for name in _idle_cgroups(configuration.values))
    return changes


def _needed_gates(wanted: Mapping[str, Any], minor: int) -> Iterator[str]:
    for name, setting in SETTINGS.items():
        if setting.gates is not None and name in wanted:
            yield from setting.gates(wanted[name], minor)


def _idle_cgroups(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cgroups that are named and not enforced, as on EKS: all they do is to keep CPUs from being reserved."""
    enforced = values.get("enforceNodeAllocatable") or ()
    for name, enforcement in _RESERVED_CGROUPS.items():
        if values.get(name) and not any(str(enforced_name).startswith(enforcement) for enforced_name in enforced):
            yield name


def found_settings(configuration: Configuration, replaced: Container[str] = ()) -> dict[str, Any]:
    """Return what the kubelet makes of its file: every setting. Raises ConfigurationError for a value it cannot read.

    replaced: the settings that get other values, so that what cannot be read of them may be there.
    """
    return {name: _found(configuration, setting, name in replaced) for name, setting in SETTINGS.items()}


def _found(configuration: Configuration, setting: Setting, is_replaced: bool) -> object:
    value, origin = configuration.given(setting.path, setting.default)
    if is_replaced or value is setting.default:
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    try:
        setting.meaning(value)
    except InputError as error:
        where = origin or configuration.source
        raise ConfigurationError(error.problem, "%s: %s" % (where, ".".join(setting.path)), error.remedy) from error
    return value


def check_settings(wanted: Mapping[str, object]) -> None:
    """Raise InputError for a value that no kubelet would take; the message names the setting."""
    check_is_text(wanted.get("reserved_system_cpus", ""))
    for name, value in wanted.items():
        try:
            SETTINGS[name].meaning(value)
        except InputError as error:
            raise error.within(option(name)) from error
    for name, value in wanted.items():
        bounds = SETTINGS[name].bounds
        if bounds is not None and not _is_within(bounds, SETTINGS[name].meaning(value)):
            problem = "%r is %s" % (value, "negative" if bounds.most is None else "out of range")
            raise InputError(problem, option(name), bounds.remedy)


def _is_within(bounds: Bounds, number: int) -> bool:
    return bounds.least <= number and (bounds.most is None or number <= bounds.most)


def complete(wanted: Mapping[str, object], found: Mapping[str, object]) -> dict[str, object]:
    """Return all settings of the node once `wanted` is applied to what is `found`.

    The policy none refuses to start with any option, so going to it without naming options drops them.
    """
    settings = {**found, **wanted}
    if wanted.get("cpu_manager_policy") == NONE and "cpu_manager_policy_options" not in wanted:
        settings["cpu_manager_policy_options"] = {}
    return settings


def differences(wanted: Mapping[str, object], found: Mapping[str, object]) -> list[str]:
    """Return the names of the settings that mean something else, in the order of SETTINGS."""
    return [
        name
        for name, setting in SETTINGS.items()
        if name in wanted and setting.meaning(wanted[name]) != _meaning(setting, found[name])
    ]


def _meaning(setting: Setting, found: object) -> object:
    """Return what the kubelet makes of a value; None where it refuses it, as it does a number in place of a text."""
    if isinstance(found, (int, float)) and isinstance(setting.default, str):
        return None
    try:
        return setting.meaning(found)
    except InputError:
        return None


def changes(wanted: Mapping[str, object], found: Mapping[str, object]) -> dict[tuple[str, ...], Any]:
    """Return what to change in the file, as KubeletConfiguration.with_changes() takes it: only what means something
    else."""
    return {SETTINGS[name].path: written(name, wanted[name]) for name in differences(wanted, found)}


def written(name: str, value: object) -> Any:
    """Return what a file has for a setting: no CPUs, no options are better not in it at all."""
    setting = SETTINGS[name]
    meaning = setting.meaning(value)
    return REMOVE if not meaning and meaning == setting.meaning(setting.default) else value


class SettingsPlan(NamedTuple):
    """What becomes of a kubelet's settings."""

    found: dict[str, Any]
    # All of them once it is done.
    settings: dict[str, Any]
    # What to change, as KubeletConfiguration.with_changes() takes it; the last are what goes with the settings.
    changes: dict[tuple[str, ...], object]
    companions: dict[tuple[str, ...], object]
    # What the kubelet then runs with.
    configuration: Configuration


def plan_settings(
    wanted: Mapping[str, object], configuration: Configuration, minor: int = NEWEST_MINOR
) -> SettingsPlan:
    """Decide what to change for these settings. Raises ConfigurationError for what the kubelet cannot read."""
    found = found_settings(configuration, wanted)
    settings = complete(wanted, found)
    edits = changes(settings, found)
    beside = companions({name: settings[name] for name in wanted}, configuration, minor)
    if not edits and not beside:
        return SettingsPlan(found, settings, {}, {}, configuration)
    edits.update(beside)
    return SettingsPlan(
        found, settings, edits, beside, Configuration(changed_values(configuration, edits), configuration.source)
    )


def needed_config(prediction: Prediction) -> CPUManagerConfig:
    """Return what the CPU manager starts with, where the kubelet is to start. Raises RefusedError where it does not."""
    refusal = prediction.refusal
    if refusal is not None:
        raise start_error(refusal)
    config = None if prediction.checked is None else prediction.checked.cpu_manager
    if config is None:
        reasons = "; ".join(doubt.reason for doubt in prediction.unknown) or "the CPU manager is off"
        raise RefusedError(
            "it cannot be determined with what the CPU manager would start: %s" % reasons, kind=WOULD_NOT_START
        )
    check_wishes(config)
    return config


def start_error(refusal: Finding) -> RefusedError:
    """Return the refusal of a kubelet, under the names of the settings."""
    return RefusedError(
        "the kubelet would not start: %s%s (%s)" % (refusal.context, refusal.text, refusal.cause),
        _setting_at(refusal.where),
        refusal.remedy,
        WOULD_NOT_START,
    )


def _setting_at(where: str) -> str:
    """Return the name of the setting at a place of a configuration; else the place."""
    for name, setting in SETTINGS.items():
        path = ".".join(setting.path)
        if where == path or where.startswith((path + ".", path + "[")):
            return option(name) + where[len(path) :]
    return where


def check_wishes(config: CPUManagerConfig) -> None:
    """Refuse what the kubelet would take, and nobody can want. Raises RefusedError."""
    if config.policy_name == STATIC and config.reserved == config.all_cpus:
        names = tuple(map(option, ("reserved_system_cpus", "kube_reserved_cpu", "system_reserved_cpu")))
        raise RefusedError(
            "reserving all of the CPUs %s leaves none for any pod under the static policy" % config.reserved,
            remedy="reserve fewer with %s, or %s and %s" % names,
        )


# --- notes: what is no failure, and better known before a change ------------------------------------------------------


def ignored_key_notes(ignored: Sequence[Finding], configuration: Configuration) -> list[str]:
    """Return the fields of a configuration that its kubelet ignores, each with the one that was meant."""
    notes: list[str] = []
    for finding in ignored:
        path = finding.where.partition("[")[0].split(".")
        source = configuration.origin((finding.where,)) or configuration.origin(path)
        if source is not None:
            text = "%s: %s: %s; %s" % (source, finding.where, finding.cause, finding.remedy)
            notes.append(Note("field-ignored", text))
    return list(dict.fromkeys(notes))


def replaced_map_notes(configuration: Configuration) -> list[str]:
    """Return the maps of a configuration of which a flag takes the place."""
    maps = configuration.replaced_maps()
    return [Note("field-ignored", "%s; %s" % (replaced.to_cause(), replaced.to_remedy())) for replaced in maps]


class Reserved(NamedTuple):
    """What is kept from pods, and whether full-pcpus-only keeps from them the other threads of its cores, too."""

    cpus: CPUSet
    whole_cores_only: bool


def reservation_notes(topology: Topology, wanted: Reserved, found: Reserved) -> list[str]:
    """Return what becomes of the other threads of cores of which a part is reserved: now, and with what is wanted
    instead."""
    notes: list[str] = []
    others = _other_threads(topology, found.cpus)
    if others:
        notes.append(Note("reservation-splits-cores", "the " + split_cores(found.cpus, others, found.whole_cores_only)))
    others = _other_threads(topology, wanted.cpus)
    if others and wanted != found:
        text = "the wanted " + split_cores(wanted.cpus, others, wanted.whole_cores_only, is_wanted=True)
        remedy = "reserve whole cores, as in %s" % (wanted.cpus | others)
        notes.append(Note("wanted-reservation-splits-cores", "%s; %s" % (text, remedy)))
    return notes


def _other_threads(topology: Topology, cpus: CPUSet) -> CPUSet:
    return CPUSet(cpu for core in topology.cores if core.cpus & cpus for cpu in core.cpus) - cpus


def design_notes(config: CPUManagerConfig | None) -> list[str]:
    """Return what is by design, and asked all the time: other pods run on reserved CPUs, too. config: None if not
    known."""
    if config is None or config.policy_name != STATIC or config.strict_reservation or config.is_partitioned:
        return []
    since, beta = OPTION_SINCE[STRICT_RESERVATION][:2]
    return [
        'containers without CPUs of their own run on the reserved CPUs %s, too, which is by design: %s: "true" in'
        " cpuManagerPolicyOptions keeps them off (Kubernetes 1.%d; 1.%d with the gate %s)"
        % (config.reserved, STRICT_RESERVATION, beta, since, ALPHA_GATE)
    ]
