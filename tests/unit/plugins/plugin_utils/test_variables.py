# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/variables.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import check_names, options_of_variables

HOST = {"inventory_hostname": "worker-1", "kubelet_max_pods": 110, "kubelet_cpu_manager_policy": "static"}
MEANT = {"drift_report_form": "drift_report_forms", "kubelet_cpu_manager_polcy": "kubelet_cpu_manager_policy"}


def test_right_names_are_no_failure() -> None:
    check_names(HOST)


def test_each_wrong_name_is_in_the_failure() -> None:
    with pytest.raises(InputError) as caught:
        check_names({**HOST, **dict.fromkeys(MEANT, "static"), "reconcile_xyzzy": 1})
    said = ["%s is no variable of this collection, and %s is: rename it, or remove it" % pair for pair in MEANT.items()]
    said.append(
        "reconcile_xyzzy looks like a variable of this collection, but does not exist: remove it, or give it another"
        " name"
    )
    assert str(caught.value) == "worker-1: %s; nothing was changed" % "; ".join(said)


def test_a_host_with_thousands_of_wrong_names_has_a_short_message() -> None:
    with pytest.raises(InputError, match=r"; and 1990 more; nothing was changed$"):
        check_names({**HOST, **{"reconcile_x%d" % number: 1 for number in range(2000)}})


def test_options_are_what_their_variables_are() -> None:
    names = {"cpu_manager_policy": "kubelet_cpu_manager_policy", "drain": "kubelet_drain", "reservation": "absent"}
    variables = {**HOST, "kubelet_drain": "{{ false }}"}
    templated: list[dict[str, object]] = []

    def template(values: dict[str, object]) -> dict[str, object]:
        templated.append(values)
        return {**values, "drain": False}

    assert options_of_variables(names, variables, template) == {"cpu_manager_policy": "static", "drain": False}
    assert templated == [{"cpu_manager_policy": "static", "drain": "{{ false }}"}]


def test_what_is_omitted_is_no_option() -> None:
    """ansible-core 2.18 has a text in its place; from 2.19 on, it is not there any more."""
    names, variables = {"a": "x", "b": "y"}, {"x": "{{ omit }}", "y": 1, "omit": "__omit_place_holder__1"}
    assert options_of_variables(names, variables, lambda values: {**values, "a": variables["omit"]}) == {"b": 1}
    assert options_of_variables(names, variables, lambda values: {"b": values["b"]}) == {"b": 1}
