# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/report/assemble.py."""

from __future__ import annotations

import json
from typing import Any, Iterator

from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import LEVELS, layout
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes


def box(kind: str, number: int | None, cpus: str, *members: Any) -> dict[str, Any]:
    return {"kind": kind, "id": number, "cpus": cpus, "members": list(members)}


def test_boxes() -> None:
    topology = parse_name("2s1n2c2t+memory1+nodes0,4,9").topology()
    assert layout(topology) == [
        box("socket", 0, "0-1,4-5", box("numa_node", 0, "0-1,4-5", box("l3_cache", 0, "0-1,4-5", [0, 4], [1, 5]))),
        box("socket", 1, "2-3,6-7", box("numa_node", 4, "2-3,6-7", box("l3_cache", 1, "2-3,6-7", [2, 6], [3, 7]))),
    ]


def test_several_in_each() -> None:
    assert layout(parse_name("1s2n2l1c").topology()) == [
        box(
            "socket",
            0,
            "0-3",
            box("numa_node", 0, "0-1", box("l3_cache", 0, "0", [0]), box("l3_cache", 1, "1", [1])),
            box("numa_node", 1, "2-3", box("l3_cache", 2, "2", [2]), box("l3_cache", 3, "3", [3])),
        )
    ]


def test_an_outer_thing_in_an_inner_one_is_cut() -> None:
    """One L3 cache for two NUMA nodes is in both."""
    assert layout(parse_name("1s1l2n1c").topology()) == [
        box(
            "socket",
            0,
            "0-1",
            box("numa_node", 0, "0", box("l3_cache", 0, "0", [0])),
            box("numa_node", 1, "1", box("l3_cache", 0, "1", [1])),
        )
    ]


def test_what_a_level_leaves_out() -> None:
    topology = Topology(
        CPUSet.parse("0-4"),
        [CPUSet.parse("0-1"), CPUSet.parse("2-3")],
        sockets=[Group(7, CPUSet.parse("0-3"))],
        numa_nodes=[Group(0, CPUSet.parse("0-1"))],
    )
    assert layout(topology) == [
        box(
            "socket",
            7,
            "0-3",
            box("numa_node", 0, "0-1", box("l3_cache", None, "0-1", [0, 1])),
            box("numa_node", None, "2-3", box("l3_cache", None, "2-3", [2, 3])),
        ),
        box("socket", None, "4", box("numa_node", None, "4", box("l3_cache", None, "4", [4]))),
    ]


def cores_in(boxes: list[Any], depth: int = 0) -> Iterator[list[int]]:
    for each in boxes:
        assert each["kind"] == LEVELS[depth]
        assert each["members"]
        inside = list(cores_in(each["members"], depth + 1)) if depth + 1 < len(LEVELS) else each["members"]
        assert str(CPUSet(cpu for core in inside for cpu in core)) == each["cpus"]
        yield from inside


@given(shapes())
def test_each_cpu_is_in_one_box_of_each_level(shape: Shape) -> None:
    topology = shape.topology()
    boxes = layout(topology)
    assert json.loads(json.dumps(boxes)) == boxes
    cpus = [cpu for core in cores_in(boxes) for cpu in core]
    assert sorted(cpus) == list(topology.online)
