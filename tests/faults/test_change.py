# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change whose process is killed between two system calls, or has no room on the disk: it goes back or ends well."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change.node_change import NodeChange
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import predict_start
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import read_journal
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from . import mounts, tracer
from .changing import Change
from .child import Child
from .counting import Count
from .test_reboots import CASES, on_disk, write_node
from .tracer import Traced

KILLS, SEED = how_many("KILLS", 24, 400), how_many("SEED", 57, 57)
NAMES = ("none to static", "strict")


def carry_out(change: Change, log: Path) -> dict[str, Any]:
    """Return the change, with the names of its steps in a file, as its service has it."""

    def tell(step: str) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(step + "\n")

    return NodeChange(change.tree, change.given, acts=True, tell=tell).carry_out()


@pytest.mark.parametrize("way", ["rollout", "rollback"])
@pytest.mark.parametrize("name", NAMES)
def test_a_change_that_is_killed_at_any_system_call_is_taken_back_or_ended(
    tmp_path: Path, name: str, way: str, count: Count
) -> None:
    """The process is started again, and nobody else has to come. What the journal says is what is on the disk."""
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    case, choice = CASES[name], random.Random("%d %s %s" % (SEED, name, way))
    stops, ends = 0, set()
    for number in range(KILLS + 1):
        root, log = tmp_path / str(number), tmp_path / ("log-%d" % number)
        write_node(root, case)
        change = Change(str(root), "2026-11-22T09:30:00", discard=case.discard, **case.settings)
        if way == "rollback":
            assert not change.carry_out()["failed"]
            change = Change(str(root), "2026-11-22T10:30:00", change="rollback")
        old = on_disk(root)
        traced = Traced(partial(carry_out, change, log))
        if not stops:
            # The first is whole: so many moments there are, and this is what it ends with.
            while traced.next_stop():
                pass
            assert not traced.answer()["failed"]
            stops, new = traced.stops, on_disk(root)
            continue
        for _stop in range(choice.randrange(1, stops)):
            traced.next_stop()
        traced.kill()
        begun = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        answer = NodeChange(Tree(str(root)), change.given, acts=True).go_on(begun)
        assert read_journal(Tree(str(root))) is None, (number, begun, answer)
        assert on_disk(root) == (old if answer["failed"] else new), (number, begun, answer)
        assert not answer["failed"] or answer["msg"].endswith("; the node is as it was")
        ends.add(answer["failed"])
    assert True in ends
    count("kills", KILLS)


# --- a disk that is full -------------------------------------------------------------------------------------

PAGES, FILES = 256, 200


def change_on_full_disk(root: Path, name: str, pages: int) -> tuple[bool, bool, bool, bool]:
    """Return whether the change failed; whether the kubelet starts then; whether the files are old ones, once there is
    room and the next run has come; and whether it had anything to take back.
    """
    mounts.own_namespace()
    (root / "var").mkdir(parents=True)
    mounts.mount_disk(str(root / "var"), PAGES, FILES)
    case = CASES[name]
    write_node(root, case)
    old = on_disk(root)
    change = Change(str(root), "2026-11-22T09:30:00", discard=case.discard, **case.settings)
    space = os.statvfs(root / "var")
    (root / "var/filler").write_bytes(bytes((space.f_bfree - pages) * space.f_bsize))
    failed = change.carry_out()["failed"]
    starts = predict_start(Node(Tree(str(root)))).starts is not False
    (root / "var/filler").unlink()
    is_open = read_journal(Tree(str(root))) is not None
    if is_open:
        assert not Change(str(root), "2026-11-22T10:30:00").undo()["failed"]
    return failed, starts, on_disk(root) == old, is_open


@pytest.mark.parametrize("name", NAMES)
def test_a_disk_that_is_full_at_each_write_of_a_change(tmp_path: Path, name: str, count: Count) -> None:
    """Also where there is no room for the way back: the kubelet can start, and the next run takes the change back."""
    if mounts.why_not():
        pytest.skip(mounts.why_not())
    failures, number = 0, 0
    for number in range(40):
        child = Child(partial(change_on_full_disk, tmp_path / str(number), name, number))
        failed, starts, is_old, _is_open = child.answer()
        assert starts, number
        assert is_old == failed, number
        failures += failed
        if not failed:
            break
    assert failures > 2
    assert number < 39
    count("full disks", number)
