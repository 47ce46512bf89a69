# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the programs are built: only what is complete counts, and where they cannot be had it is said."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.faults.child import Child
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import KUBERNETES, lacking, need
from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from . import debian
from .binaries import CONTROL_PLANE, KUBELET, RUNTIME, binaries, completed
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
    monkeypatch.delenv("KUBERNETES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "trixie"})
    with pytest.raises(UnavailableError, match="this machine runs trixie, not Debian bookworm"):
        binaries(KUBELET)
    (place,) = (tmp_path / "kubenode-cpu-manager" / ("kubernetes-" + kubernetes.BUILT)).iterdir()
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
    assert kubernetes.version_of(kubelet) == kubernetes.version()


def give(directory: Path, monkeypatch: pytest.MonkeyPatch, version: str, *names: str) -> None:
    """Have programs that say that they are of this version."""
    directory.mkdir()
    for name in names:
        (directory / name).write_text("#!/bin/sh\necho Kubernetes v%s\n" % version, encoding="ascii")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("KUBERNETES", str(directory))
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory.parent / "cache"))


def test_programs_that_are_given_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(tmp_path / "given", monkeypatch, "1.36.3", *KUBELET, *RUNTIME, "crun")
    found = binaries(KUBELET + RUNTIME)
    names = {path.name: path.resolve().parent for path in found.iterdir()}
    assert names == dict.fromkeys(("kubelet", "containerd", "crun"), tmp_path / "given")
    assert kubernetes.version() == kubernetes.version_of(found / "kubelet") == "1.36.3"
    assert binaries(KUBELET + RUNTIME) == found


def test_no_two_versions_of_kubernetes_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(tmp_path / "given", monkeypatch, "1.36.3", "kube-apiserver", "etcd")
    with pytest.raises(UnavailableError, match=r"has no kube-controller-manager, kube-scheduler, kubectl$"):
        binaries(CONTROL_PLANE)


def test_a_directory_that_tests_mount_over_cannot_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES", "/opt/kubernetes")
    with pytest.raises(UnavailableError, match="KUBERNETES=/opt/kubernetes: tests mount over /opt"):
        binaries(KUBELET)


@pytest.mark.parametrize(
    ("version", "flags", "api", "fields"),
    [
        ("1.20.2", ["--port=0"], "policy/v1beta1", {}),
        ("1.29.0", [], "policy/v1", {}),
        ("1.36.3", [], "policy/v1", {"failCgroupV1": False}),
        ("1.37.0-rc.1", [], "policy/v1", {"failCgroupV1": False}),
    ],
)
def test_each_version_gets_what_it_knows(version: str, flags: list[str], api: str, fields: dict[str, bool]) -> None:
    assert kubernetes.flags("kube-scheduler", version) == flags
    assert kubernetes.api("PodDisruptionBudget", version) == api
    assert kubernetes.fields(version) == fields
    assert bool(kubernetes.flags("kubelet", version)) == bool(flags)


def test_tests_of_one_version_are_skipped_with_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(tmp_path / "given", monkeypatch, "1.36.3", *KUBELET)
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-rs", "-p", "no:cacheprovider", "-k", "takes_sockets"]
    file = str(Path(__file__).with_name("test_real_kubelet.py"))
    done = subprocess.run([*command, file], stdout=subprocess.PIPE, text=True, check=False)
    assert "about Kubernetes %s, not 1.36.3" % kubernetes.BUILT in done.stdout, done.stdout


def test_only_the_table_and_tests_of_that_version_name_it() -> None:
    """Beside this file, in all that runs Kubernetes."""
    tests = Path(__file__).parents[1]
    files = [path for name in ("cluster", "scenarios", "vm", "bench") for path in (tests / name).rglob("*")]
    named = [
        "%s: %s" % (path.relative_to(tests), line)
        for path in files
        if path.suffix in (".py", ".yml", "") and path.is_file() and path != Path(__file__)
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if re.search(r"(?<![0-9.])1\.20(?![0-9])", line)
    ]
    assert named == []
