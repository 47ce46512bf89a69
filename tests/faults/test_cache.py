# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A change of the caches is killed before each of its writes: the next run finishes it, or takes it back."""

from __future__ import annotations

import os
import shutil
from functools import partial
from itertools import count as count_from
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.chance import Case, case
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.mounted import Mounted, mounted
from ansible_collections.kubenode.cpu_manager.tests.machines.resctrl.node import (
    JOURNAL,
    divide,
    give,
    take_back,
    write_node,
)
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .child import Child
from .counting import Count
from .test_housekeeping import deadly

KILLS = how_many("KILLS", 12, 200)
SEED = how_many("SEED", 1, 1)
MANY = 200

Work = Callable[[Path], Any]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    yield from mounted(tmp_path_factory.mktemp("node"))


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody takes the power away, and a disk takes its time.
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


class Start(NamedTuple):
    """A platform with what others did there, and what was wished before, none for an untouched one."""

    given: Case
    wishes: tuple[dict[str, Any], ...] = ()

    def begin(self, model: Mounted) -> dict[str, str]:
        """Make it so; what there was before anything of ours."""
        model.load(self.given.shape)
        for path, text in self.given.others:
            place = model.place / path.lstrip("/")
            if text == "mkdir":
                place.mkdir()
            else:
                descriptor = os.open(place, os.O_WRONLY)
                os.write(descriptor, text.encode())
                os.close(descriptor)
        write_node(model.root, self.given.shape)
        before = model.state()
        for number, wish in enumerate(self.wishes):
            self.give(model, number)
            divide(model.root, **wish)
        return before

    def give(self, model: Mounted, number: int) -> None:
        give(model.root, *self.given.pools[number])


def possible(model: Mounted, given: Case) -> list[dict[str, Any]]:
    """Return the wishes of a platform that are possible there one after the other, up to the first that is not."""
    start = Start(given)
    start.begin(model)
    found: list[dict[str, Any]] = []
    for number, wish in enumerate(given.wishes):
        start.give(model, number)
        try:
            divide(model.root, **wish)
        except (InputError, RefusedError):
            return found
        found.append(wish)
    return found


def killed_at_each_write(
    model: Mounted, start: Start, number: int, work: Work, rest: Callable[[dict[str, str], int], None]
) -> int:
    """Return how often it was killed, with the CPUs of wish `number`; after each time, `rest` is done with what was
    left."""
    for at in range(1, MANY):
        before = start.begin(model)
        start.give(model, number)
        child = Child(partial(deadly, work, model.root, at))
        if not child.wait():
            child.answer()
            return at - 1
        rest(before, at)
    raise AssertionError("it does not end")


def check_back(model: Mounted, before: dict[str, str]) -> None:
    take_back(model.root)
    assert model.state() == before
    assert not (model.root / JOURNAL).exists()
    assert not list((model.root / "var/lib").glob("kubenode-cpu-manager/*")), "nothing is left beside the journal"


def finished(model: Mounted, wish: dict[str, Any], wanted: dict[str, str], before: dict[str, str], at: int) -> None:
    """Check that a killed run can be taken back; every second one is finished first."""
    if at % 2:
        divide(model.root, **wish)
        assert model.state() == wanted, at
        assert not divide(model.root, **wish).changed
    check_back(model, before)


def test_killed_between_writes(model: Mounted, count: Count) -> None:
    """While the caches are divided, while the wish changes, and while they are put back."""
    kills = 0
    for seed in count_from(SEED):
        if kills >= KILLS:
            break
        given = case(seed)
        wishes = possible(model, given)[:2]
        if not wishes:
            continue
        for number, wish in enumerate(wishes):
            start = Start(given, tuple(wishes[:number]))
            start.begin(model)
            start.give(model, number)
            divide(model.root, **wish)
            wanted = model.state()
            rest = partial(finished, model, wish, wanted)
            kills += killed_at_each_write(model, start, number, partial(divide, **wish), rest)
        last = Start(given, tuple(wishes))
        kills += killed_at_each_write(model, last, len(wishes) - 1, take_back, rest)
    count("kills", kills)
    assert kills >= KILLS
    shutil.rmtree(model.root / "var", ignore_errors=True)
