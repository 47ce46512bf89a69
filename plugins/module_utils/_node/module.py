# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The node that the arguments of a module describe: as it is, or as node_save has saved it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from .._base.arguments import Arguments
from .._base.errors import MALFORMED, Note
from .._base.tree import SAID, Tree
from .._base.versions import minor_version
from .node import Node

if TYPE_CHECKING:
    from .._kubelet.start.findings import Host

# What modules take that are about a node with a kubelet.
KUBELET = Arguments(
    {
        "config_path": {"type": "path"},
        "kubelet_root": {"type": "path"},
        "kubelet_version": {"type": "str"},
        "command_line": {"type": "list", "elements": "str"},
    }
)

_DEVICE: dict[str, object] = {
    "resource": {"type": "str", "required": True},
    "count": {"type": "int"},
    "numa_nodes": {"type": "list", "elements": "int", "default": []},
    "pci_vendor": {"type": "str"},
    "pci_class": {"type": "str"},
}
# What modules take that are told which devices a node has.
DEVICES = Arguments({"devices": {"type": "list", "elements": "dict", "default": [], "options": _DEVICE}})


def node_of(tree: Tree, parameters: Mapping[str, Any]) -> Node:
    """Return the node that the arguments KUBELET describe."""
    version = parameters["kubelet_version"]
    kind = SavedNode if not tree.live and tree.exists(SAID) else Node
    node = kind(
        tree,
        parameters["config_path"],
        parameters["kubelet_root"],
        minor_version(version) if version else None,
        parameters["command_line"] or (),
    )
    node.mistaken = mistaken_in(parameters.get("tried"))
    return node


# What modules take that go by a trial of the node's kubelet: what rollout_info has returned as `trial`.
TRIED = Arguments({"tried": {"type": "dict"}})


def mistaken_in(trial: object) -> frozenset[tuple[str, str]]:
    """Return (where, text) of the refusals that were predicted, and are none; nothing of what is no trial."""
    try:
        found: Any = trial
        return frozenset((str(where), str(text)) for where, text in found["mistaken"])
    except MALFORMED:
        return frozenset()


# A node that node_save has saved, with what was found on the live node and is in none of its files.


KIND = "kubenode.cpu_manager/saved-node"

FORMAT = 1

_VERSION = re.compile(r"1\.[0-9]{1,3}(?:\.[0-9]{1,5})?")

_RUNTIME_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")

_CHECK = re.compile("[a-z-]{0,60}")

_MOST_NOTES, _LONGEST_NOTE = 20, 1000


class SavedFacts(NamedTuple):
    """What was found on a live node and is in none of its files."""

    # Of the kubelet that ran; empty where it is not known.
    version: str = ""
    # What was strange about the processes that looked like a kubelet, with the id of the check.
    notes: Sequence[str] = ()
    # The bytes of the file system with the kubelet's directory; None where it is not known.
    storage: int | None = None
    # Of the container runtime; empty where it is not known.
    runtime: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as an archive has it."""
        notes = [{"check": getattr(note, "check", ""), "text": str(note)} for note in self.notes]
        return {"version": self.version, "notes": notes, "storage": self.storage, "runtime": self.runtime}


def read_said(tree: Tree) -> SavedFacts:
    """Return what was saved of a node beside its files. Raises NodeError for a file that node_save has not written."""
    try:
        data = json.loads(tree.read_bytes(SAID).decode("utf-8"))
        if data["kind"] != KIND or data["format"] != FORMAT:
            raise ValueError("it is of another kind or format")
        said = data["said"]
        version, storage, notes = said["version"], said["storage"], said["notes"]
        # Not in archives of before it was saved.
        runtime = said.get("runtime", "")
        if version and not _VERSION.fullmatch(version):
            raise ValueError("it gives no version of a kubelet")
        if runtime and not _RUNTIME_VERSION.fullmatch(runtime):
            raise ValueError("it gives no version of a container runtime")
        if storage is not None and (not isinstance(storage, int) or not 0 <= storage < 1 << 63):
            raise ValueError("it gives no size of a file system")
        notes = [_note(note["check"], note["text"]) for note in notes[:_MOST_NOTES]]
        return SavedFacts(version, notes, storage, runtime)
    except MALFORMED as error:
        raise tree.damaged(SAID, "is not what node_save writes: %s" % error) from error


def _note(check: str, text: str) -> str:
    if not _CHECK.fullmatch(check) or not isinstance(text, str):
        raise ValueError("%r is no note" % check[:60])
    text = text[:_LONGEST_NOTE]
    return Note(check, text) if check else text


class SavedNode(Node):
    """A node whose kubelet ran when it was saved, by what was written down then."""

    is_saved = True

    def __init__(self, tree: Tree, *given: Any) -> None:
        """Make the node of a saved tree. given: what Node() takes after the tree."""
        self._said = read_said(tree)
        super().__init__(tree, *given)
        self.runtime_version = self._said.runtime or None
        notes = tuple(self._said.notes)
        self._search = self._search._replace(notes=notes)
        if self.installation is not None:
            self.installation = self.installation._replace(notes=notes)

    def machine(self) -> Host:
        """Return what the kubelet makes of the machine."""
        if self._host is None:
            self._host = super().machine()._replace(storage=self._said.storage)
        return self._host

    def _running_version(self) -> str | None:
        if self.installation is None or self.installation.pid is None:
            return None
        return self._said.version or None
