# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share that are about a node's kubelet: their arguments, and what these are on the node."""

from __future__ import annotations

from typing import Any, Mapping

from . import node_arguments
from .ansible_module import Arguments
from .cpuset import CPUSet
from .kubelet.settings import (
    CPU_MANAGER_POLICIES,
    MEMORY_MANAGER_POLICIES,
    SETTINGS,
    TOPOLOGY_MANAGER_POLICIES,
    TOPOLOGY_MANAGER_SCOPES,
    check_settings,
    needed_config,
    plan_settings,
)
from .node.node import Node
from .policy.options import texts_of_options
from .reservation_module import PLANNER
from .state.config import CPUManagerConfig

KUBELET, HIDE_NAMES, node_of = node_arguments.KUBELET, node_arguments.HIDE_NAMES, node_arguments.node_of

SETTINGS_ARGUMENTS = Arguments(
    {
        "cpu_manager_policy": {"type": "str", "choices": list(CPU_MANAGER_POLICIES)},
        "cpu_manager_policy_options": {"type": "dict"},
        "cpu_manager_reconcile_period": {"type": "str"},
        "topology_manager_policy": {"type": "str", "choices": list(TOPOLOGY_MANAGER_POLICIES)},
        "topology_manager_scope": {"type": "str", "choices": list(TOPOLOGY_MANAGER_SCOPES)},
        "topology_manager_policy_options": {"type": "dict"},
        "memory_manager_policy": {"type": "str", "choices": list(MEMORY_MANAGER_POLICIES)},
        "cpu_cfs_quota": {"type": "bool"},
        "cpu_cfs_quota_period": {"type": "str"},
        # Else Ansible makes the text "3" of the number 3, which may mean three CPUs.
        "reserved_system_cpus": {"type": "raw"},
        "kube_reserved_cpu": {"type": "str"},
        "system_reserved_cpu": {"type": "str"},
        "kube_reserved_memory": {"type": "str"},
        "system_reserved_memory": {"type": "str"},
        "reserved_memory": {
            "type": "list",
            "elements": "dict",
            "options": {
                "numaNode": {"type": "int", "required": True},
                "limits": {"type": "dict", "required": True},
            },
        },
        "reservation": {"type": "dict", "options": PLANNER},
    },
    mutually_exclusive=[("reserved_system_cpus", "reservation")],
)

# Of these, those that say which CPUs are reserved.
RESERVED_ARGUMENTS = Arguments(
    {name: SETTINGS_ARGUMENTS.options[name] for name in ("reserved_system_cpus", "reservation")},
    SETTINGS_ARGUMENTS.mutually_exclusive,
)


def wanted_settings(node: Node, parameters: Mapping[str, Any], needs_kubelet: bool = False) -> dict[str, Any]:
    """The settings that were asked for, a reservation planned for this machine included. Raises InputError.

    needs_kubelet: plan none for a machine without a kubelet, such as a bastion, which may be too small for it.
    """
    wanted = {name: parameters[name] for name in SETTINGS if parameters[name] is not None}
    for name in ("cpu_manager_policy_options", "topology_manager_policy_options"):
        if name in wanted:
            wanted[name] = texts_of_options(wanted[name])
    check_settings(wanted)
    if parameters["reservation"] is not None and (node.installation is not None or not needs_kubelet):
        # Imported here: every import costs time on every node.
        from .errors import call_more_options, option
        from .node.reserve import reserve

        call_more_options({name: "%s.%s" % (option("reservation"), name) for name in PLANNER})
        wanted["reserved_system_cpus"] = str(reserve(node.tree, node.topology, parameters["reservation"]).reserved)
    return wanted


def wanted_reservation(node: Node, parameters: Mapping[str, object]) -> CPUSet | None:
    """The CPUs that RESERVED_ARGUMENTS name, or that are planned by them; None where there are none such.

    Raises InputError.
    """
    wanted = wanted_settings(node, {**dict.fromkeys(SETTINGS), **parameters})
    return CPUSet.parse(wanted.get("reserved_system_cpus", "")) or None


def planned_config(node: Node, parameters: Mapping[str, object]) -> CPUManagerConfig:
    """What the CPU manager would start with, once the settings that were asked for are in the kubelet's file."""
    wanted = wanted_settings(node, parameters)
    plan_settings(wanted, node.needed_configuration(), node.minor)
    # Imported here: hardly any module needs it.
    from .node.prediction import predict_configuration

    return needed_config(predict_configuration(node, wanted))
