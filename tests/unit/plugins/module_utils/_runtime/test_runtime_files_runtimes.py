# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_runtime/runtime_files.py: which runtime a node has, and its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._runtime.runtime_files import (
    find_runtime,
    runtime_version,
    with_version,
)

from .runtime_files import CONTAINERD, CRIO, CRIO_MAIN, K3S, MAIN, OF_K3S


@pytest.mark.parametrize(
    ("endpoint", "distribution", "config", "service"),
    [
        (None, "", MAIN, "containerd"),
        (CONTAINERD, "kubeadm", MAIN, "containerd"),
        (CRIO, "kubeadm", CRIO_MAIN, "crio"),
        (OF_K3S, "k3s", K3S + "config.toml", ""),
        (OF_K3S, "RKE2", K3S.replace("k3s", "rke2") + "config.toml", ""),
        (
            "unix:///var/snap/microk8s/common/run/containerd.sock",
            "MicroK8s",
            "/var/snap/microk8s/current/args/containerd-template.toml",
            "snap.microk8s.daemon-containerd",
        ),
    ],
)
def test_which_runtime(endpoint: str | None, distribution: str, config: str, service: str, tmp_path: Path) -> None:
    runtime = find_runtime(Tree(str(tmp_path)), endpoint, distribution)
    assert (runtime.config, runtime.service, runtime.version) == (config, service, None)


def test_only_one_runtime_is_there(tmp_path: Path) -> None:
    (tmp_path / "etc/crio").mkdir(parents=True)
    assert find_runtime(Tree(str(tmp_path)), None).kind == "CRI-O"
    (tmp_path / "etc/containerd").mkdir()
    assert find_runtime(Tree(str(tmp_path)), None).kind == "containerd"


@pytest.mark.parametrize("endpoint", ["unix:///run/cri-dockerd.sock", "unix:///run/k0s/containerd.sock"])
def test_runtimes_that_are_not_configured_here(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError):
        find_runtime(Tree(str(tmp_path)), endpoint)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.7.22", (1, 7)),
        ("2.0", (2, 0)),
        ("containerd github.com/containerd/containerd v1.7.22 7f7fdf5\n", (1, 7)),
        ("containerd github.com/containerd/containerd/v2 v2.1.3 c787fb98911740dd3ff2d0e45ce88cdf01410486\n", (2, 1)),
        ("crio version 1.31.4\n  GitCommit: unknown\n", (1, 31)),
    ],
)
def test_versions(text: str, version: tuple[int, int]) -> None:
    assert runtime_version(text) == version


def test_a_version_that_is_none() -> None:
    with pytest.raises(InputError):
        runtime_version("new")


class LiveTree(Tree):
    """As a live node's."""

    @property
    def live(self) -> bool:
        return True


def test_the_version_of_a_program(tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def run(words: object) -> str:
        asked.append(list(words))  # type: ignore[call-overload]
        if len(asked) == 1:
            raise NodeError("no such file")
        return "containerd x v1.7.2"

    runtime = find_runtime(Tree(str(tmp_path)), OF_K3S, "k3s")
    assert with_version(LiveTree(str(tmp_path)), runtime, run).version == (1, 7)
    assert asked == [["/var/lib/rancher/k3s/data/current/bin/containerd", "--version"], ["containerd", "--version"]]
    assert with_version(Tree(str(tmp_path)), runtime, run).version is None
    assert with_version(LiveTree(str(tmp_path)), runtime._replace(version=(2, 0)), run).version == (2, 0)
    assert len(asked) == 2
