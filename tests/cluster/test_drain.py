# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What draining does on a real API server, with kubernetes.core: the rollout's drain rests on this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Result, Run, ansible_playbook, play

from .api import API
from .control_plane import ControlPlane
from .fixtures import MakeNode
from .kubelet_node import wait_until
from .pods import Pods

DISRUPTION = "Cannot evict pod as it would violate the pod's disruption budget."


class Cluster(Pods):
    """The pods of one test, and drains by kubernetes.core."""

    def __init__(self, control_plane: ControlPlane, namespace: str, directory: Path) -> None:
        super().__init__(control_plane, namespace)
        self.directory = directory

    def running(self, name: str) -> int:
        """Return how many replicas of a Deployment run."""
        pods = self.control_plane.objects("pods", self.option, "--selector=app=" + name)
        return sum(pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"] for pod in pods)

    def is_cordoned(self, node: str) -> bool:
        (found,) = self.control_plane.objects("nodes", "--field-selector=metadata.name=" + node)
        return bool(found["spec"].get("unschedulable", False))

    def drain(self, node: str, **options: Any) -> Result:
        """Return what kubernetes.core says when it has drained a node."""
        options = {"ignore_daemonsets": True, "wait_sleep": 1, **options}
        return self.ask(name=node, delete_options=options).last("controller")

    def ask(self, *arguments: str, **parameters: Any) -> Run:
        """Return a run with kubernetes.core's task about nodes."""
        parameters["kubeconfig"] = str(self.control_plane.admin)
        tasks = play({"name": "Drain", "kubernetes.core.k8s_drain": parameters})
        return ansible_playbook(self.directory, tasks, {"controller": {}}, *arguments)


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Cluster:
    return Cluster(control_plane, namespace, tmp_path)


def test_pods_move_to_another_node(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    cluster.deploy("Deployment", "web", replicas=2)
    make_node("two")
    drained = cluster.drain("one", wait_timeout=60)
    assert drained["result"] == "node one marked unschedulable. 2 Pod(s) deleted from node."
    assert cluster.on("one") == {}
    wait_until(lambda: len(cluster.on("two")) == 2)
    assert cluster.is_cordoned("one")
    again = cluster.drain("one", wait_timeout=60)
    assert (again["outcome"], again["changed"]) == ("ok", False)
    assert cluster.ask(name="one", state="uncordon").last("controller")["changed"]
    assert not cluster.is_cordoned("one")
    # Nothing brings the pods back.
    assert len(cluster.on("two")) == 2


def test_a_budget_that_allows_nothing_ends_it_at_once(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    make_node("two")
    cluster.deploy("Deployment", "web", node="one", replicas=2)
    cluster.allow("web", minAvailable=2)
    before = cluster.on("one")
    drained = cluster.drain("one", wait_timeout=60)
    assert drained["outcome"] == "failed"
    assert drained["msg"].endswith(DISRUPTION)
    assert cluster.on("one") == before
    # It says that nothing changed, and yet the node stays cordoned.
    assert not drained["changed"]
    assert cluster.is_cordoned("one")


def test_a_budget_that_allows_one_at_a_time_needs_another_try(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    cluster.deploy("Deployment", "web", replicas=2)
    make_node("two")
    cluster.allow("web", minAvailable=1)
    first = cluster.drain("one", wait_timeout=60)
    assert first["outcome"] == "failed"
    assert first["msg"].endswith(DISRUPTION)
    assert list(cluster.on("one").values()).count(True) == 1
    cluster.control_plane.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s", cluster.option)
    second = cluster.drain("one", wait_timeout=60)
    assert second["result"] == "node one already marked unschedulable. 1 Pod(s) deleted from node."
    assert cluster.on("one") == {}


def test_the_pods_of_daemon_sets_stay(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    cluster.deploy("DaemonSet", "agent")
    before = cluster.on("one")
    refused = cluster.drain("one", ignore_daemonsets=False)
    assert refused["outcome"] == "failed"
    assert "cannot delete DaemonSet-managed Pods" in refused["msg"]
    # Whoever refuses does not cordon.
    assert not cluster.is_cordoned("one")
    assert cluster.drain("one", wait_timeout=60)["outcome"] == "ok"
    assert cluster.on("one") == before
    assert list(before.values()) == [True]


def test_static_pods_stay(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    (node,) = cluster.control_plane.objects("nodes", "--field-selector=metadata.name=one")
    owner = {"apiVersion": "v1", "kind": "Node", "name": "one", "uid": node["metadata"]["uid"], "controller": True}
    metadata = {
        "name": "static-one",
        "namespace": cluster.namespace,
        "annotations": {"kubernetes.io/config.mirror": "1"},
        "ownerReferences": [owner],
    }
    spec = {"nodeName": "one", "containers": [{"name": "static", "image": "static"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    # The node itself tells of it.
    with API(cluster.control_plane.node_kubeconfig("one")) as api:
        api.create("/api/v1/namespaces/%s/pods" % cluster.namespace, pod)
    assert cluster.drain("one", wait_timeout=60)["outcome"] == "ok"
    assert cluster.on("one") == {"static-one": True}


def test_a_pod_of_nobody_stays_unless_forced(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    cluster.apply("v1", "Pod", "alone", containers=[{"name": "alone", "image": "alone"}])
    cluster.control_plane.wait_for("pod/alone", "Ready", cluster.option)
    refused = cluster.drain("one", wait_timeout=60)
    assert refused["outcome"] == "failed"
    assert "cannot delete Pods not managed by" in refused["msg"]
    assert cluster.on("one") == {"alone": True}
    assert not cluster.is_cordoned("one")
    assert cluster.drain("one", wait_timeout=60, force=True)["outcome"] == "ok"
    assert cluster.on("one") == {}


def test_a_pod_that_takes_its_time_is_told_as_deleted(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    cluster.deploy("Deployment", "slow", stopping=600)
    for options in ({}, {"wait_timeout": 2}):
        drained = cluster.drain("one", **options)
        # Whoever needs the node empty has to look: the pod is there, with its CPUs.
        assert drained["outcome"] == "ok"
        assert drained["result"].endswith("1 Pod(s) deleted from node.")
        assert list(cluster.on("one").values()) == [False]
        late = "timeout reached while pods were still running."
        assert drained.get("warnings", []) == ([late] if options else [])


def test_a_kubelet_that_is_away_keeps_its_pods(cluster: Cluster, make_node: MakeNode) -> None:
    agent = make_node("one")
    cluster.deploy("Deployment", "web")
    agent.stop()
    assert cluster.drain("one", wait_timeout=2)["outcome"] == "ok"
    assert list(cluster.on("one").values()) == [False]


def test_a_node_that_was_cordoned_before(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    cluster.deploy("Deployment", "web")
    cluster.control_plane.kubectl("cordon", "one")
    drained = cluster.drain("one", wait_timeout=60)
    # All that tells who cordoned it; afterwards nobody could know.
    assert drained["result"] == "node one already marked unschedulable. 1 Pod(s) deleted from node."


def test_check_mode_only_skips_it(cluster: Cluster, make_node: MakeNode) -> None:
    make_node("one")
    cluster.deploy("Deployment", "web")
    before = cluster.on("one")
    checked = cluster.ask("--check", name="one")
    assert checked.status == 0
    # No result: what would be evicted, or not, has to be found in another way.
    assert checked.results == {"controller": []}
    assert cluster.on("one") == before
    assert not cluster.is_cordoned("one")
