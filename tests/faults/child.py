# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work in a process of its own, forked, which may be killed, traced, or given mounts that nobody else sees."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
import warnings
from typing import Any, Callable

# After so many seconds a process that hangs is ended.
PATIENCE = 30


class Child:
    """A forked process that does `work` and then ends; it has everything imported already."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.status: int | None = None
        # Not a pipe: a process need not wait until somebody reads.
        self._descriptor = os.memfd_create("answer")
        with warnings.catch_warnings():
            # Newer Pythons warn of threads, such as those of pytest-xdist: the child uses none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            self._work(work)

    def _work(self, work: Callable[[], Any]) -> None:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(PATIENCE)
            try:
                answer = (True, work())
            except BaseException:  # noqa: BLE001, it must not reach the pytest that this is a copy of
                answer = (False, traceback.format_exc())
            with open(self._descriptor, "wb") as file:
                pickle.dump(answer, file)
        finally:
            os._exit(0)

    def running(self) -> bool:
        """Return True as long as it has not ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.ended(status)
        return self.status is None

    def wait(self) -> int:
        """Return its status, when it has ended, however it did."""
        if self.status is None:
            _pid, status = os.waitpid(self.pid, 0)
            self.ended(status)
        assert self.status is not None
        return self.status

    def ended(self, status: int) -> None:
        """Note the status that somebody got who waited for the process, and read its answer."""
        self.status = status
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb") as file:
            self._pickle = file.read()

    def answer(self) -> Any:
        """Return what its work returned, when it has ended. Raises AssertionError with the child's traceback."""
        status = self.wait()
        assert status == 0, "the child did not end by itself: status %#x" % status
        good, answer = pickle.loads(self._pickle)
        assert good, answer
        return answer
