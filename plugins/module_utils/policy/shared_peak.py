# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much the shared pool has used in the last minute, for the policy dynamic. Pure."""

from __future__ import annotations

from collections import deque

SECONDS = 60.0


class SharedPeak:
    """The highest use of the last minute: what the shared pool gives to a growing container, it gets back late."""

    def __init__(self) -> None:
        # (seconds, CPUs), each with fewer CPUs than the one before: no other is the highest of any minute to come.
        self._uses: deque[tuple[float, float]] = deque()

    def add(self, now: float, cpus: float) -> float:
        """Add what is used now; the highest use since a minute ago. now: seconds that never go back."""
        uses = self._uses
        while uses and uses[-1][1] <= cpus:
            uses.pop()
        uses.append((now, cpus))
        while uses[0][0] <= now - SECONDS:
            uses.popleft()
        return uses[0][1]
