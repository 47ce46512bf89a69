# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Saves what starts the kernel, as far as it says on which CPUs what is to run.

Such files hold passwords of the loader, and command lines hold tokens and keys. So only the arguments about CPUs are
saved, and the lines by which it is known what they are of.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Callable

from ..errors import CPUManagerError
from ..host.kernel_line import MARK, NAMES, parse_line
from ..host.loader.loaders import find_loader
from ..host.loader.model import BLS, GRUB, NO_LOADER, SYSTEMD_BOOT
from .collector import Collector

_PROGRAMS = ("grub-mkconfig", "grub2-mkconfig", "grubby", "kernel-install")
_ENVIRONMENTS = ("/boot/grub2/grubenv", "/boot/grub/grubenv")
_CMDLINE = "/etc/kernel/cmdline"
_LINUX = re.compile(r"^[ \t]*linux(?:16|efi)?[ \t]+[^ \t\n]+(.*)$", re.MULTILINE)
_DEFAULT = re.compile(r'^[ \t]*set[ \t]+default="[^"\n]*"', re.MULTILINE)
_MADE = "### BEGIN /etc/grub.d/\n"
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?", re.ASCII)


def save_loader(collector: Collector) -> None:
    """Save what the reader of the next boot's arguments reads. Nothing where that cannot be read."""
    tree = collector.tree
    for path in ("/run/ostree-booted", "/usr/sbin/transactional-update"):
        collector.mark(path)
    with suppress(CPUManagerError):
        loader = find_loader(tree)
        if loader.kind == NO_LOADER:
            return
        for name in _PROGRAMS:
            for directory in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
                _reduced(collector, "%s/%s" % (directory, name), _reads_directory)
        if loader.kind == GRUB:
            for path in loader.results:
                _reduced(collector, path, _grub)
        elif loader.kind in (BLS, SYSTEMD_BOOT):
            for path in loader.results:
                _reduced(collector, path, _entry)
        for path in _ENVIRONMENTS:
            _reduced(collector, path, _environment)
        if loader.kind == SYSTEMD_BOOT:
            _reduced(collector, loader.evidence + "/loader.conf", _loader_conf)
            _reduced(collector, _CMDLINE, lambda content: (_about_cpus(_text(content)) + "\n").encode("latin-1"))
            place = loader.evidence.rpartition("/")[0]
            for name in tree.names(place + "/EFI/Linux"):
                if name.endswith(".efi"):
                    collector.mark("%s/EFI/Linux/%s" % (place, name))


def _reduced(collector: Collector, path: str, change: Callable[[bytes], bytes]) -> None:
    collector.file(path, change)
    collector.redacted.discard(path)


def _text(content: bytes) -> str:
    return content.decode("latin-1")


def _about_cpus(line: str) -> str:
    words = [word for word in parse_line(line) if word.key in NAMES or word.name == MARK]
    return " ".join(word.name if word.value is None else "%s=%s" % word for word in words)


def _reads_directory(content: bytes) -> bytes:
    return b"default/grub.d" if b"default/grub.d" in content else b""


def _grub(content: bytes) -> bytes:
    text = _text(content)
    lines = _DEFAULT.findall(text)
    if _MADE.strip() in text:
        lines.append(_MADE.strip())
    # A backslash is only GRUB's quoting.
    lines += ["linux x " + _about_cpus(line.replace("\\", "")) for line in _LINUX.findall(text)]
    return "".join(line + "\n" for line in lines).encode("latin-1")


def _entry(content: bytes) -> bytes:
    lines = re.findall(r"^[ \t]*options[ \t]+(.*)$", _text(content), re.MULTILINE)
    kept = (" ".join([_about_cpus(line), *_VARIABLE.findall(line)]).strip() for line in lines)
    return "".join("options %s\n" % line for line in kept).encode("latin-1")


def _environment(content: bytes) -> bytes:
    pairs = [line.partition("=") for line in _text(content).splitlines() if not line.startswith("#")]
    lines = [
        "%s=%s\n" % (name, value if name == "saved_entry" else _about_cpus(value))
        for name, equals, value in pairs
        if equals
    ]
    return "".join(lines).encode("latin-1")


def _loader_conf(content: bytes) -> bytes:
    lines = re.findall(r"^[ \t]*default[ \t]+\S+", _text(content), re.MULTILINE)
    return "".join(line + "\n" for line in lines).encode("latin-1")
