# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A KubeletConfiguration file, YAML or JSON: its values, and its text with some of them changed.

A change replaces the lines of its key and leaves every other byte alone: comments, order, quotes, blank lines and
line endings. The values are kept as they are written: an unquoted C(true) among the cpuManagerPolicyOptions, which
the kubelet refuses, is read as a boolean.
Source: k8s.io/kubelet/config/v1beta1/types.go; pkg/kubelet/apis/config/v1beta1/defaults_linux.go;
k8s.io/apimachinery/pkg/util/yaml (what is JSON); RFC 7396 as github.com/evanphx/json-patch has it (merge.go).
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from math import isfinite
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import ConfigurationError, InputError
from .yaml import anchors, load, read, read_json
from .yaml_nodes import (
    ALIAS,
    ALONE,
    BLOCK,
    DOUBLE,
    EMPTY,
    FLOW,
    PLAIN,
    REMOVE,
    SINGLE,
    Anchor,
    ReadError,
    TextMember,
    TextNode,
    YAMLError,
    same,
    value_at,
)

# The text of a configuration, YAML or JSON, as a tree that says what each member is and where it stands.
#
# Its source: k8s.io/apimachinery/pkg/util/yaml (what is JSON), pkg/runtime/serializer/json.


def read_document(content: str | bytes) -> TextNode:
    """Return the root of a text, or of a file as the kubelet reads it: in UTF-8 or UTF-16.

    Raises ReadError, mostly a YAMLError, which has the line and the column.
    """
    start = content[:2]
    # JSON is not looked for in UTF-16.
    if isinstance(content, bytes) and start not in (b"\xff\xfe", b"\xfe\xff"):
        content = content.decode("utf-8", "surrogateescape")
    if isinstance(content, str) and is_json(content):
        return read_json(content)
    return read(content)


def is_json(text: str) -> bool:
    """Return what the kubelet reads as JSON, and as nothing else."""
    # Go has no space at U+001C to U+001F.
    return text[:1] in "{ \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" and text.lstrip().startswith("{")


# Edits of a configuration's text that leave every line alone that they are not about.


_INDENT_STEP = 2


def edit(text: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the text with what differs between `old`, which it says, and `new` changed.

    Raises ConfigurationError where an anchor, an alias or a merge key shares the place with another. Its message names
    the line.
    """
    for path, value in _edits(old, new):
        text = _Editor(text).edited(path, value)
    return text


def _edits(
    old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the smallest changes (path, value) from old to new. Removals come last, so no mapping is empty in
    between."""
    for key, value in new.items():
        if key in old and isinstance(old[key], dict) and isinstance(value, dict) and old[key] and value:
            yield from _edits(old[key], value, (*path, key))
        elif key not in old or not same(old[key], value):
            yield (*path, key), value
    for key in old:
        if key not in new:
            yield (*path, key), REMOVE


# Texts to the kubelet, but numbers to base 60, dates and a special key to other readers of YAML.
_ANOTHER_TO_SOME = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*|=")
# What a double-quoted text holds only as an escape.
_ESCAPES = {code: "\\u%04x" % code for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)}


class _Editor:
    """One text; edited() is the text with one member set or removed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.json = is_json(text)
        self.root = read_document(text)
        self.newline = "\r\n" if text.find("\r\n") + 1 == text.find("\n") > 0 else "\n"

    def edited(self, path: Sequence[str], value: object) -> str:
        anchor = self._checked(path, value)
        if anchor is not None:
            return _Editor(self._without_name(anchor)).edited(path, value)
        mapping = self.root
        for key in path[:-1]:
            mapping = mapping.members[key].node
        key = path[-1]
        if value is REMOVE:
            return self._without_in_flow(mapping, key) if mapping.style == FLOW else self._without(mapping, key)
        if key not in mapping.members:
            return (
                self._with_new_in_flow(mapping, key, value)
                if mapping.style == FLOW
                else self._with_new(mapping, key, value)
            )
        return self._with_value(mapping, mapping.members[key], value)

    def _with_value(self, mapping: TextNode, member: TextMember, value: object) -> str:
        text, node = self.text, member.node
        space = {EMPTY: " ", ALONE: ": "}.get(node.style, "")
        if mapping.style == FLOW:
            return text[: node.start] + space + self._flow(value, node.style, mapping) + text[node.end :]
        key_line_end = self._line_end(member.colon)
        own_line = node.start > key_line_end
        if _is_inline(value) or node.style == FLOW:
            inline = self._flow(value, node.style) if node.style == FLOW else self._scalar(value, node.style)
            if own_line and node.style == BLOCK:
                return text[: member.colon] + " " + inline + text[member.colon : key_line_end] + text[node.end :]
            return text[: node.start] + space + inline + text[node.end :]
        block = self.newline.join(self._block(value, self._column(member.start)))
        if own_line:
            return text[: self._line_start(node.start)] + block + text[node.end :]
        line_end = self._line_end(node.end)
        return text[: member.colon] + text[node.end : line_end] + self.newline + block + text[line_end:]

    # --- places that are shared -----------------------------------------------------------------

    def _checked(self, path: Sequence[str], value: object) -> Anchor | None:
        """Return the value's own anchor, which no alias repeats. Raises ConfigurationError where others share the
        place."""
        name, start, end, node = ".".join(path), self.root.start, self.root.start, self.root
        for depth, key in enumerate(path, 1):
            if node.style == ALIAS:
                what = "%s cannot be changed in an alias" % name
                raise self._refusal(node.start, what, "write the mapping out in its place")
            is_last = depth == len(path)
            if node.merge is not None and _is_in_the_way(node, key, is_last, is_last and value is REMOVE):
                what = "%s cannot be changed beside a merge key" % name
                raise self._refusal(node.merge.start, what, "write the keys out that '<<' gives")
            if key not in node.members:
                start = end = node.start
                break
            member = node.members[key]
            if member.is_twice:
                what = "%s cannot be changed where the key %s is there twice" % (name, key)
                raise self._refusal(member.start, what, "remove one of the two")
            start, end, node = member.start, member.node.end, member.node
        own = None
        for anchor in anchors(self.text) if "&" in self.text and not self.json else ():
            is_inside = start <= anchor.start < end
            repeats = [at for at in anchor.aliases if not start <= at < end]
            if repeats and (is_inside or anchor.start <= start <= anchor.end):
                what = "%s cannot be changed in the value of an anchor, which line %d repeats"
                what %= name, self._line(repeats[0])
                raise self._refusal(anchor.start, what, "write the value out at both places")
            if is_inside and anchor.name_end <= node.start and anchor.end == end:
                own = anchor
        return own

    def _refusal(self, at: int, what: str, remedy: str) -> ConfigurationError:
        return ConfigurationError(what, "line %d" % self._line(at), remedy)

    def _without_name(self, anchor: Anchor) -> str:
        before, rest = self.text[: anchor.start], self.text[anchor.name_end :].lstrip(" \t")
        return (before.rstrip(" \t") if rest[:1] in ("", "\r", "\n") else before) + rest

    def _line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    # --- block mappings --------------------------------------------------------------------------

    def _with_new(self, mapping: TextNode, key: str, value: object) -> str:
        column = self._column(mapping.start)
        lines = self._member(key, value, column)
        before = _predecessor(mapping, key)
        if before is None:
            at = self._line_start(mapping.start)
        else:
            at = self._end_of_lines(mapping.members[before], column)
            if at == len(self.text) and not self.text.endswith("\n"):
                return self.text + self.newline + self.newline.join(lines)
        return self.text[:at] + "".join(line + self.newline for line in lines) + self.text[at:]

    def _without(self, mapping: TextNode, key: str) -> str:
        member = mapping.members[key]
        end = self._end_of_lines(member, self._column(mapping.start))
        return self.text[: self._line_start(member.start)] + self.text[end:]

    def _member(self, key: str, value: object, column: int) -> list[str]:
        start = " " * column + self._scalar(key, PLAIN) + ":"
        if _is_inline(value):
            return [start + " " + self._scalar(value, PLAIN)]
        return [start, *self._block(value, column)]

    def _block(self, value: Any, column: int) -> list[str]:
        """Return the lines of a collection that belongs to a key at `column`."""
        if isinstance(value, dict):
            step = self._step(dict, _INDENT_STEP)
            return [line for key, member in value.items() for line in self._member(key, member, column + step)]
        column += self._step(list, 0)
        lines = []
        for item in value:
            if isinstance(item, dict) and item:
                # The first key stands behind the dash.
                members = [line for key, member in item.items() for line in self._member(key, member, column + 2)]
                lines += [" " * column + "- " + members[0].lstrip(" "), *members[1:]]
            else:
                lines.append(" " * column + "- " + self._flow(item, PLAIN))
        return lines

    def _step(self, kind: type, otherwise: int) -> int:
        """Return how much deeper than its key a collection stands in this file."""
        for member in _all_members(self.root):
            if member.node.style == BLOCK and isinstance(member.node.value, kind):
                return self._column(member.node.start) - self._column(member.start)
        return otherwise

    def _end_of_lines(self, member: TextMember, column: int) -> int:
        """Return the place behind the lines of a member and the comments that are indented as if they belonged to
        it."""
        at = self._line_end(member.node.end)
        comments = re.compile(r"(?:\r?\n {%d,}#[^\r\n]*)*(?:\r?\n)?" % (column + 1)).match(self.text, at)
        return comments.end() if comments else at

    # --- flow mappings, JSON among them ----------------------------------------------------------

    def _with_new_in_flow(self, mapping: TextNode, key: str, value: object) -> str:
        first = next(iter(mapping.members.values()))
        entry = "%s:%s%s" % (self._flow(key, PLAIN), self._space(mapping), self._flow(value, PLAIN, mapping))
        if self._is_spread(mapping):
            gap = self.newline + self.text[self._line_start(first.start) : first.start]
        else:
            gap = self._space(mapping)
        before = _predecessor(mapping, key)
        if before is None:
            return self.text[: first.start] + entry + "," + gap + self.text[first.start :]
        node = mapping.members[before].node
        comma = " ," if node.style == EMPTY else ","
        return self.text[: node.end] + comma + gap + entry + self.text[node.end :]

    def _without_in_flow(self, mapping: TextNode, key: str) -> str:
        members = list(mapping.members.values())
        position = list(mapping.members).index(key)
        if position + 1 < len(members):
            return self.text[: members[position].start] + self.text[members[position + 1].start :]
        before = members[position - 1].node
        space = " " if before.style == EMPTY else ""
        return self.text[: before.end] + space + self.text[members[position].node.end :]

    def _is_spread(self, mapping: TextNode) -> bool:
        """Return whether each member has its own line."""
        first = next(iter(mapping.members.values()))
        return "\n" in self.text[mapping.start : first.start]

    def _space(self, mapping: TextNode) -> str:
        """Return what stands behind a colon: nothing in compact JSON."""
        first = next(iter(mapping.members.values()))
        return "" if self.json and self.text[first.colon : first.node.start] == "" else " "

    def _flow(self, value: object, style: str, mapping: TextNode | None = None) -> str:
        """Return the value in flow style; in JSON, spread over lines as the members of `mapping` are."""
        if self.json:
            return self._json(value, mapping)
        if isinstance(value, dict):
            return "{%s}" % ", ".join(self._flow(k, PLAIN) + ": " + self._flow(v, PLAIN) for k, v in value.items())
        if isinstance(value, list):
            return "[%s]" % ", ".join(self._flow(item, PLAIN) for item in value)
        return self._scalar(value, style, "[%s]")

    def _json(self, value: object, mapping: TextNode | None) -> str:
        if mapping is None or not self._is_spread(mapping):
            space = self._space(mapping or self.root)
            return json.dumps(value, ensure_ascii=False, separators=("," + space, ":" + space))
        start = next(iter(mapping.members.values())).start
        indent = self.text[self._line_start(start) : start]
        first = next(iter(self.root.members.values())).start
        step = self.text[self._line_start(first) : first] if self._is_spread(self.root) else " " * _INDENT_STEP
        text = json.dumps(value, ensure_ascii=False, indent=step, separators=(",", ":" + self._space(mapping)))
        return text.replace("\n", self.newline + indent)

    # --- scalars ---------------------------------------------------------------------------------

    def _scalar(self, value: object, style: str, around: str = "- %s") -> str:
        """Return a scalar or an empty collection. A text is plain if it reads back as itself, else quoted."""
        if value is None:
            return "null"
        if isinstance(value, float):
            # YAML 1.1 wants the point.
            text = repr(value)
            return text.replace("e", ".0e") if "e" in text and "." not in text else text
        if not isinstance(value, str):
            return json.dumps(value)
        if style == SINGLE and _reads_back("- %s", "'%s'" % value.replace("'", "''"), value):
            return "'%s'" % value.replace("'", "''")
        if style != DOUBLE and _reads_back(around, value, value):
            return value
        return json.dumps(value, ensure_ascii=False).translate(_ESCAPES)

    # --- lines -----------------------------------------------------------------------------------

    def _line_start(self, at: int) -> int:
        start = self.text.rfind("\n", 0, at) + 1
        return start + 1 if self.text.startswith("\ufeff", start) else start

    def _line_end(self, at: int) -> int:
        """Return the offset of the line's break."""
        end = re.compile(r"[^\r\n]*").match(self.text, at)
        return end.end() if end else at

    def _column(self, at: int) -> int:
        return at - self._line_start(at)


def _is_in_the_way(mapping: TextNode, key: str, is_last: bool, is_removed: bool) -> bool:
    """Return whether the merge key of a mapping gives a key that is to be changed, or has no place for others beside
    it."""
    merged = mapping.merge.node.value if mapping.merge else {}
    is_given = any(key in mapping for mapping in (merged if isinstance(merged, list) else [merged]))
    return (is_last and mapping.style == FLOW) or (is_given and (is_removed or key not in mapping.members))


def _is_inline(value: object) -> bool:
    return not (isinstance(value, (dict, list)) and value)


def _reads_back(around: str, written: str, value: str) -> bool:
    if written is value and _ANOTHER_TO_SOME.fullmatch(written):
        return False
    try:
        return same(load(around % written), [value])
    except YAMLError:
        return False


def _predecessor(mapping: TextNode, key: str) -> str | None:
    """Return the key behind which a new one goes: by the alphabet where the keys are in its order, else the last."""
    keys = list(mapping.members)
    smaller = [name for name in keys if name < key] if keys == sorted(keys) else keys
    return smaller[-1] if smaller else None


def _all_members(mapping: TextNode) -> Iterator[TextMember]:
    for member in mapping.members.values():
        yield member
        yield from _all_members(member.node)


API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

HARD = "evictionHard"
MEMORY_AVAILABLE, NODEFS_AVAILABLE = "memory.available", "nodefs.available"

# The eviction thresholds of a kubelet whose file has none.
EVICTION_HARD: Mapping[str, str] = {
    MEMORY_AVAILABLE: "100Mi",
    NODEFS_AVAILABLE: "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}

# What a kubelet takes for fields that nobody gives it, of those that are read in many places; others: decode.py.
COMMON_DEFAULTS: Mapping[str, Any] = {
    "cgroupDriver": "cgroupfs",
    "cpuCFSQuota": True,
    "cpuCFSQuotaPeriod": "100ms",
    "cpuManagerPolicy": "none",
    "cpuManagerReconcilePeriod": "10s",
    "healthzPort": 10248,
    "memoryManagerPolicy": "None",
    "topologyManagerPolicy": "none",
    "topologyManagerScope": "container",
}

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
        """Return what is wrong with it, for people."""
        members = ", ".join("%s: %s" % member for member in sorted(self.lost.items()))
        return "%s in %s takes the place of the whole %s of %s, in which %s no longer counts" % (
            self.flag,
            self.place,
            self.field,
            self.source,
            members,
        )

    def to_remedy(self) -> str:
        """Return what to do about it, for people."""
        return "write in it what %s is to have, too, or remove it, and restart the kubelet" % self.field


def reached_at(address: str) -> str:
    """Return where a kubelet answers on its node that listens at an address, which may stand for all of them."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)


class Given(NamedTuple):
    """A value that a kubelet runs with, and who gives it: a file, or a flag in a file; None: it is the default."""

    value: Any
    origin: str | None


class Configuration:
    """What a kubelet runs with: `values`, a dict of dict, list, str, int, float, bool and None. Not to be changed.

    `source` names it in messages.
    """

    __slots__ = ("source", "values")

    def __init__(self, values: dict[str, Any], source: str) -> None:
        self.values = values
        self.source = source

    def given(self, path: Sequence[str], default: object = None) -> Given:
        """Return what the kubelet runs with at `path`. default: that of a field which COMMON_DEFAULTS does not have."""
        value = value_at(self.values, path)
        default = COMMON_DEFAULTS.get(path[0]) if default is None else default
        # An empty text is Go's unset value.
        return Given(default if value is None or (value == "" and default) else value, self.origin(path))

    def origin(self, path: Sequence[str], has_value: bool = False) -> str | None:  # noqa: ARG002  # of a file, none
        """Return who gives what is at `path`; None where nobody does, and the kubelet takes its default.

        has_value: where that is a flag, name it with its value.
        """
        values: object = self.values
        for key in path:
            if not isinstance(values, Mapping) or key not in values:
                return None
            values = values[key]
        return self.source

    def replaced_maps(self) -> Sequence[ReplacedMap]:
        """Return the maps of which a flag takes away what the files give."""
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
        """Return the configuration with each path set to its value, or gone when the value is REMOVE.

        A path is a tuple of keys: ("kubeReserved", "cpu"). A mapping as value is the whole mapping. A parent that is
        missing is made; one that loses its last member goes, too. What is already so causes no change of the text.

        Raises InputError for a path or value that no file can hold, and ConfigurationError for a path through
        something that is not a mapping, or a place that an anchor, an alias or a merge key shares with another.
        """
        wanted = changed_values(self, changes)
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
        """Return the editor handles the common forms of YAML; in others a changed text could read otherwise than is
        wanted."""
        what = "the file is written in a way in which these settings cannot be changed safely"
        return ConfigurationError(what, self.source, "change it by hand, or write these settings one to a line")


def changed_values(configuration: Configuration, changes: Mapping[tuple[str, ...], object]) -> dict[str, object]:
    """Return the values of the configuration after these changes. Raises as with_changes()."""
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
                "%s is not a mapping, found %r" % (".".join(path[:depth]), values), source, "repair it first"
            )
    values[path[-1]] = value


def _check_path(path: tuple[str, ...]) -> None:
    if not isinstance(path, tuple) or not path or not all(isinstance(key, str) for key in path):
        raise InputError("the path of a change is a tuple of keys such as ('kubeReserved', 'cpu'), not %r" % (path,))
    if path[0] in ("apiVersion", "kind"):
        raise InputError("%s is not to be changed" % path[0])


def _plain(value: object) -> object:
    """Return the value in the plain types that a file gives back. Raises InputError for what no file can hold."""
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


def merge_patch(target: object, patch: object) -> Any:
    """Return the target with a JSON merge patch, as the kubelet merges drop-ins: maps are merged, null removes, all
    else replaces. Neither is changed.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
