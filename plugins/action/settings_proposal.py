# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proposes settings by the shapes of nodes, on the controller. The module of this name documents it."""

from __future__ import annotations

import os
from typing import Any, Mapping

from ansible.utils.display import Display

from ..module_utils._base.errors import InputError, NodeError, RefusedError
from ..module_utils._node.reservation_request import PLANNER, WITH_MEMORY
from ..plugin_utils.controller_action import ControllerAction, Given, validated
from ..plugin_utils.proposal.files import FORMS, api_objects, is_edited, proposal_files, table_rows
from ..plugin_utils.proposal.groups import NodeGroup, conflicts, group_nodes, judge, read_nodes
from ..plugin_utils.proposal.settings import ALIGNMENTS, WORKLOADS, SettingsWish, arguments
from ..plugin_utils.report.answers import mapping
from ..plugin_utils.report.host_use import ReservedAmounts, cpu_count, reserved_memory
from ..plugin_utils.report.results import put_file
from ..plugin_utils.report.trend import read_history, verdicts

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "plans": {"type": "dict", "required": True},
    "wishes": {"type": "dict", "required": True},
    "directory": {"type": "path"},
    "inventory": {"type": "dict", "default": {}},
    "node_names": {"type": "dict", "default": {}},
    "node_objects": {"type": "list", "elements": "str", "choices": [*FORMS], "default": []},
    "history": {"type": "list", "elements": "path", "default": []},
    "overwrite_edited": {"type": "bool", "default": False},
    "skip_hosts_without_kubelet": {"type": "bool", "default": False},
    "validate_only": {"type": "bool", "default": False},
}

# The planner's options. Which strategy fits, where none is asked for, the workload decides.
_RESERVATION = {**WITH_MEMORY, "strategy": {"type": "str", "choices": PLANNER["strategy"]["choices"]}}
_WISH: dict[str, dict[str, Any]] = {
    "workload": {"type": "str", "choices": [*WORKLOADS], "required": True},
    "reservation": {
        "type": "dict",
        "options": _RESERVATION,
        "mutually_exclusive": [("count", "fraction", "curve")],
    },
    "share_cores": {"type": "bool"},
    "numa_alignment": {"type": "str", "choices": [*ALIGNMENTS]},
    "housekeeping": {"type": "bool", "default": False},
}


class ActionModule(ControllerAction):
    """Decides what to propose, and writes it once the plans of the nodes are made with it."""

    ARGUMENTS = _ARGUMENTS

    def made(self, given: Given) -> dict[str, Any]:
        """Return the result of the task."""
        plans = given["plans"]
        wishes = _wishes(given["wishes"])
        if given["validate_only"]:
            return {"changed": False}
        groups = group_nodes(read_nodes(plans, wishes, given["skip_hosts_without_kubelet"]))
        result: dict[str, object] = {
            "changed": False,
            "groups": [_shown(group) for group in groups],
            "settings": {host: arguments(list(group.lines)) for group in groups for host in group.hosts},
        }
        if not given["directory"]:
            return result
        verdict = judge(groups, plans)
        if verdict.refusals:
            raise RefusedError(
                "nothing was written: a kubelet would not start with the proposal:\n%s" % "\n".join(verdict.refusals),
                remedy="ask for something else with cpu_manager_reservation, cpu_manager_numa_alignment or"
                " cpu_manager_share_cores, or leave out these hosts",
            )
        names = {host: str(given["node_names"].get(host, host)) for group in groups for host in group.hosts}
        made = {form: api_objects(form, groups, plans, names) for form in FORMS if form in given["node_objects"]}
        warnings = conflicts(groups, given["inventory"])
        result.update(self._write(given, proposal_files(groups, plans, made), warnings))
        for name, machine, settings, hosts in table_rows(groups):
            Display().display("%s: %s: %s: %s" % (name, machine, settings, hosts))
        result["objects"] = [member for members in made.values() for member in members]
        uses = verdicts(read_history(given["history"], ""), {host: reserved_of(plans[host]) for host in names})
        return {**result, "notes": [*verdict.notes, *uses], "warnings": warnings}

    def _write(self, given: Given, files: Mapping[str, str], warnings: list[str]) -> dict[str, object]:
        """Write what differs. Raises RefusedError for files that were edited, before any is written."""
        diffs, edited, changed = [], [], {}
        for name, text in files.items():
            path = os.path.join(given["directory"], name)
            before = _content(path)
            if before == text:
                continue
            changed[path] = text
            diffs.append({"before_header": path, "after_header": path, "before": before or "", "after": text})
            if before is not None and is_edited(before):
                edited.append(path)
        if edited and not given["overwrite_edited"]:
            said = "edited since it was proposed: %s" % ", ".join(edited)
            if not self._task.check_mode:
                raise RefusedError(
                    "%s; nothing was written" % said,
                    remedy="see what would be changed with --check --diff; then move it away, or set"
                    " cpu_manager_overwrite_edited: true",
                )
            warnings.append("%s; without cpu_manager_overwrite_edited a run would write nothing" % said)
        if not self._task.check_mode:
            for path, text in changed.items():
                put_file(path, [text])
        return {"changed": bool(changed), "files": [*changed], "diff": diffs}


def reserved_of(plan: Mapping[str, Any]) -> ReservedAmounts:
    """Return what a node reserves with what is wanted, by its answer to rollout_info."""
    wanted, cpus = mapping(plan.get("wanted")), mapping(plan.get("cpus"))
    count = cpu_count(wanted.get("reserved_system_cpus") or cpus.get("reserved_wanted") or cpus.get("reserved"))
    return ReservedAmounts(count, reserved_memory(plan.get("found"), wanted))


def _wishes(given: Given) -> dict[str, SettingsWish]:
    """Return what is wanted of each host. Raises InputError that names all hosts of which it is wrong."""
    wishes = {}
    wrong: dict[str, list[str]] = {}
    for host, asked in given.items():
        if not asked:
            # It was not reached: no wish is known.
            continue
        wished = {name: value for name, value in asked.items() if value is not None}
        values, error = validated(_WISH, wished, name_of=lambda name: "cpu_manager_" + name)
        if error:
            wrong.setdefault(str(error), []).append(str(host))
            continue
        reservation = {key: value for key, value in (values.pop("reservation") or {}).items() if value is not None}
        wishes[str(host)] = SettingsWish(reservation=_without_nothing(reservation), **values)
    if wrong:
        raise InputError("\n".join("%s: %s" % (", ".join(hosts), message) for message, hosts in wrong.items()))
    return wishes


def _without_nothing(reservation: Mapping[str, Any]) -> dict[str, object]:
    """Return the options that were given: a step of a curve may have no cpus."""
    found = dict(reservation)
    if found.get("curve"):
        found["curve"] = [{key: value for key, value in step.items() if value is not None} for step in found["curve"]]
    return found


def _shown(group: NodeGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "machine": str(group.shape),
        "workload": group.workload,
        "kubelet_versions": ["1.%d" % minor for minor in group.minors],
        "hosts": list(group.hosts),
        "variables": {row.variable: row.value for row in group.lines},
        "reasons": {row.variable: row.reason for row in group.lines},
    }


def _content(path: str) -> str | None:
    """Return the text of a file; None where there is none. Raises NodeError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "backslashreplace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NodeError("cannot be read: %s; nothing was written" % error.strerror, path) from error
