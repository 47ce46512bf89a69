# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_base/files.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import (
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import (
    FileChange,
    check_changes,
    make_changes,
)
from ansible_collections.kubenode.cpu_manager.tests.playbooks.conftest import fingerprint

OLD, NEW = b"old", b"new"


def change(path: Path, before: bytes | None, after: bytes | None, keep_mode: bool = True) -> FileChange:
    return FileChange(str(path), before, after, 0o600, keep_mode)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


def failing(tmp_path: Path) -> FileChange:
    """Return a change for which somebody else came first."""
    path = tmp_path / "changed"
    path.write_bytes(b"by hand")
    return change(path, OLD, NEW)


def test_all_are_made(tmp_path: Path, old: Path) -> None:
    gone, new = tmp_path / "gone", tmp_path / "deep" / "directory" / "new"
    gone.write_bytes(OLD)
    changes = [change(old, OLD, NEW), change(gone, OLD, None), change(new, None, NEW), change(gone, None, None)]
    check_changes(changes, True, 3)
    backups = make_changes(changes[:3], True, 3)
    assert (old.read_bytes(), new.read_bytes(), gone.exists()) == (NEW, NEW, False)
    assert sorted(backups) == [str(gone), str(old)]
    assert {Path(path).read_bytes() for path in backups.values()} == {OLD}
    assert (new.stat().st_mode & 0o777, new.parent.stat().st_mode & 0o777) == (0o600, 0o755)
    assert make_changes([], True, 3) == {}
    assert make_changes([change(gone, None, None)], True, 3) == {}


@pytest.mark.parametrize("backup", [False, True])
def test_none_are_made(tmp_path: Path, old: Path, backup: bool) -> None:
    """Content, mode and owner are as before, and so are directories."""
    gone, new = tmp_path / "gone", tmp_path / "deep" / "directory" / "new"
    gone.write_bytes(OLD)
    gone.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(old, 1234, 5678)
        os.chown(gone, 1234, 5678)
    changes = [change(old, OLD, NEW, keep_mode=False), change(gone, OLD, None), change(new, None, NEW)]
    changes.append(failing(tmp_path))
    before = fingerprint(tmp_path)
    owners = {path: (path.stat().st_uid, path.stat().st_gid) for path in (old, gone)}
    with pytest.raises(RefusedError, match="changed: was changed while it was worked on"):
        make_changes(changes, backup, 1)
    assert fingerprint(tmp_path) == before
    assert {path: (path.stat().st_uid, path.stat().st_gid) for path in (old, gone)} == owners


def test_old_backups_stay_when_one_fails(tmp_path: Path, old: Path) -> None:
    earlier = tmp_path / "old.20200101T000000Z~"
    earlier.write_bytes(b"earlier")
    with pytest.raises(RefusedError):
        make_changes([change(old, OLD, NEW), failing(tmp_path)], True, 1)
    assert earlier.exists()
    make_changes([change(old, OLD, NEW)], True, 1)
    assert not earlier.exists()


def test_what_cannot_be_put_back_is_named(tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backup stays, as the only copy."""
    in_directory = tmp_path / "directory" / "other"

    def somebody_comes(path: str, _mode: int) -> None:
        old.write_bytes(b"by hand")
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "mkdir", somebody_comes)
    with pytest.raises(NodeError) as caught:
        make_changes([change(old, OLD, NEW), change(in_directory, None, NEW)], True, 3)
    assert str(caught.value) == (
        "%s: cannot be made: Permission denied; %s: was changed while it was worked on; nothing was written; run again;"
        " put back by hand what was changed, from its backup (*~)" % (in_directory.parent, old)
    )
    assert [path.read_bytes() for path in tmp_path.glob("old.*~")] == [OLD]


def test_a_file_in_a_directorys_place(tmp_path: Path, old: Path) -> None:
    with pytest.raises(NodeError, match="cannot be made: Not a directory"):
        make_changes([change(old / "a" / "b", None, NEW)], True, 3)
    with pytest.raises(NodeError, match="cannot be made: Not a directory"):
        make_changes([change(old / "b", None, NEW)], True, 3)
    assert os.listdir(tmp_path) == ["old"]


def test_a_count_below_zero(old: Path) -> None:
    with pytest.raises(InputError, match="backup_keep: -1 is not a number of files; give 0 to keep all, or more"):
        check_changes([change(old, OLD, NEW)], True, -1)
    check_changes([change(old, OLD, NEW)], True, 0)


def test_the_first_obstacle_is_told(tmp_path: Path, old: Path) -> None:
    with pytest.raises(RefusedError, match="is not a regular file"):
        check_changes([change(old, OLD, NEW), change(tmp_path, OLD, NEW)], True, 3)
