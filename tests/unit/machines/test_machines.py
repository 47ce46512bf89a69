# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/machines: shapes of machines, and the files and texts that are written for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.kubepods import Kubepods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests import machines
from ansible_collections.kubenode.cpu_manager.tests.machines.command import main
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets, shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import kernel_mask, write_machine, write_tree

# --- names -------------------------------------------------------------------------------------------


@given(shapes())
def test_name_says_the_shape(shape: Shape) -> None:
    assert parse_name(shape.name()) == shape


def test_names_in_the_documentation() -> None:
    examples = (machines.__doc__ or "").partition("Examples:")[2].split("\n\n")[1]
    names = [line.split()[0] for line in examples.strip().splitlines()]
    assert len(names) == 6
    counts = [len(parse_name(name).whole().online) for name in names]
    assert counts == [96, 128, 40, 20, 16, 16]


def parts(groups: tuple[Group, ...]) -> dict[int, str]:
    return {group.id: str(group.cpus) for group in groups}


def test_what_a_name_means() -> None:
    topology = parse_name("2s2n1c2t").topology()
    assert [str(core.cpus) for core in topology.cores] == ["0,4", "1,5", "2,6", "3,7"]
    assert parts(topology.numa_nodes) == parts(topology.caches) == {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7"}
    assert parts(topology.sockets) == parts(topology.dies) == {0: "0-1,4-5", 1: "2-3,6-7"}
    assert topology.numa_distances[0] == {0: 10, 1: 12, 2: 21, 3: 21}
    assert topology.offline == topology.isolated == topology.nohz_full == CPUSet()


@pytest.mark.parametrize(
    ("name", "cores", "nodes", "caches"),
    [
        ("1c", ["0"], {0: "0"}, {0: "0"}),
        ("2c4t+adjacent", ["0-3", "4-7"], {0: "0-7"}, {0: "0-7"}),
        ("1s2c2t2e", ["0,4", "1,5", "2", "3"], {0: "0-5"}, {0: "0-5"}),
        ("1s2c2t2e+adjacent", ["0-1", "2-3", "4", "5"], {0: "0-5"}, {0: "0-5"}),
        ("2s1n2c+interleaved", ["0", "1", "2", "3"], {0: "0,2", 1: "1,3"}, {0: "0,2", 1: "1,3"}),
        ("2s1n1c2t+interleaved", ["0,2", "1,3"], {0: "0,2", 1: "1,3"}, {0: "0,2", 1: "1,3"}),
        ("1n2s2c", ["0", "1", "2", "3"], {0: "0-3"}, {0: "0-1", 1: "2-3"}),
        ("2s2c", ["0", "1", "2", "3"], {0: "0-3"}, {0: "0-1", 1: "2-3"}),
        ("1s1l2n2c", ["0", "1", "2", "3"], {0: "0-1", 1: "2-3"}, {0: "0-3"}),
        ("1s2l2c", ["0", "1", "2", "3"], {0: "0-3"}, {0: "0-1", 1: "2-3"}),
        ("2s0l1c", ["0", "1"], {0: "0-1"}, {}),
        ("2s1n1c+nodes3,9", ["0", "1"], {3: "0", 9: "1"}, {0: "0", 1: "1"}),
        ("2s1n1c+memory1", ["0", "1"], {0: "0", 1: "1", 2: ""}, {0: "0", 1: "1"}),
        ("2s1n1c2t+offline0,2", ["1,3"], {0: "", 1: "1,3"}, {1: "1,3"}),
    ],
)
def test_parts_of_names(name: str, cores: list[str], nodes: dict[int, str], caches: dict[int, str]) -> None:
    topology = parse_name(name).topology()
    assert [str(core.cpus) for core in topology.cores] == cores
    assert parts(topology.numa_nodes) == nodes
    assert parts(topology.caches) == caches


def test_dies() -> None:
    topology = parse_name("2s2d1n1c").topology()
    assert parts(topology.dies) == {0: "0", 1: "1", 2: "2", 3: "3"}
    assert parts(topology.sockets) == {0: "0-1", 1: "2-3"}


def test_memory_only_nodes_are_near_one_node_each() -> None:
    topology = parse_name("2s1n1c+memory3").topology()
    assert parts(topology.numa_nodes) == {0: "0", 1: "1", 2: "", 3: "", 4: ""}
    assert {node: str(cpus) for node, cpus in topology.nearest_cpus.items()} == {2: "0", 3: "1", 4: "0"}
    assert topology.numa_distances[2] == {0: 17, 1: 28, 2: 10, 3: 28, 4: 28}


def test_flags_about_cpus() -> None:
    topology = parse_name("8c+offline7+isolated2-3+nohz2,7").topology()
    assert str(topology.online) == "0-6"
    assert (str(topology.offline), str(topology.isolated), str(topology.nohz_full)) == ("7", "2-3", "2,7")


BAD_NAMES = [
    ("", "begins with counts and letters, as in 2s2n12c2t"),
    ("s2", "begins with counts and letters, as in 2s2n12c2t"),
    ("2S2c", "begins with counts and letters, as in 2s2n12c2t"),
    ("10000c", "begins with counts and letters, as in 2s2n12c2t"),
    ("-offline3", "begins with counts and letters, as in 2s2n12c2t"),
    ("2s", "the letters are s, d, n and l in any order, then c, t and e, each once"),
    ("2s2s2c", "the letters are s, d, n and l in any order, then c, t and e, each once"),
    ("2c2s", "the letters are s, d, n and l in any order, then c, t and e, each once"),
    ("2x2c", "the letters are s, d, n and l in any order, then c, t and e, each once"),
    ("2l2s2c", "dies and L3 caches are in sockets: s comes before d and l"),
    ("0s2c", "0s makes no machine"),
    ("2s0c", "0c makes no machine"),
    ("9s999c", "has 8991 CPUs, and Linux takes 8192"),
    ("2c1t", "is written 2c"),
    ("02c", "is written 2c"),
    ("2c+nohz1+offline0", "is written 2c+offline0+nohz1"),
    ("2c+distances10,12,21", "is written 2c"),
    ("2c+offline1,0", "is written 2c+offline0-1"),
    ("2c+memory0", "is written 2c"),
    ("2c+memory", "'memory' is not how +memory is written"),
    ("2c+adjacent2", "'adjacent2' is not how +adjacent is written"),
    ("2c+distances10,12", "'distances10,12' is not how +distances is written"),
    ("2c+offline", "'offline' is not how +offline is written"),
    ("2c+gpu2", "there is no flag 'gpu2'"),
    ("2c+", "there is no flag ''"),
]


@pytest.mark.parametrize(("name", "what"), BAD_NAMES)
def test_bad_name(name: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_name(name)
    assert str(caught.value) == "%r: %s" % (name, what)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("2c+offline0-1", "2c+offline0-1: all its CPUs are offline"),
        ("2c+offline1-2", "2c+offline1-2: there is no CPU 2"),
        ("2c+isolated5", "2c+isolated5: there is no CPU 5"),
        ("2c+nodes0-1", "2c+nodes0-1: there are 1 NUMA nodes, and 2 ids"),
        ("2c+offline1-", "CPU list '1-', position 3: expected the end of a range, found the end"),
    ],
)
def test_machine_that_cannot_be(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_name(name)
    assert str(caught.value) == message


# --- trees -------------------------------------------------------------------------------------------


@given(cpusets(), st.integers(201, 300))
def test_kernel_mask(cpus: CPUSet, bits: int) -> None:
    text = kernel_mask(cpus, bits)
    assert CPUSet.parse_mask(text) == cpus
    groups = text.split(",")
    assert len(groups) == (bits + 31) // 32
    assert [len(group) for group in groups[1:]] == [8] * (len(groups) - 1)
    assert len(groups[0]) == (bits - 32 * (len(groups) - 1) + 3) // 4


@pytest.mark.parametrize(
    ("cpus", "bits", "text"),
    [
        ("0", 1, "1"),
        ("0", 4, "1"),
        ("0", 5, "01"),  # as nr_cpu_ids asks for
        ("0", 32, "00000001"),
        ("32", 33, "1,00000000"),
        ("0,40", 80, "0000,00000100,00000001"),
    ],
)
def test_masks_of_real_kernels(cpus: str, bits: int, text: str) -> None:
    assert kernel_mask(CPUSet.parse(cpus), bits) == text


FILES = {
    "cpu/online": "0-2,4-7",
    "cpu/offline": "3",
    "cpu/present": "0-7",
    "cpu/possible": "0-7",
    "cpu/isolated": "2",
    "cpu/nohz_full": "  (null)",
    "cpu/kernel_max": "8191",
    "cpu/smt/active": "1",
    "cpu/smt/control": "on",
    "cpu/cpu3/online": "0",
    "cpu/cpu5/online": "1",
    "cpu/cpu5/topology/core_id": "1",
    "cpu/cpu5/topology/physical_package_id": "0",
    "cpu/cpu5/topology/die_id": "0",
    "cpu/cpu5/topology/thread_siblings": "22",
    "cpu/cpu5/topology/thread_siblings_list": "1,5",
    "cpu/cpu5/topology/core_cpus": "22",
    "cpu/cpu5/topology/core_cpus_list": "1,5",
    "cpu/cpu5/topology/core_siblings_list": "0-1,4-5",
    "cpu/cpu5/topology/package_cpus": "33",
    "cpu/cpu5/topology/die_cpus_list": "0-1,4-5",
    "cpu/cpu7/topology/core_id": "1",
    "cpu/cpu7/cache/index0/type": "Data",
    "cpu/cpu7/cache/index1/type": "Instruction",
    "cpu/cpu7/cache/index2/shared_cpu_list": "7",
    "cpu/cpu7/cache/index3/level": "3",
    "cpu/cpu7/cache/index3/type": "Unified",
    "cpu/cpu7/cache/index3/size": "32768K",
    "cpu/cpu7/cache/index3/id": "1",
    "cpu/cpu7/cache/index3/shared_cpu_map": "c4",
    "cpu/cpu7/cache/index3/shared_cpu_list": "2,6-7",
    "node/online": "0-1,4",
    "node/possible": "0-4",
    "node/has_cpu": "0-1",
    "node/has_memory": "0-1,4",
    "node/node1/cpumap": "c4",
    "node/node1/cpulist": "2,6-7",
    "node/node1/distance": "21 10 28",
    "node/node4/cpumap": "00",
    "node/node4/cpulist": "",
}
LINKS = {
    "cpu/cpu3/node1": "../../node/node1",
    "node/node1/cpu3": "../../cpu/cpu3",
    "node/node0/cpu0": "../../cpu/cpu0",
}
MISSING = [
    "cpu/cpu0/online",
    "cpu/cpu3/topology",
    "cpu/cpu3/cache",
    "node/node0/cpu2",
    "node/node4/access1",
    "cpu/cpu8",
]


def test_tree(tmp_path: Path) -> None:
    write_machine(tmp_path, "2s1n2c2t+memory1+nodes0-1,4+offline3+isolated2")
    system = tmp_path / "sys/devices/system"
    assert {name: (system / name).read_text(encoding="ascii") for name in FILES} == {
        name: text + "\n" for name, text in FILES.items()
    }
    assert {name: os.readlink(system / name) for name in LINKS} == LINKS
    assert all((system / name).is_dir() for name in LINKS)
    assert [name for name in MISSING if (system / name).exists()] == []
    assert (system / "cpu/cpu0").is_dir()
    meminfo = (system / "node/node4/meminfo").read_text(encoding="ascii").splitlines()
    assert meminfo[0] == "Node 4 MemTotal:       67108864 kB"
    cpuinfo = (tmp_path / "proc/cpuinfo").read_text(encoding="ascii")
    assert cpuinfo.count("processor\t: ") == 7
    assert cpuinfo.endswith("cpu cores\t: 2\n\n")


def test_old_kernel(tmp_path: Path) -> None:
    shape = parse_name("1s2c")
    write_tree(shape.topology(), tmp_path, old_kernel=True, with_numa=False, with_cpuinfo=False)
    system = tmp_path / "sys/devices/system"
    assert sorted(os.listdir(tmp_path)) == ["sys"]
    assert os.listdir(system) == ["cpu"]
    names = ["core_id", "core_siblings", "core_siblings_list", "physical_package_id", "thread_siblings"]
    assert sorted(os.listdir(system / "cpu/cpu0/topology")) == [*names, "thread_siblings_list"]
    assert not (system / "cpu/cpu0/cache/index3/id").exists()


@pytest.mark.parametrize(
    ("name", "active", "control"),
    [("2c2t", "1", "on"), ("2c", "0", "notsupported"), ("2c2t+offline2-3", "0", "off"), ("2c2t+offline2", "1", "on")],
)
def test_smt(tmp_path: Path, name: str, active: str, control: str) -> None:
    write_machine(tmp_path, name)
    smt = tmp_path / "sys/devices/system/cpu/smt"
    assert (smt / "active").read_text(encoding="ascii") == active + "\n"
    assert (smt / "control").read_text(encoding="ascii") == control + "\n"


def test_cpu_0_offline_has_a_switch(tmp_path: Path) -> None:
    write_machine(tmp_path, "2c+offline0")
    assert (tmp_path / "sys/devices/system/cpu/cpu0/online").read_text(encoding="ascii") == "0\n"


def test_topology_that_no_shape_has(tmp_path: Path) -> None:
    """CPUs that are not there at all, and no sockets."""
    topology = Topology(CPUSet.parse("1,33"), [])
    write_tree(topology, tmp_path)
    system = tmp_path / "sys/devices/system"
    assert (system / "cpu/offline").read_text(encoding="ascii") == "0,2-32\n"
    assert (system / "cpu/cpu33/topology/core_cpus").read_text(encoding="ascii") == "2,00000000\n"
    assert not (system / "cpu/cpu33/topology/physical_package_id").exists()


# --- the command -------------------------------------------------------------------------------------


def test_command(tmp_path: Path) -> None:
    main(["2s1n2c2t+offline3", str(tmp_path / "node"), "--no-cpuinfo"])
    assert (tmp_path / "node/sys/devices/system/cpu/online").read_text(encoding="ascii") == "0-2,4-7\n"
    assert not (tmp_path / "node/proc").exists()


def test_command_with_containers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "containers"
    listed.write_text("uid-1 Burstable shop/web-0 app 0-1\nuid-1 Burstable shop/web-0 log 0\n", encoding="utf-8")
    main(["2s1n2c", str(tmp_path / "node"), "--containers", str(listed)])
    found = Hierarchy(Tree(str(tmp_path / "node")))
    assert (found.version, str(found.online_cpus()), str(found.memory_nodes())) == (2, "0-3", "0-1")
    logs = {name[-68:-4]: name[:-69] for name in os.listdir(tmp_path / "node/var/log/containers")}
    assert sorted(logs.values()) == ["web-0_shop_app", "web-0_shop_log"]
    held = {
        logs.get(container.id, "sandbox"): (container.pod_uid, str(found.read_set(container.path, "cpuset.cpus")))
        for container in Kubepods(found).containers().values()
    }
    assert held == {
        "sandbox": ("uid-1", ""),
        "web-0_shop_app": ("uid-1", "0-1"),
        "web-0_shop_log": ("uid-1", "0"),
    }
    listed.write_text("uid-1 Burstable shop/web-0 app 0-1\nuid-1 Bursting shop/web-0 app 0-1\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["2c", str(tmp_path / "other"), "--containers", str(listed)])
    assert "line 2: 'uid-1 Bursting shop/web-0 app 0-1' is not UID QOS-CLASS" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["tests/machines"], ["-m", "tests.machines"]])
def test_command_from_a_plain_checkout(tmp_path: Path, arguments: list[str]) -> None:
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, *arguments, "1s2c", str(tmp_path)], check=True, cwd=root)
    assert (tmp_path / "proc/cpuinfo").exists()


def test_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["2s", str(tmp_path)])
    assert "error: '2s': the letters are s, d, n and l in any order" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(SystemExit):
        main(["2c", str(tmp_path / "file")])
    assert "error: [Errno" in capsys.readouterr().err


def test_help_has_the_grammar(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "+interleaved        neighbouring cores" in capsys.readouterr().out
