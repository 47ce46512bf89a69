# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the files of a node's loader, as the programs of the distributions leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import FileChange
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.loader_entries import Loader

READS_DIRECTORY = 'for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n  . "${x}"\ndone\n'
DEBIAN = """\
# If you change this file, run 'update-grub' afterwards to update
GRUB_DEFAULT=0
GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX=""
#GRUB_TERMINAL=console
"""
ENTRY = "0123456789abcdef0123456789abcdef-%s.conf"


def found_by(find: Callable[[Tree], Loader | None], tree: Tree) -> Loader:
    """Return the loader of a node that has one."""
    loader = find(tree)
    assert loader is not None
    return loader


def write(root: Path, path: str, text: str) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode("latin-1"))


def read(root: Path, path: str) -> bytes | None:
    place = root / path.lstrip("/")
    return place.read_bytes() if place.exists() else None


def grub_cfg(line: str, default: str = "0") -> str:
    """Return what grub-mkconfig makes of the arguments of one kernel."""
    return (
        'if [ "${next_entry}" ] ; then\n   set default="${next_entry}"\nelse\n   set default="%s"\nfi\n'
        "### BEGIN /etc/grub.d/10_linux ###\nmenuentry 'Debian' {\n\tlinux\t/boot/vmlinuz-6.1 root=/dev/vda ro %s\n}\n"
        "### END /etc/grub.d/10_linux ###\n" % (default, line)
    )


def grub(
    root: Path,
    default: str | None = DEBIAN,
    directory: Mapping[str, str] | None = None,
    line: str = "quiet",
    place: str = "/boot/grub/grub.cfg",
    program: str = "/usr/sbin/grub-mkconfig",
) -> Tree:
    """Write a tree with GRUB, and return it. directory: the files in /etc/default/grub.d, None where its program
    does not read them."""
    write(root, program, "#! /bin/sh\n" + (READS_DIRECTORY if directory is not None else ""))
    write(root, place, grub_cfg(line))
    if default is not None:
        write(root, "/etc/default/grub", default)
    for name, text in (directory or {}).items():
        write(root, "/etc/default/grub.d/" + name, text)
    return Tree(str(root))


def bls(root: Path, entries: Mapping[str, str], environment: str = "saved_entry=\n") -> Tree:
    """Write a tree with grubby, and return it. entries: the arguments by the version of the kernel."""
    write(root, "/usr/sbin/grubby", "#!/bin/bash\n")
    write(root, "/boot/grub2/grubenv", "# GRUB Environment Block\n%s%s" % (environment, "#" * 40))
    for version, options in entries.items():
        text = "title Linux\nversion %s\nlinux /vmlinuz-%s\noptions %s\n" % (version, version, options)
        write(root, "/boot/loader/entries/" + ENTRY % version, text)
    return Tree(str(root))


def systemd_boot(
    root: Path,
    entries: Mapping[str, str],
    cmdline: str | None = "root=/dev/vda rw\n",
    booted: str = "BOOT_IMAGE=x root=/dev/vda rw\n",
    loader: str = "timeout 3\n",
) -> Tree:
    """Write a tree with systemd-boot, and return it. entries: the arguments by the version of the kernel."""
    write(root, "/usr/bin/kernel-install", "#!/bin/sh\n")
    write(root, "/efi/loader/loader.conf", loader)
    write(root, "/proc/cmdline", booted)
    if cmdline is not None:
        write(root, "/etc/kernel/cmdline", cmdline)
    for version, options in entries.items():
        write(root, "/efi/loader/entries/" + ENTRY % version, "title Linux\noptions    %s\nlinux /x\n" % options)
        write(root, "/usr/lib/modules/%s/vmlinuz" % version, "")
    return Tree(str(root))


def make(changes: list[FileChange]) -> None:
    """Make the changes, without what keeps files over a power cut."""
    for change in changes:
        place = Path(change.path)
        assert (place.read_bytes() if place.exists() else None) == change.before
        if change.after is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(change.after)
