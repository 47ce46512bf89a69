# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""YAML that others wrote, such as the manifests of developers or the inventory of a pull request. Pure.

A few lines can stand for more values than any memory holds: an alias of a list of aliases, and so on. Ansible goes
through all of them. So what a text stands for is counted before anything is made of it, in linear time.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from ..module_utils._base.errors import InputError

# That of libyaml, where there is one.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# How many values may be in a text with aliases; in a longer text, as many as it has characters.
MOST_VALUES = 100_000
# Of lists and mappings in one another, and of a number in characters: Python takes quadratic time for its digits.
DEEPEST, LONGEST_NUMBER = 100, 100
_NUMBER = re.compile(r"[-+]?(?:0[bx][0-9a-fA-F_]+|[0-9_.:eE+-]+)")
# Of a chart of Helm, or of another template in Go's or Jinja's language.
_TEMPLATE, _RENDER = "{{", "it looks like a template: render it first, such as with helm template"
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_documents(text: str, where: str = "the YAML") -> list[Any]:
    """Return all documents of a text, without the empty ones. Raises InputError; where: the name in its message."""
    try:
        check_size(text)
        return [found for found in yaml.load_all(text, _SafeLoader) if found is not None]  # it is a safe one
    except InputError as error:
        raise error.within(where) from error
    # A date that there is not is a ValueError.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        remedy = _RENDER if _TEMPLATE in text else ""
        raise InputError("is no YAML: %s" % " ".join(str(error).split()), where, remedy) from error


def check_size(text: str) -> None:
    """Raise InputError where a text stands for too much, and yaml.YAMLError where it is no YAML."""
    most = max(MOST_VALUES, len(text))
    # Of each list and mapping that is open, and of the document: its anchor, and how many values it has so far.
    stack: list[tuple[str | None, int]] = [(None, 0)]
    sizes: dict[str, int] = {}
    for event in yaml.parse(text, _SafeLoader):
        if isinstance(event, yaml.DocumentStartEvent):
            sizes = {}
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(stack) > DEEPEST:
                raise InputError("has more than %d lists and mappings in one another" % DEEPEST)
            stack.append((event.anchor, 1))
        elif isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent, yaml.CollectionEndEvent)):
            anchor, size = event.anchor if isinstance(event, yaml.ScalarEvent) else None, 1
            if isinstance(event, yaml.ScalarEvent):
                _check_number(event)
            elif isinstance(event, yaml.AliasEvent):
                # Of what is not closed yet, there is no size: it would be in itself.
                if event.anchor not in sizes:
                    raise InputError("the alias *%.50s stands for nothing, or for what it is in" % event.anchor)
                size = sizes[event.anchor]
            else:
                anchor, size = stack.pop()
            if anchor is not None:
                sizes[anchor] = size
            stack[-1] = (stack[-1][0], stack[-1][1] + size)
            if stack[-1][1] > most:
                raise InputError(
                    "its aliases stand for more than %d values" % most,
                    remedy="write out what they stand for, and give fewer at a time",
                )


def _check_number(event: yaml.ScalarEvent) -> None:
    if len(event.value) <= LONGEST_NUMBER:
        return
    is_plain = event.implicit[0] and _NUMBER.fullmatch(event.value)
    if is_plain or event.tag in _NUMBER_TAGS:
        raise InputError(
            "has a number of %d characters" % len(event.value), remedy="write it as a text, in quotes, if it is none"
        )
