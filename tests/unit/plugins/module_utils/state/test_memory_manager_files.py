# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet says of a file of the memory manager: its checksum, what Go says of it, and hostile files."""

from __future__ import annotations

import random

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    ACCEPTED,
    NOT_JUDGED,
    REFUSED,
    MemoryConfig,
    MemoryJudgement,
    MemoryStateError,
    judge_memory,
    memory_owners,
    restore_memory,
)

from .memory_states import (
    CORRUPTED,
    GIB,
    NONE,
    NONE_PODS,
    PATH,
    POLICY,
    POLICY_NONE,
    POLICY_STATIC,
    STATIC,
    TWO,
    V3,
    WRONG,
    block,
    reason,
    state,
    with_pods,
)

# --- checksums ------------------------------------------------------------------------------------


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


# --- what Go says of a file -----------------------------------------------------------------------


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


# --- hostile files --------------------------------------------------------------------------------

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
