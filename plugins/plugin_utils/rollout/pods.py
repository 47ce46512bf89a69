# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pods of one node as the API server gives them: which stay in a drain, which hinder it, and who they are.

Pure. The drain itself is that of kubernetes.core.k8s_drain, which evicts what is judged here to leave.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

# What the API server gives. It is not read as a Pod of `workload`, because a pod that nobody can read hinders, too.
Manifest = Mapping[str, Any]

# Why a pod stays by right.
DAEMON_SET, MIRROR, ENDED = "daemon_set", "mirror", "ended"
# Why a pod may not be evicted at all.
NO_CONTROLLER, EMPTY_DIR = "no_controller", "empty_dir"
# Why a pod is still there.
ENDING, FINALIZER, NOT_EVICTED = "ending", "finalizer", "not_evicted"

_MIRROR = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")


class PodVerdict(NamedTuple):
    """A pod of a node that is drained: its namespace and name, why it is judged so, and all of that in words."""

    pod: str
    kind: str
    text: str = ""


class Drain(NamedTuple):
    """Who stays by right; who may not be evicted, so that no drain can succeed; and who else is still there."""

    stay: list[PodVerdict]
    refused: list[PodVerdict]
    left: list[PodVerdict]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, {field: list of verdicts as mappings}."""
        return {field: [verdict._asdict() for verdict in verdicts] for field, verdicts in zip(self._fields, self)}


def judge_drain(pods: Iterable[Manifest], force: bool = False, delete_emptydir_data: bool = False) -> Drain:
    """Return what a drain does with these pods of one node, and whether it is done: nobody is left.

    force: also evict pods that no controller makes again. delete_emptydir_data: also evict pods with an emptyDir.
    """
    drain = Drain([], [], [])
    for pod in pods:
        name, kind = name_of(pod), stays(pod)
        if kind:
            drain.stay.append(PodVerdict(name, kind))
            # Of the pods that stay, kubernetes.core evicts those of DaemonSets that have an emptyDir.
            if kind == DAEMON_SET and _has_emptydir(pod) and not delete_emptydir_data:
                drain.refused.append(_with_emptydir(name))
            continue
        drain.left.append(_left(name, pod))
        # One that ends already need not be evicted.
        if not _is_ending(pod):
            if _has_emptydir(pod) and not delete_emptydir_data:
                drain.refused.append(_with_emptydir(name))
            elif not controller_of(pod) and not force:
                drain.refused.append(PodVerdict(name, NO_CONTROLLER, name + ": no controller would make it again"))
    return drain


def stays(pod: Manifest) -> str:
    """Return why a pod stays on a node that is drained: of a DaemonSet, static, or ended; empty where it has to
    leave."""
    if _MIRROR in (_metadata(pod).get("annotations") or {}):
        return MIRROR
    if (pod.get("status") or {}).get("phase") in _ENDED and not _runs(pod):
        return ENDED
    return DAEMON_SET if controller_of(pod) == "DaemonSet" else ""


def controller_of(pod: Manifest) -> str:
    """Return the kind of the controller that makes the pod again; empty without one."""
    owners = _metadata(pod).get("ownerReferences") or ()
    return next((str(owner.get("kind", "")) for owner in owners if owner.get("controller")), "")


def name_of(pod: Manifest) -> str:
    """Return the pod's namespace and name."""
    metadata = _metadata(pod)
    return "%s/%s" % (metadata.get("namespace", ""), metadata.get("name", ""))


def identities(pods: Iterable[Manifest]) -> list[dict[str, Any]]:
    """Return the pods as manifests again, with what is needed to know which exist, and since when.

    Nothing else leaves with them: no environment, no arguments, no annotations but that of a static pod's UID.
    """
    return [_identity(pod) for pod in pods]


def _identity(pod: Manifest) -> dict[str, object]:
    metadata, spec, status = (pod.get(field) or {} for field in ("metadata", "spec", "status"))
    # Values are given as they are: Ansible has marked them as texts that are no templates.
    who = {key: metadata[key] for key in ("name", "namespace", "uid", "creationTimestamp") if key in metadata}
    annotations = metadata.get("annotations") or {}
    if _MIRROR in annotations:
        who["annotations"] = {_MIRROR: annotations[_MIRROR]}
    return {
        "metadata": who,
        "spec": {
            **{key: spec[key] for key in ("nodeName",) if key in spec},
            "containers": [{"name": container["name"]} for container in spec.get("containers") or ()],
        },
        "status": {key: status[key] for key in ("phase",) if key in status},
    }


def _left(name: str, pod: Manifest) -> PodVerdict:
    metadata = _metadata(pod)
    if not _is_ending(pod):
        text = "%s: it was not evicted, as a PodDisruptionBudget does not allow it, or as it came since"
        return PodVerdict(name, NOT_EVICTED, text % name)
    finalizers = metadata.get("finalizers") or ()
    if finalizers and not _runs(pod):
        text = "%s: its containers have ended, and it is kept by the finalizer %s"
        return PodVerdict(name, FINALIZER, text % (name, ", ".join(map(str, finalizers))))
    seconds = metadata.get("deletionGracePeriodSeconds")
    grace = "" if seconds is None else ", for which it has %s s, its grace period" % seconds
    return PodVerdict(name, ENDING, "%s: its containers have not ended%s" % (name, grace))


def _with_emptydir(name: str) -> PodVerdict:
    return PodVerdict(name, EMPTY_DIR, name + ": the content of its emptyDir would be lost")


def _is_ending(pod: Manifest) -> bool:
    return _metadata(pod).get("deletionTimestamp") is not None


def _runs(pod: Manifest) -> bool:
    """Return whether a container of it runs."""
    status = pod.get("status") or {}
    return any(
        (container.get("state") or {}).get("running") is not None
        for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for container in status.get(field) or ()
    )


def _has_emptydir(pod: Manifest) -> bool:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return any(volume.get("emptyDir") is not None for volume in volumes)


def _metadata(pod: Manifest) -> Mapping[str, Any]:
    return pod.get("metadata") or {}
