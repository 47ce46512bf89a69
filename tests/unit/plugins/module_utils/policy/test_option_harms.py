# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that a kubelet takes, and which do not do what they are for."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.option_harms import (
    admission_harm,
    option_harms,
    scattered,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

SOCKET = "cpuManagerPolicyOptions.align-by-socket"
NUMA = "cpuManagerPolicyOptions.distribute-cpus-across-numa"
CACHE = "cpuManagerPolicyOptions.prefer-align-cpus-by-uncorecache"
MANAGER = "topologyManagerPolicyOptions"

ALIGNED = {"align_by_socket": True}
BOTH = {**ALIGNED, "distribute_cpus_across_numa": True}
SPREAD = {"distribute_cpus_across_numa": True}
BY_CACHE = {"prefer_align_cpus_by_uncorecache": True}
# Two sockets of two NUMA nodes; each with one L3 cache, which cAdvisor does not show to the kubelet.
LARGE = "2s2n4c2t"
CLOSEST = {"prefer-closest-numa-nodes": "true"}


@pytest.mark.parametrize(
    ("options", "machine", "manager", "manager_options", "minor", "found"),
    [
        # It acts on hints, and there are none.
        (ALIGNED, LARGE, "none", {}, 36, [SOCKET]),
        (ALIGNED, LARGE, "none", {}, 37, [SOCKET]),
        (ALIGNED, LARGE, "best-effort", {}, 36, []),
        (ALIGNED, "1s2n4c2t", "none", {}, 36, []),
        # The distribution looks at sockets from 1.37 on, without hints, too.
        (BOTH, LARGE, "none", {}, 36, [SOCKET, SOCKET]),
        (BOTH, LARGE, "restricted", {}, 33, [SOCKET]),
        (BOTH, LARGE, "restricted", {}, 37, []),
        (BOTH, LARGE, "none", {}, 37, []),
        (BOTH, "2s1n4c2t", "best-effort", {}, 36, []),
        (SPREAD, LARGE, "none", {}, 36, []),
        (SPREAD, LARGE, "single-numa-node", {}, 36, [NUMA]),
        (SPREAD, "1s4c2t", "single-numa-node", {}, 36, []),
        # One cache a NUMA node is shown as one a socket; two a node are seen.
        (BY_CACHE, LARGE, "none", {}, 36, [CACHE]),
        (BY_CACHE, "1s1n2l4c2t", "none", {}, 36, []),
        (BY_CACHE, "1s4c2t", "none", {}, 36, []),
        ({}, LARGE, "none", CLOSEST, 36, [MANAGER]),
        ({}, LARGE, "restricted", CLOSEST, 36, []),
        ({}, LARGE, "none", {}, 36, []),
    ],
)
def test_what_has_no_effect(
    options: Any, machine: str, manager: str, manager_options: Mapping[str, str], minor: int, found: list[str]
) -> None:
    topology = kubelet_view(parse_name(machine).topology())
    harms = list(option_harms(StaticOptions(**options), topology, manager, manager_options, minor, 2, False))
    assert [harm.where for harm in harms] == found
    assert all(harm.cause and harm.remedy for harm in harms)


def test_sets_of_numa_nodes() -> None:
    assert admission_harm("none", 34, 2, False) is None
    assert admission_harm("restricted", 16, 16, True) is None
    harm = admission_harm("restricted", 34, 2, False)
    assert harm is not None
    assert harm.cause == (
        "to admit a pod that asks for devices or memory (memory manager Static), the kubelet goes through all sets of"
        " the 34 NUMA nodes, 2^34: with more than 16 nodes this takes long or never ends, and no other pod is admitted"
        " meanwhile"
    )
    harm = admission_harm("best-effort", 17, 17, True)
    assert harm is not None
    assert harm.cause.startswith("to admit a pod that asks for exclusive CPUs, devices or memory (memory manager")
    assert harm.remedy == "set topologyManagerPolicy: none and memoryManagerPolicy: None"
    # The memory manager goes through the sets without the topology manager, too.
    harm = admission_harm("none", 34, 2, True)
    assert harm is not None
    assert (harm.where, harm.remedy) == ("memoryManagerPolicy", "set memoryManagerPolicy: None")
    assert harm.cause.startswith("to admit a pod that asks for memory (memory manager Static), the kubelet goes")


def test_caches_without_ids_are_not_seen() -> None:
    machine = parse_name("1s1n2l4c2t").topology()
    told = kubelet_view(Topology.from_dict({**machine.to_dict(), "l3_cache_ids": False}))
    assert [harm.where for harm in option_harms(StaticOptions(**BY_CACHE), told, "none", {}, 36, 1, False)] == [CACHE]


def test_who_has_more_sockets_or_caches_than_needed() -> None:
    machine = parse_name("2s1n2l2c2t").topology()
    assert [str(group.cpus) for group in machine.caches] == ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]
    # Eight CPUs need two caches; four in two are one too many; two sockets are two.
    sets = [("a", cpus("0-3,8-11")), ("b", cpus("0,2,8,10")), ("c", cpus("1,9")), ("d", cpus("3,4"))]
    assert list(scattered(StaticOptions(), machine, sets)) == []
    assert list(scattered(StaticOptions(**ALIGNED), machine, sets)) == [
        "in spite of align-by-socket d has CPUs 3-4 of 2 sockets, and 1 would hold them"
    ]
    (text,) = scattered(StaticOptions(**BY_CACHE), machine, sets)
    assert text == (
        "in spite of prefer-align-cpus-by-uncorecache b has CPUs 0,2,8,10 of 2 L3 caches, and 1 would hold them;"
        " d has CPUs 3-4 of 2 L3 caches, and 1 would hold them"
    )
    many = [("%d" % number, cpus("1,2")) for number in range(9)]
    (text,) = scattered(StaticOptions(**BY_CACHE), machine, many)
    assert text.endswith("2 has CPUs 1-2 of 2 L3 caches, and 1 would hold them; so it is with 6 more")
    (text,) = scattered(StaticOptions(**BY_CACHE), machine, many[:3])
    assert text.endswith("2 has CPUs 1-2 of 2 L3 caches, and 1 would hold them")
