# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change resctrl of a node, under the lock that its users agree on, one write after the other.

Source: "Notes on locking" in Documentation/filesystems/resctrl.rst in Linux: flock(2) on the directory.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager, suppress
from typing import Iterable, Iterator

from ..errors import PERMISSION, NodeError, RefusedError
from ..locking import OPENED, PATIENCE, Sleep, take_lock
from ..tree import Tree
from .mount import MOUNT
from .steps import MAKE, REMOVE, WRITE, Step

_STATUS = "info/last_cmd_status"
_LONGEST_STATUS = 4096
_MODE = 0o755


@contextmanager
def locked(tree: Tree, exclusive: bool, patience: float = PATIENCE, sleep: Sleep = time.sleep) -> Iterator[int]:
    """Hold the lock; gives the directory, open. exclusive: for changes, otherwise for reading alone.

    Raises NodeError where somebody else holds it for longer than `patience` seconds.
    """
    here = tree.path(MOUNT)
    try:
        directory = os.open(here, OPENED | os.O_NOFOLLOW)
    except OSError as error:
        raise NodeError("cannot be opened: %s" % error.strerror, here) from error
    try:
        take_lock(directory, here, exclusive, patience, sleep)
        yield directory
    finally:
        # It ends the lock.
        os.close(directory)


def check_mounted(tree: Tree) -> None:
    """Raise RefusedError where the files are only saved, so that nothing takes what is written."""
    here = tree.path(MOUNT)
    if not os.path.ismount(here):
        raise RefusedError(
            "is no mounted resctrl, but saved files of one", where=here, remedy="use check mode, or the node itself"
        )


def carry_out(tree: Tree, directory: int, steps: Iterable[Step]) -> None:
    """Take these steps, the lock held. directory: as locked() gives it.

    Raises NodeError for the first that the kernel refuses, with what it says in last_cmd_status.
    """
    for step in steps:
        try:
            _take(directory, step)
        except OSError as error:
            raise _refused(tree, directory, step, error) from error


def _take(directory: int, step: Step) -> None:
    if step.kind == MAKE:
        os.mkdir(step.group, _MODE, dir_fd=directory)
    elif step.kind == REMOVE:
        os.rmdir(step.group, dir_fd=directory)
    elif step.kind == WRITE:
        path = "%s/%s" % (step.group, step.file) if step.group else step.file
        content = step.text.encode("ascii") + b"\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            # A write is one command: a second one for the rest would be another.
            if os.write(descriptor, content) != len(content):
                raise OSError(errno.EIO, "it took a part of the write")
        finally:
            os.close(descriptor)


def _refused(tree: Tree, directory: int, step: Step, error: OSError) -> NodeError:
    status = ""
    with suppress(OSError):
        descriptor = os.open(_STATUS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            status = os.read(descriptor, _LONGEST_STATUS).decode("ascii", "replace").strip()
        finally:
            os.close(descriptor)
    said = " and says: %s" % "; ".join(status.splitlines()) if status and status != "ok" else ""
    where = "/".join(part for part in (tree.path(MOUNT), step.group, step.file) if part)
    kind = PERMISSION if isinstance(error, PermissionError) and os.geteuid() != 0 else ""
    return NodeError(
        "the kernel refuses this (%s)%s: %s" % (error.strerror, said, step),
        where,
        "do it as root (become: true)" if kind else "do what it says, and run again",
        kind,
    )
