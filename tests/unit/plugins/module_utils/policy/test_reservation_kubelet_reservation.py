# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/reservation.py: the CPUs that the kubelet reserves by itself."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import StaticOptions
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.reservation import kubelet_reservation
from ansible_collections.kubenode.cpu_manager.tests.machines.values import SMT, TWO

from .static_kubelet import machine as seen

KUBELET_RESERVATIONS = [
    (SMT, 1000, {}, "0"),
    (SMT, 2000, {}, "0,4"),  # the two threads of core 0
    (SMT, 1, {}, "0"),  # rounded up
    (SMT, 1001, {}, "0,4"),
    (SMT, 8000, {}, "0-7"),
    (TWO, 4000, {}, "0-1,4-5"),
    (TWO, 2000, {"distribute_cpus_across_cores": True}, "0-1"),  # the options shape it
    (TWO, 6000, {"distribute_cpus_across_numa": True}, "0-4,6"),
    (TWO, 6000, {"distribute_cpus_across_numa": True, "full_pcpus_only": True}, "0-2,4-6"),
    (TWO, 6000, {"full_pcpus_only": True}, "0-2,4-6"),
    ("1s2l2c2t", 3000, {"prefer_align_cpus_by_uncorecache": True}, "0-1,4"),
    (TWO, 6000, {"strict_cpu_reservation": True, "align_by_socket": True}, "0-2,4-6"),
]


@pytest.mark.parametrize(("name", "millicores", "options", "reserved"), KUBELET_RESERVATIONS)
def test_kubelet_reservation(name: str, millicores: int, options: dict[str, bool], reserved: str) -> None:
    assert str(kubelet_reservation(seen(name), millicores, StaticOptions(**options))) == reserved


@pytest.mark.parametrize("millicores", [0, 1, 1000, 100_000])
def test_named_cpus_are_reserved_as_they_are(millicores: int) -> None:
    """Whatever number the configuration has beside them."""
    named = CPUSet.parse("1,6-7")
    assert kubelet_reservation(seen(SMT), millicores, StaticOptions(), named) == named


@pytest.mark.parametrize("millicores", [0, -1])
def test_nothing_to_reserve(millicores: int) -> None:
    with pytest.raises(InputError) as caught:
        kubelet_reservation(seen(SMT), millicores, StaticOptions())
    assert str(caught.value) == (
        "[cpumanager] unable to determine reserved CPU resources for static policy;"
        " set reservedSystemCPUs, or a cpu in kubeReserved or systemReserved"
    )


def test_more_than_there_is() -> None:
    with pytest.raises(InputError) as caught:
        kubelet_reservation(seen(SMT), 8001, StaticOptions())
    assert str(caught.value) == (
        "[cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 9);"
        " reserve fewer with reservedSystemCPUs, kubeReserved and systemReserved"
    )
