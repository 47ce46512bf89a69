# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd gives a service: its command line and its variables, as unit, drop-in and environment files say.

Source: systemd.unit(5), systemd.service(5) and systemd.exec(5).
"""

from __future__ import annotations

import re
from typing import Iterator, Mapping, NamedTuple

from ..errors import NodeError, RefusedError
from ..tree import LARGEST_OF_KUBELET, Tree
from .environment import NAME, read_environment, split_words, words_of
from .units import section_of, settings_in, unit_paths

# What may stand before the path of a program, and before that of an environment file.
_PROGRAM_SIGNS, _MAY_BE_MISSING = "@-:+!|", "-"
_PATTERN = frozenset("*?[")
# One that does not end goes on to the end of the word.
_VARIABLE = re.compile(r"\$(?:(\$)|\{([^}]*)(\}?))")
_ASSIGNMENT = re.compile("(%s)=(.*)" % NAME.pattern, re.DOTALL)
_END = ".service"
# What is read of a unit.
SECTION = section_of(_END)

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


class Variable(NamedTuple):
    """The value of a variable, or of a setting, and the file that gives it."""

    value: str
    path: str


class Service(NamedTuple):
    """What systemd gives a service.

    command: the words of its command line, with its variables in place; none where no unit gives it.
    variables: those of its units and of its environment files, which need not be there.
    files: the paths of these environment files, of which the last one counts.
    """

    command: list[str]
    variables: Mapping[str, Variable]
    files: list[str]


def read_service(tree: Tree, service: str) -> Service:
    """What systemd gives a service, whose name is without its ending."""
    command: list[str] = []
    variables: dict[str, Variable] = {}
    files: list[str] = []
    unset: list[str] = []
    for path, name, value in settings_of(tree, service):
        # An empty value takes back what came before.
        if name == "ExecStart":
            command = [resolved(word, service) for word in command_words(value) or ()]
        elif name == "Environment":
            given = assignments_of(value, service)
            variables = {**variables, **{key: Variable(text, path) for key, text in given.items()}} if value else {}
        elif name == "EnvironmentFile":
            files = [*files, resolved(value.lstrip(_MAY_BE_MISSING), service)] if value else []
        elif name == "UnsetEnvironment":
            unset = [*unset, *split_words(value)] if value else []
    for path in files:
        variables.update(variables_in(tree, path))
    for word in unset:
        name, equals, value = word.partition("=")
        if name in variables and (not equals or variables[name].value == value):
            del variables[name]
    return Service(_in_place(command, variables), variables, files)


def missing_files(tree: Tree, service: str) -> list[Variable]:
    """The environment files that are not there, and without which systemd does not start a service; who names each."""
    files: list[Variable] = []
    for path, name, value in settings_of(tree, service):
        if name == "EnvironmentFile":
            files = [*files, Variable(resolved(value, service), path)] if value else []
    # Of a pattern, it is not looked for what it matches.
    needed = [file for file in files if file.value.startswith("/") and _PATTERN.isdisjoint(file.value)]
    return [file for file in needed if not tree.exists(file.value)]


def variables_in(tree: Tree, path: str) -> dict[str, Variable]:
    """What an environment file gives; nothing where it is not there."""
    return {name: Variable(value, path) for name, value in read_environment(_text(tree, path)).items()}


def unit_command(tree: Tree, service: str) -> list[str]:
    """The words of a service's command line, with its variables in place; none where no unit gives it."""
    return read_service(tree, service).command


def _in_place(command: list[str], variables: Mapping[str, Variable]) -> list[str]:
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


def settings_of(tree: Tree, service: str) -> Iterator[tuple[str, str, str]]:
    """What the section of the service says, in order: the file, the setting and its value."""
    unit = service + _END
    paths = unit_paths(tree, unit)
    for path in paths:
        text = _text(tree, path)
        # Without a unit, what is beside it says nothing. Nor where it is empty, as one that is masked.
        if path is paths[0] and not (text and path.endswith("/" + unit)):
            return
        for name, value in settings_in(text, SECTION):
            yield path, name, value


def _text(tree: Tree, path: str) -> str:
    """The text of a file that need not be there. A byte that is no text has a place of its own."""
    try:
        return (tree.content(path, LARGEST_OF_KUBELET) or b"").decode("utf-8", "surrogateescape")
    except (NodeError, RefusedError):
        return ""


def _expanded(word: str, variables: Mapping[str, Variable]) -> list[str]:
    def value_of(name: str) -> str:
        return variables[name].value if name in variables else ""

    # A word of its own becomes as many words as the variable has.
    if word.startswith("$") and word[1:2] not in ("{", "$"):
        return split_words(value_of(word[1:]))

    def content(found: re.Match[str]) -> str:
        dollar, name, end = found.groups()
        return dollar or (value_of(name) if end else found.group())

    return [_VARIABLE.sub(content, word)]
