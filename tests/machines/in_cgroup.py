# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Processes of this machine in cgroups of any name."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator

import pytest


@contextmanager
def in_cgroup(group: str, pid: int) -> Iterator[None]:
    """Yield a process in a cgroup of its own, in a hierarchy without any controller if there is one."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    named = [words[1] for words in mounts if words[2].startswith("cgroup")]
    named.sort(key=lambda place: not place.endswith(("/unified", "/systemd")))
    place = Path(named[0]) if named else Path("/sys/fs/cgroup")
    parts = [place.joinpath(*Path(group).parts[: depth + 1]) for depth in range(len(Path(group).parts))]
    made: list[Path] = []
    try:
        for part in parts:
            if not part.exists():
                part.mkdir()
                made.append(part)
        (parts[-1] / "cgroup.procs").write_text(str(pid), encoding="ascii")
    except OSError as error:
        for part in reversed(made):
            part.rmdir()
        pytest.skip("no cgroup can be made here: %s" % error)
    yield
    (place / "cgroup.procs").write_text(str(pid), encoding="ascii")
    for part in reversed(made):
        _remove(part)


def _remove(cgroup: Path) -> None:
    """Remove a cgroup; that a process has left it shows a little later."""
    deadline = time.monotonic() + 10
    while cgroup.exists():
        assert time.monotonic() < deadline, cgroup
        with suppress(OSError):
            cgroup.rmdir()
        time.sleep(0.01)
