# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What to do so that the kernel and the workloads' files become what the dynamic policy has promised. Pure.

The order of one pass, of which each step alone leaves every CPU with one owner:

1. announce what is to leave a container, and when: its file
2. take from containers what has left them: the kernel
3. set the shared pool: it shrinks before others grow, and grows after others have shrunk
4. give containers what they get: the kernel
5. say what they have now: their files
6. remove the files of containers that have none any more
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from ..cpuset import CPUSet
from .dynamic_state import DynamicState, Held, Key

ANNOUNCE = "announce"
EXCLUSIVE = "exclusive"
SHARE = "share"
POOL = "pool"
REMOVE = "remove"


class Move(NamedTuple):
    """One step.

    what: ANNOUNCE a set in a container's file, where `until` is when the kernel is to follow, or None where it has
    followed; give a container an EXCLUSIVE set in the kernel; let a container SHARE the pool; set the POOL of all
    containers that share it; REMOVE a container's file. key: None for the pool. cpus: a mask.
    """

    what: str
    key: Key | None
    cpus: int = 0
    until: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for people."""
        pod, container = self.key or ("", "")
        data = {"what": self.what, "pod": pod, "container": container, "cpus": str(CPUSet.from_mask(self.cpus))}
        return data if self.until is None else {**data, "until": self.until}


class ContainerFile(NamedTuple):
    """What a container's file says: the CPUs that it is to use, and when the kernel takes the rest."""

    cpus: int
    until: float | None = None


class KernelView(NamedTuple):
    """What there is now: the mask of the shared pool, that of each container with exclusive CPUs, and the files.

    Who is not in `exclusive` runs on the shared pool.
    """

    shared: int
    exclusive: Mapping[Key, int] = {}
    files: Mapping[Key, ContainerFile] = {}


def view_of(state: DynamicState) -> KernelView:
    """What there is after all that a state has promised so far is done."""
    return KernelView(
        state.shared,
        {key: held.cpus for key, held in state.containers.items()},
        {key: _file(held) for key, held in state.containers.items()},
    )


def moves_between(view: KernelView, state: DynamicState) -> list[Move]:
    """The steps from what there is to what was promised, in order.

    view: after a pass that was killed, whatever that has left, without the kernel's sets of containers that ended.
    """
    wanted = {key: held.cpus for key, held in state.containers.items()}
    files = dict(view.files)
    moves = []

    def announce(key: Key, file: ContainerFile) -> None:
        if files.get(key) != file:
            files[key] = file
            moves.append(Move(ANNOUNCE, key, file.cpus, file.until))

    for key, held in state.containers.items():
        kept = view.exclusive.get(key, 0) & held.cpus & ~held.leaving
        lost = view.exclusive.get(key, 0) & ~held.cpus
        # Without a delay, too, the file comes before the kernel.
        if kept and (held.leaving or (lost and (key not in files or files[key].cpus & lost))):
            announce(key, ContainerFile(kept, _until(held)))
    left = {}
    for key, mask in view.exclusive.items():
        kept = mask & wanted.get(key, 0)
        if not kept:
            # The kernel takes no empty set.
            moves.append(Move(SHARE, key))
            continue
        left[key] = kept
        if kept != mask:
            moves.append(Move(EXCLUSIVE, key, kept))
    if view.shared != state.shared:
        moves.append(Move(POOL, None, state.shared))
    moves += [Move(EXCLUSIVE, key, mask) for key, mask in wanted.items() if left.get(key) != mask]
    for key, held in state.containers.items():
        announce(key, _file(held))
    moves += [Move(REMOVE, key) for key in files if key not in wanted]
    return moves


def apply_moves(view: KernelView, moves: Sequence[Move]) -> Iterator[KernelView]:
    """What there is after each of these steps."""
    shared, exclusive, files = view.shared, dict(view.exclusive), dict(view.files)
    for move in moves:
        if move.key is None:
            shared = move.cpus
        elif move.what == ANNOUNCE:
            files[move.key] = ContainerFile(move.cpus, move.until)
        elif move.what == EXCLUSIVE:
            exclusive[move.key] = move.cpus
        elif move.what == SHARE:
            del exclusive[move.key]
        else:
            del files[move.key]
        yield KernelView(shared, dict(exclusive), dict(files))


def _file(held: Held) -> ContainerFile:
    return ContainerFile(held.cpus & ~held.leaving, _until(held))


def _until(held: Held) -> float | None:
    return held.until if held.leaving else None
