# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that boots in the middle of a change: its kubelet would start with what is on the disk at each system call."""

from __future__ import annotations

import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.acceptance import readable
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    CHECKPOINT,
    CONFIG,
    EMPTY,
    MEMORY_STATE,
    MEMORY_STATIC,
    STATIC,
    memory_state,
    state,
    write_saved,
)

from . import tracer
from .changing import Change, KillError
from .counting import Count
from .tracer import Traced

STRICT = {"cpu_manager_policy_options": {"strict-cpu-reservation": "true"}}
# The last step of a change of which the kubelet is somebody else's: stop, save, configure, states, start, end.
END_STEP = 5


class Case(NamedTuple):
    """A node and what is wanted of it."""

    configuration: str
    checkpoint: bytes
    settings: dict[str, Any]
    memory: bytes = memory_state("None")
    # Whether containers may lose their CPUs, and the CPUs that they have afterwards.
    discard: bool = False
    kept: str = ""


CASES = {
    "none to static": Case("", state("none", ""), {"cpu_manager_policy": "static", "reserved_system_cpus": "0,4"}),
    "static to none": Case(STATIC, state(db="1,5"), {"cpu_manager_policy": "none"}, discard=True),
    # The checkpoint is repaired, and pods keep their CPUs.
    "strict": Case(STATIC, state(db="1,5"), STRICT, kept="1,5"),
    "memory manager": Case(
        STATIC + "systemReserved: {memory: 924Mi}\n",
        state(db="1,5"),
        {
            **STRICT,
            "memory_manager_policy": "Static",
            "reserved_memory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
        },
        kept="1,5",
    ),
    "memory manager off": Case(
        STATIC + MEMORY_STATIC,
        state(db="1,5"),
        {"memory_manager_policy": "None"},
        memory_state("Static", 1 << 30),
        kept="1,5",
    ),
    "harmless": Case(STATIC, state(db="1,5"), {"cpu_manager_reconcile_period": "7s"}, kept="1,5"),
}


def write_node(root: Path, case: Case) -> None:
    states: dict[str, str | bytes | None] = {CHECKPOINT: case.checkpoint, MEMORY_STATE: case.memory}
    write_saved(EMPTY.configured(case.configuration).having(states), root)


def on_disk(root: Path) -> tuple[bytes | None, ...]:
    paths = [root / path[1:] for path in (CONFIG, CHECKPOINT, MEMORY_STATE)]
    return tuple(path.read_bytes() if path.exists() else None for path in paths)


def prepared(root: Path, case: Case, way: str) -> Callable[[], Any]:
    """Return what is looked at, with what comes before it done."""
    change = partial(Change, str(root), discard=case.discard)
    first = change("2026-11-22T09:30:00", **case.settings)
    assert first.plan["refusals"] == []
    if way == "rollout":
        return first.carry_out
    if way == "rollback":
        assert not first.carry_out()["failed"]
    else:
        # It is killed before its end.
        with suppress(KillError):
            first.carry_out(END_STEP)
    back = change("2026-11-22T10:30:00", change="rollback" if way == "rollback" else "rollout")
    assert back.plan["refusals"] == []
    return back.carry_out if way == "rollback" else back.undo


@pytest.mark.parametrize("way", ["rollout", "rollback", "take back"])
@pytest.mark.parametrize("name", CASES)
def test_a_kubelet_starts_at_each_moment_of_a_change(tmp_path: Path, name: str, way: str, count: Count) -> None:
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    case = CASES[name]
    root, copy = tmp_path / "node", tmp_path / "copy"
    write_node(root, case)
    shutil.copytree(root, copy, symlinks=True)
    # Once here, so that everything is imported; and what it is to end with.
    assert not prepared(copy, case, way)()["failed"]
    act = prepared(root, case, way)
    begin = on_disk(root)
    seen: list[tuple[bytes | None, ...]] = []
    traced = Traced(act)
    while True:
        more = traced.next_stop()
        found = on_disk(root)
        if not seen or found != seen[-1]:
            prediction = predict_start(Node(Tree(str(root))))
            assert prediction.starts is not False, (name, way, found, prediction.findings)
            seen.append(found)
        if not more:
            break
    assert not traced.answer()["failed"]
    assert seen[0] == begin
    assert seen[-1] == on_disk(copy)
    assert len(seen) > 1
    if case.kept:
        said = readable(seen[-1][1]).state
        assert said is not None
        assert str(said.exclusive_cpus()) == case.kept
    if way == "take back":
        assert seen[-1] == (
            (HEADER + case.configuration).encode(),
            case.checkpoint,
            case.memory,
        )
    count("kills", traced.stops)
