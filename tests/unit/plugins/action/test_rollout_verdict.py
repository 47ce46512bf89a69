# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/action/rollout_verdict.py: what it reads of hosts and of a cluster; tests/cluster has the rest."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator, Mapping, Sequence

import pytest
from ansible import constants

from ansible_collections.kubenode.cpu_manager.plugins.action.rollout_verdict import ActionModule, _Hosts
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    call_options,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.api_server import read_cluster
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.hosts_of_run import kept_order
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.verdict import (
    Run,
    refuse_lost,
    rough_warning,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, plan_of, pod_of, replica_set


class Variables(Mapping[str, Any]):
    """The variables of all hosts, and whose were read."""

    def __init__(self, hosts: Mapping[str, Mapping[str, Any]]) -> None:
        self.hosts = hosts
        self.reads: list[str] = []

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        self.reads.append(name)
        return self.hosts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.hosts)

    def __len__(self) -> int:
        return len(self.hosts)


@pytest.fixture(autouse=True)
def own_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give Ansible a directory for temporary files that only this test uses."""
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "local"))


# What tells a run.
OF_RUN: dict[str, Any] = {"kubelet_fixed": {"run": "task-7"}, "kubelet_verdict": {"run": "2026-11-28T10:00:00"}}


def test_what_became_of_a_change_is_read_of_its_result() -> None:
    results = {
        "undone": {"failed": True, "undone": True},
        "half": {"failed": True, "undone": False},
        "none": None,
        "lied": {"failed": "yes", "undone": 1},
    }
    names = list(results)
    found = Variables(
        {name: {"kubelet_plan": {"node": name}, "kubelet_call": results[name], **OF_RUN} for name in names}
    )
    hosts = _Hosts({"hostvars": found, "ansible_play_hosts_all": names, **OF_RUN})
    assert [name for name in names if hosts[name].is_undone] == ["undone"]


def test_a_batch_that_needs_no_room_reads_no_other_hosts() -> None:
    names = ["host-%d" % number for number in range(100)]
    found = Variables({name: {"kubelet_plan": {"node": name}, **OF_RUN} for name in names})
    hosts = _Hosts({"hostvars": found, "ansible_play_hosts_all": names, **OF_RUN})
    run = Run(hosts, names, names[40:42], set(names))
    refuse_lost(run, 0)
    assert run.asks("rollout") is None
    assert rough_warning(run, "rollout", map(hosts.__getitem__, names)) == ""
    assert found.reads == names[40:42]
    assert list(hosts.plans()) == names
    assert sorted(found.reads) == sorted(names)


NOW: dict[str, Any] = {"kubelet_plan": {"node": "a", "actions": ["drain"]}, **OF_RUN}
# What hosts have that must not decide for others; None: what the run says of them.
OTHER_HOSTS: list[tuple[str, dict[str, Any], str | None, bool]] = [
    ("of this run", NOW, None, True),
    ("lost before it had a name", {**NOW, "kubelet_verdict": {"run": "2026-11-28T09:00:00"}}, None, False),
    ("of a run before", {**NOW, "kubelet_fixed": {"run": "task-3"}}, "", False),
    ("not in the run", {"kubelet_plan": NOW["kubelet_plan"]}, "", False),
    ("refused", {**NOW, "kubelet_fixed": {"failed": True, "msg": "a: misspelt"}}, "a: misspelt", False),
    ("with facts", {**NOW, "ansible_facts": {"kubelet_plan": {}}}, "facts of this host have names", False),
    ("with facts alone", {"ansible_facts": {**NOW}, **NOW}, "facts of this host have names", False),
]


@pytest.mark.parametrize(
    ("variables", "said", "is_in_run"), [row[1:] for row in OTHER_HOSTS], ids=[row[0] for row in OTHER_HOSTS]
)
def test_a_host_that_is_not_in_the_run_or_was_refused_has_no_say(
    variables: dict[str, Any], said: str | None, is_in_run: bool
) -> None:
    host = _Hosts({"hostvars": {"other": variables}, **OF_RUN})["other"]
    if said is None:
        assert (host.plan, host.fixed) == (NOW["kubelet_plan"], OF_RUN["kubelet_fixed"])
    else:
        assert said in host.plan.get("msg", "")
        assert (bool(host.plan.get("failed")), host.fixed) == (bool(said), {})
    assert host.is_in_run is is_in_run


def test_only_hosts_of_this_run_are_changed() -> None:
    """One of an earlier run that has failed would take the place of the first canary."""
    hosts = {name: variables for name, variables, _said, _is_in_run in OTHER_HOSTS}
    action = ImpactAction({})
    action._task.args = {"step": "plan"}
    action.act({"hostvars": hosts, "ansible_play_hosts_all": [*hosts], "ansible_play_hosts": ["of this run"], **OF_RUN})
    changing = ["of this run", "lost before it had a name"]
    assert kept_order() == {"changing": changing, "needs_cluster": False, "refused": []}


FIXED = {"api_timeout": 1, "kubeconfig": "/root/config"}


class Cluster:
    """Answers as kubernetes.core does, after some time."""

    def __init__(self, answer: Mapping[str, Any], seconds: float = 0) -> None:
        self.answer, self.seconds = answer, seconds
        self.asked: Mapping[str, Any] = {}

    def run_module(
        self, _module: str, _plugin: str, arguments: Mapping[str, Any], _task_vars: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        self.asked = arguments
        time.sleep(self.seconds)
        return self.answer


def read(cluster: Any) -> list[Any]:
    return read_cluster(cluster, "the pods of the cluster", FIXED, {}, kind="Pod")


def test_objects_are_read_with_what_the_run_acts_with() -> None:
    cluster = Cluster({"resources": [{"kind": "Pod"}]})
    assert read(cluster) == [{"kind": "Pod"}]
    assert cluster.asked == {"kubeconfig": "/root/config", "kind": "Pod"}


@pytest.mark.parametrize(
    ("answer", "seconds", "said"),
    [
        ({"failed": True, "msg": " no route \n"}, 0, "no route"),
        ({"failed": True}, 0, "it failed without a message"),
        ({"unreachable": True, "msg": "down"}, 0, "down"),
        ({"resources": None, "msg": "half an answer"}, 0, "half an answer"),
        ({"resources": []}, 30, "Timed out after 1 seconds"),
    ],
    ids=["failed", "without a message", "unreachable", "half", "silent"],
)
def test_a_cluster_without_an_answer(answer: dict[str, Any], seconds: float, said: str) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(NodeError) as caught:
        read(Cluster(answer, seconds))
    assert str(caught.value) == "Read the pods of the cluster: " + said
    assert signal.getsignal(signal.SIGALRM) == before


# --- the impact ---------------------------------------------------------------------------------------


PLAN = plan_of()
GIVEN: dict[str, Any] = {
    "waivers": [],
    "fail_on": "never",
    "dest": None,
    "skip_hosts_without_kubelet": False,
    "impact_from": "api",
}
DB = pod_of("db-1-x", "a", "3", ("ReplicaSet", "db-1"))
ANSWERS: dict[str, Any] = {"Node": [node_of("a")], "Pod": [DB], "ReplicaSet": [replica_set("db-1", "db")]}
DENIED = {"failed": True, "msg": "forbidden"}


FIXED_OF_RUN: dict[str, Any] = {"run": "task-7", "api_timeout": 5, "api_host": "desk"}
# As Ansible registers the result of a task that has failed.
REFUSED = {"kubelet_fixed": {"failed": True, "changed": False, "msg": "r: cpu_manger_hosts is no variable"}}


class ImpactAction(ActionModule):
    """The plugin, with API servers that answer: {kubeconfig: {kind: its objects, or a whole result}}."""

    def __init__(self, clusters: Mapping[str, Mapping[str, Any]]) -> None:
        self.clusters = clusters
        self.asked: list[tuple[str, str]] = []
        self.checked: list[str] = []
        self.lacks = False
        self._task = SimpleNamespace(delegate_to="desk")

    def run_module(
        self, module: str, _plugin: str, arguments: Mapping[str, Any], _task_vars: Mapping[str, Any]
    ) -> dict[str, Any]:
        if module.endswith("kubernetes_core_check"):
            self.checked.append(arguments["purpose"])
            return {"failed": True, "msg": "nothing is installed"} if self.lacks else {"collection": "6.0.0"}
        self.asked.append((arguments["kubeconfig"], arguments["kind"]))
        answer = self.clusters[arguments["kubeconfig"]][arguments["kind"]]
        return answer if isinstance(answer, dict) else {"resources": answer}


def impact_by(
    action: ImpactAction, hosts: Mapping[str, Any], refused: Sequence[str] = (), **given: Any
) -> dict[str, Any]:
    """Return the impact on these hosts. hosts: {host: (its node, its plan, what else the run acts with)}. refused:
    more, for which nothing was done."""
    variables: dict[str, dict[str, Any]] = {
        name: {
            "kubelet_plan": plan,
            "kubelet_fixed": {**FIXED_OF_RUN, "node_name": node, "kubeconfig": "main", **fixed},
        }
        for name, (node, plan, fixed) in hosts.items()
    }
    variables.update((name, REFUSED) for name in refused)
    task_vars = {"hostvars": variables, "ansible_play_hosts_all": list(variables), "kubelet_fixed": FIXED_OF_RUN}
    found: dict[str, Any] = action._impact({**GIVEN, **given}, task_vars)
    return found


def test_the_impact_is_read_once_told_and_written(tmp_path: Path) -> None:
    action = ImpactAction({"main": ANSWERS})
    dest = tmp_path / "said" / "impact.json"
    found = impact_by(action, {"x": ("a", PLAN, {}), "y": ("b", PLAN, {})}, dest=str(dest), fail_on="homeless")
    assert action.asked == [("main", "Node"), ("main", "Pod"), ("main", "ReplicaSet")]
    assert json.loads(dest.read_text(encoding="utf-8")) == found["impact"]
    assert [row["workload"] for row in found["impact"]["workloads"]] == ["Deployment shop/db"]
    assert "Deployment shop/db: 1 of 1 pod refused" in found["told"]
    assert "Deployment shop/db: 1 of 1 pod refused" in found["stops"]
    assert found["impact"]["notes"] == ["the cluster has no node of these hosts, whose pods are not known: y"]


@pytest.mark.parametrize(
    ("wanted", "purposes"),
    [
        ({}, []),
        ({"purpose": "draining x"}, ["draining x"]),
        ({"impact": True}, ["reading the nodes and the pods of the cluster"]),
        ({"purpose": "draining x", "impact": True}, ["draining x", "reading the nodes and the pods of the cluster"]),
    ],
)
def test_the_cluster_is_looked_at_as_far_as_it_is_needed(wanted: dict[str, Any], purposes: list[str]) -> None:
    action = ImpactAction({"main": ANSWERS})
    found = look(action, wanted)
    assert action.checked == purposes
    assert bool(action.asked) is wanted.get("impact", False)
    assert set(found) - {"changed"} == ({"msg", "_ansible_verbose_always"} if wanted.get("impact") else set())
    action.lacks = True
    assert look(action, wanted).get("failed", False) is bool(wanted)


@pytest.mark.parametrize("as_lines", [False, True])
def test_the_impact_is_told_with_what_stops_the_change(as_lines: bool) -> None:
    found = look(ImpactAction({"main": ANSWERS}), {"impact": True, "fail_on": "homeless", "as_lines": as_lines})
    told = "\n".join(found["msg"]) if as_lines else found["msg"]
    assert found["failed"]
    assert told.index("Impact on the pods of 1 node") < told.index("nothing was changed, as the change would hit")


def look(action: ImpactAction, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the task returns, of one host."""
    fixed = {**FIXED_OF_RUN, "node_name": "a", "kubeconfig": "main"}
    variables = {"x": {"kubelet_plan": PLAN, "kubelet_fixed": fixed}}
    action._task.args = {"step": "cluster", **wanted}
    return action.act({"hostvars": variables, "ansible_play_hosts_all": ["x"], "kubelet_fixed": fixed})


def test_hosts_that_are_not_asked_about() -> None:
    hosts = {
        "x": ("a", PLAN, {}),
        "y": ("b", PLAN, {"api_host": "other"}),
        "z": ("c", {"status": "no kubelet", "found": None}, {}),
    }
    action = ImpactAction({"main": ANSWERS})
    found = impact_by(action, hosts, skip_hosts_without_kubelet=True, refused=("r",))
    assert {kubeconfig for kubeconfig, _kind in action.asked} == {"main"}
    assert sorted(found["impact"]["notes"]) == [
        "left out, as their API server is not asked from desk, which a run of their own with --limit does: y",
        "left out, as they were refused before they were planned: r",
    ]


@pytest.mark.parametrize("kind", ["Node", "Pod"])
def test_an_api_that_does_not_answer_is_an_error(kind: str) -> None:
    with pytest.raises(NodeError, match="forbidden; what becomes of the pods is not known, and no node was changed"):
        impact_by(ImpactAction({"main": {**ANSWERS, kind: DENIED}}), {"x": ("a", PLAN, {})})


def test_one_of_two_clusters_that_does_not_answer() -> None:
    clusters = {"main": ANSWERS, "bad": {**ANSWERS, "Pod": {**DENIED, "msg": "100% lost"}}}
    hosts = {"x": ("a", PLAN, {}), "y": ("a", PLAN, {"kubeconfig": "bad"})}
    found = impact_by(ImpactAction(clusters), hosts)["impact"]
    assert found["notes"] == ["left out, as their cluster does not answer (Read the pods of the cluster: 100% lost): y"]
    assert [(row["cluster"], row["fate"]) for row in found["workloads"]] == [("main", "homeless")]
    # No gate opens where nobody could look.
    with pytest.raises(NodeError, match="100% lost"):
        impact_by(ImpactAction(clusters), hosts, fail_on="homeless")


TWO = {"x": ("a", PLAN, {"kubeconfig": "one"}), "y": ("a", PLAN, {"kubeconfig": "two"})}
OF_DB = {"workload": "Deployment shop/db", "reason": "moves", "until": "2999-12-31"}


@pytest.mark.parametrize("context", ["", "admin"])
def test_a_waiver_counts_in_its_cluster_alone(context: str) -> None:
    """Also where the contexts of two kubeconfigs have one name."""
    action = ImpactAction({"one": ANSWERS, "two": ANSWERS})
    hosts = {name: (node, plan, {**fixed, "context": context}) for name, (node, plan, fixed) in TWO.items()}
    names = ["admin in one", "admin in two"] if context else ["one", "two"]
    found = impact_by(action, hosts, fail_on="homeless", waivers=[{**OF_DB, "cluster": names[0]}])
    waived = {row["cluster"]: row["waived"] is not None for row in found["impact"]["workloads"]}
    assert waived == {names[0]: True, names[1]: False}
    assert "Deployment shop/db (%s): 1 of 1 pod refused" % names[1] in found["stops"]
    assert "(%s)" % names[0] not in found["stops"]


def test_a_waiver_that_could_be_of_two_clusters_is_refused_before_they_are_asked() -> None:
    action = ImpactAction({"one": ANSWERS, "two": ANSWERS})
    with pytest.raises(InputError, match=r"does not say of which cluster Deployment shop/db is.*one of one, two"):
        impact_by(action, TWO, waivers=[OF_DB])
    assert action.asked == []
    # As it always was, where there is one.
    found = impact_by(action, {"x": TWO["x"]}, fail_on="homeless", waivers=[OF_DB])
    assert found["stops"] == ""


def test_owners_that_nobody_may_read() -> None:
    found = impact_by(ImpactAction({"main": {**ANSWERS, "ReplicaSet": DENIED}}), {"x": ("a", PLAN, {})})["impact"]
    assert [row["workload"] for row in found["workloads"]] == ["ReplicaSet shop/db-1"]
    assert found["notes"] == [
        "Read what owns pods: forbidden",
        "what owns these is not known, so their own names are shown: ReplicaSet db-1",
    ]


def test_half_an_answer() -> None:
    half = {"Node": [None, 7, node_of("a")], "Pod": [None, "x", {"kind": "Pod"}, DB], "ReplicaSet": [None, {}]}
    found = impact_by(ImpactAction({"main": half}), {"x": ("a", PLAN, {})})["impact"]
    assert [(row["workload"], row["fate"]) for row in found["workloads"]] == [("ReplicaSet shop/db-1", "homeless")]
    assert [note for note in found["notes"] if note.startswith("not counted, as they cannot be read: ")]


def test_a_rule_that_no_api_server_accepts_is_an_error() -> None:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [7]}}
    strange = {**DB, "spec": {**DB["spec"], "affinity": {"nodeAffinity": terms}}}
    with pytest.raises(NodeError, match="what the cluster says of its nodes and pods cannot be read: "):
        impact_by(ImpactAction({"main": {**ANSWERS, "Pod": [strange]}}), {"x": ("a", PLAN, {})})


def test_waivers_are_checked_before_anybody_is_asked() -> None:
    action = ImpactAction({"main": ANSWERS})
    with pytest.raises(InputError, match="has no reason"):
        impact_by(action, {"x": ("a", PLAN, {})}, waivers=[{"workload": "x"}])
    assert action.asked == []


def told_by(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan of a node that tells of one pod."""
    return {**PLAN, "beside_cpus": {**PLAN["beside_cpus"], "pods": [pod], "left_out": [], "unknown": []}}


def test_nodes_tell_of_their_own_pods_and_nobody_else_is_asked(tmp_path: Path) -> None:
    action, dest = ImpactAction({}), tmp_path / "impact.json"
    hosts = {
        "x": ("a", told_by(DB), {}),
        "y": ("a", told_by(DB), {"api_host": "other"}),
        "z": ("c", {"status": "no kubelet", "found": None}, {}),
    }
    given: dict[str, Any] = {"dest": str(dest), "skip_hosts_without_kubelet": True, "refused": ["r"]}
    found = impact_by(action, hosts, impact_from="nodes", fail_on="refused", **given)
    assert action.asked == []
    assert json.loads(dest.read_text(encoding="utf-8"))["told_by"] == "nodes"
    (row,) = found["impact"]["workloads"]
    assert (row["workload"], row["fate"], row["nodes"]) == ("Pod shop/db-1-x", "refused", ["x", "y"])
    assert "Pod shop/db-1-x: 2 of 2 pods refused" in found["stops"]
    first, second = found["impact"]["notes"]
    assert first == "left out, as they were refused before they were planned: r"
    assert second.startswith("told by the nodes alone: ")


def test_what_nodes_cannot_tell_is_no_gate() -> None:
    with pytest.raises(InputError, match="fail_on: is homeless, and nodes alone do not tell"):
        impact_by(ImpactAction({}), {"x": ("a", told_by(DB), {})}, impact_from="nodes", fail_on="homeless")


def test_nodes_need_nothing_to_be_installed() -> None:
    action = ImpactAction({})
    action.lacks = True
    found = look(action, {"impact": True, "impact_from": "nodes"})
    assert action.checked == []
    assert "these hosts do not tell of their pods: x" in " ".join(found["msg"].split())


def test_a_wrong_option_has_the_name_of_its_variable() -> None:
    action = ImpactAction({"main": ANSWERS})
    names = {"fail_on": "cpu_manager_impact_fail_on"}
    action._task.args = {"step": "cluster", "fail_on": "homles", "option_names": names}
    with pytest.raises(InputError, match=r"cpu_manager_impact_fail_on.*homles"):
        action.act({})
    call_options({})
    assert action.asked == []


# --- the order of a rollout -----------------------------------------------------------------------------


BUDGET = {
    "metadata": {"name": "db", "namespace": "shop"},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 1},
}
READY: dict[str, Any] = {**ANSWERS, "PodDisruptionBudget": [BUDGET]}


def schedule_by(action: ImpactAction, hosts: Mapping[str, Any], drains: bool = True, **given: Any) -> Any:
    """Return the schedule of these hosts. hosts: {host: what else the run acts with there}."""
    variables = {
        name: {
            "kubelet_plan": {**PLAN, "drains": drains},
            "kubelet_fixed": {**FIXED_OF_RUN, "node_name": name, "kubeconfig": "main", **fixed},
        }
        for name, fixed in hosts.items()
    }
    return schedule_of(action, variables, **given)


def schedule_of(action: ImpactAction, variables: Mapping[str, Any], **given: Any) -> Any:
    action._task.args = {"step": "cluster", "schedule": True, **given}
    return action.act({"hostvars": variables, "ansible_play_hosts_all": list(variables), "kubelet_fixed": FIXED_OF_RUN})


def test_an_order_is_found_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    action, dest = ImpactAction({"main": READY}), tmp_path / "order.json"
    found = schedule_by(action, {"a": {}, "b": {}}, purpose="draining a", schedule_dest=str(dest), drain_seconds=60)
    assert [row["hosts"] for row in found["schedule"]["batches"]] == [["b"], ["a"]]
    assert json.loads(dest.read_text(encoding="utf-8")) == found["schedule"]
    assert action.asked == [("main", "Node"), ("main", "Pod"), ("main", "PodDisruptionBudget")]
    assert action.checked[1:] == ["reading the nodes, the pods and the PodDisruptionBudgets of the cluster"]
    assert "Order of 2 nodes by what runs there; batches: 2" in capsys.readouterr().out
    # What is shown is few lines; the result has all hosts.
    assert set(found) == {"changed", "schedule"}
    assert kept_order() == {"batches": [["b"], ["a"]]}


def test_the_times_of_all_hosts_count(capsys: pytest.CaptureFixture[str]) -> None:
    """Also of those that do not change."""
    variables = {
        name: {
            "kubelet_plan": {**PLAN, "drains": True, "actions": actions, "last": last},
            "kubelet_fixed": {**FIXED_OF_RUN, "node_name": name, "kubeconfig": "main"},
        }
        for name, actions, last in (
            ("a", PLAN["actions"], None),
            ("b", [], {"drain_seconds": 100}),
            ("c", [], {"drain_seconds": 300}),
            ("d", [], 7),
        )
    }
    found = schedule_of(ImpactAction({"main": READY}), variables)["schedule"]
    assert (found["seconds"], found["measured"]) == (200, 2)
    assert "takes about 4 minutes" in capsys.readouterr().out


def test_nobody_is_asked_where_no_node_is_drained() -> None:
    action = ImpactAction({})
    found = schedule_by(action, {"a": {}, "b": {}}, drains=False)
    assert [row["hosts"] for row in found["schedule"]["batches"]] == [["a"], ["b"]]
    assert action.asked == []


def test_no_order_where_the_impact_stops_the_change() -> None:
    found = schedule_by(ImpactAction({"main": READY}), {"a": {}}, impact=True, fail_on="homeless")
    assert found["failed"]
    assert "schedule" not in found


@pytest.mark.parametrize(
    ("hosts", "given", "said"),
    [
        ({"a": {}, "b": {"kubeconfig": "other"}}, {}, "cpu_manager_serial: is auto, and these hosts are of several"),
        ({"a": {}}, {"drain_seconds": -1}, "drain_seconds: -1 is not a number of seconds from 0 to 86400"),
        ({"a": {}}, {"drain_seconds": 86401}, "drain_seconds: 86401 is not a number of seconds"),
    ],
)
def test_an_order_that_cannot_be_found(hosts: Any, given: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        schedule_by(ImpactAction({"main": READY}), hosts, **given)
    assert said in str(error.value)


def test_an_order_without_budgets_is_none() -> None:
    action = ImpactAction({"main": {**READY, "PodDisruptionBudget": DENIED}})
    with pytest.raises(NodeError, match="the PodDisruptionBudgets of the cluster: forbidden"):
        schedule_by(action, {"a": {}})


# --- what one host costs ----------------------------------------------------------------------------------


# What Ansible registers for a host, and what a node may answer.
STRANGE: dict[str, Any] = {
    "nothing": None,
    "failed": {"failed": True, "msg": "no"},
    "skipped": {"skipped": True, "changed": False},
    "unreachable": {"unreachable": True, "msg": "down"},
    "text": "x",
    "list": [7],
    "no settings": {**PLAN, "found": 7},
    "half a row": {**PLAN, "drift": [{}, None]},
    "no CPUs": {**PLAN, "cpus": 7, "topology": None, "beside_cpus": "x"},
    "a journal of nothing": {**PLAN, "journal": 7, "last": "x", "refusals": 7, "actions": 7},
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE)
def test_a_host_with_any_answer_costs_its_own_verdict_alone(answer: Any) -> None:
    fixed = {**FIXED_OF_RUN, "kubeconfig": "main", "check_capacity": True}
    hosts = {
        "x": {"kubelet_plan": answer, "kubelet_fixed": {**fixed, "node_name": "a"}},
        "y": {"kubelet_plan": {**PLAN, "drain": True, "drains": True}, "kubelet_fixed": {**fixed, "node_name": "b"}},
    }
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "64"}}
    nodes = [{**node_of(name), "status": ready} for name in ("a", "b")]
    pods = [pod_of("db-1-x", "b", "3", ("ReplicaSet", "db-1"))]
    action = ImpactAction({"main": {**READY, "Node": nodes, "Pod": pods}})
    task_vars = {
        **{name: ["x", "y"] for name in ("ansible_play_hosts_all", "ansible_play_hosts")},
        "ansible_play_batch": ["y"],
        "hostvars": hosts,
        "kubelet_fixed": fixed,
    }

    def step(name: str, **given: Any) -> dict[str, Any]:
        action._task.args = {"step": name, **given}
        return action.act(task_vars)

    assert "y:\n" in step("plan")["told"]
    assert "y" in kept_order()["changing"]
    assert "Deployment shop/db: 1 of 1 pod refused" in step("cluster", impact=True)["msg"]
    assert ["y"] in [row["hosts"] for row in step("cluster", schedule=True)["schedule"]["batches"]]
    for change in ("rollout", "repair"):
        step("batch", change=change, fleet=["x", "y"])
