# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The drift report: its forms, waivers, gates, an earlier report, and the parts of a fleet that become one.

Hostile nodes are in test_report_hostile.py, nodes that are managed elsewhere in test_report_elsewhere.py.
"""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ansible_collections.kubenode.cpu_manager.tests.machines.api_server import serve
from ansible_collections.kubenode.cpu_manager.tests.machines.cgroups import V2
from ansible_collections.kubenode.cpu_manager.tests.machines.foreign import Foreign
from ansible_collections.kubenode.cpu_manager.tests.machines.impacts import node_of, pod_of
from ansible_collections.kubenode.cpu_manager.tests.machines.throttled import write_node

from .conftest import CopyOf, ansible_playbook, fingerprint
from .drift_report import DRIFT_REPORT, checks_of, read_report, report_playbook

PERIOD = {"kubelet_cpu_manager_reconcile_period": "7s"}
WHOLE_CORES = {"kubelet_cpu_manager_policy_options": {"full-pcpus-only": "true"}}
# What was not measured.
OF_CACHES = ("cache-foreign-group", "cache-partition-differs", "cache-partition-lost")
WAIVER = {"check": "reconcile-period-differs", "reason": "ticket 4711", "until": "2999-12-31"}


def test_all_forms_have_one_outcome(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {name: {"kubelet_node_root": str(copy_of("epyc", name)), **PERIOD} for name in ("a1", "a2")}
    forms = ["json", "html", "junit", "prometheus", "markdown", "table"]
    # Of a saved node it is below its root, and nothing is where the node does not have the directory.
    figures = tmp_path / "node"
    place = figures.relative_to("/")
    (Path(hosts["a1"]["kubelet_node_root"]) / place).mkdir(parents=True)
    run = report_playbook(
        tmp_path,
        "drift_report",
        hosts,
        drift_report_forms=forms,
        drift_report_node_textfile=str(figures / "node.prom"),
    )
    assert run.status == 0, run.account()
    report = read_report(tmp_path)
    assert report["summary"]["exit_status"] == 2
    assert report["summary"]["states"] == {"drift": 2}
    written = tmp_path / "drift-report"
    suites = ElementTree.parse(written / "drift.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["a1", "a2"]
    failed = {case.get("name") for case in suites[0] if case.find("failure") is not None}
    of_node = {finding["check"] for finding in report["nodes"][0]["findings"] if finding["severity"] != "note"}
    assert failed == of_node
    assert {"reconcile-period-differs", "cpuset-differs"} <= of_node
    metrics = (written / "drift.prom").read_text("utf-8")
    assert re.search(r'kubenode_cpu_nodes\{fleet="default",state="drift"\} 2\n', metrics)
    assert "reconcile-period-differs" in (written / "drift.md").read_text("utf-8")
    assert re.search(r"^2 nodes: 2 drift; .*outcome drift$", run.output, re.MULTILINE)
    # Two equal nodes are one row.
    assert re.search(r"^a\[1-2\] +drift", run.output, re.MULTILINE)
    textfile = Path(hosts["a1"]["kubelet_node_root"]) / place / "node.prom"
    assert "kubenode_cpu_mispinned_containers 1\n" in textfile.read_text("utf-8")
    assert not figures.exists()


def test_nodes_are_looked_at_for_isolation_throttling_and_impact(tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {}
    looks = {
        "counted": (["throttling"], 0),
        "both": (["throttling", "isolation", "trial"], 1),
        "neither": ([], 5),
        "pods": (["impact"], 5),
        "silent": (["impact"], 5),
        "telling": (["impact"], 5),
    }
    for name, (look_at, seconds) in looks.items():
        write_node(tmp_path / name, V2)
        hosts[name] = {
            "kubelet_node_root": str(tmp_path / name),
            "drift_report_look_at": look_at,
            "drift_report_look_seconds": seconds,
        }
    before = fingerprint(tmp_path / "counted")
    for name in ("pods", "silent"):
        hosts[name].update(WHOLE_CORES, kubelet_kubeconfig=str(tmp_path / name / "kubeconfig"))
    hosts["telling"].update(WHOLE_CORES, drift_report_impact_from="nodes")
    with serve() as server:
        for kind, found in (("Node", node_of("pods")), ("Pod", pod_of("odd", "pods", "3"))):
            server.add({"apiVersion": "v1", "kind": kind, **found})
        server.kubeconfig(tmp_path / "pods/kubeconfig")
        run = report_playbook(
            tmp_path,
            "drift_report",
            hosts,
            drift_report_forms=["json", "html", "junit", "markdown", "table"],
            drift_report_redact=True,
        )
    assert run.status == 0, run.account()
    assert fingerprint(tmp_path / "counted") == before
    nodes = {node["host"]: node for node in read_report(tmp_path)["nodes"]}
    of_looks = {
        name: {finding["check"] for finding in node["findings"] if finding["source"].endswith("_info")}
        for name, node in nodes.items()
    }
    # Of a saved node, seconds say nothing of what it counts.
    assert of_looks == {
        "counted": {"exclusive-cpus-with-quota", "container-throttled"},
        "both": {"exclusive-cpus-with-quota"},
        "neither": set(),
        "pods": {"pods-would-be-refused"},
        "silent": set(),
        "telling": set(),
    }
    assert "impact-unmeasured" in checks_of(nodes["silent"])
    (workload,) = nodes["pods"]["looks"]["impact"]["workloads"]
    assert (workload["workload"], workload["reason"], workload["refused"]) == (
        "Pod " + "/".join(sha256(part).hexdigest()[:8] for part in (b"shop", b"odd")),
        "SMTAlignmentError",
        1,
    )
    # What it has in its checkpoint and its cgroups.
    told = nodes["telling"]["looks"]["impact"]
    assert (told["is_measured"], told["changes"], told["afterwards"]["exclusive"]) == (True, True, 2)
    assert "pods-would-be-refused" in (tmp_path / "drift-report/drift.md").read_text("utf-8")
    assert {"isolation-unmeasured", "throttling-unmeasured", "trial-unmeasured"} <= set(checks_of(nodes["both"]))
    # The names of containers are hidden.
    assert {row["container"] for row in nodes["counted"]["looks"]["throttling"]["containers"]} == {
        "/".join(sha256(part).hexdigest()[:8] for part in name.split(b"/"))
        for name in (b"shop/db-0/server", b"shop/web-1/app")
    }
    assert nodes["both"]["looks"]["isolation"]["is_measured"] is False
    assert "looks" not in nodes["neither"]
    written = {
        name: json.loads((tmp_path / "drift-report/nodes" / (name + ".json")).read_text("utf-8"))["looks"]
        for name in looks
    }
    assert {name: sorted(found) for name, found in written.items()} == {
        name: sorted(look_at) for name, (look_at, _seconds) in looks.items()
    }
    assert "invocation" not in written["counted"]["throttling"]
    suites = ElementTree.parse(tmp_path / "drift-report/drift.xml").getroot()
    skipped = {
        suite.get("name"): {case.get("name") for case in suite if case.find("skipped") is not None} for suite in suites
    }
    of_throttling = {"exclusive-cpus-with-quota", "limit-below-request"}
    of_housekeeping = {"host-on-exclusive-cpus", "housekeeping-unfinished", "kernel-line-not-booted"}
    of_trials = {"kubelet-refuses-start", "next-kubelet-refuses-start"}
    others = {"exclusive-cpus-disturbed", *of_housekeeping, *OF_CACHES, *of_trials}
    assert skipped == {
        "counted": {*others, "pods-would-be-refused"},
        "both": {*others, "pods-would-be-refused"},
        "neither": {*others, *of_throttling, "pods-would-be-refused"},
        "pods": {*others, *of_throttling},
        "silent": {*others, *of_throttling, "pods-would-be-refused"},
        "telling": {*others, *of_throttling},
    }
    assert "exclusive-cpus-with-quota" in run.output


def test_waivers_baseline_and_gates(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {"good": {"kubelet_node_root": str(copy_of("edge", "good"))}}
    config = Path(hosts["good"]["kubelet_node_root"]) / "var/lib/kubelet/cpu_manager_state"
    config.unlink()
    first = report_playbook(tmp_path / "first", "drift_report", hosts)
    assert first.status == 0, first.account()
    before = read_report(tmp_path / "first")
    baseline = str(tmp_path / "first/drift-report/drift.json")
    assert before["summary"]["gone"] is None

    hosts["good"].update(PERIOD)
    drifted = report_playbook(
        tmp_path / "drifted", "drift_report", hosts, drift_report_baseline=baseline, drift_report_fail_on="drift"
    )
    assert drifted.status != 0
    report = read_report(tmp_path / "drifted")
    since = {finding["check"]: finding["since"] for finding in report["nodes"][0]["findings"]}
    assert since["reconcile-period-differs"] == "new"
    assert set(since.values()) <= {"new", "known"}
    assert (report["summary"]["gone"], report["gone"]) == (0, [])

    hosts["good"]["kubelet_cpu_manager_reconcile_period"] = "10s"
    mended = report_playbook(
        tmp_path / "mended",
        "drift_report",
        hosts,
        drift_report_baseline=str(tmp_path / "drifted/drift-report/drift.json"),
        drift_report_history=[str(tmp_path)],
        drift_report_forms=["json", "table", "trend", "markdown"],
    )
    assert re.search(r"^reconcile-period-differs +0 +1 +0$", mended.output, re.MULTILINE), mended.output
    assert "Grade A: 1 of 1 node as wanted.\n" in mended.output
    assert "| `reconcile-period-differs` | 0 | 1 | 0 |\n" in (tmp_path / "mended/drift-report/drift.md").read_text()
    assert read_report(tmp_path / "mended")["gone"] == [
        {
            "host": "good",
            "check": "reconcile-period-differs",
            "subject": "cpu_manager_reconcile_period",
        }
    ]
    assert "good: gone: reconcile-period-differs cpu_manager_reconcile_period\n" in mended.output
    hosts["good"].update(PERIOD)

    # The inventory has the waiver for this host.
    hosts["good"]["drift_report_waivers"] = [WAIVER]
    # Where no form shows earlier reports, nobody reads them.
    unread = {"drift_report_history": ["/nowhere"], "drift_report_fail_on": "drift"}
    waived = report_playbook(tmp_path / "waived", "drift_report", hosts, **unread)
    assert waived.status == 0, waived.account()
    (node,) = read_report(tmp_path / "waived")["nodes"]
    assert [finding["waived"] for finding in node["findings"] if finding["check"] == WAIVER["check"]] == [
        {"reason": "ticket 4711", "until": "2999-12-31"}
    ]
    hosts["good"]["drift_report_waivers"] = [{**WAIVER, "until": "2020-01-01"}]
    expired = report_playbook(tmp_path / "expired", "drift_report", hosts, drift_report_fail_on="drift")
    assert expired.status != 0
    assert read_report(tmp_path / "expired")["summary"]["outcome"] == "drift"


def test_a_gate_is_a_task_of_its_own_and_says_whose_failure_it_is(copy_of: CopyOf, tmp_path: Path) -> None:
    """Ansible counts the failure of a task that is run once at the first host of the play, which is as wanted here."""
    hosts: dict[str, dict[str, Any]] = {name: {"kubelet_node_root": str(copy_of("edge", name))} for name in "ab"}
    for variables in hosts.values():
        (Path(variables["kubelet_node_root"]) / "var/lib/kubelet/cpu_manager_state").unlink()
    hosts["b"].update(PERIOD)
    run = ansible_playbook(tmp_path, "kubenode.cpu_manager.verify", hosts)
    assert run.status == 2, run.account()
    # The playbook verify is the report with a line for each node and this gate.
    assert (
        "\nb: drift: reconcile-period-differs (cpu_manager_reconcile_period: 10s, wanted 7s)\na: nothing" in run.output
    )
    assert not list(tmp_path.rglob("drift.*"))
    failed = [(host, result) for host, results in run.results.items() for result in results if is_failed(result)]
    ((host, gate),) = failed
    assert host == "a"
    assert gate["task"].endswith(": Gate: fail if the whole fleet does not pass drift_report_fail_on")
    assert re.fullmatch(
        r"the fleet does not pass: 2 nodes: 1 nothing wanted, 1 drift; .+; drift_report_fail_on is drift: see b;"
        r" Ansible counts this failure at a, whose own state is nothing wanted",
        gate["msg"],
    )
    passed = report_playbook(tmp_path / "passed", "drift_report", hosts, drift_report_fail_on="danger")
    assert passed.status == 0, passed.account()


def is_failed(result: dict[str, Any]) -> bool:
    return bool(result["outcome"] == "failed")


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"drift_report_fail_on": "always"}, "is not possible; take one of danger, drift, unread, never"),
        ({"drift_report_forms": ["pdf"]}, "pdf"),
        ({"drift_report_look_at": ["moon"]}, "is not possible; take one of isolation, throttling, housekeeping"),
        (
            {"drift_report_look_at": ["isolation"], "drift_report_look_seconds": 0},
            "look_seconds: 0 seconds are no time for isolation; give 1 to 3600",
        ),
        ({"drift_report_baseline": "/nowhere.json"}, "/nowhere.json: cannot be read"),
        (
            {"drift_report_waivers": [{**WAIVER, "check": "no-such"}]},
            "drift_report_waivers[0]: there is no check no-such",
        ),
        ({"drift_report_waivers": [{**WAIVER, "until": "soon"}]}, "drift_report_waivers[0].until"),
    ],
)
def test_what_is_wanted_wrong_is_refused(
    copy_of: CopyOf, tmp_path: Path, variables: dict[str, Any], message: str
) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("edge", "node"))}}
    run = report_playbook(tmp_path, "drift_report", hosts, **variables)
    assert run.status != 0
    assert message in " ".join(run.output.split())
    # A waiver is that of a node, so there is a report of the node that was not read.
    written = {path.name for path in tmp_path.glob("drift-report/*")}
    assert written == ({"nodes", "drift.json", "drift.html"} if "drift_report_waivers" in variables else set())


def test_a_report_of_nodes_none_of_which_can_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "sys").mkdir(parents=True)
    hosts: dict[str, dict[str, Any]] = {
        "broken": {"kubelet_node_root": str(broken)},
        "linked": {"kubelet_node_root": str(broken)},
        "away": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
    }
    # Whoever has the directories can put anything there, and neither stops the report nor moves a file of it.
    own, linked = Foreign(broken / "own"), Foreign(broken / "linked")
    own.put("fifo")
    linked.directory.rmdir()
    linked.directory.symlink_to(linked.journal.parent)
    for name, foreign in (("broken", own), ("away", own), ("linked", linked)):
        hosts[name]["drift_report_node_textfile"] = "/%s" % foreign.figures.relative_to(broken)
    run = report_playbook(tmp_path, "drift_report", hosts, drift_report_forms=["json", "table"])
    assert run.status != 0
    assert {node["host"]: node["state"] for node in read_report(tmp_path)["nodes"]} == {
        "broken": "failed",
        "linked": "failed",
        "away": "unreachable",
    }
    # Each host fails once, and says why. That its text file was written does not change that.
    for host in hosts:
        (failed,) = (result for result in run.results[host] if result["outcome"] == "failed")
        assert failed["msg"] != ""
    own.check(b"\nkubenode_cpu_look_success 0\n")
    linked.check_journal()
    assert re.search(r"^3 nodes: .*2 failed", run.output, re.MULTILINE)


def test_parts_of_a_fleet_become_one_report(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts: dict[str, dict[str, Any]] = {
        name: {"kubelet_node_root": str(copy_of("edge", name))} for name in ("eu", "us", "ap", "missing")
    }
    for part in ("eu", "us", "ap"):
        run = ansible_playbook(tmp_path / part, DRIFT_REPORT, hosts, "--limit", part)
        assert run.status == 0, run.account()
    # A part that was cut off, and a file that is of another node.
    (tmp_path / "ap/drift-report/nodes/ap.json").write_text('{"kind": "kubenode', encoding="utf-8")
    shutil.copy(tmp_path / "eu/drift-report/nodes/eu.json", tmp_path / "us/drift-report/nodes/other.json")
    sources = [str(tmp_path / part) for part in ("eu", "us", "ap")]
    whole = report_playbook(
        tmp_path / "whole", "report", hosts, drift_report_sources=sources, drift_report_fail_on="danger"
    )
    assert whole.status != 0
    report = read_report(tmp_path / "whole")
    states = {node["host"]: node["state"] for node in report["nodes"]}
    assert states == {"eu": "refused", "us": "refused", "ap": "missing", "missing": "missing"}
    assert sorted(Path(problem["file"]).name for problem in report["problems"]) == ["ap.json", "other.json"]
    assert whole.output.count("ap.json") == 1

    old = report_playbook(
        tmp_path / "old", "report", hosts, drift_report_sources=sources[:1], drift_report_max_age="0s"
    )
    # By default, too: a node of which nothing is known is never clean.
    assert old.status != 0, old.account()
    assert "1 stale" in old.results["localhost"][-1]["msg"]
    assert {node["state"] for node in read_report(tmp_path / "old")["nodes"]} == {"missing", "stale"}

    read = report_playbook(tmp_path / "read", "report", {"us": hosts["us"]}, drift_report_sources=sources[1:2])
    assert read.status != 0, read.account()
    assert "1 result file not used" in read.results["localhost"][-1]["msg"]
    (tmp_path / "us/drift-report/nodes/other.json").unlink()
    # What differs fails only where that is wanted.
    read = report_playbook(tmp_path / "read", "report", {"us": hosts["us"]}, drift_report_sources=sources[1:2])
    assert read.status == 0, read.account()
    assert read_report(tmp_path / "read")["summary"]["outcome"] == "danger"


def test_parts_of_two_fleets_are_not_mixed(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("edge", "node"))}}
    for fleet in ("east", "west"):
        run = report_playbook(tmp_path / fleet, "drift_report", hosts, drift_report_fleet=fleet)
        assert run.status == 0, run.account()
        assert read_report(tmp_path / fleet)["fleet"] == fleet
    sources = [str(tmp_path / fleet) for fleet in ("east", "west")]
    mixed = report_playbook(tmp_path / "mixed", "report", hosts, drift_report_sources=sources)
    assert mixed.status != 0
    (problem,) = read_report(tmp_path / "mixed")["problems"]
    assert problem["file"] == str(tmp_path / "west/drift-report/nodes/node.json")
    assert problem["text"].startswith('is of the fleet "west", and ')
    assert mixed.output.count("west/drift-report/nodes/node.json") == 1
    (tmp_path / "east/drift-report/nodes/node.json").unlink()
    west = report_playbook(tmp_path / "west", "report", hosts, drift_report_sources=sources, drift_report_fleet="west")
    assert west.status == 0, west.account()
    assert read_report(tmp_path / "west")["problems"] == []


def test_names_of_pods_are_hidden(copy_of: CopyOf, tmp_path: Path) -> None:
    hosts = {"node": {"kubelet_node_root": str(copy_of("epyc", "node"))}}
    shown = report_playbook(tmp_path / "shown", "drift_report", hosts)
    hidden = report_playbook(tmp_path / "hidden", "drift_report", hosts, drift_report_redact=True)
    assert (shown.status, hidden.status) == (0, 0), hidden.account()
    texts, checks = [], []
    for name in ("shown", "hidden"):
        files = [path for path in (tmp_path / name / "drift-report").rglob("*") if path.is_file()]
        texts.append("".join(path.read_text("utf-8") for path in files))
        checks.append([finding["check"] for finding in read_report(tmp_path / name)["nodes"][0]["findings"]])
    assert "postgres" in texts[0]
    assert "postgres" not in texts[1] + hidden.output
    assert checks[0] == checks[1]
    digest = sha256(b"postgres").hexdigest()[:8]
    assert digest in texts[1]
