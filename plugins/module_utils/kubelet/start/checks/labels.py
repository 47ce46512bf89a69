# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names and values of labels and taints, and what Kubernetes says of those that are none.

Source: k8s.io/apimachinery/pkg/api/validate/content (kube.go, dns.go, errors.go); k8s.io/kubelet/pkg/apis
(well_known_labels.go); pkg/util/taints; cmd/kubelet/app/options (ValidateKubeletFlags).
"""

from __future__ import annotations

from typing import Mapping

from ....errors import GoError
from ....pattern import Pattern

_MAX_NAME = 63
_MAX_PREFIX = 253
_NAME_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_FORM = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_PREFIX_FORM = r"%s(\.%s)*" % (_LABEL_FORM, _LABEL_FORM)

# Forms that match the same in linear time.
_NAME = Pattern("[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX_LABEL = Pattern("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")

_CHARACTERS = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
_NAME_FAULT = "%s character (e.g. 'MyName' or 'my.name' or '123-abc', regex used for validation is '%s')" % (
    _CHARACTERS,
    _NAME_FORM,
)
_VALUE_FAULT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue' or 'my_value' or '12345',"
    " regex used for validation is '(%s)?')"
) % _NAME_FORM
_PREFIX_FAULT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is '%s')"
) % _PREFIX_FORM

# Kubernetes 1.35 calls what was a qualified name a label key.
_LABEL_KEY = 35

_OF_KUBERNETES = ("kubernetes.io", "k8s.io")
_NAMESPACES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_ALLOWED = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def name_faults(key: str, minor: int) -> list[str]:
    """What is wrong with the key of a label or taint."""
    parts = key.split("/")
    if len(parts) > 2:
        what = "a valid label key" if minor >= _LABEL_KEY else "a qualified name"
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return ["%s %s%s" % (what, _NAME_FAULT, optional)]
    faults = ["prefix part %s" % fault for fault in _prefix_faults(parts[0])] if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    elif _size(name) > _MAX_NAME:
        faults.append("name part must be no more than %d bytes" % _MAX_NAME)
    if not _NAME.fullmatch(name):
        faults.append("name part %s" % _NAME_FAULT)
    return faults


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    faults = ["must be no more than %d bytes" % _MAX_PREFIX] if _size(prefix) > _MAX_PREFIX else []
    if not all(_PREFIX_LABEL.fullmatch(label) for label in prefix.split(".")):
        faults.append(_PREFIX_FAULT)
    return faults


def value_faults(value: str) -> list[str]:
    """What is wrong with the value of a label or taint."""
    faults = ["must be no more than %d bytes" % _MAX_NAME] if _size(value) > _MAX_NAME else []
    if value and not _NAME.fullmatch(value):
        faults.append(_VALUE_FAULT)
    return faults


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def labels_fault(labels: Mapping[str, str], minor: int) -> str:
    """What the kubelet says of the labels for its node, "" where nothing is wrong with them."""
    unknown = sorted(key for key in labels if _is_of_kubernetes(key) and not _is_allowed(key))
    if unknown:
        return (
            "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [%s]\n"
            "--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (%s)"
            " or be in the specifically allowed set (%s)"
        ) % (" ".join(unknown), ", ".join(_NAMESPACES), ", ".join(_ALLOWED))
    faults: dict[str, list[str]] = {}
    for key, value in labels.items():
        for text, found in ((key, name_faults(key, minor)), (value, value_faults(value))):
            if found:
                faults.setdefault(text, []).extend(found)
    # Go's order of them is random: only a single one is certain.
    first = next(("'%s' - %s" % (text, ", ".join(found)) for text, found in faults.items()), "")
    return "invalid node labels: %s" % (first if len(faults) == 1 else "'") if faults else ""


def _namespace(key: str) -> str:
    namespace, slash, _name = key.partition("/")
    return namespace if slash else ""


def _is_of_kubernetes(key: str) -> bool:
    return _is_within(_namespace(key), _OF_KUBERNETES)


def _is_allowed(key: str) -> bool:
    return key in _ALLOWED or _is_within(_namespace(key), _NAMESPACES)


def _is_within(namespace: str, domains: tuple[str, ...]) -> bool:
    return any(namespace == domain or namespace.endswith("." + domain) for domain in domains)


def read_taints(text: str, minor: int) -> list[dict[str, str]]:
    """Taints as `key=value:effect` with commas between them; one that ends in "-" is checked only. Raises GoError."""
    taints: dict[tuple[str, str], dict[str, str]] = {}
    for spec in text.split(",") if text else ():
        removed = spec.endswith("-")
        taint = _read_taint(spec[:-1] if removed else spec, minor)
        if removed:
            continue
        if not taint["effect"]:
            raise GoError("invalid taint spec: %s" % spec)
        mark = (taint["effect"], taint["key"])
        if mark in taints:
            shown = " ".join((taint["key"], taint["value"], taint["effect"]))
            raise GoError("duplicated taints with the same key and effect: {%s <nil>}" % shown)
        taints[mark] = taint
    return list(taints.values())


def _read_taint(spec: str, minor: int) -> dict[str, str]:
    parts = spec.split(":")
    if len(parts) > 2:
        raise GoError("invalid taint spec: %s" % spec)
    key, value, effect = parts[0], "", ""
    if len(parts) == 2:
        effect = parts[1]
        if effect not in _EFFECTS:
            raise GoError("invalid taint effect: %s, unsupported taint effect" % effect)
        pair = key.split("=")
        if len(pair) > 2:
            raise GoError("invalid taint spec: %s" % spec)
        key, value = pair[0], pair[1] if len(pair) == 2 else ""
    for faults in (value_faults(value), name_faults(key, minor)):
        if faults:
            raise GoError("invalid taint spec: %s, %s" % (spec, "; ".join(faults)))
    return {"key": key, "value": value, "effect": effect}
