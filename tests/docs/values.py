# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""YAML of the documentation: what it is, and whether modules and roles would take the values in it.

What a module takes is what ansible-doc says of it, which ansible-test sanity holds equal to the module. What a role
takes is in its argument_specs. Ansible's own validator reads both.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.splitter import parse_kv
from ansible.playbook.play import Play
from ansible.playbook.task import Task

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import KNOWN, misspelled
from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS

from .pages import CHECKOUT, pages

COLLECTION = "kubenode.cpu_manager"
ACTION_GROUP = "group/%s.cpu_manager" % COLLECTION
FULL_NAME = re.compile(r"\b(?:[a-z_]+\.){2}[a-z0-9_]+\b")
BLOCK = ("block", "rescue", "always")
ROLE_TASKS = ("ansible.builtin.import_role", "ansible.builtin.include_role")
TASKS = ("tasks", "pre_tasks", "post_tasks", "handlers")
KEYWORDS = frozenset(Task.fattributes) - {"action", "args"}
PLAY_KEYWORDS = frozenset(Play.fattributes)
IMPORT_PLAYBOOK = "ansible.builtin.import_playbook"
# Their options are any names.
FREE = ("ansible.builtin.set_fact", "ansible.builtin.set_stats")

# What a mapping at the top of a YAML block is, by a name that only it has; all others are inventories or variables.
OTHER_FORMS = {
    "apiVersion": "object of Kubernetes",
    "argument_specs": "argument specs",
    "collections": "requirements.yml",
    "dependencies": "execution environment",
    "driverConfig": "values of a chart",
    "rule_files": "configuration of Prometheus",
    "kube_reserved": "variables of kubespray",
}


class Form(NamedTuple):
    """What a YAML block is, and what is wrong with it."""

    kind: str
    problems: list[str]


@lru_cache(maxsize=1)
def documentation() -> dict[str, Any]:
    """Return {full name, or the name alone of one of this collection: what ansible-doc says}, of all the pages may
    mean."""
    own = [path.stem for path in (CHECKOUT / "plugins" / "modules").glob("*.py")]
    named = {name for page in pages() for name in FULL_NAME.findall(page.read_text("utf-8"))}
    named = {name for name in named if name.startswith(("ansible.", "kubernetes."))}
    names = sorted(named | {"%s.%s" % (COLLECTION, name) for name in own})
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
    }
    # One that is no module is left out of the answer.
    done = subprocess.run(
        ["ansible-doc", "--json", "--type", "module", *names],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    found = json.loads(done.stdout)
    return {**found, **{name: found["%s.%s" % (COLLECTION, name)] for name in own}}


@lru_cache(maxsize=1)
def modules() -> dict[str, Any]:
    """Return {name of a module, as in documentation(): its options}."""
    return {name: said["doc"].get("options", {}) for name, said in documentation().items()}


@lru_cache(maxsize=1)
def variables() -> dict[str, Any]:
    """Return {variable: its option} of all roles, by all their entry points."""
    found: dict[str, Any] = {}
    for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            found.update(entry.get("options") or {})
    # The role hands it on to modules, which say what it is made of.
    return {**found, "kubelet_reservation": modules()["drift_info"]["reservation"]}


def is_template(value: Any) -> bool:
    return isinstance(value, str) and "{{" in value


def specification(options: Mapping[str, Any], values: Any) -> dict[str, Any]:
    """Return options as the validator takes them; one whose value is a template takes anything."""
    values = values if isinstance(values, dict) else {}
    found = {}
    for name, option in options.items():
        value = next((values[key] for key in (name, *option.get("aliases", ())) if key in values), None)
        kept = {key: option[key] for key in ("required", "aliases") if key in option}
        if not is_template(value):
            kept.update((key, option[key]) for key in ("type", "elements") if key in option)
            if "choices" in option:
                kept["choices"] = list(option["choices"])
            inner = option.get("suboptions") or option.get("options")
            if inner:
                members = value if isinstance(value, list) else [value]
                # Where one member of a list has a template, it is looked at less closely in all of them.
                merged: dict[str, Any] = {}
                for member in members:
                    merged.update(member if isinstance(member, dict) else {})
                kept["options"] = specification(inner, merged)
        found[name] = {"type": "raw", **kept} if "type" not in kept else kept
    return found


def check_values(options: Mapping[str, Any], values: dict[str, Any]) -> list[str]:
    """Return what Ansible says of values for these options."""
    return list(ArgumentSpecValidator(specification(options, values)).validate(values).error_messages)


def check_arguments(module: str, arguments: dict[str, Any]) -> list[str]:
    """Return what is wrong with the arguments of a module."""
    # Ad-hoc commands may leave ansible.builtin away.
    options = modules().get(module)
    if options is None:
        return ["there is no module %s" % module]
    return [] if module in FREE else ["%s: %s" % (module, problem) for problem in check_values(options, arguments)]


# What is typed by hand, and in no inventory.
OF_WHERE = ("pod",)


def check_variables(given: Mapping[str, Any], must_be_known: bool = False) -> list[str]:
    """Return what is wrong with variables: their names, and the values of those that roles take."""
    problems = ["%(name)s: is %(meant)s meant?" % found for found in misspelled(given)]
    if must_be_known:
        problems += [
            "there is no variable %s" % name
            for name in given
            if name not in (*KNOWN, *OF_WHERE) and not name.startswith("ansible_")
        ]
    options = {name: option for name, option in variables().items() if name in given}
    options = {name: {**option, "required": False} for name, option in options.items()}
    return [*problems, *check_values(options, {name: given[name] for name in options})]


def tasks_of(plays: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield all tasks of plays, those in blocks, too."""
    for play in plays:
        for key in TASKS:
            yield from flat(play.get(key) or [])


def flat(tasks: list[Any]) -> Iterator[dict[str, Any]]:
    for task in tasks:
        yield task
        for key in BLOCK:
            yield from flat(task.get(key) or [])


def check_task(task: dict[str, Any]) -> list[str]:
    """Return what is wrong with a task."""
    problems = check_variables(task.get("vars") or {})
    problems += check_defaults(task.get("module_defaults") or {})
    names = [key for key in task if key not in KEYWORDS and key not in BLOCK and not key.startswith("with_")]
    if any(key in task for key in BLOCK):
        return problems + ["a block has no %s" % name for name in names]
    if len(names) != 1:
        return [*problems, "a task has one module, and not %s" % (names or "none")]
    (module,) = names
    arguments = task[module] or {}
    if isinstance(arguments, str):
        arguments = parse_kv(arguments)
    if module in ROLE_TASKS:
        return problems + check_role(arguments.get("name", ""))
    return problems + check_arguments(module, arguments)


def check_defaults(defaults: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with module_defaults."""
    problems = []
    for name, arguments in defaults.items():
        options = modules()["drift_info"] if name == ACTION_GROUP else modules().get(name)
        all_optional = {key: {**option, "required": False} for key, option in (options or {}).items()}
        problems += ["there is no %s" % name] if options is None else check_values(all_optional, dict(arguments))
    return problems


def check_role(name: str) -> list[str]:
    namespace, _dot, role = name.rpartition(".")
    is_there = namespace == COLLECTION and (CHECKOUT / "roles" / role).is_dir()
    return [] if is_there else ["there is no role %s" % name]


def check_playbook(plays: list[Any], files: set[str]) -> list[str]:
    """Return what is wrong with a playbook beside its syntax. files: those that the page shows."""
    problems = []
    for play in plays:
        problems += check_variables(play.get("vars") or {})
        imported = play.get(IMPORT_PLAYBOOK)
        if imported:
            namespace, _dot, name = imported.rpartition(".")
            is_ours = namespace == COLLECTION and (CHECKOUT / "playbooks" / (name + ".yml")).is_file()
            problems += [] if is_ours or imported in files else ["there is no playbook %s" % imported]
            continue
        problems += ["a play has no %s" % key for key in play if key not in PLAY_KEYWORDS]
        problems += check_defaults(play.get("module_defaults") or {})
        for role in play.get("roles") or []:
            role = {"role": role} if isinstance(role, str) else role  # noqa: PLW2901
            problems += check_role(role.get("role") or role.get("name") or "")
            problems += check_variables(role.get("vars") or {})
    for task in tasks_of(plays):
        problems += check_task(task)
    return problems


def check_inventory(inventory: dict[str, Any]) -> list[str]:
    """Return what is wrong with an inventory: its groups' members, and its variables."""
    problems = []
    for name, group in inventory.items():
        group = group or {}  # noqa: PLW2901
        problems += ["group %s has no %s" % (name, key) for key in group if key not in ("hosts", "children", "vars")]
        problems += check_variables(group.get("vars") or {})
        for values in (group.get("hosts") or {}).values():
            problems += check_variables(values or {})
        problems += check_inventory(group.get("children") or {})
    return problems


def is_inventory(document: dict[str, Any]) -> bool:
    members = [group for group in document.values() if isinstance(group, dict)]
    return bool(members) and all(set(group) & {"hosts", "children"} for group in members)


def form_of(document: Any, files: set[str]) -> Form:
    """Return what a document is, and what is wrong with it."""
    if isinstance(document, list) and document and all(isinstance(member, dict) for member in document):
        if any("hosts" in member or IMPORT_PLAYBOOK in member for member in document):
            return Form("playbook", check_playbook(document, files))
        return Form("tasks", [problem for task in flat(document) for problem in check_task(task)])
    if isinstance(document, dict) and document:
        for name, kind in OTHER_FORMS.items():
            if name in document:
                return Form(kind, [])
        if is_inventory(document):
            return Form("inventory", check_inventory(document))
        own = [name for name in document if name in KNOWN or name.startswith("ansible_")]
        if own or misspelled(document):
            return Form("variables", check_variables(document, must_be_known=True))
    return Form("unknown", ["nobody can say what this is: %s" % json.dumps(document, default=str)[:80]])


def check_yaml(text: str, files: set[str] | None = None) -> tuple[list[str], list[str]]:
    """Return (what the documents of a text are, what is wrong with them)."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        return ["unknown"], ["no YAML: %s" % error]
    forms = [form_of(document, files or set()) for document in documents]
    return [form.kind for form in forms], [problem for form in forms for problem in form.problems]


def playbook_of(text: str, directory: Path) -> Path | None:
    """Return a file for `ansible-playbook --syntax-check` of a playbook or of tasks; None where a text is neither."""
    documents = list(yaml.safe_load_all(text))
    kinds = check_yaml(text)[0]
    if kinds == ["tasks"]:
        documents = [[{"hosts": "all", "gather_facts": False, "tasks": documents[0]}]]
    elif kinds != ["playbook"]:
        return None
    path = directory / ("%d.yml" % len(list(directory.iterdir())))
    path.write_text(yaml.safe_dump(documents[0], sort_keys=False), encoding="utf-8")
    return path
