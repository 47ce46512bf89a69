# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.isolation_info import (
    PodContainers,
    cgroups_above,
    changed,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import CgroupTime
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.verdict import Exclusive
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.samples import sample, task

FIRST, SECOND, SANDBOX = "a" * 64, "b" * 64, "c" * 64
POD = "kubepods/podu"


def pod(*ids: str) -> dict[str, PodContainers]:
    return {"u": PodContainers(POD, frozenset(ids))}


@pytest.mark.parametrize(
    ("ids", "before", "after", "more", "expected"),
    [
        ({FIRST}, pod(FIRST, SANDBOX), pod(FIRST, SANDBOX), {}, False),
        ({FIRST}, pod(FIRST, SANDBOX), pod(FIRST, SECOND, SANDBOX), {}, False),  # another container of the pod
        ({FIRST}, pod(FIRST, SANDBOX), pod(SANDBOX), {}, True),
        ({FIRST}, pod(FIRST, SANDBOX), pod(SECOND, SANDBOX), {}, True),
        ({FIRST}, pod(FIRST, SANDBOX), {}, {}, True),
        # The hierarchy that was read had lost it, that of the cpusets not yet.
        ({FIRST}, pod(FIRST), pod(FIRST), {"ended": frozenset({POD + "/" + FIRST})}, True),
        (set(), pod(SANDBOX), pod(SANDBOX), {}, False),
        (set(), {}, {}, {}, False),
        (set(), pod(SANDBOX), pod(SANDBOX, FIRST), {}, True),
        (set(), {}, pod(FIRST), {}, True),
        # Began and ended between the two.
        (set(), pod(SANDBOX), pod(SANDBOX), {"cgroups": [CgroupTime(POD, {1: 0.2})]}, True),
        (set(), pod(SANDBOX), pod(SANDBOX), {"cgroups": [CgroupTime(POD, {})]}, False),
        (set(), pod(SANDBOX), pod(SANDBOX), {"tasks": [task("x", {1: 0.1}, POD + "/" + FIRST)]}, True),
        (set(), pod(SANDBOX), pod(SANDBOX), {"tasks": [task("x", {1: 0.1}, POD + "/" + SANDBOX)]}, False),
        (set(), pod(SANDBOX), pod(SANDBOX), {"tasks": [task("x", {1: 0.1}, POD + "/conmon.scope")]}, False),
    ],
)
def test_who_ended_or_began(
    ids: set[str],
    before: Mapping[str, PodContainers],
    after: Mapping[str, PodContainers],
    more: dict[str, Any],
    expected: bool,
) -> None:
    exclusive = Exclusive("u", "shop/db", "server", CPUSet((1,)), frozenset(ids))
    assert changed([exclusive], before, after, sample(**more)) == ([exclusive] if expected else [])


def test_where_v1_counts_the_time_of_containers_that_ended() -> None:
    ended = Exclusive("u", "shop/db", "server", CPUSet((1,)), frozenset({FIRST}))
    second = ended._replace(container="more", cpus=CPUSet((2,)))
    expected = {POD: CPUSet((1, 2)), "kubepods": CPUSet((1, 2))}
    assert cgroups_above([ended, second], pod(FIRST), {}) == expected
    assert cgroups_above([ended, second], {}, pod(FIRST)) == expected
    assert cgroups_above([ended], {}, {}) == {}
