# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No argument of a module or role is a secret, and no answer needs a hidden result whole.

So the way in which a version of ansible-core masks these changes no answer.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, Iterator

import yaml

CHECKOUT = Path(__file__).parents[2]
# What ansible-test sanity takes for a secret by its name, which a module then has to mark with no_log.
LOOKS_SECRET = re.compile(r"(?:pass(?!ive)|secret|token|cryptkey)", re.IGNORECASE)


def options_of(specification: Any) -> Iterator[tuple[str, Any]]:
    """Yield all options with their names, also those within others."""
    for name, option in (specification.get("options") or {}).items():
        yield name, option
        yield from options_of(option)


def documentation(path: Path) -> Any:
    for statement in ast.parse(path.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "DOCUMENTATION":
            return yaml.safe_load(ast.literal_eval(statement.value))
    return {}


def test_no_argument_is_masked() -> None:
    """As a keyword, as a key of a dict, or by another file of this collection."""
    sources = {path: path.read_text("utf-8") for path in (CHECKOUT / "plugins").rglob("*.py")}
    assert len(sources) > 100
    assert [path for path, text in sources.items() if re.search(r"""["']?\bno_log\b["']?\s*[:=]""", text)] == []
    for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"):
        for entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            assert [name for name, option in options_of(entry_point) if "no_log" in option] == [], path


def test_no_argument_has_the_name_of_a_secret() -> None:
    named = []
    for path in (CHECKOUT / "plugins" / "modules").glob("*.py"):
        named += [name for name, _option in options_of(documentation(path))]
    for path in (CHECKOUT / "plugins" / "doc_fragments").glob("*.py"):
        named += re.findall(r"^  (\w+):$", path.read_text("utf-8"), re.MULTILINE)
    for path in (CHECKOUT / "roles").glob("*/meta/argument_specs.yml"):
        for entry_point in yaml.safe_load(path.read_text("utf-8"))["argument_specs"].values():
            named += [name for name, _option in options_of(entry_point)]
    assert len(named) > 200
    assert list(filter(LOOKS_SECRET.search, named)) == []


# --- tasks whose results are hidden --------------------------------------------------------------

_DECIDES = "decides in the controller's process"
_SAYS = "names pods and what is wrong with them, and nothing of their specifications"
# {(what is registered, the file, the task, or the variable of vars/main.yml, that uses it): why a masked value changes
# no answer}. What is stored, passed to a module or printed is a part that a filter of ours has chosen.
USES = {
    ("kubelet_cluster_pods", "roles/kubelet/vars/main.yml", "kubelet_drain_verdict"): _SAYS,
    (
        "kubelet_cluster_pods",
        "roles/kubelet/tasks/drain.yml",
        "Wait until only pods of DaemonSets, static pods and ended ones are left",
    ): _DECIDES,
    (
        "kubelet_cluster_pods",
        "roles/kubelet/tasks/drain.yml",
        "Remember that the node is empty, and which pods stay",
    ): "replaces it by the names and identities of the pods, of which no task hides anything any more",
    (
        "kubelet_cluster_pods",
        "roles/kubelet/tasks/call.yml",
        "Change the kubelet",
    ): "gets the names and identities that took its place after the drain",
}
_INNER = ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers")


def tasks_of(node: Any) -> Iterator[dict[str, Any]]:
    """Yield all tasks and blocks of a file, each without those within it."""
    for task in node if isinstance(node, list) else []:
        yield {name: value for name, value in task.items() if name not in _INNER}
        for name in _INNER:
            yield from tasks_of(task.get(name))


def files_with_tasks() -> dict[str, list[dict[str, Any]]]:
    paths = [*CHECKOUT.glob("roles/*/tasks/**/*.yml"), *CHECKOUT.glob("roles/*/handlers/*.yml")]
    paths += CHECKOUT.glob("playbooks/**/*.yml")
    read = {str(path.relative_to(CHECKOUT)): yaml.safe_load(path.read_text("utf-8")) for path in paths}
    return {name: list(tasks_of(content)) for name, content in read.items()}


def test_every_use_of_a_hidden_result_is_known() -> None:
    """A hidden result may be masked wherever it is shown: each use says why that changes no answer."""
    files = files_with_tasks()
    hidden = {task.get("register") for tasks in files.values() for task in tasks if task.get("no_log")} - {None}
    assert hidden == {registered for registered, _file, _user in USES}
    places = [(name, task["name"], task) for name, tasks in files.items() for task in tasks if "name" in task]
    for path in [*CHECKOUT.glob("roles/*/vars/*.yml"), *CHECKOUT.glob("roles/*/defaults/*.yml")]:
        variables = yaml.safe_load(path.read_text("utf-8")) or {}
        places += [(str(path.relative_to(CHECKOUT)), name, value) for name, value in variables.items()]
    found = set()
    for file, user, content in places:
        used = {name: value for name, value in content.items() if name != "register"} if "/tasks/" in file else content
        found |= {(name, file, user) for name in hidden if re.search(r"\b%s\b" % name, repr(used))}
    assert found == set(USES)


def test_no_hidden_result_is_printed_or_written() -> None:
    """Of what is used after a filter, nothing goes into a message or a file whole."""
    for file, tasks in files_with_tasks().items():
        for task in tasks:
            module = next((name for name in task if name.endswith((".debug", ".fail", ".copy", ".template"))), None)
            if module is not None:
                for registered in {name for name, _file, _user in USES}:
                    assert not re.search(r"\b%s\b" % registered, repr(task[module])), (file, task["name"])
