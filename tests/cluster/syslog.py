# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A system log that only one command sees, on a machine with or without one."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

# Everything of /dev, and a /dev/log.
_PRIVATE = """\
mount -t tmpfs none "$1"
for one in /dev/*; do
    name="$1/${one#/dev/}"
    if [ "$one" = /dev/log ]; then continue
    elif [ -L "$one" ]; then cp -P "$one" "$name"
    elif [ -d "$one" ]; then mkdir "$name" && mount --rbind "$one" "$name"
    else touch "$name" && mount --bind "$one" "$name"
    fi
done
touch "$1/log"
mount --bind "$2" "$1/log"
mount --rbind "$1" /dev
shift 2
exec "$@"
"""


class SystemLog:
    """A context: within, what a command with `prefix` before it logs is in `text`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._path, self._dev = directory / "socket", directory / "dev"
        self._dev.mkdir()
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self.prefix = ("unshare", "--mount", "sh", "-ec", _PRIVATE, "sh", str(self._dev), str(self._path))

    def __enter__(self) -> SystemLog:
        self._socket.bind(str(self._path))
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", str(self._path))
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while line := self._socket.recv(1 << 20):
            self._lines.append(line.decode("utf-8", "replace"))

    @property
    def text(self) -> str:
        """All that was logged."""
        return "\n".join(self._lines)
