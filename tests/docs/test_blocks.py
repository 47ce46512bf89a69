# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All that the documentation tells a person to write and to run: each block is checked, and says by its language how.

`shell` is run: its commands name what exists. `yaml` is written: Ansible takes it. `json` and `ini` can be read.
`python` is compiled, and run where its page says that it is. `text` is what programs print, or is only looked at.
"""

from __future__ import annotations

import configparser
import json
import os
import subprocess
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.kubenode.cpu_manager.tests.collection_path import COLLECTIONS

from .commands import check_literal, check_shell
from .pages import CHECKOUT, Block, blocks, literals, name_of, pages
from .values import check_yaml, playbook_of

# What a page is made of: {kind: how many}, and what is wrong with it.
Checked = tuple[Counter[str], list[str]]


def check_json(text: str) -> list[str]:
    try:
        json.loads(text)
    except ValueError as error:
        return ["no JSON: %s" % error]
    return []


def check_ini(text: str) -> list[str]:
    """Return what is wrong with an INI file, as every file of systemd and Ansible is one; inventories have lines
    without a value."""
    parser = configparser.ConfigParser(allow_no_value=True, strict=False, interpolation=None, delimiters=("=",))
    try:
        parser.read_string(text if text.lstrip("# \n").startswith("[") or "\n[" in text else "[all]\n" + text)
    except configparser.Error as error:
        return ["no INI: %s" % error]
    return []


def check_python(text: str) -> list[str]:
    try:
        compile(text, "block", "exec")
    except SyntaxError as error:
        return ["no Python: %s" % error]
    return []


def check_block(block: Block, files: set[str]) -> Checked:
    """Return how many of what a block is, and what is wrong with it."""
    if block.language == "shell":
        count, problems = check_shell(block.text, files)
        return Counter({"commands": count}), problems
    if block.language == "yaml":
        kinds, problems = check_yaml(block.text, files)
        return Counter(kinds), problems
    readers: dict[str, Callable[[str], list[str]]] = {
        "json": check_json,
        "ini": check_ini,
        "python": check_python,
        "text": lambda _text: [],
    }
    if block.language not in readers:
        return Counter(), ["its language is %r, and not shell, yaml, json, ini, python or text" % block.language]
    return Counter({block.language: 1}), readers[block.language](block.text)


@lru_cache(maxsize=None)
def check(page: Path) -> Checked:
    """Return what a page is made of, and what is wrong with it."""
    counts: Counter[str] = Counter()
    problems = []
    found = blocks(page)
    files = {block.file for block in found if block.file}
    for block in found:
        count, wrong = check_block(block, files)
        counts += Counter({"blocks": 1}) + count
        problems += ["%s: %s" % (block.place, problem) for problem in wrong]
    for literal in literals(page):
        wrong_literal = check_literal(literal.text, files)
        if wrong_literal is not None:
            counts["commands in text"] += 1
            problems += ["%s: %s" % (literal.place, problem) for problem in wrong_literal]
    return counts, problems


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_what_a_page_says_can_be_done(page: Path) -> None:
    assert check(page)[1] == []


def test_playbooks_and_tasks_have_the_syntax_of_ansible(tmp_path: Path) -> None:
    found = [block for page in pages() for block in blocks(page) if block.language == "yaml"]
    files = {playbook_of(block.text, tmp_path): block.place for block in found}
    files.pop(None, None)
    assert files
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
    }
    done = subprocess.run(
        ["ansible-playbook", "--syntax-check", "-i", "localhost,", *sorted(map(str, files))],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, (done.stderr, {path.name: place for path, place in files.items() if path})


def test_what_the_demo_says_to_do_next_can_be_done() -> None:
    said = (CHECKOUT / "demo/run").read_text("utf-8").partition("\nNext, ")[2].partition("\nEND\n")[0]
    commands = said.splitlines()[1:]
    assert len(commands) == 3
    assert check_shell("\n".join(map(str.strip, commands)), set())[1] == []


def test_how_much_there_is() -> None:
    """Each block and each command is one of these; what is none of them is an error of its page."""
    counts = sum((check(page)[0] for page in pages()), Counter[str]())
    print(", ".join("%d %s" % (count, kind) for kind, count in sorted(counts.items())))
    assert counts["unknown"] == 0
    assert counts["commands"] > 50
    assert counts["variables"] > 15
    assert counts["playbook"] + counts["tasks"] > 10


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ansible-playbook kubenode.cpu_manager.roll_out -i inventory", "there is no playbook"),
        ("ansible-playbook site.yml", "there is no playbook site.yml"),
        ("ansible-playbook kubenode.cpu_manager.rollout --differ", "unrecognized arguments"),
        (
            "ansible-playbook kubenode.cpu_manager.rollout -e kubelet_cpu_manager_polcy=none",
            "_policy meant?",
        ),
        ("ansible-playbook kubenode.cpu_manager.rollout -e kubelet_cpu_manager_policy=dynamic", "must be one of"),
        ("ansible-playbook kubenode.cpu_manager.rollout -e cpu_manager_nodes=x", "no variable cpu_manager_nodes"),
        ("""ansible-playbook kubenode.cpu_manager.report -e '{"drift_report_sources": {}}'""", "drift_report_sources"),
        ("echo 'a", "bash does not take it"),
        ("cd /tmp && sudo systemctl stop kubelet | less", "less is no program"),
        ("ansible workers -m kubenode.cpu_manager.drift", "there is no module"),
        ("ansible workers -m kubenode.cpu_manager.isolation_info -a second=5", "second. Supported parameters"),
        ("ansible-doc -t role kubenode.cpu_manager.kubelets", "there is no role"),
        ("make tests", "make has no target tests"),
        ("make test STRIC=1", "make has no variable STRIC"),
        ("python3 -c 'import'", "Python does not take it"),
        ("python3 - <<'END'\nimport\nEND\n", "Python does not take it"),
        ("tests/bench/walk throttling", "there is no tests/bench/walk"),
        (".venv/bin/pytest tests/unity", "there is no tests/unity"),
        ("kubectl apply -f - <<'END'\n- 1\nEND\n", "nobody can say what this is"),
    ],
)
def test_what_is_wrong_with_a_command_is_found(text: str, problem: str) -> None:
    assert problem in "\n".join(check_shell(text, set())[1])


PLAY: dict[str, Any] = {"hosts": "all", "tasks": []}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"kubelet_cpu_managr_policy": "static"}, "is kubelet_cpu_manager_policy meant?"),
        ({"kubelet_cpu_manager_policy": "statisch"}, "must be one of"),
        ({"kubelet_reservation": {"number": 4}}, "kubelet_reservation"),
        ({"drift_report_forms": ["pdf"]}, "must be one or more of"),
        ({"workers": {"hosts": {"a": {"kubelet_drain": "perhaps"}}}}, "kubelet_drain"),
        ({"something": 1}, "nobody can say what this is"),
        ([{"name": "x", "kubenode.cpu_manager.drift_infos": {}}], "there is no module"),
        ([{"name": "x", "kubenode.cpu_manager.drift_info": {"policy": "none"}}], "policy. Supported parameters"),
        ([{"name": "x"}], "a task has one module"),
        ([{**PLAY, "roles": ["kubenode.cpu_manager.kubelets"]}], "there is no role"),
        (
            [{**PLAY, "roles": [{"role": "kubenode.cpu_manager.kubelet", "vars": {"kubelet_drain": "x"}}]}],
            "kubelet_drain",
        ),
        ([{**PLAY, "host": "x"}], "a play has no host"),
        ([{"ansible.builtin.import_playbook": "kubenode.cpu_manager.roll"}], "there is no playbook"),
        ([{**PLAY, "module_defaults": {"group/kubenode.cpu_manager.cpu": {"root": "/"}}}], "there is no group"),
    ],
)
def test_what_is_wrong_with_yaml_is_found(document: Any, problem: str) -> None:
    assert problem in "\n".join(check_yaml(json.dumps(document))[1])


def test_a_template_is_taken_for_any_value() -> None:
    assert check_yaml('kubelet_drain: "{{ drain }}"\nkubelet_reservation: {count: "{{ count }}"}')[1] == []


def test_another_language_is_found() -> None:
    assert check_block(Block("page", 1, "console", "ls"), set())[1]
    assert check_block(Block("page", 1, "json", "{"), set())[1]
    assert check_block(Block("page", 1, "ini", "[a\nb"), set())[1]
    assert check_block(Block("page", 1, "yaml", "a: b: c"), set())[1]
