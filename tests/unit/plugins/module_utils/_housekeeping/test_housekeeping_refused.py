# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What cannot be: CPUs that are refused, files that cannot be written, and a kernel that refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import carry_out as run
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import ValueStep
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.brought import DROP_IN, IRQ, SLICE, Node, paths


@pytest.mark.parametrize(("reserved", "message"), [("0-7", "leave none"), ("9", "none is online"), ("", "none is")])
def test_reserved_cpus_that_cannot_be(node: Node, reserved: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        node.bring(reserved)
    assert node.contents() == node.before


def test_a_file_that_cannot_be_written(node: Node) -> None:
    (node.root / (DROP_IN % "user.slice")).mkdir(parents=True)
    before = node.contents()
    with pytest.raises((NodeError, RefusedError)):
        node.bring()
    assert node.contents() == before


def test_the_kernel_refuses(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tree: Tree, step: ValueStep) -> str | None:
        return "ENOSPC" if "/irq/24/" in step.path else honest(tree, step)

    honest = run.set_value
    monkeypatch.setattr(run, "set_value", refuse)
    first = node.bring()
    assert first.changed
    assert "/" + IRQ not in paths(first)
    assert [note for note in first.notes if "24 eth0-0 (ENOSPC); it is tried again" in note]
    again = node.bring()
    assert not again.changed
    assert [note for note in again.notes if "24 eth0-0" in note]
    monkeypatch.undo()
    third = node.bring()
    assert (third.changed, paths(third)) == (True, ["/" + IRQ])
    assert not node.bring().changed
    node.back()
    assert node.contents() == node.before


def test_cgroups_without_the_controller(tmp_path: Path) -> None:
    """systemd switches it on when it reads its files; until then there is nothing to write."""
    node = Node(tmp_path / "node")
    for path in (tmp_path / "node/sys/fs/cgroup").glob("*/cpuset.*"):
        path.unlink()
    before = node.contents()
    answer = node.bring()
    assert (node.root / (DROP_IN % "system.slice")).exists()
    assert not [path for path in paths(answer) if path.endswith("cpuset.cpus")]
    assert not node.bring().changed
    for unit in housekept.UNITS:
        node.put("sys/fs/cgroup/%s/cpuset.cpus" % unit, "0-1\n")
    back = node.back()
    assert node.held(SLICE) == ""
    assert [step.after for step in back.steps if isinstance(step, ValueStep) and step.path == "/" + SLICE] == [
        "0-7",
        "",
    ]
    for unit in housekept.UNITS:
        (node.root / "sys/fs/cgroup" / unit / "cpuset.cpus").unlink()
    assert node.contents() == before
