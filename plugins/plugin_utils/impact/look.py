# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of the pods of one node with the wanted settings, as a look of the drift report. Pure.

Of one node it is not known whether another takes a pod: what is refused may come back elsewhere.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

from ...module_utils._base.quantity import counted
from ...module_utils._containers.crictl import hashed
from ..report.answers import mapping
from .fleet import ALONE, HOMELESS, REFUSED, Cluster, cluster_of_nodes, impact_of
from .workloads import OWNED, Owners, Remarks

_CHECK, _UNMEASURED = "pods-would-be-refused", "impact-unmeasured"
_REMEDY = "run the playbook kubenode.cpu_manager.impact, which says whether another node takes them"


def look_by_api(
    host: str,
    plan: Mapping[str, Any],
    beside: Mapping[str, Any],
    node: Mapping[str, Any],
    pods: Sequence[object],
    hide_names: bool = False,
) -> dict[str, Any]:
    """Return the answer of the look, in the form of the modules that look: {"node", "workloads", "findings", "notes",
    "note_checks"}, or `failed` and `msg`.

    plan: of rollout_info. beside: of admission_info. node, pods: as the API server gives them.
    """
    name = str(mapping(node.get("metadata")).get("name", ""))
    cluster = Cluster({host: (name, {**plan, "beside_cpus": beside})}, [node], pods, _owners(pods))
    return _look_of(cluster, Remarks(), hide_names)


def look_by_node(
    host: str, plan: Mapping[str, Any], beside: Mapping[str, Any], hide_names: bool = False
) -> dict[str, Any]:
    """Return the same of what the node tells of its own pods. beside: of admission_info, with pods."""
    remarks = Remarks()
    return _look_of(cluster_of_nodes({host: {**plan, "beside_cpus": beside}}, remarks), remarks, hide_names)


def _look_of(cluster: Cluster, remarks: Remarks, hide_names: bool) -> dict[str, Any]:
    impact = impact_of([cluster], remarks)
    rows = impact["nodes"]
    if not rows or not (rows[0]["exact"] or rows[0]["inexact"]):
        return {"failed": True, "msg": "; ".join(impact["notes"])}
    workloads = [_workload(row, hide_names) for row in impact["workloads"]]
    # Documented, and so of each node; what is a node's own is told of it.
    notes = [note for note in impact["notes"] if note != ALONE]
    if hide_names and notes:
        notes = ["not all pods are counted"]
    return {
        "node": rows[0],
        "workloads": workloads,
        "findings": list(_findings(workloads)),
        "notes": notes,
        "note_checks": [_UNMEASURED] * len(notes),
    }


def _owners(pods: Sequence[object]) -> Owners:
    """Return whoever makes pods, as made by nobody: of one node, owners are not asked for theirs."""
    found: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for metadata in (mapping(mapping(pod).get("metadata")) for pod in pods):
        owners = metadata.get("ownerReferences")
        for owner in map(mapping, owners if isinstance(owners, list) else ()):
            if owner.get("kind") in OWNED:
                place = (str(owner["kind"]), str(metadata.get("namespace", "")), str(owner.get("name", "")))
                found[place] = {"metadata": {}}
    return found


def _workload(row: Mapping[str, Any], hide_names: bool) -> dict[str, Any]:
    kind, _space, name = row["workload"].partition(" ")
    shown = "%s %s" % (kind, "/".join(map(hashed, name.split("/")))) if hide_names else row["workload"]
    refused = row["pods"][HOMELESS] + row["pods"][REFUSED]
    return {
        "workload": shown,
        # Where no other node is known.
        "fate": REFUSED if row["fate"] == HOMELESS else row["fate"],
        "when_empty": refused > 0 and not row["elsewhere"],
        "pods": sum(row["pods"].values()),
        "refused": refused,
        "reason": row["reason"],
        "message": row["message"],
        # These may name containers.
        "why": "" if hide_names else row["why"],
        "cure": "" if hide_names else row["cure"],
        "inexact": "not all is known" if hide_names and row["inexact"] else row["inexact"],
    }


def _findings(workloads: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for row in workloads:
        if row["fate"] == REFUSED:
            said = "%s, %s%s" % (row["reason"], row["message"], " (%s)" % row["why"] if row["why"] else "")
            unsure = ", not exact: " + row["inexact"] if row["inexact"] else ""
            yield {
                "check": _CHECK,
                "subject": row["workload"],
                "wanted": "%s admitted" % counted(row["pods"], "pod"),
                "found": "%d refused%s: %s%s"
                % (row["refused"], ", also by the empty node" if row["when_empty"] else "", said, unsure),
                "remedy": "; or ".join(filter(None, [row["cure"], _REMEDY])),
            }
