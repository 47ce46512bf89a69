# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A service as systemd keeps one with Restart=always, where there is no systemd:

    python tests/cluster/service.py DIR start|stop|restart|status|run

DIR has service.json, the fields of Service. There the service writes `log`, what the program says, with a line of its
own for each start and end, and, while it runs, `pid`. That it was started does not mean that the program does well: as
with systemd, it is started again and again. For speed, nothing is imported but the standard library.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable, NamedTuple, Sequence

# Seconds that a start or a stop may take.
_PATIENCE = 60.0


class Service(NamedTuple):
    """A program that is to run."""

    command: Sequence[str]
    # Seconds between its end and its next start.
    restart_seconds: float = 1.0
    # Ends with this process; 0 for none.
    owner: int = 0

    def write(self, directory: Path) -> None:
        """Make the directory a service."""
        (directory / "service.json").write_text(json.dumps(self._asdict()), encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Service:
        """Return the service of a directory."""
        return cls(**json.loads((directory / "service.json").read_text(encoding="utf-8")))


def init_script(directory: Path) -> str:
    """Return an init script for the service of a directory."""
    return '#!/bin/sh\nexec "%s" -S "%s" "%s" "$1"\n' % (sys.executable, Path(__file__).resolve(), directory)


def run(directory: Path) -> None:
    """Keep the program running until this process is told to end."""
    service = Service.read(directory)
    # Read by select(): whoever wants this to end.
    wanted, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    ends = [wanted, *([os.pidfd_open(service.owner)] if service.owner else [])]
    (directory / "pid").write_text("%d\n" % os.getpid(), encoding="ascii")
    try:
        with open(directory / "log", "a", encoding="utf-8", buffering=1) as log:
            while True:
                log.write("service: start\n")
                program = subprocess.Popen(service.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                ended = os.pidfd_open(program.pid)
                asked = select.select([*ends, ended], [], [])[0] != [ended]
                os.close(ended)
                if asked:
                    program.terminate()
                log.write("service: end %d\n" % program.wait())
                if asked or select.select(ends, [], [], service.restart_seconds)[0]:
                    return
    finally:
        (directory / "pid").unlink()


def start(directory: Path) -> None:
    """Start the service, if it does not run."""
    if pid_of(directory):
        return
    command = [sys.executable, "-S", __file__, str(directory), "run"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    _wait(lambda: pid_of(directory) == process.pid)


def stop(directory: Path) -> None:
    """Stop the service, if it runs; its program has ended then."""
    pid = pid_of(directory)
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        _wait(lambda: not pid_of(directory))


def restart(directory: Path) -> None:
    """Stop the service and start it."""
    stop(directory)
    start(directory)


def status(directory: Path) -> None:
    """End with the status of an init script: 0 when it runs, 3 when it does not."""
    sys.exit(0 if pid_of(directory) else 3)


def pid_of(directory: Path) -> int:
    """Return the process of a service that runs; 0 when it does not."""
    try:
        pid = int((directory / "pid").read_text(encoding="ascii"))
        # Not another one that has the number by now.
        return pid if os.fsencode(directory) in Path("/proc/%d/cmdline" % pid).read_bytes() else 0
    except (FileNotFoundError, ProcessLookupError, ValueError):  # not yet, or no more
        return 0


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("the service does not do what it is told")
        time.sleep(0.02)


def main() -> None:
    directory, action = Path(sys.argv[1]), sys.argv[2]
    {"run": run, "start": start, "stop": stop, "restart": restart, "status": status}[action](directory)


if __name__ == "__main__":
    main()
