# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_rollout/rollout_plan.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import (
    RECONCILE,
    RESET_CHECKPOINT,
    START_KUBELET,
    STOP_KUBELET,
    WRITE_CONFIGURATION,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    other_owners,
    rollout_report,
    running_kubelet,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.planned import plan
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import (
    CHECKPOINT,
    CONFIG,
    EMPTY,
    SOUND,
    Saved,
    cgroups,
    write_saved,
)

DRA = {"/var/lib/kubelet/plugins_registry/dra.cpu-reg.sock": ""}
BALLOONS = {"/var/lib/nri-resource-policy/cache": '{"PolicyName": "balloons"}'}
CRIO = {"/etc/crio/crio.conf": '[crio.runtime]\nshared_cpuset = "2"\n'}
RESTART = [STOP_KUBELET, WRITE_CONFIGURATION, START_KUBELET]
TO_STATIC = {"subject": "cpu_manager_policy", "wanted": "static", "found": "none"}
TO_NONE = {"subject": "cpu_manager_policy", "wanted": "none", "found": "static"}
NONE = EMPTY.configured("")


def node(saved: Saved, root: Path) -> Node:
    return Node(write_saved(saved, root), minor=saved.minor)


@pytest.mark.parametrize(
    ("saved", "actions", "drift", "count"),
    [
        pytest.param(NONE, RESTART, [TO_STATIC], 0, id="nobody else"),
        pytest.param(NONE.having(DRA), RESTART, [TO_STATIC], 1, id="to static beside the driver"),
        pytest.param(NONE.having({**DRA, **BALLOONS}), RESTART, [TO_STATIC], 2, id="to static beside two"),
        pytest.param(NONE.having(CRIO), RESTART, [TO_STATIC], 0, id="to static beside shared CPUs"),
        pytest.param(EMPTY.having(DRA), RESTART, [TO_NONE], 0, id="to none"),
        pytest.param(EMPTY.having(DRA), [STOP_KUBELET, RESET_CHECKPOINT, START_KUBELET], [], 0, id="a repair"),
        pytest.param(EMPTY.having(DRA), [RECONCILE], [], 1, id="cpusets of the driver's containers"),
        pytest.param(EMPTY.having(CRIO), [RECONCILE], [], 1, id="cpusets with shared CPUs"),
        pytest.param(EMPTY, [RECONCILE], [], 0, id="cpusets"),
    ],
)
def test_other_owners(
    saved: Saved, actions: list[str], drift: list[dict[str, str]], count: int, tmp_path: Path
) -> None:
    there = node(saved, tmp_path)
    assert [error.kind for error in other_owners(there, actions, drift, ())] == ["other_owner"] * count
    assert other_owners(there, actions, drift, ["dra-driver-cpu", "nri-balloons", "crio-shared-cpus"]) == []


def refusals(saved: Saved, root: Path, wanted: dict[str, Any], allowed: tuple[str, ...] = ()) -> list[str]:
    return [
        refusal["kind"]
        for refusal in rollout_report(node(saved, root), wanted, ChangeTerms(allow_owners=allowed))["refusals"]
    ]


WANTED = {"cpu_manager_policy": "static", "reserved_system_cpus": "0,4"}


def test_a_rollout_to_static(tmp_path: Path) -> None:
    assert refusals(NONE, tmp_path / "alone", WANTED) == []
    assert refusals(NONE.having(DRA), tmp_path / "beside", WANTED) == ["other_owner"]
    assert refusals(NONE.having(DRA), tmp_path / "allowed", WANTED, ("dra-driver-cpu",)) == []


def test_an_id_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no owner dra;"):
        refusals(NONE, tmp_path, WANTED, ("dra",))


def test_what_stays_static_is_noted(tmp_path: Path) -> None:
    report = rollout_report(node(EMPTY.having(DRA), tmp_path), {"cpu_manager_policy": "static"}, ChangeTerms())
    assert (report["refusals"], report["note_checks"], report["actions"]) == ([], ["two-owners"], [])


def test_another_setting_of_a_node_with_two_owners(tmp_path: Path) -> None:
    wanted = {"cpu_manager_policy": "static", "cpu_manager_reconcile_period": "5s"}
    assert refusals(EMPTY.having(BALLOONS), tmp_path, wanted) == []


def test_cpusets_are_not_taken_back(tmp_path: Path) -> None:
    moved = SOUND._replace(cgroups=cgroups(own="1-2,5"))
    assert refusals(moved, tmp_path / "alone", {}) == []
    assert refusals(moved.having(DRA), tmp_path / "beside", {}) == ["other_owner"]


def test_no_kubelet_runs(tmp_path: Path) -> None:
    assert running_kubelet(node(EMPTY, tmp_path)) == []


@pytest.mark.parametrize(
    ("policy", "scope", "reserved", "notes"),
    [
        ("restricted", "container", "0,24", 0),
        ("restricted", "container", "0,12,24,36", 1),
        ("restricted", "pod", "0,12,24,36", 1),
        ("single-numa-node", "container", "0,12,24,36", 1),
        ("best-effort", "container", "0,12,24,36", 0),
        ("restricted", "container", "0-1,24-25", 0),
    ],
)
def test_a_pod_that_would_not_come_back_to_its_node_is_named(
    tmp_path: Path, policy: str, scope: str, reserved: str, notes: int
) -> None:
    """It has all of a NUMA node, of which the wanted reservation takes a core."""
    write_machine(tmp_path, "2s1n12c2t")
    settings = "cpuManagerPolicy: static\nreservedSystemCPUs: 0,24\ntopologyManagerPolicy: restricted\n"
    write(tmp_path, CONFIG, HEADER + settings)
    own = CPUSet.parse("12-23,36-47")
    write(tmp_path, CHECKPOINT, write_checkpoint("static", State(CPUSet.parse("0-11,24-35"), {"uid-db": {"db": own}})))
    wanted = {"topology_manager_policy": policy, "topology_manager_scope": scope, "reserved_system_cpus": reserved}
    said = [note for note in plan(Tree(str(tmp_path)), **wanted)["notes"] if "would not admit it again" in note]
    assert len(said) == notes
    assert all(note.startswith("pod uid-db") and "has 24 CPUs of its own" in note for note in said)
