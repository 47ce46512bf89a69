# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import check_date
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import checked_waivers
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import json_values

GOOD: dict[Any, Any] = {"check": "policy-differs", "reason": "ticket 4711", "until": "2026-12-31"}


def test_waivers() -> None:
    assert checked_waivers([], "waivers") == []
    with_subject = {**GOOD, "subject": "cpu_manager_policy"}
    assert checked_waivers([GOOD, with_subject], "waivers") == [GOOD, with_subject]


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        # A date without quotes is none of a text in YAML, and a ticket may be a number.
        ({**GOOD, "until": datetime.date(2026, 12, 31)}, GOOD),
        ({**GOOD, "reason": 4711}, {**GOOD, "reason": "4711"}),
        ({**GOOD, "subject": None}, GOOD),
        ({**GOOD, "subject": ""}, {**GOOD, "subject": ""}),  # of a finding without a subject
    ],
)
def test_values_become_texts(given: Any, taken: Any) -> None:
    assert checked_waivers([given], "waivers") == [taken]


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_every_check_can_be_waived(check: str) -> None:
    assert checked_waivers([{**GOOD, "check": check}], "waivers") == [{**GOOD, "check": check}]


@pytest.mark.parametrize(
    ("waiver", "where", "what", "remedy"),
    [
        ("policy-differs", "drift_waivers[1]", "'policy-differs' is not a mapping", "give check, reason and until"),
        (None, "drift_waivers[1]", "None is not a mapping", "give check, reason and until"),
        (("a", "b"), "drift_waivers[1]", "('a', 'b') is not a mapping", "give check, reason and until"),
        ({}, "drift_waivers[1]", "has no check", "give check, reason and until"),
        ({**GOOD, "reason": ""}, "drift_waivers[1]", "has no reason", "give check, reason and until"),
        ({**GOOD, "until": None}, "drift_waivers[1]", "has no until", "give check, reason and until"),
        (
            {**GOOD, "untill": "x", "a": 1},
            "drift_waivers[1]",
            "has the unknown key a",
            "take one of check, reason, subject, until",
        ),
        ({**GOOD, 7: 1}, "drift_waivers[1]", "has the unknown key 7", "take one of check, reason, subject, until"),
        (
            {**GOOD, "check": "policies-differ"},
            "drift_waivers[1]",
            "there is no check policies-differ",
            "did you mean policy-differs?",
        ),
        (
            {**GOOD, "check": ["policy-differs"]},
            "drift_waivers[1]",
            "there is no check ['policy-differs']",
            "did you mean policy-differs?",
        ),
        ({**GOOD, "check": {"a": 1}}, "drift_waivers[1]", "there is no check {'a': 1}", "take an id from"),
        ({**GOOD, "until": "never"}, "drift_waivers[1].until", "'never' is not a date such as 2026-12-31", ""),
        (
            {**GOOD, "until": "2026-02-30"},
            "drift_waivers[1].until",
            "'2026-02-30' is not a date such as 2026-12-31",
            "",
        ),
        ({**GOOD, "until": 2026}, "drift_waivers[1].until", "2026 is not a date such as 2026-12-31", ""),
    ],
)
def test_a_waiver_that_is_wrong(waiver: Any, where: str, what: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_waivers([GOOD, waiver], "drift_waivers")
    assert (caught.value.where, caught.value.what) == (where, what)
    assert caught.value.remedy.startswith(remedy)


parts = {"check": json_values, "reason": json_values, "until": json_values, "subject": json_values}


@given(
    st.lists(
        st.one_of(
            json_values,
            st.fixed_dictionaries({}, optional=parts),
            st.builds(lambda key, value: {**GOOD, key: value}, st.sampled_from([*parts, "x"]), json_values),
        )
    )
)
def test_any_waivers_are_taken_or_refused(waivers: list[Any]) -> None:
    try:
        taken = checked_waivers(waivers, "waivers")
    except InputError:
        return
    assert len(taken) == len(waivers)
    for waiver in taken:
        assert waiver["check"] in CHECKS
        assert check_date(waiver["until"]) == waiver["until"]
        assert all(isinstance(value, str) for value in waiver.values())
    # What is in result files is taken again.
    assert checked_waivers(taken, "waivers") == taken
