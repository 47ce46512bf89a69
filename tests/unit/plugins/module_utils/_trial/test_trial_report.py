# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a drift report has of a trial; tests/cluster/test_trial.py has the trials themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.kubelet_trial import Trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_report import answer_of, trial_report

SAID = Trial(True, version="1.37.0", seconds=3.1)
NEXT = "/usr/local/bin/kubelet-1.37"
REFUSAL = SAID._replace(starts=False, message="unknown flag: --x")


@pytest.mark.parametrize(
    ("trial", "program", "found"),
    [
        (SAID, None, []),
        (SAID, NEXT, []),
        (
            REFUSAL,
            None,
            [("kubelet-refuses-start", "kubelet", "starts", "kubelet 1.37.0 does not start: unknown flag: --x")],
        ),
        (
            REFUSAL._replace(message="", differs=True),
            NEXT,
            [
                ("next-kubelet-refuses-start", NEXT, "starts", "kubelet 1.37.0 does not start: it said nothing"),
                ("prediction-differs", NEXT, "predicted: a start", "kubelet 1.37.0 does not start"),
            ],
        ),
        (
            SAID._replace(differs=True, mistaken=[("--v", "bad"), ("--x", "worse")]),
            None,
            [("prediction-differs", "kubelet", "predicted: a refusal: bad; worse", "kubelet 1.37.0 starts")],
        ),
    ],
)
def test_what_a_report_has_of_a_trial(
    trial: Trial, program: str | None, found: list[tuple[str, str, str, str]]
) -> None:
    answer = answer_of(trial, program)
    rows = [(row["check"], row["subject"], row["wanted"], row["found"]) for row in answer["findings"]]
    assert rows == found
    assert (answer["program"], answer["notes"], answer["note_checks"]) == (program, [], [])


def test_where_there_is_no_trial_a_note_says_why(tmp_path: Path) -> None:
    reason = "cannot be tried: unshare pid: Operation not permitted"
    answer = answer_of(Trial(None, reason=reason), NEXT)
    assert (answer["findings"], answer["notes"], answer["note_checks"]) == ([], [reason], ["trial-unmeasured"])
    with pytest.raises(NodeError):
        trial_report(Node(Tree(str(tmp_path))), {"cpu_manager_policy": "static"})
