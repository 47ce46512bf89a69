# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's arguments where grubby writes them into loader entries, as in RHEL 8 and later, Fedora and their kin.

grubby keeps what new kernels start with, too: kernelopts in grubenv in RHEL 8, /etc/kernel/cmdline since RHEL 9, and
/etc/default/grub. It replaces an argument that is there with another value, and takes out what it is given word by
word; blanks that are doubled become single.
"""

from __future__ import annotations

import re
from typing import Sequence

from ...errors import RefusedError
from ...tree import Tree
from ..kernel_line import Argument, block_on, block_text, parse_line, still_wanted
from .model import BLS, Configured, Loader, entries_in, first_program, options_of, text_at

ENTRIES = "/boot/loader/entries"
_ENVIRONMENTS = ("/boot/grub2/grubenv", "/boot/grub/grubenv")
_ALL = "--update-kernel=ALL"
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?", re.ASCII)
_TUNED = "tuned_params"


def find_bls(tree: Tree) -> Loader | None:
    """grubby, where it and entries are there, and GRUB to read them."""
    program = first_program(tree, ("grubby",))
    entries = tuple(entries_in(tree, ENTRIES)) if program else ()
    has_grub = any(tree.exists(path.rpartition("/")[0]) for path in _ENVIRONMENTS)
    return Loader(BLS, ENTRIES, "", entries, program) if entries and has_grub else None


def configured_line(tree: Tree, loader: Loader) -> Configured:
    """What the default entry has: the one that grubenv names, else the newest."""
    environment = _environment(tree)
    chosen = environment.get("saved_entry", "")
    where = loader.results[0]
    problem = ""
    if chosen:
        named = [path for path in loader.results if path.rpartition("/")[2] == chosen + ".conf"]
        problem = "" if named else "the default entry is %r, and the newest was read" % chosen
        where = named[0] if named else where
    return Configured(_expanded(tree, where, environment), where, problem)


def commands(tree: Tree, loader: Loader, arguments: Sequence[Argument] | None) -> list[list[str]]:
    """What grubby is to do; nothing where all entries are right. Raises RefusedError."""
    environment = _environment(tree)
    lines = {path: _expanded(tree, path, environment) for path in loader.results}
    old = {path: block_on(parse_line(line)) for path, line in lines.items()}
    wanted = "" if arguments is None else _wanted(tree, lines, arguments, environment)
    if all(block == wanted for block in old.values()):
        return []
    found = [[loader.program, _ALL, "--remove-args=%s" % block] for block in sorted(set(old.values())) if block]
    return found + ([[loader.program, _ALL, "--args=%s" % wanted]] if wanted else [])


def _wanted(tree: Tree, lines: dict[str, str], arguments: Sequence[Argument], environment: dict[str, str]) -> str:
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
    """GRUB's variables that outlive a boot."""
    text = next((found for found in (text_at(tree, path) for path in _ENVIRONMENTS) if found), "")
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, equals, value in pairs if equals}


def _expanded(tree: Tree, path: str, environment: dict[str, str]) -> str:
    options = options_of(text_at(tree, path) or "")
    return _VARIABLE.sub(lambda found: environment.get(found.group(1), ""), options).strip()
