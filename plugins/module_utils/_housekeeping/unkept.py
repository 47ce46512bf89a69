# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role housekeeping was to bring a node to, by its journal there, and what is not so, or not any more.

It only reads. What a layer has is judged in host_findings.py.
"""

from __future__ import annotations

from posixpath import basename, dirname
from typing import NamedTuple, Sequence

from .._base.tree import Tree, fault_of
from .._host.layers import PARTITION, REFUSED, SLICES, KernelSetting
from .._host.only_root import boot_id_of
from .._host.partitions import Partition
from ..cpuset import CPUSet
from .host_findings import NO_PARTITION, NOT_LASTING, finding
from .housekeeping_journal import HousekeepingJournal, HousekeepingWish, KeptFile, checksum, read_journal
from .steps import BOOT

UNFINISHED = "housekeeping-unfinished"
_AGAIN = "run the role housekeeping again"
# Those that bring the rest back after a boot.
AT_BOOT = (BOOT, PARTITION)


class LastRun(NamedTuple):
    """A journal, as far as a report needs it. refused: the files that the kernel has refused to change in this boot."""

    journal: HousekeepingJournal
    refused: frozenset[str]

    @property
    def wish(self) -> HousekeepingWish:
        """What the node is to be."""
        return self.journal.wish

    @property
    def reserved(self) -> CPUSet:
        """The CPUs that were reserved, with those of a partition."""
        own = self.wish.partition
        return self.wish.reserved if own is None else self.wish.reserved | own.cpus

    def narrowed(self, reserved: CPUSet) -> CPUSet:
        """Return those of these reserved CPUs that are left to the host; all, where the wish was for others."""
        own = self.wish.partition
        left = reserved if own is None else reserved - own.cpus
        return left & self.wish.reserved or left

    def marked(self, settings: Sequence[KernelSetting]) -> list[KernelSetting]:
        """Return these, and which of them the kernel has refused to change."""
        return [
            setting._replace(problem=REFUSED) if setting.path in self.refused and not setting.problem else setting
            for setting in settings
        ]

    def of_host(self, slices: Sequence[KernelSetting]) -> list[KernelSetting]:
        """Return these without the slice of the partition, which is none of the host's, also where it is none yet."""
        own = self.wish.partition
        return [setting for setting in slices if own is None or setting.name != own.slice]

    def has_slices(self) -> bool:
        """Return whether slices are to keep to the reserved CPUs."""
        return SLICES in self.wish.layers


def read_last_run(tree: Tree) -> LastRun | None:
    """Return what the journal of a node says; None where there is none. Raises NodeError for a damaged one."""
    journal = read_journal(tree)
    if journal is None:
        return None
    is_this_boot = journal.boot_id == boot_id_of(tree)
    return LastRun(journal, frozenset(journal.refused if is_this_boot else ()))


def unkept_findings(tree: Tree, last_run: LastRun, partitions: Sequence[Partition] | None) -> list[dict[str, str]]:
    """Return findings beside those on layers. partitions: those of the node; None where they cannot be read."""
    found = _unfinished(last_run.journal)
    if partitions is not None:
        found += _no_partition(last_run.wish, partitions)
    return [*found, *_not_at_boot(tree, last_run.journal)]


def _unfinished(journal: HousekeepingJournal) -> list[dict[str, str]]:
    if journal.is_done:
        return []
    commands = ", ".join(journal.pending)
    what = "it is under way or was interrupted" + (", before: %s" % commands if commands else "")
    remedy = "if no run is under way, %s, or with housekeeping_state: absent" % _AGAIN
    return [finding(UNFINISHED, "journal", "the last run of the role housekeeping came to its end", what, remedy)]


def _no_partition(wish: HousekeepingWish, partitions: Sequence[Partition]) -> list[dict[str, str]]:
    own = wish.partition
    if own is None:
        return []
    now = next((part for part in partitions if part.path == own.slice), None)
    if now is None:
        what = "it is no partition"
    elif now.problem or (now.kind == own.kind and (now.effective or now.cpus) == own.cpus):
        # What the kernel says against it is a finding on each partition.
        return []
    else:
        what = "it is of the kind %s, with CPUs %s" % (now.kind, now.effective or now.cpus or "(none)")
    wanted = "%s is a partition of the kind %s, with CPUs %s" % (own.slice, own.kind, own.cpus)
    return [finding(NO_PARTITION, "partitions", wanted, "%s: %s" % (own.slice, what), _AGAIN)]


def _not_at_boot(tree: Tree, journal: HousekeepingJournal) -> list[dict[str, str]]:
    """Return where something is gone that brings the kernel's values back after a boot."""
    files = [path for path, kept in journal.files.items() if kept.layer in AT_BOOT]
    # A link counts as such: on a saved node, what it leads to need not be there.
    gone = [path for path in (*files, *journal.links) if basename(path) not in tree.names(dirname(path))]
    others = [path for path in files if path not in gone and _is_others(tree, path, journal.files[path])]
    # An unfinished run has not come to them, or has taken them away.
    if not journal.is_done:
        return []
    wanted = "what was written into the kernel comes back after a boot"
    texts = (("not there any more", gone), ("somebody has changed, or may change", others))
    found = "; ".join("%s: %s" % (text, ", ".join(paths)) for text, paths in texts if paths)
    return [finding(NOT_LASTING, "boot", wanted, found, _AGAIN)] if found else []


def _is_others(tree: Tree, path: str, kept: KeptFile) -> bool:
    """Return whether a file, or what root would execute in its place, is not what was written. None is saved with a
    node."""
    if not kept.ours:
        return False
    return checksum(tree.content(path) or b"") not in kept.ours or fault_of(tree, path) is not None
