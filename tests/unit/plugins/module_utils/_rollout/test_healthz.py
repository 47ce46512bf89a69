# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kubelet's /healthz says, and at which addresses it is asked."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.configuration import (
    COMMON_DEFAULTS,
    KubeletConfiguration,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.health import (
    healthz_complaint,
    healthz_urls,
)


class Handler(BaseHTTPRequestHandler):
    answer = (200, b"ok")

    def do_GET(self) -> None:
        status, body = self.answer if self.path == "/healthz" else (404, b"")
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002, its name
        """Log nothing."""


class Server6(HTTPServer):
    address_family = socket.AF_INET6


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    yield from serving(HTTPServer(("127.0.0.1", 0), type("Mine", (Handler,), {})))


@pytest.fixture
def server6() -> Iterator[HTTPServer]:
    yield from serving(Server6(("::1", 0), Handler))


def serving(server: HTTPServer) -> Iterator[HTTPServer]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def complaint(values: dict[str, Any]) -> str:
    return healthz_complaint(KubeletConfiguration("", values, "config.yaml"))


@pytest.mark.parametrize("address", [{}, {"healthzBindAddress": "127.0.0.1"}, {"healthzBindAddress": "0.0.0.0"}])
def test_healthz(server: HTTPServer, address: dict[str, str]) -> None:
    port = server.server_address[1]
    assert complaint({"healthzPort": port, **address}) == ""
    server.RequestHandlerClass.answer = (500, b"[-]syncloop failed\n")  # type: ignore[attr-defined]
    expected = "http://127.0.0.1:%d/healthz says 500 [-]syncloop failed" % port
    assert complaint({"healthzPort": port, **address}) == expected


def test_healthz_that_nobody_answers(server: HTTPServer) -> None:
    with HTTPServer(("127.0.0.1", 0), Handler) as stranger:
        port = stranger.server_address[1]
    assert complaint({"healthzPort": port}).startswith("http://127.0.0.1:%d/healthz does not answer: " % port)


def test_an_answer_is_cut_and_may_hold_any_bytes(server: HTTPServer) -> None:
    server.RequestHandlerClass.answer = (500, b"\xff" + b"x" * 300)  # type: ignore[attr-defined]
    assert complaint({"healthzPort": server.server_address[1]}).endswith(" says 500 \ufffd" + "x" * 199)


@pytest.mark.parametrize("before", [b"", b"HTTP/1.0 200 OK\r\n\r\n"], ids=["head", "body"])
def test_an_answer_that_comes_byte_by_byte_has_one_deadline(before: bytes) -> None:
    """Each byte comes in time, and all of them would take an hour."""
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            connection, _address = listener.accept()
            with connection, suppress(OSError):
                connection.sendall(before)
                while len(sent) < 36_000:
                    connection.sendall(b"H")
                    sent.append(1)
                    time.sleep(0.1)

        thread = threading.Thread(target=drip)
        thread.start()
        values = {"healthzPort": listener.getsockname()[1], "healthzBindAddress": "127.0.0.1"}
        said = healthz_complaint(KubeletConfiguration("", values, "config.yaml"), 1.0)
        thread.join(10)
    assert said == "http://127.0.0.1:%d/healthz does not answer: timed out" % values["healthzPort"]
    assert not thread.is_alive()
    # It waited for a second, not for the kubelet's patience.
    assert 2 <= len(sent) <= 40


@pytest.mark.parametrize("said", [b"", b"\0" * 100, b"SSH-2.0-server\r\n", b"HTTP/1.0 2\r\n\r\n", b"x" * 100_000])
def test_an_answer_that_is_no_answer(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _address = listener.accept()
            with connection, suppress(OSError):
                connection.recv(1000)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        found = complaint({"healthzPort": listener.getsockname()[1], "healthzBindAddress": "127.0.0.1"})
        thread.join(10)
    assert found.endswith("/healthz does not answer: what it says is not HTTP")


def test_healthz_that_is_switched_off() -> None:
    assert complaint({"healthzPort": 0}) == ""


def test_healthz_on_the_other_loopback_address(server6: HTTPServer) -> None:
    """As of k3s on a node with IPv6 alone, which does not say so."""
    port = server6.server_address[1]
    assert complaint({"healthzPort": port}) == ""
    assert complaint({"healthzPort": port, "healthzBindAddress": "127.0.0.1"}) != ""


@pytest.mark.parametrize("address", ["::1", "::"])
def test_healthz_at_an_address_of_ipv6(server6: HTTPServer, address: str) -> None:
    port = server6.server_address[1]
    assert complaint({"healthzPort": port, "healthzBindAddress": address}) == ""
    server6.RequestHandlerClass = type("Mine", (Handler,), {"answer": (500, b"no")})
    expected = "http://[::1]:%d/healthz says 500 no" % port
    assert complaint({"healthzPort": port, "healthzBindAddress": address}) == expected


def test_healthz_at_an_address_in_brackets(server6: HTTPServer) -> None:
    """The kubelet puts it into brackets itself, and cannot listen there; see net.JoinHostPort."""
    port = server6.server_address[1]
    assert complaint({"healthzPort": port, "healthzBindAddress": "[::1]"}) == (
        "healthzBindAddress: the kubelet cannot listen at '[::1]'; write it without brackets"
    )


@pytest.mark.parametrize(
    ("values", "urls"),
    [
        ({}, ["http://127.0.0.1:10248/healthz", "http://[::1]:10248/healthz"]),
        ({"healthzBindAddress": "fe80::1", "healthzPort": 7}, ["http://[fe80::1]:7/healthz"]),
        ({"healthzBindAddress": "10.0.0.1"}, ["http://10.0.0.1:10248/healthz"]),
        ({"healthzPort": 0}, []),
    ],
)
def test_where_it_answers(values: dict[str, Any], urls: list[str]) -> None:
    assert healthz_urls(KubeletConfiguration("", values, "config.yaml")) == urls


def test_the_default_port_of_healthz(monkeypatch: pytest.MonkeyPatch, server: HTTPServer) -> None:
    monkeypatch.setitem(COMMON_DEFAULTS, "healthzPort", server.server_address[1])
    assert complaint({}) == complaint({"healthzPort": None}) == ""
