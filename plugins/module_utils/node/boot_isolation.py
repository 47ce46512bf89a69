# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs that the kernel was booted to isolate, against those that the kubelet gives out. Pure.

Isolated are those that the system is to keep off, and so the reserved ones are the others. Source: isolcpus= and
nohz_full= in Linux's Documentation/admin-guide/kernel-parameters.txt.
"""

from __future__ import annotations

from ..cpuset import CPUSet
from ..errors import Note
from ..topology.model import Topology


def isolation_drift(topology: Topology, reserved: CPUSet, owned: CPUSet) -> list[dict[str, str]]:
    """Where the reservation and the kernel's command line contradict each other.

    owned: the CPUs of partitions, which the system keeps off though they are reserved.
    """
    drift = []
    for subject, parameter, cpus in (
        ("isolated", "isolcpus", topology.isolated),
        ("nohz_full", "nohz_full", topology.nohz_full),
    ):
        both = cpus & (reserved - owned)
        if both:
            drift.append(
                {
                    "subject": subject,
                    "wanted": str(cpus - both),
                    "found": str(cpus),
                    "remedy": "take the reserved CPUs %s out of %s= on the kernel's command line and boot again,"
                    " or reserve others" % (both, parameter),
                }
            )
    return drift


def isolation_notes(topology: Topology, shared: CPUSet, exclusive: CPUSet) -> list[str]:
    """What does harm in using isolated CPUs, or in not using them."""
    isolated = topology.isolated & topology.online
    notes: list[str] = []
    if shared & isolated:
        text = (
            "the shared pool has the isolated CPUs %s, over which the kernel balances no load: the threads of a"
            " container stay on one of them" % (shared & isolated)
        )
        notes.append(Note("shared-pool-isolated", text))
    if isolated and exclusive - isolated:
        text = "the exclusive CPUs %s are not isolated, as CPUs %s are" % (exclusive - isolated, isolated)
        notes.append(Note("exclusive-not-isolated", text))
    return notes
