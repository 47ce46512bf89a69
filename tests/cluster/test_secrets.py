# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What pods are given may be secret: a run prints and logs who they are, and nothing else of them."""

from __future__ import annotations

from .fleet import ROLLOUT, Fleet
from .kubelet_node import wait_until
from .pods import Pods
from .syslog import SystemLog

SECRET = "hunter2-of-the-pod"


def deploy(pods: Pods, kind: str, name: str) -> None:
    """Deploy pods that have a secret wherever there can be one."""
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "main",
        "args": [SECRET],
        "env": [{"name": "SECRET", "value": SECRET}],
        "resources": {"limits": {"cpu": "1", "memory": "1Mi"}},
    }
    template = {
        "metadata": {"labels": labels, "annotations": {"secret": SECRET}},
        "spec": {"containers": [container], "initContainers": [{**container, "name": "first"}]},
    }
    pods.apply("apps/v1", kind, name, selector={"matchLabels": labels}, template=template)


def test_what_is_printed_and_logged(fleet: Fleet, pods: Pods) -> None:
    for name in ("one", "two"):
        fleet.add(name)
    deploy(pods, "DaemonSet", "agent")
    deploy(pods, "Deployment", "web")
    wait_until(lambda: sum(len(pods.on(name)) for name in fleet.nodes) == 3)
    with SystemLog(fleet.directory / "syslog") as log:
        fleet.around = log.prefix
        run = fleet.run(ROLLOUT, "-vvv")
    assert run.status == 0, run.account()
    assert [fleet.policy(name) for name in fleet.nodes] == ["static", "static"]
    # The pods that stayed were handed over, and that was logged.
    agents = [name for node in fleet.nodes for name in pods.on(node) if name.startswith("agent")]
    assert len(agents) == 2
    for uid in (pods.get(name)["metadata"]["uid"] for name in agents):
        assert uid in log.text
        assert uid in run.output
    recorded = (fleet.directory / "run" / "results.jsonl").read_text(encoding="utf-8")
    assert [
        name for name, text in {"output": run.output, "log": log.text, "results": recorded}.items() if SECRET in text
    ] == []


def test_a_drain_that_fails_is_told_without_them(fleet: Fleet, pods: Pods) -> None:
    """What hides the pods hides the message of the task, too: another one says it."""
    fleet.add("worker")
    deploy(pods, "Deployment", "web")
    wait_until(lambda: len(pods.on("worker")) == 1)
    pods.allow("web", minAvailable=1)
    with SystemLog(fleet.directory / "syslog") as log:
        fleet.around = log.prefix
        run = fleet.run(ROLLOUT, "-vvv", kubelet_drain_timeout=3, cpu_manager_check_capacity=False)
    assert run.last("worker")["msg"].endswith("; the node is as it was"), run.account()
    assert "Invoked with" in log.text
    assert SECRET not in run.output + log.text
