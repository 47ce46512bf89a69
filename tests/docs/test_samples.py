# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results that the guides show are those that a person gets: of a node with two sockets and the policy none.

Other nodes are in the tests below. What was measured is compared as far as it stays the same.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.benchmark.result import (
    benchmark_table,
    checked_result,
)
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.fleet import Cluster, impact_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.gate import impact_text, with_waivers
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.impact.workloads import owners_of
from ansible_collections.kubenode.cpu_manager.tests.machines import throttled
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, plan_of, pod_of, replica_set
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl import node as divided
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted, mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.platforms import PLATFORMS
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import ansible_playbook, play, task
from ansible_collections.kubenode.cpu_manager.tests.playbooks.test_housekeeping import node, variables

from .pages import CHECKOUT, GUIDES, blocks, pages

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
    write_node(root)
    return root


def write_node(root: Path) -> None:
    """Write a node with two sockets and the policy none."""
    write_machine([NODE, str(root)])
    kubelet = root / "var/lib/kubelet"
    kubelet.mkdir(parents=True)
    (kubelet / "config.yaml").write_text(HEADER)
    (kubelet / "cpu_manager_state").write_bytes(write_checkpoint("none", State(CPUSet(), {})))


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
    # A live node is drained, and has no other root than its own.
    assert not_printed(guide, words, run.output.replace(str(root), ""), without="drain, ") == []


def not_printed(guide: str, words: str, output: str, without: str = "") -> list[str]:
    """Return which lines of the block of a guide that has these words are not in an output; "..." is for lines left
    out."""
    sample, printed = sample_of(guide, words), _folded(output)
    lines = (sample.replace(without, "") if without else sample).splitlines()
    return [line for line in lines if line.strip(" -") != "..." and _folded(line) not in printed]


def sample_of(guide: str, words: str) -> str:
    (sample,) = [block.text for block in blocks(GUIDES / (guide + ".rst")) if words in block.text]
    return sample


def _folded(text: str) -> str:
    return " ".join(text.split())


def test_the_sample_of_a_gate_is_what_is_printed(tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {}
    for host in (HOST, "worker-2"):
        write_node(tmp_path / host)
        hosts[host] = {"kubelet_node_root": str(tmp_path / host), "kubelet_cpu_manager_policy": "none"}
    hosts["worker-2"]["kubelet_cpu_manager_reconcile_period"] = "7s"
    run = ansible_playbook(
        tmp_path, "kubenode.cpu_manager.drift_report", hosts, "--check", "-e", "drift_report_fail_on=drift"
    )
    assert run.status == 2, run.account()
    assert not_printed("drift_report", "the fleet does not pass", run.output) == []


def test_the_sample_of_where_is_what_is_printed(tmp_path: Path) -> None:
    throttled.write_node(tmp_path / "node", V2)
    hosts = {HOST: {"kubelet_node_root": str(tmp_path / "node")}}
    run = ansible_playbook(tmp_path, "kubenode.cpu_manager.where", hosts, "-e", "pod=shop/")
    assert run.status == 0, run.account()
    assert not_printed("drift_report", "CONTAINER", run.output) == []


def test_the_sample_of_throttling_is_what_is_printed(tmp_path: Path) -> None:
    throttled.write_node(tmp_path / "node", V2)
    look = task("throttling_info", root=str(tmp_path / "node"), kubelet_version="1.32")
    run = ansible_playbook(tmp_path, play(look), {HOST: {}}, "-v")
    assert run.status == 0, run.account()
    assert not_printed("throttling", "throttled_percent: 40.0", run.output) == []


def test_the_sample_of_an_impact_is_what_is_printed() -> None:
    nodes = ["worker-1", "worker-2"]
    pods = [pod_of("db-1-%s" % name, name, "3", ("ReplicaSet", "db-1")) for name in nodes]
    pods += [pod_of("queue-0", "worker-1", "2", ("StatefulSet", "queue"))]
    pods += [pod_of("agent-%s" % name, name, "", ("DaemonSet", "agent")) for name in nodes]
    hosts = {name: (name, plan_of()) for name in nodes}
    owners = owners_of([replica_set("db-1", "db")], "ReplicaSet")
    impact = impact_of([Cluster(hosts, [node_of(name) for name in nodes], pods, owners)])
    assert (
        impact_text(with_waivers(impact, [], "2026-11-27")) == sample_of("impact", "would never come back, as").rstrip()
    )


@pytest.fixture
def divisible(tmp_path: Path) -> Iterator[Mounted]:
    """Yield a node whose caches can be divided, with two exclusive CPUs."""
    shape = PLATFORMS["xeon-l3-mba-mbm"]
    for model in mounted(tmp_path / "node"):
        model.load(shape)
        divided.write_node(model.root, shape)
        divided.give(model.root, {1, 9}, set(shape.online) - {1, 9})
        yield model


def test_the_sample_of_caches_is_what_is_printed(divisible: Mounted, tmp_path: Path) -> None:
    host = {"kubelet_node_root": str(divisible.root), "reconcile_interpreter": "/usr/bin/python3"}
    arguments = ("-e", "cache_exclusive_share=60%", "--check", "--diff")
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.cache", {HOST: host}, *arguments)
    assert run.status == 0, run.account()
    assert not_printed("cache", "kubenode.exclusive: mode", run.output.replace(str(divisible.root), "")) == []


def test_the_sample_of_isolation_has_what_the_module_returns() -> None:
    lines = sample_of("isolation", "sha256sum").splitlines()
    sample = yaml.safe_load("\n".join(line for line in lines if line.strip() != "..."))
    source = (CHECKOUT / "plugins/modules/isolation_info.py").read_text("utf-8")
    (text,) = re.findall(r'^RETURN = r("""$.*?^""")$', source, re.MULTILINE | re.DOTALL)
    assert unknown_names(sample, yaml.safe_load(ast.literal_eval(text))) == []


def unknown_names(value: Any, returned: dict[str, Any]) -> list[str]:
    """Return the names in a result that the documentation of its module does not have."""
    if isinstance(value, list):
        return [name for member in value for name in unknown_names(member, returned)]
    if not isinstance(value, dict):
        return []
    unknown = [name for name in value if name not in returned]
    for name in value.keys() & returned.keys():
        unknown += unknown_names(value[name], returned[name].get("contains") or {})
    return unknown


def test_the_table_of_the_benchmark_is_that_of_a_run() -> None:
    """benchmark.json is what the module has answered."""
    host = "worker-3"
    result = checked_result(host, json.loads(Path(__file__).with_name("benchmark.json").read_text("utf-8")))
    assert not_printed("isolation_benchmark", "Stand-alone", benchmark_table(host, result)) == []


@pytest.mark.parametrize(
    ("role", "guide", "words"),
    [
        ("cache", "cache", "kubenode.exclusive: mode"),
        ("housekeeping", "housekeeping", "CPUs of interrupts"),
        ("kubelet", "getting_started", "to do:"),
    ],
)
def test_the_sample_of_a_role_is_that_of_a_guide(role: str, guide: str, words: str) -> None:
    (sample,) = [block.text for block in blocks(CHECKOUT / "roles" / role / "README.md") if words in block.text]
    assert sample.rstrip() == sample_of(guide, words).rstrip()


def test_no_mark_of_a_macro_is_left_in_a_page() -> None:
    found = {page.name: re.findall(r"\{\w+:[\w.]+\|[^}]*\}", page.read_text("utf-8")) for page in pages()}
    assert {name: marks for name, marks in found.items() if marks} == {}
