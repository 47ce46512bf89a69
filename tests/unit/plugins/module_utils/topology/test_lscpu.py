# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/lscpu.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.lscpu import HINT, read_lscpu
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.texts import lscpu
from ansible_collections.kubenode.cpu_manager.tests.machines.told import told_by_lscpu
from ansible_collections.kubenode.cpu_manager.tests.machines.tools import run_lscpu
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

# What lscpu of util-linux 2.38 printed of the trees of these machines (python tests/machines NAME DIR --outputs DIR2).
FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.lscpu"))


@given(shapes(), st.booleans())
@example(parse_name("2s2n2c2t+offline1,9-10"), True)
def test_reads_what_lscpu_prints(shape: Shape, with_all: bool) -> None:
    topology = shape.topology()
    assert read_lscpu(lscpu(topology, with_all)) == told_by_lscpu(topology, with_all)


def test_there_are_fixtures() -> None:
    assert len(FIXTURES) >= 12


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_fixture(path: Path) -> None:
    name, _dot, ending = path.name.partition(".")
    assert read_lscpu(path.read_text(encoding="utf-8")) == told_by_lscpu(
        parse_name(name).topology(), with_all=ending == "all.lscpu"
    )


@pytest.mark.needs("lscpu")
@pytest.mark.parametrize("name", ["1s1c", "2s4n2l2c2t+adjacent+offline0,9", "2s1n3c2e+interleaved"])
def test_real_lscpu(tmp_path: Path, name: str) -> None:
    topology = write_machine(tmp_path, name)
    for with_all in (False, True):
        found = read_lscpu(run_lscpu(str(tmp_path), with_all))
        assert found == told_by_lscpu(topology, with_all)


ANY_COLUMNS = """\
# The following is the parsable format
# Node,CPU,Online,Socket,Core,Book
0,0,Y,0,0,0
0,1,Y,0,0,0
1,2,Y,1,0,0
,3,N,,,
"""


def test_the_header_names_the_columns() -> None:
    topology = read_lscpu(ANY_COLUMNS)
    # Core 0 of another socket is another core.
    assert topology == Topology(
        online=CPUSet.parse("0-2"),
        cores=[CPUSet.parse("0-1"), CPUSet.parse("2")],
        sockets=[Group(0, CPUSet.parse("0-1")), Group(1, CPUSet.parse("2"))],
        numa_nodes=[Group(0, CPUSet.parse("0-1")), Group(1, CPUSet.parse("2"))],
        offline=CPUSet.parse("3"),
    )


def test_caches_in_one_column() -> None:
    lines = ["0,0,0,0,0:0:0:0,Y", "1,1,0,0,1:1:1:0,Y", "2,2,0,0,2:2:2:1,Y", "", "3,,,,:::,N"]
    topology = read_lscpu("\n".join(["# CPU,Core,Socket,Node,L1d:L1i:L2:L3,Online", *lines]))
    assert topology.caches == (Group(0, CPUSet.parse("0-1")), Group(1, CPUSet.parse("2")))
    assert topology.offline == CPUSet.parse("3")


def test_cores_of_the_same_number_in_other_places() -> None:
    """As `lscpu --physical` prints them on AMD's Magny-Cours: they count in each NUMA node."""
    text = "# CPU,Core,Socket,Node\n0,0,0,0\n1,1,0,0\n2,0,0,1\n3,1,0,1\n"
    assert [str(core.cpus) for core in read_lscpu(text).cores] == ["0", "1", "2", "3"]


def test_caches_of_the_same_number_in_other_sockets() -> None:
    text = "# CPU,Core,Socket,Node,L3\n0,0,0,0,0\n1,1,0,0,0\n2,2,1,0,0\n"
    assert read_lscpu(text).caches == (Group(0, CPUSet.parse("0-1")), Group(1, CPUSet.parse("2")))


def test_column_online_may_be_empty() -> None:
    """Kernels before 2.6.28 have no list of online CPUs."""
    text = "# CPU,Core,Socket,Node,Online\n0,0,0,0,\n1,1,0,0,\n"
    assert read_lscpu(text).online == CPUSet.parse("0-1")
    assert read_lscpu(text).offline == CPUSet()


@pytest.mark.parametrize("text", ["# CPU,Core,Socket,Node\n0,0,,\n1,1,,\n", "# CPU,Core,Socket,Node\n0,,,\n1,,,\n"])
def test_a_kernel_that_tells_little(text: str) -> None:
    """Neither sockets nor NUMA nodes, or not even cores."""
    assert read_lscpu(text) == Topology(CPUSet.parse("0-1"), [])


def test_a_cpu_with_fewer_caches_than_the_header() -> None:
    """lscpu prints no field for a missing cache, so the rest of the caches moves up; columns behind them are right."""
    text = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3,Online\n0,0,0,0,,0,0,0,0,Y\n1,1,0,0,,1,1,1,Y\n2,2,0,0,,2,2,2,0,Y\n"
    topology = read_lscpu(text)
    assert topology.online == CPUSet.parse("0-2")
    assert topology.caches == (Group(0, CPUSet.parse("0,2")),)
    assert topology.problems == ("lscpu, line 3: CPU 1 has fewer caches than the header; its L3 cache is not known",)


HEADER = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3,Online\n"
GOOD = "0,0,0,0,,0,0,0,0,Y\n"

BAD = [
    ("", "lscpu: no line of a CPU found; " + HINT),
    (HEADER, "lscpu: no line of a CPU found; " + HINT),
    (GOOD, "lscpu: the header line '# CPU,Core,...' is missing; " + HINT),
    ("Architecture: x86_64\n", "lscpu: the header line '# CPU,Core,...' is missing; " + HINT),
    ("# CPU,Core,Socket\n0,0,0\n", "lscpu, line 1: the header names no column NODE; " + HINT),
    ("# starting usually from zero.\n0\n", "lscpu, line 1: the header names no column CPU; " + HINT),
    (HEADER + "0,0,0,0,,0,0,0,0,Y,1\n", "lscpu, line 2: the header names 10 columns, found 11"),
    (HEADER + GOOD + "1,1,0\n", "lscpu, line 3: the header names 10 columns, found 3"),
    ("# CPU,Core,Socket,Node\n0,0,0\n", "lscpu, line 2: the header names 4 columns, found 3"),
    (HEADER + GOOD + GOOD, "lscpu, line 3: CPU 0 comes twice"),
    (HEADER + "x,0,0,0,,0,0,0,0,Y\n", "lscpu, line 2: CPU is a number, not 'x'"),
    (HEADER + ",0,0,0,,0,0,0,0,Y\n", "lscpu, line 2: the CPU has no number"),
    (HEADER + "0,0x1,0,0,,0,0,0,0,Y\n", "lscpu, line 2: CORE is a number, not '0x1'"),
    (HEADER + "0,0,0,0,,0,0,0,\u0661,Y\n", "lscpu, line 2: L3 is a number, not '\u0661'"),
    (HEADER + "0,0,0,0,,0,0,0,0,yes\n", "lscpu, line 2: ONLINE is Y or N, not 'yes'"),
    (HEADER + "0,,,,,,N\n", "lscpu: no online CPU found; " + HINT),
    (HEADER + "70000,0,0,0,,0,0,0,0,Y\n", "lscpu, line 2: CPU 70000 is out of range: CPU ids go from 0 to 65535"),
    # from lscpu --physical on s390, where this is no number of a core
    (
        "# CPU,Core,Socket,Node\n0,1,-,\n1,1,-,\n",
        "lscpu, line 2: SOCKET is '-', as 'lscpu --physical' prints it; " + HINT,
    ),
    # lscpu --all without its column ONLINE: is CPU 1 offline, or does the kernel not tell its core?
    (
        "# CPU,Core,Socket,Node,Online\n0,0,0,0,\n1,,,,\n",
        "lscpu: CPU 1 has no core, perhaps as it is offline; " + HINT,
    ),
    (
        "# CPU,Core,Socket,Node\n0,0,0,0\n1,,,\n",
        "lscpu: CPU 1 has no core, perhaps as it is offline; " + HINT,
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_lscpu(text)
    assert str(caught.value) == message
