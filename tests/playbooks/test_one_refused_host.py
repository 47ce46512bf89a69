# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that are refused cost the others nothing: one whose facts have names of ours, and one with a misspelt variable.

They are the first two of the inventory, as what is done once for all hosts is done for the first that is left.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.api_server import serve
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import write_node

from .conftest import Run, ansible_playbook, play
from .hostile_python import hostile_python

GATHER = play({"name": "Gather", "ansible.builtin.setup": {}}, hosts="a-hostile")
SETTINGS: dict[str, Any] = {
    "kubelet_manage_service": False,
    "kubelet_drain": False,
    "kubelet_discard_assignments": True,
    "kubelet_topology_manager_policy": "restricted",
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]},
}


def run_on_three(directory: Path, playbook: str, **given: Any) -> Run:
    write_node(directory / "node", V2)
    (directory / "pods.json").write_text(json.dumps(POD), encoding="utf-8")
    (directory / "gather.json").write_text(json.dumps(GATHER), encoding="utf-8")
    evil = str(directory / "evil")
    facts = {
        "drift_report_directory": evil,
        "cpu_manager_manifests": evil,
        "kubelet_plan": {"node": "evil", "status": "drift", "actions": ["write_configuration"], "found": 7},
        "kubelet_fixed": {"run": None, "api_host": "localhost"},
        "kubelet_verdict": {"run": "2026-11-28T10:00:00"},
        "kubelet_look": {"schedule": {"batches": [{"hosts": ["c-good", "d-good"]}]}},
        "kubelet_allocation": {"containers": [{"pod": "shop/evil"}]},
    }
    common = {**SETTINGS, "kubelet_node_root": str(directory / "node"), "cpu_manager_manifests": "../pods.json"}
    hosts = {
        "a-hostile": {**common, **hostile_python(directory / "pythons" / "a", {"ansible_facts": facts}, ["setup"])},
        "b-misspelt": {**common, "kubelet_reserved_sytem_cpus": "0"},
        "c-good": common,
        "d-good": common,
    }
    with serve() as server:
        for name in hosts:
            server.add({"apiVersion": "v1", "kind": "Node", **node_of(name)})
        given["kubelet_kubeconfig"] = str(server.kubeconfig(directory / "kubeconfig"))
        gather, playbook = str(directory / "gather.json"), "kubenode.cpu_manager." + playbook
        run = ansible_playbook(directory / "run", gather, hosts, playbook, "--check", "-e", json.dumps(given))
    assert server.changes == []
    assert not Path(evil).exists()
    assert run.status in (2, 4), run.account()
    failed = {host for host, results in run.results.items() if any(row["outcome"] != "ok" for row in results)}
    assert failed >= {"a-hostile", "b-misspelt"}, run.account()
    said = str(run.results["b-misspelt"])
    assert "kubelet_reserved_sytem_cpus is no variable" in said, run.account()
    return run


def test_the_report_has_the_others(tmp_path: Path) -> None:
    earlier = tmp_path / "run/drift-report/nodes/a-hostile.json"
    earlier.parent.mkdir(parents=True)
    earlier.write_text(
        json.dumps({"schema_version": "2.0", "host": "a-hostile", "looked_at": "2026-11-01T00:00:00Z"}),
        encoding="utf-8",
    )
    run = run_on_three(tmp_path, "drift_report")
    report = json.loads((tmp_path / "run/drift-report/drift.json").read_text(encoding="utf-8"))
    states = {node["host"]: node["state"] for node in report["nodes"]}
    assert states.pop("a-hostile") == "missing"
    assert states.pop("b-misspelt") == "failed"
    assert set(states) == {"c-good", "d-good"}
    assert not {"missing", "failed"} & {*states.values()}, run.account()


def test_the_plan_of_pods_has_the_others(tmp_path: Path) -> None:
    run = run_on_three(tmp_path, "plan")
    assert "web: fits on 2 of 4 nodes" in run.output
    assert "evil: fits" not in run.output
    assert "not planned on 1 node (b-misspelt)" in run.output


@pytest.mark.parametrize("told_by", ["api", "nodes"])
def test_the_impact_has_the_others(tmp_path: Path, told_by: str) -> None:
    run = run_on_three(tmp_path, "impact", cpu_manager_impact_from=told_by)
    found = json.loads((tmp_path / "run/impact.json").read_text(encoding="utf-8"))
    assert sorted(row["host"] for row in found["nodes"]) == ["c-good", "d-good"], run.account()
    assert "left out, as they were refused before they were planned: a-hostile, b-misspelt" in found["notes"]


def test_a_rollout_of_which_some_may_fail_goes_on_in_its_own_batches(tmp_path: Path) -> None:
    given = {"cpu_manager_serial": "auto", "cpu_manager_max_fail_percentage": 50}
    run = run_on_three(tmp_path, "rollout", **given)
    told = " ".join(run.output.split())
    assert "Order of 2 nodes by what runs there; batches: 2" in told
    assert "a-hostile: cannot be planned: a-hostile: facts of this host have names" in told
    assert run.output.count("TASK [Make sure that this batch can be changed]") == 2
    assert "would change 2, unchanged 0, left out 0, failed 2 (a-hostile, b-misspelt)" in told


def test_a_proposal_says_who_could_not_be_read_and_why(tmp_path: Path) -> None:
    """A proposal is of all hosts, or of none."""
    given = {"cpu_manager_workload": "latency", "cpu_manager_node_objects": ["labels"]}
    run = run_on_three(tmp_path, "propose", **given, cpu_manager_apply_node_objects=True)
    told = run.last("c-good")["msg"]
    assert "a-hostile: facts of this host have names" in told
    assert "b-misspelt: kubelet_reserved_sytem_cpus is no variable" in told
    assert not (tmp_path / "run/proposal").exists()
