# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""To what the DRA CPU driver needs, on nodes of a real cluster: the kubelet and the container runtime together, or both
taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run

from .fleet import JOURNAL, ROLLOUT, Fleet
from .kubelet.faults import DIES, REFUSES, Fault
from .kubelet_node import CHECKPOINT, CONFIG, KubeletNode
from .pods import Pods

TO_DRA, FROM_DRA = "kubenode.cpu_manager.to_dra", "kubenode.cpu_manager.from_dra"
ROLLBACK = "kubenode.cpu_manager.rollback"
CONTAINERD = "/etc/containerd/config.toml"
NONE = {"cpuManagerPolicy": "none"}
SERVICE = "runtime-of-worker"

OLD = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "pause"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
"""
# Listens where NRI is on, and writes down with what it was started, and whether the kubelet ran then.
INIT_SCRIPT = """\
#!/bin/sh
root={root}
case $1 in
start|restart)
    mkdir -p $root/var/run/nri
    rm -f $root/var/run/nri/nri.sock
    state=off
    if grep -q 'disable = false' $root/etc/containerd/config.toml; then
        {listens}
        state=on
    fi
    if [ -s {directory}/pid ]; then kubelet=kubelet; else kubelet=alone; fi
    echo $state $kubelet >> {directory}/runtime.log ;;
status) ;;
esac
"""


def add(fleet: Fleet, listens: bool = True) -> KubeletNode:
    """Return a node with the static policy, and a stand-in for containerd 1.7 as a service."""
    node = fleet.add("worker")
    node.write(CONTAINERD, OLD)
    init = fleet.directory / "init.d"
    init.mkdir(exist_ok=True)
    script = INIT_SCRIPT.format(
        root=node.root, directory=node.directory, listens="touch $root/var/run/nri/nri.sock" if listens else ":"
    )
    (init / SERVICE).write_text(script, encoding="utf-8")
    (init / SERVICE).chmod(0o755)
    run = fleet.run(ROLLOUT)
    assert run.status == 0, run.account()
    return node


def change(fleet: Fleet, playbook: str, **variables: object) -> Run:
    return fleet.run(playbook, kubelet_runtime_service=SERVICE, kubelet_runtime_version="1.7.22", **variables)


def restarts(node: KubeletNode) -> list[str]:
    log = Path(node.directory / "runtime.log")
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def changed_tasks(run: Run) -> list[str]:
    return run.changes("worker")


def test_there_and_back(fleet: Fleet, pods: Pods) -> None:
    node = add(fleet)
    pods.deploy("Deployment", "web", replicas=1)
    before = node.read(CONFIG)

    run = change(fleet, TO_DRA)
    assert run.status == 0, run.account()
    steps = changed_tasks(run)
    order = [
        "Cordon and drain the node",
        "Stop the kubelet",
        "Write the container runtime's configuration",
        "Restart the container runtime",
        "Start the kubelet",
        "Let pods come back to the node",
    ]
    assert [step for step in steps if step in order] == order
    assert restarts(node) == ["on alone"]
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("none", True, None)
    assert b"disable = false" in (node.read(CONTAINERD) or b"")
    assert b"enable_cdi = true" in (node.read(CONTAINERD) or b"")

    again = change(fleet, TO_DRA)
    assert again.status == 0, again.account()
    assert changed_tasks(again) == []

    back = change(fleet, FROM_DRA)
    assert back.status == 0, back.account()
    assert restarts(node) == ["on alone", "off alone"]
    assert (node.read(CONTAINERD), node.read(CONFIG)) == (OLD.encode(), before)
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)

    # That was a change as any other: a rollback goes back to the driver's.
    undone = fleet.run(ROLLBACK, kubelet_runtime_service=SERVICE)
    assert undone.status == 0, undone.account()
    assert restarts(node) == ["on alone", "off alone", "on alone"]
    assert fleet.policy("worker") == "none"


@pytest.mark.parametrize("fault", [Fault(DIES, NONE, 2.0), Fault(REFUSES, NONE)], ids=["dies late", "never starts"])
def test_a_kubelet_that_does_not_come_up_takes_both_back(fleet: Fleet, fault: Fault) -> None:
    node = add(fleet)
    before = {path: node.read(path) for path in (CONFIG, CHECKPOINT, CONTAINERD)}
    node.fail(fault)
    run = change(fleet, TO_DRA)
    assert run.status != 0
    assert run.last("worker")["msg"].endswith("; the node is as it was"), run.account()
    assert {path: node.read(path) for path in before} == before
    assert restarts(node) == ["on alone", "off alone"]
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)


def test_a_runtime_that_does_not_listen_takes_both_back(fleet: Fleet) -> None:
    node = add(fleet, listens=False)
    before = {path: node.read(path) for path in (CONFIG, CONTAINERD)}
    run = change(fleet, TO_DRA, kubelet_verify_timeout=15)
    assert run.status != 0
    message = run.last("worker")["msg"]
    assert "NRI does not listen at /var/run/nri/nri.sock" in message
    assert message.endswith("; the node is as it was"), run.account()
    assert {path: node.read(path) for path in before} == before
    assert restarts(node) == ["on alone", "off alone"]
    assert (fleet.policy("worker"), fleet.is_open("worker"), node.read(JOURNAL)) == ("static", True, None)
