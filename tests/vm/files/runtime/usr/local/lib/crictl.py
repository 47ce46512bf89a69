# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The part of crictl that the collection uses, as Debian does not have crictl: it asks the runtime, through CRI.

crictl [--runtime-endpoint SOCKET] ps -o json
crictl [--runtime-endpoint SOCKET] pods -o json
crictl [--runtime-endpoint SOCKET] inspect -o json CONTAINER
crictl [--runtime-endpoint SOCKET] update --cpuset-cpus CPUS CONTAINER

Made of the standard library alone: to import a library for gRPC costs an emulated machine seconds, each time.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import sys
import time
from typing import BinaryIO, Iterator

ENDPOINT = "unix:///run/containerd/containerd.sock"
# Seconds.
PATIENCE = 60
RUNNING = 1
SANDBOX_STATES = ("SANDBOX_READY", "SANDBOX_NOTREADY")
CONTAINER_STATES = ("CONTAINER_CREATED", "CONTAINER_RUNNING", "CONTAINER_EXITED", "CONTAINER_UNKNOWN")

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
    as_json = argparse.ArgumentParser(add_help=False)
    as_json.add_argument("-o", "--output", choices=["json"], required=True)
    commands.add_parser("ps", parents=[as_json]).set_defaults(command=list_containers)
    commands.add_parser("pods", parents=[as_json]).set_defaults(command=list_pods)
    inspect = commands.add_parser("inspect", parents=[as_json])
    inspect.add_argument("container")
    inspect.set_defaults(command=inspect_container)
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
        "labels": pairs(data, 8),
    }


def list_pods(options: argparse.Namespace) -> None:
    answer = ask(options, "ListPodSandbox", b"")
    print(json.dumps({"items": [sandbox(value) for _number, value in fields(answer)]}, indent=2))


def sandbox(data: bytes) -> dict[str, object]:
    texts, numbers = dict(fields(data)), dict(integers(data))
    metadata = texts[2]
    names = {key: text.decode() for key, text in fields(metadata)}
    return {
        "id": texts[1].decode(),
        "metadata": {
            "name": names.get(1, ""),
            "uid": names.get(2, ""),
            "namespace": names.get(3, ""),
            "attempt": dict(integers(metadata)).get(4, 0),
        },
        "state": SANDBOX_STATES[numbers.get(3, 0)],
        # As JSON has numbers of 64 bits in protobuf.
        "createdAt": str(numbers.get(4, 0)),
        "labels": pairs(data, 5),
        "annotations": pairs(data, 6),
        "runtimeHandler": texts.get(7, b"").decode(),
    }


def inspect_container(options: argparse.Namespace) -> None:
    verbose = 1
    answer = ask(options, "ContainerStatus", message((1, options.container.encode()), (2, verbose)))
    # What the runtime adds is JSON in texts, which crictl shows as a part of its own.
    more = {key: json.loads(text) for key, text in pairs(answer, 2).items()}
    print(json.dumps({"status": container_status(dict(fields(answer))[1]), **more}, indent=2))


def container_status(data: bytes) -> dict[str, object]:
    texts, numbers = dict(fields(data)), dict(integers(data))
    return {
        "id": texts[1].decode(),
        "metadata": {
            "name": dict(fields(texts[2])).get(1, b"").decode(),
            "attempt": dict(integers(texts[2])).get(2, 0),
        },
        "state": CONTAINER_STATES[numbers.get(3, 0)],
        "createdAt": moment(numbers.get(4, 0)),
        "startedAt": moment(numbers.get(5, 0)),
        "labels": pairs(data, 12),
        "annotations": pairs(data, 13),
        "logPath": texts.get(15, b"").decode(),
    }


def moment(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1000000000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%09dZ" % rest


def pairs(data: bytes, number: int) -> dict[str, str]:
    """Return a field that is a map of texts."""
    return dict(pair(value) for key, value in fields(data) if key == number)


def pair(data: bytes) -> tuple[str, str]:
    entry = dict(fields(data))
    return entry.get(1, b"").decode(), entry.get(2, b"").decode()


def update_container(options: argparse.Namespace) -> None:
    resources = message((6, options.cpuset_cpus.encode()))
    ask(options, "UpdateContainerResources", message((1, options.container.encode()), (2, resources)))
    print(options.container)


def ask(options: argparse.Namespace, method: str, request: bytes) -> bytes:
    """Return the answer to a call of gRPC. Ends the program if there is none."""
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
    """Yield the data of the answer, until it ends."""
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
    """Return the texts and messages in a message."""
    return ((number, value) for number, value in members(data) if isinstance(value, bytes))


def integers(data: bytes) -> Iterator[tuple[int, int]]:
    """Return the numbers in a message, and enumerations and truth values as numbers; one that is 0 is not in it."""
    return ((number, value) for number, value in members(data) if isinstance(value, int))


def members(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if key & 7 == LENGTH:
            yield key >> 3, data[at : at + value]
            at += value
        else:
            yield key >> 3, value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


if __name__ == "__main__":
    main()
