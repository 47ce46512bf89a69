# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses which CPUs by the drift report, and whether the containers that run have theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import NodeError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.tree import Tree
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Host
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.container_cpus import Observed, observe
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.drift import report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format3
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.topology.kubelet_view import kubelet_view
from ansible_collections.kubenode.cpu_manager.tests.machines import cgroups as saved
from ansible_collections.kubenode.cpu_manager.tests.machines.drifted import SETTINGS, file, starts_of, state, told
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import STATIC
from ansible_collections.kubenode.cpu_manager.tests.machines.values import cpus

# --- who uses which CPUs ----------------------------------------------------------------------------


def test_offline_cpus() -> None:
    found = told({}, STATIC, state("0,2-4,6-7", a="1,5"), "1s4c2t+offline5")
    assert found["cpus"] == {
        "online": "0-4,6-7",
        "offline": "5",
        "reserved": "0,4",
        "exclusive": "1",  # of those that are there
        "shared": "2-3,6-7",
        "stranded": "",
        "isolated": "",
        "reserved_wanted": "0,4",
    }
    assert found["owners"] == [
        {"use": "exclusive", "owner": "uid-a/a", "cpus": "1"},
        {"use": "reserved", "owner": "", "cpus": "0,4"},
        {"use": "shared", "owner": "", "cpus": "2-3,6-7"},
        {"use": "offline", "owner": "", "cpus": "5"},
    ]


def test_the_cpus_of_a_whole_pod() -> None:
    gates = "featureGates:\n  PodLevelResourceManagers: true\n"
    whole = State(cpus("0,4"), {"uid-a": {"app": cpus("1,5")}}, {"uid-a": cpus("1-2,5-6"), "uid-b": cpus("3,7")})
    found = told({}, STATIC + gates, write_checkpoint("static", whole, Format3))
    assert found["owners"] == [
        {"use": "exclusive", "owner": "uid-a/app", "cpus": "1,5"},
        {"use": "exclusive", "owner": "uid-a/no container", "cpus": "2,6"},
        {"use": "exclusive", "owner": "uid-b/no container", "cpus": "3,7"},
        {"use": "reserved", "owner": "", "cpus": "0,4"},
    ]


def test_stranded_cpus() -> None:
    """By the options that the kubelet has, and not by those that are wanted."""
    text = "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n"
    options = 'cpuManagerPolicyOptions:\n  full-pcpus-only: "true"\n'
    given = state("0,2-4,6-7", a="1,5")
    assert told({}, text + options, given)["cpus"]["stranded"] == "4"
    assert told({}, text, given)["cpus"]["stranded"] == ""
    assert told({"cpu_manager_policy_options": {"full-pcpus-only": "true"}}, text, given)["cpus"]["stranded"] == ""
    assert told({}, STATIC + options, given)["cpus"]["stranded"] == ""
    assert told({}, STATIC + options, state("0,2-7", a="1"))["cpus"]["stranded"] == "5"
    assert told({}, options, None)["cpus"]["stranded"] == ""


def test_cpus_that_the_kubelet_reserves_by_number() -> None:
    text = "cpuManagerPolicy: static\nkubeReserved:\n  cpu: 1500m\n"
    assert told({}, text)["cpus"]["reserved"] == "0,4"


def test_reserved_cpus_of_a_kubelet_that_would_not_start() -> None:
    text = STATIC + "kubeReservedCgroup: /kube\n"
    found = told({"reserved_system_cpus": "", "kube_reserved_cpu": "1"}, text)
    assert found["cpus"]["reserved"] == "0,4"
    assert found["cpus"]["reserved_wanted"] == "0"


# --- what runs there --------------------------------------------------------------------------------


OWN = "a" * 64


def observed(root: Path, cpus: str) -> Observed:
    """Return a node whose one container has these CPUs."""
    pod = saved.pod_path(saved.SYSTEMD, "uid-a", "Guaranteed")
    files = saved.container_files(saved.SYSTEMD, "containerd", pod, OWN, cpus)
    whole = saved.Files("0-7", "0")
    saved.write_cgroups(
        root, saved.V1, {"kubepods.slice": whole, pod: whole, "system.slice": saved.Files("0", "0"), **files}, nodes="0"
    )
    logs = root / "var/log/containers"
    logs.mkdir(parents=True)
    (logs / ("db-0_shop_a-%s.log" % OWN)).touch()
    found, _notes = observe(Tree(str(root)), "")
    assert found is not None
    return found


@pytest.mark.parametrize(("held", "pool", "actions"), [("1,5", "0,2-4,6-7", []), ("1", "0,2-4,6-7", ["reconcile"])])
def test_the_cpus_of_containers(tmp_path: Path, held: str, pool: str, actions: list[str]) -> None:
    topology = parse_name("1s4c2t").topology()
    seen = observed(tmp_path, held)
    machine, configuration = Host(kubelet_view(topology)), file(STATIC)
    starts = starts_of(configuration, SETTINGS, machine)
    found = report(topology, machine, configuration, state(pool, a="1,5"), SETTINGS, seen, starts=starts)
    assert (found["status"], found["actions"]) == ("drift" if actions else "clean", actions)
    assert [row["subject"] for row in found["drift"]] == ["container shop/db-0/a"] * len(actions)
    assert found["owners"][0] == {"use": "exclusive", "owner": "shop/db-0/a", "cpus": "1,5"}
    assert found["enforcement"]["containers"] == {"kept": 1 - len(actions), "different": len(actions), "skipped": 0}
    assert found["notes"] == []


def test_the_cpus_of_containers_come_after_a_repair(tmp_path: Path) -> None:
    """It gives them out anew."""
    topology = parse_name("1s4c2t").topology()
    machine, configuration = Host(kubelet_view(topology)), file(STATIC)
    seen = observed(tmp_path, "1")
    starts = starts_of(configuration, SETTINGS, machine)
    found = report(topology, machine, configuration, state("0,2-4,6", a="1,5"), SETTINGS, seen, starts=starts)
    assert found["actions"] == ["stop_kubelet", "repair_checkpoint", "start_kubelet"]
    assert found["enforcement"]["containers"]["skipped"] == 1
    # Where nothing can be compared, the pods have their names all the same.
    found = report(topology, machine, None, state("0,2-4,6-7", a="1,5"), SETTINGS, seen, NodeError("is damaged"))
    assert found["owners"][0]["owner"] == "shop/db-0/a"


@pytest.mark.parametrize("shape", ["+isolated1-7", "+nohz1-7"])
def test_reserved_cpus_that_are_isolated(shape: str) -> None:
    found = told(SETTINGS, STATIC, state("0-7"), "1s4c2t" + shape)
    assert found["status"] == "drift"
    assert [row["wanted"] for row in found["drift"]] == ["1-3,5-7"]
    assert any("over which the kernel balances no load" in note for note in found["notes"]) == ("isolated" in shape)
