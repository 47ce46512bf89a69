# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On which nodes the scheduler may put a pod, CPUs aside: node selector, required node affinity, taints. Pure.

Source: pkg/scheduler/framework/plugins/nodeaffinity and tainttoleration, nodeaffinity and Toleration.ToleratesTaint in
k8s.io/component-helpers.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from ...module_utils._base.errors import MALFORMED

_HARD = ("NoSchedule", "NoExecute")
_NAME = "metadata.name"


class Place(NamedTuple):
    """A node as the scheduler sees it, but for its resources."""

    name: str
    labels: Mapping[str, object] = {}
    # Those that keep pods away.
    taints: Sequence[Mapping[str, Any]] = ()


class Rules(NamedTuple):
    """What a pod says of its node. terms: of its required node affinity, any of which is enough; None without one."""

    selector: Mapping[str, object] = {}
    tolerations: Sequence[Mapping[str, Any]] = ()
    terms: Sequence[Mapping[str, Any]] | None = None

    @property
    def is_for_all(self) -> bool:
        """Whether it asks for no nodes of a kind."""
        return not self.selector and self.terms is None

    def allow(self, place: Place) -> bool:
        """Whether the pod may come to this node."""
        return self.choose(place) and all(
            any(tolerates(toleration, taint) for toleration in self.tolerations) for taint in place.taints
        )

    def choose(self, place: Place) -> bool:
        """Whether the node is one of those that the pod asks for, which its kubelet checks, too; taints aside."""
        return matches(self.selector, place.labels) and (
            self.terms is None or any(_meets(term, place) for term in self.terms)
        )

    def only_names(self) -> list[str] | None:
        """The names of the only nodes that it may come to, as a pod of a DaemonSet has one; None where it has none."""
        if self.terms is None:
            return None
        names: list[str] = []
        for term in self.terms:
            fields = [field for field in term.get("matchFields") or () if field.get("operator") == "In"]
            if not fields:
                return None
            names += map(str, fields[0].get("values") or ())
        return names


def place_of(node: Mapping[str, Any]) -> Place:
    """The node that the API server describes."""
    metadata, spec = node.get("metadata") or {}, node.get("spec") or {}
    taints = [taint for taint in spec.get("taints") or () if taint.get("effect") in _HARD]
    return Place(str(metadata.get("name", "")), metadata.get("labels") or {}, taints)


def rules_of(spec: Mapping[str, Any]) -> Rules:
    """What the spec of a pod says."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else tuple(required.get("nodeSelectorTerms") or ())
    return Rules(spec.get("nodeSelector") or {}, spec.get("tolerations") or (), terms)


def matches(selector: Mapping[str, object], labels: Mapping[str, object]) -> bool:
    """Whether the labels have all that the selector names."""
    return all(labels.get(key) == value for key, value in selector.items())


def selects(selector: Mapping[str, Any], labels: Mapping[str, object]) -> bool:
    """Whether a label selector, as of a PodDisruptionBudget, names what has these labels; an empty one names all."""
    return matches(selector.get("matchLabels") or {}, labels) and _all_hold(
        selector.get("matchExpressions") or (), labels
    )


def tolerates(toleration: Mapping[str, object], taint: Mapping[str, object]) -> bool:
    """Whether the taint does not count for who has this toleration."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    if (toleration.get("operator") or "Equal") == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def _meets(term: Mapping[str, Any], place: Place) -> bool:
    """A term that asks for nothing is met by no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return bool(expressions or fields) and (
        _all_hold(expressions, place.labels) and _all_hold(fields, {_NAME: place.name})
    )


def _all_hold(requirements: Iterable[Mapping[str, Any]], found: Mapping[str, object]) -> bool:
    return all(_holds(requirement, found) for requirement in requirements)


def _holds(requirement: Mapping[str, Any], found: Mapping[str, object]) -> bool:
    holds = _OPERATORS.get(requirement.get("operator"))
    value = found.get(requirement.get("key", ""))
    try:
        return holds is not None and holds(value, requirement.get("values") or ())
    except MALFORMED:  # such as a label that is no number
        return False


# What each says of a label's value, which is None where the node has no such label.
_OPERATORS: Mapping[object, Callable[[Any, Sequence[Any]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _values: value is not None,
    "DoesNotExist": lambda value, _values: value is None,
    "Gt": lambda value, values: int(value) > int(next(iter(values), "")),
    "Lt": lambda value, values: int(value) < int(next(iter(values), "")),
}
