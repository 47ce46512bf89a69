# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is reported of real processes in this machine's own cpusets, of cgroup v1, and what a pass makes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers import crictl
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._containers.crictl import LoggedContainer
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node import container_cpus
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.enforcement import Enforcement, compare
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._reconcile.reconcile import reconcile_pods
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint

from .cgroups import Cgroups

OWN, SHARED, SANDBOX = ("%064x" % number for number in (0xA, 0xB, 0xD))
POD, WEB = "kubepods/poduid-db", "kubepods/burstable/poduid-web"
OWN_PATH, SHARED_PATH = "%s/%s" % (POD, OWN), "%s/%s" % (WEB, SHARED)
# The exclusive CPU is number 1, the shared pool number 0.
SETS = {
    **dict.fromkeys(("kubepods", "kubepods/burstable", POD, WEB, "%s/%s" % (POD, SANDBOX)), "0-1"),
    OWN_PATH: "1",
    SHARED_PATH: "0",
}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give containers the names that their logs would tell; this machine has no such logs."""
    containers = {OWN: LoggedContainer("shop/db-0", "server"), SHARED: LoggedContainer("shop/web-1", "app")}
    monkeypatch.setattr(crictl, "logged_containers", lambda _tree: containers)


def state(cgroups: Cgroups) -> State:
    return State(cgroups.real("0"), {"uid-db": {"server": cgroups.real("1")}})


def enforced(cgroups: Cgroups) -> Enforcement:
    observed, _notes = container_cpus.observe(Tree(), cgroups.top)
    assert observed is not None
    return compare(observed, "static", state(cgroups))


def told(cgroups: Cgroups) -> dict[str, tuple[str, str]]:
    """Return {what differs: (wanted, found)}, in the tests' numbers of CPUs."""
    return {
        row["subject"].replace(cgroups.top + "/", ""): (
            cgroups.told(CPUSet.parse(row["wanted"])),
            cgroups.told(CPUSet.parse(row["found"])),
        )
        for row in enforced(cgroups).drift
    }


def kubelet(cgroups: Cgroups, directory: Path) -> Node:
    """Return this machine with a kubelet whose cgroups are those of the test."""
    (directory / "config.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupRoot: /%s\n" % cgroups.top
    )
    (directory / "cpu_manager_state").write_bytes(write_checkpoint("static", state(cgroups)))
    return Node(Tree(), str(directory / "config.yaml"), str(directory))


def test_what_somebody_resets_is_told_and_mended(
    cgroups: Cgroups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups.make_all(SETS)
    processes = [cgroups.start(path) for path in (OWN_PATH, SHARED_PATH)]
    assert told(cgroups) == {}

    for path in (OWN_PATH, SHARED_PATH):
        assert cgroups.write(path, "0-1") == ""
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_arguments: pytest.fail("a write"))
        assert told(cgroups) == {
            "container shop/db-0/server": ("1", "0-1"),
            "container shop/web-1/app": ("0", "0-1"),
        }
    assert [cgroups.allowed(process) for process in processes] == ["0-1", "0-1"]
    assert reconcile_pods(kubelet(cgroups, tmp_path), None, act=True).changed
    assert told(cgroups) == {}
    assert [cgroups.allowed(process) for process in processes] == ["1", "0"]


def test_a_narrowed_slice(cgroups: Cgroups, tmp_path: Path) -> None:
    cgroups.make_all({**SETS, POD: "0", OWN_PATH: "0", "%s/%s" % (POD, SANDBOX): "0"})
    process = cgroups.start(OWN_PATH)
    assert told(cgroups) == {"cgroup " + POD: ("0-1", "0"), "container shop/db-0/server": ("1", "0")}
    reconcile_pods(kubelet(cgroups, tmp_path), None, act=True)
    assert (told(cgroups), cgroups.allowed(process)) == ({}, "1")


def test_a_process_that_is_bound(cgroups: Cgroups) -> None:
    cgroups.make_all({**SETS, SHARED_PATH: "0-1"})
    process = cgroups.start(SHARED_PATH)
    assert not any("is bound" in note for note in enforced(cgroups).notes)
    os.sched_setaffinity(process.pid, cgroups.cpus[:1])
    assert any("has: 1 (shop/web-1/app: " in note for note in enforced(cgroups).notes)


def test_a_container_that_ends_while_it_is_looked_at(cgroups: Cgroups, monkeypatch: pytest.MonkeyPatch) -> None:
    cgroups.make_all(SETS)
    names_of = crictl.names_of

    def end(tree: Tree) -> object:
        cgroups.remove(OWN_PATH)
        return names_of(tree)

    monkeypatch.setattr(crictl, "names_of", end)
    assert told(cgroups) == {}


LOOK = """\
import sys
sys.path.insert(0, sys.argv[1])
import collection_path
collection_path.register()
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import observe
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
observed, _notes = observe(Tree(), sys.argv[2])
sys.exit(0 if len(observed.running) == 3 else 1)
"""


@pytest.mark.needs("strace")
def test_no_system_call_writes(cgroups: Cgroups, tmp_path: Path) -> None:
    cgroups.make_all({**SETS, OWN_PATH: "0-1"})
    log = tmp_path / "strace"
    options = ["-f", "-qq", "-e", "trace=open,openat,openat2,creat", "-o", str(log)]
    tests = Path(__file__).parent.parent
    subprocess.run(
        ["strace", *options, sys.executable, "-B", "-c", LOOK, str(tests), cgroups.top], check=True, timeout=120
    )
    lines = log.read_text().splitlines()
    assert any("cpuset.cpus" in line for line in lines)
    assert [line for line in lines if "O_WRONLY" in line or "O_RDWR" in line] == []
