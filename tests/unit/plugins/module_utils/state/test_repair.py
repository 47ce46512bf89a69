# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/repair.py."""

from __future__ import annotations

from typing import Any, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    CPUManagerConfig,
    check_checkpoint,
    check_state,
    pooled_cpus,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    NAMELESS,
    Format1,
    Format2,
    Format3,
    Format4,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.repair import (
    WHOLE_POD,
    Pin,
    Repair,
    pins_of,
    repair,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus


def static(
    all_cpus: str = "0-7", reserved: str = "0", strict: bool = False, pod_level: bool = False
) -> CPUManagerConfig:
    return CPUManagerConfig("static", cpus(all_cpus), cpus(reserved), strict, 36, pod_level)


def pins(*rows: tuple[str, str, str]) -> list[Pin]:
    return [Pin(*row) for row in rows]


def lost(repaired: Repair) -> list[tuple[str, str]]:
    return [(loss.pin.container, loss.why) for loss in repaired.losses]


A = ("pod-a", "a", "2-3")
B = ("pod-b", "b", "4")

ROWS: list[tuple[str, list[Pin], CPUManagerConfig, str, list[tuple[str, str]]]] = [
    ("nothing is wrong", pins(A, B), static(), "0-1,5-7", []),
    ("CPUs came", pins(A, B), static("0-15"), "0-1,5-15", []),
    ("CPUs went that nobody had", pins(A, B), static("0-5"), "0-1,5", []),
    ("CPUs went", pins(A, B), static("0-2,4-7"), "0-2,5-7", [("a", "CPUs 3 are not online")]),
    ("CPUs are reserved now", pins(A, B), static(reserved="0,4"), "0-1,4-7", [("b", "CPUs 4 are reserved now")]),
    ("the reservation is strict now", pins(A, B), static(strict=True), "1,5-7", []),
    (
        "two pods have one CPU",
        pins(A, ("pod-c", "c", "3,6"), B),
        static(),
        "0-1,5-7",
        [("c", "CPUs 3 belong to pod pod-a, too")],
    ),
    ("containers of one pod share, as init containers do", pins(A, ("pod-a", "init", "2-5")), static(), "0-1,6-7", []),
    (
        "a set is damaged",
        pins(("pod-a", "a", "2-x"), B),
        static(),
        "0-3,5-7",
        [("a", 'the set cannot be read (strconv.Atoi: parsing "x": invalid syntax)')],
    ),
    ("a set is empty", pins(("pod-a", "a", "")), static(), "0-7", []),
    (
        "the pool would be empty",
        pins(("pod-a", "a", "1-4"), ("pod-b", "b", "5-7"), ("pod-c", "c", "")),
        static(strict=True),
        "5-7",
        [("b", "no CPU would be left for the shared pool")],
    ),
    (
        "only an id is known",
        pins(("abc", NAMELESS, "2")),
        static(),
        "0-7",
        [(NAMELESS, "which pod it belongs to is not known; give the containers that run")],
    ),
    (
        "a whole pod, without the gate",
        pins(("pod-a", WHOLE_POD, "2-5")),
        static(),
        "0-7",
        [(WHOLE_POD, "this kubelet gives no CPUs to whole pods")],
    ),
    ("a whole pod and its container", pins(("pod-a", WHOLE_POD, "2-5"), A), static(pod_level=True), "0-1,6-7", []),
    (
        "the policy none",
        pins(A),
        CPUManagerConfig("none", cpus("0-7")),
        "",
        [("a", "the policy none gives no exclusive CPUs")],
    ),
]


@pytest.mark.parametrize(("found", "config", "pool", "losses"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_repair(found: list[Pin], config: CPUManagerConfig, pool: str, losses: list[tuple[str, str]]) -> None:
    repaired = repair(found, config)
    assert str(repaired.state.default_cpu_set) == pool
    assert lost(repaired) == losses
    assert repaired.stale == []
    check_state(repaired.state, config)
    gone = {loss.pin for loss in repaired.losses}
    assert pins_of_state(repaired.state) == sorted(pin for pin in found if pin not in gone)


def pins_of_state(state: State) -> list[Pin]:
    found = [Pin(pod, name, str(own)) for pod, names in state.assignments.items() for name, own in names.items()]
    return sorted(found + [Pin(pod, WHOLE_POD, str(own)) for pod, own in state.pod_assignments.items()])


def test_pods_that_are_gone_make_room() -> None:
    repaired = repair(pins(A, ("pod-b", "b", "3")), static(), live_pods=["pod-b"])
    assert repaired.state == State(cpus("0-2,4-7"), {"pod-b": {"b": cpus("3")}})
    assert repaired.losses == []
    assert repaired.stale == [Pin(*A)]


def test_a_pod_as_a_whole_without_containers_gives_its_cpus_back() -> None:
    """Its UID is that of a pod that was refused or is admitted anew: no container has any of them."""
    whole, divided = ("pod-x", WHOLE_POD, "4-5"), ("pod-a", WHOLE_POD, "2-3")
    for live in (["pod-a", "pod-x"], ["pod-a"]):
        found = repair(pins(A, divided, whole), static(pod_level=True), live)
        assert (str(found.state.default_cpu_set), found.stale, found.losses) == ("0-1,4-7", pins(whole), [])
    # Where it is not known which pods there are, nothing is taken from any.
    assert repair(pins(A, divided, whole), static(pod_level=True)).stale == []


def test_the_oldest_pod_keeps_a_cpu_that_two_have() -> None:
    found = pins(A, ("pod-b", "b", "3"))
    assert lost(repair(found, static(), live_pods=["pod-b", "pod-a"])) == [("a", "CPUs 3 belong to pod pod-b, too")]
    assert lost(repair(found, static(), live_pods=["pod-a", "pod-b"])) == [("b", "CPUs 3 belong to pod pod-a, too")]


def test_a_loss_in_words() -> None:
    config = CPUManagerConfig("none", cpus("0-7"))
    found = pins(A, ("pod-b", WHOLE_POD, "4"), ("abc", NAMELESS, "5"))
    why = ": the policy none gives no exclusive CPUs"
    assert [loss.to_text() for loss in repair(found, config).losses] == [
        "pod pod-a, container a: CPUs 2-3" + why,
        "pod pod-b: CPUs 4" + why,
        "container id abc: CPUs 5" + why,
    ]


@pytest.mark.parametrize("kind", [Format2, Format3, Format4])
def test_pins_of_each_format(kind: Any) -> None:
    whole = {"pod-b": cpus("4-5")} if kind is not Format2 else {}
    state = State(cpus("0-1,6-7"), {"pod-a": {"a": cpus("2-3")}}, whole)
    expected = pins(A, *((("pod-b", WHOLE_POD, "4-5"),) if whole else ()))
    assert pins_of(write_checkpoint("static", state, kind)) == expected


def test_pins_of_the_oldest_format() -> None:
    state = State(cpus("0-1,4-7"), {"pod-a": {"a": cpus("2-3")}})
    content = write_checkpoint("static", state, Format1, {"abc": ("pod-a", "a")})
    assert pins_of(content, {"abc": ("pod-a", "a")}) == pins(A)
    assert pins_of(content) == pins(("abc", NAMELESS, "2-3"))


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"entries":7}'])
def test_no_pins(content: bytes | None) -> None:
    assert pins_of(content) == []


def test_pins_of_a_damaged_file() -> None:
    content = (
        b'{"policyName":7,"defaultCpuSet":"0-","entries":{"pod-a":{"a":"2-3","b":"4-"},"pod-b":null},"checksum":1}'
    )
    assert pins_of(content.replace(b"7,", b'"static",', 1)) == pins(A, ("pod-a", "b", "4-"))


# --- laws --------------------------------------------------------------------------------------------

MOST = 24


def sets(least: int = 0) -> st.SearchStrategy[CPUSet]:
    return st.builds(CPUSet, st.sets(st.integers(0, MOST - 1), min_size=least, max_size=MOST))


@st.composite
def configs(draw: st.DrawFn) -> CPUManagerConfig:
    """Return a machine and a reservation that leaves a CPU for pods."""
    online = draw(sets(2))
    reserved = online.take(draw(st.integers(1, len(online) - 1)))
    policy = draw(st.sampled_from(["static"] * 5 + ["none"]))
    if policy == "none":
        return CPUManagerConfig("none", online)
    minor = draw(st.sampled_from([33, 35, 36, 37]))
    return CPUManagerConfig("static", online, reserved, draw(st.booleans()), minor, minor > 35 and draw(st.booleans()))


@st.composite
def valid_states(draw: st.DrawFn, config: CPUManagerConfig) -> State:
    """Return a state that a kubelet with this configuration may have."""
    if config.policy_name == "none":
        return State(CPUSet(), {})
    pool = pooled_cpus(config)
    free = list(pool - config.reserved)
    assignments: dict[str, dict[str, CPUSet]] = {}
    for pod in range(draw(st.integers(0, 4))):
        for name in "ab"[: draw(st.integers(0, 2))]:
            size = draw(st.integers(0, max(0, len(free) - 1)))
            own, free = CPUSet(free[:size]), free[size:]
            assignments.setdefault("pod-%d" % pod, {})[name] = own
    taken = State(CPUSet(), assignments).exclusive_cpus()
    return State(pool - taken, assignments)


def keepable(pin: Pin, others: Sequence[Pin], config: CPUManagerConfig) -> bool:
    """Return whether the pin can stay by the kubelet's rules: its CPUs are all there, none is reserved, none is
    another pod's."""
    own = set(cpus(pin.cpus))
    foreign = {cpu for owner in others if owner.pod != pin.pod for cpu in cpus(owner.cpus)}
    return (
        config.policy_name == "static"
        and own <= set(config.all_cpus)
        and not own & set(config.reserved)
        and not own & foreign
    )


@given(st.data())
def test_a_repaired_state_is_accepted_and_keeps_all_it_can(data: st.DataObject) -> None:
    old, new = data.draw(configs()), data.draw(configs())
    state = data.draw(valid_states(old))
    content = write_checkpoint(old.policy_name, state)
    check_checkpoint(content, old)
    found = pins_of(content)
    repaired = repair(found, new)
    written = write_checkpoint(new.policy_name, repaired.state)
    check_state(repaired.state, new)
    assert check_checkpoint(written, new._replace(minor=35, pod_level=False)) == repaired.state
    # Nothing that could be kept is lost, but for the one that makes room for a shared pool.
    kept = [pin for pin in found if keepable(pin, found, new)]
    gone = [loss.pin for loss in repaired.losses if "shared pool" not in loss.why]
    assert not set(gone) & set(kept)
    for_the_pool = [loss.pin for loss in repaired.losses if "shared pool" in loss.why]
    assert len(for_the_pool) <= 1
    if for_the_pool:
        assert State(
            CPUSet(), {"": {str(n): cpus(pin.cpus) for n, pin in enumerate(kept)}}
        ).exclusive_cpus() == pooled_cpus(new)
    assert sorted(pins_of(written) + [loss.pin for loss in repaired.losses]) == sorted(found)
    # Once more changes nothing.
    again = repair(pins_of(written), new)
    assert again == Repair(repaired.state, [], [])


@given(st.data())
def test_without_a_change_nothing_is_lost(data: st.DataObject) -> None:
    config = data.draw(configs())
    state = data.draw(valid_states(config))
    assert repair(pins_of(write_checkpoint(config.policy_name, state)), config) == Repair(state, [], [])


@given(st.data())
def test_any_pins_give_an_accepted_state(data: st.DataObject) -> None:
    """Also of a file that no kubelet wrote: with overlaps, with CPUs that never were."""
    config = data.draw(configs())
    names = st.sampled_from(["pod-a", "pod-b", "pod-c"])
    text = st.one_of(sets().map(str), st.sampled_from(["x", "3-1", "99999", "1,"]))
    found = data.draw(
        st.lists(
            st.builds(Pin, names, st.sampled_from(["a", "b", WHOLE_POD, NAMELESS]), text), unique_by=lambda p: p[:2]
        )
    )
    live = data.draw(st.none() | st.lists(names, unique=True))
    repaired = repair(sorted(found), config, live)
    check_state(repaired.state, config)
    assert len(pins_of_state(repaired.state)) + len(repaired.losses) + len(repaired.stale) == len(found)
    again = repair(pins_of_state(repaired.state), config, live)
    assert not again.losses
    assert not again.stale
    assert again.state == repaired.state
