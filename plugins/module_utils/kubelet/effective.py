# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a kubelet runs with: its configuration file, its drop-in files and its flags, each over what comes before.

Source: cmd/kubelet/app/server.go (kubeletConfigFlagPrecedence, mergeKubeletConfigurations); RFC 7396.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Sequence

from ..errors import ConfigurationError, InputError
from .file.configuration import API_VERSION, KIND, Configuration, ReplacedMap
from .installed.flags import FEATURE_GATES, FLAGS, NAMES, Given, values_of
from .start.checks.eviction_defaults import EVICTION_HARD

# Filled in where the --config file has none, before anything is merged into it.
_EVICTION = {"evictionHard": dict(EVICTION_HARD)}


class Layer(NamedTuple):
    """What one file gives, or what all flags give; the latter name the source of each."""

    values: Mapping[str, Any]
    source: str = ""
    flags: Sequence[Given] = ()

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

    def flag_of(self, field: str) -> Given:
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
    file: Configuration | None, drop_ins: Sequence[Configuration], given: Sequence[Given]
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


def merge_patch(target: object, patch: object) -> Any:
    """The target with a JSON merge patch: maps are merged, null removes, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _with_flags(values: Mapping[str, object], given: Mapping[str, Any]) -> dict[str, object]:
    gates = values.get(FEATURE_GATES)
    merged = {**values, **given}
    if FEATURE_GATES in given and isinstance(gates, Mapping):
        merged[FEATURE_GATES] = {**gates, **given[FEATURE_GATES]}
    return merged
