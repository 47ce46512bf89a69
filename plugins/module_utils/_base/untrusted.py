# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files in directories that others may write, such as a pod, or the user of a service.

They can put anything there under any name, at any moment. So no link of theirs is followed, a file is only ever
replaced by a rename without a look at what was there, and only a regular file is opened.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import Iterator

from .errors import NodeError, RefusedError
from .tree import MOST_LINKS, why_others_write

# A directory in which no link is followed.
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# Of figures, readable to node_exporter.
FIGURES_MODE = 0o644

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_file(path: str, content: bytes, mode: int) -> None:
    """Put a file in place of whatever is at this absolute path. Raises NodeError, RefusedError as open_directory()."""
    directory, name = os.path.split(path)
    try:
        with opened_directory(directory) as descriptor:
            put_file(descriptor, name, content, mode)
    except OSError as error:
        # Imported here: who looks at files of others writes none.
        from .files import cannot_write

        raise cannot_write(path, error, "what was there is still there") from error


@contextmanager
def opened_directory(path: str) -> Iterator[int]:
    """Yield a descriptor of the directory at this absolute path.

    A link on the way is followed only where nobody but root and the user of this process can have put it.
    Raises OSError; RefusedError for another link.
    """
    at = os.open("/", DIRECTORY)
    try:
        links = 0
        names = _names(path)
        while names:
            name = names.pop()
            try:
                inner = os.open(name, DIRECTORY, dir_fd=at)
            except OSError as error:
                target = _target(at, name, path, error)
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from error
                names += _names(target)
                if not target.startswith("/"):
                    continue
                inner = os.open("/", DIRECTORY)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)


@contextmanager
def opened_below(root: str, path: str) -> Iterator[int]:
    """Yield a descriptor of the directory at a path below `root`, such as that of a container. It is only to look at.

    No link is followed but `root` itself: those of a container lead elsewhere for it than for who looks from outside.
    Raises OSError.
    """
    at = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in filter(None, path.split("/")):
            inner = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)


def _names(path: str) -> list[str]:
    """Return the names in a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name]


def _target(directory: int, name: str, path: str, error: OSError) -> str:
    """Return where a link leads that could not be opened as a directory. Raises `error` for all else."""
    try:
        target = os.readlink(name, dir_fd=directory)
    except OSError:
        raise error from None
    if why_others_write(directory, os.fstat(directory)):
        raise RefusedError(
            "the link %r on the way there stands in a directory that others may write, and is not followed;"
            " nothing was written" % name,
            where=path,
            remedy="put a directory in its place, or name the one to which it leads",
        )
    return target


def put_file(directory: int, name: str, content: bytes, mode: int) -> None:
    """Put a file in place of whatever has this name in an open directory. Raises OSError.

    What a run that was killed has left here, the next one replaces. It is not written through to the disk: such
    files are written again and again.
    """
    new = ".%s.kubenode-new" % name
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=directory)
    descriptor = os.open(new, _WRITE, 0o600, dir_fd=directory)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fchmod(descriptor, mode)
        os.rename(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(new, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)


def read_file(directory: int, name: str, most: int) -> bytes:
    """Return up to `most` bytes of a regular file in an open directory. Raises OSError; NodeError for what is no such
    file.

    It is looked at before it is opened: to open a device can do something by itself. What was looked at is opened, not
    what has this name by then.
    """
    look = os.open(name, _LOOK, dir_fd=directory)
    try:
        if not stat.S_ISREG(os.fstat(look).st_mode):
            raise NodeError("is not a regular file", where=name)
        descriptor = os.open("/proc/self/fd/%d" % look, _READ)
        try:
            return os.read(descriptor, most)
        finally:
            os.close(descriptor)
    finally:
        os.close(look)
