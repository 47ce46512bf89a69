# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of our journals on a node: where they are, and JSON that says its format, replaced as a whole.

Root does what they say, so a journal that others than root may have written is refused, whatever it holds.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, Callable, Mapping, NamedTuple, TypeVar

from .errors import MALFORMED, NodeError
from .tree import Tree, fault_of, not_obeyed

# Where this collection keeps its notes on a node, on the node.


DIRECTORY = "/var/lib/kubenode-cpu-manager"
# The journals of the change that is under way or was interrupted, and of the last that came to its end.
OPEN = DIRECTORY + "/change.json"
LAST = DIRECTORY + "/last-change.json"
# What is wished of the caches, and what they were before.
CACHE = DIRECTORY + "/cache.json"
# What is wished of the host's own work, and what was there before.
HOUSEKEEPING = DIRECTORY + "/housekeeping.json"
# The services of ours that run as root.
UNIT_DIRECTORY = "/etc/systemd/system"
SERVICES = tuple(
    "%s/%s.service" % (UNIT_DIRECTORY, name)
    for name in ("kubenode-cpu-manager-reconcile", "kubenode-housekeeping", "kubenode-housekeeping-network")
)
# The units beside them.
UNITS = tuple(
    "%s/%s" % (UNIT_DIRECTORY, name) for name in ("kubenode-cpu-manager-reconcile.timer", "sys-fs-resctrl.mount")
)
# What the policies dynamic and isolated have promised. It ends with the machine, as all containers do.
PROMISE = "/run/kubenode/cpu-manager.json"


_MODE = 0o600
# Objects and lists within one another. Ansible cannot return an answer that is much deeper.
_DEEPEST = 100

_Journal = TypeVar("_Journal")


class JournalFile(NamedTuple):
    """Where a journal is, the number of its format, and the message for one that cannot be read.

    `damage` has one %s, which takes the error.
    """

    path: str
    format: int
    damage: str
    remedy: str

    def read(self, tree: Tree, parse: Callable[[Any], _Journal]) -> _Journal | None:
        """Return what `parse` makes of the data; None where there is no journal. Raises NodeError for a damaged one,
        and RefusedError for one that others may have written.
        """
        content = self.content(tree)
        return None if content is None else self.parsed(tree, content, parse)

    def content(self, tree: Tree) -> bytes | None:
        """Return what is in the file; None where there is none. Raises NodeError and RefusedError as read()."""
        return obeyed_content(tree, self.path)

    def parsed(self, tree: Tree, content: bytes, parse: Callable[[Any], _Journal]) -> _Journal:
        """Return what `parse` makes of the data in this content of the file. Raises NodeError for a damaged one."""
        try:
            data = json.loads(content.decode("utf-8"))
            if data["format"] != self.format:
                raise ValueError("it is of another format")
            if _is_deep(data):
                raise ValueError("it is nested deeper than %d times" % _DEEPEST)
            return parse(data)
        # An InputError is a ValueError, too.
        except MALFORMED as error:
            raise NodeError(self.damage % error, where=tree.path(self.path), remedy=self.remedy) from error

    def text_of(self, data: Mapping[str, Any]) -> str:
        """Return the data as it is written."""
        return json.dumps({"format": self.format, **data}, indent=1, sort_keys=True) + "\n"

    def replace(self, tree: Tree, text: str, old: bytes | None) -> None:
        """Put it on the disk in place of `old`. Raises NodeError and RefusedError."""
        # Imported here: who only reads needs none of it.
        from .files import make_roots_directory, replace_file

        make_roots_directory(tree, DIRECTORY)
        replace_file(tree.path(self.path), text.encode("utf-8"), _MODE, old, backup=False, keep_mode=False)

    def remove(self, tree: Tree) -> None:
        """Take it away, with what a killed run left beside it, and its directory, where nothing else is in that."""
        from .files import remove_file

        content = tree.content(self.path)
        if content is not None:
            remove_file(tree.path(self.path), content, backup=False)
        remove_left_over(tree, self.path)
        with suppress(OSError):
            os.rmdir(tree.path(DIRECTORY))


def obeyed_content(tree: Tree, path: str) -> bytes | None:
    """Return the content of a file that root obeys; None where there is none.

    Raises RefusedError where others than root may write it, or a directory above it; NodeError as Tree.content() does.
    """
    # First, as otherwise a file that comes in between would be obeyed.
    fault = fault_of(tree, path)
    content = tree.content(path)
    if content is not None and fault is not None:
        raise not_obeyed(fault, tree.path(path))
    return content


def _is_deep(data: object) -> bool:
    level = [data]
    for _depth in range(_DEEPEST):
        level = [
            item
            for value in level
            if isinstance(value, (dict, list))
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    return any(isinstance(value, (dict, list)) for value in level)


def remove_left_over(tree: Tree, path: str) -> None:
    """Remove what a killed run left beside a file."""
    from .files import remove_strays

    here = os.path.realpath(tree.path(path))
    with suppress(OSError):
        remove_strays(here, os.lstat(here) if os.path.lexists(here) else None)
