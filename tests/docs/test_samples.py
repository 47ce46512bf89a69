# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results that the guides show are those that a person gets: of a node with two sockets and the policy none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import ansible_playbook, play, task
from ansible_collections.kubenode.cpu_manager.tests.playbooks.test_housekeeping import node, variables

from .pages import GUIDES, blocks, pages

HOST, NODE = "worker-1", "2s1n12c2t"
WANTED = {
    "kubelet_cpu_manager_policy": "static",
    "kubelet_cpu_manager_policy_options": {"full-pcpus-only": "true"},
    "kubelet_reservation": {"count": 4, "strategy": "spread"},
    "kubelet_target_version": "1.34",
}
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: shop}
spec: {containers: [{name: %s, image: x, resources: {limits: {cpu: %d, memory: 1Gi}}}]}
---
"""
# {guide: {the words by which its block is found: what is run, with which arguments}}
SAMPLES: dict[str, dict[str, list[str]]] = {
    "getting_started": {
        "policy-options-differ": ["kubenode.cpu_manager.drift_report", "--check"],
        "to do:": ["kubenode.cpu_manager.rollout", "--check", "--diff"],
        "would change": ["kubenode.cpu_manager.rollout", "--check", "--diff"],
    },
    "propose": {"threads2": ["kubenode.cpu_manager.propose", "-e", "cpu_manager_workload=latency"]},
    "roll_out": {"SMTAlignmentError": ["kubenode.cpu_manager.plan", "-e", "cpu_manager_manifests=pods.yml"]},
    "dynamic": {"trace services": ["kubenode.cpu_manager.simulate"]},
    "housekeeping": {"CPUs of interrupts": ["kubenode.cpu_manager.housekeeping", "--check", "--diff"]},
    "dra": {"changed_by_to_dra": ["dra_info", "-v"]},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("samples") / "node"
    write_machine([NODE, str(root)])
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").write_text(HEADER)
    (kubelet / "cpu_manager_state").write_bytes(write_checkpoint("none", State(CPUSet(), {})))
    return root


@pytest.mark.parametrize(("guide", "words"), [(guide, words) for guide, found in SAMPLES.items() for words in found])
def test_a_sample_is_what_is_printed(root: Path, tmp_path: Path, guide: str, words: str) -> None:
    playbook, *arguments = SAMPLES[guide][words]
    (tmp_path / "pods.yml").write_text(POD % ("db-0", "server", 4) + POD % ("odd", "main", 3))
    hosts: dict[str, dict[str, Any]] = {HOST: {"kubelet_node_root": str(root), **WANTED}}
    if guide == "housekeeping":
        hosts = {HOST: variables(node(tmp_path / "kept"))}
    run_of: Any = play(task(playbook, root=str(root))) if "." not in playbook else playbook
    run = ansible_playbook(tmp_path, run_of, hosts, *arguments)
    assert run.status == 0, run.account()
    (sample,) = [block.text for block in blocks(GUIDES / (guide + ".rst")) if words in block.text]
    # A live node is drained, and has no other root than its own.
    printed = _folded(run.output.replace(str(root), ""))
    missing = [line for line in sample.replace("drain, ", "").splitlines() if _folded(line) not in printed]
    assert missing == []


def _folded(text: str) -> str:
    return " ".join(text.split())


def test_no_mark_of_a_macro_is_left_in_a_page() -> None:
    found = {page.name: re.findall(r"\{\w+:[\w.]+\|[^}]*\}", page.read_text("utf-8")) for page in pages()}
    assert {name: marks for name, marks in found.items() if marks} == {}
