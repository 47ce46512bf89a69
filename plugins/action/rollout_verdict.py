# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judges the plans of all hosts of a run on the controller. The module of this name documents it."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import Any, Dict, Iterator, Mapping, Sequence

from ansible.utils.display import Display

from ..module_utils._base.errors import MALFORMED, InputError, NodeError, RefusedError, option
from ..plugin_utils.api_server import read_cluster
from ..plugin_utils.controller_action import OPTION_NAMES, Given, validated
from ..plugin_utils.guarded_action import GuardedAction, failure_of
from ..plugin_utils.hosts_of_run import HostsOfRun, keep_order, kept_order
from ..plugin_utils.impact.fleet import HOMELESS, Cluster, cluster_of_nodes, impact_of
from ..plugin_utils.impact.gate import (
    FAIL_ON,
    NEVER,
    check_clusters,
    checked_waivers,
    impact_text,
    stopping,
    with_waivers,
)
from ..plugin_utils.impact.workloads import Remarks, owners_of
from ..plugin_utils.report.answers import NO_KUBELET, collect, line, mapping
from ..plugin_utils.report.checks import API, NODES
from ..plugin_utils.report.results import put_file
from ..plugin_utils.rollout.pods import controller_of
from ..plugin_utils.rollout.schedule import MOST_SECONDS, FleetToChange, schedule_of, schedule_text, shape_of
from ..plugin_utils.rollout.scheduling import shortage
from ..plugin_utils.rollout.texts import change_summary, plan_text
from ..plugin_utils.rollout.verdict import (
    Choice,
    PlannedHost,
    Run,
    choose_rollout,
    cluster_need,
    gate_of,
    in_service_error,
    may_have_pods,
    plan_back,
    refusal,
    refuse_lost,
    refuse_shortage,
    rough_warning,
    static_nodes,
)
from ..plugin_utils.scope import changes

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "step": {
        "type": "str",
        "required": True,
        "choices": ["plan", "role", "node", "cluster", "batch", "recover", "sum"],
    },
    "change": {"type": "str", "choices": ["rollout", "repair", "rollback"], "default": "rollout"},
    "rollback_of": {"type": "str", "default": ""},
    "done_so_far": {"type": "str", "default": ""},
    "skip_hosts_without_kubelet": {"type": "bool", "default": False},
    "max_fail_percentage": {"type": "int", "default": 0},
    "fleet": {"type": "list", "elements": "str", "default": []},
    "purpose": {"type": "str", "default": ""},
    "alternative": {"type": "str", "default": ""},
    "impact": {"type": "bool", "default": False},
    "impact_from": {"type": "str", "choices": [API, NODES], "default": API},
    "as_lines": {"type": "bool", "default": False},
    "fail_on": {"type": "str", "choices": [*FAIL_ON], "default": NEVER},
    "waivers": {"type": "list", "elements": "raw", "default": []},
    "dest": {"type": "path"},
    "schedule": {"type": "bool", "default": False},
    "schedule_dest": {"type": "path"},
    "drain_seconds": {"type": "int", "default": 0},
}
# What makes pods and is made by others in turn, by the version of its API.
_OWNERS = {"ReplicaSet": "apps/v1", "Job": "batch/v1"}
# By which variables a cluster is told from another.
_OF_CLUSTER = ("kubeconfig", "context")
_CHECK = "kubenode.cpu_manager.kubernetes_core_check"
_IMPACT_NEED = (
    "reading the nodes and the pods of the cluster",
    "set cpu_manager_impact_from to nodes, or leave out cpu_manager_impact and cpu_manager_impact_fail_on",
)
_SCHEDULE_NEED = (
    "reading the nodes, the pods and the PodDisruptionBudgets of the cluster",
    "give cpu_manager_serial numbers instead of auto",
)
_LIVE_PODS = ["status.phase!=Succeeded", "status.phase!=Failed"]


class ActionModule(GuardedAction):
    """Each step of a run has its verdict."""

    READS_NODE = False

    _supports_async = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the task: what is decided."""
        given, wrong = validated({**OPTION_NAMES, **_ARGUMENTS}, self._task.args, self._task.args.get("option_names"))
        if wrong:
            raise wrong
        steps = {
            "plan": self._plan,
            "role": self._role,
            "node": self._node,
            "cluster": self._look,
            "batch": self._batch,
            "recover": self._recover,
            "sum": self._sum,
        }
        return {"changed": False, **steps[given["step"]](given, task_vars)}

    def _plan(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        # What nodes say of their rollouts decides once, and before anything is taken back.
        choice = Choice("", "", "")
        if given["change"] == "rollback":
            choice = choose_rollout(_Hosts(task_vars, "").plans(), _now(), given["rollback_of"])
        if choice.problem:
            raise RefusedError(choice.problem)
        hosts = _Hosts(task_vars, choice.rollout)
        need = cluster_need(map(hosts.__getitem__, task_vars["ansible_play_hosts"]))
        back = "Going back to what was before the rollout of %s (UTC): %s.\n" % (choice.rollout, choice.told)
        asks_settings = given["change"] == "rollout"
        plan = plan_text(collect(hosts.plans()), given["skip_hosts_without_kubelet"], asks_settings)
        told = back + plan if choice.told else plan
        skip, every = given["skip_hosts_without_kubelet"], task_vars["ansible_play_hosts_all"]
        gate = gate_of(hosts, every, task_vars["ansible_play_hosts"], skip, given["max_fail_percentage"])
        changing = [host for host in every if changes(hosts[host].plan) and host not in gate.refused]
        needs_cluster = any(hosts[host].needs_cluster for host in changing)
        keep_order({"changing": changing, "needs_cluster": needs_cluster, "refused": gate.asked})
        return {"run": _now(), "of": hosts.run, "rollback_of": choice.rollout, "told": told, **need._asdict()}

    def _role(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        found = self._plan(given, task_vars)
        if found["hosts"]:
            lacking = self._lacking((found["purpose"], found["alternative"]), task_vars)
            return lacking or found
        return found

    def _lacking(self, need: tuple[str, str], task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the task where what is needed cannot be done; empty otherwise. need: (purpose,
        alternative)."""
        found = self.run_module(_CHECK, _CHECK, {"purpose": need[0], "alternative": need[1]}, task_vars)
        return found if "collection" not in found or found.get("failed") else {}

    def _node(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        plan = _Hosts(task_vars)[task_vars["inventory_hostname"]].plan
        reasons = refusal(plan, given["skip_hosts_without_kubelet"], given["done_so_far"])
        if reasons:
            raise RefusedError(reasons)
        return {}

    def _batch(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        hosts, every = _Hosts(task_vars), task_vars["ansible_play_hosts_all"]
        run = Run(hosts, every, task_vars["ansible_play_batch"], task_vars["ansible_play_hosts"])
        refuse_lost(run, given["max_fail_percentage"])
        others = map(hosts.__getitem__, given["fleet"])
        asked = run.asks(given["change"])
        if asked is None:
            warning = rough_warning(run, given["change"], others)
            # As the module debug shows a message.
            return {"msg": warning, "_ansible_verbose_always": True} if warning else {}
        try:
            nodes = read_cluster(self, "the nodes of the cluster", asked.fixed, task_vars, kind="Node")
            pods = read_cluster(
                self, "the pods of the cluster", asked.fixed, task_vars, kind="Pod", field_selectors=_LIVE_PODS
            )
        except NodeError as error:
            names = ", ".join(host.name for host in run.emptied)
            raise error.adding("the nodes %s were not touched" % names) from None
        drained = [host.node_name for host in run.emptied]
        with _of_cluster():
            claims = shortage(nodes, pods, drained, static_nodes(run, others))
        refuse_shortage(run, claims)
        return {}

    def _look(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        needs = [(given["purpose"], given["alternative"])] if given["purpose"] else []
        needs += [_IMPACT_NEED] if given["impact"] and given["impact_from"] == API else []
        needs += [_SCHEDULE_NEED] if given["schedule"] and given["purpose"] else []
        for need in needs:
            lacking = self._lacking(need, task_vars)
            if lacking:
                return lacking
        said = self._impact(given, task_vars) if given["impact"] else {"told": "", "stops": ""}
        order = self._schedule(given, task_vars) if given["schedule"] and not said["stops"] else None
        if not given["impact"] and order is None:
            return {}
        told = "\n".join(filter(None, [said["told"], said["stops"]]))
        if order is not None:
            # The result has all hosts, which nobody is to be shown.
            Display().display("\n".join(filter(None, [told, schedule_text(order)])))
            keep_order({**kept_order(), "batches": [batch["hosts"] for batch in order["batches"]]})
            return {"schedule": order}
        # As the module debug shows a message.
        shown = {"failed": True} if said["stops"] else {"_ansible_verbose_always": True}
        return {"msg": told.splitlines() if given["as_lines"] else told, **shown}

    def _schedule(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Return in which order and how many at a time the hosts of the play are changed."""
        if not 0 <= given["drain_seconds"] <= MOST_SECONDS:
            what = "%d is not a number of seconds from 0 to %d" % (given["drain_seconds"], MOST_SECONDS)
            raise InputError(what, option("drain_seconds"), "give how long the drain and the change of a node take")
        found = list(map(_Hosts(task_vars).__getitem__, task_vars["ansible_play_hosts_all"]))
        hosts = [host for host in found if changes(host.plan)]
        fleet = FleetToChange(
            {host.name: (host.node_name, shape_of(host.plan), host.drains) for host in hosts},
            times={host.name: mapping(host.plan.get("last")).get("drain_seconds") for host in found},
        )
        drained = [host for host in hosts if host.drains]
        if drained:
            asked = {tuple(str(host.fixed.get(name) or "") for name in _OF_CLUSTER) for host in drained}
            if len(asked) > 1:
                remedy = "change the nodes of each cluster in a run of their own, with --limit, or give numbers"
                raise InputError("is auto, and these hosts are of several clusters", "cpu_manager_serial", remedy)
            read = partial(self._read, drained[0], task_vars)
            fleet = fleet._replace(
                nodes=read("the nodes of the cluster", kind="Node"),
                pods=read("the pods of the cluster", kind="Pod", field_selectors=_LIVE_PODS),
                budgets=read(
                    "the PodDisruptionBudgets of the cluster", kind="PodDisruptionBudget", api_version="policy/v1"
                ),
            )
        with _of_cluster():
            schedule = schedule_of(fleet, given["drain_seconds"])
        if given["schedule_dest"]:
            put_file(given["schedule_dest"], [json.dumps(schedule, indent=1) + "\n"])
        return schedule

    def _read(self, host: PlannedHost, task_vars: Mapping[str, Any], what: str, **query: Any) -> list[Any]:
        """Return what the API server of a host says."""
        # Half of what an object is written in.
        hidden = {"hidden_fields": ["metadata.managedFields"]}
        return read_cluster(self, what, host.fixed, task_vars, **query, **hidden)

    def _impact(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        waivers = checked_waivers(given["waivers"], option("waivers"))
        remarks = Remarks()
        hosts = []
        for host in map(_Hosts(task_vars).__getitem__, task_vars["ansible_play_hosts_all"]):
            if given["skip_hosts_without_kubelet"] and host.plan.get("status") == NO_KUBELET:
                continue
            if not host.fixed:
                remarks.add("left out, as they were refused before they were planned: %s", host.name)
                continue
            hosts.append(host)
        if given["impact_from"] == NODES:
            if given["fail_on"] == HOMELESS:
                what = "is %s, and nodes alone do not tell whether another one takes a pod" % HOMELESS
                raise InputError(what, option("fail_on"), "take refused or never, or ask the API server")
            clusters, names = [cluster_of_nodes({host.name: host.plan for host in hosts}, remarks)], [""]
        else:
            asked = self._asked(hosts, remarks)
            names = list(asked)
            check_clusters(waivers, names, option("waivers"))
            clusters = self._clusters(asked, given["fail_on"], task_vars, remarks)
        with _of_cluster():
            impact = with_waivers(impact_of(clusters, remarks), waivers, _now()[:10], *names[:1])
        if given["dest"]:
            put_file(given["dest"], [json.dumps(impact, indent=1) + "\n"])
        return {"told": impact_text(impact), "stops": stopping(impact, given["fail_on"]), "impact": impact}

    def _asked(self, hosts: Sequence[PlannedHost], remarks: Remarks) -> dict[str, list[PlannedHost]]:
        """Return the hosts of each cluster whose API server is asked, by how the cluster is told apart from others."""
        api_host = self._task.delegate_to
        asked: dict[tuple[str, str], list[PlannedHost]] = {}
        for host in hosts:
            if host.fixed["api_host"] != api_host:
                remarks.add(_OTHER_API_HOST % api_host, host.name)
                continue
            where = tuple(str(host.fixed.get(name) or "") for name in _OF_CLUSTER)
            asked.setdefault((where[0], where[1]), []).append(host)
        # Two kubeconfigs may have contexts of one name.
        times = Counter(context or kubeconfig for kubeconfig, context in asked)
        named = {}
        for (kubeconfig, context), its_hosts in asked.items():
            name = context or kubeconfig
            named[line(name if times[name] < 2 else "%s in %s" % (context, kubeconfig))] = its_hosts
        return named

    def _clusters(
        self,
        asked: Mapping[str, Sequence[PlannedHost]],
        fail_on: str,
        task_vars: Mapping[str, Any],
        remarks: Remarks,
    ) -> list[Cluster]:
        """Return what the API servers of these hosts say."""
        clusters, unread = [], []
        for name, its_hosts in asked.items():
            try:
                found = self._cluster(its_hosts, task_vars, remarks)
            except NodeError as error:
                unread.append(error)
                for host in its_hosts:
                    remarks.add("left out, as their cluster does not answer (%s): %%s" % _escaped(error), host.name)
                continue
            clusters.append(found._replace(name=name) if len(asked) > 1 else found)
        # A gate does not open where nobody could look.
        if unread and (not clusters or fail_on != NEVER):
            first = unread[0]
            what = "%s; what becomes of the pods is not known, and no node was changed" % first.what
            raise NodeError(what, first.where, first.remedy or _UNREAD_CLUSTER, first.kind)
        return clusters

    def _cluster(self, hosts: Sequence[PlannedHost], task_vars: Mapping[str, Any], remarks: Remarks) -> Cluster:
        """Return what the API server of these hosts says."""

        read = partial(self._read, hosts[0], task_vars)
        nodes = read("the nodes of the cluster", kind="Node")
        pods = read("the pods of the cluster", kind="Pod", field_selectors=_LIVE_PODS)
        owners: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        for kind in sorted({controller_of(pod) for pod in map(mapping, pods)} & set(_OWNERS)):
            try:
                owners.update(owners_of(read("what owns pods", kind=kind, api_version=_OWNERS[kind]), kind))
            except NodeError as error:
                remarks.add("%s", str(error))
        return Cluster({host.name: (host.node_name, host.plan) for host in hosts}, nodes, pods, owners)

    def _recover(self, _given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        host = _Hosts(task_vars)[task_vars["inventory_hostname"]]
        if may_have_pods(host.plan) and not self._is_cordoned(host, task_vars):
            raise in_service_error(host.plan)
        return {}

    def _sum(self, given: Given, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        skip, is_rollout = given["skip_hosts_without_kubelet"], given["change"] == "rollout"
        nodes, left = collect(_Hosts(task_vars).plans()), task_vars["ansible_play_hosts"]
        told = change_summary(nodes, left, bool(self._task.check_mode), skip, is_rollout)
        # As the module debug shows a message.
        return {"msg": told, "_ansible_verbose_always": True}

    def _is_cordoned(self, host: PlannedHost, task_vars: Mapping[str, Any]) -> bool:
        if not host.fixed.get("drain"):
            return False
        # Not as the journal names it, which is the node's.
        nodes = read_cluster(self, "the node from the cluster", host.fixed, task_vars, kind="Node", name=host.node_name)
        return any(mapping(mapping(node).get("spec")).get("unschedulable") for node in nodes)


_UNREAD_CLUSTER = (
    "set kubelet_kubeconfig to the cluster's kubeconfig on kubelet_api_host, and kubelet_kube_context to its context,"
    " or let the nodes tell of their pods with cpu_manager_impact_from=nodes"
)
_OTHER_API_HOST = "left out, as their API server is not asked from %s, which a run of their own with --limit does: %%s"


@contextmanager
def _of_cluster() -> Iterator[None]:
    """Yield what is malformed is the cluster's. Raises NodeError."""
    try:
        yield
    except InputError:
        raise
    except MALFORMED as error:
        raise NodeError("what the cluster says of its nodes and pods cannot be read: %s" % error) from None


def _escaped(error: NodeError) -> str:
    return line(str(error)).replace("%", "%%")


_FIXED, _VERDICT = "kubelet_fixed", "kubelet_verdict"
_REGISTERED = ("kubelet_plan", _FIXED, _VERDICT, "kubelet_call")


class _Hosts(Dict[str, PlannedHost]):
    """The hosts by their names, as far as the run has come with each.

    Ansible puts together all variables of a host where one is read. So that is done once, and for no host in vain.
    """

    def __init__(self, task_vars: Mapping[str, Any], rollback_of: str | None = None) -> None:
        """Read the hosts of a run. rollback_of: the rollout that it goes back from; None for the one it has chosen."""
        super().__init__()
        self._task_vars = task_vars
        self._run = HostsOfRun(task_vars, _FIXED)
        self.run = self._run.run
        verdict = mapping(task_vars.get(_VERDICT))
        # Another run of the same ansible-playbook may have chosen, too.
        chosen = str(verdict.get("rollback_of") or "") if self.run and verdict.get("of") == self.run else ""
        self._rollback_of = chosen if rollback_of is None else rollback_of

    def __missing__(self, name: str) -> PlannedHost:
        try:
            found = {each: mapping(value) for each, value in self._run.registered(name, _REGISTERED).items()}
        except RefusedError as error:
            self[name] = PlannedHost(name, failure_of(error))
            return self[name]
        plan, fixed, verdict, changed = (found.get(each, {}) for each in _REGISTERED)
        named = mapping(self._task_vars.get(_VERDICT)).get("run")
        is_in_run = named is not None and verdict.get("run") == named
        is_undone = changed.get("failed") is True and changed.get("undone") is True
        self[name] = PlannedHost(name, plan_back(plan, self._rollback_of), fixed, is_in_run, is_undone)
        return self[name]

    def plans(self) -> dict[str, Mapping[str, Any]]:
        """Return {host: its plan}, of all hosts of the play."""
        return {name: self[name].plan for name in self._task_vars["ansible_play_hosts_all"]}


def _now() -> str:
    return datetime.now(timezone.utc).replace(tzinfo=None).isoformat()
