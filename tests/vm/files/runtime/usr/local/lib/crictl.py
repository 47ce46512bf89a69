# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of crictl that the collection uses, as Debian does not have crictl: it asks the runtime, through CRI.

crictl [--runtime-endpoint SOCKET] ps -o json
crictl [--runtime-endpoint SOCKET] update --cpuset-cpus CPUS CONTAINER

Made of the standard library alone: to import a library for gRPC costs an emulated machine seconds, each time.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import sys
from typing import BinaryIO, Iterator

ENDPOINT = "unix:///run/containerd/containerd.sock"
# Seconds.
PATIENCE = 60
RUNNING = 1

# HTTP/2: RFC 9113. Kinds of frames, and their flags.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GO_AWAY = 0, 1, 3, 4, 6, 7
ACK = END_STREAM = 1
END_HEADERS = 4

# Kinds of fields in protobuf's wire format; the fields' numbers are those of k8s.io/cri-api's api.proto.
VARINT, LENGTH = 0, 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="crictl", description=__doc__)
    parser.add_argument("--runtime-endpoint", default=ENDPOINT)
    commands = parser.add_subparsers(required=True)
    ps = commands.add_parser("ps")
    ps.add_argument("-o", "--output", choices=["json"], required=True)
    ps.set_defaults(command=list_containers)
    update = commands.add_parser("update")
    update.add_argument("--cpuset-cpus", required=True)
    update.add_argument("container")
    update.set_defaults(command=update_container)
    options = parser.parse_args()
    options.command(options)


def list_containers(options: argparse.Namespace) -> None:
    running = message((2, message((1, RUNNING))))
    answer = ask(options, "ListContainers", message((1, running)))
    print(json.dumps({"containers": [container(value) for _number, value in fields(answer)]}, indent=2))


def container(data: bytes) -> dict[str, object]:
    found = list(fields(data))
    first = dict(reversed(found))
    return {
        "id": first[1].decode(),
        "podSandboxId": first[2].decode(),
        "metadata": {"name": dict(fields(first[3]))[1].decode()},
        "state": "CONTAINER_RUNNING",
        "labels": dict(pair(value) for number, value in found if number == 8),
    }


def pair(data: bytes) -> tuple[str, str]:
    entry = dict(fields(data))
    return entry.get(1, b"").decode(), entry.get(2, b"").decode()


def update_container(options: argparse.Namespace) -> None:
    resources = message((6, options.cpuset_cpus.encode()))
    ask(options, "UpdateContainerResources", message((1, options.container.encode()), (2, resources)))
    print(options.container)


def ask(options: argparse.Namespace, method: str, request: bytes) -> bytes:
    """The answer to a call of gRPC. Ends the program if there is none."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/runtime.v1.RuntimeService/" + method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    # Each as a literal, which is never put into a table.
    block = b"".join(b"\0" + b"".join(bytes([len(part)]) + part.encode() for part in pair) for pair in headers.items())
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        try:
            connection.connect(options.runtime_endpoint.replace("unix://", ""))
            connection.sendall(PREFACE + frame(SETTINGS, 0, 0, b"") + frame(HEADERS, END_HEADERS, 1, block))
            connection.sendall(frame(DATA, END_STREAM, 1, struct.pack(">BI", 0, len(request)) + request))
            with connection.makefile("rb") as stream:
                answer = b"".join(received(connection, stream))
        except OSError as error:
            sys.exit("crictl: %s: %s" % (options.runtime_endpoint, error))
    if not answer:
        # Why is in a compressed header.
        sys.exit("crictl: %s: the runtime refuses it" % method)
    return answer[struct.calcsize(">BI") :]


def received(connection: socket.socket, stream: BinaryIO) -> Iterator[bytes]:
    """The data of the answer, until it ends."""
    while True:
        high, low, kind, flags, number = struct.unpack(">BHBBI", stream.read(9))
        payload = stream.read(high << 16 | low)
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind == DATA:
            yield payload
        if kind in (RESET, GO_AWAY) or (number and flags & END_STREAM and kind in (DATA, HEADERS)):
            return


def frame(kind: int, flags: int, number: int, payload: bytes) -> bytes:
    return struct.pack(">BHBBI", 0, len(payload), kind, flags, number) + payload


def message(*members: tuple[int, int | bytes]) -> bytes:
    return b"".join(
        varint(number << 3 | VARINT) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | LENGTH) + varint(len(value)) + value
        for number, value in members
    )


def varint(number: int) -> bytes:
    more, least = number >> 7, number & 0x7F
    return bytes([least | 0x80]) + varint(more) if more else bytes([least])


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The texts and messages in a message; numbers are left out."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, at = read_varint(data, at)
        if key & 7 == LENGTH:
            yield key >> 3, data[at : at + number]
            at += number


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


if __name__ == "__main__":
    main()
