# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owner, mode and extended attributes of a file that is replaced."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import replace_file

# Fixtures are used by their names.
# pylint: disable=unused-import
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._base.file_cases import (
    NEW,
    OLD,
    as_root,
    contents,
    failing,
    fixed_clock,  # noqa: F401
    new_directory,  # noqa: F401
    old_file,  # noqa: F401
)


@as_root
@pytest.mark.parametrize("backup", [True, False])
def test_owner_is_kept(path: Path, backup: bool) -> None:
    os.chown(path, 1234, 5678)
    path.chmod(0o4750)
    backup_path = replace_file(str(path), NEW, 0o600, OLD, backup)
    for file in [str(path)] + ([backup_path] if backup_path else []):
        status = os.stat(file)
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 5678, 0o4750)


@as_root
def test_group_is_kept_where_the_directory_gives_its_own(directory: Path, path: Path) -> None:
    os.chown(directory, 0, 5678)
    directory.chmod(0o2755)
    assert path.stat().st_gid != 5678
    group = path.stat().st_gid
    replace_file(str(path), NEW, 0o600, OLD)
    assert path.stat().st_gid == group


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip("no extended attributes on this file system: %s" % error)


def test_attributes_are_kept(path: Path) -> None:
    set_attribute(path, "user.label", b"kubelet")
    set_attribute(path, "user.other", b"\0\xff")
    backup = replace_file(str(path), NEW, 0o600, OLD)
    for file in (str(path), backup or ""):
        assert os.getxattr(file, "user.label") == b"kubelet"
        assert os.getxattr(file, "user.other") == b"\0\xff"


def test_an_attribute_that_cannot_be_set_does_not_take_others_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_attribute(path, "user.a", b"1")
    set_attribute(path, "user.c", b"3")
    listxattr = os.listxattr
    monkeypatch.setattr(os, "listxattr", lambda where: ["user.a", "trusted.b", *listxattr(where)])
    replace_file(str(path), NEW, 0o600, OLD)
    assert os.getxattr(path, "user.a") == b"1"
    assert os.getxattr(path, "user.c") == b"3"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_for_an_attribute(directory: Path, path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listxattr", lambda _where: ["security.selinux"])
    monkeypatch.setattr(os, "getxattr", lambda _where, _name: b"label")
    monkeypatch.setattr(os, "setxattr", failing(number))
    with pytest.raises(NodeError, match="cannot be written: %s; the old content" % os.strerror(number)):
        replace_file(str(path), NEW, 0o600, OLD)
    assert contents(directory) == {"config.yaml": OLD}


def test_a_file_system_without_attributes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listxattr", failing(errno.ENOTSUP))
    replace_file(str(path), NEW, 0o600, OLD)
    assert path.read_bytes() == NEW


@as_root
def test_an_owner_is_given_before_the_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not afterwards, by name: then somebody could have put a link there."""
    monkeypatch.setattr(os, "chown", failing(errno.EPERM))
    monkeypatch.setattr(os, "chmod", failing(errno.EPERM))
    replace_file(str(path), NEW, 0o604, OLD, backup=False, keep_mode=False, owner=(12, 34))
    new = path.with_name("new")
    replace_file(str(new), NEW, 0o604, owner=(12, 34))
    for file in (path, new):
        status = file.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12, 34, 0o604)
