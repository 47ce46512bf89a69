# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.quantity import MAX_DIGITS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import Gates
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.managers import MemoryCheck
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.reservations import Reservations
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import (
    GIB,
    check,
    host,
    managers,
    refusals,
)

STATIC: dict[str, Any] = {"memoryManagerPolicy": "Static", "kubeReserved": {"memory": "924Mi"}}
EQUAL = [{"numaNode": 0, "limits": {"memory": "1Gi"}}]  # with the 100Mi of the default eviction
NOTHING = "[memorymanager] you should specify the system reserved memory"

TOO_LONG = "1" * (MAX_DIGITS + 1)
NO_WHOLE = "could not covert a variable of type Quantity to int64"


def unequal(total: str, wanted: str, kind: str = "memory") -> str:
    return (
        'the total amount "%s" of type "%s" is not equal to the value "%s" determined by Node Allocatable feature'
        % (
            total,
            kind,
            wanted,
        )
    )


FINE: list[dict[str, Any]] = [
    {},
    {"memoryManagerPolicy": "None", "reservedMemory": [{"numaNode": 7, "limits": {"memory": "1Gi"}}]},
    {**STATIC, "reservedMemory": EQUAL},
    {**STATIC, "reservedMemory": [{"limits": {"memory": "512Mi"}}, {"numaNode": 1, "limits": {"memory": "536870912"}}]},
    {"memoryManagerPolicy": "Static", "reservedMemory": [{"limits": {"memory": "100Mi"}}]},
    {**STATIC, "evictionHard": {}, "reservedMemory": [{"limits": {"memory": "924Mi"}}]},
    {**STATIC, "evictionHard": {"memory.available": "100Mi"}, "reservedMemory": EQUAL},
    {**STATIC, "evictionHard": {"memory.available": "100%"}, "reservedMemory": [{"limits": {"memory": "924Mi"}}]},
    {**STATIC, "evictionHard": {"memory.available": "0%"}, "reservedMemory": [{"limits": {"memory": "924Mi"}}]},
    {
        **STATIC,
        "evictionHard": {"nodefs.available": "10%"},
        "mergeDefaultEvictionSettings": True,
        "reservedMemory": EQUAL,
    },
    {
        **STATIC,
        "evictionHard": {"memory.available": "612Mi"},
        "mergeDefaultEvictionSettings": True,
        "reservedMemory": [{"limits": {"memory": "1536Mi"}}],
    },
    {
        "memoryManagerPolicy": "Static",
        "evictionHard": {"memory.available": "25%"},
        "reservedMemory": [{"limits": {"memory": "4Gi"}}],
    },
]


@pytest.mark.parametrize("values", FINE)
def test_fine(values: dict[str, Any]) -> None:
    assert check(values, "2s1n2c").findings == []


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"reservedMemory": [{"numaNode": 1, "limits": {"cpu": "1"}}]},
        [
            (
                'invalid configuration: the limit type "cpu" for NUMA node 1 is not supported, only [memory'
                " hugepages-<HugePageSize>] is accepted"
            )
        ],
    ),
    (
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "0"}}]},
        ['invalid configuration: reserved memory may not be zero for NUMA node 0 and resource "memory"'],
    ),
    (
        {"reservedMemory": [*EQUAL, *EQUAL]},
        [
            'invalid configuration: the reserved memory has a duplicate value for NUMA node 0 and resource "memory"',
        ],
    ),
    (
        {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "much"}}]},
        [
            (
                "failed to decode: quantities must match the regular expression"
                " '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
        ],
    ),
    (
        {**STATIC, "reservedMemory": [{"numaNode": 2, "limits": {"memory": "1Gi"}}]},
        ["the reserved memory configuration references a NUMA node 2 that does not exist on this machine"],
    ),
    # In the order in which they are written.
    (
        {**STATIC, "reservedMemory": [{"numaNode": node} for node in (9, 2, 9)]},
        [
            "the reserved memory configuration references a NUMA node 9 that does not exist on this machine",
            "the reserved memory configuration references a NUMA node 2 that does not exist on this machine",
        ],
    ),
    (
        {**STATIC, "reservedMemory": [{"limits": {"memory": "1Gi", "cpu": "1"}}]},
        [
            (
                'invalid configuration: the limit type "cpu" for NUMA node 0 is not supported, only [memory'
                " hugepages-<HugePageSize>] is accepted"
            )
        ],
    ),
    (STATIC, [unequal("0", "1Gi")]),
    ({"memoryManagerPolicy": "Static", "evictionHard": {}}, [NOTHING]),
    ({**STATIC, "reservedMemory": [{"limits": {"memory": "3Gi"}}]}, [unequal("3Gi", "1Gi")]),
    (
        {**STATIC, "systemReserved": {"memory": "500M"}, "reservedMemory": EQUAL},
        [unequal("1Gi", "1573741824")],
    ),
    (
        {**STATIC, "reservedMemory": [{"limits": {"memory": "1Gi", "hugepages-2Mi": "4Mi"}}]},
        [unequal("4Mi", "0", "hugepages-2Mi")],
    ),
    (
        {**STATIC, "reservedMemory": [{"limits": {"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"}}]},
        [unequal("1Gi", "0", "hugepages-1Gi"), unequal("4Mi", "0", "hugepages-2Mi"), unequal("0", "1Gi")],
    ),
    # A sum is in the format of what comes last.
    (
        {**STATIC, "reservedMemory": [{"limits": {"memory": "1G"}}, {"numaNode": 1, "limits": {"memory": "1Gi"}}]},
        [unequal("2073741824", "1Gi")],
    ),
    (
        {**STATIC, "reservedMemory": [{"limits": {"memory": "1Gi"}}, {"numaNode": 1, "limits": {"memory": "24k"}}]},
        [unequal("1073765824", "1Gi")],
    ),
    (
        {**STATIC, "reservedMemory": [{"limits": {"memory": "-100Mi"}}]},
        [unequal("-100Mi", "1Gi")],
    ),
    (
        {**STATIC, "reservedMemory": [{"limits": {"memory": "1Gi", 'hugepages-"': "2Mi"}}]},
        [
            (
                'the total amount "2Mi" of type "hugepages-\\"" is not equal to the value "0" determined by Node'
                " Allocatable feature"
            )
        ],
    ),
    # As much as is wanted, and no whole number for Go.
    ({**STATIC, "evictionHard": {}, "reservedMemory": [{"limits": {"memory": "0.90234375Gi"}}]}, [NO_WHOLE]),
    ({**STATIC, "evictionHard": {}, "reservedMemory": [{"limits": {"memory": "968884224000m"}}]}, [NO_WHOLE]),
    (
        {
            **STATIC,
            "reservedMemory": [{"limits": {"memory": "1.5Gi"}}, {"numaNode": 1, "limits": {"memory": "-512Mi"}}],
        },
        [NO_WHOLE],
    ),
    (
        {
            "memoryManagerPolicy": "Static",
            "evictionHard": {},
            "reservedMemory": [{"limits": {"memory": "1Gi"}}, {"numaNode": 1, "limits": {"memory": "-1Gi"}}],
        },
        [NOTHING],
    ),
    ({"memoryManagerPolicy": "static"}, ['unknown policy: "static"']),
    ({"memoryManagerPolicy": "BestEffort"}, ['policy "BestEffort" is not available for platform "linux"']),
]


@pytest.mark.parametrize(("values", "found"), REFUSED)
def test_refused(values: dict[str, Any], found: list[str]) -> None:
    assert refusals(check(values, "2s1n2c").findings) == found


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"reservedMemory": [{}, {"limits": {"cpu": "1"}}]}, "reservedMemory[1].limits.cpu"),
        ({"reservedMemory": [{}, {"limits": {"memory": "0"}}]}, "reservedMemory[1].limits.memory"),
        ({"reservedMemory": [*EQUAL, *EQUAL]}, "reservedMemory[1].limits.memory"),
        ({"reservedMemory": [{}, {"limits": {"memory": "much"}}]}, "reservedMemory[1].limits.memory"),
        ({**STATIC, "reservedMemory": [{"numaNode": 2}]}, "reservedMemory"),
        (STATIC, "reservedMemory"),
        ({"memoryManagerPolicy": "Static", "evictionHard": {}}, "reservedMemory"),
        ({"memoryManagerPolicy": "static"}, "memoryManagerPolicy"),
    ],
)
def test_where(values: dict[str, Any], where: str) -> None:
    assert [finding.where for finding in check(values, "2s1n2c").findings] == [where]


def test_what_is_not_known_is_not_judged() -> None:
    values = {**STATIC, "evictionHard": {"memory.available": "5%"}, "reservedMemory": EQUAL}
    assert check(values, "2s1n2c", memory=None).findings == []
    assert len(check(values, "2s1n2c", memory=16 * GIB).findings) == 1
    # A threshold that is refused itself.
    assert refusals(check({**values, "evictionHard": {"memory.available": "some"}}, "2s1n2c").findings) == [
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    ]
    # What cannot be decoded ends it all.
    assert refusals(check({"reservedMemory": [{"numaNode": "0", "limits": {"cpu": "1"}}, "1Gi"]}).findings) == [
        (
            "failed to decode: json: cannot unmarshal string into Go struct field"
            " MemoryReservation.reservedMemory.numaNode of type int32"
        )
    ]
    # What is refused itself: once.
    assert len(check({**values, "systemReserved": {"memory": "?"}}, "2s1n2c").findings) == 1


def test_older_versions() -> None:
    # Without the gate there is no manager, and its settings are still validated.
    off = {"featureGates": {"MemoryManager": False}, "memoryManagerPolicy": "Static"}
    assert check(off, minor=31).findings == []
    assert len(check({**off, "reservedMemory": [{"limits": {"cpu": "1"}}]}, minor=31).findings) == 1
    assert refusals(check({"memoryManagerPolicy": "BestEffort"}, minor=31).findings) == ['unknown policy: "BestEffort"']
    assert refusals(check({"memoryManagerPolicy": "BestEffort"}, minor=32).findings) == [
        'policy "BestEffort" is not available for platform "linux"'
    ]
    # Fields that it does not have yet are ignored.
    assert refusals(check({"memoryManagerPolicy": "Static"}, minor=20).findings) == []
    merged = {**STATIC, "evictionHard": {}, "mergeDefaultEvictionSettings": True, "reservedMemory": EQUAL}
    assert refusals(check(merged, "2s1n2c", 33).findings) == []
    assert refusals(check(merged, "2s1n2c", 32).findings) == [unequal("1Gi", "924Mi")]


def memory_check(values: dict[str, Any], minor: int = 36, policy: str = "None") -> MemoryCheck:
    machine = host("2s1n2c", minor)
    return MemoryCheck(values, Gates({}, minor), machine, Reservations(values, machine), policy)


def test_the_policy() -> None:
    assert memory_check({}).policy_name() == "None"
    assert memory_check({}, policy="Static").policy_name() == "Static"
    assert memory_check({}, policy="static").policy_name() is None
    assert memory_check({}, policy="").policy_name() is None
    assert memory_check({}, 21, "Static").policy_name() is None  # its gate is off
    # As the whole check reads it.
    for written, policy in (({}, "None"), ({"memoryManagerPolicy": ""}, "None"), (STATIC, "Static")):
        assert managers(written).memory_manager_policy == policy
    assert managers({"memoryManagerPolicy": "static"}).memory_manager_policy is None


def test_an_unknown_policy_is_shown_as_it_is() -> None:
    (finding,) = memory_check({}, policy='a"\n').findings()
    assert finding.text == 'unknown policy: "a"\n"'
    assert [finding.text for finding in memory_check({}, policy="").findings()] == ['unknown policy: ""']


def test_what_is_reserved() -> None:
    reserved = [
        {"numaNode": 0, "limits": {"memory": "1Gi"}},
        {"numaNode": 1, "limits": {"memory": "1500m", "hugepages-2Mi": "4Mi"}},
        {"numaNode": 0, "limits": {"hugepages-1Gi": "1Gi", "memory": TOO_LONG}},
    ]
    assert memory_check({"reservedMemory": reserved}).reserved() == {
        0: {"memory": GIB, "hugepages-1Gi": GIB},
        1: {"memory": 2, "hugepages-2Mi": 4 << 20},
    }
    assert memory_check({"reservedMemory": []}).reserved() == memory_check({}).reserved() == {}


def test_an_amount_that_is_too_long_to_be_read() -> None:
    reserved = [{"numaNode": 0, "limits": {}}, {"numaNode": 1, "limits": {"memory": TOO_LONG}}]
    (finding,) = memory_check({"reservedMemory": reserved}).invalid()
    assert finding.text == "failed to decode: a quantity of more than %d digits" % MAX_DIGITS
    assert finding.where == "reservedMemory[1].limits.memory"
