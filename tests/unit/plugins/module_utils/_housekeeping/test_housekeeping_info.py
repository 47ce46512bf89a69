# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Sequence

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_info import (
    MOST_INTERRUPTS,
    housekeeping,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_journal import (
    HousekeepingJournal,
    HousekeepingWish,
    write_journal,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines import loaders
from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write, write_layers, write_slices
from ansible_collections.kubenode.cpu_manager.tests.machines.owned import TUNED_FILES, TUNED_VARIABLES, write_owned

CONFIG = "/var/lib/kubelet/config.yaml"
KEYS = [
    "reserved",
    "reserved_source",
    "online",
    "layers",
    "interrupts",
    "interrupts_left_out",
    "systemd",
    "partitions",
    "irqbalance",
    "tuned",
    "kernel",
    "owners",
    "contradictions",
    "findings",
    "notes",
    "note_checks",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a node whose host may run everywhere, and keeps CPUs 0 and 4 for itself."""
    write_machine(["1s4c2t", str(tmp_path)])
    write_layers(tmp_path, "0-7")
    write_slices(tmp_path, "0-7", {"system.slice": "", "user.slice": "", "kubepods.slice": ""})
    write(tmp_path, CONFIG, HEADER + "cpuManagerPolicy: static\nreservedSystemCPUs: 0,4\n")
    return tmp_path


def make_fenced(root: Path) -> None:
    """Write the layers and slices of a host that keeps to its CPUs."""
    write_layers(root, "0-7", "0,4", interrupts=1)
    write_slices(root, "0-7", {"system.slice": "0,4", "user.slice": "0,4", "kubepods.slice": ""})
    for unit in ("system", "user"):
        write(root, "/etc/systemd/system/%s.slice.d/50.conf" % unit, "[Slice]\nAllowedCPUs=0,4\n")


def answer(root: Path, reserved: str | None = None) -> dict[str, Any]:
    node = Node(Tree(str(root)))
    found = housekeeping(node, None if reserved is None else CPUSet.parse(reserved))
    assert list(found) == KEYS
    assert json.loads(json.dumps(found)) == found
    return found


def findings(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["check"], finding["subject"]) for finding in found["findings"]]


def test_a_host_that_may_run_everywhere(root: Path) -> None:
    found = answer(root)
    assert (found["reserved"], found["reserved_source"], found["online"]) == ("0,4", str(root) + CONFIG, "0-7")
    assert findings(found) == [
        ("host-on-exclusive-cpus", "slices"),
        ("host-on-exclusive-cpus", "interrupts"),
        ("interrupts-not-movable", "interrupts"),
        ("host-on-exclusive-cpus", "workqueues"),
        ("host-on-exclusive-cpus", "rps"),
    ]
    assert (found["notes"], found["note_checks"]) == ([], [])
    rows = {row["name"]: row for row in found["layers"]}
    assert list(rows) == [
        "all unbound workqueues",
        "queue000",
        # Not eth0 rx-1 and new queues, which nobody has given CPUs.
        "eth0 rx-0",
        "watchdog",
        "system.slice",
        "user.slice",
    ]
    assert rows["system.slice"] == {
        "layer": "slices",
        "name": "system.slice",
        "path": "/sys/fs/cgroup/system.slice/cpuset.cpus",
        "wanted": "0,4",
        "found": None,
        "effective": "0-7",
        "problem": "",
    }
    assert rows["watchdog"]["wanted"] is None
    assert [(row["name"], row["wanted"], row["effective"], row["problem"]) for row in found["interrupts"]] == [
        ("new interrupts", "0,4", None, ""),
        ("24 eth0-0", "0,4", "7", ""),
        ("26 eth0-2", "0,4", "7", ""),
        ("25 eth0-1", None, "7", "fixed"),
    ]
    assert found["systemd"] == {
        "affinity": None,
        "manager": None,
        "units": {"system.slice": None, "user.slice": None},
        "wanted": {"manager": None, "units": {"system.slice": "0,4", "user.slice": "0,4"}},
    }
    assert [owner["id"] for owner in found["owners"]] == ["kubelet-static"]


def test_a_host_that_keeps_to_its_cpus(root: Path) -> None:
    make_fenced(root)
    found = answer(root)
    assert findings(found) == []
    assert [row["name"] for row in (*found["layers"], *found["interrupts"]) if row["wanted"] is not None] == []
    assert found["systemd"]["units"]["user.slice"] == {
        "cpus": "0,4",
        "path": "/etc/systemd/system/user.slice.d/50.conf",
    }
    assert found["systemd"]["wanted"] == {"manager": None, "units": {"system.slice": None, "user.slice": None}}


def test_slices_that_lose_their_cpus(root: Path) -> None:
    make_fenced(root)
    (root / "etc/systemd/system/user.slice.d/50.conf").unlink()
    assert findings(answer(root)) == [("housekeeping-not-lasting", "slices")]


def test_other_cpus_are_asked_for(root: Path) -> None:
    make_fenced(root)
    found = answer(root, "0-7")
    assert (findings(found), found["reserved_source"]) == ([], "options")
    assert {subject for _check, subject in findings(answer(root, "1"))} == {
        "interrupts",
        "workqueues",
        "rps",
        "slices",
    }


@pytest.mark.parametrize(
    ("text", "reserved", "source", "note"),
    [
        ("cpuManagerPolicy: none\n", "", "", "no CPUs are reserved"),
        # What the kubelet takes of a count, it takes by cores from the first on.
        ("cpuManagerPolicy: static\nkubeReserved: {cpu: 1500m}\n", "0,4", CONFIG, ""),
        ("reservedSystemCPUs: 2,99\n", "2,99", CONFIG, ""),
        ("reservedSystemCPUs: '99'\n", "99", CONFIG, "CPUs 99 are not online"),
        ("reservedSystemCPUs: x\n", "", "", "what the kubelet reserves is not known"),
        ("reservedSystemCPUs: [\n", "", "", "what the kubelet reserves is not known"),
    ],
)
def test_what_the_kubelet_reserves(root: Path, text: str, reserved: str, source: str, note: str) -> None:
    write(root, CONFIG, HEADER + text)
    found = answer(root)
    assert (found["reserved"], found["reserved_source"]) == (reserved, source and str(root) + source)
    assert [text for text in found["notes"] if note and note in text] == found["notes"][:1]
    if note:
        assert found["findings"] == []
        assert set(found["note_checks"]) == {"housekeeping-unmeasured"}
        assert {row["wanted"] for row in found["layers"]} == {None}


def test_no_kubelet_and_no_layers(tmp_path: Path) -> None:
    write_machine(["1s2c", str(tmp_path)])
    found = answer(tmp_path)
    assert found["note_checks"] == ["housekeeping-unmeasured"]
    assert (found["layers"], found["interrupts"], found["irqbalance"], found["owners"]) == ([], [], None, [])
    assert findings(answer(tmp_path, "0")) == []


def test_cgroups_of_version_1_leave_systemds_affinity(root: Path) -> None:
    make_fenced(root)
    mount = root / "sys/fs/cgroup"
    mount.rename(root / "sys/fs/old")
    write(root, "/sys/fs/cgroup/cpuset/cpuset.cpus", "0-7\n")
    write(root, "/sys/fs/cgroup/cpuset/system.slice/cpuset.cpus", "0-7\n")
    assert findings(answer(root)) == []
    write(root, "/proc/1/status", "Name:\tsystemd\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n")
    found = answer(root)
    assert (findings(found), found["systemd"]["affinity"]) == ([("host-on-exclusive-cpus", "manager")], "0-7")
    assert found["systemd"]["wanted"] == {"manager": "0,4", "units": {}}
    assert [row["problem"] for row in found["layers"] if row["layer"] == "slices"] == ["fixed"]
    write(root, "/proc/1/status", "Cpus_allowed_list:\t0,4\n")
    assert findings(answer(root)) == []


def test_cgroups_that_cannot_be_read(root: Path) -> None:
    write(root, "/sys/fs/cgroup/cgroup.controllers", "memory\n")
    found = answer(root)
    assert found["note_checks"] == ["housekeeping-unmeasured"]
    assert "no cpuset controller" in found["notes"][0]


def test_a_cgroup_root_that_leads_out(root: Path) -> None:
    write(root, CONFIG, HEADER + "reservedSystemCPUs: 0,4\ncgroupRoot: /../x\n")
    found = answer(root)
    assert found["note_checks"] == ["housekeeping-unmeasured"]
    assert "kubepods.slice" not in found["systemd"]["units"]


def test_partitions(root: Path) -> None:
    make_fenced(root)
    assert answer(root)["partitions"] is None
    write(root, "/sys/fs/cgroup/cpuset.cpus.isolated", "\n")
    assert answer(root)["partitions"] == {"isolated": "", "cgroups": []}
    write(root, "/sys/fs/cgroup/cpuset.cpus.isolated", "3\n")
    write_slices(root, "0-7", {"own": "3"})
    for name, text in {"partition": "isolated", "exclusive": "3", "exclusive.effective": "3"}.items():
        write(root, "/sys/fs/cgroup/own/cpuset.cpus." + name, text + "\n")
    found = answer(root)
    assert found["partitions"] == {
        "isolated": "3",
        "cgroups": [{"cgroup": "own", "kind": "isolated", "cpus": "3", "problem": ""}],
    }
    assert findings(found) == []
    write(root, "/sys/fs/cgroup/own/cpuset.cpus.partition", "isolated invalid (Parent is not a partition root)\n")
    found = answer(root)
    assert findings(found)[-1] == ("partition-invalid", "partitions")
    assert found["findings"][-1]["found"] == "others run there, too: own (Parent is not a partition root)"
    assert found["partitions"]["cgroups"][0]["problem"] == "Parent is not a partition root"
    (root / "sys/fs/cgroup/own/cpuset.cpus.partition").unlink()
    (root / "sys/fs/cgroup/own/cpuset.cpus.partition").mkdir()
    assert "the partitions of cgroups are not known" in answer(root)["notes"][0]


def test_the_kernels_line_leaves_out_the_cpus_of_a_partition(root: Path) -> None:
    make_fenced(root)
    write(root, "/proc/cmdline", "rcu_nocbs=1-7 irqaffinity=0\n")
    assert answer(root)["notes"] == ["rcu_nocbs=1-7 has the reserved CPUs 4"]
    write_slices(root, "0-7", {"own": "4"})
    for name, text in {"partition": "isolated", "exclusive": "4", "exclusive.effective": "4"}.items():
        write(root, "/sys/fs/cgroup/own/cpuset.cpus." + name, text + "\n")
    assert answer(root)["notes"] == []


def test_irqbalance(root: Path) -> None:
    make_fenced(root)
    write(root, "/usr/sbin/irqbalance", "IRQBALANCE_BANNED_CPULIST IRQBALANCE_BANNED_CPUS")
    write(root, "/etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=1-3\n")
    write(root, "/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs", "7\n")
    found = answer(root)
    assert findings(found) == [("host-on-exclusive-cpus", "irqbalance")]
    assert found["irqbalance"] == {
        "file": "/etc/default/irqbalance",
        "variable": "IRQBALANCE_BANNED_CPULIST",
        "banned": "1-3",
        "wanted": "1-3,5-7",
        "installed": True,
        "running": True,
    }
    # systemd gives it more.
    unit = "/lib/systemd/system/irqbalance.service"
    write(root, unit, "[Service]\nEnvironmentFile=-/etc/default/irqbalance\nExecStart=/usr/sbin/irqbalance\n")
    write(root, "/etc/default/irqbalance", "#\n")
    write(root, unit + ".d/own.conf", '[Service]\nEnvironment="IRQBALANCE_BANNED_CPULIST=1-3,5-7"\n')
    found = answer(root)
    assert (findings(found), found["irqbalance"]["file"]) == ([], unit + ".d/own.conf")
    write(root, unit + ".d/own.conf", "[Service]\nExecStart=\nExecStart=env IRQBALANCE_BANNED_CPULIST=1 irqbalance\n")
    found = answer(root)
    assert findings(found) == [("host-on-exclusive-cpus", "irqbalance")]
    assert found["findings"][0]["remedy"].startswith("set IRQBALANCE_BANNED_CPULIST=1-3,5-7 in ExecStart= of ")
    (root / (unit + ".d/own.conf")[1:]).unlink()
    write(root, "/etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=none\n")
    found = answer(root)
    assert (findings(found), found["note_checks"]) == ([], ["housekeeping-unmeasured"])


def set_tuned(root: Path, isolated: str, layers: Sequence[str] = ()) -> dict[str, Any]:
    """Return what is found where tuned isolates these CPUs, and the role was to bring these layers in line."""
    text = "isolated_cores=%s\n" % isolated
    write_owned(root, {**TUNED_FILES, TUNED_VARIABLES: text})
    wish = HousekeepingWish(CPUSet.parse("0,4"), tuple(layers))
    if layers:
        write_journal(
            Tree(str(root)), HousekeepingJournal(wish, wish.reserved, "", {}, {}, {}, (), (), {}, is_done=True)
        )
    return answer(root)


def test_tuned(root: Path) -> None:
    make_fenced(root)
    assert answer(root)["tuned"] is None
    found = set_tuned(root, "1-3,5-7")
    assert found["tuned"] == {
        "profiles": ["cpu-partitioning"],
        "file": "/" + TUNED_VARIABLES,
        "isolated": "1-3,5-7",
        "wanted": "1-3,5-7",
        "layers": ["interrupts", "workqueues", "irqbalance", "manager"],
    }
    assert (findings(found), found["contradictions"]) == ([], [])
    found = set_tuned(root, "6-7")
    assert findings(found) == [("host-on-exclusive-cpus", "tuned")]
    (finding,) = found["findings"]
    assert finding["wanted"] == "tuned isolates CPUs 1-3,5-7"
    assert finding["found"] == "it isolates CPUs 6-7, and may put the host's work on CPUs 1-3,5"
    assert "housekeeping_tuned: true, which writes isolated_cores into /" + TUNED_VARIABLES in finding["remedy"]
    # What tuned works out itself is not known here.
    found = set_tuned(root, "${f:calc_isolated_cores:1}")
    assert (findings(found), found["tuned"]["isolated"]) == ([], None)
    (root / TUNED_VARIABLES).unlink()
    assert findings(answer(root)) == []
    write_owned(root, {"etc/tuned/active_profile": "balanced\n"})
    assert answer(root)["tuned"] is None


def test_tuned_that_was_given_its_cpus(root: Path) -> None:
    make_fenced(root)
    found = set_tuned(root, "1-3,5-7", ["tuned"])
    # tuned sets the layer manager, so it counts as wished.
    assert findings(found) == [("housekeeping-not-lasting", "manager")]
    assert (found["contradictions"], found["note_checks"]) == ([], [])
    for text, what in (
        ("1-7", "1-7"),
        ("${f:calc_isolated_cores:1}", "${f:calc_isolated_cores:1}"),
        ("", "not set"),
    ):
        found = set_tuned(root, text, ["tuned"])
        assert findings(found)[1:] == [("housekeeping-not-lasting", "tuned")]
        assert found["findings"][1]["found"] == "isolated_cores is " + what
    write_layers(root, "0-7", interrupts=1)
    found = set_tuned(root, "1-3,5-7", ["tuned"])
    remedies = {finding["subject"]: finding["remedy"] for finding in found["findings"]}
    for layer in ("interrupts", "workqueues"):
        assert remedies[layer] == "have tuned apply its profile again: tuned-adm profile cpu-partitioning"
    assert "the role housekeeping" in remedies["rps"]


def test_the_kernels_line(root: Path) -> None:
    make_fenced(root)
    write(root, "/proc/cmdline", "root=/dev/vda1 password=hunter2 irqaffinity=0,4 nohz_full=1-4\n")
    found = answer(root)
    assert found["kernel"]["arguments"] == [
        {"name": "irqaffinity", "booted": "0,4", "configured": None, "wanted": "0,4"},
        {"name": "rcu_nocbs", "booted": None, "configured": None, "wanted": "1-3,5-7"},
        {"name": "nohz_full", "booted": "1-4", "configured": None, "wanted": None},
        {"name": "isolcpus", "booted": None, "configured": None, "wanted": "managed_irq,1-3,5-7"},
    ]
    assert "hunter2" not in json.dumps(found)
    assert found["note_checks"] == ["kernel-line-odd"]
    # What is not known is not compared.
    assert findings(found) == []


def test_arguments_that_are_wanted_and_nowhere(root: Path) -> None:
    """Each has a row; nobody has written it, so it is no finding."""
    make_fenced(root)
    loaders.grub(root, directory={})
    write(root, "/proc/cmdline", "root=/dev/vda1 quiet\n")
    found = answer(root)
    rows = {row["name"]: (row["booted"], row["configured"], row["wanted"]) for row in found["kernel"]["arguments"]}
    assert rows == {
        "irqaffinity": (None, None, "0,4"),
        "rcu_nocbs": (None, None, "1-3,5-7"),
        "isolcpus": (None, None, "managed_irq,1-3,5-7"),
    }
    assert (findings(found), found["kernel"]["loader"]) == ([], "grub")
    # Where nothing is reserved, or all is, none is wanted.
    assert answer(root, "0-7")["kernel"]["arguments"] == []


def test_many_interrupts_are_cut_off(root: Path) -> None:
    write_layers(root, "0-7", "0,4", interrupts=MOST_INTERRUPTS + 10)
    write(root, "/proc/irq/280/smp_affinity_list", "3\n")
    found = answer(root)
    assert (len(found["interrupts"]), found["interrupts_left_out"]) == (MOST_INTERRUPTS, 11)
    assert found["interrupts"][0]["name"] == "280 eth0-256"
    assert found["interrupts"][1]["name"] == "25 eth0-1"


def test_what_is_damaged_is_a_note(root: Path) -> None:
    make_fenced(root)
    for number in range(7):
        write(root, "/sys/class/net/eth%d/queues/rx-0/rps_cpus" % number, "?\n")
    found = answer(root)
    assert findings(found) == []
    assert found["notes"] == [
        "cannot be read as CPUs: %s and 2 more"
        % ", ".join("/sys/class/net/eth%d/queues/rx-0/rps_cpus" % number for number in range(5))
    ]


def test_a_mask_of_irqbalance_with_cpus_that_are_not_there(root: Path) -> None:
    write(root, "/usr/sbin/irqbalance", "IRQBALANCE_BANNED_CPUS")
    write(root, "/run/irqbalance/irqbalance600.sock", "")
    write(root, "/etc/sysconfig/irqbalance", 'IRQBALANCE_BANNED_CPUS="ffffffff,ffffff0f"\n')
    write(
        root, "/etc/crio/crio.conf", '[crio.runtime.runtimes.r]\nallowed_annotations = ["irq-load-balancing.crio.io"]\n'
    )
    write(root, "/proc/cmdline", "isolcpus=nohz,domain,managed_irq,1-3,5-7\n")
    found = answer(root)
    assert found["irqbalance"]["banned"] == "0-3"
    remedies = {finding["subject"]: finding["remedy"] for finding in found["findings"]}
    assert remedies["irqbalance"].startswith("CRI-O writes /etc/sysconfig/irqbalance for pods with ")
    assert "the node is booted with isolcpus=managed_irq" in json.dumps(found["findings"])


@pytest.mark.parametrize(("runs", "is_lost"), [("0-7", True), ("0-1", False), ("0", False)])
def test_systemd_that_lost_its_affinity_is_named(root: Path, runs: str, is_lost: bool) -> None:
    """The kernel gives all CPUs back when a kubelet turns the controller cpuset on."""
    write(root, "/etc/systemd/system.conf", "[Manager]\nCPUAffinity=0 1\n")
    write(root, "/proc/1/status", "Name:\tsystemd\nCpus_allowed_list:\t%s\n" % runs)
    notes = [note for note in answer(root)["notes"] if "CPUAffinity=0-1, and it may use %s" % runs in note]
    assert len(notes) == is_lost
