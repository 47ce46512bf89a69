# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What drains nodes is missed before anything is touched, in one error that names the command to install it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Mapping, NamedTuple

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.action.kubernetes_core_check import (
    COLLECTION_VERSION,
    LIBRARY_VERSION,
    is_at_least,
)
from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS

from .conftest import CHECKOUT, CopyOf, Result, Run, ansible_playbook, fingerprint, play, task
from .test_become import make_sudo, modules

REAL = COLLECTIONS / "ansible_collections" / "kubernetes" / "core"
OLD_COLLECTION, OLD_LIBRARY = "2.3.2", "12.0.1"
INSTALL_COLLECTION = "ansible-galaxy collection install --upgrade 'kubernetes.core:>=%s'" % COLLECTION_VERSION
CHECK = "Make sure that nodes can be drained and uncordoned"


def collections(directory: Path, version: str | None) -> Path:
    """Return a place with this collection, and kubernetes.core of a version; None: without it, empty: the one of the
    tests."""
    place = directory / "ansible_collections"
    (place / "kubenode").mkdir(parents=True)
    (place / "kubenode" / "cpu_manager").symlink_to(CHECKOUT)
    if version is not None:
        (place / "kubernetes").mkdir()
    if version == "":
        (place / "kubernetes" / "core").symlink_to(REAL)
    elif version is not None:
        core = place / "kubernetes" / "core"
        (core / "plugins" / "modules").mkdir(parents=True)
        manifest = {"collection_info": {"namespace": "kubernetes", "name": "core", "version": version}}
        (core / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    return directory


def python_with(directory: Path, version: str | None) -> Path:
    """Return a Python that has the library of this version, or none."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    if version is not None:
        (site,) = directory.glob("lib/python*/site-packages")
        (site / "kubernetes").mkdir()
        (site / "kubernetes" / "__init__.py").write_text("__version__ = %r\n" % version, encoding="utf-8")
    return directory / "bin" / "python"


class Asked(NamedTuple):
    """What the check said: {whether kubernetes.core is there: {which Python: result}}"""

    answers: dict[str, dict[str, Result]]
    pythons: dict[str, Path]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    directory = tmp_path_factory.mktemp("kubernetes-core")
    pythons = {
        "good": Path(sys.executable),
        "missing": python_with(directory / "missing", None),
        "old": python_with(directory / "old", OLD_LIBRARY),
    }
    hosts = {name: {"ansible_python_interpreter": str(python)} for name, python in pythons.items()}
    plays = play(task("kubernetes_core_check", purpose="draining", alternative="drain them yourself"))
    answers: dict[str, dict[str, Result]] = {}
    for name, version in {"good": "", "missing": None, "old": OLD_COLLECTION}.items():
        place = collections(directory / ("with-" + name), version)
        run = ansible_playbook(directory / ("run-" + name), plays, hosts, "--check", collections=place)
        answers[name] = {host: run.last(host) for host in hosts}
    return Asked(answers, pythons)


def test_what_is_there_is_named(asked: Asked) -> None:
    found = asked.answers["good"]["good"]
    assert found["outcome"] == "ok", found
    assert is_at_least(found["collection"], COLLECTION_VERSION)
    assert is_at_least(found["library"], LIBRARY_VERSION)
    assert found["python"] == sys.executable
    assert not found["changed"]


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ("missing", "is not installed"),
        ("old", "is %s, and has to be %s or later" % (OLD_COLLECTION, COLLECTION_VERSION)),
    ],
)
def test_a_collection_that_does_not_do(asked: Asked, state: str, problem: str) -> None:
    found = asked.answers[state]["good"]
    assert found["msg"] == (
        "draining: the collection kubernetes.core on the controller %s; run %s, or drain them yourself"
        % (problem, INSTALL_COLLECTION)
    )
    assert found["failure"]["kind"] == "requirement"


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ("missing", "is not installed"),
        ("old", "is %s, and has to be %s or later" % (OLD_LIBRARY, LIBRARY_VERSION)),
    ],
)
def test_a_library_that_does_not_do(asked: Asked, state: str, problem: str) -> None:
    found, python = asked.answers["good"][state], asked.pythons[state]
    assert found["msg"] == (
        "draining: the Python library kubernetes of %s on %s %s; run %s -m pip install 'kubernetes>=%s',"
        " or drain them yourself" % (python, state, problem, python, LIBRARY_VERSION)
    )
    assert found["failure"]["kind"] == "requirement"


def test_all_that_is_missing_is_said_at_once(asked: Asked) -> None:
    message = asked.answers["missing"]["old"]["msg"]
    assert message.count("; run ") == 1
    assert INSTALL_COLLECTION + " && " in message


@pytest.mark.parametrize(
    ("version", "lowest", "expected"),
    [
        ("5.0.0", "5.0.0", True),
        ("24.2.0", "24.2.0", True),
        ("24.10.0", "24.2.0", True),
        ("4.99.99", "5.0.0", False),
        ("6.0.0-beta.1", "5.0.0", True),
        ("33.1.0b1", "24.2.0", True),
        ("5", "5.0.0", False),
        ("something", "5.0.0", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, lowest: str, expected: bool) -> None:
    assert is_at_least(version, lowest) is expected


# --- where it is checked -------------------------------------------------------------------------


def drained(root: Path) -> dict[str, Any]:
    """Return a node whose change takes a drain, as if it ran."""
    return {"kubelet_node_root": str(root), "kubelet_cpu_manager_policy": "none", "kubelet_drain": True}


def failures(run: Run, host: str) -> list[Result]:
    return [result for result in run.results[host] if result["outcome"] == "failed"]


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of collections without kubernetes.core."""
    return collections(tmp_path_factory.mktemp("without"), None)


@pytest.mark.parametrize("mode", [(), ("--check",)], ids=["run", "check"])
def test_a_rollout_stops_once_and_before_anything(
    copy_of: CopyOf, tmp_path: Path, without: Path, mode: tuple[str, ...]
) -> None:
    roots = {name: copy_of("epyc", name) for name in ("one", "two")}
    before = {name: fingerprint(root) for name, root in roots.items()}
    hosts: Mapping[str, Any] = {name: drained(root) for name, root in roots.items()}
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.rollout", hosts, *mode, collections=without)
    assert run.status != 0
    (failed,) = [failure for host in hosts for failure in failures(run, host)]
    assert CHECK in failed["task"], run.account()
    assert failed["msg"].startswith("draining and uncordoning one and 1 more: the collection kubernetes.core ")
    assert failed["msg"].endswith(
        "; run %s, or drain nodes yourself and set kubelet_drain to false" % INSTALL_COLLECTION
    )
    assert "resolve module" not in run.output
    assert {name: fingerprint(root) for name, root in roots.items()} == before


def test_the_role_alone_stops_before_anything(copy_of: CopyOf, tmp_path: Path, without: Path) -> None:
    root = copy_of("epyc", "node")
    before = fingerprint(root)
    plays = play(roles=["kubenode.cpu_manager.kubelet"])
    run = ansible_playbook(tmp_path / "run", plays, {"node": drained(root)}, collections=without)
    (failed,) = failures(run, "node")
    assert CHECK in failed["task"], run.account()
    assert fingerprint(root) == before


@pytest.mark.parametrize("playbook", ["drift_report", "rollout", "repair"])
def test_nobody_needs_it_who_does_not_drain(copy_of: CopyOf, tmp_path: Path, without: Path, playbook: str) -> None:
    hosts: dict[str, dict[str, Any]] = {
        # Saved, so that nobody drains it.
        "saved": {"kubelet_node_root": str(copy_of("edge", "saved")), "kubelet_cpu_manager_policy": "static"},
        # As it is wanted.
        "good": {"kubelet_node_root": str(copy_of("epyc", "good")), "kubelet_drain": True},
    }
    name = "kubenode.cpu_manager." + playbook
    run = ansible_playbook(tmp_path / "run", name, hosts, "--check", collections=without)
    assert [failure for host in hosts for failure in failures(run, host)] == [], run.account()
    assert run.status == 0, run.output


def test_a_proposal_stops_before_it_is_written(copy_of: CopyOf, tmp_path: Path, without: Path) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("epyc", "node")), "cpu_manager_workload": "latency"}}
    given = '{"cpu_manager_node_objects": ["labels"], "cpu_manager_apply_node_objects": true}'
    playbook = "kubenode.cpu_manager.propose"
    run = ansible_playbook(tmp_path / "run", playbook, hosts, "-e", given, collections=without)
    assert run.status != 0
    (failed,) = failures(run, "node")
    assert failed["task"] == "Make sure that objects can be applied", run.account()
    assert not (tmp_path / "run/proposal").exists()
    # Nobody needs it who does not apply them.
    run = ansible_playbook(tmp_path / "files", playbook, hosts, "-e", given[:-5] + "false}", collections=without)
    assert run.status == 0, run.account()
    assert (tmp_path / "files/proposal/node-labels.yml").exists()


def test_every_playbook_can_be_read_without_it(tmp_path: Path, without: Path) -> None:
    """Ansible resolves the modules of a file when it reads it."""
    first, *others = sorted(str(path) for path in (CHECKOUT / "playbooks").glob("*.yml"))
    hosts: Mapping[str, Any] = {"node": {}}
    run = ansible_playbook(tmp_path / "run", first, hosts, *others, "--syntax-check", collections=without)
    assert run.status == 0, run.output
    assert run.output.count("playbook: ") == len(others) + 1


def test_an_interrupted_change_of_a_drained_node_needs_it_in_any_case(
    copy_of: CopyOf, tmp_path: Path, without: Path
) -> None:
    root = copy_of("edge", "node")
    hosts: Mapping[str, Any] = {"node": {"kubelet_node_root": str(root), "kubelet_cpu_manager_policy": "static"}}
    facts = {"node": "node", "cordoned": False}
    begin = task("kubelet_change", root=str(root), step="begin_drain", run="first", facts=facts)
    begun = ansible_playbook(tmp_path / "begun", play(begin), hosts)
    assert begun.status == 0, begun.account()
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.rollout", hosts, "--check", collections=without)
    (failed,) = failures(run, "node")
    # Not to drain does not help a node that is cordoned.
    assert failed["msg"].endswith("; run " + INSTALL_COLLECTION)


def test_it_is_looked_for_where_it_runs_and_by_who_runs_it(copy_of: CopyOf, tmp_path: Path) -> None:
    sudo, python = make_sudo(tmp_path / "bin"), python_with(tmp_path / "python", None)
    node = {**drained(copy_of("epyc", "node")), "kubelet_api_host": "admin", "ansible_become_exe": str(sudo)}
    admin = {"ansible_python_interpreter": str(python), "ansible_become_exe": str(sudo), "ansible_become": True}
    hosts = {"node": node, "admin": admin}
    playbook = "kubenode.cpu_manager.rollout"
    run = ansible_playbook(tmp_path / "run", playbook, hosts, "--check", "--limit=node")
    (failed,) = failures(run, "node")
    assert "the Python library kubernetes of %s on admin is not installed" % python in failed["msg"]
    assert "kubernetes_core_check" not in modules(sudo)


# --- what says so --------------------------------------------------------------------------------


def test_one_lowest_version_everywhere() -> None:
    lowest = ">=" + COLLECTION_VERSION
    galaxy = yaml.safe_load((CHECKOUT / "galaxy.yml").read_text("utf-8"))
    assert galaxy["dependencies"] == {"kubernetes.core": lowest}
    required = yaml.safe_load((CHECKOUT / "requirements.yml").read_text("utf-8"))
    assert required["collections"] == [{"name": "kubernetes.core", "version": lowest}]
    environment = yaml.safe_load((CHECKOUT / "meta" / "execution-environment.yml").read_text("utf-8"))
    python = (CHECKOUT / environment["dependencies"]["python"]).read_text("utf-8")
    assert re.findall("^kubernetes(.*)$", python, re.MULTILINE) == [">=" + LIBRARY_VERSION]
    module = (CHECKOUT / "plugins" / "modules" / "kubernetes_core_check.py").read_text("utf-8")
    notes = " ".join(yaml.safe_load(module.split('"""')[1])["notes"])
    assert "C(kubernetes.core) %s and C(kubernetes) %s." % (COLLECTION_VERSION, LIBRARY_VERSION) in notes
    lowest = "`kubernetes.core`, %s or later, and the Python library `kubernetes`" % COLLECTION_VERSION
    for page, with_library in {
        "README.md": lowest,
        "roles/kubelet/README.md": lowest + ", %s" % LIBRARY_VERSION,
    }.items():
        assert with_library in " ".join((CHECKOUT / page).read_text("utf-8").split()), page
    changes = CHECKOUT / "changelogs" / "fragments" / "kubernetes-core.yml"
    assert not changes.exists() or "from version %s on" % COLLECTION_VERSION in changes.read_text("utf-8")
