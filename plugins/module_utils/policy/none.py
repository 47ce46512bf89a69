# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The policy none: the kernel's scheduler has all CPUs for all containers."""

from __future__ import annotations

from ..workload.pods import Pod
from .hints import Hint
from .policy import Policy
from .running_state import RunningState


class NonePolicy(Policy):
    """The policy none: no container has a CPU for itself."""

    name = "none"

    def start(self, state: RunningState) -> None:
        """Accepts every state."""

    def allocate(self, state: RunningState, pod: Pod, container: str, affinity: int | None) -> None:
        """Gives nothing."""

    def remove(self, state: RunningState, pod_uid: str, container: str) -> None:
        """Takes nothing."""

    def hints(self, state: RunningState, pod: Pod, container: str) -> list[Hint] | None:
        """No preference."""
        return None

    def pod_hints(self, state: RunningState, pod: Pod) -> list[Hint] | None:
        """No preference."""
        return None
