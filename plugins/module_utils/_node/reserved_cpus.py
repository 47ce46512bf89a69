# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs for the host where nobody names them: those that the kubelet is configured to reserve."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..cpuset import CPUSet

if TYPE_CHECKING:
    from .._kubelet.configuration import Configuration
    from .node import Node


_RESERVED = ("reservedSystemCPUs",)


class HostReservation(NamedTuple):
    """The CPUs for the host, and who says so: "options", or a file of the kubelet's; empty where nobody does."""

    cpus: CPUSet
    source: str


def kubelet_reservation(node: Node, configuration: Configuration) -> HostReservation:
    """Return the CPUs by name, else those that the static policy takes for the number that is reserved.

    Raises InputError, NodeError, RefusedError for a reservation that cannot be read, or with which no kubelet starts.
    """
    text, origin = configuration.given(_RESERVED)
    if isinstance(text, str) and text:
        return HostReservation(CPUSet.parse(text), origin or "")
    if configuration.given(("cpuManagerPolicy",)).value != "static":
        return HostReservation(CPUSet(), "")
    # Imported here: it is much, and a list of CPUs needs none of it.
    from .start_check import certain_config, predicted_starts

    config = certain_config(predicted_starts(node, {}, configuration).found)
    return HostReservation(config.reserved, configuration.source)
