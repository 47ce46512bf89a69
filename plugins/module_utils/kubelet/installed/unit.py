# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""With which command line systemd starts a service: what its unit, its drop-in files and environment files say.

Source: systemd.unit(5), systemd.service(5) and systemd.exec(5).
"""

from __future__ import annotations

import re
from typing import Iterator, Mapping

from ...errors import NodeError, RefusedError
from ...host.units import settings_in
from ...tree import LARGEST_OF_KUBELET, Tree
from .distributions import UNIT_DIRECTORIES
from .flag_file import read_environment, split_words, words_of

# What may stand before the path of a program, and before that of an environment file.
_PROGRAM_SIGNS, _MAY_BE_MISSING = "@-:+!|", "-"
# One that does not end goes on to the end of the word.
_VARIABLE = re.compile(r"\$(?:(\$)|\{([^}]*)(\}?))")
_ASSIGNMENT = re.compile("([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
# What is read of a unit.
SECTION = "[Service]"

# A backslash and one of these, which may be followed by digits of this base.
_SIGNS = dict(zip("abfnrtvs\\\"'", "\a\b\f\n\r\t\v \\\"'"))
_NUMBER = re.compile("x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{3})")

# What a % and a letter stand for, where it is the same on all nodes; of the unit the two names.
_SPECIFIER = re.compile("%(.)")
_SPECIFIERS = {
    "%": "%",
    "C": "/var/cache",
    "E": "/etc",
    "L": "/var/log",
    "S": "/var/lib",
    "T": "/tmp",
    "V": "/var/tmp",
    "h": "/root",
    "t": "/run",
    "u": "root",
}


def unit_command(tree: Tree, service: str) -> list[str]:
    """The words of a service's command line, with its variables in place; none where no unit gives it."""
    command: list[str] = []
    variables: dict[str, str] = {}
    files: list[str] = []
    for name, value in settings_of(tree, service):
        # An empty value takes back what came before.
        if name == "ExecStart":
            command = [resolved(word, service) for word in command_words(value) or ()]
        elif name == "Environment":
            variables = {**variables, **assignments_of(value, service)} if value else {}
        elif name == "EnvironmentFile":
            files = [*files, resolved(value.lstrip(_MAY_BE_MISSING), service)] if value else []
    for path in files:
        variables.update(read_environment(_text(tree, path)))
    if not command:
        return []
    program = command[0].lstrip(_PROGRAM_SIGNS)
    signs = command[0][: len(command[0]) - len(program)]
    # Behind an @ comes what the program finds as its own name.
    words = command[2 if "@" in signs else 1 :]
    return [program, *(words if ":" in signs else (part for word in words for part in _expanded(word, variables)))]


def command_words(value: str) -> list[str] | None:
    """The words of a command line, with its variables and specifiers; None where systemd does not understand it."""
    try:
        return list(words_of(value, _c_escape, strict=True))
    except ValueError:
        return None


def assignments_of(value: str, service: str) -> dict[str, str]:
    """The variables of a line, up to a word that systemd does not understand."""
    variables = {}
    try:
        for word in words_of(value, _strict_escape, strict=True):
            found = _ASSIGNMENT.fullmatch(resolved(word, service))
            if found:
                variables[found.group(1)] = found.group(2)
    except ValueError:
        pass
    return variables


def _c_escape(text: str, position: int) -> tuple[str, int]:
    """What C makes of a backslash; one that means nothing stays."""
    try:
        return _strict_escape(text, position)
    except ValueError:
        return text[position - 1 : position + 1], position + 1


def _strict_escape(text: str, position: int) -> tuple[str, int]:
    sign = text[position : position + 1]
    if sign in _SIGNS:
        return _SIGNS[sign], position + 1
    found = _NUMBER.match(text, position)
    if found is None:
        raise ValueError("a backslash that means nothing")
    byte, short, long, octal = found.groups()
    number = int(byte or short or long or octal, 8 if octal else 16)
    if not number or number > (0xFF if octal else 0x10FFFF) or 0xD800 <= number < 0xE000:
        raise ValueError("not a character")
    # A byte, of which several may make one character.
    return chr(number + 0xDC00 if (byte or octal) and number > 0x7F else number), found.end()


def resolved(word: str, service: str) -> str:
    """A word with its specifiers in place, and its bytes as text. Source: systemd.unit(5)."""
    names = {**_SPECIFIERS, "n": service + ".service", "N": service, "p": service}
    word = _SPECIFIER.sub(lambda found: names.get(found.group(1), found.group()), word)
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def settings_of(tree: Tree, service: str) -> Iterator[tuple[str, str]]:
    """What the section of the service says, in order."""
    for text in _texts(tree, service + ".service"):
        yield from settings_in(text, SECTION)


def _texts(tree: Tree, unit: str) -> Iterator[str]:
    """The unit and its drop-in files, in the order in which they count."""
    for directory in UNIT_DIRECTORIES:
        text = _text(tree, "%s/%s" % (directory, unit))
        if text:
            yield text
            break
    else:
        return
    drop_ins = {}
    for directory in reversed(UNIT_DIRECTORIES):
        beside = "%s/%s.d" % (directory, unit)
        drop_ins.update({name: beside for name in tree.names(beside) if name.endswith(".conf")})
    for name in sorted(drop_ins):
        yield _text(tree, "%s/%s" % (drop_ins[name], name))


def _text(tree: Tree, path: str) -> str:
    """The text of a file that need not be there. One that is masked is a link to a device, and says nothing."""
    try:
        return tree.read_text(path, LARGEST_OF_KUBELET)
    except (NodeError, RefusedError):
        return ""


def _expanded(word: str, variables: Mapping[str, str]) -> list[str]:
    # A word of its own becomes as many words as the variable has.
    if word.startswith("$") and word[1:2] not in ("{", "$"):
        return split_words(variables.get(word[1:], ""))

    def content(found: re.Match[str]) -> str:
        dollar, name, end = found.groups()
        return dollar or (variables.get(name, "") if end else found.group())

    return [_VARIABLE.sub(content, word)]
