# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_rollout/rollout_plan.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST, OPEN
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.runtime import ABSENT, WantedRuntime
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    RolloutJournal,
    save_files,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ROLLBACK,
    ChangeTerms,
    rollout_report,
    with_last_runtime,
    with_runtime,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

CONFIG = "/var/lib/kubelet/config.yaml"
STATES = ["/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state"]
CONTAINERD = "/etc/containerd/config.toml"
HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
NONE, OFF, ON = HEADER + 'reservedSystemCPUs: "0,4"\n', "version = 2\n", "version = 3\n"
TO_NONE = {"cpu_manager_policy": "none"}
RUNTIME = ["write_runtime_configuration", "restart_runtime"]


def node(root: Path, files: Mapping[str, str]) -> Node:
    if not (root / "sys").exists():
        write_machine(root, "1s4c2t")
    for path, content in files.items():
        place = Path("%s%s" % (root, path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return Node(Tree(str(root)), None, None, 36)


def plan(found: Node, wanted: Mapping[str, Any] | None = None, drain: bool = True, **runtime: Any) -> dict[str, Any]:
    return with_runtime(
        rollout_report(found, TO_NONE if wanted is None else wanted, ChangeTerms(drain=drain)),
        found,
        WantedRuntime(**runtime),
        drain,
    )


def test_with_the_kubelet(tmp_path: Path) -> None:
    answer = plan(node(tmp_path, {CONFIG: NONE + "cpuManagerPolicy: static\n", CONTAINERD: OFF}))
    assert answer["actions"] == ["stop_kubelet", "write_configuration", *RUNTIME, "start_kubelet"]
    assert answer["files"] == [CONFIG, *STATES, CONTAINERD]
    assert [row["subject"] for row in answer["drift"]] == ["cpu_manager_policy", "runtime_nri", "runtime_cdi"]
    assert answer["drift"][-1] == {
        "subject": "runtime_cdi",
        "wanted": "on",
        "found": "off",
        "source": "%s%s" % (tmp_path, CONTAINERD),
    }
    assert (answer["refusals"], answer["drains"]) == ([], True)
    assert (answer["runtime"]["service"], answer["runtime"]["files"]) == ("containerd", [CONTAINERD])


@pytest.mark.parametrize("drain", [True, False])
def test_the_runtime_alone(drain: bool, tmp_path: Path) -> None:
    answer = plan(node(tmp_path, {CONFIG: NONE, CONTAINERD: OFF}), drain=drain)
    assert answer["actions"] == ["stop_kubelet", *RUNTIME, "start_kubelet"]
    assert answer["files"] == [*STATES, CONTAINERD]
    assert (answer["status"], answer["drain"], answer["drains"]) == ("drift", True, drain)


def test_a_journal_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    answer = plan(node(tmp_path, {CONFIG: NONE, CONTAINERD: OFF, OPEN: "no journal"}))
    assert [refusal["where"] for refusal in answer["refusals"]] == ["%s%s" % (tmp_path, OPEN)]
    assert answer["runtime"]["files"] == [CONTAINERD]


def test_nothing_to_do(tmp_path: Path) -> None:
    answer = plan(node(tmp_path, {CONFIG: NONE, CONTAINERD: ON}))
    assert (answer["runtime"], answer["actions"], answer["status"]) == (None, [], "clean")
    answer = plan(node(tmp_path, {CONTAINERD: OFF}), state=ABSENT)
    assert (answer["runtime"], answer["actions"], answer["status"]) == (None, [], "clean")


def test_taken_away(tmp_path: Path) -> None:
    block = "# BEGIN kubenode.cpu_manager\n[a]\n# END kubenode.cpu_manager\n"
    answer = plan(node(tmp_path, {CONFIG: NONE, CONTAINERD: OFF + block}), state=ABSENT)
    assert answer["actions"] == ["stop_kubelet", *RUNTIME, "start_kubelet"]
    assert [row["subject"] for row in answer["drift"]] == ["runtime"]


def test_a_refusal(tmp_path: Path) -> None:
    answer = plan(node(tmp_path, {CONFIG: NONE, CONTAINERD: "version\n"}))
    (refusal,) = answer["refusals"]
    assert (refusal["kind"], refusal["where"]) == ("runtime_config", "%s%s" % (tmp_path, CONTAINERD))
    assert answer["actions"] == []


def test_no_kubelet(tmp_path: Path) -> None:
    answer = plan(node(tmp_path, {CONTAINERD: OFF}))
    assert (answer["status"], answer["runtime"], answer["actions"]) == ("no kubelet", None, [])


def test_after_an_interrupted_change(tmp_path: Path) -> None:
    """What it has written is taken back first, so it is planned anew."""
    found = node(tmp_path, {CONFIG: NONE, CONTAINERD: OFF})
    saved = save_files(found.tree, [CONFIG, CONTAINERD])
    write_journal(found.tree, RolloutJournal(CHANGING, saved, {}))
    answer = plan(node(tmp_path, {CONTAINERD: ON}))
    assert answer["runtime"]["files"] == [CONTAINERD]


@pytest.mark.parametrize(
    ("fact", "now", "restarts"),
    [
        ({"files": [CONTAINERD], "service": "containerd"}, ON, True),
        ({"files": [CONTAINERD], "service": "containerd"}, OFF, False),
        ({"files": []}, ON, False),
        ({"files": 1}, ON, False),
        (1, ON, False),
    ],
)
def test_a_rollback(fact: object, now: str, restarts: bool, tmp_path: Path) -> None:
    found = node(tmp_path, {CONFIG: NONE + "cpuManagerPolicy: static\n", CONTAINERD: OFF})
    write_journal(
        found.tree, RolloutJournal(CHANGING, save_files(found.tree, [CONFIG, CONTAINERD]), {"runtime": fact}), LAST
    )
    found = node(tmp_path, {CONFIG: NONE, CONTAINERD: now})
    answer = with_last_runtime(rollout_report(found, {}, ChangeTerms(ROLLBACK)), found, True)
    assert ("restart_runtime" in answer["actions"]) is restarts
    assert answer["runtime"] == (fact if restarts else None)
    if restarts:
        assert answer["actions"][-2:] == ["restart_runtime", "start_kubelet"]


def test_nothing_to_go_back_to(tmp_path: Path) -> None:
    found = node(tmp_path, {CONFIG: NONE, CONTAINERD: ON})
    assert with_last_runtime(rollout_report(found, {}, ChangeTerms(ROLLBACK)), found, True)["runtime"] is None
