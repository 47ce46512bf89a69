# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/start_check.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    config_after,
    predict_configuration,
    predicted_starts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import CPUManagerConfig
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
CONFIG = "var/lib/kubelet/config.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_machine(tmp_path, "1s4c2t")
    write(tmp_path, CONFIG, HEADER + STATIC)
    return tmp_path


def write(root: Path, path: str, content: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")


def node(root: Path) -> Node:
    return Node(Tree(str(root)))


def change(root: Path, before: str, **wanted: Any) -> CPUManagerConfig:
    """Return what the CPU manager starts with when this is changed."""
    write(root, CONFIG, HEADER + before)
    return config_after(predicted_starts(node(root), wanted))


def test_a_change_with_which_the_kubelet_would_not_start_is_refused(root: Path) -> None:
    """Unless it would not start before either, for the same reason, and it is certain what the CPU manager would do."""
    assert change(root, STATIC, reserved_system_cpus="0").reserved == CPUSet([0])
    # A key that the kubelet ignores is no obstacle.
    assert change(root, STATIC + "reservedCPUs: 0\n", reserved_system_cpus="0").reserved == CPUSet([0])
    with pytest.raises(RefusedError) as caught:
        change(root, STATIC, reserved_system_cpus="0,99")
    assert str(caught.value) == (
        "reserved_system_cpus: the kubelet would not start: reserved-cpus: 0,99 is not a subset of online-cpus: 0-7"
        " (the node has no CPUs 99, or they are offline); take others, or switch them on"
    )
    bad = STATIC + "maxPods: -1\n"
    assert change(root, bad, cpu_manager_reconcile_period="5s").reserved == CPUSet.parse("0,4")
    with pytest.raises(RefusedError, match=r"^topology_manager_policy_options\.no-such: the kubelet would not start: "):
        change(root, bad, topology_manager_policy="restricted", topology_manager_policy_options={"no-such": "true"})
    # Of these settings, what is found wrong is wanted no less.
    for found in ("cpuManagerPolicy: static\n", STATIC + "cpuManagerPolicyOptions: {no-such: 'true'}\n"):
        with pytest.raises(RefusedError, match="the kubelet would not start"):
            change(root, found, cpu_manager_reconcile_period="5s")


def test_what_does_not_change_is_predicted_once(root: Path) -> None:
    for wanted in ({}, {"reserved_system_cpus": "4,0"}):
        starts = predicted_starts(node(root), wanted)
        assert starts.planned == starts.found
        assert config_after(starts).reserved == CPUSet.parse("0,4")


def test_nobody_can_want_to_reserve_all_cpus(root: Path) -> None:
    with pytest.raises(RefusedError, match=r"^reserving all of the CPUs 0-7 leaves none"):
        change(root, STATIC, reserved_system_cpus="0-7")


@pytest.mark.parametrize(
    ("files", "content"),
    [
        ({}, "podCIDR: !!timestamp 2026-01-01\n"),  # nobody knows what the kubelet makes of it
        ({"proc/7/cmdline": "/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0"}, None),
    ],
)
def test_what_cannot_be_read_is_planned_as_it_is(root: Path, files: Mapping[str, str], content: str | None) -> None:
    """It is what is found, and no change cures it."""
    for path, text in files.items():
        write(root, path, text)
    write(root, CONFIG, HEADER + STATIC + (content or ""))
    if content is None:
        (root / CONFIG).unlink()
    starts = predicted_starts(node(root), {"cpu_manager_policy": "none"})
    assert starts.planned == starts.found
    assert predict_configuration(node(root), {"cpu_manager_policy": "none"}) == starts.found
    assert starts.found.starts is (None if content else False)
    with pytest.raises(
        RefusedError, match="it cannot be determined with what" if content else "config.yaml: no such file"
    ):
        config_after(starts)
