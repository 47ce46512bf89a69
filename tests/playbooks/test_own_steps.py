# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles and playbooks run their own steps on the node that is named, wherever an operator runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from .conftest import CHECKOUT, CopyOf, ansible_playbook

ROLES = CHECKOUT / "roles"
PLAYBOOK_FILES = CHECKOUT / "playbooks"
PLAYBOOKS = {path.stem for path in PLAYBOOK_FILES.glob("*.yml")}
SIGN = "somebody else's step"
# The directories of an operator in which Ansible might look, and those of a role.
DIRECTORIES = (
    *(".", "tasks", "handlers", "vars", "defaults", "templates", "files", "playbooks"),
    *("fleet", "node", "cluster", "tasks/node", "tasks/cluster"),
)

# One that a service sees, which the tests' own need not be.
PYTHON = "/usr/bin/python3"

# In an order in which each has something to do.
RUNS = (
    ("rollout", "verify", "drift_report", "report", "rollback", "repair", "plan_changes", "plan", "propose", "save"),
    ("to_dra", "from_dra", "housekeeping", "reconcile", "simulate", "try_upgrade", "where"),
)
# The first works on running nodes alone, the second takes a node with resctrl, see test_cache.py, and the third an API
# server: see tests/cluster/test_impact.py.
NOT_RUN = {"isolation_benchmark", "cache", "impact"}
# Nothing but the first directory can be written.
WRITABLE = """\
mount --bind "$1" "$1"
mount -o remount,bind,ro /
mount -o remount,bind,ro /sys
cd "$1/repository"
shift
exec "$@"
"""

ROLE_TASKS = "{{ role_path }}/tasks/"
INCLUDES = ("import_tasks", "include_tasks", "include_vars", "import_playbook")
WITH_SOURCE = ("template", "copy", "script", "unarchive")


def write_traps(directory: Path) -> None:
    """Write files of all names that the roles and playbooks use, in all places where Ansible might look for them."""
    trap = json.dumps([{"name": SIGN, "ansible.builtin.debug": {"msg": SIGN}}])
    names = {path.name for path in [*CHECKOUT.glob("playbooks/**/*.yml"), *ROLES.glob("*/*/**/*")] if path.is_file()}
    for folder in DIRECTORIES:
        (directory / folder).mkdir(parents=True, exist_ok=True)
        for name in names:
            (directory / folder / name).write_text(trap if name.endswith(".yml") else SIGN, encoding="utf-8")


@pytest.mark.parametrize(
    ("playbooks", "written"),
    [
        (RUNS[0], "var/lib/kubenode-cpu-manager/last-change.json"),
        (RUNS[1], "usr/local/lib/kubenode/cpu-manager-reconcile.pyz"),
    ],
    ids=["settings", "more"],
)
def test_a_run_on_a_saved_node_takes_its_own_steps_and_leaves_the_controller_alone(
    playbooks: tuple[str, ...], written: str, copy_of: CopyOf, tmp_path: Path, private_services: None
) -> None:
    """Files of the operator replace no step, and one variable makes each role and playbook work on the saved node."""
    root = copy_of("edge", "edge")
    (root / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
    directory = tmp_path / "repository"
    write_traps(directory)
    (directory / "pods.yml").write_text("", encoding="utf-8")
    variables: dict[str, Any] = {
        "kubelet_node_root": str(root),
        "kubelet_cpu_manager_policy": "static",
        "kubelet_reserved_system_cpus": "0",
        "housekeeping_interpreter": PYTHON,
        "reconcile_interpreter": PYTHON,
        "cpu_manager_workload": "latency",
        "cpu_manager_manifests": "pods.yml",
        "kubelet_trial_program": "/usr/bin/kubelet-1.37",
    }
    first, *others = ["kubenode.cpu_manager.%s" % name for name in playbooks]
    places = ("HOME", "TMPDIR", "ANSIBLE_HOME", "ANSIBLE_LOCAL_TEMP", "ANSIBLE_REMOTE_TEMP", "KEPT_BYTECODE")
    run = ansible_playbook(
        directory,
        first,
        {"edge": variables},
        *others,
        prefix=("unshare", "--mount", "sh", "-ec", WRITABLE, "sh", str(tmp_path)),
        environment=dict.fromkeys(places, str(tmp_path / "home")),
    )
    assert run.status == 0, run.account()
    assert SIGN not in run.output
    assert (root / written).exists()
    # All of them began.
    assert run.output.count("\nPLAY [") >= len(playbooks)


def test_all_playbooks_are_run() -> None:
    assert {name for run in RUNS for name in run} == PLAYBOOKS - NOT_RUN


def tasks_in(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        yield item
        for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
            yield from tasks_in(item.get(key) or [])


def file_of(task: dict[str, Any], names: tuple[str, ...], key: str) -> str | None:
    """Return the file that a task names, if it has a module of these names."""
    for name, value in task.items():
        if name.split(".")[-1] in names:
            return value if isinstance(value, str) else value.get(key)
    return None


def named_loosely(path: Path) -> Iterator[str]:
    """Yield the tasks of a file that name another file so that Ansible may find it elsewhere."""
    for task in tasks_in(yaml.safe_load(path.read_text(encoding="utf-8"))):
        included = file_of(task, INCLUDES, "file") or ROLE_TASKS
        source = file_of(task, WITH_SOURCE, "src") or "/"
        # What a playbook imports is looked for beside it, and nowhere else.
        statics = ("import_playbook", "import_tasks") if PLAYBOOK_FILES in path.parents else ("import_playbook",)
        is_own = included.startswith(ROLE_TASKS) or any(name.endswith(statics) for name in task)
        if not is_own or not source.startswith(("/", "{{ role_path }}/", "{{ saved_here.path }}/")):
            yield "%s: %s" % (path, task["name"])


def test_each_file_is_named_so_that_no_other_can_be_found() -> None:
    """Ansible looks for a relative name in the operator's directory, too."""
    files = sorted([*ROLES.glob("*/tasks/**/*.yml"), *PLAYBOOK_FILES.glob("**/*.yml")])
    files = [path for path in files if path.parent != PLAYBOOK_FILES / "vars"]
    assert [found for path in files for found in named_loosely(path)] == []


@pytest.mark.parametrize(
    "task",
    [
        {"ansible.builtin.import_tasks": "verify.yml"},
        {"ansible.builtin.include_tasks": {"file": "verify.yml"}},
        {"ansible.builtin.template": {"src": "a.service.j2"}},
        {"block": [{"name": "Inner", "include_vars": "main.yml"}]},
    ],
    ids=["import", "include", "template", "in a block"],
)
def test_a_relative_name_is_found(task: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "tasks.yml"
    path.write_text(json.dumps([{"name": "Outer", **task}]), encoding="utf-8")
    assert len(list(named_loosely(path))) == 1
