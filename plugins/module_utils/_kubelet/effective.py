# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet runs with: its configuration file, its drop-in files and its flags, each over what comes before.

Source: cmd/kubelet/app/server.go (kubeletConfigFlagPrecedence, mergeKubeletConfigurations); RFC 7396.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import ConfigurationError, GoError, InputError
from .._base.tree import is_number
from ..policy.options import BOOLEANS
from . import flags as table
from .configuration import API_VERSION, EVICTION_HARD, KIND, Configuration, ReplacedMap, merge_patch
from .flags import Flag, put_over

# The kubelet's flags that give what its configuration gives, too, as far as they are read here; a flag wins.
FLAGS: dict[str, Flag] = {"--" + name: flag for name, flag in table.FLAGS.items() if flag.is_read}
NAMES = {flag.path[0]: name for name, flag in FLAGS.items()}
# Written with one pair each time: of the first a comma belongs to the value.
_WRITTEN_ONE_BY_ONE = frozenset(("--cpu-manager-policy-options", "--topology-manager-policy-options"))

CONFIG, CONFIG_DIR, ROOT_DIR = ("--" + name for name in (table.CONFIG, table.CONFIG_DIR, table.ROOT_DIR))
PATHS = (CONFIG, CONFIG_DIR, ROOT_DIR)

FEATURE_GATES = "featureGates"

# What a flag takes whose value is not read otherwise.
_EXPECTED = {table.INT32: "a number", table.STRINGS: "texts with commas between them"}
# Of a number that no field has room for, the kubelet says so.
_MOST_BITS = 64


class GivenFlag(NamedTuple):
    """A flag that is given, and who gives it."""

    name: str
    value: str
    source: str


def read_flags(arguments: Iterable[str], source: str) -> list[GivenFlag]:
    """Return the flags among these arguments that are known here, in order."""
    given = (GivenFlag("--" + name, value, source) for name, value in table.flag_values(arguments))
    return [flag for flag in given if flag.name in FLAGS or flag.name in PATHS]


def path_of(given: Sequence[GivenFlag], name: str) -> str | None:
    """Return what the last flag of this name gives."""
    return next((flag.value for flag in reversed(given) if flag.name == name and flag.value), None)


def values_of(given: Iterable[GivenFlag]) -> dict[str, object]:
    """Return the fields that the flags give, as a KubeletConfiguration has them. Raises InputError."""
    values: dict[str, Any] = {}
    for flag in given:
        if flag.name in FLAGS:
            (field,), kind = FLAGS[flag.name].path, FLAGS[flag.name].kind
            try:
                # The last one counts, and members add up.
                values[field] = _READERS[kind](flag.value, values.get(field))
            except table.PartError as error:
                raise _unread(flag, error.part, error.expected) from error
            except GoError as error:
                raise _unread(flag, flag.value, _EXPECTED[kind]) from error
    return values


def _unread(flag: GivenFlag, found: str, expected: str) -> InputError:
    return InputError("%s in %s: found %r, expected %s" % (flag.name, flag.source, found, expected))


def arguments_for(field: str, value: Any) -> list[str]:
    """Return the flags that give a field this value; none for an empty map or list."""
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


def _read_gates(text: str, before: Mapping[str, object] | None) -> dict[str, object]:
    found = table.read_pairs(text, None)
    return {**(before or {}), **{name: BOOLEANS.get(value, value) for name, value in found.items()}}


def _read_memory(text: str, before: list[dict[str, object]] | None) -> list[dict[str, object]]:
    reserved = []
    for part in text.split(";") if text else ():
        node, _colon, limits = part.partition(":")
        if not is_number(node.strip()):
            raise table.PartError("no node", part, "NUMA-NODE:memory=QUANTITY")
        reserved.append({"numaNode": int(node), "limits": table.read_pairs(limits, None)})
    return [*(before or ()), *reserved]


# What a value means is judged later: here a text that is no switch, no duration and no address stays as it is.
_READERS: dict[str, Callable[[str, Any], object]] = {
    table.STRING: lambda text, _before: text,
    table.DURATION: lambda text, _before: text,
    table.IP: lambda text, _before: text,
    table.INT32: lambda text, _before: table.read_number(text, _MOST_BITS),
    table.BOOL: lambda text, _before: BOOLEANS.get(text, text),
    table.STRINGS: table.read_texts,
    table.PAIR: lambda text, before: table.read_pair(text, before) if text else before or {},
    table.PAIRS: table.read_pairs,
    table.THRESHOLDS: table.read_thresholds,
    table.GATES: _read_gates,
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
        """Return whether it decides on what is at `path`: gives it, or takes it away."""
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
        """Return the flag that gives a field. Raises StopIteration where none does."""
        return next(flag for flag in reversed(self.flags) if flag.name == NAMES[field])

    def origin(self, path: Sequence[str], has_value: bool = False) -> str:
        """Return who of this layer gives it: a file, or a flag in a file. has_value: name the flag with its value."""
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
            if layer.flags:
                for field, value in layer.values.items():
                    values = put_over(values, (field,), FLAGS[NAMES[field]].kind, value)
            else:
                values = merge_patch(values, layer.values) if number else {**values, **layer.values}
        super().__init__(values, next((layer.source for layer in layers if layer.source), "the kubelet's flags"))
        self.layers = tuple(layers)

    def has_flag(self, field: str) -> bool:
        """Return whether a flag gives this field as a whole, whatever the files give."""
        return field != FEATURE_GATES and any(layer.flags and field in layer.values for layer in self.layers[-1:])

    def replaced_maps(self) -> list[ReplacedMap]:
        """Return the maps of which a flag takes away what the files give."""
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
    """Return what these make together. Raises ConfigurationError for a flag that the kubelet cannot read."""
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
