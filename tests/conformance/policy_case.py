# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One policy case: a kubelet's start and what happens to it, answered in the form of the vectors."""

from __future__ import annotations

from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import Pod, pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import Hint, TopologyManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import (
    ALPHA_GATE,
    BETA_GATE,
    parse_static_options,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import (
    StaticPolicy,
    new_static_policy,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import StateError, restore_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import restore_error
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import CheckpointError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology

Answer = dict[str, Any]

CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
ZERO_RESERVATION = (
    "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"
)


class PolicyCase:
    """A kubelet, its file, and the case that it goes through."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case = case
        self.topology = CPUTopology(case["cpus"])
        self.minor = minor_version(case["version"])
        state = case.get("state")
        self.file: bytes | None = None if state is None else state.encode("utf-8")

    def answer(self) -> Answer:
        """The case's expected answer, as this project gives it."""
        try:
            self.start()
        except StartError as error:
            return self._with_file({"error": str(error)})
        summary = self.manager.policy.summary
        operations: list[Answer] = []
        answer: Answer = {
            "reserved": str(summary.reserved),
            "reserved_physical": str(summary.reserved_physical),
            "allocatable": str(summary.allocatable),
            "all": str(self.topology.all_cpus()),
            "cpus_per_core": self.topology.cpus_per_core,
            "initial": {"op": "start", **self._state()},
            "ops": operations,
        }
        for operation in self.case["ops"]:
            told = getattr(self, operation["op"])(operation)
            operations.append({"op": operation["op"], **told})
            if "error" in told:
                break
        return self._with_file(answer)

    def start(self) -> None:
        """Start the kubelet. Raises StartError with its text."""
        state = None
        try:
            policy = self._new_policy()
            if self.file is not None:
                state = self._restored(self.file)
            manager = TopologyManager(
                self.case["topology_policy"], self.case["topology_scope"], list(self.topology.numa_nodes)
            )
            self.manager = CPUManager(policy, manager, state)
        except (KubeletError, StateError) as error:
            raise StartError(getattr(error, "text", str(error))) from error
        self._store()

    def _new_policy(self) -> StaticPolicy:
        reserved = CPUSet.parse(self.case.get("reserved_cpus", ""))
        millicores = self.case.get("reserved_milli", 1000 * len(reserved))
        if not millicores:
            raise KubeletError(ZERO_RESERVATION)
        gates = self.case["feature_gates"]
        try:
            options = parse_static_options(
                self.case["options"], self.minor, gates.get(ALPHA_GATE, False), gates.get(BETA_GATE, True)
            )
            return new_static_policy(
                self.topology, options, millicores, reserved, self.case["topology_policy"], self.minor
            )
        except KubeletError as error:
            raise KubeletError("new static policy error: " + error.text) from error

    def _restored(self, content: bytes) -> State:
        try:
            return restore_state(content, "static", self.minor)
        except CheckpointError as error:
            raise KubeletError(restore_error(error, CHECKPOINT)) from error

    def add(self, operation: Mapping[str, Any]) -> Answer:
        """A pod arrives."""
        pod = pod_from_manifest(manifest_of(operation["pod"]), as_admitted=False)
        admission = self.manager.add(pod)
        self._store()
        answer: Answer = {"admit": admission.admitted, "qos": pod.qos(self.minor), **self._state()}
        if not admission.admitted:
            answer.update(reason=admission.reason, message=admission.message)
        if admission.hints:
            answer["hints"] = [hints_answer(container, hints) for container, hints in admission.hints]
        nothing = Hint(None, False)
        names = [container.name for container in pod.containers]
        answer["affinity"] = {name: hint_answer(admission.affinity.get(name, nothing)) for name in names}
        answer["cpusets"] = {name: str(self.manager.cpus_of(pod.uid, name)) for name in names}
        exclusive = {
            name: str(CPUSet.from_mask(mask)) for name, mask in self.manager.state.assignments.get(pod.uid, {}).items()
        }
        if exclusive:
            answer["exclusive"] = exclusive
            answer["cpus_to_reuse"] = self._reusable(pod)
        return answer

    def _reusable(self, pod: Pod) -> str:
        policy = self.manager.policy
        return str(CPUSet.from_mask(policy.reusable.get(pod.uid, 0))) if isinstance(policy, StaticPolicy) else ""

    def remove(self, operation: Mapping[str, Any]) -> Answer:
        """A container is removed."""
        self.manager.remove(operation["pod_uid"], operation["container"])
        self._store()
        return self._state()

    def restart(self, _operation: Mapping[str, Any]) -> Answer:
        """The kubelet starts again with its file."""
        active = self.manager.active
        try:
            self.start()
        except StartError as error:
            return self._with_file({"error": str(error), "default": "", "assignments": None})
        self.manager.active = active
        return self._state()

    def _store(self) -> None:
        if self.manager.state.stored:
            self.file = self.manager.checkpoint()

    def _state(self) -> Answer:
        state = self.manager.state.snapshot()
        assignments = {
            pod: {container: str(cpus) for container, cpus in containers.items()}
            for pod, containers in state.assignments.items()
        }
        return {"default": str(state.default_cpu_set), "assignments": assignments}

    def _with_file(self, answer: Answer) -> Answer:
        return answer if self.file is None else {**answer, "checkpoint": self.file.decode("utf-8")}


class StartError(Exception):
    """The kubelet does not start; the message is its own."""


def manifest_of(pod: Mapping[str, Any]) -> dict[str, Any]:
    """A case's pod as a Kubernetes manifest."""

    def containers(field: str) -> list[dict[str, Any]]:
        return [
            {
                "name": container["name"],
                "restartPolicy": container.get("restart_policy"),
                "resources": {"requests": container.get("requests"), "limits": container.get("limits")},
            }
            for container in pod.get(field, ())
        ]

    spec = {"containers": containers("containers"), "initContainers": containers("init_containers")}
    return {"metadata": {"uid": pod["uid"]}, "spec": spec}


def hint_answer(hint: Hint) -> Answer:
    """A hint with its mask as a list of NUMA node ids."""
    return {"mask": None if hint.mask is None else list(iterate_bits(hint.mask)), "preferred": hint.preferred}


def hints_answer(container: str, hints: list[Hint] | None) -> Answer:
    """What was asked for one container, or for the pod as a whole."""
    told = None if hints is None else {"cpu": [hint_answer(hint) for hint in hints]}
    return {"container": container, "hints": told} if container else {"hints": told}
