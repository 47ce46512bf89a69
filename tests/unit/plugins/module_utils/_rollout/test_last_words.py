# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lines of a kubelet's log that tell why it ended."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.health import last_words


def test_last_words_tell_why(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.log"
    reason = 'E1 kubelet.go:1 "Failed to start ContainerManager" err="start cpu manager error: ..."'
    lines = ["line %d" % number for number in range(100)]
    file.write_text("\n".join([*lines[:50], reason, *lines[50:]]) + "\n", encoding="utf-8")
    assert last_words("kubelet", 10, str(file)) == [reason]
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    assert last_words("kubelet", 10, str(file)) == lines[-15:]


def test_the_last_lines_that_tell_why(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.log"
    lines = ["E%d command failed" % number for number in range(20)]
    file.write_text("\n".join([*lines, "the end"]), encoding="utf-8")
    assert last_words("kubelet", 10, str(file)) == lines[-15:]


def test_only_the_end_of_a_big_log_is_read(tmp_path: Path) -> None:
    """Its last 64 KiB, which may begin anywhere, also within a character."""
    file = tmp_path / "kubelet.log"
    before, first, last = b"E1 command failed\n", b"E2 command failed\n", b"\xff E3 command failed\n"
    filling = b"x" * ((1 << 16) - len(first) - len(last) - 1) + b"\n"
    file.write_bytes(before + first + filling + last)
    assert last_words("kubelet", 10, str(file)) == ["E2 command failed", "\ufffd E3 command failed"]
    file.write_bytes(first)
    assert last_words("kubelet", 10, str(file)) == ["E2 command failed"]


def test_the_journal_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "journalctl"
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="ascii")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (tmp_path, os.environ["PATH"]))
    begin = int(time.time())
    unit, since, *others = last_words("k3s", 1000)
    assert unit == "--unit=k3s"
    assert begin - 1000 <= int(since.replace("--since=@", "")) <= time.time() - 1000
    assert others == ["--output=cat", "--no-pager", "--lines=300"]


def test_no_words(tmp_path: Path) -> None:
    assert last_words("kubelet", 10, str(tmp_path / "missing")) == []
