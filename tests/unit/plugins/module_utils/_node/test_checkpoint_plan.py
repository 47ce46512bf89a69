# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/checkpoint_plan.py."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import version_notes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.checkpoint_plan import (
    CheckpointPlan,
    format_notes,
    given_content,
    plan_absent,
    plan_format,
    plan_present,
    plan_valid,
    with_assumed_version,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import CPUManagerConfig, readable
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import other_members
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import (
    Format1,
    Format2,
    Format3,
    Format4,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.repair import Pin
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.values import closed_form, cpus, reverted_form


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
    none = given_content({"policy": "none", "default_cpu_set": None}, CONFIG)
    assert none == write_checkpoint("none", State(CPUSet(), {}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"default_cpu_set": "0-"}, 'checkpoint.default_cpu_set: strconv.Atoi: parsing "": invalid syntax'),
        ({"assignments": {"p": {"c": "x"}}}, 'checkpoint.assignments.p.c: strconv.Atoi: parsing "x"'),
        ({"assignments": {"p": "1"}}, "checkpoint.assignments.p: is not a mapping, but '1'"),
        ({"assignments": ["p"]}, "checkpoint.assignments: is not a mapping"),
        ({"pod_assignments": ["p"]}, "checkpoint.pod_assignments: is not a mapping"),
        ({"pod_assignments": {"p": "3-1"}}, "checkpoint.pod_assignments.p: invalid range"),
        (
            {"zone": "", "default": "0-7", "x": ""},
            "checkpoint: default is none of assignments, default_cpu_set, pod_assignments, policy",
        ),
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
        (written("0-1,4-7", Format1, a="2-3"), 35, "containerID 'id-a' not found.* run in container_ids$"),
        (GOOD, 17, "names containers by their ids"),
        (write_checkpoint("static", State(cpus("0-5"), {}, {"p": cpus("6-7")}), Format4), 35, "of whole pods"),
    ],
)
def test_what_cannot_be_converted(old: bytes, minor: int, message: str) -> None:
    with pytest.raises((InputError, RefusedError), match=message):
        plan_format(old, CONFIG._replace(minor=minor))


# --- from one version to another, and back: 1.37 from the threads and KEPs, not replayed against a 1.37 kubelet -----

WITHOUT_PODS = State(cpus("0-1,4-7"), {"uid-a": {"a": cpus("2-3")}})
# The CPUs of the whole pod are in no container's hands.
PODS = State(cpus("0-1,6-7"), {"uid-a": {"a": cpus("2-3")}}, {"uid-b": cpus("4-5")})
# They are all in its containers' hands, so that a kubelet that does not read the pod's has a state without a gap.
SHARED = State(cpus("0-1,6-7"), {"uid-a": {"a": cpus("2-3")}, "uid-b": {"b": cpus("4-5")}}, {"uid-b": cpus("4-5")})
UP = CONFIG._replace(minor=37)
UP_PODS = UP._replace(pod_level=True)
DOWN_PODS = CONFIG._replace(minor=36, pod_level=True)
WAY_BACK = "of that, kubelets before 1.37 read the CPUs of containers, but not those of whole pods"
ONLY_V2 = "the kubelet 1.%d reads of this file, of format v4, only the format v2 beside its member data"


def newer(state: State, **members: Any) -> bytes:
    """Return a checkpoint of format 4 that has more in its text, as a kubelet after 1.37 may write it."""
    found = Format4()
    found.fill("static", state)
    found.others = list(members.items())
    return found.write()


def test_an_upgrade_to_1_37_is_told_with_its_way_back() -> None:
    plan = plan_valid(GOOD, UP)
    note = "the kubelet 1.37 reads this file, of format v2, and writes format v4 in its place; "
    assert (plan.changed, plan.after.verdict, plan.notes) == (False, "accepted", [note + WAY_BACK])
    assert plan.to_dict()["notes"] == [note + WAY_BACK]
    # Once it is there, there is no more to say, and nothing where no version changes anything.
    assert plan_valid(newer(WITHOUT_PODS), UP).notes == []
    assert plan_valid(GOOD, CONFIG).notes == plan_valid(GOOD, DOWN_PODS).notes == []
    assert plan_valid(None, UP).notes == ()
    assert plan_format(GOOD, UP).notes == ["the new file is of format v4; " + WAY_BACK]


def test_an_upgrade_from_v3_keeps_the_cpus_of_whole_pods_with_the_gate_alone() -> None:
    old = write_checkpoint("static", PODS, Format3)
    plan = plan_valid(old, UP_PODS)
    assert (plan.changed, plan.after.verdict, plan.losses) == (False, "accepted", ())
    assert [loss.why for loss in plan_valid(old, UP).losses] == ["this kubelet gives no CPUs to whole pods"]
    # Where nothing speaks against the file, it is told in a note.
    [_way_back, note] = format_notes(write_checkpoint("static", SHARED, Format3), UP)
    assert note == (
        "the kubelet 1.37 does not take over the CPUs of whole pods: pod uid-b: CPUs 4-5; drain the node before"
    )


@pytest.mark.parametrize("config", [CONFIG, CONFIG._replace(minor=36)])
def test_a_downgrade_from_1_37_loses_the_cpus_of_whole_pods_and_says_so_before(config: CPUManagerConfig) -> None:
    plan = plan_valid(newer(PODS), config)
    # They are missing in what the older kubelet reads, so that it would not start.
    assert plan.before.verdict == "refused"
    assert "doesn't match with CPUs in state" in plan.before.reason
    assert plan.to_dict()["lost"] == [
        {"pod": "uid-b", "container": "", "cpus": "4-5", "why": "this kubelet gives no CPUs to whole pods"}
    ]
    assert plan.new == GOOD
    with pytest.raises(InputError, match=r"cannot hold the CPUs of whole pods \(uid-b\); drain the node"):
        plan_format(newer(PODS), config)
    # Where it would start, it loses them without a word: a note has it.
    plan = plan_valid(newer(SHARED), config)
    assert (plan.changed, plan.before.verdict) == (False, "accepted")
    assert plan.notes == [
        ONLY_V2 % config.minor,
        "the kubelet 1.%d does not take over the CPUs of whole pods: pod uid-b: CPUs 4-5; drain the node before"
        % config.minor,
    ]


def test_a_downgrade_from_1_37_to_1_36_with_the_gate_can_keep_the_cpus_of_whole_pods() -> None:
    plan = plan_valid(newer(PODS), DOWN_PODS)
    assert (plan.before.verdict, plan.after.verdict) == ("refused", "accepted")
    assert plan.new == write_checkpoint("static", PODS, Format3)
    assert plan.losses == []
    plan = plan_valid(newer(SHARED), DOWN_PODS)
    assert not plan.changed
    assert plan.notes[1].endswith("uid-b: CPUs 4-5; state: format writes the file as that kubelet does, with them")
    assert plan_format(newer(SHARED), DOWN_PODS).new == write_checkpoint("static", SHARED, Format3)


def test_a_downgrade_without_whole_pods_loses_nothing() -> None:
    for minor in (33, 35, 36):
        plan = plan_valid(newer(WITHOUT_PODS), CONFIG._replace(minor=minor))
        assert (plan.changed, plan.before.verdict, plan.notes) == (False, "accepted", [ONLY_V2 % minor])
        assert plan_format(newer(WITHOUT_PODS), CONFIG._replace(minor=minor)).new == GOOD


def test_what_a_newer_kubelet_has_in_its_text_survives_a_repair_and_is_named_when_it_is_lost() -> None:
    old = newer(WITHOUT_PODS, originals="kept")
    assert not plan_valid(old, UP).changed
    repaired = plan_valid(old, UP._replace(all_cpus=cpus("0-6")))
    assert repaired.after.verdict == "accepted"
    assert repaired.new == newer(State(cpus("0-1,4-6"), WITHOUT_PODS.assignments), originals="kept")
    assert other_members(repaired.new) == [("originals", "kept")]
    assert repaired.notes == []
    named = " does not have these members of data, which are of a newer kubelet: originals"
    assert plan_valid(old, CONFIG).notes == [ONLY_V2 % 35, "the kubelet 1.35" + named]
    assert plan_valid(old, CONFIG._replace(all_cpus=cpus("0-6"))).notes == ["the new file" + named]
    assert plan_format(old, CONFIG).notes == ["the new file" + named]


def test_the_form_that_was_closed_is_accepted_unverified_and_written_anew() -> None:
    old = closed_form(WITHOUT_PODS)
    for config in (CONFIG, CONFIG._replace(minor=36), UP):
        plan = plan_valid(old, config)
        assert (plan.changed, plan.before.verdict) == (False, "accepted")
        assert plan.notes[-1] == (
            "what this file, of format v4, says beside its member data is another state or has not the right checksum:"
            " kubelets before 1.37 refuse it or do not verify it; state: format writes it anew"
        )
    assert plan_format(old, UP).new == newer(WITHOUT_PODS)
    assert plan_format(old, CONFIG).new == GOOD
    # A kubelet 1.36 with the gate keeps what it finds there of whole pods.
    assert not any("whole pods" in note for note in plan_valid(closed_form(SHARED), DOWN_PODS).notes[1:])


def test_the_form_that_was_reverted_is_refused_and_repaired() -> None:
    old = reverted_form(PODS)
    for config in (CONFIG, DOWN_PODS, UP_PODS):
        plan = plan_valid(old, config)
        assert (plan.before.verdict, plan.before.unread) == ("refused", True)
        assert plan.before.reason.endswith("checkpoint is corrupted")
        assert plan.after.verdict == "accepted"
    assert plan_valid(old, UP_PODS).new == newer(PODS)
    assert plan_valid(old, DOWN_PODS).new == write_checkpoint("static", PODS, Format3)
    with pytest.raises(RefusedError, match="is damaged"):
        plan_format(old, UP)


def test_a_damaged_text_is_told_where_the_older_kubelet_starts() -> None:
    old = newer(WITHOUT_PODS).replace(b'"dataChecksum":', b'"dataChecksum":1')
    plan = plan_valid(old, CONFIG)
    assert (plan.changed, plan.before.verdict) == (False, "accepted")
    assert plan.notes[1] == (
        "the member data of this file is damaged: whether whole pods have CPUs is not known for sure"
    )
    assert plan_valid(old, UP).new == newer(WITHOUT_PODS)


@pytest.mark.parametrize(
    ("old", "minor", "why"),
    [
        (None, 36, "1.36 is assumed, the newest whose answers were replayed"),
        (GOOD, 36, "1.36 is assumed, the newest whose answers were replayed"),
        (b"{", 36, "1.36 is assumed, the newest whose answers were replayed"),
        (newer(PODS), 37, "1.37 is assumed, the oldest that writes format v4"),
        (reverted_form(PODS), 37, "1.37 is assumed, the oldest that writes format v4"),
    ],
)
def test_a_version_that_is_assumed(old: bytes | None, minor: int, why: str) -> None:
    config, notes = with_assumed_version(old, CONFIG._replace(minor=36))
    assert config == CONFIG._replace(minor=minor)
    assert notes[0] == "the version of the kubelet is not known: %s; give kubelet_version" % why
    assert notes[1:] == version_notes(minor)


def test_a_plan_without_a_change_of_version_has_no_notes() -> None:
    plans: list[CheckpointPlan] = [plan_absent(GOOD), plan_present(None, GOOD, CONFIG), plan_format(GOOD, CONFIG)]
    assert [list(plan.notes) for plan in plans] == [[], [], []]
    assert plan_present(None, newer(SHARED), CONFIG).notes == plan_valid(newer(SHARED), CONFIG).notes
