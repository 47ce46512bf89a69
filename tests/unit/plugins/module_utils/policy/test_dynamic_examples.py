# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Examples of what the policy dynamic decides: who grows, who waits, who gives back, and in which moves."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import pod_from_manifest
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, count_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic import (
    Decision,
    DynamicPolicy,
    decide,
    first_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.dynamic_state import (
    DynamicRules,
    DynamicState,
    Held,
    Use,
    WantedContainer,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import NONE, TopologyManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.description import describe_machine
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view

from .whole_cores import WHOLE_CORES, whole_cores


def rules_of(text: str = "1 socket x 4 cores x 2 threads", reserved: str = "0", **others: Any) -> DynamicRules:
    described = describe_machine(text)
    rules = DynamicRules(kubelet_view(described), CPUSet.parse(reserved), distances=described.numa_distances)
    return rules._replace(**others)


def cpus_of(decision: Decision, pod: str) -> str:
    return str(CPUSet.from_mask(decision.state.containers[pod, "app"].cpus))


def lines(decision: Decision) -> list[str]:
    """Return the moves, readable."""
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


ELASTIC = WantedContainer("e", "app", 2, 6)
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
    both = [ELASTIC, WantedContainer("s", "app", 4)]
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
        decision = decide(rules, [WantedContainer("s", "app", 2)], busy, state, now)
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
        containers.append(WantedContainer("u%d" % number, "app", count, 32))
        decision = DynamicPolicy(rules, 36).decide(containers, Use(), state, float(number))
        state = decision.state
        assert cpus_of(decision, "u%d" % number) == str(manager.cpus_of("u%d" % number, "app"))


def test_a_first_set_leaves_the_shared_pool_its_minimum() -> None:
    rules = rules_of(reserved="0", shared_minimum=4)
    for count, is_admitted in ((3, True), (4, False)):
        manager = CPUManager(DynamicPolicy(rules, 36), TopologyManager(NONE, "container", [0]))
        limits = {"cpu": count, "memory": "1Gi"}
        spec = {"containers": [{"name": "app", "resources": {"limits": limits}}]}
        admission = manager.add(pod_from_manifest({"metadata": {"name": "p", "uid": "u"}, "spec": spec}))
        assert admission.admitted is is_admitted
        # What is refused has no CPUs but those of all.
        assert len(manager.cpus_of("u", "app")) == (count if is_admitted else 8)
    assert admission.message.endswith(
        "not enough cpus available to satisfy request: the shared pool keeps 5 CPUs, which is unexpected"
    )


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
    containers.append(WantedContainer("s", "app", 2))
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
    containers = [ELASTIC, WantedContainer("f", "app", 1, 4), WantedContainer("s", "app", 4)]
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
    containers = [ELASTIC, WantedContainer("big", "app", 100)]
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
    early, late = WantedContainer("a", "app", 2, 14), WantedContainer("b", "app", 2, 14)
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
        state = decide(rules, [WantedContainer("e", "app", 1, 7)], Use({("e", "app"): float(size)}), state, now).state
        seen += [node for node in nodes if nodes[node] & state.exclusive() and node not in seen]
    assert seen in ([0, 1, 2, 3], [1, 0, 2, 3])


def test_cpus_that_were_switched_off_are_replaced() -> None:
    rules = rules_of("1 socket x 8 cores", "0")
    state = decide(rules, [WantedContainer("s", "app", 3)], Use(), first_state(rules), 0).state
    assert CPUSet.from_mask(state.exclusive()) == CPUSet.parse("1-3")
    without = kubelet_view(describe_machine("1 socket x 8 cores").with_offline(CPUSet.parse("2-3")))
    decision = decide(rules._replace(topology=without), [WantedContainer("s", "app", 3)], Use(), state, 10)
    assert cpus_of(decision, "s") == "1,4-5"
    # All of them: it is given new ones, and shares the pool before it has them.
    smaller = kubelet_view(describe_machine("1 socket x 8 cores").with_offline(CPUSet.parse("1-3")))
    decision = decide(rules._replace(topology=smaller), [WantedContainer("s", "app", 3)], Use(), state, 10)
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
