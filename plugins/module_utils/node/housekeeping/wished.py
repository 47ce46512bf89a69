# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wished for a node, as its kubelet and its kernel are."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ...cpuset import CPUSet
from ...errors import CPUManagerError, InputError, NodeError, RefusedError, option
from ...host.kernel_line import NAMES, Argument, compare, default_features, parse_line, wanted_arguments
from ...host.loader.loaders import configured_line, find_loader
from ...host.loader.model import NO_LOADER
from ...tree import Tree
from ..node import Node
from .reserved import kubelet_reservation

_COMMAND_LINE = "/proc/cmdline"


class KernelLine(NamedTuple):
    """The arguments that are wanted. rows: each as it is, as plain data. reboot: why the node has to be booted."""

    arguments: Sequence[Argument]
    rows: Sequence[dict[str, Any]]
    reboot: Sequence[str]


def reserved_cpus(node: Node, given: CPUSet | None) -> CPUSet:
    """The CPUs that are given, else those that the kubelet reserves. Raises NodeError, RefusedError for neither."""
    if given is not None:
        return given
    configuration = node.needed_configuration()
    found = kubelet_reservation(node, configuration).cpus
    if not found:
        raise RefusedError(
            "the kubelet reserves no CPUs, so it is not known which are the host's; nothing was written",
            where=node.tree.path(str(node.config_path)),
            remedy="give them in %s or %s" % (option("reserved_system_cpus"), option("reservation")),
        )
    return found


def kernel_line(
    tree: Tree,
    reserved: CPUSet,
    possible: CPUSet,
    features: Sequence[str] | None,
    has_shared_pool: bool,
    is_written: bool,
) -> KernelLine:
    """What the kernel is to be booted with. is_written: or it is only shown.

    Raises InputError, RefusedError for what cannot be wanted, and for a node whose command line is not written here.
    """
    version = 2 if tree.exists("/sys/fs/cgroup/cgroup.controllers") else 1
    chosen = default_features(version) if features is None else features
    arguments = wanted_arguments(reserved, possible, chosen, has_shared_pool)
    loader = find_loader(tree)
    if is_written and loader.kind == NO_LOADER:
        raise RefusedError(
            "the kernel's command line cannot be written: %s; nothing was written" % loader.evidence,
            where=option("kernel_arguments"),
            remedy="leave it off, and give the kernel these arguments by your own means: %s"
            % " ".join(argument.text for argument in arguments),
        )
    booted = tree.read_value(_COMMAND_LINE) or ""
    configured: str | None = None
    try:
        configured = configured_line(tree, loader).text
    except CPUManagerError:
        if is_written:
            raise
    rows = compare(booted, configured, arguments)
    reboot = [
        "%s=%s counts from the next boot on" % (row.name, row.wanted)
        for row in rows
        if is_written and row.wanted and row.booted != row.wanted
    ]
    return KernelLine(arguments, [row._asdict() for row in rows if row.wanted], reboot)


def waits_for_boot(tree: Tree, reserved: CPUSet) -> list[str]:
    """Why systemd's own affinity is not what its files say, which it reads when it starts."""
    try:
        content = tree.content("/proc/1/status") or b""
    except CPUManagerError:
        return []
    for line in content.decode("ascii", "replace").splitlines():
        name, _colon, value = line.partition(":")
        if name == "Cpus_allowed_list":
            try:
                has = CPUSet.parse(value.strip())
            except InputError:
                return []
            return ["systemd itself runs on CPUs %s until the next boot" % has] if has - reserved else []
    return []


def booted_arguments(tree: Tree) -> list[str]:
    """Of the arguments that are written here, those that the running kernel was booted with."""
    try:
        words = parse_line(tree.read_value(_COMMAND_LINE) or "")
    except NodeError:
        return []
    return [word.name for word in words if word.name in NAMES]
