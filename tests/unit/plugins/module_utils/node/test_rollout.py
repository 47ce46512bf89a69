# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.placement import plan_files
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.kubelet.settings import plan_settings
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.journal import CHANGING, Journal, write_journal
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node, minor_version
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.rollout import rollout_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.sources import read_sources
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n"
CONFIG, CHECKPOINT = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/cpu_manager_state"
MEMORY = "/var/lib/kubelet/memory_manager_state"
WHOLE = ["stop_kubelet", "reset_checkpoint", "write_configuration", "start_kubelet"]
NO_RESET = ["stop_kubelet", "write_configuration", "start_kubelet"]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A node with the static policy and one pod with CPUs of its own."""
    shape = parse_name("1s4c2t")
    write_tree(shape.topology(), tmp_path, shape.whole())
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    configure(tmp_path, STATIC)
    state = State(CPUSet.parse("0,2-4,6-7"), {"pod": {"app": CPUSet.parse("1,5")}})
    (tmp_path / CHECKPOINT[1:]).write_bytes(write_checkpoint("static", state))
    return Tree(str(tmp_path))


def configure(root: Path, text: str) -> None:
    (root / CONFIG[1:]).write_text(HEADER + text, encoding="utf-8")


def plan(tree: Tree, **wanted: Any) -> dict[str, Any]:
    return rollout_report(Node(tree), wanted)


@pytest.mark.parametrize(
    ("wanted", "actions", "drain"),
    [
        ({}, [], False),
        ({"cpu_manager_policy": "static"}, [], False),
        ({"cpu_manager_reconcile_period": "5s"}, NO_RESET, False),
        ({"cpu_manager_policy": "none"}, WHOLE, True),
        ({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, NO_RESET, True),
        ({"cpu_manager_policy_options": {"strict-cpu-reservation": "true"}}, WHOLE, True),
        ({"topology_manager_policy": "best-effort"}, NO_RESET, True),
        ({"topology_manager_scope": "pod"}, NO_RESET, True),
        ({"reserved_system_cpus": "0,2,4,6"}, NO_RESET, True),
        ({"reserved_system_cpus": "0,1,4,5"}, WHOLE, True),  # one of them is the pod's
    ],
)
def test_what_each_change_takes(tree: Tree, wanted: dict[str, Any], actions: list[str], drain: bool) -> None:
    answer = plan(tree, **wanted)
    assert (answer["actions"], answer["drain"], answer["starts"]) == (actions, drain, True)
    assert answer["files"] == [CONFIG, CHECKPOINT, MEMORY]
    assert [finding for finding in answer["findings"] if finding["fatal"]] == []


def test_cpus_that_are_gone(tree: Tree) -> None:
    """The checkpoint is repaired: the kubelet would not start with it as it is."""
    for name in ("3", "7"):
        (Path(tree.root) / ("sys/devices/system/cpu/cpu%s/online" % name)).write_text("0\n", encoding="ascii")
    (Path(tree.root) / "sys/devices/system/cpu/online").write_text("0-2,4-6\n", encoding="ascii")
    answer = plan(tree)
    assert answer["actions"] == ["stop_kubelet", "reset_checkpoint", "start_kubelet"]
    assert (answer["drain"], answer["starts"]) == (True, True)


def test_a_change_with_which_the_kubelet_would_not_start(tree: Tree) -> None:
    configure(Path(tree.root), STATIC + "topologyManagerPolicyOptions:\n  max-allowable-numa-nodes: '4'\n")
    answer = plan(tree, topology_manager_policy="best-effort")
    assert not answer["starts"]
    assert any(finding["fatal"] and "max-allowable-numa-nodes" in finding["text"] for finding in answer["findings"])


def test_a_change_that_was_interrupted(tree: Tree) -> None:
    assert plan(tree)["journal"] is None
    write_journal(tree, Journal(CHANGING, {}, {"cordoned": True}))
    assert plan(tree)["journal"] == {"phase": "changing", "files": [], "facts": {"cordoned": True}, "run": ""}


def test_the_kubelet_that_runs(tree: Tree) -> None:
    stopped = plan(tree)["kubelet"]
    assert (stopped["distribution"], stopped["pid"], stopped["command_line"]) == ("kubeadm", None, [])
    process = Path(tree.root) / "proc/7"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0")
    found = plan(tree)["kubelet"]
    command_line = ["/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml"]
    assert found == {**stopped, "pid": 7, "command_line": command_line}


def test_the_files_of_a_change(tree: Tree) -> None:
    """Also those that this change leaves as they are: a rollback may bring them back."""
    patches = Path(tree.root) / "etc/kubernetes/patches"
    patches.mkdir(parents=True)
    patch = "/etc/kubernetes/patches/kubeletconfiguration90-kubenode-cpu-manager+merge.yaml"
    for wanted in ({}, {"cpu_manager_reconcile_period": "5s"}):
        assert plan(tree, **wanted)["files"] == [patch, CONFIG, CHECKPOINT, MEMORY]


@pytest.mark.parametrize("name", KUBELETS)
def test_a_change_has_all_files_that_are_written(tmp_path: Path, name: str) -> None:
    """On a node of each distribution, so that the journal has all of them."""
    kubelet = KUBELETS[name]
    shape = parse_name("1s4c2t")
    write_tree(shape.topology(), tmp_path, shape.whole())
    write_kubelet(tmp_path, kubelet)
    node = Node(Tree(str(tmp_path)), minor=minor_version(kubelet.version))
    wanted = {"cpu_manager_policy": "static", "reserved_system_cpus": "0,4"}
    plan = plan_settings(wanted, node.needed_configuration(), node.minor)
    written = [node.tree.node_path(one.path) for one in plan_files(read_sources(node), plan, wanted, node.minor)]
    assert written
    assert rollout_report(node, wanted)["files"] == [*written, *node.state_paths]


# --- the memory manager's state ---------------------------------------------------------------------------

MEMORY_STATIC = (
    "memoryManagerPolicy: Static\nsystemReserved: {memory: 924Mi}\n"
    "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n"
)


def memory_state(policy: str, reserved: int = 0, entries: str = "{}") -> str:
    table = '"0":{"memoryMap":{"memory":{"total":4000000000,"systemReserved":%d}},"cells":[0]}' % reserved
    machine = table if policy == "Static" else ""
    return '{"policyName":"%s","machineState":{%s},"entries":%s,"checksum":1}' % (policy, machine, entries)


@pytest.mark.parametrize(
    ("found", "text", "wanted", "reason"),
    [
        ("", memory_state("None"), {}, ""),
        ("", memory_state("None"), {"memory_manager_policy": "None"}, ""),
        (
            "",
            memory_state("None"),
            {
                "memory_manager_policy": "Static",
                "system_reserved_memory": "924Mi",
                "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
            },
            'configured policy "Static" differs from state checkpoint policy "None"',
        ),
        (
            MEMORY_STATIC,
            memory_state("Static", 1 << 30),
            {"memory_manager_policy": "None"},
            'configured policy "None" differs from state checkpoint policy "Static"',
        ),
        (MEMORY_STATIC, memory_state("Static", 1 << 30), {"memory_manager_policy": "Static"}, ""),
        (
            MEMORY_STATIC,
            memory_state("Static", 1 << 30),
            {
                "system_reserved_memory": "1948Mi",
                "reserved_memory": [{"numaNode": 0, "limits": {"memory": "2Gi"}}],
            },
            "the expected machine state is different from the real one",
        ),
        # What somebody changed, and the kubelet cannot start with since.
        (MEMORY_STATIC, memory_state("Static", 2 << 30), {}, "the expected machine state is different from the real"),
        ("", memory_state("Static", 1 << 30), {}, 'configured policy "None" differs'),
        ("", "{", {}, "unexpected end of JSON input"),
    ],
)
def test_the_memory_managers_state(tree: Tree, found: str, text: str, wanted: dict[str, Any], reason: str) -> None:
    configure(Path(tree.root), STATIC + found)
    (Path(tree.root) / MEMORY[1:]).write_text(text, encoding="ascii")
    answer = plan(tree, **wanted)
    drift = [one["found"] for one in answer["drift"] if one["subject"] == "memory_state"]
    assert [reason in one for one in drift] == [True] * bool(reason)
    assert ("reset_memory_state" in answer["actions"]) == bool(reason)
    assert (answer["starts"], answer["drain"]) == (True, bool(reason))
    if reason:
        writes = ["write_configuration"] if wanted else []
        assert answer["actions"] == ["stop_kubelet", "reset_memory_state", *writes, "start_kubelet"]


def test_both_states_are_reset_before_the_configuration(tree: Tree) -> None:
    (Path(tree.root) / MEMORY[1:]).write_text(memory_state("Static"), encoding="ascii")
    actions = plan(tree, cpu_manager_policy="none")["actions"]
    assert actions == [*WHOLE[:2], "reset_memory_state", *WHOLE[2:]]


def test_a_change_that_would_have_no_effect(tree: Tree) -> None:
    flags = Path(tree.root) / "etc/default/kubelet"
    flags.parent.mkdir(parents=True)
    flags.write_text("KUBELET_EXTRA_ARGS=--cpu-manager-reconcile-period=1s\n", encoding="ascii")
    with pytest.raises(RefusedError, match=r"--cpu-manager-reconcile-period in .*/etc/default/kubelet gives it"):
        plan(tree, cpu_manager_reconcile_period="5s")


def test_no_kubelet(tree: Tree) -> None:
    (Path(tree.root) / CONFIG[1:]).unlink()
    answer = plan(tree, cpu_manager_policy="static")
    assert (answer["status"], answer["actions"], answer["files"]) == ("no kubelet", [], [])


def test_a_node_that_is_as_wanted_and_would_not_start(tree: Tree) -> None:
    configure(Path(tree.root), STATIC + "memoryManagerPolicy: Static\n")
    found = plan(tree)
    assert (found["actions"], found["starts"]) == ([], False)
    assert any("its kubelet would not start again: " in note for note in found["notes"])
    assert any("reservedMemory" in finding["where"] + finding["remedy"] for finding in found["findings"])
