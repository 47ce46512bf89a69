# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rollout whose drain cannot be done: a budget, pods that do not go, and a cluster that does not answer."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count

from .control_plane import ControlPlane
from .fleet import JOURNAL, ROLLOUT, Fleet
from .kubelet_node import CHECKPOINT, CONFIG, wait_until
from .pods import Pods
from .proxy import Proxy
from .rollouts import deploy, failure, make_static, names_of, wait_for_drain


def test_a_budget_that_never_allows(fleet: Fleet, pods: Pods, count: Count) -> None:
    node = fleet.add("worker")
    deploy(pods, replicas=1, available=1)
    before = node.log()
    message = failure(fleet.run(ROLLOUT, kubelet_drain_timeout=3), "worker")
    assert "Cordon and drain the node: " in message
    assert message.endswith("; the node is as it was")
    # The kubelet was not touched.
    assert node.log() == before
    assert (node.read(JOURNAL), fleet.is_open("worker"), fleet.policy("worker")) == (None, True, "none")
    pods.control_plane.kubectl("delete", "pdb", "web", pods.option)
    assert fleet.run(ROLLOUT).status == 0
    assert (fleet.policy("worker"), fleet.is_open("worker")) == ("static", True)
    count("budgets that never allow", 1)


def test_a_pod_that_does_not_go_keeps_its_cpus(fleet: Fleet, pods: Pods) -> None:
    """A drain that ran out of time has emptied nothing."""
    node = make_static(fleet, "worker")
    # Another of its size has no room beside it.
    pods.deploy("Deployment", "slow", cpu="4", stopping=600)
    (name,) = pods.on("worker")
    wait_until(lambda: bool(node.entries()))
    before = {path: node.read(path) for path in (CONFIG, CHECKPOINT)}, node.entries(), node.log()
    run = fleet.run(
        ROLLOUT, kubelet_cpu_manager_policy="none", kubelet_drain_timeout=6, cpu_manager_check_capacity=False
    )
    message = failure(run, "worker")
    text = "%s/%s: its containers have not ended, for which it has 600 s, its grace period"
    assert text % (pods.namespace, name) in message
    assert "kubelet_drain_timeout" in message
    assert message.endswith("; the node is as it was")
    assert ({path: node.read(path) for path in (CONFIG, CHECKPOINT)}, node.entries(), node.log()) == before
    assert (node.read(JOURNAL), fleet.is_open("worker")) == (None, True)


def test_cpus_that_others_asked_for_are_not_free(fleet: Fleet, pods: Pods) -> None:
    """The shared pool of the other node would be large enough, and most of it is asked for."""
    make_static(fleet, "one")
    pods.deploy("Deployment", "db", cpu="3")
    make_static(fleet, "two")
    pods.deploy("Deployment", "web", node="two", cpu="4500m")
    (name,) = pods.on("one")
    before = [node.log() for node in fleet.nodes.values()]
    run = fleet.run(ROLLOUT, kubelet_cpu_manager_policy="none")
    message = failure(run, "one")
    assert "%s/%s: 3 CPUs, 3 of them exclusive" % (pods.namespace, name) in message
    assert "cpu_manager_check_capacity" in message
    assert [node.log() for node in fleet.nodes.values()] == before
    assert (pods.on("one"), fleet.is_open("one")) == ({name: True}, True)


def test_a_pod_that_a_finalizer_keeps(fleet: Fleet, pods: Pods) -> None:
    fleet.add("worker")
    pods.deploy("Deployment", "web")
    (name,) = pods.on("worker")
    finalizers = '{"metadata": {"finalizers": ["example.com/keeps-it"]}}'
    pods.control_plane.kubectl("patch", "pod", name, "--type=merge", "--patch=" + finalizers, pods.option)
    try:
        message = failure(fleet.run(ROLLOUT, kubelet_drain_timeout=6), "worker")
    finally:
        nothing = '{"metadata": {"finalizers": null}}'
        pods.control_plane.kubectl("patch", "pod", name, "--type=merge", "--patch=" + nothing, pods.option)
    assert "%s/%s: " % (pods.namespace, name) in message
    assert message.endswith("; the node is as it was")
    assert (fleet.policy("worker"), fleet.is_open("worker")) == ("none", True)


def test_a_pod_that_nothing_makes_again_is_not_touched(fleet: Fleet, pods: Pods) -> None:
    """It would be lost: that is known before the node is cordoned, also in check mode."""
    node = fleet.add("worker")
    pods.run("alone", "1", "worker")
    (before,) = pods.control_plane.objects("nodes", "--field-selector=metadata.name=worker")
    for arguments in (["--check"], []):
        run = fleet.run(ROLLOUT, *arguments, cpu_manager_check_capacity=False)
        message = failure(run, "worker")
        assert "%s/alone: no controller would make it again" % pods.namespace in message
        assert "kubelet_drain_force" in message
        assert "Cordon and drain the node" not in names_of(run, "worker")
    assert pods.on("worker") == {"alone": True}
    (after,) = pods.control_plane.objects("nodes", "--field-selector=metadata.name=worker")
    assert after["spec"] == before["spec"]
    assert node.read(JOURNAL) is None
    forced = fleet.run(ROLLOUT, kubelet_drain_force=True)
    assert forced.status == 0, forced.account()
    assert pods.on("worker") == {}


def kubeconfig_to(port: int, control_plane: ControlPlane, directory: Path) -> str:
    """Return the administrator's, for another port."""
    path = directory / ("port-%d" % port)
    text = control_plane.admin.read_text(encoding="utf-8")
    path.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:%d" % port, text), encoding="utf-8")
    return str(path)


def test_a_cluster_that_does_not_answer(fleet: Fleet, control_plane: ControlPlane, count: Count) -> None:
    node = fleet.add("worker")
    before = node.log()
    nowhere = kubeconfig_to(1, control_plane, fleet.directory)
    # A busy machine takes seconds to learn that nobody listens.
    message = failure(fleet.run(ROLLOUT, kubelet_kubeconfig=nowhere, kubelet_api_timeout=15), "worker")
    assert re.search("Read the nodes of the cluster: .*Connection refused", message)
    assert message.endswith("; the nodes worker were not touched")
    run = fleet.run(ROLLOUT, kubelet_kubeconfig=nowhere, kubelet_api_timeout=3, cpu_manager_check_capacity=False)
    message = failure(run, "worker")
    assert "Read the node from the cluster: " in message
    assert message.endswith("; the node is as it was")
    assert node.log() == before
    assert node.read(JOURNAL) is None
    count("clusters that do not answer", 1)


def test_a_cluster_that_falls_silent_during_a_drain(
    fleet: Fleet, control_plane: ControlPlane, pods: Pods, count: Count
) -> None:
    node = fleet.add("worker")
    deploy(pods, replicas=1, available=0, stopping=30)
    before = {path: node.read(path) for path in (CONFIG, CHECKPOINT)}, node.log()
    port = int(re.findall(r"127\.0\.0\.1:(\d+)", control_plane.admin.read_text(encoding="utf-8"))[0])

    with Proxy(port) as line, ThreadPoolExecutor(1) as pool:
        variables = {
            "kubelet_kubeconfig": kubeconfig_to(line.port, control_plane, fleet.directory),
            "kubelet_drain_timeout": 20,
            "kubelet_api_timeout": 15,
            "kubelet_verify_timeout": 4,
        }
        run = pool.submit(fleet.run, ROLLOUT, **variables)
        wait_for_drain(run, pods, "worker")
        line.fall_silent()
        message = failure(run.result(), "worker")
    assert re.search("static pods and ended ones are left: .*Timed out", message)
    # Nothing but the cluster was touched, and nobody could tell it to let pods in again.
    assert "the change could not be taken back as a whole, run the role again: Wait until the node is ready" in message
    assert ({path: node.read(path) for path in (CONFIG, CHECKPOINT)}, node.log()) == before
    assert not fleet.is_open("worker")
    assert fleet.run(ROLLOUT).status == 0
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
    count("clusters that do not answer", 1)
