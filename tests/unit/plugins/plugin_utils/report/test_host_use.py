# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/report/host_use.py: is what is reserved what the host uses?"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.host_use import (
    Reading,
    ReservedAmounts,
    means_of,
    reserved_memory,
    verdicts_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.markdown import json_form
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.trend import (
    read_history,
    reservations,
    verdicts,
)
from ansible_collections.kubenode.cpu_manager.tests.docs.pages import GUIDES
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import CLEAN_ANSWER, LOOKED_AT, MADE

DAY = 86400
US = 10**6
GIB = 1 << 30


def reading(day: float, used: float = 0.0, **more: Any) -> Any:
    """Return a reading after so many days, in which the host used so many CPUs on average."""
    pods = int(9 * day * DAY * US)
    found = {"boot": "a", "uptime": day * DAY, "total_us": pods + int(used * day * DAY * US), "pods_us": pods}
    reserved = {"cpus": 48, "reserved": 4, "reserved_memory_bytes": None}
    return {**found, "pressure_us": None, "memory_bytes": None, **reserved, **more}


def made(day: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(MADE + day * DAY))


def daily(used: float, days: int, waited: float | None = None) -> list[Reading]:
    pressure = [None if waited is None else int(waited * day * DAY * US) for day in range(days + 1)]
    return [Reading(made(day), reading(day, used, pressure_us=pressure[day])) for day in range(days + 1)]


def of_memory(*sizes: float | None, **more: Any) -> list[Reading]:
    """Return one reading a day, with so many GiB."""
    return [
        Reading(made(day), reading(day, memory_bytes=None if size is None else int(size * GIB), **more))
        for day, size in enumerate(sizes)
    ]


MEANS = " (means of up to 24.0 hours: shorter peaks are not seen)"
VERDICTS: list[tuple[list[Reading], str]] = [
    (
        daily(2.6, 14),
        "reserves 4 CPUs, the host used 2.6 in the busiest of 14 intervals over 14.0 days; enough" + MEANS,
    ),
    (
        daily(5.2, 2),
        "reserves 4 CPUs, the host used 5.2 in the busiest of 2 intervals over 2.0 days; too small" + MEANS,
    ),
    (
        daily(2.6, 2, waited=0.3),
        (
            "reserves 4 CPUs, the host used 2.6 in the busiest of 2 intervals over 2.0 days; too small: something"
            " waited for a CPU in 30 % of the time"
        )
        + MEANS,
    ),
    (
        daily(0.5, 14),
        (
            "reserves 4 CPUs, the host used 0.5 in the busiest of 14 intervals over 14.0 days; more than enough: 3.5 of"
            " them idle since %s, the first report" % made(0)[:10]
        )
        + MEANS,
    ),
    # Once they were needed.
    (
        [*daily(2.6, 3), *(Reading(made(day), reading(day, 2.6 * 3 / day)) for day in range(4, 12))],
        (
            "reserves 4 CPUs, the host used 2.6 in the busiest of 11 intervals over 11.0 days; more than enough: 4.0 of"
            " them idle since %s" % made(3)[:10]
        )
        + MEANS,
    ),
    # A few samples do not say that it is more than enough.
    (daily(0.5, 3), "reserves 4 CPUs, the host used 0.5 in the busiest of 3 intervals over 3.0 days; enough" + MEANS),
    (
        daily(2.6, 120),
        "reserves 4 CPUs, the host used 2.6 at the 99th per cent of 120 intervals over 120.0 days; enough" + MEANS,
    ),
    (
        daily(2.6, 0),
        "reserves 4 CPUs; what the host uses takes two reports of one boot with the look throttling: not known",
    ),
]


@pytest.mark.parametrize(("readings", "text"), VERDICTS)
def test_what_is_said_of_a_reservation(readings: list[Any], text: str) -> None:
    assert verdicts_of(readings, ReservedAmounts(4, None)) == [text]


LOOKS = " (between two looks nothing is seen)"
OF_MEMORY: list[tuple[list[Reading], float, str]] = [
    (of_memory(1.5), 1, "1.50 GiB in the fullest of 1 look over 0 minutes; too small"),
    (of_memory(0.5), 1, "0.50 GiB in the fullest of 1 look over 0 minutes; enough"),
    (of_memory(0.5, 0.9, 0.7), 1, "0.90 GiB in the fullest of 3 looks over 2.0 days; enough"),
    (of_memory(0.5, None, 0.7), 1, "0.70 GiB in the fullest of 2 looks over 24.0 hours; enough"),
    # A few samples do not say that it is more than enough.
    (of_memory(*[0.1] * 7), 1, "0.10 GiB in the fullest of 7 looks over 6.0 days; enough"),
    (
        of_memory(*[0.1] * 9),
        1,
        "0.10 GiB in the fullest of 9 looks over 8.0 days; more than enough: 0.90 GiB of it idle since %s, the first"
        " report" % made(0)[:10],
    ),
    (
        of_memory(0.8, 0.9, *[0.1] * 9, 0.2),
        1,
        "0.90 GiB in the fullest of 12 looks over 11.0 days; more than enough: 0.80 GiB of it idle since %s"
        % made(2)[:10],
    ),
    # One look of a hundred is not the rule.
    (of_memory(*[0.5] * 99, 7), 1, "0.50 GiB at the 99th per cent of 100 looks over 99.0 days; enough"),
    (of_memory(0.5), 0, "0.50 GiB in the fullest of 1 look over 0 minutes; too small"),
]


@pytest.mark.parametrize(("readings", "reserved", "text"), OF_MEMORY)
def test_what_is_said_of_reserved_memory(readings: list[Reading], reserved: float, text: str) -> None:
    said = verdicts_of(readings, ReservedAmounts(4, int(reserved * GIB)))[1:]
    assert said == ["reserves %.2f GiB of memory, the host used %s" % (reserved, text) + LOOKS]


def test_memory_after_a_boot_is_a_look_and_a_report_that_was_written_twice_is_not() -> None:
    before, after = reading(3, memory_bytes=GIB), reading(0.5, boot="b", memory_bytes=GIB // 2)
    readings = [Reading(made(0), before), Reading(made(1), before), Reading(made(2), after)]
    (said,) = verdicts_of(readings, ReservedAmounts(4, 2 * GIB))[1:]
    assert "1.00 GiB in the fullest of 2 looks over 0 minutes; enough" in said


def test_memory_that_is_not_known_is_not_judged() -> None:
    for readings, reserved in ((of_memory(None), GIB), (of_memory(1), None)):
        assert len(verdicts_of(readings, ReservedAmounts(4, reserved))) == 1


@pytest.mark.parametrize(
    ("settings", "memory"),
    [
        ([{"kube_reserved_memory": "1Gi", "system_reserved_memory": "512Mi"}], 3 * GIB // 2),
        ([{"kube_reserved_memory": "0", "system_reserved_memory": "0"}], 0),
        # What is wanted instead.
        ([{"kube_reserved_memory": "1Gi", "system_reserved_memory": "1Gi"}, {"kube_reserved_memory": "2Gi"}], 3 * GIB),
        ([{"kube_reserved_memory": "1Gi"}, {"kube_reserved_memory": None}], GIB),
        ([None], None),
        ([{"cpu_manager_policy": "none"}], None),
        ([{"kube_reserved_memory": "much"}], None),
        ([{"kube_reserved_memory": ["1Gi"]}], None),
        ([{"kube_reserved_memory": float("nan")}], None),
        ([{"kube_reserved_memory": "-1Gi"}], None),
        ([{"kube_reserved_memory": "9" * 10**6}], None),
        ([{"kube_reserved_memory": "1e999"}], None),
    ],
)
def test_the_memory_that_a_node_reserves(settings: list[Any], memory: int | None) -> None:
    assert reserved_memory(*settings) == memory


@pytest.mark.parametrize(
    "after",
    [
        {"boot": "b"},
        {"uptime": 1},  # a clock that goes backwards
        {"total_us": 5},
        {"pods_us": 5},  # the cgroup of all pods was made anew
        {"total_us": 1 << 61},  # more than the node has
    ],
)
def test_counters_of_which_no_rate_follows(after: Any) -> None:
    changed: Any = dict(reading(2, 2), **after)
    assert list(means_of([Reading(made(1), reading(1, 2)), Reading(made(2), changed)])) == []


def report(day: float, used: float, **more: Any) -> Any:
    counters: dict[str, Any] = {**reading(day, used), **more}
    cpus, found = {"online": "0-47", "reserved": "0-1,24-25"}, {"kube_reserved_memory": "1Gi"}
    answer: Any = {**CLEAN_ANSWER, "cpus": cpus, "found": {**CLEAN_ANSWER["found"], **found}}
    looks = {"throttling": {"containers": [], "host": counters}}
    return assemble([Result("worker-1", LOOKED_AT, answer, {}, [], looks)], ReportTerms("", MADE + day * DAY))


def test_two_reports_of_a_node_give_a_rate(tmp_path: Path) -> None:
    (tmp_path / "drift.json").write_text("".join(json_form(report(1, 2.6))), encoding="utf-8")
    said = reservations(report(2, 2.6), read_history([str(tmp_path)], ""))
    assert (
        said
        == "worker-1: reserves 4 CPUs, the host used 2.6 in the busiest of 1 interval over 24.0 hours; enough" + MEANS
    )


# (node, its reservation, what was measured) of a real machine of two CPUs with cgroups of v1, and of a virtual one of
# six with v2: a process computed in a pod, and others beside it.
MEASURED = [
    (
        ("worker-1", ReservedAmounts(1, 6 * GIB)),
        {"uptime": 49293.35, "total_us": 65784194573, "pods_us": 1871926, "memory_bytes": 4926795776, "cpus": 2},
        {"uptime": 49604.23, "total_us": 66404899508, "pods_us": 52872487, "memory_bytes": 5097529344, "cpus": 2},
    ),
    (
        ("worker-2", ReservedAmounts(2, 384 << 20)),
        {"uptime": 524.4, "total_us": 369132000, "pods_us": 71466745, "memory_bytes": 276738048, "cpus": 6},
        {"uptime": 846.08, "total_us": 620436000, "pods_us": 154644959, "memory_bytes": 293736448, "cpus": 6},
    ),
]


@pytest.mark.parametrize(("node", "before", "after"), MEASURED)
def test_the_sample_of_the_guide_is_what_was_measured(
    node: tuple[str, ReservedAmounts], before: dict[str, Any], after: dict[str, Any]
) -> None:
    host, reserved = node
    guide = (GUIDES / "reserve_cpus.rst").read_text("utf-8").splitlines()
    for said in verdicts_of([Reading(made(0), reading(0, **counters)) for counters in (before, after)], reserved):
        assert "   %s: %s" % (host, said) in guide


def test_two_reports_of_a_node_judge_its_memory(tmp_path: Path) -> None:
    (tmp_path / "drift.json").write_text("".join(json_form(report(1, 2.6, memory_bytes=GIB // 2))), encoding="utf-8")
    said = reservations(report(2, 2.6, memory_bytes=5 * GIB // 4), read_history([str(tmp_path)], "")).splitlines()
    assert said[1] == (
        "worker-1: reserves 1.00 GiB of memory, the host used 1.25 GiB in the fullest of 2 looks over 24.0 hours;"
        " too small" + LOOKS
    )


def test_what_is_proposed_is_compared_with_what_was_used(tmp_path: Path) -> None:
    """The last report has what was reserved then."""
    for day in (1, 2):
        (tmp_path / ("%d.json" % day)).write_text("".join(json_form(report(day, 2.6))), encoding="utf-8")
    points = read_history([str(tmp_path / "1.json"), str(tmp_path / "2.json")], "")
    said = verdicts(points, {"worker-1": ReservedAmounts(2, GIB), "worker-2": ReservedAmounts(4, GIB)})
    assert said == [
        "worker-1: reserves 2 CPUs, the host used 2.6 in the busiest of 1 interval over 24.0 hours; too small" + MEANS
    ]
    assert verdicts([], {"worker-1": ReservedAmounts(2, GIB)}) == []


HOSTILE: list[dict[str, Any]] = [
    {"boot": 5, "uptime": "x"},
    {"uptime": float("inf")},
    {"total_us": -1},
    {"pods_us": True},
    {"total_us": 10**400},
    {"uptime": None},
    {"uptime": float("nan")},
]


@pytest.mark.parametrize("more", HOSTILE)
def test_counters_that_cannot_be_are_left_out(tmp_path: Path, more: dict[str, Any]) -> None:
    looked_at = report(2, 2, **more)
    assert "host_use" not in looked_at["nodes"][0]
    assert reservations(looked_at, []).startswith("no node was looked at")
    # A report that somebody has edited.
    whole = json.loads("".join(json_form(report(1, 2))))
    whole["nodes"][0]["host_use"].update(more)
    (tmp_path / "drift.json").write_text(json.dumps(whole).replace("Infinity", "1e999"), encoding="utf-8")
    assert "not known" in reservations(report(2, 2), read_history([str(tmp_path)], ""))


@pytest.mark.parametrize("size", [-1, True, "1", float("nan"), float("inf"), 10**400, [1]])
def test_memory_that_cannot_be_is_not_judged(tmp_path: Path, size: object) -> None:
    whole = json.loads("".join(json_form(report(1, 2, memory_bytes=GIB))))
    for name in ("memory_bytes", "reserved_memory_bytes"):
        whole["nodes"][0]["host_use"][name] = size
    (tmp_path / "drift.json").write_text(json.dumps(whole), encoding="utf-8")
    (point,) = read_history([str(tmp_path)], "")
    assert (point.host_uses["worker-1"]["memory_bytes"], point.host_uses["worker-1"]["reserved_memory_bytes"]) == (
        None,
        None,
    )
    assert "memory" not in reservations(report(2, 2, memory_bytes=size), [point])


def test_a_clock_that_is_set_back_moves_dates_and_no_figure() -> None:
    """Reports are in the order of the clock that they were made by; the node counts by one that nobody sets."""
    used = [Reading(made(-day), use) for day, (_made, use) in enumerate(daily(2.6, 3))]
    assert "the host used" not in verdicts_of(sorted(used), ReservedAmounts(4, None))[0]
    assert "used 2.6 in the busiest of 3 intervals over 3.0 days" in verdicts_of(used, ReservedAmounts(4, None))[0]


def test_many_readings_take_linear_time() -> None:
    """Ten times as many take no more than thirty times as long."""
    seconds = []
    for number in (10**4, 10**5):
        readings = [Reading("2026", reading(day / 100, 0.1, memory_bytes=day)) for day in range(number)]
        began = time.process_time()
        verdicts_of(readings, ReservedAmounts(4, GIB))
        seconds.append(time.process_time() - began)
    assert seconds[1] < 30 * seconds[0]
