# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of pods and containers in a node's files, replaced by hashes, so that the files say the same else. Pure.

The hash of a name is always the same, so that a container in one file is found in another. UIDs and ids stay.
"""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping

from .._base.errors import GoError
from .._base.golang import json_text, read_json
from .._containers.crictl import hashed
from .._kubelet.redaction import UnsafeError
from ..state import memory_manager as memory_formats
from ..state.checkpoint import decode_checkpoint, unique_members
from ..state.formats import STRUCT, CheckpointError, Format1, Format4, fnv

# The sums that kubelets make of the memory manager's state: of which members, and under which name.
_SUMS = tuple(
    (fields, memory_formats.STRUCT + end)
    for fields in (memory_formats.FORMAT1, memory_formats.FORMAT2)
    for end in ("", "V1", "V2")
)


def checkpoint_without_names(content: bytes) -> bytes:
    """The CPU manager's checkpoint with a hash for each container's name, its checksums right where they were right.

    Raises UnsafeError for a text in which the names cannot be told from the rest, such as a damaged one.
    """
    members = _members(content)
    try:
        checkpoint = decode_checkpoint(content)
    except CheckpointError as error:
        raise UnsafeError("it is damaged") from error
    if checkpoint.version == Format1.version:
        return content  # it has ids alone
    beside = checkpoint.outer if isinstance(checkpoint, Format4) else checkpoint
    struct = next((name for name in (STRUCT, beside.summed_as) if beside.checksum == beside.right_checksum(name)), "")
    beside.entries = _renamed(beside.entries)
    _rename(members)
    if struct and "checksum" in members:
        members["checksum"] = beside.right_checksum(struct)
    return json_text(members).encode("utf-8")


def memory_state_without_names(content: bytes) -> bytes:
    """The memory manager's state with hashes for names, its checksums right where they were.

    Raises UnsafeError for what may have names elsewhere.
    """
    members = _members(content)
    right = [sums for sums in _SUMS if "checksum" in members and _memory_sum(content, *sums) == members["checksum"]]
    _rename(members)
    if right:
        members["checksum"] = _memory_sum(json_text(members).encode("utf-8"), *right[0])
    return json_text(members).encode("utf-8")


def _memory_sum(content: bytes, fields: Iterable[Any], name: str) -> int:
    try:
        value, wrong = memory_formats.decoded(fields, name, read_json(content))
    except GoError as error:
        raise UnsafeError("it is damaged") from error
    return -1 if wrong else memory_formats.sum_of(fields, value, name)


def _members(content: bytes) -> dict[str, object]:
    """The members of a state as a kubelet writes it. Raises UnsafeError for anything else."""
    try:
        members = json.loads(content.decode("utf-8"), object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        raise UnsafeError("it is damaged") from error
    checkpoint_keys = {
        "policyName",
        "defaultCpuSet",
        "machineState",
        "entries",
        "podEntries",
        "checksum",
        "data",
        "dataChecksum",
    }
    if not isinstance(members, dict) or not members.keys() <= checkpoint_keys:
        raise UnsafeError("it is not as a kubelet writes it")
    return members


def _rename(members: dict[str, Any]) -> None:
    """Replace the names in a state, also in the text of a newer format, whose checksum goes with it."""
    if "entries" in members:
        members["entries"] = _renamed(members["entries"])
    if not isinstance(members.get("data"), str) or not members["data"]:
        return
    inner, before = _members(members["data"].encode("utf-8", "surrogatepass")), members["data"]
    _rename(inner)
    members["data"] = json_text(inner)
    if members.get("dataChecksum") == fnv("(string)" + before):
        members["dataChecksum"] = fnv("(string)" + members["data"])


def _renamed(entries: object) -> Any:
    """{pod UID: {hash of the container's name: what it has}}. Raises UnsafeError for entries of another form."""
    if entries is None:
        return None
    if not isinstance(entries, Mapping):
        raise UnsafeError("its entries are no mapping")
    found = {}
    for uid, containers in entries.items():
        if containers is not None and not isinstance(containers, Mapping):
            # By container id, as in format 1.
            return entries
        found[uid] = None if containers is None else {hashed(name): value for name, value in containers.items()}
    return found
