# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_dynamic/program.py."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic import program as module
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._dynamic.program import DirectoryWatch


def test_a_wait_ends_with_what_is_made(tmp_path: Path) -> None:
    place = tmp_path / "made later"
    watch = DirectoryWatch([str(place)])
    try:
        assert not watch.wait(0.01)
        place.mkdir()
        assert not watch.wait(0.01)
        timer = threading.Timer(0.1, (place / "log").symlink_to, ["nowhere"])
        timer.start()
        start = time.monotonic()
        assert watch.wait(60)
        assert time.monotonic() - start < 50
        timer.join()
        # All that came together is met.
        assert not watch.wait(0.01)
        (place / "log").unlink()
        assert watch.wait(60)
    finally:
        watch.close()
        watch.close()


def test_a_system_without_inotify(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_inotify", lambda: (None, -1))
    start = time.monotonic()
    assert not DirectoryWatch().wait(0.05)
    assert time.monotonic() - start >= 0.05
