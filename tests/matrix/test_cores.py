# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each ansible-core on one Python of the controller, with the oldest and the newest Python of the nodes.

`make matrix` has all of them. The series of requirements.txt that all other tests run with is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Sequence

import pytest
from ansible.release import __version__

from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

from . import trials
from .cores import Environment, core_of, lacking_pythons, python_of_core, supported
from .trials import Trial, on_nodes

HERE = __version__.rpartition(".")[0]
OTHERS = [series for series in supported() if series != HERE]

# What may differ from core to core: the others look at sources alone. pylint takes long: the newest has the most rules.
SANITY = ("validate-modules", "import", "ansible-doc", "action-plugin-docs")
LONG_SANITY = ("pylint",)
# Every module, in check mode, for real and a second time; a rollout; nodes that somebody has taken over, as each core
# reads and shows answers in its own way; empty answers of a survey.
PLAYBOOKS = (
    "test_modules.py::test_check_mode_tells_what_the_run_does_and_a_second_run_does_nothing",
    "test_rollout.py::test_demo",
    "test_hostile_facts.py::test_no_answer_says_what_the_controller_does",
    "test_hostile_texts.py",
    "test_packing.py",
    "test_empty_answers.py::test_all_left_empty_is_as_nothing_said[verify]",
)


def environment_of(series: str) -> Environment:
    absent = lacking_pythons()
    if absent:
        lacking(TOOL, "no Python %s" % ", ".join(absent))
    environment = Environment(series, python_of_core(series))
    environment.make()
    return environment


@pytest.mark.parametrize("series", OTHERS)
def test_the_main_job_passes_without_a_warning(series: str, tmp_path: Path) -> None:
    environment = environment_of(series)
    nodes = core_of(series).nodes
    found = on_nodes(Trial(environment, tmp_path), (nodes[0], nodes[-1]), is_whole=False)
    assert found == {nodes[0]: [], nodes[-1]: []}


@pytest.mark.parametrize("series", OTHERS)
def test_the_demo_passes(series: str, tmp_path: Path) -> None:
    assert trials.demo(Trial(environment_of(series), tmp_path)) == []


@pytest.mark.parametrize("series", [supported()[0], supported()[-1]])
def test_the_configuration_of_the_guides_brings_no_warning(series: str, tmp_path: Path) -> None:
    """Neither of the interpreter of each host, nor of kubernetes.core where the API server is asked."""
    assert sorted(trials.configurations()) == ["getting_started", "large_fleets"]
    assert trials.guides(Trial(environment_of(series), tmp_path)) == []


@pytest.mark.parametrize("series", OTHERS)
def test_each_action_plugin_says_why_it_fails(series: str, tmp_path: Path) -> None:
    assert trials.unhappy(Trial(environment_of(series), tmp_path)) == []


@pytest.mark.parametrize("series", OTHERS)
def test_sanity_passes(series: str, tmp_path: Path) -> None:
    assert sanity(series, SANITY, tmp_path) == []


def test_the_effort_of_the_demo_is_counted() -> None:
    recap = "PLAY RECAP ***\nedge   : ok=15   changed=4\nlocalhost : ok=4    changed=0\n"
    assert trials.effort("PLAY [a] ***\n\nPLAY [b] ***\nok: [edge]\n\n" + recap) == {
        "runs of Ansible": 1,
        "plays": 2,
        "tasks": 19,
    }


def test_warnings_and_failures_are_noticed(tmp_path: Path) -> None:
    trial = Trial(environment_of(supported()[-1]), tmp_path)
    # What is no name of a variable is to go, and there is no such group.
    inventory = {"all": {"hosts": {"node": {"no-name": 1, "ansible_connection": "local"}}}}
    (tmp_path / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")
    command = ("ansible", "-i", "inventory.json", "all:nobody", "-m", "ansible.builtin.fail", "-a", "msg=no")
    failed, *warned = trial.run("wrong", *command)
    assert "ended with status 2" in failed
    assert any("[DEPRECATION WARNING]: Accepting inventory variable" in problem for problem in warned)
    assert any("[WARNING]: Could not match" in problem for problem in warned)


def test_a_node_with_a_python_that_the_core_does_not_manage_is_noticed(tmp_path: Path) -> None:
    trial = Trial(environment_of(supported()[-1]), tmp_path)
    (problems,) = on_nodes(trial, ("3.8",), is_whole=False).values()
    assert any("'after' has it as" in problem for problem in problems)


@pytest.mark.parametrize("series", OTHERS)
def test_playbooks_pass(series: str, tmp_path: Path) -> None:
    assert trials.playbooks(Trial(environment_of(series), tmp_path), *PLAYBOOKS) == []


def test_long_sanity_passes(tmp_path: Path) -> None:
    series = supported()[-1]
    assert sanity(series, LONG_SANITY, tmp_path) == []


def sanity(series: str, tests: Sequence[str], directory: Path) -> list[str]:
    """Return what is wrong by these tests of ansible-test, on the controller's Python."""
    environment = environment_of(series)
    chosen = [argument for test in tests for argument in ("--test", test)]
    return trials.sanity(Trial(environment, directory), *chosen, "--python", environment.python)
