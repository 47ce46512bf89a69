# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A second drift report in the same directory: what an earlier run found counts for no node that could not be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .conftest import CopyOf, ansible_playbook, play, task
from .drift_report import DRIFT_REPORT, read_report, report_playbook

NOT_DEFINED = "{{ no_such_variable }}"
# Why a node is not read in the second run, and the state that it is in then.
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "setting": ({"kubelet_cpu_manager_policy": NOT_DEFINED}, "failed"),
    "waiver": ({"drift_report_waivers": [{"check": "no-such", "reason": "x", "until": "2999-12-31"}]}, "failed"),
    "option": ({"drift_report_redact": "perhaps"}, "failed"),
    # The task of such a host fails before anything of it runs.
    "argument": ({"kubelet_node_root": NOT_DEFINED}, "missing"),
    "default": ({"drift_report_waivers": NOT_DEFINED}, "missing"),
}


def test_what_an_earlier_run_found_does_not_count(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {}
    for name in ("fine", *WRONG):
        root = copy_of("edge", name)
        (root / "var/lib/kubelet/cpu_manager_state").unlink()
        hosts[name] = {"kubelet_node_root": str(root)}
    first = report_playbook(tmp_path, "drift_report", hosts)
    assert first.status == 0, first.account()
    assert read_report(tmp_path)["summary"]["states"] == {"nothing wanted": len(hosts)}

    for name, (variables, _state) in WRONG.items():
        hosts[name].update(variables)
    # What a run that was killed left.
    left = tmp_path / "drift-report/nodes/fine.json.77~"
    left.write_text("{")
    os.utime(left, (0, 0))
    second = report_playbook(tmp_path, "drift_report", hosts)
    assert second.status != 0
    assert not left.exists()
    report = read_report(tmp_path)
    nodes = {node["host"]: node for node in report["nodes"]}
    expected = {name: state for name, (_variables, state) in WRONG.items()}
    assert {name: node["state"] for name, node in nodes.items()} == {**expected, "fine": "nothing wanted"}
    assert report["summary"]["outcome"] == "unknown"
    assert "no_such_variable" in nodes["setting"]["message"]
    assert "waivers[0]: there is no check no-such" in nodes["waiver"]["message"]
    assert "perhaps" in nodes["option"]["message"]


def test_another_run_in_the_same_directory_does_not_disturb_a_report(copy_of: CopyOf, tmp_path: Path) -> None:
    """It begins while the first one has read its node and has not yet made its report."""
    place = {"directory": str(tmp_path / "there"), "hosts": ["node"], "forms": ["json"]}
    own = {**place, "discard": ["node"]}
    tasks = [
        {**task("fleet_report", "Begin", **place, validate_only=True), "register": "first"},
        task("node_report", "Look", directory=place["directory"], root="{{ root }}"),
        {**task("fleet_report", "Begin another", **own, validate_only=True), "register": "second"},
        task("fleet_report", "Report", **own, began="{{ first.began }}"),
        # The other one cannot read the node.
        task("fleet_report", "Report in the future", **own, began="2999-01-01T00:00:00Z"),
        {**task("fleet_report", "Report wrongly", **own, began="today"), "ignore_errors": True},
    ]
    run = ansible_playbook(tmp_path, play(*tasks), {"node": {"root": str(copy_of("edge", "node"))}})
    assert run.status == 0, run.account()
    found = {result["task"]: result for result in run.results["node"]}
    assert found["Report"]["summary"]["states"] == {"refused": 1}
    assert found["Report in the future"]["summary"]["states"] == {"missing": 1}
    assert found["Report wrongly"]["msg"].startswith("began: 'today' is not a time such as ")
    assert found["Begin another"]["began"] >= found["Begin"]["began"]


def test_a_result_that_cannot_be_written_stops_the_run(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("edge", "node"))}}
    # A directory stands for what even root may not replace with a file.
    (tmp_path / "drift-report/nodes/node.json").mkdir(parents=True)
    run = report_playbook(tmp_path, "drift_report", hosts)
    assert run.status != 0
    assert "nodes/node.json: cannot be written" in " ".join(run.output.split())
    assert read_report(tmp_path)["summary"]["states"] == {"missing": 1}


def test_a_host_that_failed_before_the_role_is_missing(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {
        name: {"kubelet_node_root": str(copy_of("edge", name))} for name in ("fine", "fails")
    }
    first = report_playbook(tmp_path, "drift_report", hosts)
    assert first.status == 0, first.account()
    fail = {"name": "Fail", "ansible.builtin.fail": {}, "when": "inventory_hostname == 'fails'"}
    role = {"name": "Report", "ansible.builtin.import_role": {"name": "kubenode.cpu_manager.drift_report"}}
    second = ansible_playbook(tmp_path, play(fail, role), hosts)
    assert second.status != 0
    states = {node["host"]: node["state"] for node in read_report(tmp_path)["nodes"]}
    assert states["fails"] == "missing"
    assert states["fine"] != "missing"


def test_the_hosts_that_a_whole_report_has_to_have(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {name: {"kubelet_node_root": str(copy_of("edge", name))} for name in ("here", "away")}
    run = ansible_playbook(tmp_path, DRIFT_REPORT, hosts, "--limit", "here")
    assert run.status == 0, run.account()
    (tmp_path / "drift-report/drift.json").unlink()

    mistyped = report_playbook(tmp_path, "report", hosts, cpu_manager_hosts=["wrokers", "!x"])
    assert mistyped.status != 0
    said = mistyped.last("localhost")["msg"]
    assert said.startswith("cpu_manager_hosts, wrokers,!x, matches no host of the inventory")
    assert not (tmp_path / "drift-report/drift.json").exists()

    # Without an inventory, nobody knows which nodes there should be.
    expected = {"away": {"away": "missing"}, "all": {"here": "refused", "away": "missing"}, "none": {"here": "refused"}}
    for pattern, states in expected.items():
        report_playbook(tmp_path, "report", {} if pattern == "none" else hosts, cpu_manager_hosts=pattern)
        assert {node["host"]: node["state"] for node in read_report(tmp_path)["nodes"]} == states
