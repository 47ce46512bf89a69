# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The housekeeping of the machine that the tests run on: its own interrupts, workqueues and queues, and back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator, Mapping

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.zipapp import build
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    FIXED,
    KernelSetting,
    read_interrupts,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    carry_out as run,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import (
    housekeeping_journal as journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    read_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.modules import housekeeping as module
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone

TREE = Tree("/")
LAYERS = ["interrupts", "workqueues", "rps", "watchdog"]
LO = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")


def settings() -> list[KernelSetting]:
    return run.read_settings(TREE, LAYERS)


def why_not() -> str:
    """Return why none of it can be written here; empty when it can."""
    if os.geteuid():
        return "only root can write the kernel's settings"
    if len(run.online_cpus(TREE)) < 2:
        return "this machine has one CPU"
    if Path(PATH).exists():
        return "%s is there: this machine has a housekeeping of its own" % PATH
    writable = [found for found in settings() if not found.problem and os.access(found.path, os.W_OK)]
    return "" if writable else "the kernel's settings are read-only here"


@pytest.fixture(autouse=True)
def machine() -> Iterator[dict[str, str]]:
    """Yield what the machine's settings hold, {path: text}, which they hold again in the end."""
    if why_not():
        pytest.skip(why_not())
    with alone():
        had_directory = os.path.isdir(os.path.dirname(PATH))
        before = texts()
        try:
            # The kernel begins without RPS, and what is unset stays so.
            LO.write_text("%s\n" % run.online_cpus(TREE).to_mask())
            yield texts()
        finally:
            for path, text in before.items():
                with suppress(OSError):
                    Path(path).write_text(text + "\n")
            with suppress(OSError):
                os.unlink(PATH)
            if not had_directory:
                with suppress(OSError):
                    os.rmdir(os.path.dirname(PATH))
        assert texts() == before


def texts() -> dict[str, str]:
    return {found.path: found.text for found in settings() if not found.problem}


def housekeeping(state: str = "present", check_mode: bool = False, **given: Any) -> Any:
    parameters: Mapping[str, Any] = {
        **dict.fromkeys(("config_path", "kubelet_root", "kubelet_version", "command_line", "reservation")),
        "reserved_system_cpus": str(reserved()),
        "state": state,
        "layers": LAYERS,
        "exclude_slices": [],
        "kernel_arguments": False,
        "kernel_isolation": None,
        "tuned": False,
        "allow_owners": [],
        "partition_cpus": None,
        "persistent": False,
        "interpreter": None,
        "manage_services": True,
        **given,
    }
    return module.work(TREE, parameters, check_mode)


def reserved() -> CPUSet:
    return run.online_cpus(TREE).take(1)


def outside() -> list[str]:
    """Return what can be moved and may still run elsewhere."""
    return [found.name for found in settings() if not found.problem and found.cpus and found.cpus - reserved()]


def handled() -> dict[str, int]:
    """Return how often each interrupt was handled, by its file."""
    lines = Path("/proc/interrupts").read_text().splitlines()
    cpus = len(lines[0].split())
    rows = (line.split() for line in lines[1:])
    return {
        "/proc/irq/%s/smp_affinity_list" % row[0][:-1]: sum(map(int, row[1 : cpus + 1]))
        for row in rows
        if row[0][:-1].isdigit()
    }


def elsewhere_since(before: Mapping[str, int]) -> list[str]:
    """Return the interrupts that are not handled on the reserved CPUs: one moves when it comes for the next time."""
    time.sleep(0.3)
    now = handled()
    return [
        found.name
        for found in settings()
        if found.layer == "interrupts" and not found.problem and now.get(found.path, 0) > before.get(found.path, 0) + 1
        if found.effective and found.effective - reserved()
    ]


def test_applied_again_and_taken_back(machine: dict[str, str]) -> None:
    assert len(outside()) > 10
    check = housekeeping(check_mode=True)
    assert check.changed
    assert texts() == machine
    assert not os.path.exists(PATH)

    first = housekeeping()
    assert first.changed
    assert outside() == []
    assert first.result["changes"] == check.result["changes"]
    assert {change["layer"] for change in first.result["changes"]} == set(LAYERS)
    assert LO.read_text().strip() == reserved().to_mask()
    assert elsewhere_since(handled()) == []

    written = Path(PATH).read_bytes()
    again = housekeeping()
    assert not again.changed
    assert again.result["changes"] == []
    assert Path(PATH).read_bytes() == written

    would = housekeeping("absent", check_mode=True)
    assert outside() == []
    back = housekeeping("absent")
    assert back.changed
    assert back.result["changes"] == would.result["changes"]
    assert texts() == machine
    assert not os.path.exists(PATH)
    assert not housekeeping("absent").changed


def test_fixed_interrupts_are_named(machine: dict[str, str]) -> None:
    fixed = [found for found in settings() if found.problem == FIXED]
    notes = housekeeping().result["notes"]
    if not fixed:
        pytest.skip("the kernel of this machine manages no interrupt itself")
    assert [note for note in notes if fixed[0].name in note]


def test_an_interrupt_that_refuses(machine: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Older kernels do not show that they manage it, and answer EIO; this may answer EPERM."""
    fixed = [found for found in settings() if found.problem == FIXED and found.layer == "interrupts"]
    if not fixed:
        pytest.skip("the kernel of this machine manages no interrupt itself")
    monkeypatch.setattr(
        run, "read_interrupts", lambda tree: [found._replace(problem="") for found in read_interrupts(tree)]
    )
    first = housekeeping(layers=["interrupts"])
    path = fixed[0].path
    assert path not in [change["path"] for change in first.result["changes"]]
    ((note, check),) = [
        pair for pair in zip(first.result["notes"], first.result["note_checks"]) if fixed[0].name in pair[0]
    ]
    assert check == "housekeeping-refused"
    assert re.search(r"\((EIO|EPERM)\)", note)
    saved = read_journal(TREE)
    assert saved is not None
    assert saved.refused.keys() == {found.path for found in fixed}
    again = housekeeping(layers=["interrupts"])
    assert not again.changed
    assert again.result["notes"] == first.result["notes"]
    assert housekeeping("absent").changed
    monkeypatch.undo()
    assert texts() == machine


def test_other_reserved_cpus(machine: dict[str, str]) -> None:
    """The values before are those before the first change."""
    housekeeping()
    last = run.online_cpus(TREE) - run.online_cpus(TREE).take(len(run.online_cpus(TREE)) - 1)
    assert housekeeping(reserved_system_cpus=str(last)).changed
    assert [found.name for found in settings() if not found.problem and found.cpus and found.cpus != last] == []
    assert not housekeeping(reserved_system_cpus=str(last)).changed
    housekeeping("absent")
    assert texts() == machine


def test_fewer_layers(machine: dict[str, str]) -> None:
    housekeeping()
    assert housekeeping(layers=["workqueues"]).changed
    now = texts()
    assert {path for path in machine if now[path] != machine[path]} == {
        found.path for found in settings() if found.layer == "workqueues"
    }
    housekeeping("absent")
    assert texts() == machine


def test_what_others_set_stays(machine: dict[str, str]) -> None:
    housekeeping()
    path = next(found.path for found in settings() if found.layer == "workqueues")
    Path(path).write_text(machine[path] + "\n")
    assert [change["path"] for change in housekeeping().result["changes"]] == [path]
    housekeeping("absent")
    assert texts() == machine


def test_the_program_after_a_boot(machine: dict[str, str], tmp_path: Path) -> None:
    """No boot is made: the journal is of another, and the values are as a boot leaves them."""
    program = tmp_path / "housekeeping.pyz"
    program.write_bytes(build(module.PROGRAM, sys.executable))

    def program_run() -> tuple[int, list[str], str]:
        done = subprocess.run([sys.executable, "-I", program], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    status, lines, errors = program_run()
    assert (status, errors) == (2, "")
    assert PATH in lines[0]
    housekeeping()
    data = json.loads(Path(PATH).read_text())
    data["boot_id"] = "another"
    # What the last boot began with.
    for value in data["kernel"].values():
        value["before"] = value["before"].replace("-", ",")
    Path(PATH).write_text(json.dumps(data))
    for path, text in machine.items():
        with suppress(OSError):
            Path(path).write_text(text + "\n")
    status, lines, errors = program_run()
    assert (status, errors) == (0, "")
    assert len([line for line in lines if line.startswith("interrupts: ")]) > 5
    assert outside() == []
    status, lines, errors = program_run()
    assert (status, errors) == (0, "")
    assert [line for line in lines if not line.startswith("note: ")] == []
    assert not housekeeping().changed
    housekeeping("absent")
    assert texts() == machine
    assert journal.read_journal(TREE) is None
