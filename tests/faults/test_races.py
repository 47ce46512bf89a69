# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several writers, and a reader, at once and without any order."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .child import Child
from .counting import Count
from .writing import CASES, DONE, NAME, OLD, OTHER, REFUSED, Case, Outcome, backups, change, prepare, strays

WRITERS = 3
ROUNDS = 40
REMOVALS = 40

LINES = 2000


class Attempt(NamedTuple):
    """What a writer did."""

    expected: bytes
    content: bytes
    backup: bool
    outcome: Outcome


def text(writer: int, number: int) -> bytes:
    return b"writer %d, round %d\n" % (writer, number) * LINES


def is_whole(content: bytes) -> bool:
    lines = content.splitlines(keepends=True)
    return len(lines) == LINES and len(set(lines)) == 1


def clear(path: Path, outcome: Outcome) -> bool:
    return outcome.kind == DONE or (
        outcome.kind == REFUSED
        and outcome.text
        in (
            "%s: was changed while it was worked on; nothing was written; run again" % path,
            "%s: vanished while it was worked on; nothing was written; run again" % path,
        )
    )


def test_many_writers(tmp_path: Path, count: Count) -> None:
    path = tmp_path / NAME
    path.write_bytes(text(0, 0))

    def write(writer: int) -> list[Attempt]:
        attempts = []
        for number in range(1, ROUNDS + 1):
            expected, content = path.read_bytes(), text(writer, number)
            backup = bool(number % 2)
            attempts.append(Attempt(expected, content, backup, change(path, Case(expected, content, backup))))
        return attempts

    children = [Child(partial(write, writer)) for writer in range(1, WRITERS + 1)]
    readings = 0
    while any(child.running() for child in children):
        assert is_whole(path.read_bytes())
        readings += 1
    attempts = [attempt for child in children for attempt in child.answer()]
    assert readings > ROUNDS
    assert [attempt.outcome for attempt in attempts if not clear(path, attempt.outcome)] == []
    assert all(is_whole(attempt.expected) for attempt in attempts)
    done = [attempt for attempt in attempts if attempt.outcome.kind == DONE]
    assert path.read_bytes() in {attempt.content for attempt in done}
    told = {attempt.outcome.text: attempt.expected for attempt in done if attempt.backup}
    assert len(told) == sum(attempt.backup for attempt in done)
    assert {str(backup): backup.read_bytes() for backup in backups(tmp_path)} == told
    assert strays(tmp_path) == []
    count("races", len(attempts))


def race(path: Path, cases: list[Case]) -> list[Outcome]:
    """Let all start at the same moment."""
    gate, opener = os.pipe()

    def wait_and_change(case: Case) -> Outcome:
        os.close(opener)
        os.read(gate, 1)
        return change(path, case)

    children = [Child(partial(wait_and_change, case)) for case in cases]
    os.close(opener)
    os.close(gate)
    return [child.answer() for child in children]


def test_many_removers(tmp_path: Path, count: Count) -> None:
    """One of them removes it, and its backup stays."""
    for _round in range(REMOVALS):
        path = prepare(tmp_path / "kubelet", CASES["remove"])
        outcomes = race(path, [CASES["remove"]] * WRITERS)
        assert all(clear(path, outcome) for outcome in outcomes)
        told = [outcome.text for outcome in outcomes if outcome.kind == DONE]
        assert len(told) == 1
        assert [str(backup) for backup in backups(path.parent)] == told
        assert Path(told[0]).read_bytes() == OLD
        assert os.listdir(path.parent) == [os.path.basename(told[0])]
    count("races", REMOVALS * WRITERS)


def test_a_writer_and_a_remover(tmp_path: Path, count: Count) -> None:
    cases = [CASES["replace"], CASES["remove"], Case(OLD, OTHER, True)]
    for _round in range(REMOVALS):
        path = prepare(tmp_path / "kubelet", cases[0])
        outcomes = race(path, cases)
        assert all(clear(path, outcome) for outcome in outcomes)
        done = {case.after: outcome.text for case, outcome in zip(cases, outcomes) if outcome.kind == DONE}
        assert done
        assert (path.read_bytes() if path.exists() else None) in done
        assert [str(backup) for backup in backups(path.parent)] == sorted(done.values())
        assert all(Path(backup).read_bytes() == OLD for backup in done.values())
        assert strays(path.parent) == []
    count("races", REMOVALS * WRITERS)
