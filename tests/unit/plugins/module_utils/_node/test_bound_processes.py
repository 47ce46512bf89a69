# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes of containers that have fewer CPUs than their cgroup: which file of the node has bound them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.binders import with_binders
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import Observed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.enforcement import compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    V1,
    Files,
    Listed,
    write_cgroups,
    write_containers,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.started import node

SERVICE = "/etc/systemd/system/k3s.service"
UNIT = "[Service]\nCPUAffinity=%s\nExecStart=/usr/local/bin/k3s server\n"
ACTIVE, PROFILE = "etc/tuned/active_profile", "etc/tuned/rt/tuned.conf"


def look(root: Path, files: dict[str, str]) -> Observed:
    """Return what runs on the node with these files: a container in the shared pool."""
    write_containers(
        root, [Listed("bbbbbbbb-2222-4222-8222-222222222222", "Burstable", "shop/web-0", "app", "")], "0-7", "0"
    )
    for path, text in files.items():
        write(root, path, text)
    here = node(root, 33)
    observed, _notes = here.observed(here.configuration())
    assert observed is not None
    return observed


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "it binds itself, or has the CPUAffinity= of the service"),
        ({SERVICE[1:]: UNIT % "0-1"}, "these are the CPUs of CPUAffinity= in %s: take that out" % SERVICE),
        ({SERVICE[1:]: UNIT % "0-3"}, "it binds itself"),
        (
            {"etc/systemd/system.conf": "[Manager]\nCPUAffinity=0 1\n"},
            "these are the CPUs of CPUAffinity= in /etc/systemd/system.conf: take that out",
        ),
        ({ACTIVE: "rt\n", PROFILE: "[scheduler]\nisolated_cores=2-7\n"}, "of tuned's profile rt, without"),
        (
            {ACTIVE: "rt\n", PROFILE: "[scheduler]\nisolated_cores=2-7\ncgroup_ps_blacklist=/kubepods\\.slice/\n"},
            "it binds itself",
        ),
    ],
)
def test_the_file_that_binds_the_processes_of_containers_is_named(root: Path, files: dict[str, str], said: str) -> None:
    look(root, files)
    for place in root.rglob("cgroup.procs"):
        for process in place.read_text("ascii").split():
            write(root, "proc/%s/status" % process, "Name:\tapp\nCpus_allowed_list:\t0-1\n")
    observed = look(root, files)
    assert observed.is_bound
    notes = compare(with_binders(Tree(str(root)), observed), "none", State(CPUSet(), {})).notes
    (note,) = [note for note in notes if "bound to fewer" in note]
    assert said in note


def test_on_a_node_where_nothing_is_bound_no_file_is_looked_for(root: Path) -> None:
    assert not look(root, {SERVICE[1:]: UNIT % "0-1"}).is_bound


@pytest.mark.parametrize("name", ["kubepods-burstable-podx.slice:cri-containerd:%s" % ("a" * 64), "other"])
def test_containers_whose_runtime_takes_a_slice_for_a_directory_are_named(root: Path, name: str) -> None:
    """They are beside kubepods.slice, where the kubelet finds none of them, and kills and makes them anew."""
    write_cgroups(root, V1, {name: Files("0-7", "0", (4242,)), "kubepods.slice": Files("0-7", "0")}, "0-7", "0")
    here = node(root, 33)
    observed, _notes = here.observed(here.configuration())
    assert observed is not None
    notes = [note for note in compare(observed, "none", State(CPUSet(), {})).notes if "SystemdCgroup" in note]
    assert len(notes) == (name != "other")
