# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rollout on nodes of a real cluster: drained, changed, proved and let in again, or taken back as a whole."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run

from .control_plane import ControlPlane
from .fleet import JOURNAL, LAST, ROLLOUT, Fleet
from .kubelet.faults import DIES, REFUSES, Fault
from .kubelet_node import CHECKPOINT, CONFIG, KubeletNode, saved, wait_until
from .pods import Pods
from .proxy import Proxy

ROLLBACK = "kubenode.cpu_manager.rollback"
REPAIR = "kubenode.cpu_manager.repair"
STATIC = {"cpuManagerPolicy": "static"}


def deploy(pods: Pods, replicas: int, available: int, stopping: int = 0) -> None:
    """Run pods that take so many seconds to stop, and say how many of them are always to be there."""
    pods.deploy("Deployment", "web", replicas=replicas, stopping=stopping)
    pods.allow("web", minAvailable=available)


def names_of(run: Run, host: str) -> list[str]:
    return [result["task"].rpartition(" : ")[2] for result in run.results[host] if result["changed"]]


def failure(run: Run, host: str) -> str:
    assert run.status != 0
    assert run.last(host)["outcome"] == "failed", run.output
    message: str = run.last(host)["msg"]
    return message


def test_a_fleet_is_rolled_out_and_back(fleet: Fleet, control_plane: ControlPlane, pods: Pods) -> None:
    for name in ("one", "two"):
        fleet.add(name)
    before = {name: node.read(CONFIG) for name, node in fleet.nodes.items()}
    control_plane.kubectl("cordon", "two")
    control_plane.kubectl("uncordon", "two")
    deploy(pods, replicas=2, available=1)
    # One was cordoned by somebody else, and stays so.
    control_plane.kubectl("cordon", "one")

    checked = fleet.run(ROLLOUT, "--check", "--diff")
    assert checked.status == 0, checked.account()
    assert "+cpuManagerPolicy: static" in checked.output
    assert {name: node.read(CONFIG) for name, node in fleet.nodes.items()} == before
    assert fleet.is_open("two")

    control_plane.kubectl("uncordon", "one")
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.account()
    for name, node in fleet.nodes.items():
        steps = names_of(run, name)
        assert steps.index("Cordon and drain the node") < steps.index("Stop the kubelet")
        assert steps[-2:] == ["Let pods come back to the node", "Write down that the change is done"]
        assert (fleet.policy(name), fleet.is_open(name), node.read(JOURNAL)) == ("static", True, None)
    control_plane.kubectl("rollout", "status", "deployment/web", "--timeout=60s", pods.option)

    # Nobody is drained a second time.
    settled = [pods.on(name) for name in fleet.nodes]
    again = fleet.run(ROLLOUT)
    assert again.status == 0, again.account()
    assert [names_of(again, name) for name in fleet.nodes] == [[], []]
    assert [pods.on(name) for name in fleet.nodes] == settled

    back = fleet.run(ROLLBACK)
    assert back.status == 0, back.account()
    assert {name: node.read(CONFIG) for name, node in fleet.nodes.items()} == before
    assert [fleet.policy(name) for name in fleet.nodes] == ["none", "none"]
    assert [fleet.is_open(name) for name in fleet.nodes] == [True, True]

    # There is nothing more to go back to, least of all the settings that were just taken back.
    again = fleet.run(ROLLBACK)
    assert again.status == 0, again.account()
    assert [names_of(again, name) for name in fleet.nodes] == [[], []]
    assert [fleet.policy(name) for name in fleet.nodes] == ["none", "none"]


def taints_of(control_plane: ControlPlane, name: str) -> set[str]:
    (node,) = control_plane.objects("nodes", "--field-selector=metadata.name=" + name)
    return {taint["key"] for taint in node["spec"].get("taints", [])}


def test_taints_of_others(fleet: Fleet, control_plane: ControlPlane, pods: Pods) -> None:
    """A node may have some before, and get one while it is drained."""
    fleet.add("worker")
    deploy(pods, replicas=1, available=0, stopping=15)
    control_plane.kubectl("taint", "nodes", "worker", "gpu=yes:PreferNoSchedule", "database=yes:PreferNoSchedule")

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(fleet.run, ROLLOUT)
        wait_until(lambda: not all(pods.on("worker").values()))
        control_plane.kubectl("taint", "nodes", "worker", "candidate=yes:PreferNoSchedule")
    assert run.result().status == 0, run.result().account()
    assert "candidate" in run.result().output
    assert taints_of(control_plane, "worker") == {"gpu", "database", "candidate"}
    assert (fleet.policy("worker"), fleet.is_open("worker")) == ("static", True)


def test_a_rollback_goes_back_one_rollout(alone: Fleet) -> None:
    for name in ("a", "b", "c"):
        alone.add(name)
    before, after = ("none", "500ms"), ("static", "500ms")

    def settings() -> list[tuple[str, str]]:
        found = [node.configuration() for node in alone.nodes.values()]
        return [(values["cpuManagerPolicy"], values["cpuManagerReconcilePeriod"]) for values in found]

    # One that ended half-way: b and c never changed.
    assert alone.run(ROLLOUT, "--limit", "a").status == 0
    rollout = json.loads(alone.nodes["a"].read(LAST) or "")["facts"]["rollout"]
    back = alone.run(ROLLBACK)
    assert back.status == 0, back.account()
    assert "Going back to what was before the rollout of %s (UTC)." % rollout in back.output
    assert settings() == [before, before, before]
    assert [names_of(back, name) for name in ("b", "c")] == [[], []]

    assert alone.run(ROLLOUT, "--limit", "a,b").status == 0
    assert settings() == [after, after, before]
    # A repair is no rollout, and one more rollout reached a alone.
    alone.nodes["b"].stop()
    alone.nodes["b"].write(CHECKPOINT, "{}")
    alone.nodes["b"].start()
    repair = alone.run(REPAIR)
    assert repair.status == 0, repair.account()
    assert "Reset or repair the checkpoint if the kubelet would refuse it" in names_of(repair, "b")
    assert alone.run(ROLLOUT, "--limit", "a", kubelet_cpu_manager_reconcile_period="1s").status == 0
    assert settings() == [("static", "1s"), after, before]
    assert alone.run(ROLLBACK).status == 0
    assert settings() == [after, after, before]
    # Of the rollout before, only b still knows.
    assert alone.run(ROLLBACK).status == 0
    assert settings() == [after, before, before]
    # And of a, what was before is no longer known.
    nothing = alone.run(ROLLBACK)
    assert "No node has had a rollout that it could go back from." in nothing.output
    assert settings() == [after, before, before]


def test_a_rollout_ends_where_a_node_is_lost(alone: Fleet) -> None:
    for name in ("a", "b", "c", "d"):
        alone.add(name)
    lost = {
        "ansible_remote_tmp": "{{ '/proc/none' if kubelet_plan is defined and inventory_hostname == 'b' else '/tmp' }}"
    }
    run = alone.run(ROLLOUT, "-e", json.dumps({"cpu_manager_serial": [2]}), **lost)
    assert run.status != 0
    assert run.last("b")["outcome"] == "unreachable"
    assert [alone.policy(name) for name in alone.nodes] == ["static", "none", "none", "none"]
    assert "b" in failure(run, "c")
    assert "was lost" in failure(run, "c")


@pytest.mark.parametrize("hosts", ["a,b", ["a", "b"], "a:b"])
def test_the_canary_comes_first(alone: Fleet, hosts: object) -> None:
    for name in ("a", "b"):
        alone.add(name)
    alone.nodes["b"].fail(Fault(REFUSES, STATIC))
    run = alone.run(ROLLOUT, "-e", json.dumps({"cpu_manager_hosts": hosts, "cpu_manager_canaries": "b"}))
    assert failure(run, "b").endswith("; the node is as it was")
    assert [alone.policy(name) for name in alone.nodes] == ["none", "none"]


@pytest.mark.parametrize(
    ("playbook", "given"),
    [
        (ROLLOUT, {"cpu_manager_canaries": "b"}),
        (ROLLOUT, {"cpu_manager_serial": 2}),
        (ROLLBACK, {"cpu_manager_hosts": "b"}),
        (REPAIR, {"cpu_manager_max_fail_percentage": 50}),
    ],
)
def test_what_ansible_does_not_take_from_the_inventory(alone: Fleet, playbook: str, given: dict[str, object]) -> None:
    for name in ("a", "b"):
        alone.add(name)
    message = failure(alone.run(playbook, **given), "a")
    assert "--extra-vars" in message
    assert str(*given.values()) in message
    assert [alone.policy(name) for name in alone.nodes] == ["none", "none"]


def test_a_node_that_fails_ends_the_rollout_after_its_batch(alone: Fleet) -> None:
    for name in ("a", "b", "c", "d"):
        alone.add(name)
    alone.nodes["b"].fail(Fault(REFUSES, STATIC))
    run = alone.run(ROLLOUT, "-e", json.dumps({"cpu_manager_serial": [3, 1]}))
    assert failure(run, "b").endswith("; the node is as it was")
    assert [alone.policy(name) for name in alone.nodes] == ["static", "none", "static", "none"], run.account()
    assert [node.read(JOURNAL) for node in alone.nodes.values()] == [None] * 4


def test_a_rollback_of_a_rollout_that_was_interrupted(alone: Fleet) -> None:
    """What it had begun is taken back, and the rollout before it stays."""
    for name in ("a", "b"):
        alone.add(name)
    assert alone.run(ROLLOUT).status == 0
    node = alone.nodes["a"]
    node.write(JOURNAL, json.dumps({"format": 1, "phase": "stopping", "facts": {"rollout": "9"}, "files": {}}))
    back = alone.run(ROLLBACK)
    assert back.status == 0, back.account()
    assert [alone.policy(name) for name in alone.nodes] == ["static", "static"]
    assert node.read(JOURNAL) is None
    assert alone.run(ROLLBACK).status == 0
    assert [alone.policy(name) for name in alone.nodes] == ["none", "none"]


def test_a_node_that_is_down_from_the_start(alone: Fleet) -> None:
    for name in ("a", "b", "c"):
        alone.add(name)
    down = {"ansible_remote_tmp": "{{ '/proc/none' if inventory_hostname == 'b' else '/tmp' }}"}
    run = alone.run(ROLLOUT, **down)
    assert run.last("b")["outcome"] == "unreachable"
    assert [alone.policy(name) for name in alone.nodes] == ["static", "none", "static"], run.account()


def test_a_node_that_was_mended_is_not_taken_back(alone: Fleet) -> None:
    """Somebody has brought a node back into service whose change was interrupted, and pods have come since."""
    node = alone.add("worker")
    assert alone.run(ROLLOUT).status == 0
    node.stop()
    node.write(CHECKPOINT, saved("static", "0,2-4,6-7", web="1,5").decode())
    # A stand-in would not keep the CPUs of pods that it does not have.
    node.write("/proc/1/cmdline", "kubelet\0--config=" + CONFIG)
    config = node.read(CONFIG)
    journal = {
        "format": 1,
        "phase": "changing",
        "facts": {"node": "worker", "cordoned": False},
        "files": {CONFIG: {"content": b64encode(config or b"").decode(), "mode": 0o644, "uid": 0, "gid": 0}},
    }
    node.write(JOURNAL, json.dumps(journal))
    message = failure(alone.run(REPAIR), "worker")
    assert "1,5" in message
    assert "state: absent" in message
    assert node.read(CONFIG) == config
    assert node.entries() == {"pod-web": {"web": "1,5"}}


@pytest.mark.parametrize("fault", [Fault(DIES, STATIC, 2.0), Fault(REFUSES, STATIC)], ids=["dies late", "never starts"])
def test_a_kubelet_that_does_not_come_up_is_taken_back(fleet: Fleet, fault: Fault, count: Count) -> None:
    canary, second = fleet.add("canary"), fleet.add("other")
    canary.fail(fault)
    before = {path: canary.read(path) for path in (CONFIG, CHECKPOINT)}
    words = second.log()
    message = failure(fleet.run(ROLLOUT), "canary")
    assert "Wait until the kubelet has started and stays up: " in message
    assert message.endswith("; the node is as it was")
    assert {path: canary.read(path) for path in (CONFIG, CHECKPOINT)} == before
    assert (canary.read(JOURNAL), fleet.is_open("canary")) == (None, True)
    # The rollout ended there.
    assert second.log() == words
    assert fleet.policy("other") == "none"
    # When what was wrong is repaired, the next run does all.
    canary.fail()
    assert fleet.run(ROLLOUT).status == 0
    assert [fleet.policy(name) for name in fleet.nodes] == ["static", "static"]
    count("kubelets that do not come up", 1)


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


def make_static(fleet: Fleet, name: str) -> KubeletNode:
    """A node whose kubelet runs with the static policy."""
    node = fleet.add(name)
    node.stop()
    node.configure({**node.configuration(), **STATIC})
    (node.root / CHECKPOINT.lstrip("/")).unlink()
    node.start()
    wait_until(lambda: (found := node.checkpoint()) is not None and found.policy_name == "static")
    fleet.wait_until_ready(name)
    return node


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
    """The administrator's, for another port."""
    path = directory / ("port-%d" % port)
    text = control_plane.admin.read_text(encoding="utf-8")
    path.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:%d" % port, text), encoding="utf-8")
    return str(path)


def test_a_cluster_that_does_not_answer(fleet: Fleet, control_plane: ControlPlane, count: Count) -> None:
    node = fleet.add("worker")
    before = node.log()
    nowhere = kubeconfig_to(1, control_plane, fleet.directory)
    message = failure(fleet.run(ROLLOUT, kubelet_kubeconfig=nowhere), "worker")
    assert re.search("Read the nodes of the cluster: .*Connection refused", message)
    assert message.endswith("; the nodes worker were not touched")
    run = fleet.run(ROLLOUT, kubelet_kubeconfig=nowhere, cpu_manager_check_capacity=False)
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
        wait_until(lambda: not all(pods.on("worker").values()))
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
