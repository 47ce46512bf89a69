# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/static.py: its start, and the CPUs that it gives and takes back.

What it suggests to the topology manager is in test_static_hints.py, what a pod uses twice in test_static_reuse.py.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.kubepods import GUARANTEED
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.assignment import (
    SAFE,
    EndlessDistributionError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import (
    SMTAlignmentError,
    new_static_policy,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import StateError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines.values import FOUR, SMT, TWO

from .static_kubelet import MINOR, Kubelet, Options, machine, pod

# --- its start ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("millicores", "reserved", "summary"),
    [
        (1000, "", ("0", "0,4", "1-7")),
        (1, "", ("0", "0,4", "1-7")),  # rounded up
        (2000, "", ("0,4", "0,4", "1-3,5-7")),
        (2001, "", ("0,4,1", "0-1,4-5", "2-3,5-7")),
        (9999, "3,5", ("3,5", "1,3,5,7", "0-2,4,6-7")),  # a set replaces the count
        (0, "7", ("7", "3,7", "0-6")),
    ],
)
def test_summary(millicores: int, reserved: str, summary: tuple[str, str, str]) -> None:
    policy = new_static_policy(machine(SMT), StaticOptions(), millicores, CPUSet.parse(reserved), "none", MINOR)
    assert policy.summary == tuple(CPUSet.parse(text) for text in summary)


REFUSED_STARTS = [
    ({}, 0, "", "none", "[cpumanager] unable to determine reserved CPU resources for static policy"),
    (
        {},
        9000,
        "",
        "none",
        "[cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 9)",
    ),
    (
        {},
        0,
        "0,9",
        "none",
        "[cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: 9",
    ),
    # the machine before the reservation
    (
        {"align_by_socket": True},
        0,
        "",
        "single-numa-node",
        "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option",
    ),
]


@pytest.mark.parametrize(("options", "millicores", "reserved", "topology_policy", "message"), REFUSED_STARTS)
def test_refused_start(options: Options, millicores: int, reserved: str, topology_policy: str, message: str) -> None:
    with pytest.raises(KubeletError) as caught:
        new_static_policy(
            machine(SMT), StaticOptions(**options), millicores, CPUSet.parse(reserved), topology_policy, MINOR
        )
    assert caught.value.text == message


@pytest.mark.parametrize(
    ("options", "reserved"),
    [
        ({}, "0-2,4-6"),
        ({"full_pcpus_only": True}, "0-2,4-6"),
        ({"distribute_cpus_across_cores": True}, "0-5"),
        ({"distribute_cpus_across_numa": True}, "0-4,6"),
    ],
)
def test_options_shape_the_reservation(options: Options, reserved: str) -> None:
    policy = new_static_policy(machine(TWO), StaticOptions(**options), 6000, CPUSet(), "none", MINOR)
    assert str(policy.summary.reserved) == reserved


def test_first_state() -> None:
    assert Kubelet(SMT).pool() == "0-7"
    assert Kubelet(SMT, "0,4", strict_cpu_reservation=True).pool() == "1-3,5-7"
    assert Kubelet(SMT).state.stored


def test_restored_state() -> None:
    restored = State(CPUSet.parse("0,2-4,6-7"), {"u1": {"a": CPUSet.parse("1,5")}})
    kubelet = Kubelet(SMT, state=restored)
    assert kubelet.state.snapshot() == restored
    assert not kubelet.state.stored
    with pytest.raises(StateError, match="not all reserved cpus"):
        Kubelet(SMT, "1", state=restored)
    with pytest.raises(StateError, match="doesn't match with CPUs in state"):
        Kubelet(TWO + "+offline7", state=restored)


# --- giving ---------------------------------------------------------------------------------------


def test_shared_pool() -> None:
    """Not a whole number of CPUs, or none: the container shares."""
    kubelet = Kubelet(SMT)
    kubelet.state.stored = False
    assert kubelet.allocate_all(pod("a=1.5 b=0.1 init:c=2.5")) == ["shared"] * 3
    assert kubelet.pool() == "0-7"
    assert not kubelet.state.stored
    assert kubelet.policy.reusable == {}


def test_not_guaranteed() -> None:
    guest = pod("a=2")
    for qos in ("Burstable", "BestEffort"):
        assert Kubelet(SMT).allocate(guest._replace(qos_class=qos), "a") == "shared"
    assert Kubelet(SMT).allocate(guest._replace(qos_class=GUARANTEED), "a") == "1,5"


def test_pod_level_resources() -> None:
    kubelet = Kubelet(SMT, full_pcpus_only=True)
    guest = pod("a=3")._replace(pod_level=({"cpu": 3000, "memory": 1}, {"cpu": 3000, "memory": 1}))
    assert kubelet.allocate(guest, "a") == "shared"
    assert kubelet.policy.hints(kubelet.state, guest, "a") is None
    assert kubelet.policy.pod_hints(kubelet.state, guest) is None


def test_given_cpus_leave_the_pool() -> None:
    kubelet = Kubelet(SMT)
    assert kubelet.allocate_all(pod("a=2 b=1 c=0.5")) == ["1,5", "4", "shared"]
    assert kubelet.pool() == "0,2-3,6-7"
    assert kubelet.allocate_all(pod("a=4", "u2")) == ["2-3,6-7"]
    assert kubelet.pool() == "0"


@pytest.mark.parametrize("strict", [False, True])
def test_reserved_cpus_are_never_given(strict: bool) -> None:
    kubelet = Kubelet(SMT, "0,4", strict_cpu_reservation=strict)
    assert kubelet.allocate(pod("a=6"), "a") == "1-3,5-7"
    assert kubelet.pool() == ("" if strict else "0,4")
    message = "not enough cpus available to satisfy request: requested=1, available=0"
    assert str(kubelet.refusal(pod("a=1", "u2"), "a")) == message


def test_not_enough() -> None:
    kubelet = Kubelet(SMT)
    error = kubelet.refusal(pod("a=8"), "a")
    assert str(error) == "not enough cpus available to satisfy request: requested=8, available=7"
    assert error.reason == "UnexpectedAdmissionError"


def test_a_container_that_has_its_cpus_keeps_them() -> None:
    restored = State(CPUSet.parse("0,2-4,6-7"), {"u1": {"a": CPUSet.parse("1,5")}})
    kubelet = Kubelet(SMT, state=restored)
    assert kubelet.allocate(pod("a=2"), "a") == "1,5"
    # Its size is not looked at.
    assert kubelet.allocate(pod("a=4"), "a") == "1,5"
    assert kubelet.state.snapshot() == restored
    assert not kubelet.state.stored


def test_endless_distribution() -> None:
    """Reserved CPUs 0,4; pods of 2, 2 and 22 CPUs."""
    kubelet = Kubelet("4s1n4c2t", "0,4", full_pcpus_only=True, distribute_cpus_across_numa=True)
    assert kubelet.allocate_all(pod("a=2")) == ["8,24"]
    assert kubelet.allocate_all(pod("a=2", "u2")) == ["12,28"]
    before = kubelet.state.snapshot()
    with pytest.raises(EndlessDistributionError):
        kubelet.allocate(pod("a=22", "u3"), "a")
    assert kubelet.state.snapshot() == before
    kubelet.policy.exact = SAFE
    assert len(CPUSet.parse(kubelet.allocate(pod("a=22", "u3"), "a"))) == 22


# --- whole cores only -----------------------------------------------------------------------------

NO_MULTIPLE = "SMT Alignment Error: requested %d cpus not multiple cpus per core = 2"
NOT_FREE = (
    "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d,"
    " CPUs per core = 2"
)


def test_whole_cores() -> None:
    kubelet = Kubelet(SMT, "0", full_pcpus_only=True)
    for count in (1, 3, 5, 9):
        error = kubelet.refusal(pod("a=%d" % count), "a")
        assert isinstance(error, SMTAlignmentError)
        assert error.reason == "SMTAlignmentError"
        assert str(error) == NO_MULTIPLE % count
    # CPU 4 is free, but its core has a reserved CPU.
    assert str(kubelet.refusal(pod("a=8"), "a")) == NOT_FREE % (6, 8)
    assert kubelet.allocate(pod("a=6"), "a") == "1-3,5-7"
    assert str(kubelet.refusal(pod("a=2", "u2"), "a")) == NOT_FREE % (0, 2)


def test_whole_cores_are_asked_for_before_it_is_known_that_they_are_there() -> None:
    """A pod that runs is refused after a restart, when fewer physical CPUs are left than it has."""
    state = State(CPUSet.parse("0,3-4,7"), {"u1": {"a": CPUSet.parse("1-2,5-6")}})
    kubelet = Kubelet(SMT, "0", state, full_pcpus_only=True)
    assert str(kubelet.refusal(pod("a=4"), "a")) == NOT_FREE % (2, 4)
    state = State(CPUSet.parse("0,2-4,6-7"), {"u1": {"a": CPUSet.parse("1,5")}})
    assert Kubelet(SMT, "0", state, full_pcpus_only=True).allocate(pod("a=2"), "a") == "1,5"


def test_whole_cores_do_not_count_reusable_ones() -> None:
    guest = pod("init:a=4 b=4")
    kubelet = Kubelet(SMT, "0", full_pcpus_only=True)
    assert kubelet.allocate(guest, "a") == "1-2,5-6"
    assert kubelet.reusable() == "1-2,5-6"
    assert str(kubelet.refusal(guest, "b")) == NOT_FREE % (2, 4)
    # Without the option it would take them over.
    assert Kubelet(SMT, "0").allocate_all(guest) == ["1-2,5-6", "1-2,5-6"]


# --- with an affinity -----------------------------------------------------------------------------

# options, NUMA nodes (as bits), how many, what is taken of CPUs 1 to 15
AFFINITIES: list[tuple[Options, int | None, int, str]] = [
    ({}, None, 2, "1,9"),
    ({}, 0b0010, 2, "2,10"),
    ({}, 0b0010, 4, "2-3,10-11"),
    ({}, 0b1000, 1, "6"),
    ({}, 0b0101, 2, "1,9"),
    ({}, 0b1100, 8, "4-7,12-15"),
    # what the nodes lack comes from anywhere
    ({}, 0b0010, 5, "2-3,8,10-11"),
    ({}, 0b1000, 6, "4,6-7,12,14-15"),
    ({}, 0b0001, 3, "1,8-9"),
    ({}, 0b0001, 4, "1-2,8-9"),  # three of the node, then one of the rest
    # nodes that do not exist
    ({}, 0b10000, 2, "1,9"),
    ({}, 0, 2, "1,9"),
    # the whole sockets of the nodes
    ({"align_by_socket": True}, 0b0010, 2, "1,9"),
    ({"align_by_socket": True}, 0b1000, 8, "4-7,12-15"),
    ({"align_by_socket": True}, 0b1000, 4, "4-5,12-13"),
    ({"align_by_socket": True}, 0b0110, 2, "1,9"),
    ({"align_by_socket": True}, None, 2, "1,9"),
]


@pytest.mark.parametrize(("options", "affinity", "count", "taken"), AFFINITIES)
def test_affinity(options: Options, affinity: int | None, count: int, taken: str) -> None:
    assert Kubelet(FOUR, **options).allocate(pod("a=%d" % count), "a", affinity) == taken


def test_not_enough_beside_the_affinity() -> None:
    """Both numbers are of the second take: 3 CPUs of node 0 are taken already."""
    kubelet = Kubelet(FOUR)
    message = "not enough cpus available to satisfy request: requested=17, available=12"
    assert str(kubelet.refusal(pod("a=20"), "a", 0b0001)) == message
    message = "not enough cpus available to satisfy request: requested=20, available=15"
    assert str(kubelet.refusal(pod("a=20"), "a")) == message
    assert str(kubelet.refusal(pod("a=20"), "a", 0b10000)) == message


# --- taking back ----------------------------------------------------------------------------------


def test_remove() -> None:
    kubelet = Kubelet(SMT)
    kubelet.allocate_all(pod("a=2 b=2"))
    kubelet.policy.remove(kubelet.state, "u1", "a")
    assert (kubelet.cpus("u1", "a"), kubelet.cpus("u1", "b"), kubelet.pool()) == ("shared", "2,6", "0-1,3-5,7")
    kubelet.policy.remove(kubelet.state, "u1", "b")
    assert kubelet.pool() == "0-7"
    assert kubelet.state.assignments == {}


def test_what_a_sibling_uses_does_not_come_back() -> None:
    kubelet = Kubelet(SMT)
    kubelet.allocate_all(pod("init:a=4 b=2"))
    kubelet.policy.remove(kubelet.state, "u1", "a")
    assert kubelet.pool() == "0,2-4,6-7"
    kubelet.policy.remove(kubelet.state, "u1", "b")
    assert kubelet.pool() == "0-7"


@pytest.mark.parametrize(("uid", "container"), [("u1", "b"), ("u2", "a")])
def test_an_unknown_container_is_not_removed(uid: str, container: str) -> None:
    kubelet = Kubelet(SMT)
    kubelet.allocate(pod("a=2"), "a")
    kubelet.state.stored = False
    kubelet.policy.remove(kubelet.state, uid, container)
    assert kubelet.pool() == "0,2-4,6-7"
    assert not kubelet.state.stored
