# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which format of the checkpoint each version of Kubernetes reads and writes."""

from __future__ import annotations

from typing import NamedTuple


class Era(NamedTuple):
    """What the kubelets from 1.`since` on do with the file, until the next era. Formats are named by their numbers."""

    since: int
    # The formats in the order in which they are tried, and the one that is written.
    reads: tuple[int, ...]
    writes: int
    # The same with the feature gate PodLevelResourceManagers.
    pod_level_reads: tuple[int, ...]
    pod_level_writes: int
    # The complaint about a format 1 whose containers are not known.
    migration_error: str
    # Whether the CPUs of whole pods in a format 3 that fails are kept beside what is read as format 2.
    keeps_left_over: bool = False

    @property
    def newest(self) -> int:
        """The newest format that is known: what the kubelet calls it has no number."""
        return max(self.pod_level_reads)


_TO_V2 = "error migrating v1 checkpoint state to v2 checkpoint state: %s"
_FROM_V1 = "failed to migrate checkpoint from v1 to v2: %s"

# The next version that changes something is one more row.
ERAS = (
    Era(0, (1, 2), 1, (1, 2), 1, _TO_V2),
    Era(18, (1, 2), 2, (1, 2), 2, _TO_V2),
    Era(36, (2, 1), 2, (3, 2, 1), 3, _FROM_V1, keeps_left_over=True),
    Era(37, (4, 3, 2, 1), 4, (4, 3, 2, 1), 4, _FROM_V1),
)


def era_of(minor: int) -> Era:
    """What the kubelet 1.`minor` does with the file."""
    return next(era for era in reversed(ERAS) if minor >= era.since)


def since_of(version: int) -> int:
    """The minor version of the first kubelet that writes this format."""
    return next(era.since for era in ERAS if version in (era.writes, era.pod_level_writes))
