# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each change that a kubelet may not survive, and each refusal that it has for its states: what users meet when they
edit the file and restart the kubelet, and then what the role does with the same node.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    MemoryConfig,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import format_for, write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import NODE_MEMORY
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import Run, ansible_playbook, play
from ansible_collections.kubenode.cpu_manager.tests.playbooks.init import SERVICE_MANAGER, private_init
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

from .kubelet_node import CHECKPOINT, STARTED, KubeletNode, saved

MACHINE = "1s4c2t"  # 8 CPUs; a core is n, n+4
MEMORY = "/var/lib/kubelet/memory_manager_state"
NONE: dict[str, Any] = {"cpuManagerPolicy": "none", "reservedSystemCPUs": "0,4"}
STATIC = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4"}
STRICT = {"cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}}
COUNTED = {"cpuManagerPolicy": "static", "kubeReserved": {"cpu": "12"}}
MEMORY_STATIC = {
    "memoryManagerPolicy": "Static",
    "systemReserved": {"memory": "924Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
MORE_MEMORY = {
    "systemReserved": {"memory": "1948Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
}

FRESH, STRICT_FRESH = saved("static", "0-7"), saved("static", "1-3,5-7")
PINNED = saved("static", "0,2-4,6-7", web="1,5")
POD_LEVEL = write_checkpoint("static", State(CPUSet.parse("0-7"), {}), format_for(36, pod_level=True))
CORRUPT = "could not restore state from checkpoint: checkpoint is corrupted"
MEMORY_REFUSED = "start memory manager error: could not restore state from checkpoint: [memorymanager] "


def first_memory(policy: str, reserved: int = 0) -> str:
    """Return a first state, as the kubelet writes it."""
    machine = {0: {"memory": NODE_MEMORY * 1024}}
    state = memory_state_after(None, MemoryConfig(policy, {0: {"memory": reserved}}, 36, machine=machine))
    return (state or b"").decode("ascii")


class Case(NamedTuple):
    """A node, how its configuration changes, and what its kubelet says when it is restarted with that."""

    before: Mapping[str, Any]
    change: Mapping[str, Any]
    checkpoint: bytes
    # Empty where it starts.
    said: str = ""
    machine: str = MACHINE
    memory_state: str = first_memory("None")


def text(default: str, entries: str = "{}") -> bytes:
    """Return a checkpoint of the static policy whose checksum nobody looks at."""
    return ('{"policyName":"static","defaultCpuSet":"%s","entries":%s,"checksum":0}' % (default, entries)).encode()


# What needs the checkpoint out of the way, and what does not.
CHANGES = {
    "none to static": Case(
        NONE,
        {"cpuManagerPolicy": "static"},
        saved("none", ""),
        'configured policy "static" differs from state checkpoint policy "none"',
    ),
    "static to none": Case(
        STATIC,
        {"cpuManagerPolicy": "none"},
        FRESH,
        'configured policy "none" differs from state checkpoint policy "static"',
    ),
    "strict reservation on": Case(
        STATIC, STRICT, FRESH, 'some of strictly reserved cpus: "0,4" are present in defaultCpuSet: "0-7"'
    ),
    "strict reservation off": Case(
        {**STATIC, **STRICT},
        {"cpuManagerPolicyOptions": {}},
        STRICT_FRESH,
        'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-3,5-7"',
    ),
    "reservation of free CPUs": Case(STATIC, {"reservedSystemCPUs": "0,2,4,6"}, PINNED),
    "reservation of a pod's CPUs": Case(
        STATIC,
        {"reservedSystemCPUs": "1,5"},
        PINNED,
        'not all reserved cpus: "1,5" are present in defaultCpuSet: "0,2-4,6-7"',
    ),
    "strict reservation grows": Case(
        {**STATIC, **STRICT}, {"reservedSystemCPUs": "0-1,4-5"}, STRICT_FRESH, "some of strictly reserved cpus: "
    ),
    "strict reservation shrinks": Case(
        {**STATIC, **STRICT, "reservedSystemCPUs": "0-1,4-5"},
        {"reservedSystemCPUs": "0,4"},
        saved("static", "2-3,6-7"),
        'current set of available CPUs "1-3,5-7" doesn\'t match with CPUs in state "2-3,6-7"',
    ),
    "other options": Case(STATIC, {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}, FRESH),
    "options that move the reservation": Case(
        COUNTED,
        {"cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"}},
        saved("static", "0-5,7-13,15", web="6,14"),
        'not all reserved cpus: "0-2,4-6,8-10,12-14" are present in defaultCpuSet: "0-5,7-13,15"',
        "2s1n4c2t",
    ),
    "topology manager, period and quota": Case(
        STATIC,
        {
            "topologyManagerPolicy": "restricted",
            "topologyManagerScope": "pod",
            "cpuManagerReconcilePeriod": "5s",
            "cpuCFSQuota": False,
        },
        PINNED,
    ),
    "CPUs go offline": Case(
        STATIC,
        {},
        FRESH,
        'current set of available CPUs "0-6" doesn\'t match with CPUs in state "0-7"',
        MACHINE + "+offline7",
    ),
    "CPUs go offline with none": Case(NONE, {}, saved("none", ""), machine=MACHINE + "+offline7"),
    "pod level managers off": Case(STATIC, {}, POD_LEVEL, CORRUPT),
    "upgrade": Case(STATIC, {}, saved("static", "0-7", minor=17)),
    "memory manager on": Case(
        STATIC, MEMORY_STATIC, FRESH, MEMORY_REFUSED + 'configured policy "Static" differs from state checkpoint policy'
    ),
    "memory manager off": Case(
        {**STATIC, **MEMORY_STATIC},
        {"memoryManagerPolicy": "None"},
        FRESH,
        MEMORY_REFUSED + 'configured policy "None" differs from state checkpoint policy "Static"',
        memory_state=first_memory("Static", 1 << 30),
    ),
    "more memory reserved": Case(
        {**STATIC, **MEMORY_STATIC},
        MORE_MEMORY,
        FRESH,
        "start memory manager error: [memorymanager] the expected machine state is different from the real one",
        memory_state=first_memory("Static", 1 << 30),
    ),
}
# What else it refuses of a checkpoint, by the words with which it does.
REFUSALS = {
    CORRUPT: FRESH.replace(b"0-7", b"0-6"),
    "unexpected end of JSON input": b"",
    'could not parse default cpu set "0-x"': text("0-x"),
    'could not parse cpuset "1-x" for container "app" in pod "pod"': text("0-7", '{"pod":{"app":"1-x"}}'),
    "containerID 'abc' not found in initial containers list": text("0,2-7", '{"abc":"1"}'),
    "default cpuset cannot be empty": saved("static", "", web="0-7"),
    'pod: pod-web, container: web cpuset: "1,5" overlaps with default cpuset "0-7"': saved("static", "0-7", web="1,5"),
}
CASES = {**CHANGES, **{said: Case(STATIC, {}, checkpoint, said) for said, checkpoint in REFUSALS.items()}}

# The variable of each field.
VARIABLES = {
    "cpuManagerPolicy": "kubelet_cpu_manager_policy",
    "cpuManagerPolicyOptions": "kubelet_cpu_manager_policy_options",
    "cpuManagerReconcilePeriod": "kubelet_cpu_manager_reconcile_period",
    "cpuCFSQuota": "kubelet_cpu_cfs_quota",
    "memoryManagerPolicy": "kubelet_memory_manager_policy",
    "reservedMemory": "kubelet_reserved_memory",
    "reservedSystemCPUs": "kubelet_reserved_system_cpus",
    "topologyManagerPolicy": "kubelet_topology_manager_policy",
    "topologyManagerScope": "kubelet_topology_manager_scope",
}


def variables_of(change: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the role is asked for."""
    asked = {VARIABLES[field]: value for field, value in change.items() if field in VARIABLES}
    if "systemReserved" in change:
        asked["kubelet_system_reserved_memory"] = change["systemReserved"]["memory"]
    return asked


class Story(NamedTuple):
    """What became of each node: what its kubelet said by hand, and since the role came; and the role's run."""

    by_hand: dict[str, list[str]]
    run: Run
    nodes: dict[str, KubeletNode]

    def since(self, name: str) -> list[str]:
        return self.nodes[name].log()[len(self.by_hand[name]) :]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, private_services: None) -> Iterator[Story]:
    """Yield all nodes in one run, as each takes as long as many."""
    directory = tmp_path_factory.mktemp("changes")
    nodes = {
        name: KubeletNode(directory / ("node-%d" % number), case.machine, case.before)
        for number, (name, case) in enumerate(CASES.items())
    }

    def by_hand(name: str) -> list[str]:
        case, node = CASES[name], nodes[name]
        before = node.configuration()
        node.configure({**before, **case.change})
        put(node, case)
        node.start()
        node.wait_for(case.said or STARTED)
        node.stop()
        node.configure(before)
        put(node, case)
        return node.log()

    try:
        with ThreadPoolExecutor(4) as pool:
            logs = dict(zip(CASES, pool.map(by_hand, CASES)))
        yield Story(logs, roll_out(directory, nodes), nodes)
    finally:
        for node in nodes.values():
            node.stop()


def put(node: KubeletNode, case: Case) -> None:
    """Have the states that a case begins with."""
    node.write(CHECKPOINT, case.checkpoint.decode("ascii"))
    node.write(MEMORY, case.memory_state)


def roll_out(directory: Path, nodes: Mapping[str, KubeletNode]) -> Run:
    hosts = {
        node.name: {
            "kubelet_node_root": str(node.root),
            "kubelet_service": "kubelet-" + node.name,
            "kubelet_manage_service": True,
            "kubelet_drain": False,
            # Nobody uses these nodes.
            "kubelet_discard_assignments": True,
            "kubelet_verify_seconds": 1,
            "kubelet_verify_timeout": 180,
            **variables_of(CASES[name].change),
        }
        for name, node in nodes.items()
    }
    prefix = private_init(directory, {"kubelet-" + node.name: node.init_script() for node in nodes.values()})
    plays = play(pre_tasks=[SERVICE_MANAGER], roles=["kubenode.cpu_manager.kubelet"])
    return ansible_playbook(directory / "run", plays, hosts, prefix=prefix)


def test_the_role_does_all(story: Story) -> None:
    assert story.run.status == 0, story.run.account()


@pytest.mark.parametrize("name", CASES)
def test_change(story: Story, name: str) -> None:
    case, node = CASES[name], story.nodes[name]
    # By hand the kubelet refuses, or it does not.
    assert any(case.said in line for line in story.by_hand[name])
    assert any(STARTED in line for line in story.by_hand[name]) == (not case.said)

    # With the role it starts, and once.
    changes = bool(case.change or case.said)
    lines = story.since(name)
    assert [line for line in lines if STARTED in line or line.startswith("service: ")] == (
        ["service: start", STARTED] if changes else []
    )
    found = node.configuration()
    assert {field: found.get(field, {}) for field in case.change} == case.change
    checkpoint = node.checkpoint()
    assert checkpoint is not None
    assert checkpoint.policy_name == found["cpuManagerPolicy"]

    # And nothing is reset that need not be.
    reset = "Reset or repair the checkpoint if the kubelet would refuse it" in story.run.changes(node.name)
    assert reset == bool(case.said)
