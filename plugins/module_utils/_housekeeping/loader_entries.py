# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's arguments where grubby writes them into loader entries, as in RHEL 8 and later, Fedora and their kin.

grubby keeps what new kernels start with, too: kernelopts in grubenv in RHEL 8, /etc/kernel/cmdline since RHEL 9, and
/etc/default/grub. It replaces an argument that is there with another value, and takes out what it is given word by
word; blanks that are doubled become single.
"""

from __future__ import annotations

import fnmatch
import re
import zlib
from typing import NamedTuple, Sequence

from .._base.errors import RefusedError
from .._base.files import FileChange
from .._base.tree import Tree
from .._host.kernel_line import (
    MARK,
    Argument,
    block_on,
    block_text,
    marked_names,
    parse_line,
    split_words,
    still_wanted,
)

# What is said of a loader, whichever it is.


_LARGEST = 1 << 20

GRUB, BLS, SYSTEMD_BOOT, NO_LOADER = "grub", "bls", "systemd-boot", "none"


class Loader(NamedTuple):
    """What starts the node's kernel.

    kind: one of the above. evidence: what shows it. file: the node's file that the arguments are written to, empty
    where a program writes them. results: the node's files that the loader itself reads. program: what makes these.
    """

    kind: str
    evidence: str
    file: str = ""
    results: tuple[str, ...] = ()
    program: str = ""


class ConfiguredLine(NamedTuple):
    """The arguments of the next boot, as far as files say; text: None where it is not known, and problem says why.

    With a text, problem says why it may be another one.
    """

    text: str | None
    where: str = ""
    problem: str = ""


def text_at(tree: Tree, path: str) -> str | None:
    """Return a file's text, to the byte, as characters of which each is one byte; None where there is no such file."""
    content = tree.content(path)
    if content is not None and len(content) > _LARGEST:
        raise tree.damaged(path, "is no configuration of a loader: it has %d bytes" % len(content))
    return None if content is None else content.decode("latin-1")


def first_program(tree: Tree, names: tuple[str, ...]) -> str:
    """Return the path of the first of these programs that the node has; empty for none."""
    directories = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
    paths = ("%s/%s" % (directory, name) for name in names for directory in directories)
    return next((path for path in paths if tree.exists(path)), "")


def entries_in(tree: Tree, directory: str) -> list[str]:
    """Return the paths of the loader entries in a directory, the newest first."""
    names = [name for name in tree.names(directory) if name.endswith(".conf")]
    names.sort(key=version_key, reverse=True)
    return ["%s/%s" % (directory, name) for name in names]


def version_key(text: str) -> list[tuple[int, int, str]]:
    """Return what sorts names with numbers in them as versions are sorted."""
    parts = re.findall(r"(\d{1,9})|([^\d]+)", text)
    return [(1, int(number), "") if number else (0, 0, letters) for number, letters in parts]


def options_of(text: str) -> str:
    """Return the arguments in a loader entry: there may be several lines."""
    found = re.findall(r"^[ \t]*options[ \t]+(.*)$", text, re.MULTILINE)
    return " ".join(line.strip() for line in found)


# The kernel's arguments where systemd's kernel-install writes loader entries, of /etc/kernel/cmdline.
#
# Without that file it takes the arguments of the running kernel. It knows comments only since version 255, and anything
# between words is a blank to it, so what is written here is marked by an argument, and is the end of the last line.


CMDLINE = "/etc/kernel/cmdline"
_VENDOR = "/usr/lib/kernel/cmdline"
_BOOTED = "/proc/cmdline"
_PLACES = ("/efi", "/boot", "/boot/efi")
_MODULES = ("/usr/lib/modules", "/lib/modules")
# What kernel-install itself leaves out of the running kernel's arguments.
_OF_LOADER = ("BOOT_IMAGE", "initrd")
_MODE = 0o644
_LARGEST_CMDLINE = 1 << 16
_OWN = re.compile(r"[ \t]?(?<!\S)%s=([0-9a-z_,.-]+)(?!\S)" % re.escape(MARK))
_NEXT = re.compile(r"\s+([a-z_.]+)=[0-9a-z_,.:-]+(?!\S)")
# Where there was no such file: a sum of what was put there for it, to tell whether somebody has worked on it since.
_NEW = "new-"


def find_systemd_boot(tree: Tree) -> Loader | None:
    """Return kernel-install with entries or images of its own, where a loader is there that reads them."""
    program = first_program(tree, ("kernel-install",))
    for place in _PLACES if program else ():
        entries = tuple(entries_in(tree, place + "/loader/entries"))
        images = [name for name in tree.names(place + "/EFI/Linux") if name.endswith(".efi")]
        if (entries or images) and (tree.exists(place + "/loader/loader.conf") or tree.exists(place + "/EFI/systemd")):
            return Loader(SYSTEMD_BOOT, place + "/loader", CMDLINE, entries, program)
    return None


def configured_cmdline(tree: Tree, loader: Loader) -> ConfiguredLine:
    """Return what the default entry has: the newest of those that loader.conf names, else the newest."""
    if not loader.results:
        found = text_at(tree, CMDLINE)
        problem = "images have their arguments in themselves, and this is what the next one gets"
        return ConfiguredLine(None if found is None else _words(found), CMDLINE, problem)
    text = text_at(tree, loader.evidence + "/loader.conf") or ""
    chosen = re.findall(r"^[ \t]*default[ \t]+(\S+)", text, re.MULTILINE)
    named = [path for path in loader.results if chosen and fnmatch.fnmatchcase(path.rpartition("/")[2], chosen[-1])]
    problem = "the default entry is %r, and the newest was read" % chosen[-1] if chosen and not named else ""
    where = (named or loader.results)[0]
    return ConfiguredLine(options_of(text_at(tree, where) or ""), where, problem)


def changes(tree: Tree, arguments: Sequence[Argument] | None) -> list[FileChange]:
    """Return the one change that writes the arguments, or for None takes them out. Raises RefusedError."""
    before = text_at(tree, CMDLINE)
    after = _without(before)
    wanted = _wanted_cmdline(tree, after, arguments)
    if wanted:
        if before is not None and _plain_block(_words(before)) == wanted:
            return []
        after = _with(_fallback(tree), wanted, is_new=True) if after is None else _with(after, wanted)
    if after == before:
        return []
    contents = [None if text is None else text.encode("latin-1") for text in (before, after)]
    return [FileChange(tree.path(CMDLINE), contents[0], contents[1], _MODE)]


def cmdline_commands(
    tree: Tree, loader: Loader, arguments: Sequence[Argument] | None, is_pending: bool = False
) -> list[list[str]]:
    """Return what makes entries of what changes() gives; nothing where all have it already and nothing is pending.

    Raises RefusedError.
    """
    wanted = _wanted_cmdline(tree, _without(text_at(tree, CMDLINE)), arguments)
    blocks = [_plain_block(options_of(text_at(tree, path) or "")) for path in loader.results]
    if not is_pending and not changes(tree, arguments) and all(block == wanted for block in blocks):
        return []
    found: list[list[str]] = []
    for directory in _MODULES:
        for version in sorted(tree.names(directory), key=version_key):
            images = ("%s/%s/vmlinuz" % (directory, version), "/boot/vmlinuz-%s" % version)
            image = next((path for path in images if tree.exists(path)), None)
            if image is not None and all(words[2] != version for words in found):
                found.append([loader.program, "add", version, image])
    if wanted and not found:
        raise RefusedError(
            "has no kernel whose entry could be made anew", tree.path(_MODULES[0]), "install the kernel's package again"
        )
    return found


def _wanted_cmdline(tree: Tree, others: str | None, arguments: Sequence[Argument] | None) -> str:
    if arguments is None:
        return ""
    line = _words(_fallback(tree) if others is None else others)
    return block_text(still_wanted(line, arguments, tree.path(CMDLINE)))


def _words(text: str) -> str:
    """Return a file's arguments as one line, without its comments."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _fallback(tree: Tree) -> str:
    """Return what kernel-install takes where there is no such file. Raises RefusedError where there is nothing."""
    found = text_at(tree, _VENDOR)
    if found is None:
        foreign = split_words(parse_line(text_at(tree, _BOOTED) or ""))[0]
        kept = [word for word in foreign if word.name not in _OF_LOADER]
        if any(" " in (word.value or "") or "\t" in (word.value or "") for word in kept):
            raise RefusedError(
                "has a value with a blank, which cannot be written", tree.path(_BOOTED), "write %s first" % CMDLINE
            )
        found = " ".join(word.name if word.value is None else "%s=%s" % word for word in kept) + "\n"
    if not _words(found):
        raise RefusedError("is not there, nor what could be in it", tree.path(CMDLINE), "write it first")
    return found


def _with(text: str, wanted: str, is_new: bool = False) -> str:
    """Return the text with the block at the end of its last line that is no comment."""
    if is_new:
        mark, _blank, rest = wanted.partition(" ")
        wanted = "%s,%s%08x %s" % (mark, _NEW, zlib.crc32(text.encode("latin-1")), rest)
    lines = text.splitlines(keepends=True)
    for number in reversed(range(len(lines))):
        if lines[number].strip() and not lines[number].lstrip().startswith("#"):
            words = lines[number].rstrip()
            lines[number] = "%s %s%s" % (words, wanted, lines[number][len(words) :])
            return "".join(lines)
    raise RefusedError("has no arguments", CMDLINE, "write there what the kernel needs, such as root=")


def _without(text: str | None) -> str | None:
    """Return the content of the file as it was before it was written here."""
    if text is None:
        return None
    if len(text) > _LARGEST_CMDLINE:
        raise RefusedError("is no file of arguments: it has %d bytes" % len(text), CMDLINE, "put it out of the way")
    is_new = False
    found = _OWN.search(text)
    while found is not None:
        names = marked_names(found.group(1))
        end = found.end()
        while names:
            word = _NEXT.match(text, end)
            if word is None or word.group(1) not in names:
                break
            names.remove(word.group(1))
            end = word.end()
        text = text[: found.start()] + text[end:]
        is_new |= found.group(1).endswith(",%s%08x" % (_NEW, zlib.crc32(text.encode("latin-1"))))
        found = _OWN.search(text)
    return None if is_new else text


def _plain_block(options: str) -> str:
    """Return what was written here, without the sum."""
    return re.sub(r"(?<=%s=)(\S*?),%s[0-9a-f]{8}" % (re.escape(MARK), _NEW), r"\1", block_on(parse_line(options)))


ENTRIES = "/boot/loader/entries"
_ENVIRONMENTS = ("/boot/grub2/grubenv", "/boot/grub/grubenv")
_ALL = "--update-kernel=ALL"
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?", re.ASCII)
_TUNED = "tuned_params"


def find_bls(tree: Tree) -> Loader | None:
    """Return grubby, where it and entries are there, and GRUB to read them."""
    program = first_program(tree, ("grubby",))
    entries = tuple(entries_in(tree, ENTRIES)) if program else ()
    has_grub = any(tree.exists(path.rpartition("/")[0]) for path in _ENVIRONMENTS)
    return Loader(BLS, ENTRIES, "", entries, program) if entries and has_grub else None


def configured_entries(tree: Tree, loader: Loader) -> ConfiguredLine:
    """Return what the default entry has: the one that grubenv names, else the newest."""
    environment = _environment(tree)
    chosen = environment.get("saved_entry", "")
    where = loader.results[0]
    problem = ""
    if chosen:
        named = [path for path in loader.results if path.rpartition("/")[2] == chosen + ".conf"]
        problem = "" if named else "the default entry is %r, and the newest was read" % chosen
        where = named[0] if named else where
    return ConfiguredLine(_expanded(tree, where, environment), where, problem)


def entry_commands(tree: Tree, loader: Loader, arguments: Sequence[Argument] | None) -> list[list[str]]:
    """Return what grubby is to do; nothing where all entries are right. Raises RefusedError."""
    environment = _environment(tree)
    lines = {path: _expanded(tree, path, environment) for path in loader.results}
    old = {path: block_on(parse_line(line)) for path, line in lines.items()}
    wanted = "" if arguments is None else _wanted_entries(tree, lines, arguments, environment)
    if all(block == wanted for block in old.values()):
        return []
    found = [[loader.program, _ALL, "--remove-args=%s" % block] for block in sorted(set(old.values())) if block]
    return found + ([[loader.program, _ALL, "--args=%s" % wanted]] if wanted else [])


def _wanted_entries(
    tree: Tree, lines: dict[str, str], arguments: Sequence[Argument], environment: dict[str, str]
) -> str:
    if environment.get(_TUNED):
        raise RefusedError(
            "has arguments of tuned, which grubby would write into the entries for good: %r" % environment[_TUNED],
            next((tree.path(path) for path in _ENVIRONMENTS if tree.exists(path)), ""),
            "let tuned set these arguments, too, or choose a profile of tuned without any",
        )
    blocks = {path: block_text(still_wanted(line, arguments, tree.path(path))) for path, line in lines.items()}
    if len(set(blocks.values())) > 1:
        least = min(blocks, key=lambda path: len(blocks[path]))
        raise RefusedError(
            "has some of the arguments, and other entries have not, which is all the same to grubby",
            tree.path(least),
            "take them out there",
        )
    return next(iter(blocks.values()))


def _environment(tree: Tree) -> dict[str, str]:
    """Return GRUB's variables that outlive a boot."""
    text = next((found for found in (text_at(tree, path) for path in _ENVIRONMENTS) if found), "")
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, equals, value in pairs if equals}


def _expanded(tree: Tree, path: str, environment: dict[str, str]) -> str:
    options = options_of(text_at(tree, path) or "")
    return _VARIABLE.sub(lambda found: environment.get(found.group(1), ""), options).strip()
