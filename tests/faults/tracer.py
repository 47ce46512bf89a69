# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stop a process at each of its system calls: before the kernel does it, and after."""

from __future__ import annotations

import ctypes
import os
import signal
from functools import lru_cache
from typing import Any, Callable, NamedTuple

from .child import Child

_TRACEME, _CONT, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 7, 24, 0x4200, 0x420E
# Mark stops at system calls, and let no traced process outlive the tracer.
_OPTIONS = 0x1 | 0x100000
_SYSCALL_STOP = signal.SIGTRAP | 0x80
_ENTRY = 1

# Of the kernel's numbers on each kind of machine, those that matter to what is on the disk.
_NAMES = {
    0xC000003E: {
        1: "write", 74: "fsync", 75: "fdatasync", 82: "rename", 86: "link", 87: "unlink", 90: "chmod", 91: "fchmod",
        93: "fchown", 190: "fsetxattr", 263: "unlinkat", 264: "renameat", 265: "linkat", 316: "renameat2",
    },
    0xC00000B7: {
        7: "fsetxattr", 35: "unlinkat", 37: "linkat", 38: "renameat", 52: "fchmod", 55: "fchown", 64: "write",
        82: "fsync", 83: "fdatasync", 276: "renameat2",
    },
}  # fmt: skip
# Where the paths are among a call's arguments; a call that is not here has a descriptor.
_PATHS = {
    "rename": (0, 1), "renameat": (1, 3), "renameat2": (1, 3), "link": (0, 1), "linkat": (1, 3), "unlink": (0,),
    "unlinkat": (1,), "chmod": (0,),
}  # fmt: skip


class _Info(ctypes.Structure):
    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64),
        ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64 * 6),
        ("more", ctypes.c_uint64 * 4),
    )


class Call(NamedTuple):
    """A system call, as "rename" even where the kernel's is renameat2, and the paths that it is about."""

    name: str
    paths: tuple[str, ...]


class Traced:
    """A process that does `work`, and stands still at each system call of it, not of what comes before and after."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.stops = 0
        self.child = Child(lambda: _between_marks(work))
        self._wait()
        self._mark()
        _ptrace(_SETOPTIONS, self.child.pid, _OPTIONS)

    def next_stop(self) -> bool:
        """Go on until the next stop; false when the work is done. Twice for each call: before and after it."""
        _ptrace(_SYSCALL, self.child.pid, 0)
        if self._wait(_SYSCALL) != _SYSCALL_STOP:
            self._mark()
            self.stops -= 2  # those of the mark itself
            return False
        self.stops += 1
        return True

    def call(self) -> Call | None:
        """Return the call that the process is about to do, when that is known and changes what is on the disk."""
        info = _Info()
        _ptrace(_GET_SYSCALL_INFO, self.child.pid, ctypes.addressof(info), ctypes.sizeof(info))
        name = _NAMES.get(info.arch, {}).get(info.number) if info.op == _ENTRY else None
        if name is None:
            return None
        if name in _PATHS:
            paths = tuple(self._text(info.arguments[place]) for place in _PATHS[name])
        else:
            paths = (os.readlink("/proc/%d/fd/%d" % (self.child.pid, info.arguments[0])),)
        return Call(name[:-3] if name.endswith("at2") else name[:-2] if name.endswith("at") else name, paths)

    def knows_names(self) -> bool:
        """Return False on a machine whose numbers of system calls are not listed here, or with a kernel before 5.3."""
        info = _Info()
        size = _libc().ptrace(_GET_SYSCALL_INFO, self.child.pid, ctypes.sizeof(info), ctypes.addressof(info))
        return size > 0 and info.arch in _NAMES

    def kill(self) -> None:
        """End it where it stands: a call that it was about to do is not done."""
        os.kill(self.child.pid, signal.SIGKILL)
        assert os.WIFSIGNALED(self.child.wait())

    def answer(self) -> Any:
        """Let it go on to its end; what its work returned."""
        while self.child.status is None:
            _ptrace(_CONT, self.child.pid, 0)
            self._wait()
        return self.child.answer()

    def _wait(self, request: int = _CONT) -> int:
        """Return the signal that it was stopped by. Any other is passed on, and it goes on by this request."""
        while True:
            _pid, status = os.waitpid(self.child.pid, 0)
            if not os.WIFSTOPPED(status):
                self.child.ended(status)
                return 0
            number = os.WSTOPSIG(status)
            if number in (signal.SIGSTOP, _SYSCALL_STOP):
                return number
            _ptrace(request, self.child.pid, number)

    def _mark(self) -> None:
        if self.child.status is not None:
            self.child.answer()
            raise AssertionError("the child ended at the wrong place")

    def _text(self, address: int) -> str:
        with open("/proc/%d/mem" % self.child.pid, "rb", buffering=0) as memory:
            memory.seek(address)
            text = b""
            # A path may end just before memory that cannot be read.
            while b"\0" not in text:
                text += memory.read(256 - (address + len(text)) % 256)
        return os.fsdecode(text.split(b"\0")[0])


@lru_cache(maxsize=None)
def why_not() -> str:
    """Return why nothing can be traced here; empty when it can."""
    try:
        traced = Traced(lambda: None)
    except (AssertionError, OSError) as error:
        return "cannot trace a process here: %s" % str(error).strip().rpartition("\n")[2]
    if not traced.next_stop():
        return "cannot trace a process here: it does not stop"
    traced.kill()
    return ""


def _between_marks(work: Callable[[], Any]) -> Any:
    pid = os.getpid()
    _ptrace(_TRACEME, 0, 0)
    os.kill(pid, signal.SIGSTOP)
    try:
        return work()
    finally:
        os.kill(pid, signal.SIGSTOP)


@lru_cache(maxsize=None)
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    return libc


def _ptrace(request: int, pid: int, data: int, address: int = 0) -> None:
    if _libc().ptrace(request, pid, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
