# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_change/change_steps.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change import change_steps as steps

WHOLE = ["stop_kubelet", "reset_checkpoint", "write_configuration", "start_kubelet"]
STATIC = {"subject": "cpu_manager_policy", "wanted": "static", "found": "none"}
REFUSED = {"kind": "edited", "where": "/etc/a", "text": "others have changed it", "remedy": ""}
SHOWN: dict[str, Any] = {
    "actions": WHOLE,
    "files": ["/etc/a", "/var/lib/kubelet/cpu_manager_state"],
    "drift": [STATIC],
    "refusals": [],
    "drains": False,
    "runtime": None,
}


@pytest.mark.parametrize(
    ("actions", "change", "runtime", "expected"),
    [
        (WHOLE, "rollout", None, [steps.STOP, steps.SAVE, steps.CONFIGURE, steps.STATES, steps.START, steps.END]),
        (WHOLE, "rollback", None, [steps.STOP, steps.SAVE, steps.RESTORE, steps.STATES, steps.START, steps.END]),
        (["reconcile"], "rollout", None, [steps.CPUSETS]),
        ([], "rollout", None, []),
    ],
    ids=["rollout", "rollback", "cpusets alone", "nothing"],
)
def test_the_steps_of_a_plan(actions: list[str], change: str, runtime: Any, expected: list[str]) -> None:
    assert steps.steps_of({"actions": actions, "runtime": runtime}, change) == expected


@pytest.mark.parametrize("change", ["rollout", "rollback"])
def test_the_runtime_is_restarted_while_the_kubelet_is_stopped(change: str) -> None:
    """A rollback has put its files back with all others."""
    found = steps.steps_of({"actions": [*WHOLE, "reconcile"], "runtime": {}}, change)
    assert found[found.index(steps.STATES) + 1 :] == [
        *([steps.WRITE_RUNTIME] if change == "rollout" else []),
        *(steps.RESTART_RUNTIME, steps.START, steps.END, steps.CPUSETS),
    ]


@pytest.mark.parametrize(
    ("begun", "expected"),
    [([], False), ([steps.STOP, steps.START], False), ([steps.START, steps.END], True), ([steps.CPUSETS], True)],
)
def test_a_change_that_was_verified_goes_on(begun: list[str], expected: bool) -> None:
    assert steps.goes_on(begun) is expected


@pytest.mark.parametrize(
    ("now", "is_drained", "expected"),
    [
        ({}, False, []),
        # What containers have is judged when the kubelet is stopped.
        ({"actions": ["stop_kubelet", "repair_checkpoint", "write_configuration", "start_kubelet"]}, False, []),
        ({"actions": [*WHOLE, "reconcile"]}, False, []),
        ({"refusals": [REFUSED]}, False, ["/etc/a: others have changed it"]),
        ({"drains": True}, False, ["pods have to leave the node first, and none had to"]),
        ({"drains": True}, True, []),
        (
            {"actions": ["stop_kubelet", "start_kubelet"], "drift": []},
            False,
            [
                "it is now to do: stop_kubelet, start_kubelet; and was: %s" % ", ".join([WHOLE[0], *WHOLE[2:]]),
                "cpu_manager_policy: as wanted now, and was none -> static",
            ],
        ),
        ({"files": ["/etc/b"]}, False, ["it changes the files /etc/b now, and not %s" % ", ".join(SHOWN["files"])]),
        (
            {"drift": [{**STATIC, "found": "other"}]},
            False,
            ["cpu_manager_policy: other -> static now, and was none -> static"],
        ),
        ({"drift": [STATIC, {"subject": "checkpoint", "wanted": "accepted", "found": "refused"}]}, False, []),
    ],
    ids=["same", "states", "cpusets", "refused", "pods", "drained", "less", "files", "edited", "checkpoint"],
)
def test_what_of_a_plan_is_no_longer_as_it_was_shown(now: Any, is_drained: bool, expected: list[str]) -> None:
    assert list(steps.differences(SHOWN, {**SHOWN, **now}, is_drained)) == expected
