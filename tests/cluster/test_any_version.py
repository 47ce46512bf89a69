# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The life of a node with the real kubelet of whatever version is given: what it says of itself, we say, too.

What a refused start says is in test_real_kubelet.py, trials are in test_trial.py, pods that do not come back in
test_impact.py.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.settings import found_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.configz import settings_of_configz
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .control_plane import ControlPlane
from .fleet import ROLLOUT, Fleet
from .kubelet.configuration import CommandLine, StartError, effective_configuration
from .kubelet.managers import Managers
from .kubelet_node import CHECKPOINT, CONFIG, STARTED, KubeletNode, wait_until
from .podresources import allocatable_cpus, exclusive_cpus
from .pods import Pods
from .ports import LOOPBACK
from .rollouts import REPAIR, names_of
from .versions_run import record

VERSION = kubernetes.version()
MINOR = kubernetes.minor_of(VERSION)
MACHINE = "2s1n4c2t"
BEFORE: dict[str, Any] = {
    "cpuManagerPolicy": "none",
    "reservedSystemCPUs": "0,8",
    "cpuManagerReconcilePeriod": "1s",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
}
STATIC = {**BEFORE, "cpuManagerPolicy": "static"}
MEMORY = dict(kubernetes.belonging(kubernetes.RESERVED_MEMORY, MINOR))
WHOLE = dict(kubernetes.belonging(kubernetes.WHOLE_PODS, MINOR))
MEMORY_STATE = "/var/lib/kubelet/memory_manager_state"


MakeNode = Callable[[dict[str, Any]], KubeletNode]


@pytest.fixture
def make(fleet: Fleet, control_plane: ControlPlane, real_kubelet: Path, tmp_path: Path) -> Iterator[MakeNode]:
    """Make a node of the cluster, with the real kubelet."""
    name = "any-%d" % os.getpid()
    with ExitStack() as stack:

        def make_one(configuration: dict[str, Any]) -> KubeletNode:
            node = KubeletNode(tmp_path / name, MACHINE, configuration, control_plane=control_plane, real=real_kubelet)
            fleet.nodes[name] = stack.enter_context(node)
            node.start()
            control_plane.wait_for("node/" + name, "Ready")
            return node

        yield make_one


def ask(node: KubeletNode, path: str) -> str:
    """Return what the kubelet's own port answers."""
    tls = ssl.create_default_context(cafile=node.root / "var/lib/kubelet/pki/kubelet.crt")
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    url = "https://%s:%d%s" % (LOOPBACK, node.configuration()["port"], path)
    with urllib.request.urlopen(url, context=tls, timeout=30) as answer:
        return str(answer.read().decode("utf-8"))


def on_files(node: KubeletNode) -> Node:
    """Return the node as our code reads it."""
    return Node(Tree(str(node.root)), CONFIG, None, MINOR)


def runs_with_what_we_say(node: KubeletNode) -> bool:
    """Return whether the running kubelet's settings are those that we read in its files."""
    configuration, problem = on_files(node).found()
    assert configuration is not None, problem
    return settings_of_configz(json.loads(ask(node, "/configz"))) == found_settings(configuration)


def metric(node: KubeletNode, name: str) -> float:
    (found,) = re.findall("^%s ([0-9.e+]+)$" % name, ask(node, "/metrics"), re.MULTILINE)
    return float(found)


class Ours:
    """What our policies make of the same pods, on a copy of the node."""

    def __init__(
        self, node: KubeletNode, directory: Path, checkpoint: bytes | None = None, memory: bytes | None = None
    ) -> None:
        """Begin with these states. Raises StartError for what a kubelet refuses of them."""
        self.node = KubeletNode(directory, MACHINE, {})
        self.node.configure(node.configuration())
        for path, content in ((CHECKPOINT, checkpoint), (MEMORY_STATE, memory)):
            if content is not None:
                self.node.write(path, content.decode("ascii"))
        tree = Tree(str(self.node.root))
        values = effective_configuration(tree, CommandLine.parse(["--config=" + CONFIG]))
        self.managers = Managers(Node(tree, CONFIG, None, MINOR), values)
        self.managers.start()
        self.managers.all_told()

    def agrees_with(self, node: KubeletNode, path: str = CHECKPOINT) -> bool:
        """Return whether a state of both is equal, to the byte."""
        return node.read(path) == self.node.read(path)


def start_pod(pods: Pods, name: str, node: KubeletNode, *cpus: str, **spec: Any) -> dict[str, Any]:
    """Return a pod that the kubelet admits, with a container for each number of CPUs; whether these run is the
    runtime's."""
    containers = [
        {
            "name": "main-%d" % number,
            "image": "main",
            "imagePullPolicy": "Never",
            "resources": {"limits": {"cpu": cpu, "memory": "1Mi"}} if cpu else {},
        }
        for number, cpu in enumerate(cpus)
    ]
    pods.apply("v1", "Pod", name, containers=containers, nodeName=node.name, terminationGracePeriodSeconds=1, **spec)
    return pods.get(name)


def restart(node: KubeletNode) -> None:
    """Have the kubelet begin with the states that it has written."""
    starts = sum(STARTED in line for line in node.log())
    node.restart()
    node.wait_for(STARTED, times=starts + 1)


def test_the_life_of_a_node(
    make: MakeNode, fleet: Fleet, control_plane: ControlPlane, pods: Pods, tmp_path: Path
) -> None:
    node = make(BEFORE)
    assert runs_with_what_we_say(node)

    # Another policy: the node is drained, its kubelet makes its states anew, and it is let in again.
    options = dict(kubernetes.belonging(kubernetes.OPTIONS, MINOR))
    wanted = {"kubelet_target_version": VERSION, "kubelet_cpu_manager_policy_options": options}
    run = fleet.run(ROLLOUT, **wanted)
    assert run.status == 0, run.account()
    steps = names_of(run, node.name)
    assert "Cordon and drain the node" in steps
    assert "Let pods come back to the node" in steps
    assert (fleet.policy(node.name), fleet.is_open(node.name)) == ("static", True)
    assert runs_with_what_we_say(node)
    ours = Ours(node, tmp_path / "ours")
    wait_until(lambda: ours.agrees_with(node), lambda: str(node.read(CHECKPOINT)))

    # Pods with CPUs of their own: those that we foretell, by each way that the kubelet tells of them.
    for number, cpu in enumerate(("2", "4", "2"), 1):
        pod = start_pod(pods, "own-%d" % number, node, cpu)
        assert ours.managers.admit(pod) is None
        wait_until(lambda: ours.agrees_with(node), lambda: "%r\n%r" % (node.read(CHECKPOINT), ours.node.entries()))
    names = {pods.get(name)["metadata"]["uid"]: name for name in ("own-1", "own-2", "own-3")}
    entries = {
        (names[uid], container): set(CPUSet.parse(cpus))
        for uid, containers in node.entries().items()
        for container, cpus in containers.items()
    }
    asked = kubernetes.belonging(kubernetes.POD_RESOURCES, MINOR)
    if "List" in asked:
        assert exclusive_cpus(node.root, pods.namespace) == entries
    if "GetAllocatableResources" in asked:
        reserved = CPUSet.parse(node.configuration()["reservedSystemCPUs"])
        assert allocatable_cpus(node.root) == set(on_files(node).topology.online - reserved)
    checkpoint = node.checkpoint()
    assert checkpoint is not None
    shared = checkpoint.state().default_cpu_set - CPUSet.parse(node.configuration()["reservedSystemCPUs"])
    counts = (len(entries), sum(map(len, entries.values())), 1000 * len(shared))
    for rows, count in zip(kubernetes.METRICS.values(), counts):
        for name in kubernetes.belonging(rows, MINOR):
            assert (name, metric(node, name)) == (name, count)

    # A restart keeps them.
    before = node.read(CHECKPOINT)
    restart(node)
    assert node.read(CHECKPOINT) == before

    # A checkpoint that its kubelet refuses, in the words that we foretell, and that is repaired.
    node.stop()
    node.write(CHECKPOINT, (before or b"").decode("ascii").replace('"checksum":', '"checksum":1'))
    with pytest.raises(StartError, match="checkpoint is corrupted"):
        Ours(node, tmp_path / "refused", node.read(CHECKPOINT))
    node.start()
    node.wait_for("checkpoint is corrupted")
    node.stop()
    run = fleet.run(REPAIR, **wanted)
    assert run.status == 0, run.account()
    control_plane.wait_for("node/" + node.name, "Ready")
    assert fleet.is_open(node.name)
    assert runs_with_what_we_say(node)
    record(VERSION, "life")


@pytest.mark.skipif(not MEMORY, reason="this version reserves no memory on NUMA nodes")
def test_the_states_of_the_memory_manager(make: MakeNode, pods: Pods, tmp_path: Path) -> None:
    node = make({**STATIC, **MEMORY})
    ours = Ours(node, tmp_path / "ours")
    wait_until(lambda: ours.agrees_with(node, MEMORY_STATE), lambda: str(node.read(MEMORY_STATE)))
    start_pod(pods, "own", node, "2")
    wait_until(lambda: bool(node.entries()) and not ours.agrees_with(node, MEMORY_STATE))
    # Neither the kubelet nor we refuse what it has written.
    Ours(node, tmp_path / "again", node.read(CHECKPOINT), node.read(MEMORY_STATE))
    restart(node)
    record(VERSION, "memory")


@pytest.mark.skipif(not WHOLE, reason="this version decides on no pod as a whole")
def test_a_pod_that_has_cpus_as_a_whole(make: MakeNode, pods: Pods, tmp_path: Path) -> None:
    node = make({**STATIC, **WHOLE})
    ours = Ours(node, tmp_path / "ours")
    wait_until(lambda: ours.agrees_with(node), lambda: str(node.read(CHECKPOINT)))
    pod = start_pod(pods, "whole", node, "2", "", resources={"limits": {"cpu": "4", "memory": "64Mi"}})
    assert ours.managers.admit(pod) is None
    wait_until(lambda: ours.agrees_with(node), lambda: "%r\n%r" % (node.read(CHECKPOINT), ours.node.read(CHECKPOINT)))
    record(VERSION, "whole")
