# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether nobody but root can write what root executes, and which boot of the machine this is."""

from __future__ import annotations

import json
import os
import stat
from typing import Iterator, NamedTuple

from .._base.command import run_command
from .._base.errors import RefusedError
from .._base.tree import Tree

# Which boot of a machine this is: what the kernel holds does not outlive it.


BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot_id_of(tree: Tree) -> str:
    """The id that the kernel gives each boot; empty where it is not known."""
    return tree.read_value(BOOT_ID) or ""


# Where a Python finds its own modules, called as our services call it.
_MODULES = "import json, sys; print(json.dumps(sys.path))"
_MOST_LINKS = 40


class Writable(NamedTuple):
    """A directory, link or file, by its path here, and why others than root may put something there."""

    path: str
    why: str


def owner_of_programs() -> tuple[int, int]:
    """To whom a program belongs that is written here: root; on a saved node, which anybody may have, who writes."""
    return (0, 0) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


def check_only_root(tree: Tree, program: str, interpreter: str, flags: str) -> None:
    """Raise RefusedError where others than root may write a directory of `program`, or something of its Python.

    The program itself need not be there, and may be as it likes: it is to be written anew. interpreter: on this
    machine. flags: with which it is called.
    """
    fault = fault_of(tree, program, with_file=False) or _fault_of_python(interpreter, flags)
    if fault is not None:
        remedy = "look at what is there, give it to root (chown root:root, chmod go-w), or name a path elsewhere"
        raise others_write_error(fault, remedy).adding("nothing was written")


def others_write_error(fault: Writable, remedy: str) -> RefusedError:
    """Why root does not execute what others may write."""
    return RefusedError(
        "%s, and root would execute what they put there" % fault.why, fault.path, remedy, kind="others_write"
    )


def _fault_of_python(interpreter: str, flags: str) -> Writable | None:
    live = Tree("/")
    fault = fault_of(live, interpreter)
    if fault is not None:
        return fault
    places = json.loads(run_command([interpreter, *flags.split(), "-c", _MODULES]))
    found = (fault_of(live, place) for place in places if place)
    return next((fault for fault in found if fault is not None), None)


def fault_of(tree: Tree, path: str, with_file: bool = True) -> Writable | None:
    """The first on the way to a path of a node that others may write; None for none, and where nothing is.

    Of a saved node, who has it counts as root does. with_file: whether the file at its end is looked at, too.
    """
    trusted = {0, os.geteuid(), os.stat(tree.root).st_uid}
    groups = {0} if os.geteuid() == 0 else {0, os.getegid()}
    shared = ""
    for here in _steps(tree.root, path):
        try:
            status = os.lstat(here)
        except OSError:
            # Where everybody may make a file of this name, somebody will.
            return Writable(shared, "everybody may make files there") if shared else None
        mode, is_link = status.st_mode, stat.S_ISLNK(status.st_mode)
        if not with_file and not is_link and not stat.S_ISDIR(mode):
            return None
        if status.st_uid not in trusted:
            return Writable(here, "it belongs to user %d" % status.st_uid)
        is_written = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and status.st_gid not in groups)
        # In such a directory, nobody puts away what belongs to root.
        is_shared = stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)
        if is_written and not is_link and not is_shared:
            return Writable(here, "others may write it (mode %04o, group %d)" % (stat.S_IMODE(mode), status.st_gid))
        if not is_link:
            shared = here if is_written else ""
    return None


def _steps(root: str, path: str) -> Iterator[str]:
    """Every directory and link on the way from a root to a path, and what is at its end."""
    yield root
    here, links = root, 0
    left = path.split("/")[::-1]
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = root if here == root else os.path.dirname(here)
            continue
        here = os.path.join(here, name)
        yield here
        if os.path.islink(here) and links < _MOST_LINKS:
            links += 1
            target = os.readlink(here)
            here = root if os.path.isabs(target) else os.path.dirname(here)
            left += target.split("/")[::-1]
