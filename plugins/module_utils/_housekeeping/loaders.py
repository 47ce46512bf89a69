# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What starts the node's kernel, which arguments it will give it, and how to change these."""

from __future__ import annotations

from typing import Sequence

from .._base.files import FileChange
from .._base.tree import Tree
from .._host.kernel_line import Argument
from . import grub
from . import loader_entries as bls
from . import loader_entries as systemd_boot
from .loader_entries import BLS, GRUB, NO_LOADER, SYSTEMD_BOOT, ConfiguredLine, Loader, text_at

# Set by the loader that has started the node, where it keeps to systemd's interface.
_STARTED_BY = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_OSTREE = "/run/ostree-booted"
_TRANSACTIONAL = "/usr/sbin/transactional-update"
# Systems that are configured as a whole; what one says of itself in os-release, and where its arguments are set.
_WHOLE = {
    "talos": "machine.install.extraKernelArgs of its machine configuration",
    "bottlerocket": "settings.boot.kernel-parameters",
    "flatcar": "set linux_append in the grub.cfg of its OEM partition",
    "kairos": "its own configuration",
    "elemental": "its own configuration",
}


def find_loader(tree: Tree) -> Loader:
    """Return what starts the node's kernel; NO_LOADER, and why, where nothing is found that can be written."""
    owner = _owner(tree)
    if owner:
        return Loader(NO_LOADER, owner)
    found = systemd_boot.find_systemd_boot(tree)
    if found is not None and "systemd-boot" in _started_by(tree):
        return found
    found = bls.find_bls(tree) or grub.find_grub(tree) or found
    return found or Loader(NO_LOADER, "neither GRUB, nor grubby or kernel-install with entries, is there")


def _owner(tree: Tree) -> str:
    """Return who sets the arguments of a node that is not configured file by file."""
    if tree.exists(_OSTREE):
        return "%s is there: set them by rpm-ostree kargs, or by what configures it" % _OSTREE
    if tree.exists(_TRANSACTIONAL):
        return "%s is there: a change counts only in a snapshot that it makes" % _TRANSACTIONAL
    text = text_at(tree, "/etc/os-release") or text_at(tree, "/usr/lib/os-release") or ""
    pairs = (line.partition("=") for line in text.splitlines())
    system = {name: value.strip("'\" ") for name, _equals, value in pairs}.get("ID", "")
    return "the system is %s: set them in %s" % (system, _WHOLE[system]) if system in _WHOLE else ""


def _started_by(tree: Tree) -> str:
    return (text_at(tree, _STARTED_BY) or "")[4:].replace("\0", "")


def configured_line(tree: Tree, loader: Loader) -> ConfiguredLine:
    """Return the arguments of the next boot, as far as files say."""
    if loader.kind == GRUB:
        return grub.configured_line(tree, loader)
    if loader.kind == BLS:
        return bls.configured_entries(tree, loader)
    if loader.kind == SYSTEMD_BOOT:
        return systemd_boot.configured_cmdline(tree, loader)
    return ConfiguredLine(None, "", loader.evidence)


def changes(tree: Tree, loader: Loader, arguments: Sequence[Argument] | None) -> list[FileChange]:
    """Return the changes of files that make the next boot have these arguments; None takes out what was written here.

    What the node has already by somebody else's hand is not written. Empty where nothing changes, where a program does
    it all (commands()), and for NO_LOADER.
    Raises RefusedError where somebody else sets another value, or where a file cannot be understood.
    """
    if loader.kind == GRUB:
        return grub.changes(tree, loader, arguments)
    if loader.kind == SYSTEMD_BOOT:
        return systemd_boot.changes(tree, arguments)
    return []


def commands(
    tree: Tree, loader: Loader, arguments: Sequence[Argument] | None, is_pending: bool = False
) -> list[list[str]]:
    """Return what is to be run after changes(), to be found out before or after these are made; raises as it does.

    Empty where what the loader reads is right already; where it is pending, it may be half of it.
    """
    if loader.kind == GRUB:
        return grub.commands(tree, loader, arguments, is_pending)
    if loader.kind == BLS:
        return bls.entry_commands(tree, loader, arguments)
    if loader.kind == SYSTEMD_BOOT:
        return systemd_boot.cmdline_commands(tree, loader, arguments, is_pending)
    return []
