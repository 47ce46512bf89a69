# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a checkpoint says, and whether a kubelet would start with it, as plain data."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from .acceptance import StateError, check_checkpoint
from .assignments import State, assignments_text
from .config import CPUManagerConfig

if TYPE_CHECKING:
    # A node without a checkpoint needs no reader, and every import costs time on every node.
    from .formats import ContainerIDs

ACCEPTED = "accepted"
REFUSED = "refused"
ABSENT = "absent"
NOT_JUDGED = "not judged"


class Judgement(NamedTuple):
    """Whether a kubelet would start with a checkpoint, and what the checkpoint says."""

    verdict: str
    # The kubelet's cause, and what to do; both empty unless refused.
    reason: str = ""
    remedy: str = ""
    # Also what a refused or damaged file still says, as far as it can be read.
    policy_name: str | None = None
    state: State | None = None
    # Of the file: 1 to 4.
    version: int | None = None
    checksum_right: bool | None = None
    # Refused already when it is restored, before the policy looks at what it says.
    unread: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        state = self.state
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "remedy": self.remedy,
            "format": None if self.version is None else "v%d" % self.version,
            "checksum_right": self.checksum_right,
            "policy": self.policy_name,
            "default_cpu_set": None if state is None else str(state.default_cpu_set),
            "assignments": {} if state is None else assignments_text(state.assignments),
            "pod_assignments": {} if state is None else {uid: str(cpus) for uid, cpus in state.pod_assignments.items()},
        }

    def to_text(self) -> str:
        """What the checkpoint says as lines of CPU sets, to compare one with another; empty when there is none."""
        if self.verdict == ABSENT:
            return ""
        return "policy: %s\n%s" % (self.policy_name, "" if self.state is None else self.state.to_text())


def readable(content: bytes | None, container_ids: ContainerIDs | None = None) -> Judgement:
    """What a checkpoint says, whether or not a kubelet would accept it.

    A container of which only the id is known is shown as container "?" of a pod with that id.
    """
    if content is None:
        return Judgement(ABSENT)
    from .checkpoint import decode_checkpoint
    from .formats import NAMELESS, CheckpointError, migrated

    try:
        checkpoint = decode_checkpoint(content)
    except CheckpointError:
        return Judgement(NOT_JUDGED)
    try:
        checkpoint.verify()
        right = True
    except CheckpointError:
        right = False
    ids = {container_id: (container_id, NAMELESS) for container_id in checkpoint.entries or {}}
    state = None
    with suppress(CheckpointError):
        state = migrated(checkpoint, {**ids, **(container_ids or {})}).state()
    return Judgement(NOT_JUDGED, "", "", checkpoint.policy_name, state, checkpoint.version, right)


def judge(content: bytes | None, config: CPUManagerConfig, container_ids: ContainerIDs | None = None) -> Judgement:
    """Would a kubelet with this configuration start with this checkpoint?"""
    said = readable(content, container_ids)
    if content is None:
        return said
    from .formats import CheckpointError

    try:
        check_checkpoint(content, config, container_ids)
    except (CheckpointError, StateError) as error:
        remedy = "stop the kubelet and take the file out of the way before it starts again"
        if said.state is not None and said.state.exclusive_cpus():
            remedy = (
                "stop the kubelet and repair the file, which keeps the exclusive CPUs of running pods where they can"
                " be kept; else drain the node first and take the file out of the way"
            )
        unread = isinstance(error, CheckpointError)
        return said._replace(verdict=REFUSED, reason=str(error), remedy=remedy, unread=unread)
    return said._replace(verdict=ACCEPTED)
