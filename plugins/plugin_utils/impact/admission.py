# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kubelet of a node, as it is or as it is planned, says of pods; and what would cure a refusal. Pure.

The answer is that of the module allocation_plan, for an empty node to which the pods come one after the other.
"""

from __future__ import annotations

import json
from typing import Any, Collection, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import MALFORMED, CPUManagerError, InputError
from ...module_utils._base.quantity import counted
from ...module_utils._base.versions import NEWEST_MINOR, minor_version
from ...module_utils._cgroup.kubepods import BURSTABLE
from ...module_utils._containers.pods import INIT, SIDECAR, Pod, Resources
from ...module_utils._kubelet.configuration import Configuration
from ...module_utils._kubelet.gates import Gates
from ...module_utils._kubelet.settings import SETTINGS, STATIC_MEMORY
from ...module_utils._kubelet.start.findings import other_host
from ...module_utils._node.allocation import (
    Question,
    default_configuration,
    plan_allocations,
    seen_by,
)
from ...module_utils._node.beside_cpus import given_memory
from ...module_utils._node.drift import START_KUBELET
from ...module_utils._rollout.rollout_plan import needs_drain
from ...module_utils.cpuset import CPUSet
from ...module_utils.policy.hints import NONE, POD, OtherManagers
from ...module_utils.state.acceptance import STATIC
from ...module_utils.topology.model import Topology
from ..report.answers import LARGEST_ANSWER, line, mapping
from .workloads import Kinds


class Kubelet(NamedTuple):
    """What of a node decides on the admission of pods. Equal for nodes of one shape and one configuration."""

    # The topology as JSON, so that it can be compared.
    machine: str
    # The settings, all of them, as JSON.
    settings: str
    minor: int
    # What decides beside CPUs: the answer of admission_info as JSON.
    beside: str

    @property
    def policy(self) -> str:
        """The policy of its CPU manager."""
        return str(json.loads(self.settings)["cpu_manager_policy"])


class PlannedNode(NamedTuple):
    """A node as it is found and as it will be. is_changed: whether its kubelet admits all pods anew.

    is_drained: whether pods leave it before. is_assumed: whether the version of its kubelet is not known.
    """

    before: Kubelet
    after: Kubelet
    is_changed: bool
    is_drained: bool
    is_assumed: bool


def planned_node(plan: Mapping[str, Any]) -> PlannedNode:
    """Return the node that rollout_info has planned. Raises InputError where its answer does not say enough."""
    if plan.get("failed") or not plan:
        raise InputError("it could not be planned: %s" % line(plan.get("msg", "it did not answer")))
    if not isinstance(plan.get("found"), Mapping):
        raise InputError("the configuration of its kubelet is not known: %s" % line(plan.get("found_refusal", "")))
    try:
        found = {name: plan["found"][name] for name in SETTINGS}
        rows = [row for row in map(mapping, plan["drift"]) if row.get("subject") in SETTINGS]
        restarts = START_KUBELET in plan["actions"]
        wanted = {**found, **{row["subject"]: row["wanted"] for row in rows}} if restarts else found
        beside = dict(plan["beside_cpus"])
        described = {**plan["topology"], "numa_distances": beside.pop("numa_distances")}
        machine = json.dumps(Topology.from_dict(described).to_dict(), sort_keys=True)
        version = mapping(plan.get("kubelet")).get("version")
        minor = NEWEST_MINOR if version is None else minor_version(str(version))
        if len(machine) > LARGEST_ANSWER:
            raise InputError("the machine is larger than any")
        return PlannedNode(
            kubelet_of(machine, found, minor, beside),
            kubelet_of(machine, wanted, minor, beside),
            restarts and needs_drain(plan["actions"], plan["drift"]),
            plan.get("drains") is True,
            version is None,
        )
    except CPUManagerError:
        raise
    except MALFORMED as error:
        raise InputError("its answer cannot be read: %s" % error) from error


def kubelet_of(machine: str, settings: Mapping[str, Any], minor: int, beside: Mapping[str, Any]) -> Kubelet:
    """Return the kubelet of a node. machine: a topology as JSON. settings: all of them. beside: what admission_info
    says, without the distances."""
    said = {name: beside[name] for name in ("memory", "huge_pages", "numa_memory", "devices", "configuration")}
    return Kubelet(machine, json.dumps(settings, sort_keys=True), minor, json.dumps(said, sort_keys=True))


class Replayed(NamedTuple):
    """What a kubelet made of pods, which are named by their places in their order, in texts as #1, #2 and so on."""

    exclusive: frozenset[int] = frozenset()
    # {place: (reason, message, why)}, each in the kubelet's words but the last.
    refused: Mapping[int, tuple[str, str, str]] = {}
    # How many CPUs containers have for themselves, can still get so, cannot get so though they are free, and share.
    taken: int = 0
    allocatable: int = 0
    stranded: int = 0
    shared: int = 0
    # The first place from which on it is not exact, and why; no reasons where it is exact for all.
    exact_until: int = 0
    limits: tuple[str, ...] = ()
    # The kubelet's state, as text.
    state: str = ""
    # Why nothing can be said; empty where it can.
    problem: str = ""


class Replays:
    """The answers of kubelets. Each is computed once for all nodes of one shape, configuration and order of pods."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        # How many answers were computed.
        self.computed = 0
        self._answers: dict[tuple[Kubelet, tuple[int, ...]], Replayed] = {}
        self._questions: dict[tuple[str, int, str], Question] = {}

    def of(self, kubelet: Kubelet, order: Sequence[int]) -> Replayed:
        """Return the answer of a kubelet. order: the kinds of the pods, in the order in which they come."""
        key = (kubelet, tuple(order))
        if key not in self._answers:
            self.computed += 1
            try:
                self._answers[key] = self._replay(kubelet, order)
            except (CPUManagerError, *MALFORMED) as error:
                self._answers[key] = Replayed(problem=line(str(error)))
        return self._answers[key]

    def takes(self, kubelet: Kubelet, kind: int) -> bool:
        """Return whether an empty node takes a pod of this kind. Where nothing can be said, it may."""
        return not self.of(kubelet, [kind]).refused

    def _replay(self, kubelet: Kubelet, order: Sequence[int]) -> Replayed:
        machine = (kubelet.machine, kubelet.minor, kubelet.beside)
        if machine not in self._questions:
            self._questions[machine] = _question(kubelet)
        pods = [self.kinds.pods[kind]._replace(uid=str(place), name=_shown(place)) for place, kind in enumerate(order)]
        plan = plan_allocations(
            self._questions[machine]._replace(wanted=json.loads(kubelet.settings), pods=pods),
        )
        places = {pod.name: place for place, pod in enumerate(pods)}
        first, limits = plan["limits"]
        return Replayed(
            frozenset(int(row["uid"]) for row in plan["containers"] if row["exclusive"]),
            {places[row["pod"]]: (row["reason"], row["message"], row["why"]) for row in plan["refused"]},
            len(CPUSet.parse(plan["exclusive"])),
            plan["allocatable"].get("cpus", 0),
            len(CPUSet.parse(plan["stranded"])),
            len(CPUSet.parse(plan["shared_pool"])),
            places[first] if limits else len(pods),
            tuple(limits),
            plan["after"],
        )


def _shown(place: int) -> str:
    return "#%d" % (place + 1)


def _question(kubelet: Kubelet) -> Question:
    """Return what there is of a node without pods, with the kubelet's defaults for its settings. Raises as
    given_memory()."""
    topology, beside = Topology.from_dict(json.loads(kubelet.machine)), json.loads(kubelet.beside)
    host = other_host(topology, kubelet.minor)
    host = host._replace(memory=beside["memory"], huge_pages=beside["huge_pages"])
    rows, plain = beside["numa_memory"], default_configuration()
    others = OtherManagers(None if rows is None else given_memory(rows, "numa_memory"), devices=beside["devices"])
    configuration = Configuration({**plain.values, **beside["configuration"]}, plain.source)
    return Question(topology, host, configuration, {}, None, (), others=others)


def has_exclusive(kubelet: Kubelet, pod: Pod) -> bool:
    """Return whether a pod that runs has CPUs for itself there: the static policy gives them, or refuses the pod."""
    seen = _seen(kubelet, pod)
    has_own = _has_pod_set(kubelet, seen) or any(seen.exclusive_counts(kubelet.minor).values())
    return kubelet.policy == STATIC and has_own


def _seen(kubelet: Kubelet, pod: Pod) -> Pod:
    return seen_by(Gates.of(json.loads(kubelet.beside)["configuration"], kubelet.minor), pod)


def _has_pod_set(kubelet: Kubelet, seen: Pod) -> bool:
    """Return whether the static policy gives CPUs to the pod as a whole, and its containers parts of them."""
    settings = json.loads(kubelet.settings)
    is_aligned = settings.get("topology_manager_policy", NONE) != NONE and settings.get("topology_manager_scope") == POD
    return is_aligned and seen.count_as_whole(kubelet.minor) > 0


def would_have_exclusive(replays: Replays, kubelet: Kubelet, kind: int) -> bool:
    """Return whether a pod that shares CPUs there would have its own if its limits were equal to its requests; it is
    tried."""
    pod = replays.kinds.pods[kind]
    if kubelet.policy != STATIC or pod.qos(kubelet.minor) != BURSTABLE:
        return False

    def equal(requests: Resources, limits: Resources) -> Resources:
        # Some memory, as it has to ask for some.
        return {**requests, "memory": requests.get("memory") or limits.get("memory") or 1000}

    if pod.pod_level is not None:
        amounts = equal(*pod.pod_level)
        changed = pod._replace(qos_class=None, pod_level=(amounts, amounts))
        return bool(replays.of(kubelet, [replays.kinds.number(changed)]).exclusive)
    containers = []
    for container in pod.containers:
        amounts = equal(container.requests, container.limits)
        containers.append(container._replace(requests=amounts, limits=amounts))
    changed = pod._replace(qos_class=None, containers=tuple(containers))
    return bool(replays.of(kubelet, [replays.kinds.number(changed)]).exclusive)


# What would cure a refusal: each change is tried, the smallest first.


def cure(replays: Replays, kubelet: Kubelet, before: Sequence[int], kind: int) -> str:
    """Return the first change of the pod, and of the kubelet, with which it is admitted; empty where none is.

    before: the kinds of the pods that came before it and run.
    """

    def cures(changed: Kubelet, changed_kind: int) -> bool:
        found = replays.of(changed, [*before, changed_kind])
        return not found.problem and len(before) not in found.refused

    free = replays.of(kubelet, before).allocatable
    others = _other_pods(replays.kinds.pods[kind], kubelet, free)
    of_pod = next((text for text, pod in others if cures(kubelet, replays.kinds.number(pod))), "")
    of_kubelet = next((text for text, changed in _other_kubelets(kubelet) if cures(changed, kind)), "")
    return "; or ".join(filter(None, [of_pod, of_kubelet]))


def _other_pods(pod: Pod, kubelet: Kubelet, free: int) -> Iterator[tuple[str, Pod]]:
    pod = _seen(kubelet, pod)
    machine = json.loads(kubelet.machine)
    threads = max((len(CPUSet.parse(core)) for core in machine["cores"]), default=1)
    own = {name: count for name, count in pod.exclusive_counts(kubelet.minor).items() if count}
    has_pod_set = kubelet.policy == STATIC and _has_pod_set(kubelet, pod)
    counts = {"": pod.count_as_whole(kubelet.minor)} if has_pod_set else own
    if not counts:
        return
    # More, and less, in whole cores; what one NUMA node has, with and without what is reserved there; what is free.
    more = {name: count + 1 for name, count in counts.items()} if has_pod_set else counts
    up = {name: -(-count // threads) * threads for name, count in more.items()}
    down = {name: count // threads * threads for name, count in counts.items()}
    largest = max((len(CPUSet.parse(cpus)) for cpus in machine["numa_nodes"].values()), default=0)
    within = {name: min(count, largest // threads * threads) for name, count in down.items()}
    beside = {name: max(threads, count - threads) if count == largest else count for name, count in within.items()}
    fitting = {name: min(count, free // threads * threads) for name, count in counts.items()}
    found = {**({"": pod.pod_level[0].get("cpu", 0) / 1000} if pod.pod_level and pod.is_divided else {}), **own}
    for sizes in (more, up, counts, down, within, beside, fitting):
        parts = {**_parts(pod, own, sizes[""]), **sizes} if has_pod_set else sizes
        changed = _asking(pod, parts)
        wanted: dict[str, float] = dict(parts)
        if changed.is_divided and changed.pod_level is not None:
            # What its containers ask for must not be more than what it asks for as a whole.
            wanted[""] = changed.pod_level[0].get("cpu", 0) / 1000
        changes = [
            "%s instead of %g%s" % (counted("%g" % wanted[name], "CPU"), found[name], _of(name, found))
            for name in found
            if wanted[name] != found[name]
        ]
        if changes and all(size > 0 for size in wanted.values()):
            yield "ask for " + ", ".join(changes), changed
    yield "set the limits above the requests, so that it runs in the shared pool", _with_more_limits(pod)


def _of(name: str, counts: Collection[str]) -> str:
    whose = "container %s" % line(name) if name else "the pod as a whole"
    return " for %s" % whose if len(counts) > 1 or not name else ""


def _parts(pod: Pod, own: Mapping[str, int], count: int) -> dict[str, int]:
    """Return what containers have for themselves of a pod of so many CPUs, such that those that share have one."""
    parts, left = dict(own), count
    staying = [container.name for container in pod.containers if container.kind != INIT]
    for container in pod.containers:
        if container.kind == INIT and container.name in own:
            parts[container.name] = min(own[container.name], left)
        elif container.kind == SIDECAR:
            left -= own.get(container.name, 0)
    most = count - any(name not in own for name in staying)
    while sum(parts[name] for name in staying if name in own) > max(most, 0):
        parts[max((name for name in staying if name in own), key=parts.__getitem__)] -= 1
    return parts


def _asking(pod: Pod, wanted: Mapping[str, int]) -> Pod:
    """Return the pod with other numbers of CPUs of its containers, and with "" as a whole, or for it as many as they
    need."""
    containers = []
    for container in pod.containers:
        if container.name in wanted:
            amount = {"cpu": 1000 * wanted[container.name]}
            container = container._replace(  # noqa: PLW2901
                requests={**container.requests, **amount}, limits={**container.limits, **amount}, allocated=None
            )
        containers.append(container)
    changed = pod._replace(containers=tuple(containers))
    if not pod.is_divided or pod.pod_level is None:
        return changed
    least = pod.at_once({container.name: container.requests.get("cpu", 0) for container in containers})
    asked = 1000 * wanted[""] if "" in wanted else pod.pod_level[0].get("cpu", 0)
    requests, limits = ({**given, "cpu": max(asked, least)} for given in pod.pod_level)
    return changed._replace(pod_level=(requests, limits))


def _with_more_limits(pod: Pod) -> Pod:
    def more(limits: Resources) -> Resources:
        return {**limits, "cpu": limits.get("cpu", 0) + 1000}

    if pod.is_divided and pod.pod_level is not None:
        return pod._replace(qos_class=None, pod_level=(pod.pod_level[0], more(pod.pod_level[1])))
    containers = (container._replace(limits=more(container.limits)) for container in pod.containers)
    return pod._replace(qos_class=None, containers=tuple(containers))


def _other_kubelets(kubelet: Kubelet) -> Iterator[tuple[str, Kubelet]]:
    settings = json.loads(kubelet.settings)

    def changed(**values: object) -> Kubelet:
        return kubelet._replace(settings=json.dumps({**settings, **values}, sort_keys=True))

    options = settings["cpu_manager_policy_options"]
    for option in sorted(options):
        rest = {name: value for name, value in options.items() if name != option}
        yield "go without the option %s" % line(option), changed(cpu_manager_policy_options=rest)
    if settings["memory_manager_policy"] == STATIC_MEMORY:
        yield "set memoryManagerPolicy: None", changed(memory_manager_policy="None", reserved_memory=[])
    if settings["topology_manager_policy"] in ("restricted", "single-numa-node"):
        if settings["topology_manager_scope"] == "pod":
            yield "set topologyManagerScope: container", changed(topology_manager_scope="container")
        yield (
            "set topologyManagerPolicy: best-effort",
            changed(topology_manager_policy="best-effort"),
        )
