# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.surroundings import (
    CONTEXT,
    creation_findings,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.start.check_cases import host

MACHINE = host()
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
LOGS = "failed to initialize container log manager: failed to parse container log max size "
NO_SYSCTL = (
    r'sysctl "%s" must have at most 253 characters and match regex'
    r" ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]"
)
NOT_NAMESPACED = 'the sysctls "%s" are not known to be namespaced'


def found(values: dict[str, Any], machine: Host = MACHINE) -> list[tuple[str, str]]:
    findings = list(creation_findings(values, machine))
    for finding in findings:
        assert finding.fatal
        assert finding.context == CONTEXT == "failed to create kubelet: "
        assert finding.cause
        assert finding.remedy
    return [(finding.where, finding.text) for finding in findings]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"evictionSoft": None, "evictionSoftGracePeriod": None, "evictionMinimumReclaim": None},
        {"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": "1m"}},
        {"evictionMinimumReclaim": {"imagefs.available": "2Gi"}},
        {"containerLogMaxSize": ""},
        {"containerLogMaxSize": None},
        {"allowedUnsafeSysctls": None},
        {"allowedUnsafeSysctls": []},
    ],
)
def test_fine(values: dict[str, Any]) -> None:
    assert found(values) == []


SOFT = "evictionSoft.memory.available"
PERIOD = "evictionSoftGracePeriod.memory.available"
RECLAIM = "evictionMinimumReclaim.memory.available"


@pytest.mark.parametrize(
    ("values", "where", "text"),
    [
        (
            {"evictionSoft": {"memory.available": "5%"}},
            PERIOD,
            "grace period must be specified for the soft eviction threshold memory.available",
        ),
        (
            {
                "evictionSoft": {"memory.available": "101%"},
                "evictionSoftGracePeriod": {"memory.available": "1m"},
            },
            SOFT,
            "eviction percentage threshold memory.available must be <= 100%: 101%",
        ),
        (
            {"evictionSoft": {"memory.available": "5%"}, "evictionSoftGracePeriod": {"memory.available": "1"}},
            PERIOD,
            'time: missing unit in duration "1"',
        ),
        (
            {
                "evictionSoft": {"memory.available": "5%"},
                "evictionSoftGracePeriod": {"memory.available": "1m"},
                "evictionMinimumReclaim": {"memory.available": "-1"},
            },
            RECLAIM,
            "negative eviction minimum reclaim specified for memory.available",
        ),
        ({"evictionMinimumReclaim": {"foo": "1"}}, "evictionMinimumReclaim.foo", "unsupported eviction signal foo"),
    ],
)
def test_soft_eviction(values: dict[str, Any], where: str, text: str) -> None:
    assert found(values) == [(where, text)]


def test_signals_of_the_version() -> None:
    values = {"evictionMinimumReclaim": {"containerfs.available": "1Gi"}}
    assert found(values, MACHINE._replace(minor=29)) == []
    assert found(values, MACHINE._replace(minor=28)) == [
        ("evictionMinimumReclaim.containerfs.available", "unsupported eviction signal containerfs.available")
    ]


@pytest.mark.parametrize(
    ("files", "minor", "is_refused"), [(1, 32, True), (0, 29, True), (2, 32, False), (1, 33, False)]
)
def test_older_kubelets_count_the_files_of_logs_late(files: int, minor: int, is_refused: bool) -> None:
    text = "failed to initialize container log manager: invalid MaxFiles %d, must be > 1" % files
    expected = [("containerLogMaxFiles", text)] if is_refused else []
    assert found({"containerLogMaxFiles": files}, MACHINE._replace(minor=minor)) == expected


@pytest.mark.parametrize("size", ["10Mi", "0", "-1", "-10Mi", "1e6", "5k", "9E", "+3", "1.Gi", "Mi", "99Ti"])
def test_sizes_of_logs(size: str) -> None:
    assert found({"containerLogMaxSize": size}) == []


@pytest.mark.parametrize(
    ("size", "text"),
    [
        ("x", '"x": ' + NO_QUANTITY),
        (" 10Mi", '" 10Mi": ' + NO_QUANTITY),
        ("10MB", '"10MB": ' + NO_QUANTITY),
        ("10mi", '"10mi": unable to parse quantity\'s suffix'),
        ("Pi", '"Pi": unable to parse numeric part of quantity'),
        # Go has no whole number of these at hand.
        ("1.5Gi", '"1.5Gi": invalid max log size'),
        ("1.0", '"1.0": invalid max log size'),
        ("1000m", '"1000m": invalid max log size'),
        ("500m", '"500m": invalid max log size'),
        ("100Ti", '"100Ti": invalid max log size'),
        ("10E", '"10E": invalid max log size'),
        ("9223372036854775808", '"9223372036854775808": invalid max log size'),
    ],
)
def test_no_sizes_of_logs(size: str, text: str) -> None:
    assert found({"containerLogMaxSize": size}) == [("containerLogMaxSize", LOGS + text)]


@pytest.mark.parametrize(
    "sysctl",
    [
        "kernel.sem",
        "kernel.sem*",
        "kernel.shm*",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.msg*",
        "kernel.msgmax*",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel/msgmax",
        "fs.mqueue.*",
        "fs.mqueue.msg_max",
        "fs/mqueue/msg_max",
        "net.*",
        "net.core.somaxconn",
        "net/ipv4/conf/eth0.100/forwarding",
        "net.ipv4.conf.a-b.c_d",
        "net." + "a" * 249,
    ],
)
def test_sysctls(sysctl: str) -> None:
    assert found({"allowedUnsafeSysctls": [sysctl]}) == []


@pytest.mark.parametrize(
    ("sysctl", "text"),
    [
        # What stands before the star.
        ("foo*", NOT_NAMESPACED % "foo"),
        ("*", NOT_NAMESPACED % ""),
        ("net*", NOT_NAMESPACED % "net"),
        ("net", NOT_NAMESPACED % "net"),
        ("fs.mqueue*", NOT_NAMESPACED % "fs.mqueue"),
        ("vm.nr_hugepages", NOT_NAMESPACED % "vm.nr_hugepages"),
        ("vm/nr_hugepages", NOT_NAMESPACED % "vm.nr_hugepages"),
        ("vm/a.b", NOT_NAMESPACED % "vm.a/b"),
        ("vm.a/b", NOT_NAMESPACED % "vm.a/b"),
        ("kernel.shmx", NOT_NAMESPACED % "kernel.shmx"),
        ("kernel.sh*", NOT_NAMESPACED % "kernel.sh"),
        ("kernel.msgm*", NOT_NAMESPACED % "kernel.msgm"),
        ("", NO_SYSCTL % ""),
        ("a b", NO_SYSCTL % "a b"),
        ("Net.core", NO_SYSCTL % "Net.core"),
        ("net..core", NO_SYSCTL % "net..core"),
        (".net", NO_SYSCTL % ".net"),
        ("net.", NO_SYSCTL % "net."),
        ("net.-a", NO_SYSCTL % "net.-a"),
        ("net.a-", NO_SYSCTL % "net.a-"),
        ("net.*.a", NO_SYSCTL % "net.*.a"),
        ("*a", NO_SYSCTL % "*a"),
        ("**", NO_SYSCTL % "**"),
        ("net.core\n", NO_SYSCTL % r"net.core\n"),
        ("net.\u00e9", NO_SYSCTL % "net.\u00e9"),
        ("net." + "a" * 250, NO_SYSCTL % ("net." + "a" * 250)),
    ],
)
def test_no_sysctls(sysctl: str, text: str) -> None:
    assert found({"allowedUnsafeSysctls": [sysctl]}) == [("allowedUnsafeSysctls", text)]


def test_all_is_told_in_the_order_of_the_kubelet() -> None:
    values = {
        "allowedUnsafeSysctls": ["foo", "net.*", "bar*"],
        "containerLogMaxSize": "x",
        "evictionSoft": {"memory.available": "5%"},
    }
    assert [where for where, _text in found(values)] == [
        PERIOD,
        "containerLogMaxSize",
        "allowedUnsafeSysctls",
        "allowedUnsafeSysctls",
    ]


@given(st.text() | st.text(alphabet="ab0-_./*", max_size=300))
def test_any_text_is_a_sysctl_or_refused(text: str) -> None:
    findings = found({"allowedUnsafeSysctls": [text]})
    assert len(findings) == (not text.startswith(("net.", "net/")) or " must have " in str(findings))
