# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lowest versions that are declared, of kubernetes.core and its Python library, do what the roles need."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, NamedTuple

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.action.kubernetes_core_check import (
    COLLECTION_VERSION,
    LIBRARY_VERSION,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.api_server import APIServer, serve
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

from .conftest import CHECKOUT
from .tools import environment, requirements

# The package that brings that version of the collection.
PACKAGE = "ansible==11.0.0"
CORE = "kubernetes.core."
API_HOST = "kubenode.cpu_manager.on_api_host"
NODE, POD = "worker.example.org", "web-1"
ROLE = "kubenode.cpu_manager.kubelet"
# What the role isolation_benchmark gives to all tasks of a file.
DEFAULTS = {API_HOST: {"kubeconfig": "{{ isolation_benchmark_fixed.kubeconfig }}"}}


class Lowest(NamedTuple):
    """Programs with the lowest library, and a place with the lowest collection and the checkout."""

    programs: Path
    collections: Path

    def run(self, directory: Path, *command: str) -> str:
        """Return what a program prints, which has to succeed."""
        done = subprocess.run(
            command,
            check=False,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "PATH": os.pathsep.join([str(self.programs), os.environ["PATH"]]),
                "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
                "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
                "ANSIBLE_PYTHON_INTERPRETER": str(self.programs / "python"),
                "NO_COLOR": "1",
                "TMPDIR": str(directory),  # a client keeps there which resources a server has
            },
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def lowest(tmp_path_factory: pytest.TempPathFactory) -> Lowest:
    fetched = CHECKOUT / ".cache" / "kubernetes-core" / COLLECTION_VERSION
    core = fetched / "ansible_collections" / "kubernetes" / "core"
    declared = requirements(CHECKOUT / "requirements.txt", CHECKOUT / "meta" / "ee-requirements.txt")
    exact = [line.replace("kubernetes>=", "kubernetes==") for line in declared]
    try:
        programs = environment("lowest-versions", exact)
        if not (core / "MANIFEST.json").exists():
            fetch = [
                sys.executable,
                str(CHECKOUT / "tests" / "running" / "fetch_collection"),
                CORE.rstrip("."),
                str(fetched),
                PACKAGE,
            ]
            subprocess.run(fetch, check=True)
    except subprocess.CalledProcessError as error:
        lacking(TOOL, "no lowest versions to install: %s" % error)
    directory = tmp_path_factory.mktemp("lowest")
    place = directory / "ansible_collections"
    for name, source in {"kubernetes/core": core, "kubenode/cpu_manager": CHECKOUT}.items():
        (place / name).parent.mkdir(parents=True)
        (place / name).symlink_to(source)
    return Lowest(programs, directory)


def tasks_in(node: Any) -> Iterator[dict[str, Any]]:
    """Yield the tasks in the content of a YAML file that ask a cluster."""
    if isinstance(node, list):
        for item in node:
            yield from tasks_in(item)
    elif isinstance(node, dict):
        if API_HOST in node:
            yield node
        for block in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers"):
            yield from tasks_in(node.get(block))


def used() -> dict[str, set[str]]:
    """Return {module of kubernetes.core: the options that roles and playbooks give it}"""
    found: dict[str, set[str]] = {}
    for file in [*CHECKOUT.glob("roles/*/**/*.yml"), *CHECKOUT.glob("playbooks/**/*.yml")]:
        for task in tasks_in(yaml.safe_load(file.read_text("utf-8"))):
            ((module, arguments),) = task[API_HOST].items()
            # What module_defaults gives them.
            found.setdefault(CORE + module, {"kubeconfig", "context"}).update(arguments)
    return found


def play(**variables: Any) -> dict[str, Any]:
    return {
        "hosts": "all",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}", **variables},
    }


def include(tasks_from: str, role: str = ROLE, **variables: Any) -> dict[str, Any]:
    return {
        "ansible.builtin.include_role": {"name": role, "tasks_from": tasks_from, "public": True},
        "vars": variables,
    }


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
            ],
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "web", "image": "web"}]},
        "status": {"phase": "Running"},
    }


VERDICT = "kubenode.cpu_manager.rollout_verdict"
# What the role's tasks act with, but for the kubeconfig.
FIXED = {
    "api_host": "localhost",
    "api_become": False,
    "api_timeout": 60,
    "node_name": NODE,
    "drain": True,
    "drain_timeout": 30,
    "drain_delete_emptydir_data": True,
    "drain_force": False,
    "verify_timeout": 60,
    "check_capacity": True,
    "apply_node_objects": True,
}


@pytest.fixture
def api() -> Iterator[APIServer]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {}, "status": ready}
    with serve(node, pod(POD)) as server:
        yield server


def run(lowest: Lowest, api: APIServer, directory: Path, *tasks: dict[str, Any], **variables: Any) -> str:
    kubeconfig = str(api.kubeconfig(directory / "kubeconfig"))
    acting = {
        "kubelet_fixed": {**FIXED, "kubeconfig": kubeconfig},
        "isolation_benchmark_fixed": {**FIXED, "kubeconfig": kubeconfig, "namespace": "default"},
    }
    # As a task registers what the run acts with.
    found = {"ansible.builtin.set_fact": {**acting, **variables}}
    (directory / "play.json").write_text(json.dumps([{**play(), "tasks": [found, *tasks]}]), encoding="utf-8")
    return lowest.run(directory, "timeout", "100", "ansible-playbook", "-i", NODE + ",", "play.json")


def test_they_are_the_lowest_that_are_declared(lowest: Lowest, tmp_path: Path) -> None:
    manifest = lowest.collections / "ansible_collections" / "kubernetes" / "core" / "MANIFEST.json"
    assert json.loads(manifest.read_text("utf-8"))["collection_info"]["version"] == COLLECTION_VERSION
    library = lowest.run(tmp_path, "python", "-c", "import kubernetes; print(kubernetes.__version__)")
    assert library.strip() == LIBRARY_VERSION
    check = {"kubenode.cpu_manager.kubernetes_core_check": {"purpose": "a test"}}
    (tmp_path / "play.json").write_text(json.dumps([{**play(), "tasks": [check]}]), encoding="utf-8")
    said = lowest.run(tmp_path, "ansible-playbook", "-i", NODE + ",", "play.json")
    assert "failed=0" in said


def test_its_modules_have_the_options(lowest: Lowest, tmp_path: Path) -> None:
    modules = used()
    assert set(modules) == {CORE + name for name in ("k8s", "k8s_drain", "k8s_info")}
    told = json.loads(lowest.run(tmp_path, "ansible-doc", "--json", *modules))
    for name, given in modules.items():
        options = told[name]["doc"]["options"]
        aliases = {alias for option in options.values() for alias in option.get("aliases", [])}
        assert given <= options.keys() | aliases, name


def test_a_node_is_drained_and_comes_back(lowest: Lowest, api: APIServer, tmp_path: Path) -> None:
    root = tmp_path / "node"
    root.mkdir()
    plan = {"journal": None, "drain": True}
    drain = include("cluster/drain")
    emptied = {"ansible.builtin.assert": {"that": ["kubelet_emptied"]}}
    back = include("cluster/rejoin", kubelet_facts={"node": NODE, "cordoned": False, "taints": []})
    run(
        lowest,
        api,
        tmp_path,
        drain,
        emptied,
        kubelet_node_root=str(root),
        kubelet_plan=plan,
        kubelet_taken={"journal": None},
    )
    path = "/api/v1/nodes/" + NODE
    assert api.objects[path]["spec"]["unschedulable"] is True
    assert not [name for name in api.objects if name.endswith("/pods/" + POD)]
    run(lowest, api, tmp_path, back)
    assert not api.objects[path]["spec"].get("unschedulable")


def test_a_node_that_is_looked_up_keeps_what_others_set(lowest: Lowest, api: APIServer, tmp_path: Path) -> None:
    journal = {"phase": "changing", "facts": {"node": NODE}, "exclusive_now": "2"}
    plan = {"node": NODE, "journal": journal, "kubelet": {"pid": 1}}
    api.objects["/api/v1/nodes/" + NODE]["spec"]["unschedulable"] = True
    recover = {VERDICT: {"step": "recover"}}
    run(lowest, api, tmp_path, recover, kubelet_plan=plan)
    assert api.changes == []


def test_objects_are_applied(lowest: Lowest, api: APIServer, tmp_path: Path) -> None:
    version, kind = "topology.node.k8s.io/v1alpha2", "NodeResourceTopology"
    label = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"a": "b"}}}
    topology = {"apiVersion": version, "kind": kind, "metadata": {"name": NODE}, "zones": []}
    propose, role = (CHECKOUT / path for path in ("playbooks/propose.yml", "roles/kubelet/vars/main.yml"))
    (apply,) = tasks_in(yaml.safe_load(propose.read_text("utf-8")))
    of_role = yaml.safe_load(role.read_text("utf-8"))
    apply["vars"] |= {"kubelet_api_arguments": of_role["kubelet_api_arguments"], "kubelet_api_becomes": False}
    run(lowest, api, tmp_path, apply, proposal={"objects": [label, topology]})
    assert api.objects["/api/v1/nodes/" + NODE]["metadata"]["labels"] == {"a": "b"}
    assert api.objects["/apis/%s/noderesourcetopologies/%s" % (version, NODE)] == topology


def test_the_capacity_of_a_cluster_is_counted(lowest: Lowest, api: APIServer, tmp_path: Path) -> None:
    plan = {"node": NODE, "drain": True, "drains": True, "found": {"cpu_manager_policy": "none"}}
    batch = {VERDICT: {"step": "batch", "fleet": [NODE]}}
    run(lowest, api, tmp_path, batch, kubelet_plan=plan)
    assert api.changes == []


def test_a_pod_of_the_benchmark_is_run_and_deleted(lowest: Lowest, api: APIServer, tmp_path: Path) -> None:
    given = {**pod(""), "metadata": {"generateName": "benchmark-", "namespace": "default", "labels": {"of": "it"}}}
    pod_alone = {"pod": given, "beside": None}
    turn = include(
        "pod.yml",
        "kubenode.cpu_manager.isolation_benchmark",
        isolation_benchmark_turn=pod_alone,
        isolation_benchmark_logs=[],
    )
    block = {"block": [turn], "module_defaults": DEFAULTS}
    logs = {"ansible.builtin.assert": {"that": ["isolation_benchmark_logs == ['done\n']"]}}
    run(lowest, api, tmp_path, block, logs, isolation_benchmark_ends="{{ now().timestamp() + 60 }}")
    pods = "/api/v1/namespaces/default/pods"
    # The name is made here, so that a call that is repeated makes no second pod.
    posted, deleted = api.changes
    assert posted == "POST " + pods
    assert re.fullmatch("DELETE %s/benchmark-[a-z]{8}" % pods, deleted)


def test_all_pods_of_a_label_are_deleted(lowest: Lowest, api: APIServer, tmp_path: Path) -> None:
    tasks = list(tasks_in(yaml.safe_load((CHECKOUT / "roles/isolation_benchmark/tasks/pods.yml").read_text("utf-8"))))
    (delete,) = (task for task in tasks if task["name"] == "Delete all pods of the benchmark")
    labels = {"app.kubernetes.io/name": "kubenode-isolation-benchmark", "app.kubernetes.io/instance": "7"}
    benchmark = pod("benchmark-1")
    benchmark["metadata"]["labels"] = labels
    api.add(benchmark)
    delete["module_defaults"] = DEFAULTS
    names = {"isolation_benchmark_plan": {"run_id": "7"}}
    run(lowest, api, tmp_path, delete, **names)
    assert [name for name in api.objects if "/pods/" in name] == ["/api/v1/namespaces/default/pods/" + POD]
