# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A trial start carried out: a kubelet and a private runtime in namespaces of their own, which end with this process.

Nothing outside can be written there: every mount is read-only, and what has to be written is in memory. Mounts go away
with the namespace, and processes with its first one, which the kernel kills when its parent ends.
Source: namespaces(7), pid_namespaces(7), mount_namespaces(7), mount_setattr(2), capabilities(7), capset(2), prctl(2).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import time
from contextlib import suppress
from typing import Any, Callable, ClassVar, Mapping, NoReturn, Sequence

from .._base.tree import LARGEST_OF_KUBELET, steps
from .._base.versions import minor_version
from .._kubelet.configuration import COMMON_DEFAULTS
from .._kubelet.distributions import CHECKPOINT_NAME, KUBELET_ROOT
from .._kubelet.healthz import complaint_of
from .._kubelet.installation import version_in
from .._kubelet.start.surroundings import KERNEL_FLAGS
from ..cpuset import CPUSet
from .trial_cgroups import TrialCgroups, about
from .trial_paths import ROOM, SOCKET, STATIC_PODS, VOLUME_PLUGINS, NodePaths, is_certificate
from .trial_plan import (
    COVERED,
    HEALTH_PATIENCE,
    RUNTIME_PATIENCE,
    Ending,
    PrivateRuntime,
    TrialPlan,
    UntriedError,
    Words,
    private_runtime,
    told_of,
    why_silent,
)

# --- what the kernel is asked for -----------------------------------------------------------------------------

_NEW_NS, _NEW_CGROUP, _NEW_UTS = 0x00020000, 0x02000000, 0x04000000
_NEW_IPC, _NEW_PID, _NEW_NET = 0x08000000, 0x20000000, 0x40000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND = 1, 2, 4, 8, 32, 4096
_REC, _PRIVATE, _SHARED = 16384, 1 << 18, 1 << 20
_DETACH, _NOFOLLOW = 2, 8
# By their names in mountinfo: a remount keeps what it names only.
_FLAGS = {"ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21}
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = 442, -100, 0x8000, 1
_PR_SET_PDEATHSIG, _PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _CLEAR_ALL = 1, 23, 24, 47, 4
# Of capset(2), as it is since there are 64 capabilities.
_CAPABILITIES_3 = 0x20080522
# By their numbers: what acts on the machine whatever the namespaces, as modules of the kernel, devices and the clock.
# NET_ADMIN and NET_RAW are among them as iptables makes the kernel load modules.
# Without SYS_RESOURCE, what is started cannot leave the place in which the kernel ends it where memory is short; with
# SYSLOG, it could clear the kernel's log.
_DROPPED = (9, 12, 13, 16, 17, 20, 22, 24, 25, 26, 27, 30, 32, 33, 34, 35)
# Of the kubelet, also what could make a mount writable again: all that it mounts at its start is there already.
_DROPPED_OF_KUBELET = (2, 19, 21)
_LONGEST_DOMAIN = 4096
_GET_FLAGS, _SET_FLAGS, _IFF_UP = 0x8913, 0x8914, 1


def _call(name: str, what: str, *arguments: Any) -> None:
    """Call a function of the C library. Raises OSError, about `what`; UntriedError where Python cannot call it."""
    try:
        # Imported here: a Python may be built without it.
        import ctypes
    except ImportError as error:
        raise UntriedError("the node's Python has no ctypes") from error
    words = [ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments]
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*words) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "%s %s" % (name, what) if what else name)


def _mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    texts = [text.encode("utf-8", "surrogateescape") or None for text in (source, target, kind, options)]
    _call("mount", target, *texts[:3], flags, texts[3])


def _make_read_only() -> None:
    """Let nothing be written through any mount that is there."""
    attributes = struct.pack("QQQQ", _ATTR_RDONLY, 0, 0, 0)
    with suppress(OSError):  # kernels before 5.12 do not have it
        _call("syscall", "", _MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, len(attributes))
    for target, flags in _writable_mounts():
        with suppress(OSError):  # what another mount covers cannot be reached, and need not be
            _mount("", target, "", _REMOUNT | _BIND | _RDONLY | flags)
    left = [target for target, _flags in _writable_mounts() if _is_reached(target)]
    if left:
        raise UntriedError("%s stays writable" % left[0])


def _let_go(plan: TrialPlan) -> None:
    """Have only the mounts that a trial needs, and have them alone.

    So nothing comes in that is mounted outside, and what is unmounted there is not kept busy here.
    """
    _mount("", "/", "", _PRIVATE | _REC)
    programs = [plan.kubelet, *([] if plan.runtime is None else plan.runtime[:1])]
    paths = plan.paths()
    places = [*paths.read, *paths.states, *paths.written, *paths.empty, paths.certificates, plan.directory]
    read = [*programs, *plan.contents, *places, _RESOLVER, sys.executable, *sys.path]
    on_the_way = {step for path in ("/dev", *COVERED, *read) for step in steps("/", path)}
    for target in plan.not_needed([target for target, _names, _kind in _mounts()], on_the_way):
        # Below one that was let go there is none any more.
        with suppress(OSError):
            _call("umount2", target, target.encode("utf-8", "surrogateescape"), _DETACH | _NOFOLLOW)


def _writable_mounts() -> list[tuple[str, int]]:
    # To ask for what autofs has mounts it, also outside.
    found = [(target, names) for target, names, kind in _mounts() if "ro" not in names and kind != "autofs"]
    return [(target, sum(_FLAGS.get(name, 0) for name in names)) for target, names in found]


def _mounts() -> list[tuple[str, list[str], str]]:
    """Return (where, the names of its flags, the kind of file system) of each mount of this process, as they were
    made."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _dash, right = line.partition(" - ")
            target, options = left.split(" ")[4:6]
            target = target.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n")
            found.append((target.replace("\\134", "\\"), options.split(","), right.split(" ")[0]))
    return found


def _is_reached(target: str) -> bool:
    try:
        return not os.statvfs(target).f_flag & os.ST_RDONLY and os.path.ismount(target)
    except OSError:
        return False


def _die_with(lifeline: int) -> None:
    """Let the kernel kill this process when its parent ends. lifeline: the end of a pipe that the parent has open."""
    _call("prctl", "PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(1)


# --- a trial, from outside ------------------------------------------------------------------------------------

# Seconds beyond what the process inside keeps to itself.
_GRACE = 10.0
# A status that is no signal's number.
_TIME_IS_OVER = 100
_MOST_TOLD = 8 << 20


def carry_out(plan: TrialPlan, cgroups: TrialCgroups) -> Ending:
    """Start the kubelet as planned and end it again. Raises UntriedError where that cannot be done."""
    try:
        return _carry_out(plan, cgroups)
    except OSError as error:
        raise UntriedError(told_of(error, _domain())) from error


def _carry_out(plan: TrialPlan, cgroups: TrialCgroups) -> Ending:
    begun = time.monotonic()
    end = begun + plan.patience
    deadline = end + _GRACE
    told_from, told_to = os.pipe()
    lifeline_from, lifeline_to = os.pipe()
    pid = _fork()
    if pid == 0:
        ends = (end, deadline)
        _last_words(told_to, lambda: _keep(plan, cgroups, told_to, (lifeline_from, lifeline_to), told_from, ends))
    os.close(told_to)
    os.close(lifeline_from)
    try:
        told = _read_all(told_from, deadline + _GRACE)
    finally:
        is_late = time.monotonic() > deadline + _GRACE
        if is_late:
            os.kill(pid, signal.SIGKILL)
        _pid, status = os.waitpid(pid, 0)
        os.close(told_from)
        os.close(lifeline_to)
    limit = cgroups.met_limit()
    try:
        ending = Ending(**json.loads(told))
    except ValueError:  # nothing, or what was cut off in its midst
        code = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        ending = Ending(failed=why_silent(is_late or code == _TIME_IS_OVER, code, limit))
    return ending._replace(limit=limit, seconds=round(time.monotonic() - begun, 1))


def _fork() -> int:
    with about("fork"):
        return os.fork()


def _keep(
    plan: TrialPlan,
    cgroups: TrialCgroups,
    told_to: int,
    lifeline: Sequence[int],
    told_from: int,
    ends: tuple[float, float],
) -> NoReturn:
    """Run as the parent of the first process inside: end it in time, and end as it did.

    ends: when the trial ends, and when it is ended.
    """
    os.close(told_from)
    os.close(lifeline[1])
    _die_with(lifeline[0])
    inner_from, inner_to = os.pipe()
    _call("unshare", "pid", _NEW_PID)
    pid = _fork()
    if pid == 0:
        os.close(inner_to)
        _last_words(told_to, lambda: _inside(plan, cgroups, inner_from, ends[0]))
    os.close(told_to)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            os._exit(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
        if time.monotonic() > ends[1]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os._exit(_TIME_IS_OVER)
        time.sleep(0.02)


def _domain() -> str:
    """Return what SELinux or AppArmor says that it holds this process to; empty where there is neither."""
    with suppress(OSError), open("/proc/self/attr/current", encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST_DOMAIN).strip("\0\n")
    return ""


def _last_words(told_to: int, work: Callable[[], Ending | None]) -> NoReturn:
    """Do this in a process of its own: say how it went, and end."""
    try:
        ending = work()
    except UntriedError as error:
        ending = Ending(failed=str(error))
    except OSError as error:
        ending = Ending(failed=told_of(error, _domain()))
    except BaseException as error:  # noqa: BLE001 # this copy of the module must not go on, whatever happens
        ending = Ending(failed="%s: %s" % (type(error).__name__, error))
    if ending is not None:
        with suppress(OSError):
            told = json.dumps(ending._asdict()).encode("ascii")
            while told:
                told = told[os.write(told_to, told) :]
    os._exit(0)


def _read_all(descriptor: int, deadline: float) -> bytes:
    chunks: list[bytes] = []
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        chunk = os.read(descriptor, 1 << 16)
        if not chunk or len(chunks) > _MOST_TOLD >> 16:
            return b"".join(chunks)
        chunks.append(chunk)
    return b""


# --- inside: the mounts ---------------------------------------------------------------------------------------

_CGROUPS = "/sys/fs/cgroup"
# Often a link into /run.
_RESOLVER = "/etc/resolv.conf"
# Which of the machine's devices there are inside.
_DEVICES = ("null", "zero", "full", "random", "urandom")
# The kernel's log: a kubelet ends where it cannot open it to look for processes that the kernel has ended, and root can
# write what it can open. Source: NewMainKubelet in pkg/kubelet/kubelet.go; kmsgparser.go of go-kmsg-parser.
_LOG = "kmsg"
# What of the kernel is the same in all namespaces.
_OF_KERNEL = ("bus", "fs", "irq", "sys", "sysrq-trigger", "acpi", "timer_list", "latency_stats")
# Of files that a start reads: bytes of one that is copied, and how many there may be. With more there is no trial.
_LARGEST_COPIED, _MOST_READ = 16 << 20, 10000
_SMALL = 64 << 20
# Bytes and files: what a kubelet and a runtime write at a start is much less. Where only so much is left, somebody may
# have had no room.
_LEAST_LEFT, _FEWEST_LEFT = 1 << 20, 100


class _Found:
    """What a start reads, as it is before anything covers it: where each path leads, and what is there."""

    def __init__(self, paths: NodePaths) -> None:
        self._number = 0
        with suppress(FileNotFoundError, NotADirectoryError):
            names = [entry.name for entry in os.scandir(paths.certificates) if is_certificate(entry.name)]
            paths = paths._replace(states=[*paths.states, *(os.path.join(paths.certificates, name) for name in names)])
        self.read = [*paths.read, _RESOLVER]
        self.copied = paths.states
        self.places = {path: os.path.realpath(path) for path in (*self.read, *self.copied)}
        self.links = {path: os.readlink(path) for path in self.copied if os.path.islink(path)}
        self._there = {path: self._look(path) for path in self.places}

    def missing(self, planned: Mapping[str, object]) -> str:
        """Return a path at which a trial does not have the same; empty for none. planned: those at which it needs
        not."""
        self._number = 0
        return next(
            (path for path, there in self._there.items() if path not in planned and self._look(path) != there), ""
        )

    def _look(self, path: str) -> object:
        """Return the kind of what is there, None for nothing; of a directory {name: what is there}."""
        self._number += 1
        if self._number > _MOST_READ:
            raise UntriedError("of what the kubelet reads at its start there are more than %d files" % _MOST_READ)
        try:
            mode = os.stat(path).st_mode
        except OSError:
            return None
        if not stat.S_ISDIR(mode):
            return stat.S_IFMT(mode)
        # A link to a directory is not gone into: it may lead above.
        return {
            entry.name: stat.S_IFDIR if entry.is_symlink() and entry.is_dir() else self._look(entry.path)
            for entry in os.scandir(path)
        }


class _Room:
    """What is mounted inside."""

    def __init__(self) -> None:
        # {directory: what was there before}
        self._covered: dict[str, int] = {}
        # The directories of which the kubelet has copies, and whose own file systems are full.
        self.full: list[str] = []

    def cover(self, path: str, size: int = 0) -> None:
        """Mount an empty directory in memory in place of one, of at least this size."""
        self._covered[path] = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        _mount("none", path, "tmpfs", _NOSUID | _NODEV, "size=%d,mode=755" % max(size, _SMALL))

    def cover_as_large(self, path: str) -> None:
        """Mount an empty directory in memory in place of one, on a file system that looks as large."""
        path = os.path.realpath(path)
        status = os.statvfs(_nearest(path))
        if _is_full(status):
            self.full.append(path)
        self._make_directory(path)
        self.cover(path, status.f_frsize * status.f_blocks)

    def before(self, path: str) -> str:
        """Return where that is now which was at a path before; the path itself where nothing covers it."""
        above = [place for place in self._covered if path == place or path.startswith(place + "/")]
        if not above:
            return path
        place = max(above, key=len)
        return "/proc/self/fd/%d%s" % (self._covered[place], path[len(place) :])

    def copy(self, path: str, place: str) -> None:
        """Have a copy of a file. place: where the path led before."""
        before = self.before(place)
        try:
            status = os.stat(before)
        except (FileNotFoundError, NotADirectoryError):
            return
        _make_parents(path)
        if stat.S_ISDIR(status.st_mode):
            # Where a kubelet wants a file, it reads no directory, whatever is in it.
            os.mkdir(path)
        elif not stat.S_ISREG(status.st_mode):
            raise UntriedError(_NO_FILE % path)
        elif status.st_size > _LARGEST_COPIED:
            raise UntriedError("%s has more than %d bytes" % (path, _LARGEST_COPIED))
        else:
            with suppress(FileNotFoundError):  # the kubelet that runs may remove it meanwhile
                _copy(before, path)

    @staticmethod
    def link(path: str, target: str) -> None:
        """Have the same link: of certificates a kubelet wants one."""
        _make_parents(path)
        os.symlink(target, path)

    def bring_back(self, path: str, place: str) -> None:
        """Mount what was at a path before something covered it, read-only. place: where the path led. Nothing is
        opened."""
        before, here = self.before(place), os.path.realpath(path)
        try:
            kind = stat.S_IFMT(os.stat(before).st_mode)
        except OSError:  # it is not there, or no path at all
            return
        if kind not in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFCHR):
            raise UntriedError(_NO_FILE % path)
        if os.path.exists(path) or kind == stat.S_IFCHR:
            return
        if kind == stat.S_IFDIR:
            os.makedirs(here)
            _mount(before, here, "", _BIND | _REC)
        else:
            _make_parents(here)
            _bind_file(before, here)

    def put(self, path: str, content: bytes | None) -> None:
        """Have a file with this content; None for no file."""
        directory, name = os.path.realpath(os.path.dirname(path)), os.path.basename(path)
        here = os.path.join(directory, name)
        mode = 0o600
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(os.stat(here).st_mode)
        self._make_directory(directory, without=name)
        with suppress(FileNotFoundError):
            os.unlink(here)
        if content is not None:
            with about(path), open(here, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                file.write(content)

    def _make_directory(self, path: str, without: str = "") -> None:
        """Have a directory; and where `without` is given, one of which this file may be another. Raises OSError."""
        there = _nearest(path)
        if os.statvfs(there).f_flag & os.ST_RDONLY and (without or there != path):
            self._cover_as_it_is(there, without if there == path else "")
        os.makedirs(path, exist_ok=True)

    def _cover_as_it_is(self, path: str, without: str) -> None:
        """Mount a directory in memory with all that is in one but a file. Nothing is opened: others may watch that."""
        if path == "/":
            raise UntriedError("there is no directory for what is planned")
        self.cover(path)
        for entry in os.scandir(self.before(path)):
            goal = "%s/%s" % (path, entry.name)
            if entry.name == without:
                continue
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), goal)
            elif entry.is_dir():
                os.mkdir(goal)
                _mount(entry.path, goal, "", _BIND | _REC)
            else:
                _bind_file(entry.path, goal)

    @staticmethod
    def hide(path: str) -> None:
        """Let nobody be reached by a path that is a socket, or a pipe."""
        try:
            kind = stat.S_IFMT(os.stat(path).st_mode)
        except OSError:  # it is not there, or no path at all
            return
        if kind in (stat.S_IFSOCK, stat.S_IFIFO):
            _mount("/dev/null", os.path.realpath(path), "", _BIND)

    def why_short(self) -> str:
        """Return where in the trial's own file systems nothing more can be written; empty for nowhere."""
        full = [path for path in self._covered if _is_full(os.statvfs(path))]
        return "the trial has its files in memory, and no room is left there in %s" % full[0] if full else ""

    def forget(self) -> None:
        """Close what leads to what was there before."""
        for descriptor in self._covered.values():
            os.close(descriptor)


_NO_FILE = "%s is no file, and the kubelet reads it at its start"


def _make_parents(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)


def _nearest(path: str) -> str:
    """Return the directory, or the one above it that is there."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _is_full(status: os.statvfs_result) -> bool:
    """Return whether a file system has hardly any room left. Some do not count their files."""
    return status.f_frsize * status.f_bfree < _LEAST_LEFT or 0 <= status.f_ffree < _FEWEST_LEFT <= status.f_files


def _copy(source: str, target: str) -> None:
    with about(target):
        shutil.copy2(source, target)
        status = os.stat(source)
        os.chown(target, status.st_uid, status.st_gid)


def _bind_file(source: str, target: str) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    _mount(source, target, "", _BIND)


def _furnish(plan: TrialPlan, runtime: PrivateRuntime | None) -> _Room:
    """Make all mounts: nothing of the machine can be written afterwards, and what is planned is at its place."""
    room, paths = _Room(), plan.paths()
    found, has_directory = _Found(paths), os.path.isdir(plan.directory)
    _make_read_only()
    boots_systemd = os.path.isdir("/run/systemd/system")
    for path in COVERED:
        if os.path.isdir(path) and not os.path.islink(path):
            room.cover(path)
    for path in (STATIC_PODS, VOLUME_PLUGINS):
        os.makedirs(path)
    if boots_systemd:
        os.makedirs("/run/systemd/system")
    _mount_devices(room)
    _mount_proc()
    _mount_cgroups(plan)
    _bring_in(room, plan, paths, found)
    for path, content in plan.contents.items():
        room.put(path, content)
    for path, text in ({} if runtime is None else runtime.files).items():
        room.put(path, text.encode("utf-8"))
    with about(plan.directory):
        if has_directory:
            os.makedirs(plan.directory, exist_ok=True)
        os.chdir(plan.directory)
    room.forget()
    return room


def _bring_in(room: _Room, plan: TrialPlan, paths: NodePaths, found: _Found) -> None:
    """Have what a start reads, and let nobody be reached. Raises UntriedError where not all of it can be had."""
    # Whatever the root directory, the sockets of devices are in the usual one, in which it may be.
    for path in (*paths.written, *paths.empty):
        room.cover_as_large(path)
    for path in found.copied:
        if path in found.links:
            room.link(path, found.links[path])
        elif path not in plan.contents:
            room.copy(path, found.places[path])
    root = os.path.realpath(plan.root)
    _mount("", root, "", _SHARED)
    for path in found.read:
        if path not in plan.contents:
            room.bring_back(path, found.places[path])
    for path in paths.others:
        room.hide(path)
    missing = found.missing(plan.contents)
    if missing:
        raise UntriedError("%s: the trial does not have what is there" % missing)


def _mount_devices(room: _Room) -> None:
    room.cover("/dev")
    for name in (*_DEVICES, _LOG):
        with suppress(FileNotFoundError):
            os.stat(room.before("/dev/" + name))
            _bind_file(room.before("/dev/" + ("null" if name == _LOG else name)), "/dev/" + name)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1")):
        os.symlink(target, "/dev/" + name)
    os.mkdir("/dev/shm")


def _mount_proc() -> None:
    """Mount /proc: processes of the namespace, and of the kernel nothing that can be written.

    Of what a kubelet sets, files that hold what the kernel has take the writes.
    """
    held = {}
    for name in KERNEL_FLAGS:
        with suppress(OSError), open("/proc/sys/" + name, "rb") as file:
            held[name] = file.read()
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    for name in _OF_KERNEL:
        path = "/proc/" + name
        if os.path.exists(path):
            _mount(path, path, "", _BIND)
            _mount("", path, "", _BIND | _REMOUNT | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    os.mkdir(ROOM + "/sys")
    for name, value in held.items():
        stand_in = "%s/sys/%s" % (ROOM, name.replace("/", "."))
        with about(stand_in), open(stand_in, "wb") as stand_in_file:
            stand_in_file.write(value)
        _mount(stand_in, "/proc/sys/" + name, "", _BIND)


def _mount_cgroups(plan: TrialPlan) -> None:
    """Mount the cgroups of the trial, as the topmost ones; the links among the hierarchies of v1 as they were."""
    links = [(entry.name, os.readlink(entry.path)) for entry in os.scandir(_CGROUPS) if entry.is_symlink()]
    # With v2, too: the kernel mounts no file system where it is mounted already (EBUSY).
    _mount("none", _CGROUPS, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "size=1m,mode=755")
    for name, target in links:
        os.symlink(target, "%s/%s" % (_CGROUPS, name))
    for hierarchy in plan.hierarchies:
        os.makedirs(hierarchy.path, exist_ok=True)
        _mount(hierarchy.kind, hierarchy.path, hierarchy.kind, _NOSUID | _NODEV | _NOEXEC, hierarchy.options)
        if hierarchy.kind == "cgroup2":
            # Nobody may be in a cgroup that hands controllers on to those below it.
            os.mkdir(hierarchy.path + "/trial")
            procs = hierarchy.path + "/trial/cgroup.procs"
            with about(procs), open(procs, "w", encoding="ascii") as file:
                file.write("0")
        for name in plan.named_cgroups:
            os.makedirs("%s/%s" % (hierarchy.path, name.strip("/")), exist_ok=True)


# --- inside: the processes ------------------------------------------------------------------------------------

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Seconds between two looks.
_LOOK = 0.03
# Of what one says before the others are heard.
_MOST_READS = 64
# For one answer at /healthz.
_HEALTH_LOOK = 0.5
# Which process the kernel ends first where memory is short: the highest counts.
_OOM_SCORE, _ENDED_FIRST, _USUAL = "/proc/self/oom_score_adj", "1000", "0"
_DEVICE_SOCKET = KUBELET_ROOT + "/device-plugins/kubelet.sock"


def _inside(plan: TrialPlan, cgroups: TrialCgroups, lifeline: int, end: float) -> Ending:
    """Return the first process inside: all others end with it. end: of the trial, by the monotonic clock."""
    _die_with(lifeline)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    cgroups.enter()
    _keep_to(plan.cpus)
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _call("unshare", "", _NEW_NS | _NEW_CGROUP | _NEW_UTS | _NEW_IPC | _NEW_NET)
    _let_go(plan)
    _open_loopback()
    runtime = None if plan.runtime is None else private_runtime(*plan.runtime)
    room = _furnish(plan, runtime)
    _bequeath_nothing()
    _drop(_DROPPED)
    return _try_start(plan, runtime, room, end)


def _keep_to(cpus: CPUSet) -> None:
    """Run on these CPUs only."""
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        # Its cpuset has none of them.
        if error.errno != errno.EINVAL:
            raise UntriedError("it cannot be kept to the CPUs %s: %s" % (cpus, error.strerror)) from error


def _bequeath_nothing() -> None:
    """Let what is started have only what is in the bounding set: what is inheritable would come to it."""
    with suppress(OSError):  # kernels before 4.3 do not have it
        _call("prctl", "PR_CAP_AMBIENT", _PR_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        held = dict(line.split(":\t", 1) for line in file if line.startswith("Cap"))
    # By halves: those that are effective, permitted and inheritable.
    halves = [int(held[name], 16) >> shift & 0xFFFFFFFF for shift in (0, 32) for name in ("CapEff", "CapPrm")]
    sets = struct.pack("IIIIII", *halves[:2], 0, *halves[2:], 0)
    _call("capset", "", struct.pack("Ii", _CAPABILITIES_3, 0), sets)


def _drop(capabilities: Sequence[int]) -> None:
    """Let what is started from now on not have these. Raises OSError."""
    for capability in capabilities:
        try:
            _call("prctl", "PR_CAPBSET_DROP", _PR_CAPBSET_DROP, capability, 0, 0, 0)
        except OSError as error:
            # One that this kernel does not have. Who may drop none may have none of these, either.
            if error.errno != errno.EINVAL and _is_bounded_by(capability):
                raise


def _is_bounded_by(capability: int) -> bool:
    """Return whether what is started could have this capability."""
    try:
        _call("prctl", "PR_CAPBSET_READ", _PR_CAPBSET_READ, capability, 0, 0, 0)
    except OSError:  # it is 1, which _call() takes for a failure
        return True
    return False


def _open_loopback() -> None:
    with about("the loopback interface"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh22x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(control, _GET_FLAGS, request), 16)
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh22x", b"lo", flags | _IFF_UP))
    # The kubelet ends where it cannot listen at the node's address, which this namespace does not have.
    for family in ("ipv4", "ipv6"):
        with suppress(OSError), open("/proc/sys/net/%s/ip_nonlocal_bind" % family, "w", encoding="ascii") as file:
            file.write("1")


class _Process:
    """A program that runs inside, and what it says."""

    running: ClassVar[list[_Process]] = []

    def __init__(self, command: Sequence[str]) -> None:
        self.words = Words()
        # None while it runs; negative for a signal.
        self.status: int | None = None
        self._output, write = os.pipe()
        os.set_blocking(self._output, False)
        path = "%s:%s" % (os.path.dirname(command[0]), _PATH)
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, write, 1),
            (os.POSIX_SPAWN_DUP2, write, 2),
        ]
        environment = {"PATH": path, "HOME": "/", "LC_ALL": "C"}
        try:
            # Whose memory is short, also beside this trial: it is to end this before pods.
            with about(_OOM_SCORE), open(_OOM_SCORE, "w", encoding="ascii") as file:
                file.write(_ENDED_FIRST)
            # The module's run_command waits for one program; here several run at once.
            self.pid = os.posix_spawn(  # pylint: disable=ansible-bad-function
                command[0], list(command), environment, file_actions=actions, setsigdef=[signal.SIGPIPE]
            )
        finally:
            os.close(write)
            # Not the process that tells of it: where it may not lower that again, it is one of many.
            with suppress(OSError), open(_OOM_SCORE, "w", encoding="ascii") as file:
                file.write(_USUAL)
        self.running.append(self)

    def goes_on(self) -> bool:
        """Hear what all say meanwhile, and whether this one still runs."""
        processes = {process._output: process for process in self.running}
        for descriptor in select.select(list(processes), [], [], _LOOK)[0]:
            processes[descriptor]._hear()
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                for process in self.running:
                    if pid == process.pid:
                        process.status = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        if self.status is not None:
            self._hear()
        return self.status is None

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            for _time in range(_MOST_READS):
                chunk = os.read(self._output, 1 << 16)
                if not chunk:
                    # The end of what is said is always there to be read.
                    time.sleep(_LOOK)
                    break
                self.words.hear(chunk)


def _try_start(plan: TrialPlan, runtime: PrivateRuntime | None, room: _Room, end: float) -> Ending:
    private, fault = _started(runtime)
    _drop(_DROPPED_OF_KUBELET)
    version = _version_of(plan.kubelet, min(end, time.monotonic() + plan.scaled(RUNTIME_PATIENCE)))
    if private is not None:
        fault = _why_not_ready(private, min(end, time.monotonic() + plan.scaled(RUNTIME_PATIENCE)))
    stand_in = _listen() if private is None or fault else None
    kubelet = _Process(plan.command(minor_version(version)))
    ending = Ending(version, runtime_fault=fault)
    while time.monotonic() < end:
        if not kubelet.goes_on():
            ending = ending._replace(status=kubelet.status, doubt=room.why_short() or _why_ended(private, fault))
            return ending._replace(message=kubelet.words.why(), state=_state_of(plan))
        if stand_in is not None and select.select([stand_in], [], [], 0)[0]:
            return ending._replace(asked_runtime=True)
        if kubelet.words.has_started or os.path.exists(_DEVICE_SOCKET):
            doubt = _NO_ROOM % room.full[0] if room.full else ""
            end = min(end, time.monotonic() + plan.scaled(HEALTH_PATIENCE))
            is_healthy = _is_settled(plan, min(end, time.monotonic() + plan.scaled(_HEALTH_LOOK)))
            ending = ending._replace(has_started=True, is_healthy=is_healthy, doubt=doubt)
            if ending.is_healthy:
                return ending._replace(state=_state_of(plan))
    doubt = ending.doubt or room.why_short()
    return ending._replace(message=kubelet.words.why(), doubt=doubt, state=_state_of(plan))


_NO_ROOM = "it starts where it has room for its files, and the file system of %s is full"


def _started(runtime: PrivateRuntime | None) -> tuple[_Process | None, str]:
    """Return the process of a private runtime, and why there is none."""
    if runtime is None:
        return None, ""
    try:
        return _Process(runtime.command), ""
    except OSError as error:
        return None, _NOT_READY % error.strerror


_NOT_READY = "the private one did not start: %s"


def _why_ended(runtime: _Process | None, fault: str) -> str:
    """Return why a private runtime that was ready is not there any more; empty where it is, and where it never was."""
    if runtime is None or fault:
        return ""
    runtime.goes_on()
    return "" if runtime.status is None else "the container runtime of the trial ended: %s" % runtime.words.why()


def _version_of(program: str, deadline: float) -> str:
    """Return what the kubelet says of its version. Raises UntriedError where it does not."""
    process = _Process([program, "--version"])
    while process.goes_on() and time.monotonic() < deadline:
        pass
    if process.status is None:
        os.kill(process.pid, signal.SIGKILL)
        raise UntriedError("%s --version does not end in time" % program)
    version = version_in(process.words.why())
    if not version:
        raise UntriedError("%s --version does not name a version of Kubernetes" % program)
    return version


def _why_not_ready(runtime: _Process, deadline: float) -> str:
    """Return why a private runtime does not answer; empty where it does."""
    while time.monotonic() < deadline and runtime.goes_on():
        with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
            client.settimeout(_LOOK)
            client.connect(SOCKET)
            return ""
    return _NOT_READY % runtime.words.why()


def _listen() -> socket.socket:
    """Return a stand-in for a runtime, by which is seen when the kubelet asks one."""
    with about(SOCKET):
        listener = socket.socket(socket.AF_UNIX)
        with suppress(FileNotFoundError):
            os.unlink(SOCKET)
        listener.bind(SOCKET)
        listener.listen()
    return listener


def _is_settled(plan: TrialPlan, deadline: float) -> bool:
    """Return whether the kubelet says that it is healthy, and the CPU manager has its state, of the policy that is
    wanted."""
    # No reader of ours: what would be imported for it now may be covered. In newer formats it is in a text.
    policy = '"policyName":"%s"' % plan.values.get("cpuManagerPolicy", COMMON_DEFAULTS["cpuManagerPolicy"])
    if policy not in (_state_of(plan) or "").replace("\\", ""):
        return False
    address = plan.health_address()
    return address is None or not complaint_of(*address, deadline)


def _state_of(plan: TrialPlan) -> str | None:
    """Return what the CPU manager has written, or has found."""
    path = os.path.join(plan.root, CHECKPOINT_NAME)
    with suppress(OSError, ValueError), open(path, "rb", opener=_open_at_once) as file:
        return file.read(LARGEST_OF_KUBELET).decode("utf-8")
    return None


def _open_at_once(path: str, flags: int) -> int:
    """Open what may be a FIFO by now without waiting for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)
