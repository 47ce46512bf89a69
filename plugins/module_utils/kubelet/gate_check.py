# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The feature gates that the kubelet refuses.

Source: k8s.io/component-base/featuregate.
"""

from __future__ import annotations

from .finding import Finding, refused
from .gates import ALL_ALPHA, ALL_BETA, GATES, Gates


def check_gates(gates: Gates) -> list[Finding]:
    """What the kubelet would say of them."""
    return [
        finding
        for name, value in sorted(gates.values.items())
        for finding in _findings_of(name, value is True, gates.minor)
    ]


def _findings_of(name: str, value: bool, minor: int) -> list[Finding]:
    where = "featureGates.%s" % name
    gate = GATES.get(name)
    if gate is None:
        return _findings_of_unknown(name, where)
    unrecognized = "unrecognized feature gate: %s" % name
    if minor >= gate.removed:
        cause = "Kubernetes 1.%d removed this gate; what it switched is always on" % gate.removed
        return [refused(unrecognized, cause, "remove it from featureGates", where)]
    if minor < gate.alpha:
        cause = "the gate exists from Kubernetes 1.%d on, and this is 1.%d" % (gate.alpha, minor)
        return [refused(unrecognized, cause, "remove it from featureGates", where)]
    if minor >= gate.locked and not value:
        text = "cannot set feature gate %s to false, feature is locked to true" % name
        cause = "from Kubernetes 1.%d on it cannot be switched off" % gate.locked
        return [refused(text, cause, "remove it from featureGates", where)]
    return []


def _findings_of_unknown(name: str, where: str) -> list[Finding]:
    """Not every gate is known here; one letter off a known one is certainly none."""
    meant = next((known for known in (*GATES, ALL_ALPHA, ALL_BETA) if _is_slip(name, known)), None)
    if meant is None:
        return []
    cause = "there is no such gate; %s is almost the same" % meant
    return [refused("unrecognized feature gate: %s" % name, cause, "write %s" % meant, where)]


def _is_slip(one: str, other: str) -> bool:
    """Whether the two differ in case, or in one letter."""
    if one == other:
        return False
    if one.lower() == other.lower():
        return True
    start = next((at for at, (mine, its) in enumerate(zip(one, other)) if mine != its), min(len(one), len(other)))
    return any(one[start + mine :] == other[start + its :] for mine, its in ((1, 1), (0, 1), (1, 0)))
