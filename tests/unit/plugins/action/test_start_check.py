# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/action/start_check.py: what goes with a message; tests/docs/test_errors.py has what is explained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.action.start_check import ActionModule
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError


def answer(**arguments: Any) -> Any:
    task = SimpleNamespace(args=arguments)
    return ActionModule(task, None, None, None, None, None).act({})


def test_a_message_is_explained_without_the_node() -> None:
    explained = answer(log_line='err="failed to run Kubelet: unknown policy: \\"Static\\""')["explained"]
    # The memory manager says the same.
    assert [row["section"] for row in explained] == ["CPU manager: policy and options", "Memory manager"]
    assert explained[0] == {
        "text": 'unknown policy: "<policy>"',
        "cause": "there is no such CPU manager policy; upper and lower case count",
        "remedy": "write none or static",
        "check": "kubelet-would-not-start",
        "section": "CPU manager: policy and options",
    }


def test_what_is_of_the_node_has_no_effect() -> None:
    """As module_defaults give it to all modules."""
    of_node = {"root": "/none", "config_path": "/none", "cpu_manager_policy": "static"}
    assert answer(log_line="unknown policy", **of_node) == answer(log_line="unknown policy")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"log_line": " \n"}, "log_line: there is no text; give a line of the kubelet's log"),
        ({"log_line": "x", "policy": 1}, "policy"),
    ],
)
def test_what_goes_with_no_message_is_refused(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        answer(**arguments)
    assert problem in str(caught.value)
