# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks on a fleet with nodes that fail or cannot be reached."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import fingerprint
from .demo_fleet import DRIFT_REPORT, NODES, ROLLOUT, Fleet

# Where nobody answers.
AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


@pytest.fixture
def trouble(tmp_path: Path, pristine_fleet: Path, installed: Path) -> Fleet:
    """Return a fleet with a node that fails, one that cannot be reached, and one that would like to be a page."""
    fleet = Fleet(tmp_path, pristine_fleet, installed)
    hostile = fleet.root / "edge/etc/kubernetes/kubelet/config.json"
    configuration = json.loads(hostile.read_text(encoding="utf-8"))
    configuration["cpuManagerPolicyOptions"] = {"<script>alert('&amp;')</script>": "<b>"}
    hostile.write_text(json.dumps(configuration), encoding="utf-8")
    fails = fleet.root / "epyc/etc/kubernetes/kubelet-config.yaml"
    fails.write_text('apiVersion: <i>\nkind: "&lt;"\n', encoding="utf-8")
    fleet.hosts["xeon"].update(AWAY)
    return fleet


@pytest.mark.needs("ssh")
def test_nodes_in_trouble_are_in_the_report(trouble: Fleet) -> None:
    before = fingerprint(trouble.root)
    title = {"drift_report_title": 'Fleet <A> & "B"'}
    run = trouble.run(DRIFT_REPORT, "report", "--check", "-e", json.dumps(title))
    assert run.status != 0
    assert fingerprint(trouble.root) == before

    nodes = trouble.nodes("report")
    states = {"xeon": "unreachable", "epyc": "refused", "edge": "refused"}
    assert {host: node["state"] for host, node in nodes.items()} == states
    # ssh may die before Ansible has written to it, and its own words are lost then.
    assert "127.0.0.1" in nodes["xeon"]["message"]
    # What is found wrong is reported, and no failure.
    (row,) = trouble.answers("report")["epyc"]["drift"]
    assert (row["subject"], "found '<i>'" in row["found"]) == ("configuration", True)
    assert [run.last(node)["outcome"] for node in ("epyc", "edge")] == ["ok", "ok"]
    for host, node in nodes.items():
        assert re.search(r"^%s +%s " % (host, node["state"]), run.output, re.MULTILINE)
    # The machine is known where the configuration cannot be read.
    assert nodes["epyc"]["group"] is not None
    assert nodes["xeon"]["group"] is None
    page = trouble.page("report")
    assert "Fleet &lt;A&gt; &amp; &#34;B&#34;" in page
    assert "<script>alert" not in page


def test_a_rollout_ends_at_the_first_node_that_fails(trouble: Fleet) -> None:
    before = fingerprint(trouble.root)
    trouble.hosts["xeon"]["ansible_connection"] = "local"
    run = trouble.run(ROLLOUT, "rollout", "-e", "cpu_manager_hosts=epyc:edge:xeon")
    assert run.status != 0
    assert run.last("epyc")["outcome"] == "failed"
    # All were planned, the reasons of all are shown, and nothing more.
    assert run.last("epyc")["task"].endswith("Stop if the node cannot be changed")
    for node in ("edge", "xeon"):
        assert any("refusals" in result for result in run.results[node])
        assert not any("Change" in result["task"] for result in run.results[node])
    assert fingerprint(trouble.root) == before


def test_containers_get_their_cpus_where_another_node_of_the_batch_fails(
    tmp_path: Path, pristine_fleet: Path, installed: Path
) -> None:
    """The run ends with the rescue of the node that fails."""
    fleet = Fleet(tmp_path, pristine_fleet, installed)
    fleet.hosts["xeon"].update(kubelet_manage_service=True, kubelet_service="no-such-service")
    run = fleet.run(ROLLOUT, "batch", "-e", "cpu_manager_hosts=epyc:xeon", "-e", "cpu_manager_serial=100%")
    assert "no-such-service" in run.last("xeon")["msg"]
    assert run.last("xeon")["outcome"] == "failed"
    assert run.changes("epyc")[-1] == "Write the cpusets of containers as the checkpoint says", run.account()


def test_a_mistyped_variable_ends_it(trouble: Fleet) -> None:
    before = fingerprint(trouble.root)
    trouble.hosts["xeon"].update(ansible_connection="local", kubelet_cpu_manager_polcy="none")
    # One of kubespray's.
    trouble.hosts["edge"]["kubelet_systemd_hardening"] = True
    run = trouble.run(ROLLOUT, "mistyped", "-e", "cpu_manager_hosts=edge:xeon")
    assert run.status != 0
    message = run.last("xeon")["msg"]
    assert message.startswith("xeon: kubelet_cpu_manager_polcy is no variable of this collection")
    assert "kubelet_cpu_manager_policy is: rename it, or remove it" in message
    assert not [result for result in run.results["edge"] if result["outcome"] == "failed"]
    assert fingerprint(trouble.root) == before


def test_a_host_that_fails_before_it_is_planned_does_not_hide_the_others(trouble: Fleet) -> None:
    trouble.hosts["xeon"].update(ansible_connection="local", kubelet_cpu_manager_polcy="none")
    scope = ["-e", "cpu_manager_hosts=edge:xeon", "-e", "cpu_manager_max_fail_percentage=100"]
    run = trouble.run(ROLLOUT, "beside", "--check", *scope)
    assert run.last("xeon")["msg"].startswith("xeon: kubelet_cpu_manager_polcy is no variable")
    assert not [result for result in run.results["edge"] if result["outcome"] == "failed"], run.account()
    (told,) = [result for result in run.results["edge"] if result["task"].endswith("Show the plan")]
    assert "edge" in str(told["msg"])


@pytest.mark.needs("ssh")
def test_a_fleet_that_cannot_be_reached_has_a_report(trouble: Fleet) -> None:
    for node in NODES:
        trouble.hosts[node] = AWAY
    run = trouble.run(DRIFT_REPORT, "away")
    assert run.status != 0
    assert [node["state"] for node in trouble.nodes("away").values()] == ["unreachable"] * len(NODES)
    # Each once; the first one of them also writes the report.
    for node in NODES:
        assert [result["outcome"] for result in run.results[node]].count("failed") == 1
