# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wanted settings in the form of the system that writes the kubelet's configuration, ready to paste there. Pure.

Sources: kubelet-config.v1beta1.yaml.j2 of kubespray; NodeConfig (node.eks.aws/v1alpha1) of nodeadm; v1alpha1 config of
Talos; KubeletConfig of the machine config operator; packages/kubernetes-1.33/kubelet-config of bottlerocket-core-kit;
spec.workerProfiles of k0s; nodeup/pkg/model/kubelet.go of kOps; pkg/apis/core/v1beta1/types_shoot.go of Gardener.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Collection, Mapping

from .configuration import Configuration, edit
from .distributions import Distribution
from .settings import SETTINGS, written
from .settings import companions as companions_of
from .yaml_nodes import REMOVE, value_at

_Fields = Mapping[Any, Any]
_FEATURE_GATES = "featureGates"


def elsewhere(
    distribution: Distribution,
    settings: Mapping[str, Any],
    companions: Mapping[Any, Any] | None = None,
    found: Mapping[str, Any] | None = None,
) -> dict[str, str] | None:
    """Return where else the settings of a node have to be, and what to write there; None where nobody else writes them.

    settings: the wanted ones, by the names in SETTINGS. companions: what goes with them, as {path: value} of
    settings.Plan. found: the configuration of the node as it is.
    The answer is {"name", "why", "snippet"}; the snippet is empty where there is nothing to paste.
    """
    if not distribution.pointer:
        return None
    changes = {SETTINGS[name].path: written(name, settings[name]) for name in SETTINGS if name in settings}
    changes.update(companions or {})
    if distribution.name == _KUBESPRAY:
        snippet = _kubespray(changes, found or {})
    else:
        fields, form = _set(changes), _FORMS.get(distribution.name)
        snippet = form(fields) if form is not None and fields else ""
    return {"name": distribution.name, "why": distribution.pointer, "snippet": snippet}


def companions_elsewhere(wanted: Mapping[str, Any], found: dict[str, Any], minor: int) -> dict[tuple[str, ...], object]:
    """Return what goes with these settings for a kubelet 1.`minor`, as settings.Plan has it.

    Feature gates that are on only because the node's file says so are a part of it: the system that writes the file
    anew does not know them.
    """
    return {
        **companions_of(wanted, Configuration({}, "the defaults"), minor),
        **companions_of(wanted, Configuration(found, "the file"), minor),
    }


def _set(changes: _Fields) -> dict[Any, Any]:
    """Return the fields that are to have a value."""
    return {path: value for path, value in changes.items() if value is not REMOVE and value is not None}


# --- forms --------------------------------------------------------------------------------------------


def _tree(fields: _Fields) -> dict[str, Any]:
    """Return the fields as a configuration file nests them."""
    tree: dict[str, Any] = {}
    for path, value in fields.items():
        inner = tree
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return tree


def _yaml(tree: Mapping[str, object]) -> str:
    return edit("", {}, dict(tree))


def _within(wrap: Callable[[dict[str, object]], dict[str, object]]) -> Callable[[_Fields], str]:
    """Return the form of a system that takes any field of KubeletConfiguration, somewhere in its own document."""
    return lambda fields: _yaml(wrap(_tree(fields)))


def _taking(
    supported: Collection[str],
    wrap: Callable[[dict[str, object]], dict[str, object]],
    gate: Callable[[bool], object] = bool,
) -> Callable[[_Fields], str]:
    """Return the form of a system that has these fields of KubeletConfiguration and no others."""

    def form(fields: _Fields) -> str:
        taken = {
            path: gate(value) if path[0] == _FEATURE_GATES else value
            for path, value in fields.items()
            if path[0] in supported
        }
        return _missing(path for path in fields if path not in taken) + (_yaml(wrap(_tree(taken))) if taken else "")

    return form


def _missing(paths: Any) -> str:
    names = [".".join(path) for path in paths]
    return "# There is no field for: %s.\n" % ", ".join(names) if names else ""


# --- kubespray ----------------------------------------------------------------------------------------

_KUBESPRAY = "kubespray"
_KUBESPRAY_VARIABLES = {
    ("cpuManagerPolicy",): "kubelet_cpu_manager_policy",
    ("cpuManagerPolicyOptions",): "kubelet_cpu_manager_policy_options",
    ("topologyManagerPolicy",): "kubelet_topology_manager_policy",
    ("topologyManagerScope",): "kubelet_topology_manager_scope",
    ("kubeReserved", "cpu"): "kube_cpu_reserved",
    ("kubeReserved", "memory"): "kube_memory_reserved",
}
_SYSTEM_RESERVED, _SYSTEM_CGROUP = "systemReserved", "systemReservedCgroup"
# kubespray writes these with kube_reserved and system_reserved. The kubelet refuses both beside reservedSystemCPUs.
_CGROUPS = (("kubeReservedCgroup",), (_SYSTEM_CGROUP,))
_EXTRA = "# Add to what kubelet_config_extra_args has, and remove these keys from kubelet_node_config_extra_args.\n"


def _kubespray(changes: _Fields, found: Mapping[str, Any]) -> str:
    fields = _set(changes)
    variables: dict[str, object] = {
        variable: fields.pop(path) for path, variable in _KUBESPRAY_VARIABLES.items() if path in fields
    }
    gates = {path[1]: fields.pop(path) for path in list(fields) if path[0] == _FEATURE_GATES}
    if gates:
        # One list has all of them: those that are not ours would go.
        others = found.get(_FEATURE_GATES)
        gates = {**(others if isinstance(others, Mapping) else {}), **gates}
        variables["kubelet_feature_gates"] = ["%s=%s" % (name, str(value).lower()) for name, value in gates.items()]
    extra = {path: value for path, value in fields.items() if path[0] != _SYSTEM_RESERVED and path not in _CGROUPS}
    names_cpus = ("reservedSystemCPUs",) in fields
    if names_cpus:
        variables["kube_reserved"] = False
    if names_cpus or any(path[0] == _SYSTEM_RESERVED for path in changes):
        amounts = _system_reserved(changes, found)
        has_cgroup = bool(found.get(_SYSTEM_CGROUP)) and not names_cpus
        variables["system_reserved"] = has_cgroup
        if has_cgroup:
            # Without a value kubespray takes its defaults for these two.
            for name, amount in {"cpu": "0", "memory": "0", **amounts}.items():
                variables["system_%s_reserved" % name.replace("-", "_")] = amount
        else:
            # With system_reserved, kubespray would write the cgroup, too.
            extra.update({(_SYSTEM_RESERVED, name): amount for name, amount in amounts.items()})
    if extra:
        variables["kubelet_config_extra_args"] = _tree(extra)
    return (_EXTRA if extra else "") + (_yaml(variables) if variables else "")


def _system_reserved(changes: _Fields, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of systemReserved once it is changed: kubespray has one place for the whole of it."""
    amounts = found.get(_SYSTEM_RESERVED)
    amounts = dict(amounts) if isinstance(amounts, Mapping) else {}
    amounts.update({path[1]: value for path, value in changes.items() if path[0] == _SYSTEM_RESERVED})
    return {name: amount for name, amount in amounts.items() if amount is not REMOVE}


# --- Bottlerocket -------------------------------------------------------------------------------------

_BOTTLEROCKET = {
    "cpuManagerPolicy": "cpu-manager-policy",
    "cpuManagerPolicyOptions": "cpu-manager-policy-options",
    "cpuManagerReconcilePeriod": "cpu-manager-reconcile-period",
    "topologyManagerPolicy": "topology-manager-policy",
    "topologyManagerScope": "topology-manager-scope",
    "memoryManagerPolicy": "memory-manager-policy",
    "cpuCFSQuota": "cpu-cfs-quota-enforced",
    "reservedSystemCPUs": "reserved-cpus",
}
_BOTTLEROCKET_TABLES = {"kubeReserved": "kube-reserved", "systemReserved": "system-reserved"}
_RESERVED_MEMORY = "reservedMemory"


def _bottlerocket(fields: _Fields) -> str:
    tree = _tree(fields)
    table = "settings.kubernetes"
    values = {key: tree[field] for field, key in _BOTTLEROCKET.items() if field in tree}
    options = values.get("cpu-manager-policy-options")
    if options is not None:
        # A list of those that are on.
        values["cpu-manager-policy-options"] = [name for name, value in options.items() if value == "true"]
    tables = {table: values} if values else {}
    for field, key in _BOTTLEROCKET_TABLES.items():
        if field in tree:
            tables["%s.%s" % (table, key)] = tree[field]
    for entry in tree.get(_RESERVED_MEMORY, ()):
        name = "%s.memory-manager-reserved-memory.%s" % (table, value_at(entry, ("numaNode",)) or 0)
        tables[name] = {"enabled": True, **entry["limits"]}
    offered = {*_BOTTLEROCKET, *_BOTTLEROCKET_TABLES, _RESERVED_MEMORY}
    return _missing(path for path in fields if path[0] not in offered) + "\n".join(
        "[%s]\n%s" % (name, "".join("%s = %s\n" % (key, json.dumps(value)) for key, value in members.items()))
        for name, members in tables.items()
    )


# --- all ----------------------------------------------------------------------------------------------

_POOL = {"pools.operator.machineconfiguration.openshift.io/worker": ""}

_FORMS: dict[str, Callable[[_Fields], str]] = {
    "EKS AL2023": _within(
        lambda tree: {
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {"kubelet": {"config": tree}},
        }
    ),
    "Talos": _within(lambda tree: {"machine": {"kubelet": {"extraConfig": tree}}}),
    "OpenShift": _within(
        lambda tree: {
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "KubeletConfig",
            "metadata": {"name": "cpu-manager"},
            "spec": {"machineConfigPoolSelector": {"matchLabels": _POOL}, "kubeletConfig": tree},
        }
    ),
    "MicroShift": _within(lambda tree: {"kubelet": tree}),
    "KubeEdge": _within(lambda tree: {"modules": {"edged": {"tailoredKubeletConfig": tree}}}),
    "k0s": _within(lambda tree: {"spec": {"workerProfiles": [{"name": "cpu-manager", "values": tree}]}}),
    "Bottlerocket": _bottlerocket,
    "kOps": _taking(
        (
            "cpuManagerPolicy",
            "topologyManagerPolicy",
            "cpuCFSQuota",
            "cpuCFSQuotaPeriod",
            "kubeReserved",
            "systemReserved",
            _FEATURE_GATES,
        ),
        lambda tree: {"spec": {"kubelet": tree}},
        # As texts.
        lambda value: str(value).lower(),
    ),
    "Gardener": _taking(
        ("cpuManagerPolicy", "cpuCFSQuota", "kubeReserved", _FEATURE_GATES),
        lambda tree: {"spec": {"kubernetes": {"kubelet": tree}}},
    ),
}
