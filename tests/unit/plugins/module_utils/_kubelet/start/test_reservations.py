# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which reservations the kubelet refuses, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.amount import Amount
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import host
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.reserved import (
    KUBE,
    NO_QUANTITY,
    QOS,
    SYSTEM,
    read,
    told,
)


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
