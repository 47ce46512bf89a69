# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What configure.yml makes in AWX is what the page says, and each survey asks for variables that there are."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables import misspelled
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.variables_of_files import wrong_variables

from .pages import CHECKOUT, GUIDES

(PLAY,) = yaml.safe_load((CHECKOUT / "extensions/awx/configure.yml").read_text("utf-8"))
TEMPLATES, SURVEY = PLAY["vars"]["awx_templates"], PLAY["vars"]["awx_survey"]
PAGE = (GUIDES / "awx.rst").read_text("utf-8")
# What a survey of AWX gives to a playbook.
ANSWERS: dict[str, Any] = {"text": "10%", "integer": "7", "multiplechoice": "true"}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its first row."""
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
