# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for the next pass, or until the container runtime or the kubelet makes something for a new container."""

from __future__ import annotations

import os
import select
import time
from typing import Any, Sequence

# The kubelet's links to the logs of containers, and what containerd and CRI-O make for each container.
DIRECTORIES = (
    "/var/log/containers",
    "/run/containerd/io.containerd.runtime.v2.task/k8s.io",
    "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io",
    "/run/crio/exits",
)

# IN_MOVED_TO, IN_CREATE, IN_DELETE; see inotify(7).
_EVENTS = 0x80 | 0x100 | 0x200
# What comes together is met by one pass.
_TOGETHER = 0.2


class Watch:
    """inotify(7) on these directories, as far as they exist and the system has it; else a wait is only that."""

    def __init__(self, directories: Sequence[str] = DIRECTORIES) -> None:
        self._waiting = list(directories)
        self._libc, self._descriptor = _inotify()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until something was made; whether it was."""
        if self._descriptor < 0:
            time.sleep(seconds)
            return False
        # They are made with the first container.
        self._waiting = [path for path in self._waiting if not self._add(path)]
        ready, _writing, _failing = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return False
        time.sleep(min(_TOGETHER, seconds))
        try:
            while os.read(self._descriptor, 1 << 16):
                pass
        except BlockingIOError:
            pass
        return True

    def _add(self, path: str) -> bool:
        return bool(self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), _EVENTS) >= 0)

    def close(self) -> None:
        """End it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _inotify() -> tuple[Any, int]:
    """The C library, and a descriptor that reports; -1 where there is none."""
    try:
        # Imported here: a Python may be built without it.
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        return libc, int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (ImportError, OSError, AttributeError, MemoryError):
        return None, -1
