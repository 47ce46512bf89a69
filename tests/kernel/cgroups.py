# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real cgroups of v1 with real processes, below one directory that nobody else has."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from contextlib import ExitStack, suppress
from typing import Mapping

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.hierarchy import CPUS, MEMS, Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.support.cpus_of_machine import alone


def why_not() -> str:
    """Return why no cpuset of v1 can be made here; empty when it can."""
    if os.geteuid() != 0:
        return "only root can make cgroups"
    try:
        hierarchy = Hierarchy(Tree("/"))
    except NodeError as error:
        return str(error)
    if hierarchy.version != 1:
        return "the cpuset controller is in cgroup v%d here" % hierarchy.version
    if not os.access(hierarchy.place(""), os.W_OK):
        return "%s is read-only" % hierarchy.mount
    if len(hierarchy.online_cpus()) < 2:
        return "this machine has one CPU"
    return ""


class Cgroups:
    """A context: the cgroup `top` with two CPUs, and all that is made below it. Paths are relative to `top`.

    Of the CPUs, the tests know numbers 0 and 1; on this machine they may have others.
    """

    def __init__(self) -> None:
        self.hierarchy = Hierarchy(Tree("/"))
        self.top = "kubenode-test-%d-%s" % (os.getpid(), os.urandom(4).hex())
        self.cpus = tuple(self.hierarchy.online_cpus().take(2))
        self.processes: list[subprocess.Popen[bytes]] = []
        self.lock = ExitStack()

    def __enter__(self) -> Cgroups:
        self.lock.enter_context(alone())
        try:
            self.make("", "0-1")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        try:
            for process in self.processes:
                process.kill()
                process.wait()
            self.remove("")
        finally:
            self.lock.close()

    # --- sets by the tests' numbers ---------------------------------------------------------------

    def real(self, text: str) -> CPUSet:
        """Return this machine's CPUs for those of a test."""
        return CPUSet(self.cpus[number] for number in CPUSet.parse(text))

    def path(self, path: str) -> str:
        """Return the path in the hierarchy."""
        return "/".join(filter(None, (self.top, path)))

    def place(self, path: str, name: str = "") -> str:
        """Return the path in the file system."""
        return self.hierarchy.place(self.path(path), name)

    def told(self, cpus: CPUSet) -> str:
        """Return a test's numbers of this machine's CPUs."""
        return str(CPUSet(self.cpus.index(cpu) for cpu in cpus))

    def sets(self) -> dict[str, str]:
        """Return what each cgroup below has."""
        return {
            path[len(self.top) + 1 :]: self.told(self.hierarchy.read(path).effective_cpus)
            for path in self.hierarchy.cgroups(self.top)
        }

    # --- doing ------------------------------------------------------------------------------------

    def make(self, path: str, cpus: str) -> None:
        """Make a cgroup with CPUs and the memory of the one above."""
        os.mkdir(self.place(path))
        mems = self.hierarchy.read(os.path.dirname(self.path(path))).mems or CPUSet()
        assert self.write(path, cpus) == self.write_text(path, MEMS, str(mems)) == ""

    def make_all(self, sets: Mapping[str, str]) -> None:
        """Make cgroups, each after those above it."""
        for path in sorted(sets):
            self.make(path, sets[path])

    def write(self, path: str, cpus: str) -> str:
        """Write a set as anybody would; the name of the kernel's error, or nothing."""
        return self.write_text(path, CPUS, str(self.real(cpus)))

    def write_text(self, path: str, name: str, text: str) -> str:
        """Write any file; the name of the kernel's error, or nothing."""
        descriptor = os.open(self.place(path, name), os.O_WRONLY)
        try:
            os.write(descriptor, text.encode("ascii") + b"\n")
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        finally:
            os.close(descriptor)
        return ""

    def start(self, path: str) -> subprocess.Popen[bytes]:
        """Return a process in a cgroup."""
        process = subprocess.Popen(["sleep", "600"])
        self.processes.append(process)
        assert self.write_text(path, "cgroup.procs", str(process.pid)) == ""
        return process

    def allowed(self, process: subprocess.Popen[bytes]) -> str:
        """Return where the kernel lets a process run."""
        with open("/proc/%d/status" % process.pid, encoding="ascii") as status:
            line = next(line for line in status if line.startswith("Cpus_allowed_list:"))
        return self.told(CPUSet.parse(line.split()[1]))

    def remove(self, path: str) -> None:
        """Remove a cgroup and all below it, if it is there."""
        for cgroup in [*reversed(list(self.hierarchy.cgroups(self.path(path)))), self.path(path)]:
            # A process that was killed leaves its cgroup a little later.
            for _attempt in range(200):
                try:
                    with suppress(FileNotFoundError):
                        os.rmdir(self.hierarchy.place(cgroup))
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY:
                        raise
                    time.sleep(0.01)
