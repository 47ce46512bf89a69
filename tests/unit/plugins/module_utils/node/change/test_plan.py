# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/node/change/plan.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.placement import plan_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.journal import (
    CHANGING,
    DRAINING,
    STOPPING,
    Journal,
    SavedFile,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.memory import with_memory_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.places import LAST
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.plan import (
    Terms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.change.saving import (
    remove_journal,
    save_files,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.memory_state import MemoryPlan
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.sources import read_sources
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_formats import MemoryConfig
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import first_memory_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.versions import minor_version
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import NODE_MEMORY, write_machine

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
CONFIG, CHECKPOINT = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/cpu_manager_state"
MEMORY = "/var/lib/kubelet/memory_manager_state"
WHOLE = ["stop_kubelet", "reset_checkpoint", "write_configuration", "start_kubelet"]
NO_RESET = ["stop_kubelet", "write_configuration", "start_kubelet"]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A node with the static policy and one pod with exclusive CPUs."""
    write_machine(tmp_path, "1s4c2t")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    configure(tmp_path, STATIC)
    state = State(CPUSet.parse("0,2-4,6-7"), {"pod": {"app": CPUSet.parse("1,5")}})
    (tmp_path / CHECKPOINT[1:]).write_bytes(write_checkpoint("static", state))
    return Tree(str(tmp_path))


def configure(root: Path, text: str) -> None:
    (root / CONFIG[1:]).write_text(HEADER + text, encoding="utf-8")


def plan(tree: Tree, **wanted: Any) -> dict[str, Any]:
    return rollout_report(Node(tree), wanted, Terms())


def run_kubelet(tree: Tree) -> None:
    process = Path(tree.root) / "proc/7"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0")


@pytest.mark.parametrize(
    ("wanted", "actions", "drain"),
    [
        ({}, [], False),
        ({"cpu_manager_policy": "static"}, [], False),
        ({"cpu_manager_reconcile_period": "5s"}, NO_RESET, False),
        ({"cpu_cfs_quota": False}, NO_RESET, False),
        ({"cpu_cfs_quota_period": "100ms"}, [], False),
        ({"cpu_manager_policy": "none"}, WHOLE, True),
        ({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, NO_RESET, True),
        ({"cpu_manager_policy_options": {"strict-cpu-reservation": "true"}}, WHOLE, True),
        ({"topology_manager_policy": "best-effort"}, NO_RESET, True),
        ({"topology_manager_scope": "pod"}, NO_RESET, True),
        ({"reserved_system_cpus": "0,2,4,6"}, NO_RESET, True),
        ({"reserved_system_cpus": "0,1,4,5"}, WHOLE, True),  # one of them is the pod's
    ],
)
def test_what_each_change_takes(tree: Tree, wanted: dict[str, Any], actions: list[str], drain: bool) -> None:
    answer = plan(tree, **wanted)
    assert (answer["actions"], answer["drain"], answer["starts"]) == (actions, drain, True)
    assert rollout_report(Node(tree), wanted, Terms("rollout", drain=False, discard=True))["drains"] is False
    assert (answer["drains"], answer["refusals"], answer["elsewhere"]) == (drain, [], None)
    assert answer["files"] == ([CONFIG, CHECKPOINT, MEMORY] if actions else [])
    assert [finding for finding in answer["findings"] if finding["fatal"]] == []


def test_cpus_that_are_gone(tree: Tree) -> None:
    """The checkpoint is repaired: the kubelet would not start with it as it is."""
    for name in ("3", "7"):
        (Path(tree.root) / ("sys/devices/system/cpu/cpu%s/online" % name)).write_text("0\n", encoding="ascii")
    (Path(tree.root) / "sys/devices/system/cpu/online").write_text("0-2,4-6\n", encoding="ascii")
    answer = plan(tree)
    assert answer["actions"] == ["stop_kubelet", "reset_checkpoint", "start_kubelet"]
    # No kubelet ends the pods, and none can be started to do it.
    assert (answer["drain"], answer["starts"], answer["refusals"]) == (False, True, [])
    run_kubelet(tree)
    assert plan(tree)["drain"]


def test_pods_that_cannot_be_drained_lose_cpus_only_when_allowed(tree: Tree) -> None:
    """No kubelet ends them, and none can be started with the checkpoint as it is."""
    configure(Path(tree.root), "cpuManagerPolicy: static\nreservedSystemCPUs: 0,1\n")
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(
        write_checkpoint("static", State(CPUSet.parse("0,2-4,6-7"), {"pod": {"app": CPUSet.parse("1,5")}}))
    )
    answer = plan(tree)
    assert (answer["drain"], [refusal["kind"] for refusal in answer["refusals"]]) == (False, ["assignments"])
    assert rollout_report(Node(tree), {}, Terms(discard=True))["refusals"] == []
    run_kubelet(tree)
    answer = plan(tree)
    assert (answer["drain"], answer["refusals"]) == (True, [])


MOST_NODES = "topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: '4'\n"


def test_a_change_with_which_the_kubelet_would_not_start(tree: Tree) -> None:
    """It is what is wanted, not what is found."""
    configure(Path(tree.root), STATIC + MOST_NODES)
    assert plan(tree)["refusals"] == []
    with pytest.raises(RefusedError) as caught:
        plan(tree, topology_manager_policy="best-effort")
    assert str(caught.value) == (
        "topology_manager_policy_options.max-allowable-numa-nodes: the kubelet would not start: the minimum value of"
        ' "max-allowable-numa-nodes" should not be less than 8 (the option cannot be used);'
        ' write a number of 8 or more, as in "16"'
    )


def test_a_change_of_a_kubelet_that_would_not_start_before_either(tree: Tree) -> None:
    """All that it would refuse then is told, where nothing can be done."""
    configure(Path(tree.root), STATIC + MOST_NODES + "maxPods: -1\n")
    answer = plan(tree, topology_manager_policy="best-effort")
    assert (answer["starts"], answer["status"], answer["unknown"]) == (False, "drift", [])
    assert [row["subject"] for row in answer["drift"]] == ["topology_manager_policy", "start"]
    pods = (
        "failed to validate kubelet configuration, error: invalid configuration: maxPods (--max-pods) -1 must not be a"
        " negative number (the number is out of range)"
    )
    assert answer["found_refusal"] == "maxPods: " + pods
    assert answer["drift"][1]["found"] == "refused: maxPods: the kubelet would not start: " + pods
    fatal = [finding for finding in answer["findings"] if finding["fatal"]]
    assert [finding["where"] for finding in fatal] == [
        "maxPods",
        "topologyManagerPolicyOptions.max-allowable-numa-nodes",
    ]
    assert answer["refusals"] == [
        {
            "kind": "would_not_start",
            "where": finding["where"],
            "text": "the kubelet would not start: %(context)s%(text)s (%(cause)s)" % finding,
            "remedy": "%(remedy)s, or go back to what was before the last change with the playbook rollback" % finding,
        }
        for finding in fatal
    ]


def test_a_finding_with_which_the_kubelet_starts_refuses_nothing(tree: Tree) -> None:
    configure(Path(tree.root), STATIC + "reservedCPUs: 0\n")
    answer = plan(tree)
    assert [finding["fatal"] for finding in answer["findings"]] == [False]
    assert (answer["starts"], answer["refusals"], answer["actions"]) == (True, [], [])
    assert [note for note in answer["notes"] if "would not start" in note] == []


def test_where_the_settings_of_others_have_to_be(tree: Tree) -> None:
    (Path(tree.root) / "etc").mkdir()
    (Path(tree.root) / "etc/os-release").write_text("ID=bottlerocket\n", encoding="ascii")
    (Path(tree.root) / "etc/kubernetes/kubelet").mkdir(parents=True)
    (Path(tree.root) / CONFIG[1:]).rename(Path(tree.root) / "etc/kubernetes/kubelet/config")
    elsewhere = plan(tree, cpu_manager_policy="static")["elsewhere"]
    assert elsewhere["name"] == "Bottlerocket"
    assert 'cpu-manager-policy = "static"' in elsewhere["snippet"]


def test_a_change_that_was_interrupted(tree: Tree) -> None:
    assert plan(tree)["journal"] is None
    write_journal(tree, Journal(CHANGING, {}, {"cordoned": True}))
    assert plan(tree)["journal"] == {
        "phase": "changing",
        "files": [],
        "facts": {"cordoned": True},
        "run": "",
        "exclusive_now": "1,5",
    }


@pytest.mark.parametrize("damage", ["", "cpuManagerPolicy: [", HEADER + "reservedSystemCPUs: 0,99\n", None])
def test_a_plan_is_made_for_the_node_as_it_will_be_when_the_change_is_taken_back(
    tree: Tree, damage: str | None
) -> None:
    saved = save_files(tree, [CONFIG, CHECKPOINT])
    write_journal(tree, Journal(CHANGING, saved, {}))
    damaged = Path(tree.root) / CONFIG[1:]
    if damage is None:
        damaged.unlink()
    else:
        damaged.write_text(damage, encoding="utf-8")
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(b"{")
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["status"], answer["actions"], answer["refusals"]) == ("clean", [], [])
    assert answer["cpus"]["exclusive"] == "1,5"


@pytest.mark.parametrize("phase", [DRAINING, STOPPING])
def test_files_that_were_not_changed_yet_count_as_they_are(tree: Tree, phase: str) -> None:
    write_journal(tree, Journal(phase, {CONFIG: SavedFile((HEADER + "maxPods: [\n").encode("ascii"), 0o644)}, {}))
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["status"], answer["actions"], answer["refusals"]) == ("clean", [], [])


def test_files_that_cannot_be_written_are_refusals_where_any_is_written(tree: Tree) -> None:
    """As those of an interrupted change are, and the journal in which a change is noted."""
    directory = Path(tree.root) / "var/lib/kubenode-cpu-manager"
    directory.touch()
    assert plan(tree)["refusals"] == []
    (refusal,) = plan(tree, cpu_manager_reconcile_period="5s")["refusals"]
    assert refusal["where"] == str(directory / "change.json")
    directory.unlink()
    (Path(tree.root) / "etc").touch()
    saved = {CONFIG: save_files(tree, [CONFIG])[CONFIG], "/etc/kubelet.yaml": SavedFile(None)}
    write_journal(tree, Journal(CHANGING, saved, {}), LAST)
    assert rollout_report(Node(tree), {}, BACK)["refusals"] == []
    write_journal(tree, Journal(STOPPING, {}, {}))
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert refusal["where"] == tree.path("/etc/kubelet.yaml")


def test_a_damaged_journal_is_a_refusal(tree: Tree) -> None:
    journal = Path(tree.root) / "var/lib/kubenode-cpu-manager/change.json"
    journal.parent.mkdir(parents=True)
    journal.write_text("{", encoding="ascii")
    (refusal,) = plan(tree)["refusals"]
    assert "cannot be read as the journal of a change" in refusal["text"]


def test_a_damaged_journal_of_the_last_change_is_a_refusal_of_a_rollback(tree: Tree) -> None:
    had(tree, STATIC)
    (Path(tree.root) / LAST[1:]).write_text("{", encoding="ascii")
    answer = plan(tree, cpu_manager_reconcile_period="5s")
    assert (answer["refusals"], answer["last"]) == ([], None)
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert refusal["where"].endswith("last-change.json")


# --- what cannot be changed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "the file is empty"),
        ("cpuManagerPolicy: [", "line 2"),
        (HEADER[:30], "expected 'apiVersion"),
        (HEADER + "cpuManagerPolicy: dynamic\n", "cpuManagerPolicy"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_a_refusal(tree: Tree, text: str, part: str) -> None:
    (Path(tree.root) / CONFIG[1:]).write_text(text, encoding="utf-8")
    answer = plan(tree, cpu_manager_reconcile_period="5s")
    (refusal,) = answer["refusals"]
    assert part in refusal["text"]
    assert refusal["remedy"]
    assert (answer["starts"], answer["actions"], answer["status"]) == (False, [], "drift")
    # Nothing is done, so no pod has to leave.
    run_kubelet(tree)
    assert plan(tree, cpu_manager_reconcile_period="5s")["drain"] is False


def test_a_found_reservation_with_which_no_kubelet_starts_is_a_refusal_unless_it_is_replaced(tree: Tree) -> None:
    configure(Path(tree.root), "cpuManagerPolicy: static\nreservedSystemCPUs: 0,99\n")
    for wanted in ({}, {"cpu_manager_policy": "static"}, {"cpu_manager_reconcile_period": "5s"}):
        kinds = [refusal["kind"] for refusal in plan(tree, **wanted)["refusals"]]
        assert set(kinds) == {"would_not_start"}
        assert "rollback" in plan(tree, **wanted)["refusals"][0]["remedy"]
        # In the report of the node once, and not again with the findings.
        assert [note for note in plan(tree, **wanted)["notes"] if "would not start again" in note] == []
    cured = plan(tree, reserved_system_cpus="0,4")
    assert (cured["refusals"], cured["actions"]) == ([], NO_RESET)


def test_exclusive_cpus_are_lost_only_with_a_drain_or_when_allowed(tree: Tree) -> None:
    wanted = {"cpu_manager_policy": "none"}
    for terms, kinds in (
        (Terms(), []),
        (Terms(discard=True, drain=False), []),
        (Terms(drain=False), ["assignments"]),
    ):
        answer = rollout_report(Node(tree), wanted, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds
    (refusal,) = answer["refusals"]
    assert "container app: CPUs 1,5" in refusal["text"]
    assert refusal["where"].endswith(CHECKPOINT)
    assert "discard_assignments" in refusal["remedy"]


def test_a_checkpoint_under_a_running_kubelet_is_a_refusal(tree: Tree) -> None:
    terms = Terms(manage_service=False)
    none, period = {"cpu_manager_policy": "none"}, {"cpu_manager_reconcile_period": "5s"}
    assert rollout_report(Node(tree), none, terms)["refusals"] == []
    run_kubelet(tree)
    for wanted, kinds in ((none, ["kubelet_runs"]), (period, []), ({}, [])):
        answer = rollout_report(Node(tree), wanted, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds
        assert ["manage_service" in refusal["remedy"] for refusal in answer["refusals"]] == [True] * len(kinds)
        assert plan(tree, **wanted)["refusals"] == []


# --- back to what was before --------------------------------------------------------------------------------

BACK = Terms("rollback")


def had(tree: Tree, text: str | None, rollout: str = "one") -> None:
    """The last change began with this configuration."""
    saved = SavedFile(None if text is None else (HEADER + text).encode("utf-8"), 0o644)
    write_journal(tree, Journal(CHANGING, {CONFIG: saved, CHECKPOINT: SavedFile(None)}, {"rollout": rollout}), LAST)


@pytest.mark.parametrize(
    ("before", "actions", "drain"),
    [
        (STATIC, [], False),
        (STATIC + "cpuManagerReconcilePeriod: 5s\n", ["stop_kubelet", "restore_configuration", "start_kubelet"], False),
        ("", ["stop_kubelet", "restore_configuration", "reset_checkpoint", "start_kubelet"], True),
        (STATIC + "topologyManagerScope: pod\n", ["stop_kubelet", "restore_configuration", "start_kubelet"], True),
        (STATIC + "maxPods: 20\n", ["stop_kubelet", "restore_configuration", "start_kubelet"], False),
    ],
)
def test_what_a_rollback_takes(tree: Tree, before: str, actions: list[str], drain: bool) -> None:
    had(tree, before)
    answer = rollout_report(Node(tree), {}, BACK)
    assert (answer["actions"], answer["drain"], answer["refusals"]) == (actions, drain, [])
    assert (answer["status"] == "drift") == bool(actions)
    assert bool(answer["drift"]) == bool(actions)
    assert answer["files"] == [CONFIG, CHECKPOINT, MEMORY]
    assert (answer["starts"], answer["findings"], answer["elsewhere"]) == (True, [], None)
    assert answer["kubelet"]["config_path"] == CONFIG


def test_a_rollback_tells_what_it_changes(tree: Tree) -> None:
    """Settings, and the states that go with them; other parts of a file by its name alone."""
    had(tree, STATIC + "maxPods: 20\n")
    row = {"subject": CONFIG, "wanted": "as before", "found": "changed", "source": CONFIG}
    assert rollout_report(Node(tree), {}, BACK)["drift"] == [row]
    had(tree, "")
    (Path(tree.root) / MEMORY[1:]).write_text(memory_state("Static"), encoding="ascii")
    answer = rollout_report(Node(tree), {}, BACK)
    assert [row["subject"] for row in answer["drift"]] == [
        "cpu_manager_policy",
        "reserved_system_cpus",
        "checkpoint",
        "memory_state",
    ]
    assert answer["drift"][0]["source"] == tree.path(CONFIG)
    assert answer["actions"][2:4] == ["reset_checkpoint", "reset_memory_state"]
    assert (answer["checkpoint"]["verdict"], answer["cpus"]["reserved"]) == ("refused", "0,4")
    assert answer["cpus"]["reserved_wanted"] == ""
    had(tree, "cpuManagerPolicy: static\nreservedSystemCPUs: 0-1\n")
    assert rollout_report(Node(tree), {}, BACK)["cpus"]["reserved_wanted"] == "0-1"


def test_a_rollback_loses_exclusive_cpus_only_with_a_drain_or_when_allowed(tree: Tree) -> None:
    had(tree, "")
    for terms, kinds in (
        (BACK, []),
        (BACK._replace(discard=True, drain=False), []),
        (BACK._replace(drain=False), ["assignments"]),
    ):
        answer = rollout_report(Node(tree), {}, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds


def test_a_rollback_from_what_cannot_be_read_takes_a_drain(tree: Tree) -> None:
    """It may have been anything."""
    had(tree, STATIC)
    run_kubelet(tree)
    (Path(tree.root) / CONFIG[1:]).write_text("cpuManagerPolicy: [", encoding="utf-8")
    answer = rollout_report(Node(tree), {}, BACK)
    assert (answer["drain"], answer["drains"], answer["refusals"]) == (True, True, [])
    assert rollout_report(Node(tree), {}, BACK._replace(drain=False))["drains"] is False


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "cpuManagerPolicy: [",
        HEADER + "cpuManagerPolicy: dynamic\n",
        HEADER + "reservedSystemCPUs: 0,99\n",
        None,
    ],
)
def test_a_rollback_cures_a_configuration_with_which_no_kubelet_starts(tree: Tree, damage: str | None) -> None:
    had(tree, STATIC)
    damaged = Path(tree.root) / CONFIG[1:]
    if damage is None:
        damaged.unlink()
    else:
        damaged.write_text(damage, encoding="utf-8")
    answer = rollout_report(Node(tree), {}, BACK)
    assert (answer["refusals"], answer["starts"], answer["drain"]) == ([], True, False)
    assert answer["actions"][:2] == ["stop_kubelet", "restore_configuration"]
    assert "reset_checkpoint" not in answer["actions"]
    assert answer["kubelet"]["config_path"] == CONFIG


def test_a_rollback_of_another_rollout_or_of_none_leaves_the_node_alone(tree: Tree) -> None:
    assert rollout_report(Node(tree), {}, BACK)["actions"] == []
    had(tree, "", "one")
    assert rollout_report(Node(tree), {}, BACK._replace(rollback_of="two"))["actions"] == []
    answer = rollout_report(Node(tree), {}, BACK._replace(rollback_of="one"))
    assert answer["actions"]
    assert answer["last"]["facts"] == {"rollout": "one"}


def test_a_rollback_to_what_does_not_start_is_a_refusal(tree: Tree) -> None:
    had(tree, "cpuManagerPolicy: static\nreservedSystemCPUs: 0,99\n")
    answer = rollout_report(Node(tree), {}, BACK)
    assert {refusal["kind"] for refusal in answer["refusals"]} == {"would_not_start"}
    assert not answer["starts"]
    assert any(finding["fatal"] for finding in answer["findings"])
    for text, part in (("cpuManagerPolicy: [\n", "line 4"), ("cpuManagerPolicy: dynamic\n", "cpuManagerPolicy")):
        had(tree, text)
        answer = rollout_report(Node(tree), {}, BACK)
        (refusal,) = answer["refusals"]
        assert (refusal["kind"], refusal["where"].endswith("last-change.json")) == ("configuration", True)
        assert part in refusal["text"]
        assert answer["actions"] == []
    had(tree, None)
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert (refusal["kind"], refusal["where"].endswith("last-change.json")) == ("configuration", True)


def test_a_rollback_after_an_interrupted_change(tree: Tree) -> None:
    """That one is taken back first."""
    had(tree, "")
    write_journal(tree, Journal(CHANGING, save_files(tree, [CONFIG, CHECKPOINT]), {}))
    (Path(tree.root) / CONFIG[1:]).write_text("", encoding="utf-8")
    answer = rollout_report(Node(tree), {}, BACK)
    assert answer["refusals"] == []
    row = answer["drift"][0]
    assert (row["subject"], row["found"], row["wanted"]) == ("cpu_manager_policy", "static", "none")


@pytest.mark.parametrize(
    "damage", ["cpuManagerPolicy: dynamic\n", "cpuManagerPolicy: static\nreservedSystemCPUs: 0,99\n"]
)
def test_a_rollback_of_an_interrupted_rollout_that_had_saved_nothing(tree: Tree, damage: str) -> None:
    """Without it the kubelet would not start either: what was before the rollout before cures that."""
    had(tree, STATIC + "cpuManagerReconcilePeriod: 5s\n", "one")
    terms = BACK._replace(rollback_of="two")
    journal = Journal(STOPPING, {}, {"rollout": "two"})
    write_journal(tree, journal)
    assert rollout_report(Node(tree), {}, terms)["actions"] == []
    configure(Path(tree.root), damage)
    # What is wrong is not of the rollout to go back from: that one has never begun here.
    remove_journal(tree)
    answer = rollout_report(Node(tree), {}, terms)
    assert (answer["actions"], answer["refusals"], answer["starts"]) == ([], [], False)
    write_journal(tree, journal)
    answer = rollout_report(Node(tree), {}, terms)
    assert (answer["refusals"], answer["starts"]) == ([], True)
    assert answer["actions"] == ["stop_kubelet", "restore_configuration", "start_kubelet"]


@pytest.mark.parametrize("phase", [DRAINING, STOPPING, CHANGING])
def test_an_interrupted_change_after_which_no_kubelet_would_start(tree: Tree, phase: str) -> None:
    """It could not come to its end. With something planned that cures it, it does."""
    write_journal(tree, Journal(phase, {}, {}))
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(b"{")
    (refusal,) = rollout_report(Node(tree), {}, BACK)["refusals"]
    assert (refusal["kind"], refusal["where"].endswith("/change.json")) == ("would_not_start", True)
    assert "run the playbook repair" in refusal["remedy"]
    # Nothing is put back that somebody may have corrected, but where files were changed.
    assert ("forget the change" in refusal["remedy"]) == (phase == CHANGING)
    answer = plan(tree)
    assert (answer["refusals"], answer["actions"]) == ([], ["stop_kubelet", "reset_checkpoint", "start_kubelet"])


def test_an_interrupted_change_of_a_node_that_somebody_has_corrected_since(tree: Tree) -> None:
    """What is saved would be put back: whoever knows better can forget it."""
    good = (Path(tree.root) / CONFIG[1:]).read_bytes()
    for bad in (None, SavedFile(b"", 0o644), SavedFile(good.replace(b"0,4", b"0,99"), 0o644)):
        write_journal(tree, Journal(CHANGING, {CONFIG: bad or SavedFile(None)}, {}))
        refusal = plan(tree)["refusals"][0]
        assert refusal["remedy"].endswith("forget the change with rollout_journal, state: absent")
        # That it would stay open is said where nothing else is.
        assert not any("a change of this node was interrupted" in refusal["text"] for refusal in plan(tree)["refusals"])
    # What pods lose does not change with what is forgotten.
    write_journal(tree, Journal(CHANGING, {}, {}))
    (refusal,) = rollout_report(Node(tree), {"cpu_manager_policy": "none"}, Terms(drain=False))["refusals"]
    assert (refusal["kind"], "forget" in refusal["remedy"]) == ("assignments", False)


def test_no_drain_where_the_kubelet_is_stopped_to_take_a_change_back(tree: Tree) -> None:
    """And cannot be started again before the change that cures it."""
    run_kubelet(tree)
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(b"{")
    for phase, drain in ((STOPPING, True), (CHANGING, False)):
        write_journal(tree, Journal(phase, {}, {}))
        assert plan(tree)["drain"] == drain


def test_a_kubelet_whose_configuration_is_gone_is_not_a_host_without_a_kubelet(tree: Tree) -> None:
    (Path(tree.root) / CONFIG[1:]).unlink()
    answer = plan(tree)
    assert (answer["status"], answer["refusals"][0]["kind"]) == ("no kubelet", "no_kubelet")
    had(tree, STATIC)
    answer = plan(tree)
    (refusal,) = answer["refusals"]
    assert (answer["status"], refusal["kind"]) == ("drift", "configuration")
    assert "rollback" in refusal["remedy"]


def test_the_kubelet_that_runs(tree: Tree) -> None:
    stopped = plan(tree)["kubelet"]
    assert (stopped["distribution"], stopped["pid"], stopped["command_line"]) == ("kubeadm", None, [])
    run_kubelet(tree)
    found = plan(tree)["kubelet"]
    command_line = ["/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"]
    assert found == {**stopped, "pid": 7, "command_line": command_line}


def test_the_files_of_a_change(tree: Tree) -> None:
    """Also those that this change leaves as they are: a rollback may bring them back."""
    patches = Path(tree.root) / "etc/kubernetes/patches"
    patches.mkdir(parents=True)
    patch = "/etc/kubernetes/patches/kubeletconfiguration90-kubenode-cpu-manager+merge.yaml"
    assert plan(tree, cpu_manager_reconcile_period="5s")["files"] == [patch, CONFIG, CHECKPOINT, MEMORY]
    assert plan(tree)["files"] == []


@pytest.mark.parametrize("name", KUBELETS)
def test_a_change_has_all_files_that_are_written(tmp_path: Path, name: str) -> None:
    """On a node of each distribution, so that the journal has all of them."""
    kubelet = KUBELETS[name]
    write_machine(tmp_path, "1s4c2t")
    write_kubelet(tmp_path, kubelet)
    node = Node(Tree(str(tmp_path)), minor=minor_version(kubelet.version))
    wanted = {"cpu_manager_policy": "static", "reserved_system_cpus": "0,4"}
    plan = plan_settings(wanted, node.needed_configuration(), node.minor)
    written = [node.tree.node_path(change.path) for change in plan_files(read_sources(node), plan, wanted, node.minor)]
    assert written
    assert rollout_report(node, wanted, Terms())["files"] == [*written, *node.state_paths]


# --- the memory manager's state ---------------------------------------------------------------------------

MEMORY_STATIC = (
    "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)


def memory_state(policy: str, reserved: int = 0) -> str:
    """A first state, as the kubelet writes it."""
    machine = {0: {"memory": NODE_MEMORY * 1024}}
    state = first_memory_state(MemoryConfig(policy, {0: {"memory": reserved}}, 36, machine=machine))
    return (state or b"").decode("ascii")


@pytest.mark.parametrize(
    ("found", "text", "wanted", "reason"),
    [
        ("", memory_state("None"), {}, ""),
        ("", memory_state("None"), {"memory_manager_policy": "None"}, ""),
        (
            "",
            memory_state("None"),
            {
                "memory_manager_policy": "Static",
                "system_reserved_memory": "924Mi",
                "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            },
            'configured policy "Static" differs from state checkpoint policy "None"',
        ),
        (
            MEMORY_STATIC,
            memory_state("Static", 1 << 30),
            {"memory_manager_policy": "None"},
            'configured policy "None" differs from state checkpoint policy "Static"',
        ),
        (MEMORY_STATIC, memory_state("Static", 1 << 30), {"memory_manager_policy": "Static"}, ""),
        (
            MEMORY_STATIC,
            memory_state("Static", 1 << 30),
            {
                "system_reserved_memory": "1948Mi",
                "reserved_memory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
            },
            "the expected machine state is different from the real one",
        ),
        # What somebody changed, and the kubelet cannot start with since.
        (MEMORY_STATIC, memory_state("Static", 2 << 30), {}, "the expected machine state is different from the real"),
        ("", memory_state("Static", 1 << 30), {}, 'configured policy "None" differs'),
        ("", "{", {}, "unexpected end of JSON input"),
    ],
)
def test_the_memory_managers_state(tree: Tree, found: str, text: str, wanted: dict[str, Any], reason: str) -> None:
    configure(Path(tree.root), STATIC + found)
    (Path(tree.root) / MEMORY[1:]).write_text(text, encoding="ascii")
    answer = plan(tree, **wanted)
    drift = [row["found"] for row in answer["drift"] if row["subject"] == "memory_state"]
    assert [reason in text for text in drift] == [True] * bool(reason)
    assert ("reset_memory_state" in answer["actions"]) == bool(reason)
    assert (answer["starts"], answer["drain"]) == (True, bool(reason))
    if reason:
        writes = ["write_configuration"] if wanted else []
        assert answer["actions"] == ["stop_kubelet", "reset_memory_state", *writes, "start_kubelet"]


def test_both_states_are_reset_before_the_configuration(tree: Tree) -> None:
    (Path(tree.root) / MEMORY[1:]).write_text(memory_state("Static"), encoding="ascii")
    actions = plan(tree, cpu_manager_policy="none")["actions"]
    assert actions == [*WHOLE[:2], "reset_memory_state", *WHOLE[2:]]


def test_what_has_to_go_of_the_memory_manager_comes_with_a_restart_before_all_else() -> None:
    report = {"status": "clean", "drift": [], "actions": ["reconcile"], "notes": []}
    assert with_memory_state(report, MemoryPlan(b"{", ""), "") == report
    note = with_memory_state(report, MemoryPlan(b"{", ""), "it is damaged")["notes"][0]
    assert getattr(note, "check", "") == "memory-state-refused"
    assert note == "as the node is, its kubelet would not start again: it is damaged"
    row = {"subject": "memory_state", "wanted": "accepted", "found": "refused: it is damaged", "source": None}
    assert with_memory_state(report, MemoryPlan(b"{", "it is damaged"), "") == {
        "status": "drift",
        "drift": [{**row, "refused_now": False}],
        "actions": ["stop_kubelet", "reset_memory_state", "start_kubelet", "reconcile"],
        "notes": [],
    }


def test_memory_of_containers_is_lost_only_with_a_drain_or_when_allowed(tree: Tree) -> None:
    entries = '"entries":{"pod":{"app":[{"numaAffinity":[0],"type":"memory","size":1024}]}},'
    text = '{"policyName":"Static","machineState":{},%s"checksum":0}' % entries
    (Path(tree.root) / MEMORY[1:]).write_text(text, encoding="ascii")
    for terms, kinds in ((Terms(), []), (Terms(drain=False, discard=True), []), (Terms(drain=False), ["assignments"])):
        answer = rollout_report(Node(tree), {}, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds
    (refusal,) = answer["refusals"]
    assert refusal["where"] == tree.path(MEMORY)
    assert "pod pod, container app" in refusal["text"]


def test_a_change_that_would_have_no_effect(tree: Tree) -> None:
    flags = Path(tree.root) / "etc/default/kubelet"
    flags.parent.mkdir(parents=True)
    flags.write_text("KUBELET_EXTRA_ARGS=--cpu-manager-reconcile-period=1s\n", encoding="ascii")
    (refusal,) = plan(tree, cpu_manager_reconcile_period="5s")["refusals"]
    assert re.search(r"--cpu-manager-reconcile-period in .*/etc/default/kubelet gives it", refusal["text"])


def test_no_kubelet(tree: Tree) -> None:
    (Path(tree.root) / CONFIG[1:]).unlink()
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["status"], answer["actions"], answer["files"]) == ("no kubelet", [], [])
    assert [refusal["kind"] for refusal in answer["refusals"]] == ["no_kubelet"]


def test_a_node_that_is_as_wanted_and_would_not_start(tree: Tree) -> None:
    configure(Path(tree.root), STATIC + "memoryManagerPolicy: Static\n")
    found = plan(tree)
    assert (found["status"], found["actions"], found["starts"]) == ("drift", [], False)
    (row,) = found["drift"]
    assert (row["subject"], row["source"]) == ("start", "reserved_memory")
    (finding,) = [finding_found for finding_found in found["findings"] if finding_found["fatal"]]
    assert finding["where"] == "reservedMemory"
    assert found["found_refusal"] == "reservedMemory: %s (%s)" % (finding["text"], finding["cause"])
    (refusal,) = found["refusals"]
    assert (refusal["kind"], refusal["where"]) == ("would_not_start", "reservedMemory")
    # It is a row of the drift, and no note beside it.
    assert [note for note in found["notes"] if "would not start again" in note] == []


def test_a_checkpoint_that_no_kubelet_restores_is_reset_whatever_else_is_unknown(tree: Tree) -> None:
    """What cannot be seen of a node keeps nothing from being repaired, and is told."""
    configure(Path(tree.root), STATIC + "protectKernelDefaults: true\n")
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(b"{")
    answer = plan(tree, cpu_manager_reconcile_period="5s")
    assert (answer["refusals"], answer["actions"]) == ([], WHOLE)
    assert answer["starts"] is True
    unseen = "/proc/sys/vm/overcommit_memory is not among the node's files"
    assert answer["unknown"] == [{"reason": unseen, "where": "protectKernelDefaults"}]
    assert "whether the kubelet starts cannot be determined: " + unseen in answer["notes"]
    had(tree, STATIC + "protectKernelDefaults: true\nmaxPods: 20\n")
    back = rollout_report(Node(tree), {}, BACK)
    assert (back["refusals"], back["starts"], back["unknown"]) == ([], True, answer["unknown"])
