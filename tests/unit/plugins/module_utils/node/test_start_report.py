# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/node/start_report.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.checked import Checked
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.engine import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.finding import Finding, Host, Unknown
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.start.prediction import Prediction
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.memory_state import (
    MemoryPlan,
    memory_config,
    stored_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.prediction import predict_configuration
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.start_report import (
    checkpoint_findings,
    memory_plan,
    memory_state_findings,
    predict_start,
    start_report,
    states_after,
    with_states,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import first_memory_state
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
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
    write_machine(tmp_path, "1s4c2t")
    write(tmp_path, CONFIG, HEADER + STATIC)
    return tmp_path


def write(root: Path, path: str, content: str | bytes) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


def node(root: Path, minor: int | None = None) -> Node:
    return Node(Tree(str(root)), minor=minor)


def findings_of(root: Path, wanted: Mapping[str, Any]) -> Sequence[Finding]:
    return predict_start(node(root), wanted).findings


def checked_of(machine: Host, **values: Any) -> Checked:
    checked = predict_values({**HEAD, **values}, machine).checked
    assert checked is not None
    return checked


def texts(findings: Iterable[Finding | Unknown]) -> list[str]:
    return [finding.text for finding in findings if isinstance(finding, Finding)]


# --- the checkpoint ---------------------------------------------------------------------------------------


def said(content: bytes | None, minor: int = 36, **values: Any) -> list[Finding]:
    machine = host(minor=minor)
    checked = checked_of(machine, **{"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,4", **values})
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
    assert (finding.fatal, finding.context) == (True, "start cpu manager error: ")


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
    findings = list(memory_state_findings(content, node(root), checked_of(host())))
    assert texts(findings) == ([text] if text else [])
    for finding in findings:
        assert isinstance(finding, Finding)
        assert finding.fatal
        assert finding.cause
        assert finding.remedy
        assert finding.where == MEMORY
    unknown = checked_of(host(), memoryManagerPolicy="unknown")
    assert list(memory_state_findings(content, node(root), unknown)) == []


MEMORY_STATIC = (
    "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)


def first_memory(root: Path) -> bytes:
    """What a kubelet of this node writes first."""
    this_node = node(root)
    checked = predict_configuration(this_node).checked
    assert checked is not None
    config = memory_config(this_node, checked)
    assert config is not None
    return first_memory_state(config) or b""


def test_memory_of_another_machine(root: Path) -> None:
    """The text of the policy stands alone: the state itself can be restored."""
    write(root, CONFIG, HEADER + STATIC + MEMORY_STATIC)
    write(root, MEMORY, first_memory(root))
    assert findings_of_memory(root) == []
    meminfo = root / "sys/devices/system/node/node0/meminfo"
    meminfo.write_text("Node 0 MemTotal:       67108860 kB\n", encoding="ascii")
    (finding,) = findings_of_memory(root)
    assert isinstance(finding, Finding)
    assert (finding.fatal, finding.context) == (True, "start memory manager error: ")
    assert finding.text == "[memorymanager] the expected machine state is different from the real one"


def test_memory_that_the_files_do_not_tell(root: Path) -> None:
    """No guess, and no refusal: what cannot be determined is named."""
    write(root, CONFIG, HEADER + STATIC + MEMORY_STATIC)
    write(root, MEMORY, first_memory(root))
    meminfo = root / "sys/devices/system/node/node0/meminfo"
    meminfo.unlink()
    reason = (
        "it cannot be determined whether the kubelet would start with this state: %s does not give the memory of NUMA"
        " node 0"
    )
    assert findings_of_memory(root) == [Unknown(reason % meminfo, MEMORY)]
    report = start_report(node(root), {})
    assert (report["starts"], report["findings"]) == (None, [])
    assert report["unknown"] == [{"reason": reason % meminfo, "where": MEMORY}]
    # What is certain on any machine is told all the same.
    write(root, CONFIG, HEADER + STATIC + MEMORY_STATIC.replace("924Mi", "925Mi").replace("1Gi", "1025Mi"))
    (finding,) = findings_of_memory(root)
    assert isinstance(finding, Finding)
    assert finding.fatal


def findings_of_memory(root: Path) -> list[Finding | Unknown]:
    this_node = node(root)
    prediction = with_states(
        this_node, predict_configuration(this_node), None, stored_state(this_node.tree, this_node.memory_state_path)
    )
    findings: list[Finding | Unknown] = [*prediction.findings, *prediction.unknown]
    return [found for found in findings if found.where == MEMORY]


def test_a_directory_in_place_of_the_memory_managers_state(root: Path) -> None:
    (root / MEMORY[1:]).mkdir()
    report = start_report(node(root), {})
    assert report["starts"] is False
    assert RESTORE_MEMORY % "read /var/lib/kubelet/memory_manager_state: is a directory" in [
        finding["text"] for finding in report["findings"]
    ]


def test_a_link_to_nothing_is_no_memory_state(root: Path) -> None:
    (root / MEMORY[1:]).symlink_to("nothing")
    assert start_report(node(root), {})["starts"] is True


def test_a_directory_in_place_of_the_checkpoint(root: Path) -> None:
    (root / CHECKPOINT[1:]).mkdir()
    (finding,) = start_report(node(root), {})["findings"]
    assert finding == {
        "text": RESTORE % "read /var/lib/kubelet/cpu_manager_state: is a directory",
        "cause": "the checkpoint cannot be read",
        "remedy": "drain the node, and take what is there out of the way",
        "fatal": True,
        "where": CHECKPOINT,
        "context": "start cpu manager error: ",
    }


# --- a node -----------------------------------------------------------------------------------------------


ASSUMED_VERSION = (
    "the version of the kubelet is not known: 1.36 is assumed, the newest whose answers were replayed; give"
    " kubelet_version"
)


def test_a_good_node(root: Path) -> None:
    write(root, CHECKPOINT, state("0-7"))
    write(root, MEMORY, b'{"policyName":"None","machineState":{},"checksum":4236770233}')
    assert start_report(node(root), {}) == {
        "starts": True,
        "kubelet_version": "1.36",
        "findings": [],
        "unknown": [],
        "notes": [
            ASSUMED_VERSION,
        ],
    }


def test_all_parts_of_a_node_are_looked_at(root: Path) -> None:
    """In the order in which the kubelet comes to them."""
    gate = "featureGates:\n  MemoryManager: true\n"
    text = HEADER + STATIC + "reservedCPUs: 0\nprotectKernelDefaults: true\n"
    write(root, CONFIG, text)
    write(root, CHECKPOINT, state("0-6"))
    write(root, MEMORY, b"")
    write(root, "proc/sys/vm/overcommit_memory", "0\n")
    (root / "sys/fs/cgroup").mkdir(parents=True)
    report = start_report(node(root), {})
    assert report["starts"] is False
    assert [(finding["where"], finding["fatal"]) for finding in report["findings"]] == [
        ("reservedCPUs", False),
        ("failCgroupV1", True),
        (CHECKPOINT, True),
        (MEMORY, True),
        ("protectKernelDefaults", True),
    ]
    # What cannot be seen does not count where it is certain that the kubelet does not start.
    assert report["unknown"] == [
        {"reason": "/proc/sys/vm/panic_on_oom is not among the node's files", "where": "protectKernelDefaults"}
    ]
    write(root, CONFIG, text + gate)
    older = start_report(node(root, 34), {})
    assert [finding["where"] for finding in older["findings"]] == [
        *("reservedCPUs", CHECKPOINT, MEMORY, "protectKernelDefaults")
    ]
    assert older["kubelet_version"] == "1.34"


def test_what_the_kubelet_refuses_early_is_all_that_is_told(root: Path) -> None:
    """It stops there, and makes no managers."""
    write(root, CONFIG, HEADER + STATIC + "reservedCPUs: 0\nfeatureGates:\n  MemoryManager: true\n")
    write(root, CHECKPOINT, state("0-6"))
    report = start_report(node(root), {})
    assert (report["starts"], report["unknown"]) == (False, [])
    assert report["findings"] == [
        {
            "text": "unrecognized feature gate: MemoryManager",
            "cause": "Kubernetes 1.36 removed this gate; what it switched is always on",
            "remedy": "remove it from featureGates",
            "fatal": True,
            "where": "featureGates.MemoryManager",
            "context": (
                "panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: "
            ),
        }
    ]
    this_node = node(root)
    assert (
        with_states(this_node, predict_configuration(this_node), b"{", b"{").findings
        == predict_start(this_node).findings
    )


def test_what_becomes_of_the_memory_managers_state(root: Path) -> None:
    def plan(**values: str) -> MemoryPlan:
        this_node = node(root)
        return memory_plan(this_node, predict_values({**HEAD, **values}, this_node.machine()))

    assert plan() == MemoryPlan(None, "")
    content = b'{"policyName":"None","machineState":{},"checksum":4236770233}'
    write(root, MEMORY, content)
    assert not plan().changed
    assert "differs from state checkpoint policy" in plan(memoryManagerPolicy="Static").reason
    # No manager comes to it.
    assert memory_plan(node(root), Prediction([])) == MemoryPlan(content, "")


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
    assert findings_of(root, {"cpu_manager_policy": "static"}) == []


# --- states after a start ---------------------------------------------------------------------------------


def test_the_states_after_a_start(root: Path) -> None:
    first = {CHECKPOINT: state("0-7"), MEMORY: b'{"policyName":"None","machineState":{},"checksum":4236770233}'}
    assert states_after(node(root)) == first
    write(root, CHECKPOINT, state("0-2,4-6", app="3,7"))
    write(root, MEMORY, b'{"policyName":"None"}')
    after = states_after(node(root))
    assert after[CHECKPOINT] == first[CHECKPOINT]
    write(root, CHECKPOINT, first[CHECKPOINT])
    write(root, MEMORY, first[MEMORY] or b"")
    assert states_after(node(root)) == first
    write(root, CONFIG, HEADER + STATIC + MEMORY_STATIC)
    (root / MEMORY[1:]).unlink()
    assert states_after(node(root)) == {CHECKPOINT: first[CHECKPOINT], MEMORY: first_memory(root)}
    write(root, CONFIG, HEADER + "featureGates: {MemoryManager: false}\n")
    (root / CHECKPOINT[1:]).unlink()
    assert states_after(node(root, 25)) == {CHECKPOINT: state("", policy="none"), MEMORY: None}


@pytest.mark.parametrize(
    ("text", "directory"),
    [("cpuManagerPolicy: dynamic\n", None), ("maxPods: x\n", None), (STATIC, CHECKPOINT), (STATIC, MEMORY)],
)
def test_no_states_without_a_start(root: Path, text: str, directory: str | None) -> None:
    write(root, CONFIG, HEADER + text)
    if directory:
        (root / directory[1:]).mkdir()
    with pytest.raises(AssertionError, match="a kubelet that does not start"):
        states_after(node(root))


# --- files that no kubelet reads --------------------------------------------------------------------------

LOAD = (
    "failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: failed to load Kubelet config file"
    " /var/lib/kubelet/config.yaml, error "
)
NO_OBJECT = (
    "failed to decode: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type"
    ' struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", 'kubelet config file "/var/lib/kubelet/config.yaml" was empty'),
        ("# nothing\n", "failed to decode: Object 'Kind' is missing in '# nothing\n'"),
        ("cpuManagerPolicy: static\n", "failed to decode: Object 'Kind' is missing in 'cpuManagerPolicy: static\n'"),
        (
            "kind: KubeletConfiguration\n",
            "failed to decode: Object 'apiVersion' is missing in 'kind: KubeletConfiguration\n'",
        ),
        ("- a\n", NO_OBJECT),
        (
            HEADER.replace("v1beta1", "v1"),
            (
                'failed to decode: no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"'
                ' in scheme "pkg/kubelet/apis/config/scheme/scheme.go:33"'
            ),
        ),
        ("apiVersion: [v1\n", "failed to decode: yaml: line 1: did not find expected ',' or ']'"),
        (
            HEADER + "  cpuManagerPolicy: static\n",
            "failed to decode: yaml: line 3: mapping values are not allowed in this context",
        ),
        (HEADER + "evictionHard:\n    a: b\n  c: d\n", "failed to decode: yaml: line 4: did not find expected key"),
        (
            '{"kind": "Kubelet',
            "failed to decode: couldn't get version/kind; json parse error: unexpected end of JSON input",
        ),
    ],
)
def test_a_file_that_cannot_be_decoded(root: Path, content: str, text: str) -> None:
    write(root, CONFIG, content)
    (finding,) = findings_of(root, {})
    assert (finding.text, finding.context) == (text, LOAD)
    assert finding.fatal
    assert finding.cause
    assert finding.remedy
    assert finding.where == "/" + CONFIG


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (HEADER + "a: !!timestamp 2026-01-01\n", "line 3, column 4: found the tag of a date; remove it"),
        (
            HEADER + "a: {1: b, '1': c}\n",
            "line 3, column 4: the key '1' is there twice, as a text and as none; remove one of the two",
        ),
    ],
)
def test_what_the_kubelet_may_well_read_is_not_judged(root: Path, content: str, reason: str) -> None:
    write(root, CONFIG, content)
    assert predict_start(node(root)) == Prediction([], [Unknown(reason, "/" + CONFIG)])


def test_without_a_configuration(root: Path) -> None:
    (root / CONFIG).unlink()
    for wanted in ({}, {"cpu_manager_policy": "static"}):
        with pytest.raises(NodeError, match="no kubelet is found here"):
            findings_of(root, wanted)
