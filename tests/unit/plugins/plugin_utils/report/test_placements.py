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
    """What allocation_plan answers, each pod with two containers."""
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
