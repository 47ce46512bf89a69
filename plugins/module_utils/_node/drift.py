# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One node: what is wanted, what is found, what to do about it. Pure: it reads and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple

from .._base.errors import ConfigurationError, CPUManagerError, InputError, NodeError, Note, RefusedError
from .._base.versions import version_notes
from .._kubelet.configuration import Configuration
from .._kubelet.settings import (
    SETTINGS,
    STATIC_MEMORY,
    Reserved,
    SettingsPlan,
    differences,
    ignored_key_notes,
    needed_config,
    plan_settings,
    replaced_map_notes,
    reservation_notes,
)
from .._kubelet.start.findings import Host
from ..cpuset import CPUSet
from ..policy.option_harms import Harm, option_harms, scattered_notes, stranded
from ..policy.options import StaticOptions
from ..state.acceptance import (
    ABSENT,
    ACCEPTED,
    REFUSED,
    STATIC,
    CPUManagerConfig,
    Judgement,
    judge,
    pooled_cpus,
    readable,
    switched_off,
)
from ..state.assignments import State
from ..topology.model import Topology

if TYPE_CHECKING:
    from .._kubelet.start.predict import Prediction, Starts
    from .._kubelet.state_removal import Removal
    from .container_cpus import Observed
    from .start_check import MemoryPlan


# Notes on options that do not do what they are for: of a configuration, and of what containers have. Pure.


class Chosen(NamedTuple):
    """The options of the static policy, as they are read, and all settings."""

    options: StaticOptions
    settings: Mapping[str, Any]

    def harms(self, host: Host) -> list[Harm]:
        """Return what is wrong with them on this machine."""
        manager, options = (self.settings["topology_manager_policy" + end] for end in ("", "_options"))
        has_memory = self.settings["memory_manager_policy"] == STATIC_MEMORY
        return list(
            option_harms(self.options, host.topology, manager, options, host.minor, len(host.nodes()), has_memory)
        )


def option_notes(
    found: Chosen, wanted: Chosen, host: Host, topology: Topology, state: State | None, pod_names: Mapping[str, str]
) -> list[str]:
    """Return notes on what is found, on what is wanted in its place, and on who has scattered CPUs."""
    harms = found.harms(host)
    return [
        *(harm.to_note() for harm in harms),
        *(harm.to_note("with the wanted settings: ") for harm in wanted.harms(host) if harm not in harms),
        *(scattered_notes(found.options, topology, state, pod_names) if state is not None else ()),
    ]


# The CPUs that the kernel was booted to isolate, against those that the kubelet gives out. Pure.
#
# Isolated are those that the system is to keep off, and so the reserved ones are the others. Its source: isolcpus= and
# nohz_full= in Linux's Documentation/admin-guide/kernel-parameters.txt.


def isolation_drift(topology: Topology, reserved: CPUSet, owned: CPUSet) -> list[dict[str, str]]:
    """Return where the reservation and the kernel's command line contradict each other.

    owned: the CPUs of partitions, which the system keeps off though they are reserved.
    """
    drift = []
    for subject, parameter, cpus in (
        ("isolated", "isolcpus", topology.isolated),
        ("nohz_full", "nohz_full", topology.nohz_full),
    ):
        both = cpus & (reserved - owned)
        if both:
            drift.append(
                {
                    "subject": subject,
                    "wanted": str(cpus - both),
                    "found": str(cpus),
                    "remedy": "take the reserved CPUs %s out of %s= on the kernel's command line and boot again,"
                    " or reserve others" % (both, parameter),
                }
            )
    return drift


def isolation_notes(topology: Topology, shared: CPUSet, exclusive: CPUSet) -> list[str]:
    """Return what does harm in using isolated CPUs, or in not using them."""
    isolated = topology.isolated & topology.online
    notes: list[str] = []
    if shared & isolated:
        text = (
            "the shared pool has the isolated CPUs %s, over which the kernel balances no load: the threads of a"
            " container stay on one of them" % (shared & isolated)
        )
        if isolated & exclusive:
            text += (
                "; so do those of a container with several exclusive CPUs (%s), unless it binds its threads itself:"
                " boot without isolcpus=, or with isolcpus=managed_irq alone" % (isolated & exclusive)
            )
        notes.append(Note("shared-pool-isolated", text))
    if isolated and exclusive - isolated:
        text = "the exclusive CPUs %s are not isolated, as CPUs %s are" % (exclusive - isolated, isolated)
        notes.append(Note("exclusive-not-isolated", text))
    return notes


CLEAN = "clean"
DRIFT = "drift"
NO_KUBELET = "no kubelet"
# There is no drift, but no setting was wanted either.
NOTHING_WANTED = "nothing wanted"

# How a note begins.
NO_RESTART = "as the node is, its kubelet would not start again"

# Subjects of drift that are no settings: a configuration that cannot be read, and a kubelet that would not start.
CONFIGURATION = "configuration"
START = "start"

# What may cure both.
BACK = "if a rollout was the last change of the node, go back with the playbook rollback"

STOP_KUBELET = "stop_kubelet"
RESTORE_CONFIGURATION = "restore_configuration"
RESET_CHECKPOINT = "reset_checkpoint"
RESET_MEMORY_STATE = "reset_memory_state"
REPAIR_CHECKPOINT = "repair_checkpoint"
WRITE_CONFIGURATION = "write_configuration"
WRITE_RUNTIME = "write_runtime_configuration"
RESTART_RUNTIME = "restart_runtime"
START_KUBELET = "start_kubelet"
RECONCILE = "reconcile"
# All that may be done on a node, in this order. States come before the configuration: a running kubelet would write
# them again, and a stopped one must not find the new policy beside the old state.
ACTIONS = (
    STOP_KUBELET,
    RESTORE_CONFIGURATION,
    RESET_CHECKPOINT,
    RESET_MEMORY_STATE,
    REPAIR_CHECKPOINT,
    WRITE_CONFIGURATION,
    WRITE_RUNTIME,
    RESTART_RUNTIME,
    START_KUBELET,
    RECONCILE,
)
# What is done with the files that the kubelet's managers keep.
STATE_ACTIONS = frozenset((RESET_CHECKPOINT, REPAIR_CHECKPOINT, RESET_MEMORY_STATE))


def in_order(actions: Iterable[str], *more: str) -> list[str]:
    """Return these actions and more, in the order in which they are done."""
    return [action for action in ACTIONS if action in {*actions, *more}]


def with_restart(actions: Iterable[str], *more: str) -> list[str]:
    """Return these actions and more, done while the kubelet is stopped."""
    return in_order(actions, STOP_KUBELET, START_KUBELET, *more)


def report(
    topology: Topology,
    machine: Host,
    configuration: Configuration | None,
    checkpoint: bytes | None,
    wanted: Mapping[str, Any],
    observed: Observed | None = None,
    problem: NodeError | None = None,
    starts: Starts | None = None,
    owned: CPUSet | None = None,
) -> dict[str, Any]:
    """Return wanted against found, as plain data; see the module drift_info for its shape.

    observed: what runs on the node; None where no pods do.
    problem: why the configuration cannot be read, where there is one that cannot.
    starts: what is predicted of the node's files; None where there is no configuration.
    owned: the CPUs of partitions of cgroups, of a node with isolated CPUs.
    Raises RefusedError where the kubelet would not start with what is wanted. What is found wrong is reported, and no
    error.
    """
    notes = _machine_notes(topology, machine)
    result: dict[str, Any] = {"topology": _shown(topology), "wanted": dict(wanted)}
    plan = None
    if configuration is not None:
        try:
            plan = plan_settings(wanted, configuration, machine.minor)
        except ConfigurationError as error:
            problem = error
    if configuration is None or plan is None or starts is None:
        said = readable(checkpoint) if problem is not None else Judgement(ABSENT)
        return {
            **result,
            "status": NO_KUBELET if problem is None else DRIFT,
            "found": None,
            "drift": [] if problem is None else [_problem_row(CONFIGURATION, "readable", problem.problem, problem)],
            "found_refusal": "" if problem is None else problem.problem,
            "actions": [],
            "checkpoint": {**said.to_dict(), "lost": []},
            "cpus": _pools(topology, CPUSet(), said.state, StaticOptions()),
            "owners": _owners(topology, CPUSet(), said.state, observed),
            "enforcement": None,
            "notes": notes,
        }
    found = plan.found
    config, refusal = _start(starts, wanted)
    judgement = readable(checkpoint) if config is None else judge(checkpoint, config)
    drift = describe_drift(plan, configuration)
    actions = [WRITE_CONFIGURATION] if drift else []
    if refusal is not None:
        drift.append(_problem_row(START, "starts", "refused: " + refusal.problem, refusal))
    is_removed = bool(starts.own_rules) or (starts.removal is not None and starts.removal.is_sure)
    if config is not None and judgement.verdict == REFUSED and not is_removed:
        # Where the kubelet would refuse it with both, the reason is that of the next start, and of a repair.
        refused_now = _checkpoint_refusal(starts.found, checkpoint)
        drift.append(
            {
                "subject": "checkpoint",
                "wanted": ACCEPTED,
                "found": "%s: %s" % (REFUSED, refused_now or judgement.reason),
                "source": None,
                "refused_now": bool(refused_now),
            }
        )
        actions.append(_checkpoint_action(checkpoint, config))
    actions = with_restart(actions) if actions else actions
    reserved = _found_reservation(found, starts.found)
    reserved_wanted = CPUSet.parse(plan.settings["reserved_system_cpus"]) if config is None else config.reserved
    cpus = _pools(topology, reserved, judgement.state, _options(starts.found))
    found_refusal = _found_refusal(starts.found)
    if found_refusal and refusal is None:
        notes.append(Note("kubelet-would-not-start", "%s: %s" % (NO_RESTART, found_refusal)))
    elif not found_refusal and not is_removed:
        found_refusal = _checkpoint_refusal(starts.found, checkpoint)
        if found_refusal:
            offline = switched_off(judgement.state, topology.offline)
            notes.append(Note("checkpoint-refused", "%s: %s%s" % (NO_RESTART, found_refusal, offline)))
    notes += [
        *_removal_notes(starts.removal, judgement.state),
        *_own_notes(starts, judgement),
        *reservation_notes(topology, _reserved(reserved_wanted, starts.planned), _reserved(reserved, starts.found)),
        *ignored_key_notes(starts.found.ignored, configuration),
        *replaced_map_notes(configuration),
        *version_notes(machine.minor, machine.is_assumed),
        *(_uncertain(doubt.reason) for doubt in starts.planned.unknown),
        *_option_notes(plan, starts, topology, machine, judgement.state, observed),
    ]
    if topology.isolated or topology.nohz_full:
        drift += isolation_drift(topology, reserved_wanted, owned or CPUSet())
        notes += isolation_notes(topology, CPUSet.parse(cpus["shared"]), CPUSet.parse(cpus["exclusive"]))
    enforcement: dict[str, Any] | None = None
    lost: list[dict[str, str]] = []
    if observed is not None:
        from .enforcement import compare

        # What a kubelet would not take is reset or repaired first, and then gives the CPUs out anew.
        accepted = judgement.state if judgement.verdict == ACCEPTED else None
        compared = compare(observed, judgement.policy_name, accepted, _coming(config))
        enforcement = compared.summary
        lost = [part.to_dict() for part in compared.lost]
        drift += compared.drift
        notes += compared.notes
        actions = in_order(actions, RECONCILE) if compared.to_reconcile else actions
    return {
        **result,
        "status": DRIFT if drift else CLEAN if wanted else NOTHING_WANTED,
        "found": found,
        "drift": drift,
        "found_refusal": found_refusal,
        "actions": actions,
        "checkpoint": {**judgement.to_dict(), "lost": lost},
        "cpus": {**cpus, "reserved_wanted": str(reserved_wanted)},
        "owners": _owners(topology, reserved, judgement.state, observed),
        "enforcement": enforcement,
        "notes": notes,
    }


def _coming(config: CPUManagerConfig | None) -> CPUSet:
    """Return the CPUs that a kubelet with this configuration would give to containers; none where it does not pin."""
    return CPUSet() if config is None or config.policy_name != STATIC else pooled_cpus(config)


def _own_notes(starts: Starts, judgement: Judgement) -> list[str]:
    """Return what is said of a checkpoint that a vendor's kubelet takes, and one of Kubernetes does not."""
    if not starts.own_rules or judgement.verdict != REFUSED:
        return []
    return [_uncertain("checkpoint: %s (%s)" % (starts.own_rules, judgement.reason))]


def _removal_notes(removal: Removal | None, state: State | None) -> list[str]:
    """Return what becomes of exclusive CPUs where the kubelet's unit removes the state that has them."""
    if removal is None or not removal.is_seen or state is None or not (state.assignments or state.pod_assignments):
        return []
    text = (
        "%s %s the CPU manager's state: each restart of the kubelet assigns the CPUs of running pods anew;"
        " drain the node before, or remove the command"
    )
    return [Note("states-removed", text % (removal.source, "removes" if removal.is_sure else "may remove"))]


def with_memory_state(answer: Mapping[str, Any], memory: MemoryPlan, found: str) -> dict[str, Any]:
    """Return the report, with the memory manager's state in it where that has to go.

    found: why the kubelet would refuse the state with its configuration as it was found; empty where it would not.
    """
    if not memory.changed:
        note = [Note("memory-state-refused", "%s: %s" % (NO_RESTART, found))] if found else []
        return with_memory_doubt({**answer, "notes": [*answer["notes"], *note]}, memory)
    row = {"subject": "memory_state", "wanted": ACCEPTED, "found": "refused: " + memory.reason, "source": None}
    drift = [*answer["drift"], {**row, "refused_now": bool(found)}]
    return {**answer, "status": DRIFT, "drift": drift, "actions": with_restart(answer["actions"], RESET_MEMORY_STATE)}


def with_memory_doubt(answer: Mapping[str, Any], memory: MemoryPlan) -> dict[str, Any]:
    """Return the report, with a note on a memory manager's state of which it is not known whether it would be
    refused."""
    doubt = "memory_manager_state: " + memory.unknown if memory.unknown else ""
    return {**answer, "notes": [*answer["notes"], *([_uncertain(doubt)] if doubt else [])]}


def _uncertain(reason: str) -> Note:
    return Note("start-uncertain", "whether the kubelet starts cannot be determined: %s" % reason)


def _start(starts: Starts, wanted: Mapping[str, Any]) -> tuple[CPUManagerConfig | None, CPUManagerError | None]:
    """Return what the CPU manager would start with after the change, or why it would not start as the node was found.

    Raises RefusedError where only what is wanted is wrong.
    """
    try:
        return needed_config(starts.planned), None
    except RefusedError as error:
        # Imported here: nearly all kubelets would start.
        from .start_check import config_if_certain

        if wanted:
            try:
                needed_config(starts.found)
            except RefusedError:
                pass
            else:
                raise
        # The checkpoint, and what the containers have, are judged all the same.
        return config_if_certain(starts.planned), error


def _problem_row(subject: str, wanted: str, found: str, error: CPUManagerError) -> dict[str, Any]:
    """Return what is found so wrong that no setting of it can be compared."""
    return {
        "subject": subject,
        "wanted": wanted,
        "found": found,
        "source": error.where or None,
        "remedy": error.remedy or "correct it, or " + BACK,
    }


def _shown(topology: Topology) -> dict[str, Any]:
    """Return what a report shows. The distances say nothing there, and Ansible works long on their many numbers."""
    described = topology.to_dict()
    del described["numa_distances"]
    return described


def describe_drift(plan: SettingsPlan, configuration: Configuration) -> list[dict[str, Any]]:
    """Return what a plan changes, as plain data."""
    drift = differing(plan.settings, plan.found, configuration)
    for path, value in plan.companions.items():
        found, origin = configuration.given(path)
        drift.append({"subject": ".".join(path), "wanted": value, "found": found, "source": origin})
    return drift


def differing(
    wanted: Mapping[str, object], found: Mapping[str, object], configuration: Configuration
) -> list[dict[str, Any]]:
    """Return the settings that mean something else in this configuration than is wanted, as plain data."""
    return [
        {"subject": name, "wanted": wanted[name], "found": found[name], "source": configuration.origin(setting.path)}
        for name, setting in ((name, SETTINGS[name]) for name in differences(wanted, found))
    ]


def _found_reservation(found: Mapping[str, Any], prediction: Prediction) -> CPUSet:
    """Return the CPUs that the kubelet reserves now, as far as it would start at all."""
    config = None if prediction.checked is None else prediction.checked.cpu_manager
    if config is not None and config.reserved:
        return config.reserved
    try:
        return CPUSet.parse(found["reserved_system_cpus"])
    except InputError:  # what is wanted takes its place
        return CPUSet()


def _reserved(cpus: CPUSet, prediction: Prediction) -> Reserved:
    return Reserved(cpus, _options(prediction).full_pcpus_only)


def _options(prediction: Prediction) -> StaticOptions:
    """Return the static policy's options; none where the kubelet does not get so far as to read them."""
    return StaticOptions() if prediction.checked is None else prediction.checked.options


def _option_notes(
    plan: SettingsPlan,
    starts: Starts,
    topology: Topology,
    machine: Host,
    state: State | None,
    observed: Observed | None,
) -> list[str]:
    chosen = [(_options(starts.found), plan.found), (_options(starts.planned), plan.settings)]
    if not any(options != StaticOptions() or given["topology_manager_policy_options"] for options, given in chosen):
        return []
    found, wanted = (Chosen(*each) for each in chosen)
    names = {} if observed is None else observed.pod_names()
    return option_notes(found, wanted, machine, topology, state, names)


def _pools(topology: Topology, reserved: CPUSet, state: State | None, options: StaticOptions) -> dict[str, str]:
    """Return who uses which CPUs. A reserved CPU also serves the shared pool, unless the reservation is strict."""
    exclusive = CPUSet() if state is None else state.exclusive_cpus() & topology.online
    shared = topology.online - reserved - exclusive
    return {
        "online": str(topology.online),
        "offline": str(topology.offline),
        "reserved": str(reserved),
        "exclusive": str(exclusive),
        "shared": str(shared),
        "stranded": str(stranded(options, topology, shared, reserved)),
        "isolated": str(topology.isolated),
    }


def _owners(
    topology: Topology, reserved: CPUSet, state: State | None, observed: Observed | None
) -> list[dict[str, str]]:
    """Return whose each CPU is, exactly one owner's."""
    names, here = ({}, {}) if observed is None else (observed.pod_names(), observed.container_names())
    left, owners = topology.online, []
    # The smaller first: what an init container has left to another one is that one's.
    for uid, container, cpus in sorted(() if state is None else state.owners(here), key=lambda owner: len(owner[-1])):
        owners.append(("exclusive", "%s/%s" % (names.get(uid, uid), container or "no container"), cpus & left))
        left -= cpus
    owners.sort(key=lambda owner: list(owner[-1])[:1])
    owners += [("reserved", "", left & reserved), ("shared", "", left - reserved), ("offline", "", topology.offline)]
    return [{"use": use, "owner": owner, "cpus": str(cpus)} for use, owner, cpus in owners if cpus]


def _machine_notes(topology: Topology, machine: Host) -> list[str]:
    notes: list[str] = [Note("topology-odd", problem) for problem in topology.problems]
    unseen = topology.online - machine.topology.all_cpus()
    if unseen:
        notes.append(Note("cpus-unseen", "CPUs %s belong to no NUMA node: the kubelet does not see them" % unseen))
    if not topology.uniform_cores:
        text = (
            "the cores have unequal numbers of online threads, and the kubelet counts with their average, %d:"
            " under the static policy it can hand out a CPU that is in use, so switch siblings on or off together;"
            " where the machine has cores of two kinds, switch SMT off" % machine.topology.cpus_per_core
        )
        notes.append(Note("cores-uneven", text))
    return notes


def _found_refusal(prediction: Prediction) -> str:
    """Return why the kubelet would not start again with its configuration as it was found; empty where it would."""
    refusal = prediction.refusal
    return "" if refusal is None else "%s: %s%s (%s)" % (refusal.where, refusal.context, refusal.text, refusal.cause)


def _checkpoint_action(checkpoint: bytes | None, config: CPUManagerConfig) -> str:
    """Return what is done with a checkpoint that a kubelet with this configuration refuses: without CPUs to keep, it
    goes."""
    from .checkpoint_plan import plan_valid

    return RESET_CHECKPOINT if plan_valid(checkpoint, config).new is None else REPAIR_CHECKPOINT


def _checkpoint_refusal(prediction: Prediction, checkpoint: bytes | None) -> str:
    """Return why the kubelet would refuse its checkpoint with its configuration as it was found; empty where it
    would not."""
    config = None if prediction.checked is None else prediction.checked.cpu_manager
    return readable(checkpoint).reason if config is None else judge(checkpoint, config).reason
