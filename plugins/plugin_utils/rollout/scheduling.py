# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which nodes the scheduler may put a pod, and whether the pods of drained nodes find CPUs on the others. Pure.

Source: pkg/scheduler/framework/plugins/nodeaffinity, tainttoleration and noderesources, and nodeaffinity and
Toleration.ToleratesTaint in k8s.io/component-helpers.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import MALFORMED, InputError
from ...module_utils._base.quantity import counted_cpus, millis
from ...module_utils._containers.pods import INIT, pod_from_manifest
from ..report.answers import items, mapping
from .pods import ENDED, Manifest, controller_of, name_of, stays

_HARD = ("NoSchedule", "NoExecute")
_NAME = "metadata.name"


class Place(NamedTuple):
    """A node as the scheduler sees it, but for its resources."""

    name: str
    labels: Mapping[str, object] = {}
    # Those that keep pods away.
    taints: Sequence[Mapping[str, Any]] = ()


class Rules(NamedTuple):
    """What a pod says of its node. terms: of its required node affinity, any of which is enough; None without one."""

    selector: Mapping[str, object] = {}
    tolerations: Sequence[Mapping[str, Any]] = ()
    terms: Sequence[Mapping[str, Any]] | None = None

    @property
    def is_for_all(self) -> bool:
        """Whether it asks for no nodes of a kind."""
        return not self.selector and self.terms is None

    def allow(self, place: Place) -> bool:
        """Return whether the pod may come to this node."""
        return self.choose(place) and all(
            any(tolerates(toleration, taint) for toleration in self.tolerations) for taint in place.taints
        )

    def choose(self, place: Place) -> bool:
        """Return whether the node is one of those that the pod asks for, which its kubelet checks, too; taints
        aside."""
        return matches(self.selector, place.labels) and (
            self.terms is None or any(_meets(term, place) for term in self.terms)
        )

    def only_names(self) -> list[str] | None:
        """Return the names of the only nodes that it may come to, as a pod of a DaemonSet has one; None where it has
        none."""
        if self.terms is None:
            return None
        names: list[str] = []
        for term in self.terms:
            fields = [field for field in term.get("matchFields") or () if field.get("operator") == "In"]
            if not fields:
                return None
            names += map(str, fields[0].get("values") or ())
        return names


def place_of(node: Mapping[str, Any]) -> Place:
    """Return the node that the API server describes."""
    metadata, spec = node.get("metadata") or {}, node.get("spec") or {}
    taints = [taint for taint in spec.get("taints") or () if taint.get("effect") in _HARD]
    return Place(str(metadata.get("name", "")), metadata.get("labels") or {}, taints)


def rules_of(spec: Mapping[str, Any]) -> Rules:
    """Return what the spec of a pod says."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else tuple(required.get("nodeSelectorTerms") or ())
    return Rules(spec.get("nodeSelector") or {}, spec.get("tolerations") or (), terms)


def matches(selector: Mapping[str, object], labels: Mapping[str, object]) -> bool:
    """Return whether the labels have all that the selector names."""
    return all(labels.get(key) == value for key, value in selector.items())


def selects(selector: Mapping[str, Any], labels: Mapping[str, object]) -> bool:
    """Return whether a label selector, as of a PodDisruptionBudget, names what has these labels; an empty one names
    all."""
    return matches(selector.get("matchLabels") or {}, labels) and _all_hold(
        selector.get("matchExpressions") or (), labels
    )


def tolerates(toleration: Mapping[str, object], taint: Mapping[str, object]) -> bool:
    """Return whether the taint does not count for who has this toleration."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if (toleration.get("operator") or "Equal") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def _meets(term: Mapping[str, Any], place: Place) -> bool:
    """Return a term that asks for nothing is met by no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return bool(expressions or fields) and (
        _all_hold(expressions, place.labels) and _all_hold(fields, {_NAME: place.name})
    )


def _all_hold(requirements: Iterable[Mapping[str, Any]], found: Mapping[str, object]) -> bool:
    return all(_holds(requirement, found) for requirement in requirements)


def _holds(requirement: Mapping[str, Any], found: Mapping[str, object]) -> bool:
    holds = _OPERATORS.get(requirement.get("operator"))
    value = found.get(requirement.get("key", ""))
    try:
        return holds is not None and holds(value, requirement.get("values") or ())
    except MALFORMED:  # such as a label that is not a number
        return False


# What each says of a label's value, which is None where the node has no such label.
_OPERATORS: Mapping[object, Callable[[Any, Sequence[Any]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _values: value is not None,
    "DoesNotExist": lambda value, _values: value is None,
    "Gt": lambda value, values: int(value) > int(next(iter(values), "")),
    "Lt": lambda value, values: int(value) < int(next(iter(values), "")),
}


# The newest rules: without pod-level resources they are the same for all versions.
_MINOR = 36


class Claim(NamedTuple):
    """A pod that leaves its node and is made again elsewhere. Amounts are in thousandths of a CPU."""

    pod: str
    cpu: int
    # Whole exclusive CPUs.
    exclusive: int
    rules: Rules = Rules()

    def to_text(self) -> str:
        """Return a text for people, such as "shop/db: 4 CPUs, 4 of them exclusive"."""
        text = "%s: %s" % (self.pod, counted_cpus(self.cpu))
        return "%s, %d of them exclusive" % (text, self.exclusive) if self.exclusive else text


class FreeNode(NamedTuple):
    """A node that can take pods. `free` is what it can allocate less what its pods ask for, in thousandths of a CPU."""

    place: Place
    free: int
    # Whether its kubelet gives pods exclusive CPUs.
    is_static: bool = False

    def takes(self, claim: Claim) -> bool:
        """Return whether the pod may come here, CPUs aside."""
        return (self.is_static or not claim.exclusive) and claim.rules.allow(self.place)


def static_hosts(plans: Manifest, changed: Iterable[str]) -> list[str]:
    """Return the hosts whose kubelets give pods exclusive CPUs.

    plans: of each host, what rollout_info gave before its change, or None. changed: the hosts that have had theirs.
    """
    changed = frozenset(changed)
    return [host for host, plan in plans.items() if _policy(plan or {}, host in changed) == "static"]


def _policy(plan: Manifest, is_changed: bool) -> str:
    # What one node says in another form must not stop the others.
    found = mapping(plan.get("found")).get("cpu_manager_policy", "")
    rows = map(mapping, items(plan.get("drift"))) if is_changed else ()
    wanted = [row.get("wanted") for row in rows if row.get("subject") == "cpu_manager_policy"]
    return str(wanted[0] if wanted else found)


def shortage(
    nodes: Sequence[Manifest], pods: Sequence[Manifest], drained: Iterable[str], static: Iterable[str]
) -> list[Claim]:
    """Return the pods of the drained nodes for which the other nodes have no CPUs; empty where all find room.

    nodes, pods: all of the cluster. drained, static: names of nodes, those that are drained at the same time, and those
    whose kubelets give pods exclusive CPUs. Raises InputError for a pod or an amount that cannot be read, and for a
    drained node that the cluster does not have.
    """
    drained, static = frozenset(drained), frozenset(static)
    unknown = drained.difference(_metadata(node).get("name") for node in nodes)
    if unknown:
        raise InputError(
            "no node of the cluster has this name: %s" % ", ".join(sorted(unknown)),
            remedy="set kubelet_node_name to what the cluster calls the node, in the inventory or with --extra-vars",
        )
    others = [node for node in nodes if _metadata(node).get("name") not in drained]
    # A pod that goes with no other node, whatever CPUs these have, waits for its own to come back.
    places = [place_of(node) for node in others]
    asked = [
        claim
        for claim in claims(pods, drained, static)
        if claim.rules.is_for_all or any(map(claim.rules.choose, places))
    ]
    return unplaced(asked, rooms(others, pods, static))


def claims(pods: Iterable[Manifest], drained: frozenset[str], static: frozenset[str]) -> list[Claim]:
    """Return what the pods on the drained nodes ask for that leave these and are made again, where they ask for
    CPUs."""
    leaving = [pod for pod in pods if _spec(pod).get("nodeName") in drained and not stays(pod) and controller_of(pod)]
    asked = [_claim(pod, pod["spec"]["nodeName"] in static) for pod in leaving]
    return [claim for claim in asked if claim.cpu]


def rooms(nodes: Iterable[Manifest], pods: Iterable[Manifest], static: frozenset[str]) -> list[FreeNode]:
    """Return those of these nodes that take pods: they are ready, and not cordoned."""
    requested: dict[str, int] = {}
    for pod in pods:
        node = _spec(pod).get("nodeName")
        if node and stays(pod) != ENDED:
            requested[node] = requested.get(node, 0) + cpu_request(pod)
    found = []
    for node in nodes:
        name, spec, status = _metadata(node).get("name", ""), _spec(node), node.get("status") or {}
        if spec.get("unschedulable") or not _is_ready(status):
            continue
        free = millis((status.get("allocatable") or {}).get("cpu", 0)) - requested.get(name, 0)
        found.append(FreeNode(place_of(node), free, name in static))
    return found


def unplaced(asked: Iterable[Claim], found: Iterable[FreeNode]) -> list[Claim]:
    """Return the pods for which no node has CPUs, where the others take theirs first; empty where all find room.

    A pod does not split over nodes: first those with exclusive CPUs, of which fewer nodes have some, then the rest,
    each time the largest first, on the first node that takes it.
    """
    nodes = list(found)
    free = [room.free for room in nodes]
    left = []
    for claim in sorted(asked, key=lambda claim: (-claim.exclusive, -claim.cpu, claim.pod)):
        for number, room in enumerate(nodes):
            if free[number] >= claim.cpu and room.takes(claim):
                free[number] -= claim.cpu
                break
        else:
            left.append(claim)
    return left


def cpu_request(manifest: Manifest) -> int:
    """Return what the scheduler counts for a pod, in thousandths of a CPU. Raises InputError."""
    return pod_from_manifest(manifest).request("cpu", _MINOR)


def _claim(manifest: Manifest, from_static: bool) -> Claim:
    pod = pod_from_manifest(manifest)
    exclusive = 0
    if from_static:
        counts = pod.exclusive_counts(_MINOR)
        # App containers get the CPUs of init containers that have ended.
        first = max((counts[container.name] for container in pod.containers if container.kind == INIT), default=0)
        exclusive = max(first, sum(counts[container.name] for container in pod.containers if container.kind != INIT))
    return Claim(name_of(manifest), pod.request("cpu", _MINOR), exclusive, rules_of(manifest["spec"]))


def _metadata(manifest: Manifest) -> Manifest:
    return manifest.get("metadata") or {}


def _spec(manifest: Manifest) -> Manifest:
    return manifest.get("spec") or {}


def _is_ready(status: Manifest) -> bool:
    conditions = status.get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
