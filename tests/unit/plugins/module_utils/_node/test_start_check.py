# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on the start of a kubelet, and the states that the start leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.predict import (
    Prediction,
    predict_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.state_removal import boot_removals
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import start_check
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    MemoryPlan,
    memory_plan,
    predict_configuration,
    predict_start,
    start_report,
    with_states,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.started import (
    CONFIG,
    HEAD,
    findings_of,
    first_memory,
    node,
    state,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import CHECKPOINT, MEMORY_STATIC, STATIC
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import MEMORY_STATE as MEMORY
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import states_after

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


def test_of_a_kubelet_with_the_patches_of_katalyst_a_start_is_not_certain(root: Path) -> None:
    write(root, "var/lib/kubelet/plugins_registry/qrm_cpu_plugin_dynamic.sock", b"")
    answer = start_report(node(root), {})
    assert answer["starts"] is None
    assert [doubt["where"] for doubt in answer["unknown"]] == [
        "/var/lib/kubelet/plugins_registry/qrm_cpu_plugin_dynamic.sock"
    ]


STARTED = "ExecStart=/usr/bin/kubelet --config=/%s" % CONFIG


@pytest.mark.parametrize(
    ("line", "starts"),
    [("", False), ("ExecStartPre=/bin/mkdir -p /sys/fs/cgroup/kube.slice", True), ("ExecStartPre=/opt/prepare", None)],
)
def test_a_reserved_cgroup_that_the_unit_makes_first_is_no_refusal(root: Path, line: str, starts: bool | None) -> None:
    fields = 'kubeReserved: {cpu: "1"}\nenforceNodeAllocatable: [kube-reserved]\nkubeReservedCgroup: /kube.slice\n'
    write(root, CONFIG, (HEADER + "cgroupDriver: systemd\n" + fields).encode())
    write(root, "etc/systemd/system/kubelet.service", ("[Service]\n%s\n%s\n" % (line, STARTED)).encode())
    write(root, "sys/fs/cgroup/cgroup.controllers", b"cpu cpuset memory\n")
    assert start_report(node(root), {})["starts"] is starts


REFUSED = b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
CLEANS = b"[Unit]\nBefore=kubelet.service\n[Service]\nType=oneshot\nExecStart=/bin/rm -f /%s\n"


def test_a_boot_that_removes_a_refused_state_is_in_its_remedy_and_looked_for_there_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, CONFIG, (HEADER + "cgroupDriver: systemd\n" + STATIC).encode())
    write(root, "etc/systemd/system/kubelet.service", ("[Service]\n%s\n" % STARTED).encode())
    write(root, "etc/systemd/system/clean.service", CLEANS % CHECKPOINT.lstrip("/").encode())
    write(root, "etc/systemd/system/multi-user.target.wants/clean.service", CLEANS % CHECKPOINT.lstrip("/").encode())
    asked: list[str] = []

    def look(tree: Tree, service: str, paths: Sequence[str]) -> dict[str, str]:
        asked.append(service)
        return boot_removals(tree, service, paths)

    monkeypatch.setattr(start_check, "boot_removals", look)
    assert start_report(node(root), {})["starts"] is True
    assert asked == []
    write(root, CHECKPOINT, REFUSED)
    (found,) = [finding for finding in start_report(node(root), {})["findings"] if finding["fatal"]]
    assert "a boot removes it (ExecStart in " in found["remedy"]
    assert found["remedy"].endswith("clean.service), by which all pods start anew, too")
    assert asked == ["kubelet"]


def test_of_version_1_it_is_named_where_a_reserved_cgroup_is_missing(root: Path) -> None:
    fields = 'kubeReserved: {cpu: "1"}\nenforceNodeAllocatable: [kube-reserved]\nkubeReservedCgroup: /kube.slice\n'
    write(root, CONFIG, (HEADER + "cgroupDriver: systemd\nfailCgroupV1: false\n" + fields).encode())
    for path in ("cpu/kube.slice", "hugetlb", "memory/kube.slice"):
        (root / "sys/fs/cgroup" / path).mkdir(parents=True)
    (found,) = [finding for finding in start_report(node(root), {})["findings"] if finding["fatal"]]
    assert "/sys/fs/cgroup/hugetlb" in found["cause"]


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


def test_pods_that_lack_a_controller_are_a_doubt_of_the_start(root: Path) -> None:
    """Of a node with a usual configuration, which the kernel keeps from giving pods cpu."""
    write(root, CHECKPOINT, state("0-7"))
    write(root, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory pids\n")
    write(root, "sys/fs/cgroup/kubepods/cgroup.controllers", "cpuset memory pids\n")
    report = start_report(node(root), {})
    assert report["starts"] is None
    (doubt,) = report["unknown"]
    assert doubt["reason"].startswith("/kubepods has not the controller cpu, which the topmost cgroup has: ")
    write(root, "sys/fs/cgroup/kubepods/cgroup.controllers", "cpuset cpu memory pids\n")
    assert start_report(node(root), {})["starts"] is True
