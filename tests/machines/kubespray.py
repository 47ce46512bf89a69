# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kubespray, from 2.26 on, writes for its variables into a kubelet's configuration, as far as it is about CPUs.

Source: roles/kubernetes/node, kubelet-config.v1beta1.yaml.j2 and its defaults. Each section is written by itself, so a
field that two variables give is there twice.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping

import yaml

from .kubelets import HEADER

DEFAULTS: dict[str, Any] = {
    "kube_reserved": False,
    "kube_reserved_cgroups": "/kube.slice",
    "kube_cpu_reserved": "100m",
    "kube_memory_reserved": "256Mi",
    "system_reserved": False,
    "system_reserved_cgroups": "/system.slice",
    "system_cpu_reserved": "500m",
    "system_memory_reserved": "512Mi",
}
_OF_ONE_FIELD = {
    "kubelet_cpu_manager_policy": "cpuManagerPolicy",
    "kubelet_cpu_manager_policy_options": "cpuManagerPolicyOptions",
    "kubelet_topology_manager_policy": "topologyManagerPolicy",
    "kubelet_topology_manager_scope": "topologyManagerScope",
}


def configuration(variables: Mapping[str, Any], in_kube_node: bool = True) -> str:
    """Return the text of the file. in_kube_node: whether the host is in that group."""
    sections = _sections({**DEFAULTS, **variables}, in_kube_node)
    return HEADER + "".join(yaml.safe_dump(section) for section in sections if section)


def fields(variables: Mapping[str, Any], in_kube_node: bool = True) -> dict[str, Any]:
    """Return the fields of the file; none may be there twice."""
    found: dict[str, Any] = {}
    for section in _sections({**DEFAULTS, **variables}, in_kube_node):
        assert not set(section) & set(found), "%s is there twice" % ", ".join(set(section) & set(found))
        found.update(section)
    return found


def _sections(variables: Mapping[str, Any], in_kube_node: bool) -> Iterator[dict[str, Any]]:
    enforced = variables.get("kubelet_enforce_node_allocatable")
    if enforced:
        yield {"enforceNodeAllocatable": enforced.split(",")}
    for scope in ("kube", "system"):
        is_on = variables[scope + "_reserved"]
        if is_on:
            yield {scope + "ReservedCgroup": variables[scope + "_reserved_cgroups"]}
        if is_on or scope == "kube":
            names = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeral_storage", "pid": "pid"}
            given = {key: variables.get("%s_%s_reserved" % (scope, name)) for key, name in names.items()}
            yield {scope + "Reserved": {key: value for key, value in given.items() if value is not None}}
    yield variables.get("kubelet_config_extra_args") or {}
    if in_kube_node:
        yield variables.get("kubelet_node_config_extra_args") or {}
    gates = variables.get("kubelet_feature_gates")
    if gates:
        yield {"featureGates": dict(_gate(gate) for gate in gates)}
    for variable, field in _OF_ONE_FIELD.items():
        if variable in variables:
            yield {field: variables[variable]}


def _gate(text: str) -> tuple[str, bool]:
    name, _equals, value = text.partition("=")
    return name, value == "true"
