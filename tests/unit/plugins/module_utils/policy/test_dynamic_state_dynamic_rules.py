# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/dynamic_state.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    DynamicRules,
    WantedContainer,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view

RULES = DynamicRules(kubelet_view(describe_machine("1 socket x 4 cores")), CPUSet([0]))


def test_rules_that_can_be_kept() -> None:
    assert RULES.checked() is RULES
    assert RULES.floor == 1
    assert RULES._replace(shared_minimum=3).checked().floor == 4
    assert RULES._replace(reserved=CPUSet(), shared_minimum=1).checked().floor == 1
    assert RULES._replace(settle=0.0, delay=60.0).checked()
    assert WantedContainer("u1", "app", 2).key == ("u1", "app")


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"reserved": CPUSet([0, 4])}, "reserved_system_cpus"),
        ({"reserved": CPUSet()}, "shared_minimum"),  # the pool could become empty
        ({"shared_minimum": -1}, "shared_minimum"),
        ({"shared_minimum": 4}, "shared_minimum"),
        ({"delay": -1.0}, "delay"),
        ({"delay": 60.5}, "delay"),
        ({"delay": float("nan")}, "delay"),
        ({"settle": -1.0}, "settle"),
        ({"settle": float("inf")}, "settle"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(changes: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as caught:
        RULES._replace(**changes).checked()
    assert caught.value.where == where
