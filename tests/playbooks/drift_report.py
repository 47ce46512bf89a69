# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run of the playbook drift_report, and what it wrote: the report, the page, and the findings of a node."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from .conftest import Run, ansible_playbook

DRIFT_REPORT = "kubenode.cpu_manager.drift_report"

WANTED = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0"}


class Report(NamedTuple):
    """One run of the playbook, and what it wrote: the report, its nodes, and what each of these answered."""

    run: Run
    report: dict[str, Any]
    nodes: dict[str, dict[str, Any]]
    answers: dict[str, dict[str, Any]]
    page: str


def make_report(directory: Path, hosts: dict[str, dict[str, Any]], *arguments: str) -> Report:
    run = ansible_playbook(directory, DRIFT_REPORT, hosts, *arguments)
    written = directory / "drift-report"
    assert (written / "drift.json").exists(), run.account()
    report = json.loads((written / "drift.json").read_text(encoding="utf-8"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in (written / "nodes").iterdir()]
    return Report(
        run,
        report,
        {node["host"]: node for node in report["nodes"]},
        {result["host"]: result["answer"] for result in results},
        (written / "drift.html").read_text(encoding="utf-8"),
    )


def report_playbook(directory: Path, playbook: str, hosts: dict[str, dict[str, Any]], **variables: Any) -> Run:
    return ansible_playbook(directory, "kubenode.cpu_manager." + playbook, hosts, "-e", json.dumps(variables))


def read_report(directory: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((directory / "drift-report/drift.json").read_text(encoding="utf-8"))
    return report


class Tags(HTMLParser):
    """What a page consists of."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.in_title = False
        self.title = ""
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.in_title = tag == "title"
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.in_title = self.in_title and tag != "title"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_title:
            self.title += data


def checks_of(node: dict[str, Any]) -> list[str]:
    return [finding["check"] for finding in node["findings"]]
