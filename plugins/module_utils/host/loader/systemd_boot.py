# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's arguments where systemd's kernel-install writes loader entries, of /etc/kernel/cmdline.

Without that file it takes the arguments of the running kernel. It knows comments only since version 255, and anything
between words is a blank to it, so what is written here is marked by an argument, and is the end of the last line.
"""

from __future__ import annotations

import fnmatch
import re
import zlib
from typing import Sequence

from ...errors import RefusedError
from ...file_changes import FileChange
from ...tree import Tree
from ..kernel_line import MARK, Argument, block_on, block_text, marked_names, parse_line, split_words, still_wanted
from .model import SYSTEMD_BOOT, Configured, Loader, entries_in, first_program, options_of, text_at, version_key

CMDLINE = "/etc/kernel/cmdline"
_VENDOR = "/usr/lib/kernel/cmdline"
_BOOTED = "/proc/cmdline"
_PLACES = ("/efi", "/boot", "/boot/efi")
_MODULES = ("/usr/lib/modules", "/lib/modules")
# What kernel-install itself leaves out of the running kernel's arguments.
_OF_LOADER = ("BOOT_IMAGE", "initrd")
_MODE = 0o644
_LARGEST = 1 << 16
_OWN = re.compile(r"[ \t]?(?<!\S)%s=([0-9a-z_,.-]+)(?!\S)" % re.escape(MARK))
_NEXT = re.compile(r"\s+([a-z_.]+)=[0-9a-z_,.:-]+(?!\S)")
# Where there was no such file: a sum of what was put there for it, to tell whether somebody has worked on it since.
_NEW = "new-"


def find_systemd_boot(tree: Tree) -> Loader | None:
    """kernel-install with entries or images of its own, where a loader is there that reads them."""
    program = first_program(tree, ("kernel-install",))
    for place in _PLACES if program else ():
        entries = tuple(entries_in(tree, place + "/loader/entries"))
        images = [name for name in tree.names(place + "/EFI/Linux") if name.endswith(".efi")]
        if (entries or images) and (tree.exists(place + "/loader/loader.conf") or tree.exists(place + "/EFI/systemd")):
            return Loader(SYSTEMD_BOOT, place + "/loader", CMDLINE, entries, program)
    return None


def configured_line(tree: Tree, loader: Loader) -> Configured:
    """What the default entry has: the newest of those that loader.conf names, else the newest."""
    if not loader.results:
        found = text_at(tree, CMDLINE)
        problem = "images have their arguments in themselves, and this is what the next one gets"
        return Configured(None if found is None else _words(found), CMDLINE, problem)
    text = text_at(tree, loader.evidence + "/loader.conf") or ""
    chosen = re.findall(r"^[ \t]*default[ \t]+(\S+)", text, re.MULTILINE)
    named = [path for path in loader.results if chosen and fnmatch.fnmatchcase(path.rpartition("/")[2], chosen[-1])]
    problem = "the default entry is %r, and the newest was read" % chosen[-1] if chosen and not named else ""
    where = (named or loader.results)[0]
    return Configured(options_of(text_at(tree, where) or ""), where, problem)


def changes(tree: Tree, arguments: Sequence[Argument] | None) -> list[FileChange]:
    """The one change that writes the arguments, or for None takes them out. Raises RefusedError."""
    before = text_at(tree, CMDLINE)
    after = _without(before)
    wanted = _wanted(tree, after, arguments)
    if wanted:
        if before is not None and _plain_block(_words(before)) == wanted:
            return []
        after = _with(_fallback(tree), wanted, is_new=True) if after is None else _with(after, wanted)
    if after == before:
        return []
    contents = [None if text is None else text.encode("latin-1") for text in (before, after)]
    return [FileChange(tree.path(CMDLINE), contents[0], contents[1], _MODE)]


def commands(tree: Tree, loader: Loader, arguments: Sequence[Argument] | None) -> list[list[str]]:
    """What makes entries of what changes() gives; nothing where all have it already. Raises RefusedError."""
    wanted = _wanted(tree, _without(text_at(tree, CMDLINE)), arguments)
    blocks = [_plain_block(options_of(text_at(tree, path) or "")) for path in loader.results]
    if not changes(tree, arguments) and all(block == wanted for block in blocks):
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


def _wanted(tree: Tree, others: str | None, arguments: Sequence[Argument] | None) -> str:
    if arguments is None:
        return ""
    line = _words(_fallback(tree) if others is None else others)
    return block_text(still_wanted(line, arguments, tree.path(CMDLINE)))


def _words(text: str) -> str:
    """A file's arguments as one line, without its comments."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _fallback(tree: Tree) -> str:
    """What kernel-install takes where there is no such file. Raises RefusedError where there is nothing."""
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
    """The text with the block at the end of its last line that is no comment."""
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
    """The content of the file as it was before it was written here."""
    if text is None:
        return None
    if len(text) > _LARGEST:
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
    """What was written here, without the sum."""
    return re.sub(r"(?<=%s=)(\S*?),%s[0-9a-f]{8}" % (re.escape(MARK), _NEW), r"\1", block_on(parse_line(options)))
