# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What taking back an interrupted change restores. Pure.

A kubelet that has started since may have given CPUs to containers that the saved checkpoint does not name. With the
saved checkpoint they would lose them, and others would get the same CPUs. So the states of the kubelet's managers stay
as they are where the kubelet starts with them and the saved configuration.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence

from .._base.errors import CPUManagerError, RefusedError, option
from .._base.journal_file import OPEN
from .._base.tree import OverlaidTree
from .._node.node import Node
from ..cpuset import CPUSet
from ..state.acceptance import readable
from .rollout_journal import CHANGING, FileBack, RolloutJournal, files_back, is_state


class Recovery(NamedTuple):
    """What is restored, and what that takes away."""

    # {path on the node: its saved content, None where there was no file}
    files: Mapping[str, bytes | None]
    # The exclusive CPUs of containers that came since and lose them.
    lost: CPUSet = CPUSet()
    # What keeps what others wrote since from being lost, and what is said of it.
    problems: Sequence[CPUManagerError] = ()
    notes: Sequence[str] = ()


def recovery_refusals(node: Node, journal: RolloutJournal | None, recovery: Recovery) -> list[CPUManagerError]:
    """Return why the change is not to be taken back as it stands.

    Where the node was drained for it, its pods are not looked at here: only the cluster says whether it is cordoned.
    """
    if journal is None or "node" in journal.facts or not recovery.lost:
        return []
    return [
        RefusedError(
            "a change of this node was interrupted, and since then its kubelet has started and given the CPUs %s to "
            "containers that the saved checkpoint does not have: they would lose them" % recovery.lost,
            node.tree.path(OPEN),
            "drain the node and set %s: true, or if the node is as it should be now, forget the change with "
            "rollout_journal, state: absent" % option("discard_assignments"),
            "assignments",
        )
    ]


def recovery_of(node: Node, journal: RolloutJournal | None, overwrite: bool = False) -> Recovery:
    """Return what taking back this change restores on the node.

    overwrite: whether what others wrote since may be replaced as a whole.
    """
    if journal is None or journal.phase != CHANGING:
        return Recovery({})
    whole = restored(files_back(node.tree, journal, overwrite=overwrite))
    files = whole.files
    came = _came_since(node, files)
    if not came:
        return whole
    configuration = {path: content for path, content in files.items() if path not in node.state_paths}
    # Imported here: hardly any node needs it.
    from .._node.start_check import predict_start

    if predict_start(node.on(OverlaidTree(node.tree, configuration))).starts:
        return whole._replace(files=configuration)
    return whole._replace(lost=came)


def last_files(node: Node, last: RolloutJournal | None, rollback_of: str, overwrite: bool) -> Recovery:
    """Return the configuration's files before the last change, if that is the one to go back from.

    What the kubelet's managers save is of its time, and stays.
    """
    if last is None or (rollback_of and last.facts.get("rollout") != rollback_of):
        return Recovery({})
    return restored(files_back(node.tree, last, [path for path in last.files if not is_state(path)], overwrite))


def restored(backs: Mapping[str, FileBack]) -> Recovery:
    """Return what becomes of the files, with all that is said of them."""
    return Recovery(
        {path: back.content for path, back in backs.items()},
        problems=[back.problem for back in backs.values() if back.problem is not None],
        notes=[back.note for back in backs.values() if back.note],
    )


def _came_since(node: Node, files: Mapping[str, bytes | None]) -> CPUSet:
    """Return the exclusive CPUs of containers that are in the node's checkpoint and not in the saved one."""
    if node.checkpoint_path not in files:
        return CPUSet()
    before = _owners(files[node.checkpoint_path])
    came = CPUSet()
    for owner, cpus in _owners(node.checkpoint()).items():
        if owner not in before:
            came |= cpus
    return came


def _owners(checkpoint: bytes | None) -> dict[tuple[str, str], CPUSet]:
    """Return {(pod UID, container): its exclusive CPUs}, as far as the file can be read."""
    state = readable(checkpoint).state
    return {} if state is None else {(pod, container): cpus for pod, container, cpus in state.owners()}
