# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_published/publish.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import Running
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._published.publish import (
    PublishedCPUs,
    by_kernel,
    entries_of_kubelet,
    with_claims,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State


def running(uid: str, name: str | None, cpus: str | None) -> Running:
    effective = None if cpus is None else CPUSet.parse(cpus)
    return Running(uid, "", name, "%s-%s" % (uid, name), "path", "path", "", effective)


def entry(name: str, cpus: str) -> PublishedCPUs:
    return PublishedCPUs("uid", name, CPUSet.parse(cpus), False, "kubelet", CPUSet.parse(cpus))


def test_what_the_checkpoint_gives() -> None:
    state = State(CPUSet.parse("0-3"), {"a": {"own": CPUSet.parse("4-5")}}, {"whole": CPUSet.parse("6-7")})
    containers = [
        running("a", "own", "0-7"),
        running("a", "side", "0-3"),
        running("whole", "x", "6"),
        running("a", None, "0-7"),
        running("a", "gone", None),
    ]
    wanted, written = {"a-own": CPUSet.parse("4-5")}, {"a-own": CPUSet.parse("4-5")}
    found = entries_of_kubelet(containers, wanted, written, state)
    assert [(entry.container, str(entry.cpus), entry.exclusive, str(entry.effective)) for entry in found] == [
        ("own", "4-5", True, "4-5"),
        ("side", "0-3", False, "0-3"),
        ("x", "6", True, "6"),
    ]
    # A write that failed: what it is to have, and what it has, which is then not what another has alone.
    (first, _side, last) = entries_of_kubelet(containers, wanted, {}, state)
    assert (str(first.cpus), str(first.effective), first.exclusive) == ("4-5", "0-7", True)
    assert not last.exclusive


@pytest.mark.parametrize(
    ("containers", "exclusive"),
    [
        # The only one that runs has the CPUs of its pod to itself.
        ([running("whole", "x", "4-7")], {"x": True}),
        ([running("whole", "x", "4-7"), running("whole", "y", "4-7")], {"x": False, "y": False}),
        # One has its own out of these; two share the rest.
        (
            [running("whole", "own", "4"), running("whole", "x", "5-7"), running("whole", "y", "5-7")],
            {"own": True, "x": False, "y": False},
        ),
        # Not what the pod was given.
        ([running("whole", "x", "0-7")], {"x": False}),
        # Somebody who was not given them.
        ([running("whole", "own", "4"), running("b", "side", "0-4")], {"own": False, "side": False}),
        # A restart: the former one still has its cgroup. A sandbox sleeps.
        ([running("whole", "own", "4"), running("whole", "own", "4"), running("whole", None, "0-7")], {"own": True}),
    ],
)
def test_exclusive_cpus_have_one_user(containers: list[Running], exclusive: dict[str, bool]) -> None:
    state = State(CPUSet.parse("0-3"), {"whole": {"own": CPUSet((4,))}}, {"whole": CPUSet.parse("4-7")})
    found = entries_of_kubelet(containers, {}, {}, state)
    assert {entry.container: entry.exclusive for entry in found} == exclusive


def test_without_a_checkpoint() -> None:
    (found,) = entries_of_kubelet([running("a", "own", "4-5")], {}, {}, None)
    assert found == PublishedCPUs("a", "own", CPUSet.parse("4-5"), False, "kubelet", CPUSet.parse("4-5"))


def test_claims_of_the_dra_driver() -> None:
    found = with_claims([entry("own", "4-5"), entry("other", "0-3"), entry("none", "")], CPUSet.parse("4-7"), "dra")
    assert [(entry.exclusive, entry.by) for entry in found] == [(True, "dra"), (False, "kubelet"), (False, "kubelet")]


def test_a_claim_that_two_containers_share() -> None:
    found = with_claims([entry("one", "4-5"), entry("two", "4-5"), entry("own", "6")], CPUSet.parse("4-7"), "dra")
    assert [(entry.exclusive, entry.by) for entry in found] == [(False, "dra"), (False, "dra"), (True, "dra")]
    # Nor is it exclusive beside one that no claim holds.
    (first, _second) = with_claims([entry("own", "6"), entry("wide", "0-7")], CPUSet.parse("4-7"), "dra")
    assert not first.exclusive


def test_an_nri_policy() -> None:
    online = CPUSet.parse("0-7")
    found = by_kernel([entry("own", "4-5"), entry("left", "0-3"), entry("right", "3,6")], online, "nri")
    assert [(entry.exclusive, entry.by) for entry in found] == [(True, "nri"), (False, "nri"), (False, "nri")]
    # The only container of a node has all CPUs, and not to itself.
    assert not by_kernel([entry("alone", "0-7")], online, "nri")[0].exclusive
