# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What-if: where would the kubelet of a node put these pods, and which would it refuse? Pure, as all decisions."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from ..cpuset import CPUSet
from ..errors import InputError, RefusedError, option
from ..kubelet.file.configuration import API_VERSION, KIND, Configuration
from ..kubelet.settings import STATIC_MEMORY, needed_config, plan_settings
from ..kubelet.start.engine import predict_values
from ..kubelet.start.finding import Host
from ..policy.hints import MOST_NUMA_NODES, NONE, TopologyManager
from ..policy.kubelet_reservation import split_cores
from ..policy.manager import TOPOLOGY_AFFINITY_ERROR, CPUManager
from ..policy.none import NonePolicy
from ..policy.options import StaticOptions
from ..policy.packed import EndlessDistributionError
from ..policy.policy import Policy
from ..policy.static import StaticPolicy
from ..quantity import nanoseconds
from ..state.acceptance import StateError, check_checkpoint
from ..state.assignments import State
from ..state.config import STATIC
from ..state.formats import CheckpointError
from ..topology.model import Group, Topology
from ..workload.pods import APP, INIT, Container, Pod
from .lost import lost_cpus, lost_notes, lost_of, running_names
from .plan_limits import limit_notes
from .room import Room, allocatable

if TYPE_CHECKING:
    from ..isolation.remedies import Burst
    from .reconcile.decide import Running

ENDLESS = "EndlessDistribution"

EMPTY_POOL = (
    "the shared pool is empty: no other container can run, and the kubelet would not start again"
    " (default cpuset cannot be empty)"
)


# The policy that the settings give to the kubelet.
KUBELET = "kubelet"


class Question(NamedTuple):
    """The node that the prediction is for. policy: that of the KUBELET, or one of ours, dynamic or isolated.

    shared_minimum: of the policy dynamic. running: what runs on the node, as far as its names are known.
    """

    topology: Topology
    machine: Host
    configuration: Configuration
    wanted: Mapping[str, object]
    checkpoint: bytes | None
    pods: Sequence[Pod]
    bursts: Sequence[Burst] = ()
    policy: str = KUBELET
    shared_minimum: int = 0
    running: Sequence[Running] = ()


def default_configuration() -> Configuration:
    """The configuration of a kubelet whose file says nothing."""
    return Configuration({"apiVersion": API_VERSION, "kind": KIND}, "the kubelet's defaults")


def plan_allocations(question: Question) -> dict[str, Any]:
    """Every container's CPUs, what is refused, and what is left, as plain data; see the module allocation_plan.

    Raises InputError, RefusedError where the kubelet would not start with these settings.
    """
    question, settings = _planned(question)
    notes: list[str] = []
    manager = _start(question, settings, notes)
    policy = manager.policy
    room = Room(allocatable(question.configuration.values, question.machine), question.machine.minor)
    for pod in _keep_running(manager, question):
        room.take(pod)
    before = manager.state.snapshot()
    limits = _limits(question, settings, manager)
    refused = _add_all(manager, question.pods, notes, room)
    manager.remove_stale()
    after = manager.state.snapshot()
    notes += [
        *_notes(manager, after),
        *_option_notes(question, settings, manager, after),
        *_lost(question, after),
        *limits,
    ]
    return {
        "settings": settings,
        "containers": [row for pod in question.pods for row in _rows(manager, question.topology, pod)],
        "refused": refused,
        "reserved": str(policy.summary.reserved),
        "exclusive": str(after.exclusive_cpus()),
        "shared_pool": str(_shared_pool(manager, question.topology)),
        **_headroom(question.topology, policy, after),
        "throttling": _throttling(manager, question, settings),
        "isolated": _isolated(question, policy, settings),
        "exact": not limits,
        "notes": notes,
        "before": before.to_text(),
        "after": after.to_text(),
    }


def seed_state(question: Question) -> tuple[State, list[dict[str, str]]]:
    """The state that the kubelet would have if it had started these pods itself, in this order, on an empty node.

    Also the pods that it would refuse. Raises as plan_allocations().
    """
    question, settings = _planned(question._replace(checkpoint=None))
    notes: list[str] = []
    manager = _start(question, settings, notes)
    refused = _add_all(manager, question.pods, notes)
    manager.remove_stale()
    return manager.state.snapshot(), refused


def _planned(question: Question) -> tuple[Question, dict[str, object]]:
    """The question once the settings are in the configuration, and all of them."""
    plan = plan_settings(question.wanted, question.configuration, question.machine.minor)
    return question._replace(configuration=plan.configuration), plan.settings


def _start(question: Question, settings: Mapping[str, Any], notes: list[str]) -> CPUManager:
    configuration = question.configuration
    prediction = predict_values(configuration.values, question.machine, configuration.source)
    config = needed_config(prediction)
    state = None
    # Ours keep no account that the kubelet has.
    if question.checkpoint is not None and question.policy == KUBELET:
        try:
            state = check_checkpoint(question.checkpoint, config)
        except (CheckpointError, StateError) as error:
            notes.append("the kubelet would refuse the checkpoint (%s); this plan begins with an empty node" % error)
    policy: Policy = NonePolicy()
    options = StaticOptions() if prediction.checked is None else prediction.checked.options
    if question.policy != KUBELET:
        # Imported here: most plans are about the kubelet.
        from .our_policies import our_policy

        given = options, _reserved(settings), question.shared_minimum
        policy = our_policy(question.policy, question.topology, question.machine, *given)
    elif config.policy_name == STATIC and prediction.checked is not None:
        policy = StaticPolicy(question.machine.topology, options, config.reserved, question.machine.minor)
    if isinstance(policy, StaticPolicy):
        _check_nodes(settings["topology_manager_policy"], question.machine.topology.num_numa_nodes)
    topology_manager = TopologyManager(
        settings["topology_manager_policy"],
        settings["topology_manager_scope"],
        [node.id for node in question.topology.numa_nodes],
        settings["topology_manager_policy_options"],
        question.topology.numa_distances,
    )
    return CPUManager(policy, topology_manager, state)


def _check_nodes(manager: str, nodes: int) -> None:
    """Raise RefusedError where there are more sets of NUMA nodes than can be gone through for each pod."""
    if manager == NONE or nodes <= MOST_NUMA_NODES:
        return
    # Imported here: there is hardly any such machine.
    from ..policy.option_harms import admission_harm

    harm = admission_harm(manager, nodes, nodes)
    if harm is not None:
        raise RefusedError(harm.cause, option("topology_manager_policy"), harm.remedy)


def _reserved(settings: Mapping[str, Any]) -> CPUSet:
    return CPUSet.parse(settings["reserved_system_cpus"])


def _isolated(question: Question, policy: Policy, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the kubelet's static policy makes of the CPUs that the machine isolates; empty where it isolates none."""
    if not question.topology.isolated:
        return {}
    from ..policy.isolated import static_with_isolated

    strict = isinstance(policy, StaticPolicy) and policy.options.strict_cpu_reservation
    reserved = policy.summary.reserved or _reserved(settings)
    found = static_with_isolated(question.machine.topology, reserved, question.topology.isolated, strict)
    return {**found.to_dict(), "harmless": found.is_harmless()}


def _limits(question: Question, settings: Mapping[str, Any], manager: CPUManager) -> list[str]:
    """Why the plan is not exact: pods ask for more than is looked at. Those that have their CPUs keep them."""
    nodes, policy = question.topology.numa_nodes, settings["topology_manager_policy"]
    is_moved = question.policy == KUBELET and manager.policy.name == STATIC and policy != NONE and len(nodes) > 1
    coming = [pod for pod in question.pods if pod.uid not in manager.state.assignments]
    return limit_notes(
        coming, question.machine.minor, policy, is_moved, settings["memory_manager_policy"] == STATIC_MEMORY
    )


def _keep_running(manager: CPUManager, question: Question) -> list[Pod]:
    """Keep what the checkpoint gives to pods that are not listed: they run, only their manifests are not here.

    These pods. Each asks for what its containers have that run, or for what the others have where that is more: an init
    container has ended when these run, or these are still to come.
    """
    told = {pod.uid for pod in question.pods}
    here = running_names(question.running)
    unlisted = []
    for uid, containers in manager.state.assignments.items():
        if uid not in told:
            unknown = tuple(Container(name, APP, {}, {}) for name in containers)
            run = here.get(uid, set()).intersection(containers) or containers
            parts = [[mask for name, mask in containers.items() if (name in run) is runs] for runs in (True, False)]
            count = max(len(CPUSet.from_mask(reduce(or_, masks, 0))) for masks in parts)
            unlisted.append(Pod(uid, uid, unknown, overhead={"cpu": 1000 * count}))
    manager.active.update((pod.uid, pod) for pod in unlisted)
    return unlisted


def _lost(question: Question, state: State) -> list[str]:
    """What no container can get: of the pods that are listed by their init containers, of others by what runs."""
    listed = {
        pod.uid: [container.name for container in pod.containers if container.kind == INIT] for pod in question.pods
    }
    names = {pod.uid: pod.name for pod in question.pods}
    others = State(state.default_cpu_set, {uid: own for uid, own in state.assignments.items() if uid not in listed})
    found = lost_cpus(question.running, others)
    for uid, ended in listed.items():
        found += lost_of(names[uid], state.assignments.get(uid, {}), ended)
    return lost_notes(found)


def _add_all(
    manager: CPUManager, pods: Sequence[Pod], notes: list[str], room: Room | None = None
) -> list[dict[str, str]]:
    """The pods that are refused. room: None where the pods are known to run."""
    refused = []
    for number, pod in enumerate(pods):
        try:
            admission = manager.add(pod)
        except EndlessDistributionError as error:
            notes.append("pod %s: %s; no later pod would start" % (pod.name, error))
            for later in pods[number:]:
                manager.delete(later.uid)
                refused.append({"pod": later.name, "reason": ENDLESS, "message": str(error), "why": ""})
            return refused
        reason, message, why = admission.reason, admission.message, ""
        if reason == TOPOLOGY_AFFINITY_ERROR:
            # Imported here: most pods are admitted.
            from .affinity import why_refused

            why = why_refused(manager, pod, admission)
        # The kubelet counts once the pod has its CPUs, which are free again when the pod is found to be gone.
        lacking = room.refusal(pod) if room is not None and admission.admitted else None
        if lacking:
            manager.delete(pod.uid)
            reason, message = lacking
        if reason:
            refused.append({"pod": pod.name, "reason": reason, "message": message, "why": why})
        elif room is not None:
            room.take(pod)
        notes += _harm(manager, pod)
    return refused


def _harm(manager: CPUManager, pod: Pod) -> list[str]:
    """What this pod has for itself and should not have."""
    own = manager.state.assignments.get(pod.uid, {})
    if not own:
        return []
    others = 0
    for uid, containers in manager.state.assignments.items():
        if uid != pod.uid:
            for mask in containers.values():
                others |= mask
    harms = (("other pods have for themselves", others), ("are reserved", manager.policy.summary.reserved.mask))
    return [
        "pod %s, container %s is given CPUs %s, which %s" % (pod.name, name, CPUSet.from_mask(mask & wrong), why)
        for name, mask in own.items()
        for why, wrong in harms
        if mask & wrong
    ]


def _notes(manager: CPUManager, state: State) -> list[str]:
    notes, reserved = [], manager.policy.summary.reserved
    if state.assignments and not state.default_cpu_set:
        notes.append(EMPTY_POOL)
    elif manager.policy.name == STATIC and not state.default_cpu_set - reserved:
        notes.append("only reserved CPUs are left in the shared pool")
    if isinstance(manager.policy, StaticPolicy) and manager.policy.options.full_pcpus_only:
        others = manager.policy.summary.reserved_physical - reserved
        notes += ["the " + split_cores(reserved, others, True)] if others else []
    return notes


def _option_notes(question: Question, settings: Mapping[str, Any], manager: CPUManager, state: State) -> list[str]:
    """Which of the kubelet's options do not do what they are for."""
    policy = manager.policy
    options = policy.options if question.policy == KUBELET and isinstance(policy, StaticPolicy) else StaticOptions()
    if options == StaticOptions() and not settings["topology_manager_policy_options"]:
        return []
    # Imported here: most plans are made without options.
    from .option_notes import Chosen, option_notes

    chosen = Chosen(options, settings)
    names = {pod.uid: pod.name for pod in question.pods}
    return option_notes(chosen, chosen, question.machine, question.topology, state, names)


def _shared_pool(manager: CPUManager, topology: Topology) -> CPUSet:
    """The CPUs of all containers that have none for themselves: with the policy none, all."""
    return topology.online if isinstance(manager.policy, NonePolicy) else CPUSet.from_mask(manager.state.default)


def _cpus_of(manager: CPUManager, topology: Topology, pod: Pod, container: Container) -> CPUSet:
    own = manager.state.get(pod.uid, container.name)
    return _shared_pool(manager, topology) if own is None else CPUSet.from_mask(own)


def _rows(manager: CPUManager, topology: Topology, pod: Pod) -> list[dict[str, object]]:
    if pod.uid not in manager.active:
        return []
    rows = []
    for container in pod.containers:
        cpus = _cpus_of(manager, topology, pod, container)
        exclusive = manager.state.get(pod.uid, container.name) is not None
        rows.append(
            {
                "pod": pod.name,
                "uid": pod.uid,
                "container": container.name,
                "exclusive": exclusive,
                "cpus": str(cpus),
                "numa_nodes": [node.id for node in topology.numa_nodes if node.cpus & cpus] if exclusive else [],
            }
        )
    return rows


def _throttling(manager: CPUManager, question: Question, settings: Mapping[str, object]) -> list[dict[str, object]]:
    """What the CPU limits of the admitted pods' containers do to them, for those that get a quota."""
    for burst in question.bursts:
        if not any(burst.matches(pod.name, container.name) for pod in question.pods for container in pod.containers):
            raise InputError(
                "no container of the pods is %s in %s" % (burst.container, burst.pod),
                where=option("bursts"),
                remedy="name it as the result does in `containers`",
            )
    if not settings["cpu_cfs_quota"] or not any(
        container.limits.get("cpu") for pod in question.pods for container in pod.containers
    ):
        return []
    # Imported here: other pods do without.
    from ..isolation.remedies import Burst, Limited, predict_container
    from ..kubelet.gates.enabled import NO_EXCLUSIVE_QUOTA, Gates

    gates = Gates.of(question.configuration.values, question.machine.minor)
    lifted = gates.enabled(NO_EXCLUSIVE_QUOTA)
    period_us = nanoseconds(settings["cpu_cfs_quota_period"]) // 1000
    predictions: dict[Limited, dict[str, object]] = {}
    rows = []
    for pod in question.pods:
        if pod.uid not in manager.active:
            continue
        for container in pod.containers:
            exclusive = manager.state.get(pod.uid, container.name) is not None
            milli = container.limits.get("cpu", 0)
            if not milli or (exclusive and lifted):
                continue
            found = [burst for burst in question.bursts if burst.matches(pod.name, container.name)]
            burst = found[0] if found else Burst()
            cpus = max(1, len(_cpus_of(manager, question.topology, pod, container)))
            limited = Limited(milli, period_us, cpus, burst.threads or cpus, burst.work_us)
            if limited not in predictions:
                predictions[limited] = predict_container(limited)
            rows.append(
                {
                    "pod": pod.name,
                    "uid": pod.uid,
                    "container": container.name,
                    "limit": "%dm" % milli,
                    "is_assumed": not found,
                    **predictions[limited],
                }
            )
    return rows


def _headroom(topology: Topology, policy: Policy, state: State) -> dict[str, object]:
    """What can still be given to containers for themselves."""
    if not isinstance(policy, StaticPolicy):
        return {"allocatable": {}, "stranded": ""}
    free = (policy.summary.allocatable or state.default_cpu_set) - state.exclusive_cpus() - policy.summary.reserved
    available = max(0, len(free) - policy.shared_minimum)
    whole = CPUSet(cpu for core in topology.cores if core.cpus <= free for cpu in core.cpus)
    # What is no whole core is of no use when only whole cores are given.
    usable = whole if policy.options.full_pcpus_only else free

    def most(groups: Iterable[Group]) -> int:
        return min(available, max((len(group.cpus & usable) for group in groups), default=0))

    return {
        "allocatable": {
            "cpus": min(available, len(usable)),
            "whole_cores": min(available, len(whole)),
            "one_socket": most(topology.sockets),
            "one_numa_node": most(topology.numa_nodes),
            "one_l3_cache": most(topology.caches),
        },
        "stranded": str(free - usable),
    }


def compare_plans(plan: Mapping[str, object], changed: Mapping[str, object]) -> list[dict[str, str]]:
    """The containers that another configuration gives other CPUs, or refuses, as plain data."""
    answers = [_answers(plan), _answers(changed)]
    names = sorted({name for answer in answers for name in answer})
    return [
        {"pod": pod, "container": container, "this": this, "other": that}
        for pod, container in names
        for this, that in [tuple(answer.get((pod, container), "") for answer in answers)]
        if this != that
    ]


def _answers(plan: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    answers = {
        (row["pod"], row["container"]): row["cpus"] if row["exclusive"] else "shared" for row in plan["containers"]
    }
    answers.update({(row["pod"], ""): "admitted" for row in plan["containers"]})
    answers.update({(row["pod"], ""): "refused: %s" % row["reason"] for row in plan["refused"]})
    return answers
