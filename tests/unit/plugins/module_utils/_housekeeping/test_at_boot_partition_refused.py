# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The partitions that are refused before anything is written."""

from __future__ import annotations

import re
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.dynamic_settings import POLICIES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import own_cpus
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import OwnCPUs
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.owners_found import owners_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import (
    GIVING_POLICIES,
    Facts,
    find_owners,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.partitioned import ONLINE, OWN, TOP, Saved
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

STATIC = HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0-3\n"
STRICT = STATIC + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n"


def wanted(saved: Saved, own: str = "2-3", name: str = OWN, made: Sequence[str] = (), config: str = STRICT) -> OwnCPUs:
    write(saved.root, "/var/lib/kubelet/config.yaml", config)
    node = Node(saved.tree)
    configuration, _problem = node.found()
    partition = OwnCPUs(cpus(own), "isolated", name)
    return own_cpus(node, configuration, cpus("0-3"), partition, ONLINE, made, owners_of(node, configuration))


def test_what_is_not_refused(saved: Saved) -> None:
    assert wanted(saved) == OwnCPUs(cpus("2-3"), "isolated", OWN)
    # Without the static policy, pods have no CPUs by name, and follow the CPUs that are left.
    assert wanted(saved, config=HEADER + "reservedSystemCPUs: 0-3\n").cpus == cpus("2-3")
    saved.make(OWN)
    assert wanted(saved, made=[OWN]).slice == OWN


@pytest.mark.parametrize(
    ("given_cpus", "reason"),
    [
        ("", "CPUs (none) are not online"),
        ("3,8", "CPUs 8 are not online"),
        ("3-4", "CPUs 4 are not reserved, so they are the pods'"),
        ("0-3", "they are all of the reserved CPUs that are online"),
    ],
)
def test_refused_cpus(saved: Saved, given_cpus: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=re.escape(reason)):
        wanted(saved, given_cpus)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (STATIC, "also to containers without exclusive ones; nothing was written; set strict-cpu-reservation"),
        (STRICT.replace("0-3", "0-2"), "the kubelet gives CPUs 3 to pods, as it reserves 0-2"),
    ],
)
def test_refused_by_the_kubelet(saved: Saved, config: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        wanted(saved, config=config)


WANTS = "/etc/systemd/system/%s.target.wants/kubenode-cpu-manager-reconcile.%s"
SETTINGS = "/etc/kubenode/cpu-manager-reconcile.json"


@pytest.mark.parametrize(
    ("files", "policy"),
    [
        ({}, ""),
        ({SETTINGS: '{"policy": "static"}', WANTS % ("timers", "timer"): ""}, ""),
        ({SETTINGS: '{"policy": "dynamic"}', WANTS % ("multi-user", "service"): ""}, "dynamic"),
        ({SETTINGS: '{"policy": "isolated"}', WANTS % ("multi-user", "service"): ""}, "isolated"),
        # The settings may be elsewhere, and those of before may be left.
        ({WANTS % ("multi-user", "service"): ""}, "dynamic or isolated"),
        ({SETTINGS: '{"policy": "dynamic"}', WANTS % ("timers", "timer"): ""}, ""),
        ({SETTINGS: '{"policy": "dynamic"}'}, "dynamic"),
        ({SETTINGS: ""}, ""),
    ],
)
def test_refused_as_the_role_reconcile_gives_cpus_out(saved: Saved, files: dict[str, str], policy: str) -> None:
    for path, text in files.items():
        write(saved.root, path, text)
    if not policy:
        assert wanted(saved).cpus == cpus("2-3")
        return
    with pytest.raises(
        RefusedError, match="the role reconcile gives CPUs out here by its policy %s," % policy
    ) as refused:
        wanted(saved)
    assert "reconcile_policy: static" in str(refused.value)


def test_what_the_role_reconcile_has_left_behind(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the node itself, a file alone does nothing."""
    write(saved.root, SETTINGS, '{"policy": "dynamic"}')
    (owner,) = find_owners(saved.tree, Facts())
    node = Node(saved.tree)
    own = OwnCPUs(cpus("2-3"), "isolated", OWN)
    left = owner._replace(is_active=False)
    assert own_cpus(node, None, cpus("0-3"), own, ONLINE, (), [left]) == own


def test_the_policies_by_which_cpus_are_given_out() -> None:
    assert GIVING_POLICIES == POLICIES


@pytest.mark.parametrize("path", ["kubepods.slice", "kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope"])
def test_refused_as_pods_have_them(saved: Saved, path: str) -> None:
    saved.make(path)
    write(saved.root, TOP + path + "/cpuset.cpus", "0-1,3\n")
    with pytest.raises(RefusedError, match="CPUs 2-3 belong to pods: .*%s has some of them" % path):
        wanted(saved)


@pytest.mark.parametrize(
    "name", ["system.slice", "kubepods.slice", "a-b.slice", "a.service", "../x.slice", "-.slice", ".slice", ""]
)
def test_refused_names(saved: Saved, name: str) -> None:
    with pytest.raises(RefusedError, match="can be no slice of its own"):
        wanted(saved, name=name)


def test_refused_as_it_is_somebody_elses(saved: Saved) -> None:
    saved.make("dpdk.slice")
    write(saved.root, "/etc/systemd/system/own.slice", "[Slice]\n")
    for name in ("dpdk.slice", "own.slice"):
        with pytest.raises(RefusedError, match="is there, and was not made here"):
            wanted(saved, name=name)


def test_refused_by_the_kernel(saved: Saved) -> None:
    for path in saved.root.rglob("cpuset.cpus.exclusive"):
        path.unlink()
    write(saved.root, "/proc/sys/kernel/osrelease", "6.1.0-1-amd64\n")
    with pytest.raises(
        RefusedError, match=re.escape("the kernel 6.1.0-1-amd64 is too old: it has no cpuset.cpus.exclusive")
    ):
        wanted(saved)
