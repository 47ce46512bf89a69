# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resctrl that is mounted in a saved node's tree: the model as a file system, where this machine has FUSE."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Iterator

import pytest

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking, need

from .shapes import Shape

PLACE = "sys/fs/resctrl"
_SERVE = Path(__file__).with_name("serve.py")
_LAZILY = 2
_PATIENCE = 20.0


def why_not() -> str:
    """Return why there is no FUSE here, which nothing that can be installed changes; empty where there is."""
    if os.geteuid() != 0:
        return "only root can mount a file system"
    return "" if os.path.exists("/dev/fuse") else "this kernel has no /dev/fuse"


class Mounted:
    """A node's tree with the model mounted at sys/fs/resctrl."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.place = root / PLACE
        self.place.mkdir(parents=True, exist_ok=True)
        # No pipe, which would fill up.
        self.said = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 # as long as the process
        self.process = subprocess.Popen(
            [sys.executable, str(_SERVE), str(self.place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
        )
        end = time.monotonic() + _PATIENCE
        while not os.path.ismount(self.place):
            if self.process.poll() is not None or time.monotonic() > end:
                self.said.seek(0)
                raise AssertionError("the model is not mounted: %s" % self.said.read())
            time.sleep(0.01)

    def ask(self, **command: Any) -> Any:
        """Return one command of serve.py; its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def load(self, shape: Shape) -> None:
        """Begin anew, as after mount(8)."""
        self.ask(load=asdict(shape))
        mounts = self.root / "proc/mounts"
        mounts.parent.mkdir(parents=True, exist_ok=True)
        mounts.write_text("sysfs /sys sysfs rw 0 0\nresctrl /%s resctrl %s 0 0\n" % (PLACE, shape.options))

    def state(self) -> dict[str, str]:
        """Return all that can be changed."""
        found: dict[str, str] = self.ask(state="")
        return found

    def writes(self) -> list[list[str]]:
        """Return what was changed since the last time, as it was tried."""
        found: list[list[str]] = self.ask(writes="")
        return found

    def end(self) -> None:
        """Unmount it, and end the process."""
        ctypes.CDLL(None).umount2(os.fsencode(self.place), _LAZILY)
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=_PATIENCE)
        finally:
            self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.said.close()


def mounted(root: Path) -> Iterator[Mounted]:
    """Yield, for a fixture, a resctrl that is mounted in this tree, and unmount it at the end."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    need("fusermount3")
    if importlib.util.find_spec("mfusepy") is None:
        lacking(TOOL, "no mfusepy (requirements-test.txt)")
    model = Mounted(root)
    try:
        yield model
    finally:
        model.end()
