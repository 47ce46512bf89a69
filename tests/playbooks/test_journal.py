# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs at one node: what a run does with the journal of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .conftest import CopyOf, ansible_playbook, play, task

CONFIG = "/var/lib/kubelet/config.yaml"
JOURNAL = "var/lib/kubenode-cpu-manager/change.json"
TAKEN = "another run (second) is changing this node or was interrupted, and this one (first) goes no further"
GONE = "another run has ended the change that this one (first) had begun"


def step(state: str, run: str = "first", **parameters: Any) -> dict[str, Any]:
    """The parameters of a call."""
    return {"state": state, "run": run, **parameters}


# {story: its calls, and how the last ends: the journal's phase and run, or what the refusal says}
STORIES: dict[str, tuple[list[dict[str, Any]], tuple[str, str] | str | None]] = {
    "whole": (
        [step("draining"), step("stopping", begin=False), step("changing", files=[CONFIG]), step("done")],
        None,
    ),
    "without_drain": ([step("stopping")], ("stopping", "first")),
    "of_nobody": ([step("draining", run=""), step("stopping", run="")], ("stopping", "")),
    "taken_of_nobody": ([step("draining", run=""), step("taken")], ("draining", "first")),
    "taken_of_nothing": ([step("taken")], None),
    "taken_and_read": ([step("draining"), step("taken", "second"), step("read")], TAKEN),
    "taken_and_gone_on": ([step("draining"), step("taken", "second"), step("stopping", begin=False)], TAKEN),
    "taken_and_saved": ([step("stopping"), step("taken", "second"), step("changing", files=[CONFIG])], TAKEN),
    "taken_and_put_back": ([step("stopping"), step("taken", "second"), step("restored")], TAKEN),
    "taken_and_ended": ([step("stopping"), step("taken", "second"), step("done")], TAKEN),
    "taken_and_forgotten": ([step("stopping"), step("taken", "second"), step("absent")], TAKEN),
    "begun_twice": ([step("draining", "second"), step("draining")], TAKEN),
    "gone_while_drained": ([step("draining"), step("absent", run=""), step("stopping", begin=False)], GONE),
    "gone_while_stopped": ([step("stopping"), step("absent", run=""), step("changing", files=[CONFIG])], GONE),
    "gone_at_the_end": ([step("stopping"), step("absent", run=""), step("done")], GONE),
    "gone_and_forgotten": ([step("stopping"), step("absent", run=""), step("absent")], None),
    "by_hand": ([step("stopping"), step("absent", run="")], None),
}


def test_a_run_does_nothing_with_the_change_of_another(copy_of: CopyOf, tmp_path: Path) -> None:
    roots = {name: copy_of("edge", name) for name in STORIES}
    hosts = {name: {"root": str(roots[name]), "steps": story[0]} for name, story in STORIES.items()}
    given = {name: "{{ item.%s | default(omit) }}" % name for name in ("state", "run", "begin", "files")}
    call = {
        **task("rollout_journal", root="{{ root }}", **given),
        "loop": "{{ steps }}",
        "ignore_errors": True,
    }
    run = ansible_playbook(tmp_path / "run", play(call, task("drift_info", root="{{ root }}")), hosts)
    for name, (steps, expected) in STORIES.items():
        told, drift = run.results[name]
        *before, last = told["results"]
        assert len(before) == len(steps) - 1
        assert not any(result["failed"] for result in before), name
        journal = last.get("journal")
        if isinstance(expected, str):
            assert expected in last["msg"], name
        else:
            assert (journal and (journal["phase"], journal["run"])) == expected, name
        # Who is refused has changed nothing.
        assert last["failed"] == isinstance(expected, str), name
        is_open = (roots[name] / JOURNAL).exists()
        assert is_open == (expected not in (None, GONE)), name
        assert any("a change of this node" in note for note in drift["notes"]) == is_open
