# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would a kubelet with this configuration, on this machine, start with this state? And which does a new one write?

Source: validateState and its callers in pkg/kubelet/cm/cpumanager/policy_static.go, Kubernetes 1.33 to 1.36.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from .._base.golang import quote
from .._base.versions import NEWEST_MINOR
from ..cpuset import CPUSet
from .assignments import State, assignments_text

if TYPE_CHECKING:
    from .formats import ContainerIDs


# What of a kubelet's configuration decides about the CPU manager's state.


NONE = "none"
STATIC = "static"


class CPUManagerConfig(NamedTuple):
    """What of the kubelet's configuration and machine decides whether it accepts a state."""

    policy_name: str
    all_cpus: CPUSet
    reserved: CPUSet = CPUSet()
    strict_reservation: bool = False
    minor: int = NEWEST_MINOR
    # The feature gate PodLevelResourceManagers.
    pod_level: bool = False
    # OpenShift's workload partitioning: its kubelet keeps the reserved CPUs out of the default set by itself.
    is_partitioned: bool = False


class StateError(Exception):
    """The kubelet refuses to start with this state; the message is its own."""


def first_state(config: CPUManagerConfig) -> State:
    """Return the state that the kubelet writes when there was none."""
    if config.policy_name != STATIC:
        return State(CPUSet(), {})
    return State(pooled_cpus(config, config.is_partitioned), {})


def check_state(state: State, config: CPUManagerConfig) -> None:
    """Raise StateError when the kubelet would refuse to start with `state`."""
    if config.policy_name != STATIC:
        return  # the policy none looks at nothing
    default = state.default_cpu_set
    if not default:
        if state.assignments:
            raise StateError("default cpuset cannot be empty")
        return  # taken for new
    if config.is_partitioned and config.reserved.isdisjoint(default):
        config = config._replace(strict_reservation=True)
    if config.strict_reservation:
        if not config.reserved.isdisjoint(default):
            raise StateError(
                'some of strictly reserved cpus: "%s" are present in defaultCpuSet: "%s"'
                % (config.reserved & default, default)
            )
    elif not config.reserved <= default:
        raise StateError('not all reserved cpus: "%s" are present in defaultCpuSet: "%s"' % (config.reserved, default))
    for pod, containers in state.assignments.items():
        for container, cpus in containers.items():
            if not cpus.isdisjoint(default):
                raise StateError(
                    'pod: %s, container: %s cpuset: "%s" overlaps with default cpuset "%s"'
                    % (pod, container, cpus, default)
                )
    total = default | state.exclusive_cpus()
    if total != pooled_cpus(config):
        raise StateError(
            'current set of available CPUs "%s" doesn\'t match with CPUs in state "%s"' % (pooled_cpus(config), total)
        )


def restore_state(
    content: bytes,
    policy_name: str,
    minor: int = NEWEST_MINOR,
    pod_level: bool = False,
    container_ids: ContainerIDs | None = None,
) -> State:
    """Return what the kubelet 1.`minor` restores of a checkpoint; see read_checkpoint(). Raises CheckpointError."""
    from .checkpoint import read_checkpoint
    from .formats import CheckpointError

    checkpoint = read_checkpoint(content, minor, pod_level, container_ids)
    if checkpoint.policy_name != policy_name:
        raise CheckpointError(
            "configured policy %s differs from state checkpoint policy %s"
            % (quote(policy_name), quote(checkpoint.policy_name))
        )
    state = checkpoint.state()
    return state if pod_level else state._replace(pod_assignments={})


def check_checkpoint(content: bytes, config: CPUManagerConfig, container_ids: ContainerIDs | None = None) -> State:
    """Read a checkpoint as a kubelet with this configuration would at its start: its state, or the refusal.

    Raises CheckpointError and StateError, with the cause that the kubelet gives.
    """
    state = restore_state(content, config.policy_name, config.minor, config.pod_level, container_ids)
    check_state(state, config)
    return state


def pooled_cpus(config: CPUManagerConfig, is_strict: bool = False) -> CPUSet:
    """Return the CPUs that shared pool and assignments must cover together. is_strict: whatever the option says."""
    return config.all_cpus - config.reserved if config.strict_reservation or is_strict else config.all_cpus


def switched_off(state: State | None, offline: CPUSet) -> str:
    """Return a remark, to append, on the CPUs of a state that are switched off; empty where there are none."""
    cpus = CPUSet() if state is None else (state.default_cpu_set | state.exclusive_cpus()) & offline
    text = "; CPUs %s are offline: what switches them off has to do so before the kubelet's first start after a boot"
    return text % cpus if cpus else ""


# What a checkpoint says, and whether a kubelet would start with it, as plain data.


ACCEPTED = "accepted"
REFUSED = "refused"
ABSENT = "absent"
NOT_JUDGED = "not judged"


class Judgement(NamedTuple):
    """Whether a kubelet would start with a checkpoint, and what the checkpoint says."""

    verdict: str
    # The kubelet's cause, and what to do; both empty unless refused.
    reason: str = ""
    remedy: str = ""
    # Also what a refused or damaged file still says, as far as it can be read.
    policy_name: str | None = None
    state: State | None = None
    # Of the file: 1 to 4.
    version: int | None = None
    checksum_right: bool | None = None
    # Refused already when it is restored, before the policy looks at what it says.
    unread: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        state = self.state
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "remedy": self.remedy,
            "format": None if self.version is None else "v%d" % self.version,
            "checksum_right": self.checksum_right,
            "policy": self.policy_name,
            "default_cpu_set": None if state is None else str(state.default_cpu_set),
            "assignments": {} if state is None else assignments_text(state.assignments),
            "pod_assignments": {} if state is None else {uid: str(cpus) for uid, cpus in state.pod_assignments.items()},
        }

    def to_text(self) -> str:
        """Return what the checkpoint says as lines of CPU sets, to compare one with another; empty when there is
        none."""
        if self.verdict == ABSENT:
            return ""
        return "policy: %s\n%s" % (self.policy_name, "" if self.state is None else self.state.to_text())


def readable(content: bytes | None, container_ids: ContainerIDs | None = None) -> Judgement:
    """Return what a checkpoint says, whether or not a kubelet would accept it.

    A container of which only the id is known is shown as container "?" of a pod with that id.
    """
    if content is None:
        return Judgement(ABSENT)
    from .checkpoint import decode_checkpoint
    from .formats import NAMELESS, CheckpointError, migrated

    try:
        checkpoint = decode_checkpoint(content)
    except CheckpointError:
        return Judgement(NOT_JUDGED)
    try:
        checkpoint.verify()
        right = True
    except CheckpointError:
        right = False
    ids = {container_id: (container_id, NAMELESS) for container_id in checkpoint.entries or {}}
    state = None
    with suppress(CheckpointError):
        state = migrated(checkpoint, {**ids, **(container_ids or {})}).state()
    return Judgement(NOT_JUDGED, "", "", checkpoint.policy_name, state, checkpoint.version, right)


def judge(content: bytes | None, config: CPUManagerConfig, container_ids: ContainerIDs | None = None) -> Judgement:
    """Judge whether a kubelet with this configuration would start with this checkpoint."""
    said = readable(content, container_ids)
    if content is None:
        return said
    from .formats import CheckpointError, cause_of_pods

    try:
        check_checkpoint(content, config, container_ids)
    except (CheckpointError, StateError) as error:
        remedy = "stop the kubelet and take the file out of the way before it starts again"
        if said.state is not None and said.state.exclusive_cpus():
            remedy = (
                "stop the kubelet and repair the file, which keeps the exclusive CPUs of running pods where they can"
                " be kept; else drain the node first and take the file out of the way"
            )
        remedy += cause_of_pods(said.version, said.state, pooled_cpus(config), config.minor, config.pod_level)
        unread = isinstance(error, CheckpointError)
        return said._replace(verdict=REFUSED, reason=str(error), remedy=remedy, unread=unread)
    return said._replace(verdict=ACCEPTED)
