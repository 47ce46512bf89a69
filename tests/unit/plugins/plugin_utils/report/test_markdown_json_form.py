# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.markdown import json_form
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import json_values
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import big, hostile, report


@pytest.mark.parametrize(
    "data",
    [report(), report([]), report(checks={}, groups=[], problems=[]), hostile(), big(200)],
    ids=["all", "none", "nothing", "hostile", "big"],
)
def test_it_is_the_report(data: Any) -> None:
    shown = "".join(json_form(data))
    assert json.loads(shown) == data
    assert shown.isascii()
    assert shown.endswith("\n")


def test_each_node_is_a_line() -> None:
    data = report()
    lines = "".join(json_form(data)).splitlines()
    start = lines.index(' "nodes": [')
    assert [json.loads(row.rstrip(",")) for row in lines[start + 1 : -2]] == data["nodes"]


def test_it_is_made_in_parts() -> None:
    """Of many nodes, not all are texts at a time."""
    data = big(100)
    assert max(map(len, json_form(data))) < max(len(json.dumps(data["nodes"])), 1) // 10 + 10000
    assert len(list(json_form(data))) == len(data["nodes"]) * 1 + 2


@given(json_values, json_values)
def test_any_data(checks: Any, node: Any) -> None:
    data: Any = {"title": "x}", "checks": checks, "nodes": [node, node]}
    assert json.loads("".join(json_form(data))) == data
