# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file format of a Linux initrd: cpio, in its "newc" form."""

from __future__ import annotations

import stat
from typing import Mapping, NamedTuple

_MAGIC = "070701"
# Of what the kernel reads, sizes and names are padded to this.
_ALIGNMENT = 4
_BLOCK = 512


class File(NamedTuple):
    """A file in an archive."""

    data: bytes
    executable: bool = False


def archive(files: Mapping[str, File], directories: tuple[str, ...] = ()) -> bytes:
    """Return an archive of these files, with the directories that they are in, and further ones."""
    needed = {*directories, *files}
    parents = {path[:end] for path in needed for end, letter in enumerate(path) if letter == "/"}
    entries = [_entry(path, b"", stat.S_IFDIR | 0o755) for path in sorted(parents | set(directories))]
    entries += [
        _entry(path, file.data, stat.S_IFREG | (0o755 if file.executable else 0o644)) for path, file in files.items()
    ]
    return _padded(b"".join([*entries, _entry("TRAILER!!!", b"", 0)]), _BLOCK)


def _entry(path: str, data: bytes, mode: int) -> bytes:
    name = path.encode() + b"\0"
    # inode, mode, owner, group, links, time; size; 2 times a device's 2 numbers; length of the name, checksum
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
    head = (_MAGIC + "".join("%08X" % number for number in numbers)).encode()
    return _padded(head + name, _ALIGNMENT) + _padded(data, _ALIGNMENT)


def _padded(data: bytes, size: int) -> bytes:
    return data + b"\0" * (-len(data) % size)
