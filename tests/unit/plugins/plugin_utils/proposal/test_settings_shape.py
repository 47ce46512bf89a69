# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/proposal/settings.py."""

from __future__ import annotations

import re

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal.settings import shape_of
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

# Machines of which each is another shape.
MACHINES = (
    "1s1c",
    "1s1c2t",
    "1s2c",
    "1s8c2t",
    "2s4c2t",
    "1s2n4c2t",
    "1s2l4c2t",
    "1s8c2t+offline5",
    "1s8c2t+offline5-6",
    "1s6c2t8e",
    "2s1n4c2t",
    "2s1n4c2t+memory1",
    "2s1n4c2t+memory2",
    "4s1n4c",
    "2s4n2l4c2t",
    "1s0l8c2t",
    "1s1l2n4c2t",
)


def test_different_machines_have_different_shapes_and_names() -> None:
    shapes = {shape_of(parse_name(name).topology()) for name in MACHINES}
    names = {shape.name for shape in shapes}
    assert len(shapes) == len(names) == len(MACHINES)
    # What Ansible takes as a name of a group, and the API server as the value of a label.
    assert all(re.fullmatch("[a-z][a-z0-9_]{0,61}[a-z0-9]", name) for name in names)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        # How the CPUs are numbered, and what the NUMA nodes are called, does not matter.
        ("2s1n12c2t", "2s1n12c2t+interleaved"),
        ("2s1n12c2t", "2s1n12c2t+adjacent"),
        ("2s1n4c", "2s1n4c+nodes0,8"),
        # Of equal cores any may have lost a thread.
        ("1s8c2t+offline5", "1s8c2t+offline12"),
        ("2s1n4c2t+offline1", "2s1n4c2t+offline7"),
        ("2s1n4c", "2s1n4c+isolated1-3"),
    ],
)
def test_what_does_not_matter(name: str, same: str) -> None:
    assert shape_of(parse_name(name).topology()) == shape_of(parse_name(same).topology())


def test_only_what_is_not_regular_has_a_sum_in_its_name() -> None:
    xeon = shape_of(parse_name("2s1n12c2t").topology())
    assert xeon.is_regular
    assert xeon.name == "cpus48_sockets2_numa2_caches2_threads2"
    assert str(xeon) == "48 CPUs, 2 sockets, 2 NUMA nodes, 2 L3 caches, 24 cores of 2 threads"
    edge = shape_of(parse_name("1s8c2t+offline5").topology())
    assert not edge.is_regular
    assert edge.name.startswith("cpus15_sockets1_numa1_caches1_threads2_")
    assert str(edge) == "15 CPUs, 1 socket, 1 NUMA node, 1 L3 cache, 8 cores of up to 2 threads"
    with_memory = shape_of(parse_name("2s1n4c2t+memory2").topology())
    assert with_memory.numa_nodes == 4
    assert not with_memory.is_regular
