# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/start_check.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.beside_cpus import machine_memory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import (
    MemoryPlan,
    memory_loss_error,
    plan_memory_state,
    stored_state,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.memory_manager import (
    MemoryConfig,
    MemoryStateError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.sysfs import read_sysfs
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import NODE_MEMORY, write_machine, write_tree
from ansible_collections.kubenode.cpu_manager.tests.support.states_after import memory_state_after

FILE = "/var/lib/kubelet/memory_manager_state"
OWNED = b'{"policyName":"Static","entries":{"uid-1":{"db":[{"type":"memory"}],"log":[{"type":"memory"}]}}}'
OTHER_POLICY = '[memorymanager] configured policy "None" differs from state checkpoint policy "Static"'
LOST = [{"pod": "uid-1", "container": "db"}, {"pod": "uid-1", "container": "log"}]

NONE = MemoryConfig("None", {}, 36)
KNOWN = MemoryConfig("Static", {0: {"memory": 1}}, 36, machine={0: {"memory": 1 << 30}})
UNKNOWN = KNOWN._replace(machine=None, unknown="nobody tells")
FIRST = memory_state_after(None, KNOWN)


@pytest.mark.parametrize(
    ("old", "config", "told"),
    [
        (None, NONE, {"verdict": "absent", "reason": "", "lost": []}),
        (FIRST, KNOWN, {"verdict": "accepted", "reason": "", "lost": []}),
        (FIRST, UNKNOWN, {"verdict": "not judged", "reason": "nobody tells", "lost": []}),
        (OWNED, None, {"verdict": "accepted", "reason": "", "lost": []}),  # nobody can say what it is compared with
        (OWNED, NONE, {"verdict": "refused", "reason": OTHER_POLICY, "lost": LOST}),
        (b"", NONE, {"verdict": "refused", "reason": "unexpected end of JSON input", "lost": []}),
    ],
)
def test_what_becomes_of_it(old: bytes | None, config: MemoryConfig | None, told: dict[str, Any]) -> None:
    plan = plan_memory_state(old, config)
    assert plan.old == old
    assert plan.to_dict() == told
    assert plan.changed == (told["verdict"] == "refused")


def test_memory_that_containers_would_lose() -> None:
    error = memory_loss_error(FILE, plan_memory_state(OWNED, NONE))
    assert error is not None
    assert error.to_dict() == {
        "kind": "assignments",
        "where": FILE,
        "remedy": "drain the node and set discard_assignments: true",
    }
    assert str(error) == (
        "%s: the kubelet would refuse it (%s), and these containers would lose their memory: pod uid-1, container db,"
        " pod uid-1, container log; nothing was written; drain the node and set discard_assignments: true"
    ) % (FILE, OTHER_POLICY)


def test_nobody_loses_memory() -> None:
    assert memory_loss_error(FILE, plan_memory_state(FIRST, KNOWN)) is None
    assert memory_loss_error(FILE, MemoryPlan(b"", "unexpected end of JSON input")) is None


# --- the file ---------------------------------------------------------------------------------------------


def test_what_the_kubelet_reads(tmp_path: Path) -> None:
    tree, file = Tree(str(tmp_path)), tmp_path / "state"
    assert stored_state(tree, "/state") is None
    file.write_bytes(b"x")
    assert stored_state(tree, "/state") == b"x"
    assert stored_state(OverlaidTree(tree, {"/state": None}), "/state") is None
    file.unlink()
    file.symlink_to("nothing")
    assert stored_state(tree, "/state") is None
    file.unlink()
    file.mkdir()
    error = stored_state(tree, "/state")
    assert isinstance(error, MemoryStateError)
    assert str(error) == "read /state: is a directory"


def test_what_cannot_be_read_is_no_empty_state(tmp_path: Path) -> None:
    """A link out of a saved tree says nothing of the node."""
    file = tmp_path / "node/state"
    file.parent.mkdir()
    tree = Tree(str(file.parent))
    file.symlink_to("/nonexistent/elsewhere")
    with pytest.raises(RefusedError):
        stored_state(tree, "/state")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(NodeError):
        stored_state(tree, "/state")


def test_a_link_that_leads_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to("state")
    assert str(stored_state(Tree(str(tmp_path)), "/state")) == "open /state: too many levels of symbolic links"


# --- the machine ------------------------------------------------------------------------------------------


def machine(root: Path, name: str, **files: str) -> tuple[Any, str]:
    write_machine(root, name)
    tree = Tree(str(root))
    for path, text in files.items():
        file = root / "sys/devices/system/node" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
    return machine_memory(tree, read_sysfs(tree))


def test_the_memory_of_each_node(tmp_path: Path) -> None:
    """Nodes without CPUs have memory, too."""
    found, unknown = machine(
        tmp_path,
        "2s1n2c+memory1",
        **{
            "node1/meminfo": "\nNode 1 MemTotal:        1024 kB\nNode 1 MemFree:   7 kB\n",
            "node0/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
            "node0/hugepages/hugepages-1048576kB/nr_hugepages": "0\n",
            "node0/hugepages/hugepages-64kB/nr_hugepages": "1\n",
        },
    )
    pages = {"hugepages-2Mi": 3 << 21, "hugepages-1Gi": 0, "hugepages-64Ki": 1 << 16}
    assert found[0] == {"memory": NODE_MEMORY << 10, **pages}
    assert found[1] == {"memory": 1 << 20}
    assert sorted(found) == [0, 1, 2]
    assert unknown == ""


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("node0/meminfo", "", "/meminfo does not give the memory of NUMA node 0"),
        ("node0/meminfo", "Node 0 MemTotal: 5 MB\n", "/meminfo does not give the memory of NUMA node 0"),
        ("node0/hugepages/hugepages-2048kB/nr_hugepages", "", "/hugepages does not give the huge pages"),
        ("node0/hugepages/others/nr_hugepages", "1", "/hugepages does not give the huge pages"),
    ],
)
def test_memory_that_the_files_do_not_tell(tmp_path: Path, path: str, text: str, reason: str) -> None:
    found, unknown = machine(tmp_path, "1s2c", **{path: text})
    assert found is None
    assert reason in unknown


def test_a_machine_without_numa_nodes(tmp_path: Path) -> None:
    """cAdvisor takes each socket for a node, and reads no memory for it."""
    shape = parse_name("2s2c")
    write_tree(shape.topology(), tmp_path, shape.whole(), with_numa=False)
    tree = Tree(str(tmp_path))
    assert machine_memory(tree, read_sysfs(tree)) == ({0: {"memory": 0}, 1: {"memory": 0}}, "")
