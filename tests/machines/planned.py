# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plans of changes of a saved node, whose last change is written with had()."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import LAST
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    RolloutJournal,
    SavedFile,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)

from .kubelets import HEADER
from .troubles import CHECKPOINT, CONFIG
from .troubles import memory_state as first_memory_state

WHOLE = ["stop_kubelet", "reset_checkpoint", "write_configuration", "start_kubelet"]
REPAIRS = ["stop_kubelet", "repair_checkpoint", "write_configuration", "start_kubelet"]
NO_RESET = ["stop_kubelet", "write_configuration", "start_kubelet"]


def configure(root: Path, text: str) -> None:
    (root / CONFIG[1:]).write_text(HEADER + text, encoding="utf-8")


def plan(tree: Tree, **wanted: Any) -> dict[str, Any]:
    return rollout_report(Node(tree), wanted, ChangeTerms())


def run_kubelet(tree: Tree) -> None:
    process = Path(tree.root) / "proc/7"
    process.mkdir(parents=True)
    (process / "cmdline").write_bytes(b"/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0")


BACK = ChangeTerms("rollback")


def had(tree: Tree, text: str | None, rollout: str = "one") -> None:
    """Write the journal of a last change that began with this configuration."""
    saved = SavedFile(None if text is None else (HEADER + text).encode("utf-8"), 0o644)
    write_journal(
        tree, RolloutJournal(CHANGING, {CONFIG: saved, CHECKPOINT: SavedFile(None)}, {"rollout": rollout}), LAST
    )


def memory_state(policy: str, reserved: int = 0) -> str:
    """Return a first state, as the kubelet writes it."""
    return first_memory_state(policy, reserved).decode("ascii")
