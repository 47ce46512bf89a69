# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which of the old backups of a file are removed, and copies of a file elsewhere."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import (
    keep_copy,
    remove_old_backups,
    replace_file,
)

# Fixtures are used by their names.
# pylint: disable=unused-import
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._base.file_cases import (
    NEW,
    OLD,
    STAMP,
    as_root,
    failing,
    fixed_clock,  # noqa: F401
    new_directory,  # noqa: F401
    old_file,  # noqa: F401
)


def backups_of(directory: Path, *suffixes: str) -> list[Path]:
    paths = [directory / ("config.yaml." + suffix) for suffix in suffixes]
    for path in paths:
        path.write_bytes(OLD)
    return paths


@pytest.mark.parametrize("keep", range(7))
def test_the_newest_backups_stay(directory: Path, path: Path, keep: int) -> None:
    names = (
        *("20200101T000000Z~", "20250101T000000Z~", "20260101T000000Z~"),
        *("20260101T000000Z.2~", "20260101T000000Z.10~", STAMP + ".11~"),
    )
    paths = backups_of(directory, *names)
    remove_old_backups(str(paths[-1]), keep)
    assert sorted(directory.glob("*~")) == sorted(paths[-keep:] if keep else paths)


def test_the_backup_that_was_just_made_stays(directory: Path, path: Path) -> None:
    """Even where the clock went back."""
    later = backups_of(directory, "20300101T000000Z~", "20300101T000001Z~")
    backup = replace_file(str(path), NEW, 0o600, OLD)
    assert backup is not None
    remove_old_backups(backup, 2)
    assert sorted(directory.glob("*~")) == [Path(backup), later[1]]


def test_the_newest_backups_stay_whatever_the_clock_says(
    directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted: the clock of the node is set back, and forth again."""
    contents = [b"%d" % number for number in range(6)]
    backups = []
    for content, year in zip(contents, ("2026", "2030", "2026", "2020", "2026", "2019")):
        now = time.strptime(year + STAMP[4:], "%Y%m%dT%H%M%SZ")
        monkeypatch.setattr(time, "gmtime", lambda now=now: now)
        backups.append(replace_file(str(path), content, 0o600, path.read_bytes()))
        remove_old_backups(backups[-1] or "", 3)
    assert sorted(directory.glob("*~")) == sorted(Path(backup or "") for backup in backups[-3:])
    assert [Path(backup or "").read_bytes() for backup in backups[-3:]] == contents[2:5]


def test_only_backups_of_this_file_are_removed(directory: Path, path: Path) -> None:
    names = (
        *(
            "20200101T000000Z",
            "2020010T000000Z~",
            "20200101T000000Z.1.2~",
            "20200101T000000Z.0~",
            "20200101T000000Z.x~",
        ),
        *("old.20200101T000000Z~", "20200101t000000z~", "~", "20200101T000000Z~~"),
    )
    others = backups_of(directory, *names)
    (directory / "config.yml.20200101T000000Z~").write_bytes(OLD)
    (directory / "config.yaml.20200102T000000Z~").mkdir()
    (directory / "config.yaml.20200103T000000Z~").symlink_to("config.yaml")
    os.mkfifo(directory / "config.yaml.20200104T000000Z~")
    if os.geteuid() == 0:
        owned = backups_of(directory, "20200105T000000Z~")[0]
        os.chown(owned, 1234, 5678)
        others.append(owned)
    before = sorted(os.listdir(directory))
    gone, newest = backups_of(directory, "20200106T000000Z~", STAMP + "~")
    remove_old_backups(str(newest), 1)
    assert sorted(os.listdir(directory)) == sorted([*before, newest.name])
    assert not gone.exists()
    # What is no backup is none to count from.
    remove_old_backups(str(path), 1)
    assert sorted(os.listdir(directory)) == sorted([*before, newest.name])


@as_root
def test_old_backups_of_the_files_owner_go(directory: Path, path: Path) -> None:
    os.chown(path, 1234, 5678)
    old = backups_of(directory, "20200101T000000Z~")[0]
    os.chown(old, 1234, 5678)
    backup = replace_file(str(path), NEW, 0o600, OLD)
    assert backup is not None
    remove_old_backups(backup, 1)
    assert not old.exists()


def test_an_old_backup_that_cannot_be_removed_stays(
    directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, newest = backups_of(directory, "20200101T000000Z~", STAMP + "~")
    monkeypatch.setattr(os, "unlink", failing(errno.EPERM))
    remove_old_backups(str(newest), 1)
    assert old.exists()
    monkeypatch.setattr(os, "listdir", failing(errno.EIO))
    remove_old_backups(str(newest), 1)


def test_a_copy_elsewhere(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "file", tmp_path / "elsewhere"
    path.write_bytes(b"as it is now")
    path.chmod(0o640)
    elsewhere.mkdir()
    copied = Path(keep_copy(str(elsewhere), str(path), b"as it was"))
    assert [copied] == list(elsewhere.iterdir())
    assert (copied.read_bytes(), copied.stat().st_mode & 0o777) == (b"as it was", 0o640)
    assert copied.name.startswith("file.")
    with pytest.raises(NodeError, match="cannot be written"):
        keep_copy(str(tmp_path / "nowhere"), str(path), b"as it was")
