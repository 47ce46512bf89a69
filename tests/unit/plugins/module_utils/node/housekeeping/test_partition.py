# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plans of a partition against a model of what a kernel lets one write, and on a saved node."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.errors import NodeError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.layers import SLICES, Setting
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.owner.owners import (
    GIVING_POLICIES,
    Facts,
    find_owners,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.host.partitions import Place
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.dynamic.settings import POLICIES
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping import bring, program, run
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.at_boot import AtBoot
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.journal import (
    PATH,
    Journal,
    OwnCPUs,
    Wish,
    read_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.plan import (
    plan_absent,
    plan_present,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.shown import needs_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.steps import (
    Command,
    Found,
    Plan,
    Step,
    Value,
    Wanted,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.wanted import Extras
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.housekeeping.wished import own_cpus
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.node.owners import owners_of
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.tree import Tree
from ansible_collections.kubenode.cpu_manager.tests.machines import housekept
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write

ONLINE = CPUSet.parse("0-7")
TOP = "/sys/fs/cgroup/"
HOST = ("system.slice", "user.slice")
OWN = "isolated.slice"


def cpus(text: str) -> CPUSet:
    return CPUSet.parse(text)


# --- the model ----------------------------------------------------------------------------------------


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
        if isinstance(step, Command):
            verb, name = step.words[1:3]
            if verb == "start":
                self.cpus.setdefault(name, "")
                self.exclusive.setdefault(name, "")
                self.kinds.setdefault(name, "member")
            elif verb == "stop":
                assert self.kinds[name] == "member"
                for texts in (self.cpus, self.exclusive, self.kinds):
                    del texts[name]
        elif isinstance(step, Value):
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

    def found(self, journal: Journal | None, wish: Wish, boot_id: str = "boot") -> Found:
        settings = [
            Setting(SLICES, name, "%s%s/cpuset.cpus" % (TOP, name), self.cpus[name], cpus(self.cpus[name]) or None)
            for name in HOST
        ]
        texts: dict[str, str | None] = {setting.path: setting.text for setting in settings}
        if journal is not None:
            texts = {**dict.fromkeys(journal.values), **texts}
        names = {*(() if journal is None else journal.slices), *([] if wish.partition is None else [OWN, "b.slice"])}
        places = {name: self.place(name) for name in names}
        return Found(settings, ONLINE, boot_id, texts, {}, {}, places=places)

    def place(self, name: str) -> Place:
        if name not in self.kinds:
            return Place(name, TOP + name, False)
        return Place(name, TOP + name, True, self.cpus[name], self.exclusive[name], self.kinds[name])


PARTITIONS = st.none() | st.builds(
    OwnCPUs,
    st.sets(st.integers(1, 3), min_size=1).map(CPUSet),
    st.sampled_from(["isolated", "root"]),
    st.sampled_from([OWN, "b.slice"]),
)


def wish_of(own: OwnCPUs | None) -> Wish:
    reserved = cpus("0-3") - (CPUSet() if own is None else own.cpus)
    return Wish(reserved, (SLICES,), partition=own)


def carried_out(kernel: Kernel, plan: Plan, before: Journal | None, steps: int = 99) -> Journal | None:
    """Do so many steps of a plan; give the journal that is left."""
    for step in plan.steps[:steps]:
        kernel.do(step)
    if steps < len(plan.steps):
        return plan.journal
    return plan.final if plan.changed or before is None else before


def present(kernel: Kernel, journal: Journal | None, own: OwnCPUs | None) -> Plan:
    wish = wish_of(own)
    return plan_present(kernel.found(journal, wish), Wanted(wish, runs=True), journal)


@given(st.lists(st.tuples(PARTITIONS, st.integers(0, 12) | st.just(99)), max_size=4), PARTITIONS)
def test_whatever_was_wished_and_interrupted(
    wishes: Sequence[tuple[OwnCPUs | None, int]], last: OwnCPUs | None
) -> None:
    """No work is left without a CPU, the last wish comes true, a second run changes nothing, and all goes back."""
    kernel = Kernel()
    journal: Journal | None = None
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


# --- a saved node -------------------------------------------------------------------------------------


class Saved:
    """A saved node on which the commands of systemd make and remove the slice."""

    def __init__(self, root: Path) -> None:
        self.root = housekept.write_node(root)
        for name in (*housekept.UNITS, "kubepods.slice"):
            self.make(name)
        self.tree = Tree(str(root))
        self.commands: list[Sequence[str]] = []

    def make(self, name: str, **files: str) -> None:
        texts = {"cpuset.cpus": "", "cpuset.cpus.exclusive": "", "cpuset.cpus.partition": "member"}
        texts.update({"cpuset.cpus." + file: text for file, text in files.items()})
        for file, text in {**texts, "cgroup.events": "populated 0\nfrozen 0"}.items():
            write(self.root, TOP + name + "/" + file, text + "\n")

    def run(self, words: Sequence[str]) -> str:
        self.commands.append(words)
        if words[1] == "start":
            self.make(words[2])
        elif words[1] == "stop":
            for path in (self.root / TOP[1:] / words[2]).iterdir():
                path.unlink()
            (self.root / TOP[1:] / words[2]).rmdir()
        return ""

    def bring(self, own: str = "2-3", kind: str = "isolated", act: bool = True, **more: Any) -> Any:
        partition = OwnCPUs(cpus(own), kind, OWN) if own else None
        wish = Wish(cpus("0-1"), ("slices",), partition=partition)
        extras = Extras(boot=AtBoot(b"\x00program", "/usr/bin/python3"), runs=more.pop("runs", True))
        return bring.present(self.tree, wish, extras, act, self.run)

    def files(self) -> Mapping[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}

    def held(self, file: str) -> str:
        return (self.root / TOP[1:] / OWN / file).read_text().rstrip("\n")


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return Saved(tmp_path / "node")


def test_made_kept_and_back(saved: Saved) -> None:
    before = saved.files()
    check = saved.bring(act=False)
    assert saved.files() == before
    first = saved.bring()
    assert first.to_dict() == check.to_dict()
    assert [saved.held("cpuset.cpus" + name) for name in ("", ".exclusive", ".partition")] == ["2-3", "2-3", "isolated"]
    unit = (saved.root / "etc/systemd/system" / OWN).read_text().splitlines()
    assert unit[-2:] == ["[Slice]", "AllowedCPUs=2-3"]
    assert "Before=kubenode-housekeeping.service" in unit
    assert (saved.root / "etc/systemd/system/multi-user.target.wants" / OWN).is_symlink()
    assert saved.commands == [("systemctl", "daemon-reload"), ("systemctl", "start", OWN)]
    last = [change["path"] for change in first.to_dict()["changes"]][-3:]
    assert last == [TOP + OWN + "/cpuset.cpus" + name for name in ("", ".exclusive", ".partition")]
    assert not saved.bring().changed

    assert saved.bring(own="3", kind="root").changed
    assert [saved.held("cpuset.cpus" + name) for name in ("", ".exclusive", ".partition")] == ["3", "3", "root"]
    assert not saved.bring(own="3", kind="root").changed

    bring.absent(saved.tree, act=True, run=saved.run)
    # On a saved node it is left to others.
    assert saved.held("cpuset.cpus.partition") == "member"
    saved.run(("systemctl", "stop", OWN))
    assert saved.files() == before


def test_not_wanted_any_more(saved: Saved) -> None:
    saved.bring()
    saved.bring(own="")
    assert saved.commands[-2:] == [("systemctl", "stop", OWN), ("systemctl", "daemon-reload")]
    assert not (saved.root / "etc/systemd/system" / OWN).exists()
    journal = read_journal(saved.tree)
    assert journal is not None
    assert (journal.slices, journal.wish.partition) == ((), None)
    assert not saved.bring(own="").changed


def test_processes_are_still_there(saved: Saved) -> None:
    saved.bring()
    write(saved.root, TOP + OWN + "/cgroup.events", "populated 1\n")
    answer = bring.absent(saved.tree, act=True, run=saved.run)
    assert ("systemctl", "stop", OWN) not in answer.commands
    assert [saved.held("cpuset.cpus" + name) for name in ("", ".partition")] == ["0-7", "member"]
    assert "processes run in it" in answer.notes[-1]


def test_nobody_starts_the_slice(saved: Saved) -> None:
    answer = saved.bring(runs=False)
    assert needs_of(answer.needs)["slices"] == [["systemctl", "start", OWN]]
    assert needs_of(answer.needs)["update_loader"] == []
    assert not saved.commands
    assert not saved.bring(runs=False).changed
    saved.run(("systemctl", "start", OWN))
    assert saved.bring(runs=False).changed
    assert saved.held("cpuset.cpus.partition") == "isolated"


def test_the_kernel_makes_none(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says it, and not an error; nothing becomes one later by itself, and the next run tries again."""
    real = run._text
    says = "isolated invalid (Cpu list in cpuset.cpus.exclusive not exclusive)"

    def text(tree: Tree, path: str) -> str | None:
        found = real(tree, path)
        return says if path.endswith("cpuset.cpus.partition") and found == "isolated" else found

    monkeypatch.setattr(run, "_text", text)
    with pytest.raises(NodeError, match=re.escape("refuses isolated: Cpu list in cpuset.cpus.exclusive not exclusive")):
        saved.bring()
    assert saved.held("cpuset.cpus.partition") == "member"
    monkeypatch.undo()
    assert saved.bring().changed
    assert saved.held("cpuset.cpus.partition") == "isolated"


def test_a_slice_that_does_not_get_its_files(saved: Saved) -> None:
    saved.make(OWN)
    (saved.root / TOP[1:] / OWN / "cpuset.cpus.exclusive").unlink()
    with pytest.raises(NodeError, match="exclusive: the kernel refuses 2-3: there is no such file"):
        saved.bring()


def test_after_a_boot(saved: Saved, capsys: pytest.CaptureFixture[str]) -> None:
    saved.bring()
    saved.run(("systemctl", "stop", OWN))
    housekept.boot(saved.root)
    assert program.main([str(saved.root)]) == 0
    assert "systemd has not started this slice" in capsys.readouterr().out
    saved.run(("systemctl", "start", OWN))
    assert program.main([str(saved.root)]) == 0
    assert "partition: isolated.slice cpuset.cpus.partition: member to isolated" in capsys.readouterr().out
    assert saved.held("cpuset.cpus.exclusive") == "2-3"


@pytest.mark.parametrize(
    ("key", "value"), [("partition", {"cpus": "2", "kind": "member", "slice": OWN}), ("slices", ["a-b.slice"])]
)
def test_a_damaged_journal(saved: Saved, key: str, value: object) -> None:
    saved.bring()
    place = saved.root / PATH[1:]
    place.write_text(json.dumps({**json.loads(place.read_text()), key: value}))
    with pytest.raises(NodeError, match="cannot be read as the journal"):
        read_journal(saved.tree)


# --- what is refused ----------------------------------------------------------------------------------

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
STATIC = HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0-3\n"
STRICT = STATIC + "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true'}\n"


def wanted(saved: Saved, own: str = "2-3", name: str = OWN, made: Sequence[str] = (), config: str = STRICT) -> OwnCPUs:
    write(saved.root, "/var/lib/kubelet/config.yaml", config)
    node = Node(saved.tree)
    configuration, _problem = node.found()
    partition = OwnCPUs(cpus(own), "isolated", name)
    return own_cpus(node, configuration, cpus("0-3"), partition, ONLINE, made, owners_of(node, configuration))


def test_what_is_not_refused(saved: Saved) -> None:
    assert wanted(saved) == OwnCPUs(cpus("2-3"), "isolated", OWN)
    # Without the static policy, pods have no CPUs by name, and follow the CPUs that are left.
    assert wanted(saved, config=HEADER + "reservedSystemCPUs: 0-3\n").cpus == cpus("2-3")
    saved.make(OWN)
    assert wanted(saved, made=[OWN]).slice == OWN


@pytest.mark.parametrize(
    ("given_cpus", "reason"),
    [
        ("", "CPUs (none) are not online"),
        ("3,8", "CPUs 8 are not online"),
        ("3-4", "CPUs 4 are not reserved, so they are the pods'"),
        ("0-3", "they are all of the reserved CPUs that are online"),
    ],
)
def test_refused_cpus(saved: Saved, given_cpus: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=re.escape(reason)):
        wanted(saved, given_cpus)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (STATIC, "also to containers without exclusive ones; nothing was written; set strict-cpu-reservation"),
        (STRICT.replace("0-3", "0-2"), "the kubelet gives CPUs 3 to pods, as it reserves 0-2"),
    ],
)
def test_refused_by_the_kubelet(saved: Saved, config: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        wanted(saved, config=config)


WANTS = "/etc/systemd/system/%s.target.wants/kubenode-cpu-manager-reconcile.%s"
SETTINGS = "/etc/kubenode/cpu-manager-reconcile.json"


@pytest.mark.parametrize(
    ("files", "policy"),
    [
        ({}, ""),
        ({SETTINGS: '{"policy": "static"}', WANTS % ("timers", "timer"): ""}, ""),
        ({SETTINGS: '{"policy": "dynamic"}', WANTS % ("multi-user", "service"): ""}, "dynamic"),
        ({SETTINGS: '{"policy": "isolated"}', WANTS % ("multi-user", "service"): ""}, "isolated"),
        # The settings may be elsewhere, and those of before may be left.
        ({WANTS % ("multi-user", "service"): ""}, "dynamic or isolated"),
        ({SETTINGS: '{"policy": "dynamic"}', WANTS % ("timers", "timer"): ""}, ""),
        ({SETTINGS: '{"policy": "dynamic"}'}, "dynamic"),
        ({SETTINGS: ""}, ""),
    ],
)
def test_refused_as_the_role_reconcile_gives_cpus_out(saved: Saved, files: dict[str, str], policy: str) -> None:
    for path, text in files.items():
        write(saved.root, path, text)
    if not policy:
        assert wanted(saved).cpus == cpus("2-3")
        return
    with pytest.raises(
        RefusedError, match="the role reconcile gives CPUs out here by its policy %s," % policy
    ) as refused:
        wanted(saved)
    assert "reconcile_policy: static" in str(refused.value)


def test_what_the_role_reconcile_has_left_behind(saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the node itself, a file alone does nothing."""
    write(saved.root, SETTINGS, '{"policy": "dynamic"}')
    (owner,) = find_owners(saved.tree, Facts())
    node = Node(saved.tree)
    own = OwnCPUs(cpus("2-3"), "isolated", OWN)
    left = owner._replace(is_active=False)
    assert own_cpus(node, None, cpus("0-3"), own, ONLINE, (), [left]) == own


def test_the_policies_by_which_cpus_are_given_out() -> None:
    assert GIVING_POLICIES == POLICIES


@pytest.mark.parametrize("path", ["kubepods.slice", "kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope"])
def test_refused_as_pods_have_them(saved: Saved, path: str) -> None:
    saved.make(path)
    write(saved.root, TOP + path + "/cpuset.cpus", "0-1,3\n")
    with pytest.raises(RefusedError, match="CPUs 2-3 belong to pods: .*%s has some of them" % path):
        wanted(saved)


@pytest.mark.parametrize(
    "name", ["system.slice", "kubepods.slice", "a-b.slice", "a.service", "../x.slice", "-.slice", ".slice", ""]
)
def test_refused_names(saved: Saved, name: str) -> None:
    with pytest.raises(RefusedError, match="can be no slice of its own"):
        wanted(saved, name=name)


def test_refused_as_it_is_somebody_elses(saved: Saved) -> None:
    saved.make("dpdk.slice")
    write(saved.root, "/etc/systemd/system/own.slice", "[Slice]\n")
    for name in ("dpdk.slice", "own.slice"):
        with pytest.raises(RefusedError, match="is there, and was not made here"):
            wanted(saved, name=name)


def test_refused_by_the_kernel(saved: Saved) -> None:
    for path in saved.root.rglob("cpuset.cpus.exclusive"):
        path.unlink()
    write(saved.root, "/proc/sys/kernel/osrelease", "6.1.0-1-amd64\n")
    with pytest.raises(
        RefusedError, match=re.escape("the kernel 6.1.0-1-amd64 is too old: it has no cpuset.cpus.exclusive")
    ):
        wanted(saved)
