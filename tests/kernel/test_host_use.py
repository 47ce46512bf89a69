# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What throttling_info says that the host has used, of real processes in pods and beside them, in cgroups of v1."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import (
    CPU,
    CPUACCT,
    MEMORY,
    ROOT,
    Hierarchy,
)
from ansible_collections.kubenode.cpu_manager.plugins.modules import throttling_info as module

MIB = 1 << 20
# What a process holds, and by how much other processes of this machine may differ meanwhile.
HELD, OTHERS = 256 * MIB, 128 * MIB
USED = 0.5
# Waits until it is in its cgroup, then holds memory, uses a CPU for a while, and says so.
PROGRAM = """
import sys, time
sys.stdin.readline()
held = b"x" * %d
until = time.process_time() + %f
while time.process_time() < until:
    pass
print("done", flush=True)
sys.stdin.readline()
""" % (HELD, USED)


class Machine:
    """This machine with a kubelet whose pods are below a cgroup of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.top = "kubenode-test-%d-%s" % (os.getpid(), os.urandom(4).hex())
        self.hierarchies = {name: Hierarchy(Tree("/"), name) for name in (CPU, CPUACCT, MEMORY)}
        self.pod = "%s/kubepods/poduid-db" % self.top
        self.processes: list[subprocess.Popen[str]] = []
        config = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n" % self.top
        (directory / "config.yaml").write_text(config, encoding="ascii")
        for place in self.places():
            os.makedirs(place, exist_ok=True)

    def places(self) -> list[str]:
        """Return the cgroups of the pod."""
        return sorted({hierarchy.place(self.pod) for hierarchy in self.hierarchies.values()})

    def work(self, in_pod: bool) -> None:
        """Have a process hold memory and use a CPU, which then goes on holding memory."""
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        for place in self.places() if in_pod else ():
            Path(place, "cgroup.procs").write_text(str(process.pid), encoding="ascii")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"

    def look(self) -> dict[str, Any]:
        """Return what the module says of the host."""
        parameters: dict[str, Any] = {
            "config_path": str(self.directory / "config.yaml"),
            "kubelet_root": str(self.directory),
            "kubelet_version": "1.32",
            "command_line": None,
            "hide_names": False,
            "seconds": 0,
            "throttled_percent": 25,
        }
        answer = module.work(Tree("/"), parameters, True).result
        assert answer["host"] is not None, answer["notes"]
        host: Any = answer["host"]
        return dict(host)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        for place in self.places():
            for path in (place, os.path.dirname(place), os.path.dirname(os.path.dirname(place))):
                for _attempt in range(200):
                    with suppress(OSError):
                        os.rmdir(path)
                    if not os.path.exists(path):
                        break
                    # A process that was killed leaves its cgroup a little later.
                    time.sleep(0.01)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    try:
        hierarchies = [Hierarchy(Tree("/"), name) for name in (CPU, CPUACCT, MEMORY)]
    except NodeError as error:
        pytest.skip(str(error))
    writable = all(hierarchy.version == 1 and os.access(hierarchy.place(ROOT), os.W_OK) for hierarchy in hierarchies)
    if os.geteuid() != 0 or not writable:
        pytest.skip("no cgroups of v1 with the controllers cpu, cpuacct and memory can be made here")
    made = Machine(tmp_path)
    try:
        yield made
    finally:
        made.end()


def test_a_pods_time_is_the_pods_and_the_rest_is_the_hosts(machine: Machine) -> None:
    first = machine.look()
    machine.work(in_pod=True)
    second = machine.look()
    machine.work(in_pod=False)
    third = machine.look()
    assert first["boot"] == second["boot"] == third["boot"]
    assert first["uptime"] < second["uptime"] < third["uptime"]
    of_pods, of_all = (
        [after[name] - before[name] for before, after in ((first, second), (second, third))]
        for name in ("pods_us", "total_us")
    )
    assert of_pods[0] >= USED * 1e6
    # The pod only waits then.
    assert of_pods[1] < USED * 1e6 / 5
    assert of_all[1] - of_pods[1] >= USED * 1e6


def test_a_pods_memory_is_the_pods_and_the_rest_is_the_hosts(machine: Machine) -> None:
    usage = Path(machine.hierarchies[MEMORY].place(ROOT), "memory.usage_in_bytes")
    machine.work(in_pod=True)
    used, found = int(usage.read_text("ascii")), machine.look()["memory_bytes"]
    assert found < used - HELD + OTHERS
    machine.work(in_pod=False)
    again = machine.look()["memory_bytes"]
    assert again > found + HELD - OTHERS
