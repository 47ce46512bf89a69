# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What each view says of a node with pods that have CPUs as a whole: the files are a kubelet's own, of 1.36.3."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.where import where_table
from ansible_collections.kubenode.cpu_manager.tests.machines.answers import LOOKED_AT, MADE
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import Listed, write_containers
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER
from ansible_collections.kubenode.cpu_manager.tests.machines.layered import write
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_machine

CONFIGURATION = """\
cgroupDriver: systemd
cpuManagerPolicy: static
reservedSystemCPUs: 0,8
topologyManagerPolicy: restricted
topologyManagerScope: pod
featureGates: {PodLevelResourceManagers: true}
"""
CHECKPOINT = "/var/lib/kubelet/cpu_manager_state"
# a, b and the sidecars s0 and s1 run, the init containers have ended; b and s1 share.
SIDECARS = (
    '{"policyName":"static","defaultCpuSet":"0,4-8,12-15","entries":{"p":{"a":"2,10","b":"3,9,11","i0":"1-3,9-11",'
    '"i1":"2-3,9-11","i2":"2,10","s0":"1","s1":"3,9,11"}},"podEntries":{"p":{"cpuSet":"1-3,9-11"}},"checksum":2982657159}'
)
# A core of the pod is used by none of its containers.
UNUSED = (
    '{"policyName":"static","defaultCpuSet":"0,4-8,12-15","entries":{"p":{"a":"1,9","b":"2,10"}},'
    '"podEntries":{"p":{"cpuSet":"1-3,9-11"}},"checksum":1622767673}'
)
# The pod was refused once it had its CPUs: no removal frees them.
NOBODYS = (
    '{"policyName":"static","defaultCpuSet":"0,3-8,11-15",'
    '"podEntries":{"p":{"cpuSet":"1-2,9-10"}},"checksum":1957327038}'
)
RUN = {"a": "2,10", "b": "3,9,11", "s0": "1", "s1": "3,9,11"}


class Saved:
    """A saved node of 16 CPUs, of which the threads of a core are 0 and 8, 1 and 9, and so on."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        write_machine(root, "2s1n4c2t")
        write(root, "/var/lib/kubelet/config.yaml", HEADER + CONFIGURATION)

    def run(self, checkpoint: str, own: dict[str, str]) -> None:
        write(self.root, CHECKPOINT, checkpoint)
        listed = [Listed("p", "Guaranteed", "shop/p", name, cpus) for name, cpus in own.items()]
        shared = json.loads(checkpoint)["defaultCpuSet"]
        write_containers(self.root, [*listed, Listed("w", "Burstable", "shop/web", "nginx", shared)], "0-15", "0-1")

    def ask(self, module: str, **parameters: object) -> Any:
        arguments = {"root": str(self.root), "kubelet_version": "1.36.3", **parameters}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            import_module("ansible_collections.kubenode.cpu_manager.plugins.modules." + module).main()
        answer = json.loads(self.capsys.readouterr().out)
        assert "failed" not in answer, answer
        return answer


@pytest.fixture
def saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Saved:
    return Saved(tmp_path, capsys)


@pytest.mark.parametrize(
    ("found", "owners"),
    [
        ((SIDECARS, RUN), {"shop/p/s0": "1", "shop/p/a": "2,10", "shop/p/b, s1": "3,9,11"}),
        ((UNUSED, {"a": "1,9", "b": "2,10"}), {"shop/p/a": "1,9", "shop/p/b": "2,10", "shop/p/no container": "3,11"}),
        ((NOBODYS, {}), {"p/no container": "1-2,9-10"}),
    ],
)
def test_the_owners_of_the_cpus_of_a_pod(saved: Saved, found: Any, owners: dict[str, str]) -> None:
    """An init container that has ended owned all of them, and of those that share, only the first owned any."""
    saved.run(*found)
    drift = saved.ask("drift_info")
    assert {row["owner"]: row["cpus"] for row in drift["owners"] if row["use"] == "exclusive"} == owners
    assert (drift["enforcement"]["containers"]["different"], drift["drift"]) == (0, [])
    assert ("pod-cpus-lost" in drift["note_checks"]) is (found[0] == NOBODYS)
    told = saved.ask("checkpoint_info")["checkpoint"]
    assert (told["verdict"], list(told["pod_assignments"])) == ("accepted", ["p"])


def test_containers_that_share_the_cpus_of_their_pod_are_measured_together(saved: Saved) -> None:
    saved.run(SIDECARS, RUN)
    rows = saved.ask("isolation_info", seconds=1)["containers"]
    assert {row["container"]: row["cpus"] for row in rows} == {"a": "2,10", "b, s1": "3,9,11", "s0": "1"}


def test_all_that_runs_is_where_its_pod_has_its_cpus(saved: Saved) -> None:
    saved.run(SIDECARS, RUN)
    rows = saved.ask("reconcile", _ansible_check_mode=True)["containers"]
    assert {row["container"]: row["result"] for row in rows if row["container"]} == dict.fromkeys(
        ("a", "b", "s0", "s1", "nginx"), "kept"
    )


def test_a_report_says_where_containers_of_a_pod_with_cpus_as_a_whole_are(saved: Saved) -> None:
    """With the look at throttling, they were said to be in the shared pool of the node."""
    saved.run(SIDECARS, RUN)
    drift = saved.ask("drift_info")
    throttling = saved.ask("throttling_info")
    for looks, alone in (({}, "exclusive"), ({"throttling": throttling}, "pod")):
        report = assemble([Result("worker-1", LOOKED_AT, drift, {}, [], looks)], ReportTerms("", MADE))
        places = {place["container"]: place for place in report["nodes"][0]["places"] if place["pod"] == "shop/p"}
        assert {name: place["cpus"] for name, place in places.items()} == RUN
        assert {name: place["use"] for name, place in places.items()} == {
            "a": alone,
            "b": "pod",
            "s0": alone,
            "s1": "pod",
        }
        assert (places["a"]["cores"], places["b"]["cores"], places["b"]["numa_nodes"]) == ("whole", "split", "0")
        assert "shop/p  s1" in where_table(report, "shop/p")
