# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/reservation_request.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.reservation_request import (
    numa_node_of_device,
    reserve,
    wanted_reservation,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.reservation import Reservation
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.values import TWO


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root with the network devices eth0 and eth1 on NUMA nodes 0 and 1, and three that are nowhere."""
    for name, numa_node in (("eth0", "0\n"), ("eth1", "1\n"), ("virtio", "-1\n"), ("broken", ""), ("lo", None)):
        device = tmp_path / "sys/class/net" / name
        device.mkdir(parents=True)
        if numa_node is not None:
            (device / "device").mkdir()
            (device / "device/numa_node").write_text(numa_node, encoding="ascii")
    return tmp_path


def plan(root: Path, name: str = TWO, **request: Any) -> Reservation:
    return reserve(Tree(str(root)), parse_name(name).topology(), request)


REQUESTS: list[tuple[str, dict[str, Any], str]] = [
    (TWO, {"count": 2}, "0,4"),
    (TWO, {"count": 4}, "0-1,4-5"),
    (TWO, {"count": 4, "strategy": "spread"}, "0,2,4,6"),
    (TWO, {"count": 4, "strategy": None}, "0-1,4-5"),
    (TWO, {"count": 3, "allow_split_core": True}, "0-1,4"),
    # a share is rounded up to whole cores
    (TWO, {"fraction": 0.25}, "0,4"),
    (TWO, {"fraction": 0.26}, "0-1,4-5"),
    (TWO, {"fraction": 0.0}, "0,4"),
    (TWO, {"fraction": 0.3, "allow_split_core": True}, "0-1,4-5"),
    ("1s10c", {"fraction": 0.3}, "0-2"),  # 10 * 0.3 is not 3 in floating point
    (TWO, {"curve": [{"fraction": 0.5}]}, "0-1,4-5"),
    (TWO, {"curve": [{"cpus": 2, "fraction": 0.5}, {"cpus": None, "fraction": 0.5}]}, "0-1,4-5"),
    (TWO, {"curve": [{"cpus": 1, "fraction": 1}, {"cpus": 7, "fraction": 0.1}]}, "0,4"),
    # SMT off
    (TWO, {"count": 3, "smt": "off"}, "0-2"),
    (TWO, {"count": 2, "smt": "keep"}, "0,4"),
    (TWO, {"fraction": 0.25, "smt": "off"}, "0"),  # of the cores
    # near a device
    (TWO, {"count": 2, "near_device": "eth1"}, "2,6"),
    (TWO, {"count": 2, "near_device": "eth0"}, "0,4"),
    (TWO, {"count": 6, "near_device": "eth1", "strategy": "spread"}, "0,2-4,6-7"),
    # what is not asked for is None, as Ansible gives it
    (TWO, {"count": 2, "fraction": None, "curve": None, "near_device": None, "allow_split_core": None}, "0,4"),
]


@pytest.mark.parametrize(("name", "request_", "reserved"), REQUESTS)
def test_reserve(root: Path, name: str, request_: dict[str, Any], reserved: str) -> None:
    assert str(plan(root, name, **request_).reserved) == reserved


@pytest.mark.parametrize(
    ("named", "planned", "wanted"),
    [
        (None, None, None),
        ("0,4", None, "0,4"),
        ("", None, None),
        (None, {"count": 2}, "0,4"),
    ],
)
def test_named_or_planned(
    tmp_path: Path, named: str | None, planned: dict[str, Any] | None, wanted: str | None
) -> None:
    write_machine(tmp_path, TWO)
    node = Node(Tree(str(tmp_path)))
    found = wanted_reservation(node, {"reserved_system_cpus": named, "reservation": planned})
    assert found == (None if wanted is None else CPUSet.parse(wanted))


def test_a_count_is_taken_to_the_letter(root: Path) -> None:
    with pytest.raises(InputError, match="cannot reserve 3 CPUs without splitting a core"):
        plan(root, count=3)
    with pytest.raises(InputError, match="cannot reserve 0 CPUs"):
        plan(root, count=0)


@pytest.mark.parametrize(
    ("request_", "given"),
    [
        ({}, ""),
        ({"count": None}, ""),
        ({"count": 2, "fraction": 0.1}, "count and fraction"),
        ({"count": 0, "fraction": 0.0}, "count and fraction"),
        ({"fraction": 0.1, "curve": []}, "fraction and curve"),
        ({"count": 2, "fraction": 0.1, "curve": [{"fraction": 0.1}]}, "count and fraction and curve"),
    ],
)
def test_one_way_to_say_how_many(root: Path, request_: dict[str, Any], given: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(root, **request_)
    assert str(caught.value) == (
        "reservation: says in several ways how many CPUs; give one of count, fraction and curve, not %s" % given
        if given
        else "reservation: does not say how many CPUs; give one of count, fraction and curve"
    )


def test_curve_without_steps(root: Path) -> None:
    with pytest.raises(InputError, match="curve: the curve has no step; give one"):
        plan(root, curve=[])


@pytest.mark.parametrize("request_", [{"fraction": 1.5}, {"curve": [{"fraction": -1}]}])
def test_bad_fraction(root: Path, request_: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"step 1 of the curve: the fraction is .*; give one between 0 and 1"):
        plan(root, **request_)


def device(root: Path, name: str, machine: str = TWO) -> int:
    return numa_node_of_device(Tree(str(root)), parse_name(machine).topology(), name)


def test_numa_node_of_device(root: Path) -> None:
    assert device(root, "eth0") == 0
    assert device(root, "eth1") == 1


def test_with_one_numa_node_all_devices_are_near(root: Path) -> None:
    for name in ("virtio", "broken", "lo"):
        assert device(root, name, "1s4c+nodes3") == 3


@pytest.mark.parametrize(("name", "text"), [("virtio", "-1"), ("broken", ""), ("lo", "None")])
def test_a_device_that_does_not_tell(root: Path, name: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        device(root, name)
    assert str(caught.value) == (
        "near_device: %s/sys/class/net/%s: does not give its NUMA node (%s); omit near_device" % (root, name, text)
    )


def test_no_such_device(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        device(root, "eth2")
    assert str(caught.value) == (
        "near_device: %s/sys/class/net/eth2: no such network device; there are broken, eth0, eth1, lo, virtio" % root
    )


def test_no_devices(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such network device; there are none"):
        device(tmp_path, "eth0")


@pytest.mark.parametrize("name", ["../eth0", "/eth0", "eth0/device", ".", ".."])
def test_no_name_of_a_device(root: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        device(root, name)
    assert str(caught.value) == "near_device: %r is a path; give the name of a network device" % name


def test_a_device_on_a_numa_node_that_is_not_there(root: Path) -> None:
    with pytest.raises(InputError, match="NUMA node 1 does not exist; there are 0, 4"):
        plan(root, TWO + "+nodes0,4", count=2, near_device="eth1")
