# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS, NOTE
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import LOOKS as NAMES
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.looks import (
    MOST_ROWS,
    arguments_of,
    check_seconds,
    kept,
    module_of,
    shown_looks,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import (
    CLEAN_ANSWER,
    LOOKS,
    MADE,
    check_report,
    json_values,
    result,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import looks as any_looks

MODULES = Path(__file__).parents[5] / "plugins" / "modules"


def report_of(looks: Any, answer: Any = None) -> Any:
    return assemble([result("a", CLEAN_ANSWER if answer is None else answer, looks=looks)], ReportTerms("T", MADE))


@pytest.mark.parametrize("look", NAMES)
def test_each_look_has_a_module_and_a_note_for_what_was_not_measured(look: str) -> None:
    prefix, _dot, name = module_of(look).rpartition(".")
    assert prefix == "kubenode.cpu_manager"
    assert (MODULES / (name + ".py")).is_file()
    unmeasured = CHECKS[look + "-unmeasured"]
    assert (unmeasured.severity, unmeasured.look) == (NOTE, look)
    assert {check.look for check in CHECKS.values()} == {"", *NAMES}


@pytest.mark.parametrize(
    ("looks", "seconds", "said"),
    [
        (["isolation"], 0, "0 seconds are no time for isolation; give 1 to 3600"),
        (["throttling", "isolation"], 0, "0 seconds are no time for isolation; give 1 to 3600"),
        (["throttling"], -1, "-1 seconds are no time for throttling; give 0 to 3600"),
        (["throttling"], 3601, "3601 seconds are no time for throttling; give 0 to 3600"),
        (["isolation"], 1, ""),
        (["throttling"], 0, ""),
        (["housekeeping"], 0, ""),
        (["cache"], 0, ""),
        (["impact"], 0, ""),
        (["housekeeping"], -1, "-1 seconds are no time for housekeeping; give 0 to 3600"),
        (["throttling", "isolation"], 3600, ""),
        # Nobody looks.
        ([], -1, ""),
    ],
)
def test_how_long_a_look_may_be(looks: list[str], seconds: int, said: str) -> None:
    if not said:
        check_seconds(looks, seconds, "look_seconds")
        return
    with pytest.raises(InputError) as error:
        check_seconds(looks, seconds, "look_seconds")
    assert str(error.value) == "look_seconds: " + said


def test_what_the_module_of_a_look_is_given() -> None:
    wanted = {"reserved_system_cpus": "0-1", "cpu_manager_policy": "static", "root": "/"}
    assert arguments_of("isolation", wanted, 5, True) == {"seconds": 5, "hide_names": True}
    assert arguments_of("throttling", wanted, 0, False) == {"seconds": 0, "hide_names": False}
    assert arguments_of("cache", wanted, 5, True) == {"seconds": 5, "hide_names": True}
    devices = [{"resource": "x.com/gpu", "count": 1}]
    assert arguments_of("impact", wanted, 5, True, devices=devices) == {"devices": devices, "pods": False}
    assert arguments_of("impact", wanted, 5, True, tells=True) == {"devices": [], "pods": True}
    assert arguments_of("housekeeping", wanted, 5, True) == {"reserved_system_cpus": "0-1"}
    assert arguments_of("housekeeping", {"reservation": {"count": 2}}, 5, True) == {"reservation": {"count": 2}}
    # What is wanted is for a rollout to try.
    assert arguments_of("trial", wanted, 5, True) == {}
    assert arguments_of("trial", wanted, 5, True, "/opt/kubelet") == {"program": "/opt/kubelet"}


# --- what a file has ----------------------------------------------------------------------------------


def test_a_file_has_the_answer_without_what_is_of_ansible_and_what_is_much() -> None:
    more = {"invocation": {"token": "secret"}, "changed": False, "_ansible_parsed": True, "cpus": [{"cpu": 0}]}
    assert kept("isolation", {**LOOKS["isolation"], **more}) == LOOKS["isolation"]
    assert kept("throttling", {**LOOKS["throttling"], **more}) == {**LOOKS["throttling"], "cpus": more["cpus"]}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"unreachable": True, "msg": "no route"}, "no route"),
        ({"unreachable": True}, "the node could not be reached"),
        ({"failed": True, "msg": "no root"}, "no root"),
        (["x"], "the answer of the node is not a mapping"),
        (
            {"notes": ["x" * (5 << 20)]},
            "the answer of the node cannot be written: it has 5242895 characters, more than that of any real node",
        ),
        ({"seconds": float("nan")}, "the answer of the node cannot be written: "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_there_is_a_reason_where_there_is_no_answer(answer: Any, message: str) -> None:
    found = kept("isolation", answer)
    assert found["failed"] is True
    assert found["msg"].startswith(message)


@given(json_values)
def test_any_answer_becomes_plain_data(answer: Any) -> None:
    found = kept("isolation", answer)
    assert json.loads(json.dumps(found)) == found


# --- what a report has --------------------------------------------------------------------------------


def test_what_a_report_shows_of_isolation() -> None:
    assert shown_looks(LOOKS)["isolation"] == {
        "is_measured": True,
        "seconds": 5.002,
        "containers": [
            {
                "container": "shop/db-0/server",
                "cpus": "1",
                "verdict": "disturbed",
                "own_percent": 93.1,
                "foreign_percent": 6.4,
                "by": ["kernel thread kworker/1:1-events 6.4 %"],
            },
            {
                "container": "7a",
                "cpus": "2",
                "verdict": "idle",
                "own_percent": None,
                "foreign_percent": None,
                "by": [],
            },
        ],
        "left_out": 0,
    }


def test_what_a_report_shows_of_throttling() -> None:
    look = shown_looks(LOOKS)["throttling"]
    assert (look["is_measured"], look["seconds"], look["left_out"]) == (True, None, 0)
    # Without the one that has no limit.
    assert look["containers"] == [
        {
            "container": "shop/web-1/app",
            "exclusive": "",
            "limit_cpus": 0.5,
            "quota_us": 50000,
            "period_us": 100000,
            "limit_of": "container",
            "throttled_percent": 40.0,
        },
        {
            "container": "shop/db-0/server",
            "exclusive": "1",
            "limit_cpus": 1.0,
            "quota_us": 100000,
            "period_us": 100000,
            "limit_of": "pod",
            "throttled_percent": None,
        },
    ]


def test_what_a_report_shows_of_housekeeping() -> None:
    assert shown_looks(LOOKS)["housekeeping"] == {
        "is_measured": True,
        "reserved": "0-1",
        "layers": [
            {
                "layer": "interrupts",
                "settings": 2,
                "to_change": 1,
                "fixed": 1,
                "examples": ["24 eth0-0: 0-7"],
            },
            {
                "layer": "slices",
                "settings": 1,
                "to_change": 1,
                "fixed": 0,
                "examples": ["system.slice: no limit"],
            },
        ],
    }


def test_what_a_report_shows_of_caches() -> None:
    assert shown_looks(LOOKS)["cache"] == {
        "is_measured": True,
        "exclusive": "4-6",
        "groups": [
            {
                "group": "kubenode.exclusive",
                "owner": "ours",
                "mode": "shareable",
                "cpus": "4-5",
                "ways": "L3 0: f, 1: f",
                "processes": 0,
                "occupancy": 5120,
            },
            {
                "group": "/",
                "owner": "root",
                "mode": "shareable",
                "cpus": "0-3,7",
                "ways": "L3 0: 7f0, 1: 7f0",
                "processes": 0,
                "occupancy": None,
            },
        ],
        "left_out": 0,
    }


def test_what_becomes_of_the_pods() -> None:
    """Who stays as it is, is not shown."""
    nothing = dict.fromkeys(("reason", "message", "cure", "inexact"), "")
    assert shown_looks(LOOKS)["impact"] == {
        "is_measured": True,
        "changes": True,
        "afterwards": {"exclusive": 2, "allocatable": 10, "stranded": 0, "shared": 14},
        "workloads": [
            {
                "workload": "ReplicaSet shop/db-6c9f",
                "fate": "refused",
                "pods": 2,
                "refused": 2,
                "reason": "SMTAlignmentError",
                "message": "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
                "cure": "ask for 4 CPUs instead of 3",
                "inexact": "",
            },
            {"workload": "StatefulSet shop/queue", "fate": "gains", "pods": 1, "refused": 0, **nothing},
        ],
        "left_out": 0,
    }


def test_what_a_report_shows_of_a_trial() -> None:
    assert shown_looks(LOOKS)["trial"] == {
        "is_measured": True,
        "seconds": 0.3,
        "trials": [
            {
                "kubelet": "/usr/local/bin/kubelet-1.37",
                "version": "1.37.0",
                "starts": False,
                "message": "unknown flag: --x",
                "checkpoint": "2 -> 4",
                "differs": True,
            }
        ],
    }
    own = {"starts": True, "program": None, "checkpoint_format": {"before": None, "after": 2}}
    (row,) = shown_looks({"trial": {**LOOKS["trial"], **own}})["trial"]["trials"]
    assert (row["kubelet"], row["starts"], row["checkpoint"]) == ("its own", True, "none -> 2")


@pytest.mark.parametrize(
    ("look", "parts", "is_measured"),
    [
        ("isolation", {}, True),
        ("isolation", {"seconds": 0.0}, False),
        ("isolation", {"seconds": None}, False),
        ("isolation", {"failed": True}, False),
        ("throttling", {}, True),
        # Of a saved node: the quotas are known.
        ("throttling", {"seconds": 0.0}, True),
        ("throttling", {"hierarchy": None}, False),
        ("throttling", {"failed": True}, False),
        ("housekeeping", {}, True),
        ("housekeeping", {"reserved": ""}, False),
        ("housekeeping", {"failed": True}, False),
        ("cache", {}, True),
        ("cache", {"mounted": False}, True),
        ("cache", {"mounted": False, "partition": None}, False),
        ("cache", {"failed": True}, False),
        ("impact", {}, True),
        ("impact", {"node": None}, False),
        ("impact", {"failed": True}, False),
        ("trial", {}, True),
        ("trial", {"starts": None}, False),
        ("trial", {"failed": True}, False),
    ],
    ids=str,
)
def test_whether_anything_is_known(look: str, parts: Any, is_measured: bool) -> None:
    assert shown_looks({look: {**LOOKS[look], **parts}})[look]["is_measured"] is is_measured


def test_the_worst_of_many_containers_are_shown() -> None:
    alone = [{"container": "c%02d" % number, "verdict": "alone", "foreign_percent": 50} for number in range(30)]
    containers = [*alone, {"container": "last", "verdict": "disturbed", "foreign_percent": 2}]
    look = shown_looks({"isolation": {**LOOKS["isolation"], "containers": containers}})["isolation"]
    assert [row["container"] for row in look["containers"]] == ["last", *("c%02d" % number for number in range(19))]
    assert (len(look["containers"]), look["left_out"]) == (MOST_ROWS, 11)


def test_a_report_has_looks_only_where_there_were_some() -> None:
    assert "looks" not in report_of({})["nodes"][0]
    assert "looks" not in report_of(LOOKS, {"status": "no kubelet"})["nodes"][0]
    report = report_of(LOOKS)
    check_report(report)
    (node,) = report["nodes"]
    assert list(node["looks"]) == list(NAMES)
    assert (node["state"], report["summary"]["exit_status"]) == ("drift", 2)


@given(any_looks)
def test_any_look_can_be_shown(looks: Any) -> None:
    check_report(report_of(looks))
