# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each change of a node's settings takes: its actions, whether pods have to leave, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.placement import plan_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    predict_configuration,
    read_sources,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    TrialTerms,
    rollout_report,
    tried_plan,
    upgrade_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial import kubelet_trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.kubelet_trial import Trial
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import (
    NO_RESET,
    REPAIRS,
    WHOLE,
    configure,
    plan,
    run_kubelet,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG, STATIC
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import MEMORY_STATE as MEMORY


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
        ({"cpu_manager_policy_options": {"strict-cpu-reservation": "true"}}, REPAIRS, True),
        ({"topology_manager_policy": "best-effort"}, NO_RESET, True),
        ({"topology_manager_scope": "pod"}, NO_RESET, True),
        ({"reserved_system_cpus": "0,2,4,6"}, NO_RESET, True),
        ({"reserved_system_cpus": "0,1,4,5"}, WHOLE, True),  # one of them is the pod's
    ],
)
def test_what_each_change_takes(tree: Tree, wanted: dict[str, Any], actions: list[str], drain: bool) -> None:
    answer = plan(tree, **wanted)
    assert (answer["actions"], answer["drain"], answer["starts"]) == (actions, drain, True)
    assert rollout_report(Node(tree), wanted, ChangeTerms("rollout", drain=False, discard=True))["drains"] is False
    assert (answer["drains"], answer["refusals"], answer["elsewhere"]) == (drain, [], None)
    assert answer["files"] == ([CONFIG, CHECKPOINT, MEMORY] if actions else [])
    assert [finding for finding in answer["findings"] if finding["fatal"]] == []


def test_cpus_that_are_gone(tree: Tree) -> None:
    """The checkpoint is repaired: the kubelet would not start with it as it is."""
    for name in ("3", "7"):
        (Path(tree.root) / ("sys/devices/system/cpu/cpu%s/online" % name)).write_text("0\n", encoding="ascii")
    (Path(tree.root) / "sys/devices/system/cpu/online").write_text("0-2,4-6\n", encoding="ascii")
    answer = plan(tree)
    assert answer["actions"] == ["stop_kubelet", "repair_checkpoint", "start_kubelet"]
    # No kubelet ends the pods, and none can be started to do it.
    assert (answer["drain"], answer["starts"], answer["refusals"]) == (False, True, [])
    run_kubelet(tree)
    assert plan(tree)["drain"]


def test_where_the_settings_of_others_have_to_be(tree: Tree) -> None:
    (Path(tree.root) / "etc").mkdir()
    (Path(tree.root) / "etc/os-release").write_text("ID=bottlerocket\n", encoding="ascii")
    (Path(tree.root) / "etc/kubernetes/kubelet").mkdir(parents=True)
    (Path(tree.root) / CONFIG[1:]).rename(Path(tree.root) / "etc/kubernetes/kubelet/config")
    elsewhere = plan(tree, cpu_manager_policy="static")["elsewhere"]
    assert elsewhere["name"] == "Bottlerocket"
    assert 'cpu-manager-policy = "static"' in elsewhere["snippet"]


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
    assert rollout_report(node, wanted, ChangeTerms())["files"] == [*written, *node.state_paths]


def test_no_kubelet(tree: Tree) -> None:
    (Path(tree.root) / CONFIG[1:]).unlink()
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["status"], answer["actions"], answer["files"]) == ("no kubelet", [], [])
    assert [refusal["kind"] for refusal in answer["refusals"]] == ["no_kubelet"]


ODD = STATIC + "memorySwap: {swapBehavior: Nonsense}\n"
# Without reserved memory it is refused, though it is certain with what the CPU manager starts.
WANTED = {"memory_manager_policy": "Static"}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return a live node."""
    write_machine(tmp_path, "1s4c2t")
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    monkeypatch.setattr(Tree, "live", True)
    configure(tmp_path, ODD)
    return Node(Tree(str(tmp_path)), command_line=["/usr/bin/kubelet", "--config=%s" % CONFIG])


def says(monkeypatch: pytest.MonkeyPatch, starts: bool | None) -> list[Mapping[str, object]]:
    """Return the kubelet says this of each start, and refuses nothing of what is predicted; the settings that it
    tries."""
    asked: list[Mapping[str, object]] = []

    def try_start(
        node: Node, wanted: Mapping[str, object], files: Mapping[str, bytes | None], before: object = None
    ) -> Trial:
        asked.append(wanted)
        findings = predict_configuration(node, wanted).findings
        mistaken = [(finding.where, finding.text) for finding in findings if finding.fatal] if starts else []
        return Trial(starts, version="1.36.3", mistaken=mistaken, differs=bool(mistaken), of=str(len(asked)))

    monkeypatch.setattr(kubelet_trial, "try_start", try_start)
    return asked


def plan_of(node: Node, wanted: dict[str, Any], mode: str = "auto") -> dict[str, Any]:
    return tried_plan(node, wanted, ChangeTerms(), None, TrialTerms(mode))


SETTING = {"cpu_manager_reconcile_period": "7s"}


def test_where_the_kubelet_starts_no_prediction_refuses(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = says(monkeypatch, True)
    assert [row["kind"] for row in plan_of(node, SETTING, "never")["refusals"]] == ["would_not_start"]
    assert asked == []
    plan = plan_of(node, SETTING)
    assert (plan["refusals"], plan["starts"], plan["trial"]["starts"]) == ([], True, True)
    assert asked[0] == SETTING


@pytest.mark.parametrize("starts", [False, None])
def test_where_it_does_not_start_the_prediction_counts(
    node: Node, monkeypatch: pytest.MonkeyPatch, starts: bool | None
) -> None:
    says(monkeypatch, starts)
    plan = plan_of(node, SETTING)
    kinds = ["would_not_start", *(["kubelet_refused"] if starts is False else [])]
    assert ([row["kind"] for row in plan["refusals"]], plan["starts"]) == (kinds, False)


def test_what_was_believed_of_an_earlier_plan_is_forgotten(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    says(monkeypatch, None)
    findings = predict_configuration(node, SETTING).findings
    node.mistaken = frozenset((finding.where, finding.text) for finding in findings if finding.fatal)
    assert plan_of(node, SETTING, "never")["refusals"] == []
    assert [row["kind"] for row in plan_of(node, SETTING)["refusals"]] == ["would_not_start"]


def test_what_is_wanted_is_tried_where_a_refusal_is_predicted(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(Path(node.tree.root), STATIC)
    for starts, mode in ((False, "auto"), (None, "always"), (True, "never")):
        says(monkeypatch, starts)
        with pytest.raises(RefusedError) as error:
            plan_of(node, WANTED, mode)
        assert error.value.kind == "would_not_start"
    says(monkeypatch, True)
    plan = plan_of(node, WANTED)
    assert (plan["refusals"], plan["trial"]["starts"]) == ([], True)


WITH_STATIC = (
    "apiVersion: kubelet.config.k8s.io/v1beta1\n"
    "kind: KubeletConfiguration\n"
    "cpuManagerPolicy: static\n"
    'reservedSystemCPUs: "0,4"\n'
)
OLD_CONFIG, OLD_CHECKPOINT = "var/lib/kubelet/config.yaml", "var/lib/kubelet/cpu_manager_state"
UNKNOWN_VERSION = (
    "the version of the kubelet is not known: 1.36 is assumed, the newest whose answers were replayed; give"
    " kubelet_version"
)
IS_NEWER = "the rules for a kubelet 1.37 are not tested against one"
WRITES_V4 = "the kubelet 1.37 reads this file, of format v2, and writes format v4 in its place"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_machine(tmp_path, "1s4c2t")
    (tmp_path / OLD_CONFIG).parent.mkdir(parents=True)
    (tmp_path / OLD_CONFIG).write_text(WITH_STATIC, encoding="ascii")
    return tmp_path


def save(root: Path, state: State, minor: int, pod_level: bool = False) -> None:
    (root / OLD_CHECKPOINT).write_bytes(write_checkpoint("static", state, format_for(minor, pod_level)))


def ways(root: Path, today: int | None, target: int) -> dict[str, Any]:
    report = upgrade_report(Node(Tree(str(root)), minor=today), target)
    assert report["kubelet_version"] == "1.%d" % target
    assert report["back"]["kubelet_version"] == "1.%d" % (today or 36)
    return report


def test_there_and_back(root: Path) -> None:
    save(root, State(CPUSet.parse("0-2,4-6"), {"uid-app": {"app": CPUSet.parse("3,7")}}), 36)
    report = ways(root, 36, 37)
    assert (report["starts"], report["back"]["starts"]) == (True, True)
    assert [note.startswith((WRITES_V4, IS_NEWER)) for note in report["notes"]][:2] == [True, True]
    # Nothing of that for a version that writes the same.
    assert ways(root, 36, 35)["notes"] == []


def test_a_version_that_is_not_known(root: Path) -> None:
    assert UNKNOWN_VERSION in ways(root, None, 35)["notes"]
    assert ways(root, None, 35)["back"]["starts"] is True


def test_what_the_other_version_refuses(root: Path) -> None:
    (root / OLD_CONFIG).write_text(WITH_STATIC + "featureGates:\n  KubeletPSI: false\n", encoding="ascii")
    report = ways(root, 34, 36)
    assert report["starts"] is False
    assert [finding["text"] for finding in report["findings"] if finding["fatal"]] == [
        "cannot set feature gate KubeletPSI to false, feature is locked to true"
    ]
    assert report["back"]["starts"] is True


def test_the_cpus_of_whole_pods_are_lost(root: Path) -> None:
    gate = "featureGates:\n  PodLevelResourceManagers: true\n"
    (root / OLD_CONFIG).write_text(WITH_STATIC + gate, encoding="ascii")
    pods = State(CPUSet.parse("0-2,4-6"), {}, {"uid-pod": CPUSet.parse("3,7")})
    save(root, pods, 36, pod_level=True)
    report = ways(root, 36, 35)
    # There is no such gate before 1.36.
    assert report["starts"] is False
    (root / OLD_CONFIG).write_text(WITH_STATIC, encoding="ascii")
    lost = [note for note in ways(root, 37, 36)["notes"] if "uid-pod: CPUs 3,7" in note]
    assert lost


def test_which_pods_an_upgrade_and_the_way_back_lose_and_which_file_is_refused(root: Path) -> None:
    gate = "topologyManagerPolicy: %s\ntopologyManagerScope: pod\nfeatureGates: {PodLevelResourceManagers: true}\n"
    (root / OLD_CONFIG).write_text(WITH_STATIC + gate % "best-effort", encoding="ascii")
    # All containers have their own, and together less than their pod.
    unused = State(CPUSet.parse("0,2-4,6-7"), {"uid-pod": {"a": CPUSet((1,))}}, {"uid-pod": CPUSet((1, 5))})
    save(root, unused, 36, pod_level=True)
    report = ways(root, 36, 37)
    lost = [note for note in report["notes"] if "would lose what they have: uid-pod" in note]
    assert [note.partition(" admits")[0] for note in lost] == ["the start of the kubelet 1.37"]
    assert "CPUs 1,5 are then nobody's" in lost[0]
    # Of what 1.37 writes, 1.36 does not read them.
    assert report["back"]["starts"] is False
    # Kubernetes calls this way back safe: it is, where every CPU of the pod is a container's.
    (root / OLD_CONFIG).write_text(WITH_STATIC, encoding="ascii")
    for state, starts in ((unused, False), (unused._replace(assignments={"uid-pod": {"a": CPUSet((1, 5))}}), True)):
        save(root, state, 37)
        found = ways(root, 37, 36)
        assert found["starts"] is starts
        assert [finding["text"] for finding in found["findings"] if finding["fatal"]] == [
            'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-4,6-7"'
        ] * (not starts)
        assert any("uid-pod: CPUs 1,5; drain the node before" in note for note in found["notes"])


def test_a_node_without_a_kubelet(tmp_path: Path) -> None:
    write_machine(tmp_path, "1s4c2t")
    with pytest.raises(NodeError, match="no kubelet runs here"):
        upgrade_report(Node(Tree(str(tmp_path)), minor=36), 37)
