# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that are refused, and nodes on which the kubelet would not start."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import SAID, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.module import (
    FORMAT,
    KIND,
    SavedFacts,
    SavedNode,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import (
    BACK,
    NO_RESET,
    WHOLE,
    configure,
    had,
    plan,
    run_kubelet,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG, STATIC


def test_pods_that_cannot_be_drained_lose_cpus_only_when_allowed(tree: Tree) -> None:
    """No kubelet ends them, and none can be started with the checkpoint as it is."""
    configure(Path(tree.root), "cpuManagerPolicy: static\nreservedSystemCPUs: 0,1\n")
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(
        write_checkpoint("static", State(CPUSet.parse("0,2-4,6-7"), {"pod": {"app": CPUSet.parse("1,5")}}))
    )
    answer = plan(tree)
    assert (answer["drain"], [refusal["kind"] for refusal in answer["refusals"]]) == (False, ["assignments"])
    assert rollout_report(Node(tree), {}, ChangeTerms(discard=True))["refusals"] == []
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
            "remedy": finding["remedy"]
            + ", or if a rollout was the last change of the node, go back with the playbook rollback",
        }
        for finding in fatal
    ]


def test_a_finding_with_which_the_kubelet_starts_refuses_nothing(tree: Tree) -> None:
    configure(Path(tree.root), STATIC + "reservedCPUs: 0\n")
    answer = plan(tree)
    assert [finding["fatal"] for finding in answer["findings"]] == [False]
    assert (answer["starts"], answer["refusals"], answer["actions"]) == (True, [], [])
    assert [note for note in answer["notes"] if "would not start" in note] == []


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
        (ChangeTerms(), []),
        (ChangeTerms(discard=True, drain=False), []),
        (ChangeTerms(drain=False), ["assignments"]),
    ):
        answer = rollout_report(Node(tree), wanted, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds
    (refusal,) = answer["refusals"]
    assert "container app: CPUs 1,5" in refusal["text"]
    assert refusal["where"].endswith(CHECKPOINT)
    assert "discard_assignments" in refusal["remedy"]


def test_a_checkpoint_under_a_running_kubelet_is_a_refusal(tree: Tree) -> None:
    terms = ChangeTerms(manage_service=False)
    none, period = {"cpu_manager_policy": "none"}, {"cpu_manager_reconcile_period": "5s"}
    assert rollout_report(Node(tree), none, terms)["refusals"] == []
    run_kubelet(tree)
    for wanted, kinds in ((none, ["kubelet_runs"]), (period, []), ({}, [])):
        answer = rollout_report(Node(tree), wanted, terms)
        assert [refusal["kind"] for refusal in answer["refusals"]] == kinds
        assert ["manage_service" in refusal["remedy"] for refusal in answer["refusals"]] == [True] * len(kinds)
        assert plan(tree, **wanted)["refusals"] == []


def test_of_a_saved_node_the_same_is_said_as_of_the_node(tree: Tree) -> None:
    """Nothing runs on it that could be stopped or drained, which is what the role does on the node."""
    configure(Path(tree.root), STATIC)
    state = State(CPUSet.parse("0,2-4,6-7"), {"pod": {"app": CPUSet.parse("1,5")}})
    (Path(tree.root) / CHECKPOINT[1:]).write_bytes(write_checkpoint("static", state))
    run_kubelet(tree)
    on_the_node, none = ChangeTerms(), {"cpu_manager_policy": "none"}
    expected = rollout_report(Node(tree), none, on_the_node)
    assert (expected["drain"], expected["refusals"]) == (True, [])
    said = {"kind": KIND, "format": FORMAT, "said": SavedFacts("1.36.2").to_dict()}
    (Path(tree.root) / SAID.lstrip("/")).write_text(json.dumps(said), encoding="utf-8")
    of_the_role = ChangeTerms(drain=False, manage_service=False)
    found = rollout_report(SavedNode(tree), none, of_the_role)
    for key in ("status", "drain", "refusals", "actions", "drift"):
        assert found[key] == expected[key], key
    kinds = [refusal["kind"] for refusal in rollout_report(Node(tree), none, of_the_role)["refusals"]]
    assert kinds == ["assignments", "kubelet_runs"]


def test_a_kubelet_whose_configuration_is_gone_is_not_a_host_without_a_kubelet(tree: Tree) -> None:
    (Path(tree.root) / CONFIG[1:]).unlink()
    answer = plan(tree)
    assert (answer["status"], answer["refusals"][0]["kind"]) == ("no kubelet", "no_kubelet")
    had(tree, STATIC)
    answer = plan(tree)
    (refusal,) = answer["refusals"]
    assert (answer["status"], refusal["kind"]) == ("drift", "configuration")
    assert "rollback" in refusal["remedy"]


def test_a_change_that_would_have_no_effect(tree: Tree) -> None:
    flags = Path(tree.root) / "etc/default/kubelet"
    flags.parent.mkdir(parents=True)
    flags.write_text("KUBELET_EXTRA_ARGS=--cpu-manager-reconcile-period=1s\n", encoding="ascii")
    (refusal,) = plan(tree, cpu_manager_reconcile_period="5s")["refusals"]
    assert re.search(r"--cpu-manager-reconcile-period=\S+ in .*/etc/default/kubelet overrides", refusal["text"])


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
    assert answer["starts"] is None
    unseen = "/proc/sys/vm/overcommit_memory is not among the node's files"
    assert answer["unknown"] == [{"reason": unseen, "where": "protectKernelDefaults"}]
    assert "whether the kubelet starts cannot be determined: " + unseen in answer["notes"]
    had(tree, STATIC + "protectKernelDefaults: true\nmaxPods: 20\n")
    back = rollout_report(Node(tree), {}, BACK)
    assert (back["refusals"], back["starts"], back["unknown"]) == ([], None, answer["unknown"])
