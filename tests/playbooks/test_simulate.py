# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook simulate on a saved node, and its module with what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine

from .conftest import CopyOf, ansible_playbook, fingerprint, play, task

PLAYBOOK = "kubenode.cpu_manager.simulate"
TRACE: dict[str, Any] = {
    "version": 1,
    "name": "mine/../../../etc",
    "description": "one that is busy",
    "duration": 300,
    "pods": [
        {"name": "db", "qosClass": "Guaranteed", "cpu": 2, "elastic": "2-6", "arrives": 0, "load": [[0, 6]]},
        {"name": "web", "qosClass": "Burstable", "cpu": "500m", "arrives": 0, "load": [[0, 1]]},
    ],
}


def test_the_documented_traces_on_a_saved_node(copy_of: CopyOf, tmp_path: Path) -> None:
    root = copy_of("edge", "edge")
    before = fingerprint(root)
    run = ansible_playbook(tmp_path / "run", PLAYBOOK, {"edge": {"kubelet_node_root": str(root)}}, "--check")
    assert run.status == 0, run.account()
    assert fingerprint(root) == before
    result = run.last("edge")
    assert [row["trace"] for row in result["traces"]] == ["services", "batch", "crowded"]
    for row in result["traces"]:
        compared = row["dynamic_beside_static"]
        assert compared["never_worse"]
        assert compared["thread_seconds_saved"] > 0
        assert compared["text"] in run.output
    written = tmp_path / "run" / "simulation"
    assert sorted(path.name for path in written.iterdir()) == [
        "simulation-edge-%s.%s" % (trace, form)
        for trace in ("batch", "crowded", "services")
        for form in ("json", "svg")
    ]
    for path in written.glob("*.svg"):
        ElementTree.parse(path)
    assert json.loads((written / "simulation-edge-batch.json").read_text("utf-8")) == result["traces"][1]


def test_a_host_without_a_kubelet_is_left_out_where_that_is_wanted(copy_of: CopyOf, tmp_path: Path) -> None:
    bastion = tmp_path / "bastion"
    write_machine(["1s8c", str(bastion)])
    hosts = {
        "edge": {"kubelet_node_root": str(copy_of("edge", "edge"))},
        "bastion": {"kubelet_node_root": str(bastion)},
    }
    for skip, named in ((False, {"edge", "bastion"}), (True, {"edge"})):
        run = ansible_playbook(
            tmp_path / str(skip), PLAYBOOK, hosts, "-e", json.dumps({"cpu_manager_skip_hosts_without_kubelet": skip})
        )
        assert run.status == 0, run.account()
        written = (tmp_path / str(skip) / "simulation").iterdir()
        assert {path.name.split("-")[1] for path in written} == named


def test_a_trace_of_ones_own(copy_of: CopyOf, tmp_path: Path) -> None:
    """Its name does not lead out of the directory, and hosts with similar names have files of their own."""
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "trace.json").write_text(json.dumps(TRACE), "utf-8")
    variables = {
        "kubelet_node_root": str(copy_of("xeon", "xeon")),
        "kubelet_reserved_system_cpus": "0,24",
        "cpu_manager_simulation_trace": "trace.json",
        "cpu_manager_simulation_period": 5,
        # Those whose number is not known here are left out.
        "kubelet_devices": [{"resource": "x.com/gpu", "count": 1}, {"resource": "y.com/nic", "pci_vendor": "15b3"}],
        "kubelet_topology_manager_policy": "single-numa-node",
    }
    hosts = dict.fromkeys(("node/1", "node_1"), variables)
    run = ansible_playbook(directory, PLAYBOOK, hosts)
    assert run.status == 0, run.account()
    (row,) = run.last("node/1")["traces"]
    # It has 3 CPUs from the first pass on, then 4, then 6.
    saved = 1 * 5 + 2 * 5 + 4 * 285
    assert row["dynamic_beside_static"]["better"] == [{"pod": "db", "thread_seconds": saved}]
    files = [Path(path) for host in hosts for path in run.last(host)["files"]]
    assert sorted(files) == sorted((directory / "simulation").iterdir())
    assert len(set(files)) == 4


def test_a_trace_with_cpus_for_pods_as_a_whole(copy_of: CopyOf, tmp_path: Path) -> None:
    """The policy dynamic has none for these; the others do not wait for it."""
    whole = {"name": "trading", "qosClass": "Guaranteed", "cpu": 4, "arrives": 0, "load": [[0, 6]]}
    pods = [
        {**whole, "containers": {"engine": 2, "proxy": 0}},
        {**whole, "name": "full", "containers": {"a": 4, "x": 0}},
    ]
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "trace.json").write_text(json.dumps({**TRACE, "pods": pods}), "utf-8")
    variables = {
        "kubelet_node_root": str(copy_of("xeon", "xeon")),
        "cpu_manager_simulation_trace": "trace.json",
        "kubelet_topology_manager_policy": "restricted",
        "kubelet_topology_manager_scope": "pod",
    }
    run = ansible_playbook(directory, PLAYBOOK, {"xeon": variables})
    assert run.status == 0, run.account()
    (row,) = run.last("xeon")["traces"]
    assert {found["policy"]: found["refused"] for found in row["policies"]} == {"none": [], "static": ["full"]}
    assert row["policies"][1]["pods"][0]["exclusive_cpu_seconds"] == 4 * 300


MEMORY = [{"numa_node": 0, "amounts": {"memory": "8Gi"}}]
WRONG: dict[str, dict[str, Any]] = {
    "traces: 'other' is no trace": {"traces": ["other"]},
    "traces: trace: version 7 is not known": {"traces": [{"version": 7}]},
    "topology: is not what cpu_topology_info returns": {"machine": None, "topology": {"online": "0-3"}},
    "give one of topology and machine": {"topology": {"online": "0-3"}},
    "delay: 90.0 is not from 0 to 60 seconds": {"delay": 90},
    "period: 0.0 is not from 1 to 3600 seconds": {"period": 0},
    "reserved_system_cpus: the machine has no CPUs 99 to reserve": {"reserved_system_cpus": "99"},
    "give numa_memory and reserved_memory together, or none of them": {"numa_memory": MEMORY},
    "reserved_memory: NUMA node 0 does not have so much memory": {
        "numa_memory": MEMORY,
        "reserved_memory": [{"numa_node": 0, "amounts": {"memory": "9Gi"}}],
    },
    "reserved_memory: no memory is reserved, and": {
        "numa_memory": MEMORY,
        "reserved_memory": [{"numa_node": 0, "amounts": {}}],
    },
    "numa_memory: there are the NUMA nodes 1, and the machine has 0; give": {
        "numa_memory": [{"numa_node": 1, "amounts": {"memory": "8Gi"}}],
        "reserved_memory": [{"numa_node": 1, "amounts": {"memory": "1Gi"}}],
    },
    "devices[0].numa_nodes: NUMA node 7 does not exist": {
        "devices": [{"resource": "x.com/gpu", "count": 1, "numa_nodes": [7]}]
    },
    "unknown CPU Manager Policy option": {"policy_options": {"full-cpus": True}},
}


def test_what_is_wrong_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    plays = []
    for message, wrong in WRONG.items():
        options: dict[str, Any] = {
            "host": "a",
            "directory": str(tmp_path / "out"),
            "machine": "1 socket x 8 cores",
            **wrong,
        }
        plays += play(
            {
                **task("policy_simulation", **{name: value for name, value in options.items() if value is not None}),
                "ignore_errors": True,
                "name": message,
            }
        )
    run = ansible_playbook(tmp_path / "run", plays, {"a": {}})
    messages = [result["msg"] for result in run.results["a"]]
    assert len(messages) == len(WRONG)
    for expected, found in zip(WRONG, messages):
        assert expected in found
    assert not (tmp_path / "out").exists()
