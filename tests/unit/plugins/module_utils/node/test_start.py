# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.finding import Finding, Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start_check import check_start
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.memory_state import (
    MemoryPlan,
    memory_config,
    stored_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.start import (
    check_change,
    checkpoint_findings,
    host_of,
    memory_plan,
    memory_state_findings,
    planned_changes,
    planned_values,
    start_findings,
    start_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import first_memory_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
CONFIG = "var/lib/kubelet/config.yaml"
CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
MEMORY = "/var/lib/kubelet/memory_manager_state"

RESTORE = (
    "could not restore state from checkpoint: %s, please drain this node and delete the CPU manager checkpoint file"
    ' "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
)
RESTORE_MEMORY = (
    "could not restore state from checkpoint: %s, please drain this node and delete the memory manager checkpoint file"
    ' "/var/lib/kubelet/memory_manager_state" before restarting Kubelet'
)


def state(default: str, policy: str = "static", **containers: str) -> bytes:
    assignments = {"uid-" + name: {name: CPUSet.parse(text)} for name, text in containers.items()}
    return write_checkpoint(policy, State(CPUSet.parse(default), assignments))


def host(name: str = "1s4c2t", minor: int = 36) -> Host:
    return Host(kubelet_view(parse_name(name).topology()), minor, (0,), {})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shape = parse_name("1s4c2t")
    write_tree(shape.topology(), tmp_path, shape.whole())
    write(tmp_path, CONFIG, HEADER + STATIC)
    return tmp_path


def write(root: Path, path: str, content: str | bytes) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def node(root: Path, minor: int | None = None) -> Node:
    return Node(Tree(str(root)), minor=minor)


def findings_of(root: Path, wanted: Mapping[str, Any]) -> list[Finding]:
    one = node(root)
    return start_findings(one, wanted, one.checkpoint(), one.memory_state())


def texts(findings: list[Finding]) -> list[str]:
    return [finding.text for finding in findings]


# --- the checkpoint ---------------------------------------------------------------------------------------


def said(content: bytes | None, minor: int = 36, **values: Any) -> list[Finding]:
    machine = host(minor=minor)
    checked = check_start({"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4", **values}, machine)
    findings = list(checkpoint_findings(content, CHECKPOINT, checked, machine))
    assert all(finding.cause and finding.remedy and finding.where == CHECKPOINT for finding in findings)
    return findings


def test_a_checkpoint_that_is_accepted() -> None:
    assert said(None) == []
    assert said(state("0-7")) == []
    assert said(state("0-2,4-6", app="3,7")) == []
    assert said(state("0-6", app="7")) == []  # no whole core, and no option for it
    # A kubelet that does not even come to its checkpoint.
    assert said(state("0"), cpuManagerPolicy="unknown") == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (
            state("", policy="none"),
            RESTORE % 'configured policy "static" differs from state checkpoint policy "none"',
        ),
        (state("0-7").replace(b"0-7", b"0-6"), RESTORE % "checkpoint is corrupted"),
        (b"", RESTORE % "unexpected end of JSON input"),
        (state("1-7"), 'not all reserved cpus: "0,4" are present in defaultCpuSet: "1-7"'),
        (state("0-6"), 'current set of available CPUs "0-7" doesn\'t match with CPUs in state "0-6"'),
        (state("", app="0-7"), "default cpuset cannot be empty"),
        (
            state("0-7", app="7"),
            'pod: uid-app, container: app cpuset: "7" overlaps with default cpuset "0-7"',
        ),
    ],
)
def test_a_checkpoint_that_is_refused(content: bytes, text: str) -> None:
    (finding,) = said(content)
    assert finding.text == text
    assert finding.fatal


def test_a_strict_reservation() -> None:
    strict = {"strict-cpu-reservation": "true"}
    assert said(state("1-3,5-7"), cpuManagerPolicyOptions=strict) == []
    assert texts(said(state("0-7"), cpuManagerPolicyOptions=strict)) == [
        'some of strictly reserved cpus: "0,4" are present in defaultCpuSet: "0-7"'
    ]


def test_a_reservation_that_is_not_known_leaves_what_is_restored() -> None:
    for values in ({"reservedSystemCPUs": "64"}, {"cpuManagerPolicyOptions": {"unknown": "true"}}):
        assert said(state("0-3"), **values) == []
        assert len(said(state("", policy="none"), **values)) == 1


def test_running_pods_that_would_be_refused() -> None:
    whole_cores = {"full-pcpus-only": "true"}
    found = said(state("0-2,4-6", app="3,7"), cpuManagerPolicyOptions=whole_cores)
    assert found == []
    (finding,) = said(state("0-6", app="7"), cpuManagerPolicyOptions=whole_cores)
    assert finding.text == "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2"
    assert not finding.fatal
    (finding,) = said(state("0,4,1,5", app="2-3,6-7"), cpuManagerPolicyOptions=whole_cores)
    assert finding.text == (
        "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, requested CPUs = 4,"
        " CPUs per core = 2"
    )
    # Each fits by itself, to the last CPU.
    assert said(state("0,4,1,5", app="2,6", web="3,7"), cpuManagerPolicyOptions=whole_cores) == []
    # Without the reservation it is not known what is free.
    assert said(state("0-6", app="7"), cpuManagerPolicyOptions=whole_cores, reservedSystemCPUs="64") == []


# --- the memory manager's state ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        (b'{"policyName":"None","machineState":{},"checksum":4236770233}', ""),
        (b'{"policyName":"None"}', ""),
        (b'{"policyName":"None","machineState":{},"checksum":1}', RESTORE_MEMORY % "checkpoint is corrupted"),
        (
            b'{"policyName":"Static"}',
            RESTORE_MEMORY % '[memorymanager] configured policy "None" differs from state checkpoint policy "Static"',
        ),
        (b'{"policyName":"None",', RESTORE_MEMORY % "unexpected end of JSON input"),
    ],
)
def test_memory_state(root: Path, content: bytes | None, text: str) -> None:
    findings = list(memory_state_findings(content, node(root), check_start({}, host())))
    assert texts(findings) == ([text] if text else [])
    assert all(one.fatal and one.cause and one.remedy and one.where == MEMORY for one in findings)
    unknown = check_start({"memoryManagerPolicy": "unknown"}, host())
    assert list(memory_state_findings(content, node(root), unknown)) == []


MEMORY_STATIC = (
    "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)


def first_memory(root: Path) -> bytes:
    """What a kubelet of this node writes first."""
    one = node(root)
    config = memory_config(one, check_start(planned_values(one, {}, one.needed_configuration()), host_of(one)))
    assert config is not None
    return first_memory_state(config) or b""


def test_memory_of_another_machine(root: Path) -> None:
    """The text of the policy stands alone: the state itself can be restored."""
    write(root, CONFIG, HEADER + STATIC + MEMORY_STATIC)
    write(root, MEMORY, first_memory(root))
    assert texts(start_findings_now(root)) == []
    meminfo = root / "sys/devices/system/node/node0/meminfo"
    meminfo.write_text("Node 0 MemTotal:       67108860 kB\n", encoding="ascii")
    assert texts(start_findings_now(root)) == [
        "[memorymanager] the expected machine state is different from the real one"
    ]


def test_memory_that_the_files_do_not_tell(root: Path) -> None:
    """No guess, and no refusal: what cannot be told is named."""
    write(root, CONFIG, HEADER + STATIC + MEMORY_STATIC)
    write(root, MEMORY, first_memory(root))
    (root / "sys/devices/system/node/node0/meminfo").unlink()
    (finding,) = start_findings_now(root)
    assert (finding.fatal, finding.text, finding.where) == (False, "", MEMORY)
    assert "node0/meminfo does not tell the memory of NUMA node 0" in finding.cause
    # What is certain on any machine is told all the same.
    write(root, CONFIG, HEADER + STATIC + MEMORY_STATIC.replace("924Mi", "925Mi").replace("1Gi", "1025Mi"))
    assert [finding.fatal for finding in start_findings_now(root)] == [True]


def start_findings_now(root: Path) -> list[Finding]:
    one = node(root)
    state = stored_state(one.tree, one.memory_state_path)
    return [finding for finding in start_findings(one, {}, None, state) if finding.where == MEMORY]


def test_a_directory_in_place_of_the_memory_managers_state(root: Path) -> None:
    (root / MEMORY[1:]).mkdir()
    report = start_report(node(root), {})
    assert not report["starts"]
    assert RESTORE_MEMORY % "read /var/lib/kubelet/memory_manager_state: is a directory" in [
        finding["text"] for finding in report["findings"]
    ]


def test_a_link_to_nothing_is_no_memory_state(root: Path) -> None:
    (root / MEMORY[1:]).symlink_to("nothing")
    assert start_report(node(root), {})["starts"]


# --- a node -----------------------------------------------------------------------------------------------


def test_a_good_node(root: Path) -> None:
    write(root, CHECKPOINT, state("0-7"))
    write(root, MEMORY, b'{"policyName":"None","machineState":{},"checksum":4236770233}')
    assert start_report(node(root), {}) == {"starts": True, "kubelet_version": "1.36", "findings": []}


def test_all_parts_of_a_node_are_looked_at(root: Path) -> None:
    write(root, CONFIG, HEADER + STATIC + "reservedCPUs: 0\nfeatureGates:\n  MemoryManager: true\n")
    write(root, CHECKPOINT, state("0-6"))
    write(root, MEMORY, b"")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    report = start_report(node(root), {})
    assert not report["starts"]
    assert [(finding["where"], finding["fatal"]) for finding in report["findings"]] == [
        ("reservedCPUs", False),
        ("featureGates.MemoryManager", True),
        ("failCgroupV1", True),
        (CHECKPOINT, True),
        (MEMORY, True),
    ]
    older = start_report(node(root, 34), {})
    assert [finding["where"] for finding in older["findings"]] == ["reservedCPUs", CHECKPOINT, MEMORY]
    assert older["kubelet_version"] == "1.34"


def test_what_becomes_of_the_memory_managers_state(root: Path) -> None:
    assert memory_plan(node(root), {}) == MemoryPlan(None, "")
    write(root, MEMORY, b'{"policyName":"None","machineState":{},"checksum":4236770233}')
    assert not memory_plan(node(root), {}).changed
    assert "differs from state checkpoint policy" in memory_plan(node(root), {"memoryManagerPolicy": "Static"}).reason


def test_a_planned_configuration(root: Path) -> None:
    before = (root / CONFIG).read_bytes()
    wanted = {"cpu_manager_policy_options": {"no-such-option": "true"}, "reserved_system_cpus": "0-7"}
    assert [finding.fatal for finding in findings_of(root, wanted)] == [True, False]
    assert [finding.text for finding in findings_of(root, {"reserved_system_cpus": ""})] == [
        "[cpumanager] unable to determine reserved CPU resources for static policy"
    ]
    assert (root / CONFIG).read_bytes() == before


def test_to_the_policy_none_without_options(root: Path) -> None:
    write(root, CONFIG, HEADER + STATIC + 'cpuManagerPolicyOptions:\n  full-pcpus-only: "true"\n')
    assert findings_of(root, {"cpu_manager_policy": "none"}) == []
    assert len(findings_of(root, {"cpu_manager_policy": "none", "cpu_manager_policy_options": {"a": "b"}})) == 1
    assert len(planned_changes({"cpu_manager_policy": "static"})) == 1


def test_a_change_with_which_the_kubelet_would_not_start_is_refused(root: Path) -> None:
    """Unless it would not start before either, for the same reason."""
    before = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4"}
    check_change(node(root), before, {**before, "reservedSystemCPUs": "0"})
    # A key that the kubelet ignores is no obstacle.
    check_change(node(root), before, {**before, "reservedCPUs": "0"})
    bad = {**before, "cpuManagerPolicy": "dynamic"}
    with pytest.raises(RefusedError) as caught:
        check_change(node(root), before, bad)
    (finding,) = [one for one in check_start(bad, host_of(node(root))).findings if one.fatal]
    assert (caught.value.where, caught.value.remedy) == (finding.where, finding.remedy)
    assert finding.text in str(caught.value)
    check_change(node(root), bad, {**bad, "cpuManagerReconcilePeriod": "5s"})
    other = {**bad, "topologyManagerPolicy": "unknown"}
    with pytest.raises(RefusedError, match="topologyManagerPolicy"):
        check_change(node(root), bad, other)


def test_what_does_not_change_is_not_checked(tmp_path: Path) -> None:
    """Nor does it take a machine that can be read."""
    values = {"cpuManagerPolicy": "dynamic"}
    check_change(node(tmp_path), values, values)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", 'kubelet config file "/var/lib/kubelet/config.yaml" was empty'),
        ("# nothing\n", "failed to decode: Object 'Kind' is missing"),
        ("cpuManagerPolicy: static\n", "failed to decode: Object 'Kind' is missing"),
        ("kind: KubeletConfiguration\n", "failed to decode: Object 'apiVersion' is missing"),
        ("- a\n", "failed to decode: couldn't get version/kind; json parse error"),
        (
            HEADER.replace("v1beta1", "v1"),
            'failed to decode: no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"',
        ),
        ("apiVersion: [v1\n", "failed to decode"),
        (HEADER + "  cpuManagerPolicy: static\n", "failed to decode"),
        (HEADER + "evictionHard:\n    a: b\n  c: d\n", "failed to decode"),
        ('{"kind": "Kubelet', "failed to decode"),
    ],
)
def test_a_file_that_cannot_be_decoded(root: Path, content: str, text: str) -> None:
    write(root, CONFIG, content)
    (finding,) = findings_of(root, {})
    assert finding.text == text
    assert finding.fatal
    assert finding.cause
    assert finding.remedy
    assert finding.where == "/" + CONFIG


@pytest.mark.parametrize("content", [HEADER + "a: !!timestamp 2026-01-01\n", HEADER + "a: {1: b, '1': c}\n"])
def test_what_the_kubelet_may_well_read_is_not_judged(root: Path, content: str) -> None:
    write(root, CONFIG, content)
    with pytest.raises(NodeError, match=r"line [34], column"):
        findings_of(root, {})


def test_without_a_configuration(root: Path) -> None:
    (root / CONFIG).unlink()
    with pytest.raises(NodeError, match="no kubelet is found here"):
        findings_of(root, {})


@pytest.mark.parametrize(
    ("meminfo", "memory"),
    [
        (None, None),
        ("MemTotal:       16384 kB\nMemFree: 1 kB\n", 16 << 20),
        ("MemFree: 1 kB\n", None),
        ("MemTotal:\n", None),
        ("MemTotal: unknown\n", None),
    ],
)
def test_the_host(root: Path, meminfo: str | None, memory: int | None) -> None:
    if meminfo is not None:
        write(root, "proc/meminfo", meminfo)
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n")
    found = host_of(node(root, 35))
    assert found.memory == memory
    assert not found.cgroup_v1
    assert found.minor == 35
    assert found.numa_nodes == (0,)
    assert str(found.topology.all_cpus()) == "0-7"
