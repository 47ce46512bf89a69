# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Collects files of a node, and makes the archive of them that archive.py reads. No link is followed out of the tree.

The same files give the same archive, byte by byte.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import tarfile
import zlib
from contextlib import suppress
from typing import Any, Callable, Iterable, NamedTuple

from .._base.archive import MOST_BYTES, MOST_MEMBERS
from .._base.errors import NodeError
from .._base.tree import LARGEST, Tree, read_at_most
from .._kubelet.redaction import UnsafeError

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
# The kernel's own files.
_OF_KERNEL = ("/proc/", "/sys/")
# A path that leads to nothing, and is no loss.
_NOTHING = (errno.ENOENT, errno.ENOTDIR)
# What a link to nothing leads to: no file is called so.
_NOWHERE = ".kubenode-nowhere"

# A change of a file's content; None to leave the file out. It may raise UnsafeError.
Change = Callable[[bytes], "bytes | None"]


class ArchiveMember(NamedTuple):
    """A file of these bytes, or a link, or else a directory; `changed` is its time, in seconds since the epoch.

    is_fixed: whether its owner may not write it.
    """

    changed: float
    content: bytes | None = None
    target: str | None = None
    is_fixed: bool = False


class Collector:
    """The files of a node that are to be saved.

    Attributes:
        members: by the path on the node, without links above it.
        left_out: why something that is there is not among them, by path.
        redacted: the paths of the files of which not all is among them.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.members: dict[str, ArchiveMember] = {}
        self.left_out: dict[str, str] = {}
        self.redacted: set[str] = set()
        # Where directories really are; None for those that are not there.
        self._directories: dict[str, str | None] = {"": ""}

    def add(self, path: str, content: bytes, changed: float = 0.0) -> None:
        """Add a file of this content."""
        self.members[path] = ArchiveMember(changed, content)

    def file(self, path: str, change: Change | None = None) -> bytes | None:
        """Save a regular file; give what is in it on the node, None where there is none. A directory is one as such.

        change: what is to be saved of the content.
        """
        place = self.place(path)
        if place is None:
            return None
        here = self._here(place)
        try:
            descriptor = os.open(here, _READ)
            try:
                status = os.fstat(descriptor)
                if stat.S_ISDIR(status.st_mode):
                    self.members.setdefault(place, ArchiveMember(status.st_mtime))
                    return None
                content = read_at_most(descriptor, LARGEST) if stat.S_ISREG(status.st_mode) else None
            finally:
                os.close(descriptor)
        except OSError as error:
            self.left_out[path] = error.strerror or str(error)
            return None
        if content is None:
            self.left_out[path] = "it is no regular file, or longer than %d MB" % (LARGEST >> 20)
            return None
        # Of other files, whether a copy can be written says nothing.
        is_fixed = place.startswith(_OF_KERNEL) and not status.st_mode & stat.S_IWUSR
        self._save(path, place, ArchiveMember(status.st_mtime, content, is_fixed=is_fixed), change)
        return content

    def _save(self, path: str, place: str, member: ArchiveMember, change: Change | None) -> None:
        content = member.content or b""
        try:
            kept = content if change is None else change(content)
        except UnsafeError as error:
            self.left_out[path] = "it may hold what is to be left out, and cannot be told apart: %s" % error
            return
        if kept is None:
            return
        if kept != content:
            self.redacted.add(path)
        self.members[place] = member._replace(content=kept)

    def mark(self, path: str) -> bool:
        """Save that there is something, without its content; give whether there is."""
        place = self.place(path)
        if place is None:
            return False
        try:
            status = os.lstat(self._here(place))
        except OSError as error:
            self.left_out[path] = error.strerror or str(error)
            return False
        is_directory = stat.S_ISDIR(status.st_mode)
        self.members.setdefault(place, ArchiveMember(status.st_mtime, None if is_directory else b""))
        return True

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, in their order; none where there is none."""
        place = self.place(path)
        if place is None:
            return []
        try:
            return sorted(os.listdir(self._here(place)))
        except OSError as error:
            if error.errno not in _NOTHING:
                self.left_out[path] = error.strerror or str(error)
            return []

    def directories(self, path: str) -> list[str]:
        """Return the paths of a directory and of all directories below it, no link followed; each is saved as such."""
        place = self.place(path)
        found: list[str] = []
        waiting = [] if place is None else [place]
        while waiting:
            place = waiting.pop()
            self.mark(place)
            found.append(place)
            self._check_size()
            with suppress(OSError), os.scandir(self._here(place)) as entries:
                waiting += ["%s/%s" % (place, entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)]
        return sorted(found)

    # --- places ------------------------------------------------------------------------------------------

    def _here(self, place: str) -> str:
        return self.tree.root.rstrip("/") + place or "/"

    def place(self, path: str) -> str | None:
        """Return where on the node a path leads, past all links, which are saved; None where there is nothing, or it
        is out of the tree."""
        above, _slash, name = os.path.normpath(path).rpartition("/")
        unknown, directory = [], above
        while directory not in self._directories:
            unknown.append(directory)
            directory = directory.rpartition("/")[0]
        for directory in reversed(unknown):
            self._directories[directory] = self._place(*directory.rpartition("/")[::2])
        return self._place(above, name)

    def _place(self, above: str, name: str) -> str | None:
        """Return where a name in a directory that was looked for leads; None as of place()."""
        directory, path = self._directories[above], "%s/%s" % (above, name)
        if directory is None or not name:
            return directory
        place = "%s/%s" % (directory, name)
        try:
            status = os.lstat(self._here(place))
        except (OSError, ValueError) as error:
            if not isinstance(error, OSError) or error.errno not in _NOTHING:
                self.left_out[path] = str(getattr(error, "strerror", error))
            return None
        self._check_size()
        return self._end_of_link(path, place, status.st_mtime) if stat.S_ISLNK(status.st_mode) else place

    def new_place(self, path: str) -> str:
        """Return where on the node a path leads, or would, if there were something."""
        above, missing = os.path.normpath(path), ""
        while above:
            place = self.place(above)
            if place:
                return place + missing
            above, _slash, name = above.rpartition("/")
            missing = "/%s%s" % (name, missing)
        return missing

    def _end_of_link(self, path: str, place: str, changed: float) -> str | None:
        root = os.path.realpath(self.tree.root).rstrip("/")
        end = os.path.realpath(self._here(place))
        if root and end != root and not end.startswith(root + "/"):
            self.left_out[path] = "it is a link out of the node's files"
            return None
        name = os.path.basename(place)
        try:
            os.stat(self._here(place))
        except OSError as error:
            # It leads to nothing, or to itself, and so it does in the archive.
            self.members[place] = ArchiveMember(changed, None, name if error.errno == errno.ELOOP else name + _NOWHERE)
            return None
        end = end[len(root) :] or "/"
        self.members[place] = ArchiveMember(changed, None, os.path.relpath(end, os.path.dirname(place)))
        return self.place(end)

    def _check_size(self) -> None:
        if len(self.members) > MOST_MEMBERS // 2:
            raise NodeError("has more files than can be saved", self.tree.root, "remove cgroups that nobody needs")

    # --- the archive -------------------------------------------------------------------------------------

    def archive(self, first: tuple[str, bytes]) -> bytes:
        """Return the archive. first: a path and its content, which come before all others. Raises NodeError."""
        path, content = first
        # A link may lead to the root itself, which is no member.
        found = sorted(item for item in self.members.items() if item[0])
        members = [(path, ArchiveMember(0.0, content)), *found]
        if sum(len(member.content or b"") + 2048 for _path, member in members) > MOST_BYTES:
            raise NodeError("has longer files than can be saved", self.tree.root)
        return _compressed(_blocks(members))


def _blocks(members: Iterable[tuple[str, ArchiveMember]]) -> Iterable[bytes]:
    for path, member in members:
        info = tarfile.TarInfo(path.lstrip("/"))
        info.mode = 0o400 if member.is_fixed else 0o600
        # A file of the kernel's has no time that means anything.
        info.mtime = _time(0 if path.startswith(_OF_KERNEL) else member.changed)
        if member.target is not None:
            info.type, info.linkname = tarfile.SYMTYPE, member.target
        elif member.content is None:
            info.type, info.mode = tarfile.DIRTYPE, 0o700
        else:
            info.size = len(member.content)
        yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        if member.content:
            yield member.content + bytes(-len(member.content) % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _time(moment: float) -> Any:
    """Return a fraction of a second takes a header of its own."""
    return int(moment) if moment == int(moment) else moment


def _compressed(blocks: Iterable[bytes]) -> bytes:
    """Return data in the format of gzip, without a time in it."""
    packed = io.BytesIO()
    compressor = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for block in blocks:
        packed.write(compressor.compress(block))
    packed.write(compressor.flush())
    return packed.getvalue()
