# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A saved node in an archive, unpacked into a private directory that is removed when the process ends.

An archive may come from anybody. Regular files, directories and links that stay inside are unpacked, and all else is
refused. Source: tar(5), the formats ustar and pax, and the long names of GNU tar.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import zlib
from contextlib import suppress
from gzip import GzipFile
from typing import IO, Iterator, Mapping, NamedTuple

from .errors import InputError, NodeError, RefusedError, option

MOST_MEMBERS = 100000
MOST_BYTES = 512 << 20
# Of one file, as of those that are read on a node.
LARGEST = 16 << 20
# Of a name that a member of its own gives; no path of a node is as long.
_LONGEST_NAME = 1024
_LONGEST_EXTENSION = 1 << 16
# Of a line of it, in digits.
_LONGEST_LENGTH = 7
# Of directories in one another.
_DEEPEST = 100

_BLOCK = 512
_FILES, _DIRECTORY, _LINK = (b"0", b"\0", b"7"), b"5", b"2"
_EXTENSION, _FOR_ALL, _LONG_NAME, _LONG_TARGET = b"x", b"g", b"L", b"K"
_KINDS = {b"1": "a hard link", b"3": "a device", b"4": "a device", b"6": "a named pipe", b"S": "a sparse file"}

_NO_TAR = "is no archive of tar, or is damaged"
_SAVE_AGAIN = "save the node again, copy the archive again, or give a directory with the files of a node"


class Header(NamedTuple):
    """What stands before a member: its path with "/" between names, its size in bytes, and the time of its change in
    seconds since the epoch. is_fixed: whether its owner may not write it."""

    path: str
    kind: bytes
    size: int
    changed: float
    target: str
    is_fixed: bool = False


class Archive:
    """An archive that is unpacked.

    Attributes:
        path: the archive.
        directory: what was in it.

    Raises InputError for a path that is not absolute, NodeError for an archive that is damaged or cut off, and
    RefusedError for one with something else in it than files, directories and links that stay inside. Then nothing of
    it is left.
    """

    def __init__(self, path: str) -> None:
        if not os.path.isabs(path):
            raise InputError("%r is not an absolute path" % path, where=option("root"), remedy="begin it with a /")
        self.path = path
        self.directory = os.path.realpath(tempfile.mkdtemp(prefix="kubenode-saved-"))
        # A node without a host name is called as its directory.
        self._name = os.path.basename(self.directory)
        atexit.register(self.remove)
        try:
            with open(path, "rb") as file:
                _Unpacker(path, file, self.directory).unpack()
        except OSError as error:
            self.remove()
            what = "cannot be unpacked: %s" % (error.strerror or error)
            raise NodeError(what, self._where(), "look at the file, and for room in the directory TMPDIR") from error
        except BaseException:
            self.remove()
            raise

    def _where(self) -> str:
        return "%s %s" % (option("root"), self.path)

    def remove(self) -> None:
        """Remove what was unpacked. It may be called again."""
        shutil.rmtree(self.directory, ignore_errors=True)
        atexit.unregister(self.remove)

    def named(self, value: object) -> object:
        """Return plain data in which paths of the directory are named as the archive's: ARCHIVE:/path/on/the/node."""
        if isinstance(value, str):
            if self._name not in value:
                return value
            value = value.replace(self.directory + "/", self.path + ":/").replace(self.directory, self.path)
            return value.replace(self._name, os.path.basename(self.path))
        if isinstance(value, Mapping):
            return {self.named(key): self.named(item) for key, item in value.items()}
        return [self.named(item) for item in value] if isinstance(value, (list, tuple)) else value

    def read_only(self) -> RefusedError:
        """Return what is said of a change in it."""
        return RefusedError(
            "an archive is read-only, and something in it would change; nothing was written",
            self._where(),
            "unpack it into a directory and give that, or run in check mode",
            "read_only",
        )


def unpacked(path: str) -> Archive:
    """Return the archive at this path. Raises as Archive() does."""
    return Archive(path)


class _Unpacker:
    def __init__(self, path: str, file: IO[bytes], directory: str) -> None:
        self.where = "%s %s" % (option("root"), path)
        self.stream = GzipFile(fileobj=file, mode="rb")
        self.directory = directory
        self.taken = 0
        # {path: whether it is a directory}, of all that was unpacked, and the links, which come last: so nothing is
        # ever written through one.
        self.found: dict[str, bool] = {"": True}
        self.links: dict[str, str] = {}

    def unpack(self) -> None:
        changed: dict[str, float] = {}
        for number, header in enumerate(self._headers(), 1):
            if number > MOST_MEMBERS:
                raise self._refused("has more than %d files" % MOST_MEMBERS)
            self._claim(header.path, header.kind == _DIRECTORY)
            if header.kind == _LINK:
                self.links[header.path] = self._target(header)
                continue
            if header.kind in _FILES:
                self._write(header)
            changed[header.path] = header.changed
        for path, target in self.links.items():
            os.symlink(target, self._here(path))
        # Those within a directory first: they change its own time.
        for path in sorted(changed, reverse=True):
            with suppress(OSError, OverflowError, ValueError):
                os.utime(self._here(path), (changed[path], changed[path]))

    # --- members -----------------------------------------------------------------------------------------

    def _claim(self, path: str, is_directory: bool) -> None:
        """Take a place for a member, and make the directories above it. Raises RefusedError for one that is taken."""
        if path in self.found:
            if is_directory and self.found[path]:
                return
            raise self._refused("has %r twice" % path)
        above = path.rpartition("/")[0]
        if above not in self.found:
            self._claim(above, True)
        if not self.found[above]:
            raise self._refused("has %r, which is no directory, and something in it" % above)
        self.found[path] = is_directory
        if len(self.found) > MOST_MEMBERS:
            raise self._refused("has more than %d files and directories" % MOST_MEMBERS)
        if is_directory:
            os.mkdir(self._here(path), 0o700)

    def _here(self, path: str) -> str:
        return "%s/%s" % (self.directory, path)

    def _write(self, header: Header) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._here(header.path), flags, 0o400 if header.is_fixed else 0o600)
        try:
            left = header.size
            while left:
                chunk = self._take(min(left, 1 << 16))
                left -= len(chunk)
                view = memoryview(chunk)
                while view:
                    view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
        self._take(-header.size % _BLOCK)

    def _target(self, header: Header) -> str:
        """Return where a link leads. It may go up first, and then only down: so it stays inside whatever other links
        do."""
        names = header.target.split("/")
        depth = header.path.count("/")
        ups = next((at for at, name in enumerate(names) if name != ".."), len(names))
        if header.target.startswith("/") or not header.target or ups > depth or ".." in names[ups:]:
            raise self._refused("has a link that may lead out of it, %r to %r" % (header.path, header.target))
        return header.target

    # --- headers -----------------------------------------------------------------------------------------

    def _headers(self) -> Iterator[Header]:
        """Yield the members in their order. What is in a file is to be taken before the next one."""
        extended: dict[str, str] = {}
        extensions = 0
        while True:
            block = self._take(_BLOCK)
            if not any(block):
                break
            self._check_sum(block)
            kind, size = block[156:157], self._number(block[124:136])
            if kind in (_EXTENSION, _FOR_ALL, _LONG_NAME, _LONG_TARGET):
                extensions += 1
                if extensions > 2 * MOST_MEMBERS or size > _LONGEST_EXTENSION:
                    raise self._refused("has a description that is too long")
                extended.update(self._extension(kind, self._padded(size)))
                continue
            yield self._header(block, kind, size, extended)
            extended = {}
        # The end of the compressed data has its checksum.
        while self._take_some(1 << 16):
            pass

    def _header(self, block: bytes, kind: bytes, size: int, extended: Mapping[str, str]) -> Header:
        name = _text(block[:100])
        if block[257:263] == b"ustar\0" and block[345]:
            name = "%s/%s" % (_text(block[345:500]), name)
        name = extended.get("path", name)
        if kind in _FILES and name.endswith("/"):
            kind = _DIRECTORY  # as tar wrote it before there was a sign for it
        path = self._path(name)
        if any(key.startswith("GNU.sparse") for key in extended) or kind not in (*_FILES, _DIRECTORY, _LINK):
            what = _KINDS.get(kind, "something that is no file") if kind not in _FILES else "a sparse file"
            raise self._refused("has %s, %r" % (what, name))
        if "size" in extended:
            size = int(extended["size"]) if _is_number(extended["size"]) else -1
        if size < 0 or (size and kind not in _FILES):
            raise self._damaged("gives no size that can be, of %r" % name)
        if size > LARGEST:
            raise self._refused("has a file that is longer than %d bytes, %r" % (LARGEST, name))
        if not path and kind != _DIRECTORY:
            raise self._refused("has a file without a name")
        target = extended.get("linkpath", _text(block[157:257]))
        if "\0" in target or len(target) > _LONGEST_NAME:
            raise self._refused("has a link that may lead out of it, %r" % name)
        changed = float(self._number(block[136:148]))
        with suppress(ValueError):
            changed = float(extended.get("mtime", changed))
        # Of a file of the kernel's this says whether it can be set.
        is_fixed = kind in _FILES and not self._number(block[100:108]) & stat.S_IWUSR
        return Header(path, kind, size, changed, target, is_fixed)

    def _path(self, name: str) -> str:
        """Return the path of a member inside. Raises RefusedError for one that is none."""
        if name.startswith("/") or "\0" in name or len(name) > _LONGEST_NAME:
            raise self._refused("has a file with a path that is not inside of it, %r" % name[:200])
        names = [part for part in name.split("/") if part not in ("", ".")]
        if ".." in names or len(names) > _DEEPEST:
            raise self._refused("has a file with a path that is not inside of it, %r" % name[:200])
        return "/".join(names)

    def _extension(self, kind: bytes, content: bytes) -> dict[str, str]:
        """Return what a member of its own says of the next one. What is said of all members counts for none here."""
        if kind == _FOR_ALL:
            return {}
        if kind != _EXTENSION:
            return {"path" if kind == _LONG_NAME else "linkpath": _text(content)}
        found = {}
        start = 0
        while start < len(content):
            blank = max(start, content.find(b" ", start, start + _LONGEST_LENGTH + 1))
            length = content[start:blank]
            end = start + int(length) if length.isdigit() else start
            key, equals, value = content[blank + 1 : end].partition(b"=")
            if not equals or not value.endswith(b"\n") or end > len(content):
                raise self._damaged("has a description that cannot be read")
            found[_decoded(key)] = _decoded(value[:-1])
            start = end
        return found

    def _check_sum(self, block: bytes) -> None:
        if self._number(block[148:156]) != sum(block[:148]) + 8 * ord(" ") + sum(block[156:]):
            raise self._damaged(_NO_TAR)

    def _number(self, field: bytes) -> int:
        digits = field.strip(b" \0")
        if any(digit not in b"01234567" for digit in digits):
            raise self._damaged(_NO_TAR)
        return int(digits or b"0", 8)

    # --- bytes -------------------------------------------------------------------------------------------

    def _padded(self, size: int) -> bytes:
        content = self._take(size)
        self._take(-size % _BLOCK)
        return content

    def _take(self, size: int) -> bytes:
        """Return the next `size` bytes. Raises NodeError where there are less."""
        content = b""
        while len(content) < size:
            chunk = self._take_some(size - len(content))
            if not chunk:
                raise self._damaged("is cut off")
            content += chunk
        return content

    def _take_some(self, size: int) -> bytes:
        try:
            content = self.stream.read(size)
        except EOFError as error:
            raise self._damaged("is cut off") from error
        except (OSError, zlib.error) as error:
            # An error of the system has a number, and one of the data has none.
            if isinstance(error, OSError) and error.errno:
                raise
            raise self._damaged("is no archive of tar that is compressed with gzip, or is damaged") from error
        self.taken += len(content)
        if self.taken > MOST_BYTES:
            raise self._refused("is longer than %d MB when unpacked" % (MOST_BYTES >> 20))
        return content

    def _refused(self, what: str) -> RefusedError:
        return RefusedError(
            "%s; nothing of it was read" % what, self.where, "give an archive that node_save has written"
        )

    def _damaged(self, what: str) -> NodeError:
        return NodeError(what, self.where, _SAVE_AGAIN)


def _text(field: bytes) -> str:
    return _decoded(field.partition(b"\0")[0])


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 13
