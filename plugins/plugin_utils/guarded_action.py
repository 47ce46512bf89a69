# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands between a node and the controller: the base of all action plugins of this collection.

A node's answer is data. It sets no variable of the host and acts on nothing of Ansible's, whatever names it has, and no
text of it reaches the terminal with what a terminal obeys. A host whose facts would say what the controller does is
refused before anything is done for it, and so is one with a misspelled variable.

Ansible makes each fact a variable of the host, above the inventory (inject_facts_as_vars), and any module's answer may
have facts. So a node could name the kubeconfig with which its controller works.

Of pods, a node is sent what a module needs of them, and nothing else that a pod is given.
"""

from __future__ import annotations

import dataclasses
import gc
import re
from types import MappingProxyType
from typing import Any, Mapping, MutableMapping, Sequence

from ansible.constants import LOCALHOST
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils._base.errors import CPUManagerError, RefusedError
from ..module_utils._base.secrets import text_redacted, texts_redacted
from .packing import quick_finder, with_bytecode
from .report.answers import text
from .variables import INTERNAL, KNOWN, check_names

# What a program decides by.
FOREIGN_FACT = "foreign_fact"
THIS_MACHINE = "this_machine"

# No honest fact of others begins so.
_PREFIXES = ("cpu_manager_", "drift_report_", "housekeeping_", "isolation_benchmark_", "kubelet_", "proposal_")
# What the roles and playbooks read beside these, of their own, of kubespray, and of Ansible itself.
_NAMES_READ = (
    "acting_root pod proposal"
    " saved_directory saved_fixed saved_name saved_node"
    " kube_cpu_reserved kube_memory_reserved kube_override_hostname system_cpu_reserved system_memory_reserved"
    " system_reserved"
    " dict group_names inventory_dir inventory_file inventory_hostname inventory_hostname_short lookup now omit q query"
    " range undef"
)
_NAMES_OF_OURS = frozenset(_NAMES_READ.split()) | KNOWN | INTERNAL

# A node may name thousands.
_MOST_NAMES, _LONGEST_NAME = 5, 60


def is_ours(name: str) -> bool:
    """Return whether the collection acts by a variable of this name."""
    return name.startswith(_PREFIXES) or name in _NAMES_OF_OURS


def check_facts(variables: Mapping[str, Any]) -> None:
    """Refuse a host whose facts have a name by which the controller would act. Raises RefusedError.

    variables: those of a task. Of what facts there are, Ansible itself keeps account in them.
    """
    facts = variables.get("ansible_facts")
    names = sorted(filter(is_ours, map(str, facts))) if isinstance(facts, Mapping) else []
    if names:
        raise RefusedError(
            "facts of this host have names of variables by which the controller acts (%s), which a node must"
            " not set" % _listed(names),
            "this host" if "inventory_hostname" in names else str(variables.get("inventory_hostname")),
            "nothing was done: find out where they come from: of a play of your own that sets them with set_fact and"
            " cacheable: true, leave cacheable out, or put them into the inventory; otherwise the node may be in the"
            " hands of others; then remove this host from the fact cache",
            FOREIGN_FACT,
        )


def _listed(names: Sequence[str]) -> str:
    few = ", ".join(name[:_LONGEST_NAME] for name in names[:_MOST_NAMES])
    return few if len(names) <= _MOST_NAMES else "%s and %d more" % (few, len(names) - _MOST_NAMES)


_COLLECTION = "kubenode.cpu_manager"
# The variable of a host that says where a saved node's files are.
_ROOT = "kubelet_node_root"
# Options that describe a machine, of which nothing is read then.
_DESCRIBED = frozenset(("machine", "topology"))
# {role that manages services beside a module's own work: the variable by which it does}
_MANAGING_ROLES = {
    "cache": "cache_manage_service",
    "housekeeping": "housekeeping_manage_services",
    "reconcile": "reconcile_manage_service",
}

# By what else an answer would act: facts become variables, statistics are added up, hosts and groups are made.
_ACTS = frozenset(("ansible_facts", "ansible_stats", "add_host", "add_group"))

# In an answer: what JSON writes as an escape, two of these for what takes two, and what is neither ASCII nor printable.
_SIGNS = re.compile(
    r"\\u[dD][89abAB]%(hex)s\\u[dD][c-fC-F]%(hex)s|\\u%(hex)s%(hex)s|\\.|[^ -~\n\t]" % {"hex": "[0-9a-fA-F]{2}"}
)
_SHORT = {"\\b": "\b", "\\f": "\f", "\\r": "\r"}


def failure_of(error: CPUManagerError) -> dict[str, Any]:
    """Return the result of a task that fails with this error."""
    return dict(texts_redacted({"failed": True, "changed": False, "msg": str(error), "failure": error.to_dict()}))


def shown(output: str) -> str:
    """Return what a command printed, so that no terminal obeys it; what is JSON stays so. Takes linear time."""
    return _SIGNS.sub(_shown, output)


def _shown(found: re.Match[str]) -> str:
    written = found.group()
    if written[0] != "\\":
        sign = written
    elif written[1] == "u":
        # Whoever writes half of a pair writes no sign.
        sign = bytes.fromhex(written.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    else:
        sign = _SHORT.get(written, "")
    if not sign or sign in "\n\t":
        return written
    visible = text(sign)
    # Of a sign that JSON has to write as an escape, such as a quote, it stays one.
    return written if visible == sign else visible.replace("\\", "\\\\")


# Of the last line that a node wrote in place of an answer.
_LONGEST_REASON = 300
_NEEDED = "the node needs Python 3.8 or later, and its user the right to become root"


def with_reason(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a module; of one that gave no answer, with what the node said of it instead.

    Ansible's own message is that there is no JSON. What sudo, su or Python said is the last line of the errors.
    """
    lines = str(answer.get("module_stderr") or "").split("\n") if answer.get("failed") else []
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")[:_LONGEST_REASON]
    return {**answer, "msg": "the module gave no answer: %s; %s" % (text(said), _NEEDED)} if said else dict(answer)


class _Gate(ActionBase):  # type: ignore[misc]  # Ansible is untyped
    """Everything that a node says comes through here, before Ansible reads it or warns of it."""

    def _low_level_execute_command(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return what a command on the node printed, and its exit status."""
        said = dict(super()._low_level_execute_command(*arguments, **options))
        for name in ("stdout", "stderr"):
            said[name] = shown(said[name])
            said[name + "_lines"] = said[name].splitlines()
        return said

    def _execute_module(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Return the result of a module."""
        return with_reason(super()._execute_module(*arguments, **options))

    def _configure_module(self, *arguments: Any, **options: Any) -> Any:
        """Return a module, packed with all that it imports.

        Ansible parses each of these files. The collector would look through all of these objects, and through Ansible,
        again and again; what is packed is in use until the end.
        """
        was_on = gc.isenabled()
        gc.disable()
        try:
            with quick_finder():
                packed = super()._configure_module(*arguments, **options)
            return _sent_with_bytecode(packed)
        finally:
            if was_on:
                gc.enable()


def _sent_with_bytecode(packed: Any) -> Any:
    """Return what Ansible's _configure_module() returns: a module and its path; until 2.18 the module's parts and
    its path."""
    if hasattr(packed[0], "b_module_data"):
        module = packed[0]
        script = with_bytecode(module.b_module_data, module.shebang or "")
        return (dataclasses.replace(module, b_module_data=script), *packed[1:])
    style, shebang, script, path = packed
    return style, shebang, with_bytecode(script, shebang or ""), path


def _without_acts(answer: Mapping[str, Any], action: ActionBase) -> dict[str, Any]:
    kept = {name: value for name, value in answer.items() if name not in _ACTS}
    # What failed may be told in the words of a program, of the API server, or of Python; arguments may be a kubeconfig.
    names = kept if kept.get("failed") else kept.keys() & {"invocation"}
    kept.update((name, texts_redacted(kept[name])) for name in names)
    # What Ansible itself has found, not what the node says of it: each task would look for it again.
    if action._discovered_interpreter_key:
        kept["ansible_facts"] = {action._discovered_interpreter_key: action._discovered_interpreter}
    return kept


def _is_of_a_role_or_playbook(task: Any) -> bool:
    """Return whether a task is one of this collection's own. In a play of others, other names may have a meaning."""
    return _COLLECTION in list(task.collections or ())[:1]


class GuardedAction(_Gate):
    """An action plugin has act()."""

    # Whether a misspelled variable of the host fails the task before it is done.
    CHECKS_NAMES = True
    # Whether its module has the option root.
    READS_NODE = True

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: object = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the result of the task."""
        super().run(tmp, task_vars)
        try:
            check_facts(task_vars)
            # One that is done once is for all hosts, and the first of them answers for its own tasks alone.
            is_ours = _is_of_a_role_or_playbook(self._task)
            if self.CHECKS_NAMES and is_ours and not self._task.run_once:
                check_names(task_vars)
            if self.READS_NODE and not is_ours and _ROOT in task_vars:
                # Else, a module that is called for a saved node would take this machine for it.
                root = self._templar.template(task_vars[_ROOT])
                self._task.args = {"root": root, **self._task.args}
            if self.READS_NODE:
                self._refuse_this_machine(task_vars, is_ours)
                self._refuse_services_of_this_machine(task_vars)
            return _without_acts(self.act(task_vars), self)
        except CPUManagerError as error:
            return failure_of(error)
        except AnsibleError as error:
            said = text_redacted(text(str(error)))
            if said == str(error):
                raise
            kind = AnsibleConnectionFailure if isinstance(error, AnsibleConnectionFailure) else AnsibleActionFail
        raise kind(said)

    def _refuse_this_machine(self, task_vars: Mapping[str, Any], is_ours: bool) -> None:
        """Raise RefusedError where this machine would be taken for a host of another name, and nobody said so.

        A root says so, also /: of the task, or of a role or playbook of ours, which have / by default, as a variable.
        """
        if self._connection.transport != "local" or self._task.delegate_to:
            return
        host, args = task_vars["inventory_hostname"], self._task.args
        if host in LOCALHOST:
            return
        if str(args.get("root", "/")) != "/" or ("root" in args and not is_ours) or not _DESCRIBED.isdisjoint(args):
            return
        play = self._task.get_play()
        given = (task_vars["hostvars"].raw_get(host), play.get_vars() if play else {}, self._task.get_vars())
        if not any(name.endswith("_node_root") for variables in given for name in variables):
            raise RefusedError(
                "the connection is local and no %s is set, so this machine would be taken for %s" % (_ROOT, host),
                host,
                "set %s of this host to the directory or the archive of a saved node, or to / if this machine is the"
                " node; otherwise remove ansible_connection: local" % _ROOT,
                THIS_MACHINE,
            )

    def _refuse_services_of_this_machine(self, task_vars: Mapping[str, Any]) -> None:
        """Raise RefusedError where a role is told to manage services for a saved node: they are of this machine.

        The role kubelet says so in its plan, with whatever else keeps its node from being changed.
        """
        role = self._task._role.get_name().rpartition(".")[2] if self._task._role else ""
        name, root = _MANAGING_ROLES.get(role, ""), self._task.args.get("root", "/")
        if name in task_vars and root != "/" and boolean(self._templar.template(task_vars[name]), strict=False):
            raise RefusedError(
                "%s is true, and %s is a saved node: the services would be those of the machine that has its files;"
                " nothing was changed" % (name, root),
                str(task_vars["inventory_hostname"]),
                "remove %s: the services of a saved node run elsewhere" % name,
                THIS_MACHINE,
            )

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """Do what the task says, and return its result. Raises CPUManagerError, AnsibleError."""
        answer = self._execute_module(task_vars=task_vars, wrap_async=bool(self._task.async_val))
        return dict(answer)

    def chosen(
        self, modules: Sequence[str], common: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> tuple[str, dict[str, Any]]:
        """Return the one of these modules that the task names, and its arguments. common: the options that all of them
        take.

        Raises AnsibleError where the task names none, or several.
        """
        options = {**{name: {"type": "dict"} for name in modules}, **common}
        _checked, given = self.validate_argument_spec(options, required_one_of=[modules], mutually_exclusive=[modules])
        (name,) = (name for name in modules if given.get(name) is not None)
        shared = {option: given[option] for option in common if given.get(option) is not None}
        return name, {**shared, **given[name]}

    def run_builtin(self, name: str, arguments: Mapping[str, Any], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of one of Ansible's own modules on the node, whose answer is data as well."""
        return self.run_module("ansible.builtin." + name, "ansible.legacy." + name, arguments, task_vars)

    def run_module(
        self, module: str, plugin: str, arguments: Mapping[str, Any], task_vars: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the result of another module, with the action plugin of that name where there is one."""
        task = self._task.copy()
        task.action, task.args = module, dict(arguments)
        loader = self._shared_loader_obj.action_loader
        found = loader.get(plugin, class_only=True) or loader.get("ansible.legacy.normal", class_only=True)
        # One of ours has the gate already.
        guarded = found if issubclass(found, _Gate) else type("ActionModule", (_Gate, found), {})
        action = guarded(
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        try:
            return _without_acts(action.run(task_vars=task_vars), action)
        finally:
            action.cleanup()


_RESOURCES = {"requests": None, "limits": None}
_CONTAINERS = [{"name": None, "restartPolicy": None, "resources": _RESOURCES}]
_STATUSES = [{"name": None, "allocatedResources": None}]
_SPEC = {
    "nodeName": None,
    "replicas": None,
    "resources": _RESOURCES,
    "initContainers": _CONTAINERS,
    "containers": _CONTAINERS,
}
# What module_utils/_containers/pods.py reads of a pod and of what makes pods; None: the value as it is.
_POD: dict[str, Any] = {
    "kind": None,
    "metadata": {
        "name": None,
        "namespace": None,
        "uid": None,
        "creationTimestamp": None,
        "annotations": {"kubernetes.io/config.mirror": None},
    },
    "spec": {**_SPEC, "template": {"spec": _SPEC}},
    "status": {
        "qosClass": None,
        "phase": None,
        "initContainerStatuses": _STATUSES,
        "containerStatuses": _STATUSES,
    },
}
_POD["items"] = [_POD]
# What module_utils/_containers/pods.py reads of a container as crictl inspects it.
_LABELS = ("io.kubernetes.pod.uid", "io.kubernetes.pod.name", "io.kubernetes.pod.namespace")
_CONTAINER = {
    "status": {
        "id": None,
        "state": None,
        "createdAt": None,
        "labels": dict.fromkeys((*_LABELS, "io.kubernetes.container.name")),
    },
    "info": {"runtimeSpec": {"linux": {"cgroupsPath": None, "resources": {"cpu": {"shares": None}}}}},
}
_OPTIONS = {"pods": [_POD], "containers": [_CONTAINER]}


def needed(value: Any, form: Any) -> Any:
    """Return what a form names of a value. Of what has another type than the form, the type is left, for the module to
    refuse.

    form: {key: the form of its value}, [the form of each item], None for a value that stays.
    """
    if isinstance(value, Mapping) and isinstance(form, dict):
        return {key: needed(value[key], form[key]) for key in form if key in value}
    if isinstance(value, (list, tuple)) and isinstance(form, list):
        return [needed(item, form[0]) for item in value]
    if form is None:
        return value
    empty: tuple[Any, ...] = ("", {}, [])
    return next((nothing for nothing in empty if isinstance(value, type(nothing))), value)


class PodsAction(GuardedAction):
    """Environments, arguments and volumes of pods stay on the controller."""

    def act(self, task_vars: Mapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the result of the task."""
        self._task.args = self.filtered()
        return super().act(task_vars)

    def filtered(self) -> dict[str, Any]:
        """Return the arguments of the task, with nothing of pods that the module does not need."""
        return {
            name: needed(value, _OPTIONS[name]) if name in _OPTIONS else value
            for name, value in self._task.args.items()
        }
