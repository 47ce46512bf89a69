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

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.checkpoint import decode_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.formats import Format4
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
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
# A restart has moved the pod: CPUs 1-2,9-10, which it had, are nobody's.
MOVED = (
    '{"policyName":"static","defaultCpuSet":"0,5-8,13-15","entries":{"p":{"a":"3,11","b":"4,12"}},'
    '"podEntries":{"p":{"cpuSet":"3-4,11-12"}},"checksum":2442655140}'
)
RUN = {"a": "2,10", "b": "3,9,11", "s0": "1", "s1": "3,9,11"}


class Saved:
    """A saved node of 16 CPUs, of which the threads of a core are 0 and 8, 1 and 9, and so on."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        write_machine(root, "2s1n4c2t")
        write(root, "/var/lib/kubelet/config.yaml", HEADER + CONFIGURATION)

    def of_37(self, checkpoint: str) -> None:
        """Write the file as 1.37 and later ones write it."""
        state = decode_checkpoint(checkpoint.encode()).state()
        write(self.root, CHECKPOINT, write_checkpoint("static", state, Format4))

    def without_gate(self) -> None:
        write(self.root, "/var/lib/kubelet/config.yaml", HEADER + CONFIGURATION.rpartition("featureGates")[0])

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


def test_a_node_tells_of_pods_with_cpus_as_a_whole(saved: Saved) -> None:
    """They were left out of what a change does to the pods of nodes that tell of their own."""
    saved.run(SIDECARS, RUN)
    told = saved.ask("admission_info", pods=True)
    (pod, _web) = told["pods"]
    spec = pod["spec"]
    asked = {
        row["name"]: row["resources"]["limits"].get("cpu")
        for rows in ("initContainers", "containers")
        for row in spec[rows]
    }
    assert asked == {"i0": None, "i1": None, "i2": "2000m", "a": "2000m", "b": None, "s0": "1000m", "s1": None}
    assert (spec["resources"]["limits"]["cpu"], told["left_out"]) == ("6000m", [])
    # How much memory it asks for is in none of the files.
    assert "memory" in told["unknown"]
    # As allocation_plan takes them, with the same CPUs but for the order of the sidecars.
    (whole,) = saved.ask("allocation_plan", pods=told["pods"], from_checkpoint=True)["pods"]
    assert (whole["cpus"], whole["shared"], whole["unused"]) == ("1-3,9-11", "3,9,11", "")


# --- before a start ------------------------------------------------------------------------------------------

APART = {"a": "1,9", "b": "2,10"}
UNREAD = "; this kubelet does not read the CPUs of pods as a whole in this file, and of these, no container has 3,11"


def test_a_file_that_lacks_what_a_restart_has_lost_says_which_cpus_that_is(saved: Saved) -> None:
    """The kubelet does not start, so nothing is said of what that start would move."""
    saved.run(MOVED, {"a": "3,11", "b": "4,12"})
    (finding,) = saved.ask("start_check")["findings"]
    assert finding["remedy"].endswith(
        "; CPUs 1-2,9-10 are nobody's: a kubelet that starts while pods have CPUs as a whole can lose them"
    )
    drift = saved.ask("drift_info")
    assert finding["text"] == drift["found_refusal"]
    assert "pods-lost-at-restart" not in drift["note_checks"]
    repaired = saved.ask("checkpoint", state="valid", _ansible_check_mode=True)["after"]
    assert (repaired["default_cpu_set"], repaired["pod_assignments"]) == ("0-2,5-10,13-15", {"p": "3-4,11-12"})


def test_the_gate_switched_off_says_why_the_file_is_refused(saved: Saved) -> None:
    saved.run(UNUSED, APART)
    saved.without_gate()
    (finding,) = saved.ask("start_check")["findings"]
    assert finding["remedy"].endswith(
        "; kubelets without the feature gate PodLevelResourceManagers do not read its format v3"
    )
    assert "pods-lost-at-restart" not in saved.ask("drift_info")["note_checks"]
    # 1.37 reads its own file, but for the CPUs of the pod.
    saved.of_37(UNUSED)
    (finding,) = saved.ask("start_check", kubelet_version="1.37.0")["findings"]
    assert (finding["text"].partition(" doesn't")[0], finding["remedy"][-len(UNREAD) :]) == (
        'current set of available CPUs "0-15"',
        UNREAD,
    )
    plan = saved.ask("rollout_info", kubelet_version="1.37.0", cpu_manager_reconcile_period="5s")
    assert [refusal["kind"] for refusal in plan["refusals"]] == ["assignments"]


@pytest.mark.parametrize(
    ("checkpoint", "version", "older", "starts", "said"),
    [
        (
            UNUSED,
            "1.37.0",
            "1.36",
            False,
            "the kubelet 1.36 does not take over the CPUs of whole pods: pod p: CPUs 1-3",
        ),
        # Each of its CPUs is some container's.
        (
            SIDECARS,
            "1.37.0",
            "1.36",
            True,
            "the kubelet 1.36 does not take over the CPUs of whole pods: pod p: CPUs 1-3",
        ),
        # First it refuses the gate that it does not know, and then the file.
        (UNUSED, "1.36.3", "1.35", False, "the kubelet 1.35 refuses this file, of format v3"),
    ],
)
def test_an_older_kubelet_that_would_refuse_the_file_is_told_before(
    saved: Saved, checkpoint: str, version: str, older: str, starts: bool, said: str
) -> None:
    saved.run(checkpoint, APART if checkpoint == UNUSED else RUN)
    if version == "1.37.0":
        saved.of_37(checkpoint)
    upgrade = saved.ask("rollout_info", kubelet_version=version, upgrade_to=older)["upgrade"]
    assert (upgrade["starts"], upgrade["back"]["starts"]) == (starts, True)
    assert [note for note in upgrade["notes"] if note.startswith(said)]
    remedies = [finding["remedy"] for finding in upgrade["findings"]]
    assert any(remedy.endswith(UNREAD) for remedy in remedies) is (older == "1.36" and not starts)


@pytest.mark.parametrize("version", ["1.36.3", "1.37.0", "1.38.0"])
@pytest.mark.parametrize("drain", [True, False])
def test_a_harmless_change_drains_pods_with_cpus_as_a_whole_or_is_refused(
    saved: Saved, version: str, drain: bool
) -> None:
    saved.run(SIDECARS, RUN)
    if version != "1.36.3":
        saved.of_37(SIDECARS)
    period = {"cpu_manager_policy": "static", "cpu_manager_reconcile_period": "5s"}
    plan = saved.ask("rollout_info", kubelet_version=version, drain=drain, **period)
    loses = version != "1.38.0"
    assert (plan["drain"], [row["fate"] for row in plan["restart"]]) == (loses, ["refused" if loses else "keeps"])
    refused = loses and not drain
    assert (plan["drains"], bool(plan["refusals"])) == (loses and drain, refused)
    assert all("shop/p: TopologyAffinityError" in refusal["text"] for refusal in plan["refusals"])


def test_a_policy_that_gives_nothing_loses_no_cpus(saved: Saved) -> None:
    saved.run(SIDECARS, RUN)
    (row,) = saved.ask("rollout_info", cpu_manager_policy="none")["restart"]
    assert (row["fate"], "nobody's" in row["why"], "a second time" in row["why"]) == ("moves", False, False)
