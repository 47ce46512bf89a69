# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print what the kernel and the files hold that say where the host's own work runs, a line each.

It reads all that is there, and nothing of the collection: so it also shows what the collection should not have touched.
"""

from __future__ import annotations

import glob
import hashlib
import os

KERNEL = (
    "/proc/irq/default_smp_affinity",
    "/proc/irq/*/smp_affinity",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/net/core/rps_default_mask",
    "/sys/class/net/*/queues/rx-*/rps_cpus",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/fs/cgroup/*/cpuset.cpus",
    "/sys/fs/cgroup/*/cpuset.cpus.partition",
)
ALL = "0-%d" % ((os.cpu_count() or 1) - 1)
TREES = (
    *("/boot/grub", "/etc/default", "/etc/systemd", "/etc/kernel", "/etc/tuned"),
    *("/usr/local/lib", "/var/lib/kubenode-cpu-manager"),
)


def main() -> None:
    for pattern in KERNEL:
        for path in sorted(glob.glob(pattern)):
            text = content(path).decode("ascii", "backslashreplace").strip()
            # The kernel lets no cpuset be emptied that has processes. Without any CPUs of its own it has all.
            print(path, "" if text == ALL and path.endswith("/cpuset.cpus") else text)
    for top in TREES:
        for directory, _names, files in sorted(os.walk(top)):
            status = os.lstat(directory)
            print(directory, oct(status.st_mode))
            for path in sorted(os.path.join(directory, name) for name in files):
                status = os.lstat(path)
                digest = os.readlink(path) if os.path.islink(path) else hashlib.sha256(content(path)).hexdigest()
                print(path, oct(status.st_mode), status.st_uid, status.st_gid, digest)


def content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        return str(error.errno).encode("ascii")


if __name__ == "__main__":
    main()
