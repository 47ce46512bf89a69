# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pass whose CPUs the container runtime writes, which may fail or be silent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.command import SilentError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import Crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import reconcile_pods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.reconciled import (
    BATCH,
    EVERYBODY,
    NAMES,
    OWN,
    SANDBOX,
    SHARED,
    held,
    make_node,
    node,
    results,
    told,
    whys,
)


class Runtime:
    """Stands for crictl on a saved node: writes what it is told, unless it fails."""

    def __init__(
        self, root: Path, containers: Sequence[str], broken: Callable[[Sequence[str]], None] | None = None
    ) -> None:
        self.root = root
        self.containers = containers
        self.broken = broken or (lambda _arguments: None)
        self.calls: list[Sequence[str]] = []

    def __call__(self, arguments: Sequence[str]) -> str:
        self.calls.append(arguments[1:])
        self.broken(arguments[1:])
        if arguments[1] == "ps":
            return json.dumps({"containers": [self._listed(container) for container in self.containers]})
        cpus, container = arguments[-2:]
        top = self.root / saved.V1.mount[1:]
        next(top.glob("**/*%s.scope/cpuset.cpus" % container)).write_text(cpus + "\n")
        return container + "\n"

    @staticmethod
    def _listed(container: str) -> dict[str, Any]:
        pod, name = NAMES[container]
        labels = {"io.kubernetes.pod.name": pod, "io.kubernetes.pod.namespace": "shop"}
        return {"id": container, "metadata": {"name": name, "attempt": 0}, "labels": labels}


def crictl(runtime: Runtime) -> Crictl:
    return Crictl("crictl", None, runtime)


def test_the_runtime_writes_its_containers(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0-3,6-7", BATCH: "0", SANDBOX: "0"}, above="0-3,6-7")
    shutil.rmtree(tmp_path / "var/log/containers")
    runtime = Runtime(tmp_path, [OWN, SHARED, BATCH])
    check = reconcile_pods(node(tmp_path), crictl(runtime), act=False)
    assert runtime.calls == [["ps", "-o", "json"]]
    run = reconcile_pods(node(tmp_path), crictl(runtime), act=True)
    assert told(check) == told(run)
    assert results(run) == {"server": "written", "app": "kept", "job": "written", "d": "skipped"}
    assert [row.pod for row in run.rows if row.container == "server"] == ["shop/db-0"]
    updates = runtime.calls[2:]
    assert sorted(map(list, updates)) == [
        ["update", "--cpuset-cpus", "0-3,6-7", BATCH],
        ["update", "--cpuset-cpus", "4-5", OWN],
    ]
    # What is above is nobody's but ours.
    assert (tmp_path / saved.V1.mount[1:] / "kubepods.slice/cpuset.cpus").read_text() == "0-7\n"
    runtime.calls.clear()
    assert not reconcile_pods(node(tmp_path), crictl(runtime), act=True).changed
    assert runtime.calls == [["ps", "-o", "json"]]


def test_a_runtime_that_fails_for_one(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"}, above="0")

    def broken(arguments: Sequence[str]) -> None:
        if arguments[-1] == OWN:
            raise NodeError("crictl update: no such task")

    run = reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [OWN, SHARED], broken)), act=True)
    assert results(run) == {"server": "failed", "app": "written"}
    assert whys(run) == {"server": "crictl update: no such task"}
    assert held(tmp_path, OWN) == "0"  # never behind the runtime's back
    again = reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [OWN, SHARED])), act=True)
    assert results(again) == {"server": "written", "app": "kept"}
    assert held(tmp_path, OWN) == "4-5"


def test_a_container_that_ends_while_the_runtime_is_asked(tmp_path: Path) -> None:
    make_node(tmp_path, {OWN: "0", SHARED: "0"})

    def broken(arguments: Sequence[str]) -> None:
        if arguments[-1] == OWN:
            shutil.rmtree(next((tmp_path / saved.V1.mount[1:]).glob("**/*%s.scope" % OWN)))
            raise NodeError("crictl update: not found")

    run = reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [OWN, SHARED], broken)), act=True)
    assert results(run) == {"server": "skipped", "app": "written"}
    assert whys(run) == {"server": "it ended meanwhile"}


def test_a_runtime_that_does_not_answer(tmp_path: Path) -> None:
    make_node(tmp_path, {**EVERYBODY, OWN: "0"})

    def broken(arguments: Sequence[str]) -> None:
        raise SilentError("crictl ps: no answer in 10 seconds")

    check, run = (
        reconcile_pods(node(tmp_path), crictl(Runtime(tmp_path, [], broken)), act=act) for act in (False, True)
    )
    assert told(check) == told(run)
    assert results(run) == {"server": "failed", "app": "kept", "job": "kept"}
    assert whys(run) == {"server": "crictl ps: no answer in 10 seconds"}
    assert run.notes == ["crictl ps: no answer in 10 seconds"]
    assert held(tmp_path, OWN) == "0"


def test_a_runtime_that_is_silent_three_times_is_not_asked_again(tmp_path: Path) -> None:
    make_node(tmp_path, dict.fromkeys(EVERYBODY, "5"))

    def broken(arguments: Sequence[str]) -> None:
        if arguments[0] == "update":
            raise SilentError("no answer")

    runtime = Runtime(tmp_path, list(EVERYBODY), broken)
    asked = crictl(runtime)
    assert set(results(reconcile_pods(node(tmp_path), asked, act=True)).values()) == {"failed"}
    assert len(runtime.calls) == 4
    with pytest.raises(NodeError, match="is not called any more"):
        asked.set_cpus(OWN, CPUSet())
    assert len(runtime.calls) == 4
