# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What becomes of tests that lack something, and what the summary of all tests says of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
SUMMARY = TESTS / "running" / "summary.py"

SAMPLE = """\
import pytest
from ansible_collections.kubenode.cpu_manager.tests.running.lacking import KUBERNETES, lacking, need

def test_passes(): pass

@pytest.mark.needs("sh", "no-such-program")
def test_marked(): raise AssertionError

@pytest.fixture
def tool():
    need("sh")
    need("no-such-program")

def test_with_a_fixture(tool): raise AssertionError

def test_kubernetes(): lacking(KUBERNETES, "no Kubernetes: no route")

def test_elsewhere(): pytest.skip("no cgroup v1")
"""

LAST_LINE = "1 passed, 0 failed, 4 skipped"


def summary(directory: Path, strict: str, *options: str) -> tuple[int, list[str]]:
    """Return the summary of the sample under STRICT: its status and its lines."""
    sample = directory / "test_sample.py"
    sample.write_text(SAMPLE, encoding="utf-8")
    pytest_it = [sys.executable, "-m", "pytest", "-c", str(TESTS.parent / "pyproject.toml"), "-p", "conftest"]
    pytest_it += ["-p", "no:cacheprovider", "--rootdir", str(directory), "--junit-xml", str(directory / "sample.xml")]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "STRICT": strict}
    subprocess.run([*pytest_it, *options, str(sample)], env=environment, check=False, capture_output=True)
    done = subprocess.run(
        [sys.executable, str(SUMMARY), str(directory), str(time.time()), "lint", "--rest", "make test-all"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    return done.returncode, [re.sub(r", in \d+:\d\d$", "", line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("options", [[], ["-n", "2"]], ids=["alone", "xdist"])
def test_what_did_not_run_is_named_by_its_cause(tmp_path: Path, options: list[str]) -> None:
    status, lines = summary(tmp_path, "", *options)
    assert status == 0
    assert lines == [
        "",
        "lint: passed",
        "sample: 1 passed, 0 failed, 4 skipped",
        "Not run, for lack of a tool: no no-such-program (2)",
        "Not run, for lack of Kubernetes: no Kubernetes: no route (1)",
        "Not run, as they do not apply here: no cgroup v1 (1)",
        LAST_LINE,
        "The rest: make test-all",
    ]


@pytest.mark.parametrize(("strict", "failed"), [("1", 3), ("tool", 2), ("0", 0)])
def test_strict_makes_a_lack_a_failure(tmp_path: Path, strict: str, failed: int) -> None:
    status, lines = summary(tmp_path, strict)
    assert status == bool(failed)
    assert lines[-2] == "1 passed, %d failed, %d skipped" % (failed, 4 - failed)
    assert "Not run, as they do not apply here: no cgroup v1 (1)" in lines
