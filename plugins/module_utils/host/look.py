# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading for a look at a node: what is not there or cannot be read shows nothing, and is no error."""

from __future__ import annotations

import json
from typing import Any, Mapping

from ..errors import CPUManagerError
from ..tree import Tree

# The longest file that is read here has every pod of a node.
_LONGEST = 1 << 26
_ENABLED = "/etc/systemd/system/%s.target.wants"


def is_there(tree: Tree, path: str) -> bool:
    """Whether there is something at a path, be it a link to nothing."""
    try:
        return tree.exists(path, follow=False)
    except CPUManagerError:
        return False


def text_at(tree: Tree, path: str) -> str:
    """A file's text; empty where there is none."""
    try:
        content = tree.content(path) or b""
    except CPUManagerError:
        return ""
    return content.decode("utf-8", "replace") if len(content) <= _LONGEST else ""


def names_in(tree: Tree, directory: str) -> list[str]:
    """The sorted names in a directory."""
    try:
        return tree.names(directory)
    except CPUManagerError:
        return []


def members_at(tree: Tree, path: str) -> Mapping[str, Any]:
    """The members of the object in a JSON file."""
    text = text_at(tree, path)
    try:
        return members(json.loads(text)) if text else {}
    except (ValueError, RecursionError):
        return {}


def members(value: object) -> Mapping[str, Any]:
    """A JSON value's members, if it is an object."""
    return value if isinstance(value, dict) else {}


def enabled_at(tree: Tree, unit: str, target: str = "multi-user") -> list[str]:
    """The link by which systemd starts a unit at each boot, if there is one."""
    directory = _ENABLED % target
    # Listed, as the link of a saved node leads out of it.
    return ["%s/%s" % (directory, unit)] if unit in names_in(tree, directory) else []
