# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real machines' /sys must read as hwloc reads it: NAME.tar.xz and NAME.expected.json in SAVED_MACHINES."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.cpuinfo import read_cpuinfo
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.hwloc import read_hwloc
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.lscpu import read_lscpu
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs
from ansible_collections.kubenode.cpu_manager.tests.machines.told import told_by_hwloc
from ansible_collections.kubenode.cpu_manager.tests.machines.tools import run_lscpu, run_lstopo

from . import answer
from .conftest import EXPECTED, MACHINES, NAMES, Unpack

# Where the machine's files contradict each other, and a tool makes something else of it.
ODD_FOR_LSCPU = {
    "hwloc-40intel64-4n10c+pci-conflicts": "CPU 3 has masks that the other CPUs of its socket deny",
}
ODD_FOR_CPUINFO = {
    "hwloc-16ia64-8n2s": "'siblings' and 'physical id' contradict each other",
    "hwloc-40intel64-4n10c+pci-conflicts": "CPU 3 has masks that the other CPUs of its socket deny",
    "hwloc-offline-cpu0-node0": "its cpuinfo was saved before the CPUs were switched off",
}

each_machine = pytest.mark.parametrize("name", NAMES or ["none"])


@pytest.mark.usefixtures("unpack")
def test_there_are_machines() -> None:
    assert len(NAMES) >= 36


def expected_of(name: str) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((MACHINES / (name + EXPECTED)).read_text(encoding="utf-8"))
    assert {"online", "cores", "packages", "numa_nodes", "l3"} == expected.keys()
    return expected


@each_machine
def test_sysfs(unpack: Unpack, name: str) -> None:
    assert answer.answer("topology", {"root": unpack(name)}) == expected_of(name)


@each_machine
@pytest.mark.needs("lstopo-no-graphics")
def test_hwloc(unpack: Unpack, name: str) -> None:
    topology = told_by_hwloc(read_sysfs(Tree(unpack(name))))
    two = read_hwloc(run_lstopo(unpack(name)))
    assert answer.describe(two) == expected_of(name)
    for part in ("sockets", "numa_nodes", "nearest_cpus", "offline"):
        assert getattr(two, part) == getattr(topology, part), part
    # hwloc shows no table of one node, and Linux's row of a node alone may be for nodes that are not there.
    if len(topology.numa_nodes) > 1:
        assert two.numa_distances == topology.numa_distances
    # hwloc 1.x does not show what is nearest to a node without CPUs.
    version_1 = read_hwloc(run_lstopo(unpack(name), version=1))
    for part in ("online", "offline", "cores", "sockets", "numa_nodes", "caches", "numa_distances"):
        assert getattr(version_1, part) == getattr(two, part), part


@each_machine
@pytest.mark.needs("lscpu")
@pytest.mark.parametrize("with_all", [False, True])
def test_lscpu(unpack: Unpack, name: str, with_all: bool) -> None:
    if name in ODD_FOR_LSCPU:
        pytest.skip(ODD_FOR_LSCPU[name])
    if not Path(unpack(name), "proc", "cpuinfo").exists():
        pytest.skip("was saved without its /proc/cpuinfo, which lscpu reads too")
    topology = read_sysfs(Tree(unpack(name)))
    complete(Path(unpack(name)), topology)
    found, expected = answer.describe(read_lscpu(run_lscpu(unpack(name), with_all))), expected_of(name)
    for part in ("online", "cores", "packages", "l3"):
        assert found[part] == expected[part], part
    assert found["numa_nodes"] == {str(node.id): str(node.cpus) for node in topology.numa_nodes if node.cpus}


def complete(root: Path, topology: Topology) -> None:
    """Write the list without which lscpu does not start; it is not saved of some machines."""
    cpus = str(topology.online | topology.offline)
    possible = root / "sys/devices/system/cpu/possible"
    if not possible.exists():
        possible.write_text(cpus + "\n", encoding="ascii")


@each_machine
def test_cpuinfo(unpack: Unpack, name: str) -> None:
    path = Path(unpack(name), "proc", "cpuinfo")
    if not path.exists():
        pytest.skip("was saved without its /proc/cpuinfo")
    if name in ODD_FOR_CPUINFO:
        pytest.skip(ODD_FOR_CPUINFO[name])
    text = path.read_text(encoding="utf-8")
    found, expected = answer.describe(read_cpuinfo(text)), expected_of(name)
    assert found["online"] == expected["online"]
    assert found["cores"] == expected["cores"]
    # On arm64 and s390 the text tells processors only.
    assert found["packages"] == (expected["packages"] if "physical id" in text else [])


def test_a_cpuinfo_that_contradicts_itself(unpack: Unpack) -> None:
    text = Path(unpack("hwloc-16ia64-8n2s"), "proc", "cpuinfo").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="the socket of CPUs 0-1 has 2 CPUs, and 'siblings' says 1"):
        read_cpuinfo(text)
