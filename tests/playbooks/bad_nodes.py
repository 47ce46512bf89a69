# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes on which one thing is wrong: what can be changed there, who is asked, and what a message has to say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

from .conftest import Run, play

CONFIG = "var/lib/kubelet/config.yaml"
CHECKPOINT = "var/lib/kubelet/cpu_manager_state"
CPU = "sys/devices/system/cpu/"
CORE = "cpu0/topology/core_cpus"
OUTSIDE = "outside"

OPTIONS = "cpu_manager_policy_options"
PERIOD = "cpu_manager_reconcile_period"
RESERVED = "reserved_system_cpus"
ROLE = "role"

CONFIGURATION = HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"

# 8 CPUs; a core is n, n+4.
MACHINE = "2s1n2c2t"

Change = Callable[[Path], None]


def as_it_is(root: Path) -> None:
    """Change nothing."""


class Bad(NamedTuple):
    """One thing that is wrong, and what the message is to say about it."""

    # A module, or the role kubelet, whose parameters are variables.
    asked: str
    # The file or the parameter that is wrong, and what to do about it: texts in the message.
    subject: str
    remedy: str
    parameters: Mapping[str, Any] = {}
    change: Change = as_it_is
    machine: str = MACHINE
    # In place of the tree.
    root: str = ""
    # Ansible itself refuses some parameters before it knows the node.
    knows_node: bool = True


def text(path: str, content: str | bytes) -> Change:
    """Return a change that gives a file other content."""

    def change(root: Path) -> None:
        # Not the file of the other trees, which is the same one.
        (root / path).unlink(missing_ok=True)
        (root / path).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))

    return change


def added(lines: str) -> Change:
    """Return a change that adds lines to the configuration."""
    return text(CONFIG, CONFIGURATION + lines)


def directory(path: str) -> Change:
    """Return a directory in a file's place."""

    def change(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        (root / path).mkdir()

    return change


def longer(path: str, most: int) -> Change:
    """Return the file is longer than that, and takes no room on the disk."""

    def change(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        with (root / path).open("wb") as file:
            file.truncate(most + 1)

    return change


def fifo(path: str) -> Change:
    """Return a pipe that nobody writes to in a file's place: who opens it as a file waits forever."""

    def change(root: Path) -> None:
        (root / path).unlink(missing_ok=True)
        os.mkfifo(root / path)

    return change


def led_out(path: str) -> Change:
    """Return a link to what stands in a file's or directory's place, outside of the tree."""

    def change(root: Path) -> None:
        target = root.parent / OUTSIDE / root.name
        target.parent.mkdir(exist_ok=True)
        (root / path).rename(target)
        (root / path).symlink_to(target)

    return change


def removed(path: str) -> Change:
    """Return a change that removes a file."""
    return lambda root: (root / path).unlink()


def flags(*words: str) -> Change:
    """Return these flags for the kubelet."""

    def change(root: Path) -> None:
        (root / "etc/default").mkdir(parents=True)
        (root / "etc/default/kubelet").write_text('KUBELET_EXTRA_ARGS="%s"\n' % " ".join(words), encoding="ascii")

    return change


def network_card(numa_node: str) -> Change:
    """Return a network device eth0 that is attached to this NUMA node."""

    def change(root: Path) -> None:
        device = root / "sys/class/net/eth0/device"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(numa_node + "\n", encoding="ascii")

    return change


def checkpoint(policy: str, default: str, **containers: str) -> Change:
    """Return a checkpoint with a pod of these containers."""
    assignments = {"a-pod": {name: CPUSet.parse(cpus) for name, cpus in containers.items()}} if containers else {}
    return text(CHECKPOINT, write_checkpoint(policy, State(CPUSet.parse(default), assignments)))


# The pod's CPUs are one core, 1 and 5.
IN_USE = checkpoint("static", "0,2-4,6-7", app="1,5")

# A play in which all hosts fail would end the run: here one is not asked.
BYSTANDER = "bystander"


def make_node(root: Path, machine: str) -> None:
    """Make a node with a kubelet that is as it should be; its name is its machine."""
    topology = write_machine(root, machine)
    (root / "etc").mkdir()
    (root / "var/lib/kubelet").mkdir(parents=True)
    (root / "etc/hostname").write_text(machine + "\n", encoding="ascii")
    text(CONFIG, CONFIGURATION)(root)
    checkpoint("static", str(topology.online))(root)


def host(root: str, asked: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of a node."""
    return {"kubelet_node_root": root, **parameters} if asked == ROLE else {"parameters": {"root": root, **parameters}}


def ask_all(table: Mapping[str, Bad]) -> list[dict[str, Any]]:
    """Return a play for each module and role that asks the nodes for which it is meant."""
    return [
        entry
        for asked in dict.fromkeys(bad.asked for bad in table.values())
        for entry in ask(asked, [name for name, bad in table.items() if bad.asked == asked])
    ]


def ask(asked: str, host_names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a play that asks these nodes."""
    names = ",".join([BYSTANDER, *host_names])
    condition = "inventory_hostname != '%s'" % BYSTANDER
    if asked == ROLE:
        return play(hosts=names, roles=[{"role": "kubenode.cpu_manager.kubelet", "when": condition}])
    defaults = {"group/kubenode.cpu_manager.cpu_manager": "{{ parameters }}"}
    return play(
        {"name": "Ask", "kubenode.cpu_manager." + asked: {}, "when": condition}, hosts=names, module_defaults=defaults
    )


def says(message: str, bad: Bad, node_name: str) -> bool:
    """Return whether a message names what is wrong, what to do about it, and the node."""
    return (
        bad.subject in message
        and bad.remedy in message
        and (not bad.knows_node or message.startswith(node_name + ": "))
    )


def one_message(run: Run, host_name: str) -> str:
    """Return the message of the one task of a host that failed, its last."""
    *others, last = run.results[host_name]
    assert [result["outcome"] for result in others] == ["ok"] * len(others), host_name
    assert last["outcome"] == "failed", host_name
    message = last["msg"]
    assert isinstance(message, str)
    return message
