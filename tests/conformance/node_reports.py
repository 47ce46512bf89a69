# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report of a node as files, and what it says for each check, for the pages of the checks."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Iterator, Mapping

import yaml

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import call_options, noted
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._caches.cache_info import cache_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._housekeeping.housekeeping_info import housekeeping
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.isolation_info import isolation_report
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._isolation.throttling_info import throttling
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.node import Node
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._rollout.rollout_plan import (
    ChangeTerms,
    rollout_report,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._trial.trial_report import trial_report
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.assemble import ReportTerms, assemble
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.checks import CHECKS, NOTE
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.configz import settings_of_configz
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Result
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.terminal import fleet_table
from ansible_collections.kubenode.cpu_manager.tests.conformance.look_troubles import LOOK_TROUBLES
from ansible_collections.kubenode.cpu_manager.tests.conformance.node_troubles import NODE_TROUBLES
from ansible_collections.kubenode.cpu_manager.tests.conformance.trouble_case import Trouble
from ansible_collections.kubenode.cpu_manager.tests.machines.troubles import Saved, write_saved

CHECKOUT = Path(__file__).parents[2]
TROUBLES = {**NODE_TROUBLES, **LOOK_TROUBLES}
HOST = "worker-1"
# Only a newer collection has a note without a check of its own.
WITHOUT_SAMPLE = "noted"


def report_of(
    saved: Saved,
    root: Path,
    wanted: Mapping[str, Any],
    configz: Mapping[str, Any] | None = None,
    added: tuple[str, str] | None = None,
    looks: Mapping[str, Any] | None = None,
) -> Any:
    """Return the report of a node, whose answer is plain data; its files are where they are on the node."""
    tree = write_saved(saved, root)
    answer = rollout_report(Node(tree, minor=saved.minor), wanted, ChangeTerms())
    if added is not None:
        answer["note_checks"].append(added[0])
        answer["notes"].append(added[1])
    running = settings_of_configz({"kubeletconfig": dict(configz)}) if configz else {}
    seen = {
        name: _seen(name, Node(tree, minor=saved.minor)) if look is None else look
        for name, look in (looks or {}).items()
    }
    plain, plain_looks = json.loads(_on_the_node(json.dumps([answer, seen]), root))
    result = Result(HOST, "2026-11-23T15:00:00Z", plain, running, [], plain_looks, may_lack_kubelet=True)
    return assemble([result], ReportTerms("CPU drift report", 1795446245.0))


def _on_the_node(text: str, root: Path) -> str:
    # Whoever writes the files here, on the node they are root's.
    text = text.replace("group %d)" % os.getegid(), "group 0)")
    return re.sub(re.escape(str(root)) + r"(?=/)", "", text).replace(str(root), "/")


def _seen(look: str, node: Node) -> dict[str, Any]:
    """Return what the module of a look returns."""
    if look == "isolation":
        return isolation_report(node, 1, 1.0)
    if look == "housekeeping":
        return housekeeping(node, None)
    if look == "cache":
        return cache_report(node, 0)
    if look == "trial":
        return trial_report(node, {})
    result = throttling(node, 0, 25)
    return {**result, **noted(result["notes"])}


def samples() -> dict[str, str]:
    """Return {id of a check: what the report shows in a terminal for a node on which it alone was found}"""
    names: dict[str, str] = {}
    for role in ("kubelet", "drift_report"):
        text = (CHECKOUT / "roles" / role / "vars/main.yml").read_text("utf-8")
        names.update(yaml.safe_load(text)[role + "_option_names"])
    call_options(names)
    try:
        return {check: "\n".join(_sample(check)) for check in CHECKS if check != WITHOUT_SAMPLE}
    finally:
        call_options({})


def _sample(check: str) -> Iterator[str]:
    trouble = _plainest(check)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "node"
        report = report_of(trouble.node, root, trouble.wanted, trouble.configz, trouble.added, trouble.looks)
    (node,) = report["nodes"]
    node["findings"] = [finding for finding in node["findings"] if finding["check"] == check][:1]
    table, *others = fleet_table(report).split("\n\n")
    if CHECKS[check].severity != NOTE:
        yield from table.splitlines()
        return
    (remark,) = (part for part in others if part.startswith(HOST + ": note: "))
    first, *rest = remark.splitlines()
    yield first
    yield from (line for line in rest if line.startswith(" "))


def _plainest(check: str) -> Trouble:
    """Return the node with the fewest other findings."""
    return min((row for row in TROUBLES.values() if check in row.checks), key=lambda row: len(row.checks))
