# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reservations on real machines: what another tool decides where it is right, and our promises for every count."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.reservation import (
    PACKED,
    SPREAD,
    plan_reservation,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs

from .conftest import MACHINES, NAMES, Unpack

GOLDENS = MACHINES / "ppc-goldens.json"
# The saved machine of each must-gather.
GOLDEN_MACHINES = {"must-gather.bare-metal": "ppc-worker1", "must-gather.sno": "ppc-sno"}

ANSWER = Path(__file__).parent / "answer.py"


def goldens() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(GOLDENS.read_text(encoding="utf-8")) if GOLDENS.exists() else []
    return rows


def test_performance_profile_creator_agrees(unpack: Unpack) -> None:
    """The program answers all of its decisions, in one run."""
    cases = [
        {
            "root": unpack(GOLDEN_MACHINES[row["must_gather"]]),
            "count": row["reserved_cpu_count"],
            "strategy": "spread" if row["split_across_numa"] else "packed",
            "smt": "off" if row["disable_ht"] else "keep",
        }
        for row in goldens()
    ]
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([sys.executable, ANSWER, "reserve"], input=text, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 19
    assert answers == [{"reserved": row["reserved"]} for row in goldens()]


@lru_cache(maxsize=None)
def read(root: str) -> Topology:
    return read_sysfs(Tree(root))


@pytest.mark.parametrize("smt", [True, False])
@pytest.mark.parametrize("strategy", [PACKED, SPREAD])
@pytest.mark.parametrize("name", NAMES or ["none"])
def test_promises_hold_for_every_count(unpack: Unpack, name: str, strategy: str, smt: bool) -> None:
    topology = read(unpack(name))
    cores = [core.cpus if smt else core.cpus.take(1) for core in topology.cores]
    usable = CPUSet(cpu for core in cores for cpu in core)
    # Small steps where it is interesting, and on the biggest machines not every count in between.
    step = 1 if len(usable) <= 128 else 7
    planned = set()
    for count in sorted({*range(-1, 20), *range(0, len(usable) + 2, step), *range(len(usable) - 9, len(usable) + 2)}):
        try:
            plan = plan_reservation(topology, count, strategy, smt)
        except InputError:
            continue
        planned.add(count)
        assert len(plan.reserved) == count
        assert plan.reserved < usable
        assert plan.isolated == usable - plan.reserved
        assert all(core <= plan.reserved or core.isdisjoint(plan.reserved) for core in cores)
        if strategy == SPREAD:
            check_spread(topology, cores, plan.reserved)
    assert planned <= set(range(1, len(usable)))
    sizes = {len(core) for core in cores}
    if len(sizes) == 1:
        # With equal cores, exactly the multiples can be had.
        (size,) = sizes
        assert all(count % size == 0 for count in planned)
        assert set(range(size, min(len(usable), 20), size)) <= planned


def check_spread(topology: Topology, cores: list[CPUSet], reserved: CPUSet) -> None:
    """Check that NUMA nodes differ by one core at most, but for those that have given all they have."""
    given, left = [], []
    for node in topology.numa_nodes:
        here = [core for core in cores if core.first() in node.cpus]
        if here:
            given.append(sum(core <= reserved for core in here))
            left.append(len(here) - given[-1])
    for mine, more in zip(given, left):
        assert mine >= max(given) - 1 or not more
