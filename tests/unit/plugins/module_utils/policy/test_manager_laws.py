# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds in any life of a node, whatever pods come and go: nothing is lost, nothing is given twice."""

from __future__ import annotations

from contextlib import suppress
from typing import Callable, Iterable, NamedTuple, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    Pod,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import (
    EXACT,
    SAFE,
    EndlessDistributionError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import (
    BEST_EFFORT,
    CONTAINER,
    NONE,
    POD,
    POLICIES,
    SCOPES,
    SINGLE_NUMA_NODE,
    TopologyManager,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.manager import CPUManager
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import StaticPolicy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    StateError,
    check_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format4
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import (
    CPUTopology,
    kubelet_view,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples, how_many

from .managed_node import cpus, pod

# Of a kubelet that keeps at a start what pods have as a whole: what an older one loses is in test_readmission.py.
MINOR = 38

# --- laws -----------------------------------------------------------------------------------------


class Life(NamedTuple):
    """A node and what happens to it."""

    shape: Shape
    reserved: CPUSet
    options: StaticOptions
    topology_policy: str
    scope: str
    # (what, a pod or the position of one); each is made so that it can be read in a failure.
    events: tuple[tuple[str, Pod | int], ...]


OPTIONS = [
    StaticOptions(),
    StaticOptions(full_pcpus_only=True),
    StaticOptions(distribute_cpus_across_numa=True),
    StaticOptions(distribute_cpus_across_numa=True, full_pcpus_only=True),
    StaticOptions(distribute_cpus_across_cores=True),
    StaticOptions(prefer_align_cpus_by_uncorecache=True),
    StaticOptions(prefer_align_cpus_by_uncorecache=True, full_pcpus_only=True),
]


@st.composite
def regular_shapes(draw: st.DrawFn, most_nodes: int = 8) -> Shape:
    """Draw a machine of up to 1,024 CPUs, all of whose cores, caches, NUMA nodes and sockets are alike."""
    sockets = draw(st.sampled_from([1, 2, 2, 4]))
    nodes = draw(st.integers(1, max(1, most_nodes // sockets)))
    groups = draw(st.sampled_from([[("s", sockets), ("n", nodes)], [("n", min(nodes, 2)), ("s", sockets)]]))
    caches, threads = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 2, 4]))
    each = groups[0][1] * groups[1][1] * caches * threads
    cores = draw(st.one_of(st.integers(2, 4), st.integers(2, 1024 // each)))
    return Shape(
        groups=(*groups, ("l", caches)),
        cores=cores,
        threads=threads,
        adjacent=draw(st.booleans()),
        interleaved=draw(st.booleans()),
    )


KINDS = st.sampled_from([APP, APP, INIT, SIDECAR])


@st.composite
def pods(draw: st.DrawFn, uid: str, most: int) -> Pod:
    """Return pods of one to three containers of 1 to `most` CPUs, and some that share; init containers come first."""
    sizes = st.one_of(st.sampled_from([1, 2, 2, 4, 8]), st.integers(1, max(1, most)), st.just(0.5))
    found = []
    for name in "abc"[: draw(st.integers(1, 3))]:
        resources = {"cpu": round(1000 * draw(sizes)), "memory": 1000}
        found.append(Container(name, draw(KINDS), resources, resources))
    found.sort(key=lambda container: container.kind == APP)
    return Pod(uid, uid, tuple(found))


@st.composite
def whole_pods(draw: st.DrawFn, uid: str, most: int) -> Pod:
    """Return pods that have CPUs as a whole, as an API server takes them: no less than their containers need at
    once."""
    guest = draw(pods(uid, most))
    members = [container._replace(limits={}) if draw(st.booleans()) else container for container in guest.containers]
    least = -(-guest.at_once({member.name: member.requests["cpu"] for member in members}) // 1000)
    given_ = {"cpu": 1000 * (least + draw(st.integers(0, 3))), "memory": 10000}
    return guest._replace(containers=tuple(members), pod_level=(given_, given_), has_managers_gate=True)


@st.composite
def lives(
    draw: st.DrawFn,
    machines: st.SearchStrategy[Shape],
    scopes: Sequence[str] = SCOPES,
    guests: Sequence[Callable[[str, int], st.SearchStrategy[Pod]]] = (pods, pods, whole_pods),
) -> Life:
    shape = draw(machines)
    view = kubelet_view(shape.topology())
    all_cpus = list(view.all_cpus())
    reserved = CPUSet(draw(st.sets(st.sampled_from(all_cpus), min_size=1, max_size=max(1, min(4, len(all_cpus) - 1)))))
    options = draw(st.sampled_from(OPTIONS))
    options = options._replace(strict_cpu_reservation=draw(st.booleans()))
    topology_policy = draw(st.sampled_from(POLICIES)) if len(shape.topology().numa_nodes) <= 8 else NONE
    if topology_policy != SINGLE_NUMA_NODE and view.num_sockets <= view.num_numa_nodes:
        options = options._replace(align_by_socket=draw(st.booleans()))
    events: list[tuple[str, Pod | int]] = []
    for number in range(draw(st.integers(1, 8))):
        what = draw(st.sampled_from(["add", "add", "add", "remove", "delete", "restart", "readmit"]))
        which: Pod | int = draw(st.integers(0, 5))
        if what == "add":
            kind = draw(st.sampled_from(guests))
            which = draw(kind("u%d" % number, len(all_cpus) // 2))
        events.append((what, which))
    return Life(shape, reserved, options, topology_policy, draw(st.sampled_from(scopes)), tuple(events))


class Node:
    """Lives a life."""

    def __init__(self, life: Life, exact: bool = EXACT) -> None:
        self.life = life
        self.view: CPUTopology = kubelet_view(life.shape.topology())
        self.exact = exact
        self.manager = self._manager(None)

    def _manager(self, state: State | None) -> CPUManager:
        life = self.life
        policy = StaticPolicy(self.view, life.options, life.reserved, MINOR, self.exact)
        nodes = [node.id for node in life.shape.topology().numa_nodes]
        topology_manager = TopologyManager(life.topology_policy, life.scope, nodes)
        return CPUManager(policy, topology_manager, state, kind=Format4)

    def live(self, check: Callable[[Node], None] = lambda _node: None) -> CPUManager:
        """Go through all events, with a check after each."""
        check(self)
        for what, which in self.life.events:
            if isinstance(which, Pod):
                self._add(which)
            elif what in ("restart", "readmit"):
                state = self.restored()
                if state is None:
                    break
                active = self.manager.active
                self.manager = self._manager(state)
                self.manager.active = {} if what == "readmit" else active
                if what == "readmit":
                    self._readmit(active.values())
            elif self.manager.active:
                uid = list(self.manager.active)[which % len(self.manager.active)]
                if what == "remove":
                    self.manager.remove(uid, "a")
                else:
                    self.manager.delete(uid)
            check(self)
        return self.manager

    def _add(self, guest: Pod) -> None:
        try:
            self.manager.add(guest)
        except EndlessDistributionError:
            # The kubelet would hang here; the life goes on as if somebody had deleted the pod.
            assert self.exact
            self.manager.delete(guest.uid)

    def _readmit(self, guests: Iterable[Pod]) -> None:
        """Admit the guests again, and check that whoever had CPUs as a whole has them still."""
        before = self.manager.state.snapshot()
        self.manager.is_ready = False
        for guest in guests:
            self._add(guest)
        self.manager.is_ready = True
        after = self.manager.state.snapshot()
        assert after.pod_assignments.items() >= before.pod_assignments.items()
        for uid in before.pod_assignments:
            assert after.assignments[uid].items() >= before.assignments[uid].items()

    def restored(self) -> State | None:
        """Return what the next start reads; None when the kubelet would not start: all CPUs are given away."""
        policy = self.manager.policy
        assert isinstance(policy, StaticPolicy)
        config = policy.config._replace(minor=MINOR, pod_level=True)
        if not self.manager.state.default:
            with pytest.raises(StateError, match="default cpuset cannot be empty"):
                check_checkpoint(self.manager.checkpoint(), config)
            return None
        return check_checkpoint(self.manager.checkpoint(), config)


def union(masks: list[int]) -> int:
    mask = 0
    for member in masks:
        mask |= member
    return mask


def check_conservation(node: Node) -> None:
    """Check that shared and exclusive CPUs are the machine's, less strictly reserved ones, and that no pod has those
    of another."""
    state, life = node.manager.state, node.life
    of_pods = list(state.pods.values())
    of_pods += [union(list(own.values())) for uid, own in state.assignments.items() if uid not in state.pods]
    exclusive = union(of_pods)
    assert sum(bin(mask).count("1") for mask in of_pods) == bin(exclusive).count("1")
    assert not exclusive & state.default
    assert not exclusive & life.reserved.mask
    strict = life.reserved.mask if life.options.strict_cpu_reservation else 0
    assert exclusive | state.default == node.view.cpus & ~strict


def check_sizes(node: Node) -> None:
    """Check that every container has just what it asked for."""
    for uid, pod_ in node.manager.active.items():
        counts = pod_.exclusive_counts(MINOR)
        whole = node.manager.state.pods.get(uid)
        if whole is not None:
            assert bin(whole).count("1") == pod_.count_as_whole(MINOR)
        for name, mask in node.manager.state.assignments.get(uid, {}).items():
            if whole is None or counts[name]:
                assert bin(mask).count("1") == counts[name] > 0
            if whole is not None:
                assert mask
                assert not mask & ~whole


def check_sharing(node: Node) -> None:
    """Check that containers of a pod overlap only where an init container has gone before, or where they share what
    is left."""
    for uid, pod_ in node.manager.active.items():
        kinds = {container.name: container.kind for container in pod_.containers}
        own, counts = node.manager.state.assignments.get(uid, {}), pod_.exclusive_counts(MINOR)
        shared = {name: own[name] for name in own if not counts[name] and kinds[name] != INIT}
        assert len(set(shared.values())) <= 1
        for name in list(shared)[1:]:
            kinds[name] = INIT
        seen = 0
        for name, mask in node.manager.state.assignments.get(uid, {}).items():
            if kinds[name] != INIT:
                assert not mask & seen
                seen |= mask


def check_all(node: Node) -> None:
    check_conservation(node)
    check_sizes(node)
    check_sharing(node)
    node.restored()


@given(lives(regular_shapes()))
def test_laws_on_regular_machines(life: Life) -> None:
    Node(life).live(check_all)


@given(lives(regular_shapes(most_nodes=4), [POD], [whole_pods, whole_pods, pods]))
@settings(max_examples=how_many("LIVES", 40, 2000))
def test_pods_that_have_cpus_as_a_whole_keep_the_laws(life: Life) -> None:
    """Also a start of the kubelet that gave them loses nothing."""
    Node(life._replace(topology_policy=BEST_EFFORT if life.topology_policy == NONE else life.topology_policy)).live(
        check_all
    )


@given(lives(regular_shapes()))
@settings(max_examples=examples(50))
def test_the_same_life_ends_with_the_same_file(life: Life) -> None:
    assert Node(life).live().checkpoint() == Node(life).live().checkpoint()


@given(lives(regular_shapes()))
@settings(max_examples=examples(50))
def test_when_all_pods_are_gone_all_is_as_before(life: Life) -> None:
    node = Node(life)
    first = node.manager.checkpoint()
    node.live()
    node.manager.active.clear()
    node.manager.remove_stale()
    assert node.manager.checkpoint() == first


@given(lives(regular_shapes()), st.data())
@settings(max_examples=examples(50))
def test_a_pod_that_comes_and_goes_changes_nothing(life: Life, data: st.DataObject) -> None:
    node = Node(life)
    node.live()
    node.manager.remove_stale()
    before = node.manager.checkpoint()
    guest = data.draw(pods("guest", 8))
    with suppress(EndlessDistributionError):
        node.manager.add(guest)
    node.manager.delete("guest")
    node.manager.remove_stale()
    assert node.manager.checkpoint() == before


# --- SAFE, where the kubelet's own choice does harm -----------------------------------------------

IRREGULAR = [
    "1s4c2t+offline7",  # one sibling is offline: 7 CPUs of 4 cores are 1 on the average
    "2s2n4c2t+offline3,20",
    "2s1n4c2t+offline8-11",  # one socket without SMT
    "1n2s4c+offline5-7",  # sockets of 4 CPUs and of 1
    "1s6c2t8e+adjacent",
]


@pytest.mark.parametrize(
    ("exact", "reserved", "first", "second"),
    [
        # CPUs 0 and 4 are a core. "Wholly free" means as many free CPUs as the average, 1, and then all are taken.
        (EXACT, "3", "0", "0,4"),  # what the first has
        (SAFE, "3", "0", "1,5"),
        (EXACT, "0", "0,4", "1,3"),  # what is reserved
        (SAFE, "0", "3-4", "1,5"),
    ],
)
def test_a_sibling_is_offline(exact: bool, reserved: str, first: str, second: str) -> None:
    life = Life(parse_name("1s4c2t+offline7"), CPUSet.parse(reserved), StaticOptions(), NONE, CONTAINER, ())
    node = Node(life, exact).manager
    assert node.add(pod("u1", 1 if reserved == "3" else 2)).admitted
    assert node.add(pod("u2", 2)).admitted
    assert (cpus(node, "u1"), cpus(node, "u2")) == ({"a": first}, {"a": second})


def test_what_is_safe_is_not_endless() -> None:
    """Reserved CPUs 0,4; pods of 2, 2 and 22 CPUs."""
    options = StaticOptions(full_pcpus_only=True, distribute_cpus_across_numa=True)
    events = tuple(("add", pod("u%d" % count, count)) for count in (2, 4, 22))
    life = Life(parse_name("4s1n4c2t"), CPUSet.parse("0,4"), options, NONE, CONTAINER, events)
    assert len(Node(life, SAFE).live(check_all).active) == 3


@given(
    lives(
        st.one_of(
            shapes().filter(lambda shape: len(shape.topology().online) > 1),
            st.sampled_from(IRREGULAR).map(parse_name),
            regular_shapes(),
        )
    )
)
def test_laws_on_any_machine_when_it_is_safe(life: Life) -> None:
    """Hybrid cores, offline siblings, endless distributions: nothing of it matters."""
    Node(life, SAFE).live(check_all)


@given(lives(regular_shapes(most_nodes=3)))
@settings(max_examples=examples(50))
def test_on_regular_machines_safe_is_exact(life: Life) -> None:
    """Where nothing can go wrong: fewer than four NUMA nodes."""
    assert Node(life, SAFE).live().checkpoint() == Node(life, EXACT).live().checkpoint()
