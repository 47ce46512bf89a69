# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One policy case: a kubelet's start and what happens to it, answered in the form of the vectors."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import INIT, Pod, pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import POD_LEVEL_MANAGERS, Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import seen_by
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    Hint,
    HintProvider,
    TopologyManager,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import (
    ALPHA_GATE,
    BETA_GATE,
    parse_static_options,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.quota import (
    CONTAINER,
    cpu_of_pod,
    is_pod_unlimited,
    isolation_levels,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import (
    StaticPolicy,
    new_static_policy,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import StateError, restore_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import restore_error
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import CheckpointError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    REFUSED,
    MemoryConfig,
    judge_memory,
    restore_memory,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import CPUTopology

Answer = dict[str, Any]

CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
MEMORY_STATE = "/var/lib/kubelet/memory_manager_state"
# Of the quotas, in microseconds.
PERIOD = 100000
_MEMORY = ("nodes", "reserved")
ZERO_RESERVATION = (
    "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"
)


class PolicyCase:
    """A kubelet, its file, and the case that it goes through."""

    def __init__(self, case: Mapping[str, Any], with_limits: bool = False) -> None:
        """Begin a case. with_limits: say what is written to limit CPU, too."""
        self.case = case
        self.with_limits = with_limits
        self.topology = CPUTopology(case["cpus"])
        self.minor = minor_version(case["version"])
        self.gates = Gates(case["feature_gates"], self.minor)
        self.removed: set[tuple[str, str]] = set()
        self.memory: StaticMemory | None = None
        self.memory_file: bytes | None = None
        state = case.get("state")
        self.file: bytes | None = None if state is None else state.encode("utf-8")

    def answer(self) -> Answer:
        """Return the case's expected answer, as this project gives it."""
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
                self.case["topology_policy"],
                self.case["topology_scope"],
                [int(node) for node in self.case.get("memory", {}).get("nodes", self.topology.numa_nodes)],
            )
            kind = format_for(self.minor, self.gates.enabled(POD_LEVEL_MANAGERS))
            self.manager = CPUManager(policy, manager, state, kind=kind)
            self.manager.others = list(self._others())
        except (KubeletError, StateError) as error:
            raise StartError(getattr(error, "text", str(error))) from error
        self._store()

    def _others(self) -> Iterator[HintProvider]:
        if "memory" not in self.case:
            return
        amounts = [
            {int(node): {"memory": size} for node, size in self.case["memory"][name].items()} for name in _MEMORY
        ]
        config = MemoryConfig("Static", amounts[1], self.minor, self.gates.enabled(POD_LEVEL_MANAGERS), amounts[0])
        state = None
        if self.memory_file is not None:
            judgement = judge_memory(self.memory_file, config)
            if judgement.verdict == REFUSED:
                raise KubeletError(judgement.text(MEMORY_STATE))
            state = restore_memory(self.memory_file, config)
        self.memory = StaticMemory(config, state)
        yield self.memory

    def _new_policy(self) -> StaticPolicy:
        reserved = CPUSet.parse(self.case.get("reserved_cpus", ""))
        millicores = self.case.get("reserved_milli", 1000 * len(reserved))
        if not millicores:
            raise KubeletError(ZERO_RESERVATION)
        gates = self.gates.enabled(ALPHA_GATE), self.gates.enabled(BETA_GATE)
        try:
            options = parse_static_options(self.case["options"], self.minor, *gates)
            return new_static_policy(
                self.topology, options, millicores, reserved, self.case["topology_policy"], self.minor
            )
        except KubeletError as error:
            raise KubeletError("new static policy error: " + error.text) from error

    def _restored(self, content: bytes) -> State:
        try:
            return restore_state(content, "static", self.minor, self.gates.enabled(POD_LEVEL_MANAGERS))
        except CheckpointError as error:
            raise KubeletError(restore_error(error, CHECKPOINT)) from error

    def add(self, operation: Mapping[str, Any]) -> Answer:
        """Return a pod arrives."""
        return self._admitted(pod_from_manifest(manifest_of(operation["pod"]), as_admitted=False))

    def _admitted(self, pod: Pod) -> Answer:
        pod = seen_by(self.gates, pod)
        admission = self.manager.add(pod)
        if admission.admitted:
            # The memory manager forgets an init container when the next one starts.
            for container in pod.containers:
                if container.kind == INIT and self.memory is not None:
                    self.memory.remove(pod.uid, container.name)
        self._store()
        answer: Answer = {"admit": admission.admitted, "qos": pod.qos(self.minor), **self._state()}
        if not admission.admitted:
            answer.update(reason=admission.reason, message=admission.message)
        if admission.hints:
            answer["hints"] = [
                hints_answer(container, hints, bool(number))
                for container, all_hints in admission.hints
                for number, hints in enumerate(all_hints)
            ]
        if admission.admitted and self.with_limits:
            answer.update(self._limits(pod))
        nothing = Hint(None, False)
        names = [container.name for container in pod.containers]
        answer["affinity"] = {name: hint_answer(admission.affinity.get(name, nothing)) for name in names}
        answer["cpusets"] = {name: str(self.manager.cpus_of(pod.uid, name)) for name in names}
        exclusive = {
            name: str(CPUSet.from_mask(mask)) for name, mask in self.manager.state.assignments.get(pod.uid, {}).items()
        }
        if exclusive:
            answer["exclusive"] = exclusive
            reusable = getattr(self.manager.policy, "reusable", {})
            if pod.uid in reusable:
                answer["cpus_to_reuse"] = str(CPUSet.from_mask(reusable[pod.uid]))
        return answer

    def _limits(self, pod: Pod) -> Answer:
        levels = isolation_levels(pod, self.manager.state.assignments.get(pod.uid, ()), self.minor)
        is_unlimited = is_pod_unlimited(pod, levels.values())
        cpu = cpu_of_pod(pod, is_unlimited, PERIOD, self.minor)
        return {
            "isolation": levels,
            "quota_off": [name for name, level in levels.items() if level == CONTAINER],
            "pod_quota_off": is_unlimited,
            "pod_cpu": {"shares": cpu.shares, **({} if cpu.quota_us is None else {"quota": cpu.quota_us})},
        }

    def remove(self, operation: Mapping[str, Any]) -> Answer:
        """Remove a container."""
        uid, name = operation["pod_uid"], operation["container"]
        self.manager.remove(uid, name)
        self.removed.add((uid, name))
        pod = self.manager.active.get(uid)
        if self.with_limits and pod and all((uid, container.name) in self.removed for container in pod.containers):
            self.manager.delete(uid)
        self._store()
        return self._state()

    def gone(self, operation: Mapping[str, Any]) -> Answer:
        """Return a pod has ended, and what it had is found to be stale."""
        self.manager.delete(operation["pod_uid"])
        return self.stale(operation)

    def stale(self, _operation: Mapping[str, Any]) -> Answer:
        """Return what the reconcile loop does first."""
        self.manager.remove_stale()
        self._store()
        return self._state()

    def restart(self, operation: Mapping[str, Any]) -> Answer:
        """Return the kubelet starts again with its file, and with other gates, if these are given."""
        active = self.manager.active
        self.gates = Gates(operation.get("feature_gates", self.gates.values), self.minor)
        try:
            self.start()
        except StartError as error:
            empty = {} if self.with_limits else {"default": "", "assignments": None}
            return self._with_file({"error": str(error), **empty}, ("checkpoint",))
        if not operation.get("readmit"):
            self.manager.active = active
            return self._state()
        answer = self._state()
        self.manager.is_ready = False
        answer["readmit"] = [{"uid": pod.uid, **self._admitted(pod)} for pod in active.values()]
        self.manager.is_ready = True
        return answer

    def _store(self) -> None:
        if self.manager.state.stored:
            self.file = self.manager.checkpoint()
        if self.memory is not None:
            self.memory_file = self.memory.state()

    def _state(self) -> Answer:
        state = self.manager.state.snapshot()
        assignments = {
            pod: {container: str(cpus) for container, cpus in containers.items()}
            for pod, containers in state.assignments.items()
        }
        answer: Answer = {"default": str(state.default_cpu_set), "assignments": assignments}
        if state.pod_assignments:
            answer["pods"] = {uid: str(cpus) for uid, cpus in state.pod_assignments.items()}
        if self.memory is not None:
            answer["memory"] = {
                uid: {name: blocks_answer(blocks) for name, blocks in own.items()}
                for uid, own in self.memory.entries.items()
            }
            answer["memory_nodes"] = {
                str(node): {
                    "assignments": place["numberOfAssignments"],
                    "cells": place["cells"],
                    **{name: place["memoryMap"]["memory"][name] for name in ("free", "reserved")},
                }
                for node, place in self.memory.machine.items()
            }
            if self.memory.pods:
                answer["memory_pods"] = {uid: blocks_answer(blocks) for uid, blocks in self.memory.pods.items()}
        return answer

    def _with_file(self, answer: Answer, names: Iterable[str] = ("checkpoint", "memory_checkpoint")) -> Answer:
        files = {"checkpoint": self.file, "memory_checkpoint": self.memory_file}
        pairs = ((name, files[name]) for name in names)
        return {**answer, **{name: content.decode("utf-8") for name, content in pairs if content is not None}}


class StartError(Exception):
    """The kubelet does not start; the message is its own."""


def manifest_of(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case's pod as a Kubernetes manifest."""

    def containers(field: str) -> list[dict[str, Any]]:
        return [
            {
                "name": container["name"],
                "restartPolicy": container.get("restart_policy"),
                "resources": {"requests": container.get("requests"), "limits": container.get("limits")},
            }
            for container in pod.get(field, ())
        ]

    spec: dict[str, Any] = {"containers": containers("containers"), "initContainers": containers("init_containers")}
    if "resources" in pod:
        spec["resources"] = pod["resources"]
    return {"metadata": {"uid": pod["uid"]}, "spec": spec}


def blocks_answer(blocks: Iterable[Mapping[str, Any]]) -> list[Answer]:
    """Return blocks of memory as the vectors write them."""
    return [{"numa": block["numaAffinity"], "size": block["size"], "type": block["type"]} for block in blocks]


def hint_answer(hint: Hint) -> Answer:
    """Return a hint with its mask as a list of NUMA node ids."""
    return {"mask": None if hint.mask is None else list(iterate_bits(hint.mask)), "preferred": hint.preferred}


def hints_answer(container: str, hints: Mapping[str, list[Hint] | None] | None, of_memory: bool) -> Answer:
    """Return what one manager was asked for one container, or for the pod as a whole."""
    told = None if hints is None else {name: list(map(hint_answer, found or ())) for name, found in hints.items()}
    manager = {"manager": "memory"} if of_memory else {}
    return {**({"container": container} if container else {}), "hints": told, **manager}
