# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What-if: where would the kubelet of a node put these pods, which would it refuse, and what is left? Pure."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, RefusedError, option
from .._base.quantity import counted, nanoseconds
from .._cgroup.kubepods import GUARANTEED
from .._containers.pods import APP, INIT, Container, Pod
from .._kubelet.configuration import API_VERSION, KIND, Configuration
from .._kubelet.gates import NO_EXCLUSIVE_QUOTA, Gates
from .._kubelet.settings import STATIC_MEMORY, needed_config, plan_settings
from .._kubelet.start.findings import Host
from .._kubelet.start.predict import predict_values
from .._kubelet.start.reservations import MEMORY, Reservations
from ..cpuset import CPUSet, count_bits
from ..policy.assignment import EndlessDistributionError
from ..policy.dynamic import DYNAMIC, DynamicPolicy
from ..policy.dynamic_state import DynamicRules
from ..policy.hints import MOST_NUMA_NODES, NONE, SINGLE_NUMA_NODE, TopologyManager
from ..policy.isolated import ISOLATED, IsolatedPolicy, static_with_isolated
from ..policy.manager import TOPOLOGY_AFFINITY_ERROR, Admission, CPUManager
from ..policy.option_harms import admission_harm, fewest, option_harms, scattered_notes
from ..policy.options import StaticOptions
from ..policy.reservation import split_cores
from ..policy.static import NonePolicy, Policy, StaticPolicy, count_of_pod
from ..state.acceptance import STATIC, StateError, check_checkpoint
from ..state.assignments import State
from ..state.formats import CheckpointError
from ..topology.model import Group, Topology
from .container_cpus import lost_cpus, lost_notes, lost_of, running_names

if TYPE_CHECKING:
    from .._cgroup.limits import Burst
    from .container_cpus import Running


# Why the topology manager refuses a pod for its CPUs, which the kubelet's message does not say. Pure.


def why_refused(manager: CPUManager, pod: Pod, admission: Admission) -> str:
    """What of its CPUs did not fit. The state is that of the refusal, with what its earlier containers were given."""
    policy = manager.policy
    if not isinstance(policy, StaticPolicy) or not admission.hints:
        return ""
    # Empty: the pod as a whole.
    container, _hints = admission.hints[-1]
    counts = pod.exclusive_counts(policy.minor)
    for name in [container] if container else counts:
        assigned = manager.state.get(pod.uid, name)
        if assigned is not None and count_bits(assigned) != counts[name]:
            return "container %s wants %s, and has CPUs %s" % (name, _cpus(counts[name]), CPUSet.from_mask(assigned))
    count = counts[container] if container else count_of_pod(pod, counts)
    nodes = sorted(policy.topology.numa_nodes.items())
    least = 1
    if manager.topology_manager.policy != SINGLE_NUMA_NODE:
        least = fewest([count_bits(cpus) for _node, cpus in nodes], count)
    free = manager.state.default & ~policy.summary.reserved.mask
    why = "%s wants %s of %s, and free are %s" % (
        "container %s" % container if container else "the pod",
        _cpus(count),
        counted(least, "NUMA node"),
        ", ".join("%d of node %d" % (count_bits(free & cpus), node) for node, cpus in nodes),
    )
    own = policy.reusable.get(pod.uid, 0)
    if own:
        homes = ", ".join(str(node) for node, cpus in nodes if cpus & own)
        text = "; the CPUs %s of its init containers, which it takes over, are of node %s"
        why += text % (CPUSet.from_mask(own), homes)
    return why


def _cpus(count: int) -> str:
    return counted(count, "CPU")


# What pods ask for beside CPUs, and a plan does not look at, though it has a say in their admission. Pure.
#
# Its source: pkg/kubelet/cm/container_manager_linux.go: the device manager and the memory manager give the topology
# manager
# hints as the CPU manager does, the DRA manager gives none. pkg/apis/core/v1/helper: which names are those of devices.


_COUNTED = frozenset(("cpu", "memory"))
_HUGE_PAGES = "hugepages-"
# Whose names no device plugin may have.
_NATIVE = "kubernetes.io/"
_MEMORY = "memory (memory manager Static)"


def limit_notes(pods: Sequence[Pod], minor: int, manager: str, is_moved: bool, has_memory_manager: bool) -> list[str]:
    """From which pod on a plan is not exact, and why; empty where it is exact for all.

    manager: the topology manager's policy. is_moved: whether it decides on which NUMA nodes a pod gets its CPUs.
    has_memory_manager: whether the memory manager has the policy Static.
    """
    hints: set[str] = set()
    counted: set[str] = set()
    has_claims, first = False, ""
    for pod in pods:
        with_memory = has_memory_manager and _has_own_memory(pod, minor)
        asked = {_MEMORY} if with_memory else set()
        for name in _resources(pod):
            gives_hints = with_memory if name.startswith(_HUGE_PAGES) else "/" in name and _NATIVE not in name
            (asked if gives_hints else counted).add(name)
            first = first or pod.name
        hints |= asked
        has_claims = has_claims or bool(pod.claims)
        if asked or pod.claims:
            first = first or pod.name
    if not is_moved:
        counted, hints = counted | hints, set()
    reasons = []
    if hints:
        reasons.append(
            "the topology manager (%s) also goes by the NUMA nodes of %s, which are not known here: a pod that asks for"
            " %s, and those after it, can get other CPUs or be refused" % (manager, _list(hints), _them(hints))
        )
    if counted:
        reasons.append(
            "%s %s not counted: the kubelet refuses a pod that cannot have %s, and then those after it can get other"
            " CPUs" % (_list(counted), "is" if len(counted) == 1 else "are", _them(counted))
        )
    if has_claims:
        reasons.append(
            "resourceClaims are not looked at: their drivers choose devices, and CPUs where one manages them"
        )
    return ["not exact from pod %s on: %s" % (first, "; ".join(reasons))] if reasons else []


def _has_own_memory(pod: Pod, minor: int) -> bool:
    """Whether the Static memory manager looks at the pod. A Guaranteed one always asks for memory."""
    return pod.qos(minor) == GUARANTEED and not pod.has_pod_level_resources(minor)


def _resources(pod: Pod) -> Iterator[str]:
    """What a pod asks for beside what a plan counts."""
    amounts = [container.requests for container in pod.containers]
    for requests in (*amounts, *(pod.pod_level or ())):
        yield from (name for name, amount in requests.items() if amount and name not in _COUNTED)


def _list(names: set[str]) -> str:
    *others, last = sorted(names)
    return "%s and %s" % (", ".join(others), last) if others else last


def _them(names: set[str]) -> str:
    return "it" if len(names) == 1 else "them"


# What a node has for pods, and whether one more finds room: the kubelet counts requests, whatever its policy. Pure.
#
# Its source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/nodestatus/setters.go.


_CPU = "cpu"
# In which the kubelet counts: thousandths of a CPU, and bytes.
_UNIT = {_CPU: 1, MEMORY: 1000}


def allocatable(values: Mapping[str, Any], host: Host) -> dict[str, int]:
    """What pods may ask for in all, in thousandths; no memory where that of the machine is not known."""
    reservations = Reservations(values, host)
    kept = {_CPU: reservations.amount(_CPU), MEMORY: reservations.memory()}
    capacity = {_CPU: host.topology.num_cpus, MEMORY: None if host.memory is None else host.memory - host.huge_pages}
    found = {}
    for resource, amount in kept.items():
        size = capacity[resource]
        if size is not None and amount is not None:
            found[resource] = max(0, 1000 * size - int(1000 * amount.exact()))
    return found


class Room:
    """What pods have taken of a node."""

    def __init__(self, capacity: Mapping[str, int], minor: int) -> None:
        self.minor = minor
        self.capacity = {resource: amount // _UNIT[resource] for resource, amount in capacity.items()}
        self.used = dict.fromkeys(capacity, 0)

    def refusal(self, pod: Pod) -> tuple[str, str] | None:
        """The kubelet's reason and message for a pod that finds no room; None for one that does."""
        for resource, capacity in self.capacity.items():
            asked, used = self._asked(pod, resource), self.used[resource]
            if asked and asked > capacity - used:
                message = "Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d"
                return "OutOf" + resource, message % (resource, asked, used, capacity)
        return None

    def take(self, pod: Pod) -> None:
        """The pod runs."""
        for resource in self.used:
            self.used[resource] += self._asked(pod, resource)

    def _asked(self, pod: Pod, resource: str) -> int:
        return -(-pod.request(resource, self.minor) // _UNIT[resource])


# The policies that are not the kubelet's, for a plan of who gets which CPUs first. Pure.


def our_policy(
    name: str, topology: Topology, machine: Host, options: StaticOptions, reserved: CPUSet, shared_minimum: int
) -> StaticPolicy:
    """The policy dynamic or isolated on this machine. Raises InputError where it cannot be kept there."""
    if name == ISOLATED:
        return IsolatedPolicy(machine.topology, options, reserved, topology.isolated, machine.minor)
    if name != DYNAMIC:
        raise InputError("there is no policy %s" % name, where=option("policy"))
    return DynamicPolicy(DynamicRules(machine.topology, reserved, options, shared_minimum), machine.minor)


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
    harm = admission_harm(manager, nodes, nodes)
    if harm is not None:
        raise RefusedError(harm.cause, option("topology_manager_policy"), harm.remedy)


def _reserved(settings: Mapping[str, Any]) -> CPUSet:
    return CPUSet.parse(settings["reserved_system_cpus"])


def _isolated(question: Question, policy: Policy, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the kubelet's static policy makes of the CPUs that the machine isolates; empty where it isolates none."""
    if not question.topology.isolated:
        return {}
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
    machine = question.machine
    given = (settings["topology_manager_policy"], settings["topology_manager_policy_options"], machine.minor)
    harms = option_harms(options, machine.topology, *given, len(machine.nodes()))
    names = {pod.uid: pod.name for pod in question.pods}
    return [*(harm.to_note() for harm in harms), *scattered_notes(options, question.topology, state, names)]


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
    from .._cgroup.limits import Burst, Limited, predict_container

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
