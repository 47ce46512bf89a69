# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's arguments where GRUB's configuration is made of /etc/default/grub.

GRUB's grub-mkconfig reads that file, and in Debian and Ubuntu those in /etc/default/grub.d after it, and writes a
line "linux" of GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT for each kernel. An addition to the first is also in
the entries for recovery.
"""

from __future__ import annotations

import re
from typing import Sequence

from ...errors import RefusedError
from ...file_changes import FileChange
from ...tree import Tree
from ..kernel_line import MARK, Argument, block_on, block_text, parse_line, still_wanted
from .model import GRUB, Configured, Loader, first_program, text_at
from .shell_lines import Value, read_assignments

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
    """GRUB, where its program and what that has made are there."""
    program = first_program(tree, _PROGRAMS)
    results = _results(tree)
    # Where entries are in files of their own, GRUB's file has none.
    if not program or not results or _LINE.search(text_at(tree, results[0]) or "") is None:
        return None
    # Not all distributions have the change that reads the directory: the program itself shows it.
    has_directory = "default/grub.d" in (text_at(tree, program) or "")
    return Loader(GRUB, results[0], OWN if has_directory else DEFAULTS, tuple(results), program)


def _results(tree: Tree) -> list[str]:
    """The files that GRUB reads and its program makes: beside them there may be a short one that leads to them."""
    paths = [*_CONFIGURATIONS, *("%s/%s/grub.cfg" % (_EFI, name) for name in tree.names(_EFI))]
    return [path for path in paths if _MADE in (text_at(tree, path) or "")]


def configured_line(tree: Tree, loader: Loader) -> Configured:
    """What the first entry has, which is the default one but where somebody has chosen another."""
    where = loader.results[0]
    text = text_at(tree, where) or ""
    line = _LINE.search(text)
    if line is None:
        return Configured(None, where, "has no entry that starts Linux")
    chosen = [name for name in _DEFAULT_ENTRY.findall(text) if "next_entry" not in name]
    default = chosen[-1] if chosen else "0"
    if "saved_entry" in default:
        default = _saved_entry(tree, where) or "0"
    problem = "" if default == "0" else "the default entry is %r, and the first was read" % default
    # GRUB takes off one level of quotes; it puts in variables of its own, which are none of what is looked at.
    return Configured(line.group(1).replace("\\", "").strip(), where, problem)


def _saved_entry(tree: Tree, configuration: str) -> str:
    text = text_at(tree, configuration.rpartition("/")[0] + "/grubenv") or ""
    return next((line[12:] for line in text.splitlines() if line.startswith("saved_entry=")), "")


def changes(tree: Tree, loader: Loader, arguments: Sequence[Argument] | None) -> list[FileChange]:
    """The one change that writes the arguments, or for None takes them out. Raises RefusedError."""
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


def commands(tree: Tree, loader: Loader, arguments: Sequence[Argument] | None) -> list[list[str]]:
    """What makes GRUB's own file of what changes() gives; nothing where that has it already."""
    wanted = ""
    if arguments is not None:
        others = _line_of_others(tree, loader, _without(loader, text_at(tree, loader.file)))
        wanted = block_text(still_wanted(others, arguments, tree.path(DEFAULTS)))
    is_right = all(_has(text_at(tree, path) or "", wanted) for path in loader.results)
    if is_right and not changes(tree, loader, arguments):
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
    """Whether a file has this already, also where somebody has added lines after it."""
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
    """The content of the file as it was before it was written here."""
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


def _values(tree: Tree, loader: Loader, text: str | None) -> dict[str, Value]:
    """The variables, with the loader's file as it is given here."""
    values: dict[str, Value] = {}
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
    """What GRUB's program makes of these files. Raises RefusedError where that is not known."""
    values = _values(tree, loader, text)
    found = [values[name] for name in _VARIABLES if name in values]
    for value in found:
        if not value.is_sure:
            raise RefusedError("has a value that is known only to a shell", value.where, "write the arguments there")
    return " ".join(value.text for value in found)


def _lost(tree: Tree, loader: Loader, text: str, wanted: str) -> RefusedError | None:
    """What is wrong where a later line takes away again what a file adds."""
    value = _values(tree, loader, text).get(_VARIABLES[0])
    if value is not None and value.is_sure and block_on(parse_line(value.text)) == wanted:
        return None
    return RefusedError(
        "sets %s anew, so that nothing can be added to it in %s" % (_VARIABLES[0], tree.path(loader.file)),
        value.where if value else tree.path(loader.file),
        "add to it there, as in %s" % _assignment("...").strip(),
    )
