# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/proposal/settings.py."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import parse_static_options
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.reservation import plan_reservation
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.proposal.settings import (
    ALIGNMENTS,
    BATCH,
    LATENCY,
    VIRTUAL_MACHINES,
    WORKLOADS,
    SettingsWish,
    arguments,
    propose,
    shape_of,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

MACHINES = ("1s2c", "1s8c2t+offline5", "2s1n12c2t", "2s4n2l4c2t", "1s16c4t", "4s4n2c2t", "1s6c2t8e")


def settings(machine: str, minor: int = 36, workload: str = LATENCY, **wish: Any) -> dict[str, Any]:
    topology = parse_name(machine).topology()
    wished = SettingsWish(workload, **{"reservation": {}, **wish})
    lines = propose(shape_of(topology), topology, minor, wished)
    assert all(line.reason.endswith(".") for line in lines)
    return arguments(lines)


@given(
    machine=st.sampled_from(MACHINES),
    minor=st.integers(30, 37),
    workload=st.sampled_from(WORKLOADS),
    share_cores=st.sampled_from((None, True, False)),
    numa_alignment=st.sampled_from((None, *ALIGNMENTS)),
    housekeeping=st.booleans(),
)
def test_what_is_proposed_is_what_the_kubelet_takes(machine: str, minor: int, **wish: Any) -> None:
    """The options go together, none needs a gate, and the reservation can be planned in whole cores."""
    found = settings(machine, minor, **wish)
    options = parse_static_options(found["cpu_manager_policy_options"], minor)
    assert not (any(options) and found["cpu_manager_policy"] == "none")
    reservation = found["reservation"]
    topology = parse_name(machine).topology()
    planned = plan_reservation(topology, reservation["count"], reservation["strategy"])
    assert planned.isolated
    assert not planned.split_core


def test_what_a_workload_decides() -> None:
    latency, machines, batch = (settings("2s1n12c2t", workload=name) for name in WORKLOADS_IN_ORDER)
    assert latency["topology_manager_policy"] == "single-numa-node"
    assert machines["topology_manager_policy"] == "restricted"
    assert latency["topology_manager_scope"] == machines["topology_manager_scope"] == "pod"
    assert latency["reservation"]["strategy"] == "spread"
    assert machines["reservation"]["strategy"] == "packed"
    assert batch["cpu_manager_policy"] == "none"
    assert batch["cpu_manager_policy_options"] == {}
    assert "topology_manager_scope" not in batch


WORKLOADS_IN_ORDER = (LATENCY, VIRTUAL_MACHINES, BATCH)


def test_batch_gets_the_static_policy_where_something_takes_it() -> None:
    whole = settings("2s1n12c2t", workload=BATCH, share_cores=False)
    assert whole["cpu_manager_policy"] == "static"
    assert whole["cpu_manager_policy_options"] == {"full-pcpus-only": "true"}
    aligned = settings("2s1n12c2t", workload=BATCH, numa_alignment="restricted")
    assert aligned["cpu_manager_policy"] == "static"
    assert aligned["cpu_manager_policy_options"] == {}
    assert aligned["topology_manager_scope"] == "container"


def test_batch_keeps_the_policy_none_where_there_is_nothing_to_align() -> None:
    assert settings("1s8c2t", workload=BATCH, numa_alignment="restricted") == settings("1s8c2t", workload=BATCH)
    # More NUMA nodes than this kubelet takes.
    assert settings("4s4n2c2t", 30, BATCH, numa_alignment="restricted")["cpu_manager_policy"] == "none"


@pytest.mark.parametrize("machine", ["1s1c", "1s1c2t", "1s1c4t"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_one_core_is_for_all(machine: str, workload: str) -> None:
    assert settings(machine, workload=workload, share_cores=False, numa_alignment="restricted", housekeeping=True) == {
        "cpu_manager_policy": "none",
        "cpu_manager_policy_options": {},
        "topology_manager_policy": "none",
        "reserved_system_cpus": "",
    }
    assert "reservation" not in settings(machine, workload=workload, reservation={"fraction": 0.1})


def test_one_core_is_split_where_that_is_asked_for() -> None:
    found = settings("1s1c2t", reservation={"allow_split_core": True})
    assert found["cpu_manager_policy"] == "static"
    assert found["reservation"] == {"count": 1, "strategy": "spread", "allow_split_core": True}
    # No whole core is left for a pod.
    assert found["cpu_manager_policy_options"] == {"strict-cpu-reservation": "true"}
    with pytest.raises(InputError, match="the machine has one; allow one split core"):
        settings("1s1c2t", reservation={"count": 1})
    with pytest.raises(InputError, match="cannot reserve 1 of 1 CPU"):
        settings("1s1c", reservation={"count": 1})


def test_what_the_machine_decides() -> None:
    full, strict, uncore = "full-pcpus-only", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"
    options = {machine: set(settings(machine)["cpu_manager_policy_options"]) for machine in MACHINES}
    assert options["2s1n12c2t"] == {full, strict}
    assert options["2s4n2l4c2t"] == {full, strict, uncore}
    # One thread a core; cores that are not alike.
    assert options["1s2c"] == options["1s8c2t+offline5"] == options["1s6c2t8e"] == {strict}
    assert set(settings("2s4n2l4c2t", share_cores=True)["cpu_manager_policy_options"]) == {strict, uncore}
    assert settings("1s2c")["topology_manager_policy"] == "none"
    assert settings("4s4n2c2t")["topology_manager_policy_options"] == {"max-allowable-numa-nodes": "16"}


@pytest.mark.parametrize(
    ("minor", "expected"),
    [
        (36, {"full-pcpus-only", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"}),
        (34, {"full-pcpus-only", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"}),
        (33, {"full-pcpus-only", "strict-cpu-reservation"}),
        (32, {"full-pcpus-only"}),
    ],
)
def test_what_the_oldest_kubelet_decides(minor: int, expected: set[str]) -> None:
    assert set(settings("2s4n2l4c2t", minor)["cpu_manager_policy_options"]) == expected


def test_more_numa_nodes_than_sets_of_them_can_be_gone_through() -> None:
    found = settings("1s17n2c2t")
    assert found["topology_manager_policy"] == "none"
    assert "topology_manager_policy_options" not in found


def test_many_numa_nodes_before_there_was_an_option() -> None:
    assert settings("4s4n2c2t", 30)["topology_manager_policy"] == "none"
    assert "topology_manager_policy_options" not in settings("4s4n2c2t", 30)


@pytest.mark.parametrize(
    ("machine", "count"),
    [("2s1n12c2t", 4), ("2s4n2l4c2t", 16), ("8s1n128c", 8), ("1s16c4t", 4), ("2s1c2t", 2), ("1s6c2t8e", 2)],
)
def test_latency_has_a_core_of_each_numa_node(machine: str, count: int) -> None:
    topology = parse_name(machine).topology()
    reservation = settings(machine)["reservation"]
    assert (reservation["count"], reservation["strategy"]) == (count, "spread")
    if count < len(topology.online) // 2:
        reserved = plan_reservation(topology, count, "spread").reserved
        assert all(reserved & node.cpus for node in topology.numa_nodes)


@pytest.mark.parametrize(("reservation", "policy"), [({"memory": "auto"}, "Static"), ({}, None)])
def test_the_memory_manager_is_proposed_where_its_memory_is_planned(
    reservation: dict[str, str], policy: str | None
) -> None:
    found = settings("2s1n4c2t", reservation=reservation)
    assert found.get("memory_manager_policy") == policy
    assert found["reservation"].get("memory") == reservation.get("memory")


def test_a_share_that_was_asked_for_and_another_strategy_are_taken_to_the_letter() -> None:
    for asked in ({"curve": [{"fraction": 0.0001}]}, {"fraction": 0.0001}, {"count": 2}, {"strategy": "packed"}):
        assert settings("2s1n12c2t", reservation=asked)["reservation"]["count"] == 2


def test_how_many_cpus() -> None:
    def reservation(machine: str, **asked: Any) -> Any:
        return settings(machine, reservation=asked)["reservation"]

    # 0.06 + 0.01 + 2 * 0.005 + 60 * 0.0025 is less than one CPU, and a core has four.
    assert reservation("1s16c4t")["count"] == 4
    # 0.08 + 1020 * 0.0025 = 2.63.
    assert reservation("8s128c")["count"] == 3
    assert reservation("1s16c4t", fraction=0.1)["count"] == 8
    assert reservation("1s16c4t", curve=[{"fraction": 0.5}])["count"] == 32
    assert reservation("2s1n12c2t", count=6, strategy="packed") == {"count": 6, "strategy": "packed"}
    assert reservation("2s1n12c2t", count=3, allow_split_core=True)["allow_split_core"] is True
    # The node finds out where that is.
    assert reservation("2s1n12c2t", near_device="eth0")["near_device"] == "eth0"
    with pytest.raises(InputError, match="the nearest counts are 2 and 4"):
        reservation("2s1n12c2t", count=3)
