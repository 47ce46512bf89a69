# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one place where the core meets Ansible: arguments in, one call, result or failure out."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Sequence

from ansible.module_utils.basic import AnsibleModule

# Before all others, for its effect on them.
from . import startup  # noqa: F401 # pylint: disable=unused-import
from .errors import CPUManagerError, NodeError, call_options
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
from .node.node import Node, node_name
from .policy.reservation import PACKED, SPREAD
from .state.config import CPUManagerConfig
from .tree import Tree
from .versions import minor_version

Arguments = Mapping[str, Any]

ROOT: Arguments = {
    "root": {"type": "path", "default": "/"},
    "option_names": {"type": "dict", "default": {}},
}

KUBELET: Arguments = {
    "config_path": {"type": "path"},
    "kubelet_root": {"type": "path"},
    "kubelet_version": {"type": "str"},
    "command_line": {"type": "list", "elements": "str"},
}

_PLANNER: dict[str, Any] = {
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

RESERVATION: Arguments = {**_PLANNER, "smt": {"type": "str", "choices": ["keep", "off"], "default": "keep"}}

SETTINGS_ARGUMENTS: Arguments = {
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
    "reservation": {"type": "dict", "options": _PLANNER},
}


class Outcome(NamedTuple):
    """What a module answers."""

    result: Mapping[str, Any]
    changed: bool = False
    # What Ansible's --diff shows: a difference() for each file.
    diff: Sequence[Mapping[str, str]] | None = None


def difference(path: str, before: str, after: str) -> dict[str, str]:
    """What a file, or whatever `path` names, holds before and after."""
    return {"before_header": path, "after_header": path, "before": before, "after": after}


Work = Callable[[Tree, Mapping[str, Any], bool], Outcome]


def run(work: Work, *arguments: Arguments, **restrictions: Any) -> None:
    """Run one module: `work` is given the node's files, the parameters, and whether to leave everything as it is."""
    spec: dict[str, Any] = dict(ROOT)
    for group in arguments:
        spec.update(group)
    module = _module(spec, restrictions)
    name = ""
    call_options(module.params["option_names"])
    try:
        tree = Tree(module.params["root"])
        name = node_name(tree)
        outcome = work(tree, module.params, module.check_mode)
    except (CPUManagerError, OSError) as error:
        failure = error if isinstance(error, CPUManagerError) else _of_system(error)
        message = "%s: %s" % (name, failure) if name else str(failure)
        module.fail_json(**printable({"msg": message, "failure": failure.to_dict()}))
    result: dict[str, Any] = {**outcome.result, "changed": outcome.changed, "node": name}
    if outcome.diff is not None:
        result["diff"] = outcome.diff[0] if len(outcome.diff) == 1 else outcome.diff
    module.exit_json(**printable(result))


def printable(value: Any) -> Any:
    """Plain data whose texts can be written as UTF-8: a byte of a file's name that is no text becomes \\xff."""
    if isinstance(value, str):
        if value.isascii():
            return value
        try:
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        except UnicodeEncodeError:  # half a character, as JSON may have it
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {printable(key): printable(item) for key, item in value.items()}
    return [printable(item) for item in value] if isinstance(value, (list, tuple)) else value


def _of_system(error: OSError) -> NodeError:
    """An error of the operating system that nobody below gave a better message."""
    # Imported here: every import costs time on every node.
    from .files import remedy_for

    return NodeError(error.strerror or str(error), where=str(error.filename or ""), remedy=remedy_for(error))


def _module(spec: Mapping[str, Any], restrictions: Mapping[str, Any]) -> Any:
    return AnsibleModule(argument_spec=spec, supports_check_mode=True, **restrictions)


def node_of(tree: Tree, parameters: Mapping[str, Any]) -> Node:
    """The node that the arguments KUBELET describe."""
    version = parameters["kubelet_version"]
    return Node(
        tree,
        parameters["config_path"],
        parameters["kubelet_root"],
        minor_version(version) if version else None,
        parameters["command_line"] or (),
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
        from .node.reserve import reserve

        wanted["reserved_system_cpus"] = str(reserve(node.tree, node.topology, parameters["reservation"]).reserved)
    return wanted


def planned_config(node: Node, parameters: Mapping[str, Any]) -> CPUManagerConfig:
    """What the CPU manager would start with, once the settings that were asked for are in the kubelet's file."""
    wanted = wanted_settings(node, parameters)
    plan_settings(wanted, node.needed_configuration(), node.minor)
    # Imported here: hardly any module needs it.
    from .node.prediction import predict_configuration

    return needed_config(predict_configuration(node, wanted))


def texts_of_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Policy options as the kubelet wants them, as texts: a YAML true is as good as "true"."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
