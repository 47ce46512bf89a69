# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs in the background, which whoever knows their directory can end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Sequence

# Seconds that a process may take to end once it is killed.
_PATIENCE = 30.0


class DaemonError(Exception):
    """A program ended that should run. The message says which, and the last that it said."""


class Daemons:
    """Programs whose process ids and logs, NAME.pid and NAME.log, are in a directory, which each has in its command.

    They end with the thread that starts them, unless they are to outlive it.
    """

    def __init__(self, directory: Path, outlive: bool = False) -> None:
        self.directory = directory
        self._prefix = () if outlive else ("setpriv", "--pdeathsig", "KILL")
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program."""
        assert any(str(self.directory) in argument for argument in command), command
        with open(self._file(name, "log"), "ab") as log:
            child = subprocess.Popen(
                [*self._prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                # Such as caches: whatever they write is written here.
                env={**os.environ, "HOME": str(self.directory)},
                start_new_session=True,
            )
        self._children[name] = child
        self._file(name, "pid").write_text("%d\n" % child.pid, encoding="ascii")

    def check(self) -> None:
        """Raise DaemonError where one ended that this process started."""
        for name, child in self._children.items():
            if child.poll() is not None:
                raise DaemonError("%s ended with status %d:\n%s" % (name, child.returncode, self.last_words(name)))

    def last_words(self, name: str, lines: int = 20) -> str:
        """Return the end of its log."""
        return "\n".join(self._file(name, "log").read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """End all. What they keep goes with them: none is asked to put it in order."""
        for file in self.directory.glob("*.pid"):
            self.kill(file.stem)

    def kill(self, name: str) -> None:
        """End one, if it runs. Returns when it has ended."""
        file = self._file(name, "pid")
        with suppress(ProcessLookupError):
            self._kill(int(file.read_text(encoding="ascii")))
        child = self._children.pop(name, None)
        if child is not None:
            child.wait()
        file.unlink()

    def _kill(self, pid: int) -> None:
        process = os.pidfd_open(pid)
        try:
            # Not another one that has the number by now.
            with suppress(FileNotFoundError):
                if os.fsencode(self.directory) in Path("/proc/%d/cmdline" % pid).read_bytes():
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    select.select([process], [], [], _PATIENCE)
        finally:
            os.close(process)

    def _file(self, name: str, kind: str) -> Path:
        return self.directory / ("%s.%s" % (name, kind))
