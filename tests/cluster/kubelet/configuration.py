# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What configures a kubelet: its flags, its file, the drop-ins, and its defaults.

Written for the tests alone and apart from the collection, so that the two can be held against each other.
Source: cmd/kubelet/app/server.go, cmd/kubelet/app/options, pkg/kubelet/apis/config/v1beta1/defaults.go.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Sequence

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

TEXT, NUMBER, MAP, SWITCHES = "text", "number", "map", "switches"

# {flag: (its field, its kind)}
FIELDS = {
    "cpu-manager-policy": ("cpuManagerPolicy", TEXT),
    "cpu-manager-policy-options": ("cpuManagerPolicyOptions", MAP),
    "cpu-manager-reconcile-period": ("cpuManagerReconcilePeriod", TEXT),
    "feature-gates": ("featureGates", SWITCHES),
    "healthz-bind-address": ("healthzBindAddress", TEXT),
    "healthz-port": ("healthzPort", NUMBER),
    "kube-reserved": ("kubeReserved", MAP),
    "kube-reserved-cgroup": ("kubeReservedCgroup", TEXT),
    "memory-manager-policy": ("memoryManagerPolicy", TEXT),
    "pod-manifest-path": ("staticPodPath", TEXT),
    "port": ("port", NUMBER),
    "reserved-cpus": ("reservedSystemCPUs", TEXT),
    "system-reserved": ("systemReserved", MAP),
    "system-reserved-cgroup": ("systemReservedCgroup", TEXT),
    "topology-manager-policy": ("topologyManagerPolicy", TEXT),
    "topology-manager-policy-options": ("topologyManagerPolicyOptions", MAP),
    "topology-manager-scope": ("topologyManagerScope", TEXT),
}
# Those that are no field, and their defaults.
PLACES = {"config": "", "config-dir": "", "hostname-override": "", "kubeconfig": "", "root-dir": "/var/lib/kubelet"}
# Nothing here depends on these.
OTHERS = frozenset(
    (
        *("bootstrap-kubeconfig", "cert-dir", "cgroup-driver", "container-runtime", "container-runtime-endpoint"),
        *("node-ip", "node-labels", "pod-infra-container-image", "runtime-cgroups", "v"),
    )
)
# A key and a value at each occurrence; others have several, between commas.
_SINGLE = "cpu-manager-policy-options"

DEFAULTS: dict[str, Any] = {
    "cpuManagerPolicy": "none",
    "cpuManagerReconcilePeriod": "10s",
    "healthzBindAddress": "127.0.0.1",
    "healthzPort": 10248,
    "memoryManagerPolicy": "None",
    "port": 10250,
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}

API_VERSION, KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"


class StartError(Exception):
    """The kubelet ends; the message is its own as far as it is known."""


class CommandLine(NamedTuple):
    """The flags: those that are no field, by name, and those that are, by field."""

    places: Mapping[str, str]
    fields: Mapping[str, Any]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> CommandLine:
        """Read the flags of a command line. Raises StartError."""
        places = dict(PLACES)
        fields: dict[str, Any] = {}
        rest = list(arguments)
        while rest:
            name, equals, value = rest.pop(0).partition("=")
            flag = name.removeprefix("--")
            if flag == name or flag not in {*FIELDS, *PLACES, *OTHERS}:
                raise StartError("failed to parse kubelet flag: unknown flag: %s" % name)
            if not equals:
                if not rest:
                    raise StartError("failed to parse kubelet flag: flag needs an argument: %s" % name)
                value = rest.pop(0)
            if flag in PLACES:
                places[flag] = value
            elif flag in FIELDS:
                field, kind = FIELDS[flag]
                fields[field] = _read(flag, kind, value, fields.get(field, {}))
        return cls(places, fields)


def _read(flag: str, kind: str, text: str, before: Mapping[str, Any]) -> Any:
    if kind == TEXT:
        return text
    if kind == NUMBER:
        return int(text)
    pairs = [text] if flag == _SINGLE else text.split(",")
    found = dict(pair.strip().partition("=")[::2] for pair in pairs if pair)
    if kind == SWITCHES:
        return {**before, **{name: value.lower() == "true" for name, value in found.items()}}
    return {**before, **found}


def effective_configuration(tree: Tree, command_line: CommandLine) -> dict[str, Any]:
    """Return what counts: flags before drop-ins before the file before the defaults. Raises StartError."""
    values: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    path = command_line.places["config"]
    if path:
        values = _read_file(tree, path)
    if command_line.places["config-dir"]:
        for drop_in in _drop_ins(tree, command_line.places["config-dir"]):
            values = merged(values, _read_file(tree, drop_in))
    gates = {**(values.get("featureGates") or {}), **command_line.fields.get("featureGates", {})}
    values = {**values, **command_line.fields, **({"featureGates": gates} if gates else {})}
    # What is empty is as if it was not there.
    return {**values, **{name: values.get(name) or value for name, value in DEFAULTS.items()}}


def _read_file(tree: Tree, path: str) -> dict[str, Any]:
    try:
        with open(tree.path(path), encoding="utf-8") as file:
            values = yaml.safe_load(file)
    except OSError as error:
        raise StartError(
            'failed to load kubelet config file, path: %s, error: failed to read kubelet config file "%s", error: %s'
            % (path, path, error.strerror)
        ) from error
    except yaml.YAMLError as error:
        raise StartError("failed to load kubelet config file, path: %s, error: %s" % (path, error)) from error
    if not isinstance(values, dict) or values.get("apiVersion") != API_VERSION or values.get("kind") != KIND:
        raise StartError("failed to load kubelet config file, path: %s, error: no apiVersion/kind" % path)
    return values


def _drop_ins(tree: Tree, directory: str) -> list[str]:
    """Return the files of the directory and those below, in the order in which they count."""
    here = tree.path(directory)
    if not os.path.isdir(here):
        raise StartError("failed to merge kubelet configs: failed to walk through kubelet dropin directory")
    found = []
    for place, directories, files in os.walk(here):
        directories.sort()
        found += [os.path.join(place, name) for name in files if name.endswith(".conf")]
    found.sort(key=lambda path: path.split("/"))
    return [directory.rstrip("/") + path[len(here.rstrip("/")) :] for path in found]


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON merge patch (RFC 7396): mappings are merged, a null removes, all else is replaced."""
    result = dict(base)
    for name, value in overlay.items():
        before = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def shown(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what /configz shows of a configuration."""
    reserved = values.get("reservedSystemCPUs")
    result = dict(values)
    if reserved:
        # The kubelet overwrites these in place, and then shows them.
        if "cpu" in (values.get("kubeReserved") or {}):
            result["kubeReserved"] = {name: text for name, text in values["kubeReserved"].items() if name != "cpu"}
        if values.get("systemReserved"):
            result["systemReserved"] = {**values["systemReserved"], "cpu": str(len(CPUSet.parse(reserved)))}
    return result
