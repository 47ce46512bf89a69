# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/description.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("2 sockets x 12 cores x 2 threads", "2s1n12c2t"),  # as people say it
        ("2 Sockets \u00d7 4 NUMA nodes, 2 L3 caches x 8 cores x 2 threads", "2s4n2l8c2t"),  # signs, case, all levels
        ("1 socket x 1 core", "1s1n1c"),  # the singular
        ("8 cores", "1s1n8c"),  # what is left out is one
        ("4 packages x 2 nodes x 4 cores x 4 threads", "4s2n4c4t"),  # other words
    ],
)
def test_what_a_description_means(text: str, shape: str) -> None:
    assert describe_machine(text) == parse_name(shape).topology()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a count of something"),
        ("2 sockets x twelve cores", "'twelve cores' is not a count of something"),
        ("2 sockets x 0 cores", "'0 cores' is not a count of something"),
        ("2 towers", "'2 towers' is not a count of something"),
        ("12 cores x 2 sockets", "'2 sockets' stands too far inside"),
        ("2 cores x 2 cores", "'2 cores' stands too far inside"),
        ("9999 sockets x 9999 cores", "more than 65536"),
        ("99999999999 cores", "is not a count of something"),
    ],
)
def test_bad_descriptions(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        describe_machine(text)
    assert message in str(raised.value)
    assert repr(text) in str(raised.value)


counts = st.integers(1, 4)


@given(sockets=counts, nodes=counts, caches=counts, cores=counts, threads=counts)
def test_counts_multiply(sockets: int, nodes: int, caches: int, cores: int, threads: int) -> None:
    machine = describe_machine(
        "%d sockets x %d NUMA nodes x %d L3 caches x %d cores x %d threads" % (sockets, nodes, caches, cores, threads)
    )
    assert len(machine.sockets) == sockets
    assert len(machine.numa_nodes) == sockets * nodes
    assert len(machine.caches) == sockets * nodes * caches
    assert len(machine.cores) == sockets * nodes * caches * cores
    assert len(machine.online) == len(machine.cores) * threads
    assert {len(core.cpus) for core in machine.cores} == {threads}
