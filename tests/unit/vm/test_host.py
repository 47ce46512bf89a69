# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/vm/host.py."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.vm import host

# A program that lets apt-get or QEMU answer.
PROGRAM = "#!/bin/sh\necho %s\nexit %d\n"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this machine look like a Linux on x86-64 on which root works, with only what the test puts on the PATH."""
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **_path: real(name, path=str(tmp_path)))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(host, "CACHE", tmp_path)


def put(directory: Path, name: str, says: str = "", status: int = 0) -> None:
    path = directory / name
    path.write_text(PROGRAM % (says, status), encoding="utf-8")
    path.chmod(0o755)


def put_all_but(directory: Path, *missing: str) -> None:
    for name in set(host.PROGRAMS) - set(missing):
        put(directory, name)


def test_nothing_is_missing(tmp_path: Path) -> None:
    put_all_but(tmp_path)
    put(tmp_path, "apt-get", "must not run", 1)
    host.prepare()


def test_what_is_missing_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all_but(tmp_path, "mmdebstrap", "lz4")
    put(tmp_path, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(host.NoMachinesError) as error:
        host.prepare()
    assert str(error.value) == (
        "machines need Debian packages, and only root can install them: "
        "apt-get install --no-install-recommends mmdebstrap lz4"
    )


def test_without_apt(tmp_path: Path) -> None:
    put_all_but(tmp_path, "lz4")
    with pytest.raises(host.NoMachinesError, match="the Debian packages lz4, and there is no apt-get"):
        host.prepare()


def test_apt_fails(tmp_path: Path) -> None:
    put_all_but(tmp_path, "lz4")
    put(tmp_path, "apt-get", "E: Unable to locate package lz4", 100)
    with pytest.raises(host.NoMachinesError, match="fails: E: Unable to locate package lz4"):
        host.prepare()


def test_apt_brings_something_else(tmp_path: Path) -> None:
    put_all_but(tmp_path, "lz4")
    put(tmp_path, "apt-get")
    with pytest.raises(host.NoMachinesError, match="did not bring lz4"):
        host.prepare()


def test_another_kind_of_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(host.NoMachinesError, match="on Linux on x86-64 alone"):
        host.prepare()


@pytest.mark.parametrize(("status", "works"), [(0, True), (1, False)])
def test_kvm_is_tried_once_after_each_boot(
    status: int, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_arguments: True)
    (tmp_path / "kvm-of-an-earlier-boot").touch()
    put(tmp_path, host.QEMU, status=status)
    assert host.has_kvm(Path("kernel"), Path("initrd")) == works
    put(tmp_path, host.QEMU, status=1 - status)
    assert host.has_kvm(Path("kernel"), Path("initrd")) == works
    assert len(list(tmp_path.glob("kvm-*"))) == 1


def test_no_kvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_arguments: False)
    assert not host.has_kvm(Path("kernel"), Path("initrd"))
