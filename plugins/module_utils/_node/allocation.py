# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What-if: where would the kubelet of a node put these pods, which would it refuse, and what is left? Pure."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Callable, Collection, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, RefusedError, option
from .._base.quantity import counted, nanoseconds
from .._base.versions import NEWEST_MINOR, is_tested
from .._cgroup.kubepods import GUARANTEED
from .._containers.pods import APP, INIT, Container, Pod, in_order_of_start
from .._kubelet.configuration import API_VERSION, KIND, Configuration
from .._kubelet.gates import NO_EXCLUSIVE_QUOTA, POD_LEVEL_MANAGERS, POD_LEVEL_RESOURCES, Gates
from .._kubelet.settings import STATIC_MEMORY, needed_config, plan_settings
from .._kubelet.start.findings import Host
from .._kubelet.start.predict import Prediction, predict_values
from .._kubelet.start.reservations import MEMORY, Reservations
from ..cpuset import CPUSet, count_bits
from ..policy.assignment import EndlessDistributionError
from ..policy.dynamic import DYNAMIC, DynamicPolicy
from ..policy.dynamic_state import DynamicRules
from ..policy.hints import NONE, RESTRICTED, SINGLE_NUMA_NODE, HintProvider, OtherManagers, TopologyManager
from ..policy.isolated import ISOLATED, IsolatedPolicy, static_with_isolated
from ..policy.manager import CPU, Admission, CPUManager
from ..policy.option_harms import admission_harm, fewest, option_harms, scattered_notes, stranded
from ..policy.options import StaticOptions
from ..policy.quota import CONTAINER, WHOLE_POD, is_pod_unlimited, isolation_levels
from ..policy.reservation import split_cores
from ..policy.static import EmptyPodPoolError, NonePolicy, Policy, StaticPolicy, check_pool
from ..state.acceptance import STATIC, StateError, check_checkpoint
from ..state.assignments import State
from ..state.formats import CheckpointError
from ..topology.model import Group, Topology
from .container_cpus import lost_cpus, lost_notes, lost_of, running_names, unowned_notes

if TYPE_CHECKING:
    from .._cgroup.limits import Burst
    from .container_cpus import Running
    from .providers import BesideCPUs


# Why the topology manager refuses a pod, which the kubelet's message does not say. Pure.


def why_refused(manager: CPUManager, pod: Pod, admission: Admission, beside: BesideCPUs | None = None) -> str:
    """Return what of its resources did not fit. The state is that of the refusal, with what its earlier containers were
    given."""
    container, resources = admission.container, admission.not_aligned
    if admission.reason == EmptyPodPoolError.reason and isinstance(manager.policy, StaticPolicy):
        return _empty_pool(pod, manager.policy.minor)

    def least(sizes: Sequence[int], count: int) -> int:
        return 1 if manager.topology_manager.policy == SINGLE_NUMA_NODE else fewest(sizes, count)

    parts = [
        _why_of_cpus(manager, pod, container, least)
        if name == CPU or beside is None
        else beside.why(pod, container, name, least)
        for name in resources
    ]
    # Of all kinds of memory the same is said.
    whys = "; ".join(part for part in dict.fromkeys(parts) if part)
    # Where it is CPUs alone, that says it.
    return whys if resources == (CPU,) or not resources else "%s: %s" % (" and ".join(resources), whys)


def _why_of_cpus(manager: CPUManager, pod: Pod, container: str, least: Callable[[Sequence[int], int], int]) -> str:
    policy = manager.policy
    if not isinstance(policy, StaticPolicy):
        return ""
    counts = pod.exclusive_counts(policy.minor)
    if manager.is_whole(pod):
        empty = _empty_pool(pod, policy.minor)
        if empty or pod.uid in manager.state.pods:
            return empty or _SECOND % CPUSet.from_mask(manager.state.pods[pod.uid])
    for name in [container] if container else counts:
        assigned = manager.state.get(pod.uid, name)
        if assigned is not None and count_bits(assigned) != counts[name]:
            return "container %s wants %s, and has CPUs %s" % (name, _cpus(counts[name]), CPUSet.from_mask(assigned))
    count = counts[container] if container else pod.at_once(counts)
    count = pod.count_as_whole(policy.minor) if manager.is_whole(pod) else count
    nodes = sorted(policy.topology.numa_nodes.items())
    free = manager.state.default & ~policy.summary.reserved.mask
    why = "%s wants %s of %s, and free are %s" % (
        "container %s" % container if container else "the pod",
        _cpus(count),
        counted(least([count_bits(cpus) for _node, cpus in nodes], count), "NUMA node"),
        ", ".join("%d of node %d" % (count_bits(free & cpus), node) for node, cpus in nodes),
    )
    own = policy.reusable.get(pod.uid, 0)
    if own:
        homes = ", ".join(str(node) for node, cpus in nodes if cpus & own)
        text = "; the CPUs %s of its init containers, which it takes over, are of node %s"
        why += text % (CPUSet.from_mask(own), homes)
    return why


_SECOND = "the kubelet does not look whether the pod has CPUs as a whole already, and it has %s"


def _empty_pool(pod: Pod, minor: int) -> str:
    """Return which containers leave nothing of the pod's CPUs to those that share the rest; empty where something is
    left."""
    counts, budget = pod.exclusive_counts(minor), pod.count_as_whole(minor)
    own = {name: count for name, count in counts.items() if count}
    try:
        check_pool(pod, budget, own)
    except EmptyPodPoolError as error:
        kinds = {container.name: container.kind for container in pod.containers}
        takers = ["%s (%d)" % item for item in own.items() if kinds[item[0]] != INIT]
        shared = [name for name, count in counts.items() if not count]
        text = "%s: of the pod's %s, %s take all, and nothing is left for %s, which share the rest; give the pod more"
        text += " CPUs, or these containers fewer"
        return text % (error, _cpus(budget), " and ".join(takers), " and ".join(shared))
    return ""


def _cpus(count: int) -> str:
    return counted(count, "CPU")


# What a node has for pods, and whether one more finds room: the kubelet counts requests, whatever its policy. Pure.
#
# Its source: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/nodestatus/setters.go.


def allocatable(values: Mapping[str, Any], host: Host) -> dict[str, int]:
    """Return what pods may ask for in all, in thousandths; no memory where that of the machine is not known."""
    reservations = Reservations(values, host)
    kept = {CPU: reservations.amount(CPU), MEMORY: reservations.memory()}
    capacity = {CPU: host.topology.num_cpus, MEMORY: None if host.memory is None else host.memory - host.huge_pages}
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
        self.capacity = {resource: amount // _unit(resource) for resource, amount in capacity.items()}
        self.used = dict.fromkeys(capacity, 0)

    def refusal(self, pod: Pod) -> tuple[str, str] | None:
        """Return the kubelet's reason and message for a pod that finds no room; None for one that does."""
        for resource, capacity in self.capacity.items():
            asked, used = self._asked(pod, resource), self.used[resource]
            if asked and asked > capacity - used:
                message = "Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d"
                return "OutOf" + resource, message % (resource, asked, used, capacity)
        return None

    def take(self, pod: Pod) -> None:
        """Note that the pod runs."""
        for resource in self.used:
            self.used[resource] += self._asked(pod, resource)

    def _asked(self, pod: Pod, resource: str) -> int:
        return -(-pod.request(resource, self.minor) // _unit(resource))


def _unit(resource: str) -> int:
    """Return how many of the quantity's thousandths are one of what the kubelet counts: thousandths of a CPU, and
    bytes."""
    return 1 if resource == CPU else 1000


# The policies that are not the kubelet's, for a plan of who gets which CPUs first. Pure.


def our_policy(
    name: str, topology: Topology, machine: Host, options: StaticOptions, reserved: CPUSet, shared_minimum: int
) -> StaticPolicy:
    """Return the policy dynamic or isolated on this machine. Raises InputError where it cannot be kept there."""
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


# So many containers are named in a note.
_NAMED = 10

# The policy that the settings give to the kubelet.
KUBELET = "kubelet"


class Question(NamedTuple):
    """The node that the prediction is for. policy: that of the KUBELET, or one of ours, dynamic or isolated.

    shared_minimum: of the policy dynamic. running: what runs on the node, where all names are known. active: the UIDs
    of the pods that have cgroups.
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
    others: OtherManagers = OtherManagers()
    active: Collection[str] = ()


def default_configuration() -> Configuration:
    """Return the configuration of a kubelet whose file says nothing."""
    return Configuration({"apiVersion": API_VERSION, "kind": KIND}, "the kubelet's defaults")


def plan_allocations(question: Question) -> dict[str, Any]:
    """Return every container's CPUs, what is refused, and what is left, as plain data; see the module allocation_plan.

    Raises InputError, RefusedError where the kubelet would not start with these settings.
    """
    question, settings = planned_question(question)
    prediction = predicted_start(question)
    beside = beside_of(question, settings, prediction)
    notes: list[str] = [] if beside is None else beside.notes
    manager = start_manager(question, settings, prediction, notes, () if beside is None else beside.providers)
    policy, minor = manager.policy, question.machine.minor
    capacity = allocatable(question.configuration.values, question.machine)
    room = Room(capacity if beside is None else {**capacity, **beside.capacity()}, minor)
    before, text = manager.state.snapshot(), "" if beside is None else beside.to_text()
    kept = _keep_running(manager, question, beside)
    for pod in kept:
        room.take(pod)
    coming = _coming(question, manager, beside)
    refused = _add_all(manager, coming, notes, room, beside)
    manager.remove_stale()
    after = manager.state.snapshot()
    is_moved = _is_moved(question, settings, manager)
    first, limits = ("", []) if beside is None else beside.limits(coming, is_moved)
    names = {pod.uid: pod.name for pod in question.pods}
    rows = [row for pod in question.pods for row in _rows(manager, question.topology, pod)]
    memory, devices = ({}, {}) if beside is None else (beside.memory_report(names), beside.devices_report(names))
    ended = [pod.name for pod in question.pods if pod.has_ended]
    notes += [
        *(["left out, as they have ended: %s" % ", ".join(ended)] if ended else []),
        *_notes(manager, after),
        *_resized_notes(question, manager, after, {row["pod"] for row in refused}),
        *_option_notes(question, settings, manager, after),
        *_mixed_notes(question, settings, manager),
        *_lost(question, after),
        *_apart(question, rows, memory, devices),
        *(["not exact from pod %s on: %s" % (first, "; ".join(limits))] if limits else []),
    ]
    return {
        "settings": settings,
        "containers": rows,
        "pods": [row for pod in question.pods for row in _pod_rows(manager, pod)],
        "refused": refused,
        "reserved": str(policy.summary.reserved),
        "exclusive": str(after.exclusive_cpus()),
        "shared_pool": str(_shared_pool(manager, question.topology)),
        **_headroom(question.topology, policy, after),
        "memory": memory,
        "devices": devices,
        "throttling": _throttling(manager, question, settings),
        "isolated": _isolated(question, policy, settings),
        "exact": not limits and is_tested(minor),
        "limits": (first, limits),
        "notes": notes,
        "before": before.to_text() + text,
        "after": after.to_text() + ("" if beside is None else beside.to_text()),
    }


def seed_state(question: Question) -> tuple[State, list[dict[str, str]]]:
    """Return the state that the kubelet would have if it had started these pods itself, in this order, on an empty
    node.

    Also the pods that it would refuse. Raises as plan_allocations().
    """
    question, settings = planned_question(question._replace(checkpoint=None))
    notes: list[str] = []
    manager = start_manager(question, settings, predicted_start(question), notes)
    refused = _add_all(manager, question.pods, notes)
    manager.remove_stale()
    return manager.state.snapshot(), refused


def planned_question(question: Question) -> tuple[Question, dict[str, object]]:
    """Return the question once the settings are in the configuration, and all of them."""
    plan = plan_settings(question.wanted, question.configuration, question.machine.minor)
    gates = Gates.of(plan.configuration.values, question.machine.minor)
    pods = [seen_by(gates, pod) for pod in question.pods]
    return question._replace(configuration=plan.configuration, pods=pods), plan.settings


def seen_by(gates: Gates, pod: Pod) -> Pod:
    """Return the pod with what of it a kubelet with these gates looks at."""
    given = gates.enabled(POD_LEVEL_RESOURCES), gates.enabled(POD_LEVEL_MANAGERS)
    return pod._replace(has_pod_level_gate=given[0], has_managers_gate=given[1])


def predicted_start(question: Question) -> Prediction:
    """Return what is predicted of the start. Raises RefusedError where there would be none."""
    configuration = question.configuration
    prediction = predict_values(configuration.values, question.machine, configuration.source)
    needed_config(prediction)
    return prediction


def beside_of(question: Question, settings: Mapping[str, Any], prediction: Prediction) -> BesideCPUs | None:
    """Return what decides beside CPUs; None where it is CPUs alone. With a policy of ours nothing of it is looked
    at."""
    has_memory_manager = settings["memory_manager_policy"] == STATIC_MEMORY
    others = question.others if question.policy == KUBELET else OtherManagers()
    is_asked = any(pod.claims or pod.further_resources() for pod in question.pods)
    if prediction.checked is None or not (has_memory_manager or others.devices or is_asked):
        return None
    # Imported here: most plans are about CPUs only.
    from .providers import BesideCPUs

    nodes = [node.id for node in question.topology.numa_nodes]
    minor, policy = question.machine.minor, settings["topology_manager_policy"]
    return BesideCPUs(others, prediction.checked, minor, nodes, policy)


def start_manager(
    question: Question,
    settings: Mapping[str, Any],
    prediction: Prediction,
    notes: list[str],
    others: Sequence[HintProvider] = (),
) -> CPUManager:
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
    if isinstance(policy, StaticPolicy) or others:
        _check_nodes(question, settings, bool(others))
    topology_manager = TopologyManager(
        settings["topology_manager_policy"],
        settings["topology_manager_scope"],
        [node.id for node in question.topology.numa_nodes],
        settings["topology_manager_policy_options"],
        question.topology.numa_distances,
    )
    return CPUManager(policy, topology_manager, state, others)


def _check_nodes(question: Question, settings: Mapping[str, Any], has_others: bool) -> None:
    """Raise RefusedError where there are more sets of NUMA nodes than can be gone through for each pod.

    has_others: whether devices or memory are planned, which can be of nodes without CPUs.
    """
    with_cpus = question.machine.topology.num_numa_nodes
    nodes = len(question.machine.nodes()) if has_others else with_cpus
    has_memory = has_others and settings["memory_manager_policy"] == STATIC_MEMORY
    harm = admission_harm(settings["topology_manager_policy"], nodes, with_cpus, has_memory)
    if harm is not None:
        raise RefusedError(harm.cause, option("topology_manager_policy"), harm.remedy)


def _reserved(settings: Mapping[str, Any]) -> CPUSet:
    return CPUSet.parse(settings["reserved_system_cpus"])


def _isolated(question: Question, policy: Policy, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the kubelet's static policy makes of the CPUs that the machine isolates; empty where it isolates
    none."""
    if not question.topology.isolated:
        return {}
    strict = isinstance(policy, StaticPolicy) and policy.options.strict_cpu_reservation
    reserved = policy.summary.reserved or _reserved(settings)
    found = static_with_isolated(question.machine.topology, reserved, question.topology.isolated, strict)
    return {**found.to_dict(), "harmless": found.is_harmless()}


def _is_moved(question: Question, settings: Mapping[str, Any], manager: CPUManager) -> bool:
    """Return whether the topology manager decides on which NUMA nodes a pod gets its CPUs."""
    is_static = question.policy == KUBELET and manager.policy.name == STATIC
    return is_static and settings["topology_manager_policy"] != NONE and len(question.topology.numa_nodes) > 1


def _keep_running(manager: CPUManager, question: Question, beside: BesideCPUs | None) -> list[Pod]:
    """Keep what the states give to pods that run, in whatever order these are listed, or where they are not.

    These pods. One that is not listed asks for the CPUs that its containers have that run, or that the others have
    where that is more: an init container has ended when these run, or these are still to come. Of memory it asks for
    all it has.
    """
    told = {pod.uid for pod in question.pods}
    here = running_names(question.running)
    owners = _owners(manager, beside)
    kept = [pod for pod in listed_running(question, owners) if _has_all(manager, beside, pod)]
    for uid, containers in owners.items():
        if uid not in told:
            unknown = tuple(Container(name, APP, {}, {}) for name in containers)
            run = here.get(uid, set()).intersection(containers) or containers
            parts = [[mask for name, mask in containers.items() if (name in run) is runs] for runs in (True, False)]
            count = max(len(CPUSet.from_mask(reduce(or_, masks, 0))) for masks in parts)
            overhead = {CPU: 1000 * count, MEMORY: 0 if beside is None else 1000 * beside.memory_of(uid)}
            kept.append(Pod(uid, uid, unknown, overhead=overhead))
    manager.active.update((pod.uid, pod) for pod in kept)
    return kept


def _owners(manager: CPUManager, beside: BesideCPUs | None) -> dict[str, dict[str, int]]:
    """Return {pod UID: {container: the mask of its CPUs}} of all that have something of their own; 0 for no CPUs."""
    owners: dict[str, dict[str, int]] = {}
    for uid, names in () if beside is None else beside.owners():
        owners.setdefault(uid, {}).update(dict.fromkeys(names, 0))
    for uid, masks in manager.state.assignments.items():
        owners.setdefault(uid, {}).update(masks)
    return owners


def listed_running(question: Question, owners: Collection[str]) -> list[Pod]:
    """Return those of the listed pods that run, in the order in which a kubelet that starts admits them."""
    return in_order_of_start(
        pod for pod in question.pods if not pod.has_ended and (pod.uid in owners or pod.uid in question.active)
    )


def _has_all(manager: CPUManager, beside: BesideCPUs | None, pod: Pod) -> bool:
    """Return whether each manager has given the pod what it gives to such pods: a new state has nothing of those
    that run."""
    policy = manager.policy
    wants_cpus = False
    if isinstance(policy, StaticPolicy):
        of_whole = pod.count_as_whole(policy.minor) if manager.is_whole(pod) else None
        wants_cpus = any(pod.exclusive_counts(policy.minor).values()) if of_whole is None else of_whole > 0
    if wants_cpus and pod.uid not in manager.state.assignments:
        return False
    return beside is None or beside.has_all(pod)


def _coming(question: Question, manager: CPUManager, beside: BesideCPUs | None) -> list[Pod]:
    """Return the pods that are still to be admitted: those that run come first, then the new ones as they are
    listed."""
    again = [pod for pod in listed_running(question, _owners(manager, beside)) if pod.uid not in manager.active]
    done = {*manager.active, *(pod.uid for pod in again)}
    return [*again, *(pod for pod in question.pods if pod.uid not in done and not pod.has_ended)]


def _lost(question: Question, state: State) -> list[str]:
    """Return what no container can get: of the pods that are listed by their init containers, of others by what
    runs."""
    whole = state.pod_assignments
    listed = {
        pod.uid: [container.name for container in pod.containers if container.kind == INIT]
        for pod in question.pods
        if pod.uid not in whole
    }
    names = {pod.uid: pod.name for pod in question.pods}
    others = {uid: own for uid, own in state.assignments.items() if uid not in listed}
    found = lost_cpus(question.running, state._replace(assignments=others))
    for uid, ended in listed.items():
        found += lost_of(names[uid], state.assignments.get(uid, {}), ended)
    return [*lost_notes(found), *unowned_notes(state, names)]


def _add_all(
    manager: CPUManager,
    pods: Sequence[Pod],
    notes: list[str],
    room: Room | None = None,
    beside: BesideCPUs | None = None,
) -> list[dict[str, str]]:
    """Return the pods that are refused. room: None where the pods are known to run."""
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
        reason, message = admission.reason, admission.message
        why = why_refused(manager, pod, admission, beside)
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
        notes += _missed(manager.policy, pod) if not reason else ()
    return refused


def _missed(policy: Policy, pod: Pod) -> list[str]:
    """Return why a container that alone would get CPUs for itself gets none: by another one its pod is not
    Guaranteed."""
    if not isinstance(policy, StaticPolicy) or pod.pod_level or pod.qos(policy.minor) == GUARANTEED:
        return []
    others = ", ".join(container.name for container in pod.containers if not container.is_guaranteed)
    alone = [container.name for container in pod.containers if container.is_guaranteed]
    counts = pod._replace(qos_class=GUARANTEED).exclusive_counts(policy.minor)
    cause = (
        "pod %s, container %s has no CPUs for itself, as the pod is not Guaranteed: %s does not have requests of cpu"
        " and memory that equal its limits"
    )
    return [cause % (pod.name, name, others) for name in alone if others and counts[name]]


def _harm(manager: CPUManager, pod: Pod) -> list[str]:
    """Return what this pod has for itself and should not have."""
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


def _resized_notes(question: Question, manager: CPUManager, state: State, refused: Collection[str]) -> list[str]:
    """Return who keeps another number of CPUs than it asks for: the kubelet gives nothing anew to who has something."""
    if not isinstance(manager.policy, StaticPolicy):
        return []
    text = (
        "pod %s, container %s keeps the CPUs %s, and asks for %d: the kubelet leaves a container that is resized in"
        " place the CPUs that it had%s; delete the pod to have another number"
    )
    # There are no hints for another number than it has.
    is_refused = manager.topology_manager.policy in (RESTRICTED, SINGLE_NUMA_NODE)
    at_start = ", and refuses the pod at its next start" if is_refused else ""
    given = (
        (pod, name, count, state.assignments.get(pod.uid, {}).get(name))
        for pod in question.pods
        if pod.name not in refused
        for name, count in pod.exclusive_counts(manager.policy.minor).items()
    )
    return [
        text % (pod.name, name, cpus, count, at_start)
        for pod, name, count, cpus in given
        if cpus is not None and count and len(cpus) != count
    ]


def _option_notes(question: Question, settings: Mapping[str, Any], manager: CPUManager, state: State) -> list[str]:
    """Return which of the kubelet's options do not do what they are for."""
    policy = manager.policy
    options = policy.options if question.policy == KUBELET and isinstance(policy, StaticPolicy) else StaticOptions()
    if options == StaticOptions() and not settings["topology_manager_policy_options"]:
        return []
    machine = question.machine
    given = (settings["topology_manager_policy"], settings["topology_manager_policy_options"], machine.minor)
    has_memory = settings["memory_manager_policy"] == STATIC_MEMORY
    harms = option_harms(options, machine.topology, *given, len(machine.nodes()), has_memory)
    names = {pod.uid: pod.name for pod in question.pods}
    return [*(harm.to_note() for harm in harms), *scattered_notes(options, question.topology, state, names)]


def _shared_pool(manager: CPUManager, topology: Topology) -> CPUSet:
    """Return the CPUs of all containers that have none for themselves: with the policy none, all."""
    return topology.online if isinstance(manager.policy, NonePolicy) else CPUSet.from_mask(manager.state.default)


def _cpus_of(manager: CPUManager, topology: Topology, pod: Pod, container: Container) -> CPUSet:
    own = manager.state.get(pod.uid, container.name)
    return _shared_pool(manager, topology) if own is None else CPUSet.from_mask(own)


def levels_of(manager: CPUManager, pod: Pod) -> dict[str, str]:
    """Return {container: whose CPUs it runs on}."""
    minor = getattr(manager.policy, "minor", NEWEST_MINOR)
    return isolation_levels(pod, manager.state.assignments.get(pod.uid, ()), minor)


def _rows(manager: CPUManager, topology: Topology, pod: Pod) -> list[dict[str, object]]:
    if pod.uid not in manager.active:
        return []
    rows = []
    levels = levels_of(manager, pod)
    for container in pod.containers:
        cpus = _cpus_of(manager, topology, pod, container)
        exclusive = manager.state.get(pod.uid, container.name) is not None
        rows.append(
            {
                "pod": pod.name,
                "uid": pod.uid,
                "container": container.name,
                "exclusive": exclusive,
                "isolation": levels[container.name],
                "cpus": str(cpus),
                "numa_nodes": [node.id for node in topology.numa_nodes if node.cpus & cpus] if exclusive else [],
            }
        )
    return rows


def _pod_rows(manager: CPUManager, pod: Pod) -> Iterator[dict[str, str]]:
    """Yield what a pod has as a whole, what of that containers share, and what none but init containers uses."""
    mask = manager.state.pods.get(pod.uid, 0) if pod.uid in manager.active else 0
    levels, shared, unused = levels_of(manager, pod), 0, mask
    for name in [container.name for container in pod.containers if container.kind != INIT]:
        own = manager.state.get(pod.uid, name) or 0
        unused &= ~own
        shared |= own if levels[name] == WHOLE_POD else 0
    cpus = {"cpus": mask, "shared": shared, "unused": unused}
    if mask:
        yield {"pod": pod.name, "uid": pod.uid, **{name: str(CPUSet.from_mask(part)) for name, part in cpus.items()}}


def _apart(
    question: Question, rows: Sequence[Mapping[str, Any]], memory: Mapping[str, Any], devices: Mapping[str, Any]
) -> list[str]:
    """Return a note on containers with memory, or devices beside CPUs of their own, of other NUMA nodes than their
    CPUs.

    An init container ends soon, and what shares CPUs is not bound to those of a device.
    """
    # {(pod UID, container): [(NUMA nodes, what is of them, whether it is a device)]}
    given: dict[tuple[str, str], list[tuple[list[int], str, bool]]] = {}
    for name, manager in (("type", memory), ("resource", devices)):
        for part in manager.get("containers", ()):
            place = part["numa_nodes"], part[name], name == "resource"
            given.setdefault((part["uid"], part["container"]), []).append(place)
    for pod in question.pods:
        for container in pod.containers:
            if container.kind == INIT:
                given.pop((pod.uid, container.name), None)
    found = []
    for row in sorted(rows, key=lambda row: not row["exclusive"]):
        parts = given.get((row["uid"], row["container"]), ())
        cpus = CPUSet.parse(row["cpus"]) if parts else CPUSet()
        homes = [node.id for node in question.topology.numa_nodes if node.cpus & cpus]
        far: dict[str, list[str]] = {}
        for nodes, kind, is_device in parts:
            is_near = not row["exclusive"] or not nodes or not set(homes).isdisjoint(nodes)
            if not is_near if is_device else nodes != homes:
                far.setdefault(_nodes(nodes), []).append(kind)
        if far:
            whose = "" if row["exclusive"] else "shared "
            places = ", ".join("%s of %s" % (" and ".join(kinds), where) for where, kinds in far.items())
            found.append("%s/%s (%sCPUs of %s, %s)" % (row["pod"], row["container"], whose, _nodes(homes), places))
    if not found:
        return []
    more = ["and %s more" % counted(len(found) - _NAMED, "container")] if len(found) > _NAMED else []
    text = (
        "memory or devices are of other NUMA nodes than the CPUs: %s; the static policy, with restricted or"
        " single-numa-node as the topology manager's policy, aligns them or refuses the pod"
    )
    return [text % ", ".join([*found[:_NAMED], *more])]


def _nodes(nodes: Sequence[int]) -> str:
    return "%s %s" % ("nodes" if len(nodes) > 1 else "node", " and ".join(map(str, nodes)))


def _throttling(manager: CPUManager, question: Question, settings: Mapping[str, object]) -> list[dict[str, object]]:
    """Return what the CPU limits of the admitted pods' containers do to them, for those that get a quota."""
    for burst in question.bursts:
        if not any(burst.matches(pod.name, container.name) for pod in question.pods for container in pod.containers):
            raise InputError(
                "no container of the pods is %s in %s" % (burst.container, burst.pod),
                where=option("bursts"),
                remedy="name it as the result does in `containers`",
            )
    minor = question.machine.minor
    limits = {
        (pod.uid, container.name): container.limits.get(CPU, 0) or pod.limit_as_whole(CPU, minor)
        for pod in question.pods
        for container in pod.containers
    }
    if not settings["cpu_cfs_quota"] or not any(limits.values()):
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
        levels = levels_of(manager, pod)
        for container in pod.containers:
            milli = limits[pod.uid, container.name]
            if not milli or (levels[container.name] == CONTAINER and lifted):
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


def _mixed_notes(question: Question, settings: Mapping[str, object], manager: CPUManager) -> list[str]:
    """Return which pods have a quota as a whole that also throttles containers with CPUs of their own."""
    gates = Gates.of(question.configuration.values, question.machine.minor)
    if not settings["cpu_cfs_quota"] or not gates.enabled(NO_EXCLUSIVE_QUOTA):
        return []
    text = (
        "pod %s is throttled as a whole, by its limit of %s: what the containers that share use up is missing to %s,"
        " which %s CPUs of %s own and no quota; give every container CPUs of its own, or the pod more than all use"
    )
    found = []
    for pod in question.pods:
        levels = levels_of(manager, pod)
        own = [name for name, level in levels.items() if level == CONTAINER]
        if pod.uid in manager.active and pod.is_divided and own and not is_pod_unlimited(pod, levels.values()):
            limit = counted("%g" % ((pod.limit(CPU, question.machine.minor) or 0) / 1000), "CPU")
            words = ("have", "their") if len(own) > 1 else ("has", "its")
            found.append(text % (pod.name, limit, " and ".join(own), *words))
    return found


def _headroom(topology: Topology, policy: Policy, state: State) -> dict[str, object]:
    """Return what can still be given to containers for themselves."""
    if not isinstance(policy, StaticPolicy):
        return {"allocatable": {}, "stranded": ""}
    free = (policy.summary.allocatable or state.default_cpu_set) - state.exclusive_cpus() - policy.summary.reserved
    available = max(0, len(free) - policy.shared_minimum)
    whole = CPUSet(cpu for core in topology.cores if core.cpus <= free for cpu in core.cpus)
    lost = stranded(policy.options, topology, free, policy.summary.reserved)
    usable = free - lost

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
        "stranded": str(lost),
    }


def compare_plans(plan: Mapping[str, object], changed: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the containers that another configuration gives other CPUs, or refuses, as plain data."""
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
