# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/reserved_memory.py: a planned reservedMemory is one that the kubelet accepts."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Mapping

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.reserved_memory import shared_memory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.wanted_settings import (
    SETTINGS_ARGUMENTS,
    wanted_settings,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import any_node
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape
from ansible_collections.kubenode.cpu_manager.tests.machines.started import CONFIG, HEAD, node
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import NODE_MEMORY, write_machine
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

TWO = "2s1n4c2t"
STATIC = {"cpuManagerPolicy": "static", "memoryManagerPolicy": "Static", "systemReserved": {"memory": "924Mi"}}
SPREAD = {"count": 4, "strategy": "spread", "memory": "auto"}
MIB = 1 << 20


def write_node(root: Path, name: str, values: Mapping[str, Any]) -> Node:
    topology = write_machine(root, name)
    write(root, CONFIG, json.dumps({**HEAD, **values}).encode("ascii"))
    write(root, "proc/meminfo", "MemTotal: %d kB\n" % (NODE_MEMORY * len(topology.numa_nodes)))
    return node(root)


def planned(this_node: Node, reservation: Mapping[str, Any], **wanted: Any) -> dict[str, Any]:
    options = dict.fromkeys(SETTINGS_ARGUMENTS.options)
    return wanted_settings(this_node, {**options, **wanted, "reservation": reservation})


def shown(wanted: Mapping[str, Any]) -> str:
    return ", ".join("%d: %s" % (row["numaNode"], row["limits"]["memory"]) for row in wanted["reserved_memory"])


def refusals(this_node: Node, wanted: Mapping[str, Any]) -> list[str]:
    return [finding.text for finding in predict_configuration(this_node, wanted).findings if finding.fatal]


PLANS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    # where the reserved CPUs are
    (TWO, {}, {"count": 2, "memory": "auto"}, {}, "0: 1Gi"),
    (TWO, {}, SPREAD, {}, "0: 512Mi, 1: 512Mi"),
    (TWO, {}, {"count": 12, "memory": "auto"}, {}, "0: 683Mi, 1: 341Mi"),
    # another threshold of eviction, to the byte
    (TWO, {"evictionHard": {"memory.available": "101Mi"}}, SPREAD, {}, "0: 513Mi, 1: 512Mi"),
    (TWO, {"evictionHard": {"memory.available": "100M"}}, SPREAD, {}, "0: 535159040, 1: 509Mi"),
    (TWO, {"evictionHard": {"memory.available": "1%"}}, {"count": 2, "memory": "auto"}, {}, "0: 2343273728"),
    (TWO, {"evictionHard": {}}, SPREAD, {}, "0: 462Mi, 1: 462Mi"),
    # only another reservation; the CPUs stay
    (TWO, {"reservedSystemCPUs": "7,15"}, {"memory": "auto"}, {"kube_reserved_memory": "1Gi"}, "1: 2Gi"),
    (TWO, {"kubeReserved": {"cpu": "1"}}, {"memory": "auto"}, {}, "0: 1Gi"),
    # never more than a NUMA node has
    (TWO, {}, {"count": 2, "memory": "auto"}, {"system_reserved_memory": "65Gi"}, "0: 64Gi, 1: 1124Mi"),
]


@pytest.mark.parametrize(("name", "values", "reservation", "wanted", "text"), PLANS)
def test_memory_is_reserved_where_the_reserved_cpus_are(
    tmp_path: Path,
    name: str,
    values: dict[str, Any],
    reservation: dict[str, Any],
    wanted: dict[str, Any],
    text: str,
) -> None:
    this_node = write_node(tmp_path, name, {"reservedSystemCPUs": "0", **STATIC, **values})
    settings = planned(this_node, reservation, **wanted)
    assert shown(settings) == text
    assert refusals(this_node, settings) == []


def test_the_flag_of_an_eviction_counts(tmp_path: Path) -> None:
    this_node = write_node(tmp_path, TWO, STATIC)
    command = "/usr/bin/kubelet\0--config=/%s\0--eviction-hard=memory.available<200Mi\0" % CONFIG
    write(tmp_path, "proc/4711/cmdline", command)
    assert shown(planned(node(tmp_path), {"count": 2, "memory": "auto"})) == "0: 1124Mi"
    assert this_node.topology.numa


@pytest.mark.parametrize("wanted", [{}, {"memory_manager_policy": "None"}])
def test_nothing_is_planned_for_a_memory_manager_that_does_not_reserve(tmp_path: Path, wanted: dict[str, Any]) -> None:
    this_node = write_node(tmp_path, TWO, {**STATIC, "memoryManagerPolicy": "None"})
    assert planned(this_node, SPREAD, **wanted).keys() == {"reserved_system_cpus", *wanted}


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"reserved_memory": []}, "memory is planned and given, too"),
    ({"systemReserved": {}, "evictionHard": {}}, {}, "0 of memory is reserved"),
    ({}, {"system_reserved_memory": "1500m"}, "104857601500m of memory is reserved, which reservedMemory cannot be"),
    ({}, {"system_reserved_memory": "200Gi"}, "204900Mi of memory is reserved, and the NUMA nodes have 128Gi"),
]


@pytest.mark.parametrize(("values", "wanted", "text"), REFUSED)
def test_what_no_list_can_add_up_to_is_refused(
    tmp_path: Path, values: dict[str, Any], wanted: dict[str, Any], text: str
) -> None:
    with pytest.raises(InputError) as caught:
        planned(write_node(tmp_path, TWO, {**STATIC, **values}), SPREAD, **wanted)
    assert text in str(caught.value)
    assert "reservation.memory" in str(caught.value)


def test_huge_pages_are_not_in_the_room(tmp_path: Path) -> None:
    this_node = write_node(tmp_path, TWO, {"reservedSystemCPUs": "0", **STATIC})
    pages = "sys/devices/system/node/node%d/hugepages/hugepages-1048576kB/nr_hugepages"
    for number in (0, 1):
        write(tmp_path, pages % number, "63\n" if number == 0 else "0\n")
    assert shown(planned(this_node, {"memory": "auto"}, kube_reserved_memory="1Gi")) == "0: 1Gi, 1: 1Gi"


def test_what_is_refused_comes_with_the_whole_list(tmp_path: Path) -> None:
    """Somebody changed the threshold of eviction only: the remedy can be taken as it is."""
    old = [{"numaNode": 0, "limits": {"memory": "512Mi"}}, {"numaNode": 1, "limits": {"memory": "512Mi"}}]
    values = {**STATIC, "reservedSystemCPUs": "0,4", "evictionHard": {"memory.available": "200Mi"}}
    this_node = write_node(tmp_path, TWO, {**values, "reservedMemory": old})
    (finding,) = [found for found in predict_configuration(this_node).findings if found.fatal]
    text = finding.remedy.partition("; the whole list is reservedMemory: ")[2]
    assert text == "[{numaNode: 0, limits: {memory: 562Mi}}, {numaNode: 1, limits: {memory: 562Mi}}]"
    assert refusals(this_node, {"reserved_memory": yaml.safe_load(text)}) == []


@pytest.mark.parametrize("name", any_node.MACHINES)
@pytest.mark.parametrize("strategy", ["packed", "spread"])
def test_each_machine_starts_with_what_is_planned(tmp_path: Path, name: str, strategy: str) -> None:
    this_node = write_node(tmp_path, name, STATIC)
    settings = planned(this_node, {"count": 1, "allow_split_core": True, "strategy": strategy, "memory": "auto"})
    assert refusals(this_node, settings) == []


SIZES = st.one_of(
    st.integers(1, 1 << 38).map(str),
    st.integers(1, 999_999).map("{}Ki".format),
    st.integers(1, 9999).map("{}Mi".format),
    st.integers(1, 40).map("{}Gi".format),
    st.sampled_from(["1e9", "0.5Gi", "1M"]),
)


@given(
    shape=shapes(most_cpus=16),
    amounts=st.tuples(SIZES, SIZES, st.one_of(SIZES, st.integers(1, 30).map("{}%".format))),
    strategy=st.sampled_from(["packed", "spread"]),
    data=st.data(),
)
@settings(max_examples=examples(300), deadline=None)
def test_planned_memory_is_accepted_on_any_machine_and_is_there(
    shape: Shape, amounts: tuple[str, str, str], strategy: str, data: st.DataObject
) -> None:
    online = len(shape.topology().online)
    count = data.draw(st.integers(1, max(1, online - 1)))
    kube, system, eviction = amounts
    with TemporaryDirectory() as directory:
        values = {**STATIC, "evictionHard": {"memory.available": eviction}}
        this_node = write_node(Path(directory), shape.name(), values)
        wanted = {"kube_reserved_memory": kube, "system_reserved_memory": system}
        if online == 1:
            wanted["reserved_system_cpus"] = "%d" % shape.topology().online.first()
        reservation: dict[str, Any] = {"memory": "auto"}
        if online > 1:
            reservation.update(count=count, strategy=strategy, allow_split_core=True)
        has_room = sum(map(_bytes, amounts[:2])) + _bytes(eviction, NODE_MEMORY * len(this_node.topology.numa_nodes))
        try:
            found = planned(this_node, reservation, **wanted)
        except InputError:
            assert has_room > NODE_MEMORY * 1024 * len(this_node.topology.numa_nodes)
            return
        assert not [text for text in refusals(this_node, found) if "memory" in text.lower()]
        assert all(0 < _bytes(row["limits"]["memory"]) <= NODE_MEMORY * 1024 for row in found["reserved_memory"])


def _bytes(text: str, of: int = 0) -> int:
    for suffix, size in (("Ki", 1 << 10), ("Mi", MIB), ("Gi", 1 << 30), ("M", 10**6)):
        if text.endswith(suffix):
            return int(float(text[: -len(suffix)]) * size)
    return of * 1024 * int(text[:-1]) // 100 if text.endswith("%") else int(float(text))


@given(
    room=st.dictionaries(st.integers(0, 7), st.integers(-5, 40).map(lambda size: size * MIB // 3), min_size=1),
    weights=st.dictionaries(st.integers(0, 7), st.integers(0, 5)),
    total=st.integers(1, 100 * MIB),
)
@settings(max_examples=examples(300))
def test_shares_add_up_and_are_there(room: dict[int, int], weights: dict[int, int], total: int) -> None:
    try:
        shares = shared_memory(total, room, weights)
    except InputError:
        assert total > sum(max(0, size) for size in room.values())
        return
    assert sum(shares.values()) == total
    assert all(0 < size <= room[number] for number, size in shares.items())
    homes = [number for number in room if weights.get(number)]
    if homes and sum(max(0, room[number]) for number in homes) >= total:
        assert set(shares) <= set(homes)
