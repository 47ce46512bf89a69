# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The live pods of a cluster as its API server gives them, each with the workload that makes it again. Pure.

What cannot be read, or is not looked at, is told in a line, and does not keep the rest from being read.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping, NamedTuple

from ...module_utils._base.errors import MALFORMED, CPUManagerError
from ...module_utils._containers.pods import Pod, pod_from_manifest
from ..report.answers import few, line, mapping
from ..rollout.pods import DAEMON_SET, ENDED, MIRROR, name_of, stays
from ..rollout.scheduling import Rules, rules_of

# More than runs anywhere: what each costs must not add up.
MOST_CONTAINERS = 1000
# Of what a line tells, those that are named.
# Of why a pod cannot be read, in characters: it may have any part of the pod in it.
_LONGEST = 200
_DEFAULT_SCHEDULER = "default-scheduler"
# Who is made by others in turn: a ReplicaSet by a Deployment, a Job by a CronJob.
OWNED = ("ReplicaSet", "Job")

# {(kind, namespace, name): the manifest of a ReplicaSet or a Job}.
Owners = Mapping[tuple[str, str, str], Mapping[str, Any]]


class LiveWorkload(NamedTuple):
    """What makes pods again; a pod that nobody does has its own name."""

    kind: str
    namespace: str
    name: str

    def to_text(self) -> str:
        """Return the name as it is shown, and as a waiver names it, such as "Deployment shop/db"."""
        return "%s %s/%s" % self


class LivePod(NamedTuple):
    """A pod of a node. kind: the number of a pod that is like it, in Kinds. stays: why a drain leaves it; or empty."""

    name: str
    workload: LiveWorkload
    node: str
    created: str
    stays: str
    kind: int
    rules: Rules


def admission_order(pods: Iterable[LivePod], is_drained: bool) -> list[LivePod]:
    """Return the pods of a node as a kubelet that starts admits them.

    Those of its files come first, then those of the API server, of both the oldest first; where the node is drained,
    those that a drain leaves are there before the others come back. Which of two of the same second comes first is not
    said, and is their names' order here.
    Source: HandlePodAdditions in pkg/kubelet/kubelet.go, PodsByCreationTime in pkg/kubelet/util/sliceutils.
    """

    def place(pod: LivePod) -> tuple[bool, bool, str, str]:
        return pod.stays != MIRROR, is_drained and pod.stays != DAEMON_SET, pod.created, pod.name

    return sorted(pods, key=place)


class Remarks:
    """What is to be told beside the answer: one line for each thing that can be wrong, with whom it is about."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}

    def add(self, what: str, name: str) -> None:
        """Add a name to a remark. what: a text with %s for the names."""
        self._names.setdefault(what, {})[name] = None

    def to_list(self) -> list[str]:
        """Return the texts, in the order in which they were found."""
        return [what % few(list(names)) for what, names in self._names.items()]


class Kinds:
    """Pods that are alike for a kubelet, each kind once: by what their containers ask for, not by their names."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self._numbers: dict[object, int] = {}

    def number(self, pod: Pod) -> int:
        """Return that of the kind of this pod."""
        bare = pod._replace(uid="", name="", created="", node="", phase="", is_static=False)
        key = repr(bare)
        if key not in self._numbers:
            self._numbers[key] = len(self.pods)
            self.pods.append(bare)
        return self._numbers[key]


def read_pods(manifests: Iterable[object], owners: Owners, kinds: Kinds, remarks: Remarks) -> list[LivePod]:
    """Return the pods that run on a node or are about to."""
    found, all_rules = [], _AllRules()
    for manifest in manifests:
        try:
            pod = _live_pod(mapping(manifest), owners, kinds, remarks, all_rules)
        except (CPUManagerError, *MALFORMED) as error:
            # Not by what is wrong, which may be another thing for each.
            remarks.add(
                "not counted, as they cannot be read: %s", "%s (%s)" % (_name(manifest), line(str(error))[:_LONGEST])
            )
            continue
        if pod is not None:
            found.append(pod)
    return found


def _live_pod(
    manifest: Mapping[str, Any], owners: Owners, kinds: Kinds, remarks: Remarks, all_rules: _AllRules
) -> LivePod | None:
    why = stays(manifest)
    if why == ENDED:
        return None
    name, spec = name_of(manifest), manifest["spec"]
    if len(spec.get("containers") or ()) + len(spec.get("initContainers") or ()) > MOST_CONTAINERS:
        remarks.add("not counted, as they have more than %d containers: %%s" % MOST_CONTAINERS, name)
        return None
    pod = pod_from_manifest(manifest)
    if not pod.node:
        remarks.add("not counted, as they are on no node yet: %s", name)
        return None
    if spec.get("schedulerName", _DEFAULT_SCHEDULER) != _DEFAULT_SCHEDULER:
        remarks.add("a scheduler of its own decides where these come back, of which only the nodes are known: %s", name)
    workload = workload_of(manifest, owners, remarks)
    return LivePod(name, workload, pod.node, pod.created, why, kinds.number(pod), all_rules.of(spec))


class _AllRules:
    """Where pods may run, once for all that say the same."""

    def __init__(self) -> None:
        self._found: dict[str, Rules] = {}

    def of(self, spec: Mapping[str, Any]) -> Rules:
        said = [spec.get(field) for field in ("nodeSelector", "tolerations", "affinity")]
        return self._found.setdefault(json.dumps(said), rules_of(spec))


def workload_of(manifest: Mapping[str, Any], owners: Owners, remarks: Remarks) -> LiveWorkload:
    """Return what makes this pod again, in the end."""
    namespace, name = (str(mapping(manifest.get("metadata")).get(field, "")) for field in ("namespace", "name"))
    owner = _controller(manifest)
    if owner is None or owner["kind"] == "Node":
        return LiveWorkload("Pod", namespace, name)
    kind, name = str(owner["kind"]), str(owner["name"])
    if kind in OWNED:
        above = owners.get((kind, namespace, name))
        if above is None:
            remarks.add("what owns these is not known, so their own names are shown: %s", "%s %s" % (kind, name))
        else:
            owner = _controller(above)
            kind, name = (str(owner["kind"]), str(owner["name"])) if owner else (kind, name)
    return LiveWorkload(kind, namespace, name)


def _controller(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    owners = mapping(manifest.get("metadata")).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def owners_of(manifests: Iterable[object], kind: str) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """Return ReplicaSets or Jobs by what pods call them; what cannot be read is left out."""
    found: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for manifest in map(mapping, manifests):
        metadata = mapping(manifest.get("metadata"))
        found[kind, str(metadata.get("namespace", "")), str(metadata.get("name", ""))] = {
            "metadata": {"ownerReferences": metadata.get("ownerReferences") or ()}
        }
    return found


def _name(manifest: object) -> str:
    try:
        return line(name_of(mapping(manifest))) if isinstance(manifest, Mapping) else "something that is no pod"
    except MALFORMED:
        return "a pod without a name"
