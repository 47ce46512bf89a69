# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cgroups of one node, as far as their cpusets go, and where they are mounted.

Source: Linux's Documentation/admin-guide/cgroup-v1/cpusets.rst and cgroup-v2.rst.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from functools import lru_cache
from typing import Callable, Iterable, Iterator, Mapping, NamedTuple

from .._base.errors import PERMISSION, InputError, NodeError, RefusedError
from .._base.tree import LARGEST, Tree, read_at_most, too_long
from ..cpuset import CPUSet

# Where a node has the hierarchy of cgroups with a controller: cpuset, or one of the others, which may be elsewhere.


CPUSET, CPU, CPUACCT, MEMORY = "cpuset", "cpu", "cpuacct", "memory"
CPUS = "cpuset.cpus"

# By controller: the file by which v1 shows it.
_V1_FILES = {CPUSET: CPUS, CPU: "cpu.shares", CPUACCT: "cpuacct.usage", MEMORY: "memory.limit_in_bytes"}

_USUAL = "/sys/fs/cgroup"
_V1_PLACES = {
    CPUSET: (_USUAL + "/cpuset",),
    CPU: (_USUAL + "/cpu,cpuacct", _USUAL + "/cpu"),
    CPUACCT: (_USUAL + "/cpu,cpuacct", _USUAL + "/cpuacct"),
    MEMORY: (_USUAL + "/memory",),
}
_V2_PLACES = (_USUAL, _USUAL + "/unified")
# The second is what the first leads to, but a saved tree may have only one.
_MOUNTS = ("/proc/mounts", "/proc/self/mounts")


def find_controller(tree: Tree, controller: str = CPUSET) -> tuple[int, str]:
    """Return the version and the mount of the hierarchy with a controller, which is in one only. Raises NodeError."""
    mounts = mounted(tree, controller)
    places: Mapping[int, Iterable[str]] = {1: _V1_PLACES[controller], 2: _V2_PLACES} if mounts is None else mounts
    has_controller: dict[int, Callable[[str], bool]] = {
        1: lambda place: tree.exists("%s/%s" % (place, _V1_FILES[controller])),
        2: lambda place: controller in (tree.read_value(place + "/cgroup.controllers") or "").split(),
    }
    for version, candidates in places.items():
        for place in candidates:
            if has_controller[version](place):
                return version, place
    raise NodeError(
        "no %s controller in either version of cgroups" % controller,
        where=tree.path(_USUAL),
        remedy="is this a node's root directory, with its /sys, and has its kernel %s?"
        % ("cpusets" if controller == CPUSET else "the controller"),
    )


def mounted(tree: Tree, controller: str) -> dict[int, list[str]] | None:
    """Return {version: where its hierarchies are mounted}: of v1 those with the controller, of v2 all; the usual places
    first.

    None where the node has no list of mounts.
    """
    return next((_mounts(tree, path, controller) for path in _MOUNTS if tree.exists(path)), None)


def _mounts(tree: Tree, path: str, controller: str) -> dict[int, list[str]]:
    """Return mounts as mounted() gives them, of one list of mounts."""
    found: dict[int, list[str]] = {1: [], 2: []}
    for line in tree.read_bytes(path).decode("utf-8", "surrogateescape").splitlines():
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        place, kind, options = unescaped(fields[1]), fields[2], fields[3].split(",")
        # With noprefix, the files have other names.
        if kind == "cgroup" and controller in options and "noprefix" not in options:
            found[1].append(place)
        elif kind == "cgroup2":
            found[2].append(place)
    for places in found.values():
        places.sort(key=lambda place: not place.startswith(_USUAL))
    return found


def unescaped(text: str) -> str:
    """Return a mount point as the kernel escapes it: blanks and backslashes as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


# The path of the topmost cgroup.
ROOT = ""

MEMS = "cpuset.mems"

_ONLINE = "/sys/devices/system/cpu/online"

# By version and file: the file with the value that the kernel enforces.
EFFECTIVE = {
    (1, CPUS): "cpuset.effective_cpus",
    (1, MEMS): "cpuset.effective_mems",
    (2, CPUS): "cpuset.cpus.effective",
    (2, MEMS): "cpuset.mems.effective",
}
# Kernels before 4.0 do not have that of v1, where a cgroup's own set is always the effective one.
_HOLDS = {1: CPUS, 2: EFFECTIVE[2, CPUS]}
_PARTITION, _VALID = "cpuset.cpus.partition", ("isolated", "root")
_PROCESSES = "cgroup.procs"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Below it, a container may make cgroups in cgroups without end. On v2, they prevent no write above them.
_DEEPEST = 64
_GONE = (errno.ENOENT, errno.ENODEV)


class Cgroup(NamedTuple):
    """What one cgroup's files say. `path` is relative to the hierarchy."""

    path: str
    # None: v2 has no such file in the topmost cgroup, nor where the controller is not enabled.
    cpus: CPUSet | None
    effective_cpus: CPUSet
    mems: CPUSet | None
    effective_mems: CPUSet
    # In this cgroup itself.
    has_processes: bool
    # In it or, which only v2 shows, below it.
    populated: bool
    # v1 only.
    cpu_exclusive: bool = False
    mem_exclusive: bool = False
    # v2 only: "member", "root", "isolated", "root invalid (...)"; empty where the kernel has none.
    partition: str = ""

    def is_partition(self) -> bool:
        """Return whether its CPUs are, or would be, its own alone."""
        return self.partition not in ("", "member")

    def is_valid_partition(self) -> bool:
        """Return whether its CPUs are its own alone."""
        return self.partition in _VALID


class Hierarchy:
    """The hierarchy of cgroups that has the cpuset controller, or another one; then only its paths are of use.

    Attributes:
        version: 1 or 2.
        mount: where the node has it, such as "/sys/fs/cgroup/cpuset".

    Paths of cgroups are relative to the mount, and "" is the topmost. No symbolic link is followed below the mount:
    the kernel makes none there.
    """

    def __init__(self, tree: Tree, controller: str = CPUSET) -> None:
        self.tree = tree
        self.version, self.mount = find_controller(tree, controller)
        self._here = tree.path(self.mount)

    # --- paths -----------------------------------------------------------------------------------

    def relative(self, path: str) -> str:
        """Return the path of a cgroup, given as relative or with the mount before it. Raises InputError for any
        other."""
        inside = path
        if path.startswith("/"):
            if path != self.mount and not path.startswith(self.mount + "/"):
                raise InputError(
                    "is not below %s" % self.mount,
                    where="path %r" % path,
                    remedy="give a cgroup's path relative to that directory",
                )
            inside = path[len(self.mount) :]
        names = [name for name in inside.split("/") if name not in ("", ".")]
        if ".." in names or "\0" in path:
            raise InputError("leads out of the hierarchy %s" % self.mount, where="path %r" % path)
        return "/".join(names)

    def place(self, path: str, name: str = "") -> str:
        """Return where a cgroup's directory, or a file in it, is here."""
        return "/".join(part for part in (self._here, path, name) if part)

    def open_file(self, path: str, name: str, flags: int) -> int:
        """Return a descriptor of one of a cgroup's files. Raises OSError; RefusedError at a symbolic link."""
        directory = self._open_directory(path)
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _link(self.place(path, name)) from error
            raise
        finally:
            os.close(directory)

    def _open_directory(self, path: str) -> int:
        """Return a descriptor of a cgroup's directory, opened name by name, so that no link on the way is followed."""
        at, inner = "", os.open(self._here, _DIRECTORY)
        for name in filter(None, path.split("/")):
            at, outer = joined(at, name), inner
            try:
                inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
            except NotADirectoryError as error:
                if stat.S_ISLNK(os.stat(name, dir_fd=outer, follow_symlinks=False).st_mode):
                    raise _link(self.place(at)) from error
                raise
            finally:
                os.close(outer)
        return inner

    # --- reading ---------------------------------------------------------------------------------

    def read(self, path: str) -> Cgroup:
        """Return one cgroup. Raises NodeError when there is none, RefusedError at a symbolic link."""
        cgroup = self._read(path)
        if cgroup is None:
            raise NodeError("no such cgroup", where=self.place(path))
        return cgroup

    def read_set(self, path: str, name: str) -> CPUSet | None:
        """Return a file with a list of CPUs or memory nodes; None when it, or the cgroup, does not exist."""
        text = self.value(path, name)
        if text is None:
            return None
        try:
            return CPUSet.parse(text)
        except InputError as error:
            raise self.tree.damaged("%s/%s" % (self.mount, joined(path, name)), str(error)) from error

    def effective_cpus(self, path: str) -> CPUSet | None:
        """Return the CPUs that the processes of a cgroup run on; None when it does not exist."""
        cpus = self.read_set(path, _HOLDS[self.version])
        if cpus is not None:
            return cpus
        cgroup = self._read(path)
        return None if cgroup is None else cgroup.effective_cpus

    def effective_cpus_of(self, paths: Iterable[str]) -> dict[str, CPUSet | None]:
        """Return {path: the CPUs that its processes run on; None when it does not exist}, of many cgroups.

        These paths must be such as this hierarchy has just listed.

        So nothing on the way is a link, and each file is opened at once, not name by name.
        """
        return {path: self._quick_set(path, _HOLDS[self.version], self.effective_cpus) for path in paths}

    def cpus_of(self, paths: Iterable[str]) -> dict[str, CPUSet | None]:
        """Return what many cgroups, such as this hierarchy has just listed, hold themselves; None without such a
        file."""
        return {path: self._quick_set(path, CPUS, lambda path: self.read_set(path, CPUS)) for path in paths}

    def first_processes(self, paths: Iterable[str]) -> dict[str, int]:
        """Return one process of each of many cgroups, such as this hierarchy has just listed, that have any."""
        found = {}
        for path in paths:
            try:
                found[path] = int(self._quick_text(path, _PROCESSES).partition("\n")[0])
            except (OSError, ValueError):
                continue  # it has none, or is gone
        return found

    def _quick_set(self, path: str, name: str, with_care: Callable[[str], CPUSet | None]) -> CPUSet | None:
        try:
            return _parsed(self._quick_text(path, name))
        except (OSError, InputError):
            # The slow way separates a file that is missing, one that vanished under the read, and a damaged one.
            return with_care(path)

    def _quick_text(self, path: str, name: str) -> str:
        """Return a file of a cgroup that was just listed. Raises OSError."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(self.place(path, name), flags)
        try:
            return os.read(descriptor, 1 << 16).decode("ascii", "replace")
        finally:
            os.close(descriptor)

    def quick_value(self, path: str, name: str) -> str | None:
        """Return what value() returns, of a cgroup that was just listed."""
        try:
            return self._quick_text(path, name).rstrip("\n")
        except OSError:
            return self.value(path, name)

    def has_child(self, path: str) -> bool:
        """Return whether there is a cgroup below one that was just listed."""
        place = self.place(path)
        return os.path.isdir(place) and not os.path.islink(place)

    def children(self, path: str) -> list[str]:
        """Return the paths of the cgroups right below one, sorted; none when it does not exist."""
        try:
            return _listed(path, self._open_directory(path))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise self.unreadable(path, "", error) from error

    def listed_children(self, path: str) -> list[str]:
        """Return the paths of the cgroups right below one that was just listed, sorted."""
        try:
            return _listed(path, os.open(self.place(path), _DIRECTORY | os.O_NOFOLLOW))
        except OSError:
            return self.children(path)

    def is_empty(self, path: str) -> bool:
        """Return whether no process is in a cgroup or below it, as far as its version shows."""
        return self.version == 2 and "populated 0" in (self.value(path, "cgroup.events") or "").splitlines()

    def cgroups(self, path: str = ROOT) -> Iterator[str]:
        """Yield the paths of all cgroups below one, each before those below it, as deep as there are honest ones."""
        waiting = self.children(path)[::-1]
        while waiting:
            child = waiting.pop()
            yield child
            if child.count("/") < _DEEPEST:
                waiting += self.children(child)[::-1]

    def around(self, paths: Iterable[str], above: Iterable[str] = ()) -> dict[str, Cgroup]:
        """Return these cgroups and all that a change of them meets: ancestors, siblings, what is below, and on v2 what
        is at the top, as partitions mostly are.

        above: cgroups that may get more CPUs for their sake, with those beside them that may have these alone.
        Raises NodeError when one of `paths` does not exist; others may vanish meanwhile.
        """
        found = {path: self.read(path) for path in paths}
        met = {ROOT, *(self.children(ROOT) if self.version != 1 else ())}
        for path in found:
            met.update(lineage(parent_of(path)))
            if path:
                met.update(self.children(parent_of(path)))
            # On v1, what is further below is within the children whatever happens.
            met.update(self.children(path) if self.version == 1 else self.cgroups(path))
        for parent in {parent_of(path) for path in above}:
            met.update(child for child in self.children(parent) if self.version == 1 or self._may_own(child))
        for path in sorted(met.difference(found)):
            cgroup = self._read(path)
            if cgroup is not None:
                found[path] = cgroup
        return found

    def _may_own(self, path: str) -> bool:
        """Return whether it is or was meant to be a partition of v2."""
        return self.quick_value(path, _PARTITION) not in (None, "", "member")

    def online_cpus(self) -> CPUSet:
        """Return the CPUs that a cpuset can have."""
        text = self.tree.read_value(_ONLINE)
        if text is None:
            return self.read(ROOT).effective_cpus
        try:
            return CPUSet.parse(text)
        except InputError as error:
            raise self.tree.damaged(_ONLINE, str(error)) from error

    def memory_nodes(self) -> CPUSet:
        """Return the NUMA nodes with memory."""
        return self.read(ROOT).effective_mems

    def _read(self, path: str) -> Cgroup | None:
        cpus, mems = self.read_set(path, CPUS), self.read_set(path, MEMS)
        effective_cpus = self.read_set(path, EFFECTIVE[self.version, CPUS])
        effective_mems = self.read_set(path, EFFECTIVE[self.version, MEMS])
        if self.version == 1:
            # Kernels before 4.0 do not show the effective sets, which on v1 are the same.
            effective_cpus = cpus if effective_cpus is None else effective_cpus
            effective_mems = mems if effective_mems is None else effective_mems
        elif path and effective_cpus is None and self.value(path, _PROCESSES) is not None:
            # Not under the controller: what holds is the nearest ancestor's.
            parent = self._read(parent_of(path))
            if parent is not None:
                effective_cpus, effective_mems = parent.effective_cpus, parent.effective_mems
        if effective_cpus is None or effective_mems is None:
            return None
        has_processes = bool(self.value(path, _PROCESSES))
        events = (self.value(path, "cgroup.events") or "").splitlines() if self.version == 2 else []
        return Cgroup(
            path,
            cpus,
            effective_cpus,
            mems,
            effective_mems,
            has_processes,
            has_processes or "populated 1" in events,
            cpu_exclusive=self.value(path, "cpuset.cpu_exclusive") == "1",
            mem_exclusive=self.value(path, "cpuset.mem_exclusive") == "1",
            partition=self.value(path, _PARTITION) or "",
        )

    def value(self, path: str, name: str) -> str | None:
        """Return a file's text without the end of its last line; None when it, or the cgroup, does not exist."""
        try:
            descriptor = self.open_file(path, name, os.O_RDONLY)
            try:
                content = read_at_most(descriptor, LARGEST)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno in _GONE or isinstance(error, NotADirectoryError):
                return None
            # The kernel lists the processes in a threaded cgroup only at the top of its threaded subtree.
            if error.errno == errno.EOPNOTSUPP and name == _PROCESSES:
                return self.value(path, "cgroup.threads")
            raise self.unreadable(path, name, error) from error
        if content is None:
            raise too_long(self.place(path, name), LARGEST)
        return content.decode("ascii", "replace").rstrip("\n")

    def unreadable(self, path: str, name: str, error: OSError) -> NodeError:
        """Return what to say of a file of a cgroup that cannot be read; an empty `name` is its directory."""
        place, what = self.place(path, name), "cannot be read: %s" % error.strerror
        if isinstance(error, PermissionError):
            return NodeError(what, where=place, remedy="read it as root (become: true)", kind=PERMISSION)
        return NodeError(what, where=place)


# Most cgroups have the shared pool, and so the same text.
_parsed = lru_cache(maxsize=1024)(CPUSet.parse)


def parent_of(path: str) -> str:
    """Return the path of the cgroup above."""
    return path.rpartition("/")[0]


def lineage(path: str) -> Iterator[str]:
    """Yield the path of a cgroup and of all above it but the topmost."""
    while path:
        yield path
        path = parent_of(path)


def name_of(path: str) -> str:
    """Return a cgroup's own name."""
    return path.rpartition("/")[2]


def _listed(path: str, directory: int) -> list[str]:
    """Return the cgroups in a directory, whose descriptor is closed."""
    try:
        with os.scandir(directory) as entries:
            return sorted(joined(path, entry.name) for entry in entries if entry.is_dir(follow_symlinks=False))
    finally:
        os.close(directory)


def joined(path: str, name: str) -> str:
    """Return the path of a cgroup right below another."""
    return "%s/%s" % (path, name) if path else name


def _link(place: str) -> RefusedError:
    return RefusedError("is a symbolic link, and none is followed among cgroups", where=place)


class Quota(NamedTuple):
    """Microseconds of each period; quota_us is None for no limit."""

    quota_us: int | None
    period_us: int

    def unlimited(self) -> Quota:
        """Return this period without a limit."""
        return self._replace(quota_us=None)
