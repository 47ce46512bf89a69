# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program that a service runs as root: what is installed belongs to root alone, and what does not is drift."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.ansible_module import Outcome
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import Note, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import SERVICES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.modules import reconcile_program
from ansible_collections.kubenode.cpu_manager.tests.machines.services import reconcile_service

PROGRAM = "/usr/local/lib/kubenode/cpu-manager-reconcile.pyz"


def install(root: Path, check_mode: bool = False) -> Outcome:
    parameters: dict[str, Any] = {
        **dict.fromkeys(("config_path", "kubelet_root", "interpreter")),
        **{name: [] for name in ("hidden", "needed", "allow_owners")},
        "path": PROGRAM,
        "settings": {},
        "state": "present",
    }
    return reconcile_program.work(Tree(str(root)), parameters, check_mode)


def changes(root: Path) -> list[tuple[str, str]]:
    """The lines that a check would change."""
    (shown,) = install(root, check_mode=True).diff or ()
    lines = zip(shown["before"].splitlines(), shown["after"].splitlines())
    return [pair for pair in lines if pair[0] != pair[1]]


def test_owner_mode_and_bytes_are_drift(tmp_path: Path) -> None:
    here = tmp_path / PROGRAM[1:]
    assert install(tmp_path).changed
    content, status = here.read_bytes(), here.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (os.geteuid(), os.getegid(), 0o755)
    assert not install(tmp_path, check_mode=True).changed
    here.chmod(0o775)
    assert changes(tmp_path) == [("mode: 0775", "mode: 0755")]
    here.write_bytes(b"other")
    assert [before.partition(":")[0] for before, _after in changes(tmp_path)] == ["sha256", "mode"]
    if os.geteuid() == 0:
        os.chown(here, 65534, 65534)
        assert ("owner: 65534:65534", "owner: 0:0") in changes(tmp_path)
    assert here.read_bytes() == b"other"
    assert install(tmp_path).changed
    assert here.read_bytes() == content
    assert [getattr(here.stat(), name) for name in ("st_uid", "st_gid", "st_mode")] == list(status[4:6]) + [status[0]]
    assert not install(tmp_path, check_mode=True).changed


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_directory_that_others_may_write(tmp_path: Path, check_mode: bool) -> None:
    (tmp_path / "usr/local").mkdir(parents=True)
    (tmp_path / "usr/local").chmod(0o777)
    with pytest.raises(RefusedError, match="root would execute what they put there; nothing was written") as caught:
        install(tmp_path, check_mode)
    assert (caught.value.kind, caught.value.where) == ("others_write", str(tmp_path / "usr/local"))
    assert not list((tmp_path / "usr/local").iterdir())


def test_what_is_said_of_a_node(tmp_path: Path) -> None:
    """By drift_info, and so in the report: what its services execute, wherever their programs are."""
    unit, program = tmp_path / SERVICES[0][1:], tmp_path / "opt/kubenode/reconcile.pyz"

    def notes() -> list[tuple[str, str]]:
        said = Node(Tree(str(tmp_path))).own_notes()
        return [(note.check, str(note)) for note in said if isinstance(note, Note) and note.check != "kubelet-missing"]

    assert notes() == []
    for path in (unit, program):
        path.parent.mkdir(parents=True)
    unit.write_text(reconcile_service(reconcile_program_path="/opt/kubenode/reconcile.pyz"))
    program.touch()
    assert notes() == []
    program.parent.chmod(0o777)
    ((check, text),) = notes()
    assert check == "program-not-roots"
    assert text.startswith("%s: others may write it (mode 0777, group" % program.parent)
    assert text.endswith(", and root executes /opt/kubenode/reconcile.pyz")
    program.parent.chmod(0o755)
    unit.chmod(0o666)
    ((_check, text),) = notes()
    assert text.endswith(", and root executes %s" % SERVICES[0])
