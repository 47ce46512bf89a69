# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would a kubelet with this configuration, on this machine, start with this state? And which does a new one write?

Source: validateState and its callers in pkg/kubelet/cm/cpumanager/policy_static.go, Kubernetes 1.33 to 1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..cpuset import CPUSet
from ..versions import NEWEST_MINOR
from .assignments import State
from .config import STATIC, CPUManagerConfig

if TYPE_CHECKING:
    # A node without a checkpoint needs no reader, and every import costs time on every node.
    from .formats import ContainerIDs


class StateError(Exception):
    """The kubelet refuses to start with this state; the message is its own."""


def first_state(config: CPUManagerConfig) -> State:
    """The state that the kubelet writes when there was none."""
    if config.policy_name != STATIC:
        return State(CPUSet(), {})
    return State(pooled_cpus(config), {})


def check_state(state: State, config: CPUManagerConfig) -> None:
    """Raise StateError when the kubelet would refuse to start with `state`."""
    if config.policy_name != STATIC:
        return  # the policy none looks at nothing
    default = state.default_cpu_set
    if not default:
        if state.assignments:
            raise StateError("default cpuset cannot be empty")
        return  # taken for new
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
    """What the kubelet 1.`minor` restores of a checkpoint; see read_checkpoint(). Raises CheckpointError."""
    from .checkpoint import read_checkpoint
    from .formats import CheckpointError

    checkpoint = read_checkpoint(content, minor, pod_level, container_ids)
    if checkpoint.policy_name != policy_name:
        from ..golang import quote

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


def checkpoint_after(content: bytes | None, config: CPUManagerConfig) -> bytes:
    """What is in the file after a start with `content`, which the kubelet accepts, on a node without pods.

    content: None, where there was no file.
    """
    from .writing import format_for, write_checkpoint

    # Of containers that are not there, the CPUs go back.
    if content is not None and not any(check_checkpoint(content, config).assignments.values()):
        return content
    return write_checkpoint(config.policy_name, first_state(config), format_for(config.minor, config.pod_level))


def pooled_cpus(config: CPUManagerConfig) -> CPUSet:
    """The CPUs that shared pool and assignments must cover together."""
    return config.all_cpus - config.reserved if config.strict_reservation else config.all_cpus
