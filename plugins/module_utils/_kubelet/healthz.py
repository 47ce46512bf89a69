# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask a kubelet at /healthz whether it is well, within a time that its answer cannot make longer."""

from __future__ import annotations

import re
import socket
import time

# Bytes of an answer that are read at most, and of its body those that are shown.
_MOST_READ, _MOST_SHOWN = 1 << 14, 200

_STATUS = re.compile(rb"HTTP/1\.[0-9] ([0-9]{3})\b")


def healthz_url(address: str, port: int) -> str:
    return "http://%s:%d/healthz" % ("[%s]" % address if ":" in address else address, port)


def complaint_of(address: str, port: int, deadline: float) -> str:
    """Return what is wrong with the answer; empty where it is well. deadline: the monotonic clock's, for the whole
    of it."""
    url = healthz_url(address, port)
    try:
        answer = _ask(address, port, deadline)
    except OSError as error:
        return "%s does not answer: %s" % (url, error)
    head, _end, body = answer.partition(b"\r\n\r\n")
    status = _STATUS.match(head)
    if status is None:
        return "%s does not answer: what it says is not HTTP" % url
    code, text = int(status.group(1)), body[:_MOST_SHOWN].decode("utf-8", "replace").strip()
    return "" if code == 200 else "%s says %d %s" % (url, code, text)


def _ask(address: str, port: int, deadline: float) -> bytes:
    """Return the beginning of the answer at /healthz. Raises OSError.

    By a socket, as the standard library's client waits anew for each byte: a server could keep it for ever.
    """
    answer = b""
    with socket.create_connection((address, port), _left(deadline)) as connection:
        # A server of HTTP/1.0 ends the connection with its answer.
        connection.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        while len(answer) < _MOST_READ:
            connection.settimeout(_left(deadline))
            received = connection.recv(_MOST_READ)
            answer += received
            if not received:
                break
    return answer


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise socket.timeout("timed out")
    return left
