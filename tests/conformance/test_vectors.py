# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's own answers, to the last CPU and byte: see vectors/README.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from . import answer, traces
from .read_vectors import VECTORS, rows

TOPOLOGIES: dict[str, list[list[int]]] = json.loads((VECTORS / "topologies.json").read_text(encoding="utf-8"))

POLICY_FILES = {
    "1.33": "policy-1.33",
    "1.34": "policy-1.34-1.36",
    "1.35": "policy-1.34-1.36",
    "1.36": "policy-1.34-1.36",
}

CHECKPOINT_VERSIONS = ("1.33", "1.35", "1.36")

TAKE_ANSWERS = ("cpuset", "error")


def take_case(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without its answer, and with its machine."""
    case = {key: value for key, value in row.items() if key not in TAKE_ANSWERS}
    return {**case, "cpus": TOPOLOGIES[case.pop("topology")]}


def test_every_take() -> None:
    wrong = []
    number = 0
    for number, row in enumerate(rows("take"), 1):
        expected = {key: row[key] for key in TAKE_ANSWERS if key in row}
        found = answer.answer("take", take_case(row))
        if found != expected:
            wrong.append((number, found, expected))
    assert wrong == []
    assert number == 8000


@pytest.mark.parametrize("version", POLICY_FILES)
def test_every_policy_case(version: str) -> None:
    wrong = []
    number = 0
    for number, row in enumerate(rows(POLICY_FILES[version]), 1):
        case = row["case"]
        found = answer.answer("policy", {**case, "cpus": TOPOLOGIES[case["topology"]], "version": version})
        if found != row["expect"]:
            wrong.append((number, [key for key in row["expect"] if found.get(key) != row["expect"][key]]))
    assert wrong == []
    assert number == 900


def without_container_id(answer_: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return the answer without the container's id. Of several that it does not know, the kubelet names a random
    one: any of the file's will do."""
    named = re.search("containerID '(.*)' not found", answer_.get("error", ""))
    if named is None:
        return answer_
    assert named.group(1) in json.loads(row["case"]["content"])["entries"]
    return {**answer_, "error": answer_["error"].replace(named.group(), "containerID not found")}


def test_every_pod_with_resources_of_its_own() -> None:
    """Pods that have CPUs and memory as a whole, of which their containers have parts; each fourth in `make test`."""
    wrong = []
    number = tried = 0
    for number, row in enumerate(rows("podlevel-1.36"), 1):
        if number % how_many("EACH_PODLEVEL", 4, 1):
            continue
        tried += 1
        case = {**row["case"], "version": "1.36.3"}
        if "topology" in case:
            case["cpus"] = TOPOLOGIES[case["topology"]]
        found = answer.answer("podlevel", case)
        if found != row["expect"]:
            wrong.append((number, [key for key in row["expect"] if found.get(key) != row["expect"][key]]))
    assert wrong == []
    assert number == 1828
    assert tried >= 457


def without_checksums(answer_: Any) -> Any:
    """Return an answer without the checksums of checkpoints: the gate has a format of its own."""
    if isinstance(answer_, dict):
        return {key: without_checksums(value) for key, value in answer_.items()}
    if isinstance(answer_, list):
        return [without_checksums(value) for value in answer_]
    return re.sub(r'"checksum":\d+', "", answer_) if isinstance(answer_, str) else answer_


def test_the_gate_of_pods_as_a_whole_changes_nothing_for_ordinary_pods() -> None:
    wrong = []
    number = 0
    for number, row in enumerate(rows("policy-1.34-1.36"), 1):
        if number % how_many("EACH_PODLEVEL", 4, 1):
            continue
        case = row["case"]
        gates = {**case["feature_gates"], "PodLevelResourceManagers": True}
        question = {**case, "cpus": TOPOLOGIES[case["topology"]], "version": "1.36.3", "feature_gates": gates}
        if without_checksums(answer.answer("policy", question)) != without_checksums(row["expect"]):
            wrong.append(number)
    assert wrong == []
    assert number == 900


@pytest.mark.parametrize("version", CHECKPOINT_VERSIONS)
def test_every_checkpoint(version: str) -> None:
    wrong = []
    number = 0
    for number, row in enumerate(rows("checkpoint-" + version), 1):
        found = answer.answer("checkpoint", {**row["case"], "version": version})
        if without_container_id(found, row) != without_container_id(row["expect"], row):
            wrong.append((number, found, row["expect"]))
    assert wrong == []
    assert number == 800


@pytest.mark.parametrize("allocator", traces.ALLOCATORS)
@pytest.mark.parametrize("mode", traces.MODES)
@pytest.mark.parametrize("machine", traces.MACHINES)
def test_every_trace(machine: str, mode: str, allocator: str) -> None:
    """Allocations and releases that follow each other, as the static policy takes and as it keeps its state."""
    steps = traces.read_trace(machine, mode)
    topology = traces.topology_of(traces.MACHINES[machine])
    assert len(steps) > 2000
    traces.replay(steps, traces.ALLOCATORS[allocator](topology, traces.MODES[mode]))


def test_a_trace_with_another_answer_is_noticed() -> None:
    topology = traces.topology_of(traces.MACHINES["48cpu"])
    for steps in ([(2, "0-1")], [(2, "0,24"), (47, "error: no")]):
        allocator = traces.TakeAllocator(topology, traces.MODES["packed"])
        with pytest.raises(traces.DifferentAnswerError, match="step %d, alloc" % len(steps)):
            traces.replay([traces.Step(*step) for step in steps], allocator)


def test_the_program_answers_line_by_line() -> None:
    first = next(rows("take"))
    case = next(rows("policy-1.33"))
    policy = {**case["case"], "cpus": TOPOLOGIES[case["case"]["topology"]], "version": "1.33.13"}
    program = Path(__file__).parent / "answer.py"
    for kind, question, expected in (
        ("take", take_case(first), {key: first[key] for key in TAKE_ANSWERS if key in first}),
        ("policy", policy, case["expect"]),
    ):
        text = json.dumps(question) + "\n\n" + json.dumps(question) + "\n"
        done = subprocess.run([sys.executable, program, kind], input=text, capture_output=True, text=True, check=True)
        assert [json.loads(line) for line in done.stdout.splitlines()] == [expected, expected]
