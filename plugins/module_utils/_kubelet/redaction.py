# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets, and the names of pods and containers, taken out of a node's files so that the rest says the same. Pure.

Of a kubelet's flags and configuration files, what is known to be harmless is kept, and REDACTED takes the place of all
else: of a variable, the flags in it are kept, or the value that such a flag takes.

Names are replaced by hashes. The hash of a name is always the same, so that a container in one file is found in
another. UIDs and ids stay.
"""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any, Callable, Container, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._base.errors import ConfigurationError, GoError
from .._base.golang import json_text, read_json
from .._base.secrets import REDACTED, address_redacted, is_secret
from .._base.toml import TOMLError
from .._base.tree import is_number
from .._containers.crictl import hashed
from .._host.services import command_words, read_environment, split_words
from .._runtime.runtime_files import essence
from ..state import memory_manager as memory_formats
from ..state.checkpoint import decode_checkpoint, unique_members
from ..state.formats import STRUCT as OF_CHECKPOINT
from ..state.formats import CheckpointError, Format1, Format4, fnv
from .configuration import API_VERSION, KIND, KubeletConfiguration, is_json, read_document
from .flag_files import OF_FLAGS, kubelet_args, line_words
from .flags import HANDED_ON, MANIFEST_URL
from .redacted_words import BLANKS, VARIABLE, is_known, is_variables, quoted_word, takes_value, words_redacted
from .start.decode import (
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
from .yaml import anchors
from .yaml_nodes import TextNode, same

_NOTHING: Mapping[str, bool] = MappingProxyType({})

# A change of a file's text.
Redaction = Callable[[str], str]

# Prose: nothing in it looks like a value.
_PROSE = re.compile(r"[#A-Za-z_ ,.;'()\t-]*", re.ASCII)
_PROSE_WORD = re.compile("[A-Za-z]{1,20}")


class UnsafeError(Exception):
    """A text may hold secrets, and is written in a way in which these cannot be told from the rest.

    Its message is saved: it never has a part of the text.
    """


def is_prose(comment: str) -> bool:
    """Return whether a comment is made of words alone, none of which is the name of a secret."""
    if not _PROSE.fullmatch(comment):
        return False
    return all(_PROSE_WORD.fullmatch(word) and not is_secret(word) for word in re.findall("[A-Za-z]+", comment))


def lines_redacted(text: str) -> str:
    """Return a file with flags and their values on lines, without their secrets. Each line stays a line."""
    lines = text.splitlines(keepends=True)
    given = [line_words(line) for line in lines]
    rest = iter(words_redacted([word for words in given for word in words], has_program=False))
    kept = []
    for line, words in zip(lines, given):
        found = [next(rest) for _word in words]
        end = line[len(line.rstrip("\r\n")) :]
        is_comment = line.strip().startswith("#")
        if is_comment and not is_prose(line.rstrip("\r\n")):
            kept.append("# %s%s" % (REDACTED, end))
        else:
            kept.append(line if found == words else " ".join(found) + end)
    return "".join(kept)


# --- environment files and units ---------------------------------------------------------------------------


def environment_redacted(text: str, needed: Mapping[str, bool] = _NOTHING) -> str:
    """Return an environment file with all its variables. Those that give no flags lose their values.

    needed: what variables_of() gives of the command line of the unit.
    """
    lines = []
    for name, value in read_environment(text).items():
        kept = _variable(name, value, needed)
        for sign in '\\"`$':
            kept = kept.replace(sign, "\\" + sign)
        lines.append('%s="%s"\n' % (name, kept))
    return "".join(lines)


def _variable(name: str, value: str, needed: Mapping[str, bool]) -> str:
    is_of_flags = name.endswith(OF_FLAGS)
    if is_secret(name) and not is_of_flags:
        return REDACTED
    if needed.get(name):
        return address_redacted(value)
    words = split_words(value)
    if not words:
        return value
    has_flags = name in needed or any(is_known(word.partition("=")[0]) for word in words)
    if is_of_flags or (words[0].startswith("-") and has_flags):
        found = words_redacted(words, has_program=False)
        return value if found == words else " ".join(map(quoted_word, found))
    return REDACTED


def variables_of(command: str) -> dict[str, bool]:
    """Return the variables in a unit's command line: whether a flag takes the value whose values are kept, or it is
    words of its own. Those that other flags take are not among them."""
    found: dict[str, bool] = {}
    before = ""
    for word in command_words(command) or ():
        name, equals, value = word.partition("=")
        flag = name if equals else before
        variables = [plain or braced for plain, braced in VARIABLE.findall(value if equals else word)]
        if is_known(flag) and flag not in (HANDED_ON, "--" + MANIFEST_URL) and not is_secret(flag):
            found.update(dict.fromkeys(variables, True))
        elif not flag and is_variables(word):
            found.update((variable, False) for variable in variables if variable not in found)
        before = "" if equals or not takes_value(name) else name
    return found


def command_redacted(command: str) -> str:
    """Return the value of ExecStart= in a unit without its secrets; one that systemd does not understand stays such
    a one."""
    words = command_words(command)
    if words is None:
        return '"' + REDACTED
    found = words_redacted(words)
    return command if found == words else " ".join(map(_escaped_word, found))


def unit_redacted(
    settings: Sequence[tuple[str, str]], variables: Callable[[str], dict[str, str]], needed: Mapping[str, bool]
) -> str:
    """Return a unit, or a drop-in file of one, with what gives a kubelet its flags.

    settings: what its section of the service says, in order. variables: reads the value of Environment=.
    needed: what variables_of() gives of the command line, which may stand in another file.
    """
    lines = ["[Service]\n"]
    for key, value in settings:
        if key == "Environment" and value:
            for name, content in variables(value).items():
                lines.append('Environment="%s=%s"\n' % (name, escaped(_variable(name, content, needed))))
        elif key in ("ExecStart", "Environment", "EnvironmentFile", "Slice", "UnsetEnvironment"):
            lines.append("%s=%s\n" % (key, command_redacted(value) if key == "ExecStart" and value else value))
    return "".join(lines)


def escaped(value: str) -> str:
    """Return a text between double quotes in a unit."""
    return _signs_escaped(value).replace("%", "%%")


def _escaped_word(word: str) -> str:
    """Return a word of a command line as systemd reads it. A % in it stays one."""
    escaped = _signs_escaped(word)
    return escaped if word == escaped and word and not any(sign in word for sign in BLANKS + "'") else '"%s"' % escaped


def _signs_escaped(value: str) -> str:
    # A byte that is no text has a place of its own in Python.
    return "".join(
        "\\" + sign
        if sign in '\\"'
        else "\\x%02x" % (ord(sign) & 0xFF)
        if sign < " " or "\udc80" <= sign <= "\udcff"
        else sign
        for sign in value
    )


# The secrets in a kubelet's configuration files, taken out so that the rest says the same to our modules. Pure.
#
# What the fields of a KubeletConfiguration take is kept, and so are comments of plain words. Where a file is none, or
# is damaged, signs stand in place of its letters and digits: what is wrong with it, and where, still shows.


_ROOT = GoType(STRUCT, KUBELET_CONFIGURATION, None, KUBELET_CONFIGURATION)
_NO_TEXTS = (BOOL, FLOAT, INT32, INT64, UINT32, LIST, MAP, STRUCT)
_HEADERS, _SERVER_ADDRESS = "staticPodURLHeader", "staticPodURL"
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
    """A value that is not a mapping: where it stands, and what of it is kept."""

    start: int
    end: int
    value: object
    kept: object


def kubelet_args_redacted(text: str) -> str:
    """Return k3s' or RKE2's configuration file with the kubelet's arguments alone. Raises UnsafeError."""
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
    """Return what is read of a container runtime's file, or of any other one in TOML. Raises UnsafeError."""
    try:
        return essence(content.decode("utf-8")).encode("utf-8")
    except (TOMLError, UnicodeDecodeError) as error:
        raise UnsafeError("it is no TOML") from error


def configuration_redacted(text: str) -> str:
    """Return a KubeletConfiguration without secrets, else the same to the byte. Of another or a damaged file, its
    shape."""
    try:
        before = KubeletConfiguration.parse(text)
        leaves = list(_leaves(read_document(text), _ROOT))
        found = _with_kept(text, leaves, _words_of_keys(before.values) | _words_of_anchors(text))
        after = KubeletConfiguration.parse(found)
    except ConfigurationError:
        return _shape(text, _KNOWN_WORDS)
    return found if same(after.values, _kept(before.values, _ROOT)) else _shape(text, _KNOWN_WORDS)


def _leaves(node: TextNode, kind: GoType | None) -> Iterator[_Leaf]:
    """Yield the values in a mapping, in the order of the text. kind: of the mapping; None where no field takes it."""
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
    if isinstance(value, str) and fold(key) == fold(_SERVER_ADDRESS):
        return address_redacted(value, keep_path=False)
    return _kept(value, _kind_of(key, kind))


def _kept(value: Any, kind: GoType | None) -> object:
    """Return what is kept of a value. kind: what it should be; None where no field takes it."""
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
    """Return the text with what is kept of its values, of comments, and of all that is neither of the two."""
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
    """Return what stands between values: keys and comments, and perhaps what nobody reads."""
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
    """Return a text with signs in place of the words that are not among these names."""

    def masked(found: re.Match[str]) -> str:
        word = found.group()
        return word if word in names else "".join("0" if is_number(sign) else "x" for sign in word)

    return _WORD.sub(masked, text)


# The names of pods and containers in the states of the kubelet's managers.


# The sums that kubelets make of the memory manager's state: of which members, and under which name.
_SUMS = tuple(
    (fields, memory_formats.STRUCT + end)
    for fields in (memory_formats.FORMAT1, memory_formats.FORMAT2)
    for end in ("", "V1", "V2")
)


def checkpoint_without_names(content: bytes) -> bytes:
    """Return the CPU manager's checkpoint with a hash for each container's name, its checksums right where they were
    right.

    Raises UnsafeError for a text in which the names cannot be told from the rest, such as a damaged one.
    """
    members = _members(content)
    try:
        checkpoint = decode_checkpoint(content)
    except CheckpointError as error:
        raise UnsafeError("it is damaged") from error
    if checkpoint.version == Format1.version:
        return content  # it has ids alone
    beside = checkpoint.outer if isinstance(checkpoint, Format4) else checkpoint
    struct = next(
        (name for name in (OF_CHECKPOINT, beside.summed_as) if beside.checksum == beside.right_checksum(name)), ""
    )
    beside.entries = _renamed(beside.entries)
    _rename(members)
    if struct and "checksum" in members:
        members["checksum"] = beside.right_checksum(struct)
    return json_text(members).encode("utf-8")


def memory_state_without_names(content: bytes) -> bytes:
    """Return the memory manager's state with hashes for names, its checksums right where they were.

    Raises UnsafeError for what may have names elsewhere.
    """
    members = _members(content)
    right = [sums for sums in _SUMS if "checksum" in members and _memory_sum(content, *sums) == members["checksum"]]
    _rename(members)
    if right:
        members["checksum"] = _memory_sum(json_text(members).encode("utf-8"), *right[0])
    return json_text(members).encode("utf-8")


def _memory_sum(content: bytes, fields: Iterable[Any], name: str) -> int:
    try:
        value, wrong = memory_formats.decoded(fields, name, read_json(content))
    except GoError as error:
        raise UnsafeError("it is damaged") from error
    return -1 if wrong else memory_formats.sum_of(fields, value, name)


def _members(content: bytes) -> dict[str, object]:
    """Return the members of a state as a kubelet writes it. Raises UnsafeError for anything else."""
    try:
        members = json.loads(content.decode("utf-8"), object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        raise UnsafeError("it is damaged") from error
    checkpoint_keys = {
        "policyName",
        "defaultCpuSet",
        "machineState",
        "entries",
        "podEntries",
        "checksum",
        "data",
        "dataChecksum",
    }
    if not isinstance(members, dict) or not members.keys() <= checkpoint_keys:
        raise UnsafeError("it is not as a kubelet writes it")
    return members


def _rename(members: dict[str, Any]) -> None:
    """Replace the names in a state, also in the text of a newer format, whose checksum goes with it."""
    if "entries" in members:
        members["entries"] = _renamed(members["entries"])
    if not isinstance(members.get("data"), str) or not members["data"]:
        return
    inner, before = _members(members["data"].encode("utf-8", "surrogatepass")), members["data"]
    _rename(inner)
    members["data"] = json_text(inner)
    if members.get("dataChecksum") == fnv("(string)" + before):
        members["dataChecksum"] = fnv("(string)" + members["data"])


def _renamed(entries: object) -> Any:
    """Return {pod UID: {hash of the container's name: what it has}}. Raises UnsafeError for entries of another form."""
    if entries is None:
        return None
    if not isinstance(entries, Mapping):
        raise UnsafeError("its entries are no mapping")
    found = {}
    for uid, containers in entries.items():
        if containers is not None and not isinstance(containers, Mapping):
            # By container id, as in format 1.
            return entries
        found[uid] = None if containers is None else {hashed(name): value for name, value in containers.items()}
    return found
