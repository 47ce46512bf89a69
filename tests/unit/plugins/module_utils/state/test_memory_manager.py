# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/memory_manager.py."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_formats import (
    MemoryConfig,
    MemoryStateError,
    restore_memory,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    ACCEPTED,
    NOT_JUDGED,
    REFUSED,
    MemoryJudgement,
    first_memory_state,
    judge_memory,
    memory_owners,
    memory_state_after,
)

GIB = 1 << 30
PATH = "/var/lib/kubelet/memory_manager_state"

CORRUPTED = "checkpoint is corrupted"
OTHER_MACHINE = "[memorymanager] the expected machine state is different from the real one"
POLICY = "[memorymanager] configured policy %s differs from state checkpoint policy %s"
WRONG = "json: cannot unmarshal %s of type %s"
PANIC = "runtime error: invalid memory address or nil pointer dereference"

# What kubelets wrote: 1.33 and 1.36, and 1.36 with the gate PodLevelResourceManagers.
NONE = b'{"policyName":"None","machineState":{},"checksum":4236770233}'
NONE_PODS = b'{"policyName":"None","machineState":{},"checksum":512582496}'
STATIC = (
    b'{"policyName":"Static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":{"total":68719476736,'
    b'"systemReserved":524288000,"allocatable":68195188736,"reserved":0,"free":68195188736}},"cells":[0]}},'
    b'"checksum":2915779776}'
)
FOUR_NODES_SUM = 1738427574  # of 64 GiB each, 0, 8, 16 and 24, and 400 MiB reserved of node 0

POLICY_NONE = MemoryConfig("None", {}, 33)
POLICY_STATIC = MemoryConfig("Static", {0: {"memory": 500 << 20}}, 33, machine={0: {"memory": 64 * GIB}})


def reason(content: bytes, config: MemoryConfig) -> str:
    return judge_memory(content, config).reason


# --- what is written first ----------------------------------------------------------------------------------


@pytest.mark.parametrize("minor", [21, 33, 35, 36])
def test_first_states_of_kubelets(minor: int) -> None:
    assert first_memory_state(POLICY_NONE._replace(minor=minor)) == NONE
    assert first_memory_state(POLICY_STATIC._replace(minor=minor)) == STATIC


def test_first_state_with_pod_level_managers() -> None:
    assert first_memory_state(MemoryConfig("None", {}, 36, pod_level=True)) == NONE_PODS
    assert first_memory_state(MemoryConfig("None", {}, 35, pod_level=True)) == NONE


def test_nodes_are_written_in_the_order_of_texts_and_summed_in_that_of_numbers() -> None:
    machine = {node: {"memory": 64 * GIB} for node in (0, 8, 16, 24)}
    content = first_memory_state(MemoryConfig("Static", {0: {"memory": 400 << 20}}, 36, machine=machine)) or b""
    data = json.loads(content)
    assert list(data["machineState"]) == ["0", "16", "24", "8"]
    assert data["checksum"] == FOUR_NODES_SUM


def test_huge_pages_are_not_memory_for_pods() -> None:
    machine = {0: {"memory": 8 * GIB, "hugepages-1Gi": 3 * GIB, "hugepages-2Mi": 0}}
    config = MemoryConfig("Static", {0: {"memory": GIB, "hugepages-1Gi": GIB}}, 36, machine=machine)
    data = json.loads(first_memory_state(config) or b"")
    tables = data["machineState"]["0"]["memoryMap"]
    assert list(tables) == ["hugepages-1Gi", "hugepages-2Mi", "memory"]
    assert (tables["memory"]["allocatable"], tables["hugepages-1Gi"]["allocatable"]) == (4 * GIB, 2 * GIB)
    assert reason(first_memory_state(config) or b"", config) == ""


def test_more_is_reserved_than_a_node_has() -> None:
    """Go subtracts 64 bits without a sign, and the kubelet starts."""
    config = POLICY_STATIC._replace(machine={0: {"memory": 0}})
    content = first_memory_state(config) or b""
    assert json.loads(content)["machineState"]["0"]["memoryMap"]["memory"]["free"] == (1 << 64) - (500 << 20)
    assert reason(content, config) == ""


def test_a_first_state_of_an_unknown_machine() -> None:
    assert first_memory_state(POLICY_STATIC._replace(machine=None)) is None
    assert first_memory_state(POLICY_NONE._replace(machine=None)) == NONE


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


# --- checksums ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minor", [21, 33, 35, 36, 37])
def test_a_right_and_a_wrong_checksum(minor: int) -> None:
    config = POLICY_NONE._replace(minor=minor)
    assert reason(NONE, config) == ""
    assert reason(b" \n" + NONE + b"\n", config) == ""
    assert reason(NONE.replace(b"4236770233", b"4236770234"), config) == CORRUPTED
    # It comes before the policy.
    assert reason(NONE.replace(b"4236770233", b"1"), config._replace(policy="Static")) == CORRUPTED


@pytest.mark.parametrize(("minor", "verdict"), [(33, CORRUPTED), (35, CORRUPTED), (36, ""), (37, "")])
def test_a_checksum_of_zero_and_none_at_all(minor: int, verdict: str) -> None:
    for content in (b'{"policyName":"None","machineState":{},"checksum":0}', b'{"policyName":"None"}'):
        assert reason(content, POLICY_NONE._replace(minor=minor)) == verdict


def test_what_is_summed() -> None:
    """Each part of a state, and nil is not empty."""
    config = POLICY_STATIC._replace(minor=33)
    assert reason(STATIC.replace(b"524288000", b"524288001"), config) == CORRUPTED
    assert reason(STATIC.replace(b'"cells":[0]', b'"cells":null'), config) == CORRUPTED
    assert reason(STATIC.replace(b'"checksum"', b'"entries":{"p":{}},"checksum"'), config) == CORRUPTED
    assert reason(STATIC.replace(b'"checksum"', b'"entries":null,"checksum"'), config) == CORRUPTED
    assert reason(STATIC.replace(b'"checksum"', b'"entries":{},"other":1,"checksum"'), config) == ""


def test_a_name_of_a_struct_that_1_36_sums_too() -> None:
    """1.36.0 wrote its own name for the format, MemoryManagerCheckpointV1; with the gate on it is not taken."""
    content = NONE.replace(b"4236770233", b"467305784")
    verdicts = {
        (minor, pods): reason(content, MemoryConfig("None", {}, minor, pods))
        for minor in (33, 36, 37)
        for pods in (False, True)
    }
    assert {key for key, verdict in verdicts.items() if not verdict} == {(36, False)}


# --- what Go says of a file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"policyName":"Static","machineState":{"0":{"numbe', "unexpected end of JSON input"),
        (b"policy", "invalid character 'p' looking for beginning of value"),
        (b"[]", WRONG % ("array into Go value", "state.#")),
        (b'"x"', WRONG % ("string into Go value", "state.#")),
        (b'{"policyName":5}', WRONG % ("number into Go struct field #.policyName", "string")),
        (b'{"machineState":[]}', WRONG % ("array into Go struct field #.machineState", "state.NUMANodeMap")),
        (b'{"machineState":{"x":null}}', WRONG % ("number x into Go struct field #.machineState", "int")),
        (b'{"machineState":{"0":5}}', WRONG % ("number into Go struct field #.machineState", "state.NUMANodeState")),
        (
            b'{"machineState":{"0":{"memoryMap":[]}}}',
            WRONG
            % (
                "array into Go struct field NUMANodeState.machineState.memoryMap",
                "map[v1.ResourceName]*state.MemoryTable",
            ),
        ),
        (
            b'{"machineState":{"0":{"memoryMap":{"memory":{"systemReserved":-1}}}}}',
            WRONG % ("number -1 into Go struct field MemoryTable.machineState.memoryMap.systemReserved", "uint64"),
        ),
        (
            b'{"machineState":{"0":{"cells":{}}}}',
            WRONG % ("object into Go struct field NUMANodeState.machineState.cells", "[]int"),
        ),
        (
            b'{"machineState":{"0":{"numberOfAssignments":1.0}}}',
            WRONG % ("number 1.0 into Go struct field NUMANodeState.machineState.numberOfAssignments", "int"),
        ),
        (b'{"entries":"x"}', WRONG % ("string into Go struct field #.entries", "state.ContainerMemoryAssignments")),
        (b'{"entries":{"p":true}}', WRONG % ("bool into Go struct field #.entries", "map[string][]state.Block")),
        (b'{"entries":{"p":{"c":{}}}}', WRONG % ("object into Go struct field #.entries", "[]state.Block")),
        (b'{"entries":{"p":{"c":[1]}}}', WRONG % ("number into Go struct field #.entries", "state.Block")),
        (
            b'{"entries":{"p":{"c":[{"type":1}]}}}',
            WRONG % ("number into Go struct field Block.entries.type", "v1.ResourceName"),
        ),
        (
            b'{"entries":{"p":{"c":[{"numaAffinity":["0"]}]}}}',
            WRONG % ("string into Go struct field Block.entries.numaAffinity", "int"),
        ),
        (b'{"checksum":"1"}', WRONG % ("string into Go struct field #.checksum", "checksum.Checksum")),
        (b'{"checksum":-1}', WRONG % ("number -1 into Go struct field #.checksum", "checksum.Checksum")),
        # The first is told.
        (b'{"checksum":"1","policyName":5}', WRONG % ("string into Go struct field #.checksum", "checksum.Checksum")),
        # Upper and lower case do not count, nor do names that are not known.
        (b'{"POLICYNAME":5,"x":[]}', WRONG % ("number into Go struct field #.policyName", "string")),
    ],
)
def test_what_is_no_state(content: bytes, said: str) -> None:
    for minor, name in ((33, "MemoryManagerCheckpoint"), (36, "MemoryManagerCheckpointV1")):
        judgement = judge_memory(content, POLICY_NONE._replace(minor=minor))
        assert judgement == MemoryJudgement(REFUSED, said.replace("#", name), restored=False)


def test_a_file_that_cannot_be_read() -> None:
    judgement = judge_memory(MemoryStateError("read %s: is a directory" % PATH), POLICY_NONE)
    assert judgement.text(PATH) == (
        "could not restore state from checkpoint: read %s: is a directory, please drain this node and delete the"
        ' memory manager checkpoint file "%s" before restarting Kubelet' % (PATH, PATH)
    )


def test_the_last_of_a_name_counts_and_maps_are_added_to() -> None:
    content = (
        b'{"policyName":"Static","PolicyName":"None","machineState":{"1":{}},"machinestate":{"01":null,"2":{}},'
        b'"entries":{"a":{}},"entries":{"b":null}}'
    )
    state = restore_memory(content, POLICY_NONE._replace(minor=36))
    assert (state.policy, state.entries) == ("None", {"a": {}, "b": None})
    assert state.machine == {1: None, 2: {"numberOfAssignments": 0, "memoryMap": None, "cells": None}}


@pytest.mark.parametrize(
    ("content", "policy"), [(b"{}", ""), (b"null", ""), (b'{"policyName":"Static"}', "Static"), (NONE_PODS, None)]
)
def test_another_policy(content: bytes, policy: str | None) -> None:
    config = POLICY_NONE._replace(minor=36)
    wanted = CORRUPTED if policy is None else POLICY % ('"None"', '"%s"' % policy)
    assert judge_memory(content, config) == MemoryJudgement(REFUSED, wanted, restored=False)


# --- the machine --------------------------------------------------------------------------------------------


def block(size: int, *nodes: int, kind: str = "memory") -> dict[str, Any]:
    return {"numaAffinity": list(nodes), "type": kind, "size": size}


TWO = MemoryConfig("Static", {0: {"memory": GIB}}, 36, machine={0: {"memory": 8 * GIB}, 1: {"memory": 8 * GIB}})


def state(config: MemoryConfig, entries: Any = None, **nodes: Any) -> bytes:
    """A first state, and what is other in it: {"node0": {...}} changes the member of a node or of its memory."""
    data = json.loads(first_memory_state(config) or b"")
    for name, changes in nodes.items():
        node = data["machineState"][name[len("node") :]]
        for key, value in changes.items():
            (node if key in node else node["memoryMap"]["memory"])[key] = value
    return json.dumps({**data, "entries": entries, "checksum": 0}).encode("ascii")


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
            content = first_memory_state(config) or b""
            assert judge_memory(content, config) == MemoryJudgement(ACCEPTED)
            assert memory_state_after(content, config) == content
            node, kind = rng.choice([(node, kind) for node in nodes for kind in machine[node]])
            changed = {**machine, node: {**machine[node], kind: machine[node][kind] ^ 4096}}
            assert judge_memory(content, config._replace(machine=changed)).reason == OTHER_MACHINE
            assert judge_memory(content, config._replace(machine=None)).verdict == NOT_JUDGED


# --- pods as a whole, and 1.37 ------------------------------------------------------------------------------

PODS = MemoryConfig("Static", {0: {"memory": GIB}}, 36, True, {0: {"memory": 8 * GIB}})


def with_pods(content: bytes, **changes: Any) -> bytes:
    data = json.loads(content)
    node = data["machineState"]["0"]
    node["numberOfAssignments"] = 1
    node["memoryMap"]["memory"].update({"reserved": 2 * GIB, "free": 5 * GIB})
    entries = {"entries": {"p": {"c": [block(GIB, 0)], "d": [block(GIB, 0)]}}}
    return json.dumps(
        {**data, **entries, "podEntries": {"p": {"memoryBlocks": [block(2 * GIB, 0)]}}, **changes}
    ).encode()


def test_blocks_of_a_whole_pod_count_in_place_of_its_containers() -> None:
    """With the gate alone; the checksum of 0 is one of the format without pods, of which those of pods are left."""
    content = with_pods(first_memory_state(PODS) or b"", checksum=0)
    assert reason(content, PODS) == ""
    assert reason(content, PODS._replace(pod_level=False)) == OTHER_MACHINE


def test_formats_of_1_36_and_the_gate() -> None:
    """Drain before the gate is switched off: the other format is corrupt without it."""
    on, off = MemoryConfig("None", {}, 36, True), MemoryConfig("None", {}, 36)
    assert (reason(NONE_PODS, on), reason(NONE, on), reason(NONE, off)) == ("", "", "")
    assert (reason(NONE_PODS, off), reason(NONE_PODS, POLICY_NONE)) == (CORRUPTED, CORRUPTED)


def test_upgrade_to_1_37_by_its_sources() -> None:
    """It reads all older formats, whatever its gate says."""
    for pods in (False, True):
        config = MemoryConfig("None", {}, 37, pods)
        assert (reason(NONE, config), reason(NONE_PODS, config)) == ("", "")
    assert reason(NONE_PODS.replace(b"512582496", b"1"), MemoryConfig("None", {}, 37)) == CORRUPTED


V3 = first_memory_state(POLICY_STATIC._replace(minor=37)) or b""


def test_format_3_of_1_37_by_its_sources() -> None:
    data = json.loads(V3)
    assert list(data) == ["policyName", "machineState", "checksum", "data", "dataChecksum"]
    assert data["checksum"] == json.loads(STATIC)["checksum"]
    inner = json.loads(data["data"])
    assert inner == {key: data[key] for key in ("policyName", "machineState")}
    assert " " not in data["data"]


@pytest.mark.parametrize("minor", [21, 33, 35, 36])
def test_downgrade_from_1_37_by_its_sources(minor: int) -> None:
    """Older kubelets read what stands beside the text, which has the right checksum, and nothing of whole pods."""
    assert reason(V3, POLICY_STATIC._replace(minor=minor)) == ""
    with_gate = POLICY_STATIC._replace(minor=minor, pod_level=True)
    assert reason(V3, with_gate) == ""


def test_the_text_of_format_3_counts_in_1_37_by_its_sources() -> None:
    config = POLICY_STATIC._replace(minor=37)
    data = json.loads(V3)

    def said(**changes: Any) -> str:
        return reason(json.dumps({**data, **changes}).encode("ascii"), config)

    assert said(policyName="None", machineState={}, checksum=1) == ""
    load = "could not load v3 checkpoint: "
    struct = load + "failed to deserialize memory manager checkpoint: json: cannot unmarshal "
    assert said(dataChecksum=1) == load + CORRUPTED
    assert said(data=data["data"] + " ") == load + CORRUPTED
    inner = load + "failed to deserialize memory manager checkpoint data: "
    assert said(data="") == inner + "unexpected end of JSON input"
    assert said(data='{"policyName":5}') == inner + WRONG % (
        "number into Go struct field MemoryManagerCheckpointData.policyName",
        "string",
    )
    where = "Go struct field MemoryManagerCheckpoint.MemoryManagerCheckpointV1.policyName of type string"
    assert said(policyName=5) == struct + "number into " + where
    # Without both members it is a file of an older kubelet.
    assert said(data="", dataChecksum=0) == ""
    assert said(data="", dataChecksum=0, checksum=1) == CORRUPTED
    assert said(data="", dataChecksum=0, policyName=5) == WRONG % (
        "number into Go struct field MemoryManagerCheckpointV1.policyName",
        "string",
    )


def test_blocks_of_pods_in_1_37_by_its_sources() -> None:
    """They are in the text alone, so that a downgrade loses them."""
    config = PODS._replace(minor=37)
    content = memory_state_after(b'{"policyName":"Static","podEntries":{"p":{}}}', config) or b""
    assert "podEntries" not in json.loads(content)
    assert reason(content, config) == ""


# --- whose it is --------------------------------------------------------------------------------------------


def test_owners() -> None:
    row = [block(GIB, 0)]
    assert memory_owners(state(TWO, {"b": {"one": row}, "a": {"two": row, "one": row}})) == [
        ("a", "one"),
        ("a", "two"),
        ("b", "one"),
    ]
    for content in (b"", b"null", b"{}", b'{"entries":null}', NONE):
        assert memory_owners(content) == []


# --- hostile files ------------------------------------------------------------------------------------------

TOKENS = (
    b"null",
    b"[]",
    b"{}",
    b"-1",
    b"1e9",
    b'"x"',
    b"99999999999999999999999",
    b"true",
    b'{"0":null}',
    b"[0,0,9]",
    b"]",
    b"",
)


def test_hostile_files_have_an_answer() -> None:
    """Each part of a state in the place of another, cut off, twice, with and without a checksum."""
    rng = random.Random(7)
    valid = [NONE, NONE_PODS, STATIC, V3, state(TWO, {"p": {"c": [block(GIB, 0, 1)]}}), with_pods(STATIC, checksum=0)]
    configs = [
        config._replace(minor=minor, pod_level=pods)
        for config in (POLICY_NONE, POLICY_STATIC, TWO, TWO._replace(machine=None))
        for minor, pods in ((33, False), (36, False), (36, True), (37, True))
    ]
    for _number in range(3000):
        content = rng.choice(valid)
        parts = content.replace(b":", b"\0:\0").replace(b",", b"\0,\0").replace(b"}", b"\0}").split(b"\0")
        for _change in range(rng.randrange(1, 4)):
            parts[rng.randrange(len(parts))] = rng.choice([*TOKENS, rng.choice(parts)])
        content = b"".join(parts)[: rng.choice([None, None, rng.randrange(len(content) + 1)])]
        if rng.randrange(2):
            content = content.replace(b'"checksum":', b'"x":').replace(b'"dataChecksum":', b'"y":')
        judgement = judge_memory(content, rng.choice(configs))
        assert judgement.verdict in (ACCEPTED, REFUSED, NOT_JUDGED)
        assert (judgement.verdict == ACCEPTED) == (not judgement.reason)
        memory_owners(content)
