# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much a rollout prints, with the settings of Ansible that an operator has who changed none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import CopyOf, Run, ansible_playbook

# All results of one node that changes, also where it is the first one, which does what is done once for all.
MOST_RESULTS = 8

CHANGING, CLEAN = ("a", "b"), ("c", "d", "e")
SETTINGS = {"kubelet_cpu_manager_policy": "static", "kubelet_reserved_system_cpus": "0", "kubelet_drain": False}
ROLLOUT, ROLLBACK, REPAIR = ("kubenode.cpu_manager." + name for name in ("rollout", "rollback", "repair"))
SHOWN = {"ANSIBLE_DISPLAY_SKIPPED_HOSTS": "true"}


class Nodes:
    """Saved nodes. The first has other CPUs reserved than is wanted, and the second another policy."""

    def __init__(self, directory: Path, copy_of: CopyOf) -> None:
        self.directory = directory
        self.hosts: dict[str, dict[str, Any]] = {
            name: {"kubelet_node_root": str(copy_of("edge", name)), **SETTINGS} for name in ("a", *CLEAN)
        }
        # Whose pods would have to leave, if there were any.
        policy_none = {"kubelet_node_root": str(copy_of("xeon", "b")), "kubelet_discard_assignments": True}
        self.hosts["b"] = {**SETTINGS, **policy_none}

    def run(self, playbook: str, *arguments: str) -> Run:
        return ansible_playbook(self.directory / "run", playbook, self.hosts, *arguments, environment=SHOWN)


@pytest.fixture
def nodes(copy_of: CopyOf, tmp_path: Path) -> Nodes:
    found = Nodes(tmp_path, copy_of)
    run = found.run(ROLLOUT, "--limit", ",".join(CLEAN))
    assert run.status == 0, run.account()
    return found


def printed(run: Run, host: str) -> list[str]:
    """Return the lines that Ansible prints for the results of a host."""
    pattern = r"^(?:ok|changed|skipping|fatal): \[%(host)s\W.*|^included: .* for (?:.*, )?%(host)s(?:, .*| => .*)?$"
    return [found.group() for found in re.finditer(pattern % {"host": host}, run.output, re.MULTILINE)]


def shown_files(run: Run) -> set[str]:
    """Return the names of the files whose changes Ansible prints."""
    return {Path(path).name for path in re.findall(r"^\+\+\+ after: (\S+)", run.output, re.MULTILINE)}


def test_a_rollout_is_quiet(nodes: Nodes) -> None:
    run = nodes.run(ROLLOUT)
    assert run.status == 0, run.account()
    for host in CHANGING:
        tasks = [result["task"] for result in run.results[host]]
        assert len(tasks) == len(printed(run, host)), run.output
        assert len(tasks) <= MOST_RESULTS, run.output
        assert any(result["changed"] for result in run.results[host])
    assert not any(run.skipped.values())
    assert "skipping: [" not in run.output


REPORT = "; next: ansible-playbook kubenode.cpu_manager.drift_report"


def summary(run: Run) -> str:
    """Return the last result, which is one for the whole run."""
    found = [result for results in run.results.values() for result in results if result["task"].endswith("Sum up")]
    (result,) = found
    assert run.output.rpartition("TASK [")[2].startswith("Sum up]")
    return str(result["msg"])


def test_there_and_back(nodes: Nodes) -> None:
    """Each run says at its end what became of the fleet, and shows the changes of no other files than an operator's."""
    check = nodes.run(ROLLOUT, "--check", "--diff")
    assert summary(check) == "would change 2, unchanged 3, left out 0, failed 0; next: run it without --check"
    assert "all, canaries: none, at a time: 1, 10%, 25%, 50%, may fail: 0%]" in check.output
    rollout = nodes.run(ROLLOUT, "--diff")
    assert summary(rollout) == "changed 2, unchanged 3, left out 0, failed 0" + REPORT
    assert shown_files(rollout) == shown_files(check) == {"config.json", "config.yaml", "cpu_manager_state"}
    repair = nodes.run(REPAIR, "--diff")
    assert summary(repair) == "changed 0, unchanged 5, left out 0, failed 0" + REPORT
    assert shown_files(repair) == set()
    rollback = nodes.run(ROLLBACK, "--diff", "-e", json.dumps({"cpu_manager_serial": [1, "100%"]}))
    assert summary(rollback) == "changed 2, unchanged 3, left out 0, failed 0" + REPORT
    assert shown_files(rollback) == {"config.json", "config.yaml", "cpu_manager_state"}
    assert "all, canaries: none, at a time: 1, 100%, may fail: 0%]" in rollback.output


def test_what_failed_is_in_the_summary_and_its_undoing_shows_no_journal(nodes: Nodes) -> None:
    """Where more may fail than did, and not all of a batch; else Ansible ends the run, and nothing is said after it."""
    nodes.hosts["a"].update(kubelet_manage_service=True, kubelet_service="no-such-service")
    both = json.dumps({"cpu_manager_max_fail_percentage": 100, "cpu_manager_serial": "100%"})
    run = nodes.run(ROLLOUT, "--diff", "-e", both)
    assert run.status != 0
    assert summary(run) == "changed 1, unchanged 3, left out 0, failed 1 (a); next: see why above, and run again"
    # Those of b: the service of a is stopped before its files are touched.
    assert shown_files(run) == {"config.yaml", "cpu_manager_state"}
    stopped = nodes.run(ROLLOUT)
    assert stopped.status != 0
    assert "Sum up" not in stopped.output


def test_an_inventory_that_says_how_many_at_a_time_is_refused(nodes: Nodes) -> None:
    """Ansible does not take it from there."""
    nodes.hosts["c"]["cpu_manager_serial"] = 5
    run = nodes.run(ROLLOUT)
    assert run.status != 0
    message = run.last("c")["msg"]
    assert "the inventory says something else: all, canaries: none, at a time: 5, may fail: 0%; nothing" in message
    assert not any(result["changed"] for results in run.results.values() for result in results)
