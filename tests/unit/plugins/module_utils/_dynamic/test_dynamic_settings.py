# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/dynamic_settings.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.dynamic_settings import (
    Settings,
    read_settings,
    seconds_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions


def test_what_is_not_given() -> None:
    assert read_settings({"policy": "dynamic"}) == Settings("dynamic")


def test_what_is_given() -> None:
    found = read_settings(
        {
            "policy": "isolated",
            "period": "500ms",
            "settle": "1min 30s",
            "delay": 0,
            "shared_minimum": 2,
            "reserved_cpus": "0-1",
            "policy_options": {"full-pcpus-only": True},
            "use_runtime": False,
            "allow_owners": ["tuned"],
        }
    )
    assert (found.period, found.settle, found.delay, found.shared_minimum) == (0.5, 90.0, 0.0, 2)
    assert (found.reserved, found.options) == (CPUSet((0, 1)), StaticOptions(full_pcpus_only=True))
    assert (found.use_runtime, found.allow_owners) == (False, ("tuned",))


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({}, "policy"),
        ({"policy": "static"}, "policy"),
        ({"policy": ["dynamic"]}, "policy"),
        ({"period": "0.01s"}, "period"),
        ({"period": "soon"}, "period"),
        ({"delay": "61s"}, "delay"),
        ({"settle": "-1s"}, "settle"),
        ({"settle": True}, "settle"),
        ({"settle": ""}, "settle"),
        ({"shared_minimum": -1}, "shared_minimum"),
        ({"shared_minimum": "2"}, "shared_minimum"),
        ({"shared_minimum": True}, "shared_minimum"),
        ({"reserved_cpus": "x"}, "reserved_cpus"),
        ({"policy_options": {"no-such": "true"}}, "policy_options"),
        ({"policy_options": ["full-pcpus-only"]}, "policy_options"),
    ],
)
def test_what_is_wrong_is_named(data: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(data if where == "policy" else {"policy": "dynamic", **data})
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("text", "seconds"), [("10", 10), (3, 3), (0.5, 0.5), ("2 min", 120), ("1h", 3600), ("1m 1s", 61), ("5sec", 5)]
)
def test_times(text: object, seconds: float) -> None:
    assert seconds_of(text, "x") == seconds
