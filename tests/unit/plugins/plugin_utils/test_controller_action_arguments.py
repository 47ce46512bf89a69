# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/controller_action.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.controller_action import validated

OPTIONS: dict[str, dict[str, Any]] = {
    "forms": {"type": "list", "elements": "str", "choices": ["json", "html"], "default": ["json"]},
    "seconds": {"type": "int", "default": 5},
    "plan": {"type": "dict", "options": {"count": {"type": "int"}}},
}


def test_values_are_as_ansible_makes_them() -> None:
    values, wrong = validated(OPTIONS, {"seconds": "7"})
    assert (values, wrong) == ({"forms": ["json"], "seconds": 7, "plan": None}, None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forms": "jsn"}, "forms: 'jsn' is not possible; did you mean json?"),
        ({"secnds": 1}, "secnds: there is no such option; did you mean seconds?"),
        # Of this Ansible itself makes an exception.
        ({"plan": 4}, "plan: 4 is not a mapping; write it as {name: value}"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, Any], message: str) -> None:
    assert str(validated(OPTIONS, given)[1]) == message


def test_options_are_called_as_the_caller_wants() -> None:
    wrong = validated(OPTIONS, {"seconds": "soon"}, name_of=lambda name: "my_" + name)[1]
    assert str(wrong) == "my_seconds: 'soon' is not a whole number; write one such as 2"
    # What is no mapping names nothing.
    assert validated(OPTIONS, {"seconds": 1}, "seconds")[1] is None
