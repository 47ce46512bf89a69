# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import Counts
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.verdict import (
    Account,
    Exclusive,
    Runner,
    RunnerShare,
    rows,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.samples import OWN, sample

MINE = Runner("container", "shop/db/server", OWN)
OTHER = Runner("container", "shop/web/app", "cd" * 32)
THREAD = Runner("kernel thread", "kworker/1:1-events")
ME = Runner("observer", "python")
EXCLUSIVE = Exclusive("uid", "shop/db", "server", CPUSet((1, 2)), frozenset((OWN,)))


def account(parts: Mapping[Runner, float] | None = None, **more: float) -> Account:
    fields = {"unattributed": 0.0, "idle": 1.0, "irq": 0.0, "softirq": 0.0, "steal": 0.0, **more}
    return Account({owner: RunnerShare(share, True) for owner, share in (parts or {}).items()}, **fields)


def judged(*found: Account, threshold: float = 0.01, **more: Any) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return the row of the container on CPUs 1, 2, ... with these accounts, and the findings."""
    (row,), findings = rows([EXCLUSIVE], dict(enumerate(found, 1)), sample(**more), threshold)
    return row, findings


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (account(), account(), "idle"),
        (account({MINE: 0.9}), account(), "alone"),
        (account({MINE: 0.009}), account({MINE: 0.002}), "idle"),
        (account({MINE: 0.9, THREAD: 0.009}), account(), "alone"),
        (account({MINE: 0.9, THREAD: 0.01}), account(), "disturbed"),
        (account({OTHER: 0.01}), account(), "disturbed"),
        # One who takes as much, but here and there.
        (account({OTHER: 0.006}), account({OTHER: 0.006}), "disturbed"),
        # Some who take as much of one CPU together.
        (account({OTHER: 0.006, THREAD: 0.006}), account(), "disturbed"),
        (account({OTHER: 0.006}), account({THREAD: 0.006}), "idle"),
        (account({ME: 0.5}), account(), "idle"),
        (account(softirq=0.02), account(), "disturbed"),
        (account(irq=0.005, softirq=0.006), account(), "disturbed"),
        (account(softirq=0.009), account(softirq=0.009), "idle"),
        (account(steal=0.02), account({MINE: 1.0}), "disturbed"),
        # Within what the sources may differ by.
        (account(unattributed=0.0115), account(), "idle"),
        (account(unattributed=0.0125), account(), "disturbed"),
    ],
)
def test_verdicts(first: Account, second: Account, verdict: str) -> None:
    row, findings = judged(first, second)
    assert row["verdict"] == verdict
    assert len(findings) == (verdict == "disturbed")


def test_one_tick_in_a_short_sample_is_no_disturbance() -> None:
    assert judged(account(softirq=0.01), account(), elapsed=1.0)[0]["verdict"] == "idle"
    assert judged(account(softirq=0.02), account(), elapsed=1.0)[0]["verdict"] == "disturbed"


def test_the_threshold_is_an_option() -> None:
    assert judged(account({OTHER: 0.04}), account(), threshold=0.05)[0]["verdict"] == "idle"
    assert judged(account({OTHER: 0.06}), account(), threshold=0.05)[0]["verdict"] == "disturbed"


def test_numbers_of_a_row() -> None:
    row, _findings = judged(
        account({MINE: 0.9, THREAD: 0.1}),
        account({MINE: 0.5}, softirq=0.04),
        interrupts=Counts({1: {"LOC": 5}, 2: {"LOC": 7, "9 eth0": 1}, 0: {"LOC": 100}}, ()),
        softirqs=Counts({2: {"NET_RX": 50}}, ()),
    )
    assert (row["own_percent"], row["foreign_percent"], row["interrupts"]) == (70.0, 7.0, 13)
    assert row["by"] == [
        {
            "kind": "kernel thread",
            "name": "kworker/1:1-events",
            "cpus": "1",
            "percent": 10.0,
            "seconds": 1.0,
            "sure": True,
            "disturbs": True,
        },
        {
            "kind": "interrupts",
            "name": "50 NET_RX, 7 LOC, 1 9 eth0",
            "cpus": "2",
            "percent": 4.0,
            "seconds": 0.4,
            "sure": True,
            "disturbs": True,
        },
    ]


def test_a_finding_names_each_and_what_to_do() -> None:
    service = Runner("cgroup", "system.slice/a.service")
    _row, (finding,) = judged(account({OTHER: 0.5, service: 0.2, THREAD: 0.001}, steal=0.03), account())
    assert (finding["check"], finding["subject"], finding["wanted"]) == (
        "exclusive-cpus-disturbed",
        "shop/db/server",
        "CPUs 1-2 for itself",
    )
    assert finding["found"].startswith("in 10.0 s: container shop/web/app: 50.0 % of a CPU, on CPUs 1; ")
    # Beside large ones, the least disturbs nobody.
    assert "kworker" not in finding["found"]
    for word in ("playbook repair", "AllowedCPUs=", "hypervisor"):
        assert word in finding["remedy"]
    assert "isolcpus=" not in finding["remedy"]
    assert "smp_affinity" not in finding["remedy"]


def test_a_crowd_is_cut() -> None:
    crowd = {Runner("process", "p%d" % number): 0.02 for number in range(20)}
    row, (finding,) = judged(account(crowd), account())
    assert len(row["by"]) == 20
    assert finding["found"].endswith("; and 12 more")


def test_below_the_threshold_some_are_shown() -> None:
    many = {Runner("process", "p%d" % number): 0.0001 for number in range(20)}
    assert len(judged(account(many), account())[0]["by"]) == 8


def test_cpus_that_were_not_measured() -> None:
    row, findings = judged(account({MINE: 0.5}))
    assert (row["verdict"], row["own_percent"], row["cpus"], findings) == ("alone", 50.0, "1-2", [])
    (row,), _findings = rows([EXCLUSIVE], {}, sample(), 0.01)
    assert row["verdict"] == "idle"


def test_a_pod_without_a_name() -> None:
    assert EXCLUSIVE._replace(pod="").subject() == "uid/server"
    assert EXCLUSIVE._replace(container="").subject() == "shop/db"
