# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rollout on nodes of a real cluster: drained, changed, proved and let in again, or taken back as a whole."""

from __future__ import annotations

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.faults import mounts
from ansible_collections.kubenode.cpu_manager.tests.faults.child import Child
from ansible_collections.kubenode.cpu_manager.tests.faults.counting import Count
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook, play
from ansible_collections.kubenode.cpu_manager.tests.playbooks.init import SERVICE_MANAGER, private_init

from .control_plane import ControlPlane
from .kubelet.faults import DIES, REFUSES, Fault
from .kubelet_node import CHECKPOINT, CONFIG, STARTED, KubeletNode, wait_until
from .node import STOPPING_SECONDS
from .proxy import Proxy

ROLLOUT, ROLLBACK = "kubenode.cpu_manager.rollout", "kubenode.cpu_manager.rollback"
JOURNAL = "/var/lib/kubenode-cpu-manager/change.json"
NONE = {"cpuManagerPolicy": "none", "reservedSystemCPUs": "0,4", "cpuManagerReconcilePeriod": "500ms"}
STATIC = {"cpuManagerPolicy": "static"}
TO_STATIC = {"kubelet_cpu_manager_policy": "static"}


class Fleet:
    """Nodes with stand-ins for their kubelets, in a cluster or without one."""

    def __init__(self, directory: Path, control_plane: ControlPlane | None = None) -> None:
        self.directory, self.control_plane = directory, control_plane
        self.nodes: dict[str, KubeletNode] = {}

    def add(self, name: str) -> KubeletNode:
        """A node whose kubelet runs."""
        node = KubeletNode(self.directory / name, "1s4c2t", NONE, control_plane=self.control_plane)
        self.nodes[name] = node
        node.start()
        node.wait_for(STARTED)
        if self.control_plane:
            self.control_plane.wait_for("node/" + name, "Ready")
        return node

    def run(self, playbook: str, *arguments: str, **variables: Any) -> Run:
        """Run a playbook on all of them."""
        hosts = {name: self.variables(name, **variables) for name in self.nodes}
        text = Path(__file__).parent.parent.parent / "playbooks" / (playbook.rpartition(".")[2] + ".yml")
        plays = [*play(SERVICE_MANAGER), {"name": playbook, "ansible.builtin.import_playbook": str(text)}]
        return ansible_playbook(self.directory / "run", plays, hosts, *arguments, prefix=self.prefix())

    def variables(self, name: str, **variables: Any) -> dict[str, Any]:
        """Those of a host."""
        cluster = {"kubelet_kubeconfig": str(self.control_plane.admin)} if self.control_plane else {}
        return {
            "kubelet_node_root": str(self.nodes[name].root),
            "kubelet_service": "kubelet-" + name,
            "kubelet_manage_service": True,
            "kubelet_drain": bool(cluster),
            # Longer than the stand-in of a fault lives, where a test has one.
            "kubelet_verify_seconds": 4 if cluster else 1,
            "kubelet_verify_timeout": 40,
            **cluster,
            **TO_STATIC,
            **variables,
        }

    def prefix(self) -> tuple[str, ...]:
        """The services of these nodes, for one command."""
        return private_init(self.directory, {"kubelet-" + name: one.init_script() for name, one in self.nodes.items()})

    def policy(self, name: str) -> str:
        """That of the node's checkpoint."""
        checkpoint = self.nodes[name].checkpoint()
        assert checkpoint is not None
        return checkpoint.policy_name

    def is_open(self, name: str) -> bool:
        """Whether the node can get pods."""
        assert self.control_plane is not None
        (node,) = self.control_plane.objects("nodes", "--field-selector=metadata.name=" + name)
        return not node["spec"].get("unschedulable", False)

    def stop(self) -> None:
        """End the kubelets, and forget the nodes."""
        for node in self.nodes.values():
            node.stop()
        if self.control_plane and self.nodes:
            self.control_plane.kubectl("delete", "nodes", *self.nodes)


@pytest.fixture
def fleet(control_plane: ControlPlane, tmp_path: Path, private_services: None) -> Iterator[Fleet]:
    one = Fleet(tmp_path, control_plane)
    yield one
    one.stop()


@pytest.fixture
def alone(tmp_path: Path, private_services: None) -> Iterator[Fleet]:
    one = Fleet(tmp_path)
    yield one
    one.stop()


def deploy(control_plane: ControlPlane, namespace: str, replicas: int, available: int, stopping: int = 0) -> None:
    """Run pods that take so many seconds to stop, and say how many of them are always to be there."""
    labels = {"app": "web"}
    metadata = {"name": "web", "namespace": namespace}
    annotations = {STOPPING_SECONDS: str(stopping)}
    template = {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    }
    spec: dict[str, Any] = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    control_plane.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    option = "--namespace=" + namespace
    control_plane.kubectl("rollout", "status", "deployment/web", "--timeout=60s", option)
    budget = {"selector": {"matchLabels": labels}, "minAvailable": available}
    kind = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget"}
    control_plane.apply({**kind, "metadata": metadata, "spec": budget})
    while not control_plane.kubectl("get", "pdb", "web", option, "--output=jsonpath={.status.observedGeneration}"):
        pass


def names_of(run: Run, host: str) -> list[str]:
    return [result["task"].rpartition(" : ")[2] for result in run.results[host] if result["changed"]]


def failure(run: Run, host: str) -> str:
    assert run.status != 0
    assert run.last(host)["outcome"] == "failed", run.output
    message: str = run.last(host)["msg"]
    return message


def test_a_fleet_is_rolled_out_and_back(fleet: Fleet, control_plane: ControlPlane, namespace: str) -> None:
    for name in ("one", "two"):
        fleet.add(name)
    before = {name: node.read(CONFIG) for name, node in fleet.nodes.items()}
    control_plane.kubectl("cordon", "two")
    control_plane.kubectl("uncordon", "two")
    deploy(control_plane, namespace, replicas=2, available=1)
    # One was cordoned by somebody else, and stays so.
    control_plane.kubectl("cordon", "one")

    checked = fleet.run(ROLLOUT, "--check", "--diff")
    assert checked.status == 0, checked.output
    assert "+cpuManagerPolicy: static" in checked.output
    assert {name: node.read(CONFIG) for name, node in fleet.nodes.items()} == before
    assert fleet.is_open("two")

    control_plane.kubectl("uncordon", "one")
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.output
    for name, node in fleet.nodes.items():
        steps = names_of(run, name)
        assert steps.index("Cordon and drain the node") < steps.index("Stop the kubelet")
        assert steps[-2:] == ["Let pods come back to the node", "Write down that the change is done"]
        assert (fleet.policy(name), fleet.is_open(name), node.read(JOURNAL)) == ("static", True, None)
    control_plane.kubectl("rollout", "status", "deployment/web", "--timeout=60s", "--namespace=" + namespace)

    # Nobody is drained a second time.
    pods = control_plane.kubectl("get", "pods", "--output=name", "--namespace=" + namespace)
    again = fleet.run(ROLLOUT)
    assert again.status == 0, again.output
    assert [names_of(again, name) for name in fleet.nodes] == [[], []]
    assert control_plane.kubectl("get", "pods", "--output=name", "--namespace=" + namespace) == pods

    back = fleet.run(ROLLBACK)
    assert back.status == 0, back.output
    assert {name: node.read(CONFIG) for name, node in fleet.nodes.items()} == before
    assert [fleet.policy(name) for name in fleet.nodes] == ["none", "none"]
    assert [fleet.is_open(name) for name in fleet.nodes] == [True, True]


@pytest.mark.parametrize("fault", [Fault(DIES, STATIC, 2.0), Fault(REFUSES, STATIC)], ids=["dies late", "never starts"])
def test_a_kubelet_that_does_not_come_up_is_taken_back(fleet: Fleet, fault: Fault, count: Count) -> None:
    canary, other = fleet.add("canary"), fleet.add("other")
    canary.fail(fault)
    before = {path: canary.read(path) for path in (CONFIG, CHECKPOINT)}
    words = other.log()
    message = failure(fleet.run(ROLLOUT), "canary")
    assert "Wait until the kubelet has started for good: " in message
    assert message.endswith("; the node is as it was")
    assert {path: canary.read(path) for path in (CONFIG, CHECKPOINT)} == before
    assert (canary.read(JOURNAL), fleet.is_open("canary")) == (None, True)
    # The rollout ended there.
    assert other.log() == words
    assert fleet.policy("other") == "none"
    # When what was wrong is mended, the next run does all.
    canary.fail()
    assert fleet.run(ROLLOUT).status == 0
    assert [fleet.policy(name) for name in fleet.nodes] == ["static", "static"]
    count("kubelets that do not come up", 1)


def test_a_budget_that_never_allows(fleet: Fleet, control_plane: ControlPlane, namespace: str, count: Count) -> None:
    node = fleet.add("worker")
    deploy(control_plane, namespace, replicas=1, available=1)
    before = node.log()
    message = failure(fleet.run(ROLLOUT, kubelet_drain_timeout=3), "worker")
    assert "Cordon and drain the node: " in message
    assert message.endswith("; the node is as it was")
    # The kubelet was not touched.
    assert node.log() == before
    assert (node.read(JOURNAL), fleet.is_open("worker"), fleet.policy("worker")) == (None, True, "none")
    control_plane.kubectl("delete", "pdb", "web", "--namespace=" + namespace)
    assert fleet.run(ROLLOUT).status == 0
    assert (fleet.policy("worker"), fleet.is_open("worker")) == ("static", True)
    count("budgets that never allow", 1)


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
    assert "Ask the cluster for the node: " in message
    assert message.endswith("; the node is as it was")
    assert node.log() == before
    assert node.read(JOURNAL) is None
    count("clusters that do not answer", 1)


def test_a_cluster_that_falls_silent_during_a_drain(
    fleet: Fleet, control_plane: ControlPlane, namespace: str, count: Count
) -> None:
    node = fleet.add("worker")
    deploy(control_plane, namespace, replicas=1, available=0, stopping=30)
    before = {path: node.read(path) for path in (CONFIG, CHECKPOINT)}, node.log()
    port = int(re.findall(r"127\.0\.0\.1:(\d+)", control_plane.admin.read_text(encoding="utf-8"))[0])

    def is_evicted() -> bool:
        pods = control_plane.objects("pods", "--namespace=" + namespace)
        return any("deletionTimestamp" in pod["metadata"] for pod in pods)

    with Proxy(port) as line, ThreadPoolExecutor(1) as pool:
        variables = {
            "kubelet_kubeconfig": kubeconfig_to(line.port, control_plane, fleet.directory),
            "kubelet_drain_timeout": 5,
            "kubelet_api_timeout": 15,
            "kubelet_verify_timeout": 4,
        }
        run = pool.submit(fleet.run, ROLLOUT, **variables)
        wait_until(is_evicted)
        line.fall_silent()
        message = failure(run.result(), "worker")
    assert re.search("Cordon and drain the node: .*Timed out", message)
    # Nothing but the cluster was touched, and nobody could tell it to let pods in again.
    assert "the change could not be taken back as a whole, run the role again: Wait until the node is ready" in message
    assert ({path: node.read(path) for path in (CONFIG, CHECKPOINT)}, node.log()) == before
    assert not fleet.is_open("worker")
    assert fleet.run(ROLLOUT).status == 0
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
    count("clusters that do not answer", 1)


# --- a run that is killed ---------------------------------------------------------------------------------


def kill_at(fleet: Fleet, step: str, name: str) -> bool:
    """Run the role on a node, and kill all of it when a task begins; whether there was such a task."""
    directory = fleet.directory / "killed"
    hosts = {name: fleet.variables(name)}
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
    environment = {"KILL_AT": step, "ANSIBLE_CALLBACKS_ENABLED": "record,kill_at"}
    run = ansible_playbook(directory, plays, hosts, prefix=fleet.prefix(), environment=environment)
    return run.status == -signal.SIGKILL


STEPS = (
    "Write down that the kubelet is about to be stopped",
    "Stop the kubelet",
    "Save the files that are about to be changed",
    "Reset or repair the checkpoint if the kubelet would refuse it",
    "Write the kubelet's configuration",
    "Start the kubelet",
    "Wait until the kubelet has started for good",
    "Write down that the change is done",
)


def is_whole(node: KubeletNode, old: bytes | None) -> bool:
    """Whether the configuration is the old one or the new one."""
    new = (old or b"").replace(b"cpuManagerPolicy: none", b"cpuManagerPolicy: static")
    return node.read(CONFIG) in (old, new)


def test_a_run_that_is_killed_at_any_task(alone: Fleet, count: Count) -> None:
    """Afterwards the configuration is the old or the new one, whole, and the next run finishes."""
    for number, step in enumerate(STEPS):
        node = alone.add("worker-%d" % number)
        old = node.read(CONFIG)
        assert kill_at(alone, step, node.name), step
        assert is_whole(node, old)
        count("kills", 1)
    run = alone.run(ROLLOUT, cpu_manager_serial="100%")
    assert run.status == 0, run.output
    for name, node in alone.nodes.items():
        assert (alone.policy(name), node.read(JOURNAL)) == ("static", None)
        assert any("[cpumanager] starting with static policy" in line for line in node.log())


@pytest.mark.parametrize("step", ["Cordon and drain the node", "Wait until the node is ready"])
def test_a_run_that_is_killed_while_the_node_is_drained(fleet: Fleet, step: str, count: Count) -> None:
    node = fleet.add("worker")
    assert kill_at(fleet, step, "worker")
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.output
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
    count("kills", 1)


# --- a disk that is full -----------------------------------------------------------------------------------

KUBELET_ROOT, JOURNALS = "/var/lib/kubelet", "/var/lib/kubenode-cpu-manager"
PAGES, FILES = 32, 32


def fill(disk: Path, pages: int) -> None:
    """Leave room for so many pages."""
    space = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes((space.f_bfree - pages) * space.f_bsize))


def roll_out_on_full_disk(directory: Path, disk: str, pages: int) -> tuple[bool, list[bool], int, str]:
    """Whether the role failed, what holds afterwards, and the status and the policy of a run with room again."""
    signal.alarm(240)
    mounts.own_namespace()
    fleet = Fleet(directory)
    place = directory / "worker/node" / disk[1:]
    place.mkdir(parents=True)
    mounts.mount_disk(str(place), PAGES, FILES)
    try:
        node = fleet.add("worker")
        old = node.read(CONFIG)
        fill(place, pages)
        run = fleet.run(ROLLOUT)
        holds = [is_whole(node, old)]
        (place / "filler").unlink()
        again = fleet.run(ROLLOUT)
        holds += [node.read(JOURNAL) is None, node.is_active(), STARTED in node.log()]
        return run.status != 0, holds, again.status, fleet.policy("worker")
    finally:
        fleet.stop()


@pytest.mark.parametrize(("disk", "pages"), [(JOURNALS, 0), (KUBELET_ROOT, 0), (KUBELET_ROOT, 1)])
def test_a_full_disk(tmp_path: Path, private_services: None, disk: str, pages: int, count: Count) -> None:
    if mounts.why_not():
        pytest.skip(mounts.why_not())
    failed, holds, status, policy = Child(partial(roll_out_on_full_disk, tmp_path, disk, pages)).answer()
    assert (failed, all(holds), status, policy) == (True, True, 0, "static"), holds
    count("full disks", 1)
