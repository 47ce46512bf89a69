# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The benchmark as pods where pods do not run: the modules of kubernetes.core are replaced by ones that keep files.

tests/cluster has the same role with an API server.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run, ansible_playbook
from .stand_in_collection import write_collections

PLAYBOOK = "kubenode.cpu_manager.isolation_benchmark"
LABEL = "kubenode-isolation-benchmark"
# {"statuses": {node: {container: status}}, "pods": [pod]} is in the file API; what is made and deleted goes to files
# beside it, as several hosts run at once.
MODULE = """
import json, os, uuid
from ansible.module_utils.basic import AnsibleModule

PLACE, NAME = %r, %r

def pods():
    files = sorted(name for name in os.listdir(PLACE) if name.endswith(".pod"))
    return [json.load(open(os.path.join(PLACE, name))) for name in files]

def main():
    lists = dict.fromkeys(("field_selectors", "label_selectors"), {"type": "list", "default": []})
    texts = dict.fromkeys(("kind", "name", "namespace", "state", "kubeconfig", "context"), {"type": "str"})
    flags = dict.fromkeys(("wait", "delete_all"), {"type": "bool"})
    module = AnsibleModule({"definition": {"type": "raw"}, **lists, **texts, **flags})
    given = module.params
    api = json.load(open(os.path.join(PLACE, "API")))
    if NAME == "k8s_log":
        module.exit_json(log='{"size": 5}')
    if given["kind"] == "Node":
        about = {"capacity": {"cpu": "2"}, "nodeInfo": {}}
        module.exit_json(resources=[{"metadata": {"name": given["name"]}, "status": about}])
    if given["state"] == "absent" and given["definition"] is not None:
        for pod in given["definition"]:
            os.unlink(os.path.join(PLACE, pod["metadata"]["name"] + ".pod"))
        module.exit_json(changed=True, result={})
    if given["definition"]:
        pod = given["definition"]
        pod["metadata"]["name"] = pod["metadata"]["generateName"] + uuid.uuid4().hex[:8]
        pod["status"] = api["statuses"][pod["spec"]["nodeName"]][pod["spec"]["containers"][0]["name"]]
        for ending in (".pod", ".made"):
            json.dump(pod, open(os.path.join(PLACE, pod["metadata"]["name"] + ending), "w"))
        module.exit_json(changed=True, result=pod)
    found = []
    for pod in pods():
        labels = ["%%s=%%s" %% pair for pair in pod["metadata"]["labels"].items()]
        if given["name"] in (None, pod["metadata"]["name"]) and not set(given["label_selectors"]) - set(labels):
            if not set(given["field_selectors"]) - {"spec.nodeName=" + pod["spec"]["nodeName"]}:
                found.append(pod)
    if given["state"] == "absent":
        for pod in found:
            os.unlink(os.path.join(PLACE, pod["metadata"]["name"] + ".pod"))
    module.exit_json(resources=found)

main()
"""


class Cluster:
    """The collections with kubernetes.core in its place, and the pods that are there."""

    def __init__(self, directory: Path) -> None:
        self.place = directory / "api"
        self.place.mkdir()
        self.collections = directory / "collections"
        names = ("k8s", "k8s_info", "k8s_log")
        write_collections(self.collections, {name: MODULE % (str(self.place), name) for name in names})

    def put(self, name: str, node: str, phase: str, age: timedelta, label: str = LABEL) -> None:
        made = (datetime.now(timezone.utc) - age).strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"name": name, "labels": {"app.kubernetes.io/name": label}, "creationTimestamp": made}
        pod = {"metadata": about, "spec": {"nodeName": node}, "status": {"phase": phase}}
        (self.place / (name + ".pod")).write_text(json.dumps(pod), encoding="utf-8")

    def names(self) -> set[str]:
        return {path.stem for path in self.place.glob("*.pod")}

    def made(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text("utf-8")) for path in self.place.glob("*.made")]

    def run(self, directory: Path, statuses: dict[str, dict[str, Any]], **variables: Any) -> Run:
        (self.place / "API").write_text(json.dumps({"statuses": statuses}), encoding="utf-8")
        common = {
            "isolation_benchmark_as_pods": True,
            "isolation_benchmark_image": "registry.example/python:3",
            "isolation_benchmark_experiments": ["aggressor"],
            "isolation_benchmark_runs": 1,
            "cpu_manager_become": False,
            **variables,
        }
        return ansible_playbook(directory, PLAYBOOK, dict.fromkeys(statuses, common), collections=self.collections)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


ENDED, RUNNING = {"phase": "Succeeded"}, {"phase": "Running"}
CALIBRATED = {"compute": ENDED, "memory": ENDED}


def failed(reason: str, message: str = "") -> dict[str, str]:
    return {"phase": "Failed", "reason": reason, "message": message}


def test_a_pod_that_does_not_run_is_named_with_its_reason(cluster: Cluster, tmp_path: Path) -> None:
    alignment = failed("SMTAlignmentError", "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2")
    no_start = {"reason": "StartError", "message": 'exec: "python3": executable file not found'}
    run = cluster.run(
        tmp_path / "run",
        {
            "measured": {"compute": alignment},
            "beside": {**CALIBRATED, "aggressor": failed("OutOfcpu", "Node didn't have enough resource: cpu")},
            "program": {"compute": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": no_start}}]}},
            "late": {"compute": failed("DeadlineExceeded", "Pod was active on the node longer than the deadline")},
        },
        isolation_benchmark_seconds=5000,
    )
    assert run.status == 2, run.output
    said = {
        host: next(result["msg"] for result in results if result["outcome"] == "failed")
        for host, results in run.results.items()
        if host != "localhost"
    }
    assert "SMTAlignmentError: SMT Alignment Error: requested 1 cpus not" in said["measured"]
    assert said["measured"].startswith("measured: the pod kubenode-isolation-benchmark-")
    assert "OutOfcpu: Node didn't have enough resource: cpu" in said["beside"]
    assert 'StartError: exec: "python3": executable file not found' in said["program"]
    assert said["late"].startswith("isolation_benchmark_seconds, 5000, are over")
    assert cluster.names() == set()
    # More seconds are more for each pod, too.
    assert all(4000 < pod["spec"]["activeDeadlineSeconds"] <= 5000 for pod in cluster.made())


def test_ended_pods_of_former_runs_are_deleted(cluster: Cluster, tmp_path: Path) -> None:
    old, new = timedelta(days=2), timedelta(hours=20)
    cluster.put("old-succeeded", "node", "Succeeded", old)
    cluster.put("old-failed", "node", "Failed", old)
    cluster.put("new-failed", "node", "Failed", new)
    cluster.put("old-running", "node", "Running", old)
    cluster.put("elsewhere", "other", "Failed", old)
    cluster.put("foreign", "node", "Failed", old, label="shop")
    run = cluster.run(tmp_path / "run", {"node": {"compute": failed("X")}}, isolation_benchmark_allow_pods=True)
    assert run.status == 2, run.output
    assert cluster.names() == {"new-failed", "old-running", "elsewhere", "foreign"}
    # However many they are.
    deleted = [result for result in run.results["node"] if result["task"].endswith("Delete those that have ended")]
    assert [result["outcome"] for result in deleted] == ["ok"]
