# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whoever may write where a journal is gives root no orders: that is refused, and the report says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.journal_file import (
    CACHE,
    HOUSEKEEPING,
    LAST,
    OPEN,
    PROMISE,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches import cache_partition
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.only_root import program_notes
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import housekeeping_journal
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.exclusive import read_promise
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs import reconcile_program
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_journal import (
    CHANGING,
    RolloutJournal,
    judged_journal,
    read_journal,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.tests.support.others import (
    NOBODY,
    as_root,
    place,
    put_acl,
    writes_as_nobody,
)

__all__ = ("place",)
# {the file: what reads it to be obeyed}
READERS: dict[str, Callable[[Tree], Any]] = {
    OPEN: judged_journal,
    LAST: lambda tree: read_journal(tree, LAST),
    CACHE: cache_partition.read_journal,
    HOUSEKEEPING: housekeeping_journal.read_journal,
    PROMISE: read_promise,
}


def notes(tree: Tree) -> list[str]:
    """Return what drift_info says, and so the report."""
    return [str(note) for note in program_notes(tree)]


@as_root
@pytest.mark.parametrize("path", READERS)
@pytest.mark.parametrize("by_acl", [False, True])
def test_what_another_user_wrote_is_not_obeyed(path: str, by_acl: bool, place: Path) -> None:
    tree, here = Tree(str(place)), place / path[1:]
    here.parent.mkdir(parents=True)
    here.parent.chmod(0o755)
    assert notes(tree) == []
    here.parent.chmod(0o755 if by_acl else 0o777)
    if by_acl:
        put_acl(here.parent)
    assert writes_as_nobody(here)
    assert notes(tree)[0].startswith("%s: others may write it" % here.parent)
    with pytest.raises(
        RefusedError, match="root would do what they write into %s; nothing was changed; look" % here
    ) as caught:
        READERS[path](tree)
    assert (caught.value.kind, caught.value.where) == ("others_write", str(here.parent))
    # Nobody knows less who wrote it once the directory is root's again.
    here.parent.chmod(0o700)
    with pytest.raises(RefusedError) as caught:
        READERS[path](tree)
    assert caught.value.where == str(here)
    assert [note for note in notes(tree) if note.startswith("%s: it belongs to user %d" % (here, NOBODY))]


@as_root
def test_a_journal_of_roots_that_others_may_write_is_not_obeyed(place: Path) -> None:
    tree = Tree(str(place))
    write_journal(tree, RolloutJournal(CHANGING, {}, {}), OPEN)
    assert read_journal(tree) is not None
    for directory in (place / "var", place / "var/lib"):
        directory.chmod(0o757)
        with pytest.raises(RefusedError) as caught:
            read_journal(tree)
        assert caught.value.where == str(directory)
        directory.chmod(0o755)
    (place / OPEN[1:]).chmod(0o622)
    with pytest.raises(RefusedError) as caught:
        read_journal(tree)
    assert caught.value.where == str(place / OPEN[1:])


@as_root
def test_nothing_is_begun_where_others_may_write_the_journal(place: Path) -> None:
    tree, directory = Tree(str(place)), (place / OPEN[1:]).parent
    directory.mkdir(parents=True)
    directory.chmod(0o777)
    assert writes_as_nobody(place / LAST[1:])
    with pytest.raises(RefusedError):
        write_journal(tree, RolloutJournal(CHANGING, {}, {}), OPEN)
    assert os.listdir(directory) == [os.path.basename(LAST)]
    (place / LAST[1:]).unlink()
    write_journal(tree, RolloutJournal(CHANGING, {}, {}), OPEN)
    assert (directory.stat().st_mode & 0o7777, (place / OPEN[1:]).stat().st_mode & 0o7777) == (0o700, 0o600)


@as_root
def test_settings_that_others_may_write_are_not_obeyed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = place / "settings.json"
    place.chmod(0o777)
    assert writes_as_nobody(settings, b'{"root": "/", "textfile": "/etc/passwd"}')
    place.chmod(0o755)
    assert reconcile_program.main([str(settings)]) == 2
    assert "%s: it belongs to user %d" % (settings, NOBODY) in capsys.readouterr().out
