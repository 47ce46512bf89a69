# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/_kubelet/gates.py."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.gates import (
    LIVES,
    NEVER,
    OWN_LIVES,
    GateLife,
    Phase,
    dependencies,
    is_registered,
    life_of,
    read_life,
)
from ansible_collections.kubenode.cpu_manager.tests.unit.plugins.module_utils._kubelet.old_gates import (
    BACKPORTED,
    FOUND,
    MINORS,
)

READ = [
    ("a8", GateLife((Phase(8, "a", False, False),), 8, NEVER)),
    ("a8 B16", GateLife((Phase(8, "a", False, False), Phase(16, "b", True, False)), 8, NEVER)),
    ("G31! -34", GateLife((Phase(31, "g", True, True),), 31, 34)),
    ("+34 g0 D34", GateLife((Phase(0, "g", False, False), Phase(34, "d", True, False)), 34, NEVER)),
    ("d36!", GateLife((Phase(36, "d", False, True),), 36, NEVER)),
]


@pytest.mark.parametrize(("text", "life"), READ)
def test_an_entry_is_read(text: str, life: GateLife) -> None:
    assert read_life(text) == life


@pytest.mark.parametrize("name", LIVES)
def test_a_life(name: str) -> None:
    life = life_of(name)
    assert life is not None
    minors = [phase.since for phase in life.phases]
    assert minors == sorted(set(minors))
    assert minors[0] <= life.since < life.removed
    assert all(phase.stage in "abgd" for phase in life.phases)
    # What is locked stays as it is.
    assert [phase.locked for phase in life.phases] == sorted(phase.locked for phase in life.phases)


def test_the_names_are_in_order() -> None:
    others = [name for name in LIVES if name not in OWN_LIVES]
    assert (list(OWN_LIVES), others) == (sorted(OWN_LIVES), sorted(others))
    assert life_of("NoGate") is None


@pytest.mark.parametrize(
    ("text", "minor", "phase"),
    [
        ("a8 B16", 7, None),
        ("a8 B16", 8, Phase(8, "a", False, False)),
        ("a8 B16", 15, Phase(8, "a", False, False)),
        ("a8 B16", 16, Phase(16, "b", True, False)),
        ("a8 B16 -20", 25, Phase(16, "b", True, False)),
    ],
)
def test_the_phase_of_a_version(text: str, minor: int, phase: Phase | None) -> None:
    assert read_life(text).phase(minor) == phase


# How many gates a kubelet has registered: a slip in the table changes one of these.
@pytest.mark.parametrize(
    ("minor", "count"),
    [(29, 159), (30, 167), (31, 165), (32, 177), (33, 189), (34, 205), (35, 217), (36, 240), (37, 253)],
)
def test_how_many_there_are(minor: int, count: int) -> None:
    assert sum(is_registered(name, minor) for name in LIVES) == count


@pytest.mark.parametrize("minor", MINORS)
def test_the_gates_of_older_kubelets_are_those_of_their_sources(minor: int) -> None:
    found = {name: states[minor] for name, states in FOUND.items() if states[minor] != "-"}
    name, minors = BACKPORTED
    if minor in minors:
        found[name] = "b"
    assert {name: _state(name, minor) for name in LIVES if is_registered(name, minor)} == found


def _state(name: str, minor: int) -> str:
    life = life_of(name)
    phase = None if life is None else life.phase(minor)
    assert phase is not None
    return (phase.stage.upper() if phase.default else phase.stage) + "!" * phase.locked


@pytest.mark.parametrize(
    ("name", "minor", "registered"),
    [
        ("CPUManager", 32, True),
        ("CPUManager", 33, False),
        ("MemoryManager", 35, True),
        ("MemoryManager", 36, False),
        ("PodLevelResourceManagers", 35, False),
        ("PodLevelResourceManagers", 36, True),
        ("KubeletPodResourcesListUseActivePods", 33, False),
        ("KubeletPodResourcesListUseActivePods", 34, True),
        ("SidecarContainers", 36, True),
        ("SidecarContainers", 37, False),
        ("NoGate", 36, False),
    ],
)
def test_registered(name: str, minor: int, registered: bool) -> None:
    assert is_registered(name, minor) is registered


@pytest.mark.parametrize(
    ("name", "minor", "needed"),
    [
        ("PodLevelResourceManagers", 36, ("PodLevelResources",)),
        ("UserNamespacesHostNetworkSupport", 35, ("UserNamespacesSupport",)),
        ("UserNamespacesHostNetworkSupport", 36, ("UserNamespacesSupport", "NodeDeclaredFeatures")),
        # The memory manager's gate is gone in 1.36.
        ("InPlacePodVerticalScalingExclusiveMemory", 35, ("InPlacePodVerticalScaling", "MemoryManager")),
        ("InPlacePodVerticalScalingExclusiveMemory", 36, ("InPlacePodVerticalScaling",)),
        ("EventedPLEG", 36, ()),
        ("EventedPLEG", 37, ("PLEGOnDemandRelist",)),
    ],
)
def test_dependencies(name: str, minor: int, needed: tuple[str, ...]) -> None:
    assert dependencies(minor)[name] == needed


def test_dependencies_of_registered_gates_alone() -> None:
    assert dependencies(34) == {}
    assert dependencies(38) == {}
    assert "PodLevelResourceManagers" not in dependencies(35)
    assert list(dependencies(36)) == sorted(dependencies(36))
    for minor in (35, 36, 37):
        for name, needed in dependencies(minor).items():
            assert all(is_registered(gate, minor) for gate in (name, *needed))
