# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the running kernel enforces on cpusets of v1, and that our plans keep to it. No kernel is imitated here."""

from __future__ import annotations

import errno
import os
from typing import Any, Iterable, Mapping

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writer import carry_out
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._cgroup.writes import (
    WantedCpuset,
    WritePlan,
    plan_writes,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.modules import cpuset as module
from ansible_collections.kubenode.cpu_manager.tests.support.numbers import examples

from .cgroups import Cgroups, why_not

# As the kubelet and containerd make them, with everything on CPU 0.
KUBEPODS = dict.fromkeys(
    (
        "kubepods",
        "kubepods/burstable",
        "kubepods/burstable/pod1",
        "kubepods/burstable/pod1/" + "a" * 64,
        "kubepods/burstable/pod1/" + "b" * 64,
        "kubepods/pod2",
        "kubepods/pod2/" + "c" * 64,
    ),
    "0",
)
OCCUPIED = [path for path in KUBEPODS if len(path) > 64]


def plan(cgroups: Cgroups, wanted: Mapping[str, CPUSet]) -> WritePlan:
    asked = [WantedCpuset(cgroups.path(path), value) for path, value in wanted.items()]
    hierarchy = cgroups.hierarchy
    around = hierarchy.around(cgroup.path for cgroup in asked)
    return plan_writes(1, around, asked, hierarchy.online_cpus(), hierarchy.memory_nodes())


def plan_all(cgroups: Cgroups, wanted: Mapping[str, str]) -> WritePlan:
    return plan(cgroups, {path: cgroups.real(text) for path, text in wanted.items()})


def refusal(cgroups: Cgroups, path: str, value: CPUSet) -> str:
    """Return why we would not write this; empty when we would."""
    try:
        plan(cgroups, {path: value})
    except RefusedError as error:
        return str(error)
    return ""


def run_module(cgroups: Cgroups, wanted: Mapping[str, str], check_mode: bool = False) -> Any:
    given = [{"path": cgroups.path(p), "cpus": str(cgroups.real(c)), "mems": None} for p, c in wanted.items()]
    return module.work(Tree("/"), {"cgroups": given, "runtime": False}, check_mode)


# --- moving -----------------------------------------------------------------------------------------


def test_a_whole_tree_moves_with_its_processes(cgroups: Cgroups) -> None:
    cgroups.make_all(KUBEPODS)
    processes = [cgroups.start(path) for path in OCCUPIED]
    wanted = dict.fromkeys(KUBEPODS, "1")
    check = run_module(cgroups, wanted, check_mode=True)
    assert cgroups.sets() == KUBEPODS
    run = run_module(cgroups, wanted)
    assert run == check
    assert run.changed
    assert cgroups.sets() == wanted
    assert [cgroups.allowed(process) for process in processes] == ["1"] * 3
    # Each once, and twice each that has a child.
    assert len(run.result["writes"]) == len(KUBEPODS) + 4
    assert not run_module(cgroups, wanted).changed


def test_naive_orders_fail(cgroups: Cgroups) -> None:
    """Each single write of the move is refused: the tree can only move in steps between."""
    cgroups.make_all(KUBEPODS)
    cgroups.start(OCCUPIED[0])
    parents = [path for path in KUBEPODS if path not in OCCUPIED]
    assert [cgroups.write(path, "1") for path in parents] == ["EBUSY"] * len(parents)
    assert [cgroups.write(path, "1") for path in OCCUPIED] == ["EACCES"] * len(OCCUPIED)
    assert cgroups.sets() == KUBEPODS
    # A tree grows from the bottom no more than it shrinks from the top.
    assert cgroups.write("kubepods/pod2/" + "c" * 64, "0-1") == "EACCES"
    carry_out(cgroups.hierarchy, plan_all(cgroups, dict.fromkeys(KUBEPODS, "0-1")).writes)
    assert cgroups.write("kubepods", "0") == "EBUSY"
    carry_out(cgroups.hierarchy, plan_all(cgroups, dict.fromkeys(KUBEPODS, "1")).writes)
    assert cgroups.sets() == dict.fromkeys(KUBEPODS, "1")


def test_cgroups_without_cpus_get_some(cgroups: Cgroups) -> None:
    """As after mkdir, when no process can enter yet."""
    for path in ("a", "a/b"):
        os.mkdir(cgroups.place(path))
    assert cgroups.sets() == {"a": "", "a/b": ""}
    carry_out(cgroups.hierarchy, plan_all(cgroups, {"a/b": "1", "a": "0-1"}).writes)
    assert cgroups.sets() == {"a": "0-1", "a/b": "1"}
    nodes = cgroups.hierarchy.memory_nodes().take(1)
    mems = [WantedCpuset(cgroups.path(path), None, nodes) for path in ("a", "a/b")]
    around = cgroups.hierarchy.around(cgroup.path for cgroup in mems)
    carry_out(cgroups.hierarchy, plan_writes(1, around, mems, CPUSet(), nodes).writes)
    process = cgroups.start("a/b")
    assert cgroups.allowed(process) == "1"
    # And empty again, as long as there are no processes.
    process.kill()
    process.wait()
    carry_out(cgroups.hierarchy, plan_all(cgroups, {"a/b": ""}).writes)
    assert cgroups.sets() == {"a": "0-1", "a/b": ""}


# --- refusing ---------------------------------------------------------------------------------------


def test_a_cgroup_with_processes_keeps_a_cpu(cgroups: Cgroups) -> None:
    cgroups.make_all({"a": "0-1"})
    cgroups.start("a")
    assert cgroups.write("a", "") == "ENOSPC"
    assert refusal(cgroups, "a", CPUSet()).endswith("cpuset.cpus cannot be empty: processes are in it (ENOSPC)")


def test_cpus_that_are_not_there(cgroups: Cgroups) -> None:
    cgroups.make_all({"a": "0-1"})
    last = max(cgroups.hierarchy.online_cpus())
    for value in (CPUSet([last + 1]), CPUSet([last, 65535])):
        assert cgroups.write_text("a", "cpuset.cpus", str(value)) in ("ERANGE", "EINVAL", "EACCES")
        assert "CPUs %s are not online" % (value - CPUSet([last])) in refusal(cgroups, "a", value)
    nodes = cgroups.hierarchy.memory_nodes()
    assert cgroups.write_text("a", "cpuset.mems", str(max(nodes) + 1)) in ("ERANGE", "EINVAL", "EACCES")


def test_a_child_stays_within_its_parent(cgroups: Cgroups) -> None:
    cgroups.make_all({"a": "0", "a/b": "0"})
    assert cgroups.write("a/b", "1") == "EACCES"
    assert "(EACCES)" in refusal(cgroups, "a/b", cgroups.real("1"))
    assert cgroups.write("a", "1") == "EBUSY"
    assert "(EBUSY)" in refusal(cgroups, "a", cgroups.real("1"))


def test_an_exclusive_sibling(cgroups: Cgroups) -> None:
    cgroups.make_all({"a": "0", "b": "1", "c": ""})
    if cgroups.write_text("", "cpuset.cpu_exclusive", "1"):
        pytest.skip("somebody else on this machine has a cpuset with the same CPUs")
    assert cgroups.write_text("a", "cpuset.cpu_exclusive", "1") == ""
    cgroups.start("a")
    cgroups.start("b")
    assert cgroups.write("b", "0-1") == "EINVAL"
    for path, value in (("b", "0-1"), ("a", "0-1"), ("c", "0")):
        assert "is exclusive (EINVAL)" in refusal(cgroups, path, cgroups.real(value))
    with pytest.raises(RefusedError, match="no order of writes avoids it"):
        plan_all(cgroups, {"a": "1", "b": "0"})
    # c takes what b gives: b has to be first.
    carry_out(cgroups.hierarchy, plan_all(cgroups, {"a": "0", "c": "1"}).writes)
    assert cgroups.sets() == {"a": "0", "b": "1", "c": "1"}


def test_the_topmost_cgroup(cgroups: Cgroups) -> None:
    hierarchy = cgroups.hierarchy
    with pytest.raises(RefusedError, match="the kernel allows no write"):
        plan_writes(1, hierarchy.around([""]), [WantedCpuset("", CPUSet([0]))], hierarchy.online_cpus(), CPUSet())


# --- failing ----------------------------------------------------------------------------------------


def test_a_cgroup_vanishes_between_reading_and_writing(cgroups: Cgroups) -> None:
    cgroups.make_all(KUBEPODS)
    process = cgroups.start(OCCUPIED[0])
    made = plan_all(cgroups, dict.fromkeys(KUBEPODS, "1"))
    os.rmdir(cgroups.place(OCCUPIED[2]))
    with pytest.raises(NodeError) as caught:
        carry_out(cgroups.hierarchy, made.writes)
    place = cgroups.place(OCCUPIED[2], "cpuset.cpus")
    assert str(caught.value) == "%s: the cgroup vanished while it was worked on; everything is as it was before" % place
    assert cgroups.sets() == {path: "0" for path in KUBEPODS if path != OCCUPIED[2]}
    assert cgroups.allowed(process) == "0"


def test_a_child_appears_between_reading_and_writing(cgroups: Cgroups) -> None:
    cgroups.make_all(KUBEPODS)
    made = plan_all(cgroups, dict.fromkeys(KUBEPODS, "1"))
    cgroups.make("kubepods/burstable/pod3", "0")
    with pytest.raises(NodeError) as caught:
        carry_out(cgroups.hierarchy, made.writes)
    assert str(caught.value) == (
        "%s: the kernel refuses %s: Device or resource busy (a child has what it would lose); everything is as it was"
        " before" % (cgroups.place("kubepods/burstable", "cpuset.cpus"), cgroups.real("1"))
    )
    assert cgroups.sets() == {**KUBEPODS, "kubepods/burstable/pod3": "0"}


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "no"), KeyboardInterrupt()], ids=["error", "interruption"])
def test_every_write_can_be_the_last(cgroups: Cgroups, monkeypatch: pytest.MonkeyPatch, failure: BaseException) -> None:
    cgroups.make_all(KUBEPODS)
    processes = [cgroups.start(path) for path in OCCUPIED]
    made = plan_all(cgroups, dict.fromkeys(KUBEPODS, "1"))
    real = os.write
    for last in range(len(made.writes)):
        count = 0

        def fail(descriptor: int, data: bytes, last: int = last) -> int:
            nonlocal count
            count += 1
            if count == last + 1:
                raise failure
            return real(descriptor, data)

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            with pytest.raises((NodeError, KeyboardInterrupt)):
                carry_out(cgroups.hierarchy, made.writes)
        assert cgroups.sets() == KUBEPODS
        assert [cgroups.allowed(process) for process in processes] == ["0"] * 3
        # As many to undo them as there were before.
        assert count == last * 2 + 1


# --- the kernel and we agree ------------------------------------------------------------------------

PATHS = ("a", "a/b", "a/b/c", "a/d", "e", "e/f")
SETS = ("", "0", "1", "0-1")


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    sets = {"": "0-1"}
    for path in PATHS[: draw(st.integers(1, len(PATHS)))]:
        above = CPUSet.parse(sets[path.rpartition("/")[0]])
        sets[path] = draw(st.sampled_from([text for text in SETS if CPUSet.parse(text) <= above]))
    del sets[""]
    return sets


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@given(trees(), st.data())
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
def test_the_kernel_takes_what_we_take(sets: dict[str, str], data: st.DataObject) -> None:
    with Cgroups() as cgroups:
        cgroups.make_all(sets)
        cgroups_with_processes(cgroups, data, [path for path in sets if sets[path]])
        for path, before in sets.items():
            for text in SETS:
                ours = refusal(cgroups, path, cgroups.real(text))
                said = cgroups.write(path, text)
                event(said or "taken")
                assert ours.endswith("(%s)" % said) if said else not ours
                assert cgroups.write(path, before) == ""


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@given(trees(), st.data())
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
def test_the_kernel_takes_our_plans(sets: dict[str, str], data: st.DataObject) -> None:
    with Cgroups() as cgroups:
        cgroups.make_all(sets)
        cgroups_with_processes(cgroups, data, [path for path in sets if sets[path]])
        wanted = {path: data.draw(st.sampled_from(SETS)) for path in sets if data.draw(st.booleans())}
        try:
            made = plan_all(cgroups, wanted)
        except RefusedError:
            event("refused")
            return
        event("%d writes" % len(made.writes))
        carry_out(cgroups.hierarchy, made.writes)
        assert cgroups.sets() == {**sets, **wanted}
        assert plan_all(cgroups, wanted).writes == ()


def cgroups_with_processes(cgroups: Cgroups, data: st.DataObject, paths: Iterable[str]) -> None:
    for path in paths:
        if data.draw(st.booleans()):
            cgroups.start(path)
