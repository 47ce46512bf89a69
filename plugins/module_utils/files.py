# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replace and remove files so that a reader, or a killed run, sees the old or the new content, never half."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from contextlib import suppress
from typing import Callable

from .errors import NodeError, RefusedError


def replace_file(
    path: str, content: bytes, mode: int, expected: bytes | None = None, backup: bool = True
) -> str | None:
    """Write `content` to `path` atomically; give the path of the backup that was made, if any.

    An existing file's mode, owner and extended attributes (SELinux) are kept; `mode` is for a new one.
    `expected` is what was read there before (None: nothing): when somebody changed the file since, nothing is
    written. Raises RefusedError for that and for what is not a regular file, NodeError when writing fails.
    """
    path = os.path.realpath(path)
    return _change(path, expected, backup, lambda before: _write(path, content, mode, before))


def remove_file(path: str, expected: bytes, backup: bool = True) -> str | None:
    """Remove `path`, which held `expected`; give the path of the backup, if one was made. Raises as replace_file()."""
    path = os.path.abspath(path)
    return _change(path, expected, backup, lambda _before: os.unlink(path))


def _change(
    path: str, expected: bytes | None, backup: bool, act: Callable[[os.stat_result | None], None]
) -> str | None:
    """Check and back up what is there, then act; give the path of the backup. A failure leaves everything as it was."""
    backup_path = None
    try:
        before = _checked(path, expected)
        _remove_strays(path)
        if backup and expected is not None and before is not None:
            backup_path = _back_up(path, expected, before)
        act(before)
    except OSError as error:
        if backup_path is not None:
            with suppress(OSError):
                os.unlink(backup_path)
        remedy = "; write it as root (become: true)" if isinstance(error, PermissionError) else ""
        raise NodeError(
            "%s: cannot be written: %s; the old content is still there%s" % (path, error.strerror, remedy)
        ) from error
    _sync_directory(path)
    return backup_path


def _checked(path: str, expected: bytes | None) -> os.stat_result | None:
    """The file's status (None: no such file), when it is a regular file that still holds what was read there."""
    try:
        before = os.lstat(path)
    except FileNotFoundError:
        if expected is not None:
            raise RefusedError("%s: vanished while it was worked on; nothing was written, run again" % path) from None
        return None
    if not stat.S_ISREG(before.st_mode):
        raise RefusedError("%s: is not a regular file; nothing was written, put it out of the way first" % path)
    with open(path, "rb") as file:
        if file.read() != expected:
            raise RefusedError("%s: was changed while it was worked on; nothing was written, run again" % path)
    return before


def _back_up(path: str, content: bytes, status: os.stat_result) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = backup_path = "%s.%s~" % (path, stamp)
    number = 1
    while os.path.lexists(backup_path):
        number += 1
        backup_path = "%s.%d~" % (name[:-1], number)
    _write(backup_path, content, stat.S_IMODE(status.st_mode), status, original=path)
    return backup_path


def _write(path: str, content: bytes, mode: int, like: os.stat_result | None, original: str | None = None) -> None:
    """Write a file; `original` is the one that it is a copy of."""
    descriptor, temporary = _temporary_file(original or path)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        if like is not None:
            here = os.fstat(descriptor)
            if (like.st_uid, like.st_gid) != (here.st_uid, here.st_gid):
                os.fchown(descriptor, like.st_uid, like.st_gid)
            mode = stat.S_IMODE(like.st_mode)
            _copy_attributes(original or path, descriptor)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        # Not before the renaming: it ends the lock. All is on the disk, so an error here says nothing.
        with suppress(OSError):
            os.close(descriptor)


def _temporary_file(path: str) -> tuple[int, str]:
    """A new file beside `path`, and locked as long as it is open, which tells it from what a killed run left.

    In the same directory, because only inside a file system a rename is atomic.
    """
    while True:
        temporary = "%s%s" % (_temporary_prefix(path), os.urandom(8).hex())
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with suppress(OSError):  # a file system without locks: there no run removes the file of another
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Another run may have taken it for a stray before it was locked.
        if os.path.lexists(temporary):
            return descriptor, temporary
        os.close(descriptor)


def _temporary_prefix(path: str) -> str:
    # Unlike the kubelet's own, whose names are a "." and digits.
    return os.path.join(os.path.dirname(path), ".%s.kubenode-" % os.path.basename(path))


def _remove_strays(path: str) -> None:
    """Remove the temporary files for `path` that killed runs left: those that nobody has locked."""
    directory, prefix = os.path.split(_temporary_prefix(path))
    for name in os.listdir(directory):
        if not (name.startswith(prefix) and re.fullmatch("[0-9a-f]{16}", name[len(prefix) :])):
            continue
        stray = os.path.join(directory, name)
        with suppress(OSError):
            descriptor = os.open(stray, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(stray)
            finally:
                os.close(descriptor)


def _copy_attributes(path: str, descriptor: int) -> None:
    with suppress(OSError):  # a file system without them
        for name in os.listxattr(path):
            with suppress(OSError):  # one that only the kernel sets
                os.setxattr(descriptor, name, os.getxattr(path, name))


def _sync_directory(path: str) -> None:
    """Without this, a power cut may bring the old content back. Raises NodeError."""
    try:
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NodeError(
            "%s: is changed, but perhaps not after a power cut: its directory cannot be synchronized: %s"
            % (path, error.strerror)
        ) from error
