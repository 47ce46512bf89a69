# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/impact/gate.py: what is said of an impact, and what stops a change."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.fleet import (
    Cluster,
    cluster_of_nodes,
    impact_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.gate import (
    checked_waivers,
    impact_text,
    stopping,
    with_waivers,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.workloads import Remarks
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import STATIC, node_of, plan_of, pod_of

TODAY = "2026-11-27"
WAIVER = {"workload": "Pod shop/three", "reason": "moves to other nodes", "until": "2026-12-31"}


def impact(waivers: Any = (), today: str = TODAY) -> dict[str, Any]:
    """Return one pod that never comes back, one that its node refuses, and one that stays."""
    plans = {"a": plan_of(), "b": plan_of(STATIC, STATIC)}
    hosts = {name: (name, plan) for name, plan in plans.items()}
    late = "2026-11-02T00:00:00Z"
    pods = [
        pod_of("three", "a", "3", nodeSelector={"kubernetes.io/hostname": "a"}),
        pod_of("six", "a", "6"),
        pod_of("two", "a", "2", created=late),
        pod_of("web", "a", created=late),
    ]
    found = impact_of([Cluster(hosts, [node_of(name) for name in plans], pods)])
    return with_waivers(found, checked_waivers(waivers, "waivers"), today)


def test_what_is_said() -> None:
    assert impact_text(impact()).splitlines() == [
        "Impact on the pods of 2 nodes; nodes that change: 1",
        "  would never come back, as no node that it may come to takes it: 1 workload",
        "    Pod shop/three: 1 of 1 pod refused",
        "    on a: SMTAlignmentError, SMT Alignment Error: requested 3 cpus not",
        "      multiple cpus per core = 2",
        "    cure: ask for 4 CPUs instead of 3; or go without the option",
        "      full-pcpus-only",
        "  refused on nodes: 1 workload",
        "    Pod shop/two: 1 of 1 pod refused",
        "    on a: SMTAlignmentError, SMT Alignment Error: not enough free",
        "      physical CPUs: available physical CPUs = 0, requested CPUs = 2,",
        "      CPUs per core = 2",
        "    cure: none of those that were tried",
        "    when empty, a takes it",
        "  moves to exclusive CPUs: 1 workload",
        "    Pod shop/six",
        "  stays as it is: 1 workload",
        "  afterwards: exclusive 6, still to be given 6, stranded 0, shared 10",
    ]


def test_the_gate_says_all_reasons_at_once() -> None:
    found = impact()
    assert stopping(found, "never") == ""
    homeless, refused = stopping(found, "homeless"), stopping(found, "refused")
    assert "would hit 1 workload:\nPod shop/three: 1 of 1 pod refused; on a: SMTAlignmentError" in homeless
    assert "Pod shop/two" not in homeless
    assert "would hit 2 workloads:\nPod shop/three" in refused
    assert "\nPod shop/two: 1 of 1 pod refused; on a: SMTAlignmentError" in refused
    assert "cpu_manager_impact_waivers" in refused


def test_whoever_the_empty_node_refuses_is_told_from_whoever_lacks_room() -> None:
    """Where nodes alone tell of their pods, that is all that is known of other places."""
    remarks = Remarks()
    beside = {"pods": [pod_of(name, "a", cpu) for name, cpu in (("early", "4"), ("late", "4"), ("odd", "3"))]}
    plan = plan_of()
    plans = {"a": {**plan, "beside_cpus": {**plan["beside_cpus"], **beside}}}
    found = with_waivers(impact_of([cluster_of_nodes(plans, remarks)], remarks), [], "2026-11-27")
    told = " ".join(stopping(found, "refused").split())
    late, odd = told.index("Pod shop/late: "), told.index("Pod shop/odd: ")
    assert late < told.index("when empty, a takes it; not exact: the order of its pods is not known") < odd
    assert odd < told.index("the same node refuses it when it is empty, too")
    assert "note: told by the nodes alone: " in impact_text(found)


def test_a_waiver_is_for_one_workload_until_its_last_day() -> None:
    found = impact([WAIVER])
    assert stopping(found, "homeless") == ""
    assert "Pod shop/three" not in stopping(found, "refused")
    assert "    waived until 2026-12-31: moves to other nodes" in impact_text(found).splitlines()
    assert stopping(impact([WAIVER], "2026-12-31"), "homeless") == ""
    ended = impact([WAIVER], "2027-01-01")
    assert "Pod shop/three" in stopping(ended, "homeless")
    assert ended["notes"] == ["the waiver of Pod shop/three has ended: its last day was 2026-12-31"]


def test_a_waiver_of_nobody_is_told() -> None:
    found = impact([{**WAIVER, "workload": "Deployment shop/three"}])
    assert found["notes"] == ["the waiver of Deployment shop/three is of no use: no workload of this name is refused"]


@pytest.mark.parametrize(
    ("waiver", "said"),
    [
        (7, "waivers[0]: 7 is not a mapping"),
        ({**WAIVER, "utnil": 1}, "waivers[0]: has the unknown key utnil"),
        ({**WAIVER, "reason": ""}, "waivers[0]: has no reason"),
        ({**WAIVER, "until": "soon"}, "waivers[0].until: 'soon' is not a date"),
    ],
)
def test_waivers_that_are_wrong(waiver: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        impact([waiver])
    assert str(caught.value).startswith(said)


def test_a_day_without_quotes() -> None:
    (waiver,) = checked_waivers([{**WAIVER, "until": date(2026, 12, 31)}], "waivers")
    assert waiver == {**WAIVER, "cluster": ""}


@pytest.mark.parametrize(
    ("waiver", "only", "counts"),
    [
        (WAIVER, "", True),
        (WAIVER, "prod", True),
        ({**WAIVER, "cluster": "prod"}, "prod", True),
        ({**WAIVER, "cluster": "staging"}, "prod", False),
        # Which cluster this is, is not known.
        ({**WAIVER, "cluster": "prod"}, "", False),
    ],
)
def test_a_waiver_of_another_cluster_does_not_count_in_the_only_one(waiver: Any, only: str, counts: bool) -> None:
    found = with_waivers(impact(), checked_waivers([waiver], "waivers"), TODAY, only)
    assert (stopping(found, "homeless") == "") is counts
    assert ("the waiver of" in str(found["notes"])) is not counts


def test_what_is_not_exact_is_said() -> None:
    """The Static memory manager has a say where the topology manager aligns."""
    wanted = {**STATIC, "topology_manager_policy": "single-numa-node"}
    plan = plan_of(wanted, machine="2 sockets x 2 cores x 2 threads")
    reserved = [{"numaNode": 0, "limits": {"memory": "100Mi"}}]
    plan["found"].update({"memory_manager_policy": "Static", "reserved_memory": reserved})
    found = with_waivers(impact_of([Cluster({"a": ("a", plan)}, [node_of("a")], [pod_of("six", "a", "6")])]), [], TODAY)
    assert (
        "not exact: the topology manager (single-numa-node) also goes by the NUMA nodes of memory (memory manager"
        " Static), which are not known here" in " ".join(impact_text(found).split())
    )


def test_thousands_of_workloads_are_few_lines() -> None:
    pods = [pod_of("p%04d" % number, "a", "3") for number in range(1000)]
    found = with_waivers(impact_of([Cluster({"a": ("a", plan_of())}, [node_of("a")], pods)]), [], TODAY)
    assert len(found["workloads"]) == 1000
    told, stops = impact_text(found).splitlines(), stopping(found, "homeless").splitlines()
    assert "    and 900 workloads more" in told
    assert "and 900 workloads more" in stops
    assert len(told) < 1000
    assert len(stops) == 103


def test_who_would_gain_is_named() -> None:
    pod = pod_of("burst", "a")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}
    found = with_waivers(impact_of([Cluster({"a": ("a", plan_of())}, [node_of("a")], [pod])]), [], TODAY)
    told = impact_text(found).splitlines()
    assert told[2:4] == [
        "  would move to exclusive CPUs with limits equal to requests: 1 workload",
        "    Pod shop/burst",
    ]
