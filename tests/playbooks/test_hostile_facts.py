# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes whose answers have facts: no variable of the operator's is another one, and no host comes to the inventory.

The modules of kubernetes.core are replaced by ones that write down what they are asked.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Collection

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.numbers import IS_FULL
from ansible_collections.kubenode.cpu_manager.tests.support.own_variables import FILES, options, read_in, registered_in

from .conftest import CHECKOUT, CopyOf, Run, ansible_playbook, play
from .hostile_python import asked_of, hostile_python
from .stand_in_collection import write_collections
from .test_become import ANYWAY, make_sudo
from .test_scope import batches_of

API = """
import json, os, sys
from ansible.module_utils.basic import AnsibleModule

NAME, PLACE = %r, %r

def main():
    texts = dict.fromkeys(("kind", "name", "namespace", "state", "kubeconfig", "context"), {"type": "raw"})
    lists = dict.fromkeys(("field_selectors", "label_selectors"), {"type": "list"})
    module = AnsibleModule({**texts, **lists, "definition": {"type": "raw"}, "delete_options": {"type": "dict"}})
    given = {name: value for name, value in module.params.items() if value is not None}
    with open(PLACE, "a") as file:
        file.write(json.dumps({"module": NAME, "python": sys.executable, **given}) + "\\n")
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "500"}}
    names = [given["name"]] if "name" in given else %r
    nodes = [{"metadata": {"name": name}, "spec": {}, "status": ready} for name in names]
    module.exit_json(changed=False, resources=nodes if given.get("kind") == "Node" else [], result={})

main()
"""
TRACE = {
    "version": 1,
    "name": "short",
    "description": "one pod",
    "duration": 60,
    "pods": [{"name": "web", "qosClass": "Burstable", "cpu": "500m", "arrives": 0, "load": [[0, 1]]}],
}
OURS = {path.stem for path in (CHECKOUT / "plugins/modules").glob("*.py")}
ANSIBLES = ("service", "systemd", "setup", "tempfile", "find", "file", "copy", "stat", "slurp", "wait_for")
# By host, the modules whose answers are hostile; None: all.
HOSTS: dict[str, Collection[str] | None] = {
    **({"by-ours": OURS, "by-ansibles": ANSIBLES} if IS_FULL else {}),
    "by-all": None,
}
PLAYBOOKS = ("drift_report", *(("simulate", "plan", "propose") if IS_FULL else ()), "save", "rollout", "rollback")
# Of Ansible itself, that facts are let be.
ANSIBLE_NAMES = {"inventory_hostname": "healthy", "omit": {"users": []}, "group_names": ["x"], "inventory_dir": "/x"}


def names() -> set[str]:
    """Return all that an operator can set, and all that roles and playbooks read or set themselves."""
    found = set(options()).union(*map(read_in, FILES), *map(registered_in, FILES))
    # Without these, nothing is evaluated any more, and so nothing shows.
    return found - {"lookup", "query", "now", "dict", "range", "item", "groups", "hostvars", "role_path"}


def hostile_facts(evil: Path) -> dict[str, Any]:
    """Return a fact of each of these names, with a value that shows where it is used."""
    touch = {"command": "touch", "args": [str(evil)], "apiVersion": "client.authentication.k8s.io/v1"}
    place = {"path": str(evil), "dest": str(evil)}
    by_type = {"bool": True, "int": 1, "list": [str(evil)], "dict": {"evil": str(evil)}}
    values = {name: by_type.get(options().get(name, {}).get("type", "str"), str(evil)) for name in names()}
    fixed = {"api_host": "other", "kubeconfig": str(evil), "directory": str(evil), "name": "evil", "drain": False}
    return {
        **values,
        **ANSIBLE_NAMES,
        "kubelet_kubeconfig": {"users": [{"name": "evil", "user": {"exec": touch}}]},
        "kubelet_api_host": "other",
        "kubelet_node_name": "healthy",
        "kube_override_hostname": "healthy",
        **{name: place for name in values if name.startswith("saved_")},
        **dict.fromkeys(("kubelet_fixed", "saved_fixed", "isolation_benchmark_fixed"), fixed),
    }


class Stage:
    """A cluster, a decoy of a host, and directories that nobody is to write to."""

    def __init__(self, directory: Path) -> None:
        self.evil, self.calls_file = directory / "evil", directory / "calls"
        self.kubeconfig, self.decoy = directory / "kubeconfig", directory / "pythons" / "other"
        self.sudo = make_sudo(directory / "bin")
        self.collections = directory / "collections"
        called = {
            name: API % (name, str(self.calls_file), [*HOSTS, "healthy"]) for name in ("k8s", "k8s_info", "k8s_drain")
        }
        write_collections(self.collections, called)
        trace, pods = directory / "trace.json", directory / "pods.yml"
        pods.write_text("", encoding="utf-8")
        trace.write_text(json.dumps(TRACE), encoding="utf-8")
        self.given = {
            "ansible_become_exe": str(self.sudo),
            "kubelet_drain": True,
            "kubelet_manage_service": False,
            "kubelet_kubeconfig": str(self.kubeconfig),
            "kubelet_kube_context": "honest",
            "kubelet_cpu_manager_policy": "none",
            "kubelet_drain_timeout": 10,
            "cpu_manager_become": False,
            "cpu_manager_workload": "latency",
            "cpu_manager_node_objects": ["labels"],
            "cpu_manager_apply_node_objects": True,
            "cpu_manager_manifests": str(pods),
            "cpu_manager_simulation_trace": str(trace),
        }

    def run(self, directory: Path, hosts: dict[str, dict[str, Any]], *playbooks: str, **environment: str) -> Run:
        """Run the playbooks on these hosts; the decoy is in the inventory, too, and honest unless made before."""
        first, *others = playbooks
        if not self.decoy.exists():
            hostile_python(self.decoy, {})
        everybody = {**hosts, "other": {"ansible_python_interpreter": str(self.decoy)}}
        limit = "--limit=" + ",".join([*hosts, "localhost"])
        arguments = (*others, limit, "-e", json.dumps({"cpu_manager_serial": "100%"}))
        around = {**ANYWAY, **environment}
        return ansible_playbook(
            directory, first, everybody, *arguments, collections=self.collections, environment=around
        )

    def calls(self) -> list[dict[str, Any]]:
        """Return what the API was asked."""
        if not self.calls_file.exists():
            return []
        return [json.loads(line) for line in self.calls_file.read_text("utf-8").splitlines()]

    def assert_untouched(self, directory: Path) -> None:
        """Check that nothing was done where the facts wanted it."""
        assert not self.evil.exists()
        assert asked_of(self.decoy) == []
        assert not Path(str(self.sudo) + ".log").exists()
        assert not (directory / "drift-report/nodes/healthy.json").exists()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def playbook(name: str) -> str:
    return "kubenode.cpu_manager." + name


def hostile_answer(evil: Path) -> dict[str, Any]:
    """Return all by which the answer of a module may act."""
    facts = hostile_facts(evil)
    assert len(facts) > 300
    return {
        "ansible_facts": facts,
        "add_host": {"host_name": "localhost", "groups": ["evil"], "host_vars": facts},
        "add_group": "evil",
        "ansible_stats": {"data": {"evil": 1}, "aggregate": True},
        "_ansible_notify": ["evil"],
    }


SEEN = {
    "name": "Look",
    "ansible.builtin.debug": {
        "msg": {
            "facts": "{{ ansible_facts }}",
            "hosts": "{{ groups.all }}",
            "local": "{{ hostvars.localhost.kubelet_api_host | default('') }}",
        }
    },
}


def test_no_answer_says_what_the_controller_does(copy_of: CopyOf, tmp_path: Path, stage: Stage) -> None:
    more = hostile_answer(stage.evil)
    hosts = {
        name: {
            **stage.given,
            "kubelet_node_root": str(copy_of("epyc", name)),
            **hostile_python(tmp_path / "pythons" / name, more, modules),
        }
        for name, modules in HOSTS.items()
    }
    (tmp_path / "seen.json").write_text(json.dumps(play(SEEN)), encoding="utf-8")
    run = stage.run(tmp_path / "run", hosts, *map(playbook, PLAYBOOKS), str(tmp_path / "seen.json"))
    assert run.status == 0, run.account()
    stage.assert_untouched(tmp_path / "run")
    for name in HOSTS:
        assert run.last(name)["msg"] == {"facts": {}, "hosts": [*HOSTS, "other"], "local": ""}
    assert "kubelet_change" in asked_of(tmp_path / "pythons" / "by-all")
    calls = stage.calls()
    assert {call["module"] for call in calls} == {"k8s_info", "k8s_drain", *(["k8s"] if IS_FULL else [])}
    assert {(call["kubeconfig"], call["context"]) for call in calls} == {(str(stage.kubeconfig), "honest")}
    assert {call["python"] for call in calls} == {sys.executable}
    drained = [(call["name"], call["state"]) for call in calls if call["module"] == "k8s_drain"]
    # There and back.
    assert sorted(drained) == sorted([(name, state) for name in HOSTS for state in ("drain", "uncordon")] * 2)
    assert {call.get("name", "") for call in calls} <= {"", *HOSTS}
    names_of_archives = sorted(path.name for path in (tmp_path / "run/saved-nodes").iterdir())
    assert names_of_archives == sorted(name + ".tar.gz" for name in HOSTS)


def test_no_answer_of_the_api_host_does(copy_of: CopyOf, tmp_path: Path, stage: Stage) -> None:
    """It may be a server of the cluster, and so a node that somebody has taken over."""
    hostile_python(stage.decoy, hostile_answer(stage.evil))
    given = {"kubelet_node_root": str(copy_of("epyc", "healthy")), "kubelet_api_host": "other"}
    hosts = {"healthy": {**stage.given, **given, **hostile_python(tmp_path / "pythons" / "healthy", {})}}
    (tmp_path / "seen.json").write_text(json.dumps(play(SEEN)), encoding="utf-8")
    names = map(playbook, ("propose", "rollout"))
    run = stage.run(tmp_path / "run", hosts, *names, str(tmp_path / "seen.json"))
    assert run.status == 0, run.account()
    assert run.last("healthy")["msg"] == {"facts": {}, "hosts": ["healthy", "other"], "local": ""}
    assert not stage.evil.exists()
    assert {call["module"] for call in stage.calls()} == {"k8s", "k8s_info", "k8s_drain"}
    assert set(asked_of(stage.decoy)) >= {"k8s", "k8s_info", "k8s_drain"}


FACTS: dict[str, dict[str, Any]] = {
    "by-kubeconfig": {"kubelet_kubeconfig": {"users": []}},
    "by-host": {"kubelet_api_host": "other"},
    "by-kubespray": {"kube_override_hostname": "healthy"},
    "by-name": {"inventory_hostname": "healthy"},
    "by-omit": {"omit": "evil"},
    "by-claim": {"kubelet_fixed": {"api_host": "other"}, "saved_fixed": {"directory": "/evil"}},
    "by-place": {"saved_node": {"path": "/evil"}},
    "by-place-of-results": {"isolation_benchmark_directory": "/evil"},
}


GATHER = play({"name": "Gather", "ansible.builtin.setup": {}})


def gathered(stage: Stage, directory: Path, root: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return a playbook of somebody else's that gathers facts, and hosts that say these."""
    hosts = {
        name: {
            **stage.given,
            "kubelet_node_root": str(root),
            **hostile_python(directory / "pythons" / name, {"ansible_facts": facts}, ["setup"]),
        }
        for name, facts in FACTS.items()
    }
    (directory / "gather.json").write_text(json.dumps(GATHER), encoding="utf-8")
    return str(directory / "gather.json"), hosts


@pytest.mark.parametrize("name", ["rollout", "save", "isolation_benchmark"])
def test_a_host_with_facts_of_ours_is_refused_first(tmp_path: Path, stage: Stage, name: str) -> None:
    first, hosts = gathered(stage, tmp_path, tmp_path / "nowhere")
    run = stage.run(tmp_path / "run", hosts, first, playbook(name))
    assert run.status == 2, run.output
    for host, facts in FACTS.items():
        failed = run.last(host)
        assert failed["outcome"] == "failed"
        assert failed["failure"]["kind"] == "foreign_fact", run.account()
        assert "(%s)" % ", ".join(sorted(facts)) in failed["msg"]
        assert asked_of(tmp_path / "pythons" / host) == ["setup"]
    assert stage.calls() == []
    stage.assert_untouched(tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} <= {"inventory.json", "results.jsonl"}


def test_the_report_has_no_result_of_such_a_host(copy_of: CopyOf, tmp_path: Path, stage: Stage) -> None:
    root = copy_of("edge", "honest")
    first, hosts = gathered(stage, tmp_path, root)
    honest = {"honest": {**stage.given, "kubelet_node_root": str(root)}}
    # The first of all speaks for all where something is done once.
    run = stage.run(tmp_path / "run", {**hosts, **honest}, first, playbook("drift_report"))
    assert run.status == 4, run.output
    report = json.loads((tmp_path / "run/drift-report/drift.json").read_text("utf-8"))
    states = {node["host"]: node["state"] for node in report["nodes"]}
    assert {host for host, state in states.items() if state == "missing"} == set(FACTS)
    assert [path.stem for path in (tmp_path / "run/drift-report/nodes").iterdir()] == ["honest"]
    stage.assert_untouched(tmp_path / "run")


def bystander(directory: Path, facts: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a playbook of somebody else's that gathers its facts, and its variables."""
    (directory / "gather.json").write_text(json.dumps(GATHER), encoding="utf-8")
    variables = hostile_python(directory / "pythons" / "bystander", {"ansible_facts": facts}, ["setup"])
    return str(directory / "gather.json"), variables


@pytest.mark.parametrize("is_in_run", [False, True], ids=["outside of the run", "refused in it"])
def test_no_facts_of_a_host_say_in_which_batches_others_are_changed(
    copy_of: CopyOf, tmp_path: Path, stage: Stage, is_in_run: bool
) -> None:
    """Neither its own nor those of the names under which a run keeps what it has found."""
    names = ["w-%d" % number for number in range(4)]
    plan = {"node": "bystander", "status": "drift", "actions": ["write_configuration"], "found": {}}
    facts = {
        "kubelet_look": {"schedule": {"batches": [{"hosts": [*names, "bystander"]}]}},
        "kubelet_verdict": {"run": "2099-01-01T00:00:00.000000", "batches": [names], "changing": names},
        "kubelet_fixed": {"run": "", "api_host": "other", "schedule": True},
        "kubelet_plan": plan,
    }
    first, variables = bystander(tmp_path, facts)
    given = {
        **stage.given,
        "kubelet_manage_service": False,
        "kubelet_drain": False,
        "kubelet_discard_assignments": True,
    }
    given["kubelet_node_root"] = str(copy_of("edge", "worker"))
    hosts = {"bystander": {**given, **variables}, **dict.fromkeys(names, given)}
    scope = {"cpu_manager_serial": "auto", "cpu_manager_max_fail_percentage": 50}
    whom = {} if is_in_run else {"cpu_manager_hosts": "w-*"}
    arguments = (playbook("rollout"), "--check", "-e", json.dumps({**scope, **whom}))
    run = ansible_playbook(tmp_path / "run", first, hosts, *arguments)
    assert run.status == (2 if is_in_run else 0), run.account()
    assert "Order of 4 nodes by what runs there; batches: 3" in run.output
    told = re.findall(r"(?m)^  \d+: ([-\w, ]+);", run.output)
    assert batches_of(run.output) == [batch.split(", ") for batch in told]
    stage.assert_untouched(tmp_path / "run")


def test_no_facts_of_a_host_are_written_at_the_api_server(copy_of: CopyOf, tmp_path: Path, stage: Stage) -> None:
    """A plan of its own, and the name of another node."""
    root = str(copy_of("edge", "honest"))
    plan = {"status": "drift", "topology": {"online": "0-7"}, "starts": True}
    wish = {"workload": "batch"}
    facts = {"kubelet_plan": plan, "proposal_wish": wish, "proposal_node_name": "healthy", "proposal_given": {}}
    first, variables = bystander(tmp_path, facts)
    common = {**stage.given, "kubelet_node_root": root}
    hosts = {"bystander": {**common, **variables}, "honest": common}
    run = stage.run(tmp_path / "run", hosts, first, playbook("propose"))
    assert run.status == 2, run.account()
    assert "bystander: facts of this host have names of variables" in run.last("honest")["msg"]
    assert stage.calls() == []
    assert not (tmp_path / "run/proposal").exists()
    stage.assert_untouched(tmp_path / "run")
