# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags choose whole parts of a run: no choice changes a node that is not planned, or a part of a change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import CHECKOUT, CopyOf, ansible_playbook, fingerprint

PLAYBOOKS = CHECKOUT / "playbooks"
# Those that plan and change nodes of a fleet, by the tags of their plays.
PLANS, CHANGES = ["plan", "change"], ["change"]


def plays_of(path: Path) -> list[dict[str, Any]]:
    """Return the plays of a playbook, with those that it imports."""
    found: list[dict[str, Any]] = []
    for play in yaml.safe_load(path.read_text("utf-8")):
        imported = play.get("ansible.builtin.import_playbook")
        assert imported is None or "tags" not in play, "what is imported has tags of its own"
        found += plays_of(path.parent / imported) if imported else [play]
    return found


@pytest.mark.parametrize("playbook", ["rollout", "rollback", "repair", "to_dra", "from_dra"])
def test_a_tag_chooses_the_plan_or_the_plan_with_its_change(playbook: str) -> None:
    """Whatever leads to a change is chosen with it, and no tag chooses the change alone."""
    plays = plays_of(PLAYBOOKS / (playbook + ".yml"))
    tags = [play["tags"] for play in plays]
    assert tags == sorted(tags, key=lambda of_play: of_play == CHANGES)
    assert PLANS in tags
    assert [of_play for of_play in tags if of_play not in (PLANS, CHANGES)] == []
    assert "planned=true" in plays[tags.index(CHANGES)]["hosts"]


@pytest.mark.parametrize("playbook", ["plan", "propose", "simulate", "impact", "try_upgrade"])
def test_what_only_plans_has_the_tag_of_it(playbook: str) -> None:
    assert [play["tags"] for play in plays_of(PLAYBOOKS / (playbook + ".yml"))] == [["plan"]]


def tags_within(tasks: Any) -> list[Any]:
    if isinstance(tasks, dict):
        own = [tasks["tags"]] if "tags" in tasks else []
        return own + [tag for value in tasks.values() for tag in tags_within(value)]
    return [tag for task in tasks for tag in tags_within(task)] if isinstance(tasks, list) else []


def test_no_step_of_a_change_has_a_tag() -> None:
    files = [*(CHECKOUT / "roles/kubelet/tasks").rglob("*.yml"), *(PLAYBOOKS / "tasks").glob("*.yml")]
    assert files
    assert [(path.name, tags) for path in files if (tags := tags_within(yaml.safe_load(path.read_text("utf-8"))))] == []


def test_what_tags_do_to_a_node(copy_of: CopyOf, tmp_path: Path) -> None:
    node = copy_of("epyc", "epyc")
    hosts = {"epyc": {"kubelet_node_root": str(node), "kubelet_cpu_manager_reconcile_period": "7s"}}
    before = fingerprint(node)

    def run(name: str, *arguments: str, playbook: str = "rollout", status: int = 0) -> str:
        played = ansible_playbook(tmp_path / name, "kubenode.cpu_manager." + playbook, hosts, *arguments)
        assert (played.status == 0) is (status == 0), played.account()
        return played.output

    planned = run("plan", "--tags", "plan")
    assert "cpu_manager_reconcile_period: " in planned
    assert fingerprint(node) == before
    # What leaves nothing of a run would be green with nothing read.
    for playbook, there in {"verify": "report", "rollout": "change, plan"}.items():
        said = run(playbook, "--tags", "verify", playbook=playbook, status=1)
        assert "--tags verify: leaves no task of this run, so no node would be read; the tags here are " + there in said
    said = run("skipped", "--skip-tags", "report", playbook="verify", status=1)
    assert " failed: --skip-tags report: leaves no task of this run" in " ".join(said.split())
    said = run("no-plan", "--skip-tags", "plan", status=1)
    assert "1 node not read in this run, so nothing was changed (epyc)" in " ".join(said.split())
    assert "Show the plan" not in said
    assert fingerprint(node) == before
    # All of the change, also what is included as it goes on.
    assert "changed 1, unchanged 0, left out 0, failed 0" in run("change", "--tags", "change")
    assert fingerprint(node) != before
