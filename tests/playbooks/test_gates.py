# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever a run says about a node was read of that node in that run: random fleets, tags, limits and patterns."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.kubenode.cpu_manager.tests.support.numbers import how_many

from .conftest import Run, ansible_playbook

RUNS = how_many("GATES", 8, 100)
# The tasks that read a node, one of each playbook.
READ = re.compile(r"Compare (each|the) node with (the wanted settings|what is wanted)")
PLAYBOOKS = {
    "verify": (),
    "drift_report": ("-e", "drift_report_fail_on=drift"),
    "rollout": ("--check",),
    "repair": ("--check",),
    "plan_changes": (),
}
TAGS = ((), (), (), ("--tags", "plan"), ("--tags", "report,odd"), ("--tags", "odd"), ("--skip-tags", "plan"))
COUNTED = re.compile(r"would change (\d+), unchanged (\d+)")


def kinds_of(node: Path, bastion: Path) -> dict[str, dict[str, Any]]:
    """Return the variables of a host of each kind; only of the first, and of a bastion, something can be read."""
    root = {"kubelet_node_root": str(node)}
    return {
        "fine": {**root, "kubelet_cpu_manager_policy": "static"},
        "drifted": {**root, "kubelet_cpu_manager_reconcile_period": "7s"},
        "bastion": {"kubelet_node_root": str(bastion)},
        "gone": {"kubelet_node_root": str(node / "gone")},
        "mute": {**root, "ansible_python_interpreter": "/no/python"},
        "misspelled": {**root, "kubelet_cpu_manager_polcy": "static"},
    }


def of_run(run: Run) -> set[str]:
    """Return the hosts that were read."""
    return {
        host
        for host, results in run.results.items()
        if any(result["outcome"] == "ok" and READ.search(result["task"]) for result in results)
    }


@pytest.mark.parametrize("seed", range(RUNS))
def test_what_a_run_says_of_a_node_was_read_in_it(seed: int, pristine_fleet: Path, tmp_path: Path) -> None:
    draw = random.Random(seed)
    bastion = tmp_path / "bastion"
    shutil.copytree(pristine_fleet / "epyc" / "sys" / "devices", bastion / "sys" / "devices", symlinks=True)
    kinds = kinds_of(pristine_fleet / "epyc", bastion)
    names = ["%s-%d" % (draw.choice(list(kinds)), number) for number in range(draw.randint(1, 3))]
    playbook = list(PLAYBOOKS)[seed % len(PLAYBOOKS)]
    skips = draw.random() < 0.5
    limit = draw.choice(["all", names[0], "!" + names[-1], "*fine*"])
    scope = draw.choice(["all", names[-1], "no_group"]) if draw.random() < 0.3 else "all"
    arguments = ["--limit", limit, *draw.choice(TAGS), *PLAYBOOKS[playbook], "-e", "cpu_manager_hosts=" + scope]
    arguments += ["-e", "cpu_manager_skip_hosts_without_kubelet=%s" % skips]
    # Where a run before it has left its results.
    earlier = ansible_playbook(
        tmp_path / "run", "kubenode.cpu_manager.drift_report", dict.fromkeys(names, kinds["fine"])
    )
    assert earlier.status == 0, earlier.account()
    hosts = {name: kinds[name.partition("-")[0]] for name in names}

    run = ansible_playbook(tmp_path / "run", "kubenode.cpu_manager." + playbook, hosts, *arguments)

    read = of_run(run)
    told = "%s\n%s" % (arguments, run.account())
    if run.status == 0:
        chosen = {"all": names, "*fine*": [name for name in names if "fine" in name]}.get(limit)
        chosen = chosen or ([limit] if limit in names else names[:-1])
        of_scope = set(chosen) & {"all": set(names), names[-1]: {names[-1]}}.get(scope, set())
        assert read == of_scope != set(), told
        assert skips or not any("bastion" in name for name in read), told
        assert (
            all("bastion" not in name for name in read) or len(read) > 1 or playbook not in ("verify", "drift_report")
        )
    for changed, unchanged in COUNTED.findall(run.output):
        assert int(changed) + int(unchanged) <= len(read), told
    report = tmp_path / "run" / "drift-report" / "drift.json"
    if playbook == "drift_report" and READ.search(run.output):
        nodes = json.loads(report.read_text(encoding="utf-8"))["nodes"]
        assert {node["host"] for node in nodes if node["state"] != "failed"} <= read, told
    for name in set(names) - read if playbook == "verify" else ():
        assert not re.search(r"^%s: (clean|as wanted|nothing wanted|drift)" % name, run.output, re.MULTILINE), told
