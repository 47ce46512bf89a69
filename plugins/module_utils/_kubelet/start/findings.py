# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a start check finds, the machine that it is done for, and what ends it early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence

from ..._base.errors import KubeletError
from ..._base.versions import NEWEST_MINOR
from ...topology.kubelet_view import CPUTopology, kubelet_view

if TYPE_CHECKING:
    from ...policy.options import StaticOptions
    from ...state.acceptance import CPUManagerConfig
    from ...topology.model import Topology


# What ends a prediction early: the kubelet stops before all else is read, or it cannot be predicted what it does.


class StartError(Exception):
    """The kubelet stops here. Nothing that it would read later can be judged.

    `text` is the kubelet's own, without `context`, which it prints before it. `where` is the file, the field or the
    flag; `cause` and `remedy` are for people.
    """

    def __init__(self, text: str, cause: str, remedy: str, where: str, context: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.cause = cause
        self.remedy = remedy
        self.where = where
        self.context = context


class UnpredictableError(Exception):
    """It cannot be predicted what the kubelet does. The message is the reason; `where` is the file, field or flag."""

    def __init__(self, reason: str, where: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where


# What a start check finds, and what the managers would start with.


class Checked(NamedTuple):
    """What is found, in the kubelet's order, and what the managers would start with as far as that is certain."""

    # Before and after the managers read their states.
    before: list[Finding]
    after: list[Finding]
    # What cannot be seen of the node.
    unknown: list[Unknown]
    # None where the kubelet has no CPU manager of a known policy.
    cpu_manager_policy: str | None
    # None where something it depends on is refused.
    cpu_manager: CPUManagerConfig | None
    options: StaticOptions
    pod_level: bool
    memory_manager_policy: str | None
    # {NUMA node: {kind of memory: bytes}} that the memory manager keeps from pods.
    reserved_memory: Mapping[int, Mapping[str, int]]

    @property
    def findings(self) -> list[Finding]:
        """All but what is found in the managers' states."""
        return self.before + self.after


class Finding(NamedTuple):
    """One thing that is wrong with a configuration.

    `text` is the kubelet's own; empty where it does harm and says nothing. `where` is the field, the flag or the file,
    and `context` what the kubelet prints before the text.
    """

    text: str
    cause: str
    remedy: str
    fatal: bool
    where: str
    context: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return dict(self._asdict())


class Unknown(NamedTuple):
    """What decides whether the kubelet starts, and cannot be seen. `where` is as in a Finding."""

    reason: str
    where: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as modules return it."""
        return dict(self._asdict())


def _not_known(_name: str) -> None:
    return None


def _nothing(_name: str) -> Sequence[str]:
    return ()


# A cgroup below one with threads, which can have neither processes nor controllers. Source: cgroups(7).
INVALID = "domain invalid"


class Host(NamedTuple):
    """What of a node decides, beside its configuration, whether its kubelet starts."""

    topology: CPUTopology
    minor: int = NEWEST_MINOR
    # The ids of all NUMA nodes, also those without CPUs, which None leaves out.
    numa_nodes: tuple[int, ...] | None = None
    distances: Mapping[int, Mapping[int, int]] = {}
    # Bytes; None where it is not known.
    memory: int | None = None
    cgroup_v1: bool = False
    # Bytes of the file system with the kubelet's directory; None where it is not known.
    storage: int | None = None
    # Which of the hierarchies that the kubelet uses will have no cgroup of this path when it starts; None where that is
    # not known.
    lacks_cgroup: Callable[[str], Sequence[str] | None] = _not_known
    # Which controllers of cgroups v2 that the kubelet wants for all pods the topmost cgroup has, and this one has not.
    cgroup_lacks: Callable[[str], Sequence[str]] = _nothing
    # Whether systemd runs; None where it is not known.
    has_systemd: bool | None = None
    swap_on: bool = False
    # The value of a file below /proc/sys; None where it is not known.
    kernel_flag: Callable[[str], int | None] = _not_known
    # The version is not known, and the newest is assumed.
    is_assumed: bool = False
    # Bytes of the memory that are set aside as huge pages.
    huge_pages: int = 0
    # Of feature gates that it does not have the kubelet only warns.
    warns_of_gates: bool = False
    # Of the controllers that pods are limited by, those that cgroup v2 does not have here.
    lacking_controllers: Sequence[str] = ()
    # Its program starts with all of them only: k3s and RKE2 look first.
    needs_controllers: bool = False
    # By which driver Docker makes cgroups, where the kubelet has a dockershim and uses it; empty where it does not say.
    docker_driver: str = ""
    # OpenShift's workload partitioning is on, which changes what its CPU manager takes for its default set.
    is_partitioned: bool = False

    def nodes(self) -> tuple[int, ...]:
        """Return the ids of the NUMA nodes."""
        return tuple(self.topology.numa_nodes) if self.numa_nodes is None else self.numa_nodes


def other_host(topology: Topology, minor: int) -> Host:
    """Return a machine of which only the CPUs and NUMA nodes are known."""
    nodes = tuple(group.id for group in topology.numa_nodes)
    return Host(kubelet_view(topology), minor, nodes, topology.numa_distances)


def refused(text: str, cause: str, remedy: str, where: str) -> Finding:
    """Return the kubelet does not start."""
    return Finding(text, cause, remedy, True, where)


def harmful(cause: str, remedy: str, where: str, text: str = "") -> Finding:
    """Return the kubelet starts, and something goes wrong later."""
    return Finding(text, cause, remedy, False, where)


def refused_by(error: KubeletError, cause: str, where: str, prefix: str = "") -> Finding:
    """Return a refusal as another part of this project reports it."""
    return refused(prefix + error.text, cause, error.remedy, where)
