# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The line that sums up a run."""

from __future__ import annotations

from typing import Any, Collection

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import collect
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.texts import change_summary

REPORT = "; next: ansible-playbook kubenode.cpu_manager.drift_report"
AGAIN = "; next: see why above, and run again"
PLANS: dict[str, Any] = {
    "drift": {"status": "drift", "actions": ["stop_kubelet", "start_kubelet"], "journal": None},
    "interrupted": {"status": "clean", "actions": [], "journal": {"phase": "changing"}},
    "clean": {"status": "clean", "actions": [], "journal": None},
    "bastion": {"status": "no kubelet", "actions": [], "journal": None},
    "away": {},
    "broken": {"failed": True, "msg": "broken"},
}


def summary(names: Collection[str], lost: Collection[str] = (), **options: bool) -> str:
    plans = {name: PLANS[name] for name in names}
    return change_summary(collect(plans), set(names) - set(lost), **options)


def test_what_was_changed_is_counted() -> None:
    assert summary(["drift", "interrupted", "clean"]) == "changed 2, unchanged 1, left out 0, failed 0" + REPORT
    assert summary([]) == "changed 0, unchanged 0, left out 0, failed 0" + REPORT


@pytest.mark.parametrize(("skip", "counts"), [(True, "unchanged 0, left out 1"), (False, "unchanged 1, left out 0")])
def test_what_is_left_out_is_counted_where_it_is(skip: bool, counts: str) -> None:
    assert summary(["bastion"], skip_no_kubelet=skip) == "changed 0, %s, failed 0" % counts + REPORT


def test_check_mode_changes_nothing() -> None:
    counts = "would change 1, unchanged 1, left out 0, failed 0"
    assert summary(["drift", "clean"], check_mode=True) == counts + "; next: run it without --check"
    assert summary(["clean"], check_mode=True) == "would change 0, unchanged 1, left out 0, failed 0" + REPORT


def test_what_failed_or_was_lost_is_named() -> None:
    names = ["drift", "away", "broken"]
    expected = "changed 1, unchanged 0, left out 0, failed 2 (away, broken)" + AGAIN
    assert summary(names, lost=["away", "broken"]) == expected
    assert summary(["drift"], lost=["drift"]) == "changed 0, unchanged 0, left out 0, failed 1 (drift)" + AGAIN


def test_not_all_of_many_are_named() -> None:
    plans = {"w-%d" % number: PLANS["drift"] for number in range(7)}
    said = change_summary(collect(plans), ())
    assert said == "changed 0, unchanged 0, left out 0, failed 7 (w-0, w-1, w-2, w-3, w-4 and 2 more)" + AGAIN
