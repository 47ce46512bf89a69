# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""allocation_plan and the playbook plan: what would the kubelet do with these pods?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine
from ansible_collections.kubenode.cpu_manager.tests.machines.shape import parse_name

from .conftest import CopyOf, ansible_playbook, play, task

STATIC: dict[str, Any] = {
    "cpu_manager_policy": "static",
    "cpu_manager_policy_options": {"full-pcpus-only": True},
    "topology_manager_policy": "single-numa-node",
    "reservation": {"count": 4, "strategy": "spread"},
}

GPU_OF_NODE_0 = {"resource": "nvidia.com/gpu", "count": 1, "numa_nodes": [0]}
NONE = {"kubelet_cpu_manager_policy": "none", "kubelet_cpu_manager_policy_options": {}}

XEON = "2 sockets x 12 cores x 2 threads"


def pod(name: str, cpu: str, uid: str | None = None, container: str = "app") -> dict[str, Any]:
    """Return a manifest of one Guaranteed container."""
    resources = {"limits": {"cpu": cpu, "memory": "1Gi"}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "test", **({"uid": uid} if uid else {})},
        "spec": {"containers": [{"name": container, "resources": resources}]},
    }


def with_gpu(name: str, cpu: str, memory: str = "1Gi") -> dict[str, Any]:
    """Return one that asks for a device as well."""
    manifest = pod(name, cpu)
    manifest["spec"]["containers"][0]["resources"]["limits"].update({"nvidia.com/gpu": "1", "memory": memory})
    return manifest


def deployment(name: str, cpu: str, replicas: int) -> dict[str, Any]:
    """Return a manifest of as many such pods."""
    template = {"spec": pod(name, cpu)["spec"]}
    metadata = {"name": name, "namespace": "test"}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas, "template": template}}


def test_what_if(copy_of: CopyOf, tmp_path: Path) -> None:
    running = "0f3f7f0a-90a4-4b39-8a3e-6a9a3fd2f1c4"
    hosts = {
        "compared": {},
        "first": {"root": str(copy_of("epyc", "first"))},
        "running": {"root": str(copy_of("epyc", "running"))},
        "others": {},
        "empty_pool": {},
        "averages": {},
        "endless": {},
        "bad_input": {},
    }
    # Seven CPUs on four cores: the kubelet counts one CPU a core.
    uneven = parse_name("1s4c2t+offline7").topology().to_dict()
    plays = [
        *play(
            task(
                "allocation_plan",
                machine=XEON,
                pods=[deployment("db", "12", 3), pod("odd", "3"), pod("shared", "500m")],
                compare_with={"topology_manager_policy": "best-effort"},
                **STATIC,
            ),
            hosts="compared",
        ),
        *play(task("allocation_plan", root="{{ root }}", pods=[pod("new", "8")]), hosts="first"),
        *play(
            task("allocation_plan", root="{{ root }}", pods=[pod("db", "8", running, "postgres"), pod("new", "8")]),
            hosts="running",
        ),
        *play(
            task(
                "allocation_plan",
                machine=XEON,
                pods=[with_gpu("ai", "4", "30Gi"), pod("db", "4"), with_gpu("late", "2")],
                memory_manager_policy="Static",
                system_reserved_memory="924Mi",
                reserved_memory=[{"numaNode": 1, "limits": {"memory": "1Gi"}}],
                numa_memory=[{"numa_node": node, "amounts": {"memory": "32Gi"}} for node in (0, 1)],
                devices=[{**GPU_OF_NODE_0, "numa_nodes": [1]}],
                **STATIC,
            ),
            hosts="others",
        ),
        *play(
            task(
                "allocation_plan",
                machine="2 sockets x 2 cores x 2 threads",
                pods=[pod("a", "6"), pod("b", "1"), pod("c", "1")],
                cpu_manager_policy="static",
                cpu_manager_policy_options={"strict-cpu-reservation": "true"},
                reserved_system_cpus="0",
            ),
            hosts="empty_pool",
        ),
        *play(
            task(
                "allocation_plan",
                topology=uneven,
                pods=[pod("a", "1"), pod("b", "2")],
                cpu_manager_policy="static",
                reserved_system_cpus="3",
            ),
            hosts="averages",
        ),
        *play(
            task(
                "allocation_plan",
                machine="4 sockets x 4 cores x 2 threads",
                pods=[pod("a", "2"), pod("b", "2"), pod("c", "22"), pod("d", "2")],
                cpu_manager_policy="static",
                cpu_manager_policy_options={"full-pcpus-only": True, "distribute-cpus-across-numa": True},
                reserved_system_cpus="0,4",
            ),
            hosts="endless",
        ),
        *play(
            task("allocation_plan", machine=XEON, pods=[with_gpu("ai", "4")], devices=[{**GPU_OF_NODE_0, "count": -1}]),
            hosts="bad_input",
        ),
    ]
    run = ansible_playbook(tmp_path / "run", plays, hosts)
    assert [host for host in hosts if run.results[host][-1]["outcome"] == "failed"] == ["bad_input"], run.account()
    assert "devices[0].count: -1 is no count" in run.last("bad_input")["msg"]
    others = run.last("others")
    assert {row["pod"]: row["numa_nodes"] for row in others["containers"]} == {"test/ai": [1], "test/db": [0]}
    assert [(row["pod"], row["why"].partition(":")[0]) for row in others["refused"]] == [
        ("test/late", "nvidia.com/gpu")
    ]
    assert (others["exact"], others["devices"]["free"]) == (True, [])
    assert others["memory"]["numa_nodes"][1]["free"] == {"memory": 1 << 30}
    plan = run.last("compared")
    own = {row["pod"]: row["cpus"] for row in plan["containers"] if row["exclusive"]}
    assert own == {"test/db-0": "1-6,25-30", "test/db-1": "13-18,37-42"}
    assert [(row["pod"], row["reason"]) for row in plan["refused"]] == [
        ("test/db-2", "TopologyAffinityError"),
        ("test/odd", "SMTAlignmentError"),
    ]
    assert plan["reserved"] == "0,12,24,36"
    assert plan["allocatable"] == {
        "cpus": 20,
        "whole_cores": 20,
        "one_socket": 10,
        "one_numa_node": 10,
        "one_l3_cache": 10,
    }
    assert plan["differences"] == [
        {"pod": "test/db-2", "container": "", "this": "refused: TopologyAffinityError", "other": "admitted"},
        {"pod": "test/db-2", "container": "app", "this": "", "other": "7-11,19,31-35,43"},
    ]
    assert plan["diff"]["before"] == "default CPU set: 0-47\n"
    assert "pod test/db-0, container app: 1-6,25-30\n" in plan["diff"]["after"]
    assert not plan["changed"]

    # A pod that nobody told of keeps what the checkpoint gives it, and one that runs is not placed again.
    assert run.last("first")["exclusive"] == "4-7,12-15,68-71,76-79"
    (postgres, new) = run.last("running")["containers"]
    assert (postgres["cpus"], new["cpus"]) == ("12-15,76-79", "4-7,68-71")

    empty_pool = run.last("empty_pool")
    assert empty_pool["shared_pool"] == ""
    assert any("the shared pool is empty" in note for note in empty_pool["notes"])

    assert run.last("averages")["notes"] == [
        "pod test/b, container app is given CPUs 0, which other pods have for themselves",
        (
            "the version of the kubelet is not known: 1.36 is assumed, the newest whose answers were replayed;"
            " give kubelet_version"
        ),
    ]

    endless = run.last("endless")
    assert [(row["pod"], row["reason"]) for row in endless["refused"]] == [
        ("test/c", "EndlessDistribution"),
        ("test/d", "EndlessDistribution"),
    ]
    assert any("would never return" in note for note in endless["notes"])


@pytest.mark.parametrize("name", ["pods.yml", "{directory}/pods.yml"])
def test_the_playbook_plan(copy_of: CopyOf, tmp_path: Path, name: str) -> None:
    name = name.format(directory=tmp_path / "run")
    manifests = tmp_path / "run/pods.yml"
    manifests.parent.mkdir()
    manifests.write_text(
        "---\n" + "---\n".join(json.dumps(manifest) + "\n" for manifest in (with_gpu("a", "2"), pod("b", "200")))
    )
    write_machine(["1s1c", str(tmp_path / "bastion")])
    hosts: dict[str, dict[str, Any]] = {
        "epyc": {"kubelet_node_root": str(copy_of("epyc", "epyc")), "kubelet_devices": [GPU_OF_NODE_0]},
        "none": {"kubelet_node_root": str(copy_of("epyc", "none")), **NONE},
        "bastion": {"kubelet_node_root": str(tmp_path / "bastion")},
    }
    run = ansible_playbook(
        tmp_path / "run",
        "kubenode.cpu_manager.plan",
        hosts,
        *("-v", "--check", "-e", "cpu_manager_manifests=%s" % name, "-e", "cpu_manager_plan_file=plan.json"),
    )
    # Of the fleet there is a line for each pod, or for pods alike, also where a node has no answer.
    fits, refused, unread = [text for text in run.output.splitlines() if re.match("test/|not planned", text)]
    assert fits == "test/a: fits on 2 of 3 nodes"
    assert refused.startswith("test/b: fits on 0 of 3 nodes; refused on 1: ")
    assert re.match(r"not planned on 1 node \(bastion\): .*no kubelet runs here", unread)
    written = json.loads((tmp_path / "run/plan.json").read_text("utf-8"))
    assert [row["pod"] for row in written["pods"]] == ["test/a", "test/b"]
    assert written["pods"][1]["refused"] == {"OutOfcpu": ["none"], "SMTAlignmentError": ["epyc"]}

    # A host without a kubelet takes no pod, and has no say in what the others do.
    assert run.status != 0
    assert [host for host, results in run.results.items() if results[-1]["outcome"] == "failed"] == ["bastion"]
    assert "no kubelet runs here" in run.last("bastion")["msg"]
    # With the policy none a pod runs on all CPUs, if its requests find room.
    answer = run.last("none")["msg"]
    assert [(row["pod"], row["cpus"]) for row in answer["containers"]] == [("test/a", "0-127")]
    (refusal,) = answer["refused"]
    assert (refusal["pod"], refusal["reason"]) == ("test/b", "OutOfcpu")
    assert refusal["message"].startswith(
        "Node didn't have enough resource: cpu, requested: 200000, used: 2000, capacity: "
    )
    answer = run.results["epyc"][-2]["msg"]
    assert [row["pod"] for row in answer["containers"]] == ["test/a"]
    assert answer["refused"][0]["pod"] == "test/b"
    assert answer["refused"][0]["message"].startswith("SMT Alignment Error: not enough free physical CPUs")
    # Of this node it is known which devices there are.
    notes = {"epyc": answer["notes"], "none": run.last("none")["msg"]["notes"]}
    exact = {host: not any("nvidia.com/gpu" in note for note in told) for host, told in notes.items()}
    assert exact == {"epyc": True, "none": False}


def test_the_playbook_plan_shows_before_and_after(copy_of: CopyOf, tmp_path: Path) -> None:
    manifests = tmp_path / "pods.yml"
    manifests.write_text(json.dumps(pod("a", "2")))
    hosts = {"epyc": {"kubelet_node_root": str(copy_of("epyc", "epyc"))}}
    arguments = ("--diff", "-e", "cpu_manager_manifests=%s" % manifests)
    shown = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.plan", hosts, *arguments).last("epyc")["msg"]
    (line,) = set(shown["after"]) - set(shown["before"]) - {shown["after"][0]}
    assert line.startswith("pod test/a, container app: ")


def test_manifests_that_stand_for_too_much_are_one_error_before_nodes_are_read(tmp_path: Path) -> None:
    """A pipeline plans what developers wrote. Without the limit, it is busy for days."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += ["a%d: &a%d [%s]" % (at, at, ",".join(["*a%d" % (at - 1)] * 10)) for at in range(1, 20)]
    manifests = tmp_path / "pods.yml"
    manifests.write_text("\n".join(lines) + "\n", encoding="utf-8")
    hosts = {"nowhere": {"kubelet_node_root": str(tmp_path / "nothing")}}
    run = ansible_playbook(
        tmp_path / "run", "kubenode.cpu_manager.plan", hosts, "-e", "cpu_manager_manifests=%s" % manifests
    )
    assert run.status == 2, run.output
    (said,) = (result for result in run.results["nowhere"] if result["outcome"] == "failed")
    assert "%s: its aliases stand for more than 100000 values" % manifests in said["msg"]


def test_what_a_cpu_limit_does(tmp_path: Path) -> None:
    pods = [pod("web", "200m"), pod("db", "4")]
    bursts = [{"pod": "test/w*", "threads": 1, "work": "70ms"}]
    plays = [
        *play(task("allocation_plan", machine=XEON, pods=pods, bursts=bursts, **STATIC), hosts="limited"),
        *play(task("allocation_plan", machine=XEON, pods=pods, bursts=[{"pod": "web"}], **STATIC), hosts="misnamed"),
    ]
    run = ansible_playbook(tmp_path / "run", plays, {"limited": {}, "misnamed": {}})
    (row,) = run.last("limited")["throttling"]
    assert (row["pod"], row["limit"], row["is_assumed"]) == ("test/web", "200m", False)
    assert row["latency_ms"]["unthrottled"] == 70
    assert row["latency_ms"]["maximum"] > 300
    assert [remedy["remedy"] for remedy in row["remedies"]] == ["whole-cpus", "limit", "burst"]
    assert "bursts: no container of the pods is * in web" in run.last("misnamed")["msg"]
