# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook propose: what it writes is what a rollout takes, and nothing is written that a kubelet would refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.kubelets import HEADER, KUBELETS, Kubelet, write_kubelet
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name
from ansible_collections.kubenode.cpu_manager.tests.machines.tree import write_tree

from .conftest import Run, ansible_playbook, fingerprint

PROPOSE, ROLLOUT = "kubenode.cpu_manager.propose", "kubenode.cpu_manager.rollout"
WRITE, DECIDE = "Write the proposal", "Decide what to propose"

# {host: (its machine, its kubelet, its version, what is wanted)}. Two Xeons that differ in how CPUs are numbered alone.
LATENCY, BATCH = {"cpu_manager_workload": "latency"}, {"cpu_manager_workload": "batch"}
FLEET: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "xeon-1": ("2s1n12c2t+interleaved", "kubeadm", "1.35", LATENCY),
    "xeon-2": ("2s1n12c2t", "kubespray", "1.33", LATENCY),
    "epyc": ("2s4n2l4c2t", "eks", "1.36", LATENCY),
    "ia64": ("4s4n2c2t", "kops", "1.34", {"cpu_manager_workload": "virtual_machines"}),
    "edge": ("1s8c2t+offline5", "kubeadm", "1.36", LATENCY),
    "arm": ("1s1n16c", "rke2", "1.36", BATCH),
    "aligned": ("2s1n4c2t", "kubeadm", "1.36", {**BATCH, "cpu_manager_numa_alignment": "best-effort"}),
}

GROUPS = {
    "latency_cpus48_sockets2_numa2_caches2_threads2": ["xeon-1", "xeon-2"],
    "latency_cpus128_sockets2_numa8_caches16_threads2": ["epyc"],
    "virtual_machines_cpus64_sockets4_numa16_caches16_threads2": ["ia64"],
    "latency_cpus15_sockets1_numa1_caches1_threads2_4d863c5e": ["edge"],
    "batch_cpus16_sockets1_numa1_caches1_threads1": ["arm"],
    "batch_cpus16_sockets2_numa2_caches2_threads2": ["aligned"],
}


def write_node(root: Path, machine: str, kubelet: Kubelet) -> Path:
    shape = parse_name(machine)
    write_tree(shape.topology(), root, shape.whole())
    write_kubelet(root, kubelet)
    return root


@pytest.fixture
def fleet(tmp_path: Path) -> dict[str, dict[str, Any]]:
    return {
        host: {
            "kubelet_node_root": str(write_node(tmp_path / "nodes" / host, machine, KUBELETS[kubelet])),
            "kubelet_target_version": version,
            **wish,
        }
        for host, (machine, kubelet, version, wish) in FLEET.items()
    }


def node(root: Path, machine: str = "1s4c2t", text: str = "") -> dict[str, Any]:
    """Return the variables of one node of kubeadm, with more in its configuration."""
    path = "/var/lib/kubelet/config.yaml"
    write_node(root, machine, Kubelet({path: HEADER + text}, "1.36"))
    return {"kubelet_node_root": str(root), "kubelet_target_version": "1.36", **LATENCY}


def task_of(run: Run, name: str) -> dict[str, Any]:
    return next(result for results in run.results.values() for result in results if result["task"] == name)


def proposed(run_in: Path) -> dict[str, dict[str, Any]]:
    """Return the variables of each group."""
    files = (run_in / "proposal/group_vars").iterdir()
    return {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in files}


def test_a_fleet_gets_settings_by_shape(fleet: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    nodes, here = tmp_path / "nodes", tmp_path / "run"
    before = fingerprint(nodes)
    check = ansible_playbook(here, PROPOSE, fleet, "--check", "--diff")
    assert check.status == 0, check.account()
    assert not (here / "proposal").exists()
    told = task_of(check, WRITE)

    run = ansible_playbook(here, PROPOSE, fleet)
    assert run.status == 0, run.account()
    assert fingerprint(nodes) == before
    assert told["changed"]
    assert told["files"] == task_of(run, WRITE)["files"]
    assert {diff["after_header"]: diff["after"] for diff in told["diff"]} == {
        path: Path(path).read_text("utf-8") for path in told["files"]
    }

    inventory = yaml.safe_load((here / "proposal/inventory.yml").read_text("utf-8"))
    groups = inventory["all"]["children"]
    assert {name: list(group["hosts"]) for name, group in groups.items()} == GROUPS
    variables = proposed(here)
    assert set(variables) == set(GROUPS)
    xeon, epyc, ia64, edge, arm, aligned = (variables[name] for name in GROUPS)
    # The oldest kubelet is 1.33. Before 1.34 prefer-align-cpus-by-uncorecache is alpha, and is not needed here.
    assert xeon == {
        "kubelet_cpu_manager_policy": "static",
        "kubelet_cpu_manager_policy_options": {"full-pcpus-only": "true", "strict-cpu-reservation": "true"},
        "kubelet_topology_manager_policy": "single-numa-node",
        "kubelet_topology_manager_scope": "pod",
        "kubelet_reservation": {"count": 4, "strategy": "spread"},
    }
    assert epyc["kubelet_cpu_manager_policy_options"]["prefer-align-cpus-by-uncorecache"] == "true"
    assert ia64["kubelet_topology_manager_policy"] == "restricted"
    assert ia64["kubelet_topology_manager_policy_options"] == {"max-allowable-numa-nodes": "16"}
    assert edge["kubelet_cpu_manager_policy_options"] == {"strict-cpu-reservation": "true"}
    assert edge["kubelet_topology_manager_policy"] == "none"
    assert arm["kubelet_cpu_manager_policy"] == "none"
    assert arm["kubelet_reservation"] == {"count": 1, "strategy": "packed"}
    assert aligned["kubelet_cpu_manager_policy"] == "static"
    assert aligned["kubelet_topology_manager_policy"] == "best-effort"

    # The same input gives the same bytes, also with the proposal among the inventories.
    written = fingerprint(here / "proposal")
    again = ansible_playbook(here, PROPOSE, fleet, "-i", "proposal/inventory.yml")
    assert again.status == 0, again.account()
    assert not task_of(again, WRITE)["changed"]
    assert "warnings" not in task_of(again, WRITE)
    assert fingerprint(here / "proposal") == written


def test_a_rollout_takes_a_proposal_as_it_is(fleet: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    nodes, here = tmp_path / "nodes", tmp_path / "run"
    given = ("-i", "proposal/inventory.yml", "-e", "cpu_manager_serial=100%")
    run = ansible_playbook(here, PROPOSE, fleet)
    assert run.status == 0, run.account()
    before, written, variables = fingerprint(nodes), fingerprint(here / "proposal"), proposed(here)

    check = ansible_playbook(here, ROLLOUT, fleet, "--check", *given)
    assert check.status == 0, check.account()
    assert fingerprint(nodes) == before
    for name, hosts in GROUPS.items():
        for host in hosts:
            plan = next(result for result in check.results[host] if "refusals" in result)
            expected = {key[len("kubelet_") :]: value for key, value in variables[name].items()}
            count = expected.pop("reservation")["count"]
            assert len(CPUSet.parse(plan["wanted"].pop("reserved_system_cpus"))) == count
            assert plan["wanted"] == expected
            assert plan["starts"]
            assert plan["refusals"] == []

    # Once they have it, nothing is to be changed, and the proposal is the same.
    rollout = ansible_playbook(here, ROLLOUT, fleet, *given)
    assert rollout.status == 0, rollout.account()
    assert fingerprint(nodes) != before
    after = ansible_playbook(here, ROLLOUT, fleet, "--check", *given)
    assert after.status == 0, after.account()
    assert not any(result.get("changed") for results in after.results.values() for result in results)
    again = ansible_playbook(here, PROPOSE, fleet)
    assert again.status == 0, again.account()
    assert fingerprint(here / "proposal") == written


def test_what_was_edited_is_not_overwritten(tmp_path: Path) -> None:
    here, hosts = tmp_path / "run", {"worker": node(tmp_path / "worker")}
    assert ansible_playbook(here, PROPOSE, hosts).status == 0
    (path,) = (here / "proposal/group_vars").iterdir()
    path.write_text(path.read_text("utf-8").replace("count: 2", "count: 4"), encoding="utf-8")
    edited = fingerprint(here / "proposal")

    check = ansible_playbook(here, PROPOSE, hosts, "--check", "--diff")
    assert check.status == 0, check.account()
    (diff,) = task_of(check, WRITE)["diff"]
    assert "count: 4" in diff["before"]
    assert "count: 2" in diff["after"]
    assert str(path) in task_of(check, WRITE)["warnings"][0]

    refused = ansible_playbook(here, PROPOSE, hosts)
    assert refused.status != 0
    assert str(path) in task_of(refused, WRITE)["msg"]
    assert fingerprint(here / "proposal") == edited

    overwritten = ansible_playbook(here, PROPOSE, hosts, "-e", "cpu_manager_overwrite_edited=true")
    assert overwritten.status == 0, overwritten.account()
    assert "count: 2" in path.read_text("utf-8")


def test_nothing_is_written_that_a_kubelet_would_refuse(tmp_path: Path) -> None:
    good = node(tmp_path / "good")
    hosts = {
        "good": good,
        # It would not start today either, and the proposal does not change that.
        "broken": node(tmp_path / "broken", text="featureGates: {NoSuchGate: true}\n"),
    }
    run = ansible_playbook(tmp_path / "refused", PROPOSE, hosts)
    assert run.status != 0
    assert "broken: featureGates.NoSuchGate: the kubelet would not start" in task_of(run, WRITE)["msg"]
    assert not (tmp_path / "refused/proposal").exists()

    # What cannot be proposed for: all reasons at once.
    bastion = tmp_path / "bastion"
    write_tree(parse_name("1s2c").topology(), bastion, parse_name("1s2c").whole())
    hosts = {
        "good": good,
        "bastion": {"kubelet_node_root": str(bastion), **LATENCY},
        "nowhere": {"kubelet_node_root": str(tmp_path / "nowhere"), **LATENCY},
    }
    run = ansible_playbook(tmp_path / "lost", PROPOSE, hosts)
    said = task_of(run, DECIDE)["msg"]
    assert run.status != 0
    assert "bastion: there is no kubelet" in said
    assert "nowhere: " in said
    assert not (tmp_path / "lost/proposal").exists()

    del hosts["nowhere"]
    run = ansible_playbook(tmp_path / "skipped", PROPOSE, hosts, "-e", "cpu_manager_skip_hosts_without_kubelet=true")
    assert run.status == 0, run.account()
    assert "bastion" not in (tmp_path / "skipped/proposal/inventory.yml").read_text("utf-8")


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"cpu_manager_workload": None}, "cpu_manager_workload: is missing; take one of latency, batch"),
        ({"cpu_manager_workload": "games"}, "games"),
        ({"cpu_manager_reservation": {"count": 3}}, "the nearest counts are 2 and 4"),
        ({"cpu_manager_reservation": {"count": 8}}, "cannot reserve 8 of 8 CPUs"),
        ({"cpu_manager_reservation": {"count": 2, "fraction": 0.5}}, "exclude each other"),
        ({"cpu_manager_reservation": {"cuont": 2}}, "cuont"),
        ({"cpu_manager_workloads": "latency"}, "cpu_manager_workload is: rename it"),
    ],
    ids=str,
)
def test_a_wish_that_makes_no_sense_is_refused(wish: dict[str, Any], expected: str, tmp_path: Path) -> None:
    hosts = {"worker": {**node(tmp_path / "worker"), **wish}}
    run = ansible_playbook(tmp_path / "run", PROPOSE, hosts)
    assert run.status != 0
    assert expected in run.last("worker")["msg"]
    assert not (tmp_path / "run/proposal").exists()


def test_one_shape_with_two_wishes_has_two_groups_and_the_inventory_is_warned_of(tmp_path: Path) -> None:
    wish = {"cpu_manager_reservation": {"count": 4}, "cpu_manager_housekeeping": True}
    hosts = {
        "one": {**node(tmp_path / "one"), "kubelet_cpu_manager_policy": "none"},
        "two": {**node(tmp_path / "two"), **wish, "kubelet_reserved_system_cpus": "0"},
    }
    run = ansible_playbook(tmp_path / "run", PROPOSE, hosts)
    assert run.status == 0, run.account()
    counts = {group["kubelet_reservation"]["count"]: group for group in proposed(tmp_path / "run").values()}
    assert set(counts) == {2, 4}
    assert "housekeeping_layers" in counts[4]
    assert "housekeeping_layers" not in counts[2]
    warnings = task_of(run, WRITE)["warnings"]
    assert [warning.partition(" has ")[0] for warning in warnings] == [
        "kubelet_cpu_manager_policy",
        "kubelet_reserved_system_cpus",
    ]


def test_objects_for_the_api_server(tmp_path: Path) -> None:
    hosts = {"worker": {**node(tmp_path / "worker", "2s1n4c2t"), "kubelet_node_name": "worker.example.org"}}
    wanted = '{"cpu_manager_node_objects": ["labels", "node_resource_topologies"]}'
    run = ansible_playbook(tmp_path / "run", PROPOSE, hosts, "-e", wanted)
    assert run.status == 0, run.account()
    (labelled,) = yaml.safe_load_all((tmp_path / "run/proposal/node-labels.yml").read_text("utf-8"))
    assert labelled["metadata"]["name"] == "worker.example.org"
    assert labelled["metadata"]["labels"]["cpu-manager.kubenode/policy"] == "static"
    text = (tmp_path / "run/proposal/node-resource-topologies.yml").read_text("utf-8")
    (topology,) = yaml.safe_load_all(text)
    assert topology["attributes"] == [
        {"name": "topologyManagerPolicy", "value": "single-numa-node"},
        {"name": "topologyManagerScope", "value": "pod"},
    ]
    # One core of each NUMA node is reserved.
    assert [zone["resources"] for zone in topology["zones"]] == [
        [{"name": "cpu", "capacity": "8", "allocatable": "6", "available": "6"}],
        [{"name": "cpu", "capacity": "8", "allocatable": "6", "available": "6"}],
    ]
    assert [labelled, topology] == task_of(run, WRITE)["objects"]

    hosts["worker"]["kubelet_node_name"] = "../worker"
    run = ansible_playbook(tmp_path / "hostile", PROPOSE, hosts, "-e", wanted)
    assert run.status != 0
    assert "'../worker' is no name of a node" in task_of(run, WRITE)["msg"]
    assert not (tmp_path / "hostile/proposal").exists()


def test_a_proposal_is_judged_with_what_else_the_inventory_says(tmp_path: Path) -> None:
    """As the rollout has it, which also applies that."""
    memory = [{"numaNode": 0, "limits": {"memory": "1Gi"}}]
    hosts = {
        "memory": {
            **node(tmp_path / "memory"),
            "kubelet_memory_manager_policy": "Static",
            "kubelet_reserved_memory": memory,
            # Of kubespray.
            "kube_memory_reserved": "512Mi",
        },
        "options": {
            **node(tmp_path / "options", "2s1n4c2t"),
            "kubelet_topology_manager_policy_options": {"prefer-closest": "true"},
        },
        # Who plans a reservation names no CPUs.
        "named": {**node(tmp_path / "named"), "kubelet_reserved_system_cpus": "0-7"},
        "small": {**node(tmp_path / "small", "1s1c2t"), "kubelet_reservation": {"count": 1, "allow_split_core": True}},
    }
    run = ansible_playbook(tmp_path / "run", PROPOSE, hosts)
    assert run.status != 0
    said = task_of(run, WRITE)["msg"]
    assert "memory: " in said
    assert "options: " in said
    assert "prefer-closest" in said
    assert "named: " not in said
    assert "small: " not in said
    assert not (tmp_path / "run/proposal").exists()

    # What they reserve of the memory is the sum of all that is reserved.
    hosts["memory"]["kube_memory_reserved"] = "924Mi"
    del hosts["options"]["kubelet_topology_manager_policy_options"]
    run = ansible_playbook(tmp_path / "run", PROPOSE, hosts)
    assert run.status == 0, run.account()
    assert proposed(tmp_path / "run")["latency_cpus2_sockets1_numa1_caches1_threads2"] == {
        "kubelet_cpu_manager_policy": "none",
        "kubelet_cpu_manager_policy_options": {},
        "kubelet_topology_manager_policy": "none",
        "kubelet_reserved_system_cpus": "",
    }
