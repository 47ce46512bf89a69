# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A kubelet's file in a directory of its own, the ways to change it, and calls that fail."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Callable, NoReturn

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import remove_file, replace_file

OLD, NEW = b"cpuManagerPolicy: none\n", b"cpuManagerPolicy: static\n"

STAMP = "20261121T221530Z"
NOW = time.strptime(STAMP, "%Y%m%dT%H%M%SZ")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners and mount file systems")


@pytest.fixture(autouse=True)
def fixed_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "gmtime", lambda: NOW)


@pytest.fixture(name="directory")
def new_directory(tmp_path: Path) -> Path:
    directory = tmp_path / "kubelet"
    directory.mkdir()
    return directory


@pytest.fixture(name="path")
def old_file(directory: Path) -> Path:
    path = directory / "config.yaml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


Change = Callable[[Path], Any]

CHANGES: list[Change] = [
    lambda path: replace_file(str(path), NEW, 0o600, OLD),
    lambda path: remove_file(str(path), OLD),
]


def failing(number: int) -> Callable[..., NoReturn]:
    def fail(*_arguments: object, **_options: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    return fail
