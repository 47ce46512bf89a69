# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is put to the test: each way to change the kubelet's checkpoint, and what must hold whatever happens."""

from __future__ import annotations

import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import remove_file, replace_file

NAME = "cpu_manager_state"
OLD = b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'
NEW = b'{"policyName":"static","defaultCpuSet":"0-23","checksum":3690504434}' + b"\n" * 5000
OTHER = b'{"policyName":"static","defaultCpuSet":"0,12","checksum":1}'

MODE, NEW_MODE, OWNER = 0o640, 0o600, (1234, 5678)
LABEL = "user.label"

STRAY = re.compile(r"\.%s\.kubenode-[0-9a-f]{16}" % NAME)
BACKUP = re.compile(r"%s\.\d{8}T\d{6}Z(\.\d+)?~" % NAME)

DONE, REFUSED, FAILED = "done", "refused", "failed"


class Case(NamedTuple):
    """A change of the checkpoint from one content to another; None: no such file."""

    before: bytes | None
    after: bytes | None
    backup: bool


CASES = {
    "replace": Case(OLD, NEW, True),
    "replace-without-backup": Case(OLD, NEW, False),
    "create": Case(None, NEW, True),
    "remove": Case(OLD, None, True),
    "remove-without-backup": Case(OLD, None, False),
}


class Outcome(NamedTuple):
    """How a change ended: DONE with the path of a backup, if any, or REFUSED or FAILED with a message."""

    kind: str
    text: str


class Found(NamedTuple):
    """What there is to see of a file."""

    content: bytes
    mode: int
    owner: tuple[int, int]
    label: bytes


def prepare(directory: Path, case: Case, stray: bool = True) -> Path:
    """Return the path of the checkpoint in `directory`, which then holds that alone, and what a killed run left
    there."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(exist_ok=True)
    path = directory / NAME
    if case.before is not None:
        path.write_bytes(case.before)
        if os.geteuid() == 0:
            os.chown(path, *OWNER)
        path.chmod(MODE)
        with suppress(OSError):
            os.setxattr(path, LABEL, b"kubelet")
    if stray:
        (directory / (".%s.kubenode-0123456789abcdef" % NAME)).write_bytes(b"half")
    return path


def change(path: Path, case: Case) -> Outcome:
    """Do it."""
    try:
        if case.after is not None:
            backup = replace_file(str(path), case.after, NEW_MODE, case.before, case.backup)
        else:
            backup = remove_file(str(path), case.before or b"", case.backup)
    except RefusedError as error:
        return Outcome(REFUSED, str(error))
    except NodeError as error:
        return Outcome(FAILED, str(error))
    return Outcome(DONE, backup or "")


def look(path: Path) -> Found | None:
    """Return what is there now; None when there is no such file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    assert stat.S_ISREG(status.st_mode)
    label = b""
    with suppress(OSError):
        label = os.getxattr(path, LABEL)
    return Found(path.read_bytes(), stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), label)


def wanted(before: Found | None, case: Case) -> Found | None:
    """Return what must be there after the change."""
    if case.after is None:
        return None
    if before is None:
        return Found(case.after, NEW_MODE, (os.geteuid(), os.getegid()), b"")
    return before._replace(content=case.after)


def backups(directory: Path) -> list[Path]:
    """Return the backups of the checkpoint; nothing else may be there but what a killed run leaves."""
    names = [name for name in os.listdir(directory) if name != NAME and not STRAY.fullmatch(name)]
    assert all(BACKUP.fullmatch(name) for name in names), names
    return [directory / name for name in sorted(names)]


def strays(directory: Path) -> list[str]:
    """Return what killed runs left."""
    return [name for name in os.listdir(directory) if STRAY.fullmatch(name)]


def check_after_a_kill(path: Path, case: Case, before: Found | None) -> bool:
    """Return the old or the new, whole; and the next run is as any other. True when it was the new."""
    here = look(path)
    after = wanted(before, case)
    assert here in (before, after)
    kept = backups(path.parent)
    assert all(look(backup) == before for backup in kept)
    if case.backup and before is not None and here == after:
        assert kept
    again = Case(here.content if here else None, OTHER if here == after else case.after, False)
    assert change(path, again) == (DONE, "")
    assert look(path) == wanted(here, again)
    assert strays(path.parent) == []
    assert backups(path.parent) == kept
    return here == after
