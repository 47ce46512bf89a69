# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files in which distributions write the kubelet's flags down."""

from __future__ import annotations

import json
import re
from typing import Iterable, Sequence

from .flags import NAMES, read_flags

# The words of k3s' and RKE2's file; with the + they are added to those of the files before.
_KUBELET_ARG = re.compile(r"(?m)^kubelet-arg(\+?):.*(?:\n(?:[ \t#-].*)?)*")
_KUBELET_ARG_HEADER = "# The kubelet's CPU settings, written by kubenode.cpu_manager.\n"


def environment_words(text: str) -> list[str]:
    """The words of all variables of an environment file, as systemd splits them."""
    words: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", ";")):
            value = value.strip()
            if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
                value = value[1:-1]
            words += value.split()
    return words


def line_words(text: str) -> list[str]:
    """The words of a file that has a flag, and its value, on each line."""
    return [word for line in text.splitlines() if not line.strip().startswith("#") for word in line.split()]


def with_lines(text: str, fields: Iterable[str], arguments: Sequence[str]) -> str:
    """Such a file with these arguments in place of those that give the fields; all other lines stay as they are."""
    names = {NAMES[field] for field in fields}
    kept: list[str] = []
    place = None
    for line in text.splitlines(keepends=True):
        given = read_flags(line_words(line), "")
        if given and given[0].name in names:
            place = len(kept) if place is None else place
        else:
            kept.append(line)
    if place is None:
        place = len(kept)
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
    return "".join([*kept[:place], *(argument + "\n" for argument in arguments), *kept[place:]])


def kubelet_args(texts: Iterable[str]) -> list[list[str]]:
    """The kubelet's arguments in each of k3s' or RKE2's files, which are read in this order.

    A file's list takes the place of those before it, unless its key has a plus. Raises ValueError.
    """
    # Imported here: of the distributions only these two have YAML around their flags.
    from .yaml import load

    lists: list[list[str]] = []
    for text in texts:
        mine: list[str] = []
        # Only this key: the rest of the file may be written in ways that the reader refuses.
        for block in _KUBELET_ARG.finditer(text.replace("\r\n", "\n")):
            value = next(iter(load(block.group()).values()))
            mine += ["--" + str(word).lstrip("-") for word in (value if isinstance(value, list) else [value]) if word]
            if not block.group(1):
                lists = [[] for _file in lists]
        lists.append(mine)
    return lists


def kubelet_arg_file(arguments: Iterable[str]) -> str:
    """The text of such a file that adds these arguments."""
    lines = ["  - %s\n" % json.dumps(argument[len("--") :]) for argument in arguments]
    return _KUBELET_ARG_HEADER + ("kubelet-arg+:\n" + "".join(lines) if lines else "")
