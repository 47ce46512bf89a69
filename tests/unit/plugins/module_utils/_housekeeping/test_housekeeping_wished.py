# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wished of a node, and the files that follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.at_boot import AtBoot, boot_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import (
    kernel_line,
    possible_cpus,
    reserved_cpus,
    still_booted,
    waits_for_boot,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.loaders import grub
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
RESERVED, POSSIBLE = CPUSet.parse("0-1"), CPUSet.parse("0-7")


@pytest.mark.parametrize(
    ("configuration", "reserved"),
    [
        ('cpuManagerPolicy: static\nreservedSystemCPUs: "0,4"\n', "0,4"),
        ('reservedSystemCPUs: "0,4"\n', "0,4"),
        ('cpuManagerPolicy: static\nkubeReserved: {cpu: "2"}\n', "0,4"),
    ],
)
def test_what_the_kubelet_reserves(tmp_path: Path, configuration: str, reserved: str) -> None:
    write_machine(tmp_path, "1s4c2t")
    write(tmp_path, "/var/lib/kubelet/config.yaml", KUBELET + configuration)
    node = Node(Tree(str(tmp_path)))
    assert reserved_cpus(node, None) == CPUSet.parse(reserved)
    assert reserved_cpus(node, CPUSet.parse("7")) == CPUSet.parse("7")


def test_nobody_reserves(tmp_path: Path) -> None:
    write_machine(tmp_path, "1s4c2t")
    with pytest.raises(NodeError, match="no kubelet"):
        reserved_cpus(Node(Tree(str(tmp_path))), None)
    write(tmp_path, "/var/lib/kubelet/config.yaml", KUBELET)
    with pytest.raises(RefusedError, match="reserves no CPUs"):
        reserved_cpus(Node(Tree(str(tmp_path))), None)
    with pytest.raises(RefusedError, match="reserves no CPUs") as caught:
        reserved_cpus(Node(Tree(str(tmp_path)), command_line=["/usr/bin/kubelet", "--v=2"]), None)
    assert caught.value.where == str(tmp_path)


def test_the_kernel_line(tmp_path: Path) -> None:
    tree = grub(tmp_path, directory={})
    write(tmp_path, "/proc/cmdline", "root=/dev/vda irqaffinity=0-1\n")
    line = kernel_line(tree, RESERVED, POSSIBLE, ["irqaffinity", "rcu_nocbs"], True, is_written=True)
    assert [(row["name"], row["booted"], row["wanted"]) for row in line.rows] == [
        ("irqaffinity", "0-1", "0-1"),
        ("rcu_nocbs", None, "2-7"),
    ]
    assert all(row["reason"] for row in line.rows)
    assert line.reboot == ["rcu_nocbs=2-7 counts from the next boot on"]
    assert kernel_line(tree, RESERVED, POSSIBLE, ["rcu_nocbs"], True, is_written=False).reboot == []
    with pytest.raises(RefusedError, match="isolcpus=domain"):
        kernel_line(tree, RESERVED, POSSIBLE, ["domain"], True, is_written=False)


def test_what_the_next_boot_takes_away(tmp_path: Path) -> None:
    """What was written here, as its mark says, and is no longer wanted."""
    tree = grub(tmp_path, directory={})
    write(
        tmp_path,
        "/proc/cmdline",
        "nohz_full=2-7 kubenode.housekeeping=irqaffinity,rcu_nocbs irqaffinity=0,1 rcu_nocbs=2-7",
    )
    gone = "the kernel runs with %s until the next boot"
    assert still_booted(tree) == [gone % "irqaffinity", gone % "rcu_nocbs"]
    # The same CPUs in other words are no change.
    line = kernel_line(tree, RESERVED, POSSIBLE, ["irqaffinity"], True, is_written=True)
    assert line.reboot == [gone % "rcu_nocbs"]
    # They are taken off the line where none are to be written any more.
    assert kernel_line(tree, RESERVED, POSSIBLE, None, True, is_written=False).reboot == still_booted(tree)
    write(tmp_path, "/proc/cmdline", "nohz_full=2-7")
    assert still_booted(tree) == []


def test_a_node_without_a_loader(tmp_path: Path) -> None:
    tree = Tree(str(tmp_path))
    assert kernel_line(tree, RESERVED, POSSIBLE, None, True, is_written=False).rows
    with pytest.raises(RefusedError, match="cannot be written") as caught:
        kernel_line(tree, RESERVED, POSSIBLE, ["rcu_nocbs"], True, is_written=True)
    assert "rcu_nocbs=2-7" in caught.value.remedy


@pytest.mark.parametrize(
    ("status", "waits"),
    [
        ("Name:\tsystemd\nCpus_allowed_list:\t0-7\n", True),
        ("Cpus_allowed_list:\t0\n", False),
        ("Cpus_allowed_list:\trubbish\n", False),
        ("", False),
        (None, False),
    ],
)
def test_waits_for_boot(tmp_path: Path, status: str | None, waits: bool) -> None:
    if status is not None:
        write(tmp_path, "/proc/1/status", status)
    assert bool(waits_for_boot(Tree(str(tmp_path)), RESERVED)) is waits


@pytest.mark.parametrize(("text", "cpus"), [("0-15\n", "0-15"), ("rubbish", "0-7"), (None, "0-7"), ("0-3", "0-7")])
def test_possible_cpus(tmp_path: Path, text: str | None, cpus: str) -> None:
    if text is not None:
        write(tmp_path, "/sys/devices/system/cpu/possible", text)
    assert possible_cpus(Tree(str(tmp_path)), POSSIBLE) == CPUSet.parse(cpus)


def test_the_services() -> None:
    """What takes the network of the host, and a capability, is in a service of its own, where it is wished."""
    (program, *units), links = boot_files(AtBoot(b"zip", "/usr/bin/python3"), ("rps", "interrupts"))
    assert (program.content, program.mode) == (b"zip", 0o755)
    for unit, part, has_network in zip(units, ("kernel", "network"), (False, True)):
        lines = unit.content.decode().splitlines()
        assert "ExecStart=/usr/bin/python3 -I -S %s / %s" % (program.path, part) in lines
        assert "Before=kubelet.service irqbalance.service" in lines
        assert "PrivateNetwork=%s" % ("no" if has_network else "yes") in lines
        assert "CapabilityBoundingSet=%s" % ("CAP_NET_ADMIN" if has_network else "") in lines
    wants = "/etc/systemd/system/multi-user.target.wants/"
    names = ("kubenode-housekeeping.service", "kubenode-housekeeping-network.service")
    assert links == {wants + name: unit.path for name, unit in zip(names, units)}
    files, links = boot_files(AtBoot(b"zip", "/usr/bin/python3"), ("interrupts",))
    assert (len(files), list(links)) == (2, [wants + names[0]])
