# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One housekeeping of a node at a time: the role, and the service at boot. Each holds the directory of the journal."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from typing import Iterator

from ...errors import NodeError
from ...files import make_directory, remedy_for, remove_directories
from ...locking import OPENED, PATIENCE, Sleep, take_lock
from ...tree import Tree
from ..places import DIRECTORY

_MODE = 0o700


@contextmanager
def locked(tree: Tree, patience: float = PATIENCE, sleep: Sleep = time.sleep) -> Iterator[None]:
    """Hold the lock of a node. The directory is made for it, and goes again where nothing was written there.

    Raises NodeError where a different process holds it for longer than `patience` seconds.
    """
    here = tree.path(DIRECTORY)
    made: list[str] = []
    directory = None
    try:
        while directory is None:
            made += make_directory(here, _MODE)
            directory = _taken(here, patience, sleep)
        yield
    finally:
        remove_directories(made)
        if directory is not None:
            # It ends the lock.
            os.close(directory)


def _taken(here: str, patience: float, sleep: Sleep) -> int | None:
    """The directory, locked; None where the run that had it has removed it."""
    try:
        directory = os.open(here, OPENED)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NodeError("cannot be opened: %s" % error.strerror, where=here, remedy=remedy_for(error)) from error
    is_held = False
    try:
        take_lock(directory, here, exclusive=True, patience=patience, sleep=sleep)
        with suppress(FileNotFoundError):
            is_held = os.path.samestat(os.fstat(directory), os.stat(here))
    finally:
        if not is_held:
            os.close(directory)
    return directory if is_held else None
