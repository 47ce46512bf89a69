# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds of the memory of any node, whatever pods come and go, and what the reader of its file makes of it."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    Pod,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    POLICIES,
    SCOPES,
    TopologyManager,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.memory import StaticMemory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import NonePolicy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    ACCEPTED,
    MemoryConfig,
    judge_memory,
    restore_memory,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

MEMORY, PAGES = "memory", "hugepages-2Mi"
MINORS = (33, 35, 36, 37)
KINDS = st.sampled_from([APP, APP, INIT, SIDECAR])


class Life(NamedTuple):
    """A node, and pods that come to it (a pod) and go (the position of one)."""

    config: MemoryConfig
    policy: str
    scope: str
    events: Sequence[Pod | int]


@st.composite
def pods(draw: st.DrawFn, uid: str) -> Pod:
    members = []
    for name in "abcd"[: draw(st.integers(1, 4))]:
        sizes = {"cpu": 1000, MEMORY: 1000 * draw(st.integers(1, 40))}
        if draw(st.booleans()):
            sizes[PAGES] = 1000 * draw(st.integers(0, 6))
        members.append(Container(name, draw(KINDS), sizes, sizes))
    members.sort(key=lambda member: member.kind == APP)
    return Pod(uid, uid, tuple(members))


@st.composite
def lives(draw: st.DrawFn) -> Life:
    nodes = range(draw(st.integers(1, 4)))
    machine = {node: {MEMORY: draw(st.integers(20, 60)), PAGES: draw(st.integers(0, 8))} for node in nodes}
    config = MemoryConfig("Static", {0: {MEMORY: 4}}, draw(st.sampled_from(MINORS)), machine=machine)
    events = [
        draw(st.one_of(pods("u%d" % number), pods("u%d" % number), st.integers(0, 5)))
        for number in range(draw(st.integers(1, 8)))
    ]
    return Life(config, draw(st.sampled_from(POLICIES)), draw(st.sampled_from(SCOPES)), events)


class Node:
    """Lives a life."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.memory = StaticMemory(life.config)
        machine = TopologyManager(life.policy, life.scope, list(life.config.machine or ()))
        self.manager = CPUManager(NonePolicy(), machine, others=[self.memory])

    def live(self, is_checked: bool = False) -> None:
        for event in self.life.events:
            if isinstance(event, Pod):
                self.manager.add(event)
            elif self.manager.active:
                self.manager.delete(list(self.manager.active)[event % len(self.manager.active)])
            if is_checked:
                self.check()
                self.manager.remove_stale()
                self.check()

    def groups(self) -> tuple[dict[tuple[int, ...], dict[str, int]], str]:
        """Return what is free of each group of nodes, and who has which blocks."""
        free: dict[tuple[int, ...], dict[str, int]] = {}
        for place in self.memory.machine.values():
            sizes = free.setdefault(tuple(place["cells"]), {"assigned": 0})
            sizes["assigned"] += place["numberOfAssignments"]
            for kind, table in place["memoryMap"].items():
                sizes[kind] = sizes.get(kind, 0) + table["free"]
        return free, repr(self.memory.entries)

    def check(self) -> None:
        assigned = dict.fromkeys(self.memory.machine, 0)
        sizes: dict[str, int] = {}
        for containers in self.memory.entries.values():
            for blocks in containers.values():
                for block in blocks:
                    sizes[block["type"]] = sizes.get(block["type"], 0) + block["size"]
                    for node in block["numaAffinity"]:
                        assigned[node] += 1
                        # Who serves whom together knows it of each other.
                        assert self.memory.machine[node]["cells"] == block["numaAffinity"]
        reserved: dict[str, int] = {}
        for node, place in self.memory.machine.items():
            assert place["numberOfAssignments"] == assigned[node]
            assert assigned[node] or place["cells"] == [node]
            for kind, table in place["memoryMap"].items():
                assert table["reserved"] >= 0
                assert table["free"] >= 0
                assert table["reserved"] + table["free"] == table["allocatable"]
                reserved[kind] = reserved.get(kind, 0) + table["reserved"]
        # Nothing is counted twice, and nothing is lost.
        assert {kind: size for kind, size in reserved.items() if size} == {
            kind: size for kind, size in sizes.items() if size
        }


@given(lives())
@settings(max_examples=examples(80))
def test_laws(life: Life) -> None:
    Node(life).live(is_checked=True)


@given(lives())
@settings(max_examples=examples(40))
def test_the_next_start_accepts_what_is_written(life: Life) -> None:
    node = Node(life)
    node.live()
    content = node.memory.state()
    assert judge_memory(content, life.config) == (ACCEPTED, "", True)
    # And goes on from there as if there had been no restart.
    again = StaticMemory(life.config, restore_memory(content, life.config))
    assert (again.machine, again.entries, again.state()) == (node.memory.machine, node.memory.entries, content)


@given(lives(), st.data())
@settings(max_examples=examples(40))
def test_a_pod_that_comes_and_goes_changes_nothing(life: Life, data: st.DataObject) -> None:
    """Of a group of nodes, whose memory is counted together."""
    node = Node(life)
    node.live()
    node.manager.remove_stale()
    before = node.groups()
    node.manager.add(data.draw(pods("guest")))
    node.manager.delete("guest")
    node.manager.remove_stale()
    assert node.groups() == before


@given(lives())
@settings(max_examples=examples(30))
def test_when_all_pods_are_gone_all_is_as_at_first(life: Life) -> None:
    node = Node(life)
    first = node.memory.state()
    node.live()
    node.manager.active.clear()
    node.manager.remove_stale()
    assert node.memory.state() == first
