# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The laws of a plan, for any values of any layer: no work without a CPU, no second change, and all goes back."""

from __future__ import annotations

from typing import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import (
    FIXED,
    LIST,
    LIVE_LAYERS,
    MASK,
    RPS,
    SLICES,
    KernelSetting,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingJournal,
    HousekeepingWish,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_plan import (
    check_reserved,
    commands_of,
    plan_absent,
    plan_present,
    plan_values,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import (
    DAEMON_RELOAD,
    RESTART_IRQBALANCE,
    FileStep,
    FoundHost,
    HousekeepingPlan,
    Step,
    ValueStep,
    WantedHost,
    cpus_in,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

ONLINE = CPUSet.parse("0-7")
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
CPUS = st.sets(st.integers(0, 9), min_size=1).map(CPUSet)
RESERVED = st.sets(st.integers(0, 7), min_size=1, max_size=7).map(CPUSet)


@st.composite
def settings_of(draw: st.DrawFn) -> list[KernelSetting]:
    found = []
    for layer in LIVE_LAYERS:
        for name in draw(st.sets(NAMES, max_size=3)):
            form = MASK if layer == RPS else LIST
            cpus = draw(CPUS)
            may_be_empty = layer in (SLICES, RPS) and draw(st.booleans())
            empty = None if layer == SLICES else CPUSet()
            text = ("" if layer == SLICES else "0") if may_be_empty else cpus.to_mask() if form == MASK else str(cpus)
            problem = FIXED if draw(st.integers(0, 9)) == 0 else ""
            held = empty if may_be_empty else cpus
            found.append(KernelSetting(layer, name, "/%s/%s" % (layer, name), text, held, form, None, problem))
    return found


def found_of(
    settings: Sequence[KernelSetting], journal: HousekeepingJournal | None, boot_id: str = "boot"
) -> FoundHost:
    texts: dict[str, str | None] = {setting.path: setting.text for setting in settings}
    if journal is not None:
        texts = {**dict.fromkeys(journal.values), **texts}
    return FoundHost(settings, ONLINE, boot_id, texts, {}, {})


def after(settings: Sequence[KernelSetting], steps: Sequence[Step]) -> list[KernelSetting]:
    """Return what the kernel makes of it."""
    texts = {step.path: step.after for step in steps if isinstance(step, ValueStep)}
    return [
        setting
        if setting.path not in texts
        else setting._replace(text=texts[setting.path], cpus=cpus_of(setting, texts[setting.path]))
        for setting in settings
    ]


def cpus_of(setting: KernelSetting, text: str) -> CPUSet | None:
    return cpus_in(text, setting.form) or (None if setting.layer == SLICES else CPUSet())


def present(
    settings: Sequence[KernelSetting],
    wish: HousekeepingWish,
    journal: HousekeepingJournal | None,
    boot_id: str = "boot",
) -> HousekeepingPlan:
    return plan_present(found_of(settings, journal, boot_id), WantedHost(wish), journal)


@given(settings_of(), RESERVED)
def test_brought_again_and_back(settings: list[KernelSetting], reserved: CPUSet) -> None:
    wish = HousekeepingWish(reserved, LIVE_LAYERS)
    first = present(settings, wish, None)
    for step in first.steps:
        assert isinstance(step, ValueStep)
        cpus = cpus_in(step.after, step.form)
        assert cpus
        assert cpus <= reserved & ONLINE
        assert step.before != step.after
    brought = after(settings, first.steps)
    for setting in brought:
        if not setting.problem and setting.cpus:
            assert setting.cpus & ONLINE <= reserved
    again = present(brought, wish, first.final)
    assert not again.changed
    assert again.steps == []
    if first.final is not None:
        back = plan_absent(found_of(brought, first.final), first.final)
        assert after(brought, back.steps) == settings
        assert back.notes == []


@given(settings_of(), RESERVED, RESERVED, st.sets(st.sampled_from(LIVE_LAYERS)))
def test_another_wish(settings: list[KernelSetting], reserved: CPUSet, another: CPUSet, layers: set[str]) -> None:
    """It does not matter what was wished before: it ends alike, and goes back to where it began."""
    first = present(settings, HousekeepingWish(reserved, LIVE_LAYERS), None)
    wish = HousekeepingWish(another, tuple(layer for layer in LIVE_LAYERS if layer in layers))
    brought = after(settings, first.steps)
    second = present(brought, wish, first.final)
    final = after(brought, second.steps)
    for setting, start in zip(final, settings):
        if setting.layer not in layers:
            assert setting == start
        elif not setting.problem and setting.cpus:
            assert setting.cpus & ONLINE <= another
    assert present(final, wish, second.final).steps == []
    if second.final is not None:
        assert after(final, plan_absent(found_of(final, second.final), second.final).steps) == settings


@given(settings_of(), settings_of(), RESERVED)
def test_boots(settings: list[KernelSetting], later: list[KernelSetting], reserved: CPUSet) -> None:
    """What a boot begins with is what goes back after it, but for cgroups, which have the first."""
    first = present(settings, HousekeepingWish(reserved, LIVE_LAYERS), None)
    if first.final is None:
        return
    of_kernel = [setting for setting in later if setting.layer != SLICES]
    second = plan_values(found_of(of_kernel, first.final, "second"), first.final)
    brought = after(of_kernel, second.steps)
    assert second.final is not None
    assert plan_values(found_of(brought, second.final, "second"), second.final).steps == []
    back = plan_absent(found_of(brought, second.final, "second"), second.final)
    assert after(brought, back.steps) == of_kernel


@pytest.mark.parametrize(
    ("reserved", "word"), [("", "none is online"), ("8-9", "none is online"), ("0-7", "leave none"), ("0-9", "leave")]
)
def test_reserved_that_cannot_be(reserved: str, word: str) -> None:
    with pytest.raises(RefusedError, match=word) as caught:
        check_reserved(CPUSet.parse(reserved), ONLINE)
    assert "nothing was written" in str(caught.value)


@pytest.mark.parametrize(
    ("layers", "more", "commands"),
    [
        ((), (), []),
        (("slices",), (), [DAEMON_RELOAD]),
        (("manager", "boot"), (), [DAEMON_RELOAD]),
        (("irqbalance", "slices"), (), [RESTART_IRQBALANCE, DAEMON_RELOAD]),
        (("kernel_line",), (("update-grub",),), [("update-grub",)]),
    ],
)
def test_commands(layers: tuple[str, ...], more: tuple[tuple[str, ...], ...], commands: list[tuple[str, ...]]) -> None:
    steps = [FileStep(layer, "/a", None, b"") for layer in layers]
    assert commands_of(steps, more, None) == commands


def test_fixed_interrupts_are_one_note() -> None:
    settings = [
        KernelSetting("interrupts", "%d nvme" % number, "/%d" % number, "0-7", ONLINE, problem=FIXED)
        for number in range(20)
    ]
    plan = present(settings, HousekeepingWish(CPUSet.parse("0"), LIVE_LAYERS), None)
    (note,) = plan.notes
    assert "0 nvme, 1 nvme" in note
    assert "and 12 more" in note
    assert not plan.changed
