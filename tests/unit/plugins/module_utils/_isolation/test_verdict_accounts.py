# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.sample import CgroupTime, Ticks
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.verdict import (
    Account,
    Runner,
    RunnerShare,
    accounts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.samples import OBSERVER, OWN, OWN_PATH, named, sample, task

MINE = Runner("container", "shop/db/server", OWN)
SHARES = st.floats(0, 1)


def shares(account: Account) -> dict[str, Any]:
    return {owner.name: pytest.approx(part.share) for owner, part in account.parts.items()}


def test_cgroups_of_v1_count_on_each_cpu() -> None:
    """Tasks in them say nothing more; those of the topmost cgroup do, within what is left."""
    cgroups = [CgroupTime("", {1: 0.2}), CgroupTime(OWN_PATH, {1: 0.5}), CgroupTime("system.slice/a.service", {0: 0.4})]
    tasks = [
        task("in a container", {0: 0.9}, OWN_PATH),
        task("bound", {1: 0.05}, sure=True),
        task("seen here once", {1: 0.3}),
        task("kworker/1:2+events", {1: 0.01}, kernel=True, sure=True),
    ]
    found = accounts(sample(busy={0: 0.4, 1: 0.7}, cgroups=cgroups, tasks=tasks), named, {})
    assert shares(found[0]) == {"system.slice/a.service": 0.4}
    # 0.7 - 0.5 - 0.05 - 0.01 is left for what was sampled there.
    assert shares(found[1]) == {
        "shop/db/server": 0.5,
        "seen here once": 0.14,
        "bound": 0.05,
        "kworker/1:2-events": 0.01,
    }
    assert found[1].unattributed == 0
    assert [part.sure for part in found[1].parts.values()] == [True, False, True, True]


def test_what_nobody_accounts_for_is_unattributed() -> None:
    found = accounts(sample(busy={1: 0.3}, cgroups=[CgroupTime("", {1: 0.3})], tasks=[task("a", {1: 0.1})]), named, {})
    assert shares(found[1]) == {"a": 0.1}
    assert found[1].unattributed == pytest.approx(0.2)


def test_a_cgroup_that_began_meanwhile() -> None:
    tasks = [task("new", {1: 0.1}, "new.slice")]
    found = accounts(sample(busy={1: 0.2}, cgroups=[CgroupTime("", {1: 0.2})], tasks=tasks), named, {})
    assert found[1].parts == {Runner("cgroup", "new.slice"): RunnerShare(0.1, False)}


def test_what_is_counted_above_a_container_that_has_ended_is_nobodys() -> None:
    """On its CPUs; elsewhere the pod's cgroup is the best that can be said."""
    cgroups = [CgroupTime("", {}), CgroupTime("kubepods/pod1", {0: 0.3, 1: 0.4})]
    tasks = [task("new", {1: 0.2}, "kubepods/pod1/" + "cd" * 32), task("seen here once", {1: 0.3})]
    more = {"busy": {0: 0.3, 1: 0.4}, "cgroups": cgroups, "tasks": tasks}
    found = accounts(sample(**more), named, {}, {"kubepods/pod1": CPUSet((1,))})
    assert shares(found[0]) == {"kubepods/pod1": 0.3}
    assert found[1].parts == {}
    assert found[1].unattributed == pytest.approx(0.4)
    assert shares(accounts(sample(**more), named, {})[1]) == {"kubepods/pod1": 0.4}


def test_v2_has_only_tasks() -> None:
    tasks = [task("a", {1: 0.4}, OWN_PATH), task("b", {0: 0.1, 1: 0.1}, "system.slice/b.service"), task("c", {0: 0.2})]
    found = accounts(
        sample(busy={0: 0.3, 1: 0.7}, busy_exact=False, tasks=tasks, idle={0: 0.7, 1: 0.3}), named, {OWN_PATH: CPUSet()}
    )
    assert shares(found[0]) == {"c": 0.2, "system.slice/b.service": 0.1}
    assert shares(found[1]) == {"shop/db/server": 0.4, "system.slice/b.service": 0.1}
    assert found[1].unattributed == pytest.approx(0.2)


def test_short_lived_tasks_of_a_confined_cgroup_are_its_own() -> None:
    parts = {"busy": {1: 0.7}, "busy_exact": False, "idle": {0: 1.0, 1: 0.3}, "tasks": [task("a", {1: 0.1}, OWN_PATH)]}
    found = accounts(sample(totals={OWN_PATH: 0.6}, **parts), named, {OWN_PATH: CPUSet((1,))})
    assert shares(found[1]) == {"shop/db/server": 0.6}
    assert found[1].unattributed == pytest.approx(0.1)
    # What it counts itself is never taken from others.
    found = accounts(sample(totals={OWN_PATH: 5.0}, **parts), named, {OWN_PATH: CPUSet((1,))})
    assert shares(found[1]) == {"shop/db/server": 0.7}


def test_the_observer_is_taken_out_of_its_cgroup() -> None:
    cgroups = [CgroupTime("user.slice", {1: 0.3})]
    tasks = [task("python", {1: 0.1}, "user.slice", pid=OBSERVER)]
    found = accounts(sample(busy={1: 0.3}, cgroups=cgroups, tasks=tasks), named, {})
    assert {(owner.kind, owner.name): part.share for owner, part in found[1].parts.items()} == {
        ("cgroup", "user.slice"): pytest.approx(0.2),
        ("observer", "python"): pytest.approx(0.1),
    }


def test_interrupts_are_counted_in_ticks() -> None:
    found = accounts(sample(ticks={1: Ticks(0, 0, 0, 0, 0, 10, 20, 30)}), named, {})
    assert (found[1].irq, found[1].softirq, found[1].steal) == pytest.approx((0.01, 0.02, 0.03))
    assert (found[0].irq, found[0].softirq, found[0].steal) == (0, 0, 0)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from((0, 1, 7)), SHARES, st.booleans()), max_size=8),
    SHARES,
    SHARES,
)
def test_nothing_is_lost_or_counted_twice(
    tasks: list[tuple[str, int, float, bool]], busy: float, in_cgroup: float
) -> None:
    """All parts and what is unattributed are what was busy, unless what is sure is more than that already."""
    made = [task(name, {cpu: share}, sure=sure) for name, cpu, share, sure in tasks]
    cgroups = [CgroupTime("x.slice", {1: min(in_cgroup, busy)})]
    account = accounts(sample(busy={1: busy}, cgroups=cgroups, tasks=made), named, {})[1]
    total = sum(part.share for part in account.parts.values()) + account.unattributed
    sure = min(in_cgroup, busy) + sum(share for _name, cpu, share, is_sure in tasks if cpu == 1 and is_sure)
    assert total == pytest.approx(max(busy, sure))
    assert all(part.share > 0 for part in account.parts.values())
