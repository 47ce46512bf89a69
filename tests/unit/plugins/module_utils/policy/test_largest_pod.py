# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/largest_pod.py."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import other_host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.allocation import (
    Question,
    default_configuration,
    plan_allocations,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import POLICIES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.largest_pod import (
    PodSizes,
    largest_pods,
    lost_owners,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.reservation import plan_reservation
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

WHOLE = {"full_pcpus_only": True}
# (machine, count, strategy, options): {policy: the largest, and none of}
COSTS: list[tuple[str, int, str, dict[str, bool], dict[str, str]]] = [
    # a CPU of each NUMA node: a pod of a whole one is refused, and yet a larger one is not
    (
        "2s1n12c2t",
        4,
        "spread",
        {},
        {
            "none": "44 CPUs",
            "best-effort": "44 CPUs",
            "restricted": "44 CPUs (and none of 23-24)",
            "single-numa-node": "22 CPUs",
        },
    ),
    (
        "2s1n12c2t",
        4,
        "packed",
        {},
        {
            "none": "44 CPUs",
            "best-effort": "44 CPUs",
            "restricted": "44 CPUs",
            "single-numa-node": "24 CPUs",
        },
    ),
    (
        "2s2n2c2t",
        8,
        "spread",
        WHOLE,
        {
            "none": "8 CPUs",
            "best-effort": "8 CPUs",
            "restricted": "2 CPUs",
            "single-numa-node": "2 CPUs",
        },
    ),
    ("1s2c", 1, "packed", {}, dict.fromkeys(POLICIES, "1 CPU")),
    # more NUMA nodes than all sets of them can be gone through for
    ("9n1s1c", 1, "packed", {}, {"none": "8 CPUs"}),
]


@pytest.mark.parametrize(("name", "count", "strategy", "options", "expected"), COSTS)
def test_what_a_reservation_costs(
    name: str, count: int, strategy: str, options: dict[str, bool], expected: dict[str, str]
) -> None:
    topology = parse_name(name).topology()
    reserved = plan_reservation(topology, count, strategy).reserved
    found = largest_pods(kubelet_view(topology), reserved, StaticOptions(**options))
    assert {policy: str(sizes) for policy, sizes in found.items()} == expected


OPTIONS = {
    "full_pcpus_only": "full-pcpus-only",
    "strict_cpu_reservation": "strict-cpu-reservation",
    "align_by_socket": "align-by-socket",
}


def _admits(shape: Shape, reserved: CPUSet, options: dict[str, str], policy: str, cpus: int) -> bool:
    topology = shape.topology()
    resources = {"limits": {"cpu": str(cpus), "memory": "1Mi"}}
    pod = pod_from_manifest(
        {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "resources": resources}]}}
    )
    wanted = {
        "cpu_manager_policy": "static",
        "cpu_manager_policy_options": options,
        "topology_manager_policy": policy,
        "reserved_system_cpus": str(reserved),
    }
    host = other_host(topology, 36)
    plan = plan_allocations(Question(topology, host, default_configuration(), wanted, None, [pod]))
    return not plan["refused"]


@given(
    shape=shapes(most_cpus=12),
    named=st.sets(st.sampled_from(sorted(OPTIONS))),
    policy=st.sampled_from(POLICIES),
    data=st.data(),
)
@settings(max_examples=examples(60), deadline=None)
def test_the_largest_pod_is_what_a_plan_finds_by_trying_all_sizes(
    shape: Shape, named: set[str], policy: str, data: st.DataObject
) -> None:
    # The kubelet refuses it with more sockets than NUMA nodes, and with some of these policies.
    topology = shape.topology()
    view = kubelet_view(topology)
    assume("align_by_socket" not in named or (view.num_sockets <= view.num_numa_nodes and policy == "best-effort"))
    reserved = CPUSet(data.draw(st.sets(st.sampled_from(list(view.all_cpus())), min_size=1)))
    assume(reserved != view.all_cpus())
    options = {OPTIONS[name]: "true" for name in named}
    sizes = largest_pods(view, reserved, StaticOptions(**dict.fromkeys(named, True)), [policy])[policy]
    tried = range(1, view.num_cpus + 1)
    try:
        admitted = {cpus for cpus in tried if _admits(shape, reserved, options, policy, cpus)}
    except InputError:
        assume(False)
    assert sizes.largest == max(admitted, default=0)
    multiples = {cpus for cpus in tried if "full_pcpus_only" not in named or cpus % view.cpus_per_core == 0}
    assert {cpus for cpus in multiples if sizes.admits(cpus)} == admitted


def test_who_would_not_come_back() -> None:
    sizes = PodSizes(44, CPUSet.parse("23-24"))
    parse = CPUSet.parse
    assignments = {
        "a": {"app": parse("0-23"), "side": parse("24-25")},
        "b": {"init": parse("0-21"), "app": parse("0-21")},
        "c": {"one": parse("26-37"), "two": parse("38-49")},
    }
    assert lost_owners(assignments, sizes, False) == [("a, container app", 24)]
    assert lost_owners(assignments, sizes, True) == [("c", 24)]
