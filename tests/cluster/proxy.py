# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A line to a server that can fall silent, as when a network is cut: nobody is told, and nothing comes any more."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from .ports import LOOPBACK

_PIECE = 1 << 16


class Proxy:
    """Passes on what comes to its `port`. A context: afterwards nobody listens."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._passes = threading.Event()
        self._passes.set()

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._passes.set()
        self._listener.close()

    def fall_silent(self) -> None:
        """Pass nothing on from now on, and keep whoever asks waiting."""
        self._passes.clear()

    def speak(self) -> None:
        """Work again, for those who ask anew."""
        self._passes.set()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection((LOOPBACK, self._target))
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while True:
                piece = source.recv(_PIECE)
                if not self._passes.is_set():
                    # What was said into the silence is lost.
                    self._passes.wait()
                    break
                if not piece:
                    break
                sink.sendall(piece)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
