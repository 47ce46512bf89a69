# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.report.results import Progress

START = 1795446245.0


def lines(directory: Path, total: int, *seconds: float) -> list[str]:
    """Return what a run says whose nodes end at these seconds."""
    return [Progress(str(directory), "77", total).advance(START + second) for second in seconds]


def test_a_line_in_ten_seconds(tmp_path: Path) -> None:
    assert lines(tmp_path, 100, 0, 1, 9.9, 10, 11, 25, 26, 29) == [
        "",
        "",
        "",
        "4 of 100 nodes (4 %), about 4 minutes left",
        "",
        "6 of 100 nodes (6 %), about 7 minutes left",
        "",
        "",
    ]


def test_a_short_run_says_nothing(tmp_path: Path) -> None:
    assert lines(tmp_path, 5, 0, 1, 2, 3, 4) == [""] * 5
    assert list(tmp_path.iterdir()) == []


def test_the_last_node_ends_it(tmp_path: Path) -> None:
    assert lines(tmp_path, 2, 0, 60) == ["", ""]
    assert list(tmp_path.iterdir()) == []


def test_what_is_left_is_said_in_seconds_and_minutes(tmp_path: Path) -> None:
    found = lines(tmp_path, 10, 0, 10, 20, 30, 40, 50, 60, 70, 80)
    assert [re.sub(".*about ", "", text) for text in found[1:]] == [
        "40 seconds left",
        "46 seconds left",
        "45 seconds left",
        "40 seconds left",
        "33 seconds left",
        "25 seconds left",
        "17 seconds left",
        "8 seconds left",
    ]
    assert lines(tmp_path, 1000, 90)[0].endswith("about 148 minutes left")


def test_a_clock_that_is_set_back(tmp_path: Path) -> None:
    assert lines(tmp_path, 100, 1000, 0, 10) == ["", "", ""]
    assert lines(tmp_path, 100, 1000, 2000)[1].startswith("5 of 100 nodes (5 %), about ")


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    Progress(str(tmp_path), "77", 10).advance(START)
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # It is no result file.
    assert not path.name.endswith(".json")


def test_runs_are_counted_apart(tmp_path: Path) -> None:
    first, second = Progress(str(tmp_path), "1", 2), Progress(str(tmp_path), "2", 2)
    first.advance(START)
    second.advance(START)
    assert len(list(tmp_path.iterdir())) == 2
    first.advance(START)
    second.end()
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_ended_more_than_once(tmp_path: Path) -> None:
    Progress(str(tmp_path), "77", 10).end()
    Progress(str(tmp_path / "nowhere"), "77", 10).end()


def test_no_node_at_all(tmp_path: Path) -> None:
    assert lines(tmp_path, 0, 0) == [""]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_to_does_not_matter(tmp_path: Path) -> None:
    assert lines(tmp_path / "nowhere", 10, 0, 60) == ["", ""]
    victim = tmp_path / "victim"
    victim.write_text("kept")
    (tmp_path / ".progress-77").symlink_to(victim)
    assert lines(tmp_path, 10, 0, 60) == ["", ""]
    assert victim.read_text() == "kept"


def test_what_another_program_wrote_does_not_matter(tmp_path: Path) -> None:
    for content in (
        b"x",
        b"x" * 7,
        b"x" * 8,
        b"\xff" * 16,
        b"\0" * 24,
        b"\0\0\0\0\0\0\xf0\xff" * 2,
        b"\0\0\0\0\0\0\xf8\x7f",
    ):
        (tmp_path / ".progress-77").write_bytes(content)
        for text in lines(tmp_path, 100, 0, 60):
            assert re.fullmatch(r"|\d+ of 100 nodes \(\d+ %\), about \d+ (seconds|minutes) left", text)


@pytest.mark.parametrize("total", [400, 1000])
def test_processes_count_together(tmp_path: Path, total: int) -> None:
    """Eight processes that begin at once: none of their records is lost."""
    ready, go = os.pipe()
    children = []
    for number in range(8):
        child = os.fork()
        if not child:
            status = 1
            try:
                os.read(ready, 1)
                for step in range(50):
                    text = Progress(str(tmp_path), "77", total).advance(START + number + step)
                    assert re.fullmatch(r"|\d+ of %d nodes \(\d+ %%\), about \d+ \w+ left" % total, text)
                status = 0
            finally:
                # Nothing of pytest may run in the child.
                os._exit(status)
        children.append(child)
    os.write(go, b"x" * 8)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    os.close(ready)
    os.close(go)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    # With as many nodes as there were, the last one has ended it.
    assert sizes == ([] if total == 400 else [400 * 8])
