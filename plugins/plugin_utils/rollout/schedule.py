# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""In which order and how many at a time the nodes of a fleet are changed, by what runs on them. Pure.

Batches grow. A canary of each shape comes first, alone the one with the fewest pods; the canaries of many shapes are
batches that grow, too. The pods that leave a batch find CPUs on the nodes outside of it, as a sum, and are no more of a
PodDisruptionBudget than it allows at a time. A node of which that cannot be said comes alone. The cost grows with the
nodes and their pods, not with pairs of them.
"""

from __future__ import annotations

import json
import math
import statistics
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import MALFORMED, CPUManagerError
from ...module_utils._base.quantity import counted, millis
from ...module_utils._kubelet.settings import SETTINGS
from ..report.answers import few, items, mapping
from .pods import ENDED, Manifest, stays
from .scheduling import cpu_request, selects

VERSION = "1.0"
# How many of all nodes a batch has at most, after the first node; the last again and again.
_GROWTH = (0.1, 0.25, 0.5)
# No drain takes longer.
MOST_SECONDS = 86400
# How many batches a node is offered.
_MOST_LOOKS = 50
# Of the batches, those that are shown.
_NAMED = 10


class ChangingNode(NamedTuple):
    """A node that changes. shape: equal for nodes of one machine that change alike.

    cpu: what the pods that leave it ask for, and free: what is free there, in thousandths of a CPU. pods: how many
    leave. budgets: how many of these each PodDisruptionBudget has.
    """

    host: str
    shape: str = ""
    cpu: int = 0
    free: int = 0
    pods: int = 0
    budgets: Mapping[str, int] = {}


class _Batch:
    """A batch while it is filled."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.nodes: list[ChangingNode] = []
        self.cpu = self.free = 0
        self.budgets: dict[str, int] = {}

    def add(self, node: ChangingNode) -> None:
        self.nodes.append(node)
        self.cpu += node.cpu
        self.free += node.free
        for budget, count in node.budgets.items():
            self.budgets[budget] = self.budgets.get(budget, 0) + count


class Scheduler:
    """Puts each node into the first batch that takes it. `looks`: how often a batch was asked whether it does."""

    def __init__(self, total: int, allowed: Mapping[str, int], free: int) -> None:
        """Make a scheduler without any batch. total: how many nodes change. allowed: how many pods of each budget
        may be gone at a time. free: of the whole cluster, as in ChangingNode."""
        self.total, self.allowed, self.free = total, allowed, free
        self.batches: list[_Batch] = []
        self.looks = 0
        # The first batch that is not full, and of each budget the first that has room.
        self._first = 0
        # Of the last batch, as it was made.
        self._last_size = 0
        self._sizes = [max(1, int(total * share)) for share in _GROWTH]
        self._open: dict[str, int] = {}

    def begin(self) -> None:
        """Begin anew: what comes from now on comes after all that came, in batches that grow anew; the very first
        has one node."""
        self._first = len(self.batches)
        self._last_size = self._sizes[0] if self.batches else 1
        self.batches.append(_Batch(self._last_size))

    def place(self, node: ChangingNode) -> None:
        """Put the node into the first batch that takes it, or into a further one."""
        start = max([self._first, *(self._open.get(budget, 0) for budget in node.budgets)])
        last = len(self.batches) - 1
        # Those in between may have room, too; looking at all of them would take as many looks as there are pairs.
        near = [*range(start, min(start + _MOST_LOOKS, last)), *([last] if start <= last else [])]
        at = next((at for at in near if self._takes(self.batches[at], node)), None)
        if at is None:
            at = max(start, last + 1)
            while len(self.batches) <= at:
                self.batches.append(_Batch(self._next_size()))
        batch = self.batches[at]
        batch.add(node)
        if any(count > self.allowed.get(budget, 1) for budget, count in node.budgets.items()):
            # It cannot keep to what is allowed, and comes alone.
            batch.most = 1
        while self._first <= at and len(self.batches[self._first].nodes) >= self.batches[self._first].most:
            self._first += 1
        for budget, count in batch.budgets.items():
            if count >= self.allowed.get(budget, 1):
                self._open[budget] = max(self._open.get(budget, 0), at + 1)

    def _next_size(self) -> int:
        self._last_size = next((size for size in self._sizes if size > self._last_size), self._sizes[-1])
        return self._last_size

    def _takes(self, batch: _Batch, node: ChangingNode) -> bool:
        self.looks += 1
        if not batch.nodes:
            return True
        return (
            len(batch.nodes) < batch.most
            and batch.cpu + node.cpu <= self.free - batch.free - node.free
            and all(
                batch.budgets.get(budget, 0) + count <= self.allowed.get(budget, 1)
                for budget, count in node.budgets.items()
            )
        )


def in_batches(nodes: Sequence[ChangingNode], allowed: Mapping[str, int], free: int) -> Scheduler:
    """Return the nodes in batches, the canaries first. allowed, free: as of Scheduler."""
    scheduler = Scheduler(len(nodes), {name: max(1, count) for name, count in allowed.items()}, free)
    canaries: dict[str, ChangingNode] = {}
    by_pods = sorted(nodes, key=lambda node: (node.pods, node.cpu))
    for node in by_pods:
        canaries.setdefault(node.shape, node)
    chosen = {node.host for node in canaries.values()}
    first, others = list(canaries.values())[:1], list(canaries.values())[1:]
    rest = [node for node in nodes if node.host not in chosen]
    for part in filter(None, (first, others, rest)):
        scheduler.begin()
        for node in part:
            scheduler.place(node)
    return scheduler


class FleetToChange(NamedTuple):
    """What a schedule is made of.

    hosts: {host: (the node's name, its shape, whether it is drained)} of those that change. times: {host: how many
    seconds its last drain took, as its journal says}, also of others, unchecked. The rest is what the API server says
    of the cluster.
    """

    hosts: Mapping[str, tuple[str, str, bool]]
    nodes: Sequence[object] = ()
    pods: Sequence[object] = ()
    budgets: Sequence[object] = ()
    times: Mapping[str, object] = {}


def shape_of(plan: Mapping[str, Any]) -> str:
    """Return equal for nodes of one machine of which the same settings change, by the same steps. plan: of
    rollout_info.

    What else differs, such as containers and checkpoints, has names of a node's own, and so have many values: only of
    settings with few values, such as policies, they count.
    """
    rows = [(str(row.get("subject")), row.get("wanted")) for row in map(mapping, items(plan.get("drift")))]
    changes = {name: value if _has_few_values(name) else None for name, value in rows if name in SETTINGS}
    return json.dumps([plan.get("topology"), changes, plan.get("actions")], sort_keys=True, default=str)


def _has_few_values(setting: str) -> bool:
    argument = SETTINGS[setting].argument
    return "choices" in argument or argument["type"] in ("bool", "dict")


def schedule_of(fleet: FleetToChange, seconds: int = 0) -> dict[str, Any]:
    """Return the schedule as plain data; docs/schema/schedule-1.json has its shape.

    seconds: how long a node takes; 0 for the median of the times that nodes tell of, where nodes are drained.
    """
    notes: dict[str, list[str]] = {}
    drains = any(is_drained for _name, _shape, is_drained in fleet.hosts.values())
    times = _times(fleet.times, notes) if drains and not seconds else []
    seconds = seconds or (math.ceil(statistics.median(times)) if times else 0)
    budgets = _Budgets(fleet.budgets, notes)
    found = _by_node(fleet, budgets, notes)
    free = _free_of_nodes(fleet.nodes, notes)
    for name, (requested, _cpu, _pods, _budgets) in found.items():
        if name in free:
            free[name] = max(0, free[name] - requested)
    changing = []
    for host, (name, shape, drains) in fleet.hosts.items():
        _requested, cpu, pods, counts = found.get(name, (0, 0, 0, {}))
        node = ChangingNode(host, shape, free=free.get(name, 0))
        changing.append(node._replace(cpu=cpu, pods=pods, budgets=counts) if drains else node)
    found_batches = in_batches(changing, budgets.allowed, sum(free.values())).batches
    rows = [batch.nodes for batch in found_batches if batch.nodes]
    for name, count in sorted(budgets.allowed.items()):
        if count < 1 and any(name in node.budgets for node in changing):
            notes.setdefault("allow no disruption now, so that the drains of their pods wait: %s", []).append(name)
    return {
        "schema_version": VERSION,
        "kind": "kubenode.cpu_manager/schedule",
        "batches": [
            {"hosts": [node.host for node in nodes], "pods": sum(node.pods for node in nodes)} for nodes in rows
        ],
        "shapes": len({node.shape for node in changing}),
        "seconds": seconds * len(rows) if seconds else None,
        "node_seconds": seconds or None,
        "measured": len(times),
        "notes": [what % few(names) for what, names in notes.items()],
    }


def schedule_text(schedule: Mapping[str, Any]) -> str:
    """Return a text for people."""
    return "\n".join(_lines(schedule))


def _lines(schedule: Mapping[str, Any]) -> Iterator[str]:
    rows = schedule["batches"]
    hosts = sum(len(row["hosts"]) for row in rows)
    yield "Order of %s by what runs there; batches: %d" % (counted(hosts, "node"), len(rows))
    for number, row in enumerate(rows[:_NAMED], 1):
        yield "  %d: %s; pods that leave: %d" % (number, few(row["hosts"]), row["pods"])
    if len(rows) > _NAMED:
        yield "  and %d more" % (len(rows) - _NAMED)
    if schedule["seconds"] is not None:
        measured = ", as a batch takes %s by the median of %s that were measured" % (
            counted(schedule["node_seconds"], "second"),
            counted(schedule["measured"], "earlier drain"),
        )
        takes = "  takes about %s" % counted(-(-schedule["seconds"] // 60), "minute")
        yield takes + (measured if schedule["measured"] else "")
    elif rows:
        yield "  how long it takes is not known: no node has measured a drain, and cpu_manager_drain_seconds is not set"
    for note in schedule["notes"]:
        yield "  note: " + note


def _times(told: Mapping[str, object], notes: dict[str, list[str]]) -> list[int]:
    """Return how long the last drain of each node took, of those that tell of it."""
    found = []
    for host, seconds in told.items():
        if isinstance(seconds, int) and not isinstance(seconds, bool) and 0 < seconds <= MOST_SECONDS:
            found.append(seconds)
        elif seconds is not None:
            notes.setdefault("tell of a drain that took no possible time, which is left out: %s", []).append(host)
    return found


class _Budgets:
    """The PodDisruptionBudgets, and which of them a pod is of."""

    def __init__(self, manifests: Iterable[object], notes: dict[str, list[str]]) -> None:
        self.allowed: dict[str, int] = {}
        self._by_namespace: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
        self._found: dict[str, list[str]] = {}
        for manifest in map(mapping, manifests):
            metadata, spec, status = (mapping(manifest.get(field)) for field in ("metadata", "spec", "status"))
            name = _name(manifest)
            allowed = status.get("disruptionsAllowed", 0)
            if not isinstance(allowed, int) or not isinstance(spec.get("selector"), Mapping):
                notes.setdefault("budgets that cannot be read, and are left out: %s", []).append(name)
                continue
            self.allowed[name] = allowed
            self._by_namespace.setdefault(str(metadata.get("namespace", "")), []).append((name, spec["selector"]))

    def of(self, metadata: Mapping[str, Any]) -> list[str]:
        """Return the names of those that a pod is of."""
        rows = self._by_namespace.get(str(metadata.get("namespace", "")))
        if not rows:
            return []
        labels = mapping(metadata.get("labels"))
        key = json.dumps([metadata.get("namespace"), labels], sort_keys=True)
        if key not in self._found:
            self._found[key] = [name for name, selector in rows if selects(selector, labels)]
        return self._found[key]


_OfNode = tuple[int, int, int, dict[str, int]]


def _by_node(fleet: FleetToChange, budgets: _Budgets, notes: dict[str, list[str]]) -> dict[str, _OfNode]:
    """Return {node: (what all pods ask for, what those that leave do, how many these are, and of which budgets)}."""
    found: dict[str, _OfNode] = {}
    requests: dict[str, int] = {}
    for pod in map(mapping, fleet.pods):
        try:
            why = stays(pod)
            node = mapping(pod.get("spec")).get("nodeName")
            if why == ENDED or not node:
                continue
            asked = _request(pod, requests)
        except (CPUManagerError, *MALFORMED):
            notes.setdefault("pods that cannot be read, and are left out: %s", []).append(_name(pod))
            continue
        requested, cpu, pods, counts = found.get(node, (0, 0, 0, {}))
        if not why:
            cpu, pods = cpu + asked, pods + 1
            for name in budgets.of(mapping(pod.get("metadata"))):
                counts[name] = counts.get(name, 0) + 1
        found[node] = (requested + asked, cpu, pods, counts)
    return found


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = mapping(manifest.get("metadata"))
    return "%s/%s" % (metadata.get("namespace", ""), metadata.get("name", ""))


def _request(pod: Manifest, requests: dict[str, int]) -> int:
    """Return what a pod requests in thousandths of a CPU; read once of all pods that ask alike."""
    spec = pod["spec"]
    asked = [spec.get(field) for field in ("resources", "overhead")]
    for field in ("initContainers", "containers"):
        asked += [[part.get("resources"), part.get("restartPolicy")] for part in spec.get(field) or ()]
        asked.append(field)
    # What a pod that is resized has is in its status.
    statuses = mapping(pod.get("status")).get("containerStatuses") or ()
    asked += [[status.get("allocatedResources"), status.get("resources")] for status in statuses]
    key = json.dumps(asked)
    if key not in requests:
        requests[key] = cpu_request(pod)
    return requests[key]


def _free_of_nodes(nodes: Iterable[object], notes: dict[str, list[str]]) -> dict[str, int]:
    """Return what each node that takes pods can give to them in all, in thousandths of a CPU."""
    found = {}
    for node in map(mapping, nodes):
        name = str(mapping(node.get("metadata")).get("name", ""))
        try:
            if not mapping(node.get("spec")).get("unschedulable"):
                found[name] = millis(mapping(mapping(node.get("status")).get("allocatable")).get("cpu", 0))
        except (CPUManagerError, *MALFORMED):
            notes.setdefault("nodes that cannot be read, and take no pods here: %s", []).append(name)
    return found
