# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/devices.py: hints, aligned and unaligned devices, and what holds at any time."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    Pod,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.devices import (
    Device,
    DeviceManager,
    Owned,
    PluginChoice,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    POLICIES,
    RESTRICTED,
    SCOPES,
    SINGLE_NUMA_NODE,
    Hint,
    TopologyManager,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import AllocationError
from ansible_collections.kubenode.cpu_manager.tests.machines.counted import lines_run
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

from . import managed_node

GPU = "vendor.com/gpu"
FOUR = (0, 1, 2, 3)


def devices(*nodes: str) -> list[Device]:
    """Return the names of their NUMA nodes, "" for none: dev0, dev1, ..."""
    masks = [sum(1 << int(node) for node in word) for word in nodes]
    return [Device("dev%02d" % number, mask) for number, mask in enumerate(masks)]


def pod(uid: str, *counts: Any) -> Pod:
    """Return containers a, b, ... with so many devices; (count, kind) is no app container."""
    members = []
    for name, count in zip("abcd", counts):
        number, kind = count if isinstance(count, tuple) else (count, APP)
        amounts = {GPU: 1000 * number}
        members.append(Container(name, kind, amounts, amounts))
    return Pod(uid, "shop/" + uid, tuple(members))


def affinity(text: str) -> Hint:
    return Hint(None if text == "*" else sum(1 << int(node) for node in text), True)


def on_nodes(manager: DeviceManager, uid: str, container: str = "a") -> dict[str, int]:
    """Return how many devices a container has of which NUMA nodes."""
    found: dict[str, int] = {}
    for name in manager.entries.get(uid, {}).get(container, {}).get(GPU, ()):
        key = "".join(map(str, iterate_bits(manager.devices[GPU][name])))
        found[key] = found.get(key, 0) + 1
    return found


def texts(hints: Mapping[str, list[Hint] | None]) -> str | None:
    found = hints[GPU]
    if found is None:
        return None
    return " ".join("".join(map(str, iterate_bits(hint.mask or 0))) + ("!" if hint.preferred else "") for hint in found)


# --- TestTopologyAlignedAllocation of the kubelet, by its names -----------------------------------------

SIX = ("0", "1", "0", "1", "0", "1")
ALIGNED: dict[str, tuple[Sequence[str], int, str, dict[str, int]]] = {
    "Single Request, no alignment": (("", ""), 1, "01", {"": 1}),
    "Request for 1, partial alignment": (("", "1"), 1, "1", {"1": 1}),
    "Single Request, socket 0": (("0", "1"), 1, "0", {"0": 1}),
    "Single Request, socket 1": (("0", "1"), 1, "1", {"1": 1}),
    "Request for 2, socket 0": (SIX[:4], 2, "0", {"0": 2}),
    "Request for 2, socket 1": (SIX[:4], 2, "1", {"1": 2}),
    "Request for 4, unsatisfiable, prefer socket 0": (SIX, 4, "0", {"0": 3, "1": 1}),
    "Request for 4, unsatisfiable, prefer socket 1": (SIX, 4, "1", {"0": 1, "1": 3}),
    "Request for 4, multisocket": ("01230123", 4, "13", {"1": 2, "3": 2}),
    "Request for 5, socket 0, preferred aligned accepted": ("0" * 100 + "1" * 100, 5, "0", {"0": 5}),
    "Request for 5, socket 1, preferred aligned accepted, bogus ignored": ("1" * 100, 5, "1", {"1": 5}),
    "Request for 5, multisocket, preferred accepted": ("000" + "1" * 97, 5, "0", {"0": 3, "1": 2}),
    # In no table.
    "a device of two nodes is on either": (("01", "1"), 1, "0", {"01": 1}),
    "without an affinity any will do": (("0", "0"), 1, "*", {"0": 1}),
    "those without a node come last": (("", "1", "1"), 2, "0", {"1": 2}),
}


@pytest.mark.parametrize("name", ALIGNED, ids=str)
def test_aligned_allocation(name: str) -> None:
    nodes, count, mask, expected = ALIGNED[name]
    manager = DeviceManager({GPU: devices(*nodes)}, FOUR)
    manager.allocate(pod("u1", count), "a", affinity(mask))
    assert on_nodes(manager, "u1") == expected


@pytest.mark.parametrize(
    ("nodes", "count", "mask", "is_choice"),
    [
        ("0011", 2, "0", False),
        ("0011", 1, "0", False),  # which of the two is all the same
        ("0011", 2, "01", True),
        ("0011", 4, "01", False),  # all
        ("0011", 3, "0", False),  # of node 1, either
        ("0012", 3, "0", True),
        ("0011", 2, "*", True),
    ],
)
def test_what_the_plugin_may_choose(nodes: str, count: int, mask: str, is_choice: bool) -> None:
    manager = DeviceManager({GPU: devices(*nodes)}, FOUR)
    manager.allocate(pod("u1", count), "a", affinity(mask))
    assert manager.choices == ([PluginChoice("shop/u1", "a", GPU)] if is_choice else [])


# --- hints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "count", "taken", "expected"),
    [
        (("", ""), 1, [], None),  # the plugin says of none where it is
        (("0", "1"), 1, [], "0! 1! 01"),
        (("0", "1"), 2, [], "01!"),
        (("0", "1"), 3, [], ""),  # not so many
        (("0", "0", "1"), 2, [], "0! 01"),
        (("0", "0", "1"), 2, ["dev00"], "01"),  # node 0 could, if it were free
        (("0", "0", "1"), 1, ["dev02"], "0! 01"),
        (("01", "1"), 2, [], "1! 01"),
        (("0", ""), 2, [], ""),  # one that is nowhere does not count
    ],
)
def test_hints(nodes: Sequence[str], count: int, taken: Sequence[str], expected: str | None) -> None:
    manager = DeviceManager({GPU: devices(*nodes)}, (0, 1), [Owned("u0", "a", GPU, taken)])
    for target in ("a", ""):
        assert texts(manager.hints(pod("u1", count), target)) == expected


def test_hints_take_few_steps_however_many_devices_there_are() -> None:
    """A checkpoint may name any number; each was looked at for each set of NUMA nodes."""

    def steps(number: int) -> int:
        manager = DeviceManager({GPU: devices(*["0", "7"] * number)}, range(8))
        return lines_run(lambda: manager.hints(pod("guest", 1), "a"))

    few, many = steps(100), steps(400)
    assert few < many < few + 300 * 20


def test_hints_of_what_is_given_already() -> None:
    manager = DeviceManager({GPU: devices("0", "0", "1", "1")}, (0, 1), [Owned("u1", "a", GPU, ["dev02", "dev03"])])
    assert texts(manager.hints(pod("u1", 2), "a")) == "1! 01"
    assert texts(manager.hints(pod("u1", 1), "a")) == ""
    assert texts(manager.hints(pod("u1", 2, 1), "")) == ""
    manager.allocate(pod("u1", 2), "a", affinity("0"))
    assert on_nodes(manager, "u1") == {"1": 2}


def test_a_pod_as_a_whole() -> None:
    manager = DeviceManager({GPU: devices("0", "0", "0", "1", "1")}, (0, 1))
    assert texts(manager.hints(pod("u1", (1, SIDECAR), (1, INIT), 1), "")) == "0! 1! 01"
    assert texts(manager.hints(pod("u1", (1, SIDECAR), (2, INIT), 1), "")) == "0! 01"


def test_init_containers_are_taken_over_sidecars_are_not() -> None:
    manager = DeviceManager({GPU: devices("0", "0", "1")}, (0, 1))
    guest = pod("u1", (1, INIT), (1, SIDECAR), 1)
    manager.allocate(guest, "a", affinity("0"))
    # The app container could have what node 0 has left, and what is taken over is there.
    assert texts(manager.hints(guest, "c")) == "0! 01"
    manager.allocate(guest, "b", affinity("0"))
    assert manager.entries["u1"]["a"] == manager.entries["u1"]["b"]
    manager.allocate(guest, "c", affinity("0"))
    assert manager.entries["u1"]["c"] == {GPU: {"dev01"}}
    assert [device.name for device in manager.free(GPU)] == ["dev02"]


# --- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "owned", "count", "text"),
    [
        (
            ["0"],
            [],
            2,
            "requested number of devices unavailable for vendor.com/gpu. Requested: 2, Available: 1",
        ),
        ([], [], 1, "no healthy devices present; cannot allocate unhealthy devices vendor.com/gpu"),
        (
            ["0"],
            ["dev09"],
            1,
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices vendor.com/gpu",
        ),
        (
            ["0", "0"],
            ["dev00"],
            2,
            'pod "u1" container "a" changed request for resource "vendor.com/gpu" from 1 to 2',
        ),
    ],
)
def test_refused(given: Sequence[str], owned: Sequence[str], count: int, text: str) -> None:
    manager = DeviceManager({GPU: devices(*given)}, (0,), [Owned("u1", "a", GPU, owned)] if owned else [])
    with pytest.raises(AllocationError) as caught:
        manager.allocate(pod("u1", count), "a", affinity("*"))
    assert str(caught.value) == text


def test_what_no_plugin_has_registered_is_left_alone() -> None:
    manager = DeviceManager({}, (0,), [Owned("u1", "a", GPU, ["dev00"])])
    manager.allocate(pod("u1", 1), "a", affinity("*"))
    assert (manager.hints(pod("u1", 1), "a"), manager.entries) == ({}, {})


# --- beside CPUs --------------------------------------------------------------------------------------


def with_devices(policy: str, scope: str, *nodes: str) -> tuple[CPUManager, DeviceManager]:
    node = managed_node.manager("2s1n4c2t", policy=policy, scope=scope)
    manager = DeviceManager({GPU: devices(*nodes)}, (0, 1))
    node.others = [manager]
    return node, manager


def guest_of(uid: str, cpus: int, gpus: int) -> Pod:
    plain = managed_node.pod(uid, cpus)
    amounts = {**plain.containers[0].requests, GPU: 1000 * gpus}
    return plain._replace(containers=(plain.containers[0]._replace(requests=amounts, limits=amounts),))


@pytest.mark.parametrize("scope", SCOPES)
def test_cpus_come_from_the_node_of_the_device(scope: str) -> None:
    node, manager = with_devices(SINGLE_NUMA_NODE, scope, "1")
    assert node.add(guest_of("u1", 2, 1)).admitted
    assert managed_node.cpus(node, "u1") == {"a": "4,12"}
    refused = node.add(guest_of("u2", 2, 1))
    assert (refused.reason, refused.not_aligned) == ("TopologyAffinityError", (GPU,))
    node.delete("u1")
    assert node.add(guest_of("u2", 2, 1)).admitted
    assert on_nodes(manager, "u2") == {"1": 1}


def test_each_by_itself_and_not_together() -> None:
    """Node 1 has the device, and not so many CPUs any more."""
    node, _manager = with_devices(RESTRICTED, "container", "1")
    node.add(guest_of("u1", 6, 0))
    node.add(guest_of("u2", 8, 0))
    refused = node.add(guest_of("u3", 1, 1))
    assert (refused.admitted, refused.not_aligned) == (False, ("cpu", GPU))


def test_a_container_that_is_removed_gives_back_all_it_has() -> None:
    node, manager = with_devices(SINGLE_NUMA_NODE, "container", "1")
    node.add(guest_of("u1", 2, 1))
    node.remove("u1", "a")
    assert (managed_node.cpus(node, "u1"), manager.entries) == ({}, {})


def test_a_device_that_is_missing_is_no_matter_of_alignment() -> None:
    node, _manager = with_devices("none", "container", "1")
    refused = node.add(guest_of("u1", 2, 2))
    assert refused.message == (
        "Allocate failed due to requested number of devices unavailable for vendor.com/gpu. Requested: 2, Available: 1,"
        " which is unexpected"
    )
    # Devices come before CPUs.
    assert managed_node.cpus(node, "u1") == {}


@given(
    st.lists(st.sampled_from(["", "0", "1", "01"]), max_size=6),
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 3), st.lists(st.integers(0, 3), min_size=1, max_size=3)), max_size=6
    ),
    st.sampled_from(POLICIES),
    st.sampled_from(SCOPES),
)
@settings(max_examples=examples(100))
def test_laws(nodes: list[str], events: list[tuple[bool, int, list[int]]], policy: str, scope: str) -> None:
    manager = DeviceManager({GPU: devices(*nodes)}, (0, 1))
    node = CPUManager(managed_node.manager().policy, TopologyManager(policy, scope, (0, 1)), others=[manager])
    for number, (is_leaving, which, counts) in enumerate(events):
        if is_leaving and node.active:
            node.delete(list(node.active)[which % len(node.active)])
        else:
            kinds = ((counts[0], INIT), *counts[1:])
            node.remove_stale()
            before = repr(manager.entries)
            if not node.add(pod("u%d" % number, *kinds)).admitted:
                node.remove_stale()
                assert repr(manager.entries) == before
        node.remove_stale()
        assert set(manager.entries) <= set(node.active)
        owned: list[str] = []
        for uid, containers in manager.entries.items():
            names: set[str] = set()
            for container, resources in containers.items():
                asked = next(member for member in node.active[uid].containers if member.name == container)
                assert len(resources[GPU]) * 1000 == asked.limits[GPU]
                # App containers have nothing together; what they take over is the init container's.
                assert not names & resources[GPU]
                names |= resources[GPU] if asked.kind == APP else set()
            names |= containers.get("a", {}).get(GPU, set())
            owned += names
        assert len(owned) == len(set(owned))
        assert {device.name for device in manager.free(GPU)} | set(owned) == set(manager.devices[GPU])
    node.active.clear()
    node.remove_stale()
    assert manager.entries == {}
    assert len(manager.free(GPU)) == len(nodes)
