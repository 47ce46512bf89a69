# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes and etcd from Debian bookworm, built once and kept in the user's cache.

Debian has etcd as a package, and of Kubernetes the whole source with all that it needs, which Debian's Go compiles in
minutes. Newer releases have newer versions of containerd, which run here, too. A build that is killed leaves nothing
that counts, and the next one goes on from what is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Iterator, NamedTuple, Sequence

from ansible_collections.kubenode.cpu_manager.tests.support import kubernetes

from .debian import Archive, UnavailableError

KUBELET = ("kubelet",)
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
RUNTIME = ("containerd",)
ALL = KUBELET + CONTROL_PLANE + RUNTIME

# All that decides what is compiled: another recipe has another place in the cache.
VERSION = kubernetes.BUILT
SUITE = "bookworm"
COMPILER = ("golang-1.19-go", "golang-1.19-src")
GOROOT = "usr/lib/go-1.19"


class Packaged(NamedTuple):
    """A program that Debian compiles. newer: the release of its package, where that is not SUITE."""

    package: str
    path: str
    newer: str = ""


PACKAGED = {
    "etcd": Packaged("etcd-server", "usr/bin/etcd"),
    "containerd": Packaged("containerd", "usr/bin/containerd"),
    "containerd-1.7": Packaged("containerd", "usr/bin/containerd", "trixie"),
    "containerd-2": Packaged("containerd", "usr/bin/containerd", "forky"),
}
NEWER_RUNTIMES = [name for name, packaged in PACKAGED.items() if packaged.newer]

_KUBERNETES = "k8s.io/kubernetes"
_OPENAPI = "pkg/generated/openapi"
# Where programs look their version up, and what they find there.
_VERSIONS = [
    "-X %s/vendor/k8s.io/%s/version.%s=%s" % (_KUBERNETES, package, name, value)
    for package in ("component-base", "client-go/pkg")
    for name, value in (("gitVersion", "v" + VERSION), ("gitMajor", "1"), ("gitMinor", VERSION.split(".")[1]))
]
# Neither cloud providers nor dockershim, and no symbols.
FLAGS = ("-trimpath", "-tags", "providerless,dockerless", "-ldflags", " ".join(["-s", "-w", *_VERSIONS]))


def binaries(names: Sequence[str] = ALL) -> Path:
    """Return the directory with these programs; those that are not there are built.

    Of KUBERNETES=DIR, where that is given, come all of Kubernetes' own, so that no two versions meet, and of the others
    those that are there. Raises UnavailableError where Debian's archive cannot be had, or DIR lacks one of them,
    CalledProcessError where the compiler fails.
    """
    given = kubernetes.given()
    if given:
        return _with_given(given, names)
    return _built(names)


def _with_given(given: Path, names: Sequence[str]) -> Path:
    """Return a directory with the programs of `given`, and with those of the cache that it lacks."""
    for mounted in ("/etc", "/opt", "/run", "/var/lib"):
        if given.is_relative_to(mounted):
            raise UnavailableError("KUBERNETES=%s: tests mount over %s; give another directory" % (given, mounted))
    absent = [name for name in names if not (given / name).exists()]
    lacked = [name for name in absent if name not in PACKAGED]
    if lacked:
        raise UnavailableError("KUBERNETES=%s has no %s" % (given, ", ".join(lacked)))
    cache = _built(absent) if absent else None
    programs = {name: (given if name not in absent else cache or given) / name for name in names}
    # Such as runc and crun, which nobody asks for by name.
    programs.update((path.name, path) for path in given.iterdir() if path.is_file() and os.access(path, os.X_OK))
    key = hashlib.sha256(json.dumps(sorted((name, str(path)) for name, path in programs.items())).encode()).hexdigest()
    directory = _cache() / "given" / key[:12]
    directory.mkdir(parents=True, exist_ok=True)
    for name, path in programs.items():
        if not (directory / name).is_symlink():
            with suppress(FileExistsError):  # another process was first
                (directory / name).symlink_to(path)
    return directory


def _built(names: Sequence[str]) -> Path:
    """Return the cache's directory with these programs; those that are not there are built."""
    cache = _Cache(_place())
    if cache.missing(names):
        with cache.lock():
            cache.build(cache.missing(names))
    return cache.programs


def _place() -> Path:
    recipe = hashlib.sha256(json.dumps([VERSION, SUITE, COMPILER, FLAGS]).encode("ascii")).hexdigest()
    return _cache() / ("kubernetes-" + VERSION) / recipe[:12]


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubenode-cpu-manager"


class _Cache:
    """What one recipe made. Whatever has its own name there is complete."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.programs = directory / "bin"
        # Only until all is compiled.
        self.work = directory / "work"
        self.compiler = self.work / "compiler"
        self.source = self.work / "go/src" / _KUBERNETES

    def missing(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if not (self.programs / name).exists()]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let one build here at a time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / "lock", "w", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def build(self, names: Sequence[str]) -> None:
        """Get those programs that Debian compiles, and compile the others."""
        packaged = [name for name in names if name in PACKAGED]
        compiled = [name for name in names if name not in PACKAGED]
        for left in self.directory.glob("tmp*"):  # of a build that was killed
            shutil.rmtree(left)
        needs_source = compiled and not (self.compiler.exists() and self.source.exists())
        self.programs.mkdir(exist_ok=True)
        for newer in {PACKAGED[name].newer for name in packaged} | ({""} if needs_source else set()):
            with TemporaryDirectory(dir=self.directory) as directory:
                archive = Archive(SUITE, Path(directory, "apt"), newer)
                of_it = [name for name in packaged if PACKAGED[name].newer == newer]
                self._get(archive, of_it, Path(directory, "packages"))
                if needs_source and not newer:
                    self._unpack(archive)
        if compiled:
            self._compile(compiled)
        if not [name for name in self.missing(ALL) if name not in PACKAGED]:
            shutil.rmtree(self.work, ignore_errors=True)

    def _get(self, archive: Archive, names: Sequence[str], directory: Path) -> None:
        """Get programs that Debian compiles."""
        if names:
            archive.unpack([PACKAGED[name].package for name in names], directory)
        for name in names:
            (directory / PACKAGED[name].path).replace(self.programs / name)

    def _unpack(self, archive: Archive) -> None:
        """Get the source and its compiler."""
        _tell("Getting Debian's source of Kubernetes %s and a compiler for it" % VERSION)
        shutil.rmtree(self.work, ignore_errors=True)
        with completed(self.compiler) as path:
            archive.unpack(COMPILER, path)
        with completed(self.source) as path:
            archive.unpack_source("kubernetes", path)

    def _compile(self, names: Sequence[str]) -> None:
        """Compile programs of Kubernetes, all in one go: they share most of their packages."""
        _tell("Compiling %s, which takes minutes" % ", ".join(names))
        if set(names) - set(KUBELET):
            self._generate()
        with TemporaryDirectory(dir=self.work) as directory:
            self._go_build(directory, ["./cmd/" + name for name in names], FLAGS)
            for name in names:
                Path(directory, name).replace(self.programs / name)

    def _generate(self) -> None:
        """Write the code that describes the types of the API, the one such file that the source comes without."""
        target = self.source / _OPENAPI / "zz_generated.openapi.go"
        if target.exists():
            return
        package = _KUBERNETES + "/" + _OPENAPI
        with TemporaryDirectory(dir=self.work) as directory:
            self._go_build(directory, ["./vendor/k8s.io/kube-openapi/cmd/openapi-gen"])
            options = {
                "input-dirs": ",".join(self._described_packages()),
                "output-base": directory,
                "output-package": package,
                "output-file-base": target.stem,
                "go-header-file": "hack/boilerplate/boilerplate.go.txt",
                "report-filename": os.devnull,
            }
            self._run([directory + "/openapi-gen", *("--%s=%s" % option for option in options.items())])
            Path(directory, package, target.name).replace(target)

    def _described_packages(self) -> list[str]:
        """Return the packages whose types say that they want to be described."""
        found = set()
        for top in ("cmd", "pkg", "plugin", "staging"):
            for file in (self.source / top).rglob("*.go"):
                place = file.parent.relative_to(self.source).as_posix()
                of_others = "/testdata/" in place or "/code-generator/" in place or "/sample-apiserver/" in place
                if not of_others and b"\n// +k8s:openapi-gen=" in file.read_bytes():
                    found.add(_KUBERNETES + "/" + place.replace("staging/src/", "vendor/"))
        return sorted(found)

    def _go_build(self, directory: str, packages: Sequence[str], flags: Sequence[str] = ()) -> None:
        self._run([str(self.compiler / GOROOT / "bin/go"), "build", *flags, "-o", directory, *packages])

    def _run(self, command: Sequence[str]) -> None:
        go = {
            "GOROOT": str(self.compiler / GOROOT),
            "GOPATH": str(self.work / "go"),
            "GOCACHE": str(self.work / "objects"),
            "GO111MODULE": "off",
            "GOENV": "off",
            "GOFLAGS": "",
            "CGO_ENABLED": "0",
        }
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, cwd=self.source, env={**os.environ, **go})


@contextmanager
def completed(path: Path) -> Iterator[Path]:
    """Yield a name for what becomes `path` when it is complete."""
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in (part, path):
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    yield part
    part.replace(path)


def _tell(text: str) -> None:
    print(text + " ...", file=sys.stderr, flush=True)
