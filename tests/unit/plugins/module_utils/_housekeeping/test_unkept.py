# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that was brought to what was wished, and then others undo some of it: the report finds each of it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree, own_ids
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import wanted_arguments
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    carry_out as run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping as bring,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.at_boot import PROGRAM_PATH, AtBoot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_info import housekeeping
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    HousekeepingWish,
    OwnCPUs,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import KERNEL_LINE, ValueStep
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

PYTHON = "/usr/bin/python3"
DEFAULTS = ("interrupts", "workqueues", "rps", "slices", "irqbalance")
LAYERS = (*DEFAULTS, "watchdog", "manager")
UNITS = "etc/systemd/system/"
TOP = "/sys/fs/cgroup/"
OWN = "isolated.slice"
ELSEWHERE, LOST, FIXED = "host-on-exclusive-cpus", "housekeeping-not-lasting", "interrupts-not-movable"
UNFINISHED, NO_PARTITION = "housekeeping-unfinished", "partition-invalid"
# Of the interrupt that the kernel manages itself.
ALWAYS = (FIXED, "interrupts")


class Brought:
    """A saved node, and what was wished for it."""

    def __init__(self, root: Path) -> None:
        write_machine(root, "1s4c2t")
        self.root = housekept.write_node(root)
        self.tree = Tree(str(root))
        write(root, "/var/lib/kubelet/config.yaml", HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0-3\n")
        write(root, "/proc/1/status", "Name:\tsystemd\nCpus_allowed_list:\t0-1\n")
        for path in (root / "sys/fs/cgroup").glob("*/cpuset.cpus"):
            write(root, "/%s/cpuset.cpus.exclusive" % path.parent.relative_to(root), "\n")
            write(root, "/%s/cpuset.cpus.partition" % path.parent.relative_to(root), "member\n")

    def bring(self, reserved: str = "0-3", layers: Sequence[str] = LAYERS, **more: Any) -> None:
        cpus = CPUSet.parse(reserved)
        arguments = wanted_arguments(cpus, CPUSet.parse("0-15"), ["rcu_nocbs"]) if KERNEL_LINE in layers else None
        extras = Extras(arguments, AtBoot(b"program", PYTHON, owner=own_ids()), more.pop("runs", False))
        more["arguments"] = tuple(argument.text for argument in arguments or ())
        wish = HousekeepingWish(cpus, tuple(layers), **more)
        bring.present(self.tree, wish, extras, act=True, run=lambda _words: "")

    def answer(self, reserved: str | None = None) -> dict[str, Any]:
        return housekeeping(Node(Tree(str(self.root))), None if reserved is None else CPUSet.parse(reserved))

    def findings(self, reserved: str | None = None) -> list[tuple[str, str]]:
        """Return the findings without the one that this node always has."""
        found = [(finding["check"], finding["subject"]) for finding in self.answer(reserved)["findings"]]
        assert ALWAYS in found
        return [finding for finding in found if finding != ALWAYS]

    def make_partition(self, kind: str = "isolated", cpus: str = "2-3") -> None:
        texts = {"": cpus, ".exclusive": cpus, ".exclusive.effective": cpus, ".partition": kind, ".effective": cpus}
        for name, text in texts.items():
            write(self.root, "%s%s/cpuset.cpus%s" % (TOP, OWN, name), text + "\n")


@pytest.fixture
def node(tmp_path: Path) -> Brought:
    return Brought(tmp_path / "node")


def test_what_was_brought_has_no_findings(node: Brought) -> None:
    assert (ELSEWHERE, "slices") in node.findings()
    node.bring()
    assert node.findings() == []
    assert node.answer()["notes"] == []


@pytest.mark.parametrize(
    ("path", "text", "finding"),
    [
        ("/proc/sys/kernel/watchdog_cpumask", "0-7\n", (ELSEWHERE, "watchdog")),
        ("/etc/systemd/system.conf.d/50-kubenode-housekeeping.conf", None, (LOST, "manager")),
        ("/etc/systemd/system.conf.d/60-other.conf", "[Manager]\nCPUAffinity=0-7\n", (LOST, "manager")),
        ("/proc/1/status", "Cpus_allowed_list:\t0-7\n", (ELSEWHERE, "manager")),
        ("/etc/systemd/system/kubenode-housekeeping.service", None, (LOST, "boot")),
        ("/etc/systemd/system/multi-user.target.wants/kubenode-housekeeping.service", None, (LOST, "boot")),
        (PROGRAM_PATH, None, (LOST, "boot")),
        ("/sys/devices/virtual/workqueue/cpumask", "ff\n", (ELSEWHERE, "workqueues")),
    ],
)
def test_what_others_undo(node: Brought, path: str, text: str | None, finding: tuple[str, str]) -> None:
    node.bring()
    if text is None:
        (node.root / path.lstrip("/")).unlink()
    else:
        write(node.root, path, text)
    assert node.findings() == [finding]


@pytest.mark.parametrize("path", [PROGRAM_PATH, "/etc/systemd/system/kubenode-housekeeping.service"])
def test_what_root_executes_is_changed_by_others(node: Brought, path: str) -> None:
    """Its bytes, or who may write it or a directory above it; the next run puts the file right."""
    here = node.root / path[1:]

    def wrong(what: str) -> None:
        assert node.findings() == [(LOST, "boot")], what
        (row,) = (row for row in node.answer()["findings"] if row["subject"] == "boot")
        assert row["found"].startswith("somebody has changed, or may change: /"), what
        assert path in row["found"]

    node.bring()
    assert node.findings() == []
    content = here.read_bytes()
    here.write_bytes(content + b"\n")
    wrong("bytes")
    node.bring()
    assert here.read_bytes() == content
    mode = here.stat().st_mode
    here.chmod(0o777)
    wrong("mode")
    node.bring()
    assert here.stat().st_mode == mode
    if os.geteuid() == 0:
        os.chown(here, 65534, 65534)
        wrong("owner")
        node.bring()
        assert (here.stat().st_uid, here.stat().st_gid) == (0, 0)
    here.parent.chmod(0o777)
    wrong("directory")
    here.parent.chmod(0o755)
    assert node.findings() == []


def test_layers_that_were_not_wished(node: Brought) -> None:
    node.bring(layers=DEFAULTS)
    write(node.root, "/proc/1/status", "Cpus_allowed_list:\t0-7\n")
    assert node.findings() == []


def test_systemd_waits_for_a_boot(node: Brought) -> None:
    """Its file is there, so nothing but a boot is missing."""
    write(node.root, "/proc/1/status", "Cpus_allowed_list:\t0-7\n")
    node.bring()
    (finding,) = (row for row in node.answer()["findings"] if row["subject"] == "manager")
    assert finding["remedy"].startswith("boot the node again")
    (node.root / "etc/systemd/system.conf.d/50-kubenode-housekeeping.conf").unlink()
    (finding,) = (row for row in node.answer()["findings"] if row["subject"] == "manager")
    assert finding["remedy"].startswith("run the role housekeeping")


def test_slices_that_are_to_come(node: Brought) -> None:
    for name in ("machine.slice", "user.slice"):
        shutil.rmtree(node.root / TOP[1:] / name)
    node.bring()
    assert node.findings() == []
    shutil.rmtree(node.root / UNITS / "machine.slice.d")
    assert node.findings() == [(LOST, "slices")]
    assert "machine.slice (no limit)" in node.answer()["findings"][-1]["found"]
    node.bring(exclude_slices=("machine.slice",))
    assert node.findings() == []


def test_slices_that_are_left_out(node: Brought) -> None:
    node.bring(exclude_slices=("machine.slice",))
    assert node.findings() == []
    write(node.root, TOP + "machine.slice/cpuset.cpus", "1\n")
    assert node.findings() == []
    (row,) = (row for row in node.answer()["layers"] if row["name"] == "machine.slice")
    assert row["wanted"] is None


def test_the_kernels_line(node: Brought) -> None:
    """An argument that was written waits for a boot; one that others have removed does not come back by itself."""
    node.bring(layers=(*LAYERS, KERNEL_LINE))
    made = "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Linux' {\n\tlinux /vmlinuz%s\n}\n"
    write(node.root, "/boot/grub/grub.cfg", made % " rcu_nocbs=4-15")
    assert node.findings() == [("kernel-line-not-booted", "rcu_nocbs")]
    write(node.root, "/proc/cmdline", "root=/dev/vda rcu_nocbs=4-15\n")
    assert node.findings() == []
    rows = {row["name"]: row["wanted"] for row in node.answer()["kernel"]["arguments"]}
    assert rows == {"rcu_nocbs": "4-15"}
    write(node.root, "/boot/grub/grub.cfg", made % "")
    assert node.findings() == [("kernel-line-not-booted", "rcu_nocbs"), (LOST, "rcu_nocbs")]


# --- the CPUs ---------------------------------------------------------------------------------------------------


def test_a_wish_for_fewer_cpus_than_the_kubelet_reserves(node: Brought) -> None:
    node.bring("0-1")
    assert node.findings() == []
    write(node.root, TOP + "system.slice/cpuset.cpus", "0-3\n")
    assert node.findings() == node.findings("0-3") == [(ELSEWHERE, "slices")]


def test_a_wish_for_cpus_that_the_kubelet_gives_away(node: Brought) -> None:
    node.bring("0-5")
    assert {subject for _check, subject in node.findings()} >= {"slices", "interrupts", "workqueues"}


def test_a_kubelet_that_reserves_nothing(node: Brought) -> None:
    write(node.root, "/var/lib/kubelet/config.yaml", HEADER)
    assert node.answer()["reserved"] == ""
    node.bring("0-1", partition=OwnCPUs(CPUSet.parse("2"), "isolated", OWN))
    found = node.answer()
    assert (found["reserved"], found["reserved_source"]) == ("0-2", str(node.root) + PATH)


# --- partitions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "cpus", "found"),
    [
        ("isolated", "2-3", ""),
        (None, "", "isolated.slice: it is no partition"),
        ("member", "2-3", "isolated.slice: it is no partition"),
        ("root", "2-3", "isolated.slice: it is of the kind root, with CPUs 2-3"),
        ("isolated", "3", "isolated.slice: it is of the kind isolated, with CPUs 3"),
        ("isolated invalid (no)", "2-3", "others run there, too: isolated.slice (no)"),
    ],
)
def test_a_partition(node: Brought, kind: str | None, cpus: str, found: str) -> None:
    own = OwnCPUs(CPUSet.parse("2-3"), "isolated", OWN)
    node.bring("0-1", partition=own)
    if kind is not None:
        node.make_partition(kind, cpus)
    texts = [row["found"] for row in node.answer()["findings"] if row["check"] == NO_PARTITION]
    assert texts == ([found] if found else [])
    # Its slice is none of the host's, also where it is no partition.
    assert [finding for finding in node.findings() if finding[0] != NO_PARTITION] == []


def test_partitions_that_cannot_be_read(node: Brought) -> None:
    node.bring("0-1", partition=OwnCPUs(CPUSet.parse("2-3"), "isolated", OWN))
    (node.root / TOP[1:] / OWN / "cpuset.cpus.partition").mkdir(parents=True)
    found = node.answer()
    assert "the partitions of cgroups are not known" in found["notes"][0]
    assert [row for row in found["findings"] if row["check"] == NO_PARTITION] == []


def test_the_unit_of_a_partition_is_gone(node: Brought) -> None:
    node.bring("0-1", partition=OwnCPUs(CPUSet.parse("2-3"), "isolated", OWN))
    node.make_partition()
    (node.root / UNITS / OWN).unlink()
    assert node.findings() == [(LOST, "boot")]


# --- the run ----------------------------------------------------------------------------------------------------


def test_a_run_that_was_interrupted(node: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> str:
        raise NodeError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(run, "_do", fail)
        with pytest.raises(NodeError):
            node.bring(runs=True)
    found = node.answer()["findings"]
    (unfinished,) = (row for row in found if row["check"] == UNFINISHED)
    assert unfinished["found"].endswith("before: restart_irqbalance, daemon_reload")
    # What it has not come to is not lost.
    assert (LOST, "boot") not in node.findings()
    node.bring(runs=True)
    assert node.findings() == []


def test_interrupts_that_the_kernel_refuses_to_move(node: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older kernel shows one that it manages itself as any other. What it has refused is remembered for a boot."""

    def refuse(tree: Tree, step: ValueStep) -> str | None:
        return "EIO" if "/irq/24/" in step.path else "EINVAL" if step.layer == "rps" else honest(tree, step)

    honest = run.set_value
    monkeypatch.setattr(run, "set_value", refuse)
    node.bring()
    found = node.answer()
    by_check = {(row["check"], row["subject"]): row for row in found["findings"]}
    assert list(by_check) == [ALWAYS, (ELSEWHERE, "rps")]
    assert by_check[ALWAYS]["found"] == (
        "the kernel manages 1 of 4 itself, on others too: 25 eth0-1 (CPUs 7); "
        "the kernel refuses to move 1 of 4, on others too: 24 eth0-0 (CPUs 7)"
    )
    assert "eth0 rx-0 (CPUs 0-7, refused)" in by_check[ELSEWHERE, "rps"]["found"]
    assert "run the role" not in by_check[ELSEWHERE, "rps"]["remedy"]
    (row,) = (row for row in found["interrupts"] if row["name"] == "24 eth0-0")
    assert (row["problem"], row["wanted"]) == ("refused", None)
    # Where it is handled counts, as nobody can change where it may be.
    write(node.root, "/proc/irq/24/effective_affinity_list", "1\n")
    assert "refuses" not in str(node.answer()["findings"][0])
    # Another boot may have other devices.
    write(node.root, housekept.BOOT, "another\n")
    assert (ELSEWHERE, "interrupts") in node.findings()


# --- the journal ------------------------------------------------------------------------------------------------


def test_a_damaged_journal(node: Brought) -> None:
    write(node.root, PATH, "{")
    found = node.answer()
    assert found["note_checks"] == ["housekeeping-unmeasured"]
    assert "cannot be read as the journal of the housekeeping" in found["notes"][0]
    assert (ELSEWHERE, "slices") in node.findings()


def test_without_a_journal_nothing_more_is_imported(node: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    package = housekeeping.__module__.rpartition(".")[0]
    names = [package + "." + name for name in ("housekeeping_journal", "unkept", "steps")]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    node.answer()
    assert [name for name in names if name in sys.modules] == []
    node.bring()
    node.answer()
    assert [name for name in names if name not in sys.modules] == []
