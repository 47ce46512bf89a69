# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is said of a loader, whichever it is."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...tree import Tree

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


class Configured(NamedTuple):
    """The arguments of the next boot, as far as files say; text: None where it is not known, and problem says why.

    With a text, problem says why it may be another one.
    """

    text: str | None
    where: str = ""
    problem: str = ""


def text_at(tree: Tree, path: str) -> str | None:
    """A file's text, to the byte, as characters of which each is one byte; None where there is no such file."""
    content = tree.content(path)
    if content is not None and len(content) > _LARGEST:
        raise tree.damaged(path, "is no configuration of a loader: it has %d bytes" % len(content))
    return None if content is None else content.decode("latin-1")


def first_program(tree: Tree, names: tuple[str, ...]) -> str:
    """The path of the first of these programs that the node has; empty for none."""
    directories = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
    paths = ("%s/%s" % (directory, name) for name in names for directory in directories)
    return next((path for path in paths if tree.exists(path)), "")


def entries_in(tree: Tree, directory: str) -> list[str]:
    """The paths of the loader entries in a directory, the newest first."""
    names = [name for name in tree.names(directory) if name.endswith(".conf")]
    names.sort(key=version_key, reverse=True)
    return ["%s/%s" % (directory, name) for name in names]


def version_key(text: str) -> list[tuple[int, int, str]]:
    """What sorts names with numbers in them as versions are sorted."""
    parts = re.findall(r"(\d{1,9})|([^\d]+)", text)
    return [(1, int(number), "") if number else (0, 0, letters) for number, letters in parts]


def options_of(text: str) -> str:
    """The arguments in a loader entry: there may be several lines."""
    found = re.findall(r"^[ \t]*options[ \t]+(.*)$", text, re.MULTILINE)
    return " ".join(line.strip() for line in found)
