# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A KubeletConfiguration file: its values, and its text with some of them changed.

A change replaces the lines of its key and leaves every other byte alone: comments, order, quotes, blank lines and
line endings. The values are kept as they are written: an unquoted C(true) among the cpuManagerPolicyOptions, which
the kubelet refuses, is read as a boolean.
Source: k8s.io/kubelet/config/v1beta1/types.go; k8s.io/apimachinery/pkg/util/yaml (what is JSON).
"""

from __future__ import annotations

from copy import deepcopy
from math import isfinite
from typing import Any, Mapping, NamedTuple, Sequence

from ...errors import ConfigurationError, InputError
from .values import REMOVE, same

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

_OTHER_FILE = "name the file that the kubelet's --config gives in config_path"


class ReplacedMap(NamedTuple):
    """A map in the files of which a flag takes the place, as a whole."""

    field: str
    # The flag's name, and the file that gives it.
    flag: str
    place: str
    # Who gives what the flag does not, and that.
    source: str
    lost: Mapping[str, Any]

    def to_cause(self) -> str:
        """What is wrong with it, for people."""
        members = ", ".join("%s: %s" % member for member in sorted(self.lost.items()))
        return "%s in %s takes the place of the whole %s of %s, in which %s no longer counts" % (
            self.flag,
            self.place,
            self.field,
            self.source,
            members,
        )

    def to_remedy(self) -> str:
        """What to do about it, for people."""
        return "write in it what %s is to have, too, or remove it, and restart the kubelet" % self.field


class Configuration:
    """What a kubelet runs with: `values`, a dict of dict, list, str, int, float, bool and None. Not to be changed.

    `source` names it in messages.
    """

    __slots__ = ("source", "values")

    def __init__(self, values: dict[str, Any], source: str) -> None:
        self.values = values
        self.source = source

    def origin(self, path: Sequence[str], has_value: bool = False) -> str | None:  # noqa: ARG002  # of a file, none
        """Who gives what is at `path`; None where nobody does, and the kubelet takes its default.

        has_value: where that is a flag, name it with its value.
        """
        values: object = self.values
        for key in path:
            if not isinstance(values, Mapping) or key not in values:
                return None
            values = values[key]
        return self.source

    def replaced_maps(self) -> Sequence[ReplacedMap]:
        """The maps of which a flag takes away what the files give."""
        return ()


class KubeletConfiguration(Configuration):
    """One file: its `text` as it is, and its values.

    `is_plain`: it is in YAML, in ASCII, and has no key twice.
    """

    __slots__ = ("is_plain", "text")

    def __init__(self, text: str, values: dict[str, Any], source: str, is_plain: bool = False) -> None:
        super().__init__(values, source)
        self.text = text
        self.is_plain = is_plain

    @classmethod
    def parse(cls, text: str, source: str = "kubelet configuration") -> KubeletConfiguration:
        """Read YAML or JSON. The text must come with the line breaks of the file (open it with newline="").

        Raises ConfigurationError when the text is broken, not understood for sure, or no KubeletConfiguration.
        """
        # Imported here: a node without a kubelet needs no reader of YAML, and every import costs time on every node.
        from .document import is_json, read_document
        from .nodes import ReadError

        try:
            root = read_document(text)
        except ReadError as error:
            raise ConfigurationError(str(error), source) from error
        values = root.value
        if values is None:
            raise ConfigurationError("the file is empty, expected a KubeletConfiguration", source, _OTHER_FILE)
        if not isinstance(values, dict):
            what = "expected a mapping, found a %s" % type(values).__name__
            raise ConfigurationError(what, source, _OTHER_FILE)
        for key, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
            if values.get(key) != expected:
                what = "expected '%s: %s', found %r" % (key, expected, values.get(key))
                if key not in values:
                    what = "'%s' is missing, expected '%s: %s'" % (key, key, expected)
                raise ConfigurationError(what, source, _OTHER_FILE)
        return cls(text, values, source, not root.duplicates and text.isascii() and not is_json(text))

    def with_changes(self, changes: Mapping[tuple[str, ...], object]) -> KubeletConfiguration:
        """The configuration with each path set to its value, or gone when the value is REMOVE.

        A path is a tuple of keys: ("kubeReserved", "cpu"). A mapping as value is the whole mapping. A parent that is
        missing is made; one that loses its last member goes, too. What is already so causes no change of the text.

        Raises InputError for a path or value that no file can hold, and ConfigurationError for a path through
        something that is no mapping, or a place that an anchor, an alias or a merge key shares with another.
        """
        wanted = changed_values(self, changes)
        # Imported here: a module that only reads is faster without it.
        from .editor import edit
        from .nodes import ReadError

        try:
            text = edit(self.text, self.values, wanted)
        except ConfigurationError as error:
            raise error.within(self.source) from error
        except ReadError as error:  # of a text with some of the changes
            raise self._not_changed() from error
        try:
            changed = KubeletConfiguration.parse(text, self.source)
        except ConfigurationError as error:
            raise self._not_changed() from error
        if not same(changed.values, wanted):
            raise self._not_changed()
        return changed

    def _not_changed(self) -> ConfigurationError:
        """The editor handles the common forms of YAML; in others a changed text could read otherwise than is wanted."""
        what = "the file is written in a way in which these settings cannot be changed safely"
        return ConfigurationError(what, self.source, "change it by hand, or write these settings one to a line")


def changed_values(configuration: Configuration, changes: Mapping[tuple[str, ...], object]) -> dict[str, object]:
    """The values of the configuration after these changes. Raises as with_changes()."""
    wanted = deepcopy(configuration.values)
    for path in changes:
        _check_path(path)
    # In this order a mapping comes before its members.
    for path in sorted(changes):
        if changes[path] is REMOVE:
            _remove(wanted, path)
        else:
            _set(wanted, path, _plain(changes[path]), configuration.source)
    return wanted


def _set(values: dict[str, Any], path: tuple[str, ...], value: object, source: str) -> None:
    for depth, key in enumerate(path[:-1], 1):
        if values.get(key) is None:
            values[key] = {}
        values = values[key]
        if not isinstance(values, dict):
            raise ConfigurationError(
                "%s is no mapping, found %r" % (".".join(path[:depth]), values), source, "repair it first"
            )
    values[path[-1]] = value


def _check_path(path: tuple[str, ...]) -> None:
    if not isinstance(path, tuple) or not path or not all(isinstance(key, str) for key in path):
        raise InputError("the path of a change is a tuple of keys such as ('kubeReserved', 'cpu'), not %r" % (path,))
    if path[0] in ("apiVersion", "kind"):
        raise InputError("%s is not to be changed" % path[0])


def _plain(value: object) -> object:
    """The value in the plain types that a file gives back. Raises InputError for what no file can hold."""
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {_plain(key): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value):
        return str(value)
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return int(value)
    if isinstance(value, float) and isfinite(value):
        # In JSON, to which the kubelet turns YAML, both are one.
        return int(value) if value.is_integer() and abs(value) < 2**63 else float(value)
    raise InputError("no configuration file can hold the value %r" % (value,))


def _remove(values: dict[str, Any], path: tuple[str, ...]) -> None:
    """Remove the key and each parent that becomes empty by it."""
    key, rest = path[0], path[1:]
    if rest and isinstance(values.get(key), dict) and values[key]:
        _remove(values[key], rest)
        if values[key]:
            return
    elif rest:
        return
    values.pop(key, None)
