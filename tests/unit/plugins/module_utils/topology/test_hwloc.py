# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/hwloc.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology import hwloc as hwloc_module
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.hwloc import HINT, read_hwloc
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.texts import hwloc
from ansible_collections.kubenode.cpu_manager.tests.machines.told import told_by_hwloc
from ansible_collections.kubenode.cpu_manager.tests.machines.tools import run_lstopo
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

# What lstopo of hwloc 2.9 printed of the trees of these machines (python tests/machines NAME DIR --outputs DIR2).
FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.xml"))


def changed(topology: Topology, **parts: object) -> Topology:
    return Topology.from_dict({**topology.to_dict(), **parts})


def told(topology: Topology, version: int) -> Topology:
    expected = told_by_hwloc(topology)
    # hwloc 1.x knows no dies.
    return changed(expected, dies={}) if version == 1 else expected


def nodes_are_told(topology: Topology) -> bool:
    """Return whether all nodes are told right. hwloc 2.x shows the node without CPUs that is nearest to a node, and
    that node, alike: the lower id counts.

    So a node whose CPUs are all offline, and which comes before the one that is nearest, is not told right.
    """
    return all(
        near != node.cpus or node.id < memory_only
        for memory_only, near in topology.nearest_cpus.items()
        for node in topology.numa_nodes
    )


@given(shapes(), st.sampled_from([1, 2]))
@example(parse_name("2s2d2n2c2t2e+memory3+offline0-3"), 2)
@example(parse_name("1s40c"), 2)
@example(parse_name("1s1c"), 1)
def test_reads_what_lstopo_prints(shape: Shape, version: int) -> None:
    topology = shape.topology()
    found, expected = read_hwloc(hwloc(topology, version)), told(topology, version)
    if version == 2 and not nodes_are_told(topology):
        found, expected = (changed(part, numa_nodes={}, nearest_cpus={}) for part in (found, expected))
    if len(topology.numa_nodes) == 1:
        found = changed(found, numa_distances={})
    assert found == expected


def test_there_are_fixtures() -> None:
    assert len(FIXTURES) >= 13


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_fixture(path: Path) -> None:
    name, version = re.fullmatch(r"(.*)\.hwloc([12])\.xml", path.name).groups()  # type: ignore[union-attr]
    assert read_hwloc(path.read_text(encoding="utf-8")) == told(parse_name(name).topology(), int(version))


@pytest.mark.needs("lstopo-no-graphics")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", ["1s1c", "2s4n2l2c2t+adjacent+offline0,9", "2s2d3c2e+interleaved", "2s1n2c+memory3"])
def test_real_lstopo(tmp_path: Path, name: str, version: int) -> None:
    topology = write_machine(tmp_path, name)
    assert read_hwloc(run_lstopo(str(tmp_path), version)) == told(topology, version)


# --- parts of the format -----------------------------------------------------------------------------

PUS = "".join('<object type="PU" os_index="%d" cpuset="%s"/>' % (cpu, hex(1 << cpu)) for cpu in range(4))


def document(content: str = "", machine: str = 'cpuset="0x0000000f"', after: str = "") -> str:
    """Return a machine of CPUs 0 to 3."""
    return '<topology version="2.0">\n<object type="Machine" %s>%s%s</object>%s</topology>' % (
        machine,
        content,
        PUS,
        after,
    )


def test_least() -> None:
    """Neither cores nor sockets nor NUMA nodes: what lstopo prints where the kernel tells none."""
    assert read_hwloc(document()) == Topology(CPUSet.parse("0-3"), [])


@pytest.mark.parametrize(
    ("machine", "online", "offline"),
    [
        ('cpuset="0xf" complete_cpuset="0xff"', "0-3", "4-7"),
        ('cpuset="0xf" complete_cpuset="0xff" online_cpuset="0x3"', "0-1", "2-7"),  # 1.x
        ('cpuset="0xf" complete_cpuset="0xff" allowed_cpuset="0x3"', "0-3", "4-7"),  # not allowed is online
        ('cpuset="0xf" complete_cpuset="0xf...f"', "0-3", ""),  # no end: tells nothing
        ('cpuset="0xf" complete_cpuset="0xf...f,0xffffffff"', "0-3", ""),
        ('cpuset="0x0000000f" complete_cpuset="0x00000001,,0x0000000f"', "0-3", "64"),  # a group of zero
        ('cpuset="0x0,0x0000000f"', "0-3", ""),
    ],
)
def test_cpusets_of_the_machine(machine: str, online: str, offline: str) -> None:
    topology = read_hwloc(document(machine=machine))
    assert (str(topology.online), str(topology.offline)) == (online, offline)


def test_a_set_without_end_is_all_online_cpus() -> None:
    node = '<object type="NUMANode" os_index="3" cpuset="0xf...f,0xffffffff"/>'
    assert read_hwloc(document(node)).numa_nodes == (Group(3, CPUSet.parse("0-3")),)
    node = '<object type="NUMANode" os_index="3" cpuset="0xf...f,0x00000000"/>'
    assert read_hwloc(document(node)).numa_nodes == (Group(3, CPUSet()),)


def test_old_names() -> None:
    content = (
        '<object type="Node" os_index="1" cpuset="0xf"><object type="Socket" os_index="7" cpuset="0xf">'
        '<object type="Cache" depth="3" cpuset="0x3"/><object type="Cache" depth="3" cpuset="0xc"/>'
        '<object type="Cache" depth="2" cpuset="0x1"/><object type="Cache" depth="3" cache_type="2" cpuset="0xf"/>'
        '<object type="Core" os_index="0" cpuset="0x3"/><object type="Core" os_index="0" cpuset="0xc"/>'
        "</object></object>"
    )
    halves = [CPUSet.parse("0-1"), CPUSet.parse("2-3")]
    assert read_hwloc(document(content)) == Topology(
        CPUSet.parse("0-3"),
        halves,
        sockets=[Group(7, CPUSet.parse("0-3"))],
        numa_nodes=[Group(1, CPUSet.parse("0-3"))],
        caches=[Group(0, halves[0]), Group(1, halves[1])],
    )


def test_memory_behind_a_cache_of_its_own() -> None:
    content = (
        '<object type="MemCache" cpuset="0xf" depth="1"><object type="NUMANode" os_index="2" cpuset="0xf"/></object>'
    )
    assert read_hwloc(document(content)).numa_nodes == (Group(2, CPUSet.parse("0-3")),)


def nodes(*cpusets: tuple[int, str]) -> str:
    return "".join('<object type="NUMANode" os_index="%d" cpuset="%s"/>' % node for node in cpusets)


@pytest.mark.parametrize(
    ("content", "own", "nearest"),
    [
        (nodes((0, "0x3"), (1, "0xc")), {0: "0-1", 1: "2-3"}, {}),
        (nodes((2, "0x3"), (0, "0x3"), (1, "0xc")), {0: "0-1", 1: "2-3", 2: ""}, {2: "0-1"}),
        (nodes((0, "0xf"), (1, "0xf")), {0: "0-3", 1: ""}, {1: "0-3"}),
        # equally far from all nodes with CPUs; first in the text, and by its number
        (nodes((0, "0xf"), (1, "0x3"), (2, "0xc")), {0: "", 1: "0-1", 2: "2-3"}, {}),
        (nodes((0, "0xf"), (1, "0x0")), {0: "0-3", 1: ""}, {}),
    ],
)
def test_nodes_that_share_cpus(content: str, own: dict[int, str], nearest: dict[int, str]) -> None:
    topology = read_hwloc(document(content))
    assert {node.id: str(node.cpus) for node in topology.numa_nodes} == own
    assert {node: str(cpus) for node, cpus in topology.nearest_cpus.items()} == nearest


MATRIX = (
    '<distances2 %s nbobjs="2"><indexes length="4">0 1 </indexes>'
    '<info name="x" value="y"/>'
    '<u64values length="6">10 21 </u64values><u64values length="6">\n21 10 </u64values></distances2>'
)
LATENCY = {0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}}


@pytest.mark.parametrize(
    ("attributes", "distances"),
    [
        ('type="NUMANode" indexing="os" kind="5" name="NUMALatency"', LATENCY),
        ('type="NUMANode" indexing="os" kind="5"', LATENCY),  # before 2.1 it has no name
        ('type="NUMANode" indexing="os" kind="9"', {}),  # bandwidth
        ('type="NUMANode" indexing="os" kind="5" name="XGMIHops"', {}),
        ('type="PU" indexing="os" kind="5"', {}),
        ('type="NUMANode" indexing="gp" kind="5"', {}),
        ('type="NUMANode" indexing="os" kind="?"', {}),
    ],
)
def test_distances(attributes: str, distances: dict[int, dict[int, int]]) -> None:
    text = document(nodes((0, "0x3"), (1, "0xc")), after=MATRIX % attributes)
    assert read_hwloc(text).numa_distances == distances


def matrix_1(count: int, base: float, *values: float) -> str:
    latencies = "".join('<latency value="%f"/>' % value for value in values)
    return '<distances nbobjs="%d" relative_depth="1" latency_base="%f">%s</distances>' % (count, base, latencies)


def test_distances_of_hwloc_1() -> None:
    content = matrix_1(4, 1, *range(16)) + matrix_1(2, 10, 1, 2.1, 2.1, 1) + nodes((3, "0x3"), (1, "0xc"))
    # The first is of other objects; rows are in the order of the objects.
    assert read_hwloc(document(content)).numa_distances == {3: {3: 10, 1: 21}, 1: {3: 21, 1: 10}}


def test_distances_of_hwloc_1_are_rounded() -> None:
    """They are printed with six digits: 19 twelfths are a little less."""
    content = matrix_1(2, 12, 1, 19 / 12, 19 / 12, 1) + nodes((0, "0x3"), (1, "0xc"))
    assert read_hwloc(document(content)).numa_distances == {0: {0: 12, 1: 19}, 1: {0: 19, 1: 12}}


def test_things_that_do_not_matter() -> None:
    content = (
        '<info name="HostName" value="worker-1"/><object type="Bridge"><object type="PCIDev" os_index="4096"/></object>'
        '<object type="Misc" name="x"/><object type="Group" cpuset="0x3"/><object type="L3iCache" cpuset="0xf"/>'
        '<object type="Package" cpuset="0x0" os_index="3"/><userdata name="x">10 21</userdata>'
    )
    assert read_hwloc(document(content)) == read_hwloc(document())


def test_text_may_be_in_any_encoding_it_says() -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>' + document('<info name="x" value="\xe9\u2603"/>')
    assert read_hwloc(text) == read_hwloc(document())


# --- bad texts ---------------------------------------------------------------------------------------


def bad(content: str, what: str, line: int = 2) -> tuple[str, str]:
    return document(content), r"hwloc XML, line %d, column \d+: %s; %s" % (line, re.escape(what), re.escape(HINT))


BAD = [
    # no XML, or not all of it
    ("", r"hwloc XML, line 1, column 1: is not XML: no element found; .*"),
    ("Machine (64GB)", r"hwloc XML, line 1, column 1: is not XML: syntax error; .*"),
    (document()[:-1], r"hwloc XML, line 2, column \d+: is not XML: unclosed token; .*"),
    (document()[:100], r"hwloc XML, line 2, column \d+: is not XML: .*"),
    (document("&nbsp;"), r"hwloc XML, line 2, column \d+: is not XML: undefined entity; .*"),
    (document("\0"), r"hwloc XML, line 2, column \d+: is not XML: .*"),
    ("<html/>", r"hwloc XML, line 1, column 1: the first element is <topology>, not <html>; .*"),
    ("<topology/>", r"hwloc XML: no object with a cpuset found; .*"),
    ('<topology><object type="Machine"/></topology>', r".* column 11: the outermost object has no cpuset; .*"),
    # objects
    bad('<object type="Core" os_index="0"/>', "the Core has no cpuset"),
    bad('<object type="Socket" os_index="0"/>', "the Package has no cpuset"),
    bad('<object type="NUMANode" cpuset="0xf"/>', "os_index is a number, not ''"),
    bad('<object type="NUMANode" cpuset="0xf" os_index="-1"/>', "os_index is a number, not '-1'"),
    bad('<object type="PU" cpuset="0x1" os_index="x"/>', "os_index is a number, not 'x'"),
    bad(nodes((1, "0x3"), (1, "0xc")), "NUMA node 1 comes twice"),
    bad(
        '<object type="Core" cpuset="0x3"/><object type="Core" cpuset="0x6"/>', "CPUs 1 are in two objects of type Core"
    ),
    bad('<object type="Package" cpuset="0x3"/>' * 2, "CPUs 0-1 are in two objects of type Package"),
    # sets
    bad('<object type="Core" cpuset=""/>' * 2 + '<object type="Core" cpuset="0xg"/>', "'0xg' is not a cpuset"),
    bad('<object type="Core" cpuset="0-3"/>', "'0-3' is not a cpuset"),
    bad('<object type="Core" cpuset="0x123456789"/>', "'0x123456789' is not a cpuset"),
    bad('<object type="Core" cpuset="0x1,0xf...f"/>', "'0x1,0xf...f' is not a cpuset"),
    bad('<object type="Core" cpuset="%s"/>' % ("0x1," * 2048 + "0x1"), "a cpuset has more than 65536 CPUs"),
    # distances
    bad('<distances nbobjs="2" latency_base="x"/>', "'x' is not a distance"),
    bad('<distances nbobjs="1"><latency value="nan"/></distances>', "'nan' is not a distance"),
    bad('<distances nbobjs="1"><latency value="inf"/></distances>', "'inf' is not a distance"),
    bad('<distances nbobjs="1"><latency value="-1"/></distances>', "'-1' is not a distance"),
    bad('<distances nbobjs="1"><latency/></distances>', "'' is not a distance"),
    bad(
        '<distances2 type="NUMANode" indexing="os" kind="5" nbobjs="1"><indexes>0 x</indexes></distances2>',
        "<indexes> has numbers only",
    ),
    (
        document(nodes((0, "0xf")), after=(MATRIX % 'type="NUMANode" indexing="os" kind="5"').replace("10", "", 1)),
        r"hwloc XML: the distances of 2 NUMA nodes have 2 indexes and 3 values; .*",
    ),
    # CPUs that do not fit together
    (
        document(machine='cpuset="0xff"'),
        r"hwloc XML: the machine's cpuset is '0-7', and there are PU objects for '0-3'; .*",
    ),
    (document(machine='cpuset="0x0"'), r"hwloc XML: the machine's cpuset is '', and there are PU objects for ''; .*"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_text(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_hwloc(text)
    assert re.fullmatch(message, str(caught.value)), str(caught.value)


LAUGHS = """\
<!DOCTYPE topology [
<!ENTITY a "0123456789">
%s
]>
<topology>&j;</topology>""" % "\n".join(
    '<!ENTITY %s "%s">' % (name, "&%s;" % before * 10) for before, name in zip("abcdefghi", "bcdefghij")
)


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        '<!DOCTYPE topology [<!ENTITY a SYSTEM "file:///etc/passwd">]><topology>&a;</topology>',
        '<!DOCTYPE topology [<!ENTITY % a SYSTEM "file:///etc/passwd">%a;]><topology/>',
        '<!DOCTYPE topology SYSTEM "hwloc2.dtd" [<!ENTITY a "1">]>' + document(),
    ],
)
def test_entities_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="declares the entity 'a', which hwloc never does"):
        read_hwloc(text)


def test_external_dtd_is_not_read() -> None:
    assert read_hwloc('<!DOCTYPE topology SYSTEM "file:///nowhere/hwloc2.dtd">' + document()) == read_hwloc(document())


def test_deeply_nested_text() -> None:
    """The reader keeps no stack of its own."""
    text = document('<object type="Group">' * 50_000 + "</object>" * 50_000)
    assert read_hwloc(text) == read_hwloc(document())


def test_nothing_else_imports_xml() -> None:
    """Modules are loaded anew at each run: the parser is for those that read hwloc's format."""
    others = ["cadvisor", "cpuinfo", "lscpu", "sysfs"]
    package = hwloc_module.__name__.rpartition(".")[0]
    # What measures coverage may have imported it.
    program = (
        "import sys; sys.path[:0] = %r; import collection_path; collection_path.register()\n"
        % ([str(Path(__file__).parents[4])],)
        + "before = set(sys.modules)\n"
    )
    program += "".join("import %s.%s\n" % (package, name) for name in others)
    program += "print([name for name in set(sys.modules) - before if name.startswith(('xml', 'pyexpat'))])"
    found = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert found == "[]\n"
