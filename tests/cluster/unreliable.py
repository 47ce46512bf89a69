# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A door to an API server that counts the calls, and fails some of them in each way in which a real one fails."""

from __future__ import annotations

import http.client
import json
import re
import socket
import struct
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, NamedTuple
from urllib.parse import urlsplit

from .api import API
from .ports import LOOPBACK

# Ways to fail. An answer that is lost was given: what was asked for is done.
INTERNAL, BUSY, AWAY, RESET, LOST, SILENT = "500", "429", "503", "reset", "answer lost", "silence"
FAULTS = (INTERNAL, BUSY, AWAY, RESET, LOST, SILENT)
REASONS = {INTERNAL: "InternalError", BUSY: "TooManyRequests", AWAY: "ServiceUnavailable", "403": "Forbidden"}
# Seconds; longer than anybody waits for an answer in a test.
_SILENCE = 600
_HOP = frozenset(("connection", "transfer-encoding", "content-length", "keep-alive", "host", "accept-encoding"))


class Call(NamedTuple):
    """A call: its place among all calls, what it asks, and how often that was asked before."""

    number: int
    what: str
    before: int
    # Since the first call, in seconds.
    at: float


# The way in which a call fails; None where it does not.
Decides = Callable[[Call], "str | None"]


class UnreliableAPI:
    """Passes calls on to the API server of a kubeconfig, with its user's rights. A context: afterwards nobody listens.

    calls: those that came. decides: see Decides; who sets it anew begins to count anew.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._api = API(kubeconfig)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.begin(lambda _call: None)
        door = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                with suppress(OSError, http.client.HTTPException):
                    super().handle_one_request()
                    return
                self.close_connection = True

            def log_message(self, *_arguments: object) -> None:
                """Log nothing: nobody would read it."""

            def do_GET(self) -> None:
                door._answer(self)

            do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815  # as the base calls them

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> UnreliableAPI:
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="unreliable", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def begin(self, decides: Decides) -> None:
        """Count from nothing, and fail calls so from now on."""
        with self._lock:
            self.decides = decides
            self.calls: list[Call] = []
            self.failed: list[Call] = []
            self._begun = time.monotonic()

    def kubeconfig(self, directory: Path) -> str:
        """Return the path of a kubeconfig for it, made in this directory."""
        path = directory / "unreliable.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": "http://%s:%d" % (LOOPBACK, self._server.server_port)}}],
            "users": [{"name": "it", "user": {"token": "none"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "current-context": "it",
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        what = "%s %s" % (request.command, urlsplit(request.path).path)
        selector = re.search("(?:field|label)Selector=([^&]*)", request.path)
        what += " " + selector[1] if selector else ""
        with self._lock:
            before = sum(1 for call in self.calls if call.what == what)
            call = Call(len(self.calls), what, before, time.monotonic() - self._begun)
            self.calls.append(call)
            fault = self.decides(call)
            self.failed += [call] if fault else []
        if fault == SILENT:
            self._closing.wait(_SILENCE)
        answer = (
            None if fault in (RESET, SILENT) else _passed_on(self._api, request, body) if fault in (None, LOST) else ()
        )
        if fault in (RESET, LOST, SILENT) or answer is None:
            # The other end gets a reset.
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            request.close_connection = True
            request.connection.close()
            return
        status, headers, text = answer or _failure(str(fault))
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(text)))
        request.end_headers()
        request.wfile.write(text)


def _failure(fault: str) -> tuple[int, dict[str, str], bytes]:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "not now"}
    text = json.dumps({**status, "reason": REASONS[fault], "code": int(fault)}).encode()
    return int(fault), {"Content-Type": "application/json", **({"Retry-After": "1"} if fault == BUSY else {})}, text


def _passed_on(api: API, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP | {"authorization"}}
    with api.another() as connection:
        connection.request(request.command, request.path, body or None, headers)
        response = connection.getresponse()
        text = response.read()
    kept = {name: value for name, value in response.headers.items() if name.lower() not in _HOP}
    return response.status, kept, text
