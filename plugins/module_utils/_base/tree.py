# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of one node below a root, so that a saved machine is read by the same code as a live one; and who may write
them.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from typing import Container, Iterator, Mapping, NamedTuple, Sequence

from .errors import PERMISSION, TOO_LONG, InputError, NodeError, RefusedError, option

# What node_save writes down beside a saved node's files: what a live node says that is in none of them.
SAID = "/kubenode-saved.json"
# Where the kernel's resctrl is mounted, and the type of its file system.
RESCTRL, RESCTRL_TYPE = "/sys/fs/resctrl", "resctrl"
# How the groups begin of the library goresctrl, which container runtimes and plugins of NRI use.
GORESCTRL = "goresctrl."

_SAVE_AGAIN = "save the node's files again"
# What a path that leads to nothing is answered with. Any other error says nothing of what is there.
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ESRCH, errno.ENODEV, errno.ENXIO)
# In bytes, more than any file has that is read here whole: /proc/interrupts of 1,024 CPUs has 6 MB.
LARGEST = 16 << 20
# The same of a kubelet's configuration, flags and state: of 1,000 containers on 1,024 CPUs, a checkpoint has 236 kB.
LARGEST_OF_KUBELET = 1 << 20
# Linux takes no longer path, wherever it leads.
_LONGEST_PATH = 4096
# Of a number of 64 bits. int() of a text of many is slow and, since Python 3.11, refused.
_MOST_DIGITS = 20
# O_NONBLOCK: the open of a FIFO in a regular file's place must not wait for a writer.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class Tree:
    """A directory that holds a node's files: "/" on the node itself, any other for a saved one.

    Paths are given as they are on the node ("/sys/devices/..."). A path that a symbolic link would lead
    out of the tree is refused, so that work on a saved machine can never touch the one it is done on.
    """

    def __init__(self, root: str = "/") -> None:
        if not os.path.isabs(root):
            raise InputError("%r is not an absolute path" % root, where=option("root"), remedy="begin it with a /")
        self.root = os.path.normpath(root)
        if not os.path.isdir(self.root):
            raise InputError(
                "no such directory",
                where="%s %s" % (option("root"), root),
                remedy="give the directory that holds the node's /sys and /etc",
            )
        # Why nothing can be written here, whatever is wanted.
        self.refusal: RefusedError | None = None
        self._live = self.root == "/"
        self._real_root = os.path.realpath(self.root)
        # Directories of which it is known; looking for links takes longer than reading a file.
        self._inside = {self.root}

    @property
    def live(self) -> bool:
        """True when this is the running machine itself."""
        return self._live

    def path(self, path: str) -> str:
        """Return where the node's `path` is here. Raises RefusedError when a link leads out of the tree."""
        here = self._place(path)
        if not self._live:
            self._check_link(here)
        return here

    def _place(self, path: str) -> str:
        """Return what path() returns, but what is there may be a link that leads out."""
        if "\0" in path or not path.isascii():
            _check_text(path)
        if self._live:
            return path
        here = self.root + os.path.normpath("/" + path.lstrip("/"))
        directory = os.path.dirname(here)
        if directory not in self._inside and len(here) < _LONGEST_PATH:
            self._check_directory(directory)
        return here

    def node_path(self, here: str) -> str:
        """Return what path() made `here` of."""
        return here if self._live else here[len(self.root) :]

    def _check_directory(self, here: str) -> None:
        unknown = []
        while here not in self._inside:
            unknown.append(here)
            here = os.path.dirname(here)
        for directory in reversed(unknown):
            self._check_link(directory)
            self._inside.add(directory)

    def _check_link(self, here: str) -> None:
        """Check that a link does not lead out of this tree: what is in a directory of the tree is in it, too, unless
        it is a link."""
        if not os.path.islink(here):
            return
        real = os.path.realpath(here)
        if os.path.commonpath((real, self._real_root)) != self._real_root:
            raise RefusedError(
                "leads out of %s, to %s; this link is not followed" % (self.root, real),
                where=here,
                remedy="put what it leads to in its place",
            )

    def _open(self, here: str) -> int:
        if not self._live:
            try:
                return os.open(here, _READ | os.O_NOFOLLOW)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
            # It is a link, as hardly any file is: asking first would take as long as reading.
            self._check_link(here)
        return os.open(here, _READ)

    def damaged(self, path: str, what: str) -> NodeError:
        """Return what to say of a file whose content is wrong."""
        return NodeError(what, self.path(path), "" if self._live else _SAVE_AGAIN)

    def _unreadable(self, here: str, error: OSError) -> NodeError:
        what = "cannot be read: %s" % error.strerror
        if isinstance(error, PermissionError):
            return NodeError(what, here, "read it as root (become: true)", PERMISSION)
        return NodeError(what, here, "" if self._live else _SAVE_AGAIN)

    def exists(self, path: str, follow: bool = True) -> bool:
        """Return True when there is something at `path`; unless `follow`, also a link to nothing.

        Raises NodeError when that cannot be seen, which is not the same as that there is nothing.
        """
        here = self.path(path)
        try:
            os.stat(here, follow_symlinks=follow)
        except OSError as error:
            if error.errno not in _NOTHING:
                raise self._unreadable(here, error) from error
            return False
        return True

    def read_bytes(self, path: str, most: int = LARGEST) -> bytes:
        """Return the content of a regular file of at most so many bytes.

        Raises NodeError, which names the file, when it cannot be read, and when it is longer.
        """
        here = self._place(path)
        try:
            descriptor = self._open(here)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise NodeError("is not a regular file", here, "put it out of the way")
                content = read_at_most(descriptor, most)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._unreadable(here, error) from error
        if content is None:
            raise too_long(here, most)
        return content

    def content(self, path: str, most: int = LARGEST) -> bytes | None:
        """Return the content of a regular file; None where there is nothing. Raises NodeError as read_bytes() does."""
        return self.read_bytes(path, most) if self.exists(path, follow=False) else None

    def read_text(self, path: str, most: int = LARGEST) -> str:
        """Return the content of a UTF-8 text file. Raises NodeError as read_bytes() does."""
        try:
            return self.read_bytes(path, most).decode("utf-8")
        except UnicodeDecodeError as error:
            raise NodeError(
                "is not UTF-8 text (byte %d)" % error.start, where=self.path(path), remedy="write it in UTF-8"
            ) from error

    def read_value(self, path: str) -> str | None:
        """Return the one line of a file in /sys or /proc without its end, or None when there is no such file."""
        here = self._place(path)
        try:
            descriptor = self._open(here)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(here, error) from error
        try:
            # The kernel's longest line here, a mask of 8,192 CPUs, has 2,304 bytes; a list can be longer.
            return os.read(descriptor, 1 << 16).decode("ascii", "replace").strip("\0\n ")
        except OSError as error:
            # The kernel answers so for what a machine has no value for, as an offline node's distance.
            raise self._unreadable(here, error) from error
        finally:
            os.close(descriptor)

    def names(self, path: str) -> list[str]:
        """Return the sorted names in a directory; none when there is no such directory."""
        here = self.path(path)
        try:
            return sorted(os.listdir(here))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self._unreadable(here, error) from error

    def files_below(self, path: str) -> list[str]:
        """Return the paths of all files in a directory and those below it, as Go's filepath.WalkDir visits them."""
        found: list[str] = []
        # The last one comes next.
        waiting = [path]
        while waiting:
            inner = waiting.pop()
            if inner == path or self._is_directory(inner):
                waiting += ["%s/%s" % (inner.rstrip("/"), name) for name in reversed(self.names(inner))]
            else:
                found.append(inner)
        return found

    def _is_directory(self, path: str) -> bool:
        """Return whether there is a directory, and no link to one."""
        here = self.path(path)
        return os.path.isdir(here) and not os.path.islink(here)

    def numbered(self, path: str, prefix: str) -> list[int]:
        """Return the numbers N, ascending, of the entries `prefix`N in a directory."""
        start = len(prefix)
        names = (name[start:] for name in self.names(path) if name.startswith(prefix))
        return sorted(int(name) for name in names if is_number(name))


class OverlaidTree(Tree):
    """A tree in which some files are other than on the disk: what a plan will have done.

    contents: {path on the node: its content, or None where there is no such file}.
    """

    def __init__(self, tree: Tree, contents: Mapping[str, bytes | None]) -> None:
        super().__init__(tree.root)
        below: Mapping[str, bytes | None] = tree.contents if isinstance(tree, OverlaidTree) else {}
        self.contents: dict[str, bytes | None] = {
            **below,
            **{os.path.normpath(path): content for path, content in contents.items()},
        }

    def exists(self, path: str, follow: bool = True) -> bool:
        here = os.path.normpath(path)
        if here in self.contents:
            return self.contents[here] is not None
        return super().exists(path, follow) or any(
            content is not None and name.startswith(here.rstrip("/") + "/") for name, content in self.contents.items()
        )

    def read_bytes(self, path: str, most: int = LARGEST) -> bytes:
        here = os.path.normpath(path)
        if here not in self.contents:
            return super().read_bytes(path, most)
        content = self.contents[here]
        if content is None:
            raise self._unreadable(self.path(path), FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
        return content

    def names(self, path: str) -> list[str]:
        here = os.path.normpath(path)
        found = set(super().names(path))
        inside = here.rstrip("/") + "/"
        found.update(
            name[len(inside) :].partition("/")[0]
            for name, content in self.contents.items()
            if content is not None and name.startswith(inside)
        )
        return sorted(name for name in found if self.contents.get(inside + name, b"") is not None)

    def _is_directory(self, path: str) -> bool:
        here = os.path.normpath(path)
        if here in self.contents:
            return False
        inside = here.rstrip("/") + "/"
        is_made = any(content is not None and name.startswith(inside) for name, content in self.contents.items())
        return is_made or super()._is_directory(path)


def is_number(text: str) -> bool:
    """Return whether a text is a number as the kernel writes one. str.isdigit() also takes what int() refuses, such
    as "²"."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def read_at_most(descriptor: int, most: int) -> bytes | None:
    """Return what is left in an open file; None where it is more than so many bytes. Raises OSError.

    Nothing but reading says how long a file is: those of the kernel have the size 0, and others grow.
    """
    chunks: list[bytes] = []
    left = most + 1
    while left:
        chunk = os.read(descriptor, min(left, 1 << 16))
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        left -= len(chunk)
    return None


def too_long(here: str, most: int) -> NodeError:
    """Return what to say of a file with more bytes than that."""
    return NodeError("is longer than %d bytes, as no such file is" % most, here, "put it out of the way", TOO_LONG)


def _check_text(path: str) -> None:
    """Raise NodeError for a text that the system takes for no path at all."""
    try:
        if b"\0" not in os.fsencode(path):
            return
    except UnicodeEncodeError:
        pass
    raise NodeError("is not a path on Linux, as it cannot be written as bytes without NUL", where=repr(path))


def node_name(tree: Tree) -> str:
    """Return what a message calls the node: its host name, or for a saved tree without one the directory's name."""
    try:
        name = tree.read_value("/etc/hostname")
    except (NodeError, RefusedError):
        name = None
    return name or (os.uname().nodename if tree.live else os.path.basename(tree.root))


# Whether others than root, and the user of this process, may write a file or a directory above it: root obeys and
# executes nothing else.
#
# Its source: acl(5), include/uapi/linux/posix_acl.h and posix_acl_xattr.h in Linux.


_ROOT = 0
# As many links as Linux follows in one path.
MOST_LINKS = 40
# The kind of the errors about what others may write.
OTHERS_WRITE = "others_write"
# What makes a file root's alone.
TO_ROOT = "chown root:root, chmod go-w, setfacl -b"
# Of a file or directory, and what a directory gives to what is made in it.
ACLS = ("system.posix_acl_access", "system.posix_acl_default")
# Behind the version, entries of a tag, permissions and an id.
_ACL_HEAD, _ACL_ENTRY = 4, "<HHI"
_ACL_USER, _ACL_OWNING_GROUP, _ACL_GROUP, _ACL_MASK, _ACL_OTHERS = 0x02, 0x04, 0x08, 0x10, 0x20
_ACL_WRITES = 2


class Writable(NamedTuple):
    """A directory, link or file, by its path here, and why others than root may put something there."""

    path: str
    why: str

    def refusal(self, risk: str, remedy: str) -> RefusedError:
        """Return why what is there is not used. risk: what would come of it."""
        return RefusedError("%s, and %s" % (self.why, risk), self.path, remedy, OTHERS_WRITE)


def not_obeyed(fault: Writable, here: str) -> RefusedError:
    """Return why root does not go by a file, by its path here, or by what is in a directory."""
    return fault.refusal(
        "root would do what they write into %s; nothing was changed" % here,
        "look at what is there: if it is as this collection wrote it, give it and what is in it to root (%s), or move"
        " it away, and run again" % TO_ROOT,
    )


def fault_of(tree: Tree, path: str, with_file: bool = True) -> Writable | None:
    """Return the first on the way to a path of a node that others may write; None for none, and where nothing is.

    Of a saved node, who has it counts as root does. with_file: whether the file at its end is looked at, too.
    """
    owner = os.stat(tree.root).st_uid
    shared = ""
    for here in steps(tree.root, path):
        try:
            status = os.lstat(here)
        except OSError:
            # Where everybody may make a file of this name, somebody will.
            return Writable(shared, "everybody may make files there") if shared else None
        mode, is_link = status.st_mode, stat.S_ISLNK(status.st_mode)
        if not with_file and not is_link and not stat.S_ISDIR(mode):
            return None
        is_foreign = not is_owned(status, (owner,))
        why = why_others_write(here, status, (owner,)) if is_foreign or not is_link else ""
        # In such a directory, nobody puts away what belongs to root.
        is_shared = stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)
        if why and (is_foreign or not is_shared):
            return Writable(here, why)
        if not is_link:
            shared = here if why else ""
    return None


def steps(root: str, path: str) -> Iterator[str]:
    """Yield every directory and link on the way from a root to a path, and what is at its end."""
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
        if os.path.islink(here) and links < MOST_LINKS:
            links += 1
            target = os.readlink(here)
            here = root if os.path.isabs(target) else os.path.dirname(here)
            left += target.split("/")[::-1]


def own_ids() -> tuple[int, int]:
    """Return to which user and group belongs what is obeyed or executed: root; on a saved node, which anybody may
    have, who writes."""
    return (_ROOT, _ROOT) if os.geteuid() == _ROOT else (os.geteuid(), os.getegid())


def is_owned(status: os.stat_result, owners: Sequence[int] = ()) -> bool:
    """Return whether a file belongs to root, to the user of this process, or to one of these users."""
    return status.st_uid in (_ROOT, os.geteuid(), *owners)


def why_others_write(at: int | str, status: os.stat_result, owners: Sequence[int] = ()) -> str:
    """Return why others may write a file or directory that has this status; empty where they may not.

    at: its path or an open descriptor, where its access control lists are read. owners: users who count as root does.
    """
    if not is_owned(status, owners):
        return "it belongs to user %d" % status.st_uid
    user, mode = os.geteuid(), status.st_mode
    groups = {_ROOT} if user == _ROOT else {_ROOT, os.getegid()}
    lists = [_acl(at, name) for name in ACLS[: 1 + stat.S_ISDIR(mode)]]
    # Where there is a list, the bits of the group are its mask.
    group_writes = mode & stat.S_IWGRP and status.st_gid not in groups and not lists[0]
    if mode & stat.S_IWOTH or group_writes:
        return "others may write it (mode %04o, group %d)" % (stat.S_IMODE(mode), status.st_gid)
    trusted = {_ACL_USER: {_ROOT, user, *owners}, _ACL_GROUP: groups}
    if any(_acl_lets_others_write(acl, trusted, status.st_gid in groups) for acl in lists):
        return "others may write it by an access control list (look with getfacl)"
    return ""


def _acl(at: int | str, name: str) -> bytes:
    """Return an access control list; empty where there is none, as on file systems that have none."""
    try:
        return os.getxattr(at, name)
    except OSError:
        return b""


def _acl_lets_others_write(acl: bytes, trusted: Mapping[int, Container[int]], is_group_trusted: bool) -> bool:
    """Return whether others may write by a list. trusted: {tag: the ids that are no others}."""
    try:
        entries = list(struct.iter_unpack(_ACL_ENTRY, acl[_ACL_HEAD:]))
    except struct.error:
        return True
    mask = next((bits for tag, bits, _id in entries if tag == _ACL_MASK), _ACL_WRITES)
    for tag, bits, number in entries:
        is_trusted = is_group_trusted if tag == _ACL_OWNING_GROUP else number in trusted.get(tag, (number,))
        if bits & _ACL_WRITES and (tag == _ACL_OTHERS or (bits & mask & _ACL_WRITES and not is_trusted)):
            return True
    return False
