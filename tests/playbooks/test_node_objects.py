# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook propose applies NodeResourceTopology objects. tests/cluster has a real API server, for labels only."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from ansible_collections.kubenode.cpu_manager.tests.machines.api_server import APIServer, serve

from .conftest import CopyOf, Result, Run, ansible_playbook

PROPOSE = "kubenode.cpu_manager.propose"
NODES = ("one", "two")
COLLECTION = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"


def propose(tmp_path: Path, copy_of: CopyOf, api: APIServer, *arguments: str) -> Run:
    roots = {name: tmp_path / "nodes" / name for name in NODES}
    hosts = {
        name: {
            "kubelet_node_root": str(root if root.exists() else copy_of("epyc", name)),
            "kubelet_node_name": name,
            "cpu_manager_workload": "latency",
        }
        for name, root in roots.items()
    }
    variables = {
        "cpu_manager_node_objects": ["labels", "node_resource_topologies"],
        "cpu_manager_apply_node_objects": True,
        "kubelet_kubeconfig": str(api.kubeconfig(tmp_path / "kubeconfig")),
    }
    environment = {"TMPDIR": str(tmp_path)}  # a client keeps there which resources a server has
    return ansible_playbook(
        tmp_path / "run", PROPOSE, hosts, "-e", json.dumps(variables), *arguments, environment=environment
    )


def applied(run: Run) -> Result:
    (result,) = (found for name in NODES for found in run.results[name] if "Apply the objects" in found["task"])
    return result


def topologies_in(api: APIServer) -> dict[str, object]:
    return {path: found for path, found in api.objects.items() if path.startswith(COLLECTION)}


def test_topologies_are_applied_once(tmp_path: Path, copy_of: CopyOf) -> None:
    with serve(*({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in NODES)) as api:
        check = propose(tmp_path, copy_of, api, "--check")
        assert check.status == 0, check.account()
        assert applied(check)["changed"]
        assert api.changes == []

        run = propose(tmp_path, copy_of, api)
        assert run.status == 0, run.account()
        assert applied(run)["changed"]
        # What was written for the API server is what is there.
        files = sorted((tmp_path / "run" / "proposal").glob("*topolog*.yml"))
        written = [document for file in files for document in yaml.safe_load_all(file.read_text("utf-8"))]
        assert topologies_in(api) == {"%s/%s" % (COLLECTION, found["metadata"]["name"]): found for found in written}
        assert {path.rpartition("/")[2] for path in topologies_in(api)} == set(NODES)

        again = propose(tmp_path, copy_of, api)
        assert again.status == 0, again.account()
        assert not applied(again)["changed"]
