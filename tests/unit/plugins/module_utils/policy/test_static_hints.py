# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hints of the static policy, for a container and for a pod."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import Hint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines.values import FOUR, SMT, TWO

from .static_kubelet import Kubelet, Options, machine, pod

# --- hints of a container -------------------------------------------------------------------------


def texts(hints: list[Hint] | None) -> list[str] | None:
    """Return `01!` is on NUMA nodes 0 and 1, preferred."""
    if hints is None:
        return None
    return [
        "".join(str(node) for node in iterate_bits(hint.mask or 0)) + ("!" if hint.preferred else "") for hint in hints
    ]


ALL_OF_FOUR = ["01", "02", "03", "12", "13", "23", "012", "013", "023", "123", "0123"]

# machine, options, CPUs that another pod has, how many, hints
HINTS: list[tuple[str, Options, str, int, list[str]]] = [
    ("1s4c2t", {}, "", 2, ["0!"]),
    ("1s4c2t", {}, "", 7, ["0!"]),
    ("1s4c2t", {}, "", 8, []),  # CPU 0 is reserved
    ("1s4c2t", {}, "", 9, []),
    (TWO, {}, "", 1, ["0!", "1!", "01"]),
    (TWO, {}, "", 3, ["0!", "1!", "01"]),
    (TWO, {}, "", 4, ["1!", "01"]),
    (TWO, {}, "", 5, ["01!"]),
    (TWO, {}, "", 8, []),
    # preferred is what would do on an empty machine
    (TWO, {}, "2", 4, ["01"]),
    (TWO, {}, "1,2-3,5-6", 2, ["01"]),
    (TWO, {}, "1-3,5-7", 2, []),
    (TWO, {}, "2-3,6-7", 1, ["0!", "01"]),
    (FOUR, {}, "", 2, ["0!", "1!", "2!", "3!", *ALL_OF_FOUR]),
    (FOUR, {}, "", 4, ["1!", "2!", "3!", *ALL_OF_FOUR]),
    (FOUR, {}, "", 6, ["01!", "02!", "03!", "12!", "13!", "23!", "012", "013", "023", "123", "0123"]),
    (FOUR, {}, "", 8, ["12!", "13!", "23!", "012", "013", "023", "123", "0123"]),
    (FOUR, {}, "", 12, ["123!", "0123"]),
    (FOUR, {}, "", 15, ["0123!"]),
    (FOUR, {}, "", 16, []),
    # as many sockets as the fewest nodes need
    (
        FOUR,
        {"align_by_socket": True},
        "",
        4,
        ["1!", "2!", "3!", "01!", "02", "03", "12", "13", "23!", *ALL_OF_FOUR[6:]],
    ),
    (FOUR, {"align_by_socket": True}, "", 12, ["123!", "0123!"]),
    # ids in any order
    ("2s1n2c+nodes3,8", {}, "", 2, ["8!", "38"]),
    # a NUMA node without CPUs is in no hint
    ("2s1n2c+memory1", {}, "", 2, ["1!", "01"]),
    # more sockets than NUMA nodes: no word about sockets
    ("1n2s2c2t", {}, "", 2, ["0!"]),
]


@pytest.mark.parametrize(("name", "options", "busy", "count", "expected"), HINTS)
def test_hints(name: str, options: Options, busy: str, count: int, expected: list[str]) -> None:
    topology = machine(name)
    state = State(topology.all_cpus() - CPUSet.parse(busy), {"u9": {"a": CPUSet.parse(busy)}})
    kubelet = Kubelet(name, "0", state, **options)
    guest = pod("a=%d" % count)
    assert texts(kubelet.policy.hints(kubelet.state, guest, "a")) == expected
    # A pod of one container says the same as a whole.
    assert texts(kubelet.policy.pod_hints(kubelet.state, guest)) == expected
    assert not kubelet.state.stored


def test_hints_of_a_shared_container() -> None:
    kubelet = Kubelet(TWO)
    guest = pod("a=1.5 b=0.5")
    assert kubelet.policy.hints(kubelet.state, guest, "a") is None
    assert kubelet.policy.pod_hints(kubelet.state, guest) is None


def test_hints_of_a_container_that_has_its_cpus() -> None:
    kubelet = Kubelet(TWO)
    assert kubelet.allocate(pod("a=2"), "a") == "1,5"
    assert texts(kubelet.policy.hints(kubelet.state, pod("a=2"), "a")) == ["0!", "01"]
    # The CPUs that it has count alone.
    assert kubelet.allocate(pod("a=2", "u2"), "a", 0b10) == "2,6"
    assert texts(kubelet.policy.hints(kubelet.state, pod("a=2", "u2"), "a")) == ["1!", "01"]
    # It would need others: it cannot be served.
    assert kubelet.policy.hints(kubelet.state, pod("a=3"), "a") == []
    assert kubelet.policy.pod_hints(kubelet.state, pod("a=3")) == []


def test_hints_go_where_the_reusable_cpus_are() -> None:
    kubelet = Kubelet(TWO)
    guest = pod("init:a=2 b=2 c=4")
    assert kubelet.allocate(guest, "a", 0b10) == "2,6"
    # Node 0 has CPUs, but not the reusable ones.
    assert texts(kubelet.policy.hints(kubelet.state, guest, "b")) == ["1!", "01"]
    assert texts(kubelet.policy.hints(kubelet.state, pod("b=2", "u2"), "b")) == ["0!", "1!", "01"]
    # Reusable CPUs count beside the free ones.
    assert texts(kubelet.policy.hints(kubelet.state, guest, "c")) == ["1!", "01"]
    assert texts(kubelet.policy.hints(kubelet.state, pod("c=4", "u2"), "c")) == ["01"]


# --- hints of a pod -------------------------------------------------------------------------------

# A pod, and how many CPUs it needs at once.
POD_COUNTS = [
    ("a=2", 2),
    ("a=2 b=3", 5),
    ("a=2 b=1.5", 2),  # who shares does not count
    ("a=1.5 b=0.5", 0),
    ("init:a=4 b=2", 4),  # one after the other
    ("init:a=2 b=4", 4),
    ("init:a=2 init:b=4 init:c=3 d=1", 4),
    ("sidecar:a=2 b=3", 5),  # together
    ("sidecar:a=2 init:b=4 c=1", 6),
    ("init:a=4 sidecar:b=2 c=1", 4),  # the sidecar starts later
    ("init:a=4 sidecar:b=2 c=3", 5),
    ("sidecar:a=1 init:b=1 sidecar:c=1 init:d=3 e=1", 5),
    ("sidecar:a=1 sidecar:b=1 c=1.5", 2),
]


@pytest.mark.parametrize(("containers", "count"), POD_COUNTS)
def test_count_of_a_pod(containers: str, count: int) -> None:
    """With just as many free CPUs it can be served, and with one fewer it cannot."""
    topology = machine("1s16c")
    for free, served in ((count, ["0!"] if count else None), (count - 1, [])):
        if free < 0:
            continue
        pool = CPUSet(range(free + 1))  # and the reserved one
        state = State(pool, {"u9": {"a": topology.all_cpus() - pool}})
        kubelet = Kubelet("1s16c", "0", state)
        assert texts(kubelet.policy.pod_hints(kubelet.state, pod(containers))) == served


def test_hints_of_a_pod_that_has_all_its_cpus() -> None:
    kubelet = Kubelet(TWO)
    guest = pod("a=2 b=1 c=1.5")
    assert [kubelet.allocate(guest, "a", 0b10), kubelet.allocate(guest, "b", 0b10)] == ["2,6", "3"]
    assert texts(kubelet.policy.pod_hints(kubelet.state, guest)) == ["1!", "01"]


def test_hints_of_a_pod_that_has_some_of_its_cpus() -> None:
    kubelet = Kubelet(TWO)
    guest = pod("a=2 b=2")
    kubelet.allocate(guest, "a", 0b10)
    # What it has counts as reusable: node 0 has 3 free CPUs, and node 1 two and the two that it has.
    assert texts(kubelet.policy.pod_hints(kubelet.state, guest)) == ["1!", "01"]
    assert texts(kubelet.policy.pod_hints(kubelet.state, pod("a=2 b=1"))) == ["1!", "01"]
    # One container of another size than it has: it cannot be served.
    assert kubelet.policy.pod_hints(kubelet.state, pod("a=1 b=2")) == []
    assert kubelet.policy.pod_hints(kubelet.state, pod("a=1.5 b=2")) == []


def test_hints_count_cpus_that_are_free_and_reusable_twice() -> None:
    """CPUs that were taken back are still reusable: node 1 seems to have 6."""
    kubelet = Kubelet(TWO)
    guest = pod("init:a=2 b=6")
    kubelet.allocate(guest, "a", 0b10)
    kubelet.policy.remove(kubelet.state, "u1", "a")
    assert kubelet.reusable() == "2,6"
    assert texts(kubelet.policy.hints(kubelet.state, guest, "b")) == ["1", "01!"]


def test_counts_are_those_of_the_pod_that_is_asked_about() -> None:
    """Two pods of one UID, one after the other, as after a change of the manifest."""
    kubelet = Kubelet(SMT)
    assert texts(kubelet.policy.hints(kubelet.state, pod("a=2"), "a")) == ["0!"]
    assert kubelet.policy.hints(kubelet.state, pod("a=1.5"), "a") is None
    assert kubelet.allocate(pod("a=0.5"), "a") == "shared"
    assert kubelet.allocate(pod("a=4"), "a") == "1-2,5-6"
