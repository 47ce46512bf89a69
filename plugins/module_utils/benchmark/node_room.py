# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs of this node for containers that come to it now, as its kubelet is configured."""

from __future__ import annotations

from ..cpuset import CPUSet
from ..errors import InputError, option
from ..kubelet.file.configuration import Configuration
from ..kubelet.gates.enabled import NO_EXCLUSIVE_QUOTA, Gates
from ..node.exclusive import read_exclusive
from ..node.node import Node
from ..policy.options import StaticOptions
from ..state.config import STATIC, CPUManagerConfig
from .room import Room


def room_of(node: Node, reserved: CPUSet | None) -> tuple[Room, list[str]]:
    """The room, and notes. reserved: in place of what the kubelet reserves. Raises InputError, NodeError, RefusedError
    where it is not known which CPUs containers have for themselves.
    """
    online, notes = node.topology.online, []
    configuration = node.configuration()
    values = {} if configuration is None else configuration.values
    config, options = (None, StaticOptions()) if configuration is None else _static(node)
    if reserved is None and config is not None and config.reserved:
        reserved = config.reserved
    if reserved is None:
        reserved = node.topology.cores[0].cpus
        notes.append(
            "no reservation of a kubelet is known: CPUs %s, the first core, are taken for reserved; set %s"
            % (reserved, option("reserved_system_cpus"))
        )
    if not reserved or not reserved < online:
        raise InputError(
            "%s are not some of the online CPUs %s" % (reserved or "no CPUs", online),
            where=option("reserved_system_cpus"),
            remedy="reserve at least one, and leave at least one",
        )
    free = online - _exclusive(node, configuration)
    quota = values.get("cpuCFSQuota") is not False
    limits_exclusive = quota and not Gates.of(values, node.minor).enabled(NO_EXCLUSIVE_QUOTA)
    return Room(node.topology, options, reserved, free, quota, limits_exclusive), notes


def _static(node: Node) -> tuple[CPUManagerConfig | None, StaticOptions]:
    """What the static policy of this kubelet starts with; None where that cannot be said."""
    # Imported here: every import costs time on every node.
    from ..node.prediction import predict_configuration

    for wanted in ({}, {"cpu_manager_policy": STATIC}):
        checked = predict_configuration(node, wanted).checked
        if checked is not None and checked.cpu_manager is not None and checked.cpu_manager_policy == STATIC:
            return checked.cpu_manager, checked.options
    return None, StaticOptions()


def _exclusive(node: Node, configuration: Configuration | None) -> CPUSet:
    """The CPUs that containers have for themselves now."""
    recorded = read_exclusive(node, configuration)
    if recorded.problem is not None:
        raise recorded.problem
    return CPUSet() if recorded.state is None else recorded.state.exclusive_cpus()
