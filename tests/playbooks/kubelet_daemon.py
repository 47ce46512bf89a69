# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A daemon that is a kubelet where it matters for the order of a change; the service that test_service.py runs.

Called with the directory of its service, which holds
node/     the node's tree
first/    for each policy the checkpoint that a kubelet writes when there is none
broken    if it is there, policies with which it does not start for another reason, which it finds late
pid, log  what it writes: its process while it runs, and a line for each start, refusal and stop

It returns when the daemon runs, or with the exit status 1 when that refuses to start.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from queue import Empty, SimpleQueue

INTERVAL = 0.05


class Service:
    """The files of one service."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        kubelet = directory / "node/var/lib/kubelet"
        self.config = kubelet / "config.yaml"
        self.checkpoint = kubelet / "cpu_manager_state"

    def start(self) -> bytes:
        """Return the checkpoint to keep writing. Exits where the configuration and the checkpoint do not go
        together."""
        text = self.config.read_text(encoding="utf-8")
        policy, period = setting(text, "cpuManagerPolicy", "none"), setting(text, "cpuManagerReconcilePeriod", "10s")
        if self.checkpoint.exists():
            state = self.checkpoint.read_bytes()
            found = json.loads(state)["policyName"]
            if found != policy:
                self.refuse('configured policy "%s" differs from state checkpoint policy "%s"' % (policy, found))
        else:
            state = (self.directory / "first" / policy).read_bytes()
            self.write(state)
        broken = self.directory / "broken"
        if broken.exists() and policy in broken.read_text(encoding="ascii").split():
            self.refuse("broken")
        self.log("started %s %s" % (policy, period))
        return state

    def refuse(self, reason: str) -> None:
        self.log("refused " + reason)
        sys.exit("kubelet: " + reason)

    def write(self, state: bytes) -> None:
        temporary = self.directory / "new"
        temporary.write_bytes(state)
        temporary.replace(self.checkpoint)

    def run(self, state: bytes, ready: int) -> None:
        """Write what is in memory again and again, whatever others do to the file."""
        # An event could be in use by what the signal interrupts.
        told: SimpleQueue[None] = SimpleQueue()
        signal.signal(signal.SIGTERM, lambda _number, _frame: told.put(None))
        pid = self.directory / "pid"
        pid.write_text("%d\n" % os.getpid(), encoding="ascii")
        process = self.directory / "node/proc" / str(os.getpid())
        process.mkdir(parents=True)
        (process / "cmdline").write_bytes(b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0")
        os.close(ready)
        while True:
            try:
                told.get(timeout=INTERVAL)
                break
            except Empty:
                self.write(state)
        self.log("stopped")
        (process / "cmdline").unlink()
        process.rmdir()
        pid.unlink()

    def log(self, text: str) -> None:
        with open(self.directory / "log", "a", encoding="utf-8") as file:
            file.write(text + "\n")


def setting(text: str, key: str, default: str) -> str:
    """Return the value of a key of the configuration."""
    found = re.search("(?m)^%s: (.+)$" % key, text)
    return found.group(1) if found else default


def main() -> None:
    service = Service(Path(sys.argv[1]))
    state = service.start()
    wait_for, ready = os.pipe()
    if os.fork():
        os.close(ready)
        os.read(wait_for, 1)  # ends when the daemon can be stopped
        return
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(quiet, descriptor)
    service.run(state, ready)


if __name__ == "__main__":
    main()
