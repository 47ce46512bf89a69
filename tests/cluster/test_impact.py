# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the playbooks say becomes of live pods, and what their kubelets then do: the same, pod by pod."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .api import Object
from .control_plane import ControlPlane
from .fleet import ROLLOUT, Fleet
from .kubelet_node import CONFIG, KubeletNode, wait_until
from .pods import Pods

IMPACT = "kubenode.cpu_manager.impact"
WHOLE_CORES = {"full-pcpus-only": "true"}


def written(path: Path) -> dict[str, dict[str, Any]]:
    """Return {workload: its row} of the file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return {row["workload"]: row for row in found["workloads"]}


def failed(pods: Pods, control_plane: ControlPlane, app: str) -> list[Object]:
    """Return the pods of a Deployment that a kubelet has refused."""
    selector = "--selector=app=" + app
    found = control_plane.objects("pods", pods.option, selector, "--field-selector=status.phase=Failed")
    return [pod["status"] for pod in found]


def test_a_deployment_of_three_cpus_is_found_before_it_fails(
    fleet: Fleet, control_plane: ControlPlane, pods: Pods, tmp_path: Path
) -> None:
    node = fleet.add("worker")
    before = node.read(CONFIG)
    pods.deploy("Deployment", "three", cpu="3", replicas=1)
    pods.deploy("Deployment", "two", cpu="2", replicas=1)
    pods.deploy("Deployment", "web", replicas=1)
    three, two, web = ("Deployment %s/%s" % (pods.namespace, name) for name in ("three", "two", "web"))
    wanted: dict[str, Any] = {
        "kubelet_cpu_manager_policy_options": WHOLE_CORES,
        "cpu_manager_check_capacity": False,
    }
    file = tmp_path / "said.json"

    run = fleet.run(IMPACT, "--check", **wanted, cpu_manager_impact_file=str(file))
    assert run.status == 0, run.account()
    said = written(file)
    (foretold,) = json.loads(file.read_text(encoding="utf-8"))["nodes"]
    assert {name: row["fate"] for name, row in said.items()} == {three: "homeless", two: "gains", web: "stays"}
    assert said[three]["cure"] == "ask for 4 CPUs instead of 3; or go without the option full-pcpus-only"
    assert "would never come back" in run.output

    gate = {**wanted, "cpu_manager_impact_fail_on": "homeless"}
    run = fleet.run(ROLLOUT, **gate)
    assert run.status != 0
    assert three + ": 1 of 1 pod refused" in run.output
    assert (node.read(CONFIG), fleet.is_open("worker"), fleet.policy("worker")) == (before, True, "none")
    assert failed(pods, control_plane, "three") == []

    waiver = {"workload": three, "reason": "its owner knows", "until": "2999-12-31"}
    run = fleet.run(ROLLOUT, **gate, cpu_manager_impact_waivers=[waiver])
    assert run.status == 0, run.account()
    wait_until(lambda: bool(failed(pods, control_plane, "three")))
    refused = {(status["reason"], status["message"]) for status in failed(pods, control_plane, "three")}
    control_plane.kubectl("delete", "deployment", "three", pods.option)
    assert refused == {(said[three]["reason"], said[three]["message"])}
    # The others came back, as it was said.
    for name in ("two", "web"):
        control_plane.kubectl("rollout", "status", "deployment/" + name, "--timeout=60s", pods.option)
    wait_until(lambda: len(node.entries()) == 1)
    ((cpus,),) = (own.values() for own in node.entries().values())
    checkpoint = node.checkpoint()
    assert checkpoint is not None
    assert foretold["exclusive"] == len(CPUSet.parse(cpus)) == 2
    assert foretold["shared"] == len(checkpoint.state().default_cpu_set)

    # What is as wanted changes nobody.
    run = fleet.run(IMPACT, **wanted, cpu_manager_impact_file=str(file))
    assert run.status == 0, run.account()
    assert {row["fate"] for row in written(file).values()} == {"stays"}


def test_the_real_kubelet_refuses_whom_we_say(
    real_kubelet: Path, control_plane: ControlPlane, pods: Pods, fleet: Fleet, tmp_path: Path
) -> None:
    """Five CPUs, of two NUMA nodes with four each: no option of the static policy is set."""
    name = "real-%d" % os.getpid()
    static = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}
    file = tmp_path / "said.json"
    workload = "Deployment %s/five" % pods.namespace
    with KubeletNode(tmp_path / name, "2s1n4c", static, control_plane=control_plane, real=real_kubelet) as node:
        node.start()
        control_plane.wait_for("node/" + name, "Ready")
        fleet.nodes[name] = node
        labels = {"app": "five"}
        container = {"name": "main", "image": "main", "resources": {"limits": {"cpu": "5", "memory": "1Mi"}}}
        spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": name}}
        template = {"metadata": {"labels": labels}, "spec": spec}
        pods.apply("apps/v1", "Deployment", "five", replicas=1, selector={"matchLabels": labels}, template=template)
        wait_until(lambda: bool(pods.on(name)))
        wait_until(lambda: bool(node.entries()))

        run = fleet.run(
            IMPACT,
            kubelet_topology_manager_policy="single-numa-node",
            kubelet_target_version=kubernetes.version(),
            cpu_manager_impact_file=str(file),
        )
        assert run.status == 0, run.account()
        said = written(file)[workload]
        assert (said["fate"], said["reason"]) == ("homeless", "TopologyAffinityError")
        assert said["cure"] == "ask for 4 CPUs instead of 5; or set topologyManagerPolicy: best-effort"
        assert failed(pods, control_plane, "five") == []

        node.configure({**node.configuration(), "topologyManagerPolicy": "single-numa-node"})
        node.restart()
        wait_until(lambda: bool(failed(pods, control_plane, "five")))
        refused = failed(pods, control_plane, "five")
        control_plane.kubectl("delete", "deployment", "five", pods.option)
        assert {status["reason"] for status in refused} == {said["reason"]}
        assert all(said["message"] in status["message"] for status in refused)
