# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would the kubelet of this node start: its configuration, its checkpoint and its memory manager's state together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping

from ..errors import RefusedError
from ..kubelet.companions import companions
from ..kubelet.configuration import API_VERSION, KIND, Configuration, ConfigurationError, changed_values
from ..kubelet.document import read_document
from ..kubelet.finding import Finding, Host, harmful, refused
from ..kubelet.settings import SETTINGS, written
from ..kubelet.start_check import Checked, check_start
from ..kubelet.values import REMOVE
from ..kubelet.yaml import ReadError
from ..state.assignments import State
from ..state.checkpoint import CheckpointError, restore_error
from ..state.golang import quote
from ..state.validation import NONE, CPUManagerConfig, restore_state
from ..state.verdict import REFUSED, judge
from ..topology.kubelet_view import CPUTopology
from .memory_state import MemoryPlan, memory_config, plan_memory_state, stored_state
from .node import Node

if TYPE_CHECKING:
    from ..state.memory_manager import MemoryStateError

_CGROUP = "/sys/fs/cgroup"
_MEMINFO = "/proc/meminfo"

_HEADER = "begin it with apiVersion: %s and kind: %s" % (API_VERSION, KIND)


def start_report(node: Node, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """All that is found, as plain data; see the module start_check for its shape.

    Raises NodeError where there is no configuration, or one of which it cannot be known what the kubelet reads.
    """
    findings = start_findings(node, wanted, node.checkpoint(), stored_state(node.tree, node.memory_state_path))
    return {
        "starts": not any(finding.fatal for finding in findings),
        "kubelet_version": "1.%d" % node.minor,
        "findings": [finding.to_dict() for finding in findings],
    }


def start_findings(
    node: Node, wanted: Mapping[str, Any], checkpoint: bytes | None, memory_state: bytes | MemoryStateError | None
) -> list[Finding]:
    """What the kubelet would refuse or suffer from, with `wanted` in its configuration and these states.

    memory_state: an error, where the kubelet cannot read the file.
    """
    try:
        configuration = node.needed_configuration()
    except ConfigurationError:
        finding = _unreadable(node)
        if finding is None:
            raise
        return [finding]
    host = host_of(node)
    checked = check_start(planned_values(node, wanted, configuration), host)
    return [
        *checked.findings,
        *checkpoint_findings(checkpoint, node.checkpoint_path, checked, host),
        *memory_state_findings(memory_state, node, checked),
    ]


def planned_values(node: Node, wanted: Mapping[str, Any], configuration: Configuration) -> dict[str, Any]:
    """What the kubelet's configuration is to say."""
    changes = {**planned_changes(wanted), **companions(wanted, configuration, node.minor)}
    return changed_values(configuration, changes)


def memory_plan(node: Node, values: Mapping[str, Any]) -> MemoryPlan:
    """What becomes of the memory manager's state when the configuration says this."""
    content = node.memory_state()
    if content is None:
        return MemoryPlan(None, "")
    return plan_memory_state(content, memory_config(node, check_start(values, host_of(node))))


def check_change(node: Node, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raise RefusedError where the kubelet would refuse what is after a change, and not what was before it.

    Of the managers' states nothing is said: they are reset with the change.
    """
    if after is before:
        return
    known = {(finding.where, finding.text) for finding in _findings_of(node, before)}
    for finding in _findings_of(node, after):
        if finding.fatal and (finding.where, finding.text) not in known:
            what = "the kubelet would not start: %s (%s)" % (finding.text, finding.cause)
            raise RefusedError(what, where=finding.where, remedy=finding.remedy)


def _findings_of(node: Node, values: Mapping[str, Any]) -> list[Finding]:
    return check_start(values, host_of(node)).findings


def planned_changes(wanted: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    """What the wanted settings change in a file, whatever it has there."""
    changes = {SETTINGS[name].path: written(name, value) for name, value in wanted.items()}
    # As complete() does: the policy none starts with no options.
    if wanted.get("cpu_manager_policy") == NONE and "cpu_manager_policy_options" not in wanted:
        changes[SETTINGS["cpu_manager_policy_options"].path] = REMOVE
    return changes


def host_of(node: Node) -> Host:
    """What of the node's files decides whether its kubelet starts."""
    topology = node.topology
    machine = node.machine()
    cgroup_v1 = node.tree.exists(_CGROUP) and not node.tree.exists(_CGROUP + "/cgroup.controllers")
    return Host(
        machine.topology,
        machine.minor,
        tuple(group.id for group in topology.numa_nodes),
        topology.numa_distances,
        _memory_of(node),
        cgroup_v1,
    )


def _memory_of(node: Node) -> int | None:
    """The machine's memory in bytes, if its files tell."""
    if not node.tree.exists(_MEMINFO):
        return None
    for line in node.tree.read_text(_MEMINFO).splitlines():
        name, _colon, rest = line.partition(":")
        if name == "MemTotal":
            size = rest.split()
            return int(size[0]) * 1024 if size and size[0].isdecimal() else None
    return None


def _unreadable(node: Node) -> Finding | None:
    """The kubelet's refusal of a file that is no KubeletConfiguration; None where it may well read it."""
    for path in node.configuration_paths():
        text = node.tree.read_text(path)
        if not text:
            return refused(
                "kubelet config file %s was empty" % quote(path), "the file is empty", "write it again", path
            )
        try:
            values = read_document(text).value
        except ReadError as error:
            # What the kubelet's reader says of the place is in other words.
            return refused("failed to decode", str(error), "repair the file", path) if error.is_broken else None
        if not isinstance(values, dict) or (values.get("apiVersion"), values.get("kind")) != (API_VERSION, KIND):
            text = "failed to decode: " + _undecodable(values)
            return refused(text, "it is no KubeletConfiguration", _HEADER, path)
    return None


def _undecodable(values: Any) -> str:
    if values is not None and not isinstance(values, dict):
        return "couldn't get version/kind; json parse error"
    for name, title in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not values or not values.get(name):
            return "Object '%s' is missing" % title
    return "no kind %s is registered for version %s" % (quote(str(values["kind"])), quote(str(values["apiVersion"])))


# --- the checkpoint --------------------------------------------------------------------------------------


def checkpoint_findings(content: bytes | None, path: str, checked: Checked, host: Host) -> Iterator[Finding]:
    """What the CPU manager would say of its checkpoint, whose path is named in its messages."""
    if content is None or checked.cpu_manager_policy is None:
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
        yield refused(restore_error(error, path), "the checkpoint cannot be restored", judgement.remedy, path)
        return
    if checked.cpu_manager is not None:
        cause = "the checkpoint does not agree with the configuration and the node's CPUs"
        yield refused(judgement.reason, cause, judgement.remedy, path)


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


def memory_state_findings(content: bytes | MemoryStateError | None, node: Node, checked: Checked) -> Iterator[Finding]:
    """What the memory manager would say of its state; where that cannot be told, a finding without a text."""
    config = None if content is None else memory_config(node, checked)
    if content is None or config is None:
        return
    # Imported here: most nodes are planned without such a state.
    from ..state.memory_manager import NOT_JUDGED, judge_memory

    judgement, path = judge_memory(content, config), node.memory_state_path
    if judgement.verdict == NOT_JUDGED:
        cause = "it cannot be told whether the kubelet would start with this state: %s" % judgement.reason
        yield harmful(cause, "give the node's files as they are, with what this names", path)
    elif judgement.verdict == REFUSED:
        cause = "the memory manager's state cannot be restored"
        if judgement.restored:
            cause = "the memory manager's state does not agree with the configuration and the node's memory"
        remedy = "drain the node, stop the kubelet and take the file out of the way before it starts again"
        yield refused(judgement.text(path), cause, remedy, path)
