# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    INTERRUPTS,
    LIVE_LAYERS,
    MASK,
    RPS,
    SLICES,
    WATCHDOG,
    WORKQUEUES,
    KernelSetting,
    text_of,
    wanted_cpus,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

RESERVED, ONLINE = CPUSet.parse("0-1,9"), CPUSet.parse("0-7")


def setting(layer: str, cpus: str | None, form: str = "list") -> KernelSetting:
    return KernelSetting(layer, "x", "/x", "", None if cpus is None else CPUSet.parse(cpus), form)


@pytest.mark.parametrize(
    ("layer", "cpus", "wanted"),
    [
        (INTERRUPTS, "0-7", "0-1"),
        (INTERRUPTS, "0", None),
        (INTERRUPTS, "0-1", None),
        # CPUs that are offline do no harm.
        (INTERRUPTS, "0-1,12", None),
        (INTERRUPTS, "12", "0-1"),
        (INTERRUPTS, "", "0-1"),
        (INTERRUPTS, "2", "0-1"),
        (WORKQUEUES, "1-2", "0-1"),
        (WATCHDOG, "0-7", "0-1"),
        (SLICES, None, "0-1"),
        (SLICES, "1", None),
        # Where packets are worked on by nobody else, they stay where they came.
        (RPS, "", None),
        (RPS, None, None),
        (RPS, "0-1", None),
        (RPS, "1-2", "0-1"),
    ],
)
def test_which_cpus_a_setting_is_to_have(layer: str, cpus: str | None, wanted: str | None) -> None:
    found = wanted_cpus(setting(layer, cpus), RESERVED, ONLINE)
    assert (None if found is None else str(found)) == wanted


cpusets = st.integers(0, 255).map(CPUSet.from_mask)


@given(st.sampled_from(LIVE_LAYERS), st.one_of(st.none(), cpusets), cpusets, cpusets)
def test_what_is_as_wanted_stays(layer: str, cpus: CPUSet | None, reserved: CPUSet, online: CPUSet) -> None:
    found = KernelSetting(layer, "x", "/x", "", cpus)
    wanted = wanted_cpus(found, reserved, online)
    if wanted is not None:
        assert wanted == reserved & online
        assert wanted_cpus(found._replace(cpus=wanted), reserved, online) in (None, CPUSet())


def test_the_form_of_a_file() -> None:
    assert text_of(setting(SLICES, ""), CPUSet.parse("0-1,33")) == "0-1,33"
    assert text_of(setting(INTERRUPTS, "", MASK), CPUSet.parse("0-1,33")) == "2,00000003"
