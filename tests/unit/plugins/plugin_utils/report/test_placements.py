# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.placements import (
    fleet_placements,
    placements_table,
)


def answer(*fits: str, **refused: str) -> dict[str, Any]:
    """Return what allocation_plan answers, each pod with two containers."""
    containers = [{"pod": pod, "container": name, "cpus": "1"} for pod in fits for name in ("app", "sidecar")]
    return {"containers": containers, "refused": [{"pod": pod, "reason": refused[pod]} for pod in refused]}


def test_a_fleet_has_a_line_for_pods_alike() -> None:
    answers: dict[str, object] = {
        "worker-%d" % number: answer("shop/db-0", "shop/db-1", odd="SMTAlignmentError") for number in range(1, 281)
    }
    answers.update(
        ("small-%d" % number, answer(odd="OutOfcpu", **{"shop/db-0": "OutOfcpu", "shop/db-1": "OutOfcpu"}))
        for number in range(20)
    )
    small = "refused on 20: OutOfcpu (small-[0-19])"
    assert placements_table(fleet_placements(answers)).splitlines() == [
        "shop/db-[0-1]: fits on 280 of 300 nodes; %s" % small,
        "odd: fits on 0 of 300 nodes; refused on 280: SMTAlignmentError (worker-[1-280]); %s" % small,
    ]


def test_a_pod_with_cpus_as_a_whole_says_whose_they_are() -> None:
    rows = [("a", "container", "1,9"), ("b", "pod", "2-3"), ("c", "pod", "2-3")]
    containers = [{"pod": "p", "uid": "p", "container": name, "isolation": of, "cpus": cpus} for name, of, cpus in rows]
    whole = {"pod": "p", "uid": "p", "cpus": "1-3,9-11", "shared": "2-3", "unused": "10-11"}
    found = fleet_placements({"x": answer(p="OutOfcpu"), "y": {"containers": containers, "pods": [whole]}})
    assert found["pods"][0]["as_whole"] == {"cpus": 6, "own": {"a": 2}, "shared": 2, "unused": 2}
    assert placements_table(found) == (
        "p: fits on 1 of 2 nodes; refused on 1: OutOfcpu (x); of its 6 CPUs as a whole: 2 for a, 2 shared, 2 unused\n"
    )
    made_up = {"x": {"pods": [{"pod": "q", "uid": [], "cpus": "0-999999999999", "shared": {}}]}, "y": answer("q")}
    assert placements_table(fleet_placements(made_up)).startswith("q: fits on 1 of 2 nodes")


def test_nodes_without_an_answer_are_named_with_the_reason() -> None:
    answers = {
        "a": None,
        "b": {"failed": True, "msg": "no kubelet\nruns here"},
        "c": answer("x"),
        "d": {"unreachable": True, "msg": "gone"},
    }
    found = fleet_placements(answers)
    assert found["unread"] == {"it was not asked": ["a"], "no kubelet runs here": ["b"], "gone": ["d"]}
    assert placements_table(found).splitlines()[0] == "x: fits on 1 of 4 nodes"


@pytest.mark.parametrize("wrong", ["text", {"containers": 1, "refused": [3, {"pod": ["\x1b[2J"], "reason": {}}]}, [1]])
def test_what_a_node_makes_up_is_shown_in_one_line_or_not_at_all(wrong: object) -> None:
    table = placements_table(fleet_placements({"a": wrong, "b": answer("x")}))
    assert "\x1b" not in table
    assert "x: fits on 1 of 2 nodes\n" in table
