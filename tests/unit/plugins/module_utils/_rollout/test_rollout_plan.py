# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each change of a node's settings takes: its actions, whether pods have to leave, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.versions import minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.placement import plan_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import read_sources
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import NO_RESET, REPAIRS, WHOLE, plan, run_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, CONFIG
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
