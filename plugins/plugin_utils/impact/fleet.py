# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a planned change does to the live workloads of a cluster, and what its nodes have afterwards. Pure.

Without a cluster to ask, each node tells of its own pods: then each stands for itself, and no other node is looked at.

The pods of each node that changes come to it as it will be, in the order of admission_order(). The cost grows with the
pods and the nodes; of nodes of one shape, configuration and pods the answer is computed once.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import MALFORMED, CPUManagerError
from ...module_utils._base.versions import version_notes
from ...module_utils._node.pods_seen import DEVICES, MEMORY, OTHERS, REQUESTS
from ..report.answers import items, line, mapping
from ..report.checks import API, NODES
from ..rollout.scheduling import Place, Rules, place_of
from .admission import Kubelet, PlannedNode, Replays, cure, has_exclusive, planned_node, would_have_exclusive
from .workloads import Kinds, LivePod, LiveWorkload, Owners, Remarks, admission_order, read_pods

VERSION = "1.0"

# What becomes of a pod, the worst first: no node that it may come to takes it, even when empty; its node refuses it; it
# loses its exclusive CPUs; it gets some; it stays as it is.
HOMELESS, REFUSED, LOSES, GAINS, STAYS = "homeless", "refused", "loses", "gains", "stays"
FATES = (HOMELESS, REFUSED, LOSES, GAINS, STAYS)

# Of a workload, those that are named; and how many workloads a cure is looked for, which are tried one by one.
_NAMED = 20
_REASONS = 3
MOST_CURES = 200


class Cluster(NamedTuple):
    """What an API server says, and the hosts of the inventory that are its nodes: {host: (node, its plan)}."""

    hosts: Mapping[str, tuple[str, Mapping[str, Any]]]
    nodes: Sequence[object]
    pods: Sequence[object]
    owners: Owners = MappingProxyType({})
    # As it is told apart from others; empty where there is one.
    name: str = ""
    # API, or NODES: these are no cluster, and of a node others know nothing.
    told_by: str = API
    # {node: what is not known of its pods}, where they themselves tell.
    unknown: Mapping[str, Sequence[str]] = MappingProxyType({})


# What nodes cannot tell, whatever they tell, and what single ones do not.
ALONE = (
    "told by the nodes alone: not known are who makes the pods again, whether another node takes what is refused, init"
    " containers that had no CPUs of their own, and the order of the pods, for which that of their names is taken"
)
_UNKNOWN = {
    OTHERS: "which pods share CPUs is not known, and they are not counted",
    REQUESTS: "what Burstable pods ask for is not known, and not counted",
    MEMORY: "how much memory Guaranteed pods ask for is not known, and not counted",
    DEVICES: "which devices pods have is not known, and they are not counted",
}
_ORDER = "the order of its pods is not known"


def cluster_of_nodes(plans: Mapping[str, Mapping[str, Any]], remarks: Remarks) -> Cluster:
    """Return what nodes tell of their own pods. plans: {host: what rollout_info said, with the pods of admission_info}.

    All of it is data: a pod is of the node that tells of it, and nothing of it counts but what it asks for.
    """
    remarks.add("%s", ALONE)
    pods: list[dict[str, Any]] = []
    unknown: dict[str, list[str]] = {}
    for host, plan in plans.items():
        beside = mapping(plan.get("beside_cpus"))
        if beside and not isinstance(beside.get("pods"), list):
            remarks.add("these hosts do not tell of their pods: %s", host)
        pods += [_told(host, mapping(pod)) for pod in items(beside.get("pods"))]
        for row in map(mapping, items(beside.get("left_out"))):
            remarks.add("not counted: %s", "%s: %s (%s)" % (host, row.get("pod"), row.get("why")))
        unknown[host] = [_UNKNOWN[name] for name in items(beside.get("unknown")) if name in list(_UNKNOWN)]
        for what in unknown[host]:
            remarks.add(what + ": %s", host)
    hosts = {host: (host, plan) for host, plan in plans.items()}
    return Cluster(hosts, [{"metadata": {"name": host}} for host in hosts], pods, told_by=NODES, unknown=unknown)


def _told(host: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    metadata, spec, status = (mapping(pod.get(field)) for field in ("metadata", "spec", "status"))
    return {
        "metadata": {name: metadata.get(name) for name in ("namespace", "name", "uid")},
        "spec": {"nodeName": host, **{name: spec.get(name) for name in ("initContainers", "containers", "resources")}},
        "status": {"qosClass": status.get("qosClass"), "phase": "Running"},
    }


class _Told(NamedTuple):
    """Where a pod is refused, and why. before: the kinds of those that came before it and run there."""

    pod: LivePod
    before: Sequence[int]
    fate: str
    reason: str
    message: str
    why: str
    # A node that would take it when empty.
    elsewhere: str = ""


class _Story:
    """A workload, while its pods are counted."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(FATES, 0)
        self.nodes: dict[str, None] = {}
        self.worst: _Told | None = None
        # The first of its pods that shares CPUs on a node that changes.
        self.sharing: LivePod | None = None
        # Why what is said of its pods is not exact.
        self.limits: dict[str, None] = {}

    @property
    def fate(self) -> str:
        """The worst of those of its pods."""
        return next(fate for fate in FATES if self.counts[fate])


def impact_of(
    clusters: Iterable[Cluster], remarks: Remarks | None = None, replays: Replays | None = None
) -> dict[str, Any]:
    """Return the answer as plain data; docs/schema/impact-1.json has its shape. remarks: those that it begins with."""
    replays = replays or Replays(Kinds())
    remarks = remarks or Remarks()
    workloads: list[dict[str, Any]] = []
    nodes: list[dict[str, Any]] = []
    told_by = API
    for cluster in clusters:
        told_by = cluster.told_by
        found = _Fleet(cluster, replays, remarks)
        workloads += found.workloads()
        nodes += found.rows
    workloads.sort(key=lambda row: (FATES.index(row["fate"]), row["workload"]))
    changed = [row for row in nodes if row["changes"]]
    return {
        "schema_version": VERSION,
        "kind": "kubenode.cpu_manager/impact",
        "told_by": told_by,
        "changing": len(changed),
        "workloads": workloads,
        "nodes": nodes,
        "fleet": {name: sum(row[name] for row in nodes) for name in ("exclusive", "allocatable", "stranded", "shared")},
        "notes": remarks.to_list(),
    }


class _Fleet:
    """The nodes and pods of one cluster."""

    def __init__(self, cluster: Cluster, replays: Replays, remarks: Remarks) -> None:
        self.cluster, self.replays, self.remarks = cluster, replays, remarks
        self.places = self._places()
        self.planned: dict[str, tuple[str, PlannedNode]] = {}
        self._plan_hosts()
        # The nodes of one kubelet, by what it will be; None for those of which nothing is known.
        self.by_kubelet: dict[Kubelet | None, list[Place]] = {}
        for name, place in self.places.items():
            kubelet = self.planned[name][1].after if name in self.planned else None
            self.by_kubelet.setdefault(kubelet, []).append(place)
        self._takers: dict[tuple[int, int], str | None] = {}
        # The rules that were asked about, which keeps their ids theirs.
        self._asked: list[Rules] = []
        self.stories: dict[LiveWorkload, _Story] = {}
        self.rows: list[dict[str, Any]] = []
        by_node: dict[str, list[LivePod]] = {}
        for pod in read_pods(cluster.pods, cluster.owners, replays.kinds, remarks):
            if pod.node in self.planned:
                by_node.setdefault(pod.node, []).append(pod)
            else:
                remarks.add(
                    "not counted, as their nodes are not in the inventory or could not be planned: %s", pod.name
                )
        for node, (host, planned) in self.planned.items():
            pods = admission_order(by_node.get(node, ()), planned.is_drained)
            self.rows.append(self._row(node, host, planned, pods))
            if planned.is_assumed:
                remarks.add("the version of their kubelets is not known, and the newest is assumed: %s", host)

    def _places(self) -> dict[str, Place]:
        places = {}
        for node in self.cluster.nodes:
            try:
                place = place_of(mapping(node))
            except MALFORMED as error:
                self.remarks.add("nodes of the cluster that cannot be read, and are left out: %s", str(error))
                continue
            if place.name:
                places[place.name] = place
        return places

    def _plan_hosts(self) -> None:
        for host, (node, plan) in self.cluster.hosts.items():
            if node in self.planned:
                self.remarks.add("these hosts have the node of another host, and are left out: %s", host)
                continue
            if node not in self.places:
                self.remarks.add("the cluster has no node of these hosts, whose pods are not known: %s", host)
                continue
            try:
                self.planned[node] = (host, planned_node(plan))
            except CPUManagerError as error:
                self.remarks.add("what becomes of the pods of these is not known: %s", "%s (%s)" % (host, error))

    def _row(self, node: str, host: str, planned: PlannedNode, pods: Sequence[LivePod]) -> dict[str, Any]:
        found = self.replays.of(planned.after, [pod.kind for pod in pods])
        unknown = self.cluster.unknown.get(node, ())
        versions = version_notes(planned.after.minor, planned.is_assumed)
        orderless = [_ORDER] if self.cluster.told_by == NODES and len(pods) > 1 else []
        if found.problem:
            self.remarks.add("what becomes of the pods of these is not known: %s", "%s (%s)" % (host, found.problem))
        elif planned.is_changed:
            before: list[int] = []
            for place, pod in enumerate(pods):
                refusal = found.refused.get(place)
                if refusal is None:
                    had = has_exclusive(planned.before, self.replays.kinds.pods[pod.kind])
                    gets = place in found.exclusive
                    self._story(pod).counts[STAYS if had is gets else GAINS if gets else LOSES] += 1
                    if not had and not gets:
                        self._story(pod).sharing = self._story(pod).sharing or pod
                    before.append(pod.kind)
                else:
                    self._refused(host, pod, before, refusal)
                limits = (*versions, *(found.limits if place >= found.exact_until else ()))
                # What is refused by the empty node does not depend on what else runs.
                depends = refusal is None or self.replays.takes(planned.after, pod.kind)
                more = [*orderless, *unknown] if depends else ()
                self._story(pod).limits.update(dict.fromkeys([*more, *limits]))
        else:
            for pod in pods:
                self._story(pod).counts[STAYS] += 1
        return {
            "host": host,
            "node": node,
            "cluster": self.cluster.name,
            "changes": planned.is_changed,
            "policy": planned.after.policy,
            "pods": len(pods),
            "refused": len(found.refused) if planned.is_changed else 0,
            "exclusive": found.taken,
            "allocatable": found.allocatable,
            "stranded": found.stranded,
            "shared": found.shared,
            "exact": not (found.limits or found.problem or unknown or orderless or versions),
            "inexact": line("; ".join([*orderless, *unknown, *versions, *found.limits])),
        }

    def _story(self, pod: LivePod) -> _Story:
        return self.stories.setdefault(pod.workload, _Story())

    def _refused(self, host: str, pod: LivePod, before: Sequence[int], refusal: tuple[str, str, str]) -> None:
        story, elsewhere = self._story(pod), self._taker(pod)
        is_taken = elsewhere is not None
        fate = REFUSED if is_taken or self.cluster.told_by == NODES else HOMELESS
        story.counts[fate] += 1
        story.nodes[host] = None
        if story.worst is None or FATES.index(fate) < FATES.index(story.worst.fate):
            # What no empty node takes is not cured by room.
            running = tuple(before) if is_taken else ()
            story.worst = _Told(pod, running, fate, *refusal, elsewhere or "")

    def _taker(self, pod: LivePod) -> str | None:
        """Return a node that takes the pod when it is empty, as it will be; None where each that it may come to
        refuses it."""
        if self.cluster.told_by == NODES:
            return pod.node if self._is_taken(pod, pod.node) else None
        key = (pod.kind, id(pod.rules))
        if key not in self._takers:
            self._asked.append(pod.rules)
            self._takers[key] = self._find_taker(pod)
        return self._takers[key]

    def _find_taker(self, pod: LivePod) -> str | None:
        only = pod.rules.only_names()
        if only is not None:
            names = [name for name in only if name in self.places]
            found = (name for name in names if self._is_taken(pod, name) and pod.rules.allow(self.places[name]))
            return next(found, None)
        for kubelet, places in self.by_kubelet.items():
            if kubelet is None or self.replays.takes(kubelet, pod.kind):
                for place in places:
                    if pod.rules.allow(place):
                        return place.name
        return None

    def _is_taken(self, pod: LivePod, name: str) -> bool:
        return name not in self.planned or self.replays.takes(self.planned[name][1].after, pod.kind)

    def workloads(self) -> list[dict[str, Any]]:
        """Return a row for each."""
        rows, cures = [], 0
        for workload, story in self.stories.items():
            told, remedy = story.worst, ""
            if told is not None:
                cures += 1
                remedy = self._cure(told) if cures <= MOST_CURES else ""
                if cures > MOST_CURES:
                    self.remarks.add("of so many refused workloads, no cure is looked for of: %s", workload.to_text())
            hosts = list(story.nodes)
            rows.append(
                {
                    "workload": line(workload.to_text()),
                    "cluster": self.cluster.name,
                    "fate": story.fate,
                    "pods": dict(story.counts),
                    "nodes": hosts[:_NAMED],
                    "more_nodes": max(0, len(hosts) - _NAMED),
                    "pod": line(told.pod.name) if told else "",
                    "reason": told.reason if told else "",
                    "message": line(told.message) if told else "",
                    "why": line(told.why) if told else "",
                    "elsewhere": line(told.elsewhere) if told else "",
                    "cure": remedy,
                    "could_gain": self._could_gain(story),
                    "exact": not story.limits,
                    "inexact": line("; ".join(list(story.limits)[:_REASONS])),
                }
            )
        return rows

    def _could_gain(self, story: _Story) -> bool:
        if story.sharing is None:
            return False
        _host, planned = self.planned[story.sharing.node]
        return would_have_exclusive(self.replays, planned.after, story.sharing.kind)

    def _cure(self, told: _Told) -> str:
        _host, planned = self.planned[told.pod.node]
        return cure(self.replays, planned.after, told.before, told.pod.kind)
