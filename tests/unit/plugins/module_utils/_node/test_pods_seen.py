# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/pods_seen.py: a Guaranteed pod of one container, and a Burstable one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import Crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.pods import (
    pod_from_manifest,
    pods_from_manifests,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import pods_seen as seen
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.pods_seen import MOST_PODS, pods_seen
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.restored import DEVICES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V1, V2, CPUFiles, Style, write_memory
from ansible_collections.kubenode.cpu_manager.tests.machines.device_checkpoint import device_state
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import LIMITED, OWN_PATH, SHARED_PATH, write_node

CHECKPOINT = "var/lib/kubelet/cpu_manager_state"
GPU = "nvidia.com/gpu"
DB, WEB = "shop/db-0", "shop/web-1"


def said(root: Path) -> dict[str, Any]:
    return pods_seen(Node(Tree(str(root))))


def asks(answer: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return {pod: {container: (its requests, its limits)}}, of app containers."""
    return {
        "%(namespace)s/%(name)s" % pod["metadata"]: {
            row["name"]: (row["resources"]["requests"], row["resources"]["limits"])
            for row in pod["spec"].get("containers", ())
        }
        for pod in answer["pods"]
    }


def given_cpus(root: Path, **containers: str) -> None:
    """Let the checkpoint say these CPUs of containers of the Guaranteed pod."""
    own = {name: CPUSet.parse(cpus) for name, cpus in containers.items()}
    (root / CHECKPOINT).write_bytes(write_checkpoint("static", State(CPUSet.parse("0,4"), {"uid-db": own})))


@pytest.mark.parametrize("style", [V1, V2])
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_what_pods_ask_for(tmp_path: Path, style: Style, has_checkpoint: bool) -> None:
    write_node(tmp_path, style)
    if not has_checkpoint:
        (tmp_path / CHECKPOINT).unlink()
    found = said(tmp_path)
    two = {"cpu": "2000m"}
    # The weight of v2 says too little.
    web = ({"cpu": "250m"}, {"cpu": "500m"}) if style is V1 else ({}, {})
    assert asks(found) == {DB: {"server": (two, two)}, WEB: {"app": web}}
    assert [pod["status"]["qosClass"] for pod in found["pods"]] == ["Guaranteed", "Burstable"]
    assert found["left_out"] == []
    assert found["unknown"] == (["memory"] if style is V1 else ["requests", "memory"])
    # They are what a plan of allocations takes.
    db, _web = pods_from_manifests(found["pods"])
    assert (db.name, db.exclusive_counts(34)) == (DB, {"server": 2})


def test_the_checkpoint_counts_more_than_a_quota_that_was_lifted(tmp_path: Path) -> None:
    write_node(tmp_path, V2, {**LIMITED, OWN_PATH: CPUFiles(None, shares=3072)})
    given_cpus(tmp_path, server="1-3")
    assert asks(said(tmp_path))[DB] == {"server": ({"cpu": "3000m"}, {"cpu": "3000m"})}
    (tmp_path / CHECKPOINT).unlink()
    found = said(tmp_path)
    assert found["left_out"] == [{"pod": DB, "why": "what its container server asks for is not known"}]
    assert list(asks(found)) == [WEB]


def test_who_has_ended_and_who_has_only_stopped(tmp_path: Path) -> None:
    """An init container's CPUs are those of who came after it; whoever shares none with another comes back."""
    write_node(tmp_path, V2)
    given_cpus(tmp_path, server="1,5", setup="1,5,2,6", crashed="3,7")
    (db, _web) = said(tmp_path)["pods"]
    assert [row["name"] for row in db["spec"]["initContainers"]] == ["setup"]
    assert [row["name"] for row in db["spec"]["containers"]] == ["crashed", "server"]
    assert pod_from_manifest(db).exclusive_counts(34) == {"setup": 4, "crashed": 2, "server": 2}


def test_containers_without_names(tmp_path: Path) -> None:
    """The checkpoint names those with CPUs of their own."""
    write_node(tmp_path, V1, names=False)
    found = said(tmp_path)
    two = {"cpu": "2000m"}
    assert asks(found) == {"?/uid-db": {"server": (two, two)}}
    why = "the names of its containers are not known, or none of them runs"
    assert found["left_out"] == [{"pod": "uid-web", "why": why}]


def test_a_node_without_cgroups_tells_of_its_checkpoint_alone(tmp_path: Path) -> None:
    write_node(tmp_path, V2)
    shutil.rmtree(tmp_path / "sys/fs")
    found = said(tmp_path)
    assert list(asks(found)) == ["?/uid-db"]
    assert found["unknown"] == ["others", "memory"]
    (tmp_path / CHECKPOINT).write_bytes(b"{")
    assert said(tmp_path)["pods"] == []


def test_a_node_that_runs_no_pods_is_known(tmp_path: Path) -> None:
    write_node(tmp_path, V2)
    shutil.rmtree(tmp_path / "sys/fs/cgroup/kubepods.slice")
    assert said(tmp_path) == {"pods": [], "left_out": [], "unknown": []}


def test_memory_and_devices(tmp_path: Path) -> None:
    write_node(tmp_path, V2)
    block = {"numaAffinity": [0], "type": "memory", "size": 4096}
    huge = {"numaAffinity": [0], "type": "hugepages-2Mi", "size": 2 << 20}
    # A block of a type that none has changes no CPUs.
    odd = {"numaAffinity": [0], "type": "cpu", "size": 64}
    entries = {"uid-db": {"server": [block, huge, odd]}}
    write(tmp_path, "var/lib/kubelet/memory_manager_state", json.dumps({"policyName": "Static", "entries": entries}))
    given_cpus(tmp_path, server="1,5", c="2,6")
    devices = tmp_path / "var/lib/kubelet" / DEVICES
    devices.parent.mkdir()
    devices.write_bytes(device_state({GPU: ["gpu-0", "gpu-1"]}, ("uid-db", {"0": ["gpu-0", "gpu-1"]})))
    found = said(tmp_path)
    containers = asks(found)[DB]
    assert containers["server"][1] == {"cpu": "2000m", "memory": "4096", "hugepages-2Mi": str(2 << 20)}
    assert containers["c"][1] == {"cpu": "2000m", GPU: "2"}
    assert found["unknown"] == ["requests", "memory"]
    devices.write_bytes(b"{")
    assert said(tmp_path)["unknown"] == ["requests", "memory", "devices"]


@pytest.mark.parametrize("style", [V1, V2])
def test_memory_is_the_limit_of_the_cgroup(tmp_path: Path, style: Style) -> None:
    write_node(tmp_path, style)
    write_memory(tmp_path, style, {OWN_PATH: 3 << 30, SHARED_PATH: 1 << 30})
    found = said(tmp_path)
    two = {"cpu": "2000m", "memory": str(3 << 30)}
    assert asks(found)[DB] == {"server": (two, two)}
    # The request of a Burstable pod is another one.
    assert "memory" not in str(asks(found)[WEB])
    assert "memory" not in found["unknown"]
    # 500M is no whole number of pages, and so the kernel has less.
    for limit in (500_000_000 // 4096 * 4096, None):
        write_memory(tmp_path, style, {OWN_PATH: limit})
        found = said(tmp_path)
        assert asks(found)[DB] == {"server": ({"cpu": "2000m"}, {"cpu": "2000m"})}
        assert "memory" in found["unknown"]
    # The memory manager's state has what was asked for.
    block = {"numaAffinity": [0], "type": "memory", "size": 500_000_000}
    state = {"policyName": "Static", "entries": {"uid-db": {"server": [block]}}}
    write(tmp_path, "var/lib/kubelet/memory_manager_state", json.dumps(state))
    write_memory(tmp_path, style, {OWN_PATH: 3 << 30})
    assert asks(said(tmp_path))[DB]["server"][1]["memory"] == "500000000"


def test_the_runtime_is_asked_for_what_files_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_node(tmp_path, V2, {**LIMITED, OWN_PATH: CPUFiles(None), SHARED_PATH: CPUFiles(None)})
    (tmp_path / CHECKPOINT).unlink()
    asked = []

    def run(arguments: Any) -> str:
        asked.append(arguments[-1][:1])
        shares, memory = (2048, 1 << 30) if arguments[-1].startswith("a") else (2, 0)
        resources = {"cpu": {"shares": shares}, "memory": {"limit": memory}}
        return json.dumps({"info": {"runtimeSpec": {"linux": {"resources": resources}}}})

    monkeypatch.setattr(seen, "find_crictl", lambda *_arguments: Crictl("crictl", None, run))
    found = said(tmp_path)
    two = {"cpu": "2000m", "memory": str(1 << 30)}
    assert asks(found) == {DB: {"server": (two, two)}, WEB: {"app": ({"cpu": "0m"}, {})}}
    assert found["unknown"] == []
    assert asked == ["a", "b"]
    # One that says nothing is as good as none.
    monkeypatch.setattr(seen, "find_crictl", lambda *_arguments: Crictl("crictl", None, lambda _arguments: "{}"))
    found = said(tmp_path)
    assert [row["pod"] for row in found["left_out"]] == [DB]
    assert found["unknown"] == ["requests"]


def test_more_pods_than_a_node_has(tmp_path: Path) -> None:
    write(
        tmp_path,
        "var/lib/kubelet/config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n",
    )
    many = {"uid-%04d" % number: {"app": CPUSet.parse("1")} for number in range(MOST_PODS + 5)}
    (tmp_path / CHECKPOINT).write_bytes(write_checkpoint("static", State(CPUSet.parse("0"), many)))
    found = said(tmp_path)
    assert (len(found["pods"]), len(found["left_out"])) == (MOST_PODS, 5)


@given(milli=st.integers(1, 256000), period_us=st.integers(1000, 1000000))
def test_what_was_asked_for_is_found_again(milli: int, period_us: int) -> None:
    """What the kubelet makes of thousandths of a CPU, and cuts off, leads back to these."""
    shares = max(2, milli * 1024 // 1000)
    assert seen.milli_of(shares, 0) == (milli if shares > 2 else 0)
    assert seen.limit_of(milli * period_us // 1000, period_us) == milli
