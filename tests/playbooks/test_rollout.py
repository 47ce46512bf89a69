# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbooks on the demo's fleet, with the collection built and installed as a user does it.

Nodes that are not well are in test_rollout_trouble.py.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS
from ansible_collections.kubenode.cpu_manager.tests.machines.command import main as write_machine

from .conftest import CHECKOUT, Run, fingerprint
from .demo_fleet import DEMO, DRIFT_REPORT, NODES, ROLLOUT, Fleet

# --- runs -----------------------------------------------------------------------------------------


class Story(NamedTuple):
    """The fleet, and its files after each step."""

    fleet: Fleet
    runs: dict[str, Run]
    files: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, pristine_fleet: Path, installed: Path) -> Story:
    """Return the story of a fleet from drift to the wanted state, as an operator would do it."""
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


def told(run: Run, host: str) -> list[tuple[object, ...]]:
    """Return what the tasks of a host tell an operator: their names and steps, whether they changed something, and
    how."""
    return [
        (result["task"], result["changed"], result.get("diff"), result.get("steps")) for result in run.results[host]
    ]


# --- the page -------------------------------------------------------------------------------------


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
    """Return the CPUs in the boxes of a picture."""
    found: list[int] = []
    for box in boxes:
        found += box["core"] if "core" in box else drawn_cpus(box["members"])
    return found


# --- from drift to the wanted state ---------------------------------------------------------------


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
        (diffs,) = [result["diff"] for result in rollout.results[node] if "steps" in result]
        assert len(diffs) > 1
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
    (written,) = [result["reconcile"] for result in story.runs["rollout"].results["epyc"] if "reconcile" in result]
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


def test_each_node_of_a_batch_gets_its_own_steps(tmp_path: Path, pristine_fleet: Path, installed: Path) -> None:
    """The last of three has a change that was interrupted: it is taken back, and then all three change at once."""
    fleet = Fleet(tmp_path, pristine_fleet, installed)
    *_others, last = NODES
    journal = {"format": 1, "phase": "draining", "facts": {}, "run": "killed", "files": {}}
    path = fleet.root / last / "var/lib/kubenode-cpu-manager/change.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(journal), encoding="utf-8")
    # One after another, so that the answer of the first comes first.
    run = fleet.run(ROLLOUT, "run", "--forks=1", "-e", "cpu_manager_serial=100%")
    assert run.status == 0, run.account()
    assert not path.exists()
    for node in NODES:
        tasks = run.changes(node)
        assert "Stop the kubelet" in tasks
        assert ("Take the change over" in tasks) is (node == last), tasks


# --- hosts without a kubelet, and the table -------------------------------------------------------


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
        assert "no kubelet runs here, and there is no file of one" in message
        assert "out of the hosts of the play" in message


def check_table(story: Story, run: Run, step: str) -> None:
    """Check that the table of a clean fleet stands in the output as plain text, whatever the form of results is."""
    lines = run.output.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("NODES "))
    assert lines[at].split() == ["NODES", "STATE", "CHECK", "SUBJECT", "FOUND", "WANTED"]
    assert lines[at + 1].split() == ["edge,", "epyc,", "xeon", "clean"]
    assert "3 nodes: 3 clean; 0 checks failed; outcome clean" in lines
    assert "Report: %s" % (story.fleet.directory / step / "drift-report/drift.html") in lines[at:]


def test_table_is_readable_in_yaml(story: Story) -> None:
    check_table(story, story.runs["after"], "after")


def test_table_is_readable_in_json(story: Story) -> None:
    run = story.fleet.run(DRIFT_REPORT, "json", "--check", environment={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"})
    assert run.status == 0
    check_table(story, run, "json")


# --- the demo -------------------------------------------------------------------------------------


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
            "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
            "NO_COLOR": "1",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    reports = [tmp_path / "output" / name / "drift.html" for name in ("before", "after")]
    seen, reported = done.stdout.split("\nThe reports: ")
    assert "\nWhat you saw:\n" in seen
    assert [line.strip() for line in reported.splitlines()[:2]] == list(map(str, reports))
    assert "\nNext, on your own nodes, read-only " in reported
    written = [json.loads((report.parent / "drift.json").read_text(encoding="utf-8")) for report in reports]
    assert [report["summary"]["states"] for report in written] == [{"refused": 2, "drift": 1}, {"clean": 3}]
    assert all(report.is_file() for report in reports)
    # The first rollout changes each node, and the second none.
    sums = re.findall(r"msg: 'changed (\d), unchanged (\d), left out 0, failed 0;", done.stdout)
    assert sums == [(str(len(NODES)), "0"), ("0", str(len(NODES)))]
