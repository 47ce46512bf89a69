# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of the role kubelet on a node's files, in this process: each is the call of a module, as the role makes it.

tests/faults/test_reboots.py::test_the_steps_are_those_of_the_role holds them to the role's tasks.
"""

from __future__ import annotations

import posixpath
from functools import lru_cache
from types import ModuleType
from typing import Any, Callable, Iterator, Mapping
from unittest import mock

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import is_state
from ansible_collections.kubenode.cpu_manager.plugins.modules import (
    checkpoint,
    kubelet_config,
    rollout_info,
    rollout_journal,
)

Step = Callable[[], Any]
Settings = Mapping[str, object]


@lru_cache(maxsize=None)
def _defaults(module: ModuleType) -> dict[str, Any]:
    """What a module is given where its caller gives nothing."""
    found: dict[str, Any] = {}

    def collect(_work: object, *arguments: Any) -> None:
        for group in arguments:
            found.update({name: option.get("default") for name, option in group.options.items()})

    with mock.patch.object(module, "run", collect):
        module.main()
    return found


def call(module: ModuleType, root: str, **given: Any) -> dict[str, Any]:
    """The answer of a module. Raises CPUManagerError where the module fails."""
    work: Callable[..., Any] = module.work
    return dict(work(Tree(root), {**_defaults(module), **given}, False).result)


class Change:
    """A change of a node by one run; `discard` as the role's variable kubelet_discard_assignments."""

    def __init__(self, root: str, run: str, change: str = "rollout", discard: bool = False, **settings: Any) -> None:
        self.root, self.run, self.change, self.discard = root, run, change, discard
        self.settings = settings if change == "rollout" else {}
        self.plan = self.look()

    def look(self) -> dict[str, Any]:
        """The plan of the node."""
        terms = {"change": self.change, "drain": False, "discard_assignments": self.discard}
        return call(rollout_info, self.root, **terms, **self.settings)

    def journal(self, state: str, **given: Any) -> dict[str, Any]:
        """A step that is noted."""
        return call(rollout_journal, self.root, state=state, run=self.run, backup_keep=0, **given)

    def steps(self) -> Iterator[Step]:
        """One after the other, as in tasks/node/change.yml."""
        files = self.plan["files"]
        configuration = [path for path in files if not is_state(posixpath.basename(path))]
        yield lambda: self.journal("stopping", facts={"rollout": self.run} if self.change == "rollout" else {})
        resets: list[str] = []
        yield lambda: resets.extend(self.look()["resets"])
        yield lambda: self.journal("changing", files=files, aside=resets)
        if self.change == "rollback":
            yield lambda: self.journal("restored", source="last", files=configuration)
        else:
            yield lambda: call(kubelet_config, self.root, run=self.run, backup_keep=0, **self.settings)
        yield lambda: call(
            checkpoint, self.root, run=self.run, discard_assignments=self.discard, backup_keep=0, **self.settings
        )
        yield lambda: self.journal("undone" if self.change == "rollback" else "done", files=configuration)

    def steps_back(self, overwrite: bool = False) -> Iterator[Step]:
        """Take over what is open and take it back, as in tasks/node/undo_interrupted.yml and undo.yml."""
        yield lambda: self.journal("taken")
        restores: list[str] = []
        yield lambda: restores.extend((self.look()["journal"] or {"restores": []})["restores"])
        yield lambda: self.journal("restored", files=restores, overwrite_edited=overwrite)
        yield lambda: self.journal("taken_back" if self.change == "rollback" else "absent")


def do(steps: Iterator[Step], most: int = 100) -> None:
    """Do so many steps at most: then the run is killed."""
    for number, step in enumerate(steps):
        if number == most:
            return
        step()
