# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report on a start says of the checkpoint and of the memory manager's state."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import (
    Checked,
    Finding,
    Host,
    Unknown,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import predict_values
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    checkpoint_findings,
    memory_state_findings,
    predict_configuration,
    start_report,
    stored_state,
    with_states,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.started import (
    CONFIG,
    HEAD,
    first_memory,
    node,
    state,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, MEMORY_STATIC, STATIC
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import MEMORY_STATE as MEMORY

RESTORE = (
    "could not restore state from checkpoint: %s, please drain this node and delete the CPU manager checkpoint file"
    ' "/var/lib/kubelet/cpu_manager_state" before restarting Kubelet'
)
RESTORE_MEMORY = (
    "could not restore state from checkpoint: %s, please drain this node and delete the memory manager checkpoint file"
    ' "/var/lib/kubelet/memory_manager_state" before restarting Kubelet'
)


def host(name: str = "1s4c2t", minor: int = 36) -> Host:
    return Host(kubelet_view(parse_name(name).topology()), minor, (0,), {})


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
    found = list(checkpoint_findings(content, CHECKPOINT, checked, machine))
    findings = [finding for finding in found if isinstance(finding, Finding)]
    assert len(findings) == len(found)
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
