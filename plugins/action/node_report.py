# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks at a node, and writes what it answered as a file on the controller. The module of this name documents it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from typing import Any, Mapping

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.utils.display import Display

from ..module_utils._base.errors import CPUManagerError, InputError
from ..module_utils._kubelet.settings import SETTINGS
from ..plugin_utils.controller_action import validated
from ..plugin_utils.guarded_action import FOREIGN_FACT, GuardedAction, failure_of
from ..plugin_utils.report.answers import NO_KUBELET, UNREACHABLE, collected, time_of, was_read, why_unread
from ..plugin_utils.report.assemble import ReportTerms, assemble
from ..plugin_utils.report.checks import API, IMPACT, LOOKS, NODES
from ..plugin_utils.report.configz import AskedAPI, read_configz, read_node
from ..plugin_utils.report.metrics import node_metrics
from ..plugin_utils.report.results import Progress, Result, checked_waivers, run_of, write_result
from ..plugin_utils.variables import check_names, options_of_variables

_MODULE = "kubenode.cpu_manager.rollout_info"
_TEXTFILE = "kubenode.cpu_manager.node_textfile"
# Of the arguments, those that are not for the node.
_OWN: dict[str, dict[str, Any]] = {
    "directory": {"type": "path", "required": True},
    "from_variables": {"type": "bool", "default": False},
    "fleet": {"type": "str", "default": ""},
    "waivers": {"type": "list", "default": []},
    "hide_names": {"type": "bool", "default": False},
    "may_lack_kubelet": {"type": "bool", "default": False},
    "textfile": {"type": "path"},
    "ask_kubelet": {"type": "bool", "default": False},
    "look_at": {"type": "list", "elements": "str", "choices": list(LOOKS), "default": []},
    "look_seconds": {"type": "int", "default": 5},
    "impact_from": {"type": "str", "choices": [API, NODES], "default": API},
    "trial_program": {"type": "str"},
    "devices": {"type": "list", "elements": "dict", "default": []},
    "node_name": {"type": "str"},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}
# Which of the others a variable of the host may give.
_OF_VARIABLES = frozenset(
    ("config_path", "kubelet_root", "kubelet_version", "reservation", "drain", "discard_assignments", "manage_service")
    + ("allow_owners", "runtime_config", "runtime_version", *SETTINGS)
)
# Those that say where things are, which is all that a further look is given.
_PLACES = ("root", "config_path", "kubelet_root", "kubelet_version", "command_line")


class ActionModule(GuardedAction):
    """Runs in the worker of the node, so that the parent of all workers gets a few words only."""

    # A misspelled one is said in the result of the node, too.
    CHECKS_NAMES = False

    _supports_async = False

    def run(self, tmp: object = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the result of the task.

        A host whose facts would have a say is lost to the play, as one that cannot be reached. If it had failed, it
        would do what is always done: as the first one, write the report as its facts say, or not at all.
        """
        result = super().run(tmp, task_vars)
        if result.get("failed") and result.get("failure", {}).get("kind") == FOREIGN_FACT:
            result = {**result, "failed": False, "unreachable": True}
        return result

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the task. It fails for a node that could not be read, after its file is written."""
        host = str(task_vars["inventory_hostname"])
        own, for_node, wrong = self._arguments()
        try:
            if wrong:
                raise wrong
            result = self._looked(host, own, for_node, task_vars)
            path = write_result(own["directory"], result)
        except Exception as error:
            # A node that could not be read has a result that says so, whatever the reason.
            answer = {"failed": True, "msg": "%s: %s" % (host, error)}
            with suppress(CPUManagerError):
                write_result(own["directory"], Result(host, time_of(time.time()), answer, {}, [], fleet=own["fleet"]))
            self._show_progress(own["directory"], task_vars, time.time())
            if isinstance(error, CPUManagerError):
                raise AnsibleActionFail(answer["msg"]) from None
            raise
        now = time.time()
        self._show_progress(own["directory"], task_vars, now)
        node = collected(host, result.answer)
        is_read = was_read(node, own["may_lack_kubelet"])
        told = {"changed": False, "status": node["status"], "file": path}
        if own["textfile"] and node["status"] != UNREACHABLE:
            (shown,) = assemble([result], ReportTerms("", now))["nodes"]
            metrics = node_metrics({**shown, "answer": node}, result.looked_at)
            place = {name: for_node[name] for name in ("root",) if name in for_node}
            told.update(self._write({**place, "path": own["textfile"], "content": metrics}, task_vars))
        # Last: that the text file was written makes no node a node that was read.
        return told if is_read else {**told, "failed": True, "msg": why_unread(node)}

    def _arguments(self) -> tuple[dict[str, Any], dict[str, Any], InputError | None]:
        """Return the arguments that are not for the node, those that are, and what is wrong with the former."""
        given = dict(self._task.args)
        own = {name: given.pop(name) for name in _OWN if name in given}
        checked, wrong = validated(_OWN, own, given.get("option_names"))
        if wrong and not (isinstance(checked.get("directory"), str) and isinstance(checked.get("fleet"), str)):
            raise AnsibleActionFail(str(wrong))
        return checked, given, wrong

    def _looked(
        self, host: str, own: Mapping[str, Any], for_node: dict[str, Any], task_vars: Mapping[str, Any]
    ) -> Result:
        """Return what the node answered to all that it was asked."""
        if own["from_variables"]:
            for_node = {**self._of_variables(for_node, task_vars), **for_node}
        names = dict(for_node.get("option_names") or {})
        waivers = checked_waivers(own["waivers"], names.get("waivers", "waivers"))
        if own["look_at"]:
            from ..plugin_utils.report.looks import check_seconds  # noqa: PLC0415 # most reports have no looks

            check_seconds(own["look_at"], own["look_seconds"], names.get("look_seconds", "look_seconds"))
        for_node["hide_names"] = own["hide_names"]
        answer = self._answer(for_node, task_vars)
        node = collected(host, answer)
        is_read = was_read(node, own["may_lack_kubelet"])
        running = self._running(own, host, answer) if is_read and own["ask_kubelet"] else {}
        is_running = is_read and node["status"] != NO_KUBELET
        looks = self._looks(own, for_node, task_vars) if is_running and own["look_at"] else {}
        if IMPACT in looks:
            looks[IMPACT] = self._impact(own, host, answer, looks[IMPACT])
        return Result(
            host, time_of(time.time()), answer, running, waivers, looks, own["fleet"], own["may_lack_kubelet"]
        )

    def _of_variables(self, for_node: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        names = dict(for_node.get("option_names") or {})
        chosen = {option: variable for option, variable in names.items() if option in _OF_VARIABLES}
        return options_of_variables(chosen, task_vars, self._templar.template)

    def _answer(self, for_node: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the node differs in, or why that is not known, as a module's result."""
        try:
            check_names(task_vars)
        except InputError as error:
            return failure_of(error)
        return self._ran(_MODULE, for_node, task_vars)

    def _looks(
        self, own: Mapping[str, Any], for_node: Mapping[str, Any], task_vars: Mapping[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Return what else the node is looked at for, by the name of the look. One that fails is an answer, too."""
        from ..plugin_utils.report.looks import arguments_of, kept, module_of  # noqa: PLC0415 # as above

        arguments = {name: for_node[name] for name in _PLACES if name in for_node}
        names = dict(for_node.get("option_names") or {})
        arguments["option_names"] = {**names, "seconds": names.get("look_seconds", "look_seconds")}
        more = partial(
            arguments_of,
            wanted=for_node,
            seconds=own["look_seconds"],
            hide_names=own["hide_names"],
            tells=own["impact_from"] == NODES,
            program=own["trial_program"],
            devices=own["devices"],
        )
        # One after the other: none is measured while another one runs.
        return {
            look: kept(look, self._ran(module_of(look), {**arguments, **more(look)}, task_vars))
            for look in LOOKS
            if look in own["look_at"]
        }

    def _impact(
        self, own: Mapping[str, Any], host: str, plan: Mapping[str, Any], beside: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what becomes of the node's pods, or why that is not known. beside: of admission_info."""
        from ..plugin_utils.impact.look import look_by_api, look_by_node  # noqa: PLC0415 # as above
        from ..plugin_utils.report.looks import kept  # noqa: PLC0415 # as above

        if beside.get("failed"):
            return beside
        if own["impact_from"] == NODES:
            return kept(IMPACT, look_by_node(host, plan, beside, own["hide_names"]))
        try:
            node, pods = read_node(own["node_name"] or host, AskedAPI(own["kubeconfig"], own["context"]))
        except CPUManagerError as error:
            return failure_of(error)
        return kept(IMPACT, look_by_api(host, plan, beside, node, pods, own["hide_names"]))

    def _ran(self, module: str, arguments: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a module, or why there is none."""
        try:
            return dict(self._execute_module(module_name=module, module_args=dict(arguments), task_vars=task_vars))
        except AnsibleConnectionFailure as error:
            return {"unreachable": True, "msg": str(error)}
        except AnsibleError as error:
            return {"failed": True, "msg": str(error)}

    def _write(self, figures: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Write figures on the node; what the result has to have of it. figures: arguments of the module."""
        written = self._ran(_TEXTFILE, figures, task_vars)
        return {name: written[name] for name in ("changed", "failed", "msg") if name in written}

    def _running(self, own: Mapping[str, Any], host: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of the running kubelet; a note in the answer where they cannot be read."""
        try:
            return read_configz(own["node_name"] or host, AskedAPI(own["kubeconfig"], own["context"]))
        except CPUManagerError as error:
            for name, value in (("notes", str(error)), ("note_checks", "running-kubelet-unread")):
                before = answer.get(name)
                answer[name] = [*(before if isinstance(before, list) else []), value]
            return {}

    def _show_progress(self, directory: str, task_vars: Mapping[str, Any], now: float) -> None:
        hosts = task_vars.get("ansible_play_hosts_all") or ()
        # All workers of a run have one parent.
        line = Progress(directory, run_of(os.getppid()), len(hosts)).advance(now)
        if line:
            Display().display(line)
