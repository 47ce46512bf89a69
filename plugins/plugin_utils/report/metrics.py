# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a fleet, and what was found on one node, as figures for Prometheus. Pure.

Both are files for node_exporter's textfile collector, in the text format 0.0.4. The collector refuses two samples of
the same name and labels, also in different files. So all samples of a fleet have the label `fleet`, and none of a node.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Iterable, Iterator, Mapping

from ...module_utils._base.errors import InputError
from ...module_utils.cpuset import CPUSet
from .answers import NO_KUBELET, line, mapping, seconds_of
from .assemble import OUTCOMES, STATES, UNREAD_STATES, oldest_findings
from .checks import NOTE
from .shapes import MeasuredNode, Report

# The name that a fleet without one gets.
DEFAULT_FLEET = "default"
# The check of a container that has other CPUs than it was given.
CPUSET_DIFFERS = "cpuset-differs"
_LONGEST_LABEL = 200
# Each online CPU is in one of these; stranded ones are shared.
_POOLS = ("exclusive", "shared", "reserved")

# In the order in which they are written.
HELP = {
    "kubenode_cpu_nodes": "Nodes of the fleet by state.",
    "kubenode_cpu_drift": "Nodes with a finding of the check that is not waived; in the figures of one node 1.",
    "kubenode_cpu_findings_waived": "Findings that are waived.",
    "kubenode_cpu_mispinned_containers": "Containers that have other CPUs than the checkpoint gives them.",
    "kubenode_cpu_mispinned_cpus": "CPUs that a container has but should not have, or should have but does not have.",
    "kubenode_cpu_pool_cpus": "CPUs that are exclusive, reserved, or neither: shared.",
    "kubenode_cpu_stranded_cpus": "Shared CPUs that no container can get for itself, though the scheduler counts them.",
    "kubenode_cpu_oldest_finding_timestamp_seconds": "When the oldest finding of the check was first seen.",
    "kubenode_cpu_nodes_as_wanted_percent": "The share of the compared nodes that are as wanted, rounded down.",
    "kubenode_cpu_report_grade": "1 for the grade of the report, 0 for the others.",
    "kubenode_cpu_owner_nodes": "Nodes of the fleet by who writes the configuration of the kubelet.",
    "kubenode_cpu_report_outcome": "1 for the outcome of the report, 0 for the others.",
    "kubenode_cpu_report_exit_status": "The outcome of the report as a number: 0 clean, 1 unknown, 2 drift, 3 danger.",
    "kubenode_cpu_report_problems": "Result files that were not used.",
    "kubenode_cpu_report_timestamp_seconds": "When the report was made.",
    "kubenode_cpu_oldest_look_timestamp_seconds": "The oldest time at which a node of the report was read.",
    "kubenode_cpu_look_success": "1 if the node could be read, 0 if not; then there are no other figures of it.",
    "kubenode_cpu_look_timestamp_seconds": "When the node was read.",
    "kubenode_cpu_owner_info": "Who writes the configuration of the kubelet: a distribution of Kubernetes, or a tool.",
}

_Samples = Iterable["tuple[str, Mapping[str, str], int]"]


def fleet_metrics(report: Report) -> str:
    """Return the figures of a report; a time that cannot be read is left out.

    report: as docs/schema/report-1.json describes it.
    """
    fleet = {"fleet": line(report["fleet"]) or DEFAULT_FLEET}
    return _written((name, {**fleet, **labels}, value) for name, labels, value in _of_fleet(report))


def node_metrics(node: MeasuredNode, made: str) -> str:
    """Return the figures of one node of a report, without its name, which Prometheus adds as `instance`.

    made: when the node was looked at, where the node does not say it. A node that could not be read has one figure,
    which says so: without any, it would look like a node without drift.
    """
    return _written(_of_node(node, made))


def _of_fleet(report: Report) -> Iterator[tuple[str, Mapping[str, str], int]]:
    nodes, summary = report["nodes"], report["summary"]
    # All states, so that no series ends when its last node leaves it.
    for state in dict.fromkeys([*STATES, *summary["states"]]):
        yield "kubenode_cpu_nodes", {"state": state}, summary["states"].get(state, 0)
    drift = Counter({(row["check"], row["severity"]): 0 for row in summary["checks"]})
    waived = Counter({row["check"]: 0 for row in summary["checks"]})
    for node in nodes:
        drift.update(_open(node))
        waived.update(found["check"] for found in node["findings"] if found["waived"])
    for (check, severity), count in drift.items():
        yield "kubenode_cpu_drift", {"check": check, "severity": severity}, count
    for check, count in waived.items():
        yield "kubenode_cpu_findings_waived", {"check": check}, count
    yield "kubenode_cpu_mispinned_containers", {}, sum(map(_mispinned_containers, nodes))
    yield "kubenode_cpu_mispinned_cpus", {}, sum(len(_mispinned_cpus(node)) for node in nodes)
    yield from _of_pools(nodes)
    yield from _of_trend(report)
    distributions = {group["id"]: group["distribution"] for group in report["groups"]}
    owners = Counter(_owner(node, distributions.get(node["group"], "")) for node in nodes)
    for owner, count in owners.items():
        if owner:
            yield "kubenode_cpu_owner_nodes", {"owner": owner}, count
    for outcome in OUTCOMES:
        yield "kubenode_cpu_report_outcome", {"outcome": outcome}, int(summary["outcome"] == outcome)
    yield "kubenode_cpu_report_exit_status", {}, summary["exit_status"]
    yield "kubenode_cpu_report_problems", {}, len(report["problems"])
    for seconds in _seconds(report["made"]):
        yield "kubenode_cpu_report_timestamp_seconds", {}, seconds
    moments = {node["looked_at"] for node in nodes if node["state"] not in UNREAD_STATES}
    looks = [seconds for moment in moments for seconds in _seconds(moment)]
    if looks:
        yield "kubenode_cpu_oldest_look_timestamp_seconds", {}, min(looks)


def _of_trend(report: Report) -> Iterator[tuple[str, Mapping[str, str], int]]:
    """Yield what the form trend shows of this report; Prometheus itself remembers the earlier ones."""
    # Imported here: the figures of a node, which are made in its own process, do without.
    from .trend import GRADES, point_of  # noqa: PLC0415

    for check, moment in oldest_findings(report["nodes"]).items():
        for seconds in _seconds(moment):
            yield "kubenode_cpu_oldest_finding_timestamp_seconds", {"check": check}, seconds
    point = point_of(report)
    if point.nodes:
        yield "kubenode_cpu_nodes_as_wanted_percent", {}, point.percent
    for grade in GRADES:
        yield "kubenode_cpu_report_grade", {"grade": grade}, int(point.grade == grade)


def _of_node(node: MeasuredNode, made: str) -> Iterator[tuple[str, Mapping[str, str], int]]:
    was_read = node["state"] not in UNREAD_STATES
    yield "kubenode_cpu_look_success", {}, int(was_read)
    if not was_read:
        return
    for check, severity in _open(node):
        if severity != NOTE:
            yield "kubenode_cpu_drift", {"check": check, "severity": severity}, 1
    yield "kubenode_cpu_mispinned_containers", {}, _mispinned_containers(node)
    yield "kubenode_cpu_mispinned_cpus", {}, len(_mispinned_cpus(node))
    yield from _of_pools([node])
    for seconds in _seconds(node["looked_at"] or made):
        yield "kubenode_cpu_look_timestamp_seconds", {}, seconds
    owner = _owner(node, mapping(mapping(node.get("answer")).get("kubelet")).get("distribution"))
    if owner:
        yield "kubenode_cpu_owner_info", {"owner": owner}, 1


def _of_pools(nodes: Iterable[MeasuredNode]) -> Iterator[tuple[str, Mapping[str, str], int]]:
    # A host without a kubelet has no pools.
    pools = [node["pools"] for node in nodes if node["state"] != NO_KUBELET]
    for pool in _POOLS:
        yield "kubenode_cpu_pool_cpus", {"pool": pool}, sum(_cpus(of.get(pool, "")) for of in pools)
    yield "kubenode_cpu_stranded_cpus", {}, sum(_cpus(of.get("stranded", "")) for of in pools)


# --- what is counted ----------------------------------------------------------------------------------


def _cpus(text: str) -> int:
    """Return how many CPUs are in a list; none where it is not a list."""
    try:
        return len(CPUSet.parse(text))
    except InputError:
        return 0


def _open(node: MeasuredNode) -> list[tuple[str, str]]:
    return sorted({(found["check"], found["severity"]) for found in node["findings"] if not found["waived"]})


def _mispinned_containers(node: MeasuredNode) -> int:
    count = line(node["containers"].get("different", ""))
    return int(count) if re.fullmatch("[0-9]{1,6}", count) else 0


def _mispinned_cpus(node: MeasuredNode) -> CPUSet:
    cpus = CPUSet()
    for found in node["findings"]:
        if found["check"] == CPUSET_DIFFERS and not found["waived"]:
            try:
                # What is found may have a remark behind it.
                held, wanted = (CPUSet.parse(found[name].partition(" ")[0]) for name in ("found", "wanted"))
            except InputError:
                continue
            cpus |= (held - wanted) | (wanted - held)
    return cpus


def _owner(node: MeasuredNode, distribution: object) -> str:
    """Return the distribution, where it is known; else what writes the kubelet's files beside it."""
    return line(distribution or node["elsewhere"].get("name", ""))


def _seconds(moment: str) -> Iterator[int]:
    try:
        yield seconds_of(moment)
    except InputError:
        return


# --- the format ---------------------------------------------------------------------------------------


def _written(samples: _Samples) -> str:
    families: dict[str, dict[str, int]] = {name: {} for name in HELP}
    for name, labels, value in samples:
        pairs = ",".join('%s="%s"' % (key, _escaped(text)) for key, text in labels.items())
        sample = name + ("{%s}" % pairs if pairs else "")
        # Texts that are the same once they are shortened are one sample.
        families[name][sample] = families[name].get(sample, 0) + value
    return "".join(
        "# HELP %s %s\n# TYPE %s gauge\n%s"
        % (name, HELP[name], name, "".join("%s %d\n" % sample for sample in found.items()))
        for name, found in families.items()
        if found
    )


def _escaped(text: str) -> str:
    """Return a label's value."""
    return line(text)[:_LONGEST_LABEL].replace("\\", "\\\\").replace('"', '\\"')
