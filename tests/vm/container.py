# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images for containers, made here: no registry is asked."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

# Where a machine has them, to be imported into its runtime.
PLACE = Path("usr/local/share/container-images")

_COMMANDS = ("cat", "grep", "sed", "sh", "sleep")
_DIRECTORIES = ("bin", "dev", "etc", "proc", "sys", "tmp")
_LONG = "1000000000"
_LONG_AGO = "2000-01-01T00:00:00Z"


def archive(name: str, busybox: bytes) -> bytes:
    """Return an image of this name with a busybox and all its commands, of which it runs one that does nothing for
    long."""
    return archive_of(
        name, _tar([*map(_directory, _DIRECTORIES), _file("bin/busybox", busybox), *map(_link, _COMMANDS)])
    )


def archive_of(name: str, layer: bytes) -> bytes:
    """Return an image of this name in the format of `docker save`, with one layer, which is a tar archive."""
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        "created": _LONG_AGO,
        "config": {"Cmd": ["/bin/sleep", _LONG], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": _LONG_AGO}],
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    members = {"config.json": _json(configuration), "layer.tar": layer, "manifest.json": _json(manifest)}
    return _tar([_file(path, data) for path, data in members.items()])


def _tar(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _directory(path: str) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(path)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info, b""


def _file(path: str, data: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(path)
    info.mode = 0o755
    return info, data


def _link(command: str) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo("bin/" + command)
    info.type, info.linkname = tarfile.SYMTYPE, "busybox"
    return info, b""


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
