# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's command line of a node as it was booted, against what is configured for the next time. It only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ...cpuset import CPUSet
from ...errors import CPUManagerError, Note
from ...tree import Tree
from .findings import NOT_LASTING

if TYPE_CHECKING:
    from ...host.kernel_line import Argument, Row

NOT_BOOTED = "kernel-line-not-booted"
ODD = "kernel-line-odd"
NO_LOADER = "none"
_BOOTED = "/proc/cmdline"
# Where a loader has something, or what says that it is none of the node's own.
_LOADERS = (
    "/boot/grub",
    "/boot/grub2",
    "/boot/loader",
    "/boot/efi",
    "/efi",
    "/run/ostree-booted",
    "/etc/kernel/cmdline",
)
# What the arguments that are looked at have in them.
_NAMES = ("irqaffinity", "rcu_nocbs", "nohz_full", "isolcpus", "cpu_affinity", "kthread_cpus")


class Boot(NamedTuple):
    """shown: plain data for the answer. findings: arguments that wait for a boot. notes: what is odd about the line."""

    shown: dict[str, Any]
    findings: list[dict[str, str]]
    notes: list[str]


class Terms(NamedTuple):
    """What a line is compared with. reserved: empty where it is not known.

    has_pods: whether a kubelet has pods there. version: of cgroups. written: the arguments that the role housekeeping
    has written.
    """

    reserved: CPUSet
    possible: CPUSet
    has_pods: bool
    version: int
    written: Sequence[str] = ()


def read_boot(tree: Tree, terms: Terms, unmeasured: str) -> Boot:
    """unmeasured: the check of a note on what cannot be read."""
    notes: list[str] = []
    try:
        booted = tree.read_value(_BOOTED) or ""
        loaders = any(tree.exists(place) for place in _LOADERS)
    except CPUManagerError as error:
        notes.append(Note(unmeasured, "the kernel's command line is not known: %s" % error))
        booted, loaders = "", False
    if not loaders and not terms.written and not any(name in booted.replace("-", "_") for name in _NAMES):
        return Boot(_answer((), NO_LOADER, "", "nothing is there that starts a kernel"), [], notes)
    # Imported here: a node that something else starts, such as a virtual machine's host, needs none of it.
    from ...host.kernel_line import compare, line_problems
    from ...host.loader.loaders import configured_line, find_loader
    from ...host.loader.model import Configured

    loader, configured = NO_LOADER, Configured(None)
    try:
        found = find_loader(tree)
        loader, configured = found.kind, configured_line(tree, found)
    except CPUManagerError as error:
        notes.append(Note(unmeasured, "what the kernel's command line will be is not known: %s" % error))
    rows = compare(booted, configured.text, _wanted(terms))
    if terms.reserved:
        notes += [Note(ODD, text) for text in line_problems(booted, terms.reserved, terms.possible, terms.has_pods)]
    if configured.text is None:
        # What is not known is not compared.
        return Boot(_answer(rows, loader, configured.where, configured.problem), [], notes)
    findings = [
        {
            "check": NOT_BOOTED,
            "subject": row.name,
            "wanted": _shown(row.name, row.configured),
            "found": _shown(row.name, row.booted),
            "remedy": "boot the node again, once its pods are elsewhere",
        }
        for row in rows
        if booted and row.needs_reboot
    ]
    findings += [
        {
            "check": NOT_LASTING,
            "subject": row.name,
            "wanted": _shown(row.name, row.wanted),
            "found": "%s at the next boot" % _shown(row.name, row.configured),
            "remedy": "run the role housekeeping again, which has written it",
        }
        for row in rows
        if terms.written and row.wanted and row.needs_change
    ]
    return Boot(_answer(rows, loader, configured.where, configured.problem), findings, notes)


def _wanted(terms: Terms) -> Sequence[Argument]:
    """The arguments that were written, else those that would be by default."""
    from ...host.kernel_line import Argument, default_features, wanted_arguments

    if terms.written:
        return [Argument(name, value, "") for name, _equals, value in (text.partition("=") for text in terms.written)]
    try:
        return wanted_arguments(terms.reserved, terms.possible, default_features(terms.version), terms.has_pods)
    except CPUManagerError:  # nothing is reserved, or all
        return ()


def _answer(rows: Sequence[Row], loader: str, where: str, problem: str) -> dict[str, Any]:
    return {
        "arguments": [
            {"name": row.name, "booted": row.booted, "configured": row.configured, "wanted": row.wanted or None}
            for row in rows
        ],
        "loader": loader,
        "configured_in": where,
        "problem": problem,
    }


def _shown(name: str, value: str | None) -> str:
    return "no %s" % name if value is None else "%s=%s" % (name, value) if value else name
