# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much is reserved, and whether the node has it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Unknown
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import (
    GIB,
    host,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.reserved import (
    MACHINE,
    allocatable,
    read,
)

OVER = 'Resource "%s" has a reservation of %s but capacity of %s. Expected capacity >= reservation.'


# --- how much it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kube", "system", "shown", "printed"),
    [
        (None, None, "0", "{{0 0} {<nil>}  }"),
        ("1500m", "600m", "2100m", "{{2100 -3} {<nil>}  DecimalSI}"),
        ("1", "1", "2", "{{2 0} {<nil>}  DecimalSI}"),
        # In the format of what is reserved for the system.
        ("1Ki", "1000", "2024", "{{2024 0} {<nil>}  DecimalSI}"),
        ("1000", "1Ki", "2024", "{{2024 0} {<nil>}  BinarySI}"),
        ("1024", "1Ki", "2Ki", "{{2048 0} {<nil>}  BinarySI}"),
        ("1e3", "0", "1e3", "{{1 3} {<nil>}  DecimalExponent}"),
        ("9999Ti", None, "9999Ti", "{{0 0} {"),
    ],
)
def test_amounts(kube: str | None, system: str | None, shown: str, printed: str) -> None:
    values = {
        "kubeReserved": {} if kube is None else {"pid": kube},
        "systemReserved": {} if system is None else {"pid": system},
    }
    amount = read(values).amount("pid")
    assert amount is not None
    assert str(amount) == shown
    assert amount.printed() == printed


@pytest.mark.parametrize(
    "values",
    [
        {"kubeReserved": {"cpu": "?", "memory": "1Gi"}},
        {"systemReserved": {"cpu": "?"}, "kubeReserved": {"memory": "1Gi"}},
        {"reservedSystemCPUs": "?", "kubeReserved": {"memory": "17Gi"}},
        {"reservedSystemCPUs": "64", "kubeReserved": {"memory": "17Gi"}},
    ],
)
def test_what_is_refused_is_not_counted(values: dict[str, Any]) -> None:
    reservations = read(values)
    assert len(reservations.findings) == 1
    assert reservations.amount("memory") is None
    assert reservations.memory() is None
    assert list(reservations.node_allocatable(with_cpus=True)) == []


@pytest.mark.parametrize(
    ("values", "memory", "kept"),
    [
        ({}, 16 * GIB, "100Mi"),
        ({}, None, "100Mi"),
        ({"evictionHard": None}, None, "100Mi"),
        ({"evictionHard": {}}, None, "0"),
        ({"evictionHard": {"nodefs.available": "10%"}}, None, "0"),
        ({"evictionHard": {"nodefs.available": "10%"}, "mergeDefaultEvictionSettings": True}, None, "100Mi"),
        ({"evictionHard": {"memory.available": "1Gi"}, "mergeDefaultEvictionSettings": True}, None, "1Gi"),
        ({"evictionHard": {"memory.available": "0%"}, "mergeDefaultEvictionSettings": True}, None, "0"),
        ({"evictionHard": {"memory.available": "25%"}}, 16 * GIB, "4Gi"),
        ({"evictionHard": {"memory.available": "25%"}}, None, None),
        ({"evictionHard": {"memory.available": "10%"}}, 1000, "100"),
        ({"evictionHard": {"memory.available": "abc"}}, 16 * GIB, None),
        # One threshold that is refused hides the others.
        ({"evictionHard": {"memory.available": "1Gi", "pid.available": "abc"}}, 16 * GIB, None),
        ({"systemReserved": {"memory": "500M"}, "kubeReserved": {"memory": "924Mi"}}, None, "1573741824"),
        ({"systemReserved": {"memory": "1Gi"}, "kubeReserved": {"memory": "1G"}}, None, "2178599424"),
        ({"systemReserved": {"memory": "1536Mi"}, "evictionHard": {"memory.available": "512Mi"}}, None, "2Gi"),
    ],
)
def test_memory(values: dict[str, Any], memory: int | None, kept: str | None) -> None:
    amount = read(values, host(memory=memory)).memory()
    assert (None if amount is None else str(amount)) == kept


def test_the_reservation_of_memory() -> None:
    values = {
        "systemReserved": {"memory": "1Gi"},
        "kubeReserved": {"memory": "1G"},
        "evictionHard": {"memory.available": "10%"},
    }
    amount = read(values, host(memory=1000)).memory()
    assert amount is not None
    assert amount.exact() == GIB + 10**9 + 100


# --- what the node has ---------------------------------------------------------------------------------

EIGHT_CPUS, SIXTEEN_GIB = "{{8000 -3} {<nil>}  DecimalSI}", "{{17179869184 0} {<nil>}  BinarySI}"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, []),
        ({"kubeReserved": {"cpu": "8", "memory": "16284Mi"}}, []),
        ({"kubeReserved": {"cpu": "7500m"}, "systemReserved": {"cpu": "500m"}}, []),
        ({"kubeReserved": {"cpu": "8001m"}}, [("cpu", OVER % ("cpu", "{{8001 -3} {<nil>}  DecimalSI}", EIGHT_CPUS))]),
        ({"kubeReserved": {"cpu": "9"}}, [("cpu", OVER % ("cpu", "{{9 0} {<nil>}  DecimalSI}", EIGHT_CPUS))]),
        ({"kubeReserved": {"cpu": "1Ki"}}, [("cpu", OVER % ("cpu", "{{1024 0} {<nil>}  BinarySI}", EIGHT_CPUS))]),
        (
            {"kubeReserved": {"cpu": "8.0000001"}},
            [("cpu", OVER % ("cpu", "{{80000001 -7} {<nil>}  DecimalSI}", EIGHT_CPUS))],
        ),
        (
            {"kubeReserved": {"memory": "16285Mi"}},
            [("memory", OVER % ("memory", "{{17180917760 0} {<nil>}  BinarySI}", SIXTEEN_GIB))],
        ),
        (
            {"kubeReserved": {"memory": "18G"}},
            [("memory", OVER % ("memory", "{{18104857600 0} {<nil>}  DecimalSI}", SIXTEEN_GIB))],
        ),
        (
            {"evictionHard": {"memory.available": "100Gi"}},
            [("memory", OVER % ("memory", "{{107374182400 0} {<nil>}  BinarySI}", SIXTEEN_GIB))],
        ),
        (
            {"systemReserved": {"memory": "15Gi"}, "evictionHard": {"memory.available": "50%"}},
            [("memory", OVER % ("memory", "{{24696061952 0} {<nil>}  BinarySI}", SIXTEEN_GIB))],
        ),
        # A random address follows.
        (
            {"kubeReserved": {"cpu": "9999999999999999999"}},
            [("cpu", 'Resource "cpu" has a reservation of {{0 0} {')],
        ),
        ({"kubeReserved": {"memory": "16.5Gi"}}, [("memory", 'Resource "memory" has a reservation of {{0 0} {')]),
        (
            {"kubeReserved": {"cpu": "9", "memory": "17Gi"}},
            [
                ("cpu", OVER % ("cpu", "{{9 0} {<nil>}  DecimalSI}", EIGHT_CPUS)),
                ("memory", OVER % ("memory", "{{18358468608 0} {<nil>}  BinarySI}", SIXTEEN_GIB)),
            ],
        ),
        # There is no end to the numbers of processes.
        ({"kubeReserved": {"pid": "99999999999"}}, []),
        ({"evictionHard": {"memory.available": "100%"}, "kubeReserved": {"memory": "16Gi"}}, []),
        ({"evictionHard": {"memory.available": "nan%"}, "kubeReserved": {"memory": "16Gi"}}, []),
        # Of the other signals nothing is kept.
        ({"evictionHard": {"allocatableMemory.available": "100Gi", "pid.available": "100Gi"}}, []),
    ],
)
def test_node_allocatable(values: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert allocatable(values) == found


def test_cpus_that_a_manager_looks_at() -> None:
    values = {"kubeReserved": {"cpu": "9", "memory": "17Gi"}}
    assert [where for where, _text in allocatable(values, with_cpus=False)] == ["memory"]
    # Those that are offline do not count.
    assert allocatable({"kubeReserved": {"cpu": "7"}}, host("1s4c2t+offline5")) == []
    assert len(allocatable({"kubeReserved": {"cpu": "7001m"}}, host("1s4c2t+offline5"))) == 1


def test_memory_that_is_not_known() -> None:
    assert allocatable({"kubeReserved": {"memory": "100Ti"}}, host(memory=None)) == []


STORAGE = "ephemeral-storage"
DISK = MACHINE._replace(storage=270553174016)
SHOWN_DISK = "{{270553174016 0} {<nil>}  BinarySI}"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, []),
        ({"kubeReserved": {STORAGE: "1Gi"}}, []),
        (
            {"kubeReserved": {STORAGE: "9999Ti"}},
            [(STORAGE, 'Resource "ephemeral-storage" has a reservation of {{0 0} {')],
        ),
        # With the 10% of the default.
        (
            {"kubeReserved": {STORAGE: "250G"}},
            [(STORAGE, OVER % (STORAGE, "{{277055317804 0} {<nil>}  DecimalSI}", SHOWN_DISK))],
        ),
        ({"kubeReserved": {STORAGE: "250G"}, "evictionHard": {}}, []),
        (
            {"systemReserved": {STORAGE: "271G"}, "evictionHard": {}},
            [(STORAGE, OVER % (STORAGE, "{{271 9} {<nil>}  DecimalSI}", SHOWN_DISK))],
        ),
        (
            {"evictionHard": {"nodefs.available": "271G"}},
            [(STORAGE, OVER % (STORAGE, "{{271 9} {<nil>}  DecimalSI}", SHOWN_DISK))],
        ),
        ({"kubeReserved": {STORAGE: "9999Ti"}, "localStorageCapacityIsolation": False}, []),
        ({"kubeReserved": {STORAGE: "9999Ti"}, "evictionHard": {"foo": "1"}}, []),
    ],
)
def test_storage(values: dict[str, Any], found: list[tuple[str, str]]) -> None:
    assert allocatable(values, DISK) == found


def test_storage_that_cannot_be_seen() -> None:
    assert allocatable({}) == []
    assert allocatable({"kubeReserved": {STORAGE: "8Gi"}}) == []
    assert allocatable({"kubeReserved": {STORAGE: "?"}}) == []
    assert allocatable({"kubeReserved": {STORAGE: "5Gi"}, "systemReserved": {STORAGE: "4Gi"}}) == [
        Unknown("9Gi of ephemeral-storage is reserved, and the size of the node's disk cannot be seen", STORAGE)
    ]
    off = {"kubeReserved": {STORAGE: "9Gi"}, "localStorageCapacityIsolation": False}
    assert allocatable(off) == []
