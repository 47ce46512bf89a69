# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/state/acceptance.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import (
    CPUManagerConfig,
    Judgement,
    judge,
    readable,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format1, Format3, Format4
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus


def state(default: str, **containers: str) -> bytes:
    assignments = {"uid-" + name: {name: cpus(text)} for name, text in containers.items()}
    return write_checkpoint("static", State(cpus(default), assignments))


CONFIG = CPUManagerConfig("static", cpus("0-7"), cpus("0,4"), minor=35)
OUT_OF_THE_WAY = "stop the kubelet and take the file out of the way before it starts again"
REPAIR = (
    "stop the kubelet and repair the file, which keeps the exclusive CPUs of running pods where they can be kept;"
    " else drain the node first and take the file out of the way"
)


def test_no_checkpoint() -> None:
    assert judge(None, CONFIG) == readable(None) == Judgement("absent")
    assert Judgement("absent").to_dict() == {
        "verdict": "absent",
        "reason": "",
        "remedy": "",
        "format": None,
        "checksum_right": None,
        "policy": None,
        "default_cpu_set": None,
        "assignments": {},
        "pod_assignments": {},
    }
    assert Judgement("absent").to_text() == ""


def test_accepted_checkpoint() -> None:
    found = judge(state("0,2-4,6-7", a="1,5"), CONFIG)
    assert found.to_dict() == {
        "verdict": "accepted",
        "reason": "",
        "remedy": "",
        "format": "v2",
        "checksum_right": True,
        "policy": "static",
        "default_cpu_set": "0,2-4,6-7",
        "assignments": {"uid-a": {"a": "1,5"}},
        "pod_assignments": {},
    }
    assert found.to_text() == ("policy: static\ndefault CPU set: 0,2-4,6-7\npod uid-a, container a: 1,5\n")


@pytest.mark.parametrize(
    ("content", "reason", "remedy", "policy", "default"),
    [
        (state("0-6"), 'current set of available CPUs "0-7" doesn\'t match', OUT_OF_THE_WAY, "static", "0-6"),
        (state("0,2-4,6-7", a="1"), 'current set of available CPUs "0-7"', REPAIR, "static", "0,2-4,6-7"),
        (
            write_checkpoint("none", State(cpus(""), {})),
            'configured policy "static" differs from state checkpoint policy "none"',
            OUT_OF_THE_WAY,
            "none",
            "",
        ),
        # what a damaged file still says
        (state("0-7").replace(b'"0-7"', b'"0-6"'), "checkpoint is corrupted", OUT_OF_THE_WAY, "static", "0-6"),
        (state("0-3", a="5").replace(b"0-3", b"0-2"), "checkpoint is corrupted", REPAIR, "static", "0-2"),
        (
            b'{"policyName":"static","defaultCpuSet":"0-"}',
            'could not parse default cpu set "0-": strconv.Atoi: parsing "": invalid syntax',
            OUT_OF_THE_WAY,
            "static",
            None,
        ),
        (b"", "unexpected end of JSON input", OUT_OF_THE_WAY, None, None),
        (
            b"[]",
            "json: cannot unmarshal array into Go value of type state.CPUManagerCheckpoint",
            OUT_OF_THE_WAY,
            None,
            None,
        ),
    ],
)
def test_refused_checkpoint(content: bytes, reason: str, remedy: str, policy: str | None, default: str | None) -> None:
    judgement = judge(content, CONFIG)
    found = judgement.to_dict()
    assert found["verdict"] == "refused"
    assert found["reason"].startswith(reason)
    assert found["remedy"] == remedy
    assert found["policy"] == policy
    assert found["default_cpu_set"] == default
    unjudged = readable(content).to_dict()
    assert unjudged == {**found, "verdict": "not judged", "reason": "", "remedy": ""}
    assert judgement.unread == (not reason.startswith("current set"))


def test_the_version_decides_what_is_told() -> None:
    content = state("0-3", a="5").replace(b"0-3", b"0-2")
    newer = judge(content, CONFIG._replace(minor=36)).reason
    wanted = "json: cannot unmarshal object into Go struct field CPUManagerCheckpointV1.entries of type string"
    assert newer == wanted


@pytest.mark.parametrize("zero", [True, False])
def test_a_checksum(zero: bool) -> None:
    content = state("0-7")
    if zero:
        content = content[: content.index(b'"checksum"')] + b'"checksum":0}'
    found = judge(content, CONFIG)
    assert (found.verdict, found.checksum_right) == ("accepted", True)


def test_formats() -> None:
    whole = State(cpus("0,2-7"), {}, {"uid-a": cpus("1")})
    newer = CONFIG._replace(minor=36, pod_level=True)
    content = write_checkpoint("static", whole, Format3)
    found = judge(content, newer)
    assert (found.verdict, found.version, found.to_dict()["pod_assignments"]) == ("accepted", 3, {"uid-a": "1"})
    assert found.to_text() == "policy: static\ndefault CPU set: 0,2-7\npod uid-a: 1\n"
    assert judge(content, CONFIG).reason == "checkpoint is corrupted"
    found = judge(write_checkpoint("static", whole, Format4), CONFIG._replace(minor=37, pod_level=True))
    assert (found.verdict, found.version) == ("accepted", 4)
    ids = {"abc": ("uid-a", "a")}
    oldest = write_checkpoint("static", State(cpus("0,2-7"), {"uid-a": {"a": cpus("1")}}), Format1, ids)
    assert judge(oldest, CONFIG, ids).verdict == "accepted"
    assert judge(oldest, CONFIG).reason.endswith("containerID 'abc' not found in initial containers list")
    assert judge(oldest, CONFIG).version == 1


def test_checkpoint_that_says_little_as_text() -> None:
    assert judge(b'{"policyName":"static","defaultCpuSet":"x"}', CONFIG).to_text() == "policy: static\n"
    assert judge(b"", CONFIG).to_text() == "policy: None\n"
