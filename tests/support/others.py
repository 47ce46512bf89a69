# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Another user of this machine, who writes for real what root could read, and access control lists that let him."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator, Sequence

import pytest

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes another user")

# The tags of an access control list, and the permissions that it gives. Source: acl(5).
OWNER, USER, OWNING_GROUP, GROUP, MASK, OTHERS = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
READS, WRITES = 5, 7
_NO_ID = 0xFFFFFFFF
Entry = tuple[int, int, int]


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a directory to which others come, too; those of pytest are root's alone."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def writes_as_nobody(path: Path, content: bytes = b"of nobody\n") -> bool:
    """Return whether the other user can write this file, which he then has done."""
    command = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", "sh", "-c", 'cat > "$1"', "sh", str(path)]
    return subprocess.run(command, input=content, check=False, stderr=subprocess.DEVNULL).returncode == 0


def put_acl(
    path: Path, entries: Sequence[Entry] = ((USER, WRITES, NOBODY),), mask: int = 7, kind: str = "access"
) -> None:
    """Give a file or directory a list with these entries, or where it has no lists, skip the test."""
    whole = [(OWNER, 7, _NO_ID), (OWNING_GROUP, READS, _NO_ID), (MASK, mask, _NO_ID), (OTHERS, READS, _NO_ID)]
    tags = {tag for tag, _bits, _id in entries} - {USER, GROUP}
    whole = sorted([*(entry for entry in whole if entry[0] not in tags), *entries])
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in whole)
    try:
        os.setxattr(path, "system.posix_acl_" + kind, content)
    except OSError as error:
        pytest.skip("no access control lists here: %s" % error.strerror)
