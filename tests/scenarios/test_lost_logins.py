# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change whose controller, connection, login or service is killed at a random moment ends well by itself.

On a virtual machine, over a real sshd: systemd and the kubelet are real. LOST=40 says how many changes; SEED=7 which
moments. More than a few need --timeout 0.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Callable

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import OPEN
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change.change_service import PROPERTIES, UNIT
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many
from ansible_collections.kubenode.cpu_manager.tests.vm.machine import SSH_CONFIG, ssh_arguments

from .conftest import KubeletMachine
from .test_pod_without_ssh import CONFIGURATION, EXCLUSIVE, PODS

CONFIG, STATE = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/cpu_manager_state"
PROGRAM = Path(sys.executable).parent / "ansible-playbook"
# Seconds: kubelet_verify_timeout, for an emulated machine, and what the change may take beside it.
VERIFY, BESIDE = 300, 60
VARIABLES = {
    "kubelet_cpu_manager_policy": "static",
    "kubelet_reserved_system_cpus": "0",
    # It has no API server.
    "kubelet_drain": False,
    "kubelet_verify_timeout": VERIFY,
    "kubelet_trial": "never",
    "kubelet_target_version": "1.20",
}


def end_login(machine: KubeletMachine) -> None:
    """Kill all that logins have on the machine, the one that asks for it included."""
    command = ssh_arguments(machine.name, "systemctl", "kill", "--signal=KILL", "user.slice", "'session-*.scope'")
    subprocess.run(command, capture_output=True, check=False)


def end_connection(machine: KubeletMachine) -> None:
    """Close the connection that the controller has."""
    subprocess.run(ssh_arguments("-O", "exit", machine.name), capture_output=True, check=False)


def end_service(machine: KubeletMachine) -> None:
    """Kill the processes of the change itself."""
    command = ssh_arguments(machine.name, "systemctl", "kill", "--signal=KILL", UNIT)
    subprocess.run(command, capture_output=True, check=False)


def end_nothing(_machine: KubeletMachine) -> None:
    """Kill the controller alone, as is done in each case."""


WAYS = {"controller": end_nothing, "connection": end_connection, "login": end_login, "service": end_service}


class Controller:
    """Runs the playbook against a machine, with its output in a file."""

    def __init__(self, machine: KubeletMachine, directory: Path) -> None:
        self.machine = machine
        self.log = directory / "rollout.log"
        inventory = {"all": {"hosts": {machine.name: None}, "vars": {**VARIABLES, "ansible_user": "root"}}}
        self.inventory = directory / "hosts.yml"
        self.inventory.write_text(json.dumps(inventory), encoding="utf-8")
        self.environment = {**os.environ, "ANSIBLE_SSH_ARGS": '-F "%s"' % SSH_CONFIG, "ANSIBLE_SSH_RETRIES": "0"}

    def begin(self, period: str) -> subprocess.Popen[bytes]:
        """Start a rollout of this cpuManagerReconcilePeriod, in a session of its own."""
        command = [str(PROGRAM), "--inventory", str(self.inventory), "kubenode.cpu_manager.rollout"]
        command += ["--extra-vars", "kubelet_cpu_manager_reconcile_period=" + period]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env=self.environment, cwd=self.log.parent, start_new_session=True
            )

    def run(self, period: str) -> float:
        """Roll this out to its end, and give the seconds that it took."""
        began = time.monotonic()
        assert self.begin(period).wait() == 0, self.log.read_text("utf-8")
        return time.monotonic() - began


def settled(machine: KubeletMachine) -> float:
    """Wait until the kubelet runs and nothing changes the node any more, and give the seconds."""
    began = time.monotonic()
    while time.monotonic() - began < VERIFY + BESIDE:
        with suppress(AssertionError):  # the login may have to be made anew
            states = machine.run("systemctl", "is-active", "kubelet", UNIT, "||", "true").split()
            if states[:1] == [b"active"] and states[1] in (b"inactive", b"failed"):
                return time.monotonic() - began
        time.sleep(1)
    raise AssertionError(machine.run("journalctl", "--no-pager", "--lines=60", "--unit=" + UNIT, "--unit=kubelet"))


def test_a_change_ends_well_whatever_is_killed(
    kubelet_machine: KubeletMachine, tmp_path: Path, tell_figures: Callable[[str], None]
) -> None:
    run, choice = kubelet_machine.run, random.Random(int(os.environ.get("SEED", "57")))
    run("mkdir", "-p", PODS, "/var/lib/kubelet")
    run("cat", ">", CONFIG, given=yaml.safe_dump(CONFIGURATION).encode("utf-8"))
    run("cat", ">", PODS + "/db.json", given=json.dumps(EXCLUSIVE).encode("utf-8"))
    run("systemctl", "start", "kubelet")
    controller = Controller(kubelet_machine, tmp_path)
    # What ends by an error would do so again, and is not started again and again.
    given = [shlex.quote("--property=" + text) for text in PROPERTIES]
    run("systemd-run", "--unit=error", "--quiet", *given, "--", "false")
    time.sleep(5)
    shown = run("systemctl", "show", "--property=NRestarts,Result", "error").split()
    assert sorted(shown) == [b"NRestarts=0", b"Result=exit-code"]
    old, ends, longest = "9s", Counter[str](), 0.0
    seconds = controller.run(old)
    assigned = run("cat", STATE)
    for number in range(how_many("LOST", 4, 6)):
        way = list(WAYS)[number % len(WAYS)]
        new = "%ds" % (11 + number)
        rollout = controller.begin(new)
        # Its plan takes half of the time; after its end nothing is to be killed.
        time.sleep(seconds * choice.uniform(0.3, 0.95))
        WAYS[way](kubelet_machine)
        if way != "connection":
            with suppress(ProcessLookupError):
                os.killpg(rollout.pid, signal.SIGKILL)
        rollout.wait()
        longest = max(longest, settled(kubelet_machine))
        found = re.search(rb"^cpuManagerReconcilePeriod: (.*)$", run("cat", CONFIG), re.MULTILINE)
        assert found
        assert found[1].decode() in (old, new), (way, found, controller.log.read_text("utf-8"))
        is_open = run("test", "-e", OPEN, "&&", "echo", "open", "||", "true") == b"open\n"
        ends[way + (": new" if found[1].decode() == new else ": old") + (", open" if is_open else "")] += 1
        controller.run(new)
        assert run("cat", STATE) == assigned, way
        assert run("test", "-e", OPEN, "||", "echo", "ended") == b"ended\n"
        old = new
    tell_figures("%s; a rollout %.0f s, settled within %.0f s" % (dict(sorted(ends.items())), seconds, longest))
