# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to become of the memory manager's state. Pure: it reads and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ..errors import RefusedError, option
from ..state.memory_manager import memory_owners, memory_refusal

if TYPE_CHECKING:
    # What it takes to check a configuration is compiled only where it is checked.
    from ..kubelet.start_check import Checked


class MemoryPlan(NamedTuple):
    """The file as it is, and why it has to go."""

    old: bytes | None
    # Why the kubelet would refuse it; empty: it stays.
    reason: str
    # [(pod UID, container)] that lose the memory of their own.
    owners: Sequence[tuple[str, str]] = ()

    @property
    def changed(self) -> bool:
        """Whether the file is to be removed, for the kubelet to write a new one."""
        return bool(self.reason)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as modules return it."""
        verdict = "absent" if self.old is None else "refused" if self.reason else "accepted"
        return {
            "verdict": verdict,
            "reason": self.reason,
            "lost": [{"pod": pod, "container": container} for pod, container in self.owners],
        }


def memory_loss_error(path: str, memory: MemoryPlan) -> RefusedError | None:
    """Why the file is not to be removed while containers run; None where none loses memory. path: the file."""
    if not memory.owners:
        return None
    owners = ", ".join("pod %s, container %s" % owner for owner in memory.owners)
    return RefusedError(
        "the kubelet would refuse it (%s), and these containers would lose their memory: %s; nothing was written"
        % (memory.reason, owners),
        path,
        "drain the node and set %s: true" % option("discard_assignments"),
        kind="assignments",
    )


def plan_memory_state(old: bytes | None, checked: Checked) -> MemoryPlan:
    """Remove a state that the kubelet would refuse with this configuration: it cannot be mended from outside."""
    if old is None or checked.memory_manager_policy is None:
        return MemoryPlan(old, "")
    reason = memory_refusal(old, checked.memory_manager_policy, checked.reserved_memory)
    return MemoryPlan(old, reason, memory_owners(old) if reason else ())
