# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/acceptance.py."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    NONE,
    STATIC,
    CPUManagerConfig,
    StateError,
    check_checkpoint,
    check_state,
    first_state,
    restore_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    CheckpointError,
    Format2,
    Format3,
    Format4,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import checkpoint_after


def state(default: str, **containers: str) -> State:
    """Return one pod for each container; C(c1="0") is the container c of the pod uid-c1."""
    return State(cpus(default), {"uid-" + name: {name: cpus(text)} for name, text in containers.items()})


STATIC_CONFIG = CPUManagerConfig(STATIC, cpus("0-7"), cpus("0,4"))
STRICT_CONFIG = CPUManagerConfig(STATIC, cpus("0-7"), cpus("0,4"), strict_reservation=True)
NONE_CONFIG = CPUManagerConfig(NONE, cpus("0-7"))


@pytest.mark.parametrize(
    ("config", "expected"),
    [(STATIC_CONFIG, state("0-7")), (STRICT_CONFIG, state("1-3,5-7")), (NONE_CONFIG, state(""))],
)
def test_first_state(config: CPUManagerConfig, expected: State) -> None:
    assert first_state(config) == expected


ACCEPTED = [
    (STATIC_CONFIG, state("0-7")),
    (STATIC_CONFIG, state("0,2-4,6-7", a="1,5")),
    (STATIC_CONFIG, state("0,3-4,7", a="1,5", b="2,6")),
    (STATIC_CONFIG, state("0,4", a="1-3,5-7")),  # only the reserved are left
    (STATIC_CONFIG, state("")),  # new
    (STATIC_CONFIG, state("0-7", a="")),  # nobody looks at an empty set
    (STATIC_CONFIG, state("0,3-4,7", a="1-2,5", b="2,6")),  # nor at containers that overlap
    (STATIC_CONFIG._replace(reserved=cpus("2")), state("0,2-4,6-7", a="1,5")),  # another reservation, in the pool
    (STRICT_CONFIG, state("1-3,5-7")),
    (STRICT_CONFIG, state("2-3,6-7", a="1,5")),
    (STRICT_CONFIG, state("2", a="1,5", b="3,6-7")),
    (STRICT_CONFIG, state("")),
    (NONE_CONFIG, state("")),
    (NONE_CONFIG, state("0-99", a="0-99")),  # the policy none looks at nothing
]


@pytest.mark.parametrize(("config", "state_"), ACCEPTED)
def test_accepted(config: CPUManagerConfig, state_: State) -> None:
    check_state(state_, config)
    assert check_checkpoint(write_checkpoint(config.policy_name, state_), config) == state_


REFUSED = [
    # 1. an empty default set, and yet assignments
    (STATIC_CONFIG, state("", a="1"), "default cpuset cannot be empty"),
    (STATIC_CONFIG, state("", a="0-7"), "default cpuset cannot be empty"),
    (STATIC_CONFIG, State(CPUSet(), {"uid-a": {}}), "default cpuset cannot be empty"),
    (STRICT_CONFIG, state("", a="1-3,5-7"), "default cpuset cannot be empty"),  # all CPUs taken, which can happen
    # 2. reserved CPUs
    (STATIC_CONFIG, state("1-7"), 'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-7"'),
    (STATIC_CONFIG, state("1-3,5-7"), 'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-3,5-7"'),
    (STATIC_CONFIG, state("1-7", a="0"), 'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-7"'),
    (STRICT_CONFIG, state("0-7"), 'some of strictly reserved cpus: "0,4" are present in defaultCpuSet: "0-7"'),
    (STRICT_CONFIG, state("1-4"), 'some of strictly reserved cpus: "4" are present in defaultCpuSet: "1-4"'),
    # 3. an assignment of what is in the default set
    (
        STATIC_CONFIG,
        state("0-7", a="1,5"),
        'pod: uid-a, container: a cpuset: "1,5" overlaps with default cpuset "0-7"',
    ),
    (
        STATIC_CONFIG,
        state("0,2-7", a="1", b="2,9"),
        'pod: uid-b, container: b cpuset: "2,9" overlaps with default cpuset "0,2-7"',
    ),
    # 4. not the machine's CPUs
    (
        STATIC_CONFIG,
        state("0-6"),
        'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-6"',  # one came online
    ),
    (
        STATIC_CONFIG,
        state("0-8"),
        'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',  # one went offline
    ),
    (
        STATIC_CONFIG,
        state("0,2-4,6-7", a="1,5,8"),
        'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-8"',
    ),
    (
        STATIC_CONFIG,
        state("0,2-4,6-7", a="1"),
        'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-4,6-7"',
    ),
    (
        STRICT_CONFIG,
        state("1-3,5-6"),
        'current set of available CPUs "1-3,5-7" doesn\'t match with CPUs in state "1-3,5-6"',
    ),
    (
        STRICT_CONFIG,
        state("1-3,5-7", a="0,4"),
        'current set of available CPUs "1-3,5-7" doesn\'t match with CPUs in state "0-7"',
    ),
    # the first rule that is broken is told
    (STATIC_CONFIG, state("1-9", a="1"), 'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-9"'),
    (
        STATIC_CONFIG,
        state("0-9", a="1"),
        'pod: uid-a, container: a cpuset: "1" overlaps with default cpuset "0-9"',
    ),
]


@pytest.mark.parametrize(("config", "state_", "message"), REFUSED)
def test_refused(config: CPUManagerConfig, state_: State, message: str) -> None:
    with pytest.raises(StateError) as caught:
        check_state(state_, config)
    assert str(caught.value) == message
    with pytest.raises(StateError) as caught:
        check_checkpoint(write_checkpoint(config.policy_name, state_), config)
    assert str(caught.value) == message


def test_strict_reservation_cannot_be_switched_with_a_state() -> None:
    with pytest.raises(StateError, match="some of strictly reserved cpus"):
        check_state(first_state(STATIC_CONFIG), STRICT_CONFIG)
    with pytest.raises(StateError, match="not all reserved cpus"):
        check_state(first_state(STRICT_CONFIG), STATIC_CONFIG)


@pytest.mark.parametrize(("found", "wanted"), [(NONE, STATIC), (STATIC, NONE), ("", NONE), ("Static", STATIC)])
def test_another_policy(found: str, wanted: str) -> None:
    content = write_checkpoint(found, state("0-7"))
    with pytest.raises(CheckpointError) as caught:
        check_checkpoint(content, STATIC_CONFIG._replace(policy_name=wanted))
    assert str(caught.value) == 'configured policy "%s" differs from state checkpoint policy "%s"' % (wanted, found)


def test_order_of_the_checks_of_a_file() -> None:
    """The checksum, then the policy, then the sets, then the state."""
    data = {"policyName": "none", "defaultCpuSet": "x", "checksum": 1}
    with pytest.raises(CheckpointError, match="checkpoint is corrupted"):
        check_checkpoint(json.dumps(data).encode(), STATIC_CONFIG)
    data["checksum"] = 0
    with pytest.raises(CheckpointError, match="differs from state checkpoint policy"):
        check_checkpoint(json.dumps(data).encode(), STATIC_CONFIG)
    data["policyName"] = "static"
    with pytest.raises(CheckpointError, match="could not parse default cpu set"):
        check_checkpoint(json.dumps(data).encode(), STATIC_CONFIG)
    data["defaultCpuSet"] = "1"
    with pytest.raises(StateError, match="not all reserved cpus"):
        check_checkpoint(json.dumps(data).encode(), STATIC_CONFIG)
    data["defaultCpuSet"] = "0-7"
    assert check_checkpoint(json.dumps(data).encode(), STATIC_CONFIG) == state("0-7")


def test_what_is_in_the_file_after_a_start() -> None:
    """Where no pod runs, the CPUs of containers go back; else the file stays as it is, to the byte."""
    new = write_checkpoint(STATIC, state("0-7"), Format2)
    assert checkpoint_after(None, STATIC_CONFIG) == new
    assert checkpoint_after(new, STATIC_CONFIG) == new
    odd = new.replace(b'{"policyName"', b'{ "policyName"')
    assert checkpoint_after(odd, STATIC_CONFIG) == odd
    # Pods without containers hold nothing.
    empty = write_checkpoint(STATIC, State(cpus("0-7"), {"uid-a": {}}), Format2)
    assert checkpoint_after(empty, STATIC_CONFIG) == empty
    assert checkpoint_after(write_checkpoint(STATIC, state("0,2-4,6-7", a="1,5"), Format2), STATIC_CONFIG) == new
    assert checkpoint_after(None, STRICT_CONFIG) == write_checkpoint(STATIC, state("1-3,5-7"), Format2)
    assert checkpoint_after(None, NONE_CONFIG) == write_checkpoint(NONE, state(""), Format2)
    whole = STATIC_CONFIG._replace(pod_level=True)
    assert checkpoint_after(None, whole) == write_checkpoint(STATIC, state("0-7"), Format3)
    assert checkpoint_after(None, whole._replace(minor=37)) == write_checkpoint(STATIC, state("0-7"), Format4)
    with pytest.raises(StateError, match="not all reserved cpus"):
        checkpoint_after(write_checkpoint(STATIC, state("1-7")), STATIC_CONFIG)
    with pytest.raises(CheckpointError, match="unexpected end of JSON input"):
        checkpoint_after(b"{", STATIC_CONFIG)


def test_cpus_of_whole_pods_are_restored_where_the_gate_is_on() -> None:
    found = state("0,4", a="1-3")._replace(pod_assignments={"uid-b": cpus("5-7")})
    for kind, minor in ((Format3, 36), (Format4, 36), (Format3, 37), (Format4, 37)):
        content = write_checkpoint(STATIC, found, kind)
        # Of format 4, the kubelet 1.36 reads the format 2 in it.
        pods = {} if (kind, minor) == (Format4, 36) else found.pod_assignments
        assert restore_state(content, STATIC, minor, pod_level=True) == found._replace(pod_assignments=pods)
        if minor == 37 or kind is Format4:
            assert restore_state(content, STATIC, minor) == found._replace(pod_assignments={})


@st.composite
def configs(draw: st.DrawFn) -> CPUManagerConfig:
    all_cpus = draw(cpusets().filter(lambda found: len(found) > 1))
    # Never all of them: that is refused before.
    reserved = draw(st.frozensets(st.sampled_from(list(all_cpus)), max_size=len(all_cpus) - 1).map(CPUSet))
    return CPUManagerConfig(draw(st.sampled_from([NONE, STATIC])), all_cpus, reserved, draw(st.booleans()))


@given(configs())
def test_the_first_state_is_accepted(config: CPUManagerConfig) -> None:
    first = first_state(config)
    check_state(first, config)
    assert check_checkpoint(write_checkpoint(config.policy_name, first), config) == first


@given(configs(), st.data())
def test_what_the_policy_does_to_a_state_is_accepted(config: CPUManagerConfig, data: st.DataObject) -> None:
    """CPUs go from the shared pool to containers, but never the reserved ones."""
    config = config._replace(policy_name=STATIC)
    default, assignments = first_state(config).default_cpu_set, {}
    for number in range(data.draw(st.integers(0, 3))):
        free = list(default - config.reserved)[1:]
        if free:
            taken = CPUSet(data.draw(st.frozensets(st.sampled_from(free), min_size=1)))
            default -= taken
            assignments["pod%d" % number] = {"container": taken}
    check_state(State(default, assignments), config)
    # One CPU more on the machine, and the next start fails.
    more = config._replace(all_cpus=config.all_cpus | CPUSet([300]))
    with pytest.raises(StateError, match="doesn't match with CPUs in state"):
        check_state(State(default, assignments), more)
