# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/memory_manager.py: the first state, and whether one is that of this machine.

Files that are damaged are in test_memory_manager_files.py, pods as a whole in test_memory_manager_pods.py.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    ACCEPTED,
    NOT_JUDGED,
    REFUSED,
    MemoryConfig,
    MemoryJudgement,
    MemoryStateError,
    judge_memory,
    memory_amounts,
    memory_owners,
)
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

from .memory_states import (
    FOUR_NODES_SUM,
    GIB,
    NONE,
    NONE_PODS,
    OTHER_MACHINE,
    PANIC,
    PATH,
    POLICY_NONE,
    POLICY_STATIC,
    STATIC,
    TWO,
    block,
    reason,
    state,
)

# --- what is written first ------------------------------------------------------------------------


@pytest.mark.parametrize("minor", [21, 33, 35, 36])
def test_first_states_of_kubelets(minor: int) -> None:
    assert memory_state_after(None, POLICY_NONE._replace(minor=minor)) == NONE
    assert memory_state_after(None, POLICY_STATIC._replace(minor=minor)) == STATIC


def test_first_state_with_pod_level_managers() -> None:
    assert memory_state_after(None, MemoryConfig("None", {}, 36, pod_level=True)) == NONE_PODS
    assert memory_state_after(None, MemoryConfig("None", {}, 35, pod_level=True)) == NONE


def test_nodes_are_written_in_the_order_of_texts_and_summed_in_that_of_numbers() -> None:
    machine = {node: {"memory": 64 * GIB} for node in (0, 8, 16, 24)}
    content = memory_state_after(None, MemoryConfig("Static", {0: {"memory": 400 << 20}}, 36, machine=machine)) or b""
    data = json.loads(content)
    assert list(data["machineState"]) == ["0", "16", "24", "8"]
    assert data["checksum"] == FOUR_NODES_SUM


def test_huge_pages_are_not_memory_for_pods() -> None:
    machine = {0: {"memory": 8 * GIB, "hugepages-1Gi": 3 * GIB, "hugepages-2Mi": 0}}
    config = MemoryConfig("Static", {0: {"memory": GIB, "hugepages-1Gi": GIB}}, 36, machine=machine)
    data = json.loads(memory_state_after(None, config) or b"")
    tables = data["machineState"]["0"]["memoryMap"]
    assert list(tables) == ["hugepages-1Gi", "hugepages-2Mi", "memory"]
    assert (tables["memory"]["allocatable"], tables["hugepages-1Gi"]["allocatable"]) == (4 * GIB, 2 * GIB)
    assert reason(memory_state_after(None, config) or b"", config) == ""


def test_more_is_reserved_than_a_node_has() -> None:
    """Go subtracts 64 bits without a sign, and the kubelet starts."""
    config = POLICY_STATIC._replace(machine={0: {"memory": 0}})
    content = memory_state_after(None, config) or b""
    assert json.loads(content)["machineState"]["0"]["memoryMap"]["memory"]["free"] == (1 << 64) - (500 << 20)
    assert reason(content, config) == ""


def test_a_first_state_of_an_unknown_machine() -> None:
    assert memory_state_after(None, POLICY_STATIC._replace(machine=None)) is None
    assert memory_state_after(None, POLICY_NONE._replace(machine=None)) == NONE


def test_a_state_stays_as_it_is() -> None:
    for content, config in ((b" \n" + NONE, POLICY_NONE), (STATIC, POLICY_STATIC)):
        assert memory_state_after(content, config) == content
    with pytest.raises(MemoryStateError):
        memory_state_after(b"", POLICY_NONE)


def test_a_state_without_a_machine_is_filled() -> None:
    config = POLICY_STATIC._replace(minor=36)
    assert memory_state_after(b'{"policyName":"Static","machineState":{},"checksum":0}', config) == STATIC
    content = b'{"policyName":"None","checksum":0}'
    assert memory_state_after(content, POLICY_NONE._replace(minor=36)) == content


# --- the machine ----------------------------------------------------------------------------------


def test_a_state_of_this_machine() -> None:
    assert judge_memory(STATIC, POLICY_STATIC) == MemoryJudgement(ACCEPTED)
    assert judge_memory(state(TWO), TWO) == MemoryJudgement(ACCEPTED)


@pytest.mark.parametrize(
    "changed",
    [
        TWO._replace(reserved={0: {"memory": 2 * GIB}}),
        TWO._replace(reserved={1: {"memory": GIB}}),
        TWO._replace(machine={0: {"memory": 8 * GIB}}),
        TWO._replace(machine={0: {"memory": 8 * GIB}, 2: {"memory": 8 * GIB}}),
        TWO._replace(machine={0: {"memory": 8 * GIB}, 1: {"memory": 8 * GIB - 4096}}),
        TWO._replace(machine={0: {"memory": 8 * GIB}, 1: {"memory": 8 * GIB, "hugepages-2Mi": 0}}),
    ],
)
def test_another_machine_or_reservation(changed: MemoryConfig) -> None:
    """It is not said that the state cannot be restored."""
    judgement = judge_memory(state(TWO), changed)
    assert judgement == MemoryJudgement(REFUSED, OTHER_MACHINE)
    assert judgement.text(PATH) == OTHER_MACHINE
    # The policy None looks at nothing.
    content = state(TWO).replace(b'"Static"', b'"None"')
    assert judge_memory(content, changed._replace(policy="None")) == MemoryJudgement(ACCEPTED)


@pytest.mark.parametrize(
    "nodes",
    [
        {"node0": {"total": 1}},
        {"node0": {"allocatable": 1}},
        {"node0": {"free": 1}},
        {"node0": {"reserved": 1}},
        {"node0": {"numberOfAssignments": 1}},
        {"node0": {"cells": [0, 1]}},
        {"node0": {"cells": None}},
        {"node0": {"memoryMap": None}},
    ],
)
def test_a_state_that_does_not_agree_with_itself(nodes: dict[str, Any]) -> None:
    """It is refused on any machine, known or not."""
    for config in (TWO, TWO._replace(machine=None)):
        assert judge_memory(state(TWO, **nodes), config) == MemoryJudgement(REFUSED, OTHER_MACHINE)


def test_blocks_of_containers() -> None:
    entries = {"p": {"c": [block(GIB, 0)], "d": [block(0, 0)]}}
    taken = {"numberOfAssignments": 2, "reserved": GIB, "free": 6 * GIB}
    assert reason(state(TWO, entries, node0=taken), TWO) == ""
    assert reason(state(TWO, entries), TWO) == OTHER_MACHINE
    assert reason(state(TWO, entries, node0={**taken, "numberOfAssignments": 1}), TWO) == OTHER_MACHINE


def test_blocks_over_a_group_of_nodes() -> None:
    """How much of it each node of the group gives does not count."""
    entries = {"p": {"c": [block(10 * GIB, 1, 0)]}}
    for first, second in ((2, 8), (7, 3), (5, 5)):
        nodes: dict[str, Any] = {
            "node0": {"cells": [0, 1], "numberOfAssignments": 1, "reserved": first * GIB, "free": (7 - first) * GIB},
            "node1": {"cells": [1, 0], "numberOfAssignments": 1, "reserved": second * GIB, "free": (8 - second) * GIB},
        }
        assert reason(state(TWO, entries, **nodes), TWO) == ""
    nodes["node0"]["reserved"] += 1
    assert reason(state(TWO, entries, **nodes), TWO) == OTHER_MACHINE


@pytest.mark.parametrize(
    ("wrong", "what"),
    [(block(1, 2), "the NUMA"), (block(1, 0, kind="hugepages-1Gi"), "memory resource")],
)
def test_blocks_of_what_is_not_there(wrong: dict[str, Any], what: str) -> None:
    text = "[memorymanager] (pod: p, container: c) the memory assignment uses %s that does not exist" % what
    assert judge_memory(state(TWO, {"p": {"c": [wrong]}}), TWO) == MemoryJudgement(REFUSED, text)


def test_no_machine_and_blocks() -> None:
    content = b'{"policyName":"Static","machineState":{},"entries":{"p":{}}}'
    text = "[memorymanager] machine state can not be empty when it has memory assignments"
    for config in (TWO, TWO._replace(machine=None)):
        assert judge_memory(content, config) == MemoryJudgement(REFUSED, text)
        assert judge_memory(b'{"policyName":"Static","machineState":null}', config) == MemoryJudgement(ACCEPTED)


def test_what_is_null_in_a_state() -> None:
    """Go's nil pointer ends the kubelet, with any policy where a table is null."""
    table = b'{"policyName":"%s","machineState":{"0":{"memoryMap":{"memory":null}}}}'
    node = b'{"policyName":"%s","machineState":{"0":null,"1":null}}'
    assert judge_memory(table % b"None", POLICY_NONE._replace(minor=36)) == MemoryJudgement(REFUSED, PANIC)
    assert judge_memory(table % b"Static", TWO) == MemoryJudgement(REFUSED, PANIC)
    assert judge_memory(node % b"None", POLICY_NONE._replace(minor=36)) == MemoryJudgement(ACCEPTED)
    assert judge_memory(node % b"Static", TWO) == MemoryJudgement(REFUSED, PANIC)


def test_a_machine_that_is_not_known() -> None:
    config = TWO._replace(machine=None, unknown="nobody tells")
    assert judge_memory(state(TWO), config) == MemoryJudgement(NOT_JUDGED, "nobody tells")
    assert judge_memory(state(TWO), config._replace(reserved={0: {"memory": 2 * GIB}})).verdict == REFUSED


def test_groups_that_overlap() -> None:
    """The kubelet goes through the containers in random order: what the nodes' group is depends on it."""
    entries = {"p": {"c": [block(0, 0)], "d": [block(0, 0, 1)]}}
    nodes: dict[str, Any] = {
        "node0": {"numberOfAssignments": 2, "cells": [0]},
        "node1": {"numberOfAssignments": 1, "cells": [0, 1]},
    }
    judgement = judge_memory(state(TWO, entries, **nodes), TWO)
    assert judgement.verdict == NOT_JUDGED
    assert "random order" in judgement.reason
    nodes["node0"]["numberOfAssignments"] = 3
    assert judge_memory(state(TWO, entries, **nodes), TWO).verdict == REFUSED


def test_whatever_the_machine_its_first_state_is_accepted_and_no_other() -> None:
    rng = random.Random(18)
    kinds = ("memory", "hugepages-2Mi", "hugepages-1Gi")
    for _number in range(30):
        nodes = rng.sample(range(32), rng.randrange(1, 9))
        some = rng.sample(kinds[1:], rng.randrange(3))
        machine = {node: {kind: rng.randrange(1 << 40) for kind in ("memory", *some)} for node in nodes}
        reserved = {node: {kind: rng.randrange(1, 1 << 30)} for node in nodes for kind in machine[node]}
        for minor, pods in ((33, False), (36, False), (36, True), (37, False), (37, True)):
            config = MemoryConfig("Static", reserved, minor, pods, machine)
            content = memory_state_after(None, config) or b""
            assert judge_memory(content, config) == MemoryJudgement(ACCEPTED)
            assert memory_state_after(content, config) == content
            node, kind = rng.choice([(node, kind) for node in nodes for kind in machine[node]])
            changed = {**machine, node: {**machine[node], kind: machine[node][kind] ^ 4096}}
            assert judge_memory(content, config._replace(machine=changed)).reason == OTHER_MACHINE
            assert judge_memory(content, config._replace(machine=None)).verdict == NOT_JUDGED


# --- whose it is ----------------------------------------------------------------------------------


def test_owners() -> None:
    row = [block(GIB, 0)]
    assert memory_owners(state(TWO, {"b": {"one": row}, "a": {"two": row, "one": row}})) == [
        ("a", "one"),
        ("a", "two"),
        ("b", "one"),
    ]
    assert memory_amounts(state(TWO, {"b": {"one": [*row, *row]}}))["b", "one"] == {"memory": 2 * GIB}
    for content in (b"", b"null", b"{}", b'{"entries":null}', NONE):
        assert memory_owners(content) == []
    for blocks in (b"7", b"[7]", b'[{"type":"memory","size":"1"}]', b'[{"type":7,"size":1}]', b'[{"type":"memory"}]'):
        assert memory_amounts(b'{"entries":{"p":{"c":%s}}}' % blocks) == {("p", "c"): {}}
