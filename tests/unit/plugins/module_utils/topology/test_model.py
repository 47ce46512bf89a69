# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/model.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import (
    Group,
    Topology,
    nearest_by_distance,
    numbered,
    sets_by,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus


def test_parts_of_a_machine() -> None:
    topology = Topology(
        online=cpus("0-3,6-7"),
        cores=[cpus("6-7"), cpus("2-5"), cpus("0-1")],
        sockets=[Group(36, cpus("4-7")), Group(0, cpus("0-3"))],
        dies=[Group(1, cpus("4-5")), Group(0, cpus("0-3")), Group(2, cpus("6-7"))],
        numa_nodes=[Group(8, cpus("4-7")), Group(0, cpus("0-3")), Group(2, cpus(""))],
        caches=[Group(1, cpus("4-7")), Group(0, cpus("0-3"))],
        offline=cpus("0,4-5"),
        nearest_cpus={2: cpus("4-7")},
    )
    assert topology.online == cpus("0-3,6-7")
    assert topology.offline == cpus("4-5")
    assert topology.cores == (Group(0, cpus("0-1")), Group(2, cpus("2-3")), Group(6, cpus("6-7")))
    assert topology.sockets == (Group(0, cpus("0-3")), Group(36, cpus("6-7")))
    assert topology.dies == (Group(0, cpus("0-3")), Group(2, cpus("6-7")))
    assert topology.numa_nodes == (Group(0, cpus("0-3")), Group(2, cpus("")), Group(8, cpus("6-7")))
    assert topology.caches == (Group(0, cpus("0-3")), Group(1, cpus("6-7")))
    assert topology.nearest_cpus == {2: cpus("6-7")}
    assert topology.threads_per_core == 2
    assert topology.uniform_cores
    assert repr(topology) == "<Topology of 6 CPUs: 2 sockets, 3 NUMA nodes, 2 L3 caches, 3 cores>"


def test_a_cpu_of_no_core_is_one() -> None:
    topology = Topology(cpus("0-3"), [cpus("1-2")])
    assert [str(core.cpus) for core in topology.cores] == ["0", "1-2", "3"]
    assert not topology.uniform_cores
    assert topology.threads_per_core == 2


def test_without_numa_there_is_node_0() -> None:
    assert Topology(cpus("2-3"), []).numa_nodes == (Group(0, cpus("2-3")),)
    assert Topology(cpus("2-3"), [], numa_nodes=[]).numa_nodes == ()


def test_two_cores_cannot_share_a_cpu() -> None:
    with pytest.raises(NodeError, match="CPU 1 is in two cores"):
        Topology(cpus("0-3"), [cpus("0-1"), cpus("1-2")])


def test_needs_a_cpu() -> None:
    with pytest.raises(NodeError, match="no online CPU found"):
        Topology(cpus(""), [], offline=cpus("0-3"))


@given(shapes())
def test_round_trip(shape: Shape) -> None:
    topology = shape.topology()
    # Through JSON, as a fact goes.
    data = json.loads(json.dumps(topology.to_dict()))
    again = Topology.from_dict(data)
    assert again == topology
    assert hash(again) == hash(topology)
    assert again.to_dict() == data
    assert topology != data


def test_differs_in_any_part() -> None:
    data = parse_name("2s2d1n2c2t+memory1+offline7+isolated3+nohz4").topology().to_dict()
    data["problems"] = ["a mask makes no sense"]
    data["same_ids"] = ["0-1"]
    others: dict[str, Any] = {
        "online": "0-5",
        "offline": "",
        "cores": data["cores"][1:],
        "dies": {},
        "sockets": {},
        "numa_nodes": {},
        "l3_caches": {},
        "numa_distances": {},
        "nearest_cpus": {},
        "isolated": "",
        "nohz_full": "",
        "problems": [],
        "numa": False,
        "same_ids": [],
        "l3_cache_ids": False,
    }
    assert data.keys() == others.keys()
    for key, changed in others.items():
        assert data[key] != changed
        assert Topology.from_dict({**data, key: changed}) != Topology.from_dict(data), key


def test_reads_what_a_person_wrote() -> None:
    """Only the CPUs and the cores must be there."""
    topology = Topology.from_dict({"online": "0-3", "cores": ["0,2", "1,3"]})
    assert topology == Topology(cpus("0-3"), [cpus("0,2"), cpus("1,3")])


@pytest.mark.parametrize("key", ["online", "cores"])
def test_reads_no_text_that_is_no_set(key: str) -> None:
    data: dict[str, Any] = {"online": "0-3", "cores": ["0-1"]}
    data[key] = "0-x" if key == "online" else ["0-x"]
    with pytest.raises(InputError, match="CPU list '0-x', position 3"):
        Topology.from_dict(data)


@given(shapes(), st.data())
def test_switching_cpus_off(shape: Shape, data: st.DataObject) -> None:
    """In steps or at once: the same machine remains, as if it had been built so."""
    topology = shape._replace(offline=CPUSet(), isolated=CPUSet(), nohz_full=CPUSet()).topology()
    some = st.frozensets(st.sampled_from(list(topology.online))).map(CPUSet)
    first, second = data.draw(some), data.draw(some)
    if (first | second) == topology.online:
        with pytest.raises(NodeError, match="no online CPU found"):
            topology.with_offline(first | second)
        return
    after = topology.with_offline(first).with_offline(second)
    assert after == topology.with_offline(first | second)
    assert after.online == topology.online - first - second
    assert after.offline == first | second
    assert [group.id for group in after.numa_nodes] == [group.id for group in topology.numa_nodes]
    for groups in (after.sockets, after.dies, after.caches, after.cores):
        assert all(group.cpus for group in groups)
        assert all(group.cpus <= after.online for group in groups)
    members = [cpu for core in after.cores for cpu in core.cpus]
    assert len(members) == len(set(members)) == len(after.online)


def test_a_numa_node_that_loses_its_cpus_has_nearest_ones() -> None:
    topology = parse_name("2s2n1c+memory1").topology()
    assert topology.nearest_cpus == {4: cpus("0")}
    after = topology.with_offline(cpus("0"))
    # Node 0 is nearest to its neighbour in the socket; node 4, which was near it, is as far from all others.
    assert after.nearest_cpus == {0: cpus("1")}
    assert after == parse_name("2s2n1c+memory1+offline0").topology()


def test_what_the_firmware_called_nearest_remains_so() -> None:
    nodes = [Group(0, cpus("0-1")), Group(1, cpus("2-3")), Group(2, cpus(""))]
    distances = {2: {0: 17, 1: 28, 2: 10}}
    topology = Topology(cpus("0-3"), [], numa_nodes=nodes, numa_distances=distances, nearest_cpus={2: cpus("2-3")})
    assert topology.with_offline(cpus("3")).nearest_cpus == {2: cpus("2")}
    # Until it has no CPU any more.
    assert topology.with_offline(cpus("2-3")).nearest_cpus == {2: cpus("0-1")}


def test_numbered() -> None:
    a, b, c = cpus("0-1"), cpus("2-3"), cpus("4")
    # The machine's own ids, if each group has its own.
    assert numbered([(b, 0), (a, 7)]) == [Group(7, a), Group(0, b)]
    # Otherwise positions, of all groups.
    assert numbered([(b, 0), (a, 0)]) == [Group(0, a), Group(1, b)]
    assert numbered([(c, 9), (b, None), (a, 0)]) == [Group(0, a), Group(1, b), Group(2, c)]
    assert numbered([]) == []


def test_sets_by() -> None:
    assert sets_by(range(6), lambda cpu: None if cpu == 5 else ("odd", cpu % 2)) == {
        ("odd", 0): cpus("0,2,4"),
        ("odd", 1): cpus("1,3"),
    }


@pytest.mark.parametrize(
    ("row", "near"),
    [
        ({0: 17, 1: 28, 2: 10}, {2: "0-1"}),
        ({0: 28, 1: 17, 2: 10}, {2: "2-3"}),
        ({0: 17, 1: 17, 2: 10}, {}),  # equally far from all
        ({1: 17, 2: 10}, {2: "2-3"}),  # the other is not in the table
        ({}, {}),
    ],
)
def test_nearest_by_distance(row: dict[int, int], near: dict[int, str]) -> None:
    nodes = [Group(0, cpus("0-1")), Group(1, cpus("2-3")), Group(2, cpus(""))]
    assert nearest_by_distance(nodes, {2: row}) == {node: cpus(text) for node, text in near.items()}


def test_the_only_node_with_cpus_is_the_nearest() -> None:
    nodes = [Group(0, cpus("0-1")), Group(1, cpus(""))]
    assert nearest_by_distance(nodes, {1: {0: 20, 1: 10}}) == {1: cpus("0-1")}
