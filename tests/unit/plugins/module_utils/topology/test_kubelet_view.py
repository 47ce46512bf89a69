# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/kubelet_view.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import (
    CPUTopology,
    kubelet_view,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes


def seen(name: str) -> CPUTopology:
    return kubelet_view(parse_name(name).topology())


def texts(masks: dict[int, int]) -> dict[int, str]:
    return {number: str(CPUSet.from_mask(mask)) for number, mask in masks.items()}


def test_table() -> None:
    topology = seen("2s1n2c2t+nodes3,8")
    # The lowest CPU of a core is its id.
    assert texts(topology.cores) == {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7"}
    assert texts(topology.sockets) == {0: "0-1,4-5", 1: "2-3,6-7"}
    assert texts(topology.numa_nodes) == {3: "0-1,4-5", 8: "2-3,6-7"}
    assert str(topology.all_cpus()) == "0-7"


# The uncore cache of each CPU.
UNCORE = [
    ("1s2l2c", {0: "0-1", 1: "2-3"}),  # two in a NUMA node
    ("2s1n2l2c2t", {0: "0-1,8-9", 1: "2-3,10-11", 2: "4-5,12-13", 3: "6-7,14-15"}),
    ("1s2n2l1c", {0: "0", 1: "1", 2: "2", 3: "3"}),
    ("1s1l2n2c", {0: "0-3"}),  # one for two NUMA nodes
    ("2s1l2n2c", {0: "0-3", 1: "4-7"}),
    # that of a whole NUMA node counts as the node's, so the socket stands for it
    ("1s4c", {0: "0-3"}),
    ("2s1n2c2t", {0: "0-1,4-5", 1: "2-3,6-7"}),
    ("2s2n2c2t", {0: "0-3,8-11", 1: "4-7,12-15"}),  # two caches in each socket
    # none
    ("2s1n0l2c", {0: "0-1", 1: "2-3"}),
    ("2s2n0l2c", {0: "0-3", 1: "4-7"}),
    # a core with fewer threads than the others: the product is wrong for each core, or for some
    ("1s2c2t1e", {0: "0-4"}),  # 5 CPUs; 3 cores of 2 or 1 threads: never 5
    ("1s4c2t+offline7", {0: "0-6"}),
]


@pytest.mark.parametrize(("name", "caches"), UNCORE)
def test_uncore_caches(name: str, caches: dict[int, str]) -> None:
    topology = seen(name)
    assert texts(topology.uncore_caches) == caches
    assert topology.num_uncore_caches == len(caches)


def cached(online: str, cores: list[str], socket: int, cache: int, cache_cpus: str) -> CPUTopology:
    every = CPUSet.parse(online)
    return kubelet_view(
        Topology(
            every,
            [CPUSet.parse(core) for core in cores],
            [Group(socket, every)],
            caches=[Group(cache, CPUSet.parse(cache_cpus))],
        )
    )


def test_uncore_cache_or_socket() -> None:
    """Whether a cache is the node's is asked for each core, with the number of its own threads."""
    # 3 cores; for those of two threads 3 * 2 is not 4, for that of one 3 * 1 is not 4 either.
    assert texts(cached("0-4", ["0-1", "2-3", "4"], 7, 9, "0-3").uncore_caches) == {9: "0-3", 7: "4"}
    # 3 * 1 is 3: the core of one thread takes the cache for the whole node's, the others do not.
    assert texts(cached("0-4", ["0-1", "2-3", "4"], 7, 9, "2-4").uncore_caches) == {7: "0-1,4", 9: "2-3"}
    # The first thread of a core is asked alone, and that is by the names: cpu10 comes before cpu2.
    assert texts(cached("0-3", ["0-1", "2-3"], 7, 9, "0-2").uncore_caches) == {9: "0-3"}
    assert texts(cached("2,4,10-11", ["2,10", "4,11"], 7, 9, "10").uncore_caches) == {9: "2,10", 7: "4,11"}


def test_caches_without_ids_are_not_seen() -> None:
    machine = parse_name("1s2l2c").topology()
    assert texts(kubelet_view(machine).uncore_caches) == {0: "0-1", 1: "2-3"}
    without = Topology.from_dict({**machine.to_dict(), "l3_cache_ids": False})
    assert texts(kubelet_view(without).uncore_caches) == {0: "0-3"}


def test_the_first_cache_counts() -> None:
    every = CPUSet.parse("0-3")
    caches = [Group(5, CPUSet.parse("0-1")), Group(6, CPUSet.parse("0-2"))]
    topology = Topology(every, [CPUSet([cpu]) for cpu in every], [Group(0, every)], caches=caches)
    assert texts(kubelet_view(topology).uncore_caches) == {5: "0-1", 6: "2", 0: "3"}


COUNTS = [
    # CPUs, cores, sockets, NUMA nodes, uncore caches; CPUs of each core, socket, cache on the average
    ("1s4c2t", (8, 4, 1, 1, 1), (2, 8, 8)),
    ("2s2n12c2t", (96, 48, 2, 4, 2), (2, 48, 48)),
    ("2s4n2l4c2t", (128, 64, 2, 8, 16), (2, 64, 8)),
    # averages are cut off
    ("1s4c2t+offline7", (7, 4, 1, 1, 1), (1, 7, 7)),
    ("1s4c2t+offline3,7", (6, 3, 1, 1, 1), (2, 6, 6)),  # a whole core
    ("2s1n2c2t+offline7", (7, 4, 2, 2, 2), (1, 3, 3)),
    ("1s6c2t8e", (20, 14, 1, 1, 1), (1, 20, 20)),
    # a NUMA node without CPUs does not count
    ("2s1n4c2t+memory2", (16, 8, 2, 2, 2), (2, 8, 8)),
    ("2s1n2c+offline2-3", (2, 2, 1, 1, 1), (1, 2, 2)),
    ("4s1n1c+nodes0,8,16,24", (4, 4, 4, 4, 4), (1, 1, 1)),
]


@pytest.mark.parametrize(("name", "counts", "averages"), COUNTS)
def test_counts(name: str, counts: tuple[int, ...], averages: tuple[int, ...]) -> None:
    topology = seen(name)
    assert (
        topology.num_cpus,
        topology.num_cores,
        topology.num_sockets,
        topology.num_numa_nodes,
        topology.num_uncore_caches,
    ) == counts
    assert (topology.cpus_per_core, topology.cpus_per_socket, topology.cpus_per_uncore_cache) == averages


def test_no_cpus() -> None:
    topology = CPUTopology([])
    assert not topology.all_cpus()
    assert (topology.cpus_per_core, topology.cpus_per_socket, topology.cpus_per_uncore_cache) == (0, 0, 0)


def test_cpus_of_no_numa_node_do_not_exist() -> None:
    every = CPUSet.parse("0-3")
    topology = kubelet_view(Topology(every, [every], numa_nodes=[Group(0, CPUSet.parse("1-2"))]))
    assert str(topology.all_cpus()) == "1-2"
    assert texts(topology.cores) == {1: "1-2"}


def test_cpus_of_no_socket_are_in_socket_0() -> None:
    assert texts(kubelet_view(Topology(CPUSet.parse("0-1"), [])).sockets) == {0: "0-1"}


def test_a_core_in_two_numa_nodes_is_two() -> None:
    every = CPUSet.parse("0-1")
    nodes = [Group(0, CPUSet([0])), Group(1, CPUSet([1]))]
    assert texts(kubelet_view(Topology(every, [every], numa_nodes=nodes)).cores) == {0: "0", 1: "1"}


def clustered(**parts: Any) -> CPUTopology:
    """Return a board with a cluster of four cores and two of two, which counts the cores of each from 0."""
    every = CPUSet.parse("0-7")
    same = [CPUSet.parse("0,4,6"), CPUSet.parse("1,5,7")]
    return kubelet_view(Topology(every, [], same_ids=same, **parts))


def test_cores_of_one_id_are_one() -> None:
    board = clustered(sockets=[Group(0, CPUSet.parse("0-7"))], numa_nodes=[Group(0, CPUSet.parse("0-7"))])
    assert texts(board.cores) == {0: "0,4,6", 1: "1,5,7", 2: "2", 3: "3"}
    assert (board.num_cpus, board.num_cores, board.cpus_per_core) == (8, 4, 2)
    # But only those in one NUMA node.
    halves = [Group(0, CPUSet.parse("0-3")), Group(1, CPUSet.parse("4-7"))]
    assert texts(clustered(numa_nodes=halves).cores) == {0: "0", 1: "1", 2: "2", 3: "3", 4: "4,6", 5: "5,7"}


def test_without_numa_each_socket_is_a_node() -> None:
    every, sockets = CPUSet.parse("0-3"), [Group(0, CPUSet.parse("0-1")), Group(5, CPUSet.parse("2-3"))]
    assert texts(kubelet_view(Topology(every, [], sockets)).numa_nodes) == {0: "0-1", 5: "2-3"}
    assert texts(kubelet_view(Topology(every, [], sockets, numa_nodes=[Group(0, every)])).numa_nodes) == {0: "0-3"}
    assert texts(kubelet_view(Topology(every, [])).numa_nodes) == {0: "0-3"}


@pytest.mark.parametrize(
    ("cpus", "physical"), [("", ""), ("0", "0,4"), ("4", "0,4"), ("0,5", "0-1,4-5"), ("0-7", "0-7"), ("3,9", "3,7")]
)
def test_physical_cpus(cpus: str, physical: str) -> None:
    assert str(seen("1s4c2t").physical_cpus(CPUSet.parse(cpus))) == physical


def test_plain_data() -> None:
    data: dict[str, Any] = seen("2s1n2c2t+offline7").to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data == {
        "cpus": "0-6",
        "num_cpus": 7,
        "num_cores": 4,
        "num_sockets": 2,
        "num_numa_nodes": 2,
        "num_uncore_caches": 2,
        "cpus_per_core": 1,
        "cpus_per_socket": 3,
        "cpus_per_uncore_cache": 3,
    }


@given(shapes())
def test_each_cpu_is_in_one_element_of_each_kind(shape: Shape) -> None:
    topology = shape.topology()
    view = kubelet_view(topology)
    assert view.all_cpus() == topology.online
    for masks in (view.cores, view.sockets, view.numa_nodes, view.uncore_caches):
        assert sum(masks.values()) == topology.online.mask
        assert all(masks.values())
    assert all(CPUSet.from_mask(mask).first() == number for number, mask in view.cores.items())
    assert view.num_cpus == len(topology.online)
    assert view.num_numa_nodes == sum(bool(node.cpus) for node in topology.numa_nodes)
