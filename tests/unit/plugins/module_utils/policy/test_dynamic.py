# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/dynamic.py: the laws on random lives of nodes.

LIVES=10000 pytest -k lives    # as many, instead of a few: make lives

Examples are in test_dynamic_examples.py.
"""

from __future__ import annotations

import random
from typing import Callable, Iterator, NamedTuple, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, count_bits, iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic import (
    Decision,
    decide,
    first_state,
    groups_of,
    mask_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    ANNOUNCE,
    DynamicRules,
    DynamicState,
    Held,
    KernelView,
    Key,
    Use,
    WantedContainer,
    moves_between,
    view_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .test_dynamic_state import apply_moves
from .whole_cores import WHOLE_CORES, whole_cores

LIVES = how_many("LIVES", 30, 1000)
STEPS = 40


# --- random lives ---------------------------------------------------------------------------------


class Step(NamedTuple):
    """One pass of a life."""

    rules: DynamicRules
    containers: Sequence[WantedContainer]
    use: Use
    former: DynamicState
    now: float
    answered: frozenset[Key]
    decision: Decision


def machine(choose: random.Random) -> DynamicRules:
    """Return the rules for a machine of up to 256 CPUs and 8 NUMA nodes, with some CPUs reserved."""
    sockets, nodes, caches = choose.choice((1, 2)), choose.choice((1, 2, 4)), choose.choice((1, 2))
    threads = choose.choice((1, 2, 2))
    cores = choose.randint(1, 256 // (sockets * nodes * caches * threads))
    text = "%d sockets x %d NUMA nodes x %d L3 caches x %d cores x %d threads"
    described = describe_machine(text % (sockets, nodes, caches, cores, threads))
    topology = kubelet_view(described)
    reserved = choose.sample(list(iterate_bits(topology.cpus)), choose.randint(1, 1 + topology.num_cpus // 8))
    return DynamicRules(
        topology,
        CPUSet(reserved),
        choose.choice((StaticOptions(), WHOLE_CORES)),
        shared_minimum=choose.randint(0, topology.num_cpus // 8),
        settle=choose.choice((0.0, 30.0, 30.0)),
        delay=choose.choice((0.0, 5.0, 20.0, 60.0)),
        distances=described.numa_distances if choose.random() < 0.5 else {},
    )


def random_use(choose: random.Random, state: DynamicState) -> Use:
    used = {}
    for key, held in state.containers.items():
        used[key] = count_bits(held.cpus) * choose.choice((0.0, 0.5, 1.0, 1.0))
    return Use(used, count_bits(state.shared) * choose.choice((0.0, 0.0, 0.3, 1.0)))


def life(seed: int) -> Iterator[Step]:
    """Yield containers come, go and work; some answer an announcement, some have their range changed."""
    choose = random.Random(seed)
    rules = machine(choose)
    state, now, containers, number = first_state(rules), 1000.0, [], 0
    per_core = rules.topology.cpus_per_core if rules.options.full_pcpus_only else 1
    biggest = max(1, rules.topology.num_cpus // 6)
    for _step in range(STEPS):
        now += choose.choice((0.0, 1.0, 4.0, 10.0, 10.0, 31.0))
        for _arrival in range(choose.choice((0, 0, 1, 1, 2))):
            number += 1
            count = choose.randint(0, biggest) // per_core * per_core
            most = count * choose.randint(2, 4) if count and choose.random() < 0.7 else 0
            containers.append(WantedContainer("u%d" % number, "app", count, most))
        if containers and choose.random() < 0.3:
            del containers[choose.randrange(len(containers))]
        if containers and choose.random() < 0.1:
            at = choose.randrange(len(containers))
            containers[at] = containers[at]._replace(most=choose.choice((0, 2 * containers[at].cpus)))
        use = random_use(choose, state)
        answered = frozenset(key for key in state.containers if choose.random() < 0.1)
        decision = decide(rules, containers, use, state, now, answered)
        yield Step(rules, list(containers), use, state, now, answered, decision)
        state = decision.state


# --- the laws -------------------------------------------------------------------------------------


def law_never_below_the_first_set(step: Step) -> None:
    for container in step.containers:
        held = step.decision.state.containers.get(container.key)
        before = step.former.containers.get(container.key)
        if before is not None:
            assert held is not None
            assert held.admitted == before.admitted
        if held is not None:
            assert held.admitted & ~held.cpus == held.admitted & held.leaving == 0
            assert count_bits(held.admitted) == container.cpus
        else:
            assert not container.cpus or container.key in step.decision.waiting


def law_growth_is_a_superset(step: Step) -> None:
    for key, held in step.decision.state.containers.items():
        before = step.former.containers.get(key, Held(0, 0)).cpus
        assert not before & ~held.cpus or not held.cpus & ~before, "it grew and shrank"


def law_nodes_only_widen_when_nothing_else_helps(step: Step) -> None:
    nodes = step.rules.topology.numa_nodes
    free = step.decision.state.shared & ~step.rules.reserved.mask & ~unsettled(step)
    for key, held in step.decision.state.containers.items():
        before = step.former.containers.get(key, Held(0, 0)).cpus
        own = groups_of(nodes, before)
        if before and groups_of(nodes, held.cpus) & ~own:
            usable = free & mask_of(nodes, own)
            if step.rules.options.full_pcpus_only:
                usable = whole_cores(step.rules.topology, usable)
            assert not usable, "it could have CPUs %s" % CPUSet.from_mask(usable)


def law_reserved_cpus_stay_shared(step: Step) -> None:
    assert not step.rules.reserved.mask & ~step.decision.state.shared
    assert not step.decision.state.exclusive() & step.rules.reserved.mask


def law_nobody_shares_exclusive_cpus(step: Step) -> None:
    for view in [view_of(step.decision.state), *apply_moves(living(step), step.decision.moves)]:
        check_disjoint(view)


def law_the_shared_pool_keeps_its_floor(step: Step) -> None:
    for view in [view_of(step.decision.state), *apply_moves(living(step), step.decision.moves)]:
        assert count_bits(view.shared) >= step.rules.floor


def law_the_same_gives_the_same(step: Step) -> None:
    restored = DynamicState.from_dict(step.former.to_dict())
    assert restored == step.former
    again = decide(step.rules, step.containers, step.use, restored, step.now, step.answered)
    assert again == step.decision


def law_moves_come_to_what_was_promised_whenever_they_are_killed(step: Step) -> None:
    state, wanted = step.decision.state, view_of(step.decision.state)
    views = [living(step), *apply_moves(living(step), step.decision.moves)]
    assert views[-1] == wanted
    for killed in views:
        rest = list(apply_moves(killed, moves_between(killed, state)))
        assert ([killed] + rest)[-1] == wanted
        for view in rest:
            check_disjoint(view)


def law_nobody_has_more_than_its_range(step: Step) -> None:
    for container in step.containers:
        held = step.decision.state.containers.get(container.key, Held(0, 0))
        before = step.former.containers.get(container.key, Held(0, 0))
        assert count_bits(held.cpus) <= max(container.cpus, container.most, count_bits(before.cpus))


def law_what_was_announced_is_not_put_off(step: Step) -> None:
    for key, held in step.decision.state.containers.items():
        before = step.former.containers.get(key, Held(0, 0))
        if before.leaving & held.leaving:
            assert (held.leaving, held.until) == (before.leaving, before.until)


def law_containers_are_in_the_order_in_which_they_came(step: Step) -> None:
    order = [container.key for container in step.containers]
    assert sorted(step.decision.state.containers, key=order.index) == list(step.decision.state.containers)


LAWS: Sequence[Callable[[Step], None]] = (
    law_never_below_the_first_set,
    law_growth_is_a_superset,
    law_nodes_only_widen_when_nothing_else_helps,
    law_reserved_cpus_stay_shared,
    law_nobody_shares_exclusive_cpus,
    law_the_shared_pool_keeps_its_floor,
    law_the_same_gives_the_same,
    law_moves_come_to_what_was_promised_whenever_they_are_killed,
    law_nobody_has_more_than_its_range,
    law_what_was_announced_is_not_put_off,
    law_containers_are_in_the_order_in_which_they_came,
)


def living(step: Step) -> KernelView:
    """Return what there is before a pass: the kernel's sets of containers that ended are gone, their files are not."""
    view = view_of(step.former)
    present = {container.key for container in step.containers}
    return view._replace(exclusive={key: mask for key, mask in view.exclusive.items() if key in present})


def check_disjoint(view: KernelView) -> None:
    seen = view.shared
    for mask in view.exclusive.values():
        assert mask
        assert not mask & seen
        seen |= mask


def unsettled(step: Step) -> int:
    mask = 0
    for at, cpus in step.former.changed.items():
        mask |= cpus if step.now - at < step.rules.settle else 0
    return mask


class History:
    """Laws about time: what a life has seen so far, without what the state says of it."""

    def __init__(self) -> None:
        self.changed: dict[int, float] = {}
        # Since when the file of a container lacks a CPU that it still has, and since which pass.
        self.announced: dict[tuple[Key, int], tuple[float, int]] = {}
        self.passes = 0

    def check(self, step: Step) -> None:
        rules, now = step.rules, step.now
        self.passes += 1
        for move in step.decision.moves:
            if move.what == ANNOUNCE and move.key is not None:
                has = step.former.containers.get(move.key, Held(0, 0)).cpus
                for cpu in iterate_bits(has & ~move.cpus):
                    self.announced.setdefault((move.key, cpu), (now, self.passes))
        present = {container.key for container in step.containers}
        moved = 0
        for key, before in step.former.containers.items():
            after = step.decision.state.containers.get(key, Held(0, 0)).cpus
            moved |= before.cpus ^ after
            if key not in present:
                continue
            for cpu in iterate_bits(before.cpus ^ after):
                assert now - self.changed.get(cpu, -1e9) >= rules.settle, "CPU %d changed hands too soon" % cpu
            for cpu in iterate_bits(before.cpus & ~after):
                told, in_pass = self.announced.pop((key, cpu))
                has_answered = key in step.answered and in_pass < self.passes
                assert now - told >= rules.delay or has_answered, "CPU %d left too soon" % cpu
        for key, held in step.decision.state.containers.items():
            moved |= held.cpus if key not in step.former.containers else 0
        self.changed.update(dict.fromkeys(iterate_bits(moved), now))
        self.announced = {(key, cpu): at for (key, cpu), at in self.announced.items() if key in present}


@settings(max_examples=LIVES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1))
def test_all_lives_keep_the_laws(seed: int) -> None:
    history = History()
    for step in life(seed):
        for law in LAWS:
            law(step)
        history.check(step)


def test_lives_meet_what_the_laws_are_about() -> None:
    """Else the laws could be kept because nothing happens."""
    grown = shrunk = waited = widened = 0
    for seed in range(25):
        for step in life(seed):
            waited += len(step.decision.waiting)
            for key, held in step.decision.state.containers.items():
                before = step.former.containers.get(key)
                if before is not None:
                    nodes = step.rules.topology.numa_nodes
                    grown += held.cpus != before.cpus and not before.cpus & ~held.cpus
                    shrunk += bool(before.cpus & ~held.cpus)
                    widened += bool(groups_of(nodes, held.cpus) & ~groups_of(nodes, before.cpus))
    assert min(grown, shrunk, waited, widened) > 20
