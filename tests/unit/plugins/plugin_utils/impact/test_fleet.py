# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/impact/fleet.py: what becomes of each workload, on nodes of 8 CPUs, 2 reserved."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.beside_cpus import beside_cpus
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.pods_seen import pods_seen
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.admission import Replays
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.fleet import (
    FATES,
    Cluster,
    cluster_of_nodes,
    impact_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.workloads import Kinds, Remarks, owners_of
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, V2, Style
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import (
    NONE,
    STATIC,
    WHOLE_CORES,
    node_of,
    only_on,
    plan_of,
    pod_of,
    replica_set,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import write_node
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CONFIG

DB = ("ReplicaSet", "db-1")
OWNERS = owners_of([replica_set("db-1", "db")], "ReplicaSet")
SMT = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"


def impact(
    pods: Sequence[Any],
    plans: Mapping[str, Any] | None = None,
    nodes: Sequence[Any] | None = None,
    owners: Any = None,
    replays: Replays | None = None,
) -> dict[str, Any]:
    plans = {"a": plan_of(), "b": plan_of()} if plans is None else plans
    hosts = {"host-" + name: (name, plan) for name, plan in plans.items()}
    said = [node_of(name) for name in plans] if nodes is None else nodes
    return impact_of([Cluster(hosts, said, pods, OWNERS if owners is None else owners)], replays=replays)


def fates(found: Mapping[str, Any]) -> dict[str, str]:
    return {row["workload"]: row["fate"] for row in found["workloads"]}


def test_a_deployment_that_never_comes_back() -> None:
    found = impact([pod_of("db-1-x", "a", "3", DB), pod_of("db-1-y", "b", "3", DB), pod_of("web", "a", "500m")])
    row, web = found["workloads"]
    assert (row["workload"], row["fate"]) == ("Deployment shop/db", "homeless")
    assert row["pods"] == {**dict.fromkeys(FATES, 0), "homeless": 2}
    assert (row["nodes"], row["reason"], row["message"]) == (["host-a", "host-b"], "SMTAlignmentError", SMT)
    assert row["cure"] == "ask for 4 CPUs instead of 3; or go without the option full-pcpus-only"
    assert (row["elsewhere"], row["exact"]) == ("", True)
    assert (web["workload"], web["fate"]) == ("Pod shop/web", "stays")
    assert [(node["host"], node["refused"], node["changes"]) for node in found["nodes"]] == [
        ("host-a", 1, True),
        ("host-b", 1, True),
    ]
    assert found["notes"] == []


@pytest.mark.parametrize(
    ("wanted", "found", "cpu", "fate"),
    [
        (WHOLE_CORES, NONE, "4", "gains"),
        (WHOLE_CORES, NONE, "1500m", "stays"),
        (WHOLE_CORES, NONE, "", "stays"),
        (NONE, STATIC, "4", "loses"),
        (NONE, STATIC, "3", "loses"),
        (WHOLE_CORES, STATIC, "4", "stays"),
        (WHOLE_CORES, STATIC, "3", "homeless"),
        ({**STATIC, "cpu_cfs_quota": False}, STATIC, "3", "stays"),
        ({**STATIC, "reserved_system_cpus": "0-3"}, STATIC, "6", "homeless"),
    ],
)
def test_what_becomes_of_a_pod(wanted: Any, found: Any, cpu: str, fate: str) -> None:
    plans = {"a": plan_of({"cpu_manager_policy": "none", **wanted}, found)}
    assert fates(impact([pod_of("one", "a", cpu)], plans)) == {"Pod shop/one": fate}


def test_an_unchanged_node_takes_who_is_refused_elsewhere() -> None:
    plans = {"a": plan_of(), "b": plan_of(STATIC, STATIC)}
    pods = [pod_of("db-1-x", "a", "3", DB), pod_of("db-1-y", "b", "3", DB)]
    (row,) = impact(pods, plans)["workloads"]
    assert (row["fate"], row["elsewhere"], row["pods"]["stays"], row["pods"]["refused"]) == ("refused", "b", 1, 1)


@pytest.mark.parametrize(
    ("spec", "fate"),
    [
        ({}, "refused"),
        ({"nodeSelector": {"disk": "ssd"}}, "homeless"),
        ({"nodeSelector": {"kubernetes.io/hostname": "b"}}, "refused"),
        ({"affinity": only_on("a")}, "homeless"),
        ({"affinity": only_on("a", "b")}, "refused"),
        ({"schedulerName": "mine"}, "refused"),
    ],
)
def test_where_a_pod_may_come_to(spec: Any, fate: str) -> None:
    plans = {"a": plan_of(), "b": plan_of(STATIC, STATIC)}
    nodes = [node_of("a", {"disk": "ssd"}), node_of("b")]
    assert fates(impact([pod_of("one", "a", "3", **spec)], plans, nodes)) == {"Pod shop/one": fate}
    # A taint that it does not tolerate is as good as no node, whatever it says of labels.
    nodes[1]["spec"]["taints"] = [{"key": "gpu", "effect": "NoSchedule"}]
    assert fates(impact([pod_of("one", "a", "3", **spec)], plans, nodes)) == {"Pod shop/one": "homeless"}


def test_a_node_that_is_not_known_may_take_anybody() -> None:
    nodes = [node_of("a"), node_of("other")]
    (row,) = impact([pod_of("one", "a", "3")], {"a": plan_of()}, nodes)["workloads"]
    assert (row["fate"], row["elsewhere"]) == ("refused", "other")


def test_the_oldest_pods_come_first_and_those_of_files_before_them() -> None:
    early, late = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"
    old, new = pod_of("z-old", "a", "4", created=early), pod_of("a-new", "a", "4", created=late)
    expected = {"Pod shop/z-old": "gains", "Pod shop/a-new": "refused"}
    assert fates(impact([new, old])) == expected
    assert fates(impact([old, new])) == expected
    new["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert fates(impact([old, new])) == {"Pod shop/z-old": "refused", "Pod shop/a-new": "gains"}


@pytest.mark.parametrize("drains", [True, False])
def test_what_a_drain_leaves_is_there_before_the_others_come_back(drains: bool) -> None:
    """A DaemonSet's pod that is younger than another, for which there is room once."""
    agent = pod_of("agent-x", "a", "4", ("DaemonSet", "agent"), "2026-11-02T00:00:00Z")
    pods = [pod_of("old", "a", "4"), agent]
    found = fates(impact(pods, {"a": {**plan_of(), "drains": drains}}))
    refused = "Pod shop/old" if drains else "DaemonSet shop/agent"
    assert [name for name, fate in found.items() if fate == "refused"] == [refused]


def test_the_version_of_a_kubelet_that_is_not_known() -> None:
    plan = plan_of()
    plan["kubelet"]["version"] = None
    found = impact([pod_of("one", "a", "3")], {"a": plan})
    assert fates(found) == {"Pod shop/one": "homeless"}
    assert found["notes"] == ["the version of their kubelets is not known, and the newest is assumed: host-a"]


@pytest.mark.parametrize(("cpu", "cure"), [("4", "ask for 2 CPUs instead of 4"), ("2", "")])
def test_a_cure_is_one_beside_those_that_came_before(cpu: str, cure: str) -> None:
    """Four of the six CPUs are taken. Without exclusive CPUs it would not fit either."""
    pods = [pod_of("first", "a", "4"), pod_of("second", "a", cpu, created="2026-11-02T00:00:00Z")]
    rows = {row["workload"]: row for row in impact(pods)["workloads"]}
    assert rows["Pod shop/second"]["cure"] == cure
    assert rows["Pod shop/second"]["fate"] == ("refused" if cure else "gains")


def test_a_refusal_that_nothing_cures() -> None:
    pods = [pod_of("first", "a", "6"), pod_of("second", "a", "2", created="2026-11-02T00:00:00Z")]
    (row,) = [row for row in impact(pods)["workloads"] if row["fate"] == "refused"]
    assert (row["workload"], row["cure"], row["elsewhere"]) == ("Pod shop/second", "", "a")


def test_the_cure_for_a_numa_node_that_is_too_small() -> None:
    wanted = {**STATIC, "reserved_system_cpus": "0", "topology_manager_policy": "single-numa-node"}
    plans = {"a": plan_of(wanted, NONE, "2 sockets x 4 cores x 1 thread")}
    (row,) = impact([pod_of("one", "a", "5")], plans)["workloads"]
    assert (row["fate"], row["reason"]) == ("homeless", "TopologyAffinityError")
    assert row["cure"] == "ask for 4 CPUs instead of 5; or set topologyManagerPolicy: best-effort"


def burstable(asked: str, **limits: str) -> dict[str, Any]:
    found = pod_of("one", "a")
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": asked, "memory": "1Gi"}, "limits": limits}
    return found


TWICE = {"cpu": "4"}


@pytest.mark.parametrize(
    ("pod", "wanted", "could"),
    [
        (burstable("2", **TWICE), WHOLE_CORES, True),
        (burstable("2"), WHOLE_CORES, True),
        (burstable("2500m", **TWICE), WHOLE_CORES, False),
        # Its own kubelet would refuse it so.
        (burstable("3", **TWICE), WHOLE_CORES, False),
        (burstable("3", **TWICE), STATIC, True),
        (burstable("2", **TWICE), {**NONE, "reserved_system_cpus": "0"}, False),
        (pod_of("one", "a", "2"), WHOLE_CORES, False),
        (pod_of("one", "a"), WHOLE_CORES, False),
    ],
)
def test_who_would_have_cpus_with_limits_equal_to_requests(pod: Any, wanted: Any, could: bool) -> None:
    (row,) = impact([pod], {"a": plan_of(wanted)})["workloads"]
    assert row["could_gain"] is could


def test_the_fleet_afterwards() -> None:
    found = impact([pod_of("four", "a", "4"), pod_of("web", "b", "500m")])
    assert found["fleet"] == {"exclusive": 4, "allocatable": 2 + 6, "stranded": 0, "shared": 4 + 8}
    (row,) = [row for row in found["nodes"] if row["node"] == "a"]
    assert (row["exclusive"], row["allocatable"], row["stranded"], row["shared"]) == (4, 2, 0, 4)


def test_what_makes_pods() -> None:
    pods = [
        pod_of("db-1-x", "a", "4", DB),
        pod_of("set-0", "a", "500m", ("StatefulSet", "set")),
        pod_of("agent-x", "a", "500m", ("DaemonSet", "agent")),
        pod_of("night-1-x", "a", "500m", ("Job", "night-1")),
        pod_of("lost-1-x", "a", "500m", ("ReplicaSet", "lost-1")),
        pod_of("proxy-a", "a", "500m", ("Node", "a")),
    ]
    night = {
        "metadata": {
            "name": "night-1",
            "namespace": "shop",
            "ownerReferences": [{"kind": "CronJob", "name": "night", "controller": True}],
        }
    }
    found = impact(pods, owners={**OWNERS, **owners_of([night], "Job")})
    assert sorted(fates(found)) == [
        "CronJob shop/night",
        "DaemonSet shop/agent",
        "Deployment shop/db",
        "Pod shop/proxy-a",
        "ReplicaSet shop/lost-1",
        "StatefulSet shop/set",
    ]
    assert found["notes"] == ["what owns these is not known, so their own names are shown: ReplicaSet lost-1"]


HUGE = pod_of("huge", "a")
HUGE["spec"]["containers"] = [{"name": "c%d" % number} for number in range(5000)]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (pod_of("bad", ""), "not counted, as they are on no node yet: shop/bad"),
        (
            pod_of("bad", "elsewhere"),
            "not counted, as their nodes are not in the inventory or could not be planned: shop/bad",
        ),
        (HUGE, "not counted, as they have more than 1000 containers: shop/huge"),
        (
            pod_of("bad", "a", "many"),
            "not counted, as they cannot be read: shop/bad (pod shop/bad: container app, resources.limits.cpu:",
        ),
        (pod_of("bad", "a", "-1"), "not counted, as they cannot be read: shop/bad ("),
        (None, "not counted, as they cannot be read: something that is no pod ("),
        ({"metadata": {"name": "half"}}, "not counted, as they cannot be read: /half ("),
        ({"metadata": 7, "spec": 5}, "not counted, as they cannot be read: "),
        (
            pod_of("bad", "a", schedulerName="mine"),
            "a scheduler of its own decides where these come back, of which only the nodes are known: shop/bad",
        ),
    ],
    ids=["no-node", "foreign", "huge", "no-quantity", "negative", "nothing", "half", "no-mapping", "scheduler"],
)
def test_one_line_for_what_is_wrong_and_an_answer_for_the_rest(bad: Any, told: str) -> None:
    found = impact([bad, pod_of("one", "a", "3")])
    assert fates(found)["Pod shop/one"] == "homeless"
    (note,) = found["notes"]
    assert note.startswith(told)


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ({}, "host-b (it could not be planned: it did not answer)"),
        (
            {"failed": True, "msg": "no route"},
            "host-b (it could not be planned: no route)",
        ),
        (
            {"status": "drift", "found": None, "found_refusal": "no YAML"},
            "host-b (the configuration of its kubelet is not known: no YAML)",
        ),
        ({**plan_of(), "topology": {"cores": 7}}, "host-b (its answer"),
        ({**plan_of(), "drift": 7}, "host-b (its answer"),
        (
            {**plan_of(), "drift": [{"subject": "cpu_manager_policy_options", "wanted": 7}]},
            "host-b (",
        ),
        (plan_of(version="1.2"), "host-b ("),
        # No kubelet would start so.
        (
            plan_of({**STATIC, "reserved_system_cpus": "0,99"}),
            "host-b (",
        ),
    ],
    ids=["silent", "failed", "unreadable", "topology", "drift", "options", "version", "no-start"],
)
def test_a_node_that_says_too_little(plan: Any, told: str) -> None:
    found = impact([pod_of("one", "a", "4"), pod_of("lost", "b", "4")], {"a": plan_of(), "b": plan})
    assert fates(found)["Pod shop/one"] == "gains"
    assert "Pod shop/lost" not in fates(found)
    assert [
        note for note in found["notes"] if note.startswith("what becomes of the pods of these is not known: " + told)
    ]


def test_hosts_and_nodes_that_do_not_fit() -> None:
    hosts = {"x": ("a", plan_of()), "y": ("a", plan_of()), "z": ("gone", plan_of())}
    found = impact_of([Cluster(hosts, [node_of("a"), None, {"metadata": 7}], [pod_of("one", "a", "4")])])
    assert fates(found) == {"Pod shop/one": "gains"}
    assert found["notes"] == [
        "nodes of the cluster that cannot be read, and are left out: 'int' object has no attribute 'get'",
        "these hosts have the node of another host, and are left out: y",
        "the cluster has no node of these hosts, whose pods are not known: z",
    ]


def test_two_clusters() -> None:
    clusters = [
        Cluster({"host-" + name: ("a", plan_of())}, [node_of("a")], [pod_of("one", "a", cpu)], {}, name)
        for name, cpu in (("east", "3"), ("west", "4"))
    ]
    found = impact_of(clusters)
    assert [(row["cluster"], row["workload"], row["fate"]) for row in found["workloads"]] == [
        ("east", "Pod shop/one", "homeless"),
        ("west", "Pod shop/one", "gains"),
    ]


def test_what_is_said_of_a_bad_pod_is_short_and_nothing_that_a_terminal_obeys() -> None:
    bad = pod_of("bad\x1b[2J", "a")
    bad["spec"]["containers"] = ["x" * 100000]
    (note,) = impact([bad, pod_of("fine\x1b[2J", "a", "4")])["notes"]
    assert len(note) < 400
    assert "\x1b" not in note
    (row,) = impact([pod_of("fine\x1b[2J", "a", "3")])["workloads"]
    assert "\x1b" not in row["workload"] + row["pod"]


def test_lines_are_short_however_much_is_wrong() -> None:
    found = impact([pod_of("p%03d" % number, "") for number in range(300)])
    (note,) = found["notes"]
    assert note.endswith("shop/p009 and 290 more")


# --- laws ---------------------------------------------------------------------------------------------


PODS = st.lists(
    st.tuples(st.sampled_from(["", "500m", "1", "2", "3", "4", "6"]), st.sampled_from("ab"), st.integers(1, 9)),
    max_size=12,
).map(
    lambda drawn: [
        pod_of("p%d" % number, node, cpu, created="2026-11-0%dT00:00:00Z" % day)
        for number, (cpu, node, day) in enumerate(drawn)
    ]
)


@given(PODS, st.sampled_from([NONE, STATIC, WHOLE_CORES]))
def test_an_empty_change_has_an_empty_impact(pods: list[Any], settings: Any) -> None:
    found = impact(pods, {name: plan_of(settings, settings) for name in "ab"})
    assert {row["fate"] for row in found["workloads"]} <= {"stays"}
    assert (found["changing"], sum(row["refused"] for row in found["nodes"])) == (0, 0)


@given(PODS, st.randoms(use_true_random=False))
def test_the_order_of_the_answer_does_not_count(pods: list[Any], random: Any) -> None:
    shuffled = list(pods)
    random.shuffle(shuffled)
    assert impact(shuffled) == impact(pods)


@given(PODS)
def test_each_pod_is_counted_once(pods: list[Any]) -> None:
    found = impact(pods)
    assert sum(sum(row["pods"].values()) for row in found["workloads"]) == len(pods)


def test_nodes_of_one_shape_and_state_are_computed_once() -> None:
    machines = ["1 socket x %d cores x 2 threads" % cores for cores in range(4, 24)]
    names = ["n%03d" % number for number in range(200)]
    plans = {name: plan_of(machine=machines[number % len(machines)]) for number, name in enumerate(names)}
    pods = [pod_of("%s-%d" % (name, number), name, cpu) for name in names for number, cpu in enumerate(("2", "500m"))]
    replays = Replays(Kinds())
    found = impact(pods, plans, replays=replays)
    assert (len(found["nodes"]), replays.computed) == (200, len(machines))
    # One pod that is another than its like makes one state more.
    replays = Replays(Kinds())
    impact([*pods, pod_of("more", names[0], "2")], plans, replays=replays)
    assert replays.computed == len(machines) + 1


def test_what_rollout_info_says_of_a_node_is_enough(tmp_path: Path) -> None:
    write_machine(tmp_path, "1s4c2t")
    path = tmp_path / CONFIG[1:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nreservedSystemCPUs: 0,4\n",
        encoding="ascii",
    )
    node = Node(Tree(str(tmp_path)), CONFIG, minor=34)
    plan = {
        **rollout_report(node, WHOLE_CORES, ChangeTerms()),
        "beside_cpus": beside_cpus(node, (), "devices"),
    }
    assert fates(impact([pod_of("one", "a", "3"), pod_of("two", "a", "4")], {"a": plan})) == {
        "Pod shop/one": "homeless",
        "Pod shop/two": "gains",
    }


# --- by the nodes alone -------------------------------------------------------------------------------


def told(name: str, cpu: str = "", qos: str = "Guaranteed") -> dict[str, Any]:
    """Return a pod as its node tells of it."""
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}} if cpu else {}
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": "uid-" + name},
        "spec": {"containers": [{"name": "app", "resources": resources}]},
        "status": {"qosClass": qos, "phase": "Running"},
    }


def by_nodes(**nodes: tuple[Any, Any]) -> dict[str, Any]:
    """Return the impact by what nodes tell: {node: (its plan, what it tells beside)}."""
    remarks = Remarks()
    plans = {}
    for name, (plan, beside) in nodes.items():
        more = beside if isinstance(beside, Mapping) else {"pods": beside}
        plans[name] = {**plan, "beside_cpus": {**plan["beside_cpus"], **more}}
    return impact_of([cluster_of_nodes(plans, remarks)], remarks)


def test_each_node_tells_of_its_pods() -> None:
    pods = [told("odd", "3"), told("even", "2"), told("web", "500m", "Burstable"), told("idle", "", "BestEffort")]
    found = by_nodes(a=(plan_of(), pods), b=(plan_of(STATIC, STATIC), [told("odd", "3")]))
    assert found["told_by"] == "nodes"
    assert fates(found) == {
        "Pod shop/odd": "refused",
        "Pod shop/even": "gains",
        "Pod shop/web": "stays",
        "Pod shop/idle": "stays",
    }
    (odd,) = [row for row in found["workloads"] if row["fate"] == "refused"]
    assert (odd["pods"]["refused"], odd["nodes"], odd["message"]) == (1, ["a"], SMT)
    # No other node is looked at, and the same refuses it, too: no order of pods would change that.
    assert (odd["elsewhere"], odd["exact"]) == ("", True)
    assert odd["cure"] == "ask for 4 CPUs instead of 3; or go without the option full-pcpus-only"
    rows = {row["host"]: row for row in found["nodes"]}
    assert (rows["a"]["exact"], rows["a"]["inexact"]) == (False, "the order of its pods is not known")
    assert rows["b"]["exact"]
    (note,) = found["notes"]
    assert note.startswith("told by the nodes alone: not known are who makes the pods again, whether another node")


def test_what_only_lacks_room_is_taken_by_the_same_node_when_it_is_empty() -> None:
    found = by_nodes(a=(plan_of(), [told("first", "4"), told("late", "4")]))
    (late, _first) = found["workloads"]
    assert (late["workload"], late["fate"], late["elsewhere"]) == ("Pod shop/late", "refused", "a")
    assert (late["exact"], late["inexact"]) == (False, "the order of its pods is not known")


def test_what_is_not_known_is_told() -> None:
    unknown = ["others", "requests", "memory", "devices"]
    left_out = [{"pod": "shop/x", "why": "its CPUs are of the pod as a whole"}]
    beside = {"pods": [told("even", "2")], "unknown": unknown, "left_out": left_out}
    found = by_nodes(a=(plan_of(), beside), b=(plan_of(), {"pods": None}))
    (row,) = found["workloads"]
    assert (row["fate"], row["exact"]) == ("gains", False)
    assert row["inexact"].startswith("which pods share CPUs is not known, and they are not counted; what Burstable")
    assert found["notes"][1:] == [
        "not counted: a: shop/x (its CPUs are of the pod as a whole)",
        "which pods share CPUs is not known, and they are not counted: a",
        "what Burstable pods ask for is not known, and not counted: a",
        "how much memory Guaranteed pods ask for is not known, and not counted: a",
        "which devices pods have is not known, and they are not counted: a",
        "these hosts do not tell of their pods: b",
    ]


def test_a_node_tells_of_its_own_pods_alone() -> None:
    """It says whose a pod is, what makes it, and where it may run: nothing of that counts."""
    lie = told("lie", "3")
    lie["metadata"].update(annotations={"kubernetes.io/config.mirror": "x"}, ownerReferences=[{"controller": True}])
    lie["spec"].update(nodeName="b", schedulerName="mine", affinity=7, nodeSelector=7)
    lie["status"]["phase"] = "Failed"
    found = by_nodes(a=(plan_of(), [lie]), b=(plan_of(), []))
    (row,) = found["workloads"]
    assert (row["workload"], row["nodes"]) == ("Pod shop/lie", ["a"])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.dictionaries(st.sampled_from(["metadata", "spec", "status", "name", "containers", "resources"]), JSON)


@given(pods=JSON | st.lists(PARTS, max_size=3), left_out=JSON, unknown=JSON)
def test_what_nodes_tell_is_data(pods: Any, left_out: Any, unknown: Any) -> None:
    beside = {"pods": pods, "left_out": left_out, "unknown": unknown}
    found = by_nodes(a=(plan_of(), beside), b=(plan_of(), [told("even", "2")]))
    # The rest is answered.
    assert fates(found)["Pod shop/even"] == "gains"
    assert [row["host"] for row in found["nodes"]] == ["a", "b"]
    for note in found["notes"]:
        assert "\n" not in note


@given(
    st.sampled_from([NONE, STATIC, WHOLE_CORES]),
    st.lists(st.sampled_from(["", "1", "2", "3", "4", "500m"]), max_size=5),
    st.sampled_from(["Guaranteed", "Burstable"]),
)
def test_an_empty_change_has_an_empty_impact_by_nodes_too(settings: Any, cpus: Sequence[str], qos: str) -> None:
    pods = [told("p%d" % number, cpu, qos if cpu else "BestEffort") for number, cpu in enumerate(cpus)]
    found = by_nodes(a=(plan_of(settings, settings), pods))
    assert found["changing"] == 0
    assert set(fates(found).values()) <= {"stays"}
    assert sum(sum(row["pods"].values()) for row in found["workloads"]) == len(cpus)


@pytest.mark.parametrize("style", [V1, V2])
def test_a_saved_node_without_a_change_has_no_impact(tmp_path: Path, style: Style) -> None:
    """What it tells of itself, replayed, gives it as many exclusive CPUs as its checkpoint has."""
    write_node(tmp_path, style)
    node = Node(Tree(str(tmp_path)))
    plan = rollout_report(node, {}, ChangeTerms())
    remarks = Remarks()
    beside = {**beside_cpus(node, [], "devices"), **pods_seen(node)}
    found = impact_of([cluster_of_nodes({"a": {**plan, "beside_cpus": beside}}, remarks)], remarks)
    assert fates(found) == {"Pod shop/db-0": "stays", "Pod shop/web-1": "stays"}
    (row,) = found["nodes"]
    assert (row["changes"], row["exclusive"], row["shared"]) == (False, 2, 6)
