# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A writer is killed before and after each system call that it makes."""

from __future__ import annotations

import fcntl
import os
import signal
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base import files
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import EACH

from . import tracer
from .child import Child
from .counting import Count
from .tracer import Traced
from .writing import CASES, DONE, Case, change, check_after_a_kill, look, prepare

MANY = 10_000


@pytest.mark.parametrize("name", CASES)
def test_killed_at_each_system_call(tmp_path: Path, name: str, count: Count) -> None:
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    case, seen, kills = CASES[name], [], 0
    for number in range(1, MANY, EACH):
        path = prepare(tmp_path / "kubelet", case)
        before = look(path)
        traced = Traced(partial(change, path, case))
        if not all(traced.next_stop() for _stop in range(number)):
            assert traced.answer().kind == DONE
            assert check_after_a_kill(path, case, before)
            kills = traced.stops
            break
        traced.kill()
        seen.append(check_after_a_kill(path, case, before))
    # Old at first, then new, and never back.
    assert seen == sorted(seen)
    assert {False, True} == set(seen)
    assert kills >= 50
    count("kills", kills)


class Deadly:
    """A module whose n-th call of a function kills the process: before the function does its work, or after it."""

    left = 0
    after = False

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name)
        if isinstance(function, type) or not callable(function):
            return function

        def call(*arguments: Any, **options: Any) -> Any:
            Deadly.left -= 1
            if not Deadly.left and not Deadly.after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return function(*arguments, **options)
            finally:
                if not Deadly.left:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", CASES)
def test_killed_at_each_call_of_a_function(tmp_path: Path, name: str, after: bool, count: Count) -> None:
    """Coarser than at each system call, but possible everywhere."""
    case, seen = CASES[name], []
    for number in range(1, MANY):
        path = prepare(tmp_path / "kubelet", case)
        before = look(path)
        child = Child(partial(change_deadly, path, case, number, after))
        status = child.wait()
        if not status:
            assert child.answer() == DONE
            break
        assert status == signal.SIGKILL
        seen.append(check_after_a_kill(path, case, before))
    assert seen == sorted(seen)
    assert {False, True} == set(seen)
    count("kills", len(seen))


def change_deadly(path: Path, case: Case, number: int, after: bool) -> str:
    Deadly.left, Deadly.after = number, after
    for module in (os, fcntl):
        setattr(files, module.__name__, Deadly(module))
    return change(path, case).kind
