# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of resctrl as a file system: python serve.py MOUNT_POINT, with commands as lines of JSON on its input.

{"load": shape} begins anew with a platform, {"state": ""} gives all that can be changed, {"tasks": {group: [pid]}} puts
processes into groups, {"counted": [[group, id, file, value]]} sets counters, {"writes": ""} gives the changes since the
last time. It ends with its input.
"""

# FUSE calls the functions with arguments that not all need.
# ruff: noqa: ARG002

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import collection_path

collection_path.register()

import mfusepy  # type: ignore[import-untyped] # noqa: E402

from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.kernel import Kernel  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.shapes import Shape  # noqa: E402
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.shown import RefusedError  # noqa: E402


class Files(mfusepy.Operations):  # type: ignore[misc]
    """What FUSE calls. The times of files do not change, as nobody looks at them."""

    use_ns = True

    def __init__(self) -> None:
        self.kernel = Kernel(Shape([0]))
        self.guard = threading.Lock()
        self.writes: list[list[str]] = []

    def command(self, given: dict[str, Any]) -> Any:
        """Do a command; give the answer."""
        with self.guard:
            if "load" in given:
                self.kernel = Kernel(Shape.from_dict(given["load"]))
                self.writes.clear()
            for name, pids in given.get("tasks", {}).items():
                self.kernel.groups[name].tasks = pids
            for name, number, file, value in given.get("counted", []):
                self.kernel.counted[name, number, file] = value
            if "writes" in given:
                writes, self.writes = self.writes, []
                return writes
            return self.kernel.state() if "state" in given else None

    # --- called by FUSE ----------------------------------------------------------------------------------

    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        with self.guard:
            names = self.kernel.names(path)
            if names is None and not self.kernel.is_file(path):
                raise mfusepy.FuseOSError(errno.ENOENT)
            mode = stat.S_IFDIR | 0o755 if names is not None else stat.S_IFREG | self.kernel.mode_of(path)
        # A file of the kernel's has no size.
        return {"st_mode": mode, "st_nlink": 2 if names is not None else 1, "st_size": 0, "st_uid": 0, "st_gid": 0}

    def readdir(self, path: str, fh: Any) -> Iterator[str]:
        with self.guard:
            names = self.kernel.names(path)
        if names is None:
            raise mfusepy.FuseOSError(errno.ENOENT)
        return iter([".", "..", *names])

    def open(self, path: str, fi: Any) -> int:
        # Else FUSE would read no further than the size.
        fi.direct_io = 1
        return 0

    def release(self, path: str, fi: Any) -> int:
        return 0

    def truncate(self, path: str, length: int, fh: Any = None) -> int:
        return 0

    def read(self, path: str, size: int, offset: int, fh: Any) -> bytes:
        with self.guard:
            content: str = self._done(lambda: self.kernel.read(path))
        return content.encode("ascii")[offset : offset + size]

    def write(self, path: str, data: bytes, offset: int, fh: Any) -> int:
        with self.guard:
            self.writes.append(["write", path, data.decode("latin-1")])
            self._done(lambda: self.kernel.write(path, data))
        return len(data)

    def mkdir(self, path: str, mode: int) -> int:
        with self.guard:
            self.writes.append(["mkdir", path, ""])
            self._done(lambda: self.kernel.mkdir(path))
        return 0

    def rmdir(self, path: str) -> int:
        with self.guard:
            self.writes.append(["rmdir", path, ""])
            self._done(lambda: self.kernel.rmdir(path))
        return 0

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        raise mfusepy.FuseOSError(errno.EPERM)

    def unlink(self, path: str) -> int:
        raise mfusepy.FuseOSError(errno.EPERM)

    def rename(self, old: str, new: str) -> int:
        raise mfusepy.FuseOSError(errno.EPERM)

    @staticmethod
    def _done(act: Any) -> Any:
        try:
            return act()
        except RefusedError as refused:
            raise mfusepy.FuseOSError(refused.number) from None


def main() -> None:
    mount_point = sys.argv[1]
    files = Files()

    def obey() -> None:
        for line in sys.stdin:
            print(json.dumps(files.command(json.loads(line))), flush=True)
        os._exit(0)

    threading.Thread(target=obey, daemon=True).start()
    warnings.simplefilter("ignore")
    mfusepy.FUSE(
        files, mount_point, foreground=True, nothreads=False, raw_fi=True, fsname="resctrl", allow_other=True,
        attr_timeout=0, entry_timeout=0, negative_timeout=0,
    )  # fmt: skip


if __name__ == "__main__":
    main()
