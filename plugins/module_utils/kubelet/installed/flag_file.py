# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files in which distributions write the kubelet's flags down."""

from __future__ import annotations

import json
import re
from typing import Iterable, Iterator, NamedTuple, Sequence

from ...host.environment import read_environment, split_words
from .flags import END_OF_FLAGS, NAMES, split_flags

# k3s' and RKE2's key; with the + its words are added to those of the files before.
_KEY, _ADDING_KEY = "kubelet-arg", "kubelet-arg+"
_KUBELET_ARG = re.compile(r"""(?m)^(["']?)kubelet-arg\+?\1[ \t]*:.*(?:\n(?:[] \t#-].*)?)*""")
# Where a document of YAML begins and ends.
_DOCUMENT, _END = re.compile(r"(?m)^---(?=\s|$)"), re.compile(r"(?m)^(?:---|\.\.\.)(?=\s|$)")
_NOTHING = re.compile(r"(?m)(?:^[ \t]*(?:#.*|%.*)?\n)*")
_KUBELET_ARG_HEADER = "# The kubelet's CPU settings, written by kubenode.cpu_manager.\n"


# How the names of variables with flags end, as in KUBELET_EXTRA_ARGS.
_OF_FLAGS = ("ARGS", "FLAGS", "OPTIONS", "OPTS")


def environment_words(text: str) -> list[str]:
    """The words of those variables of an environment file that give a program flags, as far as that can be seen."""
    given = ((name, split_words(value)) for name, value in read_environment(text).items())
    return [
        word
        for name, words in given
        # Others are for the program's environment, such as HOME and PATH.
        if words and (words[0].startswith("-") or name.endswith(_OF_FLAGS))
        for word in words
    ]


def line_words(text: str) -> list[str]:
    """The words of a file that has a flag, and its value, on each line. MicroK8s takes all quotes away."""
    lines = text.replace('"', "").replace("'", "").splitlines()
    return [word for line in lines if not line.strip().startswith("#") for word in line.split()]


def with_lines(text: str, fields: Iterable[str], arguments: Sequence[str]) -> str:
    """Such a file with these arguments in place of those that give the fields; all other lines stay as they are."""
    names = {NAMES[field] for field in fields}
    kept: list[str] = []
    place = None
    has_ended = False
    for line in text.splitlines(keepends=True):
        flags = [] if has_ended else list(split_flags(line_words(line)))
        if ("", [END_OF_FLAGS]) in flags:
            # Behind it nothing is a flag.
            has_ended, place = True, len(kept) if place is None else place
        if not any(name in names for name, _words in flags):
            kept.append(line)
            continue
        place = len(kept) if place is None else place
        others = [word for name, words in flags if name not in names for word in words]
        kept += [" ".join(others) + "\n"] if others else []
    if place is None:
        place = len(kept)
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
    return "".join([*kept[:place], *(argument + "\n" for argument in arguments), *kept[place:]])


class ReplacedList(NamedTuple):
    """The list in one of k3s' or RKE2's files, by number, whose place that in a later file takes."""

    number: int
    by: int
    words: Sequence[str]


def kubelet_args(texts: Iterable[str]) -> list[list[str]]:
    """The kubelet's arguments in each of k3s' or RKE2's files, which are read in this order.

    A file's list takes the place of those before it, unless its key has a plus. Raises ValueError.
    """
    return _read_lists(texts)[0]


def replaced_lists(texts: Iterable[str]) -> list[ReplacedList]:
    """Which of them do not count. Raises ValueError."""
    return _read_lists(texts)[1]


def _read_lists(texts: Iterable[str]) -> tuple[list[list[str]], list[ReplacedList]]:
    lists: list[list[str]] = []
    replaced: list[ReplacedList] = []
    for number, text in enumerate(texts):
        mine: list[str] = []
        for key, value in _kubelet_arg_members(text):
            mine += ["--" + str(word).lstrip("-") for word in (value if isinstance(value, list) else [value]) if word]
            if key == _KEY:
                replaced += [ReplacedList(earlier, number, words) for earlier, words in enumerate(lists) if words]
                lists = [[] for _file in lists]
        lists.append(mine)
    return lists, replaced


def _kubelet_arg_members(text: str) -> Iterator[tuple[str, object]]:
    # Imported here: of the distributions only these two have YAML around their flags.
    from ..file.document import is_json, read_document

    text = _first_document(text.replace("\r\n", "\n"))
    if is_json(text):
        members = read_document(text).value
        yield from ((key, members[key]) for key in (_KEY, _ADDING_KEY) if key in members)
        return
    # Only this key: the rest of the file may be written in ways that the reader refuses.
    for block in _KUBELET_ARG.finditer(text):
        yield from read_document(block.group()).value.items()


def _first_document(text: str) -> str:
    """All that k3s and RKE2 read of a file."""
    # What stands before the sign are comments and directives, or a document of its own.
    begin = _DOCUMENT.match(text, _NOTHING.match(text).end())  # type: ignore[union-attr]
    text = text[begin.end() :] if begin else text
    end = _END.search(text)
    return text[: end.start()] if end else text


def kubelet_arg_file(arguments: Iterable[str]) -> str:
    """The text of such a file that adds these arguments."""
    lines = ["  - %s\n" % json.dumps(argument[len("--") :]) for argument in arguments]
    return _KUBELET_ARG_HEADER + (_ADDING_KEY + ":\n" + "".join(lines) if lines else "")
