# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_caches/ways.py and write.py: a plan's laws, and that a kernel takes it.

The kernel's part is played by the model of tests/machines/resctrl/, in this process.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import (
    machine_of,
    pool_of,
    wish_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.resctrl import (
    Cache,
    Resctrl,
    is_one_run,
    read_resctrl,
    runs,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.ways import divide, make_target
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.write import (
    MAKE,
    REMOVE,
    ResctrlStep,
    lines_after,
    lines_of,
    steps_back,
    steps_to,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import count_bits
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.chance import case
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.kernel import Kernel
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import give, node_at, write_node
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import record
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

CASES = range(5000, 5040)


@pytest.fixture
def root() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


def take(kernel: Kernel, steps: list[ResctrlStep]) -> None:
    """Have the kernel take these steps; it refuses none."""
    for step in steps:
        if step.kind == MAKE:
            kernel.mkdir("/" + step.group)
        elif step.kind == REMOVE:
            kernel.rmdir("/" + step.group)
        else:
            kernel.write("/".join(["", *filter(None, [step.group]), step.file]), step.text.encode() + b"\n")


def read(root: Path, kernel: Kernel) -> Resctrl:
    shutil.rmtree(root / "sys/fs", ignore_errors=True)
    record(root, kernel.shape, kernel)
    found = read_resctrl(Tree(str(root)))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", CASES)
def test_a_kernel_takes_each_plan_and_the_way_back(seed: int, root: Path) -> None:
    given_case = case(seed)
    kernel = Kernel(given_case.shape)
    for path, text in given_case.others:
        kernel.mkdir(path) if text == "mkdir" else kernel.write(path, text.encode())
    before, level = kernel.state(), given_case.shape.caches[0].name
    write_node(root, given_case.shape)
    former = read(root, kernel).root.schemata[level]
    for (exclusive, shared), options in zip(given_case.pools, given_case.wishes):
        give(root, exclusive, shared)
        node, found, wish = node_at(root), read(root, kernel), wish_of(options)
        try:
            target = make_target(found, wish, machine_of(node, level), pool_of(node, wish, []), former)
        except (InputError, RefusedError):
            continue
        steps = steps_to(found, target)
        take(kernel, steps)
        now = read(root, kernel)
        assert steps_to(now, target) == []
        assert [line for line in lines_after(found, level, steps) if "MB" not in line] == [
            line for line in lines_of(now, level) if "MB" not in line
        ]
    take(kernel, steps_back(read(root, kernel), level, former))
    assert kernel.state() == before


caches = st.builds(
    lambda bits, least, io, sparse: Cache("L3", 16, (1 << bits) - 1, least, io & ((1 << bits) - 1), sparse, {}),
    st.integers(3, 20),
    st.integers(1, 2),
    st.integers(0, (1 << 20) - 1),
    st.booleans(),
)


@given(caches, st.integers(1, 19), st.integers(0, 10))
@settings(max_examples=examples(300))
def test_the_ways_of_two_groups_and_the_rest(cache: Cache, exclusive: int, shared: int) -> None:
    try:
        ways = divide(cache, cache.ways, exclusive, shared)
    except RefusedError:
        assert exclusive + shared + cache.least > count_bits(cache.ways) or min(exclusive, shared or 2) < cache.least
        return
    parts = [ways.exclusive, ways.root, *([ways.shared] if shared else [])]
    assert count_bits(ways.exclusive) == exclusive
    assert sum(map(count_bits, parts)) == count_bits(cache.ways)
    assert ways.exclusive | ways.root | ways.shared == cache.ways
    assert all(cache.takes(mask) for mask in parts)
    assert ways.io == ways.exclusive & cache.io_ways
    if not cache.sparse:
        assert all(map(is_one_run, parts))
        other_end = cache.ways & ~(cache.ways >> exclusive)
        assert count_bits(ways.io) <= count_bits(other_end & cache.io_ways)


@given(st.integers(0, (1 << 64) - 1))
def test_runs_are_all_of_a_mask(mask: int) -> None:
    found = list(runs(mask))
    assert sum(found) == mask
    assert all(map(is_one_run, found))
