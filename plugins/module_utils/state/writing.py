# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a checkpoint as a kubelet of a given version writes it."""

from __future__ import annotations

from typing import Iterable

from .._base.errors import InputError, option
from .assignments import Assignments, State
from .formats import FORMATS, ContainerIDs, Format1, Format2, Format3, Format4, era_of

MODE = 0o600


def format_for(minor: int, pod_level: bool = False) -> type[Format1]:
    """Return the format that the kubelet 1.`minor` writes."""
    era = era_of(minor)
    return FORMATS[(era.pod_level_writes if pod_level else era.writes) - 1]


def write_checkpoint(
    policy_name: str,
    state: State,
    kind: type[Format1] = Format2,
    container_ids: ContainerIDs | None = None,
    others: Iterable[tuple[str, object]] = (),
) -> bytes:
    """Return the bytes that the kubelet writes for this state. Raises InputError for what that format cannot hold.

    others: other_members() of the file before, which format 4 keeps and all others drop.
    """
    if state.pod_assignments and kind.version < Format3.version:
        raise InputError(
            "format v%d of the checkpoint cannot hold the CPUs of whole pods (%s)"
            % (kind.version, ", ".join(sorted(state.pod_assignments))),
            remedy="drain the node before the kubelet changes to a version or configuration without them",
        )
    checkpoint = kind()
    checkpoint.fill(policy_name, state)
    if kind is Format1:
        checkpoint.entries = _by_container_id(state.assignments, container_ids or {})
    if isinstance(checkpoint, Format4):
        checkpoint.others = list(others)
    return checkpoint.write()


def _by_container_id(assignments: Assignments, container_ids: ContainerIDs) -> dict[str, str]:
    ids = {names: container_id for container_id, names in container_ids.items()}
    entries = {}
    for pod, containers in assignments.items():
        for name, cpus in containers.items():
            if (pod, name) not in ids:
                raise InputError(
                    "format v1 of the checkpoint names containers by their ids, and that of container %s of pod %s"
                    " is not given" % (name, pod),
                    remedy="give %s, or drain the node" % option("container_ids"),
                )
            entries[ids[pod, name]] = str(cpus)
    return dict(sorted(entries.items()))
