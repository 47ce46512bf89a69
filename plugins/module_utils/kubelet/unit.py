# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""With which command line systemd starts a service: what its unit, its drop-in files and environment files say.

Source: systemd.unit(5), systemd.service(5) and systemd.exec(5).
"""

from __future__ import annotations

import re
from typing import Iterator, Mapping

from ..errors import NodeError, RefusedError
from ..tree import Tree
from .distributions import UNIT_DIRECTORIES
from .flag_file import read_environment, split_words

# What may stand before the path of a program, and before that of an environment file.
_PROGRAM_SIGNS, _MAY_BE_MISSING = "@-:+!|", "-"
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)\})")


def unit_command(tree: Tree, service: str) -> list[str]:
    """The words of a service's command line, with its variables in place; none where no unit tells."""
    command: list[str] = []
    variables: dict[str, str] = {}
    files: list[str] = []
    for name, value in _settings(tree, service):
        words = split_words(value)
        # An empty value takes back what came before.
        if name == "ExecStart":
            command = words
        elif name == "Environment":
            variables = {**variables, **dict(word.split("=", 1) for word in words if "=" in word)} if words else {}
        elif name == "EnvironmentFile":
            files = [*files, value.lstrip(_MAY_BE_MISSING)] if words else []
    for path in files:
        variables.update(read_environment(_text(tree, path)))
    words = [part for word in command for part in _expanded(word, variables)]
    return [words[0].lstrip(_PROGRAM_SIGNS), *words[1:]] if words else []


def _settings(tree: Tree, service: str) -> Iterator[tuple[str, str]]:
    """What the section of the service says, in order."""
    for text in _texts(tree, service + ".service"):
        section = ""
        # A comment may stand within a line that goes on.
        lines = [line.strip() for line in text.splitlines() if not line.lstrip().startswith(("#", ";"))]
        for line in "\n".join(lines).replace("\\\n", " ").splitlines():
            name, equals, value = line.partition("=")
            if line.startswith("["):
                section = line
            elif equals and section == "[Service]":
                yield name.rstrip(), value.strip()


def _texts(tree: Tree, unit: str) -> Iterator[str]:
    """The unit and its drop-in files, in the order in which they count."""
    for directory in UNIT_DIRECTORIES:
        text = _text(tree, "%s/%s" % (directory, unit))
        if text:
            yield text
            break
    else:
        return
    drop_ins = {}
    for directory in reversed(UNIT_DIRECTORIES):
        beside = "%s/%s.d" % (directory, unit)
        drop_ins.update({name: beside for name in tree.names(beside) if name.endswith(".conf")})
    for name in sorted(drop_ins):
        yield _text(tree, "%s/%s" % (drop_ins[name], name))


def _text(tree: Tree, path: str) -> str:
    """The text of a file that need not be there. One that is masked is a link to a device, and says nothing."""
    try:
        return tree.read_text(path)
    except (NodeError, RefusedError):
        return ""


def _expanded(word: str, variables: Mapping[str, str]) -> list[str]:
    # A word of its own becomes as many words as the variable has.
    if re.fullmatch(r"\$\w+", word):
        return split_words(variables.get(word[1:], ""))
    return [_VARIABLE.sub(lambda found: found.group(1) or variables.get(found.group(2), ""), word)]
