# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What several tests of rollouts share: the playbooks beside it, pods with a budget, and what a run tells of a node."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Callable

from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run

from .fleet import Fleet
from .kubelet_node import CHECKPOINT, KubeletNode, wait_until
from .pods import Pods

ROLLBACK = "kubenode.cpu_manager.rollback"
REPAIR = "kubenode.cpu_manager.repair"
STATIC = {"cpuManagerPolicy": "static"}
# The first step that changes a node, but for its drain; and the task that carries all of them out.
STOP, CHANGE = "Stop the kubelet", "Change the kubelet"


def deploy(pods: Pods, replicas: int, available: int, stopping: int = 0) -> None:
    """Run pods that take so many seconds to stop, and say how many of them are always to be there."""
    pods.deploy("Deployment", "web", replicas=replicas, stopping=stopping)
    pods.allow("web", minAvailable=available)


def wait_until_a_run(run: Future[Run], has_come: Callable[[], bool]) -> None:
    """Wait until a run has come so far, however slow the machine is. Fails when the run ends before."""
    while not has_come():
        assert not run.done(), run.result().account()
        time.sleep(0.05)


def wait_for_drain(run: Future[Run], pods: Pods, node: str) -> None:
    """Wait until a run has begun to drain a node."""
    wait_until_a_run(run, lambda: not all(pods.on(node).values()))


def names_of(run: Run, host: str) -> list[str]:
    return run.changes(host)


def failure(run: Run, host: str) -> str:
    assert run.status != 0
    assert run.last(host)["outcome"] == "failed", run.output
    message: str = run.last(host)["msg"]
    return message


def make_static(fleet: Fleet, name: str) -> KubeletNode:
    """Return a node whose kubelet runs with the static policy."""
    node = fleet.add(name)
    node.stop()
    node.configure({**node.configuration(), **STATIC})
    (node.root / CHECKPOINT.lstrip("/")).unlink()
    node.start()
    wait_until(lambda: (found := node.checkpoint()) is not None and found.policy_name == "static")
    fleet.wait_until_ready(name)
    return node
