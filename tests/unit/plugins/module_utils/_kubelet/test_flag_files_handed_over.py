# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/flag_files.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.effective import read_flags
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.flag_files import LEFT_OUT, handed_over
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.command_line import read_command
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import KUBELETS

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--manifest-url-header=Authorization:hunter2"], ["--manifest-url-header=Authorization:left-out"]),
        (["--manifest-url-header", "Authorization:hunter2"], ["--manifest-url-header", "Authorization:left-out"]),
        (["--manifest_url_header=Authorization:hunter2"], ["--manifest_url_header=Authorization:left-out"]),
        (["--manifest-url-header=A:hunter2,B:hunter2"], ["--manifest-url-header=A:left-out,B:left-out"]),
        (["--manifest-url-header=hunter2"], ["--manifest-url-header=left-out"]),
        (["--manifest-url=https://a:hunter2@b/?token=hunter2"], ["--manifest-url=left-out"]),
        (["--token=hunter2", "--v=2"], ["--token=left-out", "--v=2"]),
        (["--token", "hunter2", "--config", "/a"], ["--token", "left-out", "--config", "/a"]),
        # A value that looks like a flag.
        (["--token", "-hunter2", "--config=/a"], ["--token", "left-out", "--config=/a"]),
        (["-thunter2", "-t", "hunter2", "-t=hunter2"], ["-t", "-t", "left-out", "-t=left-out"]),
        (["--kubelet-arg=token=hunter2", "--kubelet-arg", "token=hunter2"], None),
        (["--kubelet-arg=max-pods=110"], ["--kubelet-arg=max-pods=110"]),
        (["--kubelet-arg", "v=2", "--kubelet-arg=--v=2"], ["--kubelet-arg", "v=2", "--kubelet-arg=v=2"]),
        (["--", "x", "--token=hunter2"], ["--", "left-out", "--token=left-out"]),
    ],
)
def test_what_may_be_secret_is_left_out(given: list[str], expected: list[str] | None) -> None:
    kept = handed_over(["/usr/bin/kubelet", *given])
    assert SECRET not in " ".join(kept)
    assert expected is None or kept == ["/usr/bin/kubelet", *expected]
    assert len(kept) == len(given) + 1


@pytest.mark.parametrize("name", [name for name, kubelet in KUBELETS.items() if kubelet.command_line])
def test_what_is_read_stays(name: str) -> None:
    words = KUBELETS[name].command_line.split()
    kept = handed_over(words)
    assert read_flags(kept, "x") == read_flags(words, "x")
    assert kept == words


@pytest.mark.parametrize(
    "words",
    [
        ["--cpu-manager-reconcile-period", "-5s"],
        ["--cpu-manager-reconcile-period=-5s"],
        ["-cpu-manager-policy=static"],
        ["--fail-swap-on", "false"],
        ["--v", "2", "-v", "4"],
    ],
)
def test_what_a_kubelet_refuses_stays(words: list[str]) -> None:
    """Its refusal quotes it."""
    assert handed_over(words) == words


def test_a_kubelet_starts_with_what_stays() -> None:
    """It is read again after it was stopped, and is not refused then for what was left out."""
    words = ["--manifest-url-header=Authorization:hunter2", "--manifest-url-header", "X-Token:hunter2"]
    words.append("--manifest-url=https://a:hunter2@b/")
    kept = handed_over(words)
    assert SECRET not in " ".join(kept)
    assert read_command(kept, 36).values["manifest-url-header"] == {"Authorization": [LEFT_OUT], "X-Token": [LEFT_OUT]}
