# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.checks.amount import Amount
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.checks.reservations import Reservations
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.finding import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils.kubelet.start.checks.check_cases import (
    GIB,
    host,
)

MACHINE = host()  # of 8 CPUs and 16 GiB
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
KUBE, SYSTEM, QOS = (
    "--%s value failed to parse: " % flag for flag in ("kube-reserved", "system-reserved", "qos-reserved")
)
OVER = 'Resource "%s" has a reservation of %s but capacity of %s. Expected capacity >= reservation.'
NODE_ALLOCATABLE = "invalid Node Allocatable configuration. "


def read(values: dict[str, Any], machine: Host = MACHINE) -> Reservations:
    reservations = Reservations(values, machine)
    for finding in reservations.findings:
        assert finding.cause
        assert finding.remedy
    return reservations


def told(values: dict[str, Any], machine: Host = MACHINE) -> list[tuple[str, str, str]]:
    return [(finding.where, finding.context, finding.text) for finding in read(values, machine).findings]


def allocatable(
    values: dict[str, Any], machine: Host = MACHINE, with_cpus: bool = True
) -> list[tuple[str, str] | Unknown]:
    found: list[tuple[str, str] | Unknown] = []
    for answer in read(values, machine).node_allocatable(with_cpus):
        if isinstance(answer, Finding):
            assert answer.fatal
            assert answer.context == NODE_ALLOCATABLE
            found.append((answer.where, answer.text))
        else:
            found.append(answer)
    return found


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"reservedSystemCPUs": None, "kubeReserved": None, "systemReserved": None, "evictionHard": None},
        {"reservedSystemCPUs": "", "kubeReserved": {}, "systemReserved": {}, "evictionHard": {}, "qosReserved": {}},
        {"reservedSystemCPUs": "0,4", "kubeReserved": {"memory": "1Gi"}},
        {"kubeReserved": {"cpu": "1", "memory": "1Gi", "pid": "99999999", "ephemeral-storage": "1Gi"}},
        {"systemReserved": {"cpu": "+1.5", "memory": "Gi", "pid": "0"}},
        {"evictionHard": {"memory.available": "5%", "containerfs.available": "5%"}},
        {"evictionHard": {"nodefs.available": "100Mi"}, "mergeDefaultEvictionSettings": True},
        {"qosReserved": {"memory": "50%"}},
        {"qosReserved": None},
    ],
)
def test_fine(values: dict[str, Any]) -> None:
    assert told(values) == []


@pytest.mark.parametrize(
    ("values", "found"),
    [
        # --- reservedSystemCPUs
        (
            {"reservedSystemCPUs": "0,8"},
            [("reservedSystemCPUs", "", "reserved-cpus: 0,8 is not a subset of online-cpus: 0-7")],
        ),
        (
            {"reservedSystemCPUs": "0-"},
            [
                (
                    "reservedSystemCPUs",
                    "",
                    (
                        "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 0-, error:"
                        ' strconv.Atoi: parsing "": invalid syntax'
                    ),
                )
            ],
        ),
        # Of so high numbers there is no set, and they are not online.
        (
            {"reservedSystemCPUs": "99999999999"},
            [("reservedSystemCPUs", "", "reserved-cpus: 99999999999 is not a subset of online-cpus: 0-7")],
        ),
        # --- kubeReserved, systemReserved: in this order
        (
            {"systemReserved": {"memory": "y"}, "kubeReserved": {"cpu": "x"}},
            [
                (
                    "kubeReserved.cpu",
                    KUBE,
                    'failed to parse quantity "x" for "cpu" resource: ' + NO_QUANTITY,
                ),
                (
                    "systemReserved.memory",
                    SYSTEM,
                    'failed to parse quantity "y" for "memory" resource: ' + NO_QUANTITY,
                ),
            ],
        ),
        ({"kubeReserved": {"cpus": "1"}}, [("kubeReserved.cpus", KUBE, 'cannot reserve "cpus" resource')]),
        # The name is looked at before the amount.
        (
            {"systemReserved": {"example.com/x": "?"}},
            [("systemReserved.example.com/x", SYSTEM, 'cannot reserve "example.com/x" resource')],
        ),
        ({"kubeReserved": {'a"': "1"}}, [('kubeReserved.a"', KUBE, r'cannot reserve "a\"" resource')]),
        (
            {"kubeReserved": {"memory": "-0.1Gi"}},
            [("kubeReserved.memory", KUBE, 'resource quantity for "memory" cannot be negative: -0.1Gi')],
        ),
        (
            {"kubeReserved": {"pid": ""}},
            [("kubeReserved.pid", KUBE, 'failed to parse quantity "" for "pid" resource: ' + NO_QUANTITY)],
        ),
        (
            {"kubeReserved": {"memory": "1gi"}},
            [
                (
                    "kubeReserved.memory",
                    KUBE,
                    'failed to parse quantity "1gi" for "memory" resource: ' + NO_QUANTITY,
                )
            ],
        ),
        (
            {"kubeReserved": {"memory": "1ki"}},
            [
                (
                    "kubeReserved.memory",
                    KUBE,
                    'failed to parse quantity "1ki" for "memory" resource: unable to parse quantity\'s suffix',
                )
            ],
        ),
        # --- evictionHard
        (
            {"evictionHard": {"memory.available": "101%"}},
            [
                (
                    "evictionHard.memory.available",
                    "",
                    "eviction percentage threshold memory.available must be <= 100%: 101%",
                )
            ],
        ),
        ({"evictionHard": {"memory.available": ""}}, [("evictionHard.memory.available", "", NO_QUANTITY)]),
        (
            {"evictionHard": {"memory.avail": "5%"}, "mergeDefaultEvictionSettings": True},
            [("evictionHard.memory.avail", "", "unsupported eviction signal memory.avail")],
        ),
        # --- qosReserved
        ({"qosReserved": {"cpu": "50%"}}, [("qosReserved.cpu", QOS, 'cannot reserve "cpu" resource')]),
        (
            {"qosReserved": {"memory": "50"}},
            [
                (
                    "qosReserved.memory",
                    QOS,
                    'failed to parse percentage "50" for "memory" resource: percentage expected, got \'50\'',
                )
            ],
        ),
        # --- all of them, in the kubelet's order
        (
            {
                "reservedSystemCPUs": "9",
                "kubeReserved": {"a": "1"},
                "systemReserved": {"b": "1"},
                "evictionHard": {"c": "1"},
                "qosReserved": {"d": "1"},
            },
            [
                ("reservedSystemCPUs", "", "reserved-cpus: 9 is not a subset of online-cpus: 0-7"),
                ("kubeReserved.a", KUBE, 'cannot reserve "a" resource'),
                ("systemReserved.b", SYSTEM, 'cannot reserve "b" resource'),
                ("evictionHard.c", "", "unsupported eviction signal c"),
                ("qosReserved.d", QOS, 'cannot reserve "d" resource'),
            ],
        ),
    ],
)
def test_refused(values: dict[str, Any], found: list[tuple[str, str, str]]) -> None:
    assert told(values) == found
    assert all(finding.fatal for finding in read(values).findings)


def test_the_flag_is_named_since_1_33() -> None:
    values = {"kubeReserved": {"gpu": "1"}, "systemReserved": {"gpu": "1"}}
    for minor, contexts in ((32, ["", ""]), (33, [KUBE, SYSTEM])):
        found = told(values, host(minor=minor))
        assert [context for _where, context, _text in found] == contexts
        assert {text for _where, _context, text in found} == {'cannot reserve "gpu" resource'}


@pytest.mark.parametrize(
    ("values", "who"),
    [
        ({"kubeReservedCgroup": "/a"}, "kubeReservedCgroup"),
        ({"systemReservedCgroup": "/a"}, "systemReservedCgroup"),
        ({"kubeReservedCgroup": "/a", "systemReservedCgroup": "/b"}, "systemReservedCgroup and kubeReservedCgroup"),
    ],
)
def test_reserved_cpus_exclude_reserved_cgroups(values: dict[str, str], who: str) -> None:
    assert told(values) == []
    reservations = read({"reservedSystemCPUs": "0", **values})
    (finding,) = reservations.findings
    assert finding.text == (
        "invalid configuration: can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup"
        " (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
    )
    assert finding.cause == who + " is set"
    # As if the other were not there.
    assert reservations.cpus == CPUSet.parse("0")


def test_reserved_cpus_replace_the_amounts() -> None:
    values = {
        "reservedSystemCPUs": "0,4",
        "kubeReserved": {"cpu": "x", "memory": "1Gi"},
        "systemReserved": {"cpu": "3"},
    }
    reservations = read(values)
    assert [(finding.where, finding.fatal, finding.text) for finding in reservations.findings] == [
        (
            "%s.cpu" % field,
            False,
            "Option --reserved-cpus is specified, it will overwrite the cpu setting in KubeReserved and SystemReserved",
        )
        for field in ("kubeReserved", "systemReserved")
    ]
    assert reservations.amount("cpu") == Amount(2, 0, "DecimalSI")
    assert reservations.amount("memory") == Amount.parse("1Gi")
    assert reservations.amount("pid") == Amount(0)
    assert reservations.amounts == {
        "kubeReserved": {"memory": Amount.parse("1Gi")},
        "systemReserved": {"cpu": Amount(2, 0, "DecimalSI")},
    }


@pytest.mark.parametrize(
    ("minor", "cpus", "text"),
    [
        (20, "3,7", 'Invalid cpuset "3,7" specified by --reserved-cpus'),
        (20, "8", 'Invalid cpuset "8" specified by --reserved-cpus'),
        (20, "5", "reserved-cpus: 5 is not a subset of online-cpus: 0-4,6-7"),
        (20, "6", ""),
        (21, "3,7", ""),
        (21, "8", "reserved-cpus: 8 is not a subset of online-cpus: 0-4,6-7"),
    ],
)
def test_cpus_that_are_offline(minor: int, cpus: str, text: str) -> None:
    reservations = read({"reservedSystemCPUs": cpus}, host("1s4c2t+offline5", minor))
    assert [finding.text for finding in reservations.findings] == [text] * bool(text)
    assert reservations.cpus == (None if text else CPUSet.parse(cpus))
    assert (reservations.amount("cpu") is None) == bool(text)


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


# --- qosReserved -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["0%", "100%", "+5%", "-0%", "50%%", "0050%", "%s5%%" % ("0" * 10000)])
def test_shares_of_memory(text: str) -> None:
    assert told({"qosReserved": {"memory": text}}) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "percentage expected, got ''"),
        ("50", "percentage expected, got '50'"),
        ("50% ", "percentage expected, got '50% '"),
        ("%", "invalid number in percentage '%'"),
        ("+%", "invalid number in percentage '+%'"),
        ("5.5%", "invalid number in percentage '5.5%'"),
        (" 5%", "invalid number in percentage ' 5%'"),
        ("5_0%", "invalid number in percentage '5_0%'"),
        ("\u0665%", "invalid number in percentage '\u0665%'"),
        ("9223372036854775808%", "invalid number in percentage '9223372036854775808%'"),
        ("-9223372036854775809%", "invalid number in percentage '-9223372036854775809%'"),
        ("9223372036854775807%", "percentage must be between 0 and 100"),
        ("-9223372036854775808%", "percentage must be between 0 and 100"),
        ("101%", "percentage must be between 0 and 100"),
        ("-1%", "percentage must be between 0 and 100"),
    ],
)
def test_no_shares_of_memory(text: str, fault: str) -> None:
    said = 'failed to parse percentage "%s" for "memory" resource: %s' % (text, fault)
    assert told({"qosReserved": {"memory": text}}) == [("qosReserved.memory", QOS, said)]


TEXTS = st.text(max_size=30) | st.text(alphabet="0123456789.%+-eEKMGTPikmnu", max_size=12)


@given(st.dictionaries(TEXTS | st.sampled_from(["cpu", "memory", "pid"]), TEXTS), TEXTS, TEXTS)
def test_any_texts_are_read_or_refused(amounts: dict[str, str], threshold: str, cpus: str) -> None:
    values = {
        "kubeReserved": amounts,
        "systemReserved": amounts,
        "evictionHard": {"memory.available": threshold},
        "qosReserved": {"memory": threshold},
        "reservedSystemCPUs": cpus,
    }
    reservations = read(values)
    reservations.memory()
    list(reservations.node_allocatable(with_cpus=True))
