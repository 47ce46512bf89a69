# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that listen beside the test that asks them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from socketserver import BaseServer
from typing import Iterator


@contextmanager
def listening(server: BaseServer) -> Iterator[None]:
    """Let a server listen until the end, and close it then."""
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
