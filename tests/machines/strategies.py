# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random machines, for Hypothesis."""

from __future__ import annotations

import re
from itertools import permutations

from hypothesis import assume
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

from .shape import GROUP_LEVELS, Shape

MOST_NUMA_NODES = 8

# In each order that a name can have.
GROUP_ORDERS = [
    "".join(letters)
    for size in range(len(GROUP_LEVELS) + 1)
    for letters in permutations(GROUP_LEVELS, size)
    if not re.search("[dl].*s", "".join(letters))
]


def cpusets(most: int = 200) -> st.SearchStrategy[CPUSet]:
    """Return a strategy for CPU sets: of few CPUs, and of long runs."""
    cpus = st.integers(0, most)
    runs = st.tuples(cpus, cpus).map(lambda pair: range(min(pair), max(pair) + 1))
    return st.one_of(
        st.frozensets(cpus, max_size=12).map(CPUSet),
        st.lists(runs, max_size=4).map(lambda lists: CPUSet(cpu for run in lists for cpu in run)),
    )


@st.composite
def shapes(draw: st.DrawFn, most_cpus: int = 24, most_threads: int = 4, hybrid: bool | None = None) -> Shape:
    """Draw the shape of a machine. hybrid: only such, or none of them."""
    budget = most_cpus
    threads = draw(st.sampled_from([count for count in (1, 2, 4) if count <= most_threads]))
    budget //= threads
    groups = []
    for letter in draw(st.sampled_from(GROUP_ORDERS)):
        count = draw(st.integers(0 if letter == "l" else 1, max(1, min(3, budget))))
        groups.append((letter, count))
        budget //= count or 1
    singles = 0 if hybrid is False else draw(st.integers(1 if hybrid else 0, max(1, min(2, budget - 1))))
    shape = Shape(
        groups=tuple(groups),
        cores=draw(st.integers(1, max(1, min(4, budget - singles)))),
        threads=threads,
        single_cores=singles,
        adjacent=draw(st.booleans()),
        interleaved=draw(st.booleans()),
        memory_nodes=draw(st.sampled_from([0, 0, 1, 2, 3])),
        distances=draw(st.sampled_from([(10, 12, 21), (10, 11, 32), (10, 10, 10)])),
    )
    whole = shape.whole()
    # To distribute CPUs over more takes the kubelet hours, and us.
    assume(len(whole.numa_nodes) <= MOST_NUMA_NODES)
    if draw(st.booleans()):
        count = len(whole.numa_nodes)
        ids = draw(st.frozensets(st.integers(0, 40), min_size=count, max_size=count))
        shape = shape._replace(node_ids=tuple(sorted(ids)))
    some_cpus = st.frozensets(st.sampled_from(list(whole.online))).map(CPUSet)
    no_cpus = st.just(CPUSet())
    offline = draw(st.one_of(no_cpus, some_cpus.filter(lambda cpus: cpus != whole.online)))
    return shape._replace(
        offline=offline,
        isolated=draw(st.one_of(no_cpus, some_cpus)),
        nohz_full=draw(st.one_of(no_cpus, some_cpus)),
    )
