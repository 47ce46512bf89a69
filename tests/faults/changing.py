# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The change of a node's files as the module kubelet_change makes it, here, up to a step where it is killed."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any, Callable, Mapping
from unittest import mock

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._change.node_change import NodeChange
from ansible_collections.kubenode.cpu_manager.plugins.modules import kubelet_change, rollout_info

Settings = Mapping[str, object]


class KillError(BaseException):
    """The process ends here: nothing of it catches that."""


def kill() -> None:
    """End the process."""
    raise KillError


@lru_cache(maxsize=None)
def defaults(module: ModuleType) -> dict[str, Any]:
    """Return what a module is given where its caller gives nothing."""
    found: dict[str, Any] = {}

    def collect(_work: object, *arguments: Any) -> None:
        for group in arguments:
            found.update({name: option.get("default") for name, option in group.options.items()})

    with mock.patch.object(module, "run", collect):
        module.main()
    return found


class Change:
    """A change of a node by one run, whose kubelet somebody else stops and starts; `discard` as
    kubelet_discard_assignments.
    """

    def __init__(
        self,
        root: str,
        run: str,
        change: str = "rollout",
        discard: bool = False,
        overwrite: bool = False,
        **settings: Any,
    ) -> None:
        self.tree = Tree(root)
        terms = {"change": change, "drain": False, "manage_service": False, "discard_assignments": discard}
        self.terms = {**terms, "overwrite_edited": overwrite, **(settings if change == "rollout" else {})}
        rollout = run if change == "rollout" else ""
        self.given = {**defaults(kubelet_change), **self.terms, "run": run, "rollout": rollout, "backup_keep": 0}
        self.given["plan"] = self.plan = self.look()

    def look(self) -> dict[str, Any]:
        """Return the plan of the node. Raises CPUManagerError."""
        return dict(rollout_info.work(self.tree, {**defaults(rollout_info), **self.terms}, False).result)

    def carry_out(self, number: int = 100, happens: Callable[[], Any] = kill) -> dict[str, Any]:
        """Return what the change answers. number: of the step, from 0 on, before which something happens."""
        return self._call("change", number, happens)

    def undo(self) -> dict[str, Any]:
        """Take over what is open, and take it back."""
        return self._call("undo", 100, kill)

    def _call(self, step: str, number: int, happens: Callable[[], Any]) -> dict[str, Any]:
        begun: list[str] = []

        def tell(name: str) -> None:
            if len(begun) == number:
                happens()
            begun.append(name)

        return NodeChange(self.tree, {**self.given, "step": step}, acts=True, tell=tell).carry_out()
