# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kubelet's flags that give what its configuration gives, too; a flag wins.

All are deprecated and still work in Kubernetes 1.36.
Source: cmd/kubelet/app/options/options.go; k8s.io/component-base/cli/flag; github.com/spf13/pflag.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ...errors import InputError
from ...policy.options import BOOLEANS
from ...tree import is_number

TEXT, NUMBER, SWITCH, LIST, MAP = "text", "number", "switch", "list", "map"
THRESHOLDS, GATES, MEMORY = "thresholds", "gates", "memory"
# One pair for each time that the flag is given: of PAIR a comma belongs to the value, PAIRS may have several.
PAIR, PAIRS = "pair", "pairs"


class Flag(NamedTuple):
    """What a flag gives: a field of the KubeletConfiguration, in this form."""

    field: str
    form: str = TEXT


FLAGS: dict[str, Flag] = {
    "--cpu-manager-policy": Flag("cpuManagerPolicy"),
    "--cpu-manager-policy-options": Flag("cpuManagerPolicyOptions", PAIR),
    "--cpu-manager-reconcile-period": Flag("cpuManagerReconcilePeriod"),
    "--topology-manager-policy": Flag("topologyManagerPolicy"),
    "--topology-manager-scope": Flag("topologyManagerScope"),
    "--topology-manager-policy-options": Flag("topologyManagerPolicyOptions", PAIRS),
    "--memory-manager-policy": Flag("memoryManagerPolicy"),
    "--reserved-memory": Flag("reservedMemory", MEMORY),
    "--kube-reserved": Flag("kubeReserved", MAP),
    "--system-reserved": Flag("systemReserved", MAP),
    "--reserved-cpus": Flag("reservedSystemCPUs"),
    "--kube-reserved-cgroup": Flag("kubeReservedCgroup"),
    "--system-reserved-cgroup": Flag("systemReservedCgroup"),
    "--enforce-node-allocatable": Flag("enforceNodeAllocatable", LIST),
    "--eviction-hard": Flag("evictionHard", THRESHOLDS),
    "--cpu-cfs-quota": Flag("cpuCFSQuota", SWITCH),
    "--cpu-cfs-quota-period": Flag("cpuCFSQuotaPeriod"),
    "--cgroup-driver": Flag("cgroupDriver"),
    "--cgroup-root": Flag("cgroupRoot"),
    "--container-runtime-endpoint": Flag("containerRuntimeEndpoint"),
    "--healthz-bind-address": Flag("healthzBindAddress"),
    "--healthz-port": Flag("healthzPort", NUMBER),
    "--fail-cgroupv1": Flag("failCgroupV1", SWITCH),
    "--feature-gates": Flag("featureGates", GATES),
}
NAMES = {flag.field: name for name, flag in FLAGS.items()}

CONFIG, CONFIG_DIR, ROOT_DIR = "--config", "--config-dir", "--root-dir"
PATHS = (CONFIG, CONFIG_DIR, ROOT_DIR)

FEATURE_GATES = "featureGates"

# What follows it are no flags.
END_OF_FLAGS = "--"


class Given(NamedTuple):
    """A flag that is given, and who gives it."""

    name: str
    value: str
    source: str


def read_flags(arguments: Iterable[str], source: str) -> list[Given]:
    """The flags among these arguments that are known here, in order."""
    given = []
    for name, words in split_flags(arguments):
        if name:
            _name, equals, value = words[0].partition("=")
            if not equals:
                value = "true" if _is_switch(name) else "".join(words[1:])
            given.append(Given(name, value, source))
    return given


def split_flags(arguments: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The name of each flag with its words, which are one or two. What is not known here has no name."""
    rest = iter(arguments)
    for argument in rest:
        if argument == END_OF_FLAGS:
            yield from (("", [word]) for word in (argument, *rest))
            return
        name, equals, _value = argument.partition("=")
        name = name.replace("_", "-")
        if not name.startswith("--") or (name not in FLAGS and name not in PATHS):
            yield "", [argument]
        else:
            yield name, [argument, *(() if equals or _is_switch(name) else islice(rest, 1))]


def _is_switch(name: str) -> bool:
    return name in FLAGS and FLAGS[name].form == SWITCH


def path_of(given: Sequence[Given], name: str) -> str | None:
    """What the last flag of this name gives."""
    return next((flag.value for flag in reversed(given) if flag.name == name and flag.value), None)


def values_of(given: Iterable[Given]) -> dict[str, object]:
    """The fields that the flags give, as a KubeletConfiguration has them. Raises InputError."""
    values: dict[str, Any] = {}
    for flag in given:
        if flag.name in FLAGS:
            field, form = FLAGS[flag.name]
            try:
                # The last one counts, and members add up.
                value = _READERS[form](flag.value)
            except InputError as error:
                raise InputError("%s in %s: %s" % (flag.name, flag.source, error)) from error
            if field in values and isinstance(value, dict):
                values[field] = {**values[field], **value}
            elif field in values and isinstance(value, list):
                values[field] = values[field] + value
            else:
                values[field] = value
    return values


def arguments_for(field: str, value: Any) -> list[str]:
    """The flags that give a field this value; none for an empty map or list."""
    name = NAMES[field]
    form = FLAGS[name].form
    if form in (PAIR, PAIRS):
        return ["%s=%s=%s" % (name, key, text) for key, text in value.items()]
    if form == MEMORY:
        return ["%s=%d:%s" % (name, reservation["numaNode"], _pairs(reservation["limits"])) for reservation in value]
    if form in (MAP, THRESHOLDS, GATES):
        texts = {key: _text(item) for key, item in value.items()}
        return [name + "=" + _pairs(texts, "<" if form == THRESHOLDS else "=")] if value else []
    if form == LIST:
        return ["%s=%s" % (name, ",".join(value))] if value else []
    return ["%s=%s" % (name, _text(value))]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(texts: Mapping[str, object], sign: str = "=") -> str:
    return ",".join("%s%s%s" % (key, sign, text) for key, text in texts.items())


def _read_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError("found %r, expected a number" % text) from None


def _read_switch(text: str) -> object:
    return BOOLEANS.get(text, text)


def _read_list(text: str) -> list[str]:
    return text.split(",") if text else []


def _read_pair(text: str, sign: str = "=") -> dict[str, str]:
    if not text:
        return {}
    key, found, value = text.partition(sign)
    if not found:
        raise InputError("found %r, expected key%svalue" % (text, sign))
    return {key.strip(): value.strip()}


def _read_map(text: str, sign: str = "=") -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(",") if text else ():
        pairs.update(_read_pair(part, sign))
    return pairs


def _read_memory(text: str) -> list[dict[str, object]]:
    reserved = []
    for part in text.split(";") if text else ():
        node, _colon, limits = part.partition(":")
        if not is_number(node.strip()):
            raise InputError("found %r, expected NUMA-NODE:memory=QUANTITY" % part)
        reserved.append({"numaNode": int(node), "limits": _read_map(limits)})
    return reserved


_READERS: dict[str, Any] = {
    TEXT: str,
    NUMBER: _read_number,
    SWITCH: _read_switch,
    LIST: _read_list,
    MAP: _read_map,
    PAIR: _read_pair,
    PAIRS: _read_map,
    THRESHOLDS: lambda text: _read_map(text, "<"),
    GATES: lambda text: {name: _read_switch(value) for name, value in _read_map(text).items()},
    MEMORY: _read_memory,
}
