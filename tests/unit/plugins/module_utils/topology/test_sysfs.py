# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/sysfs.py."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Callable

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology, numbered
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function: write(NAME, ...) writes the machine and returns the directory of its /sys/devices/system."""

    def write_machine(name: str, old_kernel: bool = False, with_numa: bool = True, with_access: bool = False) -> Path:
        shape = parse_name(name)
        write_tree(
            shape.topology(),
            tmp_path,
            shape.whole(),
            old_kernel=old_kernel,
            with_numa=with_numa,
            with_access=with_access,
        )
        return tmp_path / "sys/devices/system"

    return write_machine


@pytest.fixture
def read(tmp_path: Path) -> Callable[[], Topology]:
    return lambda: read_sysfs(Tree(str(tmp_path)))


def changed(topology: Topology, **parts: object) -> Topology:
    return Topology.from_dict({**topology.to_dict(), **parts})


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shapes(most_cpus=12), st.booleans(), st.booleans(), st.booleans())
@example(parse_name("1s1c"), False, True, False)
@example(parse_name("2s2d1n1l2c2t1e+adjacent+interleaved+memory2+offline0,5-6"), False, True, False)
@example(parse_name("1s34c+isolated31-33"), False, True, False)  # more than one group of 32 bits
def test_reads_what_the_kernel_shows(shape: Shape, old_kernel: bool, with_numa: bool, with_access: bool) -> None:
    topology = shape.topology()
    with tempfile.TemporaryDirectory() as root:
        write_tree(topology, root, shape.whole(), old_kernel=old_kernel, with_numa=with_numa, with_access=with_access)
        found = read_sysfs(Tree(root))
    if old_kernel:
        # It tells neither dies nor ids of caches.
        caches = numbered((group.cpus, None) for group in topology.caches)
        ids = not topology.caches
        topology = changed(topology, dies={}, l3_caches={str(g.id): str(g.cpus) for g in caches}, l3_cache_ids=ids)
    if not with_numa:
        topology = changed(topology, numa=False, numa_distances={}, nearest_cpus={})
    assert found == topology


def test_the_firmware_counts_more_than_distances(write: Write, read: Callable[[], Topology]) -> None:
    system = write("2s1n2c+memory1", with_access=True)
    assert read().nearest_cpus == {2: CPUSet.parse("0-1")}
    initiators = system / "node/node2/access1/initiators"
    (initiators / "node0").unlink()
    (initiators / "node1").symlink_to("../../../node1")
    assert read().nearest_cpus == {2: CPUSet.parse("2-3")}
    # Of class 0 also devices that are nearer than any CPU; it counts where there is no class 1.
    initiators.parent.rename(system / "node/node2/access0")
    assert read().nearest_cpus == {2: CPUSet.parse("2-3")}


def test_lists_may_be_missing(write: Write, read: Callable[[], Topology]) -> None:
    """Kernels before 2.6.28 and some saved machines have directories only."""
    system = write("1s2c2t+offline3")
    expected = read()
    lists = {name: (system / "cpu" / name).read_bytes() for name in ("online", "present")}
    for name, content in lists.items():
        (system / "cpu" / name).unlink()
        assert read() == expected
        (system / "cpu" / name).write_bytes(content)
    for name in lists:
        (system / "cpu" / name).unlink()
    assert read() == expected


def test_cores_may_be_counted_anew_in_each_cluster(write: Write, read: Callable[[], Topology]) -> None:
    """As Linux does where a device tree describes them; x86 counts them in the socket."""
    system = write("2s1n4c2t")
    assert read().same_ids == ()
    for cpu in (2, 3, 10, 11):
        (system / ("cpu/cpu%d/topology/core_id" % cpu)).write_text("%d\n" % (cpu % 2), encoding="ascii")
    found = read()
    assert [str(cpus) for cpus in found.same_ids] == ["0,2,8,10", "1,3,9,11"]
    assert [str(core.cpus) for core in found.cores] == ["0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"]
    place = "/sys/devices/system/cpu/cpu0/topology/core_id: CPUs 0,2,8,10 are of several cores;"
    assert any(place in problem for problem in found.problems)
    # One that is switched off has no part in it, and one alone is no several.
    assert found.with_offline(CPUSet.parse("2,10")).same_ids[0] == CPUSet.parse("0,8")


def test_cores_may_be_counted_anew_in_each_numa_node(write: Write, read: Callable[[], Topology]) -> None:
    """As on older machines of AMD's: the kubelet, which looks at one node after the other, tells them apart."""
    system = write("1s2n2c")
    for cpu in (2, 3):
        (system / ("cpu/cpu%d/topology/core_id" % cpu)).write_text("%d\n" % (cpu % 2), encoding="ascii")
    assert (read().same_ids, read().problems) == ((), ())


def test_ids_of_dies_may_be_those_in_the_socket(write: Write, read: Callable[[], Topology]) -> None:
    """Linux before 6.9 counts them from 0 in each socket; then they are numbered over the machine."""
    system = write("2s2d2c")
    expected = read()
    assert [die.id for die in expected.dies] == [0, 1, 2, 3]
    for cpu in range(8):
        (system / ("cpu/cpu%d/topology/die_id" % cpu)).write_text("%d\n" % (cpu // 2 % 2), encoding="ascii")
    assert read() == expected


@pytest.mark.parametrize("text", ["-1\n", "", "?\n"])
def test_socket_without_an_id(write: Write, read: Callable[[], Topology], text: str) -> None:
    """Linux says -1 where the firmware does not number sockets."""
    system = write("1s2c")
    for cpu in range(2):
        (system / ("cpu/cpu%d/topology/physical_package_id" % cpu)).write_text(text, encoding="ascii")
    assert read().sockets == (Group(0, CPUSet.parse("0-1")),)


def test_empty_map_of_a_cache(write: Write, read: Callable[[], Topology]) -> None:
    """Some machines do not say who shares an L3 cache: it counts as the CPU's own."""
    system = write("1s2c")
    for cpu in range(2):
        (system / ("cpu/cpu%d/cache/index3/shared_cpu_map" % cpu)).write_text("\n", encoding="ascii")
    assert [str(cache.cpus) for cache in read().caches] == ["0", "1"]


def test_only_level_3_counts(write: Write, read: Callable[[], Topology]) -> None:
    system = write("1s2c")
    for cpu in range(2):
        index3 = system / ("cpu/cpu%d/cache/index3" % cpu)
        index3.rename(index3.with_name("index10"))
        index4 = system / ("cpu/cpu%d/cache/index4" % cpu)
        index4.mkdir()
        for name, text in (("level", "4"), ("type", "Unified"), ("shared_cpu_map", "3"), ("id", "5")):
            (index4 / name).write_text(text + "\n", encoding="ascii")
    assert read().caches == (Group(0, CPUSet.parse("0-1")),)


def test_an_instruction_cache_of_level_3_does_not_count(write: Write, read: Callable[[], Topology]) -> None:
    system = write("1s1c")
    (system / "cpu/cpu0/cache/index3/type").write_text("Instruction\n", encoding="ascii")
    assert read().caches == ()


def test_masks_that_do_not_agree(write: Write, read: Callable[[], Topology]) -> None:
    """CPU 2 names CPU 1 as its sibling, which names CPU 0: the machine's text is wrong, and the person is told."""
    system = write("1s2c2t+adjacent")
    path = "cpu/cpu2/topology/core_cpus"
    (system / path).write_text("6\n", encoding="ascii")
    topology = read()
    assert [str(core.cpus) for core in topology.cores] == ["0-1", "2", "3"]
    assert len(topology.problems) == 2
    assert "/sys/devices/system/cpu/cpu2/topology/thread_siblings: CPU 2 is said to be with CPUs 1-2" in str(
        topology.problems
    )


def test_masks_that_overlap(write: Write, read: Callable[[], Topology]) -> None:
    """CPU 0 claims CPU 3, which CPU 2 claims too."""
    system = write("1s2c2t+adjacent")
    (system / "cpu/cpu0/topology/core_cpus").write_text("b\n", encoding="ascii")
    topology = read()
    assert [str(core.cpus) for core in topology.cores] == ["0-1,3", "2"]
    assert "CPU 2 is said to be with CPUs 2-3" in str(topology.problems)


def test_emulated_numa_nodes_of_a_raspberry_pi_have_the_cpus_that_are_linked_there(
    write: Write, read: Callable[[], Topology]
) -> None:
    """numa=fake=2: the map of each node has all CPUs, and the links are in the first one."""
    system = write("1s1n4c+memory1")
    for node in range(2):
        (system / ("node/node%d/cpumap" % node)).write_text("f\n", encoding="ascii")
        (system / ("node/node%d/cpulist" % node)).write_text("0-3\n", encoding="ascii")
    topology = read()
    assert topology.numa_nodes == (Group(0, CPUSet.parse("0-3")), Group(1, CPUSet()))
    assert topology.problems == ()


def test_node_that_claims_the_cpus_of_another(write: Write, read: Callable[[], Topology]) -> None:
    system = write("2s1n2c")
    (system / "node/node1/cpumap").write_text("e\n", encoding="ascii")
    (system / "node/node1/cpu1").mkdir()
    topology = read()
    assert topology.numa_nodes == (Group(0, CPUSet.parse("0-1")),)
    assert topology.problems == (
        "/sys/devices/system/node/node1/cpumap: node 1 claims CPUs of another node; it is left out",
    )


def test_node_without_a_map(write: Write, read: Callable[[], Topology]) -> None:
    system = write("2s1n2c")
    expected = read()
    for node in range(2):
        (system / ("node/node%d/cpumap" % node)).unlink()
    assert read() == expected


@pytest.mark.parametrize("row", ["10\n", "10 21 21\n", "10 x\n", "\n"])
def test_row_of_distances_that_cannot_be(write: Write, read: Callable[[], Topology], row: str) -> None:
    system = write("2s1n2c")
    (system / "node/node0/distance").write_text(row, encoding="ascii")
    assert read().numa_distances == {1: {0: 21, 1: 10}}


def test_distances_are_in_the_order_of_online_nodes(write: Write, read: Callable[[], Topology]) -> None:
    write("2s1n2c+memory1+nodes3,8,20+distances10,12,40")
    assert read().numa_distances == {
        3: {3: 10, 8: 40, 20: 17},
        8: {3: 40, 8: 10, 20: 28},
        20: {3: 17, 8: 28, 20: 10},
    }


@pytest.mark.parametrize(("text", "cpus"), [("(null)", ""), ("  (null)\n", ""), ("\n", ""), ("1-3\n", "1-3")])
def test_nohz_full(write: Write, read: Callable[[], Topology], text: str, cpus: str) -> None:
    system = write("1s4c+nohz0")
    assert read().nohz_full == CPUSet.parse("0")
    (system / "cpu/nohz_full").write_text(text, encoding="ascii")
    assert read().nohz_full == CPUSet.parse(cpus)


@pytest.mark.parametrize("name", ["isolated", "nohz_full"])
def test_files_of_newer_kernels_may_be_missing(write: Write, read: Callable[[], Topology], name: str) -> None:
    system = write("1s4c+isolated1+nohz1")
    (system / "cpu" / name).unlink()
    assert getattr(read(), name) == CPUSet()


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        ("cpu/online", "0-x\n", "CPU list '0-x', position 3: expected the end of a range, found 'x'"),
        ("cpu/present", "0,\n", "CPU list '0,', position 3: expected a CPU id, found the end"),
        ("cpu/isolated", "?\n", "CPU list '?', position 1: expected a CPU id, found '?'"),
        ("cpu/cpu1/topology/core_cpus", "xyz\n", "CPU mask 'xyz', position 1: 'x' is not a hexadecimal digit"),
        ("cpu/cpu0/topology/package_cpus", "f,\n", "CPU mask 'f,', position 3: a group of digits is missing"),
        ("cpu/cpu0/cache/index3/shared_cpu_map", "0x\n", "CPU mask '0x', position 3: a group of digits is missing"),
        ("node/node0/cpumap", "3 \0\n4", "CPU mask '3 \\x00\\n4', position 2: ' ' is not a hexadecimal digit"),
        ("node/online", "0--1\n", "CPU list '0--1', position 3: expected the end of a range, found '-'"),
    ],
)
def test_damaged_file(write: Write, read: Callable[[], Topology], path: str, text: str, what: str) -> None:
    system = write("1s2c")
    (system / path).write_text(text, encoding="ascii")
    with pytest.raises(NodeError) as caught:
        read()
    assert str(caught.value) == "%s: %s; save the node's files again" % (system / path, what)


def test_not_a_node(tmp_path: Path, read: Callable[[], Topology]) -> None:
    with pytest.raises(NodeError) as caught:
        read()
    assert str(caught.value) == (
        "%s/sys/devices/system/cpu: no online CPU found; is this a node's root directory, with its /sys?" % tmp_path
    )


def test_all_cpus_offline(write: Write, read: Callable[[], Topology]) -> None:
    system = write("1s2c")
    (system / "cpu/online").write_text("\n", encoding="ascii")
    with pytest.raises(NodeError, match="no online CPU found"):
        read()


def test_cpu_0_offline(write: Write, read: Callable[[], Topology]) -> None:
    write("1s2c2t+offline0,3")
    topology = read()
    assert topology.offline == CPUSet.parse("0,3")
    assert [(core.id, str(core.cpus)) for core in topology.cores] == [(1, "1"), (2, "2")]
