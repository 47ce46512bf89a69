# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machines on whose kubelets people have reported, and what is right to say of them; each with its siblings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import isolation_notes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import start_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state import memory_manager
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import (
    CGROUPFS,
    SYSTEMD,
    V2,
    container_files,
    pod_path,
    write_cgroups,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.started import CONFIG, drift_of, node, state
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

STATIC = HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"
GIB = 1 << 30
CHECKPOINT = "var/lib/kubelet/cpu_manager_state"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an empty root: each test has its own machine."""
    return tmp_path


def refusal(root: Path, minor: int = 33) -> dict[str, Any] | None:
    """Return the finding for which the kubelet would not start."""
    found = start_report(node(root, minor), {})["findings"]
    return next((finding for finding in found if finding["fatal"]), None)


# --- CPUs that something switches off after the kubelet's start ---------------------------------------------


@pytest.mark.parametrize(
    ("machine", "default", "remark"),
    [
        ("1s2c2t+offline1,3", "0-3", "CPUs 1,3 are offline"),
        ("2s1n4c+interleaved+offline1,3,5,7", "0-7", "CPUs 1,3,5,7 are offline"),
        # A machine that was made smaller, or larger, has no CPU that is offline.
        ("1s2c", "0-3", ""),
        ("1s4c", "0-1", ""),
        # Those that are offline and in no set had been so before.
        ("1s4c+offline3", "0-1", ""),
    ],
)
def test_cpus_that_were_switched_off_are_told_from_those_that_are_gone(
    root: Path, machine: str, default: str, remark: str
) -> None:
    write_machine(root, machine)
    write(root, CONFIG, STATIC)
    write(root, CHECKPOINT, state(default).decode())
    found = refusal(root)
    assert found is not None
    assert found["text"].endswith('doesn\'t match with CPUs in state "%s"' % default)
    notes = [note for note in drift_of(root, {})["notes"] if "would not start again" in note]
    assert len(notes) == 1
    for said in (found["cause"], notes[0]):
        assert ("are offline" in said) is bool(remark)
        assert remark in said


# --- cores of two kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", ["1s2c2t4e+adjacent", "1s4c2t+offline5"])
def test_cores_of_two_kinds_have_no_sibling_to_switch_on(root: Path, machine: str) -> None:
    write_machine(root, machine)
    write(root, CONFIG, STATIC)
    found = start_report(node(root, 33), {})["findings"]
    (finding,) = (finding for finding in found if "unequal numbers" in finding["cause"])
    notes = [note for note in drift_of(root, {})["notes"] if "unequal numbers" in note]
    for said in (finding["remedy"], *notes):
        assert "where the machine has cores of two kinds" in said
        assert "switch SMT off" in said
    assert len(notes) == 1


# --- isolated CPUs of a container with several ------------------------------------------------------------------


@pytest.mark.parametrize(("exclusive", "is_said"), [("2-5", True), ("", False), ("0-1", False)])
def test_threads_on_exclusive_isolated_cpus_stay_where_they_began(exclusive: str, is_said: bool) -> None:
    topology = parse_name("1s16c+isolated2-15").topology()
    note = isolation_notes(topology, CPUSet.parse("6-15"), CPUSet.parse(exclusive))[0]
    assert note.startswith("the shared pool has the isolated CPUs 6-15")
    assert ("exclusive CPUs (2-5)" in note) is is_said


# --- the memory manager's state ---------------------------------------------------------------------------------

MEMORY = (
    HEADER
    + "memoryManagerPolicy: Static\nevictionHard: {memory.available: 100Mi}\nsystemReserved: {memory: 924Mi}\n"
    + "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)
FILE = "var/lib/kubelet/memory_manager_state"


def write_memory(root: Path, *totals: int, pages: int = 0) -> None:
    """Write two NUMA nodes with these bytes of memory, and huge pages of 2 MiB in the first."""
    write_machine(root, "2s1n4c")
    write(root, CONFIG, MEMORY)
    for number, total in enumerate(totals):
        place = "sys/devices/system/node/node%d/" % number
        write(root, place + "meminfo", "Node %d MemTotal: %d kB\n" % (number, total >> 10))
        write(root, place + "hugepages/hugepages-2048kB/nr_hugepages", "%d\n" % (0 if number else pages))
    write(root, "proc/meminfo", "MemTotal: %d kB\n" % (sum(totals) >> 10))


def write_state(root: Path, *nodes: dict[str, Any], entries: dict[str, Any] | None = None) -> None:
    machine: dict[int, Any] = {}
    for number, values in enumerate(nodes):
        kept = 0 if number else GIB
        rest = {"systemReserved": kept, "allocatable": values["total"] - kept, "reserved": values.get("reserved", 0)}
        table = {"total": values["total"], **rest, "free": rest["allocatable"] - rest["reserved"]}
        pages = dict.fromkeys(table, 0)
        shared = {"numberOfAssignments": len(entries or {}), "cells": [0, 1] if entries else [number]}
        machine[number] = {**shared, "memoryMap": {"hugepages-2Mi": pages, "memory": table}}
    value = {"policyName": "Static", "machineState": machine, "entries": entries or {}}
    shown = {**value, "machineState": {str(number): table for number, table in machine.items()}}
    shown = {key: part for key, part in shown.items() if part}
    write(root, FILE, json.dumps({**shown, "checksum": memory_manager.sum_of(memory_manager.FORMAT1, value)}))


@pytest.mark.parametrize(
    ("moved", "pages", "differing"),
    [
        (4096, 0, "NUMA node 0: memory: 8589934592 bytes in the file, 8589930496 bytes now; NUMA node 1: memory:"),
        (0, 16, "NUMA node 0: hugepages-2Mi: 0 bytes in the file, 33554432 bytes now)"),
        (0, 0, ""),
    ],
)
def test_what_of_a_machines_memory_is_another_than_in_the_state(
    root: Path, moved: int, pages: int, differing: str
) -> None:
    write_memory(root, 8 * GIB - moved, 8 * GIB + moved, pages=pages)
    write_state(root, {"total": 8 * GIB}, {"total": 8 * GIB})
    found = refusal(root)
    assert (found is not None) is bool(differing)
    if found is not None:
        assert found["where"].endswith("memory_manager_state")
        assert differing in found["cause"]
        assert "huge pages were allocated after the kubelet's start" in found["remedy"]


@pytest.mark.parametrize(("minor", "starts"), [(24, False), (31, False), (32, True), (36, True)])
def test_pods_over_two_numa_nodes_after_another_has_gone(root: Path, minor: int, starts: bool) -> None:
    """What a pod gave back is taken from the first node again: the sums are right, but not each node's."""
    write_memory(root, 8 * GIB, 8 * GIB)
    block = {"numaAffinity": [0, 1], "type": "memory"}
    pods = {"p": {"c": [{**block, "size": 9 * GIB}]}, "q": {"c": [{**block, "size": GIB}]}}
    write_state(root, {"total": 8 * GIB, "reserved": 6 * GIB}, {"total": 8 * GIB, "reserved": 4 * GIB}, entries=pods)
    found = refusal(root, minor)
    assert (found is None) is starts
    if found is not None:
        assert found["text"] == "[memorymanager] the expected machine state is different from the real one"
        assert "in the file" not in found["cause"]


# --- OpenShift's workload partitioning -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("default", "minor", "starts", "is_drift"),
    [
        # Its own kubelet writes this; an older patch level of 1.27 and 1.28 refuses it.
        ("1-7", 28, None, False),
        ("1-7", 29, True, False),
        # As it was before partitioning was switched on.
        ("0-7", 29, True, False),
        # What is missing beside that is refused as everywhere.
        ("2-7", 29, False, True),
        ("0-6", 29, False, True),
    ],
)
def test_openshift_keeps_reserved_cpus_out_of_the_default_set_by_itself(
    root: Path, default: str, minor: int, starts: bool | None, is_drift: bool
) -> None:
    write_machine(root, "1s8c")
    write(root, CONFIG, STATIC)
    write(root, CHECKPOINT, state(default).decode())
    pinning = "etc/kubernetes/openshift-workload-pinning"
    write(root, pinning, '{"management": {"cpuset": "0"}}')
    answer = start_report(node(root, minor), {})
    assert answer["starts"] is starts
    assert [doubt["reason"] for doubt in answer["unknown"] if pinning in doubt["reason"]] == [
        doubt["reason"] for doubt in answer["unknown"]
    ]
    assert bool(answer["unknown"]) is (starts is None)
    told = drift_of(root, {})
    assert [row["subject"] for row in told["drift"]] == ["checkpoint"] * is_drift
    assert not any("by design" in note for note in told["notes"])
    if default == "1-7":
        (root / pinning).unlink()
        assert start_report(node(root, minor), {})["starts"] is False


# --- drivers of cgroups ----------------------------------------------------------------------------------------------

RUNC = 'version = %d\n[plugins."%s".containerd.runtimes.runc.options]\nSystemdCgroup = %%s\n'
CONTAINERD = RUNC % (2, "io.containerd.grpc.v1.cri")
CONTAINERD_2 = RUNC % (3, "io.containerd.cri.v1.runtime") % "true"
DOCKER = '{"exec-opts": ["native.cgroupdriver=%s"]}'
CRIO = '[crio.runtime]\ncgroup_manager = "%s"\n'
SAID = {"systemd": "no new container starts", "cgroupfs": "behind systemd's back"}


@pytest.mark.parametrize(
    ("own", "endpoint", "path", "text", "minor", "theirs"),
    [
        ("cgroupfs", "containerd/containerd.sock", "etc/containerd/config.toml", CONTAINERD % "true", 20, "systemd"),
        ("systemd", "containerd/containerd.sock", "etc/containerd/config.toml", CONTAINERD % "true", 20, ""),
        ("systemd", "containerd/containerd.sock", "etc/containerd/config.toml", CONTAINERD % "false", 28, "cgroupfs"),
        # Nothing is set, and nothing is there.
        ("systemd", "containerd/containerd.sock", "etc/containerd/config.toml", "version = 2\n", 28, "cgroupfs"),
        ("systemd", "containerd/containerd.sock", "etc/other", "", 28, ""),
        ("cgroupfs", "containerd/containerd.sock", "etc/containerd/config.toml", CONTAINERD_2, 28, "systemd"),
        # The kubelet takes what the runtime says.
        ("cgroupfs", "containerd/containerd.sock", "etc/containerd/config.toml", CONTAINERD_2, 31, ""),
        ("systemd", "cri-dockerd.sock", "etc/docker/daemon.json", DOCKER % "cgroupfs", 24, "cgroupfs"),
        ("systemd", "cri-dockerd.sock", "etc/docker/daemon.json", DOCKER % "cgroupfs", 33, "cgroupfs"),
        ("cgroupfs", "cri-dockerd.sock", "etc/docker/daemon.json", DOCKER % "systemd", 24, "systemd"),
        ("systemd", "cri-dockerd.sock", "etc/docker/daemon.json", DOCKER % "systemd", 24, ""),
        ("systemd", "cri-dockerd.sock", "etc/docker/daemon.json", "{", 24, ""),
        ("systemd", "crio/crio.sock", "etc/crio/crio.conf", CRIO % "cgroupfs", 28, "cgroupfs"),
        ("cgroupfs", "crio/crio.sock", "etc/crio/crio.conf.d/10.conf", CRIO % "systemd", 28, "systemd"),
        ("cgroupfs", "crio/crio.sock", "etc/crio/crio.conf", "[crio]\n", 28, "systemd"),
        # k3s gives both the same.
        ("cgroupfs", "k3s/containerd/containerd.sock", "etc/containerd/config.toml", CONTAINERD % "true", 28, ""),
    ],
)
def test_a_runtime_that_makes_cgroups_by_another_driver(
    root: Path, own: str, endpoint: str, path: str, text: str, minor: int, theirs: str
) -> None:
    write_machine(root, "1s4c")
    write(root, CONFIG, HEADER + "cgroupDriver: %s\n" % own)
    flags = "KUBELET_KUBEADM_ARGS=--container-runtime-endpoint=unix:///run/%s\n" % endpoint
    write(root, "var/lib/kubelet/kubeadm-flags.env", flags)
    write(root, path, text)
    answer = start_report(node(root, minor), {})
    found = [finding for finding in answer["findings"] if finding["where"] == "cgroupDriver"]
    assert len(found) == bool(theirs)
    for finding in found:
        assert finding["cause"].startswith("the kubelet makes cgroups by the driver %s, and" % own)
        assert "by %s (" % theirs in finding["cause"]
        assert "/" + path in finding["cause"]
        assert SAID[theirs] in finding["cause"]
        assert not finding["fatal"]


# --- controllers of cgroup v2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("controllers", ["cpuset cpu memory pids", "cpuset cpu io pids", "cpu memory pids", "pids", ""])
@pytest.mark.parametrize("is_k3s", [True, False])
def test_a_controller_that_the_kernel_or_the_host_keeps_back(root: Path, controllers: str, is_k3s: bool) -> None:
    """A Raspberry Pi without cgroup_enable=memory; a rootless container without cpuset."""
    write_machine(root, "1s4c")
    write_cgroups(root, V2, {}, "0-3", "0")
    write(root, "sys/fs/cgroup/cgroup.controllers", controllers + "\n")
    if is_k3s:
        write(root, "etc/rancher/k3s/config.yaml", "kubelet-arg: [kube-reserved=cpu=500m]\n")
        write(root, "proc/900/cmdline", "/usr/local/bin/k3s\0server\0")
    else:
        write(root, CONFIG, HEADER)
    answer = start_report(node(root, 33), {})
    found = [finding for finding in answer["findings"] if finding["where"] == "cgroup.controllers"]
    lacking = [name for name in ("cpu", "cpuset", "memory") if controllers and name not in controllers.split()]
    assert len(found) == len(lacking)
    assert all("no controller %s on" % name in finding["cause"] for name, finding in zip(lacking, found))
    assert all("cgroup_enable=" in finding["remedy"] for finding in found)
    assert answer["starts"] is not (is_k3s and bool(lacking))
    if is_k3s and lacking:
        assert found[0]["text"] == "failed to find %s cgroup (v2)" % lacking[0]


# --- pods whose cgroups are not where the kubelet makes them --------------------------------------------------

_CRIO = '[crio.runtime]\ncgroup_manager = "%s"\n'
_DRIVER = STATIC + "cgroupDriver: %s\n"


@pytest.mark.parametrize(
    ("config", "made_by", "minor", "runtime", "said"),
    [
        (_DRIVER % "systemd", CGROUPFS, 30, "", "cgroupDriver systemd"),
        (_DRIVER % "cgroupfs", SYSTEMD, 30, "", "cgroupDriver cgroupfs"),
        (_DRIVER % "systemd", SYSTEMD, 30, "", ""),
        (_DRIVER % "cgroupfs", CGROUPFS, 30, "", ""),
        # A kubelet that takes the runtime's driver: the field of its own says nothing.
        (_DRIVER % "cgroupfs", SYSTEMD, 36, _CRIO % "systemd", ""),
        (_DRIVER % "cgroupfs", SYSTEMD, 36, _CRIO % "cgroupfs", "cgroupDriver cgroupfs"),
        # CRI-O's own default is systemd.
        (_DRIVER % "cgroupfs", SYSTEMD, 36, "", ""),
        # Pods of before a root of its own.
        (_DRIVER % "systemd" + "cgroupRoot: /pods\n", SYSTEMD, 30, "", "cgroupRoot pods"),
    ],
)
def test_pods_whose_cgroups_the_kubelet_does_not_find_are_said_to_be_made_anew(
    config: str, made_by: str, minor: int, runtime: str, said: str, root: Path
) -> None:
    write_machine(root, "1s4c")
    pod = pod_path(made_by, "uid-db", "Guaranteed")
    write_cgroups(root, V2, container_files(made_by, "cri-o", pod, "a" * 64, "1-2"), "0-3", "0")
    write(root, CONFIG, config)
    write(root, "etc/crio/crio.conf", runtime)
    this_node = node(root, minor)
    notes = this_node.observed(this_node.configuration())[1]
    assert [said in note and "drain" in note for note in notes] == ([True] if said else [])
