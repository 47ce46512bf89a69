# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What configure.yml makes in AWX is what the page says, and each survey asks for variables that there are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import misspelled
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables_of_files import wrong_variables
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import TOOL, lacking

from .controller import Controller, serve, wrong_with
from .pages import CHECKOUT, GUIDES

(PLAY,) = yaml.safe_load((CHECKOUT / "extensions/awx/configure.yml").read_text("utf-8"))
TEMPLATES, SURVEY = PLAY["vars"]["awx_templates"], PLAY["vars"]["awx_survey"]
PAGE = (GUIDES / "awx.rst").read_text("utf-8")
# What a survey of AWX gives to a playbook.
ANSWERS: dict[str, Any] = {"text": "10%", "integer": "7", "multiplechoice": "true"}


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, without its first row."""
    below = PAGE.partition("\n%s\n" % heading)[2].partition(".. list-table::")[2]
    table = re.split(r"\n(?=\S)", below)[0]
    found = [re.split(r"\n     - ", row) for row in re.split(r"\n   \* - ", table)[1:]]
    return [[cell.strip("` \n") for cell in row] for row in found[1:]]


def test_the_templates_are_those_of_the_page() -> None:
    prompt = {True: "Check or Run, *Prompt on launch*", False: None}
    made = [
        [
            template["name"],
            template["playbook"],
            prompt[template.get("ask_job_type_on_launch", False)] or template["job_type"].capitalize(),
        ]
        for template in TEMPLATES
    ]
    assert made == [row[:3] for row in rows("Job templates")]
    assert [row["name"] for row in TEMPLATES if row.get("diff_mode")] == [
        row[0] for row in rows("Job templates") if "*Show changes*" in row[3]
    ]


def test_the_survey_is_that_of_the_page() -> None:
    assert [row["variable"] for row in SURVEY] == [row[0] for row in rows("Surveys")]


@pytest.mark.parametrize("question", SURVEY, ids=lambda row: row["variable"])
def test_a_survey_asks_for_what_there_is(question: dict[str, Any]) -> None:
    name, answer = question["variable"], ANSWERS[question["type"]]
    assert misspelled([name]) == []
    assert wrong_variables({name: answer}) == []
    assert all(wrong_variables({name: choice}) == [] for choice in question.get("choices", ()))
    if question["type"] == "integer":
        assert wrong_variables({name: "many"}) != [] or name == "cpu_manager_max_fail_percentage"


def test_a_template_that_changes_nodes_is_not_sliced() -> None:
    (task,) = (task for task in PLAY["tasks"] if "awx.awx.job_template" in task)
    assert task["awx.awx.job_template"]["job_slice_count"] == 1
    assert task["awx.awx.job_template"]["allow_simultaneous"] is False
    (schedule,) = (task["awx.awx.schedule"] for task in PLAY["tasks"] if "awx.awx.schedule" in task)
    assert schedule["unified_job_template"] in [
        template["name"] for template in TEMPLATES if template["job_type"] == "check"
    ]


# The last of the `ansible` packages that have this collection.
PACKAGE = "ansible==11.*"


@pytest.fixture(scope="module")
def collections() -> Path:
    """Return the directory in which awx.awx is."""
    place = CHECKOUT / ".cache" / "awx"
    if not (place / "ansible_collections/awx/awx/MANIFEST.json").exists():
        fetch = [str(CHECKOUT / "tests/running/fetch_collection"), "awx.awx", str(place), PACKAGE]
        try:
            subprocess.run([sys.executable, *fetch], check=True)
        except subprocess.CalledProcessError as error:
            lacking(TOOL, "no awx.awx: %s" % error)
    return place


def configure(controller: Controller, collections: Path, directory: Path, *more: str) -> tuple[list[bool], str]:
    """Run configure.yml: what each of its steps has changed, a loop's for each of its items, and what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", str(CHECKOUT / "extensions/awx/configure.yml"), *more],
        check=False,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "CONTROLLER_HOST": "http://127.0.0.1:%d" % controller.server_port,
            "CONTROLLER_OAUTH_TOKEN": "a-token",
            "HOME": str(directory),
            "NO_COLOR": "1",
        },
    )
    assert done.returncode == 0, done.stdout
    steps = re.findall("^(ok|changed): ", done.stdout, re.MULTILINE)
    return [step == "changed" for step in steps], done.stdout


def test_awx_has_what_the_page_says(collections: Path, tmp_path: Path) -> None:
    """By the modules of awx.awx, of which each checks its options; a second run changes nothing."""
    with serve(organizations=["Default"], inventories=["fleet"], credentials=["ssh"]) as controller:
        changed, _said = configure(controller, collections, tmp_path)
        assert changed == [True] * (len(TEMPLATES) + 2)
        assert controller.refused == []
        made = {template["name"]: template for template in controller.objects["job_templates"]}
        assert list(made) == [template["name"] for template in TEMPLATES]
        for template in TEMPLATES:
            has = made[template["name"]]
            assert {name: has[name] for name in ("playbook", "job_type")} == {
                name: template[name] for name in ("playbook", "job_type")
            }
            asked = controller.surveys.get(has["id"], {"spec": []})["spec"]
            assert [question["variable"] for question in asked] == [
                question["variable"] for question in (SURVEY if template.get("survey") else [])
            ]
            assert has["survey_enabled"] is bool(asked)
        (schedule,) = controller.objects["schedules"]
        assert schedule["unified_job_template"] == made["CPU report"]["id"]
        before = json.dumps(controller.objects["job_templates"], sort_keys=True)
        again, said = configure(controller, collections, tmp_path)
        assert again == [False] * len(changed), said
        # In check mode, whether an update would bring another version of the project is not known.
        checked, said = configure(controller, collections, tmp_path, "--check")
        assert checked == [True, *again[1:]], said
        assert json.dumps(controller.objects["job_templates"], sort_keys=True) == before


def test_a_survey_that_awx_refuses_is_refused_here() -> None:
    question = {"type": "integer", "question_name": "How many?", "variable": "many", "required": False}
    survey: dict[str, Any] = {"name": "it", "description": "", "spec": [question]}
    assert wrong_with(survey) == ""
    assert wrong_with({**survey, "spec": []}) == "no questions"
    assert wrong_with({**survey, "spec": [{**question, "required": "no"}]}) == "a question's required"
    assert wrong_with({**survey, "spec": [question, question]}) == "variables"
    assert wrong_with({**survey, "spec": [{**question, "type": "multiplechoice"}]}) == "choices"
