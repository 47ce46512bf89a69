# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replays traces on a machine under policies, on the controller. The module of this name documents it."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Sequence

from ansible.utils.display import Display

from ..module_utils._base.errors import MALFORMED, InputError, option
from ..module_utils._base.versions import NEWEST_MINOR
from ..module_utils._node.beside_cpus import given_memory
from ..module_utils.cpuset import CPUSet
from ..module_utils.policy.dynamic import DYNAMIC
from ..module_utils.policy.dynamic_state import DynamicRules
from ..module_utils.policy.hints import POLICIES as ALIGNMENTS
from ..module_utils.policy.hints import SCOPES
from ..module_utils.policy.isolated import static_with_isolated
from ..module_utils.policy.options import parse_static_options, texts_of_options
from ..module_utils.policy.reservation import plan_reservation
from ..module_utils.state.acceptance import STATIC
from ..module_utils.topology.description import describe_machine
from ..module_utils.topology.kubelet_view import kubelet_view
from ..module_utils.topology.model import Topology
from ..plugin_utils.controller_action import ControllerAction, Given
from ..plugin_utils.report.results import put_file, stem_of
from ..plugin_utils.simulation.replay import POLICIES, Beside, Replay, replay
from ..plugin_utils.simulation.result import compare, draw, summary, table
from ..plugin_utils.simulation.trace import TRACES, Trace, make_trace, read_trace

_MEMORY: dict[str, object] = {
    "numa_node": {"type": "int", "required": True},
    "amounts": {"type": "dict", "required": True},
}
_DEVICE: dict[str, object] = {
    "resource": {"type": "str", "required": True},
    "count": {"type": "int", "required": True},
    "numa_nodes": {"type": "list", "elements": "int", "default": []},
}
_ARGUMENTS: dict[str, dict[str, object]] = {
    "directory": {"type": "path", "required": True},
    "host": {"type": "str", "required": True},
    "topology": {"type": "dict"},
    "machine": {"type": "str"},
    "traces": {"type": "list", "elements": "raw", "default": [*TRACES]},
    "seed": {"type": "int", "default": 1},
    "policies": {"type": "list", "elements": "str", "choices": [*POLICIES], "default": [*POLICIES]},
    "policy_options": {"type": "dict", "default": {}},
    "reserved_system_cpus": {"type": "str"},
    "topology_manager_policy": {"type": "str", "choices": [*ALIGNMENTS], "default": "none"},
    "topology_manager_scope": {"type": "str", "choices": [*SCOPES], "default": "container"},
    "numa_memory": {"type": "list", "elements": "dict", "options": _MEMORY},
    "reserved_memory": {"type": "list", "elements": "dict", "options": _MEMORY},
    "devices": {"type": "list", "elements": "dict", "options": _DEVICE, "default": []},
    "shared_minimum": {"type": "int", "default": 0},
    "settle": {"type": "float", "default": 30.0},
    "delay": {"type": "float", "default": 5.0},
    "period": {"type": "float", "default": 10.0},
}
_LEAST_PERIOD, _MOST_PERIOD = 1, 3600


class ActionModule(ControllerAction):
    """Replays, compares, and writes what came of it."""

    ARGUMENTS = _ARGUMENTS

    def made(self, given: Given) -> dict[str, Any]:
        """Return the result of the task: figures, and the files."""
        topology = _topology(given)
        rules = _rules(given, topology)
        if not _LEAST_PERIOD <= given["period"] <= _MOST_PERIOD:
            raise InputError(
                "%s is not from %d to %d seconds" % (given["period"], _LEAST_PERIOD, _MOST_PERIOD), option("period")
            )
        beside = _beside(given)
        traces = [_trace(wanted, given["seed"], rules) for wanted in given["traces"]]
        results, files = [], []
        for trace in traces:
            # The policy dynamic gives no CPUs to a pod as a whole.
            fixed = [policy for policy in given["policies"] if policy != DYNAMIC]
            has_whole = bool(fixed) and any(pod.containers for pod in trace.pods)
            policies = fixed if has_whole else given["policies"]
            replays = [replay(trace, policy, rules, given["period"], beside) for policy in policies]
            result = _result(trace, replays)
            files += _written(given, trace, replays, rules, result)
            _show(given["host"], result)
            results.append(result)
        isolated = static_with_isolated(
            rules.topology, rules.reserved, topology.isolated, rules.options.strict_cpu_reservation
        )
        return {
            "changed": False,
            "files": files,
            "reserved": str(rules.reserved),
            "traces": results,
            "isolated": {**isolated.to_dict(), "harmless": isolated.is_harmless()},
        }


def _topology(given: Given) -> Topology:
    if (given["topology"] is None) == (given["machine"] is None):
        raise InputError("give one of %s and %s" % (option("topology"), option("machine")))
    if given["machine"] is not None:
        return describe_machine(given["machine"])
    try:
        return Topology.from_dict(given["topology"])
    except MALFORMED as error:
        raise InputError(
            "is not what cpu_topology_info returns (%s: %s)" % (type(error).__name__, error), where=option("topology")
        ) from error


def _rules(given: Given, topology: Topology) -> DynamicRules:
    # All gates: this is about what would be.
    options = parse_static_options(texts_of_options(given["policy_options"]), NEWEST_MINOR, True, True)
    reserved = CPUSet.parse(given["reserved_system_cpus"] or "")
    if not reserved:
        reserved = plan_reservation(topology, 1, at_least=True).reserved
    return DynamicRules(
        kubelet_view(topology),
        reserved,
        options,
        given["shared_minimum"],
        given["settle"],
        given["delay"],
        topology.numa_distances,
    ).checked()


def _beside(given: Given) -> Beside:
    memory, reserved = (
        None if given[name] is None else given_memory(given[name], option(name))
        for name in ("numa_memory", "reserved_memory")
    )
    if (memory is None) is not (reserved is None):
        raise InputError(
            "give %s and %s together, or none of them" % (option("numa_memory"), option("reserved_memory"))
        )
    for node, amounts in (reserved or {}).items():
        for name, size in amounts.items():
            if size > (memory or {}).get(node, {}).get(name, 0):
                what = "NUMA node %d does not have so much %s" % (node, name)
                raise InputError(what, option("reserved_memory"))
    if reserved is not None and not any(amounts["memory"] for amounts in reserved.values()):
        what = "no memory is reserved, and the Static memory manager does not start without"
        raise InputError(what, option("reserved_memory"))
    places = given["topology_manager_policy"], given["topology_manager_scope"]
    return Beside(*places, memory, reserved or {}, given["devices"])


def _trace(wanted: object, seed: int, rules: DynamicRules) -> Trace:
    try:
        if isinstance(wanted, str):
            return make_trace(wanted, seed, rules.topology.num_cpus)
        return read_trace(wanted)
    except InputError as error:
        raise error.within(option("traces")) from error


def _result(trace: Trace, replays: Sequence[Replay]) -> dict[str, object]:
    by_policy = {found.policy: found for found in replays}
    compared = None
    if DYNAMIC in by_policy and STATIC in by_policy:
        compared = compare(by_policy[DYNAMIC], by_policy[STATIC]).to_dict()
    return {
        "trace": trace.name,
        "description": trace.description,
        "pods": len(trace.pods),
        "seconds": trace.duration,
        "policies": [summary(found) for found in replays],
        "dynamic_beside_static": compared,
    }


def _written(
    given: Given, trace: Trace, replays: Sequence[Replay], rules: DynamicRules, result: Mapping[str, Any]
) -> list[str]:
    stem = os.path.join(given["directory"], "simulation-" + stem_of(given["host"], trace.name))
    title = "%s: %s" % (given["host"], trace.description)
    picture = draw(title, replays, rules, trace.duration)
    put_file(stem + ".svg", [picture])
    put_file(stem + ".json", [json.dumps(result, indent=1) + "\n"])
    return [stem + ".svg", stem + ".json"]


def _show(host: str, result: Mapping[str, Any]) -> None:
    # As plain text: the result of a task is shown in the form that the user has chosen for results.
    display = Display()
    display.display("%s, trace %s" % (host, result["description"]))
    display.display(table(result["policies"]))
    if result["dynamic_beside_static"] is not None:
        display.display(result["dynamic_beside_static"]["text"])
