# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real ansible-playbook runs on saved nodes. A host is a node, and a test asks many hosts in one run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS
from ansible_collections.kubenode.cpu_manager.tests.machines.demo import write_demo_fleet

# Fixtures are used by their names.
# pylint: disable=unused-import
from .init import private_services  # noqa: F401

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent
DEMO_FLEET = CHECKOUT / "demo" / "fleet"
# Compiling a module takes longer than the rest of it: what Python has compiled is kept for the next runs.
KEEPER = (HERE / "kept_bytecode", CHECKOUT / "tests/vm/files/base/usr/lib/python3/dist-packages")
KEPT_BYTECODE = CHECKOUT / "build" / "bytecode"

Result = dict[str, Any]
# Makes a copy of a node of the demo's fleet, by its name and a name for the copy.
CopyOf = Callable[[str, str], Path]


class Run(NamedTuple):
    """One run of ansible-playbook: its exit status, what it printed, and the results of each host in order.

    What a host skipped is apart from its results.
    """

    status: int
    output: str
    results: dict[str, list[Result]]
    skipped: Mapping[str, list[Result]] = MappingProxyType({})

    def last(self, host: str) -> Result:
        """Return the result of a host's last task."""
        return self.results[host][-1]

    def changes(self, host: str) -> list[str]:
        """Return what changed a host: tasks, and in place of the change of its kubelet the steps of that."""
        found: list[str] = []
        for result in self.results[host]:
            if "steps" in result:
                found += [step["name"] for step in result["steps"] if step["changed"]]
            elif result["changed"]:
                found.append(result["task"].rpartition(" : ")[2])
        return found

    def account(self) -> str:
        """Return what went wrong, before all that was printed: of a long text not everybody shows the whole."""
        wrong = [
            "%s: %s: %s" % (host, result["task"], result.get("msg"))
            for host, results in self.results.items()
            for result in results
            if result["outcome"] != "ok"
        ]
        return "\n".join([*wrong, self.output])


def ansible_playbook(
    directory: Path,
    playbook: str | Sequence[Mapping[str, Any]],
    hosts: Mapping[str, Mapping[str, Any]],
    *arguments: str,
    collections: Path = COLLECTIONS,
    prefix: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """Run a playbook, its name or its plays, on these hosts with these variables, from the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = directory / "inventory.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": variables}}), encoding="utf-8")
    if not isinstance(playbook, str):
        (directory / "playbook.json").write_text(json.dumps(playbook), encoding="utf-8")
        playbook = str(directory / "playbook.json")
    results = directory / "results.jsonl"
    results.unlink(missing_ok=True)
    done = subprocess.run(
        [*prefix, "ansible-playbook", "-i", str(inventory), playbook, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=directory,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callback_plugins"),
            "ANSIBLE_STRATEGY_PLUGINS": str(HERE / "strategy_plugins"),
            "ANSIBLE_CALLBACKS_ENABLED": "record",
            "RECORD_RESULTS": str(results),
            "NO_COLOR": "1",
            "PWD": str(directory),
            "PYTHONPATH": os.pathsep.join(map(str, KEEPER)),
            "KEPT_BYTECODE": str(KEPT_BYTECODE),
            **environment,
        },
    )
    recorded: dict[str, list[Result]] = {host: [] for host in hosts}
    skipped: dict[str, list[Result]] = {host: [] for host in hosts}
    if results.exists():
        for line in results.read_text(encoding="utf-8").splitlines():
            host, result = json.loads(line)
            (skipped if result["outcome"] == "skipped" else recorded).setdefault(host, []).append(result)
    return Run(done.returncode, done.stdout, recorded, skipped)


def task(module: str, name: str = "Do it", **parameters: Any) -> dict[str, Any]:
    """Return a task with a module of this collection."""
    return {"name": name, "kubenode.cpu_manager." + module: parameters}


def play(*tasks: Mapping[str, Any], **keywords: Any) -> list[dict[str, Any]]:
    """Return one play with these tasks on all hosts."""
    return [{"name": "Test", "hosts": "all", "gather_facts": False, "tasks": list(tasks), **keywords}]


def check_and_run(
    directory: Path, plays: Sequence[Mapping[str, Any]], hosts: Mapping[str, Mapping[str, Any]]
) -> tuple[Run, Run]:
    """Return a check that changes nothing below the directory's "nodes", and the run after it, both with their
    diffs."""
    before = fingerprint(directory / "nodes")
    check = ansible_playbook(directory / "check", plays, hosts, "--check", "--diff")
    assert check.status == 0, check.account()
    assert fingerprint(directory / "nodes") == before
    run = ansible_playbook(directory / "run", plays, hosts, "--diff")
    assert run.status == 0, run.account()
    return check, run


def fingerprint(root: Path) -> dict[str, str]:
    """Return what is in a tree: every path with its kind, mode, and content or target."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            content = os.readlink(path)
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            content = ""
        found[str(path.relative_to(root))] = "%o %s" % (path.lstat().st_mode, content)
    return found


@pytest.fixture(scope="session")
def pristine_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the demo's fleet, once for all tests; not to be changed."""
    fleet = tmp_path_factory.mktemp("pristine") / "fleet"
    write_demo_fleet(fleet)
    return fleet


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory that the collection is installed in."""
    directory = tmp_path_factory.mktemp("installed")

    def galaxy(*arguments: str) -> None:
        command = ["ansible-galaxy", "collection", *arguments]
        # A user has no checkout where Ansible would find the collection.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment["HOME"] = str(directory)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=directory, env=environment)

    galaxy("build", "--output-path", str(directory), str(CHECKOUT))
    (archive,) = directory.glob("kubenode-cpu_manager-*.tar.gz")
    # Saved nodes are not drained.
    galaxy("install", "--offline", "--no-deps", "-p", str(directory / "collections"), str(archive))
    return directory / "collections"


@pytest.fixture
def copy_of(pristine_fleet: Path, tmp_path: Path) -> CopyOf:
    def copy(node: str, name: str) -> Path:
        root = tmp_path / "nodes" / name
        shutil.copytree(pristine_fleet / node, root, symlinks=True)
        return root

    return copy
