# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import SETTINGS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import collected
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import Groups, cpu_map
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    ANSWER,
    TOPOLOGY,
    answers,
    can_be_shown,
    json_values,
    texts_in,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

KUBELET = ANSWER["kubelet"]


def node(group: int | None, state: str = "clean") -> Any:
    return {"group": group, "state": state}


def only_group(answer: Any) -> Any:
    groups = Groups()
    (group,) = groups.counted([node(groups.number_of(answer))])
    return group


def cpus_of(boxes: list[Any]) -> list[int]:
    return [cpu for box in boxes for cpu in (box["core"] if "core" in box else cpus_of(box["members"]))]


# --- groups -------------------------------------------------------------------------------------------


def test_a_group() -> None:
    group = only_group(ANSWER)
    picture = group.pop("map")
    assert group == {
        "id": 0,
        "machine": "8 CPUs online, 2 sockets, 2 NUMA nodes, 2 L3 caches, 4 cores",
        "kernel": "6.1.0-18-amd64",
        "kubelet": "kubeadm 1.35.6",
        "distribution": "kubeadm",
        "runtime": "containerd",
        "settings": {"cpu_manager_policy": "none", "cpu_manager_reconcile_period": "10s"},
        "nodes": 1,
        "states": {"clean": 1},
    }
    assert picture == cpu_map(TOPOLOGY)


def test_nothing_is_read() -> None:
    assert only_group({}) == {
        "id": 0,
        "machine": "",
        "kernel": "",
        "kubelet": "",
        "distribution": "",
        "runtime": "",
        "settings": {},
        "nodes": 1,
        "states": {"clean": 1},
        "map": None,
    }


@pytest.mark.parametrize(
    ("part", "is_same"),
    [
        ({"kernel": "6.1.0-19-amd64"}, False),
        ({"kubelet": {**KUBELET, "version": "1.35.7"}}, False),
        ({"kubelet": {**KUBELET, "distribution": "k3s"}}, False),
        ({"kubelet": {**KUBELET, "cri_socket": "/run/crio/crio.sock"}}, False),
        ({"found": {"cpu_manager_policy": "static"}}, False),
        ({"topology": parse_name("2s1n2c2t").topology().to_dict()}, True),
        ({"topology": parse_name("2s1n4c").topology().to_dict()}, False),
        ({"topology": {**TOPOLOGY, "isolated": "1"}}, False),
        ({"topology": {**TOPOLOGY, "offline": "8"}}, False),
        # No part of the shape.
        ({"topology": {**TOPOLOGY, "problems": ["x"]}}, True),
        ({"status": "clean", "drift": [], "notes": ["x"], "owners": [], "cpus": {}}, True),
        ({"kubelet": {**KUBELET, "cri_socket": "/run/k3s/containerd/containerd.sock", "process": 77}}, True),
    ],
)
def test_which_nodes_are_alike(part: Any, is_same: bool) -> None:
    groups = Groups()
    assert (groups.number_of(ANSWER) == groups.number_of({**ANSWER, **part})) is is_same


@pytest.mark.parametrize(
    ("socket", "runtime"),
    [
        ("/run/containerd/containerd.sock", "containerd"),
        ("unix:///run/k3s/containerd/containerd.sock", "containerd"),
        ("unix:///var/run/crio/crio.sock", "cri-o"),
        ("/var/run/cri-dockerd.sock", "cri-dockerd"),
        ("", ""),
        (None, ""),
        ("\x1b[31m", "\\x1b[31m"),
        (["/a/b.sock"], "b"),
    ],
)
def test_runtime(socket: Any, runtime: str) -> None:
    assert only_group({"kubelet": {"cri_socket": socket}})["runtime"] == runtime


def test_a_kubelet_without_a_version() -> None:
    assert only_group({"kubelet": {"distribution": "k0s", "version": None}})["kubelet"] == "k0s"
    assert only_group({"kubelet": {"version": "1.35.6"}})["kubelet"] == "1.35.6"


def test_only_settings_are_settings() -> None:
    """A node may be hostile, and a group holds what is shown of all its nodes."""
    found = {"x" * 100000: "y", **{"made up %d" % number: "" for number in range(100000)}, "cpu_manager_policy": "none"}
    assert only_group({"found": found})["settings"] == {"cpu_manager_policy": "none"}
    assert list(only_group({"found": dict.fromkeys(SETTINGS, 1)})["settings"]) == list(SETTINGS)


def test_the_smallest_groups_come_first() -> None:
    groups = Groups()
    numbers = [groups.number_of({"kernel": kernel}) for kernel in "aaabbc"]
    assert numbers == [0, 0, 0, 1, 1, 2]
    nodes = [
        node(number, state) for number, state in zip(numbers, ["clean", "drift", "clean", "clean", "clean", "drift"])
    ]
    counted = groups.counted([*nodes, node(None, "failed")])
    assert [(group["id"], group["kernel"], group["nodes"], group["states"]) for group in counted] == [
        (0, "c", 1, {"drift": 1}),
        (1, "b", 2, {"clean": 2}),
        (2, "a", 3, {"clean": 2, "drift": 1}),
    ]
    assert [item["group"] for item in nodes] == [2, 2, 2, 1, 1, 0]


def test_groups_of_equal_size_come_in_the_order_of_their_nodes() -> None:
    groups = Groups()
    numbers = [groups.number_of({"kernel": kernel}) for kernel in "ab"]
    assert [group["kernel"] for group in groups.counted([node(numbers[1]), node(numbers[0])])] == ["b", "a"]


def test_a_group_without_nodes_is_left_out() -> None:
    groups = Groups()
    groups.number_of({"kernel": "a"})
    last = node(groups.number_of({"kernel": "b"}))
    assert [group["kernel"] for group in groups.counted([last])] == ["b"]
    assert last["group"] == 0


# --- the map ------------------------------------------------------------------------------------------


def test_map() -> None:
    assert cpu_map(parse_name("1s1n2c2t").topology().to_dict()) == {
        "boxes": [
            {
                "kind": "socket",
                "name": "socket 0",
                "members": [
                    {
                        "kind": "numa_node",
                        "name": "NUMA node 0",
                        "members": [
                            {"kind": "l3_cache", "name": "L3 0", "members": [{"core": [0, 2]}, {"core": [1, 3]}]}
                        ],
                    }
                ],
            }
        ],
        "offline": [],
    }


def test_offline_cpus_and_cpus_outside() -> None:
    picture = cpu_map({"online": "0-1", "offline": "2-3", "cores": ["0-1"], "sockets": {"0": "0"}})
    assert picture is not None
    assert picture["offline"] == [2, 3]
    assert [box["name"] for box in picture["boxes"]] == ["socket 0", "socket ?"]
    assert cpus_of(picture["boxes"]) == [0, 1]


@pytest.mark.parametrize(
    "topology",
    [
        {},
        {"online": "<x>", "cores": []},
        {"cores": []},
        {**TOPOLOGY, "online": 7},
        {**TOPOLOGY, "online": ""},
        {**TOPOLOGY, "cores": None},
        {**TOPOLOGY, "sockets": ["0"]},
        {**TOPOLOGY, "sockets": {"<b>": "0"}},
        {**TOPOLOGY, "numa_distances": {"0": 7}},
        {"online": "0-9000", "cores": ["0-9000"]},
        {"online": "0-8191", "offline": "8192", "cores": ["0-8191"]},
        {**TOPOLOGY, "l3_caches": {str(number): "0" for number in range(1025)}},
    ],
)
def test_what_cannot_be_drawn(topology: Any) -> None:
    assert cpu_map(topology) is None


def test_the_largest_machine_is_drawn() -> None:
    picture = cpu_map({"online": "0-8191", "cores": [str(cpu) for cpu in range(8192)]})
    assert picture is not None
    assert len(cpus_of(picture["boxes"])) == 8192


def test_what_the_kernel_says_of_problems_is_not_drawn() -> None:
    assert cpu_map({**TOPOLOGY, "problems": 7}) == cpu_map(TOPOLOGY)


@given(answers)
def test_any_answer_has_a_group(answer: Any) -> None:
    group = only_group(collected("a", answer))
    assert all(map(can_be_shown, texts_in(group)))
    assert all(isinstance(value, str) for value in group["settings"].values())
    json.dumps(group, allow_nan=False)


@given(st.sampled_from(sorted(TOPOLOGY)), json_values)
def test_any_topology_is_drawn_or_not(key: str, value: Any) -> None:
    picture = cpu_map({**TOPOLOGY, key: value})
    if picture is not None:
        cpus = cpus_of(picture["boxes"])
        assert len(cpus) == len(set(cpus))
        assert not set(cpus) & set(picture["offline"])
