# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The feature gates of a configuration, and which of them are on.

Source: pkg/features/kube_features.go and k8s.io/component-base/featuregate (feature_gate.go).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Iterator, Mapping, NamedTuple

from ...policy.options import ALPHA_GATE, BETA_GATE, MANAGER_BETA_GATE
from .lives import ALPHA, BETA, NEVER, OWN_LIVES, Life, read_life

ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"

CPU_MANAGER = "CPUManager"
CPU_OPTIONS = "CPUManagerPolicyOptions"
CPU_ALPHA_OPTIONS, CPU_BETA_OPTIONS = ALPHA_GATE, BETA_GATE
TOPOLOGY_MANAGER = "TopologyManager"
TOPOLOGY_OPTIONS = "TopologyManagerPolicyOptions"
TOPOLOGY_BETA_OPTIONS = MANAGER_BETA_GATE
MEMORY_MANAGER = "MemoryManager"
CFS_QUOTA_PERIOD = "CustomCPUCFSQuotaPeriod"
POD_LEVEL_MANAGERS = "PodLevelResourceManagers"
NO_EXCLUSIVE_QUOTA = "DisableCPUQuotaWithExclusiveCPUs"


class Gate(NamedTuple):
    """A gate, and the minor version from which it is there, on by default, locked, and gone."""

    life: Life
    alpha: int
    on: int
    locked: int
    removed: int

    @classmethod
    def of(cls, life: Life) -> Gate:
        """What its phases say. The first version counts as alpha."""
        phases = life.phases
        return cls(
            life,
            life.since,
            next((phase.since for phase in phases if phase.default), NEVER),
            next((phase.since for phase in phases if phase.locked), NEVER),
            life.removed,
        )


@lru_cache(maxsize=None)
def _gate(name: str) -> Gate | None:
    if name in OWN_LIVES:
        return Gate.of(read_life(OWN_LIVES[name]))
    # Imported here: most nodes have no gates of their own, and every import costs time on every node.
    from .table import life_of

    life = life_of(name)
    return None if life is None else Gate.of(life)


class _AllGates(Mapping[str, Gate]):
    """All gates by their names, each read when it is first needed."""

    def __getitem__(self, name: str) -> Gate:
        gate = _gate(name)
        if gate is None:
            raise KeyError(name)
        return gate

    def __iter__(self) -> Iterator[str]:
        from .table import LIVES

        return iter(LIVES)

    def __len__(self) -> int:
        return sum(1 for _name in self)


# The whole life of each gate that a kubelet from 1.33 on has had, and of a few older ones.
GATES = _AllGates()


class Gates:
    """The feature gates of one configuration, as the kubelet 1.`minor` takes them."""

    def __init__(self, values: Mapping[str, object], minor: int) -> None:
        self.values = values
        self.minor = minor

    @classmethod
    def of(cls, values: Mapping[str, object], minor: int) -> Gates:
        """Those of a configuration with these values."""
        gates = values.get("featureGates")
        return cls(gates if isinstance(gates, Mapping) else {}, minor)

    def enabled(self, name: str) -> bool:
        """Whether one of GATES is on. One that is locked or gone is as it was in the end."""
        life = GATES[name].life
        phase = life.phase(self.minor)
        if phase is None:
            return False
        if phase.locked or self.minor >= life.removed:
            return phase.default
        if name in self.values:
            return self.values[name] is True
        every = ALL_ALPHA if phase.stage == ALPHA else ALL_BETA if phase.stage == BETA else None
        if every is not None and every in self.values:
            return self.values[every] is True
        return phase.default
