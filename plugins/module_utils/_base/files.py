# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replace and remove files so that a reader, or a killed run, sees the old or the new content, never half; several at
once, under a lock, and found out beforehand whether they can be written.

A new file's directories are made here, too, so that neither is lost in a power cut.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
import time
from contextlib import suppress
from typing import Callable, Container, Iterable, NamedTuple, Sequence

from .errors import PERMISSION, CPUManagerError, InputError, NodeError, RefusedError, option
from .tree import ACLS, Tree, fault_of, not_obeyed, own_ids

# The number counts the backups of a file: a clock may be set back, and then the newest has not the latest time.
_BACKUP = re.compile(r"(?P<name>.+)\.(?P<stamp>\d{8}T\d{6}Z)(?:\.(?P<number>[1-9]\d{0,8}))?~", re.ASCII | re.DOTALL)
_MODE_ABOVE, _MODE_OF_ROOTS = 0o755, 0o700
_NOT_PERMITTED = "write it as root (become: true)"
_IN_ITS_PLACE = "a file is in the place of its directory: name another one, or move that file, and run again"
_REMEDIES = {
    errno.EACCES: _NOT_PERMITTED,
    errno.EPERM: _NOT_PERMITTED,
    errno.ENOSPC: "make room on its file system (df, df -i), and run again",
    errno.EDQUOT: "make room in the quota of its owner, and run again",
    errno.EROFS: "mount its file system for writing, and run again",
    errno.ENOENT: "make its directory, and run again",
    errno.EEXIST: _IN_ITS_PLACE,
    errno.ENOTDIR: _IN_ITS_PLACE,
    errno.EBUSY: "something is mounted in its place: unmount that, and run again",
}


def replace_file(
    path: str,
    content: bytes,
    mode: int,
    expected: bytes | None = None,
    backup: bool = True,
    keep_mode: bool = True,
    owner: tuple[int, int] | None = None,
) -> str | None:
    """Write `content` to `path` atomically; give the path of the backup that was made, if any.

    An existing file's owner and extended attributes (SELinux) are kept, and with keep_mode its mode, too; `mode` is
    for a new one. `owner` (user and group id) is for either.
    `expected` is what was read there before (None: nothing): when somebody changed or made the file since, nothing is
    written. A new file is made exclusively: of two runs one makes it. Only on a file system without hard links a file
    that comes within the last system call but one is overwritten.
    Raises RefusedError for what is there and was not expected, or is not a regular file; NodeError when writing fails.
    """
    path = os.path.realpath(path)

    def put(temporary: str) -> None:
        _checked(path, expected)
        if expected is not None:
            os.rename(temporary, path)
        elif not _name_anew(temporary, path):
            raise _changed(path)

    def act(before: os.stat_result | None) -> None:
        if before is None:
            _write(path, content, mode, owner, put)
        else:
            kept = stat.S_IMODE(before.st_mode) if keep_mode else mode
            _write(path, content, kept, owner or (before.st_uid, before.st_gid), put)

    return _change(path, expected, backup, act)


def put_file(path: str, content: bytes, mode: int) -> None:
    """Write `content` to `path` atomically, in place of whatever file is there. No link in its place is followed.

    Raises RefusedError for a link, a directory or a device there; NodeError when writing fails.
    """
    directory, name = os.path.split(os.path.abspath(path))
    try:
        above = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Whatever takes the directory's place meanwhile.
            here = "/proc/self/fd/%d/%s" % (above, name)
            remove_strays(here, None)
            if os.path.lexists(here) and not stat.S_ISREG(os.lstat(here).st_mode):
                raise not_regular(path)
            _write(here, content, mode, None, lambda temporary: os.rename(temporary, here))
            os.fsync(above)
        finally:
            os.close(above)
    except OSError as error:
        raise cannot_write(path, error) from error


def remove_file(path: str, expected: bytes, backup: bool = True) -> str | None:
    """Remove `path`, which held `expected`; give the path of the backup, if one was made. Raises as replace_file()."""
    path = os.path.abspath(path)

    def act(_before: os.stat_result | None) -> None:
        _checked(path, expected)
        try:
            os.unlink(path)
        except FileNotFoundError:
            raise _vanished(path) from None

    return _change(path, expected, backup, act)


def keep_copy(directory: str, path: str, content: bytes) -> str:
    """Write a backup of a file, whose content this is, into another directory; give its path. Raises NodeError."""
    copied = os.path.join(directory, os.path.basename(path))
    try:
        backup = _back_up(copied, content, os.stat(path))
    except OSError as error:
        raise cannot_write(copied, error) from error
    _sync_directory(backup)
    return backup


def remove_old_backups(backup: str, keep: int) -> None:
    """Remove the backups of a file but for the newest `keep`, among them `backup`, which was just made; 0 leaves all.

    A backup is a regular file with a name as replace_file() gives it, which belongs to the owner of `backup` or to the
    user of this process. One that cannot be removed stays, as the change of the file is done.
    """
    directory, newest = os.path.split(backup)
    made = _BACKUP.fullmatch(newest)
    if not keep or made is None:
        return
    found = []
    with suppress(OSError):
        owners = {os.geteuid(), os.lstat(backup).st_uid}
        found = [old for old in _backups(directory, made["name"], owners) if old[-1] != newest]
    for _number, _stamp, name in found[: max(0, len(found) - keep + 1)]:
        with suppress(OSError):
            os.unlink(os.path.join(directory, name))


def make_directory(directory: str, mode: int = 0o755) -> list[str]:
    """Make a directory, and those above it that are missing; give those that were made, each before those in it.

    mode: of the directory itself; those above it get 0755. Each is on the disk in the one above before anything can be
    written into it. Raises NodeError, and takes back what it has made.
    """
    missing: list[str] = []
    while not os.path.lexists(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory):
        what = "cannot be made: %s" % os.strerror(errno.ENOTDIR)
        raise NodeError(what, where=[directory, *missing][-1], remedy="put %s out of the way" % directory)
    made: list[str] = []
    try:
        for path in reversed(missing):
            with suppress(FileExistsError):  # another run has made it meanwhile
                os.mkdir(path, mode if path == missing[0] else _MODE_ABOVE)
                made.append(path)
            _sync_directory(path)
    except (OSError, NodeError) as error:
        remove_directories(made)
        if isinstance(error, NodeError):
            raise
        raise NodeError("cannot be made: %s" % error.strerror, where=path, remedy=remedy_for(error)) from error
    return made


def make_roots_directory(tree: Tree, path: str) -> list[str]:
    """Make a directory of a node that root alone may write; give those that were made, as make_directory() does.

    One that is there, and that others may write, becomes root's as long as nothing is in it: of what is in it, nobody
    knows who wrote it. Raises RefusedError for such a one, and NodeError.
    """
    here = tree.path(path)
    try:
        made = make_directory(here, _MODE_OF_ROOTS)
    except NodeError as error:
        # It is missing only before the first change.
        raise error.adding("nothing was changed") from error
    fault = fault_of(tree, path)
    if fault is None:
        return made
    if fault.path == os.path.realpath(here) and not os.listdir(here):
        try:
            _take_over(fault.path)
        except OSError as error:
            raise cannot_write(here, error, "nothing was changed") from error
        # Something may have come while it was still theirs.
        if not os.listdir(here):
            return made
    raise not_obeyed(fault, here)


def _take_over(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(descriptor, *own_ids())
        for acl in ACLS:
            with suppress(OSError):  # there is none
                os.removexattr(descriptor, acl)
        os.fchmod(descriptor, _MODE_OF_ROOTS)
    finally:
        os.close(descriptor)


def remove_directories(made: Sequence[str]) -> None:
    """Remove those that make_directory() has made, as far as nothing is in them."""
    for path in reversed(made):
        with suppress(OSError):
            os.rmdir(path)


def _backups(directory: str, of: str, owners: Container[int]) -> list[tuple[int, str, str]]:
    """Return the backups of a file that belong to one of these users, the oldest first: (number, time, name)."""
    found = []
    for name in os.listdir(directory):
        backup = _BACKUP.fullmatch(name)
        if backup is not None and backup["name"] == of:
            with suppress(FileNotFoundError):  # another run has removed it meanwhile
                status = os.lstat(os.path.join(directory, name))
                if stat.S_ISREG(status.st_mode) and status.st_uid in owners:
                    found.append((int(backup["number"] or 1), backup["stamp"], name))
    return sorted(found)


def cannot_write(path: str, error: OSError, state: str = "nothing was written") -> NodeError:
    """Return what a failed write of `path` is told as; `state` says what is there now."""
    kind = PERMISSION if isinstance(error, PermissionError) else ""
    return NodeError("; ".join(["cannot be written: %s" % error.strerror, state]), path, remedy_for(error), kind)


def remedy_for(error: OSError) -> str:
    """Return what to do about an error of the operating system."""
    return _REMEDIES.get(error.errno or 0, "look into the node's kernel log (dmesg), and run again")


def not_regular(path: str) -> RefusedError:
    """Return what is said of a directory, a link or a device in a file's place."""
    return RefusedError("is not a regular file; nothing was written", where=path, remedy="put it out of the way first")


def _change(
    path: str, expected: bytes | None, backup: bool, act: Callable[[os.stat_result | None], None]
) -> str | None:
    """Check and back up what is there, then act; give the path of the backup. A failure leaves everything as it was.

    `act` checks again: backing up and writing take their time, and meanwhile others may come.
    """
    backup_path = None
    try:
        before = _checked(path, expected)
        remove_strays(path, before)
        if backup and expected is not None and before is not None:
            backup_path = _back_up(path, expected, before)
        act(before)
    except (OSError, RefusedError) as error:
        if backup_path is not None:
            with suppress(OSError):
                os.unlink(backup_path)
        if isinstance(error, RefusedError):
            raise
        state = "nothing was written" if expected is None else "the old content is still there"
        raise cannot_write(path, error, state) from error
    _sync_directory(path)
    return backup_path


def _checked(path: str, expected: bytes | None) -> os.stat_result | None:
    """Return the file's status (None: no such file), when it is a regular file that still holds what was read there."""
    try:
        before = os.lstat(path)
        if not stat.S_ISREG(before.st_mode):
            raise not_regular(path)
        content = _read(path, len(expected or b"") + 1)
        after = os.lstat(path)
    except FileNotFoundError:
        if expected is not None:
            raise _vanished(path) from None
        return None
    # What was read may have been another file, or have changed since: only now it is known that it is this one.
    if content != expected or _version(after) != _version(before):
        raise _changed(path)
    return before


def _read(path: str, most: int) -> bytes:
    # O_NONBLOCK: what has come into the file's place just now may be a FIFO.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        chunks: list[bytes] = []
        while most > 0 and (not chunks or chunks[-1]):
            chunks.append(os.read(descriptor, min(most, 1 << 16)))
            most -= len(chunks[-1])
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def _version(status: os.stat_result) -> tuple[int, ...]:
    """Return what is another one when somebody replaces or changes a file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _changed(path: str) -> RefusedError:
    return RefusedError("was changed while it was worked on; nothing was written", where=path, remedy="run again")


def _vanished(path: str) -> RefusedError:
    return RefusedError("vanished while it was worked on; nothing was written", where=path, remedy="run again")


def _back_up(path: str, content: bytes, status: os.stat_result) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    directory, name = os.path.split(path)
    before = _backups(directory, name, {os.geteuid(), status.st_uid})
    last = before[-1][0] if before else 0
    backup_path = ""

    def put(temporary: str) -> None:
        nonlocal backup_path
        number = last
        while not backup_path:
            number += 1
            free = "%s.%s%s~" % (path, stamp, ".%d" % number if number > 1 else "")
            if _name_anew(temporary, free):
                backup_path = free

    _write(path, content, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), put)
    return backup_path


def _name_anew(temporary: str, path: str) -> bool:
    """Give a file this name, unless there is something of this name: false. A rename would overwrite it."""
    try:
        os.link(temporary, path)
    except OSError:
        if os.path.lexists(path):
            return False
        os.rename(temporary, path)  # a file system without hard links
        return True
    try:
        os.unlink(temporary)
    except OSError:
        os.unlink(path)
        raise
    return True


def _write(
    path: str,
    content: bytes,
    mode: int,
    owner: tuple[int, int] | None,
    put: Callable[[str], None],
) -> None:
    """Write a file beside `path`, with the attributes of that, if it exists; `put` gives it its name.

    Owner and mode are set before it has its name: nobody can put another file in its place and have that one given.
    """
    descriptor, temporary = _temporary_file(path)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        if owner is not None:
            here = os.fstat(descriptor)
            if owner != (here.st_uid, here.st_gid):
                os.fchown(descriptor, *owner)
        _copy_attributes(path, descriptor)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
        put(temporary)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        # Not before it has its name: it ends the lock. All is on the disk, so an error here says nothing.
        with suppress(OSError):
            os.close(descriptor)


def _temporary_file(path: str) -> tuple[int, str]:
    """Return a new file beside `path`, and locked as long as it is open, which tells it from what a killed run left.

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


def remove_strays(path: str, before: os.stat_result | None) -> None:
    """Remove the temporary files for `path` that killed runs left: those that nobody has locked."""
    # A run may have been killed after it had given its file to the owner of the one to be replaced.
    owners = {os.geteuid()} if before is None else {os.geteuid(), before.st_uid}
    directory, prefix = os.path.split(_temporary_prefix(path))
    for name in os.listdir(directory):
        if not (name.startswith(prefix) and re.fullmatch("[0-9a-f]{16}", name[len(prefix) :])):
            continue
        stray = os.path.join(directory, name)
        with suppress(OSError):
            descriptor = os.open(stray, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISREG(status.st_mode) and status.st_uid in owners:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(stray)
            finally:
                os.close(descriptor)


def _copy_attributes(path: str, descriptor: int) -> None:
    try:
        names = os.listxattr(path)
    except OSError:  # a new file, or a file system without them
        return
    for name in names:
        try:
            os.setxattr(descriptor, name, os.getxattr(path, name))
        except OSError as error:  # most likely one that only the kernel sets
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise


def _sync_directory(path: str) -> None:
    """Write the directory of a file to the disk; without this, a power cut may bring the old content back. Raises
    NodeError."""
    try:
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NodeError(
            "is changed, but perhaps not after a power cut: its directory cannot be synchronized: %s" % error.strerror,
            where=path,
            remedy=remedy_for(error),
        ) from error


# Whether files could be written, found out before anything is: a probe that changes nothing.


# Room for what a change adds to a file.
_GROWTH = 4096

# FS_IOC_GETFLAGS, and its bits, as on x86 and ARM of 64 bits. Source: include/uapi/linux/fs.h in Linux.
_GET_FLAGS = 0x80086601
_FLAGS = {0x10: ("immutable", "i"), 0x20: ("append-only", "a")}


def unwritable(tree: Tree, paths: Iterable[str]) -> list[CPUManagerError]:
    """Return why files of a node cannot be replaced with a backup: one error for each of `paths` for which that is
    so."""
    reasons = (_why_not_on_node(tree, path) for path in paths)
    return [reason for reason in reasons if reason is not None]


def _why_not_on_node(tree: Tree, path: str) -> CPUManagerError | None:
    try:
        here = tree.path(path)
    except CPUManagerError as error:
        return error
    size = 0
    with suppress(OSError):
        size = os.stat(here).st_size
    return why_not_writable(here, (size, size + _GROWTH))


def why_not_writable(path: str, sizes: Sequence[int] = ()) -> CPUManagerError | None:
    """Return why the file `path` cannot be made, replaced or removed; None where nothing is known that prevents it.

    sizes: of the files that are written on the way, in bytes: the new content and the backup. A missing directory is
    no obstacle, where it could be made.
    """
    path = os.path.realpath(path)
    try:
        return _why_not(path, sizes)
    except OSError as error:
        return cannot_write(path, error)


def _why_not(path: str, sizes: Sequence[int]) -> CPUManagerError | None:
    status = None
    with suppress(FileNotFoundError):
        status = os.lstat(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        return not_regular(path)
    directory = os.path.dirname(path)
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory):
        return _os_error(path, errno.ENOTDIR)
    space = os.statvfs(directory)
    if space.f_flag & os.ST_RDONLY:
        return _os_error(path, errno.EROFS)
    for place in (path, directory) if status is not None else (directory,):
        flag = _flag(place)
        if flag is not None:
            name, letter = flag
            return NodeError(
                "cannot be written: %s is %s; nothing was written" % (place, name),
                where=path,
                remedy="run chattr -%s %s" % (letter, place),
            )
    user = os.geteuid()
    # The owner of a file is kept, which takes root where it is another.
    if not os.access(directory, os.W_OK | os.X_OK) or (user and status is not None and status.st_uid != user):
        return _os_error(path, errno.EACCES)
    return None if _has_room(space, sizes) else _os_error(path, errno.ENOSPC)


def _has_room(space: os.statvfs_result, sizes: Sequence[int]) -> bool:
    """Return some file systems count no blocks or no files, and say 0 in all."""
    blocks = sum(-(-size // space.f_frsize) for size in sizes)
    free, files = (space.f_bfree, space.f_ffree) if os.geteuid() == 0 else (space.f_bavail, space.f_favail)
    return (not space.f_blocks or blocks <= free) and (not space.f_files or len(sizes) <= files)


def _flag(path: str) -> tuple[str, str] | None:
    """Return the attribute that protects a file or directory even from root, with its letter; None where none is
    seen."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            flags = int.from_bytes(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))[:4], sys.byteorder)
        finally:
            os.close(descriptor)
        return next((names for bit, names in _FLAGS.items() if flags & bit), None)
    return None


def _os_error(path: str, number: int) -> NodeError:
    return cannot_write(path, OSError(number, os.strerror(number)))


# Wait for a lock that programs agree on: flock(2) on a directory.


# Whoever may open the directory may hold the lock.
PATIENCE = 10.0
# How a directory is opened, whose descriptor holds the lock until it is closed.
OPENED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PAUSE = 0.05

Sleep = Callable[[float], None]


def take_lock(directory: int, here: str, exclusive: bool, patience: float, sleep: Sleep = time.sleep) -> None:
    """Lock an open directory; here: its path, for messages. exclusive: for changes, otherwise for reading alone.

    Raises NodeError where a different process holds it for longer than `patience` seconds.
    """
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(directory, kind | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                raise NodeError("cannot be locked: %s" % error.strerror, here) from error
        if time.monotonic() >= end:
            raise NodeError(
                "a different process has held its lock (flock) for %g seconds" % patience,
                where=here,
                remedy="look for that process in /proc/locks, and run again",
                kind="locked",
            )
        sleep(_PAUSE)


# Change several files, all or none.


class FileChange(NamedTuple):
    """A file, by its path here, and its content before (None: there is none) and after (None: it is removed).

    mode: that of a new file, and where it is not kept, of any.
    """

    path: str
    before: bytes | None
    after: bytes | None
    mode: int
    keep_mode: bool = True


def check_changes(changes: Sequence[FileChange], backup: bool, keep: int) -> None:
    """Check what can be known before anything is written. Raises InputError; NodeError or RefusedError of the first
    file."""
    if keep < 0:
        raise InputError(
            "%d is not a number of files" % keep, where=option("backup_keep"), remedy="give 0 to keep all, or more"
        )
    for change in changes:
        contents = [change.before if backup else None, change.after]
        error = why_not_writable(change.path, [len(content) for content in contents if content is not None])
        if error is not None:
            raise error


def make_changes(changes: Sequence[FileChange], backup: bool, keep: int) -> dict[str, str]:
    """Make the changes that check_changes() has checked; give the paths of the backups by those of the files.

    Where one fails, those before it are put back, and their backups removed; directories are made where they are
    missing. Of each file's backups the newest `keep` stay, 0: all. Raises as replace_file() does.
    """
    done: list[_Done] = []
    made: list[str] = []
    try:
        for change in changes:
            made += make_directory(os.path.dirname(change.path))
            status = None
            with suppress(OSError):
                status = os.stat(change.path)
            done.append(_Done(change, status, _make(change, backup)))
    except CPUManagerError as error:
        lost = [str(failure) for step in reversed(done) for failure in _put_back(step)]
        remove_directories(made)
        if lost:
            both = NodeError(
                "; ".join([error.problem, *lost]), remedy="put back by hand what was changed, from its backup (*~)"
            )
            both.where = error.where
            raise both from error
        raise
    backups = {step.change.path: step.backup for step in done if step.backup is not None}
    for path in backups.values():
        remove_old_backups(path, keep)
    return backups


class _Done(NamedTuple):
    """A change that was made, the status of the file before it, and its backup."""

    change: FileChange
    status: os.stat_result | None
    backup: str | None


def _make(change: FileChange, backup: bool) -> str | None:
    if change.after is not None:
        return replace_file(change.path, change.after, change.mode, change.before, backup, change.keep_mode)
    return None if change.before is None else remove_file(change.path, change.before, backup)


def _put_back(done: _Done) -> list[CPUManagerError]:
    """Take one change back, and remove its backup; give what went wrong."""
    change, status, backup = done
    try:
        if change.before is not None and status is not None:
            replace_file(
                change.path,
                change.before,
                stat.S_IMODE(status.st_mode),
                change.after,
                backup=False,
                keep_mode=False,
                owner=(status.st_uid, status.st_gid),
            )
        elif change.after is not None:
            remove_file(os.path.realpath(change.path), change.after, backup=False)
        if backup is not None and change.before is not None:
            remove_file(backup, change.before, backup=False)
    except CPUManagerError as error:
        return [error]
    return []
