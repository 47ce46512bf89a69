# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""At each moment of a writer's work, somebody else puts something in the place of its file."""

from __future__ import annotations

import os
import stat
from functools import partial
from pathlib import Path
from typing import Callable

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.numbers import EACH

from . import tracer
from .counting import Count
from .tracer import Traced
from .writing import CASES, DONE, NAME, OLD, OTHER, REFUSED, Case, backups, change, prepare, strays

MANY = 10_000
# Between the writer's last look and its change nobody can stop it: after the one call, and before the other. A new file
# is given its name exclusively, so whoever made one of that name first keeps it.
BLIND = 2


def blind(case: Case) -> int:
    return 0 if case.before is None else BLIND


def renamed(path: Path) -> None:
    """Replace a file as the kubelet does: write a new one, and rename it."""
    new = path.with_name("new")
    new.write_bytes(OTHER)
    new.rename(path)


def rewritten(path: Path) -> None:
    path.write_bytes(OTHER)


def removed(path: Path) -> None:
    path.unlink(missing_ok=True)


def link(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


STRANGERS = (renamed, rewritten, removed, link, directory, fifo)


def sight(path: Path) -> tuple[int, bytes] | None:
    """Return what is there: its kind, and its content or target."""
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return None
    if kind == stat.S_IFREG:
        return kind, path.read_bytes()
    return kind, os.fsencode(os.readlink(path)) if kind == stat.S_IFLNK else b""


def harmless(stranger: Callable[[Path], None], case: Case) -> bool:
    """Return what is there already cannot be put there."""
    return stranger is removed and case.before is None


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("name", CASES)
def test_a_stranger_comes(tmp_path: Path, name: str, stranger: Callable[[Path], None], count: Count) -> None:
    """What the stranger put there stays, with an error, unless it came when the writer had taken its last look."""
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    case, lost, refused = CASES[name], 0, 0
    meetings = 0
    for number in range(1, MANY, EACH):
        path = prepare(tmp_path / "kubelet", case, stray=False)
        traced = Traced(partial(change, path, case))
        more = all(traced.next_stop() for _stop in range(number))
        meant = None if case.after is None else (stat.S_IFREG, case.after)
        already = sight(path) == meant
        stranger(path)
        put = sight(path)
        outcome = traced.answer()
        meetings += 1
        assert strays(path.parent) == []
        kept = backups(path.parent)
        if outcome.kind == DONE:
            assert [str(backup) for backup in kept] == ([outcome.text] if outcome.text else [])
            assert all(backup.read_bytes() == OLD for backup in kept)
            if already or harmless(stranger, case):
                assert sight(path) == (put if already else meant)
            else:
                assert sight(path) == meant
                lost += 1
        else:
            assert not already
            refused += outcome.kind == REFUSED
            assert outcome.text.startswith("%s: " % path)
            assert "\n" not in outcome.text
            assert sight(path) == put
            assert kept == []
        if not more:
            break
    assert lost <= blind(case)
    if not harmless(stranger, case):
        assert refused >= 20 // EACH
    count("meetings with others", meetings)


RIVALS = {
    "replaces": Case(OLD, OTHER, True),
    "creates": Case(None, OTHER, True),
    "removes": Case(OLD, None, True),
}


@pytest.mark.parametrize(
    ("name", "rival_name"),
    [
        ("replace", "replaces"),
        ("replace", "removes"),
        ("create", "creates"),
        ("remove", "replaces"),
        ("remove", "removes"),
    ],
)
def test_a_second_writer_comes(tmp_path: Path, name: str, rival_name: str, count: Count) -> None:
    """It does all of its work within that of the first. Whoever succeeds has the backup that it was told of."""
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    case, rival = CASES[name], RIVALS[rival_name]
    both = meetings = 0
    for number in range(1, MANY, EACH):
        path = prepare(tmp_path / "kubelet", case, stray=False)
        traced = Traced(partial(change, path, case))
        more = all(traced.next_stop() for _stop in range(number))
        inner = change(path, rival)
        outer = traced.answer()
        meetings += 1
        done = [outcome for outcome in (inner, outer) if outcome.kind == DONE]
        assert {outcome.kind for outcome in (inner, outer)} <= {DONE, REFUSED}
        assert all(outcome.text.startswith("%s: " % path) for outcome in (inner, outer) if outcome not in done)
        assert done
        both += len(done) == 2
        told = sorted(outcome.text for outcome in done if outcome.text)
        assert [str(backup) for backup in backups(path.parent)] == told
        assert all(Path(backup).read_bytes() == OLD for backup in told)
        assert strays(path.parent) == []
        last = case if outer.kind == DONE else rival
        assert sight(path) == (None if last.after is None else (stat.S_IFREG, last.after))
        assert not [entry for entry in os.listdir(path.parent) if entry not in (NAME, *map(os.path.basename, told))]
        if not more:
            break
    assert both <= blind(case)
    count("meetings with others", meetings)
