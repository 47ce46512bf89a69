# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The impact of a change where no API server can be asked; tests/cluster/test_impact.py has it where one can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import save_node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import write_node

from .conftest import ansible_playbook

IMPACT = "kubenode.cpu_manager.impact"
WANTED = {"kubelet_cpu_manager_policy": "static", "kubelet_cpu_manager_policy_options": {"full-pcpus-only": True}}
SMT = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"


def archive_of(directory: Path, cpus: str) -> Path:
    """Return a saved node of eight CPUs, whose database has these for itself."""
    root = directory / "node"
    write_node(root, V2)
    state = State(CPUSet.parse("0-7") - CPUSet.parse(cpus), {"uid-db": {"server": CPUSet.parse(cpus)}})
    (root / "var/lib/kubelet/cpu_manager_state").write_bytes(write_checkpoint("static", state))
    archive = directory / "node.tar.gz"
    archive.write_bytes(save_node(Node(Tree(str(root))), directory.name, False)[0])
    return archive


def test_saved_nodes_tell_of_their_pods(tmp_path: Path) -> None:
    """A database of three CPUs would be refused with whole cores. Nothing is asked of any API server."""
    nodes = {"odd": "1-3", "even": "1,5", "quiet": "1-3"}
    hosts: dict[str, dict[str, Any]] = {
        name: {"kubelet_node_root": str(archive_of(tmp_path / name, cpus)), **(WANTED if name != "quiet" else {})}
        for name, cpus in nodes.items()
    }
    given = {"cpu_manager_impact_from": "nodes"}
    run = ansible_playbook(tmp_path / "run", IMPACT, hosts, "-e", json.dumps(given))
    assert run.status == 0, run.account()
    found = json.loads((tmp_path / "run/impact.json").read_text(encoding="utf-8"))
    assert (found["told_by"], found["changing"]) == ("nodes", 2)
    assert {(row["workload"], row["fate"]): row["pods"][row["fate"]] for row in found["workloads"]} == {
        ("Pod shop/db-0", "refused"): 1,
        ("Pod shop/web-1", "stays"): 3,
    }
    (database,) = [row for row in found["workloads"] if row["fate"] == "refused"]
    assert (database["nodes"], database["message"], database["pods"]["stays"]) == (["odd"], SMT, 2)
    assert [(row["host"], row["changes"], row["refused"]) for row in found["nodes"]] == [
        ("odd", True, 1),
        ("even", True, 0),
        ("quiet", False, 0),
    ]
    told = " ".join(run.output.split())
    assert "Pod shop/db-0: 1 of 3 pods refused" in told
    assert "the same node refuses it when it is empty, too" in told
    assert "note: told by the nodes alone: not known are who makes the pods again" in told
    assert "how much memory Guaranteed pods ask for is not known, and not counted: odd, even, quiet" in told

    for gate, said in (
        ("refused", "nothing was changed, as the change would hit 1 workload"),
        ("homeless", "cpu_manager_impact_fail_on: is homeless, and nodes alone do not tell"),
    ):
        more = json.dumps({**given, "cpu_manager_impact_fail_on": gate})
        stopped = ansible_playbook(tmp_path / gate, IMPACT, {"odd": hosts["odd"]}, "-e", more)
        assert stopped.status != 0
        assert said in " ".join(stopped.output.split())
