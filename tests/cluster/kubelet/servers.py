# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a stand-in answers: /healthz in plain HTTP, and on the kubelet's own port, in HTTPS, /healthz and /configz.

Who asks there has to have a client's certificate from the authority that the configuration names, unless anonymous
requests are allowed. Whoever has one may see everything.
"""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree

from ..certificates import Authority
from ..ports import LOOPBACK
from .configuration import shown


class Server(ThreadingHTTPServer):
    """Answers paths with texts; with TLS that names an authority of clients, to those alone."""

    def __init__(self, address: str, port: int, answers: Mapping[str, str], anonymous: bool = True) -> None:
        super().__init__((address, port), _Handler)
        self.answers, self.anonymous = answers, anonymous

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, name="server", daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        connection = self.connection
        is_identified = isinstance(connection, ssl.SSLSocket) and bool(connection.getpeercert())
        if not (is_identified or self.server.anonymous):
            self._answer(401, "Unauthorized")
        elif self.path not in self.server.answers:
            self._answer(404, "404 page not found\n")
        else:
            self._answer(200, self.server.answers[self.path])

    def _answer(self, status: int, text: str) -> None:
        body = text.encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if text.startswith("{") else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002, its name
        """Log nothing: the kubelet does not log requests."""


def serve(tree: Tree, root: str, values: Mapping[str, Any]) -> None:
    """Answer as a configuration says, as long as this process lives. Raises OSError for ports that others have."""
    if values["healthzPort"]:
        Server(values["healthzBindAddress"], values["healthzPort"], {"/healthz": "ok"}).start()
    authentication = values.get("authentication", {})
    authority = authentication.get("x509", {}).get("clientCAFile", "")
    answers = {"/healthz": "ok", "/configz": json.dumps({"kubeletconfig": shown(values)})}
    anonymous = authentication.get("anonymous", {}).get("enabled", False)
    server = Server(values.get("address", LOOPBACK), values["port"], answers, anonymous)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*_own_pair(Path(tree.path(root + "/pki"))))
    if authority:
        tls.load_verify_locations(tree.path(authority))
        tls.verify_mode = ssl.CERT_OPTIONAL
    # The handshake is done by the thread that answers.
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.start()


def _own_pair(directory: Path) -> tuple[Path, Path]:
    """Return the kubelet's own certificate and key, which it makes where there are none."""
    certificate = directory / "kubelet.crt"
    if not certificate.exists():
        directory.mkdir(parents=True, exist_ok=True)
        Authority().issue("kubelet", hosts=[LOOPBACK]).write(certificate.with_suffix(""))
    return certificate, certificate.with_suffix(".key")
