# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules share that are about a node with a kubelet: their arguments, and the node that these describe."""

from __future__ import annotations

from typing import Any, Mapping

from .._base.ansible_module import Arguments
from .._base.errors import call_more_options, option
from .._base.tree import SAID, Tree
from .._base.versions import minor_version
from .._kubelet.settings import SETTINGS, check_settings, needed_config, plan_settings
from ..cpuset import CPUSet
from ..policy.options import texts_of_options
from ..policy.reservation import PACKED, SPREAD
from ..state.acceptance import CPUManagerConfig
from .node import Node

# The arguments of modules that plan a reservation.


PLANNER: dict[str, Any] = {
    "count": {"type": "int"},
    "fraction": {"type": "float"},
    "curve": {
        "type": "list",
        "elements": "dict",
        "options": {"cpus": {"type": "int"}, "fraction": {"type": "float", "required": True}},
    },
    "strategy": {"type": "str", "choices": [PACKED, SPREAD], "default": PACKED},
    "allow_split_core": {"type": "bool", "default": False},
    "near_device": {"type": "str"},
}

# One way to say how many CPUs.
_WAYS = ("count", "fraction", "curve")

RESERVATION = Arguments(
    {**PLANNER, "smt": {"type": "str", "choices": ["keep", "off"], "default": "keep"}}, mutually_exclusive=[_WAYS]
)


# What all modules share that are about a node with a kubelet: their arguments, and the node that these describe.


KUBELET = Arguments(
    {
        "config_path": {"type": "path"},
        "kubelet_root": {"type": "path"},
        "kubelet_version": {"type": "str"},
        "command_line": {"type": "list", "elements": "str"},
    }
)

HIDE_NAMES = Arguments({"hide_names": {"type": "bool", "default": False}})


def node_of(tree: Tree, parameters: Mapping[str, Any]) -> Node:
    """The node that the arguments KUBELET describe, and HIDE_NAMES where the module takes it."""
    version = parameters["kubelet_version"]
    kind: type[Node] = Node
    if not tree.live and tree.exists(SAID):
        # Imported here: only a node that was saved by node_save has it.
        from .saved_node import SavedNode

        kind = SavedNode
    node = kind(
        tree,
        parameters["config_path"],
        parameters["kubelet_root"],
        minor_version(version) if version else None,
        parameters["command_line"] or (),
    )
    if not parameters.get("hide_names"):
        return node
    # Imported here: every import costs time on every node.
    from .saved_node import with_hidden_names

    return with_hidden_names(node)


SETTINGS_ARGUMENTS = Arguments(
    {
        **{name: dict(setting.argument) for name, setting in SETTINGS.items()},
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
    for name, value in wanted.items():
        if SETTINGS[name].argument["type"] == "dict":
            wanted[name] = texts_of_options(value)
    check_settings(wanted)
    if parameters["reservation"] is not None and (node.installation is not None or not needs_kubelet):
        from .reserved_cpus import reserve

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
    from .start_check import predict_configuration

    return needed_config(predict_configuration(node, wanted))
