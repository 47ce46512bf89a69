# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written where the states of the kubelet's managers are repaired or reset, and what forbids it."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from .._base.errors import RefusedError, option
from .._base.files import FileChange
from .._base.tree import SAID, Tree
from .._base.versions import version_notes
from .._kubelet.installation import find_kubelet
from .._kubelet.settings import needed_config, plan_settings
from ..state.acceptance import CPUManagerConfig
from ..state.writing import MODE
from .checkpoint_plan import CheckpointPlan, loss_error, with_assumed_version
from .node import Node
from .start_check import Managers, MemoryPlan, memory_config, memory_loss_error, predict_configuration


class States(NamedTuple):
    """What becomes of the states; memory: None where that of the memory manager stays whatever it is."""

    checkpoint: CheckpointPlan
    memory: MemoryPlan | None

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return self.checkpoint.changed or (self.memory is not None and self.memory.changed)

    def check_losses(self, node: Node) -> None:
        """Refuse to take CPUs or memory from containers that run. Raises RefusedError."""
        errors = [loss_error(node.tree.path(node.checkpoint_path), self.checkpoint)]
        if self.memory is not None:
            errors.append(memory_loss_error(node.tree.path(node.memory_state_path), self.memory))
        for error in errors:
            if error is not None:
                raise error

    def file_changes(self, tree: Tree, node: Node) -> list[FileChange]:
        """Return what is to be written. tree: where it is, of which the node may show some files as they were."""
        paths = [(node.checkpoint_path, self.checkpoint.new, False)]
        if self.memory is not None:
            paths.append((node.memory_state_path, self.memory.kept, True))
        changes = [
            FileChange(tree.path(path), tree.content(path), after, MODE, keep_mode) for path, after, keep_mode in paths
        ]
        return [change for change in changes if change.before != change.after]

    def memory_difference(self, node: Node) -> Sequence[tuple[str, str, str]]:
        """Return what --diff shows of the memory manager's state: its path, and its text before and after."""
        if self.memory is None or self.memory.old is None or not self.memory.changed:
            return ()
        return [(node.tree.path(node.memory_state_path), self.memory.old.decode("utf-8", "replace"), "")]


def planned_managers(node: Node, wanted: Mapping[str, object]) -> Managers:
    """Return with what the managers would start once these settings are there. Raises CPUManagerError."""
    plan_settings(wanted, node.needed_configuration(), node.minor)
    prediction = predict_configuration(node, wanted)
    checked = prediction.checked
    return Managers(needed_config(prediction), None if checked is None else memory_config(node, checked))


def assumed_config(node: Node, config: CPUManagerConfig) -> tuple[CPUManagerConfig, list[str]]:
    """Return what the CPU manager would start with, and notes on its version, which may be assumed."""
    if node.version is None:
        return with_assumed_version(node.checkpoint(), config)
    return config, version_notes(config.minor)


def check_stopped(tree: Tree, remedy: str) -> None:
    """Refuse to write under a running kubelet, which would overwrite the file. That of a saved node runs no more.

    remedy: the option that, if it is true, allows it. Raises RefusedError.
    """
    kubelet = find_kubelet(tree)
    if kubelet is not None and not (tree.exists(SAID) and not tree.live):
        raise RefusedError(
            "the kubelet runs (process %d) and would overwrite its checkpoint; nothing was written" % kubelet.pid,
            remedy="stop it first, or set %s: true" % option(remedy),
            kind="kubelet_runs",
        )
