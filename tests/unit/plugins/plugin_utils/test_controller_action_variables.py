# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/controller_action.py: the values that variables of a role may have."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.controller_action import check_role_variables


def check(**variables: Any) -> None:
    check_role_variables("kubelet", Templar(DataLoader(), variables=variables), variables)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kubelet_verify_seconds", "soon"),
        ("kubelet_backup_keep", "all"),
        ("kubelet_drain_timeout", "10m"),
        ("kubelet_manage_service", "maybe"),
        ("kubelet_cpu_manager_policy", "statik"),
    ],
)
def test_a_value_that_the_role_does_not_take_is_refused_with_the_variable(name: str, value: str) -> None:
    with pytest.raises(InputError) as caught:
        check(**{name: value})
    assert name in str(caught.value)
    assert value in str(caught.value)


def test_what_is_right_missing_or_not_of_the_role_is_left_alone() -> None:
    check()
    check(kubelet_verify_seconds="20", kubelet_drain=True, kubelet_reservation={"count": 2}, other="maybe")
