# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ports that servers of tests get."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from . import ports
from .ports import LOOPBACK, take_ports


def test_no_client_gets_one() -> None:
    first, last = map(int, ports._EPHEMERAL.read_text(encoding="ascii").split())
    if len(range(first, last)) >= len(ports._PORTS):
        pytest.skip("clients may have any port here")
    taken = take_ports(50)
    assert len(set(taken)) == 50
    assert not [port for port in taken if first <= port <= last]


def test_each_is_taken_once_and_by_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = take_ports(1)
    with socket.create_server((LOOPBACK, port)):
        pass
    monkeypatch.setattr(ports, "_PORTS", range(port, port + 1))
    with pytest.raises(IndexError):
        take_ports(1)
    program = "import sys; sys.path.insert(0, %r); import ports; print(ports._take(%d))"
    command = [sys.executable, "-c", program % (str(Path(ports.__file__).parent), port)]
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout == "False\n"


def test_one_that_somebody_listens_on(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = take_ports(1)
    monkeypatch.setattr(ports, "_take", lambda _port: True)
    monkeypatch.setattr(ports, "_PORTS", range(port, port + 1))
    with socket.create_server((LOOPBACK, port)), pytest.raises(IndexError):
        take_ports(1)
    assert take_ports(1) == [port]
