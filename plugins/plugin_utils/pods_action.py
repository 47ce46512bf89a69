# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugins that send pods to a node: what a module needs of them, and nothing else that a pod is given."""

from __future__ import annotations

from typing import Any, Mapping, MutableMapping

from .guarded_action import GuardedAction

_RESOURCES = {"requests": None, "limits": None}
_CONTAINERS = [{"name": None, "restartPolicy": None, "resources": _RESOURCES}]
_STATUSES = [{"name": None, "allocatedResources": None}]
_SPEC = {
    "nodeName": None,
    "replicas": None,
    "resources": _RESOURCES,
    "initContainers": _CONTAINERS,
    "containers": _CONTAINERS,
}
# What module_utils/_containers/pods.py reads of a pod and of what makes pods; None: the value as it is.
_POD: dict[str, Any] = {
    "kind": None,
    "metadata": {
        "name": None,
        "namespace": None,
        "uid": None,
        "creationTimestamp": None,
        "annotations": {"kubernetes.io/config.mirror": None},
    },
    "spec": {**_SPEC, "template": {"spec": _SPEC}},
    "status": {
        "qosClass": None,
        "phase": None,
        "initContainerStatuses": _STATUSES,
        "containerStatuses": _STATUSES,
    },
}
_POD["items"] = [_POD]
# What module_utils/_containers/inspect.py reads of a container as crictl inspects it.
_LABELS = ("io.kubernetes.pod.uid", "io.kubernetes.pod.name", "io.kubernetes.pod.namespace")
_CONTAINER = {
    "status": {
        "id": None,
        "state": None,
        "createdAt": None,
        "labels": dict.fromkeys((*_LABELS, "io.kubernetes.container.name")),
    },
    "info": {"runtimeSpec": {"linux": {"cgroupsPath": None, "resources": {"cpu": {"shares": None}}}}},
}
_OPTIONS = {"pods": [_POD], "containers": [_CONTAINER]}


def needed(value: Any, form: Any) -> Any:
    """What a form names of a value. Of what has another type than the form, the type is left, for the module to refuse.

    form: {key: the form of its value}, [the form of each item], None for a value that stays.
    """
    if isinstance(value, Mapping) and isinstance(form, dict):
        return {key: needed(value[key], form[key]) for key in form if key in value}
    if isinstance(value, (list, tuple)) and isinstance(form, list):
        return [needed(item, form[0]) for item in value]
    if form is None:
        return value
    empty: tuple[Any, ...] = ("", {}, [])
    return next((nothing for nothing in empty if isinstance(value, type(nothing))), value)


class PodsAction(GuardedAction):
    """Environments, arguments and volumes of pods stay on the controller."""

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """The result of the task."""
        self._task.args = {
            name: needed(value, _OPTIONS[name]) if name in _OPTIONS else value
            for name, value in self._task.args.items()
        }
        return super().act(task_vars)
