# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node with every layer is brought in line, again, with other wishes, and back to the byte."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import carry_out as program
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import (
    differences,
    needs_of,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    read_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import (
    DAEMON_RELOAD,
    RESTART_IRQBALANCE,
    CommandStep,
    FileStep,
    Step,
    ValueStep,
)
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.brought import DROP_IN, IRQ, LAYERS, SLICE, Node, paths


def test_brought_again_and_back(node: Node) -> None:
    check = node.bring(act=False)
    assert node.contents() == node.before
    first = node.bring()
    assert (first.changed, check.changed) == (True, True)
    assert first.to_dict() == check.to_dict()
    assert node.held("proc/irq/default_smp_affinity") == "3"
    assert node.held(IRQ) == "0-1"
    assert node.held("proc/irq/25/smp_affinity_list") == "0-7"
    assert node.held("proc/irq/5/smp_affinity_list") == "0-7"
    assert node.held("sys/devices/virtual/workqueue/cpumask") == "3"
    assert node.held("sys/class/net/eth0/queues/rx-0/rps_cpus") == "3"
    assert node.held("sys/class/net/eth0/queues/rx-1/rps_cpus") == "0"
    assert node.held("proc/sys/net/core/rps_default_mask") == "3"
    assert node.held("proc/sys/kernel/watchdog_cpumask") == "0-1"
    for unit in (*housekept.UNITS, "foreign"):
        assert node.held("sys/fs/cgroup/%s/cpuset.cpus" % unit) == "0-1"
    assert node.held("sys/fs/cgroup/kubepods.slice/cpuset.cpus") == ""
    for unit, section in (("system.slice", "Slice"), ("init.scope", "Scope")):
        assert node.held(DROP_IN % unit).splitlines()[1:] == ["[%s]" % section, "AllowedCPUs=", "AllowedCPUs=0-1"]
    assert not (node.root / "etc/systemd/system/foreign.d").exists()
    assert node.held("etc/systemd/system.conf.d/50-kubenode-housekeeping.conf").endswith("CPUAffinity=0-1")
    assert node.held(housekept.IRQBALANCE).endswith("IRQBALANCE_BANNED_CPULIST=2-15")
    assert (node.root / housekept.IRQBALANCE).stat().st_mode & 0o777 == 0o640
    assert [note for note in first.notes if "25 eth0-1" in note]
    assert node.commands == []
    assert needs_of(first.needs) == {
        "daemon_reload": True,
        "restart_irqbalance": True,
        "apply_tuned": [],
        "slices": [],
        "update_loader": [],
    }

    written = node.contents()
    again = node.bring()
    assert (again.changed, again.to_dict()["changes"], again.needs) == (False, [], [])
    assert node.contents() == written

    would = node.back(act=False)
    assert node.contents() == written
    back = node.back()
    assert back.changed
    assert back.to_dict() == would.to_dict()
    assert node.contents() == node.before
    assert not node.back().changed


def kind(step: Step) -> str:
    """Return a file, a command or a value of the kernel, by its layer."""
    if isinstance(step, CommandStep):
        return step.words[1] if step.words[0] == "systemctl" else "loader"
    return step.layer + " now" * (isinstance(step, ValueStep) and step.layer == "slices")


def test_interrupts_follow_irqbalance_also_when_the_wish_changes(node: Node) -> None:
    """Whichever layers go or stay, the irqbalance that runs has read its file when an interrupt is written."""
    node.bring()
    for more in ({"reserved": "2-3"}, {"reserved": "4", "layers": ("interrupts",)}, {"reserved": "0-1"}):
        kinds = [kind(step) for step in node.bring(**more, runs=True).steps]
        assert kinds.index("irqbalance") < kinds.index("try-restart") < kinds.index("interrupts")


def test_the_order(node: Node) -> None:
    """irqbalance, which would move interrupts back; what new work starts with, what is there, systemd's files before
    the cgroups, and what others read."""
    answer = node.bring(layers=(*LAYERS, "kernel_line"), runs=True)
    order = list(dict.fromkeys(kind(step) for step in answer.steps))
    assert order == [
        *("irqbalance", "try-restart", "interrupts", "workqueues", "rps", "watchdog"),
        *("slices", "manager", "boot", "daemon-reload", "slices now", "kernel_line", "loader"),
    ]
    restart, reload = ("systemctl", "try-restart", "irqbalance.service"), ("systemctl", "daemon-reload")
    assert node.commands[:2] == list(answer.commands[:2]) == [restart, reload]
    assert len(node.commands) == 3
    steps = list(node.back().steps)
    # As far as it does no harm, the other way round.
    assert list(dict.fromkeys(kind(step) for step in steps)) == [
        *("boot", "slices now", "manager", "slices", "irqbalance", "kernel_line"),
        *("watchdog", "rps", "workqueues", "interrupts"),
    ]
    slices = [
        step for step in steps if getattr(step, "path", "").endswith(("system.slice/cpuset.cpus", "system.slice.d"))
    ]
    assert [(step.before, step.after) for step in slices if isinstance(step, ValueStep)] == [
        ("0-1", "0-7"),
        ("0-7", ""),
    ]
    removed = next(at for at, step in enumerate(steps) if isinstance(step, FileStep) and "system.slice" in step.path)
    assert steps.index(slices[0]) < removed < steps.index(slices[1])
    assert node.contents() == node.before


def test_commands_that_a_run_did_not_come_to(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: Sequence[str]) -> str:
        raise NodeError("no answer", where=words[0])

    monkeypatch.setattr(node, "run", fail)
    with pytest.raises(NodeError, match="no answer"):
        node.bring(runs=True)
    monkeypatch.undo()
    again = node.bring(runs=True)
    assert again.changed
    assert [step.words[1] for step in again.steps if isinstance(step, CommandStep)] == ["try-restart", "daemon-reload"]
    assert not node.bring(runs=True).changed
    assert len(node.commands) == 2


def test_irqbalance_that_does_not_run(node: Node) -> None:
    node.bring(runs=True)
    assert node.commands.count(RESTART_IRQBALANCE) == 1
    (node.root / "run/irqbalance.pid").unlink()
    node.bring("0", runs=True)
    assert node.commands.count(RESTART_IRQBALANCE) == 1


def test_other_cpus(node: Node) -> None:
    node.bring()
    assert node.bring("0-3").changed
    # Also what is within both, since it was written for the first.
    assert node.held(IRQ) == "0-3"
    assert node.held(SLICE) == "0-3"
    assert node.held(DROP_IN % "user.slice").endswith("AllowedCPUs=0-3")
    assert node.held(housekept.IRQBALANCE).endswith("=4-15")
    assert not node.bring("0-3").changed
    node.bring("6")
    node.back()
    assert node.contents() == node.before


def test_fewer_layers_and_slices(node: Node) -> None:
    node.bring()
    answer = node.bring(layers=("interrupts", "slices"), exclude_slices=("machine.slice",), persistent=False)
    assert answer.changed
    changed = {path for path, entry in node.contents().items() if node.before.get(path) != entry}
    assert not [path for path in changed if "workqueue" in path or "irqbalance" in path or "machine.slice" in path]
    assert not [path for path in changed if "pyz" in path or "kubenode-housekeeping.service" in path]
    assert node.held(IRQ) == "0-1"
    assert node.held("sys/fs/cgroup/machine.slice/cpuset.cpus") == ""
    assert not node.bring(layers=("interrupts", "slices"), exclude_slices=("machine.slice",), persistent=False).changed
    node.back()
    assert node.contents() == node.before


def test_what_is_so_already_is_not_touched(tmp_path: Path) -> None:
    node = Node(tmp_path / "node")
    node.put(IRQ, "1\n")
    node.put("sys/fs/cgroup/machine.slice/cpuset.cpus", "0\n")
    node.put(housekept.IRQBALANCE, "IRQBALANCE_BANNED_CPULIST=2-7\n")
    before = node.contents()
    touched = paths(node.bring())
    for path in (IRQ, "sys/fs/cgroup/machine.slice/cpuset.cpus", housekept.IRQBALANCE, DROP_IN % "machine.slice"):
        assert "/" + path not in touched
    node.back()
    assert node.contents() == before


def test_a_node_that_needs_nothing_has_no_journal(node: Node) -> None:
    for path in ("default_smp_affinity", "24/smp_affinity_list", "26/smp_affinity_list"):
        node.put("proc/irq/" + path, "1\n")
    answer = node.bring(layers=("interrupts",), persistent=False)
    assert not answer.changed
    assert not (node.root / PATH[1:]).exists()


def test_the_kernel_line_goes_back(node: Node) -> None:
    first = node.bring(layers=("kernel_line",), persistent=False)
    assert first.changed
    assert len(needs_of(first.needs)["update_loader"]) == 1
    dropped = node.bring(layers=("interrupts",), persistent=False)
    assert [path for path in paths(dropped) if "grub" in path]
    node.back()
    assert node.contents() == node.before


def test_what_diff_shows(node: Node) -> None:
    node.bring()
    shown = {name: (before, after) for name, before, after in differences(node.back())}
    assert "system.slice: 0-1\n" in shown["CPUs of slices"][0]
    assert "system.slice: \n" in shown["CPUs of slices"][1]
    assert "0-7" not in shown["CPUs of slices"][1]
    assert shown["/usr/local/lib/kubenode/cpu-manager-housekeeping.pyz"] == ("\x00program", "")
    assert shown["/etc/systemd/system/multi-user.target.wants/kubenode-housekeeping.service"][1] == ""


# --- boots ----------------------------------------------------------------------------------------------------


def test_after_a_boot(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    """What this boot began with goes back; of a cgroup, what the first one had."""
    node.bring()
    housekept.boot(node.root)
    node.put("proc/irq/26/smp_affinity_list", "0-3\n")
    assert program.main([str(node.root)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "interrupts: 24 eth0-0: 0-7 to 0-1" in told
    assert "interrupts: 26 eth0-2: 0-3 to 0-1" in told
    assert not [line for line in told if "slice" in line]
    assert program.main([str(node.root)]) == 0
    assert not [line for line in capsys.readouterr().out.splitlines() if not line.startswith("note: ")]
    assert not node.bring().changed
    node.back()
    assert node.held("proc/irq/26/smp_affinity_list") == "0-3"
    assert node.held(IRQ) == "0-7"
    assert node.held(SLICE) == ""


def test_back_after_a_boot_without_the_service(node: Node) -> None:
    node.bring(persistent=False)
    housekept.boot(node.root)
    node.put(IRQ, "0-1\n")  # somebody else's, as this boot has not seen ours
    node.back()
    assert node.held(IRQ) == "0-1"
    node.put(IRQ, "0-7\n")
    assert node.contents().keys() == node.before.keys()
    assert node.held(SLICE) == ""


def test_the_program_without_a_wish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([str(tmp_path)]) == 2
    assert PATH in capsys.readouterr().out
    assert program.main(["no/such"]) == 1


def test_the_program_leaves_what_is_unfinished(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(words: Sequence[str]) -> str:
        raise NodeError("no answer", where=words[0])

    monkeypatch.setattr(node, "run", fail)
    with pytest.raises(NodeError):
        node.bring(runs=True)
    housekept.boot(node.root)
    assert program.main([str(node.root)]) == 0
    journal = read_journal(node.tree)
    assert journal is not None
    assert not journal.is_done
    assert len(journal.pending) == 2


def test_what_the_version_before_had_not_come_to_is_still_run(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wrote the commands themselves into its journal."""

    def fail(words: Sequence[str]) -> str:
        raise NodeError("no answer", where=words[0])

    with monkeypatch.context() as patch:
        patch.setattr(node, "run", fail)
        with pytest.raises(NodeError):
            node.bring(runs=True)
    journal = json.loads(node.held(PATH[1:]))
    assert journal["pending"] == ["restart_irqbalance", "daemon_reload"]
    journal["pending"] = [RESTART_IRQBALANCE, DAEMON_RELOAD]
    (node.root / PATH[1:]).write_text(json.dumps(journal))
    node.bring(runs=True)
    assert node.commands == [RESTART_IRQBALANCE, DAEMON_RELOAD]


def test_files_of_ours_become_roots_again(node: Node) -> None:
    """systemd goes by them as root does."""
    node.bring()
    ours = [
        node.root / (DROP_IN % "system.slice"),
        node.root / "etc/systemd/system.conf.d/50-kubenode-housekeeping.conf",
    ]
    for path in ours:
        path.chmod(0o666)
    assert sorted(paths(node.bring(act=False))) == sorted("/%s" % path.relative_to(node.root) for path in ours)
    assert node.bring().changed
    assert [path.stat().st_mode & 0o777 for path in ours] == [0o644, 0o644]
    if os.geteuid() == 0:
        os.chown(ours[0], 65534, 65534)
        assert node.bring().changed
        assert (ours[0].stat().st_uid, ours[0].stat().st_gid) == (0, 0)
    assert not node.bring().changed


def test_variables_of_irqbalance_that_no_file_overrides(tmp_path: Path) -> None:
    """What systemd gives it in a unit is as good; what stands on its command line is told, and no file written."""
    node = Node(tmp_path / "node")
    unit = "usr/lib/systemd/system/irqbalance.service"
    reads = "[Service]\nEnvironmentFile=-/%s\n" % housekept.IRQBALANCE
    node.put(unit, reads + "Environment=IRQBALANCE_BANNED_CPULIST=2-7\nExecStart=/usr/sbin/irqbalance\n")
    assert "/" + housekept.IRQBALANCE not in paths(node.bring(act=False))
    node.put(unit, reads + "ExecStart=/usr/bin/env IRQBALANCE_BANNED_CPULIST=7 /usr/sbin/irqbalance\n")
    answer = node.bring(act=False)
    assert "/" + housekept.IRQBALANCE not in paths(answer)
    assert [note for note in answer.notes if note.startswith("set IRQBALANCE_BANNED_CPULIST=2-7 in ExecStart= of ")]
    node.put(unit, reads + "Environment=IRQBALANCE_BANNED_CPULIST=7\nExecStart=/usr/sbin/irqbalance\n")
    node.bring()
    assert node.held(housekept.IRQBALANCE).endswith("IRQBALANCE_BANNED_CPULIST=2-15")
    assert node.held(unit).endswith("Environment=IRQBALANCE_BANNED_CPULIST=7\nExecStart=/usr/sbin/irqbalance")
