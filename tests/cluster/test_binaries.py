# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the programs are built: only what is complete counts, and where they cannot be had it is said."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.faults.child import Child
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import KUBERNETES, lacking, need

from . import debian
from .binaries import KUBELET, binaries, completed
from .debian import Archive, UnavailableError


def test_a_file_counts_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep/file"

    def killed_at_work() -> None:
        with completed(path) as part:
            part.write_text("half", encoding="ascii")
            os.kill(os.getpid(), signal.SIGKILL)

    assert Child(killed_at_work).wait() == signal.SIGKILL
    assert not path.exists()
    with completed(path) as part:
        assert not part.exists()
        part.write_text("whole", encoding="ascii")
    assert path.read_text(encoding="ascii") == "whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_counts_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "directory"

    def fail() -> None:
        with completed(path) as part:
            part.mkdir()
            (part / "half").write_bytes(bytes(2))
            raise OSError("No space")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert not path.exists()
    with completed(path) as part:
        part.mkdir()
    assert list(path.iterdir()) == []


def test_what_is_there_needs_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "trixie"})
    with pytest.raises(UnavailableError, match="this machine runs trixie, not Debian bookworm"):
        binaries(KUBELET)
    (place,) = (tmp_path / "kubenode-cpu-manager/kubernetes-1.20.2").iterdir()
    (place / "bin").mkdir(exist_ok=True)
    (place / "bin/kubelet").touch()
    assert binaries(KUBELET) == place / "bin"


def test_an_archive_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("apt-get")
    monkeypatch.setattr(debian, "_sources", lambda codename: ["deb file:%s %s main" % (tmp_path, codename)])
    with pytest.raises(UnavailableError, match="apt-get update: "):
        Archive("bookworm", tmp_path / "apt")


def test_the_kubelet_runs() -> None:
    try:
        kubelet = binaries(KUBELET) / "kubelet"
    except UnavailableError as error:
        lacking(KUBERNETES, "no kubelet: %s" % error)
    assert subprocess.run([kubelet, "--version"], stdout=subprocess.PIPE, check=True).stdout == b"Kubernetes v1.20.2\n"
