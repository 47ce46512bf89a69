# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the services of a node may do: little, and all that their programs need."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.zipapp import build
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.only_root import HIDDEN, PYTHON_FLAGS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import housekeeping as bring
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingWish,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.modules import housekeeping, reconcile_program
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.elastic import ElasticNode, Pod
from ansible_collections.kubenode.cpu_manager.tests.machines.services import ROLE, services

# Tenths: systemd calls up to 2.0 "safe".
MOST_EXPOSED = 15
# For how many seconds a program that does not end is looked at after its first pass.
ANOTHER_PASS = 1.5
LAYERS = ("interrupts", "workqueues", "rps", "slices")


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("name", services())
def test_a_service_is_hardly_exposed(tmp_path: Path, name: str) -> None:
    unit = tmp_path / name
    unit.write_text(services()[name])
    arguments = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=%d" % MOST_EXPOSED]
    done = subprocess.run([*arguments, str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr


def test_the_role_knows_what_is_hidden() -> None:
    variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text("utf-8"))
    assert variables["reconcile_hidden"] == list(HIDDEN)


def system_calls(names: str) -> set[str]:
    """Return those of a filter of systemd, such as "@system-service @mount", with the sets in it."""
    found, waiting = set(), names.split()
    while waiting:
        name = waiting.pop()
        if not name.startswith("@"):
            found.add(name)
            continue
        done = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
        waiting += [line.strip() for line in done.stdout.splitlines()[1:] if line.strip() and "#" not in line]
    return found


def allowed(unit: str) -> set[str]:
    """Return the system calls that a unit allows."""
    found: set[str] = set()
    for value in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
        found = found - system_calls(value[1:]) if value.startswith("~") else found | system_calls(value)
    return found


def reconcile(root: Path, policy: str) -> list[str]:
    """Return the call of a program that changes the CPUs of containers, writes figures and publishes."""
    node = ElasticNode(root, policy=policy)
    node.add(Pod("db", 2, "2-8"), Pod("web", 0, "", "Burstable"))
    if policy == "static":
        state = State(CPUSet.parse("0,2-8,10-15"), {"db": {"app": CPUSet.parse("1,9")}})
        (root / "var/lib/kubelet/cpu_manager_state").write_bytes(write_checkpoint("static", state))
    settings = {"root": str(root), "policy": policy, "period": "1s", "textfile": str(root / "cpu.prom")}
    (root / "settings.json").write_text(json.dumps({**settings, "use_runtime": False}))
    return [reconcile_program.PROGRAM, str(root / "settings.json")]


def keep_house(root: Path, part: str) -> list[str]:
    housekept.write_node(root)
    bring.present(Tree(str(root)), HousekeepingWish(CPUSet.parse("0-1"), LAYERS), Extras(), act=True)
    housekept.boot(root)
    return [housekeeping.PROGRAM, str(root), part]


# What each service calls, and how a line begins that says what it has done.
PROGRAMS: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "static.service": (lambda root: reconcile(root, "static"), "written: pod"),
    "dynamic.service": (lambda root: reconcile(root, "dynamic"), "exclusive: pod"),
    "kubenode-housekeeping.service": (lambda root: keep_house(root, "kernel"), "workqueues: "),
    "kubenode-housekeeping-network.service": (lambda root: keep_house(root, "network"), "rps: "),
}


@pytest.mark.needs("systemd-analyze", "strace")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_makes_no_system_call_that_its_service_may_not(tmp_path: Path, name: str) -> None:
    write_node, line = PROGRAMS[name]
    module, *arguments = write_node(tmp_path / "node")
    program, trace = tmp_path / "program.pyz", tmp_path / "trace"
    program.write_bytes(build(module, sys.executable))
    call = [sys.executable, *PYTHON_FLAGS.split(), str(program), *arguments]
    strace = ["strace", "--follow-forks", "--output", str(trace), *call]
    with subprocess.Popen(strace, stdout=subprocess.PIPE, text=True, start_new_session=True) as program_run:
        assert program_run.stdout
        said = any(printed.startswith(line) for printed in program_run.stdout)
        if name.startswith("dynamic"):
            # It does not end by itself. What it does from pass to pass is looked at, too.
            time.sleep(ANOTHER_PASS)
            os.killpg(program_run.pid, signal.SIGTERM)
        program_run.stdout.read()
    assert said
    assert name.startswith("dynamic") or program_run.returncode == 0
    made = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(errors="replace"), re.MULTILINE))
    assert {"openat", "write"} <= made
    # strace and timeout start it; systemd does so itself.
    assert made - allowed(services()[name]) - {"execve"} == set()
