# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real kubelet on machines that exist as files: what it sees, refuses and writes, we say, too."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.installation import running_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .control_plane import ControlPlane
from .kubelet.configuration import CommandLine, StartError, effective_configuration
from .kubelet.managers import Managers
from .kubelet_node import CHECKPOINT, CONFIG, STARTED, KubeletNode, saved, wait_until

VERSION = kubernetes.version()
MINOR = kubernetes.minor_of(VERSION)
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4"}
NONE: dict[str, Any] = {}


class Case(NamedTuple):
    configuration: dict[str, Any]
    checkpoint: bytes | None = None
    machine: str = "1s4c2t"


FRESH = saved("static", "0-7")
CASES = {
    # What starts.
    "none": Case(NONE),
    "static": Case(STATIC),
    "static-again": Case(STATIC, FRESH),
    "none-again": Case(NONE, saved("none", "")),
    "pinned": Case(STATIC, saved("static", "0,2-4,6-7", web="1,5")),
    "counted": Case({"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "1100m"}}),
    "offline": Case(STATIC, machine="1s4c2t+offline5"),
    "misspelt": Case({**STATIC, "reservedCpus": "1"}),
    "unreserved-none": Case({"kubeReserved": {"cpu": "1"}}),
    # What it refuses of the checkpoint.
    "to-static": Case(STATIC, saved("none", "")),
    "to-none": Case(NONE, FRESH),
    "wrong-checksum": Case(STATIC, FRESH.replace(b"0-7", b"0-6")),
    "cut": Case(STATIC, FRESH[:40]),
    "empty": Case(STATIC, b""),
    "no-json": Case(STATIC, b"cpus"),
    "newer-format": Case(STATIC, saved("static", "0-7", minor=37)),
    "went-offline": Case(STATIC, FRESH, machine="1s4c2t+offline5"),
    "came-online": Case(STATIC, saved("static", "0-4,6-7")),
    "reserved-is-taken": Case({**STATIC, "reservedSystemCPUs": "1,5"}, saved("static", "0,2-4,6-7", web="1,5")),
    "overlap": Case(STATIC, saved("static", "0,2-7", web="1,5")),
    "no-default": Case(STATIC, saved("static", "", web="0-7")),
    # What it refuses of the configuration.
    "nothing-reserved": Case({"cpuManagerPolicy": "static"}),
    "absent-cpus": Case({**STATIC, "reservedSystemCPUs": "0,40"}),
    "counted-cpus": Case({**STATIC, "reservedSystemCPUs": "3,7"}, machine="1s4c2t+offline5"),
    "no-list": Case({**STATIC, "reservedSystemCPUs": "0;4"}),
    "no-policy": Case({**STATIC, "cpuManagerPolicy": "Static"}),
    "too-many": Case({"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "9"}}),
    "cgroup-too": Case({**STATIC, "systemReservedCgroup": "/system"}),
    "no-scope": Case({**STATIC, "topologyManagerScope": "node"}),
    "many-numa-nodes": Case({**STATIC, "topologyManagerPolicy": "restricted"}, machine="9n2c2t"),
}


def real_answer(node: KubeletNode) -> list[str]:
    """Return what the kubelet says until it has started, or ended."""
    node.start()
    wait_until(lambda: any(STARTED in line or line.startswith("service: end") for line in node.log()))
    return node.log()


def our_answer(node: KubeletNode) -> str:
    """Return why ours does not start, in the kubelet's words; empty when it does."""
    tree = Tree(str(node.root))
    try:
        values = effective_configuration(tree, CommandLine.parse(["--config=" + CONFIG]))
        managers = Managers(Node(tree, CONFIG, None, MINOR), values)
        managers.start()
    except StartError as error:
        return re.sub("^[^:]*: (start (cpu|memory) manager error: )?", "", str(error))
    # No API server tells of pods, so there are none.
    managers.all_told()
    managers.reconcile()
    return ""


@pytest.mark.parametrize("name", CASES)
def test_the_real_kubelet_and_ours_agree(real_kubelet: Path, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    ours = KubeletNode(tmp_path / "ours", case.machine, case.configuration)
    with KubeletNode(tmp_path / "real", case.machine, case.configuration, real=real_kubelet) as real:
        ours.configure(real.configuration())
        if case.checkpoint is not None:
            for node in (real, ours):
                node.write(CHECKPOINT, case.checkpoint.decode("ascii"))
        refusal = our_answer(ours)
        log = real_answer(real)
        if refusal:
            said = kubernetes.words(name, VERSION) or refusal
            # Newer ones quote what they say.
            assert any(said in line.replace('\\"', '"') for line in log), refusal + "".join(
                "\n" + line for line in log if "ailed" in line
            )
        assert any(STARTED in line for line in log) == (not refusal)
        wait_until(lambda: real.read(CHECKPOINT) == ours.read(CHECKPOINT), lambda: str(real.read(CHECKPOINT)))


def test_a_refusal_of_the_checkpoint_comes_late(real_kubelet: Path, tmp_path: Path) -> None:
    with KubeletNode(tmp_path / "real", "1s4c2t", STATIC, real=real_kubelet) as node:
        node.write(CHECKPOINT, saved("none", "").decode("ascii"))
        said = [
            line.split(" ")[0]
            for line in (line.lstrip('"') for line in real_answer(node))
            if line.startswith(("Started kubelet", "Failed to start"))
        ]
    assert said == ["Started", "Failed"]


def seen_by(node: KubeletNode) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return (CPU, its NUMA node, socket, core) of each CPU, as the kubelet logs them, and as we say."""
    (seen,) = (line for line in real_answer(node) if "detected CPU topology" in line)
    view = kubelet_view(read_sysfs(Tree(str(node.root))))
    # As Go prints it: map[0:{0 0 0} 1:{0 0 1}]
    rows = re.findall("([0-9]+):{([0-9]+) ([0-9]+) ([0-9]+)}", seen)
    kinds = (view.numa_nodes, view.sockets, view.cores)
    ours = [
        (cpu, *(next(n for n, mask in kind.items() if mask >> cpu & 1) for kind in kinds)) for cpu in view.all_cpus()
    ]
    return [tuple(map(int, row)) for row in rows], ours


@pytest.mark.parametrize(
    "machine",
    [
        # Not with both sockets in one NUMA node, where it mixes up their cores.
        "1s4c",
        "2s1n8c2t+offline3",
        "2s2n3c2t+adjacent",
        "2s1n10c2t+interleaved+offline5,29",
        "1s6c2t8e+adjacent",
        "2s1n4c2t+memory2+nodes0-1,4-5",
        "4s1n4c+nodes0,8,16,24",
    ],
)
def test_the_real_kubelet_of_1_20_sees_the_cpus_that_we_say(real_kubelet: Path, tmp_path: Path, machine: str) -> None:
    with KubeletNode(tmp_path / "real", machine, {**STATIC, "reservedSystemCPUs": "0"}, real=real_kubelet) as node:
        rows, ours = seen_by(node)
    assert rows == ours


def test_the_real_kubelet_of_1_20_takes_cores_of_one_id_for_one(real_kubelet: Path, tmp_path: Path) -> None:
    """A board whose kernel counts the cores of each cluster anew: four, two and two."""
    with KubeletNode(tmp_path / "real", "1s8c", {**STATIC, "reservedSystemCPUs": "0"}, real=real_kubelet) as node:
        for cpu, core_id in {4: 0, 5: 1, 6: 0, 7: 1}.items():
            node.write("/sys/devices/system/cpu/cpu%d/topology/core_id" % cpu, "%d\n" % core_id)
        rows, ours = seen_by(node)
    assert rows == ours
    assert {core for *_others, core in rows} == {0, 1, 2, 3}


def test_the_real_kubelet_of_1_20_takes_sockets_for_nodes_without_numa(real_kubelet: Path, tmp_path: Path) -> None:
    with KubeletNode(tmp_path / "real", "2s1n2c2t", {**STATIC, "reservedSystemCPUs": "0"}, real=real_kubelet) as node:
        shutil.rmtree(node.root / "sys/devices/system/node")
        (node.root / "sys/devices/system/node").mkdir()
        # There it overlooks a CPU that cannot be switched off.
        node.write("/sys/devices/system/cpu/cpu0/online", "1\n")
        rows, ours = seen_by(node)
    assert rows == ours
    assert {numa_node for _cpu, numa_node, *_others in rows} == {0, 1}


def pid_of(program: Path, name: str) -> int:
    """Return the process that runs it for the node of this name."""
    for link in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):
            flags = (link.parent / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
            if link.resolve() == program.resolve() and "--hostname-override=" + name in flags:
                return int(link.parent.name)
    raise AssertionError("no kubelet of %s runs" % name)


def test_a_node_of_the_cluster(real_kubelet: Path, control_plane: ControlPlane, tmp_path: Path) -> None:
    name = "real-%d" % os.getpid()
    with KubeletNode(tmp_path / name, "1s4c2t", STATIC, control_plane=control_plane, real=real_kubelet) as node:
        node.start()
        control_plane.wait_for("node/" + name, "Ready")
        control_plane.kubectl("cordon", name)
        node.restart()
        node.wait_for(STARTED, times=2)
        pid = pid_of(real_kubelet / "kubelet", name)
        version, mounts = running_version(pid), Path("/proc/%d/mountinfo" % pid).read_text(encoding="utf-8")
        (found,) = control_plane.objects("nodes", "--field-selector=metadata.name=" + name)
    control_plane.kubectl("delete", "node", name)
    assert found["spec"]["unschedulable"]
    assert found["status"]["nodeInfo"]["kubeletVersion"] == "v" + VERSION
    assert version == VERSION
    # More is a mount of its own over it, of which it dies now and then.
    assert [line.split()[4] for line in mounts.splitlines()].count("/var/lib/kubelet") == 1
    assert (found["status"]["capacity"]["cpu"], found["status"]["allocatable"]["cpu"]) == ("8", "6")
