# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.fields import (
    FieldValues,
    number_in,
    struct_in,
    text_in,
)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("maxPods", {}, 110),
        ("maxPods", {"maxPods": 0}, 110),  # it cannot be distinguished from an absent one
        ("maxPods", {"maxPods": 5}, 5),
        ("maxPods", {"maxPods": "5"}, 110),
        ("maxPods", {"maxPods": True}, 110),
        ("healthzPort", {"healthzPort": 0}, 0),  # it can, as a pointer
        ("healthzPort", {"healthzPort": None}, 10248),
        ("imageMinimumGCAge", {"imageMinimumGCAge": 0}, 120 * 10**9),
        ("cpuCFSQuotaPeriod", {"cpuCFSQuotaPeriod": 0}, 0),
        ("maxParallelImagePulls", {}, 7),  # without a default
        ("maxParallelImagePulls", {"maxParallelImagePulls": 0}, 0),
    ],
)
def test_numbers(name: str, given: dict[str, Any], value: int) -> None:
    assert FieldValues(given, 36).number(name, 7) == value


def test_what_a_flag_empties_has_no_default() -> None:
    emptied = frozenset({"maxPods", "hairpinMode"})
    fields = FieldValues({"maxPods": 0, "hairpinMode": "", "port": 0, "podLogsDir": ""}, 36, emptied)
    assert (fields.number("maxPods"), fields.text("hairpinMode")) == (0, "")
    assert (fields.number("port"), fields.text("podLogsDir")) == (10250, "/var/log/pods")


def test_texts() -> None:
    fields = FieldValues({"cgroupRoot": "/a", "hairpinMode": 1}, 36)
    assert [fields.text(name) for name in ("cgroupRoot", "hairpinMode", "systemCgroups", "topologyManagerScope")] == [
        "/a",
        "promiscuous-bridge",
        "",
        "container",
    ]


@pytest.mark.parametrize(
    ("name", "given", "minor", "value"),
    [
        ("runOnce", {}, 36, False),
        ("runOnce", {"runOnce": True}, 36, True),
        ("cgroupsPerQOS", {}, 36, True),
        ("cgroupsPerQOS", {"cgroupsPerQOS": False}, 36, False),
        ("cgroupsPerQOS", {"cgroupsPerQOS": 0}, 36, True),
        ("failCgroupV1", {}, 34, False),
        ("failCgroupV1", {}, 35, True),
        ("failCgroupV1", {"failCgroupV1": False}, 35, False),
        ("serializeImagePulls", {}, 36, True),
        ("serializeImagePulls", {"maxParallelImagePulls": 1}, 36, True),
        ("serializeImagePulls", {"maxParallelImagePulls": 2}, 36, False),
        ("serializeImagePulls", {"maxParallelImagePulls": 2, "serializeImagePulls": True}, 36, True),
    ],
)
def test_booleans(name: str, given: dict[str, Any], minor: int, value: bool) -> None:
    assert FieldValues(given, minor).is_true(name) is value


def test_lists_and_structs() -> None:
    assert FieldValues({}, 36).items("enforceNodeAllocatable") == ["pods"]
    assert FieldValues({"enforceNodeAllocatable": []}, 36).items("enforceNodeAllocatable") == []
    assert FieldValues({"registerWithTaints": "a"}, 36).items("registerWithTaints") == []
    assert FieldValues({"tracing": {"endpoint": "a"}}, 36).struct("tracing") == {"endpoint": "a"}
    assert FieldValues({"memorySwap": "a"}, 36).struct("memorySwap") == {}


def test_parts_of_a_wrong_type() -> None:
    assert (struct_in([]), text_in(1), number_in("1"), number_in(True)) == ({}, "", 0, 0)
    assert (struct_in({"a": 1}), text_in("a"), number_in(1)) == ({"a": 1}, "a", 1)
