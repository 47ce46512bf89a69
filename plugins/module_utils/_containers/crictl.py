# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The containers of a node and their names: through crictl, by their log files, and as hashes where names are hidden.

What is written through it stays: the runtime remembers it, and writes it again when something else of the container
changes. Source: ListContainers and UpdateContainerResources in k8s.io/cri-api; the labels in
pkg/kubelet/types/labels.go.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from functools import partial
from typing import Any, Mapping, NamedTuple, Sequence

from .._base.command import Run, SilentError, run_command
from .._base.errors import MALFORMED, NodeError
from .._base.tree import Tree
from ..cpuset import CPUSet

# The names of containers, which the kubelet writes in the names of their log files.
#
# Its source: legacyLogSymlink in pkg/kubelet/kuberuntime/legacy.go.


DIRECTORY = "/var/log/containers"

_LOG = re.compile(r"([^_]+)_([^_]+)_(.+)-([0-9a-f]{64})\.log")


class LoggedContainer(NamedTuple):
    """A container: the pod's name, with its namespace, and its own."""

    pod_name: str
    name: str


def logged_containers(tree: Tree) -> dict[str, LoggedContainer]:
    """Return {container id: its names}, also of containers that have ended and whose logs are still there."""
    found = {}
    for file_name in tree.names(DIRECTORY):
        match = _LOG.fullmatch(file_name)
        if match:
            pod, namespace, name, container_id = match.groups()
            found[container_id] = LoggedContainer("%s/%s" % (namespace, pod), name)
    return found


_COMMAND = "crictl"
# sudo's path often ends before the first; Rancher's keep their own.
_MORE_PLACES = "/usr/local/bin:/var/lib/rancher/rke2/bin:/var/lib/rancher/k3s/data/current/bin"
# One container may hang by itself; a runtime that was silent so often in a row is not called again.
_MOST_SILENCES = 3

_POD = "io.kubernetes.pod.name"
_NAMESPACE = "io.kubernetes.pod.namespace"
_UID = "io.kubernetes.pod.uid"

_run_crictl = partial(run_command, patience=10)


class Sandbox(NamedTuple):
    """A pod's sandbox: its id, the pod's UID, and the annotations that the pod had when it was made."""

    id: str
    pod_uid: str
    annotations: Mapping[str, object]


class MadeWith(NamedTuple):
    """What a container was made with: CPU shares, and the limit of its memory in bytes, None without one."""

    shares: int
    memory: int | None


class Crictl:
    """One pass's dealings with the runtime.

    Attributes:
        names: the running containers by their ids, as read() found them.
        failure: why read() found none; empty otherwise. Then nothing can be written either.
    """

    def __init__(self, command: str, endpoint: str | None = None, run: Run = _run_crictl) -> None:
        self._command = [command, *(["--runtime-endpoint", endpoint] if endpoint else [])]
        self._run = run
        self._silences = 0
        self.names: dict[str, LoggedContainer] = {}
        self.failure = ""

    def read(self) -> None:
        """Read the running containers, in one call."""
        try:
            self.names = _names(self._answer(["ps", "-o", "json"]))
        except NodeError as error:
            self.failure = str(error)

    def sandboxes(self) -> list[Sandbox]:
        """Return the sandboxes of pods, in one call; none where the runtime fails, which is in `failure` then."""
        if self.failure:
            return []
        try:
            return _sandboxes(self._answer(["pods", "-o", "json"]))
        except NodeError as error:
            self.failure = str(error)
            return []

    def shares(self, container_id: str) -> int:
        """Return the CPU shares that a container was made with. Raises NodeError."""
        return self.made_with(container_id).shares

    def made_with(self, container_id: str) -> MadeWith:
        """Return what a container was made with. Raises NodeError."""
        self.check()
        text = self._answer(["inspect", "-o", "json", container_id])
        try:
            resources = json.loads(text)["info"]["runtimeSpec"]["linux"]["resources"]
            shares, memory = resources["cpu"]["shares"], (resources.get("memory") or {}).get("limit")
        except MALFORMED as error:
            raise NodeError("what it prints cannot be read: %r" % error, where="crictl inspect") from error
        if isinstance(shares, bool) or not isinstance(shares, int):
            raise NodeError("the shares of container %s are %r" % (container_id, shares), where="crictl inspect")
        is_limit = isinstance(memory, int) and not isinstance(memory, bool) and memory > 0
        return MadeWith(shares, memory if is_limit else None)

    def serves(self, container_id: str) -> bool:
        """Return whether this container's cpuset is the runtime's to write: where it does not answer, that is not
        known."""
        return bool(self.failure) or container_id in self.names

    def check(self) -> None:
        """Raise NodeError when the runtime is not to be called any more."""
        if self.failure:
            raise NodeError(self.failure)

    def set_cpus(self, container_id: str, cpus: CPUSet) -> None:
        """Have the runtime write a container's cpuset. Raises NodeError."""
        self.check()
        self._answer(["update", "--cpuset-cpus", str(cpus), container_id])

    def _answer(self, arguments: Sequence[str]) -> str:
        try:
            answer = self._run([*self._command, *arguments])
        except SilentError as error:
            self._silences += 1
            if self._silences == _MOST_SILENCES:
                self.failure = "the container runtime is not called any more: %s" % error
            raise
        self._silences = 0
        return answer


def find_crictl(tree: Tree, endpoint: str | None = None, run: Run = _run_crictl) -> Crictl | None:
    """Return the runtime of this machine; None for a saved tree, and where crictl is not installed."""
    if not tree.live:
        return None
    command = shutil.which(_COMMAND) or shutil.which(_COMMAND, path=_MORE_PLACES)
    return None if command is None else Crictl(os.path.abspath(command), endpoint, run)


def _names(text: str) -> dict[str, LoggedContainer]:
    """Return {container id: its names} of what C(crictl ps) prints. Raises NodeError."""
    try:
        return {container["id"]: _named(container) for container in json.loads(text)["containers"] or ()}
    except MALFORMED as error:
        raise NodeError("what it prints cannot be read: %r" % error, where="crictl ps") from error


def _named(container: Any) -> LoggedContainer:
    labels = container.get("labels") or {}
    # A container that no kubelet has made belongs to no pod.
    pod_name = "%s/%s" % (labels.get(_NAMESPACE, ""), labels[_POD]) if _POD in labels else ""
    return LoggedContainer(pod_name, str(container["metadata"]["name"]))


def _sandboxes(text: str) -> list[Sandbox]:
    """Return what C(crictl pods) prints; of no kubelet's pods nothing. Raises NodeError."""
    try:
        found = []
        for item in json.loads(text)["items"] or ():
            labels, annotations = item.get("labels") or {}, item.get("annotations") or {}
            if isinstance(labels.get(_UID), str) and isinstance(annotations, dict):
                found.append(Sandbox(item["id"], labels[_UID], annotations))
        return found
    except MALFORMED as error:
        raise NodeError("what it prints cannot be read: %r" % error, where="crictl pods") from error


# The names of containers, in full or as hashes.


_DIGITS = 8


def hashed(name: str) -> str:
    """Return what takes the place of a name: 8 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def with_hashes(names: Mapping[str, LoggedContainer]) -> dict[str, LoggedContainer]:
    """Return {container id: its names} with hashes, for names that are in no file of the node."""
    return {
        container_id: LoggedContainer("/".join(map(hashed, container.pod_name.split("/"))), hashed(container.name))
        for container_id, container in names.items()
    }


def find_names(
    tree: Tree, endpoint: str | None = None, hide_names: bool = False
) -> tuple[Mapping[str, LoggedContainer], bool]:
    """Return names as names_of() gives them, from the container runtime where there are no logs.

    endpoint: the socket of the container runtime; None for what crictl is configured with. hide_names: whether names
    that the runtime gives become hashes; the files of such a node have hashes.
    """
    names, all_named = names_of(tree)
    if names:
        return names, all_named
    runtime = find_crictl(tree, endpoint)
    if runtime is not None:
        runtime.read()
    names, all_named = names_of(tree, runtime)
    return with_hashes(names) if hide_names else names, all_named


def names_of(tree: Tree, runtime: Crictl | None = None) -> tuple[Mapping[str, LoggedContainer], bool]:
    """Return {container id: its names}, and whether all that run are in it.

    runtime: one that was read already. The logs have them, too: the kubelet makes a link for each.
    """
    logged = logged_containers(tree)
    if runtime is not None and not runtime.failure:
        # Another runtime than the kubelet's would know none of them.
        return {**logged, **runtime.names}, True
    return logged, bool(logged)
