# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each test is in one share, and what `make test` runs is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.tests.matrix.cores import supported
from ansible_collections.kubenode.cpu_manager.tests.running.shares import (
    CORES,
    LATER,
    PARTS,
    ROOT,
    SHARES,
    arguments_of,
    share_of,
    touching,
    turn,
)

ALL = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
SCENARIOS = "tests/scenarios/test_scenarios.py"


def files_of(name: str) -> set[str]:
    """Return the files of a folder, or of a file or a test in one."""
    path = ROOT / name.partition("::")[0]
    return {file for file in ALL if path == ROOT / file or path in (ROOT / file).parents}


def test_together_the_shares_are_all_tests_and_each_is_in_one() -> None:
    counted = Counter(
        file
        for share in SHARES.values()
        for file in set().union(*(files_of(name) for name in share.tests))
        if file != SCENARIOS
    )
    assert set(counted) == set(ALL) - {SCENARIOS}
    assert set(counted.values()) == {1}


def test_each_scenario_is_in_one_share() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", SCENARIOS]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    collected = re.findall("^%s::.*$" % SCENARIOS, done.stdout, re.MULTILINE)
    named = [name for share in SHARES.values() for name in share.tests if name.startswith(SCENARIOS)]
    assert sorted(named) == sorted(collected)


@pytest.mark.parametrize("part", PARTS)
def test_what_make_test_runs_is_there(part: str) -> None:
    for name in PARTS[part].tests:
        file, _colons, test = name.replace("--deselect=", "").partition("::")
        assert files_of(file), name
        assert not test or "def %s(" % test.partition("[")[0] in (ROOT / file).read_text(encoding="utf-8")


def test_make_test_runs_a_story_of_each_playbook() -> None:
    stories = "".join(
        (ROOT / file).read_text(encoding="utf-8") for name in PARTS["stories"].tests for file in files_of(name)
    )
    stories += (ROOT / "tests" / "cluster" / "rollouts.py").read_text(encoding="utf-8")
    # rollout, rollback and repair import it.
    playbooks = {path.stem for path in (ROOT / "playbooks").glob("*.yml")} - {"plan_changes"}
    assert {name for name in playbooks if not re.search(r"kubenode\.cpu_manager\.%s\b" % name, stories)} == set()


def test_make_test_runs_the_main_job_on_the_oldest_and_the_newest_core() -> None:
    assert [name.partition("[")[2].rstrip("]") for name in CORES] == [supported()[0], supported()[-1]]


def test_what_is_run_later_is_few() -> None:
    assert len(LATER) < 10


def test_six_commits_after_each_other_have_all_shares() -> None:
    assert {turn(number) for number in range(100, 106)} == set(SHARES)


@pytest.mark.parametrize(
    ("path", "shares"),
    [
        ("plugins/module_utils/cpuset.py", [1]),
        ("roles/reconcile/tasks/main.yml", [2]),
        ("roles/kubelet/tasks/main.yml", [2, 3, 4]),
        ("tests/cluster/test_dra.py", [4]),
        ("extensions/molecule/kubelet/verify.yml", [5, 6]),
        ("README.md", []),
    ],
)
def test_a_change_is_covered_by_its_shares(path: str, shares: list[int]) -> None:
    assert touching([path]) == shares


def test_arguments() -> None:
    assert arguments_of(share_of("5"), 2)[0] == "--numprocesses=0"
    assert arguments_of(share_of("4"), 2)[0] == "--numprocesses=3"
    assert arguments_of(share_of("core"), 2)[0] == "--numprocesses=2"


def test_the_makefile_has_these_shares() -> None:
    makefile = Path(ROOT, "Makefile").read_text(encoding="utf-8")
    assert "SHARES := %s\n" % " ".join(map(str, SHARES)) in makefile
