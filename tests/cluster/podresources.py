# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet answers on its socket of pod resources. Source: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto."""

from __future__ import annotations

import importlib.util
import socket
import struct
import tempfile
from pathlib import Path
from typing import Any, Iterator

_CRICTL = Path(__file__).parents[1] / "vm/files/runtime/usr/local/lib/crictl.py"
_SOCKET = "var/lib/kubelet/pod-resources/kubelet.sock"
# Seconds.
_PATIENCE = 30.0


def _wire() -> Any:
    """Return the client of the virtual machines, which knows HTTP/2 and protobuf."""
    spec = importlib.util.spec_from_file_location("crictl", _CRICTL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wire = _wire()


def exclusive_cpus(root: Path, namespace: str) -> dict[tuple[str, str], set[int]]:
    """Return {(pod, container): its CPUs} of a namespace, of a kubelet whose files are below `root`."""
    found = {}
    for _number, pod in wire.fields(_ask(root, "List")):
        members = list(wire.fields(pod))
        names = {number: value.decode() for number, value in members if number in (1, 2)}
        for number, container in members:
            if number == 3 and names[2] == namespace:
                found[names[1], dict(wire.fields(container))[1].decode()] = set(_numbers(container, 3))
    return found


def allocatable_cpus(root: Path) -> set[int]:
    """Return the CPUs that containers can have."""
    return set(_numbers(_ask(root, "GetAllocatableResources"), 2))


def _numbers(message: bytes, field: int) -> Iterator[int]:
    """Yield a repeated number, packed or not."""
    for number, value in wire.members(message):
        if number == field and isinstance(value, int):
            yield value
        elif number == field:
            at = 0
            while at < len(value):
                cpu, at = wire.read_varint(value, at)
                yield cpu


def _ask(root: Path, method: str) -> bytes:
    """Return the answer to an empty request. Fails where there is none."""
    headers = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/v1.PodResourcesLister/" + method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    block = b"".join(b"\0" + b"".join(bytes([len(part)]) + part.encode() for part in pair) for pair in headers.items())
    begin = wire.PREFACE + wire.frame(wire.SETTINGS, 0, 0, b"")
    request = wire.frame(wire.HEADERS, wire.END_HEADERS, 1, block)
    request += wire.frame(wire.DATA, wire.END_STREAM, 1, struct.pack(">BI", 0, 0))
    # The path of a socket cannot be long.
    with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as connection:
        Path(short, "s").symlink_to(root / _SOCKET)
        connection.settimeout(_PATIENCE)
        connection.connect(short + "/s")
        connection.sendall(begin + request)
        with connection.makefile("rb") as stream:
            answer = b"".join(wire.received(connection, stream))
    assert len(answer) >= struct.calcsize(">BI"), "%s is refused" % method
    return answer[struct.calcsize(">BI") :]
