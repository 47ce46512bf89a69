# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The demo's fleet, and the playbooks on it as an operator runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from .conftest import DEMO_FLEET, Run, ansible_playbook

DEMO = DEMO_FLEET.parent
NODES = ("xeon", "epyc", "edge")

DRIFT_REPORT = "kubenode.cpu_manager.drift_report"
ROLLOUT = "kubenode.cpu_manager.rollout"


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
        """Return the report of a step, as JSON."""
        report: dict[str, Any] = json.loads(self._written(name, "drift.json"))
        return report

    def nodes(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the nodes in the report of a step, by host."""
        return {node["host"]: node for node in self.report(name)["nodes"]}

    def answers(self, name: str) -> dict[str, dict[str, Any]]:
        """Return what the nodes answered in a step, by host."""
        return {host: json.loads(self._written(name, "nodes/%s.json" % host))["answer"] for host in NODES}

    def page(self, name: str) -> str:
        """Return the report as a page of a step."""
        return self._written(name, "drift.html")

    def _written(self, name: str, path: str) -> str:
        return (self.directory / name / "drift-report" / path).read_text(encoding="utf-8")
