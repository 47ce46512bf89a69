# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks on the demo's fleet, with the collection built and installed as a user does it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine

from .conftest import CHECKOUT, DEMO_FLEET, Run, ansible_playbook, fingerprint

DEMO = DEMO_FLEET.parent
NODES = ("xeon", "epyc", "edge")

DRIFT_REPORT = "kubenode.cpu_manager.drift_report"
ROLLOUT = "kubenode.cpu_manager.rollout"


# --- runs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the collection is installed in."""
    directory = tmp_path_factory.mktemp("installed")

    def galaxy(*arguments: str) -> None:
        command = ["ansible-galaxy", "collection", *arguments]
        # A user has no checkout where Ansible would find the collection.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment["HOME"] = str(directory)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=directory, env=environment)

    galaxy("build", "--output-path", str(directory), str(CHECKOUT))
    (archive,) = directory.glob("kubenode-cpu_manager-*.tar.gz")
    # Saved nodes are not drained.
    galaxy("install", "--offline", "--no-deps", "-p", str(directory / "collections"), str(archive))
    return directory / "collections"


class Fleet:
    """A copy of the demo's fleet, and the playbooks on it."""

    def __init__(self, directory: Path, pristine: Path, collections: Path) -> None:
        self.directory = directory
        self.collections = collections
        self.root = directory / "fleet"
        shutil.copytree(pristine, self.root, symlinks=True)
        self.hosts: dict[str, dict[str, Any]] = {node: {"kubelet_node_root": str(self.root / node)} for node in NODES}

    def run(self, playbook: str, name: str, *arguments: str, **keywords: Any) -> Run:
        """Run a playbook with what the demo wants of its nodes; where it runs is named after the step."""
        inventory = ("-i", str(DEMO / "inventory.yml"))
        return ansible_playbook(
            self.directory / name,
            playbook,
            self.hosts,
            *inventory,
            *arguments,
            collections=self.collections,
            **keywords,
        )

    def report(self, name: str) -> dict[str, Any]:
        """The report of a step, as JSON."""
        report: dict[str, Any] = json.loads(self._written(name, "drift.json"))
        return report

    def nodes(self, name: str) -> dict[str, dict[str, Any]]:
        """The nodes in the report of a step, by host."""
        return {node["host"]: node for node in self.report(name)["nodes"]}

    def answers(self, name: str) -> dict[str, dict[str, Any]]:
        """What the nodes answered in a step, by host."""
        return {host: json.loads(self._written(name, "nodes/%s.json" % host))["answer"] for host in NODES}

    def page(self, name: str) -> str:
        """The report as a page of a step."""
        return self._written(name, "drift.html")

    def _written(self, name: str, path: str) -> str:
        return (self.directory / name / "drift-report" / path).read_text(encoding="utf-8")


class Story(NamedTuple):
    """The fleet, and its files after each step."""

    fleet: Fleet
    runs: dict[str, Run]
    files: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, pristine_fleet: Path, installed: Path) -> Story:
    """From drift to the wanted state, as an operator would do it."""
    fleet = Fleet(tmp_path_factory.mktemp("story"), pristine_fleet, installed)
    steps = {
        "before": (DRIFT_REPORT, "--check"),
        "preview": (ROLLOUT, "--check", "--diff"),
        "rollout": (ROLLOUT, "--diff"),
        "after": (DRIFT_REPORT,),
        "again": (ROLLOUT, "--diff"),
    }
    runs, files = {}, {"": fingerprint(fleet.root)}
    for name, (playbook, *arguments) in steps.items():
        runs[name] = fleet.run(playbook, name, *arguments)
        files[name] = fingerprint(fleet.root)
    return Story(fleet, runs, files)


def told(run: Run, host: str) -> list[tuple[str, bool, object]]:
    """What the tasks of a host tell an operator: their names, whether they changed something, and how.

    Not those with the journal: in check mode none finds what the one before it would have written.
    """
    return [
        (result["task"], result["changed"], result.get("diff"))
        for result in run.results[host]
        if "journal" not in result or "drift" in result
    ]


# --- the page ------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The tags, the attributes and the styles of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.styles = ""
        self.is_style = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.is_style = tag == "style"

    def handle_data(self, data: str) -> None:
        self.styles += data if self.is_style else ""

    def handle_endtag(self, tag: str) -> None:
        self.is_style = self.is_style and tag != "style"


def drawn_cpus(boxes: list[dict[str, Any]]) -> list[int]:
    """The CPUs in the boxes of a picture."""
    found: list[int] = []
    for box in boxes:
        found += box["core"] if "core" in box else drawn_cpus(box["members"])
    return found


# --- from drift to the wanted state --------------------------------------------------------------


def test_report_says_what_the_module_said(story: Story) -> None:
    assert story.runs["before"].status == 0, story.runs["before"].account()
    assert story.files["before"] == story.files[""]
    report = story.fleet.report("before")
    assert report["summary"]["states"] == {"refused": 2, "drift": 1}
    answers = story.fleet.answers("before")
    for name, node in story.fleet.nodes("before").items():
        assert answers[name]["status"] == "drift"
        subjects = [row["subject"] for row in answers[name]["drift"]]
        assert set(subjects) <= {finding["subject"] for finding in node["findings"]}
        assert re.search(r"^%s +%s +[a-z]+-[a-z-]+ " % (name, node["state"]), story.runs["before"].output, re.MULTILINE)


@pytest.mark.parametrize("step", ["before", "after"])
def test_the_report_draws_every_cpu_and_has_its_owner(story: Story, step: str) -> None:
    groups, nodes, answers = story.fleet.report(step)["groups"], story.fleet.nodes(step), story.fleet.answers(step)
    uses = set()
    for name in NODES:
        cpus = {use: CPUSet.parse(text) for use, text in answers[name]["cpus"].items()}
        drawn = groups[nodes[name]["group"]]["map"]
        assert sorted(drawn_cpus(drawn["boxes"])) == list(cpus["online"])
        assert drawn["offline"] == list(cpus["offline"])
        owned = [CPUSet.parse(owned) for _use, _owner, owned in nodes[name]["owners"]]
        assert sum(map(len, owned)) == len(cpus["online"]) + len(cpus["offline"])
        uses |= {use for use, _owner, _owned in nodes[name]["owners"]}
    assert uses == {"offline", "exclusive", "reserved", "shared"}


@pytest.mark.parametrize("step", ["before", "after"])
def test_page_needs_nothing_else(story: Story, step: str) -> None:
    page = Page(story.fleet.page(step))
    assert not page.tags & {"link", "img", "iframe", "object", "embed", "base"}
    attributes = {name for name, _value in page.attributes}
    assert not attributes & {"src", "srcset", "action", "data", "style"}
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert not re.search(r"url\(|@import", page.styles)


def test_check_mode_tells_what_the_rollout_does(story: Story) -> None:
    preview, rollout = story.runs["preview"], story.runs["rollout"]
    assert (preview.status, rollout.status) == (0, 0), preview.account() + rollout.account()
    assert story.files["preview"] == story.files[""]
    assert story.files["rollout"] != story.files[""]
    for node in NODES:
        assert told(preview, node) == told(rollout, node)
        diffs = [result["diff"] for result in rollout.results[node] if result["changed"]]
        assert diffs != []
        assert all(diff["before"] != diff["after"] for diff in diffs)


def test_after_the_rollout_the_fleet_is_clean(story: Story) -> None:
    assert story.runs["after"].status == 0
    assert {node["state"] for node in story.fleet.nodes("after").values()} == {"clean"}
    for node in story.fleet.answers("after").values():
        assert (node["status"], node["drift"], node["actions"]) == ("clean", [], [])
        # The wanted state, in the form in which it is wanted.
        assert {name: node["found"][name] for name in node["wanted"]} == node["wanted"]


DATABASE = "orders/postgres-0/postgres"


def test_a_container_gets_back_its_cpus(story: Story) -> None:
    before, after = (story.fleet.answers(step)["epyc"] for step in ("before", "after"))
    wanted, found = "12-15,76-79", "0-127"
    assert {"subject": "container " + DATABASE, "wanted": wanted, "found": found} in before["drift"]
    assert before["actions"][-1] == "reconcile"
    assert before["enforcement"]["containers"] == {"kept": 4, "different": 1, "skipped": 3}
    assert after["enforcement"]["containers"] == {"kept": 5, "different": 0, "skipped": 3}
    for report in (before, after):
        assert {"use": "exclusive", "owner": DATABASE, "cpus": wanted} in report["owners"]
    (written,) = [
        result for result in story.runs["rollout"].results["epyc"] if "cpusets" in result["task"] and result["changed"]
    ]
    assert written["counts"] == {"kept": 4, "written": 1, "failed": 0, "skipped": 3}
    assert "+%s: %s\n" % (DATABASE, wanted) in story.runs["rollout"].output
    assert all(DATABASE in story.fleet.page(step) for step in ("before", "after"))
    assert "container " + DATABASE in story.fleet.page("before")


def test_a_second_rollout_changes_nothing(story: Story) -> None:
    assert story.runs["again"].status == 0
    assert story.files["again"] == story.files["after"] == story.files["rollout"]
    for node in NODES:
        assert story.runs["again"].results[node] != []
        assert not any(result["changed"] for result in story.runs["again"].results[node])
    assert len(re.findall(r"changed=0 ", story.runs["again"].output)) == len(NODES)


# --- nodes that are not well ---------------------------------------------------------------------


# Where nobody answers.
AWAY = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}


@pytest.fixture
def trouble(tmp_path: Path, pristine_fleet: Path, installed: Path) -> Fleet:
    """A fleet with a node that fails, one that cannot be reached, and one that would like to be a page."""
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


# -e name=false, and surveys, give a text.
@pytest.mark.parametrize("skip", [True, False, "false"])
def test_hosts_without_a_kubelet(story: Story, tmp_path: Path, skip: bool | str) -> None:
    """A bastion is named, and left out where that is wanted; it is too small for the wanted reservation, too."""
    fleet = Fleet(tmp_path, story.fleet.root, story.fleet.collections)
    bastion = tmp_path / "bastion"
    write_machine(["1s1c", str(bastion)])
    fleet.hosts["bastion"] = {"kubelet_node_root": str(bastion), "kubelet_reservation": {"count": 4}}
    run = fleet.run(ROLLOUT, "run", "-e", json.dumps({"cpu_manager_skip_hosts_without_kubelet": skip}))
    assert (run.status == 0) == (skip is True), run.account()
    if skip is True:
        assert "Without a kubelet, left out: bastion" in run.output
    else:
        message = run.last("bastion")["msg"]
        assert "no kubelet is found here (looked at the processes" in message
        assert "out of the hosts of the play" in message


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


def check_table(story: Story, run: Run, step: str) -> None:
    """The table of a clean fleet stands in the output as plain text, whatever the form of results is."""
    lines = run.output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("NODES "))
    assert lines[at].split() == ["NODES", "STATE", "CHECK", "SUBJECT", "FOUND", "WANTED"]
    assert lines[at + 1].split() == ["edge,", "epyc,", "xeon", "clean"]
    assert "3 nodes: 3 clean; 0 checks failed; exit status 0" in lines
    assert "Report: %s" % (story.fleet.directory / step / "drift-report/drift.html") in lines[at:]


def test_table_is_readable_in_yaml(story: Story) -> None:
    check_table(story, story.runs["after"], "after")


def test_table_is_readable_in_json(story: Story) -> None:
    run = story.fleet.run(DRIFT_REPORT, "json", "--check", environment={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
    assert run.status == 0
    check_table(story, run, "json")


# --- the demo ------------------------------------------------------------------------------------


def test_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(DEMO / "run"), str(tmp_path / "output")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": "%s:%s" % (Path(sys.executable).parent, os.environ["PATH"]),
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / "build/collections"),
            "NO_COLOR": "1",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reports = [tmp_path / "output" / name / "drift.html" for name in ("before", "after")]
    assert done.stdout.splitlines()[-2:] == ["Report before: %s" % reports[0], "Report after:  %s" % reports[1]]
    written = [json.loads((report.parent / "drift.json").read_text(encoding="utf-8")) for report in reports]
    assert [report["summary"]["states"] for report in written] == [{"refused": 2, "drift": 1}, {"clean": 3}]
    assert all(report.is_file() for report in reports)
    recap = done.stdout.rpartition("PLAY RECAP")[2]
    assert len(re.findall(r"changed=0 .* failed=0 ", recap)) == len(NODES)
