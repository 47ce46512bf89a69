# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of tests/vm/guest.py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.vm import guest


def test_what_the_ended_makers_of_snapshots_have_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines, snapshots = tmp_path / "machines", tmp_path / "snapshots"
    monkeypatch.setattr(guest, "MACHINES", machines)
    monkeypatch.setattr(guest, "SNAPSHOTS", snapshots)
    with subprocess.Popen(["sleep", "infinity"]) as zombie:
        zombie.kill()
        # Nobody asks for its status until the end of this block.
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        ended = "snapshot-%d" % zombie.pid
        lives = "snapshot-%d" % os.getpid()
        for name in (ended, lives, "worker"):
            (machines / name).mkdir(parents=True)
        for name in (ended, lives, "snapshot-0"):
            (snapshots / (".new-" + name)).mkdir(parents=True)
        assert guest.abandoned() == ["snapshot-0", ended]
        for name in guest.abandoned():
            guest.stop(name)
        assert guest.abandoned() == []
    assert sorted(os.listdir(machines)) == [lives, "worker"]
    assert os.listdir(snapshots) == [".new-" + lives]
