# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.golang import read_json
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import merge_patch
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.decode import KUBELET_CONFIGURATION
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import UnpredictableError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.loading import (
    encoded,
    filled,
    plain,
)


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ('{"a": [1, 2.0, -3, 1e2, true, null, "x"]}', {"a": [1, 2.0, -3, 100.0, True, None, "x"]}, []),
        ('{"a": 99999999999999999999}', {"a": 1e20}, []),
        ('{"a": 1, "a": 2, "a": 3}', {"a": 3}, ['duplicate field "a"']),
        ('{"a": [{}, {"b": {"c": 1, "c": 2}}]}', {"a": [{}, {"b": {"c": 2}}]}, ['duplicate field "a[1].b.c"']),
    ],
)
def test_a_json_value_in_maps_and_lists(text: str, value: Any, found: list[str]) -> None:
    faults: list[str] = []
    assert plain(read_json(text.encode()), None, faults, 0, "/f") == value
    assert faults == found


def test_a_json_value_that_is_too_deep() -> None:
    with pytest.raises(UnpredictableError) as error:
        plain(read_json(b"[" * 100 + b"]" * 100), None, [], 0, "/f")
    assert (error.value.reason, error.value.where) == ("more than 64 collections in each other", "/f")


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": None, "c": 2, "d": None}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": [None]}, {"a": [None]}),
        ({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
    ],
)
def test_a_patch(target: Any, patch: Any, merged: Any) -> None:
    assert merge_patch(target, patch) == merged


def test_the_json_of_values() -> None:
    values = {
        "cgroupRoot": "",
        "clusterDNS": [],
        "cpuCFSQuota": False,
        "cpuManagerReconcilePeriod": 90 * 10**9,
        "enforceNodeAllocatable": ["pods"],
        "logging": {"flushFrequency": 5, "verbosity": 0},
        "memorySwap": {},
        "resolvConf": "",
        "runOnce": False,
    }
    assert encoded(KUBELET_CONFIGURATION, values) == {
        "cpuCFSQuota": False,
        "cpuManagerReconcilePeriod": "1m30s",
        "enforceNodeAllocatable": ["pods"],
        "logging": {"flushFrequency": 5},
        "memorySwap": {},
        "resolvConf": "",
    }


def test_defaults_are_filled_in() -> None:
    assert filled({"a": 1, "b": {"c": 1}, "d": 1}, {"a": 2, "b": {"c": 2, "e": 2}, "d": {}, "f": 2}) == {
        "a": 1,
        "b": {"c": 1, "e": 2},
        "d": 1,
        "f": 2,
    }
