# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_node/exclusive.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    PERMISSION,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import PROMISE
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import OverlaidTree, Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._benchmark.benchmark_plan import room_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_partition import assigned_cpus
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import hashed
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.isolation_info import isolation_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.throttling_info import throttling
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.exclusive import Recorded, read_exclusive
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.hidden_names import with_hidden_names
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.collector import Collector
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._saved.files_of_machine import save_cache
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.promises import CHECKPOINT, CONFIG, promise, take_over
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import OWN, STATE, write_node

KEY = ("uid-db", "server")
GIVEN = {KEY: "2-3,6"}


def node_at(root: Path) -> Node:
    return Node(Tree(str(root)), minor=33)


def read(root: Path) -> Recorded:
    node = node_at(root)
    return read_exclusive(node, node.found()[0])


def test_what_the_kubelet_gives(tmp_path: Path) -> None:
    write_node(tmp_path, V2)
    assert read(tmp_path) == Recorded(STATE, str(tmp_path / CHECKPOINT))
    (tmp_path / CHECKPOINT).unlink()
    assert read(tmp_path) == Recorded(None, str(tmp_path / CHECKPOINT))


def test_what_our_policies_give(tmp_path: Path) -> None:
    write_node(tmp_path, V2)
    file = take_over(tmp_path, GIVEN, requested=2)
    given = CPUSet.parse("2-3,6")
    state = State(CPUSet((0,)), {"uid-db": {"server": given}})
    assert read(tmp_path) == Recorded(state, str(file), None, {KEY: 2}, by_kubelet=False)
    # All who ask say the same.
    node = node_at(tmp_path)
    (row,) = isolation_report(node, 1, 1.0)["containers"]
    assert (row["container"], row["id"], row["cpus"]) == ("server", OWN, "2-3,6")
    assert [row["exclusive"] for row in throttling(node, 0, 25)["containers"]] == ["2-3,6", ""]
    assert room_of(node, None)[0].free == CPUSet.parse("0-1,4-5,7")
    assert assigned_cpus(node) == (given, CPUSet((0,)))


@pytest.mark.parametrize("by_configuration", [True, False])
def test_what_is_left_of_them_beside_a_kubelet_that_gives_cpus_out(tmp_path: Path, by_configuration: bool) -> None:
    write_node(tmp_path, V2)
    promise(tmp_path, GIVEN)
    if by_configuration:
        (tmp_path / CHECKPOINT).unlink()
        assert read(tmp_path).state is None
    else:
        (tmp_path / CONFIG).unlink()
        assert read(tmp_path).state == STATE


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 2}', None])
def test_a_damaged_promise(tmp_path: Path, content: bytes | None) -> None:
    """It is a note of those who only look, and refuses those who would use the CPUs."""
    write_node(tmp_path, V2)
    file = take_over(tmp_path, GIVEN)
    if content is None:
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content)
    node = node_at(tmp_path)
    report = isolation_report(node, 1, 1.0)
    assert report["containers"] == []
    assert "%s: cannot be read, so it is not known whose CPUs are whose" % file in report["notes"]
    assert set(report["note_checks"]) == {"isolation-unmeasured"}
    (note,) = throttling(node, 0, 25)["notes"]
    assert note == "%s cannot be read: which containers have exclusive CPUs is not known" % file
    for use in (lambda: room_of(node, None), lambda: assigned_cpus(node)):
        with pytest.raises(RefusedError, match="the exclusive CPUs are unknown; remove it"):
            use()


def test_a_damaged_checkpoint_refuses_a_benchmark(tmp_path: Path) -> None:
    write_node(tmp_path, V2)
    (tmp_path / CHECKPOINT).write_bytes(b"{")
    with pytest.raises(RefusedError, match="the exclusive CPUs are unknown; repair it"):
        room_of(node_at(tmp_path), None)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_node(tmp_path, V2)
    take_over(tmp_path, GIVEN)
    node = node_at(tmp_path)
    configuration = node.found()[0]

    def refuse(_tree: Tree, path: str, *_limit: int) -> bytes:
        if path.endswith("cpu-manager.json"):
            raise NodeError("may not be read", path, "", PERMISSION)
        return b"{}"

    monkeypatch.setattr(Tree, "content", refuse)
    with pytest.raises(NodeError, match="may not be read"):
        read_exclusive(node, configuration)


def test_hidden_names(tmp_path: Path) -> None:
    write_node(tmp_path, V2)
    take_over(tmp_path, GIVEN)
    node = with_hidden_names(node_at(tmp_path))
    (row,) = isolation_report(node, 1, 1.0)["containers"]
    assert (row["container"], row["id"], row["cpus"]) == (hashed("server"), OWN, "2-3,6")
    assert [row["exclusive"] for row in throttling(node, 0, 25)["containers"]] == ["2-3,6", ""]


@pytest.mark.parametrize("redact", [False, True])
def test_a_saved_node_says_the_same(tmp_path: Path, redact: bool) -> None:
    write_node(tmp_path, V2)
    file = take_over(tmp_path, GIVEN, requested=2)
    node = node_at(tmp_path)
    collector = Collector(node.tree)
    save_cache(collector, redact)
    saved = node.on(OverlaidTree(node.tree, {PROMISE: collector.members[PROMISE].content}))
    name = hashed("server") if redact else "server"
    state = State(CPUSet((0,)), {"uid-db": {name: CPUSet.parse("2-3,6")}})
    recorded = read_exclusive(saved, saved.found()[0])
    assert recorded == Recorded(state, str(file), None, {("uid-db", name): 2}, by_kubelet=False)
