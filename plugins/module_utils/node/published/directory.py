# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files in /run/kubenode/cpus: a directory for each pod, in which is a file for each of its containers.

A pod that has its directory mounted for writing may put anything into it.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import Iterator

from ...errors import NodeError, RefusedError
from ...files import cannot_write
from ...tree import Tree
from ...untrusted import DIRECTORY, put_file, read_file

PLACE = "/run/kubenode/cpus"

_END = ".json"
# Everybody may read what a container's CPUs are, and no secret is in it.
_OPEN, _READABLE = 0o755, 0o644
# No file of ours is longer.
_MOST = 1 << 18


class Directory:
    """The open directory; opened() makes one. Its methods raise NodeError."""

    def __init__(self, place: str, descriptor: int) -> None:
        self.place = place
        self._descriptor = descriptor

    def pods(self) -> list[str]:
        """The names of the pods' directories."""
        return os.listdir(self._descriptor)

    def read(self, pod: str) -> dict[str, bytes]:
        """{container: the content of its file}, empty for what is no file. What a killed run has left is removed."""
        try:
            directory = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise cannot_write("%s/%s" % (self.place, pod), error) from error
        try:
            found = {}
            for name in os.listdir(directory):
                if name.endswith(_END):
                    found[name[: -len(_END)]] = _content(directory, name)
                else:
                    with suppress(OSError):
                        os.unlink(name, dir_fd=directory)
            return found
        finally:
            os.close(directory)

    def write(self, pod: str, container: str, content: bytes) -> None:
        """Put a container's file in place of the one before."""
        name = container + _END
        try:
            directory = self._made(pod)
            try:
                put_file(directory, name, content, _READABLE)
            finally:
                os.close(directory)
        except OSError as error:
            raise cannot_write("%s/%s/%s" % (self.place, pod, name), error) from error

    def _made(self, pod: str) -> int:
        """A descriptor of a pod's directory, which is made if need be. Raises OSError."""
        with suppress(FileExistsError):
            os.mkdir(pod, _OPEN, dir_fd=self._descriptor)
            made = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
            os.fchmod(made, _OPEN)
            return made
        return os.open(pod, DIRECTORY, dir_fd=self._descriptor)

    def remove(self, pod: str, container: str) -> None:
        """Remove a container's file. The pod keeps its directory, which it may have mounted."""
        try:
            directory = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
            try:
                os.unlink(container + _END, dir_fd=directory)
            finally:
                os.close(directory)
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_write("%s/%s/%s%s" % (self.place, pod, container, _END), error) from error

    def remove_pod(self, pod: str) -> None:
        """Remove the directory of a pod that has ended, and the files in it."""
        try:
            if not stat.S_ISDIR(os.stat(pod, dir_fd=self._descriptor, follow_symlinks=False).st_mode):
                os.unlink(pod, dir_fd=self._descriptor)
                return
            directory = os.open(pod, DIRECTORY, dir_fd=self._descriptor)
            try:
                for name in os.listdir(directory):
                    # A directory is none of ours; the next call says that it is in the way.
                    with suppress(IsADirectoryError, PermissionError):
                        os.unlink(name, dir_fd=directory)
            finally:
                os.close(directory)
            os.rmdir(pod, dir_fd=self._descriptor)
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_write("%s/%s" % (self.place, pod), error) from error


@contextmanager
def opened(tree: Tree) -> Iterator[Directory]:
    """The directory, made if need be.

    Raises NodeError, RefusedError for one that somebody else could have put there.
    """
    place = tree.path(PLACE)
    try:
        _make(place)
        descriptor = os.open(place, DIRECTORY)
    except OSError as error:
        raise cannot_write(place, error) from error
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RefusedError(
                "belongs to another user, or others may write it; nothing was written",
                where=place,
                remedy="remove it: the next pass makes it anew",
            )
        yield Directory(place, descriptor)
    finally:
        os.close(descriptor)


def _make(place: str) -> None:
    for directory in (os.path.dirname(os.path.dirname(place)), os.path.dirname(place), place):
        with suppress(FileExistsError):
            os.mkdir(directory, _OPEN)
            os.chmod(directory, _OPEN)


def _content(directory: int, name: str) -> bytes:
    try:
        return read_file(directory, name, _MOST)
    except (NodeError, OSError):
        return b""
