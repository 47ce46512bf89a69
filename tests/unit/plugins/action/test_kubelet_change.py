# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run says of a call that has ended: which node, what failed, and what became of it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.action.kubelet_change import _with_reason

PLAN = {"node": "worker"}
LEFT = "2 containers do not have their CPUs"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"failed": True, "msg": "the kubelet does not start; undone", "problem": "it does not start"}, None),
        # A module that was refused has named the node.
        ({"failed": True, "msg": "worker: another change goes on"}, "another change goes on"),
        ({"failed": True}, "it failed without a message"),
    ],
)
def test_a_failure_names_its_node_once(given: dict[str, Any], problem: str | None) -> None:
    answer = _with_reason(given, PLAN, False)
    assert answer["failed"]
    assert answer["problem"] == (problem or given["problem"])
    assert answer["msg"].startswith("worker: ")
    assert answer["msg"].count("worker") == 1


def test_containers_without_their_cpus_are_a_failure_of_a_node_that_is_changed() -> None:
    answer = _with_reason({"changed": True, "left_over": LEFT}, PLAN, False)
    assert (answer["failed"], answer["undone"]) == (True, False)
    assert answer["msg"] == "worker: the node was changed, but " + LEFT


def test_a_node_that_was_drained_comes_back_into_the_cluster_first() -> None:
    result = {"changed": True, "left_over": LEFT}
    assert _with_reason(result, PLAN, True) == result
    assert _with_reason({"changed": False}, None, False) == {"changed": False}
