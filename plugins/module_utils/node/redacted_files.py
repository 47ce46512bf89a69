# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The secrets in a kubelet's configuration files, taken out so that the rest says the same to our modules. Pure.

What the fields of a KubeletConfiguration take is kept, and so are comments of plain words. Where a file is none, or is
damaged, signs stand in place of its letters and digits: what is wrong with it, and where, still shows.
"""

from __future__ import annotations

import json
import re
from typing import Any, Container, Iterator, NamedTuple, Sequence

from ..errors import ConfigurationError
from ..host.runtime.essence import essence
from ..host.runtime.toml_lines import TOMLError
from ..kubelet.file.configuration import API_VERSION, KIND, KubeletConfiguration
from ..kubelet.file.document import is_json, read_document
from ..kubelet.file.nodes import Node
from ..kubelet.file.values import same
from ..kubelet.file.yaml import anchors
from ..kubelet.installed.flag_file import kubelet_args
from ..kubelet.start.loading.field_table import (
    BOOL,
    FLOAT,
    FOLDED,
    INT32,
    INT64,
    KUBELET_CONFIGURATION,
    LIST,
    MAP,
    STRUCT,
    STRUCTS,
    UINT32,
    GoType,
    fold,
)
from ..tree import is_number
from .redaction import REDACTED, UnsafeError, address_redacted, is_prose, is_secret, words_redacted

_ROOT = GoType(STRUCT, KUBELET_CONFIGURATION, None, KUBELET_CONFIGURATION)
_NO_TEXTS = (BOOL, FLOAT, INT32, INT64, UINT32, LIST, MAP, STRUCT)
_HEADERS, _ADDRESS = "staticPodURLHeader", "staticPodURL"
_WORD = re.compile(r"\w+")
# A comment, where no value is.
_COMMENT = re.compile(r"(?:(?<=[ \t])|^)#.*", re.MULTILINE)
# The words that are kept of a file that is no KubeletConfiguration.
_KNOWN_WORDS = frozenset(
    [
        *_WORD.findall("%s %s true false null none static Static None" % (API_VERSION, KIND)),
        *(name for fields in STRUCTS.values() for name in fields),
    ]
)


class _Leaf(NamedTuple):
    """A value that is no mapping: where it stands, and what of it is kept."""

    start: int
    end: int
    value: object
    kept: object


def kubelet_args_redacted(text: str) -> str:
    """k3s' or RKE2's configuration file with the kubelet's arguments alone. Raises UnsafeError."""
    before = "kubelet-arg: [first]\n"
    try:
        first, words = kubelet_args([before, text])
    except ValueError as error:
        raise UnsafeError("kubelet-arg cannot be read") from error
    if first and not words:
        return ""
    words = [word[len("--") :] if word.startswith("--") else word for word in words_redacted(words, has_program=False)]
    # A file's list takes the place of those before it, unless its key has a plus.
    return json.dumps({"kubelet-arg+" if first else "kubelet-arg": words}) + "\n"


def runtime_redacted(content: bytes) -> bytes:
    """What is read of a container runtime's file, or of any other one in TOML. Raises UnsafeError."""
    try:
        return essence(content.decode("utf-8")).encode("utf-8")
    except (TOMLError, UnicodeDecodeError) as error:
        raise UnsafeError("it is no TOML") from error


def configuration_redacted(text: str) -> str:
    """A KubeletConfiguration without secrets, else the same to the byte. Of another or a damaged file, its shape."""
    try:
        before = KubeletConfiguration.parse(text)
        leaves = list(_leaves(read_document(text), _ROOT))
        found = _with_kept(text, leaves, _words_of_keys(before.values) | _words_of_anchors(text))
        after = KubeletConfiguration.parse(found)
    except ConfigurationError:
        return _shape(text, _KNOWN_WORDS)
    return found if same(after.values, _kept(before.values, _ROOT)) else _shape(text, _KNOWN_WORDS)


def _leaves(node: Node, kind: GoType | None) -> Iterator[_Leaf]:
    """The values in a mapping, in the order of the text. kind: of the mapping; None where no field takes it."""
    for key, member in node.members.items():
        inner = _kind_of(key, kind)
        if member.node.members:
            yield from _leaves(member.node, inner)
        else:
            kept = _kept_member(key, member.node.value, kind)
            yield _Leaf(member.node.start, member.node.end, member.node.value, kept)


def _kind_of(key: str, kind: GoType | None) -> GoType | None:
    if kind is None or kind.kind not in (STRUCT, MAP) or fold(key) == fold(_HEADERS):
        return None
    if kind.kind == MAP:
        return None if is_secret(key) else kind.item
    name = FOLDED[kind.struct].get(fold(key))
    return None if name is None else STRUCTS[kind.struct][name].type


def _kept_member(key: str, value: Any, kind: GoType | None) -> object:
    if isinstance(value, str) and fold(key) == fold(_ADDRESS):
        return address_redacted(value, keep_path=False)
    return _kept(value, _kind_of(key, kind))


def _kept(value: Any, kind: GoType | None) -> object:
    """What is kept of a value. kind: what it should be; None where no field takes it."""
    if isinstance(value, dict):
        return {key: _kept_member(key, item, kind) for key, item in value.items()}
    if isinstance(value, list):
        item = kind.item if kind is not None and kind.kind == LIST else None
        return [_kept(inner, item) for inner in value]
    if value is None or isinstance(value, bool) or value == "":
        return value
    if kind is None or (isinstance(value, str) and kind.kind in _NO_TEXTS):
        return REDACTED
    return address_redacted(value) if isinstance(value, str) else value


def _words_of_keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {word for key, item in value.items() for word in (*_WORD.findall(key), *_words_of_keys(item))}
    return {word for item in value for word in _words_of_keys(item)} if isinstance(value, list) else set()


def _words_of_anchors(text: str) -> set[str]:
    if "&" not in text or is_json(text):
        return set()
    return {word for anchor in anchors(text) for word in _WORD.findall(text[anchor.start : anchor.name_end])}


def _with_kept(text: str, leaves: Sequence[_Leaf], names: Container[str]) -> str:
    """The text with what is kept of its values, of comments, and of all that is neither of the two."""
    pieces = []
    at = 0
    for leaf in leaves:
        pieces.append(_between(text[at : leaf.start], names))
        written = text[leaf.start : leaf.end]
        is_same = same(leaf.kept, leaf.value) and all(map(is_prose, _COMMENT.findall(written)))
        pieces.append(written if is_same else json.dumps(leaf.kept))
        at = leaf.end
    pieces.append(_between(text[at:], names))
    return "".join(pieces)


def _between(text: str, names: Container[str]) -> str:
    """What stands between values: keys and comments, and perhaps what nobody reads."""
    pieces = []
    at = 0
    for comment in _COMMENT.finditer(text):
        pieces.append(_shape(text[at : comment.start()], names))
        line = comment.group().rstrip("\r")
        pieces.append(line if is_prose(line) else "# " + REDACTED)
        at = comment.start() + len(line)
    pieces.append(_shape(text[at:], names))
    return "".join(pieces)


def _shape(text: str, names: Container[str]) -> str:
    """A text with signs in place of the words that are not among these names."""

    def masked(found: re.Match[str]) -> str:
        word = found.group()
        return word if word in names else "".join("0" if is_number(sign) else "x" for sign in word)

    return _WORD.sub(masked, text)
