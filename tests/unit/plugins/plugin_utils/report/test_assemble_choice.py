# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which results are in a report, in which order its nodes come, and in which groups."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import time_of
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import ANSWER, CLEAN_ANSWER, MADE, result

from .assembled import DANGER, DRIFT, FAILED, check_consistency, made, outcome, states

# --- which results count --------------------------------------------------------------------------


def test_the_newest_result_counts_in_any_order() -> None:
    looks = [
        result("a", DRIFT, "2026-11-21T00:00:00Z"),
        result("a", CLEAN_ANSWER, "2026-11-23T00:00:00Z"),
        result("a", DANGER, "2026-11-22T23:59:59Z"),
        result("b", CLEAN_ANSWER, "2026-01-01T00:00:00Z"),
        result("b", FAILED, "2026-11-01T00:00:00Z"),
    ]
    reports = [made(*order) for order in itertools.permutations(looks)]
    assert states(reports[0]) == {"a": "clean", "b": "failed"}
    assert all(report == reports[0] for report in reports)


def test_of_one_moment_the_first_counts() -> None:
    assert states(made(result("a", CLEAN_ANSWER), result("a", DRIFT))) == {"a": "clean"}


@given(st.permutations(range(12)), st.data())
def test_the_order_of_the_files_does_not_matter(order: list[int], data: st.DataObject) -> None:
    looks = [
        result(
            "worker-%d" % (number % 4),
            {**data.draw(st.sampled_from([ANSWER, CLEAN_ANSWER, DANGER, FAILED])), "kernel": "6.%d" % (number % 3)},
            time_of(MADE - 3600 * number),
        )
        for number in range(12)
    ]
    assert made(*(looks[number] for number in order)) == made(*looks)


def test_only_the_wanted_hosts_are_in_the_report() -> None:
    report = made(CLEAN_ANSWER, DANGER, CLEAN_ANSWER, hosts=["a", "c", "z", "z"])
    assert states(report) == {"z": "missing", "a": "clean", "c": "clean"}
    assert outcome(report) == ("unknown", 1)
    assert report["nodes"][0]["message"] == "there is no result of this node"
    assert (report["nodes"][0]["looked_at"], report["nodes"][0]["group"]) == ("", None)


def test_no_host_is_wanted() -> None:
    assert states(made(CLEAN_ANSWER, hosts=[])) == {}
    assert states(made(CLEAN_ANSWER, hosts=None)) == {"a": "clean"}


@pytest.mark.parametrize(
    ("age", "max_age", "is_stale"),
    [(0, 0, False), (1, 0, True), (3600, 3600, False), (3601, 3600, True), (10**8, None, False), (-60, 0, False)],
)
def test_a_result_that_is_too_old(age: int, max_age: float | None, is_stale: bool) -> None:
    report = made(result("a", CLEAN_ANSWER, time_of(MADE - age)), max_age=max_age)
    check_consistency(report)
    assert states(report) == {"a": "stale" if is_stale else "clean"}
    assert outcome(report)[0] == ("unknown" if is_stale else "clean")


def test_a_stale_node_shows_what_was_found() -> None:
    report = made(result("a", DRIFT, "2026-11-01T00:00:00Z"), max_age=60)
    (node,) = report["nodes"]
    assert (node["state"], node["message"]) == ("stale", "the newest result of this node is of 2026-11-01T00:00:00Z")
    assert [finding["check"] for finding in node["findings"]] == ["policy-differs"]
    assert node["group"] == 0


def test_a_newer_failure_hides_what_was_found_before() -> None:
    report = made(result("a", DRIFT, "2026-11-01T00:00:00Z"), result("a", FAILED, "2026-11-02T00:00:00Z"))
    assert states(report) == {"a": "failed"}
    assert report["groups"] == []


def test_nodes_come_in_a_natural_order_and_the_worst_first() -> None:
    hosts = ["worker-10", "worker-2", "worker-1", "worker-02", "Worker-3", "worker", "10", "9", "a1b2", "a1b10", ""]
    report = made(*(result(host, CLEAN_ANSWER) for host in hosts), result("z", DRIFT), result("y", FAILED))
    assert [node["host"] for node in report["nodes"]] == [
        "y",
        "z",
        "",
        "Worker-3",
        "a1b2",
        "a1b10",
        "worker",
        "worker-1",
        "worker-02",
        "worker-2",
        "worker-10",
        "9",
        "10",
    ]


@given(st.lists(st.text(), unique=True), st.randoms())
def test_any_hosts_have_an_order(hosts: list[str], random: Any) -> None:
    shuffled = list(hosts)
    random.shuffle(shuffled)
    reports = [made(*(result(host, CLEAN_ANSWER) for host in each)) for each in (hosts, shuffled)]
    assert len(reports[0]["nodes"]) == len(hosts)
    if len({node["host"] for node in reports[0]["nodes"]}) == len(hosts):
        assert reports[0] == reports[1]


def test_long_numbers_in_hosts() -> None:
    hosts = ["a" + "9" * 5000, "a" + "9" * 17, "a" + "9" * 18 + "0", "\u0663", "a\u00b2"]
    assert len(made(*(result(host, CLEAN_ANSWER) for host in hosts))["nodes"]) == 5


# --- groups and the baseline ----------------------------------------------------------------------


def test_groups_have_the_nodes_that_count() -> None:
    report = made(
        result("a", {**CLEAN_ANSWER, "kernel": "old"}, "2026-11-01T00:00:00Z"),
        result("a", {**CLEAN_ANSWER, "kernel": "new"}, "2026-11-02T00:00:00Z"),
        result("b", {**DRIFT, "kernel": "new"}),
        result("c", {**CLEAN_ANSWER, "kernel": "odd"}),
        result("d", FAILED),
    )
    check_consistency(report)
    assert [group["kernel"] for group in report["groups"]] == ["new", "new", "odd"]
    assert [(node["host"], node["group"]) for node in report["nodes"]] == [("d", None), ("b", 0), ("a", 1), ("c", 2)]
