# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/static.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet, iterate_bits
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.hints import Hint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.packed import SAFE, EndlessDistributionError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.policy import (
    AllocationError,
    SMTAlignmentError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.running_state import RunningState
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.static import (
    StaticPolicy,
    new_static_policy,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import StateError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import (
    CPUTopology,
    kubelet_view,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.workload.pods import (
    APP,
    INIT,
    SIDECAR,
    Container,
    Pod,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.workload.qos import GUARANTEED
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.values import FOUR, SMT, TWO

# Some of StaticOptions, by name.
Options = dict[str, Any]

MINOR = 35
KINDS = {"init": INIT, "sidecar": SIDECAR, "app": APP}


def machine(name: str) -> CPUTopology:
    return kubelet_view(parse_name(name).topology())


def pod(containers: str, uid: str = "u1") -> Pod:
    """`init:a=2 sidecar:b=1.5 c=4`: containers with their CPUs; app containers need not say so."""
    found = []
    for text in containers.split():
        name, cpus = text.rsplit("=", 1)
        kind, _colon, name = name.rpartition(":")
        resources = {"cpu": round(float(cpus) * 1000), "memory": 1000}
        found.append(Container(name, KINDS[kind or "app"], resources, resources))
    return Pod(uid, uid, tuple(found))


class Kubelet:
    """A policy and its state."""

    def __init__(self, name: str, reserved: str = "0", state: State | None = None, **options: Any) -> None:
        self.policy = StaticPolicy(machine(name), StaticOptions(**options), CPUSet.parse(reserved), MINOR)
        self.state = RunningState(state)
        self.policy.start(self.state)

    def allocate(self, guest: Pod, container: str, affinity: int | None = None) -> str:
        """The CPUs that it has then."""
        self.policy.allocate(self.state, guest, container, affinity)
        return self.cpus(guest.uid, container)

    def allocate_all(self, guest: Pod) -> list[str]:
        return [self.allocate(guest, container.name) for container in guest.containers]

    def cpus(self, uid: str, container: str) -> str:
        mask = self.state.get(uid, container)
        return "shared" if mask is None else str(CPUSet.from_mask(mask))

    def pool(self) -> str:
        return str(CPUSet.from_mask(self.state.default))

    def reusable(self, uid: str = "u1") -> str:
        return str(CPUSet.from_mask(self.policy.reusable.get(uid, 0)))

    def refusal(self, guest: Pod, container: str, affinity: int | None = None) -> AllocationError:
        """The error, after which nothing has changed."""
        before = self.state.snapshot(), self.policy.reusable
        with pytest.raises(AllocationError) as caught:
            self.policy.allocate(self.state, guest, container, affinity)
        assert (self.state.snapshot(), self.policy.reusable) == before
        return caught.value


# --- its start --------------------------------------------------------------------------------------


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


# --- giving -----------------------------------------------------------------------------------------


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


# --- whole cores only -------------------------------------------------------------------------------

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


# --- with an affinity -------------------------------------------------------------------------------

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


# --- init containers and what is reused ---------------------------------------------------------------


def test_app_containers_take_over_from_init_containers() -> None:
    kubelet = Kubelet(SMT)
    guest = pod("init:a=4 b=2 c=2 d=1")
    assert kubelet.allocate(guest, "a") == "1-2,5-6"
    assert kubelet.reusable() == "1-2,5-6"
    assert kubelet.allocate(guest, "b") == "1,5"
    assert kubelet.reusable() == "2,6"
    assert kubelet.allocate(guest, "c") == "2,6"
    assert kubelet.reusable() == ""
    assert kubelet.allocate(guest, "d") == "4"
    assert kubelet.pool() == "0,3,7"
    # The init container's own stay its.
    assert kubelet.cpus("u1", "a") == "1-2,5-6"


def test_what_an_init_container_had_more_stays_out_of_the_pool() -> None:
    kubelet = Kubelet(SMT)
    assert kubelet.allocate_all(pod("init:a=4 b=2")) == ["1-2,5-6", "1,5"]
    assert kubelet.pool() == "0,3-4,7"


def test_reusable_cpus_are_not_preferred() -> None:
    """They are among the free ones, and the order decides: a broken core comes first."""
    kubelet = Kubelet(SMT)
    guest = pod("init:a=2 b=1")
    assert kubelet.allocate_all(guest) == ["1,5", "4"]
    assert kubelet.reusable() == "1,5"


def test_init_containers_reuse_each_others() -> None:
    kubelet = Kubelet(SMT)
    assert kubelet.allocate_all(pod("init:a=2 init:b=4 c=4")) == ["1,5", "1-2,5-6", "1-2,5-6"]
    assert kubelet.pool() == "0,3-4,7"


def test_sidecars_take_over_and_keep() -> None:
    kubelet = Kubelet(SMT)
    guest = pod("init:a=4 sidecar:b=2 init:c=2 d=2")
    assert kubelet.allocate(guest, "a") == "1-2,5-6"
    assert kubelet.allocate(guest, "b") == "1,5"
    assert kubelet.reusable() == "2,6"
    assert kubelet.allocate(guest, "c") == "2,6"
    assert kubelet.allocate(guest, "d") == "2,6"  # never the sidecar's
    assert kubelet.reusable() == ""


def test_only_the_last_pod_has_reusable_cpus() -> None:
    kubelet = Kubelet(SMT)
    guest, late_guest = pod("init:a=4 b=4"), pod("a=1", "u2")
    assert kubelet.allocate(guest, "a") == "1-2,5-6"
    assert kubelet.allocate(late_guest, "a") == "4"
    assert (kubelet.reusable(), kubelet.reusable("u2")) == ("", "")
    assert str(kubelet.refusal(guest, "b")).endswith("requested=4, available=2")


def test_a_shared_container_of_another_pod_changes_nothing_reusable() -> None:
    kubelet = Kubelet(SMT)
    guest = pod("init:a=4 b=4")
    kubelet.allocate(guest, "a")
    assert kubelet.allocate(pod("a=0.5", "u2"), "a") == "shared"
    assert kubelet.allocate(guest, "b") == "1-2,5-6"


def test_reusable_cpus_are_found_again_after_a_restart() -> None:
    """They are in no file; the pod that is admitted again brings them."""
    guest = pod("init:a=4 b=2")
    kubelet = Kubelet(SMT)
    kubelet.allocate(guest, "a")
    again = Kubelet(SMT, state=kubelet.state.snapshot())
    assert again.reusable() == ""
    assert again.allocate(guest, "a") == "1-2,5-6"
    assert again.reusable() == "1-2,5-6"
    assert again.allocate(guest, "b") == "1,5"


# --- taking back ------------------------------------------------------------------------------------


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


# --- hints of a container -----------------------------------------------------------------------------


def texts(hints: list[Hint] | None) -> list[str] | None:
    """`01!` is on NUMA nodes 0 and 1, preferred."""
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


# --- hints of a pod -----------------------------------------------------------------------------------

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
