# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager of a stand-in, and its checkpoint; its policies are the collection's, proven in tests/conformance."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.quantity import millis
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    APP,
    Container,
    Pod,
    pod_from_manifest,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Checked, Finding
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    checkpoint_findings,
    memory_config,
    memory_state_findings,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import TopologyManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import NonePolicy, Policy, StaticPolicy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    STATIC,
    CPUManagerConfig,
    check_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

from ..node import MIRROR, PodHandler, Refusal
from .configuration import StartError

# Bytes, of a node whose files do not show.
MEMORY = 16 << 30


class Managers(PodHandler):
    """The CPU manager and the topology manager of a node with a configuration, and the checkpoint."""

    def __init__(self, node: Node, values: Mapping[str, Any]) -> None:
        """Raise StartError for what a kubelet refuses before it answers anybody."""
        self.node, self.values = node, values
        self.host = node.machine()
        prediction = predict_values(values, self.host)
        if prediction.refusal is not None:
            raise StartError("failed to run Kubelet: " + prediction.refusal.text)
        if prediction.checked is None:
            raise StartError("failed to run Kubelet: %s" % (prediction.unknown,))
        self.checked = prediction.checked
        self.config = _config_of(self.checked)
        self._lock = threading.Lock()
        self._manager: CPUManager

    # --- start ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Restore the checkpoint, or write a first one. Raises StartError."""
        content = self.node.checkpoint()
        memory_state = self.node.memory_state()
        for kind, findings in (
            ("cpu", checkpoint_findings(content, self.node.checkpoint_path, self.checked, self.host)),
            ("memory", memory_state_findings(memory_state, self.node, self.checked)),
        ):
            for finding in findings:
                if isinstance(finding, Finding) and finding.fatal:
                    raise StartError(
                        "Failed to start ContainerManager: start %s manager error: %s" % (kind, finding.text)
                    )
        state = None if content is None else check_checkpoint(content, self.config)
        self._manager = CPUManager(self._policy(), self._topology_manager(), state)
        # Pods that nobody told of yet keep their CPUs, until it is known which pods there are.
        self._untold = {
            uid: Pod(uid, uid, tuple(Container(name, APP, {}, {}) for name in containers))
            for uid, containers in self._manager.state.assignments.items()
        }
        self._manager.active.update(self._untold)
        # The policy none changes nothing, and yet there is a file.
        self._manager.state.stored |= content is None
        self._write()
        memory = memory_config(self.node, self.checked)
        first = memory_state_after(None, memory) if memory_state is None and memory is not None else None
        if first is not None:
            self._replace(self.node.memory_state_path, first)

    def _policy(self) -> Policy:
        if self.config.policy_name != STATIC:
            return NonePolicy()
        return StaticPolicy(self.host.topology, self.checked.options, self.config.reserved, self.host.minor)

    def _topology_manager(self) -> TopologyManager:
        return TopologyManager(
            self.values["topologyManagerPolicy"],
            self.values["topologyManagerScope"],
            self.host.nodes(),
            self.values.get("topologyManagerPolicyOptions"),
            self.host.distances,
        )

    # --- pods -------------------------------------------------------------------------------------------

    def admit(self, pod: Mapping[str, Any]) -> Refusal | None:
        """Return whether a pod may run; it has its CPUs then."""
        if MIRROR in pod["metadata"].get("annotations", {}):
            return None  # of a static pod that runs already
        admitted = pod_from_manifest(pod)
        with self._lock:
            if self._untold.pop(admitted.uid, None):
                self._manager.delete(admitted.uid)
            refusal = self._fits(admitted) or self._given(admitted)
            self._write()
        return refusal

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone. Its CPUs are free at the next reconciliation."""
        with self._lock:
            self._manager.delete(uid)

    def all_told(self) -> None:
        """Forget the pods that nobody has told of: every pod of the node was told of, so these are gone."""
        with self._lock:
            while self._untold:
                self._manager.delete(self._untold.popitem()[0])

    def reconcile(self) -> None:
        """Do what the kubelet does in each of its periods."""
        with self._lock:
            self._manager.remove_stale()
            self._write()

    def _fits(self, pod: Pod) -> Refusal | None:
        """Return whether the node has as much CPU as the pod asks for."""
        asked, used = _millicores(pod), sum(map(_millicores, self._manager.active.values()))
        allocatable = self.allocatable_millicores()
        if asked + used <= allocatable:
            return None
        numbers = (asked, used, allocatable)
        return Refusal(
            "OutOfcpu", "Node didn't have enough resource: cpu, requested: %d, used: %d, capacity: %d" % numbers
        )

    def _given(self, pod: Pod) -> Refusal | None:
        admission = self._manager.add(pod)
        return None if admission.admitted else Refusal(admission.reason, admission.message)

    def allocatable_millicores(self) -> int:
        """Return what pods may ask for."""
        reserved = len(CPUSet.parse(self.values.get("reservedSystemCPUs", ""))) * 1000
        if not reserved:
            reserved = sum(
                millis((self.values.get(field) or {}).get("cpu", "0")) for field in ("kubeReserved", "systemReserved")
            )
        return self.host.topology.num_cpus * 1000 - reserved

    def _write(self) -> None:
        """Write the checkpoint where the state was changed, all of it, whatever became of the file."""
        state = self._manager.state
        if not state.stored:
            return
        kind = format_for(self.config.minor, self.config.pod_level)
        content = write_checkpoint(self.config.policy_name, state.snapshot(), kind)
        self._replace(self.node.checkpoint_path, content)
        state.stored = False

    def _replace(self, name: str, content: bytes) -> None:
        """Write a file as a whole."""
        path = Path(self.node.tree.path(name))
        temporary = path.with_name("." + path.name)
        with open(temporary, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


def _config_of(checked: Checked) -> CPUManagerConfig:
    assert checked.cpu_manager is not None, "what is not refused has a CPU manager"
    return checked.cpu_manager


def _millicores(pod: Pod) -> int:
    return sum(container.requests.get("cpu", 0) for container in pod.containers)
