# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the life of a feature gate is written down, and those of the gates that this project depends on.

All others are in table.py, which takes longer to load.
Source: pkg/features/kube_features.go.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

ALPHA, BETA = "a", "b"

NEVER = 1000


class Phase(NamedTuple):
    """What a gate is from a minor version on."""

    since: int
    stage: str
    default: bool
    locked: bool


class Life(NamedTuple):
    """The phases of a gate, oldest first, and the minor versions that have it registered: [since, removed)."""

    phases: tuple[Phase, ...]
    since: int
    removed: int

    def phase(self, minor: int) -> Phase | None:
        """The phase that counts in 1.`minor`; None before the first. Of a gate that is gone it is the last."""
        return next((phase for phase in reversed(self.phases) if phase.since <= minor), None)


def read_life(text: str) -> Life:
    """The life that an entry of LIVES describes."""
    phases = []
    since, removed = None, NEVER
    for word in text.split():
        if word[0] == "+":
            since = int(word[1:])
        elif word[0] == "-":
            removed = int(word[1:])
        else:
            phases.append(Phase(int(word[1:].rstrip("!")), word[0].lower(), word[0].isupper(), word[-1] == "!"))
    return Life(tuple(phases), phases[0].since if since is None else since, removed)


# A word is a phase: the stage (a, b, g: generally available, d: deprecated; a capital letter: on by default), the
# minor version that it begins with, and `!` where the default is locked. `+34`: registered since 1.34, whatever it is
# said to have been before; `-37`: 1.37 has it no longer.
OWN_LIVES: Mapping[str, str] = {
    "CPUManager": "a8 B10 G26! -33",
    "CPUManagerPolicyAlphaOptions": "a23",
    "CPUManagerPolicyBetaOptions": "B23",
    "CPUManagerPolicyOptions": "a22 B23 G33!",
    "CustomCPUCFSQuotaPeriod": "a12 G36",
    "DisableCPUQuotaWithExclusiveCPUs": "B33 D36 D37!",
    "DynamicResourceAllocation": "a26 b32 G34 G35!",
    "InPlacePodVerticalScaling": "a27 B33 G35!",
    "MemoryManager": "a21 B22 G32! -36",
    "NodeSwap": "a22 b28 B30 G34!",
    "PodLevelResourceManagers": "a36 b37",
    "TopologyManager": "a16 B18 G27! -29",
    "TopologyManagerPolicyAlphaOptions": "a26",
    "TopologyManagerPolicyBetaOptions": "b26 B28",
    "TopologyManagerPolicyOptions": "a26 B28 G32 G36!",
}
