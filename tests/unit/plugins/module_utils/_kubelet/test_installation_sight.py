# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/installation.py."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.installation import why_hidden


def why(root: Path, processes: Sequence[int], cgroups: Mapping[str, str]) -> str:
    """Return where these processes are seen, and these cgroups have those."""
    for pid in processes:
        (root / "proc" / str(pid)).mkdir(parents=True)
        (root / "proc" / str(pid) / "cmdline").touch()
    for path, pids in cgroups.items():
        (root / "cgroup" / path).mkdir(parents=True)
        (root / "cgroup" / path / "cgroup.procs").write_text(pids)
    return why_hidden(str(root / "proc"), str(root / "cgroup"))


@pytest.mark.parametrize(
    "cgroups",
    [
        {},
        {"system.slice/kubelet.service": ""},
        # What a stopped k3s leaves behind, and others.
        {"system.slice/k3s.service": "1\n20\n", "unified/system.slice/sshd.service": "30\n"},
        {"user.slice/user-0.slice/kubelet.service": "30\n"},
    ],
)
def test_a_kubelet_that_is_stopped(tmp_path: Path, cgroups: Mapping[str, str]) -> None:
    assert why(tmp_path, (1, 20), cgroups) == ""


@pytest.mark.parametrize(
    ("path", "pids"),
    [
        ("system.slice/kubelet.service", "30\n"),
        ("runtime.slice/kubelet.service", "1\n30\n"),
        ("unified/system.slice/k3s-agent.service", "0\n"),
        ("systemd/system.slice/kubelet.service", "30\n"),
    ],
)
def test_a_kubelet_whose_processes_are_hidden(tmp_path: Path, path: str, pids: str) -> None:
    service = path.rpartition("/")[2]
    assert why(tmp_path, (1, 20), {path: pids}) == "%s runs, and %s/proc does not show its processes" % (
        service,
        tmp_path,
    )


def test_all_others_are_hidden(tmp_path: Path) -> None:
    assert "does not show the processes of others" in why(tmp_path, (20,), {})
