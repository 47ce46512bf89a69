# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The check for node-problem-detector: what it says of the files that the collection writes, and of hostile ones."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._programs.reconcile_program import METRICS
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.answers import time_of
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.metrics import node_metrics
from ansible_collections.kubenode.cpu_manager.tests.machines.reports import finding, node

from .pages import CHECKOUT, GUIDES, blocks

MONITORING = CHECKOUT / "extensions" / "monitoring"
REFUSED = finding("checkpoint-refused", severity="danger")


def asked(check: str, *files: Path) -> tuple[int, str]:
    """Return the exit status, and the one line that is said."""
    command = [str(MONITORING / "node-problem.sh"), check, *map(str, files)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    assert len(text.rstrip("\n")) <= 80
    assert text.count("\n") == 1
    return done.returncode, text.rstrip("\n")


def report(path: Path, age: float = 60, **parts: Any) -> Path:
    moment = time_of(time.time() - age)
    found: Any = {**node(**parts), "looked_at": moment}
    path.write_text(node_metrics(found, moment), encoding="utf-8")
    return path


def reconciled(path: Path, success: int, age: float) -> Path:
    text = METRICS.format(success=success, timestamp=time.time() - age, duration=0.1, checkpoint=1, kubelet="")
    path.write_text(text, encoding="utf-8")
    return path


FINE = "the kubelet would start again"
GIVEN = "containers have the CPUs of the checkpoint"
DIFFERS = "CPUs differ from the checkpoint: 3 containers"
SAID: list[tuple[str, dict[str, Any], tuple[int, str]]] = [
    ("restart", {}, (0, FINE)),
    ("restart", {"findings": [REFUSED]}, (1, "the next restart of this kubelet fails: checkpoint-refused")),
    ("restart", {"findings": [finding("policy-differs")]}, (0, FINE)),
    ("cpus", {}, (0, GIVEN)),
    ("cpus", {"containers": {"different": "3"}}, (1, DIFFERS)),
    # not known is not the same as no problem
    ("restart", {"state": "failed"}, (2, "the last report could not read this node")),
    ("restart", {"age": 200_000}, (2, "the last report of this node is 55 hours old")),
    ("cpus", {"age": -4000}, (2, "the last report is of the future: a clock is wrong")),
    ("other", {}, (2, "usage: node-problem.sh restart|cpus REPORT.prom [RECONCILE.prom]")),
]


@pytest.mark.parametrize(("check", "parts", "said"), SAID)
def test_what_kubectl_describe_node_shows(
    tmp_path: Path, check: str, parts: dict[str, Any], said: tuple[int, str]
) -> None:
    assert asked(check, report(tmp_path / "report.prom", **parts)) == said


@pytest.mark.parametrize(
    ("success", "age", "said"),
    [
        (1, 10, (0, GIVEN)),
        (0, 10, (1, "CPUs differ from the checkpoint, and reconcile fails")),
        (1, 600, (1, DIFFERS)),  # a pass before the report
        (1, -4000, (1, DIFFERS)),
    ],
)
def test_what_reconcile_has_done_since_counts(tmp_path: Path, success: int, age: float, said: tuple[int, str]) -> None:
    found = report(tmp_path / "report.prom", containers={"different": "3"})
    assert asked("cpus", found, reconciled(tmp_path / "reconcile.prom", success, age)) == said
    assert asked("cpus", found, tmp_path / "none.prom") == (1, DIFFERS)


def test_the_guide_shows_what_is_said() -> None:
    (text,) = [block.text for block in blocks(GUIDES / "monitor.rst") if "checkpoint-refused" in block.text]
    shown = {tuple(line.split(None, 2)) for line in text.splitlines()}
    said = {(check, "%d" % status, words) for check, _parts, (status, words) in SAID}
    assert shown <= said


HOSTILE = [
    b"kubenode_cpu_look_success 1\nkubenode_cpu_look_timestamp_seconds $(touch /tmp/x)\n",
    b"kubenode_cpu_look_success 1\nkubenode_cpu_look_timestamp_seconds 99999999999999999999\n",
    b"kubenode_cpu_look_success 1\nkubenode_cpu_look_timestamp_seconds -5\n",
    b"\x1b[2J\xff\x00" * 100,
    b"",
    b"a" * 3_000_000,
]


@pytest.mark.parametrize("content", HOSTILE)
@pytest.mark.parametrize("check", ["restart", "cpus"])
def test_a_file_that_somebody_else_wrote_is_not_known(tmp_path: Path, content: bytes, check: str) -> None:
    (tmp_path / "report.prom").write_bytes(content)
    assert asked(check, tmp_path / "report.prom")[0] == 2


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "report.prom")
    assert asked("restart", tmp_path / "report.prom") == (2, "there is no report of the CPU manager on this node")
    assert asked("restart", tmp_path)[0] == asked("restart", tmp_path / "none")[0] == 2


def test_the_configuration_names_the_script_and_each_condition() -> None:
    told = json.loads((MONITORING / "node-problem.json").read_text("utf-8"))
    assert told["pluginConfig"]["max_output_length"] == 80
    assert {rule["condition"] for rule in told["rules"]} == {condition["type"] for condition in told["conditions"]}
    assert {Path(rule["path"]).name for rule in told["rules"]} == {"node-problem.sh"}
    assert [rule["args"][0] for rule in told["rules"]] == ["restart", "cpus"]
    assert [condition["message"] for condition in told["conditions"]] == [FINE, GIVEN]
