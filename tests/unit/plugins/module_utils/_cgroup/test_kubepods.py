# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_cgroup/kubepods.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.kubepods import (
    ContainerCgroup,
    Kubepods,
    PodCgroup,
    container_id,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved

UIDS = {
    "Guaranteed": "8dbda0f5-4d4c-4b9c-b4c2-5e8b0c7e7f4a",
    "Burstable": "0b1d6f0a-9c3e-4f57-8a52-f0b1c2d3e4f5",
    "BestEffort": "f5c1e2a39b7d4c6e8f0a1b2c3d4e5f60",  # of a static pod: no dashes
}
IDS = {"Guaranteed": "a1" * 32, "Burstable": "b2" * 32, "BestEffort": "c3" * 32}


def kubepods(root: Path, cgroup_root: str = "") -> Kubepods:
    return Kubepods(Hierarchy(Tree(str(root))), cgroup_root)


def kubelet_cgroups(driver: str, runtime: str, prefix: str = "") -> dict[str, saved.Files]:
    found = {}
    for qos_class, uid in UIDS.items():
        pod = prefix + saved.pod_path(driver, uid, qos_class)
        found[pod] = saved.Files("0-7", "0")
        found.update(saved.container_files(driver, runtime, pod, IDS[qos_class], "2-3"))
    return found


@pytest.mark.parametrize("style", [saved.V1, saved.V2, saved.HYBRID, saved.HYBRID_V2], ids=list(saved.STYLES))
@pytest.mark.parametrize(("runtime", "driver"), list(saved.CONTAINER_NAMES))
def test_pods_and_containers(tmp_path: Path, style: saved.Style, driver: str, runtime: str) -> None:
    top = saved.write_cgroups(tmp_path, style, {**kubelet_cgroups(driver, runtime), "system.slice": saved.Files()})
    found = kubepods(tmp_path)
    assert found.roots == ["kubepods.slice" if driver == saved.SYSTEMD else "kubepods"]
    assert found.pods() == {
        uid: PodCgroup(uid, qos_class, saved.pod_path(driver, uid, qos_class)) for qos_class, uid in UIDS.items()
    }
    name, inner = saved.CONTAINER_NAMES[runtime, driver]
    told = "" if name == "%s" else runtime.partition("+")[0]
    expected = {}
    for qos_class, uid in UIDS.items():
        path = "%s/%s" % (saved.pod_path(driver, uid, qos_class), name % IDS[qos_class])
        processes = path + "/" + inner if inner else path
        expected[IDS[qos_class]] = ContainerCgroup(uid, qos_class, IDS[qos_class], told, path, processes)
        assert found.hierarchy.read(processes).has_processes
        assert (top / processes).is_dir()
    assert found.containers() == expected


@pytest.mark.parametrize(
    ("cgroup_root", "driver", "prefix", "renamed"),
    [
        ("/", saved.SYSTEMD, "", ""),
        ("/my-root", saved.CGROUPFS, "my-root/", ""),
        ("/my/root", saved.CGROUPFS, "my/root/", ""),
        ("/my-root/a", saved.SYSTEMD, "my_root.slice/my_root-a.slice/", "my_root-a-"),
        ("kubelet.slice", saved.SYSTEMD, "kubelet.slice/", "kubelet-"),  # the cgroup itself
        ("docker/0123", saved.SYSTEMD, "docker/0123/", ""),  # a node in a container
        ("docker/0123/kubelet.slice", saved.SYSTEMD, "docker/0123/kubelet.slice/", "kubelet-"),
    ],
)
def test_below_a_cgroup_root(tmp_path: Path, cgroup_root: str, driver: str, prefix: str, renamed: str) -> None:
    cgroups = {
        prefix + path.replace("kubepods", renamed + "kubepods"): files
        for path, files in kubelet_cgroups(driver, "containerd").items()
    }
    saved.write_cgroups(tmp_path, saved.V2, cgroups)
    found = kubepods(tmp_path, cgroup_root)
    assert {pod.pod_uid: pod.qos_class for pod in found.pods().values()} == {
        uid: qos_class for qos_class, uid in UIDS.items()
    }
    containers = found.containers()
    assert set(containers) == set(IDS.values())
    assert {container.path for container in containers.values()} <= set(cgroups)
    assert (kubepods(tmp_path).pods() == {}) == bool(prefix)


def test_a_change_of_the_driver_leaves_the_other_tree(tmp_path: Path) -> None:
    saved.write_cgroups(
        tmp_path,
        saved.V2,
        {
            **kubelet_cgroups(saved.SYSTEMD, "containerd"),
            **{path: saved.Files() for path in kubelet_cgroups(saved.CGROUPFS, "containerd")},
            "kubepods/podold": saved.Files(),
        },
    )
    found = kubepods(tmp_path)
    assert found.roots == ["kubepods.slice", "kubepods"]
    assert set(found.pods()) == {*UIDS.values(), "old"}
    assert all(found.pods()[uid].path.startswith("kubepods.slice/") for uid in UIDS.values())


def test_what_is_no_pod_and_no_container(tmp_path: Path) -> None:
    pod = saved.pod_path(saved.SYSTEMD, UIDS["Guaranteed"], "Guaranteed")
    names = ["crio-conmon-%s.scope" % ("a" * 64), "cri-containerd-%s.scope" % ("a" * 12), "init.scope", "a" * 63]
    others = ["kubepods.slice/kubepods-podx", "kubepods.slice/other.slice", "kubepods.slice/" + "a" * 64]
    saved.write_cgroups(
        tmp_path, saved.V2, {path: saved.Files() for path in [*(pod + "/" + name for name in names), *others]}
    )
    found = kubepods(tmp_path)
    assert list(found.pods()) == [UIDS["Guaranteed"]]
    assert found.containers() == {}
    with pytest.raises(InputError, match="leads out of the hierarchy"):
        kubepods(tmp_path, "../x")


@pytest.mark.parametrize("driver", [saved.SYSTEMD, saved.CGROUPFS])
def test_the_cgroups_of_qos_classes(tmp_path: Path, driver: str) -> None:
    cgroups = kubelet_cgroups(driver, "containerd")
    saved.write_cgroups(
        tmp_path, saved.V2, {path: files for path, files in cgroups.items() if "besteffort" not in path}
    )
    found = kubepods(tmp_path)
    (root,) = found.roots
    burstable = os.path.dirname(saved.pod_path(driver, UIDS["Burstable"], "Burstable"))
    assert found.qos_cgroups(root) == [root, burstable]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("%s", True),
        ("cri-containerd-%s.scope", True),
        ("crio-%s", True),
        # The monitor of a container is not the container.
        ("crio-conmon-%s.scope", False),
        ("%s0", False),
        ("x%s", False),
    ],
)
def test_container_id(name: str, expected: bool) -> None:
    wanted = "ab" * 32
    assert container_id(name % wanted) == (wanted if expected else "")


@pytest.mark.parametrize("name", ["", "x" * 64, "a" * 63, os.fsdecode(b"\xff" * 64)])
def test_no_container_id(name: str) -> None:
    assert container_id(name) == ""


@pytest.mark.parametrize(
    ("cgroup_root", "tops"),
    [
        ("", {"kubepods", "kubepods.slice"}),
        ("/runtime", {"runtime", "runtime.slice"}),
        ("/runtime.slice/pods", {"runtime.slice"}),
    ],
)
def test_where_a_kubelet_will_have_its_pods(tmp_path: Path, cgroup_root: str, tops: set[str]) -> None:
    saved.write_cgroups(tmp_path, saved.V2, {})
    assert kubepods(tmp_path, cgroup_root).tops >= tops
