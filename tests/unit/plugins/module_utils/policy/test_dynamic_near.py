# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/dynamic.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic import Near, groups_of, mask_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view

# Threads of a core are n and n + 16; L3 caches are 0-1, 2-3... NUMA nodes 0-3, 4-7, and sockets 0-7, 8-15.
MACHINE = describe_machine("2 sockets x 2 NUMA nodes x 2 L3 caches x 2 cores x 2 threads")
TOPOLOGY = kubelet_view(MACHINE)
EVERYTHING = "0-31"


def near(whole_cores: bool = False) -> Near:
    return Near(TOPOLOGY, MACHINE.numa_distances, whole_cores)


def mask(text: str) -> int:
    return CPUSet.parse(text).mask


def text(cpus: int) -> str:
    return str(CPUSet.from_mask(cpus))


@pytest.mark.parametrize(
    ("held", "free", "unit"),
    [
        ("1", EVERYTHING, "17"),  # the other thread of its core
        ("1,17", "0,2-16,18-31", "0"),  # a whole core of its cache
        ("1,17", "2-3,16,18-19", "2"),  # a whole core of another cache, rather than a part of one in its own
        ("1,17", "3,16", "16"),  # a part, in its own cache
        ("1,17", "4-15,18-31", "18"),  # its NUMA node
        ("1,17", "4-15,20-31", "4"),  # the nearest NUMA node
        ("9,25", "0-7,12-15", "12"),
        ("9,25", "0-7", "0"),
        ("1", "", ""),
    ],
)
def test_what_is_added(held: str, free: str, unit: str) -> None:
    assert text(near().unit_to_add(mask(held), mask(free) & ~mask(held), 8)) == unit


@pytest.mark.parametrize(
    ("held", "free", "most", "unit"),
    [
        ("1,17", EVERYTHING, 2, "0,16"),
        ("1,17", "0,2-15,18-31", 2, "2,18"),
        ("1,17", "0,2-3,5,21", 2, "5,21"),
        ("1,17", "0,2-3", 2, ""),
        ("1,17", EVERYTHING, 1, ""),  # half a core is none
    ],
)
def test_whole_cores_are_added(held: str, free: str, most: int, unit: str) -> None:
    free_mask = mask(free) & ~mask(held)
    assert text(near(whole_cores=True).unit_to_add(mask(held), free_mask, most)) == unit


def test_without_distances_the_same_socket_is_nearer() -> None:
    blind = Near(TOPOLOGY, {}, False)
    assert text(blind.unit_to_add(mask("13,29"), mask("0-7,16-23,8"), 1)) == "8"


@pytest.mark.parametrize(
    ("admitted", "given", "unit"),
    [
        ("0,16", "1,17,12", "12"),  # the farthest NUMA node
        ("0,16", "1,2,17", "2"),  # of the core that has the fewest
        ("0", "1,16", "1"),  # of a core that is not that of its first set
        ("0", "16", "16"),
        ("0", "", ""),
    ],
)
def test_what_is_taken(admitted: str, given: str, unit: str) -> None:
    assert text(near().unit_to_take(mask(admitted), mask(given))) == unit


def test_whole_cores_are_taken() -> None:
    assert text(near(whole_cores=True).unit_to_take(mask("0,16"), mask("1,17,2,18"))) == "2,18"
    assert near(whole_cores=True).unit_to_take(mask("0,16"), mask("1,18")) == 0


def test_groups() -> None:
    assert groups_of(TOPOLOGY.numa_nodes, mask("0,20")) == 0b11
    assert text(mask_of(TOPOLOGY.numa_nodes, 0b10)) == "4-7,20-23"
