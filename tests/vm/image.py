# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes images: a root file system, a kernel and an initrd, from Debian packages. Each once: the cache keeps them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError

from . import container, cpio
from .host import CACHE, NoMachinesError
from .recipes import FILES, Recipe, read_recipes

INIT = Path(__file__).resolve().with_name("init.sh")

KERNEL_PACKAGE = "linux-image-cloud-amd64"
# What the initrd loads, with what these need.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "virtio_net")

# Documentation and translations: as much again as the rest.
_LEFT_OUT = ("doc", "info", "locale", "man")


class ImageError(Exception):
    """An image cannot be made, though all that it needs seemed to be there."""


class Image(NamedTuple):
    """An image that has been made."""

    directory: Path
    # Of what it is made of.
    digest: str

    @property
    def kernel(self) -> Path:
        return self.directory / "vmlinux"

    @property
    def initrd(self) -> Path:
        return self.directory / "initrd"

    @property
    def root(self) -> Path:
        return self.directory / "root.ext4"


def make(name: str) -> Image:
    """Return the image of this name, made if it is not there. Raises NoMachinesError or ImageError if it cannot be
    made."""
    recipes = read_recipes()
    if name not in recipes:
        raise InputError("there is no image %s; images.yml has %s" % (name, ", ".join(recipes)))
    recipe = recipes[name]
    sources = _package_sources()
    keys()
    digest = _digest(recipe, sources)
    image = Image(CACHE / "images" / ("%s-%s" % (name, digest)), digest)
    with locked("images"):
        if not image.directory.exists():
            if os.geteuid():
                raise NoMachinesError("only root can make the image %s: run `python tests/vm image` as root" % name)
            _remove_others(image)
            start = time.monotonic()
            print("Making the image %s, once ..." % name, file=sys.stderr, flush=True)
            _make(recipe, sources, image)
            print("Made in %.0f s: %s" % (time.monotonic() - start, image.directory), file=sys.stderr, flush=True)
    return image


def keys() -> tuple[Path, Path]:
    """Return the key that root of each machine lets in, and the one that each machine shows. Made if they are not
    there."""
    directory = CACHE / "keys"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked("keys"):
        for name in ("user", "machine"):
            if not (directory / name).exists():
                _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "kubenode-test", "-f", directory / name)
    return directory / "user", directory / "machine"


# --- what an image depends on -------------------------------------------------------------------------


def _package_sources() -> str:
    """Return where this host's apt has Debian packages from, as a sources.list."""
    if shutil.which("apt-get") is None:
        raise NoMachinesError("images are made of Debian packages, and there is no apt-get here")
    lines = _run(
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN) deb $(REPO_URI) $(RELEASE) main",
        "Created-By: Packages",
        "Component: main",
    )
    found = sorted({line.split(" ", 1)[1] for line in lines.splitlines() if line.startswith("Debian ")})
    if not found:
        raise NoMachinesError("apt on this host has no Debian packages: run apt-get update")
    return "".join(line + "\n" for line in found)


def _digest(recipe: Recipe, sources: str) -> str:
    # The place of a program of Kubernetes is named for what it is built of.
    content = hashlib.sha256(json.dumps([recipe, sources, [str(path) for path in recipe.programs()]]).encode())
    files = [Path(__file__), Path(container.__file__), INIT, *recipe.files()]
    for path in [*files, *(key.with_suffix(".pub") for key in keys())]:
        content.update(path.name.encode() + b"\0" + path.read_bytes())
    return content.hexdigest()[:16]


def _remove_others(image: Image) -> None:
    """Remove images of this name that were made of something else. A machine that still runs on one keeps its open
    files."""
    name = image.directory.name.rpartition("-")[0]
    # Not those of an image whose name begins with this one.
    for old_image in image.directory.parent.glob("%s-%s" % (name, "?" * len(image.digest))):
        shutil.rmtree(old_image, ignore_errors=True)


# --- making -------------------------------------------------------------------------------------------


def _make(recipe: Recipe, sources: str, image: Image) -> None:
    image.directory.parent.mkdir(parents=True, exist_ok=True)
    # Files in memory are made in half the time.
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 4 << 30
    with tempfile.TemporaryDirectory(prefix="kubenode-image-", dir=memory if roomy else None) as stage, _new_directory(
        image.directory
    ) as target:
        root = Path(stage, "root")
        _unpack(_debian(recipe, sources, Path(stage)), root)
        version = _add_kernel(recipe, sources, Path(stage), root, target / "vmlinux")
        (target / "initrd").write_bytes(_initrd(root, version))
        _configure(recipe, root)
        # A journal and checksums protect data, and here is none.
        features = "^has_journal,^metadata_csum,^64bit"
        options = ["-q", "-F", "-m", "0", "-O", features, "-E", "lazy_itable_init=0,nodiscard"]
        _run("mkfs.ext4", *options, "-d", root, target / "root.ext4", recipe.size)


def _debian(recipe: Recipe, sources: str, stage: Path) -> Path:
    """Return a tar file of the packages, which most changes of an image leave as it is."""
    digest = hashlib.sha256(json.dumps([recipe.packages, sources]).encode()).hexdigest()[:16]
    archive = CACHE / "images" / ("debian-%s.tar" % digest)
    if not archive.exists():
        options = ["--quiet", "--mode=root", "--variant=minbase", "--format=tar", "--dpkgopt=force-unsafe-io"]
        options += ['--aptopt=Apt::Install-Recommends "false"', '--aptopt=Acquire::Retries "5"']
        options += ["--include=" + ",".join(recipe.packages)]
        options += ["--dpkgopt=path-exclude=/usr/share/%s/*" % name for name in _LEFT_OUT]
        temporary = stage / "debian.tar"
        # Of bookworm, bookworm-updates and bookworm-security, the release itself.
        release = min((line.split()[2] for line in sources.splitlines()), key=len)
        _run("mmdebstrap", *options, release, temporary, "-", text=sources, temporary=stage)
        for archive_there in archive.parent.glob("debian-*.tar"):
            # Another image's may be younger, and is made again in its time.
            if time.time() - archive_there.stat().st_mtime > 7 * 86400:
                archive_there.unlink()
        shutil.move(temporary, archive.with_suffix(".new"))
        archive.with_suffix(".new").rename(archive)
    return archive


def _unpack(archive: Path, root: Path) -> None:
    root.mkdir()
    # The kernel makes the devices.
    _run("tar", "-C", root, "--numeric-owner", "--exclude=./dev/*", "-xpf", archive)


def _add_kernel(recipe: Recipe, sources: str, stage: Path, root: Path, kernel: Path) -> str:
    """Unpack the kernel, which installed would want an initrd of its own, and the modules; give the version."""
    options = ["-qq", "--option=APT::Sandbox::User=root", "--option=Acquire::Retries=5"]
    if recipe.kernel_release:
        options += _of_release(recipe.kernel_release, sources, stage / "apt")
        _run("apt-get", *options, "update")
    depends = _run("apt-cache", *options, "depends", KERNEL_PACKAGE).splitlines()
    package = next(line.split()[1] for line in depends if line.strip().startswith("Depends: linux-image-"))
    _run("apt-get", *options, "download", package, directory=stage)
    version = package[len("linux-image-") :]
    files = stage / "kernel"
    _run("dpkg-deb", "--extract", next(stage.glob(package + "_*.deb")), files)
    kernel.write_bytes(_uncompressed((files / "boot" / ("vmlinuz-" + version)).read_bytes()))
    # From Debian 13 on they are below /usr.
    modules = next(files.glob("**/lib/modules/" + version))
    for path in (modules / "kernel").rglob("*.ko.xz"):
        # The initrd loads them without a program that unpacks them.
        path.with_suffix("").write_bytes(lzma.decompress(path.read_bytes()))
        path.unlink()
    target = root / "usr" / "lib" / "modules" / version
    for pattern in recipe.modules:
        for path in (modules / "kernel").glob(pattern):
            place = target / path.relative_to(modules)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)
    for path in modules.glob("modules.*"):
        path.rename(target / path.name)
    _run("chroot", root, "depmod", version)
    return version


def _of_release(release: str, sources: str, place: Path) -> list[str]:
    """Return options with which apt has the packages of another release, from where this host has those of its own."""
    for name in ("lists/partial", "cache/archives/partial"):
        (place / name).mkdir(parents=True)
    # Not the servers of updates, which have other releases below other names.
    kind, address, _release, part = min(sources.splitlines(), key=lambda line: len(line.split()[2])).split()
    (place / "sources.list").write_text("%s %s %s %s\n" % (kind, address, release, part), encoding="utf-8")
    own = {
        "Dir::Etc::sourcelist": place / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": place / "lists",
        "Dir::Cache": place / "cache",
    }
    return ["--option=%s=%s" % option for option in own.items()]


# By the first bytes of what they have packed, the programs that unpack kernels.
_UNPACKERS = {b"\x02\x21\x4c\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}


def _uncompressed(image: bytes) -> bytes:
    """Return the kernel in a bzImage: an emulated CPU would take seconds to unpack it."""
    setup_sectors = image[0x1F1] or 4
    offset, length = (int.from_bytes(image[at : at + 4], "little") for at in (0x248, 0x24C))
    start = (setup_sectors + 1) * 512 + offset
    # Behind the compressed data stands the size; lz4 takes it for another block, and says so.
    payload, size = image[start : start + length - 4], int.from_bytes(image[start + length - 4 :][:4], "little")
    unpacker = _UNPACKERS.get(payload[:4], "")
    if unpacker:
        unpacked = subprocess.run([unpacker, "-dc"], check=False, input=payload, capture_output=True).stdout
        if len(unpacked) == size and unpacked.startswith(b"\x7fELF"):
            return unpacked
    raise ImageError("%s: the kernel is packed neither with lz4 nor with zstd, as expected" % KERNEL_PACKAGE)


def _initrd(root: Path, version: str) -> bytes:
    files = {"init": cpio.File(b"#!/bin/busybox sh\n" + INIT.read_bytes(), executable=True)}
    files["bin/busybox"] = cpio.File((root / "usr/bin/busybox").read_bytes(), executable=True)
    order: list[str] = []
    for module in BOOT_MODULES:
        shown = _run("chroot", root, "modprobe", "--show-depends", "--set-version", version, module)
        for line in shown.splitlines():
            action, path = line.split()[:2]
            name = os.path.basename(path)
            if action == "insmod" and name not in order:
                order.append(name)
                files["modules/" + name] = cpio.File((root / path.lstrip("/")).read_bytes())
    files["modules/order"] = cpio.File("".join(name + "\n" for name in order).encode())
    return cpio.archive(files, directories=("dev", "proc", "root", "sys"))


def _configure(recipe: Recipe, root: Path) -> None:
    for name in recipe.names:
        if (FILES / name).exists():
            shutil.copytree(FILES / name, root, dirs_exist_ok=True)
    for program in recipe.programs():
        shutil.copy(program, root / "usr/local/bin")
    busybox = (root / "usr/bin/busybox").read_bytes()
    for name in recipe.containers:
        archive = container.archive("localhost/%s:1" % name, busybox)
        _install(root / container.PLACE / (name + ".tar"), archive, 0o644)
    user, machine = keys()
    _install(root / "root/.ssh/authorized_keys", user.with_suffix(".pub").read_bytes(), 0o600)
    for path in (root / "etc/ssh").glob("ssh_host_*"):
        path.unlink()
    _install(root / "etc/ssh/ssh_host_ed25519_key", machine.read_bytes(), 0o600)
    # A locked password would keep out the key, too.
    shadow = root / "etc/shadow"
    text = shadow.read_text(encoding="ascii")
    _install(shadow, "\n".join(_unlocked(line) for line in text.split("\n")).encode(), 0o640)
    # Each machine gets its own when it runs.
    _install(root / "etc/machine-id", b"", 0o444)
    _install(root / "etc/fstab", b"", 0o644)
    for path in (root / "var/lib/apt/lists", root / "var/cache/apt"):
        shutil.rmtree(path, ignore_errors=True)
    _run("chroot", root, "systemctl", "set-default", "multi-user.target")
    _run("chroot", root, "systemctl", "mask", *recipe.masked_units)
    # Those that say when they are to start.
    _run("chroot", root, "systemctl", "enable", *(path.name for path in recipe.files() if path.suffix == ".service"))
    _label(root)


def _label(root: Path) -> None:
    """Give all files the labels of the policy of SELinux, where there is one: this host's kernel need not know it."""
    labels = root / "etc/selinux/default/contexts/files/file_contexts"
    if labels.exists():
        command = 'mount -t proc proc "$1/proc"; exec chroot "$1" setfiles -F "/$2" /'
        _run("unshare", "--mount", "sh", "-ec", command, "sh", root, labels.relative_to(root))


def _unlocked(line: str) -> str:
    name, *rest = line.split(":")
    return ":".join([name, "*", *rest[1:]]) if name == "root" else line


def _install(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(data)
    path.chmod(mode)


# --- helpers ------------------------------------------------------------------------------------------


def _run(
    program: str, *arguments: str | Path, text: str = "", directory: Path | None = None, temporary: Path | None = None
) -> str:
    """Return what a program prints. Raises ImageError with its complaint."""
    environment = {**os.environ, "LC_ALL": "C", "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    if temporary:
        environment["TMPDIR"] = str(temporary)
    done = subprocess.run(
        [program, *map(str, arguments)],
        check=False,
        input=text,
        capture_output=True,
        text=True,
        cwd=directory,
        env=environment,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it ends with %d" % done.returncode]
        raise ImageError("%s %s fails: %s" % (program, " ".join(map(str, arguments[:2])), "\n".join(lines[-5:])))
    return done.stdout


@contextmanager
def _new_directory(path: Path) -> Iterator[Path]:
    """Yield a directory that is there whole or not at all."""
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=path.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Yield one at a time, of all users of the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / (".%s.lock" % name), "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
