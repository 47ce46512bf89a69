# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/plugin_utils/rollout/scheduling.py: node affinity; selectors and taints are in test_capacity.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.scheduling import Place, rules_of

PLACE = Place("worker-1", {"disk": "ssd", "cores": "16"})


def expression(operator: str, *values: str, key: str = "disk") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def chosen(*terms: Any) -> bool:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return rules_of({"affinity": {"nodeAffinity": required}}).choose(PLACE)


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (expression("In", "hdd", "ssd"), True),
        (expression("In", "hdd"), False),
        (expression("In", "ssd", key="tier"), False),
        (expression("NotIn", "hdd"), True),
        (expression("NotIn", "ssd"), False),
        (expression("NotIn", "ssd", key="tier"), True),
        (expression("Exists"), True),
        (expression("Exists", key="tier"), False),
        (expression("DoesNotExist"), False),
        (expression("DoesNotExist", key="tier"), True),
        (expression("Gt", "8", key="cores"), True),
        (expression("Gt", "16", key="cores"), False),
        (expression("Lt", "17", key="cores"), True),
        (expression("Lt", "16", key="cores"), False),
        # What is no number, not there, or no operator, is met by no node.
        (expression("Gt", "8"), False),
        (expression("Gt", key="cores"), False),
        (expression("Lt", "8", key="tier"), False),
        (expression("Near", "ssd"), False),
    ],
)
def test_operators(requirement: dict[str, Any], holds: bool) -> None:
    assert chosen({"matchExpressions": [requirement]}) is holds


def test_any_term_is_enough_and_all_of_a_term_must_hold() -> None:
    ssd, hdd = ({"matchExpressions": [expression("In", disk)]} for disk in ("ssd", "hdd"))
    assert chosen(hdd, ssd)
    assert not chosen({"matchExpressions": [expression("In", "ssd"), expression("Exists", key="tier")]})
    named = {"matchFields": [expression("In", "worker-1", key="metadata.name")]}
    assert chosen(named)
    assert chosen({**named, **ssd})
    assert not chosen({**named, **hdd})
    # Terms that ask for nothing, or no terms, are met by no node.
    assert not chosen({})
    assert not chosen()


def test_the_only_nodes_of_a_pod() -> None:
    def names(*terms: Any) -> list[str] | None:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        return rules_of({"affinity": {"nodeAffinity": required}}).only_names()

    first, second = ({"matchFields": [expression("In", name, key="metadata.name")]} for name in ("a", "b"))
    assert names(first, second) == ["a", "b"]
    assert names(first, {"matchExpressions": [expression("Exists")]}) is None
    assert names({"matchFields": [expression("NotIn", "a", key="metadata.name")]}) is None
    assert rules_of({}).only_names() is None
