# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU manager's checkpoint, the file cpu_manager_state, in all its formats.

    v1  up to Kubernetes 1.17   exclusive CPUs by container id
    v2  1.18 and later          by pod and container name
    v3  1.36                    with CPUs of whole pods, where the gate PodLevelResourceManagers is on
    v4  1.37                    v2, for older kubelets, and a text with all of v3 and its own checksum

What a kubelet itself wrote is read here at once; decoding.py looks at everything else as closely as Go does.

Source: pkg/kubelet/cm/cpumanager/state (checkpoint.go, state_checkpoint.go) and pkg/kubelet/checkpointmanager.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .._base.golang import quote
from .formats import Checkpoint, CheckpointError, ContainerIDs, Format2, Format4, era_of

if TYPE_CHECKING:
    from .formats import Format4


def restore_error(cause: object, path: str) -> str:
    """Return what the kubelet says, as a whole, when it cannot restore its state from the file."""
    return (
        "could not restore state from checkpoint: %s, please drain this node and delete the CPU manager checkpoint"
        " file %s before restarting Kubelet" % (cause, quote(path))
    )


def read_checkpoint(
    content: bytes, minor: int, pod_level: bool = False, container_ids: ContainerIDs | None = None
) -> Checkpoint:
    """Read the bytes of a checkpoint as the kubelet 1.`minor` does, 1.18 and later, and no more tolerantly.

    pod_level: the gate PodLevelResourceManagers is on. container_ids: of the containers that run, for format 1.
    Raises CheckpointError.
    """
    checkpoint = _read_plain(content)
    if checkpoint is None:
        from .decoding import read_exactly

        return read_exactly(content, minor, pod_level, container_ids or {})
    if checkpoint.version == Format2.version:
        return checkpoint
    if isinstance(checkpoint, Format4) and checkpoint.version not in era_of(minor).reads:
        return checkpoint.outer
    return checkpoint


def decode_checkpoint(content: bytes) -> Checkpoint:
    """Read what a checkpoint says whatever its checksum is, to save what a damaged one still says.

    Where more than one format fits, that whose checksum is right. Of a format 4 whose text is damaged, what stands
    beside it if that is not, with the CPUs of whole pods as far as they can be read. Raises CheckpointError.
    """
    checkpoint = _read_plain(content)
    if checkpoint is None:
        from .decoding import decode

        return decode(content)
    return checkpoint


def decoded_or_none(content: bytes | None) -> Checkpoint | None:
    """Return a checkpoint as decode_checkpoint() reads it; None where there is none, or none that can be read."""
    try:
        return None if content is None else decode_checkpoint(content)
    except CheckpointError:
        return None


def other_members(content: bytes | None) -> list[tuple[str, object]]:
    """Return the members of the text of a format 4 that are not known here, such as a newer kubelet's: [(name,
    value)]."""
    checkpoint = decoded_or_none(content)
    if checkpoint is None:
        return []
    return checkpoint.others if isinstance(checkpoint, Format4) else []


def _read_plain(content: bytes) -> Format2 | None:
    """Return a checkpoint as kubelets write it, which no kubelet reads in two ways; None where that is not sure.

    A format 2, which every kubelet since 1.18 reads as that, or a format 4 without CPUs of whole pods.
    """
    try:
        text = content.decode("ascii")
        # Go and Python disagree on some escapes, not on that of a quotation mark.
        data = None if "\\" in text.replace('\\"', "") else json.loads(text, object_pairs_hook=unique_members)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    beside = [data.pop(name) for name in ("data", "dataChecksum") if name in data]
    checkpoint = _plain_members(data)
    if checkpoint is None or not checkpoint.checksum or checkpoint.checksum != checkpoint.right_checksum():
        return None
    return _read_plain_text(checkpoint, *beside) if len(beside) == 2 else None if beside else checkpoint


def _read_plain_text(outer: Format2, text: object, number: object) -> Format4 | None:
    checkpoint = Format4()
    if not isinstance(text, str) or not isinstance(number, int):
        return None
    checkpoint.data, checkpoint.data_checksum = text, number
    try:
        data = json.loads(text, object_pairs_hook=unique_members)
    except (ValueError, RecursionError):
        return None
    inner = _plain_members(data) if isinstance(data, dict) and "checksum" not in data else None
    if inner is None or not number or not checkpoint.text_is_right:
        return None
    checkpoint.take_outer(inner)
    checkpoint.outer, checkpoint.checksum = outer, outer.checksum
    return checkpoint


def _plain_members(data: dict[str, Any]) -> Format2 | None:
    """Return a format 2 of these members, whatever its checksum; None unless each of them has the type that Go
    wants."""
    if not data.keys() <= {"policyName", "defaultCpuSet", "entries", "checksum"}:
        return None
    checkpoint = Format2()
    checkpoint.policy_name, checkpoint.default_cpu_set = data.get("policyName", ""), data.get("defaultCpuSet", "")
    checkpoint.entries, checkpoint.checksum = data.get("entries", {}), data.get("checksum", 0)
    texts: list[object] = [checkpoint.policy_name, checkpoint.default_cpu_set]
    for containers in checkpoint.entries.values() if isinstance(checkpoint.entries, dict) else [None]:
        texts += containers.values() if isinstance(containers, dict) else [None]
    if not all(isinstance(text, str) for text in texts) or not isinstance(checkpoint.checksum, int):
        return None
    return checkpoint


def unique_members(members: list[tuple[str, Any]]) -> dict[str, object]:
    """Return the members of a JSON object. Raises ValueError for a key that is there twice."""
    found = dict(members)
    if len(found) < len(members):
        raise ValueError("a key is there twice")
    return found
