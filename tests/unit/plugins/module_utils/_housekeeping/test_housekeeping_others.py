# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What others do between two runs: files, lines and values that they change, and slices that come and go."""

from __future__ import annotations

import os
import shutil

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import ValueStep
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.brought import DROP_IN, IRQ, Node
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write


def test_a_file_of_ours_that_others_changed(node: Node) -> None:
    """It is brought again, and what it held is kept beside it; unless it is to go, where it stays."""
    node.bring()
    path = node.root / (DROP_IN % "system.slice")
    path.write_text("[Slice]\nAllowedCPUs=0-2\n")
    answer = node.bring()
    assert [note for note in answer.notes if str(path.relative_to(node.root)) in note]
    (backup,) = path.parent.glob("*~")
    assert backup.read_text() == "[Slice]\nAllowedCPUs=0-2\n"
    assert node.held(DROP_IN % "system.slice").endswith("=0-1")
    backup.unlink()
    path.write_text("[Slice]\nAllowedCPUs=0-2\n")
    back = node.back()
    assert [note for note in back.notes if "stays so" in note]
    assert path.read_text() == "[Slice]\nAllowedCPUs=0-2\n"
    path.unlink()
    path.parent.rmdir()
    assert node.contents() == node.before


@pytest.mark.parametrize("again", [False, True])
def test_lines_that_others_add(node: Node, again: bool) -> None:
    node.bring()
    file = node.root / housekept.IRQBALANCE
    file.write_text("# theirs\n" + file.read_text())
    if again:
        assert not node.bring().changed
        node.bring("0-2")
    node.back()
    assert file.read_text() == "# theirs\n" + housekept.VARIABLES


def test_values_that_others_set(node: Node) -> None:
    node.bring()
    node.put(IRQ, "4\n")
    node.put("proc/irq/26/smp_affinity_list", "1\n")
    answer = node.back()
    assert node.held(IRQ) == "4"
    assert node.held("proc/irq/26/smp_affinity_list") == "0-7"
    assert [note for note in answer.notes if "somebody else has set it to 4" in note]


def test_what_appears_later(node: Node) -> None:
    """An interrupt that begins with our default gets what it would have had; one that goes is no error."""
    node.bring()
    (node.root / "proc/interrupts").write_text(
        (node.root / "proc/interrupts").read_text().replace("  26:", "  30:").replace("eth0-2", "nvme0q1")
    )
    os.rename(node.root / "proc/irq/26", node.root / "proc/irq/30")
    assert not node.bring().changed
    node.back()
    assert node.held("proc/irq/30/smp_affinity_list") == "0-7"


def test_a_slice_that_is_not_there_now(node: Node) -> None:
    """That of machines is there only while one runs; its file follows all the same, and goes."""
    node.bring()
    slice_of_machines = node.root / "sys/fs/cgroup/machine.slice"
    away = node.root.parent / "away"
    slice_of_machines.rename(away)
    assert not node.bring().changed
    node.bring("0-2")
    assert node.held(DROP_IN % "machine.slice").endswith("AllowedCPUs=0-2")
    node.back()
    away.rename(slice_of_machines)
    assert not (node.root / (DROP_IN % "machine.slice")).parent.exists()
    assert node.contents().keys() == node.before.keys()


def without(node: Node, *slices: str) -> Node:
    """Return the same, with these slices not made yet."""
    for name in slices:
        shutil.rmtree(node.root / "sys/fs/cgroup" / name)
    node.before = node.contents()
    return node


def test_a_slice_that_is_not_there_yet(node: Node) -> None:
    """systemd makes those of machines and users when something is to run there, with what its files say."""
    without(node, "machine.slice", "user.slice")
    check = node.bring(act=False)
    assert node.contents() == node.before
    first = node.bring()
    assert first.to_dict() == check.to_dict()
    for name in ("machine.slice", "user.slice"):
        assert node.held(DROP_IN % name).splitlines()[1:] == ["[Slice]", "AllowedCPUs=", "AllowedCPUs=0-1"]
        assert not (node.root / "sys/fs/cgroup" / name).exists()
    assert not node.bring().changed
    node.bring("0-2")
    assert node.held(DROP_IN % "machine.slice").endswith("AllowedCPUs=0-2")
    assert node.back().changed
    assert node.contents() == node.before


def test_a_slice_that_systemd_has_made_since(node: Node) -> None:
    """It has our CPUs from its file, and what it would have without us when that goes."""
    without(node, "machine.slice")
    node.bring()
    write(node.root, "/sys/fs/cgroup/machine.slice/cpuset.cpus", "0-1\n")
    assert not node.bring().changed
    back = node.back()
    assert node.held("sys/fs/cgroup/machine.slice/cpuset.cpus") == ""
    values = [step for step in back.steps if isinstance(step, ValueStep) and "machine.slice" in step.path]
    assert [(step.before, step.after) for step in values] == [("0-1", "0-7"), ("0-7", "")]
    shutil.rmtree(node.root / "sys/fs/cgroup/machine.slice")
    assert node.contents() == node.before


def test_a_cgroup_in_which_the_kubelet_will_make_those_of_pods(node: Node) -> None:
    """At a boot it is there before the kubelet has started; no pod may be confined to the reserved CPUs."""
    for name in ("a", "a.slice", "b.slice"):
        write(node.root, "/sys/fs/cgroup/%s/cpuset.cpus" % name, "\n")
    node.bring(cgroup_root="a")
    assert [node.held("sys/fs/cgroup/%s/cpuset.cpus" % name) for name in ("a", "a.slice", "b.slice")] == ["", "", "0-1"]
    assert not (node.root / (DROP_IN % "a.slice")).exists()


def test_what_is_left_out_and_is_not_there(node: Node) -> None:
    notes = node.bring(exclude_slices=("machine", "user.slice")).notes
    assert [note for note in notes if "no cgroup 'machine'" in note]
    assert not [note for note in notes if "user.slice" in note]


def test_a_slice_that_is_to_come_and_is_left_out(node: Node) -> None:
    without(node, "machine.slice", "user.slice")
    own = "[Slice]\nAllowedCPUs=0\n"
    write(node.root, "/etc/systemd/system/user.slice.d/10-own.conf", own)
    before = node.contents()
    node.bring(exclude_slices=("machine.slice",))
    assert not (node.root / (DROP_IN % "machine.slice")).exists()
    # It has its own CPUs already, as one that is there.
    assert not (node.root / (DROP_IN % "user.slice")).exists()
    write(node.root, "/sys/fs/cgroup/user.slice/cpuset.cpus", "0\n")
    assert not node.bring(exclude_slices=("machine.slice",)).changed
    node.back()
    assert node.held("sys/fs/cgroup/user.slice/cpuset.cpus") == "0"
    shutil.rmtree(node.root / "sys/fs/cgroup/user.slice")
    assert node.contents() == before


def test_a_slice_that_is_to_come_when_its_layer_goes(node: Node) -> None:
    without(node, "machine.slice")
    node.bring()
    write(node.root, "/sys/fs/cgroup/machine.slice/cpuset.cpus", "0-1\n")
    node.bring(layers=("interrupts",))
    assert not (node.root / (DROP_IN % "machine.slice")).parent.exists()
    assert node.held("sys/fs/cgroup/machine.slice/cpuset.cpus") == ""


def test_a_later_file_gives_other_cpus(node: Node) -> None:
    write(node.root, "/etc/systemd/system/user.slice.d/99-own.conf", "[Slice]\nAllowedCPUs=0-5\n")
    assert [note for note in node.bring().notes if "99-own.conf" in note]
