# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/topology/cadvisor.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.cadvisor import HINT, read_machine_info
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.model import Group, Topology
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import Shape, parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import shapes
from ansible_collections.kubenode.cpu_manager.tests.machines.texts import machine_info
from ansible_collections.kubenode.cpu_manager.tests.machines.told import told_by_machine_info


@given(shapes())
@example(parse_name("2s2n2l4c2t+memory1+nodes0-3,8+offline1,20"))
@example(parse_name("1s6c2t8e+adjacent"))
@example(parse_name("1n2s4c+offline1"))
@example(parse_name("2s1c4t2e"))
def test_reads_what_cadvisor_tells(shape: Shape) -> None:
    topology = shape.topology()
    text = machine_info(topology)
    found, expected = read_machine_info(text).to_dict(), told_by_machine_info(topology).to_dict()
    if any(len(node["caches"] or ()) > 1 for node in json.loads(text)["topology"]):
        assert found["problems"]
        found["l3_caches"], found["problems"] = expected["l3_caches"], []
    assert found == expected


def test_node_with_several_caches() -> None:
    """cAdvisor cannot tell them apart from the node's own, and does not say which core has which."""
    topology = parse_name("2s1c4t2e").topology()
    found = read_machine_info(machine_info(topology))
    assert found.problems == ("MachineInfo: node 0 has several L3 caches; whose they are is not told",)
    # The cores of four threads have theirs beside them.
    assert [len(group.cpus) for group in found.caches] == [4, 4]


def cache(number: int, level: int = 3, kind: str = "Unified") -> dict[str, Any]:
    return {"id": number, "size": 1, "type": kind, "level": level}


def core(*threads: int, **parts: Any) -> dict[str, Any]:
    return {"core_id": 0, "thread_ids": list(threads), "caches": None, "uncore_caches": None, "socket_id": 0, **parts}


def node(*cores: dict[str, Any], number: int = 0, **parts: Any) -> dict[str, Any]:
    return {"node_id": number, "cores": list(cores) or None, "caches": None, "distances": None, **parts}


def info(*nodes: dict[str, Any], count: int) -> str:
    return json.dumps({"machine_id": "1", "num_cores": count, "num_sockets": 1, "topology": list(nodes)})


def caches(topology: Topology) -> dict[int, str]:
    return {group.id: str(group.cpus) for group in topology.caches}


def test_cores_are_told_apart_by_place_and_not_by_number() -> None:
    text = info(node(core(0, 2), core(1, 3)), node(core(4), core(5), number=1), count=6)
    assert read_machine_info(text) == Topology(
        CPUSet.parse("0-5"),
        [CPUSet.parse("0,2"), CPUSet.parse("1,3"), CPUSet.parse("4"), CPUSet.parse("5")],
        sockets=[Group(0, CPUSet.parse("0-5"))],
        numa_nodes=[Group(0, CPUSet.parse("0-3")), Group(1, CPUSet.parse("4-5"))],
    )


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        # an L3 cache of the node
        ([node(core(0), core(1), caches=[cache(5)]), node(core(2), core(3), number=1)], {5: "0-1"}),
        # of some cores; of the rest nothing is known
        ([node(core(0, uncore_caches=[cache(7)]), core(1), core(2), core(3))], {7: "0"}),
        # of cores in two nodes of a socket (sub-NUMA clustering)
        (
            [
                node(core(0, uncore_caches=[cache(4)]), core(1, uncore_caches=[cache(4)])),
                node(core(2, uncore_caches=[cache(4)]), core(3, uncore_caches=[cache(4)]), number=1),
            ],
            {4: "0-3"},
        ),
        # the same number in another socket is another cache
        (
            [
                node(core(0, uncore_caches=[cache(4)]), core(1, uncore_caches=[cache(4)])),
                node(*(core(cpu, uncore_caches=[cache(4)], socket_id=1) for cpu in (2, 3)), number=1),
            ],
            {0: "0-1", 1: "2-3"},
        ),
        # told once by the node and once by the core
        ([node(core(0), core(1, uncore_caches=[cache(4)]), core(2), core(3), caches=[cache(4)])], {4: "0-3"}),
        # private; cAdvisor writes the id of one core's cache with all
        ([node(*(core(cpu, caches=[cache(1, 2), cache(9)]) for cpu in range(4)))], {0: "0", 1: "1", 2: "2", 3: "3"}),
        # private, and told with its own id too
        (
            [node(*(core(cpu, caches=[cache(9)], uncore_caches=[cache(4 + cpu)]) for cpu in range(4)))],
            {4: "0", 5: "1", 6: "2", 7: "3"},
        ),
        # without ids, from an old cAdvisor
        (
            [
                node(core(0), core(1), caches=[{"size": 1, "type": "Unified", "level": 3}]),
                node(core(2), core(3), caches=[{"size": 1, "type": "Unified", "level": 3}], number=1),
            ],
            {0: "0-1", 1: "2-3"},
        ),
        # of other levels, or for instructions
        ([node(*map(core, range(4)), caches=[cache(1, 2), cache(2, 4), cache(3, 3, "Instruction")])], {}),
    ],
)
def test_caches(nodes: list[dict[str, Any]], expected: dict[int, str]) -> None:
    assert caches(read_machine_info(info(*nodes, count=4))) == expected


@pytest.mark.parametrize(
    ("sockets", "expected"),
    [
        ((0, 36), {0: "0", 36: "1"}),
        ((-1, -1), {0: "0-1"}),  # Linux, where the firmware does not number sockets
    ],
)
def test_sockets(sockets: tuple[int, int], expected: dict[int, str]) -> None:
    topology = read_machine_info(
        info(node(*(core(cpu, socket_id=socket) for cpu, socket in enumerate(sockets))), count=2)
    )
    assert {group.id: str(group.cpus) for group in topology.sockets} == expected


def test_old_cadvisor_tells_no_sockets() -> None:
    old = core(0)
    del old["socket_id"]
    assert read_machine_info(info(node(old), count=1)).sockets == ()


def test_distances_and_memory_only_nodes() -> None:
    text = info(
        node(number=8, distances=[17, 28, 10]),
        node(core(0), number=1, distances=[10, 21, 17]),
        node(core(1), number=4, distances=[21, 10, 28]),
        count=2,
    )
    topology = read_machine_info(text)
    assert topology.numa_distances == {
        1: {1: 10, 4: 21, 8: 17},
        4: {1: 21, 4: 10, 8: 28},
        8: {1: 17, 4: 28, 8: 10},
    }
    assert [(group.id, str(group.cpus)) for group in topology.numa_nodes] == [(1, "0"), (4, "1"), (8, "")]
    assert topology.nearest_cpus == {8: CPUSet.parse("0")}


def bad(what: str, *nodes: dict[str, Any], count: int = 1) -> tuple[str, str]:
    return info(*nodes, count=count), "MachineInfo, %s; %s" % (what, HINT)


BAD = [
    # no MachineInfo
    ("", "MachineInfo: is not JSON: Expecting value: line 1 column 1 (char 0); " + HINT),
    ('{"num_cores": 2,', None),
    ("[]", "MachineInfo: is a JSON object, not []; " + HINT),
    ("null", "MachineInfo: is a JSON object, not null; " + HINT),
    ('"%s"' % ("x" * 1000), 'MachineInfo: is a JSON object, not "%s...; %s' % ("x" * 36, HINT)),
    ("[" * 100_000, "MachineInfo: is nested too deeply; " + HINT),
    ("{}", "MachineInfo, num_cores: is missing; " + HINT),
    ('{"num_cores": %s}' % ("9" * 5000), None),
    # counts
    ('{"num_cores": 2}', "MachineInfo: num_cores is 2, and the topology has 0 threads; " + HINT),
    ('{"num_cores": 0}', "MachineInfo: num_cores is 0, and the topology has 0 threads; " + HINT),
    (info(node(core(0)), count=2), "MachineInfo: num_cores is 2, and the topology has 1 thread; " + HINT),
    # fields
    bad("topology[0]: is an object, not 3", 3),  # type: ignore[arg-type]
    bad("topology[0].node_id: is missing", {"cores": []}),
    bad('topology[0].node_id: is a number from 0 to 9223372036854775807, not "0"', node(number="0")),  # type: ignore[arg-type]
    bad("topology[0].node_id: is a number from 0 to 9223372036854775807, not -1", node(number=-1)),
    bad("topology[0].node_id: is a number from 0 to 9223372036854775807, not true", node(number=True)),
    bad("topology[1].node_id: node 0 comes twice", node(core(0)), node(core(1)), count=2),
    bad("topology[0].cores: is a list, not {}", {"node_id": 0, "cores": {}}),
    bad("topology[0].cores[0].thread_ids: is a list of CPUs, not []", node(core())),
    bad("topology[0].cores[0].thread_ids: is a list of CPUs, not null", node(core(thread_ids=None))),
    bad("topology[0].cores[1].thread_ids: CPU 0 comes twice", node(core(0), core(0)), count=2),
    bad("topology[0].cores[0].thread_ids: CPU 3 comes twice", node(core(3, 3)), count=2),
    bad("topology[0].cores[0].thread_ids[1]: is a number from 0 to 65535, not 65536", node(core(0, 65536)), count=2),
    bad("topology[0].cores[0].thread_ids[0]: is a number from 0 to 65535, not 0.5", node(core(0.5))),  # type: ignore[arg-type]
    bad(
        "topology[0].cores[0].socket_id: is a number from -1 to 9223372036854775807, not null",
        node(core(0, socket_id=None)),
    ),
    bad("topology[0].cores[0].uncore_caches[0].level: is missing", node(core(0, uncore_caches=[{"id": 3}]))),
    bad("topology[0].caches[0]: is an object, not []", node(core(0), caches=[[]])),
    bad("topology[0].distances: is a list of numbers, not 10", node(core(0), distances=10)),
    bad(
        'topology[0].distances[0]: is a number from 0 to 9223372036854775807, not "x"',
        node(core(0), distances=["x"]),
    ),
    bad("topology[0].distances: has 2 numbers for 1 node", node(core(0), distances=[10, 21])),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_text(text: str, message: str | None) -> None:
    with pytest.raises(InputError) as caught:
        read_machine_info(text)
    # Without a message of our own: what is said of wrong JSON differs with Python's version.
    assert (
        str(caught.value).startswith("MachineInfo: is not JSON: ") if message is None else str(caught.value) == message
    )
