# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether others than root may write what root obeys or executes: owner, mode, and access control lists."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.command import run_command
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.files import make_roots_directory
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree, fault_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.untrusted import write_file
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.installation import trusted_program
from ansible_collections.kubenode.cpu_manager.tests.support.others import (
    GROUP,
    NOBODY,
    OTHERS,
    OWNING_GROUP,
    READS,
    USER,
    WRITES,
    Entry,
    as_root,
    place,
    put_acl,
    writes_as_nobody,
)

__all__ = ("place",)
NO_ID = 0xFFFFFFFF
BY_LIST = "others may write it by an access control list (look with getfacl)"


@as_root
@pytest.mark.parametrize("at", ["pd/kubelet", "pd"])
def test_a_program_that_a_user_may_write_by_an_acl(at: str, place: Path) -> None:
    """Its mode and group are as those of a program of root's alone."""
    (place / "pd").mkdir()
    program = place / "pd/kubelet"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert fault_of(Tree("/"), str(program)) is None
    assert not writes_as_nobody(program)
    put_acl(place / at)
    if at == "pd":
        put_acl(program)
    assert writes_as_nobody(program)
    fault = fault_of(Tree("/"), str(program))
    assert (fault.path, fault.why) == (str(place / at), BY_LIST)  # type: ignore[union-attr]
    # Neither is it run to be asked something.
    with pytest.raises(NodeError, match="root would execute what they put there") as caught:
        run_command([str(program)])
    assert (caught.value.kind, caught.value.where) == ("others_write", str(place / at))


@as_root
@pytest.mark.parametrize(
    ("entry", "mask", "kind", "is_fault"),
    [
        ((USER, WRITES, NOBODY), 7, "access", True),
        ((USER, READS, NOBODY), 7, "access", False),  # he only reads
        ((USER, WRITES, NOBODY), READS, "access", False),  # the mask takes it away
        ((USER, WRITES, 0), 7, "access", False),  # root
        ((GROUP, WRITES, NOBODY), 7, "access", True),
        ((GROUP, WRITES, 0), 7, "access", False),
        ((OWNING_GROUP, WRITES, NO_ID), 7, "access", False),  # root's group
        ((USER, WRITES, NOBODY), 7, "default", True),  # what is made in it
        ((USER, READS, NOBODY), 7, "default", False),
        ((OTHERS, WRITES, NO_ID), 7, "default", True),
    ],
)
def test_what_an_acl_gives(entry: Entry, mask: int, kind: str, is_fault: bool, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    put_acl(tmp_path / "d", [entry], mask, kind)
    fault = fault_of(Tree(str(tmp_path)), "/d/new")
    assert (fault is not None and fault.why == BY_LIST) == is_fault


@as_root
def test_the_group_of_a_file_with_an_acl(tmp_path: Path) -> None:
    """Where there is a list, the bits of the group say what is given to anybody at all."""
    (tmp_path / "d").mkdir()
    os.chown(tmp_path / "d", 0, NOBODY)
    put_acl(tmp_path / "d", [(USER, WRITES, 0)])
    assert os.stat(tmp_path / "d").st_mode & 0o020
    assert fault_of(Tree(str(tmp_path)), "/d") is None
    put_acl(tmp_path / "d", [(OWNING_GROUP, WRITES, NO_ID)])
    assert fault_of(Tree(str(tmp_path)), "/d") is not None


def test_where_there_are_no_acls() -> None:
    with pytest.raises(OSError, match="not supported"):
        os.getxattr("/proc/version", "system.posix_acl_access")
    assert fault_of(Tree("/"), "/proc/version") is None


@as_root
def test_a_process_whose_program_a_user_may_write_by_an_acl(place: Path) -> None:
    program = place / "kubelet"
    shutil.copy(shutil.which("sleep") or "", program)
    with subprocess.Popen([program, "60"]) as process:
        try:
            assert trusted_program(process.pid) == str(program)
            put_acl(program)
            assert trusted_program(process.pid) == ""
        finally:
            process.kill()


@as_root
def test_a_link_in_a_directory_with_an_acl_is_not_followed(place: Path) -> None:
    (place / "shared").mkdir()
    put_acl(place / "shared")
    (place / "else").mkdir()
    (place / "shared/figures").symlink_to(place / "else")
    with pytest.raises(RefusedError, match="stands in a directory that others may write"):
        write_file(str(place / "shared/figures/a.prom"), b"", 0o644)


# --- a directory of root's -----------------------------------------------------------------------------------


@as_root
@pytest.mark.parametrize("kind", ["mode", "owner", "acl"])
def test_an_empty_directory_that_others_may_write_becomes_roots(kind: str, place: Path) -> None:
    ours = place / "ours"
    ours.mkdir()
    {"mode": lambda: ours.chmod(0o777), "owner": lambda: os.chown(ours, NOBODY, NOBODY), "acl": lambda: put_acl(ours)}[
        kind
    ]()
    assert writes_as_nobody(ours / "a")
    # Of what is in it, nobody knows who wrote it.
    with pytest.raises(RefusedError) as caught:
        make_roots_directory(Tree(str(place)), "/ours")
    assert (caught.value.kind, caught.value.where) == ("others_write", str(ours))
    assert writes_as_nobody(ours / "a")
    (ours / "a").unlink()
    assert make_roots_directory(Tree(str(place)), "/ours") == []
    status = ours.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (0, 0, 0o700)
    assert [name for name in os.listxattr(ours) if "acl" in name] == []
    assert not writes_as_nobody(ours / "a")


@as_root
def test_a_directory_below_one_that_others_may_write_is_refused(place: Path) -> None:
    (place / "var").mkdir()
    (place / "var").chmod(0o777)
    with pytest.raises(RefusedError) as caught:
        make_roots_directory(Tree(str(place)), "/var/ours")
    assert caught.value.where == str(place / "var")
