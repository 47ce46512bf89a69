# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node with up to three containers, and what a pass says that it has made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import parent_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import ReconcileResult
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

from . import cgroups as saved

CHECKPOINT = "var/lib/kubelet/cpu_manager_state"

OWN, SHARED, BATCH = ("%x" % digit * 64 for digit in (10, 11, 12))
SANDBOX = "d" * 64
UIDS = {OWN: "uid-db", SHARED: "uid-web", BATCH: "uid-batch", SANDBOX: "uid-db"}
NAMES = {OWN: ("db-0", "server"), SHARED: ("web-1", "app"), BATCH: ("batch-2", "job")}
STATE = State(CPUSet.parse("0-3,6-7"), {"uid-db": {"server": CPUSet.parse("4-5")}})


def make_node(
    root: Path,
    sets: Mapping[str, str],
    style: saved.Style = saved.V1,
    above: str = "0-7",
    driver: str = saved.SYSTEMD,
    top: str | None = None,
) -> Path:
    """Return a saved node with these containers, named by their ids, and their CPUs.

    above: the CPUs of the cgroups above them; top: of the topmost of these, if it has others.
    """
    cgroups = {}
    for container, cpus in sets.items():
        qos = "Guaranteed" if UIDS[container] == "uid-db" else "Burstable"
        pod = saved.pod_path(driver, UIDS[container], qos)
        path = pod
        while path:
            cgroups[path] = saved.Files(above if top is None or parent_of(path) else top, "0")
            path = parent_of(path)
        cgroups.update(saved.container_files(driver, "containerd", pod, container, cpus))
        if container in NAMES:
            name = "%s_shop_%s-%s.log" % (*NAMES[container], container)
            (root / "var/log/containers").mkdir(parents=True, exist_ok=True)
            (root / "var/log/containers" / name).touch()
    saved.write_cgroups(root, style, cgroups)
    write(root, write_checkpoint("static", STATE))
    return root


def write(root: Path, content: bytes) -> None:
    (root / CHECKPOINT).parent.mkdir(parents=True, exist_ok=True)
    (root / CHECKPOINT).write_bytes(content)


def node(root: Path) -> Node:
    return Node(Tree(str(root)))


def results(answer: ReconcileResult) -> dict[str, str]:
    """Return {container: what became of it}"""
    return {row.container or row.id[:1]: row.result for row in answer.rows}


def whys(answer: ReconcileResult) -> dict[str, str]:
    return {row.container or row.id[:1]: row.why for row in answer.rows if row.why}


def held(root: Path, container: str, style: saved.Style = saved.V1) -> str:
    """Return what a container's cgroup holds."""
    found = (root / style.mount[1:]).glob("**/*%s.scope/cpuset.cpus" % container)
    return next(found).read_text().strip()


def told(answer: ReconcileResult) -> dict[str, Any]:
    return {**answer.to_dict(), "changed": answer.changed, "before": answer.before(), "after": answer.after()}


EVERYBODY = {OWN: "4-5", SHARED: "0-3,6-7", BATCH: "0-3,6-7"}

STYLES = pytest.mark.parametrize("style", [saved.V1, saved.V2])
