# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps a CPU of this machine quiet for a while. Run as a program, which puts all back when its input ends.

    python quiet.py HIERARCHY NAME KEPT MEMS

So it is put back however the one that has started it ends. HIERARCHY is where v1 has the cpuset controller, NAME a new
cgroup there, KEPT the CPUs that all processes of the topmost cpuset, interrupts and unbound kernel workers keep to.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Iterator

KSM = Path("/sys/kernel/mm/ksm")
# What scenes write, and what keeps the kernel off.
SAVED = [KSM / name for name in ("run", "pages_to_scan", "sleep_millisecs")]
WORKQUEUES = Path("/sys/devices/virtual/workqueue/cpumask")


def names() -> Iterator[tuple[int, str]]:
    """Yield the processes with their names; not what the kernel adds to those of its workers."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):
            yield int(path.parent.name), path.read_text(errors="replace").rstrip("\n")


def kernel_thread(wanted: str) -> int:
    """Return the process id of a kernel thread; 0 where there is none."""
    return next((pid for pid, name in names() if name == wanted), 0)


def move(source: Path, target: Path) -> None:
    """Move all that can be moved; some rounds, as processes fork meanwhile."""
    for _round in range(3):
        for pid in (source / "cgroup.procs").read_text().split():
            # Not the first process: it is the machine's own.
            if pid != "1" and not is_kernel_thread(pid):
                with suppress(OSError):
                    (target / "cgroup.procs").write_text(pid)


def is_kernel_thread(pid: str) -> bool:
    """Return whether the kernel has made a process, or it has ended."""
    try:
        fields = Path("/proc/%s/stat" % pid).read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return True
    return bool(int(fields[6]) & 0x00200000)


def keep_threads(kept: set[int]) -> dict[int, set[int]]:
    """Keep the kernel threads that can be moved on these CPUs; where each was before."""
    before = {}
    for path in Path("/proc").glob("[0-9]*"):
        if is_kernel_thread(path.name):
            with suppress(OSError):
                allowed = os.sched_getaffinity(int(path.name))
                if len(allowed) > 1:
                    os.sched_setaffinity(int(path.name), kept)
                    before[int(path.name)] = allowed
    return before


def main() -> None:
    hierarchy, name, kept, mems = Path(sys.argv[1]), *sys.argv[2:]
    aside = hierarchy / name
    mask = "%x" % sum(1 << int(cpu) for cpu in kept.split(","))
    wanted = {WORKQUEUES: mask}
    wanted.update(dict.fromkeys(Path("/proc/irq").glob("[0-9]*/smp_affinity_list"), kept))
    before = {path: path.read_text() for path in (*wanted, *SAVED) if path.exists()}
    allowed: dict[int, set[int]] = {}
    aside.mkdir()
    try:
        (aside / "cpuset.cpus").write_text(kept)
        (aside / "cpuset.mems").write_text(mems)
        move(hierarchy, aside)
        for path, text in wanted.items():
            with suppress(OSError):
                path.write_text(text)
        allowed = keep_threads({int(cpu) for cpu in kept.split(",")})
        print("quiet", flush=True)
        sys.stdin.read()
    finally:
        for path, text in before.items():
            with suppress(OSError):
                path.write_text(text)
        for pid, cpus in allowed.items():
            with suppress(OSError):
                os.sched_setaffinity(pid, cpus)
        for _attempt in range(500):
            move(aside, hierarchy)
            try:
                aside.rmdir()
                break
            except OSError:
                time.sleep(0.01)
    print("back", flush=True)


if __name__ == "__main__":
    main()
