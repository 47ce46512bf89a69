# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A systemd of its own on this machine, which runs units as on a node, with its own processes, mounts and files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Mapping

SYSTEMD = Path("/lib/systemd/systemd")
# Where the directory of a test is seen.
SHARED = "/shared"

# The root is this machine's, and what is written there is forgotten. PLACE is the directory of the test.
_BOOT = """\
set -e
mount --make-rprivate /
mkdir "$PLACE/upper" "$PLACE/root"
mount -t tmpfs tmpfs "$PLACE/upper"
mkdir "$PLACE/upper/files" "$PLACE/upper/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$PLACE/upper/files,workdir=$PLACE/upper/work" "$PLACE/root"
cd "$PLACE/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
if test -e /sys/fs/cgroup/cgroup.controllers; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mount -t tmpfs tmpfs sys/fs/cgroup
    for name in unified systemd cpuset memory; do mkdir "sys/fs/cgroup/$name"; done
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
    mount -t cgroup -o cpuset cgroup sys/fs/cgroup/cpuset
    mount -t cgroup -o memory cgroup sys/fs/cgroup/memory
fi
mount -t tmpfs tmpfs run
mount --rbind /dev dev
mkdir .%(shared)s
mount --bind "$PLACE/shared" .%(shared)s
rm -rf etc/systemd/system/*.wants
echo 0123456789abcdef0123456789abcdef > etc/machine-id
cp "$PLACE"/units/* etc/systemd/system/
exec chroot . /usr/bin/env -i container=lxc PATH=/usr/bin:/bin:/usr/sbin:/sbin %(systemd)s --unit=trial.service
""" % {"shared": SHARED, "systemd": SYSTEMD}
_TRIAL = """\
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service

[Service]
Type=oneshot
ExecStart=/bin/sh %(shared)s/trial.sh
StandardOutput=append:%(shared)s/said
StandardError=append:%(shared)s/said
ExecStopPost=/bin/systemctl --force --force poweroff
""" % {"shared": SHARED}


_NAMESPACES = ("unshare", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--fork")


def why_not() -> str:
    """Return why no systemd can be started here; empty where it can."""
    if not SYSTEMD.exists():
        return "no systemd"
    if "overlay" not in Path("/proc/filesystems").read_text().split():
        return "no overlay file system"
    done = subprocess.run([*_NAMESPACES, "mount", "--make-rprivate", "/"], capture_output=True, text=True, check=False)
    return done.stderr.strip()


def run_under_systemd(place: Path, units: Mapping[str, str], script: str) -> str:
    """Return what a script says that is run where these units are known. `place`/shared is seen as SHARED."""
    (place / "shared").mkdir(exist_ok=True)
    (place / "shared" / "trial.sh").write_text(script)
    (place / "units").mkdir()
    for name, text in {**units, "trial.service": _TRIAL}.items():
        (place / "units" / name).write_text(text)
    done = subprocess.run(
        [*_NAMESPACES, "sh", "-c", _BOOT], env={"PLACE": str(place), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    said = place / "shared" / "said"
    assert said.exists(), done
    return said.read_text()
