# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The feature gates that the kubelet refuses.

Source: k8s.io/component-base/featuregate (feature_gate.go).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Iterator, Mapping

from ...gates.dependencies import dependencies
from ...gates.enabled import ALL_ALPHA, ALL_BETA, GATES, Gates
from ...gates.table import FIRST_MINOR, LAST_MINOR, is_registered
from ..finding import Finding, refused

# Of so many names that may be gates of their own it is looked which gate is meant.
_GUESSES = 20


def gate_refusal(gates: Mapping[str, bool], minor: int, removal: str) -> Finding | None:
    """The first gate that the kubelet 1.`minor` refuses; None where it takes all. `removal`: how one is removed.

    Of several the kubelet shows one, or all in random order; here it is the first by its name. One that it does not
    have ends the reading, whatever else is wrong.
    """
    found = _unknown(gates, minor) or next(_locked(gates, minor), None) or next(_unmet(gates, minor), None)
    if found is None:
        return None
    return found._replace(remedy=found.remedy or removal, where="featureGates.%s" % found.where)


def _unknown(gates: Mapping[str, bool], minor: int) -> Finding | None:
    guesses = _GUESSES
    for name in sorted(gates):
        is_refused, meant = _is_refused_name(name, minor), None
        if name not in GATES and (is_refused or guesses):
            guesses -= 1
            meant = _meant(name, minor)
        if is_refused or meant:
            return _unrecognized(name, meant, minor)
    return None


def _unrecognized(name: str, meant: str | None, minor: int) -> Finding:
    text = "unrecognized feature gate: %s" % name
    gate = GATES.get(name)
    if meant:
        return refused(text, "there is no such gate; %s is almost the same" % meant, "write %s" % meant, name)
    if gate is None:
        cause = "Kubernetes 1.%d has no such gate: it is misspelled, or was removed earlier, or is another's" % minor
    elif minor >= gate.removed:
        cause = "Kubernetes 1.%d removed this gate; what it switched is always %s"
        cause %= (gate.removed, "on" if Gates({}, minor).enabled(name) else "off")
    else:
        cause = "the gate exists from Kubernetes 1.%d on, and this is 1.%d" % (gate.life.since, minor)
    return refused(text, cause, "", name)


def _is_refused_name(name: str, minor: int) -> bool:
    """Whether the kubelet 1.`minor` surely has no gate of this name."""
    if name in (ALL_ALPHA, ALL_BETA) or is_registered(name, minor):
        return False
    if FIRST_MINOR <= minor <= LAST_MINOR:
        return True
    # A gate that is said to be older than its first version may have come to others, too.
    gate = GATES.get(name)
    return gate is not None and (gate.life.phases[0].since > 0 or minor > LAST_MINOR)


def _locked(gates: Mapping[str, bool], minor: int) -> Iterator[Finding]:
    for name in sorted(gates):
        gate, value = GATES.get(name), gates[name] is True
        phase = None if gate is None else gate.life.phase(minor)
        if gate is None or phase is None or not phase.locked or phase.default is value:
            continue
        said, locked = ("true", "false") if value else ("false", "true")
        text = "cannot set feature gate %s to %s, feature is locked to %s" % (name, said, locked)
        cause = "from Kubernetes 1.%d on it cannot be switched %s" % (gate.locked, "on" if value else "off")
        yield refused(text, cause, "", name)


def _unmet(given: Mapping[str, bool], minor: int) -> Iterator[Finding]:
    """What gates need others that are off."""
    gates = Gates(given, minor)
    for name, names in dependencies(minor).items():
        missing = [gate for gate in names if not gates.enabled(gate)]
        if not missing or not gates.enabled(name):
            continue
        text = "%s is enabled, but depends on features that are disabled: [%s]" % (name, " ".join(missing))
        needed = " and ".join(missing)
        cause = "%s is on%s, and needs %s" % (name, "" if name in given else " without being named", needed)
        remedy = "switch %s on, or %s off" % (needed, name)
        yield refused(
            text, cause, remedy, next((gate for gate in (*missing, name, ALL_BETA, ALL_ALPHA) if gate in given), name)
        )


@lru_cache(maxsize=1)
def _by_length() -> dict[int, list[str]]:
    """The names of the gates by their length."""
    found: dict[int, list[str]] = {}
    for name in (*GATES, ALL_ALPHA, ALL_BETA):
        found.setdefault(len(name), []).append(name)
    return found


def _meant(name: str, minor: int) -> str | None:
    """A gate whose name differs in case, or in one letter; where it is sure that it is no other gate."""
    if name in (ALL_ALPHA, ALL_BETA):
        return None
    lengths = (len(name), len(name) - 1, len(name) + 1)
    alike = (gate for length in lengths for gate in _by_length().get(length, ()))
    return next((gate for gate in alike if _is_slip(name, gate) and not _is_refused_name(gate, minor)), None)


def _is_slip(name: str, gate: str) -> bool:
    """Whether the two differ in case, or in one letter."""
    if name == gate:
        return False
    if name.lower() == gate.lower():
        return True
    start = next((at for at, (mine, its) in enumerate(zip(name, gate)) if mine != its), min(len(name), len(gate)))
    return any(name[start + mine :] == gate[start + its :] for mine, its in ((1, 1), (0, 1), (1, 0)))
