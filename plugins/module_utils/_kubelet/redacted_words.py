# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Command lines of kubelets and of what starts them, and what such a program says, without secrets. Pure.

What is known to be harmless is kept, and REDACTED takes the place of all else: the kubelet's own flags, the names of
other flags, and the words that choose a command.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Iterable, Iterator, Mapping, Sequence

from .._base.secrets import REDACTED, address_redacted, is_header, is_secret, text_redacted
from .._host.services import split_words
from .flags import END_OF_FLAGS, FLAGS, HANDED_ON, MANIFEST_URL, SWITCHES, bare, quoted

# The names of other programs' flags of which an absolute path may be kept, and that path.
_OF_PATH = re.compile("(?:^|[-_])(?:file|path|dir|config)$", re.IGNORECASE)
_PATH = re.compile(r"/[\w./-]{0,200}", re.ASCII)
# Names of flags of other programs; of one dash, one letter, as a value may stand right behind it.
_NAME = re.compile(r"--[a-z][a-z0-9_-]{0,60}|-[A-Za-z]", re.ASCII)
_LONG_NAME = re.compile(r"-[a-z][a-z0-9_-]{0,60}", re.ASCII)
_VERBOSITY = re.compile(r"-v=?[0-9]{1,3}")
# A number below zero and what it begins, as a duration or the memory of a NUMA node.
_NEGATIVE = re.compile("-[0-9]")
# Words that choose what a program does, and programs that start programs.
_COMMANDS = frozenset(
    ("agent", "bash", "controller", "daemon", "env", "exec", "kubelet", "kubelite", "run", "server", "sh", "single")
    + ("start", "worker", ";")
)
# What a kubelet's own switch may have behind it by mistake.
_CHOICES = frozenset(
    ("best-effort", "container", "none", "None", "pod", "restricted", "single-numa-node", "static", "Static")
)
_SWITCHED = ("", "true", "false")
_DEEPEST = 3
_PROGRAM = re.compile(r"[-@:+!|]{0,9}[\w./-]{1,200}", re.ASCII)
_ASSIGNED = re.compile("[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
# A variable of the shell's form, without and with braces.
VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})", re.ASCII)
BLANKS = " \t\r\n"


def words_redacted(words: Sequence[str], has_program: bool = True, depth: int = 0) -> list[str]:
    """Return the words of a command line without its secrets, as many as before.

    has_program: whether the first is a program, unlike in a variable. depth: of how many words it is a part; of what is
    a part of many, nothing is kept.
    """
    if depth > _DEEPEST:
        return [REDACTED] * len(words)
    found: list[str] = []
    # The flag before, if a value is to follow it.
    waiting = ""
    is_over = False
    for word in words:
        name, equals, value = word.partition("=")
        if waiting and (is_known(waiting) or not is_known(name)):
            found.append(_value(waiting, word, depth))
            waiting = ""
            continue
        waiting = ""
        is_program = has_program and not found
        if word == END_OF_FLAGS:
            is_over = True
            found.append(word)
        elif is_over or is_program or not word.startswith("-"):
            found.append(_positional(word, is_program, depth))
        elif _VERBOSITY.fullmatch(word):
            found.append(word)
        elif equals:
            found.append("%s=%s" % (_name(name, equals), _value(name, value, depth)))
        else:
            found.append(_name(name, ""))
            waiting = name if takes_value(name) else ""
    return found


def _flag(name: str) -> str:
    """Return the name of a flag as the kubelet's table has it, also of one that is written with one dash by mistake."""
    return bare(name) if len(name) > len("-v") or name == "-v" else ""


def is_known(name: str) -> bool:
    """Return whether a flag is the kubelet's, or hands one on to it."""
    return name == HANDED_ON or _flag(name) in FLAGS


def takes_value(name: str) -> bool:
    """Return whether the word behind a flag is its value. That of a flag which no table has is one where its name
    says so."""
    if name == HANDED_ON:
        return True
    flag = FLAGS.get(_flag(name))
    return is_secret(name) if flag is None else flag.kind not in SWITCHES


def _name(name: str, equals: str) -> str:
    if is_known(name) or _NAME.fullmatch(name) or (equals and _LONG_NAME.fullmatch(name)):
        return name
    return "-" + REDACTED


def _value(name: str, value: str, depth: int) -> str:
    """Return what takes the place of a flag's value. A header's name is no secret."""
    if name == HANDED_ON:
        (word,) = words_redacted(["--" + value.lstrip("-")], False, depth + 1)
        return word[len("--") :] if word.startswith("--") else word
    if is_secret(name):
        return ",".join(map(_header, value.split(","))) if is_header(name) else REDACTED
    if is_known(name):
        if value.startswith("-") and not _NEGATIVE.match(value):
            return words_redacted([value], False, depth + 1)[0]
        return address_redacted(value, keep_path=_flag(name) != MANIFEST_URL)
    is_kept = value in _SWITCHED or is_variables(value)
    return value if is_kept or (_OF_PATH.search(name) and _PATH.fullmatch(value)) else REDACTED


def _header(text: str) -> str:
    # A kubelet does not start with a header that has no name.
    name, colon, _value = text.partition(":")
    return "%s:%s" % (name, REDACTED) if colon else REDACTED


def is_variables(word: str) -> bool:
    """Return whether a word is made of variables alone."""
    return not VARIABLE.sub("", word)


def _positional(word: str, is_program: bool, depth: int) -> str:
    name, _equals, rest = word.partition("=")
    # What ends with these signs is base64, and no assignment.
    if rest.strip("=") and _ASSIGNED.fullmatch(name):
        return "%s=%s" % (name, REDACTED)
    if any(sign in word for sign in BLANKS):
        # A command line in one word: what k3s writes over its own, or what a shell is given.
        inner = split_words(word)
        found = words_redacted(inner, is_program, depth + 1)
        return word if found == inner else " ".join(map(quoted_word, found))
    if _PROGRAM.fullmatch(word) and (is_program or posixpath.basename(word) in _COMMANDS):
        return word
    is_kept = word in _COMMANDS or word in _CHOICES or word in _SWITCHED or is_variables(word)
    return word if is_kept else REDACTED


def quoted_word(word: str) -> str:
    """Return a word as split_words() reads it."""
    if word and not any(sign in word for sign in BLANKS + "\\\"'"):
        return word
    return '"%s"' % word.replace("\\", "\\\\").replace('"', '\\"')


# --- what a kubelet says -------------------------------------------------------------------------------------

# The field with the address that pods are read from.
_SERVER_ADDRESS = "staticpodurl"
# A shorter value is no secret, and would be found in other words.
_SHORTEST = 4
# A value as it is, between quotes of Go, and between such quotes in a text that is quoted itself.
_QUOTED_TIMES = 3


def said_redacted(text: str, words: Sequence[str] = (), secrets: Iterable[str] = ()) -> str:
    """Return what a kubelet says, without secrets: those of any text, and the values of flags that no table has.

    words: those of its command line, without the program. secrets: what is secret in its configuration.
    """
    shown = words_redacted(words, has_program=False)
    # What another word shows all the same is no secret.
    kept = {word.partition("=")[2] or word for word in shown}
    given = {piece for pair in zip(words, shown) for piece in _left_out(*pair) if piece not in kept}
    for secret in sorted({*given, *secrets}, key=len, reverse=True):
        for form in _forms(secret) if len(secret) >= _SHORTEST else ():
            if form in text:
                text = re.sub(r"(?<!\w)%s(?!\w)" % re.escape(form), REDACTED, text)
    return text_redacted(text, _is_secret_flag)


def secrets_in(values: Any) -> Iterator[str]:
    """Yield the texts that are secret in the values of a configuration."""
    for key, value in values.items() if isinstance(values, Mapping) else ():
        if is_secret(str(key)):
            yield from _texts(value)
        elif str(key).lower() == _SERVER_ADDRESS and isinstance(value, str):
            yield from _left_out(value, address_redacted(value, keep_path=False))
        else:
            yield from secrets_in(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield from (piece for piece in value.split() if not piece.isalpha())
    elif isinstance(value, (Mapping, list)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def _is_secret_flag(name: str) -> bool:
    return is_secret(name) or not is_known(name) or _flag(name) == MANIFEST_URL


def _left_out(word: str, shown: str) -> Iterator[str]:
    """Yield what of a word is redacted in it as it is shown: all from there on, each part, and the words of each
    part."""
    if word == shown:
        return
    before, *kept = shown.split(REDACTED)
    at = len(before) if word.startswith(before) else 0
    yield word[at:]
    for part in kept:
        end = word.find(part, at) if part else len(word)
        end = len(word) if end < 0 else end
        yield word[at:end]
        yield from (piece for piece in re.split(r"[\s?#]+", word[at:end]) if not piece.isalpha())
        at = end + len(part)


def _forms(secret: str) -> Iterator[str]:
    for _time in range(_QUOTED_TIMES):
        yield secret
        secret = quoted(secret)[1:-1]
