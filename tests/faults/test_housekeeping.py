# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A housekeeping is killed before each of its writes: the next run finishes it, or takes it back to the byte."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any, Callable, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import wanted_arguments
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping import housekeeping as bring
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.at_boot import AtBoot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    PATH,
    HousekeepingWish,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.tuned_profile import layers_beside
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._owners.owners import read_tuned
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.housekept import write_node
from ansible_collections.kubenode.cpu_manager.tests.machines.owned import TUNED_FILES, write_owned
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import EACH

from .child import Child
from .counting import Count

# What leaves its mark on a disk or in the kernel, which takes a write of a file of its own as a whole.
WRITES = ("link", "mkdir", "rename", "rmdir", "symlink", "unlink", "write", "replace")
LAYERS = ("interrupts", "workqueues", "rps", "slices", "irqbalance", "watchdog", "manager", "kernel_line")
MANY = 1000

Work = Callable[[Path], Any]
RESERVED = "0-1"


def bring_it(root: Path, reserved: str = RESERVED, layers: tuple[str, ...] = LAYERS) -> Any:
    cpus = CPUSet.parse(reserved)
    arguments = wanted_arguments(cpus, CPUSet.parse("0-15")) if "kernel_line" in layers else None
    extras = Extras(arguments, AtBoot(b"program of " + reserved.encode(), "/usr/bin/python3"))
    return bring.present(Tree(str(root)), HousekeepingWish(cpus, layers), extras, act=True)


def bring_beside_tuned(root: Path) -> Any:
    tree = Tree(str(root))
    tuned = read_tuned(tree)
    return bring.present(
        tree, HousekeepingWish(CPUSet.parse(RESERVED), layers_beside(LAYERS[:-1], tuned)), Extras(tuned=tuned), True
    )


def take_back(root: Path) -> Any:
    return bring.absent(Tree(str(root)), act=True)


def contents(root: Path, with_journal: bool = True) -> dict[str, tuple[int, bytes]]:
    """Return every path with its mode and content. What is there of a journal that was never needed is left out."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[name] = (path.lstat().st_mode, content)
    return {name: entry for name, entry in found.items() if with_journal or name != PATH[1:]}


def deadly(work: Work, root: Path, number: int) -> None:
    """Do the work, and die before the write of this number."""
    left = number

    def killing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    # The process ends with the work.
    for name in WRITES:
        setattr(os, name, killing(getattr(os, name)))
    work(root)


def killed_at_each_write(start: Path, work: Work, rest: Callable[[Path, int], None]) -> int:
    """Return how often it was killed; after each time, `rest` is done with what was left."""
    root = start.parent / "killed"
    for number in range(1, MANY, EACH):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(start, root, symlinks=True)
        child = Child(partial(deadly, work, root, number))
        if not child.wait():
            child.answer()
            return number - 1
        rest(root, number)
    raise AssertionError("it does not end")


@pytest.fixture
def untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Nobody takes the power away, and a disk takes its time.
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    root = write_node(tmp_path / "untouched")
    # systemd has not made this one yet.
    shutil.rmtree(root / "sys/fs/cgroup/user.slice")
    return root


def copied(root: Path, name: str) -> Path:
    target = root.parent / name
    shutil.copytree(root, target, symlinks=True)
    return target


@pytest.fixture(name="whole")
def brought(untouched: Path) -> Path:
    whole = copied(untouched, "whole")
    assert bring_it(whole).changed
    return whole


def check_way_back(root: Path, before: dict[str, tuple[int, bytes]], number: int) -> None:
    """Check, in a copy, that what an interrupted run has left can be put back to what was there before."""
    back = copied(root, "back")
    take_back(back)
    assert contents(back) == before, number
    shutil.rmtree(back)


def test_killed_while_it_is_brought(untouched: Path, whole: Path, count: Count) -> None:
    before, wanted = contents(untouched), contents(whole)

    def rest(root: Path, number: int) -> None:
        check_way_back(root, before, number)
        bring_it(root)
        assert contents(root) == wanted, number
        assert not bring_it(root).changed
        take_back(root)
        assert contents(root) == before, number

    kills = killed_at_each_write(untouched, bring_it, rest)
    assert kills > 40
    count("kills", kills)


def test_killed_while_it_is_taken_back(untouched: Path, whole: Path, count: Count) -> None:
    before, wanted = contents(untouched), contents(whole)

    def rest(root: Path, number: int) -> None:
        again = copied(root, "again")
        take_back(root)
        assert contents(root) == before, number
        assert not take_back(root).changed
        bring_it(again)
        assert contents(again) == wanted, number
        take_back(again)
        assert contents(again) == before, number
        shutil.rmtree(again)

    kills = killed_at_each_write(whole, take_back, rest)
    assert kills > 25
    count("kills", kills)


def test_killed_while_the_wish_changes(untouched: Path, whole: Path, count: Count) -> None:
    """Other CPUs, and fewer layers."""
    before = contents(untouched)
    changed = copied(whole, "changed")
    change = partial(bring_it, reserved="0,2-3", layers=("interrupts", "rps", "slices", "irqbalance"))
    change(changed)
    wanted = contents(changed)

    def rest(root: Path, number: int) -> None:
        check_way_back(root, before, number)
        change(root)
        assert contents(root) == wanted, number

    kills = killed_at_each_write(whole, change, rest)
    assert kills > 30
    count("kills", kills)


# What each command reads: below which places.
READ = {"try-restart": "etc/default/irqbalance", "daemon-reload": "etc/systemd/", "grub-mkconfig": "etc/default/grub"}


def read_by(command: str, root: Path) -> str:
    found = contents(root).items()
    files = {path: content for path, (_mode, content) in found if path.startswith(READ[command]) and content}
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


def taken_over(root: Path) -> Callable[[Sequence[str]], str]:
    """Return a stand-in for all commands: what each has read last is in a file of its name."""

    def run(words: Sequence[str]) -> str:
        (command,) = (command for command in READ if any(command in word for word in words))
        os.replace(root.parent / command, root.parent / command)
        (root.parent / command).write_text(read_by(command, root))
        return ""

    return run


def test_killed_beside_commands(untouched: Path, count: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was killed between a file and the command that takes it over: the next run does not omit the command."""
    monkeypatch.setattr(bring, "runs_systemd", lambda _tree: True)
    inner = untouched.parent / "machine"
    inner.mkdir()
    untouched = untouched.rename(inner / "root")
    for command in READ:
        (inner / command).write_text(read_by(command, untouched))

    def bring_and_run(machine: Path) -> None:
        root = machine / "root"
        cpus = CPUSet.parse(RESERVED)
        extras = Extras(wanted_arguments(cpus, CPUSet.parse("0-15")), AtBoot(b"program", "/usr/bin/python3"), True)
        bring.present(Tree(str(root)), HousekeepingWish(cpus, LAYERS), extras, True, taken_over(root))

    def take_back_and_run(machine: Path) -> None:
        root = machine / "root"
        bring.absent(Tree(str(root)), act=True, run=taken_over(root))

    def rest(machine: Path, number: int) -> None:
        again = copied(machine, "again")
        for finish, place in ((bring_and_run, machine), (take_back_and_run, again)):
            finish(place)
            for command in READ:
                assert (place / command).read_text() == read_by(command, place / "root"), (number, command)
        shutil.rmtree(again)

    kills = killed_at_each_write(inner, bring_and_run, rest)
    bring_and_run(inner)
    kills += killed_at_each_write(inner, take_back_and_run, rest)
    assert kills > 70
    count("kills", kills)


def test_killed_while_tuned_takes_layers_over(untouched: Path, count: Count) -> None:
    """From a node without tuned's CPUs, and from one on which all layers were written."""
    write_owned(untouched, TUNED_FILES)
    before = contents(untouched)
    whole = copied(untouched, "whole")
    bring_it(whole, layers=LAYERS[:-1])
    beside = copied(untouched, "beside")
    bring_beside_tuned(beside)
    wanted = contents(beside)

    def rest(root: Path, number: int) -> None:
        check_way_back(root, before, number)
        bring_beside_tuned(root)
        take_back(root)
        assert contents(root) == before, number

    def finished(root: Path, number: int) -> None:
        again = copied(root, "again")
        bring_beside_tuned(again)
        assert contents(again) == wanted, number
        assert not bring_beside_tuned(again).changed
        shutil.rmtree(again)
        rest(root, number)

    kills = killed_at_each_write(untouched, bring_beside_tuned, finished)
    kills += killed_at_each_write(whole, bring_beside_tuned, rest)
    assert kills > 40
    count("kills", kills)
