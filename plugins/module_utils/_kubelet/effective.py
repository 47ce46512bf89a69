# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet runs with: its configuration file, its drop-in files and its flags, each over what comes before.

Source: cmd/kubelet/app/server.go (kubeletConfigFlagPrecedence, mergeKubeletConfigurations); RFC 7396.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import ConfigurationError, InputError
from .._base.startup import Pattern
from .._base.tree import is_number
from ..policy.options import BOOLEANS
from .configuration import API_VERSION, EVICTION_HARD, KIND, Configuration, ReplacedMap, merge_patch
from .start import flags as table
from .start.flags import Flag

# The kubelet's flags that give what its configuration gives, too, as far as they are read here; a flag wins.
#
# All are deprecated and still work in Kubernetes 1.36. What each takes, and which field it sets, is in the table of all
# flags. Its source: cmd/kubelet/app/options/options.go, k8s.io/component-base/cli/flag, github.com/spf13/pflag.

_READ = """
    cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period
    topology-manager-policy topology-manager-scope topology-manager-policy-options
    memory-manager-policy reserved-memory
    kube-reserved system-reserved reserved-cpus kube-reserved-cgroup system-reserved-cgroup
    enforce-node-allocatable eviction-hard
    cpu-cfs-quota cpu-cfs-quota-period
    cgroup-driver cgroup-root container-runtime-endpoint
    healthz-bind-address healthz-port fail-cgroupv1 feature-gates
"""
FLAGS: dict[str, Flag] = {"--" + name: table.FLAGS[name] for name in _READ.split()}
# Each sets a field of the KubeletConfiguration itself.
NAMES = {flag.path[0]: name for name, flag in FLAGS.items()}
# Written with one pair each time: of the first a comma belongs to the value.
_WRITTEN_ONE_BY_ONE = frozenset(("--cpu-manager-policy-options", "--topology-manager-policy-options"))

CONFIG, CONFIG_DIR, ROOT_DIR = "--config", "--config-dir", "--root-dir"
PATHS = (CONFIG, CONFIG_DIR, ROOT_DIR)

FEATURE_GATES = "featureGates"

# What int() does not read as Go does.
_OCTAL = Pattern("[+-]?0[0-7_]+")
# A line of CSV: texts, and texts in quotes, of which two stand for one.
_TEXT = '(?:"((?:[^"]|"")*)"|([^",]*))'
_FIELD = Pattern("," + _TEXT)
_RECORD = Pattern("%s(?:,%s)*" % (_TEXT, _TEXT))

# What follows it are no flags.
END_OF_FLAGS = "--"


class GivenFlag(NamedTuple):
    """A flag that is given, and who gives it."""

    name: str
    value: str
    source: str


def read_flags(arguments: Iterable[str], source: str) -> list[GivenFlag]:
    """The flags among these arguments that are known here, in order."""
    given = []
    for name, words in split_flags(arguments):
        if name:
            _name, equals, value = words[0].partition("=")
            if not equals:
                value = "true" if _is_switch(name) else "".join(words[1:])
            given.append(GivenFlag(name, value, source))
    return given


def split_flags(arguments: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The name of each flag with its words, which are one or two. What is not read here has no name."""
    rest = iter(arguments)
    for argument in rest:
        if argument == END_OF_FLAGS:
            yield from (("", [word]) for word in (argument, *rest))
            return
        name, equals, _value = argument.partition("=")
        name = name.replace("_", "-")
        flag = table.FLAGS.get(name[2:]) if name.startswith("--") else None
        words = [argument, *(() if equals or flag is None or flag.kind in table.SWITCHES else islice(rest, 1))]
        yield name if name in FLAGS or name in PATHS else "", words


def _is_switch(name: str) -> bool:
    return name in FLAGS and FLAGS[name].kind in table.SWITCHES


def path_of(given: Sequence[GivenFlag], name: str) -> str | None:
    """What the last flag of this name gives."""
    return next((flag.value for flag in reversed(given) if flag.name == name and flag.value), None)


def values_of(given: Iterable[GivenFlag]) -> dict[str, object]:
    """The fields that the flags give, as a KubeletConfiguration has them. Raises InputError."""
    values: dict[str, Any] = {}
    for flag in given:
        if flag.name in FLAGS:
            (field,), kind = FLAGS[flag.name].path, FLAGS[flag.name].kind
            try:
                # The last one counts, and members add up.
                value = _READERS[kind](flag.value)
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
    kind = FLAGS[name].kind
    if name in _WRITTEN_ONE_BY_ONE:
        return ["%s=%s=%s" % (name, key, text) for key, text in value.items()]
    if kind == table.MEMORY:
        return ["%s=%d:%s" % (name, reservation["numaNode"], _pairs(reservation["limits"])) for reservation in value]
    if kind in (table.PAIRS, table.THRESHOLDS, table.GATES):
        texts = {key: _text(item) for key, item in value.items()}
        return [name + "=" + _pairs(texts, "<" if kind == table.THRESHOLDS else "=")] if value else []
    if kind == table.STRINGS:
        return ["%s=%s" % (name, ",".join(value))] if value else []
    return ["%s=%s" % (name, _text(value))]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(texts: Mapping[str, object], sign: str = "=") -> str:
    return ",".join("%s%s%s" % (key, sign, text) for key, text in texts.items())


def _read_number(text: str) -> int:
    """As Go reads it: 0x1f, 0o17, 017, 0b11, 1_000."""
    try:
        return int(text, 8 if _OCTAL.fullmatch(text) else 0)
    except ValueError:
        raise InputError("found %r, expected a number" % text) from None


def _read_switch(text: str) -> object:
    return BOOLEANS.get(text, text)


def _read_list(text: str) -> list[str]:
    """As Go reads a line of CSV."""
    if not text:
        return []
    if not _RECORD.fullmatch(text):
        raise InputError("found %r, expected texts with commas between them" % text)
    # Each is preceded by a comma.
    return [plain or quoted.replace('""', '"') for quoted, plain in _FIELD.findall("," + text)]


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
    table.STRING: str,
    table.DURATION: str,
    table.IP: str,
    table.INT32: _read_number,
    table.BOOL: _read_switch,
    table.STRINGS: _read_list,
    table.PAIR: _read_pair,
    table.PAIRS: _read_map,
    table.THRESHOLDS: lambda text: _read_map(text, "<"),
    table.GATES: lambda text: {name: _read_switch(value) for name, value in _read_map(text).items()},
    table.MEMORY: _read_memory,
}


# Filled in where the --config file has none, before anything is merged into it.
_EVICTION = {"evictionHard": dict(EVICTION_HARD)}


class Layer(NamedTuple):
    """What one file gives, or what all flags give; the latter name the source of each."""

    values: Mapping[str, Any]
    source: str = ""
    flags: Sequence[GivenFlag] = ()

    def gives(self, path: Sequence[str]) -> bool:
        """Whether it decides on what is at `path`: gives it, or takes it away."""
        # A flag gives a whole map, and only feature gates one by one.
        if self.flags and path[0] != FEATURE_GATES:
            return path[0] in self.values
        values: object = self.values
        for key in path:
            if not isinstance(values, Mapping):
                return True
            if key not in values:
                return False
            values = values[key]
        return True

    def flag_of(self, field: str) -> GivenFlag:
        """The flag that gives a field. Raises StopIteration where none does."""
        return next(flag for flag in reversed(self.flags) if flag.name == NAMES[field])

    def origin(self, path: Sequence[str], has_value: bool = False) -> str:
        """Who of this layer gives it: a file, or a flag in a file. has_value: name the flag with its value."""
        if not self.flags:
            return self.source
        flag = self.flag_of(path[0])
        return "%s%s in %s" % (flag.name, "=" + flag.value if has_value else "", flag.source)


class EffectiveConfiguration(Configuration):
    """What a kubelet runs with, and who gives what; the later of the `layers` win."""

    __slots__ = ("layers",)

    def __init__(self, layers: Sequence[Layer]) -> None:
        values: dict[str, object] = {"apiVersion": API_VERSION, "kind": KIND}
        for number, layer in enumerate(layers):
            if number and not layer.flags:
                values = merge_patch(values, layer.values)
            else:
                values = _with_flags(values, layer.values)
        super().__init__(values, next((layer.source for layer in layers if layer.source), "the kubelet's flags"))
        self.layers = tuple(layers)

    def has_flag(self, field: str) -> bool:
        """Whether a flag gives this field as a whole, whatever the files give."""
        return field != FEATURE_GATES and any(layer.flags and field in layer.values for layer in self.layers[-1:])

    def replaced_maps(self) -> list[ReplacedMap]:
        """The maps of which a flag takes away what the files give."""
        files = EffectiveConfiguration(self.layers[:-1])
        found = []
        for field, value in self.layers[-1].values.items() if self.layers else ():
            below = files.values.get(field)
            if not self.has_flag(field) or not isinstance(value, Mapping) or not isinstance(below, Mapping):
                continue
            flag = self.layers[-1].flag_of(field)
            lost: dict[str, dict[str, Any]] = {}
            for key in below:
                # Default thresholds are filled in for files, and are nobody's.
                if key not in value and not (field == "evictionHard" and EVICTION_HARD.get(key) == below[key]):
                    lost.setdefault(str(files.origin((field, key))), {})[key] = below[key]
            found += [ReplacedMap(field, flag.name, flag.source, *members) for members in lost.items()]
        return found

    def origin(self, path: Sequence[str], has_value: bool = False) -> str | None:
        return next((layer.origin(path, has_value) for layer in reversed(self.layers) if layer.gives(path)), None)


def effective_configuration(
    file: Configuration | None, drop_ins: Sequence[Configuration], given: Sequence[GivenFlag]
) -> EffectiveConfiguration:
    """What these make together. Raises ConfigurationError for a flag that the kubelet cannot read."""
    layers = [Layer(drop_in.values, drop_in.source) for drop_in in drop_ins]
    if file is not None:
        needs_defaults = any("evictionHard" in drop_in.values for drop_in in drop_ins)
        layers.insert(0, Layer({**(_EVICTION if needs_defaults else {}), **file.values}, file.source))
    flags = tuple(flag for flag in given if flag.name in FLAGS)
    if flags:
        try:
            layers.append(Layer(values_of(flags), "", flags))
        except InputError as error:
            raise ConfigurationError(error.what, error.where, error.remedy) from error
    return EffectiveConfiguration(layers)


def _with_flags(values: Mapping[str, object], given: Mapping[str, Any]) -> dict[str, object]:
    gates = values.get(FEATURE_GATES)
    merged = {**values, **given}
    if FEATURE_GATES in given and isinstance(gates, Mapping):
        merged[FEATURE_GATES] = {**gates, **given[FEATURE_GATES]}
    return merged
