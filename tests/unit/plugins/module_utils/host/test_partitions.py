# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cgroup.hierarchy import Hierarchy
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import (
    PERMISSION,
    InputError,
    NodeError,
    RefusedError,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host import partitions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.partitions import (
    OWN,
    Partition,
    Partitions,
    Step,
    carry_out,
    cpus_of_pods,
    plan_partition,
    plan_undo,
    read_partitions,
    step_names,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import USUAL, V1, V2, Files, Style, write_cgroups

PODS = "kubepods.slice/kubepods-pod1.slice/cri-containerd-%s.scope" % ("a" * 64)
NODE = {
    "system.slice": Files("0"),
    "user.slice": Files("", processes=(7,)),
    "kubepods.slice": Files(""),
    PODS: Files("2-3", processes=(9,)),
}


def cpus(text: str) -> CPUSet:
    return CPUSet.parse(text)


def node(
    root: Path, cgroups: Mapping[str, Files], style: Style = V2, isolated: str | None = "", has_exclusive: bool = True
) -> Hierarchy:
    """A node whose kernel has partitions that need no partition above them; exclusive sets are those of the files."""
    top = write_cgroups(root, style, cgroups)
    if isolated is not None:
        (top / "cpuset.cpus.isolated").write_text(isolated + "\n", encoding="ascii")
    for directory in (path for path in top.rglob("*") if path.is_dir() and has_exclusive):
        if (directory / "cpuset.cpus.partition").exists():
            own = (directory / "cpuset.cpus").read_text("ascii")
            has_own = "member" not in (directory / "cpuset.cpus.partition").read_text("ascii") or own == "6-7\n"
            for name in ("cpuset.cpus.exclusive", "cpuset.cpus.exclusive.effective"):
                (directory / name).write_text(own if has_own else "\n", encoding="ascii")
    return Hierarchy(Tree(str(root)))


# --- reading ----------------------------------------------------------------------------------------


def test_a_node_without_any(tmp_path: Path) -> None:
    tops = {"kubepods.slice": cpus(""), "system.slice": cpus("0"), "user.slice": cpus("")}
    assert read_partitions(node(tmp_path, NODE)) == Partitions("", cpus(""), (), tops, False, "")


def test_partitions_of_others(tmp_path: Path) -> None:
    more = {
        "dpdk": Files("5", partition="isolated"),
        "dpdk/in": Files("6-7"),
        "dpdk/in/c": Files("6", partition="root invalid (Parent is not a partition root)"),
        "x": Files("7", partition="isolated invalid"),
    }
    seen = read_partitions(node(tmp_path, {**NODE, **more}, isolated="5"))
    assert seen.isolated == cpus("5")
    assert [partition[:3] for partition in seen.found] == [
        ("dpdk", "isolated", ""),
        ("dpdk/in/c", "root", "Parent is not a partition root"),
        ("x", "isolated", "no reason is given"),
    ]
    assert seen.found[0] == Partition("dpdk", "isolated", "", cpus("5"), cpus("5"), cpus("5"))
    assert seen.own() is None


@pytest.mark.parametrize(
    ("style", "cgroups", "has_exclusive", "missing"),
    [
        (V1, NODE, True, "version 1 of cgroups has no partitions"),
        (V2, NODE, False, "the kernel has no cpuset.cpus.exclusive, which came with Linux 6.7"),
        (V2, {"a": Files(None)}, True, "the controller cpuset is not enabled for what is at the top of cgroups"),
        (V2, {}, True, "the controller cpuset is not enabled for what is at the top of cgroups"),
    ],
)
def test_not_there_is_a_state(
    tmp_path: Path, style: Style, cgroups: dict[str, Files], has_exclusive: bool, missing: str
) -> None:
    seen = read_partitions(node(tmp_path, cgroups, style, None, has_exclusive))
    assert (seen.missing, seen.isolated, seen.found) == (missing, None, ())
    assert plan_undo(seen) == ()
    with pytest.raises(RefusedError) as caught:
        plan_partition(seen, cpus("1"), cpus("0-7"), cpus(""))
    assert caught.value.what == missing


@pytest.mark.parametrize(
    ("more", "busy"),
    [
        ({OWN: Files("")}, ""),
        ({OWN: Files("", processes=(1, 2))}, "processes"),
        ({OWN + "/a": Files("")}, "the cgroup %s/a" % OWN),
    ],
)
def test_what_is_in_ours(tmp_path: Path, more: dict[str, Files], busy: str) -> None:
    seen = read_partitions(node(tmp_path, {**NODE, **more}))
    assert (seen.has_own, seen.busy) == (True, busy)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    hierarchy = node(tmp_path, NODE)
    place = tmp_path / USUAL[1:] / "system.slice" / "cpuset.cpus.partition"
    place.unlink()
    place.mkdir()
    with pytest.raises(NodeError, match="cannot be read"):
        read_partitions(hierarchy)


@pytest.mark.parametrize("call", ["open", "read"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.ENODEV])
def test_a_cgroup_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    """It is not there; anything else is told with its reason."""
    hierarchy = node(tmp_path, NODE)

    def fail(*_arguments: object, **_more: object) -> None:
        raise OSError(number, os.strerror(number))

    assert partitions._text(hierarchy, "system.slice", PART) == "member"
    monkeypatch.setattr(os, call, fail)
    if number == errno.ENODEV:
        assert partitions._text(hierarchy, "system.slice", PART) is None
    else:
        with pytest.raises(NodeError, match="cannot be read: Permission denied") as caught:
            partitions._text(hierarchy, "system.slice", PART)
        assert caught.value.kind == PERMISSION


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, "2-3"),
        ({PODS.replace("a" * 64, "b" * 64): Files("", processes=(3,))}, "0-7"),
        ({PODS.replace("a" * 64, "b" * 64): Files("5-6")}, "2-3,5-6"),
    ],
)
def test_cpus_of_pods(tmp_path: Path, more: dict[str, Files], found: str) -> None:
    assert cpus_of_pods(node(tmp_path, {**NODE, **more}), ["kubepods.slice"]) == cpus(found)


# --- deciding ---------------------------------------------------------------------------------------

EMPTY = Partitions("", cpus(""), (), {"system.slice": cpus("0"), "a": cpus(""), "b": None}, False, "")
PART, OWN_CPUS, EXCLUSIVE = "cpuset.cpus.partition", "cpuset.cpus", "cpuset.cpus.exclusive"


def ours(kind: str, problem: str, held: str, **more: Any) -> Partitions:
    partition = Partition(OWN, kind, problem, cpus(held), cpus(held), cpus(held))
    return EMPTY._replace(found=(partition,), tops={**EMPTY.tops, OWN: cpus(held)}, has_own=True, **more)


SET = (
    Step("write", OWN, OWN_CPUS, "", "1"),
    Step("write", OWN, EXCLUSIVE, "", "1"),
    Step("write", OWN, PART, "member", "isolated"),
)


@pytest.mark.parametrize(
    ("seen", "steps"),
    [
        (EMPTY, (Step("mkdir", OWN), *SET)),
        (EMPTY._replace(has_own=True), SET),
        (ours("isolated", "", "1"), ()),
        (
            ours("isolated", "", "2"),
            (
                Step("write", OWN, PART, "isolated", "member"),
                Step("write", OWN, OWN_CPUS, "2", "1"),
                Step("write", OWN, EXCLUSIVE, "2", "1"),
                SET[2],
            ),
        ),
        (
            ours("isolated", "no CPU left", "1"),
            (
                Step("write", OWN, PART, "isolated", "member"),
                Step("write", OWN, OWN_CPUS, "1", "1"),
                Step("write", OWN, EXCLUSIVE, "1", "1"),
                SET[2],
            ),
        ),
        (ours("root", "", "1"), None),
    ],
)
def test_plan(seen: Partitions, steps: tuple[Step, ...] | None) -> None:
    found = plan_partition(seen, cpus("1"), cpus("0-7"), cpus("2-7"))
    assert found == steps if steps is not None else found[-1] == SET[2]


FOREIGN = Partition("x/y", "root", "", cpus("1-2"), None, None)


@pytest.mark.parametrize(
    ("seen", "wanted", "online", "pods", "what"),
    [
        (EMPTY, "1,9", "0-7", "", "9 are not online"),
        (EMPTY, "1-2", "0-7", "2-7", "pods may use 2, and"),
        (EMPTY, "0-1", "0-1", "", "nothing is left for all others"),
        (EMPTY, "0-1", "0-7", "", "system.slice has 0 of them in its cpuset.cpus"),
        (EMPTY._replace(found=(FOREIGN,)), "1", "0-7", "", "the partition x/y has 1 of them"),
        (EMPTY._replace(found=(FOREIGN._replace(exclusive=cpus("1")),)), "1-2", "0-7", "", "x/y has 1 of them"),
    ],
)
def test_refused(seen: Partitions, wanted: str, online: str, pods: str, what: str) -> None:
    with pytest.raises(RefusedError, match=what) as caught:
        plan_partition(seen, cpus(wanted), cpus(online), cpus(pods))
    assert caught.value.where == "the isolated CPUs %s" % wanted
    assert caught.value.remedy


def test_no_cpus() -> None:
    with pytest.raises(InputError, match="there are none"):
        plan_partition(EMPTY, cpus(""), cpus("0-7"), cpus(""))


@pytest.mark.parametrize(
    ("seen", "steps"),
    [
        (EMPTY, []),
        (EMPTY._replace(has_own=True), ["rmdir"]),
        (ours("isolated", "", "1"), ["write member", "write ", "rmdir"]),
        (ours("isolated", "x", ""), ["write member", "rmdir"]),
    ],
)
def test_undo(seen: Partitions, steps: list[str]) -> None:
    found = plan_undo(seen)
    assert ["%s %s" % (step.action, step.new) if step.file else step.action for step in found] == steps


def test_undo_is_refused_where_something_runs() -> None:
    with pytest.raises(RefusedError, match="processes would lose its CPUs"):
        plan_undo(ours("isolated", "", "1", busy="processes"))


SETS = st.sets(st.integers(0, 7)).map(CPUSet)


@given(SETS, SETS, SETS, SETS)
def test_a_plan_harms_nobody(wanted: CPUSet, online: CPUSet, pods: CPUSet, slices: CPUSet) -> None:
    seen = EMPTY._replace(tops={"system.slice": slices})
    try:
        steps = plan_partition(seen, wanted, online, pods)
    except (InputError, RefusedError):
        assert not wanted or not wanted <= online or wanted & pods or wanted & slices or online <= wanted
        return
    assert wanted < online
    assert not wanted & (pods | slices)
    assert {step.new for step in steps if step.file in (OWN_CPUS, EXCLUSIVE)} == {str(wanted)}


# --- acting -----------------------------------------------------------------------------------------


def listing(root: Path) -> dict[str, str]:
    return {str(path): path.read_text("ascii") if path.is_file() else "" for path in sorted(root.rglob("*"))}


def test_made_and_taken_back(tmp_path: Path) -> None:
    hierarchy = node(tmp_path, NODE)
    before = listing(tmp_path)
    steps = plan_partition(read_partitions(hierarchy), cpus("1"), cpus("0-7"), cpus("2-7"))
    carry_out(hierarchy, steps)
    seen = read_partitions(hierarchy)
    assert seen.own() == Partition(OWN, "isolated", "", cpus("1"), cpus("1"), cpus(""))
    assert plan_partition(seen, cpus("1"), cpus("0-7"), cpus("2-7")) == ()
    carry_out(hierarchy, plan_partition(seen, cpus("1,5"), cpus("0-7"), cpus("2-3")))
    again = read_partitions(hierarchy).own()
    assert again is not None
    assert again.exclusive == cpus("1,5")
    carry_out(hierarchy, plan_undo(read_partitions(hierarchy)))
    assert listing(tmp_path) == before


@pytest.mark.parametrize("done", range(5))
def test_a_run_that_was_killed(tmp_path: Path, done: int) -> None:
    """What is done of a plan can be finished, by the same or a new plan, and undone."""
    hierarchy = node(tmp_path, NODE)
    before = listing(tmp_path)
    steps = plan_partition(read_partitions(hierarchy), cpus("1"), cpus("0-7"), cpus("2-7"))
    for again in (steps, None):
        carry_out(hierarchy, steps[:done])
        carry_out(hierarchy, again or plan_partition(read_partitions(hierarchy), cpus("1"), cpus("0-7"), cpus("2-7")))
        own = read_partitions(hierarchy).own()
        assert own is not None
        assert own.exclusive == cpus("1")
        undo = plan_undo(read_partitions(hierarchy))
        carry_out(hierarchy, undo[:done])
        carry_out(hierarchy, plan_undo(read_partitions(hierarchy)))
        assert listing(tmp_path) == before
    carry_out(hierarchy, undo[-1:])


def test_a_running_kernel_makes_the_files_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hierarchy = node(tmp_path, {**NODE, "x": Files("")})
    monkeypatch.setattr(Tree, "live", property(lambda _tree: True))
    carry_out(hierarchy, [Step("mkdir", OWN)])
    place = Path(hierarchy.place(OWN))
    assert list(place.iterdir()) == []
    carry_out(hierarchy, [Step("rmdir", OWN), Step("write", "x", PART, "member", "isolated")])
    assert not place.exists()


def test_the_kernel_makes_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hierarchy = node(tmp_path, {**NODE, OWN: Files("")})
    for text, what in (
        ("isolated invalid (Cpu list not exclusive)", "the kernel makes none of it: Cpu list not exclusive, after"),
        ("member", "holds 'member', after 'isolated' was written"),
    ):
        monkeypatch.setattr(partitions, "_text", lambda *_arguments, text=text: text)
        with pytest.raises(NodeError, match=what.replace("(", r"\(")) as caught:
            carry_out(hierarchy, [SET[2]])
        assert caught.value.where == hierarchy.place(OWN, PART)


@pytest.mark.parametrize(
    ("number", "what", "kind"),
    [
        (errno.EINVAL, "a sibling has some of these CPUs", "node"),
        (errno.EBUSY, "processes or cgroups are in it", "node"),
        (errno.EPERM, "Operation not permitted", PERMISSION),
    ],
)
def test_the_kernel_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str, kind: str) -> None:
    hierarchy = node(tmp_path, {**NODE, OWN: Files("")})

    def fail(*_arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(NodeError, match=what) as caught:
        carry_out(hierarchy, SET)
    assert (caught.value.where, caught.value.kind) == (hierarchy.place(OWN, OWN_CPUS), kind)


def test_steps_as_people_and_programs_read_them() -> None:
    steps = (Step("mkdir", OWN), SET[1], Step("write", OWN, EXCLUSIVE, "1", ""), Step("rmdir", OWN))
    assert step_names(steps) == [
        "mkdir kubenode-isolated",
        "write kubenode-isolated/cpuset.cpus.exclusive: 1",
        "write kubenode-isolated/cpuset.cpus.exclusive: (none)",
        "rmdir kubenode-isolated",
    ]
    assert SET[1].to_dict() == {"action": "write", "path": OWN, "file": EXCLUSIVE, "old": "", "new": "1"}
