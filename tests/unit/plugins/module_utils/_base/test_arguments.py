# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/arguments.py."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.parameters import DEFAULT_TYPE_VALIDATORS

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.arguments import instead, nearest, refusal

OPTIONS: dict[str, dict[str, Any]] = {
    "policy": {"choices": ["none", "static"]},
    "period": {"type": "float"},
    "count": {"type": "int"},
    "drain": {"type": "bool", "default": False},
    "forms": {"type": "list", "elements": "str", "choices": ["json", "html"]},
    "numbers": {"type": "list", "elements": "int"},
    "steps": {"type": "list", "elements": "dict", "options": {"cpus": {"type": "int"}, "share": {"required": True}}},
    "plan": {
        "type": "dict",
        "options": {"count": {"type": "int"}, "share": {"type": "float"}},
        "mutually_exclusive": [("count", "share")],
    },
    "secret": {"type": "int", "no_log": True},
    "source": {"default": "sysfs"},
    "text": {},
}


def said(given: dict[str, Any], options: dict[str, dict[str, Any]] | None = None, **between: Any) -> str:
    """Return the message, where each option is called by a variable's name."""
    error = refusal(options or OPTIONS, between, given, DEFAULT_TYPE_VALIDATORS, lambda name: "my_" + name)
    return str(error or "")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"policy": "static", "drain": "no", "count": "2", "period": 1, "forms": "json,html", "numbers": ["1", 2]},
        {"steps": [{"share": "1"}], "plan": {"count": 2}},
        # Nothing is given.
        {"plan": {"count": 2, "share": None}, "policy": None, "count": None},
    ],
)
def test_what_is_right(given: dict[str, Any]) -> None:
    assert said(given) == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"polcy": 1}, "my_polcy: there is no such option; did you mean policy?"),
        ({"plan": {"cout": 1}}, "my_plan.cout: there is no such option; did you mean count?"),
        ({"plan": {"xyz": 1}}, "my_plan.xyz: there is no such option; take one of count, share"),
        ({"policy": "statc"}, "my_policy: 'statc' is not possible; did you mean static?"),
        ({"policy": 7}, "my_policy: '7' is not possible; take one of none, static"),
        ({"forms": ["htm", "json"]}, "my_forms: 'htm' is not possible; did you mean html?"),
        ({"forms": {"html": True}}, "my_forms: {'html': True} is not a list; write it as [first, second]"),
        ({"plan": ["count"]}, "my_plan: ['count'] is not a mapping; write it as {name: value}"),
        ({"plan": {"count": 1, "share": 2}}, "my_plan.count and my_plan.share exclude each other; remove one"),
        ({"count": "two"}, "my_count: 'two' is not a whole number; write one such as 2"),
        ({"period": "soon"}, "my_period: 'soon' is not a number; write one such as 0.5"),
        ({"drain": "perhaps"}, "my_drain: 'perhaps' is neither true nor false; write one of these"),
        ({"numbers": [1, "b"]}, "my_numbers[1]: 'b' is not a whole number; write one such as 2"),
        ({"steps": [{"share": 1}, {"cpus": 1}]}, "my_steps[1].share: is missing; set it"),
        ({"secret": "hunter2"}, "my_secret: the value is not a whole number; write one such as 2"),
        ({"count": "9" * 100 + "x"}, "my_count: '%s … is not a whole number; write one such as 2" % ("9" * 59)),
        # Each in a line of its own.
        (
            {"count": "two", "policy": "statc"},
            (
                "my_policy: 'statc' is not possible; did you mean static?\n"
                "my_count: 'two' is not a whole number; write one such as 2"
            ),
        ),
    ],
)
def test_what_is_wrong(given: dict[str, Any], message: str) -> None:
    assert said(given) == message


@pytest.mark.parametrize(
    ("between", "given", "message"),
    [
        ({"mutually_exclusive": [("count", "period")]}, {"count": 1, "period": None}, ""),
        (
            {"mutually_exclusive": [("count", "period")]},
            {"count": 1, "period": 2},
            "my_count and my_period exclude each other; remove one",
        ),
        ({"required_one_of": [("count", "period")]}, {}, "nothing of my_count or my_period is given; set one"),
        ({"required_one_of": [("count", "period")]}, {"count": 0}, ""),
        # A default counts.
        (
            {"required_if": [("source", "sysfs", ["text", "count"])]},
            {"count": 1},
            "my_source is sysfs, which takes my_text; set it",
        ),
        (
            {"required_if": [("source", "sysfs", ["text", "count"], True)]},
            {},
            "my_source is sysfs, which takes my_text or my_count; set it",
        ),
        ({"required_if": [("source", "sysfs", ["text", "count"], True)]}, {"count": 1}, ""),
        ({"required_if": [("source", "lscpu", ["text"])]}, {}, ""),
        ({"required_by": {"count": ["text"]}}, {"count": 1}, "my_count takes my_text; set it"),
        ({"required_by": {"count": ["text"]}}, {}, ""),
    ],
)
def test_what_is_between_options(between: dict[str, Any], given: dict[str, Any], message: str) -> None:
    assert said(given, **between) == message


def test_what_is_missing() -> None:
    options: dict[str, dict[str, Any]] = {"load": {"required": True, "choices": ["a", "b"]}, "root": {"required": True}}
    assert said({}, options) == "my_load: is missing; take one of a, b\nmy_root: is missing; set it"


def test_the_nearest_word() -> None:
    assert nearest("drfit", ["danger", "drift", "never"]) == "drift"
    assert nearest("xyz", ["danger", "drift"]) == ""
    assert nearest(["policy-differs"], ["policy-differs"]) == "policy-differs"
    assert instead("xyz", ["danger", "drift"]) == "take one of danger, drift"
