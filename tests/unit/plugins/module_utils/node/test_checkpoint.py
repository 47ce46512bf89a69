# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.checkpoint import (
    given_content,
    plan_absent,
    plan_format,
    plan_present,
    plan_valid,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import (
    Format1,
    Format2,
    Format3,
    Format4,
    write_checkpoint,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.repair import Pin
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.validation import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.verdict import readable


def cpus(text: str) -> CPUSet:
    return CPUSet.parse(text)


def written(default: str, kind: Any = Format2, policy: str = "static", **pods: str) -> bytes:
    assignments = {"uid-" + name: {name: cpus(text)} for name, text in pods.items()}
    ids = {"id-" + name: ("uid-" + name, name) for name in pods}
    return write_checkpoint(policy, State(cpus(default), assignments), kind, ids)


CONFIG = CPUManagerConfig("static", cpus("0-7"), cpus("0"), minor=35)
GOOD = written("0-1,4-7", a="2-3")


# --- valid -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [None, GOOD, written("0-7"), b'{"policyName":"static","defaultCpuSet":"0-7"}'])
def test_what_is_accepted_is_left(old: bytes | None) -> None:
    plan = plan_valid(old, CONFIG)
    assert not plan.changed
    assert (plan.losses, plan.stale) == ((), ())


@pytest.mark.parametrize(
    ("old", "config", "new"),
    [
        (GOOD.replace(b'"checksum":', b'"checksum":1'), CONFIG, GOOD),
        (GOOD, CONFIG._replace(all_cpus=cpus("0-15")), written("0-1,4-15", a="2-3")),
        (GOOD, CONFIG._replace(strict_reservation=True), written("1,4-7", a="2-3")),
        (written("0-7", a="2-3"), CONFIG, GOOD),  # an overlap with the shared pool
        (GOOD, CONFIG._replace(minor=37, all_cpus=cpus("0-6")), written("0-1,4-6", Format4, a="2-3")),
        # Nothing to keep: the kubelet writes a new one.
        (b"", CONFIG, None),
        (written("0-5"), CONFIG, None),
        (written("", policy="none"), CONFIG, None),
        (written("0-7"), CPUManagerConfig("none", cpus("0-7")), None),
    ],
)
def test_a_repair_without_a_loss(old: bytes, config: CPUManagerConfig, new: bytes | None) -> None:
    plan = plan_valid(old, config)
    assert plan.new == new
    assert plan.losses == []
    assert plan.before.verdict == "refused"
    assert plan.after.verdict == ("absent" if new is None else "accepted")
    assert not plan_valid(plan.new, config).changed


def test_a_repair_with_a_loss() -> None:
    plan = plan_valid(written("0-1,4,6-7", a="2-3", b="5"), CONFIG._replace(all_cpus=cpus("0-2,4-7")))
    assert plan.new == written("0-2,4,6-7", b="5")
    assert plan.to_dict()["lost"] == [{"pod": "uid-a", "container": "a", "cpus": "2-3", "why": "CPUs 3 are not online"}]
    assert plan.to_dict()["checkpoint"]["verdict"] == "refused"
    assert plan.to_dict()["after"]["verdict"] == "accepted"


def test_pods_that_are_gone() -> None:
    old = written("0-1,5-7", a="2-3", b="4")
    plan = plan_valid(old, CONFIG, ["uid-b"])
    assert plan.new == written("0-3,5-7", b="4")
    assert plan.to_dict()["stale"] == [{"pod": "uid-a", "container": "a", "cpus": "2-3"}]
    assert not plan_valid(plan.new, CONFIG, ["uid-b"]).changed
    # An accepted file stays a file.
    assert plan_valid(old, CONFIG, []).new == written("0-7")


def test_an_overlap_that_the_kubelet_accepts_is_repaired_only_when_a_loss_is_allowed() -> None:
    old = written("0-1,4-7", a="2-3", b="3")
    assert not plan_valid(old, CONFIG).changed
    plan = plan_valid(old, CONFIG, discard=True)
    assert plan.new == GOOD
    assert plan.losses[0].pin == Pin("uid-b", "b", "3")


def test_the_oldest_format_is_repaired_with_the_containers_ids() -> None:
    old = written("0-1,4-7", Format1, a="2-3")
    assert plan_valid(old, CONFIG).new is None
    assert plan_valid(old, CONFIG).losses
    ids = {"id-a": ("uid-a", "a")}
    assert not plan_valid(old, CONFIG, container_ids=ids).changed
    assert plan_valid(old, CONFIG._replace(all_cpus=cpus("0-8")), container_ids=ids).new == written("0-1,4-8", a="2-3")


# --- absent, present, format -------------------------------------------------------------------------


def test_absent() -> None:
    plan = plan_absent(GOOD)
    assert plan.changed
    assert [loss.to_text() for loss in plan.losses] == ["pod uid-a, container a: CPUs 2-3: the checkpoint is removed"]
    assert not plan_absent(None).changed


def test_present() -> None:
    assert not plan_present(GOOD, GOOD, CONFIG).changed
    plan = plan_present(GOOD, written("0-1,5-7", a="2-4"), CONFIG)
    assert plan.changed
    assert [loss.why for loss in plan.losses] == ["what is to be written does not give them"]
    with pytest.raises(RefusedError, match="would refuse what is to be written: current set of available CPUs"):
        plan_present(None, written("0-3"), CONFIG)


def test_what_is_read_can_be_written() -> None:
    """The form of an answer is the form of a wish."""
    for content in (GOOD, written("0-7"), written("0-1,5-7", a="2-3", b="4")):
        assert given_content(readable(content).to_dict(), CONFIG) == content
    whole = State(cpus("0-3,7"), {"uid-a": {"a": cpus("4")}}, {"uid-a": cpus("4-6")})
    for kind, minor in ((Format3, 36), (Format4, 37)):
        content = write_checkpoint("static", whole, kind)
        config = CONFIG._replace(minor=minor, pod_level=True)
        assert given_content(readable(content).to_dict(), config) == content
    assert given_content({"default_cpu_set": "0-7"}, CONFIG) == written("0-7")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"default_cpu_set": "0-"}, 'checkpoint.default_cpu_set: strconv.Atoi: parsing "": invalid syntax'),
        ({"assignments": {"p": {"c": "x"}}}, 'checkpoint.assignments.p.c: strconv.Atoi: parsing "x"'),
        ({"assignments": {"p": "1"}}, "checkpoint.assignments.p: is not a mapping, but '1'"),
        ({"assignments": ["p"]}, "checkpoint.assignments: is not a mapping"),
        ({"pod_assignments": {"p": "3-1"}}, "checkpoint.pod_assignments.p: invalid range"),
        ({"default": "0-7"}, "checkpoint: default is none of assignments, default_cpu_set, pod_assignments, policy"),
    ],
)
def test_what_cannot_be_written(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        given_content(given, CONFIG)
    assert str(caught.value).startswith(message)


def test_another_format() -> None:
    newer = plan_format(GOOD, CONFIG._replace(minor=37))
    assert newer.new == written("0-1,4-7", Format4, a="2-3")
    assert not plan_format(newer.new, CONFIG._replace(minor=37)).changed
    assert plan_format(newer.new, CONFIG).new == GOOD
    assert plan_format(GOOD, CONFIG._replace(minor=36, pod_level=True)).new == written("0-1,4-7", Format3, a="2-3")
    assert not plan_format(None, CONFIG).changed
    ids = {"id-a": ("uid-a", "a")}
    oldest = plan_format(GOOD, CONFIG._replace(minor=17), ids).new
    assert oldest == written("0-1,4-7", Format1, a="2-3")
    assert plan_format(oldest, CONFIG, ids).new == GOOD


@pytest.mark.parametrize(
    ("old", "minor", "message"),
    [
        (b"{", 35, "is damaged"),
        (GOOD.replace(b'"checksum":', b'"checksum":1'), 37, "is damaged"),
        (written("0-1,4-7", Format1, a="2-3"), 35, "containerID 'id-a' not found"),
        (GOOD, 17, "names containers by their ids"),
        (write_checkpoint("static", State(cpus("0-5"), {}, {"p": cpus("6-7")}), Format4), 35, "of whole pods"),
    ],
)
def test_what_cannot_be_converted(old: bytes, minor: int, message: str) -> None:
    with pytest.raises((InputError, RefusedError), match=message):
        plan_format(old, CONFIG._replace(minor=minor))
