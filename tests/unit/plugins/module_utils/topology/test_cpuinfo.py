# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/cpuinfo.py."""

from __future__ import annotations

import pytest
from hypothesis import example, given

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.cpuinfo import read_cpuinfo
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.texts import cpuinfo, cpuinfo_arm64
from ansible_collections.kubenode.cpu_manager.tests.machines.told import told_by_cpuinfo


def summary(topology: Topology) -> tuple[list[str], dict[int, str]]:
    """Return the cores, and the sockets by their ids."""
    return [str(core.cpus) for core in topology.cores], {group.id: str(group.cpus) for group in topology.sockets}


@given(shapes())
@example(parse_name("2s4c2t8e+adjacent+offline0,9"))
def test_reads_what_an_x86_kernel_prints(shape: Shape) -> None:
    topology = shape.topology()
    assert read_cpuinfo(cpuinfo(topology)) == told_by_cpuinfo(topology)


@given(shapes())
def test_where_it_tells_processors_only_each_is_a_core(shape: Shape) -> None:
    topology = shape.topology()
    assert read_cpuinfo(cpuinfo_arm64(topology)) == Topology(topology.online, [])


ARM = """\
Processor       : ARMv7 Processor rev 1 (v7l)
processor       : 0
BogoMIPS        : 1595.80

processor       : 1
BogoMIPS        : 1595.80

Features        : swp half thumb fastmult vfp edsp neon vfpv3
Hardware        : ST-Ericsson MOP500 platform
"""

POWER = """\
processor\t: 0
cpu\t\t: POWER9, altivec supported
clock\t\t: 2300.000000MHz

processor\t: 8
cpu\t\t: POWER9, altivec supported
clock\t\t: 2300.000000MHz

timebase\t: 512000000
platform\t: PowerNV
"""

IA64 = """\
processor  : 0
vendor     : GenuineIntel
cpu number : 0
siblings   : 2
physical id: 1024
core id    : 0
thread id  : 0

processor  : 1
vendor     : GenuineIntel
cpu number : 0
siblings   : 2
physical id: 1024
core id    : 1
thread id  : 0

"""

S390_OLD = """\
vendor_id       : IBM/S390
# processors    : 2
bogomips per cpu: 14367.00
processor 0: version = 00,  identification = 279F25,  machine = 2817
processor 1: version = 00,  identification = 279F25,  machine = 2817
"""

# Socket 1 is in book 0 and in book 1; each core has two threads.
S390_NEW = (
    S390_OLD.replace("# processors    : 2", "# processors    : 4")
    + """\
processor 2: version = FF,  identification = 279F25,  machine = 3906
processor 3: version = FF,  identification = 279F25,  machine = 3906

"""
    + "".join(
        "cpu number      : %d\nphysical id     : 1\ncore id         : %d\nbook id         : %d\ndrawer id       : 0\n"
        "siblings        : 2\ncpu cores       : 1\nversion         : 00\n\n" % (cpu, cpu // 2, cpu // 2)
        for cpu in range(4)
    )
)

OTHERS = [
    (ARM, ["0", "1"], {}),
    (POWER, ["0", "8"], {}),
    (IA64, ["0", "1"], {1024: "0-1"}),
    (S390_OLD, ["0", "1"], {}),
    (S390_NEW, ["0-1", "2-3"], {0: "0-1", 1: "2-3"}),
]


@pytest.mark.parametrize(("text", "cores", "sockets"), OTHERS)
def test_other_architectures(text: str, cores: list[str], sockets: dict[int, str]) -> None:
    assert summary(read_cpuinfo(text)) == (cores, sockets)


def block(cpu: int, socket: int, core: int, siblings: int, cores: int) -> str:
    return "processor\t: %d\nphysical id\t: %d\nsiblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %d\n\n" % (
        cpu,
        socket,
        siblings,
        core,
        cores,
    )


def test_core_ids_that_come_twice_in_a_socket() -> None:
    """As on AMD's Magny-Cours: core ids count in each NUMA node. As many cores as CPUs: each CPU is one."""
    text = "".join(block(cpu, socket=0, core=cpu % 2, siblings=4, cores=4) for cpu in range(4))
    assert summary(read_cpuinfo(text)) == (["0", "1", "2", "3"], {0: "0-3"})


CONTRADICTIONS = [
    # a container that sees two CPUs of its host's eight
    (
        block(0, socket=0, core=0, siblings=8, cores=4) + block(1, socket=0, core=2, siblings=8, cores=4),
        "the socket of CPUs 0-1 has 2 CPUs, and 'siblings' says 8",
    ),
    # ids of cores that come twice, and threads
    (
        "".join(block(cpu, socket=0, core=cpu % 2, siblings=8, cores=4) for cpu in range(8)),
        "the socket of CPUs 0-7 has 2 different core ids, and 'cpu cores' says 4",
    ),
    # one id for all, as some hypervisors have it
    (
        "".join(block(cpu, socket=0, core=0, siblings=1, cores=1) for cpu in range(4)),
        "the socket of CPUs 0-3 has 4 CPUs, and 'siblings' says 1",
    ),
]


@pytest.mark.parametrize(("text", "what"), CONTRADICTIONS)
def test_contradiction(text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        read_cpuinfo(text)
    assert str(caught.value) == "cpuinfo: %s; this text does not give the cores, read the machine's /sys" % what


BAD = [
    ("", "cpuinfo: no line 'processor : NUMBER' found; give the whole content of /proc/cpuinfo"),
    ("MemTotal: 3 kB\n", "cpuinfo: no line 'processor : NUMBER' found; give the whole content of /proc/cpuinfo"),
    ("processor\t: zero\n", "cpuinfo, line 1: processor is a number, not 'zero'"),
    ("processor\t: \n", "cpuinfo, line 1: processor is a number, not ''"),
    ("processor\t: -1\n", "cpuinfo, line 1: processor is a number, not '-1'"),
    ("processor\t: \u0661\n", "cpuinfo, line 1: processor is a number, not '\u0661'"),
    ("processor x: version\n", "cpuinfo, line 1: processor is a number, not 'x'"),
    ("processor\t: 0\nphysical id\t: 0x0\n", "cpuinfo, line 2: physical id is a number, not '0x0'"),
    ("processor\t: 0\n\nprocessor\t: 0\n", "cpuinfo, line 3: processor 0 comes twice"),
    ("processor 0: version\nprocessor 0: version\n", "cpuinfo, line 2: processor 0 comes twice"),
    ("processor 0: version\ncpu number : 1\n", "cpuinfo, line 2: CPU 1 is not among the processors above"),
    ("processor\t: %s\n" % ("9" * 5000), "cpuinfo, line 1: processor is a number, not '%s'" % ("9" * 5000)),
    ("processor\t: 70000\n", "cpuinfo, line 1: processor 70000 is out of range: CPU ids go from 0 to 65535"),
    (
        "processor\t: 0\nphysical id\t: 0\n\nprocessor\t: 1\n",
        "cpuinfo: processor 1 has no 'physical id', unlike others; give the whole content of /proc/cpuinfo",
    ),
    (
        "processor\t: 0\nphysical id\t: 0\ncore id\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\n",
        "cpuinfo: processor 1 has no 'core id', unlike others; give the whole content of /proc/cpuinfo",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_cpuinfo(text)
    assert str(caught.value) == message


def test_tells_neither_numa_nor_caches() -> None:
    topology = read_cpuinfo(cpuinfo(parse_name("2s2n2c2t+offline1").topology()))
    assert [(node.id, node.cpus) for node in topology.numa_nodes] == [(0, topology.online)]
    assert topology.caches == ()
    assert topology.offline == CPUSet()
