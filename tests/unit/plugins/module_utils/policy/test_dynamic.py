# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of plugins/module_utils/policy/dynamic.py and dynamic_pass.py: the laws on random lives of nodes, and examples.

LIVES=10000 pytest -k lives    # as many, instead of a few: make lives
"""

from __future__ import annotations

import os
import random
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, count_bits, iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic import (
    Decision,
    DynamicPolicy,
    decide,
    first_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_rules import Rules, Use, Wanted
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import DynamicState, Held, Key
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import NONE, TopologyManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.moves import (
    ANNOUNCE,
    View,
    apply_moves,
    moves_between,
    view_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.near import groups_of, mask_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import (
    CPUTopology,
    kubelet_view,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.workload.pods import pod_from_manifest

LIVES = int(os.environ.get("LIVES", "60"))
STEPS = 40
WHOLE_CORES = StaticOptions(full_pcpus_only=True)


# --- random lives -------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One pass of a life."""

    rules: Rules
    containers: Sequence[Wanted]
    use: Use
    former: DynamicState
    now: float
    answered: frozenset[Key]
    decision: Decision


def machine(choose: random.Random) -> Rules:
    """Up to 256 CPUs and 8 NUMA nodes, with any part of them reserved."""
    sockets, nodes, caches = choose.choice((1, 2)), choose.choice((1, 2, 4)), choose.choice((1, 2))
    threads = choose.choice((1, 2, 2))
    cores = choose.randint(1, 256 // (sockets * nodes * caches * threads))
    text = "%d sockets x %d NUMA nodes x %d L3 caches x %d cores x %d threads"
    described = describe_machine(text % (sockets, nodes, caches, cores, threads))
    topology = kubelet_view(described)
    reserved = choose.sample(list(iterate_bits(topology.cpus)), choose.randint(1, 1 + topology.num_cpus // 8))
    return Rules(
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
    """Containers come, go and work; some answer an announcement, some have their range changed."""
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
            containers.append(Wanted("u%d" % number, "app", count, most))
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


# --- the laws -----------------------------------------------------------------------------------------


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


def living(step: Step) -> View:
    """What there is before a pass: the kernel's sets of containers that ended are gone, their files are not."""
    view = view_of(step.former)
    present = {container.key for container in step.containers}
    return view._replace(exclusive={key: mask for key, mask in view.exclusive.items() if key in present})


def check_disjoint(view: View) -> None:
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


def whole_cores(topology: CPUTopology, cpus: int) -> int:
    return sum(core for core in topology.cores.values() if not core & ~cpus)


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


# --- examples -----------------------------------------------------------------------------------------


def rules_of(text: str = "1 socket x 4 cores x 2 threads", reserved: str = "0", **others: Any) -> Rules:
    described = describe_machine(text)
    rules = Rules(kubelet_view(described), CPUSet.parse(reserved), distances=described.numa_distances)
    return rules._replace(**others)


def cpus_of(decision: Decision, pod: str) -> str:
    return str(CPUSet.from_mask(decision.state.containers[pod, "app"].cpus))


def lines(decision: Decision) -> list[str]:
    """The moves, readable."""
    return [
        " ".join(
            text
            for text in (
                move.what,
                move.key[0] if move.key else "",
                str(CPUSet.from_mask(move.cpus)),
                "" if move.until is None else "until %g" % move.until,
            )
            if text
        )
        for move in decision.moves
    ]


ELASTIC = Wanted("e", "app", 2, 6)
BUSY = Use({("e", "app"): 2.0})


def test_a_busy_container_grows_and_gives_back_what_another_needs() -> None:
    """The whole story, with its steps in order."""
    rules = rules_of(settle=10.0)
    first = decide(rules, [ELASTIC], Use(), first_state(rules), 0)
    assert lines(first) == ["pool 0,2-4,6-7", "exclusive e 1,5", "announce e 1,5"]
    second = decide(rules, [ELASTIC], BUSY, first.state, 10)
    assert lines(second) == ["pool 0,3-4,6-7", "exclusive e 1-2,5", "announce e 1-2,5"]
    third = decide(rules, [ELASTIC], Use({("e", "app"): 3.0}), second.state, 20)
    assert cpus_of(third, "e") == "1-2,5-6"
    fourth = decide(rules, [ELASTIC], Use({("e", "app"): 3.9}), third.state, 30)
    assert cpus_of(fourth, "e") == "1-3,5-7"
    # Another comes: what it gets is announced, then taken from the one, and only then given to the other.
    both = [ELASTIC, Wanted("s", "app", 4)]
    announced = decide(rules, both, Use({("e", "app"): 6.0}), fourth.state, 41)
    assert announced.waiting == (("s", "app"),)
    assert lines(announced) == ["announce e 1,5 until 46"]
    done = decide(rules, both, Use({("e", "app"): 6.0}), announced.state, 46)
    assert not done.waiting
    assert lines(done)[0] == "exclusive e 1,5"  # as its file says since 41
    assert [line.split()[0] for line in lines(done)] == ["exclusive", "exclusive", "announce", "announce"]


def test_without_the_annotation_nothing_ever_changes() -> None:
    rules = rules_of()
    state, busy = first_state(rules), Use({("s", "app"): 2.0})
    for now in range(0, 300, 10):
        decision = decide(rules, [Wanted("s", "app", 2)], busy, state, now)
        assert decision.state.containers == {("s", "app"): Held(0b100010, 0b100010)}
        assert now == 0 or not decision.moves
        state = decision.state


def test_a_first_set_is_that_of_the_static_policy() -> None:
    rules = rules_of("2 sockets x 8 cores x 2 threads", "0,16")
    manager = CPUManager(DynamicPolicy(rules, 36), TopologyManager(NONE, "container", [0, 1]))
    containers, state = [], first_state(rules)
    for number, count in enumerate((4, 8, 3, 6)):
        manifest = {
            "metadata": {"name": "p", "uid": "u%d" % number},
            "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": count, "memory": "1Gi"}}}]},
        }
        assert manager.add(pod_from_manifest(manifest)).admitted
        containers.append(Wanted("u%d" % number, "app", count, 32))
        decision = DynamicPolicy(rules, 36).decide(containers, Use(), state, float(number))
        state = decision.state
        assert cpus_of(decision, "u%d" % number) == str(manager.cpus_of("u%d" % number, "app"))


def test_a_first_set_waits_for_what_has_not_settled() -> None:
    rules = rules_of("1 socket x 4 cores", "0", settle=30.0, delay=5.0)
    state = decide(rules, [ELASTIC._replace(cpus=1, most=3)], Use(), first_state(rules), 0).state
    busy = Use({("e", "app"): 1.0})
    containers = [ELASTIC._replace(cpus=1, most=3)]
    state = decide(rules, containers, Use({("e", "app"): 3.0}), state, 40).state
    assert count_bits(state.containers["e", "app"].cpus) == 2
    # What another of its size could get within the delay is left, until what it has grown into has settled.
    state = decide(rules, containers, Use({("e", "app"): 3.0}), state, 50).state
    assert count_bits(state.containers["e", "app"].cpus) == 2
    containers.append(Wanted("s", "app", 2))
    times: dict[str, int] = {}
    for now in range(51, 100):
        decision = decide(rules, containers, busy, state, now)
        state = decision.state
        for line in lines(decision):
            times.setdefault(" ".join(line.split()[:2]), now)
    assert not decision.waiting
    assert times["announce e"] == 70
    assert times["exclusive s"] == 75


def test_nobody_grows_into_what_a_first_set_waits_for() -> None:
    rules = rules_of("1 socket x 8 cores", "0")
    others = {("f", "app"): Held(0b10000000, 0b10000000)}
    former = DynamicState(0b1100001, {("e", "app"): Held(0b110, 0b11110), **others})
    containers = [ELASTIC, Wanted("f", "app", 1, 4), Wanted("s", "app", 4)]
    use = Use({("e", "app"): 4.0, ("f", "app"): 1.0})
    decision = decide(rules, containers, use, former, 100)
    assert decision.waiting == (("s", "app"),)
    assert cpus_of(decision, "f") == "7"
    done = decide(rules, containers, use, decision.state, 105)
    assert cpus_of(done, "s") == "3-6"
    # Without the one that waits, it grows.
    assert cpus_of(decide(rules, containers[:2], use, former, 100), "f") == "5,7"


def test_a_container_that_is_too_big_stops_nobody_from_growing() -> None:
    rules = rules_of(settle=0.0)
    containers = [ELASTIC, Wanted("big", "app", 100)]
    first = decide(rules, containers, BUSY, first_state(rules), 0)
    assert first.waiting == (("big", "app"),)
    second = decide(rules, containers, BUSY, first.state, 1)
    assert count_bits(second.state.containers["e", "app"].cpus) == 3


def test_the_shared_pool_gets_back_what_it_needs() -> None:
    rules = rules_of("1 socket x 16 cores", "0")
    state = decide(rules, [ELASTIC._replace(most=14)], Use(), first_state(rules), 0).state
    for now in range(10, 100, 10):
        size = count_bits(state.containers["e", "app"].cpus)
        state = decide(rules, [ELASTIC._replace(most=14)], Use({("e", "app"): float(size)}, 1.0), state, now).state
    # The pool keeps twice what it uses.
    assert count_bits(state.shared) == 2
    pressed = decide(rules, [ELASTIC._replace(most=14)], Use({("e", "app"): 14.0}, 2.0), state, 200)
    assert count_bits(pressed.state.containers["e", "app"].leaving) == 2
    done = decide(rules, [ELASTIC._replace(most=14)], Use({("e", "app"): 14.0}, 2.0), pressed.state, 205)
    assert count_bits(done.state.shared) == 4


def test_busy_containers_come_to_the_same_size() -> None:
    rules = rules_of("1 socket x 16 cores", "0", settle=0.0, delay=0.0)
    early, late = Wanted("a", "app", 2, 14), Wanted("b", "app", 2, 14)
    state, now = first_state(rules), 0
    for containers in [[early]] * 8 + [[early, late]] * 12:
        now += 10
        use = Use({key: float(count_bits(held.cpus)) for key, held in state.containers.items()})
        state = decide(rules, containers, use, state, now).state
    sizes = [count_bits(held.cpus) for held in state.containers.values()]
    assert sum(sizes) == 15
    assert abs(sizes[0] - sizes[1]) <= 2


def test_a_core_is_never_split_with_whole_cores() -> None:
    rules = rules_of("1 socket x 8 cores x 2 threads", "0,8", options=WHOLE_CORES, settle=0.0)
    state = first_state(rules)
    for now in range(20):
        size = count_bits(state.exclusive())
        state = decide(rules, [ELASTIC._replace(most=9)], Use({("e", "app"): float(size)}), state, now).state
        assert whole_cores(rules.topology, state.exclusive()) == state.exclusive()
    assert count_bits(state.exclusive()) == 8


def test_growth_goes_to_the_nearest_numa_node() -> None:
    rules = rules_of("2 sockets x 2 NUMA nodes x 2 cores", "0", settle=0.0)
    nodes = rules.topology.numa_nodes
    state, seen = first_state(rules), []
    for now in range(8):
        size = count_bits(state.exclusive())
        state = decide(rules, [Wanted("e", "app", 1, 7)], Use({("e", "app"): float(size)}), state, now).state
        seen += [node for node in nodes if nodes[node] & state.exclusive() and node not in seen]
    assert seen in ([0, 1, 2, 3], [1, 0, 2, 3])


def test_cpus_that_were_switched_off_are_replaced() -> None:
    rules = rules_of("1 socket x 8 cores", "0")
    state = decide(rules, [Wanted("s", "app", 3)], Use(), first_state(rules), 0).state
    assert CPUSet.from_mask(state.exclusive()) == CPUSet.parse("1-3")
    without = kubelet_view(describe_machine("1 socket x 8 cores").with_offline(CPUSet.parse("2-3")))
    decision = decide(rules._replace(topology=without), [Wanted("s", "app", 3)], Use(), state, 10)
    assert cpus_of(decision, "s") == "1,4-5"
    # All of them: it is given new ones, and shares the pool before it has them.
    smaller = kubelet_view(describe_machine("1 socket x 8 cores").with_offline(CPUSet.parse("1-3")))
    decision = decide(rules._replace(topology=smaller), [Wanted("s", "app", 3)], Use(), state, 10)
    assert lines(decision) == ["share s", "pool 0,7", "exclusive s 4-6", "announce s 4-6"]


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    rules = rules_of()
    state = decide(rules, [ELASTIC], Use(), first_state(rules), 1e6).state
    state = decide(rules, [ELASTIC], Use(), state, 100).state
    assert max(state.changed) == 100
    grown = decide(rules, [ELASTIC], BUSY, state, 131).state
    assert count_bits(grown.containers["e", "app"].cpus) == 3
    leaving = {("e", "app"): Held(0b100010, 0b100110, 0b100, 9e9)}
    state = decide(rules, [ELASTIC], Use(), DynamicState(0b11011001, leaving), 200).state
    assert state.containers["e", "app"].until == 205


def test_who_has_answered_is_not_waited_for() -> None:
    rules = rules_of(delay=60.0)
    held = {("e", "app"): Held(0b100010, 0b100110, 0b100, 60.0)}
    former = DynamicState(0b11011001, held)
    assert decide(rules, [ELASTIC], Use(), former, 1).state.containers == held
    answered = decide(rules, [ELASTIC], Use(), former, 1, frozenset({("e", "app")}))
    assert lines(answered) == ["exclusive e 1,5", "pool 0,2-4,6-7", "announce e 1,5"]


@pytest.mark.parametrize("most", [0, 2])
def test_what_is_beyond_the_range_is_given_back(most: int) -> None:
    rules = rules_of(delay=0.0)
    former = DynamicState(0b10001001, {("e", "app"): Held(0b100010, 0b1110110)})
    decision = decide(rules, [ELASTIC._replace(most=most)], BUSY, former, 50)
    assert cpus_of(decision, "e") == "1,5"
