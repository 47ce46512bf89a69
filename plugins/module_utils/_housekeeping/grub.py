# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's arguments where GRUB's configuration is made of /etc/default/grub.

GRUB's grub-mkconfig reads that file, and in Debian and Ubuntu those in /etc/default/grub.d after it, and writes a
line "linux" of GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT for each kernel. An addition to the first is also
in the entries for recovery.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Sequence

from .._base.errors import RefusedError
from .._base.files import FileChange
from .._base.tree import Tree
from .._host.kernel_line import MARK, Argument, block_on, block_text, parse_line, still_wanted
from .loader_entries import GRUB, ConfiguredLine, Loader, first_program, text_at

# Reads the shell files that GRUB's configuration is made of, as far as they only set variables.
#
# A line that does anything else is refused, as what it does cannot be known without running it. What a command prints
# is not known either; it is refused only where it is needed.


_BLANKS = " \t"
_GAPS = _BLANKS + "\n"
# They end a word. Of these only a semicolon and a newline can stand after an assignment.
_ENDS = " \t\n;"
_COMMANDS = "&|()<>"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SIMPLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_LARGEST = 1 << 20


class ShellValue(NamedTuple):
    """What a variable has; is_sure: false where a command or the shell that reads the file decides."""

    text: str
    is_sure: bool
    where: str


def read_assignments(text: str, path: str, before: dict[str, ShellValue]) -> dict[str, ShellValue]:
    """Return the variables after a file was read, with those before it. Raises RefusedError, which names file and
    line."""
    return _Reader(text, path, before).variables()


class _Reader:
    """Reads one file from left to right."""

    def __init__(self, text: str, path: str, before: dict[str, ShellValue]) -> None:
        self._text = text
        self._path = path
        self._values = dict(before)
        self._at = 0

    def variables(self) -> dict[str, ShellValue]:
        if len(self._text) > _LARGEST or "\0" in self._text:
            raise self._refused("is no shell file that can be read")
        while self._skip():
            self._statement()
        return self._values

    def _skip(self) -> bool:
        """Go to the next word; false at the end."""
        while self._at < len(self._text):
            if self._text[self._at] in _GAPS:
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return True
        return False

    def _statement(self) -> None:
        """Read assignments up to the end of a command; with a command after them they are not the shell's own."""
        if self._peek() == ";":
            raise self._refused("is not understood")
        found: dict[str, ShellValue] = {}
        is_export = False
        while self._at < len(self._text) and self._text[self._at] not in "\n;#":
            name = _NAME.match(self._text, self._at)
            if name is None:
                raise self._refused("is not understood")
            self._at = name.end()
            if self._text.startswith("=", self._at):
                where = "%s, line %d" % (self._path, self._line())
                self._at += 1
                found[name.group()] = self._value(where, {**self._values, **found})
            elif name.group() == "export" and not found and not is_export and self._peek() in _BLANKS:
                is_export = True
            elif not is_export or self._peek() not in _ENDS:
                raise self._refused("is not understood")
            self._skip_blanks()
        self._at += self._peek() == ";"
        self._values.update(found)

    def _skip_blanks(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at] in _BLANKS:
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            else:
                return

    def _value(self, where: str, values: dict[str, ShellValue]) -> ShellValue:
        pieces: list[str] = []
        is_sure = True
        while self._at < len(self._text) and self._text[self._at] not in _ENDS:
            character = self._text[self._at]
            if character in _COMMANDS:
                raise self._refused("is not understood")
            if character == "'":
                pieces.append(self._until("'"))
            elif character == '"':
                is_sure &= self._double(pieces, values)
            elif character in "$`":
                is_sure &= self._expansion(pieces, values)
            elif character == "\\":
                if self._at + 1 >= len(self._text):
                    raise self._refused("ends within a line")
                pieces.append(self._text[self._at + 1].replace("\n", ""))
                self._at += 2
            else:
                # A tilde at the beginning is a home directory.
                is_sure &= character != "~" or bool(pieces)
                pieces.append(character)
                self._at += 1
        return ShellValue("".join(pieces), is_sure, where)

    def _until(self, end: str) -> str:
        """Return what is up to the next `end`, which is passed."""
        stop = self._text.find(end, self._at + 1)
        if stop < 0:
            raise self._refused("has a quote without its end")
        found = self._text[self._at + 1 : stop]
        self._at = stop + 1
        return found

    def _double(self, pieces: list[str], values: dict[str, ShellValue]) -> bool:
        start = self._at
        is_sure = True
        self._at += 1
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return is_sure
            if character in "$`":
                is_sure &= self._expansion(pieces, values)
                continue
            follows = self._text[self._at + 1 : self._at + 2]
            if character == "\\" and follows and follows in '$`"\\\n':
                pieces.append(follows.replace("\n", ""))
                self._at += 1
            else:
                pieces.append(character)
            self._at += 1
        self._at = start
        raise self._refused("has a quote without its end")

    def _expansion(self, pieces: list[str], values: dict[str, ShellValue]) -> bool:
        """Add what a $ or ` stands for; false where that is not known."""
        if self._text[self._at] == "`":
            self._pass_over("`", "`")
            return False
        follows = self._text[self._at + 1 : self._at + 2]
        simple, name = _SIMPLE.match(self._text, self._at + 1), _NAME.match(self._text, self._at + 1)
        if simple is not None or name is not None:
            found = simple.group(1) if simple is not None else name.group() if name is not None else ""
            self._at = simple.end() if simple is not None else name.end() if name is not None else 0
            value = values.get(found)
            pieces.append(value.text if value else "")
            # Only those that GRUB's own programs and the system do not set are empty when they are not set here.
            return value.is_sure if value else found.startswith("GRUB_CMDLINE_")
        if follows in ("(", "{"):
            self._at += 1
            self._pass_over(follows, ")" if follows == "(" else "}")
            return False
        if follows and (follows.isalnum() or follows in "@*#?-$!"):
            self._at += 2
            return False
        pieces.append("$")
        self._at += 1
        return True

    def _pass_over(self, opening: str, closing: str) -> None:
        """Go behind a command or an expansion whose result is not known. What is quoted in it closes nothing."""
        start = self._at
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == "\\":
                self._at += 1
            elif character == closing and (opening != closing or self._at - 1 > start):
                depth -= 1
                if depth <= 0:
                    return
            elif character == opening:
                depth += 1
            elif character in "'\"" and opening != closing:
                stop = self._text.find(character, self._at)
                if stop < 0:
                    break
                self._at = stop + 1
        self._at = start
        raise self._refused("has a command without its end")

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else "\n"

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _refused(self, what: str) -> RefusedError:
        start = self._text.rfind("\n", 0, self._at) + 1
        line = self._text[start : start + 80].partition("\n")[0]
        return RefusedError(
            "%r %s" % (line, what),
            "%s, line %d" % (self._path, self._line()),
            "set variables there, each with a value of its own, and nothing else",
        )


DEFAULTS = "/etc/default/grub"
DIRECTORY = DEFAULTS + ".d"
OWN = DIRECTORY + "/99-kubenode-housekeeping.cfg"

_PROGRAMS = ("grub-mkconfig", "grub2-mkconfig")
_CONFIGURATIONS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
_EFI = "/boot/efi/EFI"
_MADE = "### BEGIN /etc/grub.d/"
_LINE = re.compile(r"^[ \t]*linux(?:16|efi)?[ \t]+[^ \t\n]+(.*)$", re.MULTILINE)
_DEFAULT_ENTRY = re.compile(r'^[ \t]*set[ \t]+default="([^"\n]*)"', re.MULTILINE)
_MODE = 0o644

_VARIABLES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
_HEAD = "# The role housekeeping of kubenode.cpu_manager writes this, and removes it again.\n"
_BEGIN, _END = "# BEGIN kubenode.cpu_manager housekeeping", "# END kubenode.cpu_manager housekeeping\n"
# What the file was before, where the block alone would not show it.
_UNENDED, _NEW = " (its line was the last, without an end)", " (there was no file)"
_BLOCK = re.compile(
    "(?P<newline>\n?)^%s(?P<before>%s|%s|)\n(?:.*\n){0,9}?%s"
    % (re.escape(_BEGIN), re.escape(_UNENDED), re.escape(_NEW), re.escape(_END)),
    re.MULTILINE,
)


def find_grub(tree: Tree) -> Loader | None:
    """Return GRUB, where its program and what that has made are there."""
    program = first_program(tree, _PROGRAMS)
    results = _results(tree)
    # Where entries are in files of their own, GRUB's file has none.
    if not program or not results or _LINE.search(text_at(tree, results[0]) or "") is None:
        return None
    # Not all distributions have the change that reads the directory: the program itself shows it.
    has_directory = "default/grub.d" in (text_at(tree, program) or "")
    return Loader(GRUB, results[0], OWN if has_directory else DEFAULTS, tuple(results), program)


def _results(tree: Tree) -> list[str]:
    """Return the files that GRUB reads and its program makes: beside them there may be a short one that leads to
    them."""
    paths = [*_CONFIGURATIONS, *("%s/%s/grub.cfg" % (_EFI, name) for name in tree.names(_EFI))]
    return [path for path in paths if _MADE in (text_at(tree, path) or "")]


def configured_line(tree: Tree, loader: Loader) -> ConfiguredLine:
    """Return what the first entry has, which is the default one but where somebody has chosen another."""
    where = loader.results[0]
    text = text_at(tree, where) or ""
    line = _LINE.search(text)
    if line is None:
        return ConfiguredLine(None, where, "has no entry that starts Linux")
    chosen = [name for name in _DEFAULT_ENTRY.findall(text) if "next_entry" not in name]
    default = chosen[-1] if chosen else "0"
    if "saved_entry" in default:
        default = _saved_entry(tree, where) or "0"
    problem = "" if default == "0" else "the default entry is %r, and the first was read" % default
    # GRUB takes off one level of quotes; it puts in variables of its own, which are none of what is looked at.
    return ConfiguredLine(line.group(1).replace("\\", "").strip(), where, problem)


def _saved_entry(tree: Tree, configuration: str) -> str:
    text = text_at(tree, configuration.rpartition("/")[0] + "/grubenv") or ""
    return next((line[12:] for line in text.splitlines() if line.startswith("saved_entry=")), "")


def changes(tree: Tree, loader: Loader, arguments: Sequence[Argument] | None) -> list[FileChange]:
    """Return the one change that writes the arguments, or for None takes them out. Raises RefusedError."""
    before = text_at(tree, loader.file)
    after = _without(loader, before)
    if arguments is not None:
        wanted = block_text(still_wanted(_line_of_others(tree, loader, after), arguments, tree.path(DEFAULTS)))
        if wanted and before is not None and _has_block(before, wanted) and _lost(tree, loader, before, wanted) is None:
            return []
        if wanted:
            after = _with(loader, after, wanted)
            lost = _lost(tree, loader, after, wanted)
            if lost is not None:
                raise lost
    if after == before:
        return []
    contents = [None if text is None else text.encode("latin-1") for text in (before, after)]
    return [FileChange(tree.path(loader.file), contents[0], contents[1], _MODE)]


def commands(
    tree: Tree, loader: Loader, arguments: Sequence[Argument] | None, is_pending: bool = False
) -> list[list[str]]:
    """Return what makes GRUB's own file of what changes() gives; nothing where that has it already and nothing is
    pending."""
    wanted = ""
    if arguments is not None:
        others = _line_of_others(tree, loader, _without(loader, text_at(tree, loader.file)))
        wanted = block_text(still_wanted(others, arguments, tree.path(DEFAULTS)))
    is_right = all(_has(text_at(tree, path) or "", wanted) for path in loader.results)
    if is_right and not is_pending and not changes(tree, loader, arguments):
        return []
    return [[loader.program, "-o", path] for path in loader.results]


def _has(text: str, wanted: str) -> bool:
    lines = _LINE.findall(text)
    if not wanted:
        return MARK not in "".join(lines)
    return bool(lines) and block_on(parse_line(lines[0])) == wanted


def _assignment(wanted: str) -> str:
    return '%s="$%s %s"\n' % (_VARIABLES[0], _VARIABLES[0], wanted)


def _has_block(text: str, wanted: str) -> bool:
    """Return whether a file has this already, also where somebody has added lines after it."""
    return text == _HEAD + _assignment(wanted) or _assignment(wanted) + _END in text


def _with(loader: Loader, without: str | None, wanted: str) -> str:
    if loader.file == OWN:
        return _HEAD + _assignment(wanted)
    body = _assignment(wanted) + _END
    if without is None:
        return _BEGIN + _NEW + "\n" + body
    if without and not without.endswith("\n"):
        return "%s\n%s%s\n%s" % (without, _BEGIN, _UNENDED, body)
    return "%s%s\n%s" % (without, _BEGIN, body) if without else "%s\n%s" % (_BEGIN, body)


def _without(loader: Loader, text: str | None) -> str | None:
    """Return the content of the file as it was before it was written here."""
    if text is None or loader.file == OWN:
        return None
    is_new = False

    def put_back(found: re.Match[str]) -> str:
        nonlocal is_new
        is_new |= found["before"] == _NEW
        # A line that somebody has added behind it begins a line of its own.
        return "" if found["before"] == _UNENDED and found.end() == len(text) else found["newline"]

    left = _BLOCK.sub(put_back, text)
    if _BEGIN in left:
        raise RefusedError(
            "has %r without %r" % (_BEGIN, _END.strip()), loader.file, "take out what is between, and that line"
        )
    return None if is_new and not left else left


def _values(tree: Tree, loader: Loader, text: str | None) -> dict[str, ShellValue]:
    """Return the variables, with the loader's file as it is given here."""
    values: dict[str, ShellValue] = {}
    paths = [DEFAULTS]
    if loader.file == OWN:
        names = {name for name in tree.names(DIRECTORY) if name.endswith(".cfg") and not name.startswith(".")}
        own = {OWN.rpartition("/")[2]}
        paths += ["%s/%s" % (DIRECTORY, name) for name in sorted(names - own if text is None else names | own)]
    for path in paths:
        content = text if path == loader.file else text_at(tree, path)
        if content is not None:
            values = read_assignments(content, tree.path(path), values)
    return values


def _line_of_others(tree: Tree, loader: Loader, text: str | None) -> str:
    """Return what GRUB's program makes of these files. Raises RefusedError where that is not known."""
    values = _values(tree, loader, text)
    found = [values[name] for name in _VARIABLES if name in values]
    for value in found:
        if not value.is_sure:
            raise RefusedError("has a value that is known only to a shell", value.where, "write the arguments there")
    return " ".join(value.text for value in found)


def _lost(tree: Tree, loader: Loader, text: str, wanted: str) -> RefusedError | None:
    """Return what is wrong where a later line takes away again what a file adds."""
    value = _values(tree, loader, text).get(_VARIABLES[0])
    if value is not None and value.is_sure and block_on(parse_line(value.text)) == wanted:
        return None
    return RefusedError(
        "sets %s anew, so that nothing can be added to it in %s" % (_VARIABLES[0], tree.path(loader.file)),
        value.where if value else tree.path(loader.file),
        "add to it there, as in %s" % _assignment("...").strip(),
    )
