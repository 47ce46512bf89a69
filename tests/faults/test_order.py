# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What reaches the disk, and when: a file's content before its name, and the directory last."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, Callable

import pytest

from . import tracer
from .counting import Count
from .tracer import Call, Traced
from .writing import CASES, DONE, NAME, STRAY, Case, change, prepare

CHANGES_FILE = ("write", "chmod", "fchmod", "fchown", "fsetxattr")


def check_order(log: list[Call], directory: Path, case: Case) -> None:
    """Raise AssertionError when a power cut could leave a name with half a content, or bring the old file back."""
    named = []
    for place, call in enumerate(log):
        if call.name not in ("rename", "link"):
            continue
        source, target = call.paths
        about_source = [earlier.name for earlier in log[:place] if earlier.paths == (source,)]
        assert STRAY.fullmatch(os.path.basename(source))
        assert about_source[0] == "write"
        assert about_source[-1] == "fsync"
        # Nor is it changed under its new name.
        assert not [later for later in log[place:] if later.name in CHANGES_FILE and later.paths[0] in (source, target)]
        named.append(os.path.basename(target))
    expected = [NAME] if case.after is not None else []
    assert [name for name in named if name == NAME] == expected
    if case.backup and case.before is not None:
        assert named[0] != NAME
        assert len(named) == len(expected) + 1
    last = log[-1]
    assert last == Call("fsync", (str(directory),))
    acts = [call for call in log if call.name in ("rename", "link", "unlink") and call.paths[-1].endswith("/" + NAME)]
    assert len(acts) == 1
    assert log.index(acts[0]) < len(log) - 1
    # The backup is there before what it is a copy of goes.
    assert all(log.index(call) <= log.index(acts[0]) for call in log if call.name in ("rename", "link"))


@pytest.mark.parametrize("name", CASES)
def test_order_of_system_calls(tmp_path: Path, name: str, count: Count) -> None:
    if tracer.why_not():
        pytest.skip(tracer.why_not())
    case = CASES[name]
    path = prepare(tmp_path / "kubelet", case)
    traced = Traced(partial(change, path, case))
    log = []
    while traced.next_stop():
        if not traced.knows_names():
            traced.kill()
            pytest.skip("the numbers of this machine's system calls are not known here")
        call = traced.call()
        if call:
            log.append(call)
    assert traced.answer().kind == DONE
    # The mark of the end is no call of these.
    check_order(log, path.parent, case)
    count("orders", 1)


@pytest.mark.parametrize("name", CASES)
def test_order_of_functions(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, count: Count) -> None:
    """The same, where nothing can be traced."""
    log: list[Call] = []

    def logged(name: str) -> Callable[..., Any]:
        function = getattr(os, name)

        def call(first: int | str, *others: Any) -> Any:
            if isinstance(first, int):
                log.append(Call(name, (os.readlink("/proc/self/fd/%d" % first),)))
            else:
                log.append(Call(name, (first, *others)))
            return function(first, *others)

        return call

    case = CASES[name]
    path = prepare(tmp_path / "kubelet", case)
    with monkeypatch.context() as patch:
        for function in ("write", "fsync", "rename", "link", "unlink", "fchmod", "fchown"):
            patch.setattr(os, function, logged(function))
        outcome = change(path, case)
    assert outcome.kind == DONE
    check_order(log, path.parent, case)
    count("orders", 1)
