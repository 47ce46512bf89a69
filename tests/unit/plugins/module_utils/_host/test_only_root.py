# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_host/only_root.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.ansible_module import Outcome
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import Note, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import SERVICES, UNITS
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree, fault_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.only_root import (
    check_only_root,
    program_notes,
)
from ansible_collections.kubenode.cpu_manager.plugins.modules import reconcile_program
from ansible_collections.kubenode.cpu_manager.tests.machines.services import reconcile_service

PROGRAM = "/usr/local/lib/kubenode/a.pyz"
NOBODY = 65534


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / PROGRAM[1:]).parent.mkdir(parents=True)
    (tmp_path / PROGRAM[1:]).touch()
    return tmp_path


def fault(root: Path, path: str = PROGRAM, with_file: bool = True) -> tuple[str, str] | None:
    """Return where it is, below the root, and why."""
    found = fault_of(Tree(str(root)), path, with_file)
    return None if found is None else (found.path[len(str(root)) :], found.why)


def test_what_belongs_to_root(root: Path) -> None:
    assert fault(root) is None
    assert fault(root, "/usr/local/nothing/there") is None
    # A directory above the saved node is none of the node's.
    assert fault(root, "/../../usr/local/lib/kubenode/a.pyz") is None


@pytest.mark.parametrize("place", [PROGRAM, "/usr/local/lib/kubenode", "/usr", ""])
def test_what_others_may_write(root: Path, place: str) -> None:
    (root / place[1:]).chmod(0o757)
    assert fault(root) == (place, "others may write it (mode 0757, group %d)" % os.getegid())
    assert fault(root, with_file=False) == (None if place == PROGRAM else fault(root))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", [PROGRAM, "/usr/local/lib"])
def test_what_belongs_to_others(root: Path, place: str) -> None:
    os.chown(root / place[1:], NOBODY, 0)
    assert fault(root) == (place, "it belongs to user %d" % NOBODY)
    os.chown(root / place[1:], 0, NOBODY)
    assert fault(root) is None
    (root / place[1:]).chmod(0o775)
    assert fault(root) == (place, "others may write it (mode 0775, group %d)" % NOBODY)
    # Whoever has a saved node may do with it as he likes.
    os.chown(root, NOBODY, 0)
    os.chown(root / place[1:], NOBODY, 0)
    assert fault(root) is None


def test_links_are_followed(root: Path) -> None:
    """Each directory in which one stands counts, and each to which it leads."""
    (root / "opt/versions/1").mkdir(parents=True)
    (root / "opt/versions/1/a.pyz").touch()
    (root / "opt/current").symlink_to("versions/1")
    (root / PROGRAM[1:]).unlink()
    (root / PROGRAM[1:]).symlink_to("/opt/current/a.pyz")
    assert fault(root) is None
    (root / "opt/versions").chmod(0o777)
    assert fault(root, with_file=False) == fault(root) == ("/opt/versions", fault(root)[1])  # type: ignore[index]
    (root / "opt/versions").chmod(0o755)
    (root / "opt/versions/1/a.pyz").unlink()
    (root / "opt/versions/1/a.pyz").symlink_to("a.pyz")
    assert fault(root) is None


def test_a_directory_that_all_share(root: Path) -> None:
    """What belongs to root stays there; what is not there may be made by anybody."""
    (root / "usr/local").chmod(0o1777)
    assert fault(root) is None
    assert fault(root, "/usr/local/new/a.pyz") == ("/usr/local", "everybody may make files there")


def test_the_python(tmp_path: Path) -> None:
    tree = Tree("/")
    check_only_root(tree, PROGRAM, sys.executable, "-I -S")
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    # Were it run to say where its modules are, others would run it.
    python.write_text("#!/bin/sh\ntouch %s/ran\necho '[\"%s/modules\"]'\n" % (tmp_path, tmp_path))
    python.chmod(0o777)
    with pytest.raises(RefusedError, match=r"mode 0777.*nothing was written; look at what is there") as caught:
        check_only_root(tree, PROGRAM, str(python), "-I -S")
    assert (caught.value.kind, caught.value.where) == ("others_write", str(python))
    assert not (tmp_path / "ran").exists()
    python.chmod(0o755)
    check_only_root(tree, PROGRAM, str(python), "-I -S")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules").chmod(0o777)
    with pytest.raises(RefusedError) as caught:
        check_only_root(tree, PROGRAM, str(python), "-I -S")
    assert caught.value.where == str(tmp_path / "modules")
    # That of a saved node is none of this machine.
    check_only_root(Tree(str(tmp_path)), PROGRAM, str(python), "-I -S")


RECONCILE_PROGRAM = "/usr/local/lib/kubenode/cpu-manager-reconcile.pyz"


def install(root: Path, check_mode: bool = False) -> Outcome:
    parameters: dict[str, Any] = {
        **dict.fromkeys(("config_path", "kubelet_root", "interpreter")),
        **{name: [] for name in ("hidden", "needed", "obeyed", "allow_owners")},
        "path": RECONCILE_PROGRAM,
        "settings": {},
        "state": "present",
    }
    return reconcile_program.work(Tree(str(root)), parameters, check_mode)


def changes(root: Path) -> list[tuple[str, str]]:
    """Return the lines that a check would change."""
    (shown,) = install(root, check_mode=True).diff or ()
    lines = zip(shown["before"].splitlines(), shown["after"].splitlines())
    return [pair for pair in lines if pair[0] != pair[1]]


def test_owner_mode_and_bytes_are_drift(tmp_path: Path) -> None:
    here = tmp_path / RECONCILE_PROGRAM[1:]
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
        said = program_notes(Tree(str(tmp_path)))
        return [(note.check, str(note)) for note in said if isinstance(note, Note)]

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


def test_what_is_said_of_units_beside_and_what_is_in_their_directories(tmp_path: Path) -> None:
    """Whoever may write one of these has root start what he likes."""
    drop_in = SERVICES[0] + ".d/a.conf"
    for path in (*SERVICES, *UNITS, drop_in, "/etc/kubenode/settings.json", "/opt/a"):
        (tmp_path / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path[1:]).write_text("")
    (tmp_path / SERVICES[0][1:]).write_text("[Service]\nExecStart=/bin/python3 /nowhere /etc/kubenode/settings.json\n")
    (tmp_path / drop_in[1:]).write_text("[Service]\nExecStart=\nExecStart=-+/opt/a\n")
    for path in (*SERVICES, *UNITS, drop_in, "/etc/kubenode/settings.json", "/opt/a", "/opt", "/etc/kubenode"):
        here = tmp_path / path[1:]
        mode = here.stat().st_mode
        here.chmod(0o777)
        assert [note.partition(":")[0] for note in program_notes(Tree(str(tmp_path)))] == [str(here)]
        here.chmod(mode)
    assert program_notes(Tree(str(tmp_path))) == []


# Ansible's modules that make or write something, and the options that say whose it is.
WRITES, WHOSE = ("copy", "file"), {"owner", "group", "mode"}


def test_every_task_of_a_role_that_writes_a_file_says_whose_it_is() -> None:
    """That of a saved node may be left out at run time, as that belongs to who has it."""
    found = 0
    for path in sorted((Path(__file__).parents[5] / "roles").glob("*/tasks/**/*.yml")):
        for task in yaml.safe_load(path.read_text("utf-8")):
            called = task.get("kubenode.cpu_manager.on_node") or {}
            for module in WRITES:
                given = called.get(module)
                if given is not None and given.get("state") != "absent":
                    assert given.keys() >= WHOSE, (path.name, task["name"])
                    found += 1
    assert found >= 4
