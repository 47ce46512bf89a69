# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts a playbook is about, and how many at a time: typos end it, and only nodes that change count."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.tests.machines.api_server import serve
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, pod_of
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import write_node

from .conftest import CHECKOUT, CopyOf, ansible_playbook

SAVED = {"kubelet_node_root": "/nowhere"}


def test_every_play_asks_for_its_hosts() -> None:
    """One that names a pattern itself would take a mistyped one."""
    hosts = {
        "%s: %s" % (path.stem, play["hosts"])
        for path in (CHECKOUT / "playbooks").glob("*.yml")
        for play in yaml.safe_load(path.read_text(encoding="utf-8"))
        if "hosts" in play and "query('kubenode.cpu_manager.hosts'" not in play["hosts"]
    }
    assert hosts == set()


@pytest.mark.parametrize(
    ("playbook", "variables", "message"),
    [
        (
            "rollout",
            {"cpu_manager_canaries": "canary"},
            "cpu_manager_canaries: the inventory has no host or",
        ),
        (
            "rollback",
            {"cpu_manager_serial": "ten"},
            "cpu_manager_serial: must be a number from 1, a percentage such as 10%, or auto, and has 'ten'",
        ),
        (
            "drift_report",
            {"cpu_manager_hosts": "wrokers"},
            "cpu_manager_hosts: the inventory has no host or group",
        ),
    ],
)
def test_a_typo_ends_it_before_anything_is_read(
    playbook: str, variables: dict[str, Any], message: str, tmp_path: Path
) -> None:
    run = ansible_playbook(tmp_path, "kubenode.cpu_manager." + playbook, {"worker": SAVED}, "-e", json.dumps(variables))
    assert run.status != 0
    assert message in " ".join(run.output.split())
    assert run.results == {"worker": []}
    # No report of an earlier day is taken for one of this run.
    assert not (tmp_path / "drift-report").exists()


def test_the_first_batch_that_changes_anything_is_one_node(copy_of: CopyOf, tmp_path: Path) -> None:
    """Three hosts that need nothing stand before twenty that do. The first change fails, so it is the only one."""
    settings = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0", "kubelet_drain": False}
    quiet, changing = copy_of("edge", "quiet"), copy_of("edge", "changing")
    (quiet / "var/lib/kubelet/cpu_manager_state").unlink()
    hosts: dict[str, dict[str, Any]] = {"cp-%d" % number: {"kubelet_node_root": str(quiet)} for number in range(3)}
    for number in range(20):
        # Nothing writes: what would is refused by the service that is not there.
        hosts["w-%02d" % number] = {
            "kubelet_node_root": str(changing),
            "kubelet_manage_service": True,
            "kubelet_service": "no-such-service",
            **settings,
        }
    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager.rollout", hosts)
    assert run.status != 0

    def with_task(text: str) -> list[str]:
        return [host for host, results in run.results.items() if any(text in row["task"] for row in results)]

    assert with_task("Change the kubelet") == ["w-00"]
    assert "no-such-service" in run.last("w-00")["msg"]
    # All were planned before.
    assert all(any("actions" in row for row in results) for results in run.results.values())


def test_the_order_and_the_batches_are_found_by_what_runs_on_the_nodes(tmp_path: Path) -> None:
    """Two pods of one budget are not gone at a time, and the node without pods is the first canary."""
    settings = {"kubelet_topology_manager_policy": "restricted", "kubelet_service": "none", "kubelet_drain": True}
    names = ["w-%d" % number for number in range(4)]
    changing = tmp_path / "changing"
    write_node(changing, V2)
    file = tmp_path / "order.json"
    auto = ("-e", json.dumps({"cpu_manager_serial": "auto", "cpu_manager_schedule_file": str(file)}))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}},
        "status": {"disruptionsAllowed": 1},
    }
    with serve(budget) as server:
        for name in names:
            node = {**node_of(name), "status": {"allocatable": {"cpu": "64"}}}
            server.add({"apiVersion": "v1", "kind": "Node", **node})
            if name != "w-3":
                pod = pod_of("db-" + name, name, "2", ("StatefulSet", "db"))
                pod["metadata"]["labels"] = {"app": "db"}
                server.add({"apiVersion": "v1", "kind": "Pod", **pod})
        api = {"kubelet_kubeconfig": str(server.kubeconfig(tmp_path / "kubeconfig"))}
        hosts = {name: {"kubelet_node_root": str(changing), **settings, **api} for name in names}
        run = ansible_playbook(
            tmp_path / "plan", "kubenode.cpu_manager.plan_changes", hosts, *auto, "-e", "cpu_manager_drain_seconds=600"
        )
    assert run.status == 0, run.account()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [row["hosts"] for row in found["batches"]] == [["w-3"], ["w-0"], ["w-1"], ["w-2"]]
    assert (found["shapes"], found["seconds"]) == (1, 2400)
    told = " ".join(run.output.split())
    assert "Order of 4 nodes by what runs there; batches: 4" in told
    assert "takes about 40 minutes" in told
    assert server.changes == []


def wanted(node: Path) -> dict[str, Any]:
    """Return what changes a node, without a cluster and without services."""
    return {
        "kubelet_node_root": str(node),
        "kubelet_manage_service": False,
        "kubelet_drain": False,
        "kubelet_discard_assignments": True,
        "kubelet_topology_manager_policy": "restricted",
    }


def batches_of(output: str) -> list[list[str]]:
    """Return the hosts of each batch that was changed."""
    parts = re.findall(r"TASK \[\S+ : Change the kubelet\] \*+\n((?:changed: .*\n)+)", output)
    return [sorted(re.findall(r"(?m)^changed: \[([-\w]+)", part)) for part in parts]


def test_a_rollout_comes_in_the_order_that_was_found(tmp_path: Path) -> None:
    """Of two shapes, a canary of each comes before the others."""
    write_node(tmp_path / "changing", V2)
    given = wanted(tmp_path / "changing")
    hosts: dict[str, dict[str, Any]] = {"w-%d" % number: given for number in range(4)}
    hosts["w-9"] = {**given, "kubelet_topology_manager_policy": "best-effort"}
    run = ansible_playbook(
        tmp_path / "run", "kubenode.cpu_manager.rollout", hosts, "--check", "-e", "cpu_manager_serial=auto"
    )
    assert run.status == 0, run.account()
    assert "1: w-0; pods that leave: 0" in run.output
    assert "2: w-9; pods that leave: 0" in run.output
    assert batches_of(run.output) == [["w-0"], ["w-9"], ["w-1"], ["w-2", "w-3"]]


def test_two_rollouts_of_one_run_have_their_own_batches(tmp_path: Path) -> None:
    write_node(tmp_path / "changing", V2)
    given = wanted(tmp_path / "changing")
    hosts: dict[str, dict[str, Any]] = {"a-%d" % number: given for number in range(3)}
    hosts["a-3"] = {**given, "kubelet_topology_manager_policy": "best-effort"}
    hosts.update({"b-%d" % number: given for number in range(4)})
    site = [
        {
            "name": "Roll out",
            "import_playbook": "kubenode.cpu_manager.rollout",
            "vars": {"cpu_manager_hosts": cluster + "-*", "cpu_manager_serial": "auto"},
        }
        for cluster in "ab"
    ]
    run = ansible_playbook(tmp_path / "run", site, hosts, "--check")
    assert run.status == 0, run.account()
    told = [re.findall(r"(?m)^  \d+: ([-\w, ]+);", part) for part in run.output.split("Order of 4 nodes")[1:]]
    assert [len(each) for each in told] == [4, 3]
    assert batches_of(run.output) == [batch.split(", ") for each in told for batch in each]
