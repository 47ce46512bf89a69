# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would the kubelet of this node start: its configuration, its machine and its managers' states together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ..kubelet.start.checked import Checked
from ..kubelet.start.finding import Finding, Host, Unknown, harmful, refused
from ..kubelet.start.prediction import Prediction
from ..state.acceptance import checkpoint_after, restore_state
from ..state.assignments import State
from ..state.checkpoint import restore_error
from ..state.config import CPUManagerConfig
from ..state.formats import CheckpointError
from ..state.verdict import REFUSED, judge
from ..topology.kubelet_view import CPUTopology
from .memory_state import MemoryPlan, memory_config, plan_memory_state, stored_state
from .node import Node
from .prediction import predict_configuration

if TYPE_CHECKING:
    from ..state.memory_formats import MemoryStateError


def start_report(node: Node, wanted: Mapping[str, object]) -> dict[str, Any]:
    """What is predicted of a start with `wanted` in the configuration, as plain data; see the module start_check.

    Raises NodeError where there is no kubelet.
    """
    prediction = predict_start(node, wanted)
    return {
        "starts": prediction.starts,
        "kubelet_version": "1.%d" % node.minor,
        "findings": [finding.to_dict() for finding in prediction.findings],
        "unknown": [doubt.to_dict() for doubt in prediction.unknown],
        "notes": node.version_notes(),
    }


def predict_start(node: Node, wanted: Mapping[str, object] | None = None) -> Prediction:
    """Would the kubelet of this node start with its states as they are, and `wanted` in its configuration?"""
    return with_states(node, predict_configuration(node, wanted), *_stored_states(node))


def with_states(
    node: Node,
    prediction: Prediction,
    checkpoint: bytes | CheckpointError | None,
    memory_state: bytes | MemoryStateError | None,
) -> Prediction:
    """The prediction with what the managers make of these states. An error: the kubelet cannot read the file."""
    checked = prediction.checked
    if checked is None:
        return prediction
    found = [
        *checkpoint_findings(checkpoint, node.checkpoint_path, checked, node.machine()),
        *memory_state_findings(memory_state, node, checked),
    ]
    findings = [entry for entry in found if isinstance(entry, Finding)]
    unknown = [entry for entry in found if isinstance(entry, Unknown)]
    return prediction._replace(
        findings=[*checked.before, *findings, *checked.after], unknown=[*prediction.unknown, *unknown]
    )


def states_after(node: Node) -> dict[str, bytes | None]:
    """{path: content} of the managers' states after a start that comes up. Raises AssertionError for any other."""
    checked = predict_start(node).checked
    config = None if checked is None else checked.cpu_manager
    if checked is None or config is None:
        raise AssertionError("a kubelet that does not start")
    from ..state.memory_manager import memory_state_after

    memory, (checkpoint, memory_state) = memory_config(node, checked), _stored_states(node)
    return {
        node.checkpoint_path: checkpoint_after(_bytes(checkpoint), config),
        node.memory_state_path: None if memory is None else memory_state_after(_bytes(memory_state), memory),
    }


def _bytes(content: bytes | Exception | None) -> bytes | None:
    if isinstance(content, Exception):
        raise AssertionError("a kubelet that does not start")
    return content


def memory_plan(node: Node, prediction: Prediction) -> MemoryPlan:
    """What becomes of the memory manager's state with a configuration of which this is predicted."""
    content = node.memory_state()
    if content is None or prediction.checked is None:
        return MemoryPlan(content, "")
    return plan_memory_state(content, memory_config(node, prediction.checked))


# --- the checkpoint --------------------------------------------------------------------------------------


def checkpoint_findings(
    content: bytes | CheckpointError | None, path: str, checked: Checked, host: Host
) -> Iterator[Finding]:
    """What the CPU manager would say of its checkpoint, whose path is named in its messages.

    content: an error, where the kubelet cannot read the file.
    """
    if content is None or checked.cpu_manager_policy is None:
        return
    if isinstance(content, CheckpointError):
        remedy = "drain the node, and take what is there out of the way"
        yield _start_refused(restore_error(content, path), "the checkpoint cannot be read", remedy, path)
        return
    # Where the reservation is not known, what is restored can be judged all the same.
    config = checked.cpu_manager or CPUManagerConfig(
        checked.cpu_manager_policy, host.topology.all_cpus(), minor=host.minor, pod_level=checked.pod_level
    )
    judgement = judge(content, config)
    if judgement.verdict != REFUSED:
        yield from _restart_findings(judgement.state, path, checked, host.topology)
        return
    try:
        restore_state(content, config.policy_name, config.minor, config.pod_level)
    except CheckpointError as error:
        yield _start_refused(restore_error(error, path), "the checkpoint cannot be restored", judgement.remedy, path)
        return
    if checked.cpu_manager is not None:
        cause = "the checkpoint does not agree with the configuration and the node's CPUs"
        yield _start_refused(judgement.reason, cause, judgement.remedy, path)


def _start_refused(text: str, cause: str, remedy: str, path: str, manager: str = "cpu") -> Finding:
    return refused(text, cause, remedy, path)._replace(context="start %s manager error: " % manager)


def _stored_states(node: Node) -> tuple[bytes | CheckpointError | None, bytes | MemoryStateError | None]:
    """What the kubelet's managers read at their start; errors where they cannot."""
    checkpoint = stored_state(node.tree, node.checkpoint_path)
    return (
        CheckpointError(str(checkpoint)) if isinstance(checkpoint, Exception) else checkpoint,
        stored_state(node.tree, node.memory_state_path),
    )


def _restart_findings(state: State | None, path: str, checked: Checked, topology: CPUTopology) -> Iterator[Finding]:
    """Running pods that the kubelet would refuse when it admits them again, which it does at every start."""
    if state is None or checked.cpu_manager is None or not checked.options.full_pcpus_only:
        return
    free = len(state.default_cpu_set - topology.physical_cpus(checked.cpu_manager.reserved))
    for pod, containers in sorted(state.assignments.items()):
        for container, cpus in sorted(containers.items()):
            count = len(cpus)
            if count % topology.cpus_per_core:
                text = "requested %d cpus not multiple cpus per core = %d" % (count, topology.cpus_per_core)
            elif count > free:
                text = (
                    "not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d,"
                    " CPUs per core = %d" % (free, count, topology.cpus_per_core)
                )
            else:
                continue
            cause = "the kubelet would refuse pod %s, container %s, as it admits running pods again" % (pod, container)
            yield harmful(cause, "drain the node first, or drop full-pcpus-only", path, "SMT Alignment Error: " + text)


# --- the memory manager's state -----------------------------------------------------------------------------


def memory_state_findings(
    content: bytes | MemoryStateError | None, node: Node, checked: Checked
) -> Iterator[Finding | Unknown]:
    """What the memory manager would say of its state."""
    config = None if content is None else memory_config(node, checked)
    if content is None or config is None:
        return
    # Imported here: most nodes are planned without such a state.
    from ..state.memory_manager import NOT_JUDGED, judge_memory

    judgement, path = judge_memory(content, config), node.memory_state_path
    if judgement.verdict == NOT_JUDGED:
        yield Unknown(
            "it cannot be determined whether the kubelet would start with this state: %s" % judgement.reason, path
        )
    elif judgement.verdict == REFUSED:
        cause = "the memory manager's state cannot be restored"
        if judgement.restored:
            cause = "the memory manager's state does not agree with the configuration and the node's memory"
        remedy = "drain the node, stop the kubelet and take the file out of the way before it starts again"
        yield _start_refused(judgement.text(path), cause, remedy, path, "memory")
