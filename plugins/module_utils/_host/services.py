# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What systemd gives a service: its command line and its variables, as units, drop-ins and environment files say.

Source: systemd.unit(5), systemd.service(5) and systemd.exec(5).
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from .._base.errors import NodeError, RefusedError
from .._base.tree import LARGEST_OF_KUBELET, Tree
from .systemd import UNIT_PLACES, section_of, settings_in, unit_paths

# Variables that systemd gives to a service: how it reads files of them, and splits them into words. Pure.
#
# Its source: EnvironmentFile= in systemd.exec(5), parse_env_file_internal() and extract_first_word() of systemd.


NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# How a comment begins.
COMMENT = "#;"
# What a backslash makes a plain sign between double quotes.
ESCAPED = '"\\`$'
# Signs that systemd takes for space, and for the end of a line.
_SPACE, _NEWLINE = " \t\n\r", "\n\r"
# Control characters but tabs and ends of lines, and bytes that are no text.
_NO_VALUE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

# What a backslash makes of what is behind it at a position: the signs, and the position behind them.
Escape = Callable[[str, int], Tuple[str, int]]


def plain_escape(text: str, position: int) -> tuple[str, int]:
    """Return a backslash keeps the sign behind it, whatever that is."""
    return text[position : position + 1], position + 1


def split_words(text: str) -> list[str]:
    """Return the words of a variable, as systemd splits it."""
    return list(words_of(text, plain_escape, strict=False))


def words_of(text: str, escape: Escape, strict: bool) -> Iterator[str]:
    """Yield the words of a text as systemd splits it: quotes hold words together, also within one, and are taken away.

    Raises ValueError for a quote without its end, if `strict`.
    """
    word: str | None = None
    quote = ""
    position = 0
    while position < len(text):
        sign = text[position]
        position += 1
        if sign == "\\":
            kept, position = escape(text, position)
            word = (word or "") + kept
        elif sign == quote:
            quote = ""
        elif quote:
            word = (word or "") + sign
        elif sign in "\"'":
            quote, word = sign, word or ""
        elif sign not in _SPACE:
            word = (word or "") + sign
        elif word is not None:
            yield word
            word = None
    if quote and strict:
        raise ValueError("a quote has no end")
    if word is not None:
        yield word


class Assignment(NamedTuple):
    """A variable's value, and where its lines are: from their first sign up to the end of the last, without it."""

    name: str
    value: str
    start: int
    end: int


class Lines(NamedTuple):
    """What a file gives, in order; and what its last line lacks to be ended: None where nothing ends it."""

    assignments: list[Assignment]
    missing: str | None


def read_environment(text: str) -> dict[str, str]:
    """Return the variables of an environment file, as systemd reads it.

    What is no name of a variable, as of a line that begins with export, gives none. Since version 254 a comment ends at
    its line, whatever its last sign.
    """
    if "\0" in text:
        return {}  # systemd does not read such a file
    lines = parse_lines(text, long_comments=False)
    return {line.name: line.value for line in lines.assignments if not _NO_VALUE.search(line.value)}


def parse_lines(text: str, long_comments: bool = True) -> Lines:
    """Read any text as such a file. What is no assignment gives nothing.

    long_comments: as before version 254, where a backslash lets a comment go on: what is written has to count in all.
    """
    reader = _Reader(text)
    found: list[Assignment] = []
    while reader.at < len(text):
        start = reader.at
        if text[start] in _SPACE:
            reader.at += 1
        elif text[start] in COMMENT:
            reader.skip_comment(long_comments)
        else:
            line = reader.assignment(start)
            if line is not None:
                found.append(line)
    return Lines(found, reader.missing)


def with_value(text: str, name: str, value: str) -> str:
    """Return the file with another value of a variable, in the last line that gives it one, or else in a new line at
    the end.

    value: a text without blanks, quotes and backslashes. Raises RefusedError where a quote has no end, and for what
    systemd does not read as such a file.
    """
    lines = parse_lines(text)
    last = next((line for line in reversed(lines.assignments) if line.name == name), None)
    assignment = "%s=%s" % (name, value)
    if last is not None and last.value == value:
        changed = text
    elif lines.missing is None:
        raise RefusedError("a quote in it has no end, so it is not clear what it says", remedy="correct the file")
    elif last is None:
        changed = "%s%s%s\n" % (text, lines.missing, assignment)
    else:
        changed = text[: last.start] + assignment + text[last.end :]
    if read_environment(changed).get(name) != value:
        raise RefusedError("systemd would read no %s in it" % name, remedy="correct the file")
    return changed


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.missing: str | None = ""

    def _take(self) -> str:
        sign = self.text[self.at : self.at + 1]
        self.at += len(sign)
        return sign

    def skip_comment(self, goes_on: bool) -> None:
        """Skip a comment. goes_on: whether a backslash before its end makes the next line a part of it."""
        while self.at < len(self.text):
            sign = self._take()
            if sign in _NEWLINE:
                return
            if goes_on and sign == "\\" and not self._take():
                self.missing = "\n\n"
                return
        self.missing = "\n"

    def assignment(self, start: int) -> Assignment | None:
        """Return the lines of a name and its value; None for any that has no such name."""
        # Whatever is first belongs to the name.
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] not in "=" + _NEWLINE:
            self.at += 1
        name = self.text[start : self.at].rstrip(_SPACE)
        sign = self._take()
        if sign != "=":
            # A line without a value: at the end of the text it has no end, either.
            self.missing = "" if sign else "\n"
            return None
        value, end = self._value()
        return Assignment(name, value, start, end) if NAME.fullmatch(name) else None

    def _value(self) -> tuple[str, int]:
        """Return the value, and where its last line ends.

        Quotes count at the beginning, and behind the end of another quote. Space around it does not count.
        """
        # How much of the value space at its end cannot be taken from.
        value, kept, is_begun = "", 0, False
        while True:
            sign = self._take()
            if not sign or sign in _NEWLINE:
                self.missing = "" if sign else "\n"
                return value[:kept], self.at - len(sign)
            if sign == "\\":
                is_begun = True
                sign = self._take()
                if not sign:
                    self.missing = "\n\n"
                    return value, self.at
                value += "" if sign in _NEWLINE else sign
                kept = len(value)
            elif sign in "\"'" and not is_begun:
                quoted, is_ended = self._quoted(sign)
                value += quoted
                kept = len(value)
                if not is_ended:
                    self.missing = None
                    return value, self.at
            elif is_begun or sign not in _SPACE:
                is_begun = True
                value += sign
                kept = kept if sign in _SPACE else len(value)

    def _quoted(self, quote: str) -> tuple[str, bool]:
        """Return what is up to the next quote or the end, and whether there is a quote."""
        found = ""
        while True:
            sign = self._take()
            if not sign or sign == quote:
                return found, bool(sign)
            if sign == "\\" and quote == '"':
                escaped = self._take()
                sign = "" if escaped == "\n" else escaped if escaped in ESCAPED else sign + escaped
            found += sign


# What may stand before the path of a program, and before that of an environment file.
_PROGRAM_SIGNS, _MAY_BE_MISSING = "@-:+!|", "-"
_PATTERN = frozenset("*?[")
# One that does not end goes on to the end of the word.
_VARIABLE = re.compile(r"\$(?:(\$)|\{([^}]*)(\}?))")
_ASSIGNMENT = re.compile("(%s)=(.*)" % NAME.pattern, re.DOTALL)
_END = ".service"
# What is read of a unit.
SECTION = section_of(_END)

# By which a unit has another one started: settings, and directories of links.
_PULLING, _LINKS, _BOOT_LINKS = ("Wants", "Requires", "BindsTo"), (".wants", ".requires"), "multi-user.target.wants"
_OWN_PLACE = "/etc/systemd/system"
_ON = ("1", "yes", "true", "on")

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

    command: the words of its command line, with its variables in place; none where no unit gives it, or where it is
    longer than a kernel takes.
    variables: those of its units and of its environment files, which need not be there.
    files: the paths of these environment files, of which the last one counts.
    replaced: variables that are given again with another value, each with the value that does not count.
    """

    command: list[str]
    variables: Mapping[str, Variable]
    files: list[str]
    replaced: Sequence[tuple[str, Variable]] = ()


def read_service(tree: Tree, service: str) -> Service:
    """Return what systemd gives a service, whose name is without its ending."""
    command: list[str] = []
    variables: dict[str, Variable] = {}
    files: list[str] = []
    unset: list[str] = []
    replaced: list[tuple[str, Variable]] = []

    def put(given: Mapping[str, Variable]) -> None:
        again = [name for name, variable in given.items() if name in variables and variables[name] != variable]
        replaced.extend((name, variables[name]) for name in again)
        variables.update(given)

    # An empty value takes back what came before.
    for path, name, value in settings_of(tree, service):
        if name == "ExecStart":
            command = [resolved(word, service) for word in command_words(value) or ()]
        elif name == "Environment" and value:
            put({key: Variable(text, path) for key, text in assignments_of(value, service).items()})
        elif name == "Environment":
            variables.clear()
        elif name == "EnvironmentFile" and value:
            files.append(resolved(value.lstrip(_MAY_BE_MISSING), service))
        elif name == "EnvironmentFile":
            files.clear()
        elif name == "UnsetEnvironment" and value:
            unset += split_words(value)
        elif name == "UnsetEnvironment":
            unset.clear()
    for path in files:
        put(variables_in(tree, path))
    for word in unset:
        name, equals, value = word.partition("=")
        if name in variables and (not equals or variables[name].value == value):
            del variables[name]
    return Service(_in_place(command, variables), variables, files, replaced)


class Command(NamedTuple):
    """A command that systemd runs for a service beside its program: the setting, the file, and the words."""

    setting: str
    path: str
    words: list[str]


def commands_of(tree: Tree, service: str, settings: Sequence[str]) -> list[Command]:
    """Return the commands of these settings, such as ExecStartPre, of one setting after the other, in order."""
    variables = read_service(tree, service).variables
    found: dict[str, list[Command]] = {name: [] for name in settings}
    for path, name, value in settings_of(tree, service):
        if name not in found:
            continue
        if not value:
            # It takes back what came before.
            found[name].clear()
            continue
        words = [resolved(word, service) for word in command_words(value) or ()]
        found[name].append(Command(name, path, _in_place(words, variables)))
    return [command for commands in found.values() for command in commands]


class Helper(NamedTuple):
    """A service that runs to its end before another one starts. at_boot: at boots alone, and not at each start."""

    name: str
    at_boot: bool


def helpers_of(tree: Tree, service: str) -> list[Helper]:
    """Return the services that systemd runs to their end before a service, whose name is without its ending."""
    unit = service + _END
    own = _units_named(tree, unit)
    pulled = {name for kind in _PULLING for name in own.get(kind, ())}
    pulled |= {name for place in UNIT_PLACES for kind in _LINKS for name in _names(tree, place, unit + kind)}
    # What others than packages have written: reading all units of a host takes long.
    at_boot = {
        name for name in _names(tree, _OWN_PLACE, _BOOT_LINKS) if unit in _text(tree, "%s/%s" % (_OWN_PLACE, name))
    }
    found = []
    for name in sorted(pulled | at_boot):
        if not name.endswith(_END) or name == unit:
            continue
        if name not in own.get("After", ()) and unit not in _units_named(tree, name).get("Before", ()):
            continue
        last = {key: value for _path, key, value in settings_of(tree, name[: -len(_END)])}
        if last.get("Type") == "oneshot":
            stays = last.get("RemainAfterExit", "").lower() in _ON
            found.append(Helper(name[: -len(_END)], stays or name not in pulled))
    return found


def _units_named(tree: Tree, unit: str) -> dict[str, list[str]]:
    """Return {setting: the words of its values} of the section that all units have."""
    found: dict[str, list[str]] = {}
    for path in unit_paths(tree, unit):
        for key, value in settings_in(_text(tree, path), "[Unit]"):
            found.setdefault(key, []).extend(value.split())
    return found


def _names(tree: Tree, place: str, directory: str) -> list[str]:
    """Return the names in a directory of links, which lead out of a saved node."""
    try:
        return tree.names("%s/%s" % (place, directory))
    except (NodeError, RefusedError):
        return []


def start_lines(tree: Tree, service: str) -> list[str]:
    """Return the values of ExecStart= in a service's units, as they stand there, in order. The last one counts."""
    return [value for _path, name, value in settings_of(tree, service) if name == "ExecStart"]


def missing_files(tree: Tree, service: str) -> list[Variable]:
    """Return the environment files that are not there, and without which systemd does not start a service; who names
    each."""
    files: list[Variable] = []
    for path, name, value in settings_of(tree, service):
        if name == "EnvironmentFile" and value:
            files.append(Variable(resolved(value, service), path))
        elif name == "EnvironmentFile":
            files.clear()
    # Of a pattern, it is not looked for what it matches.
    needed = [file for file in files if file.value.startswith("/") and _PATTERN.isdisjoint(file.value)]
    return [file for file in needed if not tree.exists(file.value)]


def variables_in(tree: Tree, path: str) -> dict[str, Variable]:
    """Return what an environment file gives; nothing where it is not there."""
    return {name: Variable(value, path) for name, value in read_environment(_text(tree, path)).items()}


def unit_command(tree: Tree, service: str) -> list[str]:
    """Return the words of a service's command line, with its variables in place; none where no unit gives it."""
    return read_service(tree, service).command


def _in_place(command: list[str], variables: Mapping[str, Variable]) -> list[str]:
    if not command:
        return []
    program = command[0].lstrip(_PROGRAM_SIGNS)
    signs = command[0][: len(command[0]) - len(program)]
    # Behind an @ comes what the program finds as its own name.
    words = command[2 if "@" in signs else 1 :]
    if ":" in signs:
        return [program, *words]
    if sum(_expanded_size(word, variables) for word in words) > LARGEST_OF_KUBELET:
        return []  # no kernel takes such a command line
    return [program, *(part for word in words for part in _expanded(word, variables))]


def command_words(value: str) -> list[str] | None:
    """Return the words of a command line, with its variables and specifiers; None where systemd does not understand
    it."""
    try:
        return list(words_of(value, _c_escape, strict=True))
    except ValueError:
        return None


def assignments_of(value: str, service: str) -> dict[str, str]:
    """Return the variables of a line, up to a word that systemd does not understand."""
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
    """Return what C makes of a backslash; one that means nothing stays."""
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
    """Return a word with its specifiers in place, and its bytes as text. Source: systemd.unit(5)."""
    names = {**_SPECIFIERS, "n": service + ".service", "N": service, "p": service}
    word = _SPECIFIER.sub(lambda found: names.get(found.group(1), found.group()), word)
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def settings_of(tree: Tree, service: str) -> Iterator[tuple[str, str, str]]:
    """Yield what the section of the service says, in order: the file, the setting and its value."""
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
    """Return the text of a file that need not be there. A byte that is no text has a place of its own."""
    try:
        return (tree.content(path, LARGEST_OF_KUBELET) or b"").decode("utf-8", "surrogateescape")
    except (NodeError, RefusedError):
        return ""


def _expanded_size(word: str, variables: Mapping[str, Variable]) -> int:
    """Return how many signs a word has at the most with the variables in place, found out before there are so many."""
    names = [word[1:], *(name for _dollar, name, _end in _VARIABLE.findall(word))]
    return len(word) + sum(len(variables[name].value) for name in names if name in variables)


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
