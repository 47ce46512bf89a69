# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a start check finds, and the machine that it is done for."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

from ..errors import KubeletError
from ..topology.kubelet_view import CPUTopology


class Finding(NamedTuple):
    """One thing that is wrong with a configuration.

    `text` is the kubelet's own; empty where it does harm and says nothing. `where` is the field or the file.
    """

    text: str
    cause: str
    remedy: str
    fatal: bool
    where: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        return dict(self._asdict())


class Host(NamedTuple):
    """What of a node decides, beside its configuration, whether its kubelet starts."""

    topology: CPUTopology
    minor: int
    # The ids of all NUMA nodes, also those without CPUs.
    numa_nodes: tuple[int, ...]
    distances: Mapping[int, Mapping[int, int]]
    # Bytes; None where it is not known.
    memory: int | None = None
    cgroup_v1: bool = False


def refused(text: str, cause: str, remedy: str, where: str) -> Finding:
    """The kubelet does not start."""
    return Finding(text, cause, remedy, True, where)


def harmful(cause: str, remedy: str, where: str, text: str = "") -> Finding:
    """The kubelet starts, and something goes wrong later."""
    return Finding(text, cause, remedy, False, where)


def refused_by(error: KubeletError, cause: str, where: str, prefix: str = "") -> Finding:
    """A refusal as another part of this project tells it."""
    return refused(prefix + error.text, cause, error.remedy, where)
