# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plans of a partition against a model of what a kernel lets one write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.layers import SLICES, KernelSetting
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.partitions import TopCgroup
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingJournal,
    HousekeepingWish,
    OwnCPUs,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_plan import (
    plan_absent,
    plan_present,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.steps import (
    CommandStep,
    FoundHost,
    HousekeepingPlan,
    Step,
    ValueStep,
    WantedHost,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.partitioned import ONLINE, OWN, TOP
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

HOST = ("system.slice", "user.slice")


@dataclass
class Kernel:
    """Cgroups right below the topmost one, by what Linux 6.12 does with them.

    A partition needs CPUs that no other cgroup has exclusively, and takes them from all that is not in it. Where a
    cgroup is left without any of its own, its processes go to all that are left: to those of pods.
    """

    cpus: dict[str, str] = field(default_factory=lambda: dict.fromkeys(HOST, ""))
    exclusive: dict[str, str] = field(default_factory=lambda: dict.fromkeys(HOST, ""))
    kinds: dict[str, str] = field(default_factory=lambda: dict.fromkeys(HOST, "member"))

    def taken(self) -> CPUSet:
        owners = [name for name, kind in self.kinds.items() if kind in ("isolated", "root")]
        return CPUSet(cpu for name in owners for cpu in cpus(self.exclusive[name]))

    def do(self, step: Step) -> None:
        if isinstance(step, CommandStep):
            verb, name = step.words[1:3]
            if verb == "start":
                self.cpus.setdefault(name, "")
                self.exclusive.setdefault(name, "")
                self.kinds.setdefault(name, "member")
            elif verb == "stop":
                assert self.kinds[name] == "member"
                for texts in (self.cpus, self.exclusive, self.kinds):
                    del texts[name]
        elif isinstance(step, ValueStep):
            name, file = step.path[len(TOP) :].split("/")
            texts = {"cpus": self.cpus, "exclusive": self.exclusive, "partition": self.kinds}[file.rpartition(".")[2]]
            assert texts[name] == step.before or step.before == ""
            if file != "cpuset.cpus.partition" and self.kinds[name] != "member":
                raise AssertionError("%s: CPUs of a partition change" % name)
            texts[name] = step.after
            assert not self.exclusive[name] or cpus(self.exclusive[name]) <= cpus(self.cpus[name])
        self.check()

    def check(self) -> None:
        taken = self.taken()
        for name in HOST:
            own = cpus(self.cpus[name])
            assert not own or own - taken, "%s is left without a CPU" % name
        assert ONLINE - taken

    def found(self, journal: HousekeepingJournal | None, wish: HousekeepingWish, boot_id: str = "boot") -> FoundHost:
        settings = [
            KernelSetting(
                SLICES, name, "%s%s/cpuset.cpus" % (TOP, name), self.cpus[name], cpus(self.cpus[name]) or None
            )
            for name in HOST
        ]
        texts: dict[str, str | None] = {setting.path: setting.text for setting in settings}
        if journal is not None:
            texts = {**dict.fromkeys(journal.values), **texts}
        names = {*(() if journal is None else journal.slices), *([] if wish.partition is None else [OWN, "b.slice"])}
        places = {name: self.place(name) for name in names}
        return FoundHost(settings, ONLINE, boot_id, texts, {}, {}, places=places)

    def place(self, name: str) -> TopCgroup:
        if name not in self.kinds:
            return TopCgroup(name, TOP + name, False)
        return TopCgroup(name, TOP + name, True, self.cpus[name], self.exclusive[name], self.kinds[name])


PARTITIONS = st.none() | st.builds(
    OwnCPUs,
    st.sets(st.integers(1, 3), min_size=1).map(CPUSet),
    st.sampled_from(["isolated", "root"]),
    st.sampled_from([OWN, "b.slice"]),
)


def wish_of(own: OwnCPUs | None) -> HousekeepingWish:
    reserved = cpus("0-3") - (CPUSet() if own is None else own.cpus)
    return HousekeepingWish(reserved, (SLICES,), partition=own)


def carried_out(
    kernel: Kernel, plan: HousekeepingPlan, before: HousekeepingJournal | None, steps: int = 99
) -> HousekeepingJournal | None:
    """Do so many steps of a plan; give the journal that is left."""
    for step in plan.steps[:steps]:
        kernel.do(step)
    if steps < len(plan.steps):
        return plan.journal
    return plan.final if plan.changed or before is None else before


def present(kernel: Kernel, journal: HousekeepingJournal | None, own: OwnCPUs | None) -> HousekeepingPlan:
    wish = wish_of(own)
    return plan_present(kernel.found(journal, wish), WantedHost(wish, runs=True), journal)


@given(st.lists(st.tuples(PARTITIONS, st.integers(0, 12) | st.just(99)), max_size=4), PARTITIONS)
def test_whatever_was_wished_and_interrupted(
    wishes: Sequence[tuple[OwnCPUs | None, int]], last: OwnCPUs | None
) -> None:
    """No work is left without a CPU, the last wish comes true, a second run changes nothing, and all goes back."""
    kernel = Kernel()
    journal: HousekeepingJournal | None = None
    for own, steps in wishes:
        journal = carried_out(kernel, present(kernel, journal, own), journal, steps)
    journal = carried_out(kernel, present(kernel, journal, last), journal)
    made = {} if last is None else {last.slice: (str(last.cpus), last.kind)}
    assert {name: (kernel.cpus[name], kind) for name, kind in kernel.kinds.items() if name not in HOST} == made
    assert kernel.taken() == (CPUSet() if last is None else last.cpus)
    assert {kernel.cpus[name] for name in HOST} == {str(wish_of(last).reserved)}
    again = present(kernel, journal, last)
    assert (again.steps, again.changed) == ([], False)
    assert journal is not None
    back = plan_absent(kernel.found(journal, wish_of(last)), journal, runs=True)
    carried_out(kernel, back, journal)
    assert (kernel.cpus, kernel.exclusive, kernel.kinds) == (Kernel().cpus, Kernel().exclusive, Kernel().kinds)


@given(PARTITIONS, st.integers(0, 12))
def test_taking_back_what_was_interrupted(own: OwnCPUs | None, steps: int) -> None:
    kernel = Kernel()
    journal = carried_out(kernel, present(kernel, None, own), None, steps)
    assert journal is not None
    for more in (steps, 99):
        back = plan_absent(kernel.found(journal, wish_of(own)), journal, runs=True)
        journal = carried_out(kernel, back, journal, more) or journal
    assert (kernel.cpus, kernel.exclusive, kernel.kinds) == (Kernel().cpus, Kernel().exclusive, Kernel().kinds)
