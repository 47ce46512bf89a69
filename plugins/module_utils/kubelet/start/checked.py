# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a start check finds, and what the managers would start with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, NamedTuple

if TYPE_CHECKING:
    from ...policy.options import StaticOptions
    from ...state.config import CPUManagerConfig
    from .finding import Finding, Unknown


class Checked(NamedTuple):
    """What is found, in the kubelet's order, and what the managers would start with as far as that is certain."""

    # Before and after the managers read their states.
    before: list[Finding]
    after: list[Finding]
    # What cannot be seen of the node.
    unknown: list[Unknown]
    # None where the kubelet has no CPU manager of a known policy.
    cpu_manager_policy: str | None
    # None where something it depends on is refused.
    cpu_manager: CPUManagerConfig | None
    options: StaticOptions
    pod_level: bool
    memory_manager_policy: str | None
    # {NUMA node: {kind of memory: bytes}} that the memory manager keeps from pods.
    reserved_memory: Mapping[int, Mapping[str, int]]

    @property
    def findings(self) -> list[Finding]:
        """All but what is found in the managers' states."""
        return self.before + self.after
